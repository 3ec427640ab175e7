# %% [markdown] unit={"minutes": 70, "ranks": 1, "framework": "torch", "title": "Elastic training and checkpoints"}
# # 18 Lab: a training that is killed, and goes on
#
# You write what a training needs to survive. The checks are not gentle: they kill it at a byte of a file, fill the disk, and take its ranks away. At the end you can
#
# * write a checkpoint that is whole or not there, and find the newest whole one;
# * keep everything that is state, so that a training goes on to the same bits;
# * give out rows in an order that does not depend on the number of ranks;
# * read a sharded checkpoint with another number of ranks than wrote it;
# * write the loop that rolls back when ranks are lost, and not when they join;
# * say how often to save, from measured costs;
# * find what is wrong in a training run that resumes without an error.
#
# **Before:** the tutorial of this unit. **Minutes:** 70. **Ranks:** none to start, because the checks and exercise 7 start their own processes. **Points:** 26.
#
# Every cell runs in this kernel. Each exercise stands on its own. Below each check stands what it says when the answer is right. Every hint has two steps: run
# `hint(...)` again for the second.

# %% tags=["setup"]
import copy
import math
import os
import random
from pathlib import Path

import numpy as np
import torch

from manyhands import hint
from manyhands.checks import elastic_training as check
from manyhands.elastic.job import Job, RankLost, RanksJoined
from manyhands.elastic.mortal import in_ranks

torch.set_num_threads(1)

# %% [markdown]
# ## 1. A checkpoint that is whole or not there
#
# `save` writes a state into `folder`, for a step; each step has a file of its own. `latest` gives the newest checkpoint that can be read, which is that of the highest step,
# with its state, or None. A long training run takes a million steps or more. `state` is a dictionary that
# `torch.save` can write and `torch.load(..., weights_only=True)` can read. The check will
#
# * tear the newest file, or several: cut off the end, or all of it;
# * kill the process while it writes, and when it is about to rename;
# * fill the disk: then `save` raises the error, and all checkpoints that were there are still there;
# * look at the order of your calls and at what they are called for: a rename does not wait for the disk. After a power cut, a file that was not synced (`os.fsync`) may be empty,
#   and a name in a folder that was not synced after the rename may be missing.
#
# *Difficulty ●●○, 14 minutes, 5 points*
#
# <details><summary>Hint</summary>
#
# A folder can be opened to sync it: `os.open(folder, os.O_RDONLY)`. For more, run `hint("18-checkpoint")` in a cell of its own.
# </details>

# %% tags=["solution"] grade_id="checkpoint"
def save(state: dict, folder: Path, step: int) -> None:
    """Write the state of this step into the folder: whole, or not at all."""
    ### BEGIN SOLUTION
    part = folder / "part"
    with open(part, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, folder / f"step-{step:09}.pt")
    opened = os.open(folder, os.O_RDONLY)
    os.fsync(opened)
    os.close(opened)
    ### END SOLUTION


def latest(folder: Path) -> tuple[int, dict] | None:
    """(step, state) of the newest checkpoint that is whole; None if there is none."""
    ### BEGIN SOLUTION
    for path in sorted(folder.glob("step-*.pt"), reverse=True):
        try:
            return int(path.stem.split("-")[1]), torch.load(path, weights_only=True)
        except Exception:  # torn: torch.load has several errors for that
            continue
    return None
    ### END SOLUTION

# %% tags=["check"] grade_id="checkpoint-check" points=5
check.checkpoint(save, latest)

# %% [markdown]
# ## 2. Everything that is state
#
# `Job(seed)` is a small training; `job.train_step()` makes a step. Read `help(Job)`: it lists what a job remembers. Write `state_of`, which takes all of it, and `restore`, which puts it into
# another job, that has begun with another seed. The state is kept in memory too, while training goes on, and may be restored twice: no step may change it. And it must go through `torch.load(..., weights_only=True)`,
# which reads tensors, numbers, text, lists, tuples and dictionaries, and runs no code.
#
# The check trains, takes your state, and kills the process at a hidden step. Another process restores, and goes on: **every bit** must be as if nothing had happened.
#
# *Difficulty ●●○, 12 minutes, 5 points*
#
# <details><summary>Hint</summary>
#
# There are seven parts. `np.random.Generator` keeps its state in `.bit_generator.state`. For more, `hint("18-state")`.
# </details>

# %% tags=["solution"] grade_id="state"
def state_of(job: Job) -> dict:
    """All that the job remembers, as a copy."""
    ### BEGIN SOLUTION
    return copy.deepcopy({
        "model": job.model.state_dict(), "optimizer": job.optimizer.state_dict(),
        "scheduler": job.scheduler.state_dict(), "seen": job.seen,
        "noise": job.noise.bit_generator.state, "torch": torch.get_rng_state(),
        "python": random.getstate()})
    ### END SOLUTION


def restore(job: Job, state: dict) -> None:
    """Put the state into the job; the state stays what it is."""
    ### BEGIN SOLUTION
    state = copy.deepcopy(state)  # the optimizer keeps the tensors that it is given
    job.model.load_state_dict(state["model"])
    job.optimizer.load_state_dict(state["optimizer"])
    job.scheduler.load_state_dict(state["scheduler"])
    job.seen = state["seen"]
    job.noise.bit_generator.state = state["noise"]
    torch.set_rng_state(state["torch"])
    random.setstate(state["python"])
    ### END SOLUTION

# %% tags=["check"] grade_id="state-check" points=5
check.state(state_of, restore)

# %% [markdown]
# ## 3. Rows for any number of ranks
#
# Think of one endless order of rows: the images of epoch 0 in a random order, then those of epoch 1 in a different random order, and so on. The order of an epoch depends on `seed` and
# the epoch's number, and on nothing else. No two pairs of a seed and an epoch share an order, so that epoch 1 of seed 5 is not epoch 0 of seed 6. `seen` rows of this order have been
# taken. A step takes the next
# `batch` of them, and `rank` of `world` gets its share. The number of ranks may change at any step, and the batch with it, so a batch may lie across the border of two epochs. A batch
# that is larger than the data may contain rows of three epochs or more.
#
# Return the rows of this rank, as a list of numbers from 0 to `images - 1`. The shares of a batch differ by one row at most, even across the border of two epochs. The training draws from
# the global generators of Python, NumPy and torch, so leave them alone.
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# First the whole batch, then the share. `np.random.default_rng([a, b])` takes two numbers as its seed. For more, `hint("18-rows")`.
# </details>

# %% tags=["solution"] grade_id="rows"
def rows(seen: int, batch: int, rank: int, world: int, images: int, seed: int) -> list[int]:
    """This rank's share of the next `batch` rows, after `seen` have been taken."""
    ### BEGIN SOLUTION
    taken = []
    for place in range(seen, seen + batch):
        epoch, i = divmod(place, images)
        order = np.random.default_rng([seed, epoch]).permutation(images)
        taken.append(int(order[i]))
    return taken[rank::world]
    ### END SOLUTION

# %% tags=["check"] grade_id="rows-check" points=3
check.rows(rows)

# %% [markdown]
# ## 4. Other ranks read than wrote
#
# `numbers` values lie flat in the pieces of `old` ranks: each piece has `ceil(numbers / old)` of them, and zeros fill up the end of the last ones. Now `new` ranks want pieces of
# `ceil(numbers / new)`, without zeros behind; the last ones may be shorter, or empty. Say what `rank` reads: triples `(old rank, start, stop)`, counted from the start of that rank's piece,
# in the order of the values. Nobody reads what is not its own; no read is empty, and one is enough for each old rank. A rank that has no values reads nothing: an empty list.
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Two intervals overlap from the larger start to the smaller stop. For more, `hint("18-reshard")`.
# </details>

# %% tags=["solution"] grade_id="reshard"
def reads(numbers: int, old: int, new: int, rank: int) -> list[tuple[int, int, int]]:
    """What a new rank reads of the old ranks' pieces: (old rank, start, stop)."""
    ### BEGIN SOLUTION
    size, mine = math.ceil(numbers / old), math.ceil(numbers / new)
    first, last = rank * mine, min(numbers, (rank + 1) * mine)
    found = []
    for one in range(old):
        start, stop = max(first, one * size), min(last, (one + 1) * size)
        if start < stop:
            found.append((one, start - one * size, stop - one * size))
    return found
    ### END SOLUTION

# %% tags=["check"] grade_id="reshard-check" points=3
check.reshard(reads)

# %% [markdown]
# ## 5. Commit and rollback
#
# This job loses ranks. `job.train_step()` may raise
#
# * `RankLost`: in the midst of a step. What is in memory now is neither the old state nor the new one;
# * `RanksJoined`: new ranks wait, before a step has begun. Nothing is lost.
#
# After either of them no step works before `job.regroup()` has made a new group. Any other exception is a mistake in the program: let it end the loop, because repeating the step would
# not help. `job.commit()` keeps a copy of the state in memory, `job.rollback()` brings the last one back.
#
# `job.seen` counts the images that the training has taken. Train until it is `until` or more; if it is already, make no step. Commit at the start, and then whenever `every` steps have been made since the last commit (steps that were rolled back do not count). Behind the
# last step of all a commit may be made or not.
#
# *Difficulty ●●○, 10 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# Two `except` branches, which differ by one call. For more, `hint("18-rollback")`.
# </details>

# %% tags=["solution"] grade_id="rollback"
def train(job, until: int, every: int) -> None:
    """Train to the end, whatever ranks come and go."""
    ### BEGIN SOLUTION
    job.commit()
    since = 0
    while job.seen < until:
        try:
            job.train_step()
            since += 1
        except RankLost:
            job.rollback()
            job.regroup()
            since = 0
        except RanksJoined:
            job.regroup()
        if since == every:
            job.commit()
            since = 0
    ### END SOLUTION

# %% tags=["check"] grade_id="rollback-check" points=4
check.rollback(train)

# %% [markdown]
# ## 6. How often?
#
# You have measured: seconds of some steps and of some saves (one of them slow, as it happens), and how many seconds single ranks have lived. Say by Young's rule (1974) how many steps should lie between two
# checkpoints of a job on `ranks` ranks, where each failure stops all: the nearest whole number, and at least one. Use means, and
#
# $$ \text{every} = \sqrt{2 \cdot \text{save} \cdot \text{mtbf}}, \qquad \text{lost} \approx \frac{\text{save}}{\text{every}} + \frac{\text{every}/2 + \text{restart}}{\text{mtbf}} $$
#
# mtbf is the mean time between failures of the whole job. `lost` gives the part of the time that is lost, by the second formula.
#
# *Difficulty ●○○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# A thousand ranks fail a thousand times as often as one. For more, `hint("18-interval")`.
# </details>

# %% tags=["solution"] grade_id="interval"
def steps_between(step_s: list[float], save_s: list[float], lives_s: list[float],
                  ranks: int) -> int:
    """How many steps lie between two checkpoints, by Young's rule."""
    ### BEGIN SOLUTION
    every_s = math.sqrt(2 * np.mean(save_s) * np.mean(lives_s) / ranks)
    return max(1, round(every_s / np.mean(step_s)))
    ### END SOLUTION


def lost(every_s: float, save_s: float, restart_s: float, mtbf_s: float) -> float:
    """The part of the time that is lost, to first order."""
    ### BEGIN SOLUTION
    return save_s / every_s + (every_s / 2 + restart_s) / mtbf_s
    ### END SOLUTION

# %% tags=["check"] grade_id="interval-check" points=3
check.interval(steps_between, lost)

# %% [markdown]
# ## 7. Find the bug
#
# This training is started again after each failure. It saves a checkpoint after every fifth step, and it raises no error. `batch(step)` returns the whole batch of a step, and each rank takes
# every `world`-th row of it.

# %%
import tempfile

import torch.distributed as dist
from torch.nn.functional import cross_entropy


def faulty_life(folder, until, batch):
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    net = torch.nn.Linear(64, 10).double()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
    path, start = Path(folder, "newest.pt"), torch.tensor(0)
    if rank == 0 and path.exists():
        saved = torch.load(path, weights_only=True)
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
        start.fill_(saved["step"])
    for tensor in (start, *net.parameters()):  # as DDP does with the weights
        dist.broadcast(tensor.detach(), src=0)
    for step in range(int(start), until):
        x, y = batch(step)
        loss = cross_entropy(net(x[rank::world]), y[rank::world], reduction="sum") / len(y)
        optimizer.zero_grad()
        loss.backward()
        for weight in net.parameters():
            dist.all_reduce(weight.grad)
        optimizer.step()
        if rank == 0 and (step + 1) % 5 == 0:
            torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(),
                        "step": step}, path)
    return net

# %% [markdown]
# The first life ends after 12 steps, and the second one goes on to step 20, on two ranks each. `in_ranks` calls a function on ranks that are processes of this machine. For comparison, a third training
# makes all 20 steps in one life. The cell shows which steps the lives made and the first three weights of each rank at the end.

# %%
def evidence(life, folder, until):
    def batch(step):
        steps.append(step)
        draw = torch.Generator().manual_seed(step)
        return (torch.randn(24, 64, generator=draw, dtype=torch.float64),
                torch.randint(10, (24,), generator=draw))

    steps = []
    weights = life(folder, until, batch).weight.flatten()[:3].tolist()
    return f"steps {min(steps)} to {max(steps)}", [round(value, 4) for value in weights]


def show(life):
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        for name, folder, until in (("first life", one, 12), ("second life", one, 20),
                                    ("never stopped", other, 20)):
            for rank, ended in enumerate(in_ranks(evidence, life, folder, until, ranks=2)):
                print(f"{name:<13} rank {rank}:",
                      *(ended.value or [ended.error or ended.killed_by]))


show(faulty_life)

# %% [markdown]
# Write the training as it should be, and look at it with `show(life)`. Keep the rest as it is: rank 0 alone writes into the folder, after every fifth step and at no other time, and each rank calls `batch` once for each step. (A safe way to write
# the file was exercise 1 and is left out here.) The check trains in three lives on three ranks, and stops them in different places.
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Which of the six lines printed above should be equal? For more, run `hint("18-life")`.
# </details>

# %% tags=["solution"] grade_id="life"
def life(folder, until: int, batch) -> torch.nn.Module:
    """Train up to step `until`, going on from the newest checkpoint in the folder.

    Every rank returns the network, with the weights of a training that was never stopped.
    """
    ### BEGIN SOLUTION
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    net = torch.nn.Linear(64, 10).double()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
    path, start = Path(folder, "newest.pt"), 0
    if path.exists():
        saved = torch.load(path, weights_only=True)
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
        start = saved["steps"]
    
    for step in range(start, until):
        x, y = batch(step)
        loss = cross_entropy(net(x[rank::world]), y[rank::world], reduction="sum") / len(y)
        optimizer.zero_grad()
        loss.backward()
        for weight in net.parameters():
            dist.all_reduce(weight.grad)
        optimizer.step()
        if rank == 0 and (step + 1) % 5 == 0:
            torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(),
                        "steps": step + 1}, path)
    return net
    ### END SOLUTION

# %% tags=["check"] grade_id="life-check" points=3
check.life(life)

# %% [markdown]
# ## All together
#
# Not graded: your functions, and a process that dies twice. `in_process` calls a function in a separate process, and `kill_me` ends that process as a power cut would.

# %%
from manyhands.elastic.mortal import in_process, kill_me


def work(folder, steps, dies_at=None):
    job, found = Job(seed=0), latest(folder)
    if found:
        restore(job, found[1])
    for step in range(found[0] if found else 0, steps):
        if step == dies_at:
            kill_me()
        loss = job.train_step()
        if (step + 1) % 10 == 0:
            save(state_of(job), folder, step + 1)
    return f"from step {found[0] if found else 0}, the last loss is {loss:.4f}"


with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
    print(in_process(work, Path(one), 60).value)
    for dies_at in (27, 43, None):
        outcome = in_process(work, Path(other), 60, dies_at)
        print(outcome.value or f"killed by {outcome.killed_by}")

# %% [markdown]
# ## Where to go on
#
# * Save in the background: copy the state, let a thread write it, and mind that the next save waits for it. What do you do where the thread fails?
# * Keep the last three checkpoints only. When is the oldest one to be deleted: before the new one is written, or after its folder is synced?
# * PyTorch's [distributed checkpoint](https://docs.pytorch.org/docs/stable/distributed.checkpoint.html) does exercise 4 for all tensors of a network.
# * Unit 19: with a thousand ranks, `lost` decides.
