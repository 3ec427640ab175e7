# %% [markdown] unit={"minutes": 70, "ranks": 4, "framework": "torch", "title": "Sharded states: ZeRO, FSDP"}
# # 16 Lab: a model that no rank holds whole
#
# You write the three stages of ZeRO, on vectors that are cut into shards: a step of Adam whose states are sharded, gradients that are cut while backward still runs, and a layer whose
# weights are there only while it computes. At the end you can
#
# * foretell the bytes on a rank at each stage, and how deep a model fits;
# * cut tensors of any size into shards, and put them together again;
# * take a step of Adam with a part of the states on each rank, and have the weights of one process;
# * gather weights, use them and free them, forward and backward;
# * keep small steps from vanishing in bfloat16, and clip by a norm that no rank can see alone.
#
# **Before:** the tutorial of this unit. **Minutes:** 70. **Ranks:** 4. **Points:** 25.
#
# Exercise 1 runs in this kernel, all others on the ranks: their cells begin with `%%px`. A mistake may make the ranks wait for each other: after a few seconds the cluster
# notices, says who waits for whom, and heals. Below each check stands what it says when the answer is right. Every hint has two steps: run `hint(...)` again for the second.
#
# On the ranks every function has a `group`; `None` is the world. Inside a group `dist.get_rank(group)` says which rank this is and `dist.get_world_size(group)` how many there are.
# The checks use groups of 4, 3, 2 ranks and of 1. All ranks of the group call the function.

# %% tags=["setup"]
from manyhands import Cluster, hint
from manyhands.checks import sharded_states as check

cluster = Cluster(nodes=1, ranks_per_node=4, framework="torch")

# %% tags=["setup"]
# %%px --setup
import math
import os
from functools import partial

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import pad

if not dist.is_initialized():  # so that this cell can be run twice
    dist.init_process_group(os.environ["MANYHANDS_BACKEND"])
nccl = dist.get_backend() == "nccl"  # gloo's reduce-scatters take the CPU's tensors only
device = torch.device(os.environ["MANYHANDS_DEVICE"] if nccl else "cpu")

# %% [markdown]
# ## 1. What lies on a rank
#
# Each layer is a flat vector of its own, padded to a multiple of the ranks, and cut into equal shards. Count the bytes on the fullest rank:
#
# * what is **kept**. A whole vector has the layer's parameters, without padding; a shard has its padding too. The optimiser's states are sharded from stage 1 on, the gradients from
#   stage 2, the weights from stage 3;
# * the layer **at work**, on top, where it must be whole for a moment: in stage 2 the gradient of one layer, in stage 3 the weights and the gradient of one layer. These are
#   padded, since the collectives take them so. Count the largest layer.
#
# `weight`, `gradient` and `states` are bytes for each parameter. Activations are not counted. One rank alone is counted by the same rule.
#
# Then: how many equal layers of `size` parameters fit into a device? 0, if not even one does.
#
# *Difficulty ●○○, 10 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# 10 parameters on 4 ranks: 3 in a shard, 12 in the padded vector. What does each layer add, and what is there once, however many layers there are? For more, run
# `hint("16-memory")` in a cell of its own.
# </details>

# %% tags=["solution"] grade_id="memory"
def memory(layers: list, ranks: int, stage: int, weight: int = 2, gradient: int = 2,
           states: int = 12) -> int:
    """The bytes on the fullest rank. layers: the parameters of each layer."""
    ### BEGIN SOLUTION
    kept, work = 0, {2: gradient, 3: weight + gradient}.get(stage, 0)
    for size in layers:
        shard = -(-size // ranks)
        kept += weight * (shard if stage >= 3 else size)
        kept += gradient * (shard if stage >= 2 else size)
        kept += states * (shard if stage >= 1 else size)
    return kept + work * ranks * -(-max(layers) // ranks)
    ### END SOLUTION


def most_layers(size: int, device_bytes: int, ranks: int, stage: int, weight: int = 2,
                gradient: int = 2, states: int = 12) -> int:
    """How many layers of `size` parameters fit into `device_bytes` on each rank."""
    ### BEGIN SOLUTION
    one, two = (memory([size] * count, ranks, stage, weight, gradient, states)
                for count in (1, 2))
    return max(0, 1 + (device_bytes - one) // (two - one))
    ### END SOLUTION

# %% tags=["check"] grade_id="memory-check" points=3
check.memory(memory, most_layers)

# %% [markdown]
# ## 2. Cut, put together, and cut a mean
#
# Three tools for all that follows. Sizes need not divide: the flat vector gets zeros at its end, up to the next multiple of the ranks. All shards are equally long; with 2 numbers on 4
# ranks, two ranks hold padding only.
#
# * `shard` needs no communication. Its result has memory of its own: a view of the whole vector would keep the whole vector alive.
# * `unshard` sends each number once to each other rank, as **one all-gather** of the shards does.
# * `reduce_shard` gives this rank's shard of the **mean** over the ranks' tensors, as **one reduce-scatter** does. The check counts as the textbook's
#   rings do, where an all-reduce sends twice as much. (gloo, which runs here, makes its reduce-scatter of a whole all-reduce; NCCL on GPUs does not.) `reduce_shard` may write into `tensor`.
#
# All keep the type of the numbers: `float64`, `float32` and `bfloat16` come.
#
# `dist.all_gather_single(whole, own, group=group)` and `dist.reduce_scatter_single(own, whole, op, group=group)` fill their first argument; `dist.ReduceOp.AVG` is a mean. In PyTorch before 2.13 the two are called `all_gather_into_tensor` and `reduce_scatter_tensor`.
#
# *Difficulty ●○○, 10 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# `pad(flat, (0, n))` puts n zeros behind a vector. How many, so that `len(flat) + n` is a multiple of the ranks, and 0 if it is one already? For more, `hint("16-shards")`.
# </details>

# %% tags=["solution"] grade_id="shards"
# %%px --setup
def shard(tensor, rank: int, ranks: int):
    """The shard of this rank: flat, padded with zeros, in memory of its own."""
    ### BEGIN SOLUTION
    flat = tensor.detach().flatten()
    return pad(flat, (0, -len(flat) % ranks)).chunk(ranks)[rank].clone()
    ### END SOLUTION


def unshard(own, shape, group=None):
    """The whole tensor of this shape, from the shards `own` of all ranks."""
    ### BEGIN SOLUTION
    whole = own.new_empty(len(own) * dist.get_world_size(group))
    dist.all_gather_single(whole, own, group=group)
    return whole[:math.prod(shape)].view(shape)
    ### END SOLUTION


def reduce_shard(tensor, group=None):
    """The shard of this rank of the mean of all ranks' tensors, padded with zeros."""
    ### BEGIN SOLUTION
    flat, ranks = tensor.detach().flatten(), dist.get_world_size(group)
    whole = pad(flat, (0, -len(flat) % ranks))
    own = whole.new_empty(len(whole) // ranks)
    dist.reduce_scatter_single(own, whole, dist.ReduceOp.AVG, group=group)
    return own
    ### END SOLUTION

# %% tags=["check"] grade_id="shards-check" points=4
check.shards(cluster, "shard", "unshard", "reduce_shard")

# %% [markdown]
# ## 3. Stage 1: Adam on the own shard
#
# All ranks have the same weights, and each has gradients of its own in `p.grad`. One step: this rank's shard of the mean gradient; Adam on this rank's shard of the weights; then the
# new weights of all shards into all parameters, in place. The weights must be those of one process with `torch.optim.Adam` and the mean of the gradients.
#
# * `state` is a dict, empty at the first step, the same one at each later step. Keep in it whatever must live on: Adam's two numbers for each parameter **of the shard**, and, if you like,
#   a copy of the shard. Nothing else may stay in memory. `torch.optim.Adam([own], lr=lr, eps=eps)` may do the arithmetic: it too can live in `state`.
# * Cut each parameter for itself or all of them as one long vector, as you like.
# * The gradients may travel by reduce-scatter or all-reduce, once; the new weights once. What becomes of `p.grad` is up to you.
#
# *Difficulty ●●○, 12 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# With the tools of exercise 2 no collective has to be called here. What must Adam have, besides the gradient, that must be the same object at the next step? For more,
# `hint("16-zero1")`.
# </details>

# %% tags=["solution"] grade_id="zero1"
# %%px --setup
def zero1_step(parameters, state: dict, lr: float, eps: float, group=None) -> None:
    """One step of Adam, with betas of 0.9 and 0.999; the weights are new in place."""
    ### BEGIN SOLUTION
    parameters = list(parameters)
    if not state:
        rank, ranks = dist.get_rank(group), dist.get_world_size(group)
        state["own"] = [nn.Parameter(shard(p, rank, ranks)) for p in parameters]
        state["adam"] = torch.optim.Adam(state["own"], lr=lr, eps=eps)
    for p, own in zip(parameters, state["own"]):
        own.grad = reduce_shard(p.grad, group)
    state["adam"].step()
    for p, own in zip(parameters, state["own"]):
        p.detach().copy_(unshard(own.detach(), p.shape, group))
        own.grad = None
    ### END SOLUTION

# %% tags=["check"] grade_id="zero1-check" points=4
check.zero1(cluster, "zero1_step")

# %% [markdown]
# ## 4. Stage 2: cut gradients while backward runs
#
# Run `loss.backward()`, and do not let whole gradients pile up: as soon as a parameter's gradient is ready, its mean is cut into shards, this rank keeps its own, and the whole
# gradient is freed. Afterwards
#
# * the shards are returned in the order of the parameters, padded as in exercise 2;
# * `p.grad` is `None` for each parameter, and the network is as it was, without hooks: the function is called again with the next loss.
#
# While backward runs, at most two whole gradients may be in memory, so that one may still be under way while the next one is computed; afterwards none. A copy of a gradient is as large as
# the gradient, and a view of one keeps all of it alive. Each gradient is sent once, with the bytes of one reduce-scatter, which are half of an all-reduce's. Each
# parameter gets a gradient, on all ranks in the same order.
#
# `p.register_post_accumulate_grad_hook(f)` calls `f(p)` as soon as `p.grad` is there; `remove()` of what it returns takes the hook away.
#
# *Difficulty ●●○, 10 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# The hook gets the parameter: how does it know where in the list its shard belongs? A `lambda` in a loop sees the loop's last value. For more, `hint("16-zero2")`.
# </details>

# %% tags=["solution"] grade_id="zero2"
# %%px --setup
def zero2_backward(loss, parameters, group=None) -> list:
    """Backward of `loss`: this rank's shard of each parameter's mean gradient."""
    ### BEGIN SOLUTION
    parameters = list(parameters)
    shards = [None] * len(parameters)

    def ready(i, p):
        shards[i] = reduce_shard(p.grad, group)
        p.grad = None

    hooks = [p.register_post_accumulate_grad_hook(partial(ready, i))
             for i, p in enumerate(parameters)]
    loss.backward()
    for hook in hooks:
        hook.remove()
    return shards
    ### END SOLUTION

# %% tags=["check"] grade_id="zero2-check" points=4
check.zero2(cluster, "zero2_backward")

# %% [markdown]
# ## 5. Stage 3: gather, use, free
#
# A layer `y = x @ weight.T` whose weight is there only while it computes. Between forward and backward, and after backward, a rank holds its shard, not the weight: forward gathers it, uses
# it and lets it go; backward does the same again. The check counts everything that is in memory at that time, no matter what keeps it alive. The gradient of the shard is that of the **mean** over the ranks, as if `weight.grad` had been averaged and cut. Each rank has rows `x` of its own, so
# the gradient of `x` is not averaged.
#
# It is called as `GatheredLinear.apply(x, own, shape, group)`. Of `x`, `own`, `shape` and `group`, the last two have no gradient: backward returns `None` for them. Forward sends as much
# as one all-gather of the weight, backward as one all-gather and one reduce-scatter.
#
# *Difficulty ●●●, 12 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# What `ctx` holds lives until backward. Which tensors may it hold, so that the weight dies when forward returns? For more, `hint("16-gather")`.
# </details>

# %% tags=["solution"] grade_id="gather"
# %%px --setup
class GatheredLinear(torch.autograd.Function):
    """x: rows of this rank. own: the shard of a weight of shape (outputs, inputs)."""

    @staticmethod
    def forward(ctx, x, own, shape, group=None):
        ### BEGIN SOLUTION
        ctx.save_for_backward(x, own)
        ctx.shape, ctx.group = shape, group
        return x @ unshard(own, shape, group).T
        ### END SOLUTION

    @staticmethod
    def backward(ctx, gradient):
        ### BEGIN SOLUTION
        x, own = ctx.saved_tensors
        of_x = gradient @ unshard(own, ctx.shape, ctx.group)
        return of_x, reduce_shard(gradient.T @ x, ctx.group), None, None
        ### END SOLUTION

# %% tags=["check"] grade_id="gather-check" points=4
check.gather(cluster, "GatheredLinear")

# %% [markdown]
# ## 6. Master weights
#
# The parameters are `bfloat16`: 8 bits of precision. A step that is smaller than half the distance to the next number changes nothing, a thousand times over. So each rank keeps its shard
# of the weights in `float32`, the master, and takes the step there; the parameters get it rounded.
#
# One step of plain SGD: `master -= lr * mean gradient`.
#
# * The gradients, `bfloat16` in `p.grad`, are added up **in float32**, by one reduce-scatter: in bfloat16 a small one would vanish beside a large one.
# * `state` is a dict as in exercise 3. It holds one number of float32 for each parameter of the shard, nothing more.
# * The new weights travel as `bfloat16`, and are the only numbers that are rounded: mean, rate and step are float32. The check compares the master in `state` too.
# * The parameters keep their memory: write into them in place.
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Where do you change the type: before the collective, or behind it? It matters for the gradients and for the bytes of the weights. For more, `hint("16-masters")`.
# </details>

# %% tags=["solution"] grade_id="masters"
# %%px --setup
def mixed_step(parameters, state: dict, lr: float, group=None) -> None:
    """One step of SGD on a float32 shard; the bfloat16 parameters are new in place."""
    ### BEGIN SOLUTION
    parameters = list(parameters)
    if not state:
        rank, ranks = dist.get_rank(group), dist.get_world_size(group)
        state["masters"] = [shard(p, rank, ranks).float() for p in parameters]
    for p, master in zip(parameters, state["masters"]):
        master -= lr * reduce_shard(p.grad.float(), group)
        p.detach().copy_(unshard(master.bfloat16(), p.shape, group))
    ### END SOLUTION

# %% tags=["check"] grade_id="masters-check" points=3
check.masters(cluster, "mixed_step")

# %% [markdown]
# ## 7. Clip by the norm of all
#
# Gradients are clipped by the norm of **all** numbers of all vectors. Here each rank has a shard of each vector. If the norm is larger than `max_norm`, all numbers become smaller by the factor
# `max_norm / norm`, in place; else nothing changes. Every rank returns the same norm, that before the clipping.
#
# * `sizes[i]` is the length of vector i without padding. What stands in the padding here may be anything, even `nan`, as in memory that nobody has written to: it does not count.
# * There may be many vectors, and no gradient at all: all zeros. **One all-reduce of one number** is enough.
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Norms cannot be added. What can? And how many of its numbers are real on rank r, if each shard has k, and the vector n? For more, `hint("16-clip")`.
# </details>

# %% tags=["solution"] grade_id="clip"
# %%px --setup
def clip_shards(shards: list, sizes: list, max_norm: float, group=None) -> float:
    """Clip the shards of some vectors in place; return the norm of all of it before."""
    ### BEGIN SOLUTION
    rank, square = dist.get_rank(group), shards[0].new_zeros(1)
    for own, size in zip(shards, sizes):
        real = max(0, size - rank * len(own))  # too large a number takes the whole shard
        square += own[:real].square().sum()
    dist.all_reduce(square, group=group)
    norm = math.sqrt(square.item())
    if norm > max_norm:
        for own in shards:
            own *= max_norm / norm
    return norm
    ### END SOLUTION

# %% tags=["check"] grade_id="clip-check" points=3
check.clip(cluster, "clip_shards")

# %% [markdown]
# ## All together
#
# Your pieces train a network on handwritten digits, with stage 3: while it computes, a rank has one layer whole at a time. One process with all weights trains beside it, to compare. Not
# graded: it works when your pieces do.

# %%
# %%px
from manyhands.data import digits

x, y = (torch.from_numpy(array).to(device) for array in digits("train"))
x, rank, ranks = x.double(), dist.get_rank(), dist.get_world_size()
lengths = [x.shape[1], 90, 70, 10]  # of the activations between the layers
torch.manual_seed(0)
weights = [torch.randn(b, a, dtype=torch.float64).to(device) / a**0.5
           for a, b in zip(lengths, lengths[1:])]
sizes = [weight.numel() for weight in weights]

# %%
# %%px
def train(multiply, leaves, clip, x, y):
    """30 steps of Adam; multiply(h, i) is layer i. The losses of the first and last."""
    adam, losses = torch.optim.Adam(leaves, lr=0.01), []
    for step in range(30):
        h = multiply(torch.tanh(multiply(torch.tanh(multiply(x, 0)), 1)), 2)
        loss = nn.functional.cross_entropy(h, y)
        adam.zero_grad()
        loss.backward()
        clip()
        adam.step()
        losses.append(loss.item())
    return losses[0], losses[-1]

# %%
# %%px
owns = [nn.Parameter(shard(weight, rank, ranks)) for weight in weights]
mine = slice(rank * len(x) // ranks, (rank + 1) * len(x) // ranks)
train(lambda h, i: GatheredLinear.apply(h, owns[i], weights[i].shape, None), owns,
      lambda: clip_shards([own.grad for own in owns], sizes, 0.5), x[mine], y[mine])

alone = [nn.Parameter(weight.clone()) for weight in weights]
first, last = train(lambda h, i: h @ alone[i].T, alone,
                    lambda: nn.utils.clip_grad_norm_(alone, 0.5), x, y)
whole = [unshard(own.detach(), weight.shape) for own, weight in zip(owns, weights)]
far = max((a - b).abs().max().item() for a, b in zip(whole, alone))
if rank == 0:
    print(f"loss of one process: {first:.4f} in the first step, {last:.4f} in the last")
    print(f"all weights are those of one process, to 1e-4: {far < 1e-4}")
    print(f"numbers of the weights: {sum(sizes)}; on a rank: {sum(map(len, owns))}")

# %% [markdown]
# ## Where to go on
#
# * `fully_shard` of PyTorch (FSDP2) shards, gathers and frees like this, and gathers the next layer while one computes; the tutorial runs it. Which of your functions would have to change for that?
# * In exercise 4 each reduce-scatter stops backward until it has ended. Start it with `async_op=True`, and wait for it in the next hook: how many whole gradients are there then?
# * Exercise 6 with Adam keeps 12 bytes for each parameter of the shard. Which 12?
# * S. Rajbhandari et al. 2020, *ZeRO: Memory Optimizations Toward Training Trillion Parameter Models*, [arXiv 1910.02054](https://arxiv.org/abs/1910.02054); Y. Zhao et al. 2023,
#   *PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel*, [arXiv 2304.11277](https://arxiv.org/abs/2304.11277); P. Micikevicius et al. 2018, *Mixed Precision Training*,
#   [arXiv 1710.03740](https://arxiv.org/abs/1710.03740).

# %%
cluster.stop()
