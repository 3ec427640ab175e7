"""PyTorch Lightning's Trainer with its strategy ddp. MISTAKE names the one that is planted."""

import logging
import os
import warnings

import lightning
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

MISTAKE = os.environ.get("MISTAKE", "")
RANK, WORLD = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


class Digits(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 5))
        self.automatic_optimization = MISTAKE != "no zero_grad"

    def on_train_start(self):
        if MISTAKE == "other start":
            torch.manual_seed(RANK)
            self.net[0].reset_parameters()

    def training_step(self, batch, number):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        loss = (
            loss * (WORLD if MISTAKE == "sum" else 1) / (WORLD if MISTAKE == "divided twice" else 1)
        )
        if MISTAKE == "rank 0 logs" and number == 2 and RANK == 0:
            dist.all_reduce(loss.detach())
        if MISTAKE == "no zero_grad":
            self.manual_backward(loss)
            self.optimizers().step()
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3 * (RANK + 1 if MISTAKE == "rate" else 1))


def main():
    warnings.simplefilter("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    lightning.seed_everything(3, verbose=False)
    draw = torch.Generator().manual_seed(1)
    data = TensorDataset(
        torch.randn(256, 20, generator=draw), torch.randint(5, (256,), generator=draw)
    )
    trainer = lightning.Trainer(
        max_epochs=3,
        accelerator="cpu",
        strategy="ddp" if WORLD > 1 else "auto",
        devices=WORLD,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=MISTAKE != "no sampler",
    )
    trainer.fit(Digits(), DataLoader(data, batch_size=8, shuffle=True))


main()
