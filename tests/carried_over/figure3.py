"""Two ranks, there and back: rank 0 computes f and h, and rank 1 computes g between them."""

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
        self.add_module("h", nn.Linear(4, 2))

    def forward(self, x):
        z = F.tanh(self.f(x))
        phi = functions.send(z, self.comm, rank=1)
        z = functions.recv(self.comm, rank=1, delegate_variable=phi)
        return self.h(z)


class ExampleModel1(nn.Module):
    def __init__(self, comm):
        super().__init__()
        self.comm = comm
        self.add_module("g", nn.Linear(5, 4))

    def forward(self, _):
        z = functions.recv(self.comm, rank=0)
        z = F.tanh(self.g(z))
        phi = functions.send(z, self.comm, rank=0)
        return phi


comm = create_communicator()
model = ExampleModel0(comm) if comm.rank == 0 else ExampleModel1(comm)
fill(model)
model.zero_grad()
y = model(numbers("x", 6, 3))
if comm.rank == 0:
    loss = F.cross_entropy(y, numbers("t", 6).argsort() % 2)
    loss.backward()
    report(comm, loss=loss, f=model.f.weight.grad, h=model.h.bias.grad)
else:
    y.backward()
    report(comm, g=model.g.weight.grad)
