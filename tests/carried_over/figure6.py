"""A rank that sends a value and also computes a loss. pseudo_connect joins the delegate to the output."""

import torch.nn.functional as F
from torch import nn
from manyhands import functions
from manyhands.comm import create_communicator

from start import fill, numbers, report


class ExampleModel0(nn.Module):
    def __init__(self, comm):
        super().__init__()
        self.comm = comm
        self.add_module("f", nn.Linear(3, 5))
        self.add_module("h", nn.Linear(5, 2))

    def forward(self, x):
        z = F.tanh(self.f(x))
        phi = functions.send(z, self.comm, rank=1)
        y = self.h(z)
        y_, = functions.pseudo_connect(phi, y)
        return y_


class ExampleModel1(nn.Module):
    def __init__(self, comm):
        super().__init__()
        self.comm = comm
        self.add_module("g", nn.Linear(5, 2))

    def forward(self, _):
        z = functions.recv(self.comm, rank=0)
        return self.g(z)


comm = create_communicator()
model = ExampleModel0(comm) if comm.rank == 0 else ExampleModel1(comm)
fill(model)
model.zero_grad()
y = model(numbers("x", 6, 3))
loss = F.cross_entropy(y, numbers("t", 6).argsort() % 2)
loss.backward()
if comm.rank == 0:
    report(comm, loss=loss, f=model.f.weight.grad, h=model.h.bias.grad)
else:
    report(comm, loss=loss, g=model.g.weight.grad)
