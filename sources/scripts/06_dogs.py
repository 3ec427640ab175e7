"""Train EfficientNet-B2 on Stanford Dogs, 260 x 260 pixels, with DistributedDataParallel: one process for each GPU.

    torchrun --nproc-per-node 4 06_dogs.py DOGS RUN --epochs 30

DOGS holds Images/<breed>/*.jpg and, if you have them, train_list.mat and test_list.mat. RUN gets the checkpoint: type the same line again, and the training
goes on at the step where the checkpoint was written, with the same number of ranks, as if it had not stopped. The network is Keras's, on PyTorch: an nn.Module.
"""

import argparse
import os
import sys
import time
from pathlib import Path

os.environ["KERAS_BACKEND"] = "torch"  # before Keras is imported
import keras  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from PIL import Image  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Subset  # noqa: E402

from manyhands.data import dog_photos  # noqa: E402

SIZE = 260


class Photos(Dataset):
    """Squares of SIZE pixels. In training cut at random and perhaps mirrored: by epoch and image, so that a training that goes on sees the same ones."""

    def __init__(self, root, split):
        self.paths, self.labels, self.breeds = dog_photos(root, split)
        self.training, self.epoch = split == "train", 0

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        drawn = np.random.default_rng([self.epoch, index]).random(3) if self.training else np.array([0.5, 0.5, 0])
        with Image.open(self.paths[index]) as image:
            edge = min(image.size)
            left, top = (int(part * (length - edge)) for part, length in zip(drawn, image.size))
            square = image.convert("RGB").resize((SIZE, SIZE), Image.Resampling.BICUBIC, (left, top, left + edge, top + edge))
        pixels = np.array(square)  # height, width, channel; 0 to 255: the network itself scales them
        return torch.from_numpy(pixels[:, ::-1].copy() if drawn[2] > 0.5 else pixels), self.labels[index]


def network(breeds, weights):
    base = keras.applications.EfficientNetB2(weights=weights, include_top=False, pooling="avg", input_shape=(SIZE, SIZE, 3))
    dropout = keras.layers.Dropout(0.5, seed=0)  # with a seed its state is part of the model, and of the checkpoint
    model = keras.Sequential([base, dropout, keras.layers.Dense(breeds)])
    model.build((None, SIZE, SIZE, 3))
    return model


def own_dropout(model, rank):
    """DDP has copied rank 0's seeds to all ranks, too: give each its own again."""
    for name, value in model.named_parameters():
        if name.endswith("seed_generator_state"):
            value.data[0] += rank


@torch.no_grad()
def accuracy(model, photos, options, device):
    """Of all test images, each looked at by one rank, with rank 0's averages for the batch normalisation."""
    for name, value in model.named_parameters():
        if "moving_" in name:
            dist.broadcast(value.data, 0)
    right = torch.zeros((), device=device)
    mine = Subset(photos, range(dist.get_rank(), len(photos), dist.get_world_size()))
    for images, labels in DataLoader(mine, options.share, num_workers=options.workers):
        right += (model(images.to(device), training=False).argmax(1) == labels.to(device)).sum()
    dist.all_reduce(right)
    return right.item() / len(photos)


def save(path, **state):
    """Whole or not at all: written beside, then renamed."""
    torch.save(state, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


def train(options, device):
    rank, path = dist.get_rank(), Path(options.run, "checkpoint.pt")
    photos, test = Photos(options.dogs, "train"), Photos(options.dogs, "test")
    keras.utils.set_random_seed(0)
    model = network(photos.breeds, options.weights).to(device)
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=options.rate)
    begin = {"epoch": 0, "step": 0}
    if path.exists():
        begin = torch.load(path, map_location=device)
        model.load_state_dict(begin["model"])
        optimiser.load_state_dict(begin["optimiser"])
    ddp = DistributedDataParallel(model, device_ids=[device.index] if device.type == "cuda" else None)
    own_dropout(model, rank)
    sampler, budget = DistributedSampler(photos), options.steps
    for epoch in range(begin["epoch"], options.epochs):
        sampler.set_epoch(epoch)
        photos.epoch = epoch
        done = begin["step"] if epoch == begin["epoch"] else 0
        rest = Subset(photos, list(sampler)[done * options.share:])
        loader = DataLoader(rest, options.share, num_workers=options.workers, pin_memory=device.type == "cuda")
        bar, since = keras.utils.Progbar(done + len(loader), verbose=int(rank == 0 and sys.stdout.isatty())), time.monotonic()
        for step, (images, labels) in enumerate(loader, done + 1):
            optimiser.zero_grad()
            with torch.autocast("cuda", torch.bfloat16, enabled=device.type == "cuda"):
                loss = nn.functional.cross_entropy(ddp(images.to(device), training=True), labels.to(device))
            loss.backward()
            optimiser.step()
            budget -= 1
            last = step == done + len(loader)
            if step % 10 == 0 or last:
                bar.update(step, [("loss", loss.item())])
            if rank == 0 and (step % options.save_every == 0 or last or not budget):
                at = {"epoch": epoch + 1, "step": 0} if last else {"epoch": epoch, "step": step}
                save(path, model=model.state_dict(), optimiser=optimiser.state_dict(), **at)
            if not budget:
                break
        loss, speed = loss.item(), len(rest) * dist.get_world_size() / (time.monotonic() - since)
        if not budget:
            return f"stopped after epoch {epoch + 1}, step {step}", model
        right = accuracy(model, test, options, device)
        if rank == 0:
            print(f"epoch {epoch + 1}: loss {loss:.4f}, accuracy {right:.3f}, {speed:.1f} images a second", flush=True)
    return "done", model


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dogs")
    parser.add_argument("run")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch", type=int, default=64, help="images a step, all ranks together")
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--workers", type=int, default=2, help="processes that read images, for each rank")
    parser.add_argument("--weights", help="a file with weights of Keras's EfficientNetB2 without its top; else they are drawn")
    parser.add_argument("--save-every", type=int, default=100, metavar="STEPS")
    parser.add_argument("--steps", type=int, default=-1, help="stop after so many steps, as a job does whose time is up")
    options = parser.parse_args()
    local, gpus = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    device = torch.device("cuda", local) if gpus else torch.device("cpu")
    if gpus:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if gpus else "gloo", device_id=device if gpus else None)
    options.share = options.batch // dist.get_world_size()
    Path(options.run).mkdir(parents=True, exist_ok=True)
    end, model = train(options, device)
    if dist.get_rank() == 0:
        print(f"{end}; sum of |weights| {sum(p.detach().abs().double().sum().item() for p in model.parameters() if p.requires_grad):.9f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
