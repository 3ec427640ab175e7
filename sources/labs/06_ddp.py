# %% [markdown] unit={"minutes": 85, "ranks": 4, "framework": "torch", "title": "DistributedDataParallel"}
# # 06 Lab: DistributedDataParallel from hooks
#
# You write DistributedDataParallel yourself, in six small pieces, and it reaches the weights that a single process computes. Then you repair two loops that run and are wrong,
# and hand a training run to Slurm. At the end you can
#
# * start all ranks of a group from one state, parameters and buffers;
# * cut gradients into buckets, and send each bucket as one asynchronous all-reduce while backward is still running;
# * keep ranks that used different parameters from waiting for each other;
# * accumulate gradients without communication;
# * deal out uneven data so that every rank takes the same number of steps;
# * find what is wrong in a training that runs, from its messages, its rows and its weights;
# * complete a batch file that starts a training on several nodes.
#
# **Before:** the tutorial of this unit, or as much PyTorch as is in it. **Minutes:** 85. **Ranks:** 4, on 2 nodes. **Points:** 19.
#
# Cells that begin with `%%px` run on all four ranks; the others run in this kernel. A mistake may make the ranks wait for each other: the
# cluster notices, says who waits for whom, and heals itself; cells marked `--setup` are run again by it. Below each check stands what it says when the
# answer is right.

# %% tags=["setup"]
from manyhands import Cluster, hint
from manyhands.checks import ddp as check

cluster = Cluster(nodes=2, ranks_per_node=2, framework="torch")

# %% tags=["setup"]
# %%px --setup
import math
import os
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import nn

if not dist.is_initialized():  # so that this cell can be run twice
    dist.init_process_group(os.environ["MANYHANDS_BACKEND"])
device = torch.device(os.environ["MANYHANDS_DEVICE"])
rank, world_size = dist.get_rank(), dist.get_world_size()

# %% [markdown]
# ## 1. One state for all
#
# Every rank builds its model with its own random numbers. Make them one: all take over the state of the group's first rank.
#
# The checks use groups of 4, 3 and 2 ranks. In the group of ranks 1 and 3 the first one is rank 1.
#
# *Difficulty ●○○, 5 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# A model's state is more than what is trained, and more than what is saved. Which method gives you a batch norm's running mean? For more, run
# `hint("06-broadcast")` in a cell of its own; run it again for the next step.
# </details>

# %% tags=["solution"] grade_id="broadcast"
# %%px --setup
def broadcast_state(model: nn.Module, group: dist.ProcessGroup | None = None) -> None:
    """Give every rank of `group` the parameters and buffers of the group's first rank, in
    place.

    Frozen parameters too. All ranks of the group call it; `group=None` is the world.
    """
    ### BEGIN SOLUTION
    for tensor in [*model.parameters(), *model.buffers()]:
        dist.broadcast(tensor.detach(), group=group, group_src=0)
    ### END SOLUTION

# %% tags=["check"] grade_id="broadcast-check" points=2
check.broadcast(cluster, "broadcast_state")

# %% [markdown]
# ## 2. Buckets
#
# A message costs time before its first byte moves, so many small ones are slow; one large one can only leave when backward has ended.
# In between: buckets of a few megabytes. Backward reaches the last layer first, so the first bucket holds the last parameters.
#
# *Difficulty ●○○, 7 minutes, 1 point*
#
# <details><summary>Hint</summary>
#
# When do you open a new bucket: when the one before is full, or when there is something to put in? For more, `hint("06-buckets")`.
# </details>

# %% tags=["solution"] grade_id="buckets"
# %%px --setup
def make_buckets(parameters, bucket_bytes: int) -> list[list[nn.Parameter]]:
    """Cut the parameters that require a gradient into buckets, from the last parameter to
    the first.

    A bucket takes parameters until it holds `bucket_bytes` or more; then the next one
    begins. No bucket is empty.
    """
    ### BEGIN SOLUTION
    buckets, held = [], 0
    for parameter in reversed(list(parameters)):
        if not parameter.requires_grad:
            continue
        if not buckets or held >= bucket_bytes:
            buckets.append([])
            held = 0
        buckets[-1].append(parameter)
        held += parameter.numel() * parameter.element_size()
    return buckets
    ### END SOLUTION

# %% tags=["check"] grade_id="buckets-check" points=1
check.buckets(cluster, "make_buckets")

# %% [markdown]
# ## 3. Launch and land
#
# `launch` packs the gradients of a bucket into one flat tensor and starts its all-reduce, without waiting. `land` waits for it, divides,
# and gives each parameter its piece. What `launch` returns is yours to choose: `land` gets it back.
#
# A parameter without a gradient on this rank (`grad is None`) counts as zeros. After `land`, all have the mean.
#
# *Difficulty ●●○, 10 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# `dist.all_reduce(..., async_op=True)` returns at once with a *work*; the tensor must not be read before `work.wait()`.
# For more, `hint("06-flight")`.
# </details>

# %% tags=["solution"] grade_id="flight"
# %%px --setup
def launch(bucket: list[nn.Parameter], group: dist.ProcessGroup | None = None):
    """Start one asynchronous all-reduce of all gradients of the bucket; return what `land`
    needs. Does not wait."""
    ### BEGIN SOLUTION
    flat = torch.cat([(p.new_zeros(p.shape) if p.grad is None else p.grad).flatten()
                      for p in bucket]).detach()
    return flat, dist.all_reduce(flat, group=group, async_op=True)
    ### END SOLUTION


def land(bucket: list[nn.Parameter], launched,
         group: dist.ProcessGroup | None = None) -> None:
    """Wait for what `launch` returned, and write the mean over the group into the gradients
    of the bucket."""
    ### BEGIN SOLUTION
    flat, work = launched
    work.wait()
    flat /= dist.get_world_size(group)
    for p, piece in zip(bucket, flat.split([p.numel() for p in bucket])):
        p.grad = piece.view_as(p)
    ### END SOLUTION

# %% tags=["check"] grade_id="flight-check" points=2
check.flight(cluster, "launch", "land")

# %% [markdown]
# ## 4. Hooks
#
# The frame is given: it broadcasts, cuts the buckets, and asks autograd to call `gradient_ready(ddp, parameter)` as soon as the gradient of
# a parameter is there. Read what it remembers.

# %%
# %%px --setup
class HandDDP(nn.Module):
    def __init__(self, module, bucket_bytes, group=None):
        super().__init__()
        self.module, self.group = module, group
        self.sync = True      # False inside no_sync
        self.ready = set()    # parameters whose gradient is there
        self.flying = []      # what `launch` returned for bucket 0, 1, ... in this step
        broadcast_state(module, group)
        self.buckets = make_buckets(module.parameters(), bucket_bytes)
        for parameter in [p for bucket in self.buckets for p in bucket]:
            parameter.register_post_accumulate_grad_hook(lambda p: gradient_ready(self, p))

    def forward(self, *inputs):
        return self.module(*inputs)

# %% [markdown]
# You write what happens at a gradient, and what is left to do between backward and the optimiser's step.
#
# All ranks must send their buckets in the same order. Say that bucket 0 holds the last layer. A rank that did not use that layer gets the others
# ready first:
#
# ```
#            gradients ready, in time ->     may leave
# rank 0:    bucket 0   bucket 1   bucket 2    0, then 1, then 2
# rank 1:    bucket 1   bucket 2   (end)       nothing; finish sends 0, 1, 2
# rank 2:    bucket 1   bucket 2   bucket 0    nothing, nothing, then 0, 1, 2 at once
# ```
#
# So bucket 1 never leaves before bucket 0, and whatever has not left when backward ends, `finish` sends.
#
# *Difficulty ●●●, 15 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# `len(ddp.flying)` is the number of the bucket that leaves next. One gradient can release more than one bucket. For more, `hint("06-hooks")`.
# </details>

# %% tags=["solution"] grade_id="hooks"
# %%px --setup
def gradient_ready(ddp: HandDDP, parameter: nn.Parameter) -> None:
    """Backward calls this when `parameter.grad` is there: launch the next bucket(s) in line
    that are now complete.

    Does nothing while `ddp.sync` is False.
    """
    ### BEGIN SOLUTION
    if not ddp.sync:
        return
    ddp.ready.add(parameter)
    while len(ddp.flying) < len(ddp.buckets) and ddp.ready.issuperset(
        ddp.buckets[len(ddp.flying)]):
        ddp.flying.append(launch(ddp.buckets[len(ddp.flying)], ddp.group))
    ### END SOLUTION


def finish(ddp: HandDDP) -> None:
    """Between backward and step: launch the buckets that are left, land all, and be ready
    for the next backward.

    Does nothing while `ddp.sync` is False.
    """
    ### BEGIN SOLUTION
    if not ddp.sync:
        return
    for bucket in ddp.buckets[len(ddp.flying):]:
        ddp.flying.append(launch(bucket, ddp.group))
    for bucket, launched in zip(ddp.buckets, ddp.flying):
        land(bucket, launched, ddp.group)
    ddp.ready.clear()
    ddp.flying.clear()
    ### END SOLUTION

# %% tags=["check"] grade_id="hooks-check" points=3
check.hooks(cluster, "HandDDP", "finish")

# %% [markdown]
# ## 5. no_sync
#
# A batch that does not fit into memory is cut into micro-batches, and their gradients add up in `grad`. Only the last one needs to talk.
#
# *Difficulty ●○○, 5 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# What must be true after the block, also if the block ends with an exception, and also if it was inside another such block? For more,
# `hint("06-no-sync")`.
# </details>

# %% tags=["solution"] grade_id="no-sync"
# %%px --setup
@contextmanager
def no_sync(ddp: HandDDP):
    """Backward passes inside the block add to the gradients of this rank, and send nothing.

    After the block, also after an exception in it, `ddp.sync` is what it was before: blocks
    may be nested.
    """
    ### BEGIN SOLUTION
    before, ddp.sync = ddp.sync, False
    try:
        yield
    finally:
        ddp.sync = before
    ### END SOLUTION

# %% tags=["check"] grade_id="no-sync-check" points=2
check.no_sync(cluster, "HandDDP", "finish", "no_sync")

# %% [markdown]
# ## 6. A distributed sampler
#
# Ten samples for four ranks: someone would have three and someone two, and the one with three would wait for ever in its third step. So the
# list of samples is repeated from its beginning until its length can be divided, and then dealt out like cards: rank `r` takes places `r`,
# `r + world_size`, and so on.
#
# Each epoch has its own order, drawn with `torch.randperm` from a `torch.Generator` of its own, seeded with `seed + epoch`: so all ranks draw
# the same one without a word.
#
# *Difficulty ●●○, 8 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# How long must the list be for four ranks? What if there are three samples and eight ranks: is one repetition enough? For more,
# `hint("06-sampler")`.
# </details>

# %% tags=["solution"] grade_id="sampler"
# %%px --setup
class PaddedSampler(torch.utils.data.Sampler):
    """The indices of this rank's samples: `n` samples in all, shuffled anew in every
    epoch."""

    def __init__(self, n: int, rank: int, world_size: int, seed: int = 0):
        self.n, self.rank, self.world_size, self.seed, self.epoch = (n, rank, world_size,
                                                                     seed, 0)

    def set_epoch(self, epoch: int) -> None:
        """Call it before every epoch, on every rank."""
        self.epoch = epoch

    def __len__(self) -> int:
        """How many samples this rank gets: the same on all ranks."""
        ### BEGIN SOLUTION
        return math.ceil(self.n / self.world_size)
        ### END SOLUTION

    def __iter__(self):
        """This rank's indices in this epoch."""
        ### BEGIN SOLUTION
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(self.n, generator=generator).tolist()
        total = len(self) * self.world_size
        order = (order * math.ceil(total / self.n))[:total]
        return iter(order[self.rank::self.world_size])
        ### END SOLUTION

# %% tags=["check"] grade_id="sampler-check" points=2
check.sampler(cluster, "PaddedSampler")

# %% [markdown]
# ## 7. Find the bug
#
# Somebody wrote this loop for DDP on two nodes. It runs, its loss falls, no error is raised. Each step of a rank takes 8 rows. Three things in it
# are wrong. Do not read it too long; look at what it did, in the cell below it.

# %%
# %%px --setup
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler

def faulty_training(ddp, x, y, epochs):
    """Train with plain SGD; returns the rows of each step."""
    sampler = DistributedSampler(range(len(x)), world_size, int(os.environ["LOCAL_RANK"]))
    optimiser = torch.optim.SGD(ddp.parameters(), lr=0.5)
    steps = []
    for epoch in range(epochs):
        for rows in torch.tensor(list(sampler)).split(8):
            nn.functional.cross_entropy(ddp.module(x[rows]), y[rows]).backward()
            optimiser.step()
            optimiser.zero_grad()
            steps.append(rows)
    return steps

# %% [markdown]
# The evidence: what was sent, which rows each step took, how far this rank's weights are from rank 0's. With 64 rows and 2 epochs there are 4 steps.
# What should each line say?

# %%
# %%px --setup
from manyhands.data import digits
from manyhands.ledger import Ledger

def network(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10)).to(device)

def evidence(train):
    ddp = DistributedDataParallel(network(seed=rank))
    x, y = (torch.from_numpy(array[:64]).to(device) for array in digits())
    with Ledger() as ledger:
        steps = train(ddp, x, y, epochs=2)
    mine = torch.nn.utils.parameters_to_vector(ddp.parameters()).detach()
    first = mine.clone()
    dist.broadcast(first, src=0)
    print(f"{ledger.count('allreduce')} all-reduces in {len(steps)} steps, "
          f"{(mine - first).norm().item():.3f} from rank 0; rows",
          "  ".join(str(rows[:4].tolist()) for rows in steps))

# %%
# %%px
evidence(faulty_training)

# %% [markdown]
# Write the loop as it should be, then run `evidence(training)`.
#
# *Difficulty ●●○, 10 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# Compare the line of one rank with the line of another one, and then the first two steps of a rank with its last two. For more, run
# `hint("06-bug")`.
# </details>

# %% tags=["solution"] grade_id="bug"
# %%px --setup
def training(ddp: DistributedDataParallel, x: torch.Tensor, y: torch.Tensor,
             epochs: int) -> list[torch.Tensor]:
    """`faulty_training`, mended: all ranks end with the weights of one process. Returns the
    rows of each step."""
    ### BEGIN SOLUTION
    sampler = DistributedSampler(range(len(x)), world_size, rank)
    optimiser = torch.optim.SGD(ddp.parameters(), lr=0.5)
    steps = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for rows in torch.tensor(list(sampler)).split(8):
            nn.functional.cross_entropy(ddp(x[rows]), y[rows]).backward()
            optimiser.step()
            optimiser.zero_grad()
            steps.append(rows)
    return steps
    ### END SOLUTION

# %% tags=["check"] grade_id="bug-check" points=2
check.bug(cluster, "training")

# %% [markdown]
# ## 8. Find the bugs of a fine-tuning
#
# This loop fine-tunes a network in two stages. In epoch 0 it trains only the head, and from epoch 1 on it trains all layers. Many rows have no label: their
# `y` is -100, which `cross_entropy` skips, as in language models. The rate is halved after an epoch whose loss has hardly fallen. A rank accumulates the
# gradients of several micro-batches before each step. The loop runs to its end without an error, but its result depends on the number of ranks.

# %%
# %%px --setup
from contextlib import nullcontext

def faulty_fine_tuning(model, batches, epochs):
    """`batches` holds this rank's steps, and each step its micro-batches (x, y). Returns
    the rate after each epoch."""
    model[0].requires_grad_(False)
    ddp = DistributedDataParallel(model)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, factor=0.5,
                                                           patience=0, threshold=0.1)
    rates = []
    for epoch in range(epochs):
        if epoch == 1:
            model[0].requires_grad_(True)
        loss_of_epoch = 0
        for micro_batches in batches:
            for i, (x, y) in enumerate(micro_batches):
                last = i == len(micro_batches) - 1
                with nullcontext() if last else ddp.no_sync():
                    loss = nn.functional.cross_entropy(ddp(x), y) / len(micro_batches)
                    loss.backward()
                loss_of_epoch += loss.item()
            optimiser.step()
            optimiser.zero_grad()
        scheduler.step(loss_of_epoch)
        rates.append(optimiser.param_groups[0]["lr"])
    return rates

# %% [markdown]
# For the evidence, every rank takes two steps of three micro-batches with 2, 5 and 8 labels. On rank 3, the digits have been labelled at random.

# %%
# %%px --setup
def batches_of(rank):
    x, y = (torch.from_numpy(array[48 * rank:48 * rank + 48]).to(device)
            for array in digits())
    y = torch.randint(0, 10, (48,)).to(device) if rank == 3 else y.clone()
    for number, labels in enumerate((2, 5, 8, 8, 2, 5)):
        y[8 * number + labels:8 * number + 8] = -100
    micro_batches = list(zip(x.split(8), y.split(8)))
    return [micro_batches[:3], micro_batches[3:]]

def evidence_of(fine_tuning):
    model = network(seed=rank)
    rates = fine_tuning(model, batches_of(rank), epochs=6)
    for name, layer in (("first layer", model[0]), ("head", model[2])):
        first = layer.weight.detach().clone()
        dist.broadcast(first, src=0)
        print(f"{name} {(layer.weight - first).norm().item():.3f} from rank 0",
              end="; ")
    print("rates", rates)

# %%
# %%px
evidence_of(faulty_fine_tuning)

# %% [markdown]
# Three things are wrong. The evidence shows two of them. The third one remains when all ranks agree with each other: one process that takes the labels of all
# ranks in each step, without micro-batches, still ends with different weights. Copy `faulty_fine_tuning` into the cell below and repair it. Then run `evidence_of(fine_tuning)` in a cell that begins with `%%px`. The one process gives its scheduler the mean loss of all labels of the epoch.
#
# *Difficulty ●●●, 15 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Which numbers of the evidence differ between the ranks, and from which epoch on can they differ? For more, run `hint("06-fine-tuning")`.
# </details>

# %% tags=["solution"] grade_id="fine-tuning"
# %%px --setup
def fine_tuning(model: nn.Sequential, batches: list, epochs: int) -> list[float]:
    """`faulty_fine_tuning`, repaired: all ranks end with the weights that one process
    computes from the labels of all of them. Trains `model` in place and returns the rate
    after each epoch."""
    ### BEGIN SOLUTION
    def sum_of_all(number):
        total = torch.tensor(float(number), dtype=torch.float64, device=device)
        dist.all_reduce(total)
        return total.item()

    model[0].requires_grad_(False)
    ddp = DistributedDataParallel(model)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, factor=0.5,
                                                           patience=0, threshold=0.1)
    rates = []
    for epoch in range(epochs):
        if epoch == 1:
            model[0].requires_grad_(True)
            ddp = DistributedDataParallel(model)  # its hooks: on all layers now
        loss_of_epoch = labels_of_epoch = 0
        for micro_batches in batches:
            labels = sum_of_all(sum((y != -100).sum().item() for _, y in micro_batches))
            for i, (x, y) in enumerate(micro_batches):
                last = i == len(micro_batches) - 1
                with nullcontext() if last else ddp.no_sync():
                    loss = nn.functional.cross_entropy(ddp(x), y, reduction="sum")
                    (loss * world_size / labels).backward()
                loss_of_epoch += loss.item()
            labels_of_epoch += labels
            optimiser.step()
            optimiser.zero_grad()
        scheduler.step(sum_of_all(loss_of_epoch) / labels_of_epoch)
        rates.append(optimiser.param_groups[0]["lr"])
    return rates
    ### END SOLUTION

# %% tags=["check"] grade_id="fine-tuning-check" points=3
check.fine_tuning(cluster, "fine_tuning")

# %% [markdown]
# ## 9. A batch file
#
# On a real cluster no notebook holds the ranks. [06_train.py](06_train.py), beside this lab, is a training with PyTorch's DDP that saves and resumes;
# `torchrun` starts it, here on two emulated nodes with one rank each.

# %%
run = cluster.launch("06_train.py", with_="torchrun", ranks_per_node=1)

# %% [markdown]
# On Slurm, `sbatch FILE` waits for nodes and then runs the file **on the first of them**; `srun` starts a command on all, once for each task. Complete
# the file below, with lines of your own in the place of each `exit 1`:
#
# * it asks for two nodes, and one task on each (`#SBATCH` lines count up to the first command only);
# * it starts one `torchrun` on each node, with two ranks each, for `06_train.py --checkpoint digits.pt`;
# * all of them meet at the first node: `MASTER_ADDR` and `MASTER_PORT` are given;
# * the number of nodes stands in one place only: `sbatch --nodes=3 FILE` must work too.
#
# No Slurm is needed here: the check has bash run the file, with stand-ins for `srun`, `scontrol` and `torchrun` that write down how they are called.
# (The course's own tests hand the solution to a real Slurm.) To have it as a file: `pathlib.Path("digits.sbatch").write_text(JOB)`.
#
# *Difficulty ●●○, 10 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# Which shell puts the value in the place of `$SLURM_NODEID`: the one that runs the file, or one on each node? For more, `hint("06-job")`.
# </details>

# %% tags=["solution"] grade_id="job"
JOB = r"""#!/bin/bash
#SBATCH --job-name=digits
#SBATCH --time=00:10:00
#SBATCH --output=digits-%j.txt
### BEGIN SOLUTION
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
### END SOLUTION

export MASTER_ADDR=$(scontrol -o show node "$SLURM_JOB_NODELIST" | head -1 |
                     sed 's/.*NodeAddr=\([^ ]*\).*/\1/')
export MASTER_PORT=${PORT:-$((20000 + SLURM_JOB_ID % 10000))}
### BEGIN SOLUTION
srun bash -c 'exec torchrun --nnodes "$SLURM_NNODES" --node-rank "$SLURM_NODEID" \
    --nproc-per-node 2 --master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT" \
    06_train.py --checkpoint digits.pt'
### END SOLUTION
"""

# %% tags=["check"] grade_id="job-check" points=2
check.job(JOB)

# %% [markdown]
# ## All together
#
# Your pieces of exercises 1 to 6 train a network on handwritten digits, beside PyTorch's own DistributedDataParallel, which starts from the same state and sees the
# same samples. Not graded: it works when your pieces do.

# %%
# %%px
x, y = (torch.from_numpy(array).to(device) for array in digits("train"))
hand = HandDDP(network(seed=rank), bucket_bytes=4096)
theirs = DistributedDataParallel(network(seed=rank))
optimisers = [torch.optim.SGD(model.parameters(), lr=0.5) for model in (hand, theirs)]
sampler = PaddedSampler(len(x), rank, world_size)

# %%
# %%px
for epoch in range(5):
    sampler.set_epoch(epoch)
    for rows in torch.tensor(list(sampler)).split(25):
        for model, optimiser in zip((hand, theirs), optimisers):
            nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
            if model is hand:
                finish(model)
            optimiser.step()
            optimiser.zero_grad()
far = max((a - b).abs().max().item() for a, b in zip(hand.parameters(),
                                                     theirs.parameters()))
x_test, y_test = (torch.from_numpy(array).to(device) for array in digits("test"))
correct = (hand(x_test).argmax(1) == y_test).float().mean().item()
print(f"accuracy {correct:.2f}, same weights as PyTorch's to 1e-5: {far < 1e-5}")

# %% [markdown]
# ## Where to go on
#
# * PyTorch's own version of what you wrote, in C++: `reducer.cpp`; its design and its figures: Li et al. 2020,
#   [PyTorch Distributed: Experiences on Accelerating Data Parallel Training](https://arxiv.org/abs/2006.15704).
# * Unit 16 shards what every rank still holds in full here: gradients, optimiser states and weights.

# %%
cluster.stop()
