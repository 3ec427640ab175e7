# %% [markdown] unit={"minutes": 65, "ranks": 4, "framework": "torch", "title": "Sharded states: ZeRO, FSDP"}
# # 16 Sharded states: ZeRO, FSDP
#
# In data parallelism, every rank keeps the whole model and all optimiser states. In this unit, each rank keeps only a part of both, and the ranks still train
# the same network. At the end, you can
#
# * compute how many bytes a rank holds with and without sharding.
# * write ZeRO's stages 1, 2 and 3 with all-gather and reduce-scatter, and predict what each stage saves and sends.
# * keep means, padding, clipping and bf16 correct when gradients and weights are split.
# * use `fully_shard`, including with replicas, micro-batches and a network that no rank builds as a whole, and explain how its options change memory and
#   traffic.
# * choose between FSDP, tensor parallelism and a pipeline.
#
# **Before:** you can implement data parallelism by hand (unit 01), and you know the collectives (unit 04). **Minutes:** 65 · **Ranks:** 4.

# %% [markdown]
# ## Four ranks
#
# This kernel starts the ranks, and cells that begin with `%%px` run on all four of them. The option `--setup` marks the cells that run again if the cluster
# must be healed.

# %% tags=["setup"]
from manyhands import Cluster, predict, settle

cluster = Cluster(nodes=1, ranks_per_node=4, framework="torch")

# %% tags=["setup"]
# %%px --setup
import gc
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import mse_loss, pad

from manyhands.ledger import Ledger

if not dist.is_initialized():  # so that this cell can be run twice
    dist.init_process_group(os.environ["MANYHANDS_BACKEND"])
nccl = dist.get_backend() == "nccl"  # gloo's reduce-scatter accepts only CPU tensors
device = torch.device(os.environ["MANYHANDS_DEVICE"] if nccl else "cpu")
rank, ranks = dist.get_rank(), dist.get_world_size()
with Ledger(memory=True):  # from here on, freed memory is returned immediately
    torch.ones(1, device=device)

# %% [markdown]
# ## What a rank holds
#
# For each weight, a rank in data parallelism (units 01 and 06) holds the weight itself, its gradient and the optimiser's state, which for Adam consists of two
# moments. In **mixed precision**, weights and gradients take 2 bytes each. The optimiser, however, works on a separate copy of the weights in float32, the
# **master weights**, and both moments are also in float32.
#
# **Predict.** How many bytes does a rank hold for each weight in mixed precision with Adam?

# %%
# Run this cell to make your prediction.
predict("16-bytes", "How many bytes does a rank hold for a weight (Adam, mixed precision)?",
        unit="bytes")

# %%
from manyhands.simulate.sharding import states_bytes, step_bytes

one = states_bytes(parameters=1, ranks=1, stage=0)
print(f"weights {one.weights} + gradients {one.gradients} + optimiser {one.optimizer} "
      f"= {one.total} bytes")

# %%
# Run this cell to compare your prediction with the outcome.
settle("16-bytes", lambda: one.total)

# %% [markdown]
# A network of 7.5 billion weights needs 120 GB on each of 64 GPUs even before the first activation is stored, and all 64 GPUs hold the same 120 GB. **ZeRO**
# (Rajbhandari et al. 2020) gives each rank only a **shard**, which is one $p$-th, of
#
# * the optimiser states in stage 1,
# * also the gradients in stage 2,
# * and also the weights in stage 3.
#
# We write $\psi$ for the size of the weights and give the bytes that a rank sends in a step as a multiple of $\psi$.

# %%
psi = 7_500_000_000
for stage in range(4):
    held = states_bytes(psi, ranks=64, stage=stage)
    sent = step_bytes(psi, ranks=64, stage=stage) / (2 * psi)
    print(f"stage {stage}: {held.weights / 1e9:5.1f} + {held.gradients / 1e9:5.1f} + "
          f"{held.optimizer / 1e9:5.1f} = {held.total / 1e9:6.1f} GB; sent {sent:.2f} psi")

# %% [markdown]
# These are the numbers in figure 1 of the paper. Stage 3 divides everything by 64 and sends half as much again as the others.
#
# ## Flat, padded, cut
#
# A shard is one $p$-th of the numbers, so its border may fall in the middle of a row. For this reason, a tensor is stored as one vector, a **flat parameter**,
# which is padded with zeros until it can be split into $p$ equal parts. Two collectives do the rest. An **all-gather** assembles the whole vector from the
# shards, and a **reduce-scatter** sums whole vectors and leaves each rank its shard of the sum. A reduce-scatter followed by an all-gather is an all-reduce
# (unit 04).
#
# PyTorch 2.13 renamed `all_gather_into_tensor` and `reduce_scatter_tensor` to `all_gather_single` and `reduce_scatter_single`.

# %% tags=["setup"]
# %%px --setup
def flat(tensor):
    return pad(tensor.detach().flatten(), (0, -tensor.numel() % ranks))

def shard_of(vector):
    return vector.chunk(ranks)[rank]

def gather(shard):
    whole = shard.new_empty(ranks * len(shard))
    dist.all_gather_single(whole, shard.detach())
    return whole

def reduce_scatter(vector):
    """Return this rank's shard of the mean over all ranks."""
    shard = vector.new_empty(len(vector) // ranks)
    dist.reduce_scatter_single(shard, vector)
    return shard.div_(ranks)

# %%
# %%px
ten = torch.arange(1.0, 11, device=device).view(2, 5)
print("shard", shard_of(flat(ten)).tolist(), "of the mean of r times it:",
      reduce_scatter(rank * flat(ten)).tolist())

# %% [markdown]
# We train a network of 16 equal layers, whose float64 weights take 32 MiB. Each layer has 511 inputs and 511 outputs, so that padding is needed. A
# step uses 16 rows, four on each rank. `right` holds the weights that a single process computes in two steps with Adam.

# %% tags=["setup"]
# %%px --setup
LAYERS, SIDE, STEPS = 16, 511, 2
psi = LAYERS * SIDE * SIDE * 8
torch.manual_seed(0)  # the same numbers on every rank
xs, ys = torch.randn(2, STEPS, 16, SIDE, dtype=torch.float64).to(device)

def linear(seed, dtype=torch.float64, on=device):
    torch.manual_seed(seed)
    layer = nn.Linear(SIDE, SIDE, bias=False, dtype=torch.float64, device=on)
    return layer.to(dtype)

def network(layers):
    return nn.Sequential(*[part for layer in layers for part in (layer, nn.Tanh())])

def adam(tensors):
    return torch.optim.Adam(tensors, lr=1e-3, fused=True)  # fused: no temporary copies

def backward(net, step, part=rank, parts=ranks, dtype=torch.float64):
    x, y = (of_step[step].chunk(parts)[part].to(dtype) for of_step in (xs, ys))
    mse_loss(net(x), y).backward()

# %% [markdown]
# **Stage 0** is data parallelism. The ranks average whole gradients, and every rank then takes the same optimiser step.

# %% tags=["setup"]
# %%px --setup
def replicated(average=True):
    net = network(map(linear, range(LAYERS)))
    optimiser = adam(net.parameters())

    def step():
        for weight in net.parameters() if average else ():
            dist.all_reduce(weight.grad)
            weight.grad /= ranks
        optimiser.step()
        optimiser.zero_grad()  # sets them to None: their memory is free

    return net, step

# %% [markdown]
# We measure each stage three times, with the network alone, with one backward pass, and with two whole steps. The ledger reports by how much the code in each
# `with` block increases this process's memory. On the CPU, this figure comes from the Linux kernel, and on a GPU from PyTorch.

# %% tags=["setup"]
# %%px --setup
def measure(make):
    """Return three peaks of memory in psi (the network, with a backward pass, with two
    steps), the psi that a step sends, and the distance to a single process's weights."""
    peaks = []
    for work in ("network", "backward", "steps"):
        gc.collect()
        dist.barrier()
        with Ledger(memory=True) as ledger:
            net, step = make()
            for i in range({"network": 0, "backward": 1, "steps": STEPS}[work]):
                backward(net, i)
                if work == "steps":
                    step()
        peaks.append(ledger.peak_bytes / psi)
        if work != "steps":
            del net, step
    apart = max((layer.weight - one).abs().max().item()
                for layer, one in zip(net[::2], right))
    return peaks, ledger.bytes_sent / psi / STEPS, apart

# %% tags=["setup"]
# %%px --setup
def one_process():
    net, step = replicated(average=False)
    for i in range(STEPS):
        backward(net, i, part=0, parts=1)
        step()
    return [weight.detach() for weight in net.parameters()]

right, found = one_process(), {}

def show(name):
    _, sent, apart = found[name]
    if rank == 0:
        print(f"{name}: sent {sent:.2f} psi a step; "
              f"as one process to 1e-13: {apart < 1e-13}")

# %%
# %%px
found["stage 0"] = measure(replicated)
show("stage 0")

# %% [markdown]
# In a ring all-reduce on $p$ ranks, each rank sends $2 (p-1)/p \; \psi$, which is $1.5 \psi$ on four ranks.
#
# ## Stage 1: the optimiser in shards
#
# After the backward pass, each rank needs only its shard of the mean gradient, which a reduce-scatter provides. The rank then takes Adam's step on its shard of
# the weights, with its shard of the moments. An all-gather then brings the new weights to all ranks.
#
# <details><summary>Does it matter where a vector is cut?</summary>
#
# Since Adam treats every number separately, it does not matter where a vector is cut. In contrast, LARS and LAMB (unit 17) need the norm of a whole layer, so
# their ranks would have to communicate.
# </details>
#
# **Stage 2** uses the same code at a different moment. A **hook** runs as soon as autograd has accumulated the gradient of a weight. The hook reduce-scatters
# this gradient and frees it.

# %% tags=["setup"]
# %%px --setup
class Flat:
    """Keeps a layer's weight in a flat vector, of which `shard` is this rank's part."""
    def __init__(self, weight):
        self.weight, self.vector = weight, flat(weight)
        weight.data = self.vector[:weight.numel()].view_as(weight)
        self.shard = shard_of(self.vector)

    def hand_over(self, _=None):
        self.shard.grad = reduce_scatter(flat(self.weight.grad))
        self.weight.grad = None

# %% tags=["setup"]
# %%px --setup
def zero(stage):
    net = network(map(linear, range(LAYERS)))
    flats = [Flat(weight) for weight in net.parameters()]
    optimiser = adam([each.shard for each in flats])
    for each in flats if stage == 2 else ():
        each.weight.register_post_accumulate_grad_hook(each.hand_over)

    def step():
        for each in flats if stage == 1 else ():
            each.hand_over()
        optimiser.step()
        optimiser.zero_grad()
        for each in flats:
            each.vector.copy_(gather(each.shard))

    return net, step

# %% [markdown]
# **Predict.** If everything has the same type, a rank in stage 0 holds $\psi$ of weights, $\psi$ of gradients and $2 \psi$ of moments. How much of these
# $4 \psi$ does a rank still hold in stage 1 on four ranks? Does stage 2 send less than stages 0 and 1, the same amount, or more?

# %%
# Run this cell to make your prediction.
predict("16-one", "How much of 4 psi does each of four ranks hold in stage 1?",
        ["1 psi", "1.75 psi", "2.5 psi", "3.5 psi"])
predict("16-two", "How much does a rank send in stage 2, compared with stages 0 and 1?",
        ["less", "as much", "more"])

# %%
# %%px
found["stage 1"] = measure(lambda: zero(stage=1))
show("stage 1")
found["stage 2"] = measure(lambda: zero(stage=2))
show("stage 2")

# %%
# Run this cell to compare your prediction with the outcome.
def nearest(name, choices=("1 psi", "1.75 psi", "2.5 psi", "3.5 psi")):
    peak = cluster.pull("found")[0][name][0][-1]
    return min(choices, key=lambda choice: abs(float(choice.split()[0]) - peak))

def compared(first, second):
    sent = cluster.pull("found")[0]
    first, second = (round(sent[name][1], 2) for name in (first, second))
    return "less" if first < second else "more" if first > second else "as much"

settle("16-one", lambda: nearest("stage 1"))
settle("16-two", lambda: compared("stage 2", "stage 0"))

# %% [markdown]
# <details><summary>Why?</summary>
#
# A ring all-reduce *is* a reduce-scatter followed by an all-gather. Stage 0 gathers gradients, whereas stages 1 and 2 gather weights of the same size, so all
# three send $2 (p-1)/p \; \psi$. Of weights, gradients and moments, stage 1 keeps $(1 + 1 + 2/4) \psi$. Stage 2 keeps $(1 + 1/4 + 2/4) \psi$ and, for a moment,
# the whole gradient of the layer at work.
# </details>
#
# As long as a step has only one micro-batch, stages 1 and 2 cost nothing but code. With several micro-batches, however, stage 2 reduce-scatters gradients after
# *each* of them, whereas stage 1 does so only once.
#
# ## Stage 3: gather, use, free
#
# In stage 3, no rank keeps whole weights. A layer gathers its weight just before using it and frees it immediately afterwards. The backward pass needs the
# weight again and gathers it a second time. It also reduce-scatters the gradient, because the backward of an all-gather is a reduce-scatter (unit 11).

# %% tags=["setup"]
# %%px --setup
def square(vector):
    return vector[:SIDE * SIDE].view(SIDE, SIDE)

class GatherUseFree(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shard):
        ctx.save_for_backward(x, shard)  # the shard, not the whole weight
        return x @ square(gather(shard)).T

    @staticmethod
    def backward(ctx, gradient):
        x, shard = ctx.saved_tensors
        to_x = gradient @ square(gather(shard))  # gathered again
        return to_x, reduce_scatter(flat(gradient.T @ x))

# %% tags=["setup"]
# %%px --setup
class Sharded(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.shard = nn.Parameter(shard_of(flat(layer.weight)).clone())

    def forward(self, x):
        return GatherUseFree.apply(x, self.shard)

    @property
    def weight(self):  # the whole weight, gathered on request
        return square(gather(self.shard))

def zero3():
    net = network(Sharded(linear(seed)) for seed in range(LAYERS))
    optimiser = adam(net.parameters())

    def step():
        optimiser.step()
        optimiser.zero_grad()

    return net, step

# %% [markdown]
# **Predict.** How much does a rank send in a step of stage 3, as a multiple of what it sends in stage 0?

# %%
# Run this cell to make your prediction.
predict("16-three", "By what factor does stage 3 send more than stage 0 on four ranks?",
        unit="times", within=0.02)

# %%
# %%px
found["stage 3"] = measure(zero3)
show("stage 3")

# %%
# Run this cell to compare your prediction with the outcome.
def ratio():
    sent = cluster.pull("found")[0]
    return sent["stage 3"][1] / sent["stage 0"][1]

settle("16-three", ratio)

# %% [markdown]
# <details><summary>Why?</summary>
#
# Two all-gathers of the weights and one reduce-scatter of the gradients send $3 (p-1)/p \; \psi$ instead of $2 (p-1)/p \; \psi$. Nothing needs to be gathered
# after the step, because the next forward pass gathers the weights anyway.
# </details>
#
# The following table and chart show the rank that used the most memory. The theory leaves out the layer that is being computed, whose full weight and gradient exist for a moment, both in the process and in gloo's buffers.

# %% tags=["measured"]
from manyhands.plots.held_by_rank import stacked, table

of_ranks, measured, theory = cluster.pull("found"), {}, {}
for stage in range(4):
    name = f"stage {stage}"
    held = max((of_rank[name][0] for of_rank in of_ranks), key=lambda peaks: peaks[-1])
    measured[name] = [held[0], held[1] - held[0], held[2] - held[1]]
    parts = states_bytes(100, 4, stage, weight=1, gradient=1, optimizer=2)
    theory[name] = [part / 100 for part in parts[:3]]
print(table(measured, theory))
stacked(measured, theory)

# %% [markdown]
# > **On GPUs.** With `op=dist.ReduceOp.AVG`, NCCL's reduce-scatter computes the mean (so does gloo's in PyTorch 2.13 and 2.15). gloo builds a reduce-scatter from a whole all-reduce,
# > so it really sends twice the bytes of the ledger's ring model, whereas NCCL does not. The gather for the next layer runs on a separate stream while the current layer computes, so the price of stage 3
# > is hidden where computing takes longer than sending. Read the memory peak from `torch.cuda.max_memory_allocated()`.

# %% [markdown]
# ## Four traps
#
# **Sum or mean.** A reduce-scatter sums the gradients, so the mean requires a division by $p$.
#
# **Predict.** Suppose that you forget this division on four ranks. How long is Adam's first step, compared with the correct step?

# %%
# Run this cell to make your prediction.
predict("16-sum", "How far does Adam's first step go with the sum of four ranks?",
        ["4 times as far", "as far", "a quarter as far"])

# %%
# %%px
def moved(optimiser_class, factor):
    weight = torch.ones(3, dtype=torch.float64, requires_grad=True)
    weight.grad = factor * torch.tensor([0.01, -0.2, 3.0], dtype=torch.float64)
    optimiser_class([weight], lr=0.1).step()
    return (weight.detach() - 1).abs()

apart = {name: (moved(kind, 4) / moved(kind, 1)).max().item()
         for name, kind in (("SGD", torch.optim.SGD), ("Adam", torch.optim.Adam))}
if rank == 0:
    for name, times in apart.items():
        print(f"{name}: with the sum the first step is {times:.3f} times as long")

# %%
# Run this cell to compare your prediction with the outcome.
def how_far():
    times = round(cluster.pull("apart")[0]["Adam"], 2)
    return {4: "4 times as far", 1: "as far", 0.25: "a quarter as far"}[times]

settle("16-sum", how_far)

# %% [markdown]
# Adam divides each gradient by its own size, which hides the mistake. The factor matters only when you clip, use the old form of weight decay (`weight_decay`
# of Adam, not of AdamW) or switch to SGD.
#
# **The norm for clipping.** If each rank calls `clip_grad_norm_` on its shard, each rank scales by a different number, and the parts no longer belong to one
# gradient. Therefore, the squares must be added up over the ranks. **Padding** adds nothing as long as it is zero, which `torch.empty` does not guarantee.
# A *mean* over a padded vector also divides by too large a number.

# %%
# %%px
shard = shard_of(flat(ten))
squares = shard.square().sum()
dist.all_reduce(squares)
print(f"this shard's norm {shard.norm():.3f}, over ranks {squares.sqrt():.3f}, "
      f"of the whole {ten.norm():.3f}")

# %% [markdown]
# **Master weights.** bf16 keeps 8 significant bits of a number. If a step is too small to change them, it is lost, however often you repeat it.
#
# **Predict.** You add 0.001 to a bf16 weight of 1 a hundred times. What is its value then?

# %%
# Run this cell to make your prediction.
predict("16-lost", "What is a bf16 weight of 1 after 0.001 was added 100 times?",
        within=0.005)

# %%
# %%px
working, master = torch.ones(1, dtype=torch.bfloat16), torch.ones(1)
for _ in range(100):
    working += 0.001
    master += 0.001
lost = working.item()
if rank == 0:
    print(f"bf16 alone {lost}, float32 {master.item():.4f}, "
          f"its bf16 copy {master.bfloat16().item():.4f}")

# %%
# Run this cell to compare your prediction with the outcome.
settle("16-lost", lambda: cluster.pull("lost")[0])

# %% [markdown]
# Since bf16 loses small steps, the optimiser's shard stays in float32. The ranks gather only a bf16 copy of it, which also halves the bytes. Sharded master
# weights are cheap, since each rank holds only $4/p$ bytes for each weight.
#
# ## The library: FSDP2
#
# `fully_shard(module)` applies stage 3 to the parameters of a module. It gathers all of them before the module's forward and backward passes and
# reduce-scatters their gradients. You call it on each block and then on the root for the remaining parameters. `fully_shard` averages over the ranks itself.
# Parameters become `DTensor`s, which know how they are split. Unlike in the first version of FSDP, they are not flat but split along their first dimension.
# `clip_grad_norm_` recognises them and adds up the squares over the ranks.

# %% tags=["setup"]
# %%px --setup
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

mesh = init_device_mesh(device.type, (ranks,))  # without one, fully_shard looks for GPUs

class Block(nn.Module):
    def __init__(self, seed, again=False, on=device):
        super().__init__()
        self.layer, self.again = linear(seed, torch.float32, on), again

    def forward(self, x):
        if self.again:
            return checkpoint(lambda x: self.layer(x).tanh(), x, use_reentrant=False)
        return self.layer(x).tanh()

def blocks(count=LAYERS, **options):
    return nn.Sequential(*[Block(seed, **options) for seed in range(count)])

def fsdp(net=None, root_only=False, mesh=mesh, **options):
    net = blocks() if net is None else net
    for block in net if not root_only else ():
        fully_shard(block, mesh=mesh, **options)
    return fully_shard(net, mesh=mesh, **options)

# %%
# %%px
net = fsdp()
weight = net[0].layer.weight
if rank == 0:
    print(type(net).__name__, type(weight).__name__, weight.placements, tuple(weight.shape))
print("of which here:", tuple(weight.to_local().shape))
norms = []
for each, part, parts in ((net, rank, ranks), (blocks(), 0, 1)):
    backward(each, 0, part, parts, dtype=torch.float32)
    norm = nn.utils.clip_grad_norm_(each.parameters(), max_norm=1.0)
    norms.append(getattr(norm, "full_tensor", lambda: norm)().item())
if rank == 0:
    print("norm as one process to 1e-5:", abs(norms[0] / norms[1] - 1) < 1e-5)

# %% [markdown]
# **Predict.** Each gather assembles all parameters of one `fully_shard` call. How does a rank's peak memory change if you call `fully_shard` on the root only?
#
# If you give `fully_shard` a mesh of two dimensions, the first one is for replicas and the second one for shards. Gradients are then reduce-scattered along the
# second dimension, and the shards are all-reduced along the first. This is **HSDP**, *hybrid sharded data parallel*. Does this additional all-reduce mean that
# a rank sends more on 2 x 2 ranks than with FSDP on all four?

# %%
# Run this cell to make your prediction.
predict("16-root", "How high is the peak with the root only, against each block?",
        ["lower", "about the same", "at least twice as high"])
predict("16-hsdp", "How much does a rank send with 2 replicas of 2 shards, against "
        "4 shards?",
        ["less", "as much", "more"])

# %% tags=["setup"]
# %%px --setup
plane = init_device_mesh(device.type, (2, 2), mesh_dim_names=("replica", "shard"))
bf16 = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
ways = {"DDP": lambda: DistributedDataParallel(blocks()),
        "DDP, ZeroRedundancy": lambda: DistributedDataParallel(blocks()),
        "each block": fsdp,
        "no reshard": lambda: fsdp(reshard_after_forward=False),
        "root only": lambda: fsdp(root_only=True),
        "bf16, reduce fp32": lambda: fsdp(mp_policy=bf16),
        "checkpointing": lambda: fsdp(blocks(again=True)),
        "HSDP, 2 x 2": lambda: fsdp(mesh=plane)}

def optimiser_of(name, net):
    if name == "DDP, ZeroRedundancy":
        return ZeroRedundancyOptimizer(net.parameters(), torch.optim.Adam, lr=1e-3,
                                       fused=True)
    return adam(net.parameters())

# %% tags=["setup"]
# %%px --setup
def states_of(optimiser):
    """Return the size (psi) of the optimiser's moments on this rank, without steps."""
    states = getattr(optimiser, "optim", optimiser).state.values()
    kept = [tensor for state in states for tensor in state.values() if tensor.dim()]
    return sum(getattr(t, "to_local", lambda: t)().nbytes for t in kept) / (psi / 2)

def trained(name):
    """Train for two steps; return the net, its peak, states, calls and bytes."""
    gc.collect()
    dist.barrier()
    with Ledger(memory=True) as whole:
        net = ways[name]()
        optimiser = optimiser_of(name, net)
        with Ledger() as ledger:
            for i in range(STEPS):
                backward(net, i, dtype=torch.float32)
                optimiser.step()
                optimiser.zero_grad()
    return (net, whole.peak_bytes / (psi / 2), states_of(optimiser),
            {entry.call: ledger.count(entry.call) for entry in ledger.entries},
            ledger.bytes_sent / (psi / 2) / STEPS)

# %%
# %%px
library = {}

def keep(name):
    net, *counted = trained(name)
    weights = [weight.detach() for weight in net.parameters()]
    apart = max((getattr(weight, "full_tensor", lambda: weight)() - one).abs().max().item()
                for weight, one in zip(weights, right))
    library[name] = *counted, apart

trained("bf16, reduce fp32")  # not counted, because the first run loads libraries
for name in ("DDP", "DDP, ZeroRedundancy", "each block", "no reshard"):
    keep(name)

# %%
# %%px
for name in ("root only", "bf16, reduce fp32", "checkpointing", "HSDP, 2 x 2"):
    keep(name)

# %%
of_ranks = cluster.pull("library")
print(f"{'':<20}states  sent   as one to  calls in two steps")
for name, (_, states, calls, _, apart) in of_ranks[0].items():
    sent = sum(of_rank[name][3] for of_rank in of_ranks) / 4
    limit = next(limit for limit in (1e-5, 1e-2, 1) if apart < limit)
    print(f"{name:<20}{states:>6.2f}{sent:>6.2f}{limit:>12.0e} ",
          ", ".join(f"{count} {call}" for call, count in calls.items()))

# %% tags=["measured"]
peaks = {name: max(of_rank[name][0] for of_rank in of_ranks) for name in of_ranks[0]}
for name, peak in peaks.items():
    print(f"{name:<20}{peak:>6.2f} psi at the peak, weights included")

# %%
# Run this cell to compare your prediction with the outcome.
def root_only():
    times = peaks["root only"] / peaks["each block"]
    return ("lower" if times < 0.8 else "about the same" if times < 2 else
            "at least twice as high")

def hsdp():
    four, two_by_two = (round(of_ranks[0][name][3], 1)
                        for name in ("each block", "HSDP, 2 x 2"))
    return ("less" if two_by_two < four else "more" if two_by_two > four else "as much")

settle("16-root", root_only)
settle("16-hsdp", hsdp)

# %% [markdown]
# <details><summary>How to read it</summary>
#
# * *DDP* holds $5 \psi$ rather than $4 \psi$, because its buckets are a second copy of the gradients unless you pass `gradient_as_bucket_view=True`.
# * *ZeroRedundancyOptimizer* distributes whole parameters, with their moments. It all-reduces gradients as DDP does and then broadcasts the new weights, so it
#   sends $2.25 \psi$, whereas ZeRO-1 needs only $1.5 \psi$. To save its state, all ranks call `consolidate_state_dict(to=0)`, which gathers the moments on rank
#   0, and then rank 0 saves them.
# * *Each block* is stage 3, in which a few layers are whole at a time. Calling `full_tensor()` or requesting a full state dict performs all-gathers, so all
#   ranks must take part, even if only rank 0 saves the result.
# * *No reshard* (`reshard_after_forward=False`) keeps the gathered weights from the forward to the backward pass, which saves one gather. Its traffic and its
#   memory are therefore those of stage 2.
# * *Root only* holds all weights, all gradients and a copy of all gradients at the same time. (By default, a root keeps its weights from the forward
#   to the backward pass.)
# * *bf16* halves the bytes that are gathered, while gradients are summed in float32 and Adam works on float32 shards. After two steps, the weights are off by
#   less than 0.01 but by more than $10^{-5}$.
# * *Checkpointing* runs a block's forward pass again during its backward pass. Since the block's weights are whole at that time, no third gather is needed.
# * *HSDP* keeps half of all states on each rank, so its optimiser holds twice as much as with four shards. In return, its gathers and scatters involve only two
#   ranks.
#
# `offload_policy=CPUOffloadPolicy()` keeps the shards of weights, gradients and moments in the host's memory. A shard of the weights is copied to the GPU
# before each gather, a shard of the gradients is copied back after backward, and the optimiser's step runs on the CPU.
# </details>
#
# ## FSDP2 in a real run
#
# **Slow links between nodes.** HSDP is a common choice for a few hundred GPUs. Suppose that ranks 0 and 1 share one node, and ranks 2 and 3 the other. Which
# bytes leave a node?

# %%
# %%px
with Ledger() as ledger:
    backward(fsdp(mesh=plane), 0, dtype=torch.float32)
group_of = {entry.call: entry.ranks for entry in ledger.entries}
if rank == 0:
    for call, row in ledger.by_call().items():
        print(f"{call:<27} among ranks {group_of[call.removeprefix('dist.')]}: "
              f"{row.bytes_sent / (psi / 2):.2f} psi")

# %% [markdown]
# Only the all-reduce crosses the border between the nodes, so $2 \times 0.5\,\psi$ leaves each node. FSDP's ring through all four ranks has one link out of
# each node, which carries $2.25\,\psi$.
#
# <details><summary>More hops, and several micro-batches</summary>
#
# The number of hops in FSDP's ring grows with the total number of ranks, whereas HSDP's gathers need only the hops within one node, however many nodes there
# are. With several micro-batches, `set_requires_all_reduce(False)` on all but the last one postpones the all-reduce to the end.
# </details>
#
# **Several micro-batches.** `fully_shard` gathers twice and scatters once for *each* micro-batch. With `set_requires_gradient_sync(False)`, gradients are
# accumulated without being scattered (compare DDP's `no_sync`, unit 06). With `set_reshard_after_backward(False)`, the weights also stay whole after a
# backward pass, so the next forward pass need not gather them. Both settings are switched back for the last micro-batch.

# %%
# %%px
def accumulate(net, scatter_last, keep):
    """Accumulate the mean gradient of four micro-batches."""
    x, y = (of_step[0].chunk(ranks)[rank].float().chunk(4) for of_step in (xs, ys))
    for i in range(4):
        net.set_requires_gradient_sync(i == 3 or not scatter_last)
        net.set_reshard_after_backward(i == 3 or not keep)
        (mse_loss(net(x[i]), y[i]) / 4).backward()

micro = {}
for name, switches in {"neither": (False, False), "scatter at the last": (True, False),
                       "and keep the weights": (True, True)}.items():
    gc.collect()
    dist.barrier()
    with Ledger(memory=True) as ledger:
        net = fsdp()
        accumulate(net, *switches)
    micro[name] = ledger.peak_bytes / (psi / 2)
    del net
    if rank == 0:
        print(f"{name:<21} sent {ledger.bytes_sent / (psi / 2):.2f} psi")

# %% tags=["measured"]
for name, peak in cluster.pull("micro")[0].items():
    print(f"{name:<21} {peak:.2f} psi at the peak, weights included")

# %% [markdown]
# Sending fewer bytes costs memory, because each rank keeps whole gradients and, with the second setting, whole weights, too. Since a pipeline needs many
# micro-batches, it is usually combined with ZeRO-1 rather than with stage 3.
#
# **Prefetch.** A gather is hidden only if it runs while a block computes, so it must start early enough. The next cell records the order of gathers and
# computations for four blocks:

# %%
# %%px
def in_order(net):
    seen = []
    def used(i, layer, x, y):
        seen.append(f"forward{i}")
        y.register_hook(lambda _: seen.append(f"backward{i}"))
    for i, block in enumerate(net):
        block.layer.register_forward_hook(lambda *given, i=i: used(i, *given))
    with Ledger(on_entry=lambda entry: seen.append(entry.call.split("_")[1])):
        backward(net, 0, dtype=torch.float32)
    return " ".join(seen)

default, early = fsdp(blocks(4)), fsdp(blocks(4))
for block, following in zip(early, list(early)[1:]):
    block.set_modules_to_forward_prefetch([following])
for name, net in (("default", default), ("forward prefetch", early)):
    seen = in_order(net)
    if rank == 0:
        print(f"{name}: {seen}")

# %% [markdown]
# In the backward pass, the gather for the next block starts before the current block computes. In the forward pass, it is launched only after the current
# block's computation is launched. On a GPU, the gather and the computation then run at the same time, so nothing is lost as long as Python runs ahead of the
# device. Where Python is too slow for this, `set_modules_to_forward_prefetch` starts the gathers of the named blocks earlier. If you name two or more blocks,
# more gathers overlap with computation, but more blocks are whole at the same time.
#
# **No rank builds the whole network.** A network that does not fit on one rank is built on the `meta` device, where a tensor has a shape but no memory. The
# network is then split, and each rank allocates and fills its shards. Here, rank 0 holds all weights and broadcasts them, so the peak below is rank 1's. If the
# weights do not fit on any rank, each rank reads only its own shards from a sharded checkpoint (unit 18).

# %%
# %%px
from torch.distributed.checkpoint.state_dict import (StateDictOptions,
                                                     set_model_state_dict)

def from_meta(weights):
    net = fsdp(blocks(on="meta"))
    net.to_empty(device=device)
    set_model_state_dict(net, weights, options=StateDictOptions(
        full_state_dict=True, broadcast_from_rank0=True))
    return net

file = blocks().state_dict() if rank == 0 else {}
made = {}
for name, make in {"whole, then cut": fsdp, "meta": lambda: from_meta(file)}.items():
    gc.collect()
    dist.barrier()
    with Ledger(memory=True) as ledger:
        net = make()
    made[name] = ledger.peak_bytes / (psi / 2)
equal = all(torch.equal(weight.full_tensor(), one)
            for weight, one in zip(net.parameters(), blocks().parameters()))
if rank == 0:
    print("each shard is that of rank 0's weights:", equal)

# %% tags=["measured"]
for name, peak in cluster.pull("made")[1].items():
    print(f"rank 1, {name}: {peak:.2f} psi at the peak")

# %% [markdown]
# <details><summary>What is not filled, and what is not broadcast</summary>
#
# `set_model_state_dict` fills only what the state dict contains. Buffers that it does not contain (`persistent=False`), for example a table of rotary
# positions, must be computed again, because `to_empty` leaves whatever the memory held before. DDP broadcasts rank 0's weights when it wraps a network, whereas
# `fully_shard` does not, so each rank cuts its shard from its own network.
# </details>
#
# **bf16, byte by byte.** Which of the 16 bytes per weight does FSDP2 hold? We compare its bf16 policy with a network that was cast to bf16 before it was split:

# %%
# %%px
def held(net, dtype):
    """Return the bytes per weight, over all ranks, of weights, gradients and moments."""
    optimiser = adam(net.parameters())
    x, y = (of_step[0].chunk(ranks)[rank].to(dtype) for of_step in (xs, ys))
    mse_loss(net(x), y.to(dtype)).backward()
    optimiser.step()
    weights = list(net.parameters())
    moments = [tensor for state in optimiser.state.values()
               for tensor in state.values() if tensor.dim()]
    return [round(sum(one.to_local().nbytes for one in tensors) * ranks / (psi / 8))
            for tensors in (weights, [weight.grad for weight in weights], moments)]

for name, net in {"bf16 policy": fsdp(mp_policy=bf16),
                  "net.bfloat16()": fsdp(blocks().bfloat16())}.items():
    counted = held(net, torch.bfloat16)
    if rank == 0:
        print(f"{name:<15}", *counted, "bytes for weights, gradients, moments")

# %% [markdown]
# With the policy, a weight takes 4 + 4 + 8 bytes. ZeRO counts 2 + 2 + 12, but the sum is the same. The float32 shard *is* the master copy, and a bf16
# copy exists only while its block computes, which saves 2 bytes. However, the shard of a gradient is also float32, which takes 2 bytes more. The cast network
# needs half of these bytes, but every step is rounded to bf16.
#
# ## One network, every way
#
# Units 06 and 14 to 16 divide the work in four ways. We try all of them on the same network, a small GPT with 4 blocks, 4 heads and 220,544 weights in float64.
# A step of Adam takes 8 rows of 64 characters of a text, and between the blocks a character is a vector of 64 numbers. `manyhands.gpt.ways` trains the GPT on
# your four ranks in each of these ways, starting from the same weights. An `x` in a way's name means a mesh of two axes with 2 x 2 ranks. If a mesh has three
# axes, its data axis has only one rank here.
#
# **Predict.** Which sends the most in a step: DDP, FSDP2, tensor parallelism or a pipeline? Compute the amounts before you choose. The weights $\psi$ take 1.76
# MB, and the activations between two blocks take 0.26 MB.

# %%
# Run this cell to make your prediction.
predict("16-gpt-sends",
        "Which way sends most in a step (GPT of 1.76 MB, activations of 0.26 MB)?",
        ["DDP", "FSDP2", "tensor, by hand", "pipeline"])

# %%
# %%px
from manyhands.gpt import GPT, text, write
from manyhands.gpt.ways import WAYS, distance, tolerance, train

gpts = {way: train(way, steps=3) for way in WAYS if " x " not in way}

# %%
# %%px
gpts |= {way: train(way, steps=3) for way in WAYS if " x " in way}
one = gpts["one process"].weights
as_one = {way: distance(gpt.weights, one) < tolerance(3) for way, gpt in gpts.items()}
if rank == 0:
    print(f"weights may be apart by {tolerance(3):.1g}")

# %%
equal, gpt_sent = cluster.pull("as_one"), cluster.pull(
    "{way: gpt.sent_bytes for way, gpt in gpts.items()}")
print(f"{'':<25}as one process   bytes that each rank sends in a step")
for way in gpt_sent[0]:
    print(f"{way:<25}{all(of_rank[way] for of_rank in equal)!s:<15}",
          *(f"{of_rank[way]:>10,}" for of_rank in gpt_sent))

# %%
# Run this cell to compare your prediction with the outcome.
def sends_most(choices=("DDP", "FSDP2", "tensor, by hand", "pipeline")):
    return max(choices, key=lambda way: sum(of_rank[way] for of_rank in gpt_sent))

settle("16-gpt-sends", sends_most)

# %% [markdown]
# <details><summary>Why?</summary>
#
# DDP sends $1.5 \psi$. FSDP2 sends 2.25 times the size of its blocks and 1.5 times the size of the rest. Tensor parallelism performs four all-reduces of 0.26
# MB in each of four blocks, and each all-reduce sends 1.5 times its size. Because the network has few weights and a step has many characters, activations weigh
# more here. A middle stage of the pipeline sends activations forward and their gradients back, while each of the two stages at the ends sends in only one
# direction. ZeRO-1 here is `ZeroRedundancyOptimizer`, which distributes whole parameters, so the ranks send different amounts.
# </details>

# %% tags=["measured"]
quickest = cluster.pull("{way: min(gpt.seconds) for way, gpt in gpts.items()}")
for way in quickest[0]:
    seconds = max(of_rank[way] for of_rank in quickest)
    print(f"{way:<25}{8 * 64 / seconds:>7,.0f} characters a second")

# %% [markdown]
# Here, all ranks share your processors, so the times might rank differently on four GPUs. However, each way gives the same network, which can then be
# used anywhere. Next, a pipeline of four stages trains the GPT for 100 steps, and a plain `GPT` loads the weights.
#
# **Predict.** The GPT has read 51,200 characters of English. What does it write?

# %%
# Run this cell to make your prediction.
predict("16-gpt-writes",
        "What does a small GPT write after 100 steps if it takes the likeliest letter?",
        ["no English words", "one word again and again", "several words"])

# %%
# %%px
trained_gpt = train("pipeline", steps=100)
gpt = GPT().to(device)
gpt.load_state_dict(trained_gpt.weights)
written = write(gpt, "Each rank ", 70)
words = set(written.split()[2:-1])  # added words; the last may be incomplete
if rank == 0:
    print(f"loss {trained_gpt.losses[0]:.2f}, then {trained_gpt.losses[-1]:.2f}")
    print(written)

# %%
# Run this cell to compare your prediction with the outcome.
def writes():
    words, of_text = cluster.pull("words, words & set(text().split())")[0]
    if not of_text:
        return "no English words"
    return "one word again and again" if len(words) == 1 else "several words"

settle("16-gpt-writes", writes)

# %% [markdown]
# <details><summary>Why?</summary>
#
# A loss of 4.85 corresponds to a blind guess among 128 characters. The GPT has learnt which letter follows which, for example that a blank is followed by `t`,
# then `h`, `e` and a blank. Because it always takes the likeliest letter, it soon repeats itself.
# </details>
#
# ## When FSDP, when tensor parallel, when a pipeline
#
# FSDP, tensor parallelism and pipelines all divide weights, gradients and moments by $p$, but they send different data. A block of a transformer of width $h$
# has about $12 h^2$ weights. We take a network of 36 such blocks of width 4096 in bf16 on 8 ranks. What does a rank send in a step of $T$ tokens in total?
#
# * FSDP sends weights and gradients, as above.
# * Tensor parallelism (unit 15) performs 4 all-reduces (6 with recomputation) in each block, each of $T h$ activations.
# * A pipeline (unit 14) sends $T h$ numbers forward and as many back at each border between stages.
#
# **Predict.** The batch is doubled. Which of the three methods sends the same amount as before?

# %%
# Run this cell to make your prediction.
predict("16-doubled", "Which one sends as much as before if a step has twice the tokens?",
        ["FSDP", "tensor parallel", "a pipeline"])

# %%
from manyhands.simulate.pipeline import bubble

def sent_gb(tokens, width=4096, count=36, p=8):
    activations = tokens * width * 2  # bytes in bf16
    return {"FSDP": step_bytes(12 * width**2 * count, p, stage=3) / 1e9,
            "tensor parallel": 4 * count * 2 * (p - 1) / p * activations / 1e9,
            "a pipeline": 2 * activations / 1e9}

for tokens in (4096, 8192, 16384, 65536):
    print(f"{tokens:>6} tokens:", ", ".join(f"{name} {gb:.2f} GB"
                                            for name, gb in sent_gb(tokens).items()))
for micro in (8, 16, 32):
    print(f"8 stages, {micro:>2} micro-batches: a bubble of {bubble(8, micro):.2f}")

# %%
# Run this cell to compare your prediction with the outcome.
def unmoved():
    once, twice = sent_gb(8192), sent_gb(16384)
    (name,) = (name for name in once if once[name] == twice[name])
    return name

settle("16-doubled", unmoved)

# %% [markdown]
# A pipeline sends by far the least, but the price is its bubble. FSDP's bytes do not depend on the batch, so with many tokens they can be hidden behind the
# computation. The bytes of tensor parallelism grow with the batch, and a rank waits for each all-reduce.
#
# **A page to keep.**
#
# | what you have | take | it costs |
# |---|---|---|
# | a network that fits with all its states | data parallel, DDP | $2 (p-1)/p \; \psi$, hidden behind the backward pass |
# | a network that fits, but not with Adam's states | ZeRO-1 or 2; `reshard_after_forward=False` | the same bytes, more code |
# | a network that does not fit, and many tokens on each rank | FSDP on each block | half as much traffic again |
# | the same, with slow links between nodes | HSDP: FSDP on $s$ ranks with fast links, replicated $r$ times | memory is divided by $s$ only; $3 (s-1)/s \; \psi$ inside, and $2 (r-1)/r \; \psi / s$ across |
# | a layer that is too large, or less than one row for each rank | tensor parallel, inside an NVLink domain (unit 15) | 4 all-reduces of activations in each block |
# | slow links, and a batch that can be split into many micro-batches | a pipeline, across slow links | $(S-1)/(M+S-1)$ of the time; activations at borders |
# | all of these together | tensor parallel in an NVLink domain, a pipeline across domains, data parallel or ZeRO-1 around them | three kinds of groups, one mesh |
# | activations that do not fit | recomputation, smaller micro-batches (sharding states does not help) | a third more time if all is recomputed, far less if it is selective (unit 14) |
#
# **The three most common mistakes.** The first is to call `fully_shard` on the root only. The second is to create the optimiser *before* `fully_shard`, because
# it would then hold the old, whole parameters. The third is to mistake the norm, mean or checkpoint of one rank's shard for the whole.
#
# ## Summary
#
# * With Adam in mixed precision, a rank holds 16 bytes for each weight, of which 12 belong to the optimiser.
# * Stages 1 and 2 send as much as data parallelism, $2 (p-1)/p \; \psi$. Stage 1 divides the optimiser states by $p$, and stage 2 also divides the gradients.
# * Stage 3 sends $3 (p-1)/p \; \psi$ and divides everything by $p$.
# * To stay correct, divide by $p$ once, pad with zeros, sum the squares over the ranks before you clip, and take steps in float32.
# * You call `fully_shard` on each block and then on the root. Its options move you between stage 2 and stage 3, and a mesh of two dimensions gives replicas of
#   shards (HSDP).
# * Use FSDP where each rank has many tokens, tensor parallelism where a layer is too large, and a pipeline where links are slow.
#
# **Now the lab:** write the three stages, and let the checks measure them. Unit 17 then covers the large batch that so many ranks produce.
#
# **References.** S. Rajbhandari et al. 2020, *ZeRO: Memory Optimizations Toward Training Trillion Parameter Models*,
# [arXiv 1910.02054](https://arxiv.org/abs/1910.02054). Y. Zhao et al. 2023, *PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel*,
# [arXiv 2304.11277](https://arxiv.org/abs/2304.11277). P. Micikevicius et al. 2018, *Mixed Precision Training*,
# [arXiv 1710.03740](https://arxiv.org/abs/1710.03740). D. Narayanan et al. 2021, [arXiv 2104.04473](https://arxiv.org/abs/2104.04473) (all of it at once).
# PyTorch, [fully_shard](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html).

# %%
cluster.stop()
