# %% [markdown] unit={"minutes": 75, "ranks": 4, "framework": "torch", "title": "Sharded states: ZeRO, FSDP"}
# # 16 Lab: a model that no rank holds whole
#
# You write the three stages of ZeRO on vectors that are split into shards, and you find the mistakes in similar code that runs but is wrong. At the end, you
# can
#
# * predict how many bytes a rank holds at each stage, and how many layers the largest model that fits has.
# * split tensors of any size into shards, and put them together again.
# * take a step of Adam with a part of the states on each rank, and obtain the weights that a single process computes.
# * gather weights, use them and free them, in the forward and in the backward pass.
# * keep small steps from vanishing in bfloat16, and clip by a norm that no rank can see alone.
# * find what is wrong in a training loop around `fully_shard`, by comparing its weights with the weights of a single process.
#
# **Before:** the tutorial of this unit. **Minutes:** 75 · **Ranks:** 4 · **Points:** 28.
#
# Exercise 1 runs in this kernel, whereas all others run on the ranks, in cells that begin with `%%px`. A mistake may make the ranks wait for each other. In
# this case, the cluster notices the hang after a few seconds, reports which rank is waiting for which, and heals. Below each check, you see what it prints when
# the answer is right. Every hint has two steps, so run `hint(...)` again for the second one.
#
# On the ranks, every function takes a `group` argument, and `None` means the world. Inside a group, `dist.get_rank(group)` returns the number of this rank, and
# `dist.get_world_size(group)` the number of ranks. The checks use groups of 4, 3, 2 and 1 ranks. All ranks of the group call the function.

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
nccl = dist.get_backend() == "nccl"  # gloo's reduce-scatter accepts only CPU tensors
device = torch.device(os.environ["MANYHANDS_DEVICE"] if nccl else "cpu")

# %% [markdown]
# ## 1. What lies on a rank
#
# Each layer is stored as a separate flat vector, which is padded to a multiple of the number of ranks and split into equal shards. Count the bytes on the rank
# that holds the most, as the sum of two parts:
#
# * Some bytes are **kept** permanently. A vector that is kept whole has the layer's parameters without padding, whereas a shard includes its padding. The
#   optimiser states are sharded from stage 1 on, the gradients from stage 2 on, and the weights in stage 3.
# * In addition, vectors of the layer **at work** must be whole for a moment, namely its gradient in stage 2, and both its weights and its gradient in stage 3.
#   These vectors are padded, since the collectives need them in this form. Count the largest layer.
#
# `weight`, `gradient` and `states` are numbers of bytes per parameter. Activations are not counted. The same rule applies to a single rank.
#
# Then compute how many equal layers of `size` parameters fit into a device. The answer is 0 if not even one of them fits.
#
# *Difficulty ●○○, 10 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# On 4 ranks, 10 parameters make shards of 3 and a padded vector of 12. Which bytes does each layer add, and which bytes exist only once, however many layers
# there are? For more help, run `hint("16-memory")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="memory"
def memory(layers: list, ranks: int, stage: int, weight: int = 2, gradient: int = 2,
           states: int = 12) -> int:
    """Return the bytes on the fullest rank. layers: the parameters of each layer."""
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
    """Return how many layers of `size` parameters fit into `device_bytes` on a rank."""
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
# Write three functions that the other exercises use. The sizes need not be divisible by the number of ranks, because the flat vector is padded with zeros up to
# the next multiple of that number. All shards are equally long, so with 2 numbers on 4 ranks, two ranks hold only padding.
#
# * `shard` needs no communication. Its result must have separate memory, because a view of the whole vector would keep the whole vector alive.
# * `unshard` sends each number once to each other rank, as **one all-gather** of the shards does.
# * `reduce_shard` returns this rank's shard of the **mean** over the ranks' tensors, as **one reduce-scatter** does. The check counts bytes by the ring model,
#   in which an all-reduce sends twice as much. (gloo, which runs here, builds its reduce-scatter from a whole all-reduce, whereas NCCL on GPUs does not.)
#   `reduce_shard` may write into `tensor`.
#
# All three functions keep the type of the numbers, which can be `float64`, `float32` or `bfloat16`.
#
# `dist.all_gather_single(whole, own, group=group)` and `dist.reduce_scatter_single(own, whole, op, group=group)` fill their first argument, and
# `dist.ReduceOp.AVG` computes the mean. In PyTorch before 2.13, the two functions are called `all_gather_into_tensor` and `reduce_scatter_tensor`.
#
# *Difficulty ●○○, 10 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# `pad(flat, (0, n))` appends n zeros to a vector. Which n makes `len(flat) + n` a multiple of the number of ranks, and is 0 if `len(flat)` is already such a
# multiple? For more help, run `hint("16-shards")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="shards"
# %%px --setup
def shard(tensor, rank: int, ranks: int):
    """Return this rank's shard, flat, padded with zeros, and in separate memory."""
    ### BEGIN SOLUTION
    flat = tensor.detach().flatten()
    return pad(flat, (0, -len(flat) % ranks)).chunk(ranks)[rank].clone()
    ### END SOLUTION


def unshard(own, shape, group=None):
    """Return the whole tensor of this shape, from the shards `own` of all ranks."""
    ### BEGIN SOLUTION
    whole = own.new_empty(len(own) * dist.get_world_size(group))
    dist.all_gather_single(whole, own, group=group)
    return whole[:math.prod(shape)].view(shape)
    ### END SOLUTION


def reduce_shard(tensor, group=None):
    """Return this rank's shard of the mean of all ranks' tensors, padded with zeros."""
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
# ## 3. Stage 1: Adam on each rank's shard
#
# All ranks have the same weights, and each rank has its own gradients in `p.grad`. In one step, a rank computes its shard of the mean gradient and applies Adam
# to its shard of the weights. Then the new weights of all shards are written into all parameters, in place. The weights must equal those that a single process
# computes with `torch.optim.Adam` and the mean of the gradients.
#
# * `state` is a dict that is empty at the first step, and every later step gets the same dict. Store in it whatever must survive the step, namely Adam's two
#   numbers for each parameter **of the shard** and, if you like, a copy of the shard. Nothing else may stay in memory.
#   `torch.optim.Adam([own], lr=lr, eps=eps)` may do the arithmetic, since this optimiser can be stored in `state`, too.
# * You can split each parameter separately, or all of them as one long vector.
# * Send the gradients once, by reduce-scatter or all-reduce, and the new weights once. You may do what you like with `p.grad`.
#
# *Difficulty ●●○, 12 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# With the tools of exercise 2, you need not call a collective here. Besides the gradient, what does Adam need that must be the same object at the next step?
# For more help, run `hint("16-zero1")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="zero1"
# %%px --setup
def zero1_step(parameters, state: dict, lr: float, eps: float, group=None) -> None:
    """Take one step of Adam (betas 0.9 and 0.999) and change the weights in place."""
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
# ## 4. Find the bug: stage 2
#
# In stage 2, whole gradients must not pile up while `loss.backward()` runs. As soon as a parameter's gradient is ready, its mean over the ranks is split into
# shards, each rank keeps its own shard, and the whole gradient is freed. The function below was written for this purpose. It runs without an error, but in a
# long training run, memory grows, each step takes longer than the one before, and the optimiser updates hardly any parameter.

# %%
# %%px --setup
def faulty_backward(loss, parameters, group=None):
    """Run backward of `loss`; return this rank's shard of each mean gradient."""
    parameters = list(parameters)
    shards = [None] * len(parameters)
    for i, p in enumerate(parameters):
        def cut(p):
            shards[i] = reduce_shard(p.grad, group)

        p.register_post_accumulate_grad_hook(cut)
    loss.backward()
    return shards

# %% [markdown]
# The evidence comes from two calls of the function on the same network of six parameters. The function needs your `reduce_shard`. What should each of the three
# printed numbers be?

# %%
# %%px --setup
from manyhands.ledger import Ledger

def evidence_of_backward(backward):
    torch.manual_seed(0)
    net = nn.Sequential(*[nn.Linear(8, 8) for _ in range(3)]).to(device)
    for call in range(2):
        loss = net(torch.ones(1, 8, device=device)).square().sum()
        with Ledger() as ledger:
            shards = backward(loss, net.parameters())
        filled = sum(one is not None for one in shards)
        left = sum(p.grad is not None for p in net.parameters())
        reduced = sum("reduce" in entry.call for entry in ledger.entries)
        if dist.get_rank() == 0:
            print(f"call {call}: {filled} shards, {left} whole gradients are left, "
                  f"{reduced} reduce-scatters")

# %%
# %%px
evidence_of_backward(faulty_backward)

# %% [markdown]
# Write the function as it should be, and then run `evidence_of_backward(zero2_backward)`. The check has these requirements:
#
# * The shards are returned in the order of the parameters, padded as in exercise 2.
# * Afterwards, `p.grad` is `None` for each parameter, and the network is as it was before, because the function is called again with the next loss.
# * While backward runs, at most two whole gradients may be in memory, so that one may still be in transit while the next one is computed. Afterwards, none may
#   remain. A copy of a gradient is as large as the gradient, and a view of a gradient keeps the whole gradient alive.
# * Each gradient is sent once, with the bytes of one reduce-scatter, which are half of the bytes of an all-reduce. Every parameter gets a gradient, and the
#   order in which the gradients become ready is the same on all ranks.
#
# `p.register_post_accumulate_grad_hook(f)` makes autograd call `f(p)` as soon as `p.grad` is ready. The method returns a handle.
#
# *Difficulty ●●○, 8 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# Compare each number with the number of parameters, for both the first call and the second. For more help, run `hint("16-zero2")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="zero2"
# %%px --setup
def zero2_backward(loss, parameters, group=None) -> list:
    """Run backward of `loss`; return this rank's shard of each mean gradient."""
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
# ## 5. Find the bug: stage 3
#
# In stage 3, the weight of a layer `y = x @ weight.T` exists only while the layer computes. Between forward and backward, and after backward, a rank holds only
# its shard. The layer below was written for this purpose, and its outputs are right. However, after the forward pass of a network of many such layers, a rank
# holds all weights in full, and the network does not learn what a single process learns.

# %%
# %%px --setup
class FaultyLinear(torch.autograd.Function):
    """Multiplies rows `x` by a weight (outputs, inputs), of which `own` is a shard."""

    @staticmethod
    def forward(ctx, x, own, shape, group=None):
        weight = unshard(own, shape, group)
        ctx.save_for_backward(x, weight)
        ctx.group = group
        return x @ weight.T

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        to_x, to_weight = gradient @ weight, gradient.T @ x
        to_x /= dist.get_world_size(ctx.group)  # a mean, as for the weight
        return to_x, reduce_shard(to_weight, ctx.group), None, None

# %% [markdown]
# The evidence compares the faulty layer with a whole layer of 6 x 8 weights. Each rank has 2 rows and a different loss. The evidence needs your functions from exercise 2.

# %%
# %%px --setup
def evidence_of_layer(layer):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    weight, xs = torch.randn(6, 8).to(device), torch.randn(ranks, 2, 8).to(device)
    x = xs[rank].clone().requires_grad_()
    y = layer.apply(x, nn.Parameter(shard(weight, rank, ranks)), weight.shape, None)
    kept = [tuple(tensor.shape) for tensor in y.grad_fn.saved_tensors]
    with Ledger() as ledger:
        y.square().sum().backward()
    right = 2 * (x.detach() @ weight.T) @ weight  # from this rank's rows alone
    if rank == 0:
        print("kept for backward:", kept)
        print(f"gradient of x: {(x.grad - right).norm() / right.norm():.0%} off")
        print("sent in backward:", *(entry.call for entry in ledger.entries))

# %%
# %%px
evidence_of_layer(FaultyLinear)

# %% [markdown]
# Write the layer as it should be, and then run `evidence_of_layer(GatheredLinear)`.
#
# * Between forward and backward, a rank holds no whole weight. The check counts everything that is in memory at that time, no matter what keeps it alive.
# * The gradient of the shard is this rank's part of the **mean** over the ranks, as if `weight.grad` had been averaged and split. The gradient of `x` is what a
#   whole layer returns for the rows of this rank.
# * Forward sends as much as one all-gather of the weight, and backward as much as one all-gather and one reduce-scatter.
#
# *Difficulty ●●●, 8 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# What `ctx` holds stays in memory until the backward pass. Which tensors may it hold if the weight is to be freed when `forward` returns? For more help, run
# `hint("16-gather")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="gather"
# %%px --setup
class GatheredLinear(torch.autograd.Function):
    """Multiplies rows `x` by a weight (outputs, inputs), of which `own` is a shard."""

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
# The parameters are `bfloat16`, which has 8 bits of precision. If a step is smaller than half the distance to the next number, it changes nothing, even if it
# is repeated a thousand times. For this reason, each rank keeps a `float32` copy of its shard of the weights, the *master*, and takes the step on this copy.
# The parameters receive the rounded result.
#
# Take one step of plain SGD, `master -= lr * mean gradient`.
#
# * The gradients, which are `bfloat16` in `p.grad`, are summed **in float32** by one reduce-scatter, because in bfloat16 a small one would vanish next to a
#   large one.
# * `state` is a dict as in exercise 3. It holds one float32 number for each parameter of the shard and nothing more.
# * The new weights are sent as `bfloat16`, and they are the only numbers that are rounded, because the mean, the learning rate and the step are float32. The
#   check also compares the master in `state`.
# * The parameters keep their memory, so write into them in place.
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Do you change the type before the collective or after it? The choice matters for the gradients and for the bytes of the weights. For more help, run
# `hint("16-masters")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="masters"
# %%px --setup
def mixed_step(parameters, state: dict, lr: float, group=None) -> None:
    """Take a step of SGD on a float32 shard; change the bfloat16 parameters in place."""
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
# Gradients are clipped by the norm of **all** numbers of all vectors, but here each rank has only a shard of each vector. If the norm is larger than
# `max_norm`, multiply all numbers by `max_norm / norm`, in place. Otherwise, nothing changes. (PyTorch divides by `norm + 1e-6`, which the check also accepts.)
# Every rank returns the same norm, which is the norm before clipping.
#
# * `sizes[i]` is the length of vector i without padding. The padding does not count, because it may contain anything here, even `nan`, as in memory that has
#   never been written.
# * There may be many vectors, and all gradients may be zero. **One all-reduce of one number** is enough.
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Norms cannot be added, so which quantity can be added? If each shard has k numbers and the vector has n, how many numbers on rank r are not padding? For more
# help, run `hint("16-clip")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="clip"
# %%px --setup
def clip_shards(shards: list, sizes: list, max_norm: float, group=None) -> float:
    """Clip the shards of some vectors in place; return the norm of all before that."""
    ### BEGIN SOLUTION
    rank, square = dist.get_rank(group), shards[0].new_zeros(1)
    for own, size in zip(shards, sizes):
        real = max(0, size - rank * len(own))  # a larger number takes the whole shard
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
# ## 8. Find the bug: `fully_shard`
#
# The loop below trains a network with PyTorch's `fully_shard`. In each step, every rank takes 8 rows in four micro-batches, and then it clips the gradients.
# The loop runs, its loss falls, and no error is raised, but in the end its weights differ from the weights of a single process that takes, in each step, the 32
# rows that the four ranks take together. Three things in the loop are wrong. Do not study the code for long. Instead, look at what the loop did, which the
# cells below show.

# %%
# %%px --setup
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

mesh = init_device_mesh(device.type, (dist.get_world_size(),))

def faulty_training(make, x, y, seed, steps, max_norm, mesh):
    """Train the network that `make()` creates, and return it."""
    rank, ranks = mesh.get_local_rank(), mesh.size()
    torch.manual_seed(seed + rank)  # each rank draws its own random numbers
    net = make()
    for layer in net:
        fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)
    sgd = torch.optim.SGD(net.parameters(), lr=0.5)
    for step in range(steps):
        rows = torch.arange(32 * step, 32 * (step + 1)).chunk(ranks)[rank]
        for i, part in enumerate(rows.chunk(4)):
            net.set_requires_gradient_sync(i == 0)  # scatter once in a step
            loss = nn.functional.cross_entropy(net(x[part]), y[part])
            (loss / 4).backward()
        gradients = [weight.grad.to_local() for weight in net.parameters()]
        norm = math.sqrt(sum(part.square().sum().item() for part in gradients))
        for part in gradients if norm > max_norm else ():
            part *= max_norm / norm
        sgd.step()
        sgd.zero_grad()
    return net

# %% [markdown]
# The evidence compares the weights of all ranks before and after the first step. Since `max_norm` is 0.1 and the learning rate is 0.5, a clipped step of plain
# SGD has a length of 0.05. Of each rank's 8 rows in this step, rows 2 to 7 belong to the later micro-batches.

# %%
# %%px --setup
from manyhands.data import digits

def make_network():
    layers = nn.Linear(64, 30), nn.Tanh(), nn.Linear(30, 10)
    return nn.Sequential(*layers).double().to(device)

def evidence_of_training(train):
    x, y = (torch.from_numpy(array[:32]).to(device) for array in digits("train"))

    def weights(steps, labels=y):
        net = train(make_network, x.double(), labels, 0, steps, 0.1, mesh)
        return torch.cat([w.detach().full_tensor().flatten() for w in net.parameters()])

    torch.manual_seed(0)
    one = torch.cat([w.detach().flatten() for w in make_network().parameters()])
    later = torch.arange(32, device=device) % 8 >= 2
    start, after, relabelled = weights(0), weights(1), weights(1, (y + later) % 10)
    if dist.get_rank() == 0:
        print(f"before the first step: {(start - one).norm():.3f} from one process")
        print(f"length of the first step: {(after - start).norm():.3f}")
        print("the step, if rows 2 to 7 have different labels, differs by "
              f"{(relabelled - after).norm():.3f}")

# %%
# %%px
evidence_of_training(faulty_training)

# %% [markdown]
# Write the loop as it should be, and then run `evidence_of_training(training)`. `fully_shard` must still average the gradients, and each step must scatter them
# once. The check also trains on a `mesh` of two of the four ranks, which then take 16 rows each.
#
# *Difficulty ●●●, 10 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Repair one thing at a time, and run the evidence after each repair. What three lines would a single process print? For more help, run `hint("16-training")` in
# a separate cell.
# </details>

# %% tags=["solution"] grade_id="training"
# %%px --setup
def training(make, x, y, seed, steps, max_norm, mesh):
    """Train as `faulty_training` should: the weights equal those of a single process."""
    ### BEGIN SOLUTION
    rank, ranks = mesh.get_local_rank(), mesh.size()
    torch.manual_seed(seed)
    net = make()
    for layer in net:
        fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)
    sgd = torch.optim.SGD(net.parameters(), lr=0.5)
    for step in range(steps):
        rows = torch.arange(32 * step, 32 * (step + 1)).chunk(ranks)[rank]
        for i, part in enumerate(rows.chunk(4)):
            net.set_requires_gradient_sync(i == 3)
            loss = nn.functional.cross_entropy(net(x[part]), y[part])
            (loss / 4).backward()
        nn.utils.clip_grad_norm_(net.parameters(), max_norm)
        sgd.step()
        sgd.zero_grad()
    return net
    ### END SOLUTION

# %% tags=["check"] grade_id="training-check" points=3
check.training(cluster, "training")

# %% [markdown]
# ## All together
#
# Your functions now train a network on handwritten digits with stage 3, so that a rank has only one whole layer at a time while it computes. For comparison, a
# single process with all weights trains the same network. This part is not graded, and it works if your functions do.

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
    """Take 30 steps of Adam; multiply(h, i) is layer i. Return the first and last loss."""
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
# * `fully_shard` of PyTorch (FSDP2) shards, gathers and frees as you do, and it gathers the next layer while the current one computes, as the tutorial shows.
#   Which of your functions would have to change for that?
# * In exercise 4, each reduce-scatter blocks the backward pass until it has finished. Start the collective with `async_op=True`, and wait for it in the next
#   hook. How many whole gradients are in memory then?
# * With Adam, exercise 6 would keep 12 bytes for each parameter of the shard. What are these 12 bytes?
# * S. Rajbhandari et al. 2020, *ZeRO: Memory Optimizations Toward Training Trillion Parameter Models*, [arXiv 1910.02054](https://arxiv.org/abs/1910.02054); Y.
#   Zhao et al. 2023, *PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel*, [arXiv 2304.11277](https://arxiv.org/abs/2304.11277); P. Micikevicius
#   et al. 2018, *Mixed Precision Training*, [arXiv 1710.03740](https://arxiv.org/abs/1710.03740).

# %%
cluster.stop()
