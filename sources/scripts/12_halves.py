"""Train an encoder on rank 0 and a decoder on rank 1, and compare with one process. Either of these starts it:

    mpirun -n 2 python 12_halves.py
    torchrun --nproc-per-node 2 12_halves.py
"""

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from manyhands import comm, functions

LENGTH, STEPS, RATE, END = 5, 10, 0.01, 10


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(10, 8), nn.LSTM(8, 32)

    def forward(self, sources):
        return self.rnn(self.embed(sources))[1]


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(11, 8), nn.LSTM(8, 32), nn.Linear(32, 10)

    def forward(self, state, targets):
        begun = torch.cat([torch.full_like(targets[:1], END), targets[:-1]])
        outputs, _ = self.rnn(self.embed(begun), state)
        return cross_entropy(self.head(outputs).flatten(0, 1), targets.flatten())


def train(c, module, step):
    """`step` does forward and backward of one batch of digit strings and their reversals, [digits, strings]."""
    optimiser, draw = torch.optim.Adam(module.parameters(), RATE), torch.Generator().manual_seed(0)
    for _ in range(STEPS):
        optimiser.zero_grad()
        sources = torch.randint(0, 10, (LENGTH, 64), generator=draw).to(c.device)
        step(sources, sources.flip(0))
        optimiser.step()


def main():
    with comm.create_communicator(timeout_s=60) as c:
        if c.size != 2:
            raise SystemExit("This is a program for two ranks.")
        halves, alone = [], []
        for parts in (halves, alone):
            torch.manual_seed(0)  # the same start on both ranks, and for both
            parts += [Encoder().double().to(c.device), Decoder().double().to(c.device)]

        if c.rank == 0:
            train(c, halves[0], lambda sources, targets: functions.send(halves[0](sources), c, rank=1).backward())
        else:
            train(c, halves[1], lambda sources, targets: halves[1](functions.recv(c, rank=0), targets).backward())
        train(c, nn.ModuleList(alone), lambda sources, targets: alone[1](alone[0](sources), targets).backward())
        far = max((a - b).abs().max().item() for a, b in zip(halves[c.rank].parameters(), alone[c.rank].parameters()))
        name = type(halves[c.rank]).__name__
        print(f"rank {c.rank} over {c.backend}: {name} after {STEPS} steps as in one process, to 1e-12: {far < 1e-12}")


if __name__ == "__main__":
    main()
