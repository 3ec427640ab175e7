"""A sequence-to-sequence model with the encoder on rank 0 and the decoder on rank 1. It learns to reverse a sequence of words."""

import chainer
import chainer.functions as F
import chainer.links as L
import chainermn
from numpy import concatenate, flip

from start import fill, numbers, report

N_WORDS, N_UNITS, N_LAYERS, END = 6, 12, 2, 0


class Encoder(chainer.Chain):
    def __init__(self, comm):
        super().__init__()
        self.add_link("embed", L.EmbedID(N_WORDS, N_UNITS))
        self.add_link("rnn", chainermn.links.create_multi_node_n_step_rnn(
            L.NStepLSTM(N_LAYERS, N_UNITS, N_UNITS, 0), comm, rank_in=None, rank_out=1))

    def forward(self, xs, ys):
        exs = [self.embed(x) for x in xs]
        h, c, _, phi = self.rnn(exs)
        return phi


class Decoder(chainer.Chain):
    def __init__(self, comm):
        super().__init__()
        self.add_link("embed", L.EmbedID(N_WORDS, N_UNITS))
        self.add_link("rnn", chainermn.links.create_multi_node_n_step_rnn(
            L.NStepLSTM(N_LAYERS, N_UNITS, N_UNITS, 0), comm, rank_in=0, rank_out=None))
        self.add_link("out", L.Linear(N_UNITS, N_WORDS))

    def forward(self, xs, ys):
        eys = [self.embed(y[:-1]) for y in ys]
        h, c, os, _ = self.rnn(eys)
        return sum(F.softmax_cross_entropy(self.out(o), y[1:]) for o, y in zip(os, ys)) / len(ys)


def words(i):
    """Sentence i: between 2 and 4 words."""
    return numbers("sentence %d" % i, 2 + i % 3).argsort() + 1


def backwards(x):
    """The end mark, the words from the last to the first, and the end mark."""
    return concatenate([x[:1] * 0, flip(x, (0,)), x[:1] * 0])


comm = chainermn.create_communicator("naive")
model = Encoder(comm) if comm.rank == 0 else Decoder(comm)
fill(model)
optimizer = chainer.optimizers.SGD(lr=0.5).setup(model)
xs = [words(i) for i in range(8)]
ys = [backwards(x) for x in xs]
losses = []
for step in range(12):
    model.cleargrads()
    loss = model(xs, ys)
    loss.backward()
    optimizer.update()
    losses.append(float(loss.array) if comm.rank == 1 else 0.0)
report(comm, losses=losses)
