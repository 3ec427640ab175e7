"""Two sends that are joined by pseudo_connect, as in the article. The real ChainerMN waits forever in its backward."""

import chainer
import chainer.functions as F
import chainer.links as L
import chainermn

from start import fill, numbers, report


class ExampleModel0(chainer.Chain):
    def __init__(self, comm):
        super().__init__()
        self.comm = comm
        self.add_link("f1", L.Linear(3, 5))
        self.add_link("f2", L.Linear(3, 4))

    def forward(self, x):
        z1, z2 = F.tanh(self.f1(x)), F.tanh(self.f2(x))
        phi1 = chainermn.functions.send(z1, self.comm, rank=1)
        phi2 = chainermn.functions.send(z2, self.comm, rank=1)
        psi, = chainermn.functions.pseudo_connect(phi1, phi2)
        return psi


class ExampleModel1(chainer.Chain):
    def __init__(self, comm):
        super().__init__()
        self.comm = comm
        self.add_link("g1", L.Linear(5, 2))
        self.add_link("g2", L.Linear(4, 2))

    def forward(self, _):
        z1 = chainermn.functions.recv(self.comm, rank=0)
        z2 = chainermn.functions.recv(self.comm, rank=0)
        return self.g1(z1) * self.g2(z2)


comm = chainermn.create_communicator("naive")
model = ExampleModel0(comm) if comm.rank == 0 else ExampleModel1(comm)
fill(model)
model.cleargrads()
y = model(numbers("x", 6, 3))
if comm.rank == 0:
    y.backward()
    report(comm, f1=model.f1.W.grad, f2=model.f2.W.grad)
else:
    loss = F.softmax_cross_entropy(y, numbers("t", 6).argsort() % 2)
    loss.backward()
    report(comm, loss=loss, g1=model.g1.W.grad, g2=model.g2.b.grad)
