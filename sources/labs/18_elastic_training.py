# %% [markdown] unit={"minutes": 70, "ranks": 1, "framework": "torch", "title": "Elastic training and checkpoints"}
# # 18 Lab: a training run that is killed, and continues
#
# You write what a training run needs to survive. The checks are not gentle. They kill the run at a certain byte of a file, fill the disk, and take ranks away.
# At the end, you can
#
# * write a checkpoint that is either whole or absent, and find the newest whole one.
# * store everything that is state, so that a resumed run ends with the same bits.
# * distribute rows in an order that does not depend on the number of ranks.
# * read a sharded checkpoint with a different number of ranks than it was written with.
# * write the loop that rolls back when ranks are lost, but not when ranks join.
# * compute from measured costs how often a training run should save.
# * find what is wrong in a training run that resumes without an error.
#
# **Before:** the tutorial of this unit. **Minutes:** 70 · **Ranks:** none to start, because the checks and exercise 7 start their own processes · **Points:**
# 26.
#
# Every cell runs in this kernel, and each exercise is independent of the others. Below each check, you see what it prints when the answer is right. Every hint
# has two steps, so run `hint(...)` again for the second one.

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
# `save` writes the state after a step into `folder`, with a separate file for each step. `latest` returns the newest checkpoint that can be read, as a pair
# (step, state), or None if there is none. The newest checkpoint is the one with the highest step. A long training run takes a million steps or more. `state` is
# a dictionary that `torch.save` can write and `torch.load(..., weights_only=True)` can read. The check does the following:
#
# * It truncates the newest file, or several files, in part or completely.
# * It kills the process while it is writing, and when it is about to rename the file.
# * It fills the disk. In this case, `save` must raise the error, and all checkpoints that existed before must still exist.
# * It examines which files and folders your calls sync and rename, and in which order, because a rename does not wait for the disk. After a power cut, a file
#   that was not synced (`os.fsync`) may be empty, and a name in a folder that was not synced after the rename may be missing.
#
# *Difficulty ●●○, 14 minutes, 5 points*
#
# <details><summary>Hint</summary>
#
# To sync a folder, you can open it with `os.open(folder, os.O_RDONLY)`. For more help, run `hint("18-checkpoint")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="checkpoint"
def save(state: dict, folder: Path, step: int) -> None:
    """Write the state of this step into the folder, either whole or not at all."""
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
    """Return (step, state) of the newest whole checkpoint, or None if there is none."""
    ### BEGIN SOLUTION
    for path in sorted(folder.glob("step-*.pt"), reverse=True):
        try:
            return int(path.stem.split("-")[1]), torch.load(path, weights_only=True)
        except Exception:  # torn, for which torch.load has several errors
            continue
    return None
    ### END SOLUTION

# %% tags=["check"] grade_id="checkpoint-check" points=5
check.checkpoint(save, latest)

# %% [markdown]
# ## 2. Everything that is state
#
# `Job(seed)` is a small training job, and `job.train_step()` takes a step. `help(Job)` lists what a job remembers. Write `state_of`, which copies this state,
# and `restore`, which puts the copy into another job that has begun with a different seed.
#
# The copy may be kept in memory while training continues, and it may be restored twice, so no step may change it. In addition,
# `torch.load(..., weights_only=True)` must be able to read it. This function reads tensors, numbers, text, lists, tuples and dictionaries, and it runs no
# code.
#
# The check trains a job, takes your state, and kills the process at a hidden step. Another process then restores the state and continues, and **every bit**
# must be the same as if nothing had happened.
#
# *Difficulty ●●○, 12 minutes, 5 points*
#
# <details><summary>Hint</summary>
#
# The state has seven parts. For example, `np.random.Generator` keeps its state in `.bit_generator.state`. For more help, run `hint("18-state")` in a separate
# cell.
# </details>

# %% tags=["solution"] grade_id="state"
def state_of(job: Job) -> dict:
    """Return a copy of everything that the job remembers."""
    ### BEGIN SOLUTION
    return copy.deepcopy({
        "model": job.model.state_dict(), "optimizer": job.optimizer.state_dict(),
        "scheduler": job.scheduler.state_dict(), "seen": job.seen,
        "noise": job.noise.bit_generator.state, "torch": torch.get_rng_state(),
        "python": random.getstate()})
    ### END SOLUTION


def restore(job: Job, state: dict) -> None:
    """Put the state into the job without changing the state."""
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
# Think of one endless order of rows, in which the images of epoch 0 come in a random order, then the images of epoch 1 in a different random order, and so on.
# The order of an epoch depends only on `seed` and the number of the epoch. No two pairs (seed, epoch) share an order. For example, epoch 1 of seed 5 must not
# have the order of epoch 0 of seed 6.
#
# So far, `seen` rows of this order have been taken. A step takes the next `batch` rows, and `rank` of `world` gets its share of these rows. Because the number
# of ranks, and the batch size with it, may change at any step, a batch may extend across the border between two epochs. If a batch is larger than the data, it
# may contain rows of three epochs or more.
#
# Return the rows of this rank, as a list of numbers from 0 to `images - 1`. The shares of a batch differ in size by one row at most, even across the border of
# two epochs. Do not use or seed the global generators of Python, NumPy or torch, because the training run draws from them.
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# First build the whole batch, and then take the share of the rank. `np.random.default_rng([a, b])` accepts two numbers as its seed. For more help, run
# `hint("18-rows")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="rows"
def rows(seen: int, batch: int, rank: int, world: int, images: int, seed: int) -> list[int]:
    """Return this rank's share of the next `batch` rows, after `seen` have been taken."""
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
# ## 4. Read with a different number of ranks
#
# `numbers` values are stored as flat pieces, one on each of `old` ranks. Each piece has `ceil(numbers / old)` values, and zeros fill up the last pieces. Now
# `new` ranks need pieces of `ceil(numbers / new)` values without zeros at the end, so the last pieces may be shorter, or empty.
#
# Return what `rank` reads, as triples `(old rank, start, stop)` in the order of the values, where `start` and `stop` count from the start of that old rank's
# piece. A rank reads only values of its new piece. No read is empty, and one read is enough for each old rank. If a rank's new piece is empty, return an
# empty list.
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# The overlap of two intervals extends from the larger start to the smaller stop. For more help, run `hint("18-reshard")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="reshard"
def reads(numbers: int, old: int, new: int, rank: int) -> list[tuple[int, int, int]]:
    """Return what a new rank reads, as (old rank, start, stop) of the old ranks' pieces."""
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
# The job in this exercise loses ranks. `job.train_step()` may raise one of two exceptions:
#
# * `RankLost` is raised in the middle of a step. The memory then holds neither the old state nor the new one.
# * `RanksJoined` is raised before a step has begun, because new ranks are waiting. In this case, nothing is lost.
#
# After either exception, no step works until `job.regroup()` has formed a new group. Any other exception indicates a mistake in the program, so let it end the
# loop, because repeating the step would not help. `job.commit()` keeps a copy of the state in memory, and `job.rollback()` restores the last copy.
#
# `job.seen` counts the images that the training run has used. Train until `job.seen` is `until` or more. If this is already the case when the loop begins, take
# no step. Commit at the start, and then whenever `every` steps have been taken since the last commit (steps that were rolled back do not count). After the very
# last step, a commit is optional.
#
# *Difficulty ●●○, 10 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# You need two `except` branches, which differ by one call to the job. For more help, run `hint("18-rollback")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="rollback"
def train(job, until: int, every: int) -> None:
    """Train to the end, no matter which ranks are lost or join."""
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
# You have measured, in seconds, how long some steps and some saves took (one of the saves was slow, as happens in practice), and how long individual ranks
# lived. Use Young's rule (1974) to compute how many steps there should be between two checkpoints of a job on `ranks` ranks, where each failure stops all of
# them. Round the result to the nearest whole number, but return at least 1. Use means, and these two formulas:
#
# $$ \text{every} = \sqrt{2 \cdot \text{save} \cdot \text{mtbf}}, \qquad \text{lost} \approx \frac{\text{save}}{\text{every}} + \frac{\text{every}/2 +
# \text{restart}}{\text{mtbf}} $$
#
# In these formulas, mtbf is the mean time between failures of the whole job. The function `lost` returns the fraction of the time that is lost according to the
# second formula.
#
# *Difficulty ●○○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# A thousand ranks fail a thousand times as often as a single rank. For more help, run `hint("18-interval")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="interval"
def steps_between(step_s: list[float], save_s: list[float], lives_s: list[float],
                  ranks: int) -> int:
    """Return the number of steps between two checkpoints, by Young's rule."""
    ### BEGIN SOLUTION
    every_s = math.sqrt(2 * np.mean(save_s) * np.mean(lives_s) / ranks)
    return max(1, round(every_s / np.mean(step_s)))
    ### END SOLUTION


def lost(every_s: float, save_s: float, restart_s: float, mtbf_s: float) -> float:
    """Return the part of the time that is lost, to first order."""
    ### BEGIN SOLUTION
    return save_s / every_s + (every_s / 2 + restart_s) / mtbf_s
    ### END SOLUTION

# %% tags=["check"] grade_id="interval-check" points=3
check.interval(steps_between, lost)

# %% [markdown]
# ## 7. Find the bug
#
# The training run below is started again after each failure. It saves a checkpoint after every fifth step and raises no error. `batch(step)` returns the whole
# batch of a step, and each rank takes every `world`-th row of it.

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
# The first life ends after 12 steps, and the second one continues to step 20, both on two ranks. `in_ranks` calls a function on ranks that are processes of
# this machine. For comparison, another training run takes all 20 steps in one life. The cell prints which steps each life took, and the first three weights of
# each rank at the end.

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
# Write the correct training loop, and look at its evidence with `show(life)`. Leave the rest unchanged. Rank 0 alone writes into the folder, after every fifth
# step and at no other time, and each rank calls `batch` once for each step. (The safe way to write the file, from exercise 1, is left out here.) The check
# trains in three lives on three ranks, and stops each life at a different step.
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Which of the six lines printed above should be equal? For more help, run `hint("18-life")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="life"
def life(folder, until: int, batch) -> torch.nn.Module:
    """Train up to step `until`, starting from the newest checkpoint in the folder.

    Every rank returns the network, with the weights of a run that was never stopped.
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
# This part, which is not graded, applies your functions to a process that dies twice. `in_process` calls a function in a separate process, and `kill_me` ends
# that process as a power cut would.

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
# * Save in the background. To do so, copy the state, let a thread write it, and make sure that the next save waits for this thread. What do you do if the
#   thread fails?
# * Keep only the last three checkpoints. Should you delete the oldest one before the new one is written, or after its folder is synced?
# * PyTorch's [distributed checkpoint](https://docs.pytorch.org/docs/stable/distributed.checkpoint.html) solves exercise 4 for all tensors of a network.
# * In unit 19, a job has a thousand ranks, so the function `lost` becomes decisive.
