"""Train an image classifier with Fabric: fabric run --accelerator=cuda --strategy=ddp --devices=2 train_fabric.py"""

import argparse
from os import path

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from lightning.fabric import Fabric, seed_everything
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import Accuracy

DATA_PATH, BACKBONE_PATH = "digits.pt", "backbone.ckpt"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 16, 3, 1)
        self.dropout1 = nn.Dropout(0.25)
        self.fc1 = nn.Linear(256, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = torch.flatten(self.dropout1(x), 1)
        return F.log_softmax(self.fc2(F.relu(self.fc1(x))), dim=1)


def make_files():
    """What others would download: images of digits, and a network that was trained before."""
    if not path.exists(DATA_PATH):
        draw = torch.Generator().manual_seed(7)
        labels = torch.randint(10, (1000,), generator=draw)
        images = torch.rand(1000, 1, 12, 12, generator=draw) + labels.view(-1, 1, 1, 1) / 10
        torch.save((images, labels), DATA_PATH)
        torch.save({"model": Net().state_dict()}, BACKBONE_PATH)


def run(hparams):
    # accelerator, strategy, devices come from the command line
    fabric = Fabric()
    seed_everything(hparams.seed)

    # rank 0 makes the files first, then the others load them
    with fabric.rank_zero_first(local=False):
        make_files()
        images, labels = torch.load(DATA_PATH)
    train_dataset, test_dataset = TensorDataset(images[:900], labels[:900]), TensorDataset(images[900:], labels[900:])
    train_loader = DataLoader(train_dataset, batch_size=hparams.batch_size, shuffle=True)
    test_loader = DataLoader(test_dataset, batch_size=hparams.batch_size)
    train_loader = fabric.setup_dataloaders(train_loader)
    test_loader = fabric.setup_dataloaders(test_loader)

    model = Net()
    optimizer = optim.Adadelta(model.parameters(), lr=hparams.lr)
    model, optimizer = fabric.setup(model, optimizer)
    fabric.load(BACKBONE_PATH, {"model": model})
    scheduler = StepLR(optimizer, step_size=2, gamma=hparams.gamma)
    test_acc = Accuracy(task="multiclass", num_classes=10).to(fabric.device)

    for epoch in range(1, hparams.epochs + 1):
        model.train()
        for batch_idx, (data, target) in enumerate(train_loader):
            is_accumulating = (batch_idx + 1) % hparams.accumulate != 0
            with fabric.no_backward_sync(model, enabled=is_accumulating):
                output = model(data)
                loss = F.nll_loss(output, target)
                fabric.backward(loss / hparams.accumulate)
            if is_accumulating:
                continue
            fabric.clip_gradients(model, optimizer, max_norm=5.0)
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
            step = (batch_idx + 1) // hparams.accumulate
            if step % hparams.log_interval == 0:
                mean = fabric.all_reduce(loss.detach(), reduce_op="mean")
                if fabric.is_global_zero:
                    print(f"Train Epoch: {epoch} [{batch_idx * len(data)}/{len(train_loader.dataset)}"
                          f" ({100.0 * batch_idx / len(train_loader):.0f}%)]\tLoss: {mean.item():.6f}")
            if hparams.dry_run:
                break

        model.eval()
        test_loss = 0
        with torch.no_grad():
            for data, target in test_loader:
                output = model(data)
                test_loss += F.nll_loss(output, target, reduction="sum").item()
                test_acc(output, target)
        test_loss = fabric.all_gather(test_loss).sum() / len(test_loader.dataset)
        fabric.print(f"Test set: Average loss: {test_loss:.4f}, Accuracy: ({100 * test_acc.compute():.0f}%)")
        test_acc.reset()
        if hparams.save_model:
            fabric.save(f"epoch-{epoch}.ckpt", {"model": model, "optimizer": optimizer, "epoch": epoch})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Fabric MNIST Example")
    parser.add_argument("--batch-size", type=int, default=8, metavar="N")
    parser.add_argument("--accumulate", type=int, default=2, metavar="N", help="batches of a step")
    parser.add_argument("--epochs", type=int, default=3, metavar="N")
    parser.add_argument("--lr", type=float, default=1.0, metavar="LR")
    parser.add_argument("--gamma", type=float, default=0.7, metavar="M", help="Learning rate step gamma")
    parser.add_argument("--dry-run", action="store_true", default=False, help="quickly check a single pass")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--log-interval", type=int, default=2, metavar="N")
    parser.add_argument("--save-model", action="store_true", default=False)
    run(parser.parse_args())
