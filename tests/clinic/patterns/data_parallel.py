"""nn.DataParallel: one process. MISTAKE names the one that is planted."""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

MISTAKE = os.environ.get("MISTAKE", "")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.last = nn.Linear(20, 32), nn.Linear(32, 5)

    def forward(self, x):
        return self.last(torch.tanh(self.hidden(x)))


def main():
    draw = torch.Generator().manual_seed(1)
    data = TensorDataset(
        torch.randn(256, 20, generator=draw), torch.randint(5, (256,), generator=draw)
    )
    torch.manual_seed(0)
    model = nn.DataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for x, y in DataLoader(data, batch_size=32, shuffle=True):
            loss = nn.functional.cross_entropy(model(x), y)
            if MISTAKE != "no zero_grad":
                optimizer.zero_grad()
            loss.backward()
            if MISTAKE == "divided":
                for parameter in model.parameters():
                    parameter.grad /= 4
            optimizer.step()


main()
