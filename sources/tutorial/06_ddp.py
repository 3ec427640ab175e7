# %% [markdown] unit={"minutes": 60, "ranks": 4, "framework": "torch", "title": "DistributedDataParallel"}
# # 06 DistributedDataParallel
#
# DistributedDataParallel (DDP) is one line around a model. This notebook takes it apart. At the end you can
#
# * say why averaging gradients is not enough, and what else must be the same on all ranks;
# * start an all-reduce inside the backward pass, and show what that saves;
# * predict how many messages a step sends, with buckets and with `no_sync`;
# * predict which rank sees which sample, and what an unused parameter does;
# * make leaving a loop one decision of all ranks, and give each rank its own data without a sampler;
# * read a profiler's trace of your own step;
# * combine `torch.compile` with DDP, so that messages overlap and checkpoints keep their names;
# * start a training as a job: on several nodes, with a `DataLoader`, clipping and checkpoints, so that it can resume.
#
# **Before:** you can train a model in PyTorch, and know what an all-reduce does. **Minutes:** 60. **Ranks:** 4, on 2 nodes. There is a marked place to stop in the middle.

# %% [markdown]
# ## Four ranks
#
# This kernel starts the ranks. Cells that begin with `%%px` run on all four of them; `--setup` marks what is to be run again if the cluster
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
# The job: a small network on 256 handwritten digits, the whole batch in every step. Each rank takes its quarter.

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
# The loss of the whole batch is the mean of the losses of its quarters, which are of equal size. So its gradient is the mean of the quarters'
# gradients: one all-reduce for each parameter, and a division. Here is that, written out, and a loop that trains with it.

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
# How far apart are two models? We take the length of the difference of all their weights.

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
# **Predict.** Each rank builds its network with a seed of its own, then trains for 20 steps with averaged gradients. Do the four models come
# closer to each other, go further apart, or neither?

# %%
predict("06-apart", "Four seeds, 20 steps with averaged gradients: the models come ...",
        ["closer to each other", "further apart", "neither"])

# %%
# %%px
model = network(seed=rank)
print("before:", state(model))
train(model, mine, average_gradients)
print("after: ", state(model))

# %%
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
# All ranks take the same steps. Who starts at a distance and takes the same steps stays at that distance, up to rounding: so it is with plain SGD.
# And the mean is of gradients at four different places: it is the gradient of none of the four models. Nothing warns you.
# </details>
#
# ## One state at the start
#
# So rank 0 gives its parameters to all before the first step. Then the four ranks must do what one process does with the whole batch. Every
# rank checks that for itself here: it also trains a copy alone.

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
# Equal to 1e-5, and not to the last bit: four partial sums are added in another order than one long sum.
#
# Parameters are not all that a model remembers. Batch norm keeps its running mean in a *buffer*, which no gradient ever reaches. If rank 0 alone
# has loaded a checkpoint, the others must get its buffers too. DDP's constructor broadcasts both.

# %%
# %%px
norm = nn.BatchNorm1d(2).to(device)
if rank == 0:  # as if rank 0 had loaded a checkpoint
    norm.running_mean += 7
print("before:", norm.running_mean.tolist(), end="   ")
DistributedDataParallel(norm)
print("after DDP(norm):", norm.running_mean.tolist())

# %% [markdown]
# In training, each rank's batch norm sees only its own quarter of the batch; DDP sends rank 0's buffers to all again before a forward pass
# (`forward_sync_buffers=True`). If the statistics must be those of the whole batch, `nn.SyncBatchNorm` exchanges them (on GPUs).
#
# ## Gradients do not come all at once
#
# `average_gradients` waits until backward has ended. But backward goes through the layers from the last to the first, and a gradient is ready as
# soon as backward has passed its layer. A hook shows when.

# %%
# %%px --ranks 0
model = network(seed=0)
for name, parameter in model.named_parameters():
    parameter.register_post_accumulate_grad_hook(
        lambda parameter, name=name: print(f"{name} {list(parameter.shape)}"))
loss_of(model, mine).backward()

# %% [markdown]
# So a hook can *start* the all-reduce of the last layer while backward still computes the first one. With `async_op=True` the call returns at
# once, with a *work* to wait for later. That must be done before the optimiser's step.

# %% tags=["setup"]
# %%px --setup
def start_from_hooks(model):
    """All-reduce each gradient as soon as it is there; returns the list of what is under
    way."""
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
# The constructor broadcasts and puts hooks on the parameters; after `backward()` the optimiser finds averaged gradients. So the loop is that of one process.

# %%
# %%px
ddp = DistributedDataParallel(network(seed=rank))
train(ddp, mine, lambda model: None)
far = (weights(ddp) - weights(alone)).abs().max().item()
print(f"weights the same as alone, to 1e-5: {far < 1e-5}")

# %% [markdown]
# ## The picture: what overlap saves
#
# Now a network that has something to send: six layers of 512 x 512 weights, 1 MiB of gradients each. Three ways to train it:
#
# * **naive**: backward, then one all-reduce after the other;
# * **hooks**: the two functions above, one message per layer;
# * **DDP**: PyTorch's own, which joins gradients to *buckets*, of 2 MiB here. `register_comm_hook` has DDP call its all-reduce from Python, where
#   our ledger sees it.
#
# `median_steps` runs them in turn, twelve steps of each, leaves out the first three, and keeps of each the step of median length.

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
# **Predict.** In which of the three does the first message leave before backward has ended? And how many messages does each one send?

# %%
predict("06-early", "In which does a message leave before backward has ended?",
        ["DDP", "hooks, DDP", "naive, hooks, DDP", "none"])
predict("06-messages",
        "6 layers of 1 MiB, buckets of 2 MiB: how many messages does DDP send?",
        unit="messages")

# %%
# %%px
for name, step in steps.items():
    messages, (_, backward_ms, _) = step["network"], step["compute"][0]
    early = messages[0][0] < backward_ms
    print(
        f"{name:<6} {len(messages)} messages, the first one before backward ends: {early}")

# %%
def early():
    found = cluster.pull("steps")[0]
    return ", ".join(name for name, step in found.items()
                     if step["network"][0][0] < step["compute"][0][1]) or "none"

settle("06-early", early)
settle("06-messages", lambda: cluster.pull("len(steps['DDP']['network'])")[0])

# %% [markdown]
# Here is rank 0's step, as it was measured. Your times will differ; the order of events will not.

# %% tags=["measured"]
from manyhands.plots.timeline import table, timeline

measured = cluster.pull("steps")[0]
print(table(measured))
timeline(measured, title="one step of rank 0: naive, hooks, DDP")

# %% [markdown]
# <details><summary>How to read it</summary>
#
# Top: the network stands still during backward, and the rank computes nothing during the messages. Middle and bottom: most of the sending is hidden
# behind the computing. What is left is the tail: the last message, which no overlap can hide. It holds the gradients of the first layer, which backward
# reaches last. (Where cores are few, a message slows backward itself, and the tail may lie inside its bar.)
#
# An all-reduce cannot end before the last rank has come: a long first message under *naive* is mostly waiting for slower ranks.
#
# A bar runs from the call until the message is done, so messages that wait in line behind each other overlap. With gloo, DDP waits inside `backward()`
# until all buckets are done: its compute bar ends after its last message. On a machine with fewer cores than ranks, messages and computing fight for the
# same cores, and the gain is small.
# </details>

# %% [markdown]
# > **On GPUs.** With NCCL every call returns when its work is *enqueued*: `backward()` ends early, the all-reduces run on a stream of their own, and the
# > optimiser's kernels wait for them on the GPU. So a clock around `backward()` measures the launching: call `torch.cuda.synchronize()` before you read it.
# > NCCL's all-reduce is a kernel too, and takes some of the GPU's processors from backward: overlap is not free there either.
# > Each rank calls `torch.cuda.set_device(local_rank)` before anything else; without it, whatever names no GPU (`.cuda()`, objects) goes to GPU 0 on all
# > ranks of the node, and hangs or fails. (A rank of this notebook has done that when its cells begin.)

# %% [markdown]
# ## Buckets
#
# A message has a fixed cost before its first byte, so many small ones are slow; one large one could leave only at the end of backward. Buckets are in
# between. DDP fills a bucket with gradients, in the order in which backward made them, until it holds `bucket_cap_mb` or more. Unless you say otherwise
# that is 25 MiB, but only 1 MiB for the bucket that leaves first, so that the network has work early. With buckets, overlap and skipped messages (below),
# Li et al. 2020 report near-linear scaling to 256 GPUs.
#
# Our small network with buckets of 1 KiB, step by step:

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
# In its first step DDP does not know yet in which order the gradients come: it sends all in one bucket, whatever their size. Then it cuts, by the limits
# above: 330 numbers are the last layer (32 x 10 weights and 10 biases), and 2080 the first (64 x 32 and 32).
#
# <details><summary>Three switches for large models</summary>
#
# `gradient_as_bucket_view=True` makes `grad` a view into the buckets, which saves a copy of all gradients. `static_graph=True` promises that every step uses the
# same parameters in the same way. `ddp.register_comm_hook(None, default_hooks.bf16_compress_hook)` sends half the bytes. It keeps two to three digits of each gradient, and the ranks also *add* in bf16, so
# the error grows with their number: along a chain of 8 ranks we found a median error of 0.3 %, along 512 ranks 2 %. (The hook is experimental, and its documentation asks for NCCL.)
# </details>
#
# ## no_sync: four micro-batches, one exchange
#
# If a batch does not fit into memory, cut it into micro-batches: gradients add up in `grad` until the optimiser's step. Only the last backward needs
# to talk. DDP has `no_sync()` for the others.
#
# **Predict.** Four micro-batches, two buckets: how many all-reduces without `no_sync`, and how many with it? Do the gradients differ?

# %%
predict("06-loud", "4 micro-batches, 2 buckets: how many all-reduces without no_sync?",
        unit="all-reduces")
predict("06-quiet", "4 micro-batches, 2 buckets: how many all-reduces with no_sync?",
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
settle("06-loud", lambda: cluster.pull("loud")[0])
settle("06-quiet", lambda: cluster.pull("quiet")[0])

# %% [markdown]
# <details><summary>Why are the gradients the same?</summary>
#
# The mean over ranks of a sum is the sum of the means. With `no_sync`, each rank first adds up its own, and the sums are averaged once. The forward pass
# belongs inside the block too: DDP decides there whether this step will be sent.
# </details>
#
# ## Who sees which sample
#
# `DistributedSampler` deals out the samples like cards. All ranks must take the same number of steps, or one of them waits for ever in an all-reduce. So
# when the data does not divide, some samples are dealt twice. (Other ways out: `drop_last=True`, which leaves the odd ones out, and DDP's `join()`: ranks that
# have run out of data go on answering the others' all-reduces.)

# %%
# %%px
from torch.utils.data import DistributedSampler

sampler = DistributedSampler(range(10), world_size, rank, shuffle=False)
print("10 samples in stored order:", list(sampler))

# %% [markdown]
# Twelve cards for ten samples: 0 and 1 are there twice. In training that hardly matters. In an *evaluation* it does: the doubled samples count twice, so
# an accuracy over all ranks is slightly wrong. Count correct answers on an exact cut there (`shard`), and add up sums, not means.
#
# With `shuffle=True` all ranks draw the same permutation, from `seed + epoch`. **Predict:** what do three epochs look like if you forget `set_epoch`?

# %%
predict("06-set-epoch", "Three epochs without set_epoch: how many different orders?",
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
def orders():
    forgotten = "[DistributedSampler(range(10), world_size, rank, shuffle=True)] * 3"
    epochs = cluster.pull(f"[list(epoch) for epoch in {forgotten}]")[0]
    return len({tuple(epoch) for epoch in epochs})

settle("06-set-epoch", orders)

# %% [markdown]
# A stream (`IterableDataset`) has no sampler. Every worker of every rank reads all of it, unless the dataset itself assigns different rows to each worker:

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
# Some seeds must be equal on all ranks, and others must differ. If each rank calls `random_split` with its own seed, one rank tests on what another one has trained on. But with the same seed, the workers of all ranks draw the same noise and crops:

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
# So split with one seed, and give each rank's `DataLoader` a generator with its own seed.
#
# ## A parameter that nobody used
#
# DDP sends a bucket when all its gradients are there. A branch that the forward pass did not go through gives none. In the model below, one bucket holds
# the weights and biases of `used` and of `skipped`: two gradients come, two never do. So the bucket is never sent, and `used` keeps its own rank's
# gradients. DDP notices at the *next* forward pass and says so. The cell catches the error.

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
# With `find_unused_parameters=True` DDP looks through the graph after each forward pass, and counts what is not in it as ready. That costs time in every
# step, and the buckets stay as the constructor cut them: use it only where branches are really skipped.

# %%
# %%px
ddp = DistributedDataParallel(Branches().to(device), find_unused_parameters=True)
for step in range(2):
    loss_of(ddp, mine).backward()
print("two steps; gradient of the skipped branch:", ddp.module.skipped.weight.grad)

# %% [markdown]
# If only *some* ranks skip the branch, the others would wait for its bucket in vain: there the flag prevents a hang, and the ranks that skipped it take
# part with zeros.
#
# The opposite mistake raises no error. DDP's constructor puts no hooks on a frozen layer. If you unfreeze it later, it is trained, but its gradients are never averaged. Wrap the model again when you unfreeze it.
#
# ## Leaving the loop is one decision
#
# No rank may decide alone to stop early, to skip a batch, or to end an epoch, because the others would wait for it in their next backward pass. A decision needs a number that all ranks have in common.
#
# **Predict.** On rank 2, the loss of a batch is NaN. On which ranks is the averaged gradient finite?

# %%
predict("06-nan", "On rank 2 of 4, the loss is NaN. Where is the averaged gradient finite?",
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
def finite_on():
    ranks = sum(cluster.pull("norm.isfinite().item()"))
    return {0: "on none", 3: "on all but rank 2", 4: "on all"}[ranks]

settle("06-nan", finite_on)

# %% [markdown]
# So skip a step by the averaged gradient, because all ranks see the same one, and not by the rank's own loss. Where no common number exists, an all-reduce makes one. Here two ranks have a batch more than the others, and
# all train as long as every rank has one:

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
# Early stopping needs the same, and so does `ReduceLROnPlateau`, which may lower the ranks' rates after different epochs. On GPUs, `if not everyone` waits for the GPU. Therefore agree on the number of batches before the epoch, and decide about early stopping only once in many steps.
#
# > **A good place to stop.** The second half is about the job around a step. With a new kernel, select the next cell first, and choose *Run*, *Run All Above Selected Cell*.

# %% [markdown]
# ## A trace of your own step
#
# Where does a step of *your* training spend its time? `torch.profiler` notes every operation with its thread, start and end. Here are steps of the wide
# network whose rows come from a `DataLoader`, and each row takes 1 ms to load, as from a disk. `record_function` gives a stretch of code a name in the trace.

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
# `num_workers=0`: the process itself loads each batch when it is asked for. `num_workers=2`: two processes load the next batches meanwhile.
# **Predict.** Which bars of the trace become shorter with workers, and which do not?

# %%
predict("06-workers", "With 2 workers, which bar becomes shorter by the largest factor?",
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
# A trace is a JSON file: a list of events, with a name, a start `ts` and a duration `dur` in microseconds. We read rank 0's. The all-reduces are called
# `gloo:all_reduce`, and with NCCL `nccl:all_reduce`.

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
# *Where is the all-reduce?* Three messages, one for each bucket, on threads of their own. *Does it overlap?* The first ones begin long before backward ends; what
# lies behind the last gradient is the tail. *Does the step wait for its input?* Without workers, `input` takes 32 times 1 ms, in which this rank neither computes nor
# sends, and because of the all-reduce no other rank can go on either. With two workers the batch is there already, as long as two of them load faster than a step takes.
# (Where all cores are busy, the loaders do not get one in time, and `input` stays long.)
#
# The whole trace, with every operation: `cluster.pull("files")[0]` names rank 0's files. Open one in your browser at [ui.perfetto.dev](https://ui.perfetto.dev), which
# keeps it on your machine. Each row is a thread; on GPUs there is one for each stream, and NCCL's kernels stand on their own.
# In a real job, profile a few steps in the middle (`torch.profiler.schedule`), on one or two ranks: a trace of an epoch fills a disk.
# </details>

# %% [markdown]
# ## torch.compile
#
# A compiled backward pass is a single operation for autograd, so DDP's hooks might run only when all of it has ended, and no message would overlap with it ([FAQ](https://docs.pytorch.org/docs/stable/torch.compiler_faq.html)). Therefore the compiler makes a separate graph for each of
# DDP's buckets. Our backend counts the graphs and compiles nothing, so that you need no compiler.

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
# All three are cut (1, 2, 2 and 1 layers, because the compiler limits the bucket that leaves first to 1 MiB). Since the names in a checkpoint differ, save the state of the inner `model`, which you had before you wrapped it: its names (`layers.0.weight`) are the same in all three ways.
#
# <details><summary>Is your model compiled at all?</summary>
#
# We wrap a class, because PyTorch 2.15 compiles nothing if a bare `nn.Sequential` is wrapped in DDP first: the files of PyTorch itself are skipped, and no warning is given. Set `TORCH_LOGS=graph_code` to see the graphs. If you compile in place, the names in a checkpoint are those that DDP gives without a compiler.
# </details>
#
# ## The same weights as one process
#
# Most of units 01 to 10 train one small network, each with another system, and check whether it ends with the weights of one process (`manyhands.track`: 60 steps of
# 250 rows, in `float64`). Four ranks take 63, 63, 62 and 62 rows: the shards are uneven. DDP **averages** gradients over the ranks.
#
# **Predict.** Each rank calls `backward` on the mean of its own rows. Does DDP end with the weights of one process? If not: what must the loss be?

# %%
predict("06-means", "Means of uneven shards: does DDP end with the weights of one process?",
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
settle("06-means", lambda: cluster.pull("of_means < 1e-12")[0])

# %%
print(track.table("06", {"DistributedDataParallel": cluster.pull("of_sums")[0]}))

# %% [markdown]
# <details><summary>Why?</summary>
#
# The mean of four means lets a row of a shard of 62 count 63/62 times as much as one of a shard of 63. That is little, and no error is raised. The right loss of a
# rank is the sum over its rows, divided by all 250; times 4, because DDP divides the sum of the gradients by 4. Weight decay is in the optimiser, after the
# average: there it counts once.
#
# Gradient accumulation has the same trap, and language models make it large, because micro-batches hold different numbers of tokens. A mean over each micro-batch lets the tokens of a short one count more. Sum the losses, divide by the number of tokens in all micro-batches of all ranks, and multiply by the number of ranks, because DDP averages. Several libraries had this wrong until 2024 (for example [torchtune](https://github.com/meta-pytorch/torchtune/pull/1875)).
# </details>
#
# ## From cells to scripts: spawn and torchrun
#
# Outside a notebook, something else must start the processes. `torch.multiprocessing.spawn` does it from Python, on one node:
# [scripts/06_spawn.py](scripts/06_spawn.py). It must stand in a file: each new process imports it.

# %%
import subprocess
import sys

done = subprocess.run([sys.executable, "scripts/06_spawn.py"], capture_output=True,
                      text=True)
print(done.stdout or done.stderr, end="")

# %% [markdown]
# How do processes on several nodes find each other? Rank 0 listens at an address that all of them know: `MASTER_ADDR` is its host, `MASTER_PORT` its port. There each process says its
# `RANK` of `WORLD_SIZE` and learns the others' addresses. `torchrun` sets these names. It runs **once per node** and starts as many
# processes as `--nproc-per-node` says, usually one per device. There are two ways to tell it where to meet:
#
# * all by hand, N being 0 on the node of `MASTER_ADDR`:
#   `torchrun --nnodes 2 --node-rank N --nproc-per-node 4 --master-addr HOST --master-port PORT train.py`
# * the same command on all nodes; the meeting (*c10d rendezvous*) deals out the places:
#   `torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint HOST:PORT --rdzv-id JOB train.py`
#
# <details><summary>A number of nodes that changes</summary>
#
# The second one also takes `--nnodes 2:4 --max-restarts 3`. Then nodes may be lost and join again, except the host of the endpoint: it holds the rendezvous, and the job ends with it (unit 18). After each change
# all ranks start anew from the last checkpoint. (Without restarts, the default, a job ends with its first rank that fails.)
# </details>
#
# On Slurm, `srun` runs torchrun on each node, as in
# [scripts/06_train.sbatch](scripts/06_train.sbatch), and you complete a similar one in the lab. Here both nodes are emulated.

# %%
import os
import tempfile

folder = tempfile.TemporaryDirectory()
checkpoint = os.path.join(folder.name, "digits.pt")
run = cluster.launch("scripts/06_train.py", "--epochs", "3", "--checkpoint", checkpoint,
                     with_="torchrun")

# %% [markdown]
# | name | what it counts |
# |---|---|
# | `RANK` | processes, through all nodes: it picks the data |
# | `LOCAL_RANK` | processes of this node: it picks the GPU |
# | `GROUP_RANK` | nodes |
# | `WORLD_SIZE` | how many processes there are in all |
#
# With four GPUs on each of two nodes, `RANK` would go from 0 to 7, and the second node would have 4 to 7, with `LOCAL_RANK` 0 to 3.
#
# ## What a job needs
#
# [scripts/06_train.py](scripts/06_train.py) is a whole one; read it now. In order:
#
# 1. `torch.cuda.set_device(device)`, then `init_process_group("nccl", device_id=device)`: the device first, because NCCL's objects go through the current one. A barrier takes `device_id`, and without it may have to guess.
# 2. `DataLoader(data, BATCH // world_size, sampler=DistributedSampler(data), num_workers=...)`, and `set_epoch` before each epoch.
# 3. Only forward and loss stand under `torch.autocast(..., dtype=torch.bfloat16)`. Weights, gradients and all-reduce stay in float32.
# 4. Clipping comes after `backward()`: the gradients are averaged, so all ranks find the same norm. Inside `no_sync` it would not be.
# 5. Rank 0 alone saves, beside the old file, then renames. It saves `ddp.module`, whose names have no `module.` in front, the optimiser and the epoch.
# 6. All ranks load before they train: DDP's constructor would give them rank 0's weights, but not its momentum.
# 7. `destroy_process_group()` at the end, on all ranks.
#
# Some calls need all ranks, although they do not look like it. A trace reveals them. For example, the first forward pass of a DDP model with batch norm sends buffers, even in evaluation without gradients. 

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
# * **The forward of a DDP model with buffers** (batch norm) broadcasts them. Further passes without gradients send none, until the model has been trained again. If rank 0 validates alone through `ddp`, its broadcast has no partner, or it is paired with a broadcast of the other ranks' next training step. Therefore, validate on all ranks, or through `ddp.module`.
# * **Leaving a loop** is one decision of all ranks, as shown above.
# * **Objects** (`all_gather_object`, `broadcast_object_list`) pass through the memory of the current GPU with NCCL, and a tensor in them is unpickled on the GPU of its sender. Therefore, move such tensors to the CPU first.
# * **Gathering a sharded state**, such as `full_tensor`, a full state dict of FSDP, or `consolidate_state_dict` of ZeroRedundancyOptimizer (unit 16), needs every rank, even if only rank 0 saves the result.
# </details>
#
# **Predict.** The first run, on four ranks, stopped after 3 of 5 epochs. We run the script again, with one rank on each node. Will it end with the weights that `spawn` printed, for two ranks without a pause?

# %%
predict("06-resume",
        "Three epochs on 4 ranks, two on 2: are the weights those that spawn printed?",
        ["yes", "no"])

# %%
run = cluster.launch("scripts/06_train.py", "--checkpoint", checkpoint, with_="torchrun",
                     ranks_per_node=1)
folder.cleanup()

# %%
def last_number(text):
    return float(text.split()[-1])

settle("06-resume", lambda: last_number(run.output[0]) == last_number(done.stdout))

# %% [markdown]
# Yes, to the last digit shown: resumed or not, with two ranks or with four. (The sampler deals one shuffled order like cards, so the ranks' batches together are the same
# 64 rows, however many ranks there are.)
#
# <details><summary>Lightning, and a job of full size</summary>
#
# **Lightning** writes this loop for you: [scripts/06_lightning.py](scripts/06_lightning.py) hands the network of the table above to `Trainer(devices=2, strategy="ddp")`. It is
# DDP inside, and ends with the same weights as one process (2e-16 apart; a test holds it). In a terminal, in `work/`: `python scripts/06_lightning.py`.
# It adds a sampler of its own where you do not forbid it (`use_distributed_sampler=False`). And at full size: [scripts/06_dogs.py](scripts/06_dogs.py) trains
# EfficientNet-B2 on Stanford Dogs, if you have the photos.
# </details>
#
# <details><summary>When is DDP not enough?</summary>
#
# In float32 with Adam, each rank holds 16 bytes for a parameter: 4 for the weight, 4 for the gradient, and 8 for two moments. DDP's buckets add 4, unless you set `gradient_as_bucket_view=True`. A GPU with 80 GB is therefore full at 4 or 5 billion
# parameters, before the first activation. More GPUs do not help, because every rank holds everything. FSDP2 (unit 16) divides the 16 bytes by the number of ranks, and sends 1.5 times as many bytes in a step. If only the activations do not fit,
# accumulate smaller micro-batches or recompute activations (unit 14) first, and stay with DDP.
# </details>
#
# <details><summary>One rank is slow, or all of them are: how do you see it?</summary>
#
# An all-reduce ends when the last rank has arrived, so a step takes equally long on all ranks, and the slow rank is the one that *waits least*. Measure forward and backward on each rank inside `no_sync`, on GPUs with `torch.cuda.synchronize()` before each look at the
# clock, and compare the times with `all_gather_object`. In the traces of two ranks, the slower one has the shorter all-reduces.
#
# If all ranks are slow, they still agree with each other, so compare them with what the GPUs could do. For the *model FLOPs utilisation* (MFU), count the operations that the model itself needs in a second, about 6 for each parameter and token, and divide
# them by the peak of the GPUs ([Chowdhery et al. 2022](https://arxiv.org/abs/2204.02311)). Unit 19 computes it.
# </details>
#
# ## Why not nn.DataParallel
#
# <details><summary>Six differences</summary>
#
# | | DataParallel | DistributedDataParallel |
# |---|---|---|
# | who computes | one process, one thread per GPU | one process per GPU |
# | Python | all threads share one interpreter lock (GIL) | each process has its own |
# | model | copied from the first GPU to all in every step | stays where it is |
# | inputs and outputs | scattered from the first GPU, gathered there | each process loads its own |
# | gradients | added up on the first GPU | all-reduced in buckets, during backward |
# | nodes | one | many |
#
# So even on one machine PyTorch advises to use DDP
# ([documentation of DataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html)).
# </details>
#
# ## What you can say now
#
# * *Averaging is not enough:* models that start apart stay apart. Parameters and buffers must be the same at the start.
# * *Overlap:* gradients of the last layer come first, and hooks send them while backward goes on. Only the tail costs time.
# * *Messages of a step:* one per bucket; with `no_sync`, one per bucket for all micro-batches together.
# * *Uneven data* is padded: some samples are seen twice. *Unused parameters* need `find_unused_parameters=True`.
# * *Leaving a loop* and reducing the rate are decided by a number that all ranks have in common.
# * *torch.compile* makes a graph for each bucket, and changes the names in a checkpoint unless it compiles in place.
# * *A trace* shows the all-reduces on their own threads, and an `input` bar where a step waits for its data.
# * *spawn, torchrun, cells:* they differ in who gives a process its rank and its meeting place; the training is the same.
# * *A job* sets its device first, shuffles by epoch, clips averages, saves on rank 0, loads everywhere.
#
# ## What has aged
#
# <details><summary>torch.distributed.launch, --local_rank</summary>
#
# * `python -m torch.distributed.launch` came before `torchrun`. It is still there, warns, and will be removed. It takes the same options.
# * It passed each process an argument, `--local_rank`. Since PyTorch 2.0 it writes `--local-rank`, so a script that knows only the underscore stops with an
#   error. torchrun passes none: read `os.environ["LOCAL_RANK"]`.
# * Older texts set `MASTER_ADDR` to each process's own address. It is rank 0's host, the same for all.
# * `DistributedDataParallel(model, device_ids=[local_rank])` still holds. With one device per process `device_ids` may be left out, if the model is on it.
# * DDP's `broadcast_buffers` is called `forward_sync_buffers` since PyTorch 2.13; the old name warns. With `False` the new one still
#   sends buffers at the start, the old one does not.
# </details>
#
# **Now the lab:** write DDP from hooks, repair two loops, complete a batch file. Then unit 07 for the same on several nodes with TensorFlow, or unit 10 (Horovod) for the
# same ideas in another library; unit 16 shards what every rank holds here.
#
# **References.** S. Li et al. 2020, *PyTorch Distributed: Experiences on Accelerating Data Parallel Training*, VLDB 13(12),
# [arXiv 2006.15704](https://arxiv.org/abs/2006.15704).
# [PyTorch: DDP notes](https://docs.pytorch.org/docs/stable/notes/ddp.html).

# %%
cluster.stop()
