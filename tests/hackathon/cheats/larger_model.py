"""Put a larger network in the model's place.

verdict: do not fit the challenge's model
"""

import torch


def train(model, batches, comm):
    model.network = torch.nn.Linear(32, 4000)
