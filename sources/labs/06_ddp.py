# %% [markdown] unit={"minutes": 85, "ranks": 4, "framework": "torch", "title": "DistributedDataParallel"}
# # 06 Lab: DistributedDataParallel from hooks
#
# You write DistributedDataParallel yourself, in six small pieces, and your version reaches the weights that a single process computes. Then you repair two
# loops that run but are wrong, and you hand a training run to Slurm. At the end, you can
#
# * start all ranks of a group from the same state, with equal parameters and buffers.
# * cut gradients into buckets, and send each bucket as one asynchronous all-reduce while the backward pass is still running.
# * keep ranks that used different parameters from waiting for each other.
# * accumulate gradients without communication.
# * distribute uneven data so that every rank takes the same number of steps.
# * use messages, rows and weights to find the bugs in a training loop that runs without an error.
# * complete a batch file that starts a training job on several nodes.
#
# **Before:** the tutorial of this unit, or the PyTorch that it teaches. **Minutes:** 85 · **Ranks:** 4, on 2 nodes · **Points:** 19.
#
# Cells that begin with `%%px` run on all four ranks, while the others run in this kernel. If a mistake makes the ranks wait for each other, the cluster notices
# it, reports which rank is waiting for which, and heals itself. It then runs the cells marked `--setup` again. Below each check, you see what it prints when
# the answer is right.

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
# ## 1. The same state on all ranks
#
# Every rank builds its model with different random numbers. Make the models equal by giving every rank the state of the group's first rank.
#
# The checks use groups of 4, 3 and 2 ranks. For example, in the group of ranks 1 and 3, the first rank is rank 1.
#
# *Difficulty ●○○, 5 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# A model's state is more than what is trained, and even more than what is saved. Which method gives you a batch norm's running mean? For more help, run
# `hint("06-broadcast")` in a separate cell, and run it again for the next step.
# </details>

# %% tags=["solution"] grade_id="broadcast"
# %%px --setup
def broadcast_state(model: nn.Module, group: dist.ProcessGroup | None = None) -> None:
    """Copy the parameters and buffers of the group's first rank to every rank of `group`,
    in place.

    Frozen parameters are included. All ranks of the group call this function, and
    `group=None` is the world.
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
# A message costs time before its first byte moves, so many small messages are slow. A single large message, however, can leave only when the backward pass has
# ended. Buckets of a few megabytes are a compromise. Since the backward pass reaches the last layer first, the first bucket holds the last parameters.
#
# *Difficulty ●○○, 7 minutes, 1 point*
#
# <details><summary>Hint</summary>
#
# Do you open a new bucket as soon as the previous one is full, or only when there is a parameter to put into the new one? For more help, run
# `hint("06-buckets")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="buckets"
# %%px --setup
def make_buckets(parameters, bucket_bytes: int) -> list[list[nn.Parameter]]:
    """Cut the parameters that require a gradient into buckets, from the last parameter to
    the first.

    A bucket takes parameters until it holds `bucket_bytes` or more, and then the next one
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
# `launch` packs the gradients of a bucket into one flat tensor and starts its all-reduce without waiting for it. `land` waits for this all-reduce, divides the
# sum by the number of ranks, and gives each parameter its piece. You choose what `launch` returns, because only `land` receives the returned value.
#
# A parameter without a gradient on this rank (`grad is None`) contributes zeros. After `land`, the gradient of each of the bucket's parameters is the mean over
# the ranks.
#
# *Difficulty ●●○, 10 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# `dist.all_reduce(..., async_op=True)` immediately returns a *work* handle. You must not read the tensor before `work.wait()` has returned. For more help, run
# `hint("06-flight")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="flight"
# %%px --setup
def launch(bucket: list[nn.Parameter], group: dist.ProcessGroup | None = None):
    """Start one asynchronous all-reduce of all gradients of the bucket without waiting for
    it, and return what `land` needs."""
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
# The next class is given, so you only need to read it. It broadcasts the state, cuts the buckets, and asks autograd to call `gradient_ready(ddp, parameter)` as
# soon as the gradient of a parameter is ready. Since you use its attributes below, look at what each of them holds.

# %%
# %%px --setup
class HandDDP(nn.Module):
    def __init__(self, module, bucket_bytes, group=None):
        super().__init__()
        self.module, self.group = module, group
        self.sync = True      # False inside no_sync
        self.ready = set()    # parameters whose gradient is ready
        self.flying = []      # what `launch` returned for bucket 0, 1, ... in this step
        broadcast_state(module, group)
        self.buckets = make_buckets(module.parameters(), bucket_bytes)
        for parameter in [p for bucket in self.buckets for p in bucket]:
            parameter.register_post_accumulate_grad_hook(lambda p: gradient_ready(self, p))

    def forward(self, *inputs):
        return self.module(*inputs)

# %% [markdown]
# You write `gradient_ready`, which autograd calls when a gradient is ready, and `finish`, which the training loop calls between the backward pass and the
# optimiser's step.
#
# All ranks must send their buckets in the same order. Suppose that bucket 0 holds the last layer. On a rank that did not use this layer, the other buckets are
# ready first:
#
# ```
#            buckets ready, in time ->         may leave
# rank 0:    bucket 0   bucket 1   bucket 2    0, then 1, then 2
# rank 1:    bucket 1   bucket 2   (end)       none, so finish sends 0, 1, 2
# rank 2:    bucket 1   bucket 2   bucket 0    none, none, then 0, 1, 2 together
# ```
#
# Bucket 1 therefore never leaves before bucket 0, and `finish` sends all buckets that have not left by the end of the backward pass.
#
# *Difficulty ●●●, 15 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# `len(ddp.flying)` is the number of the bucket that leaves next. One gradient can release more than one bucket. For more help, run `hint("06-hooks")` in a
# separate cell.
# </details>

# %% tags=["solution"] grade_id="hooks"
# %%px --setup
def gradient_ready(ddp: HandDDP, parameter: nn.Parameter) -> None:
    """Launch the next buckets in line that are now complete. Backward calls this function
    when `parameter.grad` is ready.

    It does nothing while `ddp.sync` is False.
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
    """Launch the buckets that are left, land all of them, and prepare for the next backward
    pass. Call this function between backward and step.

    It does nothing while `ddp.sync` is False.
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
# A batch that does not fit into memory is split into micro-batches, whose gradients add up in `grad`. Only the last micro-batch needs to communicate.
#
# *Difficulty ●○○, 5 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# What must be true after the block, even if it ends with an exception, and even if it is inside another such block? For more help, run `hint("06-no-sync")` in
# a separate cell.
# </details>

# %% tags=["solution"] grade_id="no-sync"
# %%px --setup
@contextmanager
def no_sync(ddp: HandDDP):
    """Let backward passes inside the block add to the gradients of this rank and send
    nothing.

    After the block, even after an exception in it, `ddp.sync` is what it was before, so
    that blocks may be nested.
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
# If four ranks share ten samples, some of them get three and the others two, and a rank with three would wait forever in its third step. To avoid this, the
# sampler repeats the list of samples from its beginning until its length is divisible by the number of ranks. Then it distributes the list over the ranks in
# turn, so that rank `r` takes places `r`, `r + world_size`, and so on.
#
# Each epoch has a different order, which `torch.randperm` draws from a separate `torch.Generator`. Since this generator is seeded with `seed + epoch`, all
# ranks draw the same order without communicating.
#
# *Difficulty ●●○, 8 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# How long must the list be for four ranks? If there are three samples and eight ranks, is one repetition enough? For more help, run `hint("06-sampler")` in a
# separate cell.
# </details>

# %% tags=["solution"] grade_id="sampler"
# %%px --setup
class PaddedSampler(torch.utils.data.Sampler):
    """Give this rank the indices of its share of `n` samples, which are shuffled anew in
    every epoch."""

    def __init__(self, n: int, rank: int, world_size: int, seed: int = 0):
        self.n, self.rank, self.world_size, self.seed, self.epoch = (n, rank, world_size,
                                                                     seed, 0)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch. Call this method before every epoch, on every rank."""
        self.epoch = epoch

    def __len__(self) -> int:
        """Return how many samples this rank gets, which is the same on all ranks."""
        ### BEGIN SOLUTION
        return math.ceil(self.n / self.world_size)
        ### END SOLUTION

    def __iter__(self):
        """Iterate over this rank's indices in this epoch."""
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
# ## 7. Find the bugs in a training loop
#
# The next loop was written for DDP on two nodes. It runs, its loss falls, and no error is raised. In each step, a rank takes 8 rows. Three things in the loop
# are wrong. Do not spend too long on reading it. Look instead at what the loop did, in the evidence below.

# %%
# %%px --setup
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler

def faulty_training(ddp, x, y, epochs):
    """Train with plain SGD, and return the rows of each step."""
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
# The evidence shows what was sent, which rows each step took, and how far this rank's weights are from rank 0's. With 64 rows and 2 epochs, there are 4 steps.
# What would each line show if the loop were correct?

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
# Write the correct loop, and then run `evidence(training)` in a cell that begins with `%%px`.
#
# *Difficulty ●●○, 10 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# Compare the line of one rank with the line of another rank, and then the first two steps of a rank with its last two. For more help, run `hint("06-bug")` in a
# separate cell.
# </details>

# %% tags=["solution"] grade_id="bug"
# %%px --setup
def training(ddp: DistributedDataParallel, x: torch.Tensor, y: torch.Tensor,
             epochs: int) -> list[torch.Tensor]:
    """Train like `faulty_training`, but so that all ranks end with the weights that a
    single process computes. Return the rows of each step."""
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
# ## 8. Find the bugs in a fine-tuning loop
#
# The next loop fine-tunes a network in two stages. In epoch 0, it trains only the head, and from epoch 1 on, it trains all layers. Many rows have no label, so
# their `y` is -100, a value that `cross_entropy` skips (as is usual in language models). A micro-batch may contain no label at all. The learning rate is halved
# after an epoch whose loss has hardly fallen. A rank accumulates the gradients of several micro-batches before each step. The loop runs to its end without an
# error, but its result depends on the number of ranks.

# %%
# %%px --setup
from contextlib import nullcontext

def faulty_fine_tuning(model, batches, epochs):
    """Fine-tune `model` on this rank's steps in `batches`, each of which is a list of
    micro-batches (x, y). Return the learning rate after each epoch."""
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
# To produce the evidence, every rank takes two steps of three micro-batches with 2, 5 and 8 labels. On rank 3, the digits have been labelled at random.

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
# Three things in the loop are wrong, and the evidence shows two of them. The third one remains even when all ranks agree with each other. In that case, a
# single process that takes the labels of all ranks in each step, without micro-batches, still ends with different weights. In this comparison, the single
# process gives its scheduler the mean loss of all labels of the epoch.
#
# Copy `faulty_fine_tuning` into the cell below and repair it. Then run `evidence_of(fine_tuning)` in a cell that begins with `%%px`.
#
# *Difficulty ●●●, 15 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Which numbers of the evidence differ between the ranks, and from which epoch on can they differ? For more help, run `hint("06-fine-tuning")` in a separate
# cell.
# </details>

# %% tags=["solution"] grade_id="fine-tuning"
# %%px --setup
def fine_tuning(model: nn.Sequential, batches: list, epochs: int) -> list[float]:
    """Train `model` like `faulty_fine_tuning`, but so that all ranks end with the weights
    that a single process computes from the labels of all ranks. Return the learning rate
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
            ddp = DistributedDataParallel(model)  # now with hooks on all layers
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
# On a real cluster, the ranks do not belong to a notebook. The script [06_train.py](06_train.py), which is next to this lab, trains with PyTorch's DDP, saves
# checkpoints, and resumes from them. Here, `torchrun` starts the script on two emulated nodes with one rank each.

# %%
run = cluster.launch("06_train.py", with_="torchrun", ranks_per_node=1)

# %% [markdown]
# On Slurm, `sbatch FILE` waits for nodes and then runs the file **on the first of them**, while `srun` starts a command on all nodes, once for each task.
# Complete the file below, and replace each `exit 1` with your own lines:
#
# * The job asks for two nodes and one task on each. (`#SBATCH` lines take effect only before the first command.)
# * The job starts one `torchrun` on each node, which runs `06_train.py --checkpoint digits.pt` on two ranks.
# * All ranks meet at the first node, for which `MASTER_ADDR` and `MASTER_PORT` are given.
# * The number of nodes appears in one place only, so that `sbatch --nodes=3 FILE` works too.
#
# You do not need Slurm for this exercise, because the check runs the file in bash, with stand-ins for `srun`, `scontrol` and `torchrun` that record how they
# are called. (The course's own tests submit the solution to a real Slurm.) To save the job as a file, run `pathlib.Path("digits.sbatch").write_text(JOB)`.
#
# *Difficulty ●●○, 10 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# Which shell replaces `$SLURM_NODEID` with its value, the one that runs the file or one on each node? For more help, run `hint("06-job")` in a separate cell.
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
# Your pieces from exercises 1 to 6 now train a network on handwritten digits. For comparison, PyTorch's own DistributedDataParallel trains the same network
# from the same state and on the same samples. This part is not graded, but it works only if your pieces do.

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
# * PyTorch's own version of what you wrote is the C++ file `reducer.cpp`. Li et al. (2020) describe its design and give measurements in
#   [PyTorch Distributed: Experiences on Accelerating Data Parallel Training](https://arxiv.org/abs/2006.15704).
# * Unit 16 shards what every rank still holds in full here, namely gradients, optimiser states and weights.

# %%
cluster.stop()
