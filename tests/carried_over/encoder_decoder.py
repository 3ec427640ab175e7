"""A sequence-to-sequence model with the encoder on rank 0 and the decoder on rank 1. It learns to reverse a sequence of words."""

import torch
import torch.nn.functional as F
from torch import nn
from manyhands import links
from manyhands.comm import create_communicator
from torch import concatenate, flip

from start import fill, numbers, report

N_WORDS, N_UNITS, N_LAYERS, END = 6, 12, 2, 0


class Encoder(nn.Module):
    def __init__(self, comm):
        super().__init__()
        self.add_module("embed", nn.Embedding(N_WORDS, N_UNITS))
        self.add_module("rnn", links.create_multi_node_n_step_rnn(
            nn.LSTM(N_UNITS, N_UNITS, N_LAYERS), comm, rank_in=None, rank_out=1))

    def forward(self, xs, ys):
        exs = [self.embed(x) for x in xs]
        h, c, _, phi = self.rnn(exs)
        return phi


class Decoder(nn.Module):
    def __init__(self, comm):
        super().__init__()
        self.add_module("embed", nn.Embedding(N_WORDS, N_UNITS))
        self.add_module("rnn", links.create_multi_node_n_step_rnn(
            nn.LSTM(N_UNITS, N_UNITS, N_LAYERS), comm, rank_in=0, rank_out=None))
        self.add_module("out", nn.Linear(N_UNITS, N_WORDS))

    def forward(self, xs, ys):
        eys = [self.embed(y[:-1]) for y in ys]
        h, c, os, _ = self.rnn(eys)
        return sum(F.cross_entropy(self.out(o), y[1:]) for o, y in zip(os, ys)) / len(ys)


def words(i):
    """Sentence i: between 2 and 4 words."""
    return numbers("sentence %d" % i, 2 + i % 3).argsort() + 1


def backwards(x):
    """The end mark, the words from the last to the first, and the end mark."""
    return concatenate([x[:1] * 0, flip(x, (0,)), x[:1] * 0])


comm = create_communicator()
model = Encoder(comm) if comm.rank == 0 else Decoder(comm)
fill(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
xs = [words(i) for i in range(8)]
ys = [backwards(x) for x in xs]
losses = []
for step in range(12):
    model.zero_grad()
    loss = model(xs, ys)
    loss.backward()
    optimizer.step()
    losses.append(float(loss.detach()) if comm.rank == 1 else 0.0)
report(comm, losses=losses)
