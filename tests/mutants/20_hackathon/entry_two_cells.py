"""A function of another cell is used.

fails: entry/right, entry/faster, entry/half, entry/fifth, entry/tenth
shows: An entry is one cell
points: 14
"""
# %% grade_id="entry"
import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def train(model, batches, comm):
    for batch in batches:
        loss = model(batch)
        loss.backward()
        message = pack(parameters_to_vector([weight.grad for weight in model.parameters()]), 220)
