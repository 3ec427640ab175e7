"""A multi-layer perceptron on three ranks, built with MultiNodeChainList and trained for ten steps."""

import torch
import torch.nn.functional as F
from torch import nn
from manyhands import links
from manyhands.comm import create_communicator

from start import fill, numbers, report


class Layer(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.add_module("linear", nn.Linear(n_in, n_out))

    def forward(self, x):
        return F.relu(self.linear(x))


class MLP0(links.MultiNodeChainList):
    def __init__(self, comm):
        super().__init__(comm)
        self.add_link(Layer(5, 8), rank_in=None, rank_out=1)


class MLP1(links.MultiNodeChainList):
    def __init__(self, comm):
        super().__init__(comm)
        self.add_link(Layer(8, 7), rank_in=0, rank_out=2)


class MLP2(links.MultiNodeChainList):
    def __init__(self, comm):
        super().__init__(comm)
        self.add_link(nn.Linear(7, 3), rank_in=1, rank_out=None)


comm = create_communicator()
model = [MLP0, MLP1, MLP2][comm.rank](comm)
fill(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
x, t = numbers("x", 12, 5), numbers("t", 12).argsort() % 3
losses = []
for step in range(10):
    model.zero_grad()
    if comm.rank == 2:
        loss = F.cross_entropy(model(x), t)
        loss.backward()
        losses.append(float(loss.detach()))
    else:
        model(x).backward()
    optimizer.step()
report(comm, losses=losses)
