"""A training that torchrun may start again, with as many ranks as there are. It goes on from the newest checkpoint
in FOLDER.

    export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1
    torchrun --standalone --nproc-per-node 2 --max-restarts 2 18_train.py FOLDER --dies-at 12
"""

import argparse
import hashlib
import os
import signal
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.functional import cross_entropy

from manyhands.elastic.job import endless, images

STEPS, BATCH, EVERY = 30, 32, 5


def save(state, folder, step):
    """Whole or not at all."""
    with open(folder / "part", "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(folder / "part", folder / f"step-{step:012}.pt")


def newest(folder):
    """The state of the newest checkpoint; None before the first one."""
    found = sorted(folder.glob("step-*.pt"))
    return torch.load(found[-1], weights_only=True) if found else None


@record
def main():
    options = argparse.ArgumentParser()
    options.add_argument("folder", type=Path)
    options.add_argument("--dies-at", type=int)
    asked = options.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    restarts = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    torch.manual_seed(0)
    first, last = nn.Linear(64, 24).double(), nn.Linear(24, 10).double()
    weights = [*first.parameters(), *last.parameters()]
    optimizer = torch.optim.SGD(weights, lr=0.2, momentum=0.9)
    state, step = newest(asked.folder), 0
    if state:
        first.load_state_dict(state["first"])
        last.load_state_dict(state["last"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["torch"])
        step = state["step"]
    if rank == 0:
        print(f"started on {world} ranks, at step {step}", flush=True)
    x, y = images()
    while step < STEPS:
        if asked.dies_at == step and restarts == 0 and rank == world - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        mine = slice(rank, None, world)
        rows = endless(step * BATCH, BATCH)[mine]
        keep = (torch.rand(BATCH, 24) > 0.2)[mine]  # each rank draws for the whole batch
        loss = cross_entropy(last(torch.tanh(first(x[rows])) * keep / 0.8), y[rows], reduction="sum") / BATCH
        optimizer.zero_grad()
        loss.backward()
        for weight in weights:
            dist.all_reduce(weight.grad)
        optimizer.step()
        step += 1
        if rank == 0 and step % EVERY == 0:
            save({"first": first.state_dict(), "last": last.state_dict(), "optimizer": optimizer.state_dict(),
                  "torch": torch.get_rng_state(), "step": step}, asked.folder, step)
        dist.barrier()
    if rank == 0:
        bits = hashlib.sha256(b"".join(weight.detach().numpy().tobytes() for weight in weights)).hexdigest()
        total = sum(weight.abs().sum().item() for weight in weights)
        print(f"done: sum of |weights| {total:.2f}, digest {bits[:12]}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
