"""Convolutions whose channels are distributed over the ranks, with allgather. Each rank sees only its own input channels."""

import torch
import torch.nn.functional as F
from torch import nn
from manyhands import functions
from manyhands.comm import create_communicator
import numpy as np

from start import fill, numbers, report


class ParallelConvolution(nn.Module):
    def __init__(self, comm, in_channels, out_channels):
        super().__init__()
        self.comm = comm
        self.in_channels = in_channels
        self.add_module("conv", nn.Conv2d(len(self.indices), out_channels // comm.size, 3, padding=1))

    @property
    def indices(self):
        idx = np.arange(self.in_channels)
        return idx[idx % self.comm.size == self.comm.rank]

    def forward(self, x):
        x = x[:, self.indices, :, :]
        y = self.conv(x)
        ys = functions.allgather(self.comm, y)
        return torch.cat(ys, axis=1)


class Net(nn.Module):
    def __init__(self, comm):
        super().__init__()
        self.add_module("conv1", ParallelConvolution(comm, 4, 6))
        self.add_module("conv2", ParallelConvolution(comm, 6, 2))

    def forward(self, x):
        return self.conv2(F.relu(self.conv1(x)))


comm = create_communicator()
model = Net(comm)
fill(model)
model.zero_grad()
y = model(numbers("x", 2, 4, 5, 5))
loss = torch.mean(y * y)
loss.backward()
report(comm, loss=loss, conv1=model.conv1.conv.weight.grad, conv2=model.conv2.conv.bias.grad)
