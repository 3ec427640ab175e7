# %% [markdown] unit={"minutes": 60, "ranks": 4, "framework": "torch", "title": "DistributedDataParallel"}
# # 06 DistributedDataParallel
#
# With one line around the model, DistributedDataParallel (DDP) turns a training loop for one device into data-parallel training. This notebook takes that line
# apart. At the end, you can
#
# * explain why averaging gradients is not enough, and what else must be equal on all ranks.
# * start an all-reduce during the backward pass, and show how much time this saves.
# * predict how many messages a step sends, with buckets and with `no_sync`.
# * predict which rank sees which sample, and what happens if a parameter is not used.
# * let all ranks leave a loop in the same step, and give each rank its own data without a sampler.
# * read a profiler's trace of your training step.
# * combine `torch.compile` with DDP, so that messages overlap and checkpoints keep their names.
# * start a training job on several nodes, with a `DataLoader`, clipping, and checkpoints from which it can resume.
#
# **Before:** you can train a model in PyTorch, and you know what an all-reduce does. **Minutes:** 60 · **Ranks:** 4, on 2 nodes. A place to stop is marked in
# the middle.

# %% [markdown]
# ## Four ranks
#
# This kernel starts the ranks, and cells that begin with `%%px` run on all four of them. The option `--setup` marks the cells that are run again if the cluster
# must be healed.

# %% tags=["setup"]
from manyhands import Cluster, predict, settle, track

cluster = Cluster(nodes=2, ranks_per_node=2, framework="torch")

# %% tags=["measured"]
cluster

# %% tags=["setup"]
# %%px --setup
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from manyhands.data import digits, shard

if not dist.is_initialized():  # so that this cell can be run twice
    dist.init_process_group(os.environ["MANYHANDS_BACKEND"])
device = torch.device(os.environ["MANYHANDS_DEVICE"])
rank, world_size = dist.get_rank(), dist.get_world_size()

# %% [markdown]
# We train a small network on 256 handwritten digits, which form the batch of every step. Each rank takes a quarter of the batch.

# %% tags=["setup"]
# %%px --setup
def network(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10)).to(device)

x, y = (torch.from_numpy(array[:256]).to(device) for array in digits())
everything, mine = slice(256), shard(256, rank, world_size)

def loss_of(model, rows):
    return nn.functional.cross_entropy(model(x[rows]), y[rows])

print(f"rows {mine.start} to {mine.stop - 1}")

# %% [markdown]
# ## Averaged gradients are not enough
#
# The loss of the whole batch is the mean of the losses of its quarters, because the quarters have the same size. Therefore, the batch's gradient is the mean of
# the quarters' gradients, and computing this mean takes one all-reduce and one division for each parameter. The next cell defines this average and a training
# loop.

# %% tags=["setup"]
# %%px --setup
def average_gradients(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)  # the sum over all ranks
        parameter.grad /= world_size

def train(model, rows, after_backward, steps=20):
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(steps):
        loss_of(model, rows).backward()
        after_backward(model)
        optimiser.step()
        optimiser.zero_grad()

# %% [markdown]
# To see how far apart two models are, we compute the norm of the difference between their weights.

# %% tags=["setup"]
# %%px --setup
def weights(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])

def distance_from_rank_0(model):
    first = weights(model)
    dist.broadcast(first, src=0)
    return (weights(model) - first).norm().item()

def state(model):
    loss = loss_of(model, everything).item()
    return f"distance from rank 0: {distance_from_rank_0(model):.3f}, loss {loss:.3f}"

# %% [markdown]
# **Predict.** Each rank builds its network with a different seed and then trains it for 20 steps with averaged gradients. Do the four models come closer to
# each other, move further apart, or neither?

# %%
# Run this cell to make your prediction.
predict("06-apart",
        "Do models with different seeds come closer in 20 steps with averaged gradients?",
        ["closer to each other", "further apart", "neither"])

# %%
# %%px
model = network(seed=rank)
print("before:", state(model))
train(model, mine, average_gradients)
print("after: ", state(model))

# %%
# Run this cell to compare your prediction with the outcome.
def came():
    before = max(cluster.pull("distance_from_rank_0(network(seed=rank))"))
    after = max(cluster.pull("distance_from_rank_0(model)"))
    if abs(after / before - 1) < 0.01:
        return "neither"
    return "closer to each other" if after < before else "further apart"

settle("06-apart", came)

# %% [markdown]
# <details><summary>Why?</summary>
#
# With plain SGD, a step depends only on the gradient, and the averaged gradient is the same on all ranks. All ranks therefore take the same steps, and models
# that start at a distance stay at that distance, up to rounding. Moreover, the average mixes gradients from four different points in weight space, so it is not
# the gradient of any of the four models. PyTorch does not warn you about any of this.
# </details>
#
# ## The same state at the start
#
# So that all ranks start alike, rank 0 broadcasts its parameters before the first step. From then on, the four ranks must compute what a single process
# computes from the whole batch. Every rank checks this by training a second copy alone.

# %%
# %%px
model = network(seed=rank)
for parameter in model.parameters():
    dist.broadcast(parameter.detach(), src=0)
train(model, mine, average_gradients)

alone = network(seed=0)
train(alone, everything, lambda model: None)

far = (weights(model) - weights(alone)).abs().max().item()
print(f"loss {loss_of(model, everything).item():.4f}, alone "
      f"{loss_of(alone, everything).item():.4f};",
      f"weights the same to 1e-5: {far < 1e-5}")

# %% [markdown]
# The weights agree to 1e-5 but not to the last bit, because four partial sums are rounded differently from one long sum.
#
# A model's state is more than its parameters. For example, batch norm keeps its running mean in a *buffer*, which no gradient ever changes. If only rank 0 has
# loaded a checkpoint, the other ranks need its buffers too, so DDP's constructor broadcasts parameters and buffers.

# %%
# %%px
norm = nn.BatchNorm1d(2).to(device)
if rank == 0:  # as if rank 0 had loaded a checkpoint
    norm.running_mean += 7
print("before:", norm.running_mean.tolist(), end="   ")
DistributedDataParallel(norm)
print("after DDP(norm):", norm.running_mean.tolist())

# %% [markdown]
# During training, however, each rank's batch norm sees only its quarter of the batch, and before a forward pass, DDP broadcasts rank 0's buffers again
# (`forward_sync_buffers=True`). If you need the statistics of the whole batch, use `nn.SyncBatchNorm` (on GPUs), which exchanges statistics between ranks.
#
# ## Gradients become ready layer by layer
#
# `average_gradients` waits until the backward pass has ended. However, this pass visits the layers from the last to the first, and a layer's gradient is ready
# once the pass has left the layer. Hooks on the parameters show this order.

# %%
# %%px --ranks 0
model = network(seed=0)
for name, parameter in model.named_parameters():
    parameter.register_post_accumulate_grad_hook(
        lambda parameter, name=name: print(f"{name} {list(parameter.shape)}"))
loss_of(model, mine).backward()

# %% [markdown]
# A hook can therefore *start* the all-reduce of the last layer's gradient while the backward pass is still computing the first layer's. With `async_op=True`,
# the all-reduce immediately returns a *work* handle, and we must call its `wait()` before the optimiser's step.

# %% tags=["setup"]
# %%px --setup
def start_from_hooks(model):
    """Start an all-reduce of each gradient as soon as it is ready, and return the list of
    those under way."""
    under_way = []
    def start(parameter):
        under_way.append((parameter, dist.all_reduce(parameter.grad, async_op=True)))
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(start)
    return under_way

def finish(under_way):
    for parameter, work in under_way:
        work.wait()
        parameter.grad /= world_size
    under_way.clear()

# %%
# %%px
model = network(seed=0)
under_way = start_from_hooks(model)
train(model, mine, lambda model: finish(under_way))
far = (weights(model) - weights(alone)).abs().max().item()
print(f"weights the same as alone, to 1e-5: {far < 1e-5}")

# %% [markdown]
# ## DDP: all of that in one line
#
# DDP's constructor broadcasts the state and puts hooks on the parameters, so that the optimiser finds averaged gradients after `backward()`. The loop itself is
# the same as in a single process.

# %%
# %%px
ddp = DistributedDataParallel(network(seed=rank))
train(ddp, mine, lambda model: None)
far = (weights(ddp) - weights(alone)).abs().max().item()
print(f"weights the same as alone, to 1e-5: {far < 1e-5}")

# %% [markdown]
# ## What overlap saves
#
# The next network has more to send. Each of its six layers has 512 x 512 weights, and therefore 1 MiB of gradients. We train it in three ways:
#
# * **naive** runs the backward pass and then one all-reduce after another.
# * **hooks** uses the two functions above, with one message per layer.
# * **DDP** joins gradients into *buckets*, here of 2 MiB. Because of `register_comm_hook`, it calls its all-reduce from Python, where our ledger records the
#   call.
#
# `median_steps` runs the three ways in turn, for twelve steps each, drops the first three steps of each, and keeps the median.

# %%
# %%px
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from manyhands.ledger import median_steps

def wide():
    torch.manual_seed(0)
    layers = [layer for _ in range(6) for layer in (nn.Linear(512, 512, bias=False),
                                                    nn.Tanh())]
    return nn.Sequential(*layers).to(device)

inputs = torch.randn(512, 512).to(device)
naive, hooked, ddp = wide(), wide(), DistributedDataParallel(wide(), bucket_cap_mb=2)
under_way = start_from_hooks(hooked)
ddp.register_comm_hook(None, allreduce_hook)

# %%
# %%px
steps = median_steps({
    "naive": (lambda: naive(inputs).square().mean(), lambda: average_gradients(naive)),
    "hooks": (lambda: hooked(inputs).square().mean(), lambda: finish(under_way)),
    "DDP": (lambda: ddp(inputs).square().mean(), lambda: None)})

# %% [markdown]
# **Predict.** In which of the three ways does the first message leave before the backward pass has ended? How many messages does a step send in each of them?

# %%
# Run this cell to make your prediction.
predict("06-early",
        "Which of naive, hooks and DDP send a message before backward has ended?",
        ["DDP", "hooks, DDP", "naive, hooks, DDP", "none"])
predict("06-messages",
        "How many messages per step does DDP send for 6 layers of 1 MiB in 2 MiB buckets?",
        unit="messages")

# %%
# %%px
for name, step in steps.items():
    messages, (_, backward_ms, _) = step["network"], step["compute"][0]
    early = messages[0][0] < backward_ms
    print(
        f"{name:<6} {len(messages)} messages, the first one before backward ends: {early}")

# %%
# Run this cell to compare your prediction with the outcome.
def early():
    found = cluster.pull("steps")[0]
    return ", ".join(name for name, step in found.items()
                     if step["network"][0][0] < step["compute"][0][1]) or "none"

settle("06-early", early)
settle("06-messages", lambda: cluster.pull("len(steps['DDP']['network'])")[0])

# %% [markdown]
# Here is rank 0's step. Your times will differ, but the order of events will not.

# %% tags=["measured"]
from manyhands.plots.timeline import table, timeline

measured = cluster.pull("steps")[0]
print(table(measured))
timeline(measured, title="one step of rank 0: naive, hooks, DDP")

# %% [markdown]
# <details><summary>How to read it</summary>
#
# In the top part (*naive*), the network is idle during the backward pass, and the rank computes nothing while the messages travel. In the middle and at the
# bottom (*hooks* and *DDP*), most of the communication is hidden behind the computation. What remains is the tail, which is the last message. No overlap can
# hide it, because it holds the gradients of the first layer, which the backward pass reaches last. (Where there are few cores, a message slows down the
# backward pass itself, and the tail may fall inside the bar of the backward pass.)
#
# An all-reduce cannot end before the last rank has reached it, so a long first message under *naive* is mostly time spent waiting for slower ranks.
#
# A bar runs from the call until the message is complete. For this reason, the bars overlap when messages wait in line behind each other. With gloo, DDP waits
# inside `backward()` until all buckets are complete, so DDP's compute bar ends after the last message. On a machine with fewer cores than ranks, communication
# and computation compete for the same cores, and the gain is small.
# </details>

# %% [markdown]
# > **On GPUs.** With NCCL, every call returns when its work is *enqueued*. As a result, `backward()` returns early. The all-reduces run on a separate stream,
# > and the optimiser's kernels wait for them on the GPU. Since a timer around `backward()` measures only the launching, call `torch.cuda.synchronize()` before
# > you read the timer. Overlap is not free here either, because NCCL's kernels take some of the GPU's processors from the backward pass. As this notebook does,
# > call `torch.cuda.set_device(local_rank)` on each rank before anything else. Otherwise, calls that name no GPU (`.cuda()`, messages with objects) use GPU 0
# > on all ranks of the node, and hang or fail.

# %% [markdown]
# ## Buckets
#
# A message has a fixed cost before its first byte, so many small messages are slow. A single large message, however, could leave only at the end of the
# backward pass. Buckets are a compromise. DDP fills a bucket with gradients, in the order in which they are computed, until the bucket holds `bucket_cap_mb` or
# more. The default is 25 MiB, but only 1 MiB for the bucket that leaves first, so that the network has work early. Li et al. (2020) report near-linear scaling
# to 256 GPUs with buckets, overlap and `no_sync`.
#
# Here is our small network with 1 KiB buckets, step by step:

# %%
# %%px
from manyhands.ledger import Ledger

ddp = DistributedDataParallel(network(seed=rank), bucket_cap_mb=1 / 1024)
ddp.register_comm_hook(None, allreduce_hook)
for step in range(3):
    with Ledger() as ledger:
        loss_of(ddp, mine).backward()
    sizes = [entry.numel for entry in ledger.entries if entry.call == "allreduce"]
    if rank == 0:
        print(f"step {step}: all-reduces of {sizes} numbers")

# %% [markdown]
# In its first step, DDP does not know yet in which order the gradients become ready, so it sends all of them in one bucket, whatever their size. After that, it
# applies the limits above and sends one bucket for each layer.
#
# <details><summary>Why 330 and 2080 numbers?</summary>
#
# The bucket of 330 numbers holds the last layer's gradients (32 x 10 weights and 10 biases), and the bucket of 2080 numbers holds the first layer's gradients
# (64 x 32 weights and 32 biases).
# </details>
#
# <details><summary>Three switches for large models</summary>
#
# With `gradient_as_bucket_view=True`, `grad` is a view into the buckets, which saves a copy of all gradients. With `static_graph=True`, you promise that every
# step uses the same parameters in the same way. With `ddp.register_comm_hook(None, default_hooks.bf16_compress_hook)`, DDP sends half as many bytes. However,
# this hook keeps only two or three digits of each gradient, and the ranks also *add* in bf16, so the error grows with the number of ranks. We found a median
# error of 0.3 % along a chain of 8 ranks, and of 2 % along a chain of 512. (The hook is experimental, and its documentation asks for NCCL.)
# </details>
#
# ## no_sync: four micro-batches, one exchange
#
# If a batch does not fit into memory, split it into micro-batches, whose gradients add up in `grad` until the optimiser's step. Only the last backward pass
# needs to communicate, and `no_sync()` keeps DDP silent during the earlier ones.
#
# **Predict.** With four micro-batches and two buckets, how many all-reduces does a step perform without `no_sync`, and how many with it? Do the gradients
# differ?

# %%
# Run this cell to make your prediction.
predict("06-loud",
        "How many all-reduces do 4 micro-batches with 2 buckets each send without no_sync?",
        unit="all-reduces")
predict("06-quiet",
        "How many all-reduces do 4 micro-batches with 2 buckets each send with no_sync?",
        unit="all-reduces")

# %%
# %%px
from contextlib import nullcontext

def accumulate(silent):
    ddp.zero_grad()
    with Ledger() as ledger:
        for i in range(4):
            part = slice(mine.start + 16 * i, mine.start + 16 * i + 16)
            with ddp.no_sync() if silent and i < 3 else nullcontext():
                (loss_of(ddp, part) / 4).backward()
    gradients = torch.cat([parameter.grad.flatten() for parameter in ddp.parameters()])
    return ledger.count("allreduce"), gradients

(loud, one), (quiet, other) = accumulate(silent=False), accumulate(silent=True)
far = (one - other).abs().max().item()
print(f"{loud} all-reduces, with no_sync {quiet}; the same gradients to 1e-5: {far < 1e-5}")

# %%
# Run this cell to compare your prediction with the outcome.
settle("06-loud", lambda: cluster.pull("loud")[0])
settle("06-quiet", lambda: cluster.pull("quiet")[0])

# %% [markdown]
# <details><summary>Why are the gradients the same?</summary>
#
# The mean over ranks of a sum is the sum of the means. With `no_sync`, each rank first adds up its own gradients, and the sums are averaged once. The forward
# pass belongs inside the `no_sync` block too, because in the forward pass, DDP decides whether the backward pass will send anything.
# </details>
#
# ## Who sees which sample
#
# `DistributedSampler` distributes the samples over the ranks in turn. All ranks must take the same number of steps, because otherwise one of them would wait
# forever in an all-reduce. If the data cannot be divided evenly, some samples are therefore used twice.
#
# <details><summary>Two alternatives</summary>
#
# With `drop_last=True`, the sampler leaves out the surplus samples. With DDP's `join()`, ranks that have run out of data keep answering the all-reduces of
# the others.
# </details>

# %%
# %%px
from torch.utils.data import DistributedSampler

sampler = DistributedSampler(range(10), world_size, rank, shuffle=False)
print("10 samples in stored order:", list(sampler))

# %% [markdown]
# Ten samples fill twelve places, so samples 0 and 1 appear twice. This hardly matters in training. In an *evaluation*, however, these samples count twice, so
# an accuracy over all ranks is slightly wrong. For an evaluation, split the data exactly (`shard`), count the correct answers, and add up the counts instead of
# averaging accuracies.
#
# With `shuffle=True`, all ranks draw the same permutation from `seed + epoch`.
#
# **Predict.** How do the orders of samples in three epochs compare if you forget `set_epoch`?

# %%
# Run this cell to make your prediction.
predict("06-set-epoch",
        "How many different orders of samples do three epochs have without set_epoch?",
        unit="orders")

# %%
# %%px --ranks 0
sampler = DistributedSampler(range(10), world_size, rank, shuffle=True)
print("without set_epoch:", [list(sampler) for epoch in range(3)])
epochs = []
for epoch in range(3):
    sampler.set_epoch(epoch)
    epochs.append(list(sampler))
print("with set_epoch:   ", epochs)

# %%
# Run this cell to compare your prediction with the outcome.
def orders():
    forgotten = "[DistributedSampler(range(10), world_size, rank, shuffle=True)] * 3"
    epochs = cluster.pull(f"[list(epoch) for epoch in {forgotten}]")[0]
    return len({tuple(epoch) for epoch in epochs})

settle("06-set-epoch", orders)

# %% [markdown]
# A stream (`IterableDataset`) has no sampler. Every worker of every rank reads the whole stream, unless the dataset itself assigns different rows to each
# worker:

# %%
# %%px
from torch.utils.data import (DataLoader, Dataset, IterableDataset, get_worker_info,
                              random_split)

class Stream(IterableDataset):
    def __iter__(self):
        worker = get_worker_info()  # None if num_workers=0
        first = rank * worker.num_workers + worker.id
        return iter(range(first, 16, world_size * worker.num_workers))

print([int(row) for row in DataLoader(Stream(), batch_size=None, num_workers=2)])

# %% [markdown]
# Some seeds must be equal on all ranks, while others must differ. If each rank calls `random_split` with its own seed, one rank tests on samples that another
# rank has trained on. If all `DataLoader`s have the same seed, however, their workers draw the same noise and crops:

# %%
# %%px
def trained_and_tested(generator):
    train, test = random_split(range(100), [80, 20], generator=generator)
    parts = [None] * world_size
    dist.all_gather_object(parts, (set(train.indices), set(test.indices)))
    return len(set.union(*(train for train, _ in parts))
               & set.union(*(test for _, test in parts)))

class Noise(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return torch.rand(1).item()

def first_noise(generator):
    return next(iter(DataLoader(Noise(), num_workers=1, generator=generator))).item()

own, common = (torch.Generator().manual_seed(number) for number in (rank, 0))
print(f"of 100 samples tested and trained on: {trained_and_tested(own)}, with one seed "
      f"{trained_and_tested(common)};",
      f"noise with one seed {first_noise(torch.Generator().manual_seed(0)):.3f},",
      f"with own seeds {first_noise(torch.Generator().manual_seed(rank)):.3f}")

# %% [markdown]
# Therefore, split the data with one common seed, and give each rank's `DataLoader` a generator with its own seed.
#
# ## A parameter that is not used
#
# DDP sends a bucket when all of its gradients are ready, but a branch that the forward pass has skipped never produces any. In the model below, one bucket
# holds the gradients of the weights and biases of `used` and of `skipped`, so only two of its four gradients become ready. As a result, the bucket is never
# sent, and `used` keeps each rank's local gradients. DDP notices this at the *next* forward pass and raises an error.

# %%
# %%px
class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.skipped = nn.Linear(64, 10), nn.Linear(64, 10)

    def forward(self, x):
        return self.used(x)

ddp = DistributedDataParallel(Branches().to(device))
loss_of(ddp, mine).backward()
try:
    loss_of(ddp, mine)
except RuntimeError as error:
    print(str(error).split(". ")[0])

# %% [markdown]
# With `find_unused_parameters=True`, DDP searches the graph after each forward pass and marks every parameter that is not in the graph as ready. Use this
# option only where branches are really skipped, because the search costs time in every step, and the buckets stay as the constructor made them.

# %%
# %%px
ddp = DistributedDataParallel(Branches().to(device), find_unused_parameters=True)
for step in range(2):
    loss_of(ddp, mine).backward()
print("two steps; gradient of the skipped branch:", ddp.module.skipped.weight.grad)

# %% [markdown]
# If only *some* ranks skip the branch, `find_unused_parameters` prevents a hang, because these ranks take part with zeros. Without the option, the other ranks
# would wait for them in vain.
#
# <details><summary>A layer that is unfrozen later</summary>
#
# The opposite mistake, a parameter that is used but has no hook, raises no error. DDP's constructor puts no hooks on a frozen layer. If you unfreeze the layer
# later, it is trained, but its gradients are never averaged. Therefore, wrap the model again when you unfreeze a layer.
# </details>
#
# ## All ranks leave a loop together
#
# No rank may decide alone to stop early, to skip a batch, or to end an epoch, because the others would wait for it in their next backward pass. Such a decision
# needs a number that all ranks have in common.
#
# **Predict.** On rank 2, the loss of a batch is NaN. On which ranks is the averaged gradient finite?

# %%
# Run this cell to make your prediction.
predict("06-nan",
        "With a NaN loss on rank 2 of 4, on which ranks is the averaged gradient finite?",
        ["on all", "on all but rank 2", "on none"])

# %%
# %%px
ddp = DistributedDataParallel(network(seed=0))
loss = loss_of(ddp, mine) * (float("nan") if rank == 2 else 1)
loss.backward()
norm = nn.utils.get_total_norm([parameter.grad for parameter in ddp.parameters()])
print(f"loss finite: {loss.isfinite().item()}, "
      f"averaged gradient finite: {norm.isfinite().item()}")

# %%
# Run this cell to compare your prediction with the outcome.
def finite_on():
    ranks = sum(cluster.pull("norm.isfinite().item()"))
    return {0: "on none", 3: "on all but rank 2", 4: "on all"}[ranks]

settle("06-nan", finite_on)

# %% [markdown]
# Decide by the averaged gradient whether to skip a step, because this gradient, unlike a rank's own loss, is the same on all ranks. Where no common number
# exists, an all-reduce creates one. Here, two ranks have one extra batch, and all ranks train as long as each has a batch:

# %%
# %%px
def train_together(batches):
    steps = 0
    while True:
        everyone = torch.tensor(int(steps < batches), device=device)
        dist.all_reduce(everyone, op=dist.ReduceOp.MIN)  # 1 if every rank has a batch
        if not everyone:
            return steps
        loss_of(ddp, mine).backward()
        ddp.zero_grad()
        steps += 1

print(f"{3 + rank % 2} batches, {train_together(3 + rank % 2)} steps")

# %% [markdown]
# Early stopping needs a common number, and so does `ReduceLROnPlateau`, which may otherwise lower the ranks' learning rates after different epochs. On GPUs,
# `if not everyone` waits for the device, so agree on the number of batches before the epoch, and decide about early stopping only at long intervals.
#
# > **A good place to stop.** The second half is about the job around a step. To continue in a new kernel, select the next cell
# > and choose *Run*, *Run All Above Selected Cell*.

# %% [markdown]
# ## A trace of your own step
#
# Where does a step of *your* training spend its time? `torch.profiler` records every operation with its thread, its start and its end. We trace the wide
# network, whose input rows now come from a `DataLoader` and take 1 ms each to load. `record_function` gives a section of code a name in the trace.

# %%
# %%px
import json
import tempfile
import time

from torch.profiler import profile, record_function

class SlowRows(Dataset):
    def __len__(self):
        return 6 * 32

    def __getitem__(self, i):
        time.sleep(0.001)
        return torch.ones(512)

# %%
# %%px
def trace(workers, path):
    batches = iter(DataLoader(SlowRows(), batch_size=32, num_workers=workers))
    def step():
        with record_function("input"):
            x = next(batches).to(device)
        with record_function("forward"):
            loss = ddp_wide(x).square().mean()
        with record_function("backward"):
            loss.backward()
    for _ in range(4):
        step()  # the first steps make connections and buckets
    with profile(acc_events=True) as trace_of_a_step:
        step()
    trace_of_a_step.export_chrome_trace(path)

# %% [markdown]
# With `num_workers=0`, the process itself loads each batch when it needs one. With `num_workers=2`, two other processes load the next batches in advance.
#
# **Predict.** Which bars of the trace become shorter with workers?

# %%
# Run this cell to make your prediction.
predict("06-workers",
        "Which bar of the trace do 2 data loading workers shorten by the largest factor?",
        ["input", "forward", "backward"])

# %% tags=["measured"]
# %%px
os.environ["KINETO_LOG_LEVEL"] = "99"  # the profiler says nothing of itself
ddp_wide = DistributedDataParallel(wide(), bucket_cap_mb=2)
files = {f"{workers} workers": f"{tempfile.mkdtemp()}/step_{workers}.json"
         for workers in (0, 2)}
for name, path in files.items():
    trace(int(name[0]), path)

# %% [markdown]
# A trace is a JSON file with a list of events, each of which has a name, a start `ts` and a duration `dur` in microseconds. We read rank 0's trace. Its
# all-reduces are called `gloo:all_reduce`, or `nccl:all_reduce` with NCCL.

# %% tags=["measured"]
# %%px
def bars(path):
    with open(path) as file:
        events = [event for event in json.load(file)["traceEvents"]
                  if event.get("ph") == "X"]
    start = min(event["ts"] for event in events if event["name"] == "input")
    found = sorted((event["ts"] - start, event["dur"], event["name"]) for event in events)
    spans = [(ts / 1e3, (ts + dur) / 1e3, name) for ts, dur, name in found]
    messages = [span for span in spans if span[2].endswith(":all_reduce")]
    return {"compute": [span for span in spans
                        if span[2] in ("input", "forward", "backward")],
            "network": [(start, stop, str(i))
                        for i, (start, stop, _) in enumerate(messages)]}

traced = {name: bars(path) for name, path in files.items()}

# %% tags=["measured"]
traced = cluster.pull("traced")[0]
print(table(traced))
timeline(traced, title="one step of rank 0, from the profiler's trace: with 0 and with 2 "
                       "workers")

# %%
# Run this cell to compare your prediction with the outcome.
def shorter(bar):
    """By which factor."""
    def length(workers):
        bars = traced[workers]["compute"]
        return sum(stop - start for start, stop, name in bars if name == bar)

    return length("0 workers") / length("2 workers")

settle("06-workers", lambda: max(("input", "forward", "backward"), key=shorter))

# %% [markdown]
# <details><summary>How to read it</summary>
#
# *Where is the all-reduce?* There are three messages, one for each bucket, and they run on separate threads.
#
# *Does it overlap with backward?* The first messages begin long before the backward pass ends. The part that extends beyond the last gradient is the tail.
#
# *Does the step wait for its input?* Without workers, `input` takes 32 times 1 ms. During this time, the rank neither computes nor sends, and because of the
# all-reduce, no other rank can go on either. With two workers, the batch is ready in advance, as long as the workers load batches faster than the steps use
# them. (Where all cores are busy, the workers do not get a core in time, and `input` stays long.)
#
# To see the whole trace with every operation, find the names of rank 0's files in `cluster.pull("files")[0]`, and open one of them in your browser at
# [ui.perfetto.dev](https://ui.perfetto.dev), which keeps the file on your machine. Each row is a thread. On GPUs, there is also a row for each stream, and
# NCCL's kernels have separate rows. In a real job, profile a few steps in the middle (`torch.profiler.schedule`) on one or two ranks, because a trace of a
# whole epoch fills a disk.
# </details>

# %% [markdown]
# ## torch.compile
#
# For autograd, a compiled backward pass is a single operation. DDP's hooks might therefore run only when the whole backward pass has ended, and then no message
# would overlap with it ([FAQ](https://docs.pytorch.org/docs/stable/torch.compiler_faq.html)). To avoid this, the compiler makes a separate graph for each of
# DDP's buckets. Our backend counts the graphs and compiles nothing, so you need no compiler.

# %%
# %%px
import logging

torch._logging.set_logs(dynamo=logging.ERROR)  # no remarks on what is not compiled

class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = wide()

    def forward(self, x):
        return self.layers(x)

def count(graph, inputs):
    graphs.append(graph)
    return graph.forward

def in_ddp(model):
    return DistributedDataParallel(model, bucket_cap_mb=2)

def compiled_in_place():
    model = in_ddp(Wide())
    model.compile(backend=count)
    return model

ways = {"compile(DDP(model))": lambda: torch.compile(in_ddp(Wide()), backend=count),
        "DDP(compile(model))": lambda: in_ddp(torch.compile(Wide(), backend=count)),
        "DDP(model).compile()": compiled_in_place}
graphs = []
for name, way in ways.items():
    graphs.clear()
    torch.compiler.reset()
    compiled = way()
    compiled(inputs).square().mean().backward()
    if rank == 0:
        print(f"{name:<21} {len(graphs)} graphs,", next(iter(compiled.state_dict())))

# %% [markdown]
# All three ways produce four graphs, but their checkpoints name the parameters differently. Therefore, save the state of the inner `model`, which you had
# before you wrapped it. Its names (`layers.0.weight`) are the same in all three ways.
#
# <details><summary>Why four graphs, and is your model compiled at all?</summary>
#
# The graphs hold 1, 2, 2 and 1 layers, because the compiler limits the bucket that leaves first to 1 MiB.
#
# We put the layers into a class, because PyTorch 2.15 compiles nothing if a bare `nn.Sequential` is wrapped in DDP first. The compiler skips PyTorch's own
# files without a warning. Set `TORCH_LOGS=graph_code` to see the graphs. If you compile in place, the names in a checkpoint are the ones that DDP gives without
# a compiler.
# </details>
#
# ## The same weights as a single process
#
# Most of units 01 to 10 train the same small network, each with a different system, and check whether it ends with the weights that a single process computes
# (60 steps of 250 rows in `float64`, defined in `manyhands.track`). The shards are uneven, because the four ranks take 63, 63, 62 and 62 rows. However, DDP
# gives all ranks the same weight when it **averages** their gradients.
#
# **Predict.** Each rank calls `backward` on the mean loss of its own rows. Does DDP end with the same weights as a single process? If not, what must the loss
# be?

# %%
# Run this cell to make your prediction.
predict("06-means",
        "If each rank takes the mean of an uneven shard, does DDP match a single process?",
        ["yes", "no"])

# %%
# %%px
from manyhands import track

numbers, labels = (torch.from_numpy(array).to(device) for array in track.data())
reference, _ = track.one_process()
part = shard(track.ROWS, rank, world_size)

def distance_after(loss_of_part):
    ddp = DistributedDataParallel(track.network(device))
    optimiser = torch.optim.SGD(ddp.parameters(), lr=track.RATE, weight_decay=track.DECAY)
    for step in range(track.STEPS):
        rows = track.rows(step)
        optimiser.zero_grad()
        loss_of_part(ddp(numbers[rows][part]), labels[rows][part]).backward()
        optimiser.step()
    return track.distance(ddp.parameters(), reference)

# %%
# %%px
def sum_by_all_rows(scores, labels):
    return (nn.functional.cross_entropy(scores, labels, reduction="sum") * world_size
            / track.ROWS)

of_means, of_sums = (distance_after(nn.functional.cross_entropy),
                     distance_after(sum_by_all_rows))
if rank == 0:
    print(f"each rank's own mean: {of_means:.1e} from one process; sums, by the rows of "
          f"all: equal to 1e-12: {of_sums < 1e-12}")

# %%
# Run this cell to compare your prediction with the outcome.
settle("06-means", lambda: cluster.pull("of_means < 1e-12")[0])

# %%
print(track.table("06", {"DistributedDataParallel": cluster.pull("of_sums")[0]}))

# %% [markdown]
# <details><summary>Why?</summary>
#
# In the mean of four means, a row in a shard of 62 counts 63/62 times as much as a row in a shard of 63. The difference is small, and no error is raised. The
# correct loss of a rank is the sum over its rows, divided by the 250 rows of all ranks and multiplied by 4, because DDP divides the sum of the gradients by 4.
# Weight decay needs no such correction, since the optimiser applies it once, after the average.
#
# Gradient accumulation has the same trap, and in language models, the error is large, because micro-batches hold different numbers of tokens. If you take the
# mean over each micro-batch, the tokens of a short micro-batch count more. Instead, sum the losses, divide by the number of tokens in all micro-batches of all
# ranks, and multiply by the number of ranks, because DDP averages. Several libraries computed this loss incorrectly until 2024 (for example
# [torchtune](https://github.com/meta-pytorch/torchtune/pull/1875)).
# </details>
#
# ## From cells to scripts: spawn and torchrun
#
# Outside a notebook, a launcher must start the processes. On one node, `torch.multiprocessing.spawn` does so from Python, as in
# [scripts/06_spawn.py](scripts/06_spawn.py). The code must be in a file, because each new process imports it.

# %%
import subprocess
import sys

done = subprocess.run([sys.executable, "scripts/06_spawn.py"], capture_output=True,
                      text=True)
print(done.stdout or done.stderr, end="")

# %% [markdown]
# How do processes on several nodes find each other? Rank 0 listens on port `MASTER_PORT` of the host `MASTER_ADDR`, where each process reports its `RANK` of
# `WORLD_SIZE` and learns the addresses of the others. `torchrun` sets these variables. You run it **once per node**, and it starts as many processes as
# `--nproc-per-node` specifies, usually one per device. There are two ways to tell it where the processes meet:
#
# * Set everything by hand, with N = 0 on the node of `MASTER_ADDR`:
#   `torchrun --nnodes 2 --node-rank N --nproc-per-node 4 --master-addr HOST --master-port PORT train.py`
# * Run the same command on all nodes, and let a *c10d rendezvous* assign the ranks:
#   `torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint HOST:PORT --rdzv-id JOB train.py`
#
# <details><summary>A number of nodes that changes</summary>
#
# The second command also accepts `--nnodes 2:4 --max-restarts 3`. Nodes may then be lost and join again, except the host of the endpoint. That host holds the
# rendezvous, so if it is lost, the job ends (unit 18). After each change, all ranks start again from the last checkpoint. (By default, there are no restarts,
# and a job ends as soon as one rank fails.)
# </details>
#
# On Slurm, `srun` runs torchrun on each node, as in [scripts/06_train.sbatch](scripts/06_train.sbatch). Here, both nodes are emulated.

# %%
import os
import tempfile

folder = tempfile.TemporaryDirectory()
checkpoint = os.path.join(folder.name, "digits.pt")
run = cluster.launch("scripts/06_train.py", "--epochs", "3", "--checkpoint", checkpoint,
                     with_="torchrun")

# %% [markdown]
# | name | meaning |
# |---|---|
# | `RANK` | number of the process across all nodes, which selects the data |
# | `LOCAL_RANK` | number of the process on its node, which selects the GPU |
# | `GROUP_RANK` | number of the node |
# | `WORLD_SIZE` | number of all processes |
#
# On two nodes of four GPUs each, the second node's processes would have `RANK` 4 to 7 and `LOCAL_RANK` 0 to 3.
#
# ## What a job needs
#
# [scripts/06_train.py](scripts/06_train.py) is a complete job. Read it now and look for these points:
#
# 1. `torch.cuda.set_device(device)` comes before `init_process_group("nccl", device_id=device)`, because NCCL sends objects through the current device. Without
#    `device_id`, a barrier may have to guess its device.
# 2. `DataLoader(data, BATCH // world_size, sampler=DistributedSampler(data), num_workers=...)` loads the data, with `set_epoch` before each epoch.
# 3. Only the forward pass and the loss run under `torch.autocast(..., dtype=torch.bfloat16)`, while weights, gradients and all-reduce stay in float32.
# 4. Clipping comes after `backward()`, when the gradients have been averaged and all ranks find the same norm. Inside `no_sync`, the ranks' norms would differ.
# 5. Only rank 0 saves the epoch, the optimiser and `ddp.module`, whose parameter names have no `module.` prefix. Rank 0 writes a new file next to the old one, and then
#    renames the new one.
# 6. All ranks load the checkpoint before they train, because DDP's constructor would give them rank 0's weights but not its momentum.
# 7. All ranks call `destroy_process_group()` at the end.
#
# Some calls need all ranks, although this is not obvious. A trace reveals, for example, that the first forward pass of a DDP model with batch norm sends
# buffers, even in evaluation without gradients.

# %%
# %%px
def messages_of(call):
    with profile() as trace, torch.no_grad():
        call()
    return sorted({event.name for event in trace.events()
                   if event.name.startswith(("gloo:", "nccl:"))})

ddp = DistributedDataParallel(nn.Sequential(nn.Linear(64, 10),
                                            nn.BatchNorm1d(10)).to(device)).eval()
of_ddp = messages_of(lambda: ddp(x[mine]))
of_module = messages_of(lambda: ddp.module(x[mine]))
if rank == 0:
    print(f"ddp(x): {of_ddp}, ddp.module(x): {of_module}")

# %% [markdown]
# <details><summary>What all ranks must call together</summary>
#
# * **The forward pass of a DDP model with buffers** (batch norm) broadcasts the buffers. Further passes without gradients send no buffers until the model has
#   been trained again. If rank 0 validates alone through `ddp`, its broadcast has no partner, or it is paired with a broadcast of the other ranks' next
#   training step. Therefore, validate on all ranks, or through `ddp.module`.
# * **Leaving a loop** is a joint decision of all ranks, as shown above.
# * **Objects** (`all_gather_object`, `broadcast_object_list`) pass through the memory of the current GPU if NCCL is used, and a tensor in them is unpickled on
#   the GPU of its sender. Therefore, move such tensors to the CPU first.
# * **Gathering a sharded state**, for example with `full_tensor`, a full state dict of FSDP, or `consolidate_state_dict` of ZeroRedundancyOptimizer (unit 16),
#   needs every rank, even if only rank 0 saves the result.
# </details>
#
# **Predict.** The first run used four ranks and stopped after 3 of 5 epochs. We run the script again, now with one rank on each node. Will it end with the
# weights of the uninterrupted run that `spawn` started on two ranks?

# %%
# Run this cell to make your prediction.
predict("06-resume",
        "Do 3 epochs on 4 ranks and 2 on 2 give the weights of 5 epochs on 2 ranks?",
        ["yes", "no"])

# %%
run = cluster.launch("scripts/06_train.py", "--checkpoint", checkpoint, with_="torchrun",
                     ranks_per_node=1)
folder.cleanup()

# %%
# Run this cell to compare your prediction with the outcome.
def last_number(text):
    return float(text.split()[-1])

settle("06-resume", lambda: last_number(run.output[0]) == last_number(done.stdout))

# %% [markdown]
# Yes, the weights agree to the last digit shown, although the run was interrupted and the number of ranks changed. Since the sampler distributes one shuffled
# order over the ranks in turn, the ranks' batches together always contain the same 64 rows.
#
# <details><summary>Lightning, and a job of full size</summary>
#
# **Lightning** writes this loop for you. In [scripts/06_lightning.py](scripts/06_lightning.py), the network of the table above is trained by
# `Trainer(devices=2, strategy="ddp")`, which uses DDP internally. The network ends with the weights that a single process computes (the difference is 2e-16,
# and a test checks it). To try it, run `python scripts/06_lightning.py` in a terminal, in the folder `work/`. Lightning adds its own sampler unless you disable
# this (`use_distributed_sampler=False`).
#
# As a full-size job, [scripts/06_dogs.py](scripts/06_dogs.py) trains EfficientNet-B2 on Stanford Dogs, if you have the photos.
# </details>
#
# <details><summary>When is DDP not enough?</summary>
#
# In float32 with Adam, each rank holds 16 bytes for each parameter (4 for the weight, 4 for the gradient, and 8 for the two moments). DDP's buckets add 4
# bytes, unless you set `gradient_as_bucket_view=True`. A GPU with 80 GB is therefore full at 4 or 5 billion parameters, before the first activation is stored.
# More GPUs do not help, because every rank holds everything. FSDP2 (unit 16) divides the 16 bytes by the number of ranks, but sends 1.5 times as many bytes in
# a step. If only the activations do not fit, first accumulate smaller micro-batches or recompute activations (unit 14), and stay with DDP.
# </details>
#
# <details><summary>Is one rank slow, or are all of them slow?</summary>
#
# An all-reduce ends when the last rank has reached it, so a step takes equally long on all ranks, and the straggler is the rank that *waits least*. To find the
# straggler, measure the forward and backward passes on each rank inside `no_sync`, collect the times with `all_gather_object`, and compare them. On GPUs, call
# `torch.cuda.synchronize()` each time before you read the clock. In the traces of two ranks, the slower rank has the shorter all-reduces.
#
# If all ranks are slow, their times hardly differ, so compare the ranks with what the GPUs could do. For the *model FLOPs utilisation* (MFU), count the
# operations that the model itself needs in a second, about 6 for each parameter and token, and divide them by the peak of the GPUs, as unit 19 does
# ([Chowdhery et al. 2022](https://arxiv.org/abs/2204.02311)).
# </details>
#
# ## Why not nn.DataParallel
#
# <details><summary>Six differences</summary>
#
# | | DataParallel | DistributedDataParallel |
# |---|---|---|
# | processes | one process, with one thread per GPU | one process per GPU |
# | Python | all threads share one interpreter lock (GIL) | each process has its own lock |
# | model | copied from the first GPU to all others in every step | stays where it is |
# | inputs and outputs | scattered from the first GPU, and gathered there | each process loads its own |
# | gradients | summed on the first GPU | all-reduced in buckets, during the backward pass |
# | nodes | one | many |
#
# For these reasons, PyTorch recommends DDP even on a single machine
# ([documentation of DataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html)).
# </details>
#
# ## Summary
#
# * Averaging gradients is not enough, because models that start apart stay apart. Parameters and buffers must be equal at the start.
# * Hooks send gradients during the backward pass, so only the tail costs time.
# * A step sends one message per bucket, and with `no_sync`, it does so only once for all micro-batches.
# * Uneven data is padded, so some samples are seen twice.
# * Every decision to leave a loop or to lower the learning rate needs a number that all ranks have in common.
# * `torch.compile` makes a graph for each bucket, and it changes the names in a checkpoint unless it compiles in place.
# * Cells, spawn and torchrun differ in how a process learns its rank and its meeting place, while the training is the same.
#
# ## What has aged
#
# <details><summary>torch.distributed.launch, --local_rank</summary>
#
# * `python -m torch.distributed.launch` preceded `torchrun` and accepts the same options. It still exists, but it prints a warning and will be removed.
# * The old launcher passed each process an argument, `--local_rank`. Since PyTorch 2.0, it writes `--local-rank`, so a script that knows only the underscore
#   stops with an error. Because torchrun passes no such argument, read `os.environ["LOCAL_RANK"]` instead.
# * Older texts set `MASTER_ADDR` to each process's own address. The correct value is the host of rank 0, which is the same for all processes.
# * `DistributedDataParallel(model, device_ids=[local_rank])` still works. With one device per process, you may leave out `device_ids` if the model is on that
#   device.
# * DDP's `broadcast_buffers` has been called `forward_sync_buffers` since PyTorch 2.13, and the old name causes a warning. If its value is `False`, DDP still
#   sends buffers at the start under the new name, but not under the old one.
# </details>
#
# **Now the lab:** you write DDP from hooks, repair two loops, and complete a batch file. After that, unit 07 trains on several nodes with TensorFlow, unit 10
# shows the same ideas in Horovod, and unit 16 shards what every rank holds here.
#
# **References.** S. Li et al. 2020, *PyTorch Distributed: Experiences on Accelerating Data Parallel Training*, VLDB 13(12),
# [arXiv 2006.15704](https://arxiv.org/abs/2006.15704).
# [PyTorch: DDP notes](https://docs.pytorch.org/docs/stable/notes/ddp.html).

# %%
cluster.stop()
