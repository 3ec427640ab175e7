"""Two ranks, there and back: rank 0 computes f and h, and rank 1 computes g between them."""

import chainer
import chainer.functions as F
import chainer.links as L
import chainermn

from start import fill, numbers, report


class ExampleModel0(chainer.Chain):
    def __init__(self, comm):
        super().__init__()
        self.comm = comm
        self.add_link("f", L.Linear(3, 5))
        self.add_link("h", L.Linear(4, 2))

    def forward(self, x):
        z = F.tanh(self.f(x))
        phi = chainermn.functions.send(z, self.comm, rank=1)
        z = chainermn.functions.recv(self.comm, rank=1, delegate_variable=phi)
        return self.h(z)


class ExampleModel1(chainer.Chain):
    def __init__(self, comm):
        super().__init__()
        self.comm = comm
        self.add_link("g", L.Linear(5, 4))

    def forward(self, _):
        z = chainermn.functions.recv(self.comm, rank=0)
        z = F.tanh(self.g(z))
        phi = chainermn.functions.send(z, self.comm, rank=0)
        return phi


comm = chainermn.create_communicator("naive")
model = ExampleModel0(comm) if comm.rank == 0 else ExampleModel1(comm)
fill(model)
model.cleargrads()
y = model(numbers("x", 6, 3))
if comm.rank == 0:
    loss = F.softmax_cross_entropy(y, numbers("t", 6).argsort() % 2)
    loss.backward()
    report(comm, loss=loss, f=model.f.W.grad, h=model.h.b.grad)
else:
    y.backward()
    report(comm, g=model.g.W.grad)
