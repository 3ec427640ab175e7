"""Train two convolutions on one image whose rows lie on several ranks, and compare with one process. Any of these starts it:

    mpirun -n 4 python 13_halo.py
    torchrun --nproc-per-node 4 13_halo.py
"""

import torch
from torch import nn

from manyhands import comm, functions
from manyhands.data import shard

SIDE, STEPS, RATE = 22, 5, 0.05


def with_halo(x, c):
    """This rank's rows, with a row of each neighbour, or of zeros at the edge of the image."""
    top, bottom, nothing = x[:, :, :1], x[:, :, -1:], x[:, :, :0]
    came = functions.alltoall(c, [top if r == c.rank - 1 else bottom if r == c.rank + 1 else nothing for r in range(c.size)])
    above = came[c.rank - 1] if c.rank > 0 else torch.zeros_like(top)
    below = came[c.rank + 1] if c.rank < c.size - 1 else torch.zeros_like(top)
    return torch.cat([above, x, below], dim=2)


def train(c, rows, pad, total):
    """The weights after STEPS steps; `pad` adds a row above and below, `total` sums a gradient over the ranks."""
    torch.manual_seed(0)  # the same start and image on all ranks
    layers = nn.ModuleList([nn.Conv2d(3, 8, 3, padding=(0, 1)), nn.Conv2d(8, 1, 3, padding=(0, 1))]).double().to(c.device)
    image, target = (torch.randn(1, channels, SIDE, SIDE).double().to(c.device)[:, :, rows] for channels in (3, 1))
    optimiser = torch.optim.SGD(layers.parameters(), lr=RATE)
    for _ in range(STEPS):
        optimiser.zero_grad()
        output = layers[1](pad(torch.relu(layers[0](pad(image)))))
        ((output - target).square().sum() / SIDE**2).backward()  # a part of the mean over the whole image
        for parameter in layers.parameters():
            parameter.grad = total(parameter.grad)
        optimiser.step()
    return list(layers.parameters())


def main():
    with comm.create_communicator(timeout_s=60) as c:
        rows = shard(SIDE, c.rank, c.size)
        split = train(c, rows, lambda x: with_halo(x, c), c.allreduce)
        alone = train(c, slice(None), lambda x: nn.functional.pad(x, (0, 0, 1, 1)), lambda gradient: gradient)
        far = max((a - b).abs().max().item() for a, b in zip(split, alone))
        print(f"rank {c.rank} of {c.size} over {c.backend}: rows {rows.start} to {rows.stop - 1}, weights of one process, to 1e-12: {far < 1e-12}")


if __name__ == "__main__":
    main()
