"""A multi-layer perceptron on three ranks, built with MultiNodeChainList and trained for ten steps."""

import chainer
import chainer.functions as F
import chainer.links as L
import chainermn

from start import fill, numbers, report


class Layer(chainer.Chain):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.add_link("linear", L.Linear(n_in, n_out))

    def forward(self, x):
        return F.relu(self.linear(x))


class MLP0(chainermn.links.MultiNodeChainList):
    def __init__(self, comm):
        super().__init__(comm)
        self.add_link(Layer(5, 8), rank_in=None, rank_out=1)


class MLP1(chainermn.links.MultiNodeChainList):
    def __init__(self, comm):
        super().__init__(comm)
        self.add_link(Layer(8, 7), rank_in=0, rank_out=2)


class MLP2(chainermn.links.MultiNodeChainList):
    def __init__(self, comm):
        super().__init__(comm)
        self.add_link(L.Linear(7, 3), rank_in=1, rank_out=None)


comm = chainermn.create_communicator("naive")
model = [MLP0, MLP1, MLP2][comm.rank](comm)
fill(model)
optimizer = chainer.optimizers.SGD(lr=0.5).setup(model)
x, t = numbers("x", 12, 5), numbers("t", 12).argsort() % 3
losses = []
for step in range(10):
    model.cleargrads()
    if comm.rank == 2:
        loss = F.softmax_cross_entropy(model(x), t)
        loss.backward()
        losses.append(float(loss.array))
    else:
        model(x).backward()
    optimizer.update()
report(comm, losses=losses)
