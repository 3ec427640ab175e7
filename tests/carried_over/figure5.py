"""Two sends that are joined by pseudo_connect, as in the article. The real ChainerMN waits forever in its backward."""

import torch.nn.functional as F
from torch import nn
from manyhands import functions
from manyhands.comm import create_communicator

from start import fill, numbers, report


class ExampleModel0(nn.Module):
    def __init__(self, comm):
        super().__init__()
        self.comm = comm
        self.add_module("f1", nn.Linear(3, 5))
        self.add_module("f2", nn.Linear(3, 4))

    def forward(self, x):
        z1, z2 = F.tanh(self.f1(x)), F.tanh(self.f2(x))
        phi1 = functions.send(z1, self.comm, rank=1)
        phi2 = functions.send(z2, self.comm, rank=1)
        psi, = functions.pseudo_connect(phi1, phi2)
        return psi


class ExampleModel1(nn.Module):
    def __init__(self, comm):
        super().__init__()
        self.comm = comm
        self.add_module("g1", nn.Linear(5, 2))
        self.add_module("g2", nn.Linear(4, 2))

    def forward(self, _):
        z1 = functions.recv(self.comm, rank=0)
        z2 = functions.recv(self.comm, rank=0)
        return self.g1(z1) * self.g2(z2)


comm = create_communicator()
model = ExampleModel0(comm) if comm.rank == 0 else ExampleModel1(comm)
fill(model)
model.zero_grad()
y = model(numbers("x", 6, 3))
if comm.rank == 0:
    y.backward()
    report(comm, f1=model.f1.weight.grad, f2=model.f2.weight.grad)
else:
    loss = F.cross_entropy(y, numbers("t", 6).argsort() % 2)
    loss.backward()
    report(comm, loss=loss, g1=model.g1.weight.grad, g2=model.g2.bias.grad)
