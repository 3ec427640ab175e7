"""A small GPT in the manner of minGPT: DistributedDataParallel, gradient accumulation, clipping,
dropout. MISTAKE names the one that is planted.
"""

import contextlib
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

MISTAKE = os.environ.get("MISTAKE", "")
WIDTH, HEADS, CONTEXT, LETTERS = 32, 4, 16, 30


class Text(Dataset):
    def __init__(self):
        self.letters = torch.randint(LETTERS, (400,), generator=torch.Generator().manual_seed(5))

    def __len__(self):
        return 256

    def __getitem__(self, i):
        return self.letters[i : i + CONTEXT], self.letters[i + 1 : i + 1 + CONTEXT].clone()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(0.1)
        )

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (
            part.view(b, t, HEADS, -1).transpose(1, 2)
            for part in self.qkv(self.ln1(x)).split(WIDTH, 2)
        )
        y = (
            F.scaled_dot_product_attention(q, k, v, is_causal=True)
            .transpose(1, 2)
            .reshape(b, t, WIDTH)
        )
        x = x + self.out(y)
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(LETTERS, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.ln, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, LETTERS, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, idx, targets=None):
        x = self.wte(idx) + self.wpe.weight[: idx.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.ln(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, LETTERS), targets.reshape(-1), ignore_index=-1)
        return logits, loss


class Trainer:
    def __init__(self, accumulate=2):
        self.rank, self.world, self.accumulate = dist.get_rank(), dist.get_world_size(), accumulate
        torch.manual_seed(7)
        self.model = DistributedDataParallel(GPT())
        torch.manual_seed(7 + self.rank)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, betas=(0.9, 0.95))
        data = Text()
        sampler = None if MISTAKE == "no sampler" else DistributedSampler(data, shuffle=True)
        self.loader = DataLoader(data, batch_size=4, sampler=sampler, shuffle=sampler is None)

    def run(self, epochs=3):
        for epoch in range(epochs):
            if MISTAKE not in ("no sampler", "no set_epoch"):
                self.loader.sampler.set_epoch(epoch)
            for number, (idx, targets) in enumerate(self.loader):
                if MISTAKE == "padding" and self.rank == 0:
                    targets[:, 3:] = -1
                last = number % self.accumulate == self.accumulate - 1
                silent = not last or MISTAKE == "never in step"
                with self.model.no_sync() if silent else contextlib.nullcontext():
                    _, loss = self.model(idx, targets)
                    (
                        loss / self.accumulate / (self.world if MISTAKE == "divided twice" else 1)
                    ).backward()
                if not last:
                    continue
                if MISTAKE == "rank 0 saves" and self.rank == 0 and number == 3:
                    dist.barrier()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                if MISTAKE != "no zero_grad":
                    self.optimizer.zero_grad(set_to_none=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    Trainer().run()
    dist.destroy_process_group()
