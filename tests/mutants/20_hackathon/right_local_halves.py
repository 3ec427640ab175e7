"""The last rung by local SGD: rounds of 24 steps, in 16 bits.
"""
# %% grade_id="entry"
import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters


STEPS, ALONE = 240, 24


def train(model, batches, comm):
    optimizer = torch.optim.SGD(model.parameters(), 0.3)
    for step, batch in zip(range(1, STEPS + 1), batches):
        optimizer.zero_grad()
        model(batch).backward()
        optimizer.step()
        if step % ALONE == 0:
            weights = (parameters_to_vector(model.parameters()).detach() / comm.size()).half()
            dist.all_reduce(weights, group=comm)
            vector_to_parameters(weights.float(), model.parameters())
