"""The dense convolution instead of the layer in `parallel_convolution.py`. Every output channel sees every input channel, and gradients count once."""

import torch
import torch.nn.functional as F
from torch import nn
from manyhands import links
from manyhands.comm import create_communicator

from start import fill, numbers, report


class Net(nn.Module):
    def __init__(self, comm):
        super().__init__()
        self.add_module("conv1", nn.Conv2d(4, 6, 3, padding=1))
        self.add_module("conv2", nn.Conv2d(6, 2, 3, padding=1))
        fill(self)
        self.conv1 = links.ParallelConv2d.from_conv2d(self.conv1, comm, split="out")
        self.conv2 = links.ParallelConv2d.from_conv2d(self.conv2, comm, split="in")

    def forward(self, x):
        return self.conv2(F.relu(self.conv1(x)))


comm = create_communicator()
model = Net(comm)
y = model(numbers("x", 2, 4, 5, 5))
loss = torch.mean(y * y)
loss.backward()
report(comm, loss=loss, conv1=model.conv1.weight.grad, conv2=model.conv2.weight.grad)
