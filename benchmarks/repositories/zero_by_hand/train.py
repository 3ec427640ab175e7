"""Trains a classifier with ZeRO: torchrun --nproc_per_node 2 train.py"""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.utils.data import TensorDataset

import engine as zero


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 6, 3), nn.Conv2d(6, 8, 3)
        self.pool = nn.MaxPool2d(2, 2)
        self.fc1, self.fc2 = nn.Linear(8 * 2 * 2, 32), nn.Linear(32, 10)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))


def images(n=512):
    generator = torch.Generator().manual_seed(3)
    return TensorDataset(torch.randn(n, 3, 14, 14, generator=generator), torch.randint(10, (n,), generator=generator))


def main(args):
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    config = {"train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 2, "gradient_clipping": 5.0,
              "local_rank": local_rank}
    model_engine, optimizer, trainloader = zero.initialize(
        Net(), lambda params: torch.optim.AdamW(params, lr=args.lr, weight_decay=0.01), images(), config)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        trainloader.sampler.set_epoch(epoch)
        running_loss = 0.0
        for i, (inputs, labels) in enumerate(trainloader):
            inputs = inputs.to(model_engine.device, non_blocking=True)
            labels = labels.to(model_engine.device, non_blocking=True)
            outputs = model_engine(inputs)
            loss = criterion(outputs, labels)
            model_engine.backward(loss)
            model_engine.step()
            running_loss += loss.item()
            if i % args.log_interval == args.log_interval - 1:
                loss = running_loss / args.log_interval
                print(f"rank {dist.get_rank()}: epoch {epoch}, batch {i + 1}, loss {loss:.3f}")
                running_loss = 0.0
        model_engine.save_checkpoint("checkpoints", f"epoch{epoch}")
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--log-interval", type=int, default=8)
    main(parser.parse_args())
