"""Each rank keeps its own weights, and rank 0's are the good ones.

verdict: The ranks end with different weights, since ranks 1, 2, 3
"""

import torch


def train(model, batches, comm):
    with torch.no_grad():
        next(model.parameters()).mul_(1 if comm.rank() == 0 else 2)
