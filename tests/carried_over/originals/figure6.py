"""A rank that sends a value and also computes a loss. pseudo_connect joins the delegate to the output."""

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
        self.add_link("h", L.Linear(5, 2))

    def forward(self, x):
        z = F.tanh(self.f(x))
        phi = chainermn.functions.send(z, self.comm, rank=1)
        y = self.h(z)
        y_, = chainermn.functions.pseudo_connect(phi, y)
        return y_


class ExampleModel1(chainer.Chain):
    def __init__(self, comm):
        super().__init__()
        self.comm = comm
        self.add_link("g", L.Linear(5, 2))

    def forward(self, _):
        z = chainermn.functions.recv(self.comm, rank=0)
        return self.g(z)


comm = chainermn.create_communicator("naive")
model = ExampleModel0(comm) if comm.rank == 0 else ExampleModel1(comm)
fill(model)
model.cleargrads()
y = model(numbers("x", 6, 3))
loss = F.softmax_cross_entropy(y, numbers("t", 6).argsort() % 2)
loss.backward()
if comm.rank == 0:
    report(comm, loss=loss, f=model.f.W.grad, h=model.h.b.grad)
else:
    report(comm, loss=loss, g=model.g.W.grad)
