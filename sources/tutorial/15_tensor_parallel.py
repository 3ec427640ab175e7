# %% [markdown] unit={"minutes": 65, "ranks": 4, "framework": "torch", "title": "Tensor and mesh parallelism"}
# # 15 Tensor and mesh parallelism
#
# This unit cuts single layers into parts, so that four ranks work on the same rows. At the end, you can
#
# * cut two layers so that one all-reduce in each direction is enough, and explain what goes wrong if either of the two functions that perform these all-reduces
#   is missing.
# * cut a transformer block by heads, columns and rows, count what the block sends, and replace all-reduces by all-gathers and reduce-scatters.
# * write a program once, lay it out on a mesh of ranks in five ways, and predict what each layout sends.
# * read DTensor's placements, cut a model with `parallelize_module`, and combine this cut with `fully_shard` on a second axis of the mesh.
# * split a vocabulary over the ranks, and compute the loss without gathering the scores.
# * implement context parallelism in two ways, and expert parallelism with a capacity and a router that learns.
#
# **Before:** you can use collectives (unit 04), and you know what experts are (unit 11) and how to cut a layer in two ways (unit 13). **Minutes:** 65 ·
# **Ranks:** 4.

# %% [markdown]
# ## Four ranks
#
# This kernel starts the ranks, and cells that begin with `%%px` run on all four of them. The option `--setup` marks the cells that are run again when the
# cluster is healed. We compute in float64, so that results agree with those of a single process to within 1e-12.

# %% tags=["setup"]
from manyhands import Cluster, predict, settle

cluster = Cluster(nodes=1, ranks_per_node=4, framework="torch")

# %% tags=["setup"]
# %%px --setup
import copy
import os
from collections import Counter

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import _functional_collectives as functional
from torch.nn.functional import gelu

from manyhands.ledger import Ledger
from manyhands.mesh import copy_to, reduce_from

if not dist.is_initialized():  # so that this cell can run twice
    dist.init_process_group(os.environ["MANYHANDS_BACKEND"])
nccl = dist.get_backend() == "nccl"  # gloo's reduce-scatter takes only CPU tensors
device = torch.device(os.environ["MANYHANDS_DEVICE"] if nccl else "cpu")
rank, size = dist.get_rank(), dist.get_world_size()

# %% tags=["setup"]
# %%px --setup
def drawn(*shape):
    """Draw the same numbers on every rank."""
    return torch.randn(*shape, dtype=torch.float64).to(device)

def apart(pairs):
    """Return the largest difference between the tensors of each pair."""
    return max((one - other).abs().max().item() for one, other in pairs)

def calls(ledger):
    """Name the calls of torch.distributed, with how many numbers a rank contributes."""
    names = {"allreduce": "all-reduce", "_allgather_base": "all-gather",
             "_reduce_scatter_base": "reduce-scatter", "alltoall_base": "all-to-all"}
    counts = Counter(f"{names[e.call]} of {e.numel}" for e in ledger.entries)
    return ", ".join(f"{n} x {call}" for call, n in counts.items()) or "nothing"

torch.manual_seed(0)
x, up, down = drawn(6, 8), drawn(8, 16), drawn(16, 8)
up_bias, down_bias = drawn(16), drawn(8)

# %% [markdown]
# ## A layer cut by columns, a layer cut by rows
#
# We use two layers with a nonlinearity between them, $y = \mathrm{gelu}(x A + a)\, B + b$. Unit 13 cut a convolution in two ways. Both cuts also work for a
# matrix product, which is a convolution over a single pixel.
#
# * Cut $A$ by **columns**, which gives a *column-parallel layer*. Rank $r$ computes some columns of $x A$ completely, and needs the whole $x$.
# * Cut $B$ by **rows**, which gives a *row-parallel layer*. Rank $r$ multiplies some columns of the input by the matching rows, which gives one *summand* of
#   the whole $y$.
#
# **Predict.** Each of four ranks has 4 of the 16 columns of $A$ and the 4 rows of $B$ with the same indices, and gelu is applied between the layers. How many
# collectives are needed until every rank has the whole $y$?

# %%
# Run this cell to make your prediction.
predict("15-forward",
        "How many collectives do a column layer, gelu and a row layer need for y?",
        unit="collectives")

# %%
# %%px
mine = slice(4 * rank, 4 * rank + 4)
right = gelu(x @ up + up_bias) @ down + down_bias

with Ledger() as ledger:
    h = gelu(x @ up[:, mine] + up_bias[mine])  # [6, 4]: complete
    part = h @ down[mine]                      # [6, 8]: one of four summands
    y = reduce_from(part) + down_bias
print(f"{up[:, mine].numel() + down[mine].numel()} of {up.numel() + down.numel()} weights; "
      f"sent: {calls(ledger)}; as one process: {apart([(y, right)]) < 1e-12}")

# %%
# Run this cell to compare your prediction with the outcome.
settle("15-forward", lambda: len(cluster.pull("ledger.entries")[0]))

# %% [markdown]
# <details><summary>Why?</summary>
#
# gelu treats each number separately, and each number of $h$ is complete on the rank that has it. A rank's numbers of $h$ are exactly what its rows of $B$ need.
# Therefore, nothing is sent between the layers, and only the last sum needs a collective.
# </details>
#
# Two mistakes are easy to make. The bias of the row layer must be added *after* the sum, because otherwise the sum would contain it once for each rank. A
# nonlinearity after a row layer must wait for the sum, since $\mathrm{gelu}(u + v)$ is not $\mathrm{gelu}(u) + \mathrm{gelu}(v)$.

# %%
# %%px
early_bias = reduce_from(part + down_bias)
early_gelu = reduce_from(gelu(part))
if rank == 0:
    biases = ((early_bias - y) / down_bias).mean()
    print(f"bias on each rank: {biases:.0f} biases too many")
    print(f"gelu before the sum: off by {apart([(early_gelu, gelu(y - down_bias))]):.2f}")

# %% [markdown]
# ## f and g
#
# Every rank computes the same loss from the same $y$, so in the backward pass this loss must count only once. In `manyhands.functions` of unit 11, N losses
# count N times, so we need a different pair of functions. Megatron-LM (Shoeybi et al. 2019) calls them f and g.
#
# | | position | forward | backward |
# |---|---|---|---|
# | **f**, `copy_to` | where $x$ enters the columns | x as it is | all-reduce |
# | **g**, `reduce_from` | where the summands leave the rows | all-reduce | the gradient as it is |
#
# **Predict.** Without f, which gradients differ from those that a single process computes?

# %%
# Run this cell to make your prediction.
predict("15-without-f", "Without f (copy_to), which gradients are wrong?",
        ["x only", "x and the first layer", "all of them", "none"])

# %%
# %%px
def gradients(enter):
    """Return the gradients of x and of this rank's columns, bias and rows, and the calls
    of the backward pass."""
    leaves = [t.clone().requires_grad_() for t in
              (x, up[:, mine], up_bias[mine], down[mine])]
    h = gelu(enter(leaves[0]) @ leaves[1] + leaves[2])
    loss = (reduce_from(h @ leaves[3]) + down_bias).square().sum()
    with Ledger() as ledger:
        loss.backward()
    return [leaf.grad for leaf in leaves], calls(ledger)

whole = [t.clone().requires_grad_() for t in (x, up, up_bias, down)]
(gelu(whole[0] @ whole[1] + whole[2]) @ whole[3] + down_bias).square().sum().backward()
one = [whole[0].grad, whole[1].grad[:, mine], whole[2].grad[mine], whole[3].grad[mine]]

# %%
# %%px
wrong = {}
for name, enter in (("with f", copy_to), ("without f", lambda x: x)):
    found, sent = gradients(enter)
    names = ("x", "up", "up_bias", "down")
    wrong[name] = [what for what, *pair in zip(names, found, one) if apart([pair]) > 1e-12]
    if rank == 0:
        print(f"{name:<9}: backward sends {sent};",
              f"wrong: {', '.join(wrong[name]) or 'none'}")
dist.all_reduce(found[0])
if rank == 0:
    print("without f, x summed by hand is right:", apart([(found[0], one[0])]) < 1e-12)

# %%
# Run this cell to compare your prediction with the outcome.
def wrong_without():
    wrong = tuple(cluster.pull("wrong['without f']")[0])
    return {("x",): "x only", ("x", "up", "up_bias"): "x and the first layer",
            (): "none"}.get(wrong, "all of them")

settle("15-without-f", wrong_without)

# %% [markdown]
# <details><summary>Why?</summary>
#
# The gradient of $y$ is complete on every rank, so the gradients of the rank's own weights are right. However, $x$ went to four ranks, each of which knows only
# the summand of $x$'s gradient that came back through *its* columns. In a network, $x$ is the output of earlier layers, so all *their* gradients would be
# wrong, too, and no error would be raised.
# </details>
#
# ## A transformer block, by heads
#
# Attention can be cut in the same way, because a **head** looks only at its own columns of q, k and v. We cut q, k and v by columns, with whole heads on each
# rank, and the output layer by rows. The block of the course's small GPT derives its number of heads from the columns that it finds. On each rank, we keep a
# part of each linear layer and put f and g around attention and MLP, while norms and residuals stay whole.

# %% tags=["setup"]
# %%px --setup
from manyhands.gpt.transformer import Block

torch.manual_seed(1)
block = Block(width=16, heads=4).double().to(device)
data = drawn(2, 8, 16)  # rows, positions, width
COLUMNS, ROWS = ("q", "k", "v", "up"), ("out", "down")

def own(name, whole):
    """Return this rank's part of a parameter of the block, or of its gradient. nn.Linear
    keeps columns in dimension 0 of its weight and rows in dimension 1."""
    layer, kind = name.split(".")
    if layer in COLUMNS:
        return whole.chunk(size, 0)[rank]
    return whole.chunk(size, 1)[rank] if layer in ROWS and kind == "weight" else whole

x_one = data.clone().requires_grad_()
y_one = block(x_one)
y_one.square().sum().backward()

# %% tags=["setup"]
# %%px --setup
def cut(block):
    """Return this rank's part, which keeps the biases of the row layers separately."""
    part = copy.deepcopy(block)
    for name, whole in block.named_parameters():
        layer, kind = name.split(".")
        setattr(getattr(part, layer), kind, nn.Parameter(own(name, whole).detach().clone()))
    for name in ROWS:
        layer = getattr(part, name)
        part.register_parameter(name + "_bias", layer.bias)
        layer.bias = None
    return part

def forward(part, x, enter, leave):
    """Run the block with f and g, or with the functions that replace them."""
    x = x + leave(part.attention(enter(part.norm1(x)))) + part.out_bias
    return x + leave(part.down(gelu(part.up(enter(part.norm2(x)))))) + part.down_bias

def wrong_in(part):
    """Name the parameters whose gradient differs from this rank's part of the right one."""
    right = {name: own(name, p.grad) for name, p in block.named_parameters()}
    return [name for name, p in part.named_parameters()
            if apart([(p.grad, right[name.replace("_bias", ".bias")])]) > 1e-12]

# %% [markdown]
# **Predict.** How many all-reduces does the whole block need for forward and backward together?

# %%
# Run this cell to make your prediction.
predict("15-block",
        "How many all-reduces does a block (attention, MLP) need, forward and backward?",
        unit="all-reduces")

# %%
# %%px
part, x_cut = cut(block), data.clone().requires_grad_()
with Ledger() as ahead:
    y = forward(part, x_cut, copy_to, reduce_from)
with Ledger() as back:
    y.square().sum().backward()
same = apart([(y, y_one), (x_cut.grad, x_one.grad)]) < 1e-12 and not wrong_in(part)
if rank == 0:
    print("forward: ", calls(ahead), "\nbackward:", calls(back))
    print(ahead.bytes_sent + back.bytes_sent, "bytes sent; as one process:", same)

# %%
# Run this cell to compare your prediction with the outcome.
settle("15-block", lambda: sum(
    cluster.pull("[ahead.count('allreduce'), back.count('allreduce')]")[0]))

# %% [markdown]
# Every block needs two all-reduces in forward and two in backward, each of a whole activation (rows x positions x width). More ranks do not make these messages
# smaller, and the ranks have hardly anything else to do while they wait.

# %% [markdown]
# > **On GPUs.** Keep tensor parallelism inside an **NVLink domain**, because four waits per block are too many for a slower network (Narayanan et al. 2021). For years, such a domain was a server of 8 GPUs, but in a GB200 NVL72 it is a rack of 72. On TPUs, its counterpart is the torus that joins the chips.
# > Megatron-LM computes the weight's gradient while backward's all-reduce is running. With `CUDA_DEVICE_MAX_CONNECTIONS=1`, which it required, the GPU started the two in the order in which they were launched. NCCL may add in a different order than gloo, so compare results with a tolerance, which must be large in bfloat16.
# > Two of the PyTorch functions below work differently on CPUs. DTensor's all-to-all is an all-gather there, and `context_parallel` rejects a causal mask.

# %% [markdown]
# ## Sequence parallel: the same bytes, less memory
#
# All four ranks compute the same norms, residuals and dropout, and each rank keeps the whole activations. However, these operations treat each
# *position* of the sequence separately, so we can cut the positions there. This is *sequence parallelism* (Korthikanti et al. 2022). Then f becomes an
# all-gather of the positions, with a reduce-scatter in backward, and g becomes a reduce-scatter, with an all-gather in backward.
#
# **Predict.** Outside attention and MLP, rank $r$ now has only 2 of the 8 positions, and it computes the loss of these positions. Nothing else has changed.
# Which gradients does a rank hold only in part?

# %%
# Run this cell to make your prediction.
predict("15-places",
        "Each rank norms only its own positions. Which gradients must still be summed?",
        ["norms and biases of the row layers", "q, k, v and up", "all of them", "none"])

# %%
# %%px
world = dist.group.WORLD

def gather(x):
    return functional.all_gather_single_autograd(x, 1, world)  # 1: the positions

def scatter(x):
    return functional.reduce_scatter_single_autograd(x, "sum", 1, world)

part, x_cut = cut(block), data.chunk(size, 1)[rank].clone().requires_grad_()
with Ledger() as ahead:
    y = forward(part, x_cut, gather, scatter)
with Ledger() as back:
    y.square().sum().backward()

# %%
# %%px
partial = wrong_in(part)
for name in partial:
    dist.all_reduce(part.get_parameter(name).grad)
same = not wrong_in(part) and apart([
    (t, whole.chunk(size, 1)[rank]) for t, whole in ((y, y_one), (x_cut.grad, x_one.grad))
    ]) < 1e-12
if rank == 0:
    print("forward: ", calls(ahead), "\nbackward:", calls(back))
    print(ahead.bytes_sent + back.bytes_sent, "bytes sent; in part only:", *partial)
    print("then summed, as one process:", same)

# %%
# Run this cell to compare your prediction with the outcome.
def in_part():
    layers = {name.split(".")[0] for name in cluster.pull("partial")[0]}
    return {frozenset(("norm1", "norm2", "out_bias", "down_bias")):
            "norms and biases of the row layers", frozenset(): "none",
            frozenset(("q", "k", "v", "up")): "q, k, v and up"}.get(
                frozenset(layers), "all of them")

settle("15-places", in_part)

# %% [markdown]
# An all-reduce consists of a reduce-scatter and an all-gather (unit 04), so four of each replace the four all-reduces. In the ledger's ring model, the number
# of bytes is the same. The gradients of parameters that a rank used only for its own positions must be summed, but these parameters are small.
#
# <details><summary>What gloo sends, and what is kept for backward</summary>
#
# In a private module, PyTorch has an all-gather and a reduce-scatter that autograd can differentiate (before 2.13, they were called
# `all_gather_tensor_autograd` and `reduce_scatter_tensor_autograd`). Unlike NCCL, gloo builds its reduce-scatter from a whole all-reduce and therefore sends
# more. For the backward pass, our version keeps what it has gathered, whereas in Megatron-LM each rank keeps only its own positions and gathers again. If a
# block is recomputed in backward, the all-reduces of its forward pass are repeated, so up to six all-reduces are needed instead of four.
# </details>

# %% [markdown]
# > **A good place to stop.** This unit takes two sittings. In a new kernel, run the cells from the top to this one, and continue here.

# %% [markdown]
# ## One program, five layouts
#
# So far, we have written every cut into the program, whereas Mesh TensorFlow (Shazeer et al. 2018) keeps the cuts separate from it. The **dimensions** of
# tensors get names, and the ranks form a **mesh** whose **axes** have names. A **layout** specifies which dimension is cut along which axis, and every
# dimension that it does not mention stays whole. If a product sums over a dimension that is cut, the ranks along its axis hold summands, which must be added.
# `manyhands.mesh` is a small version of this idea, built on f and g.

# %% tags=["setup"]
# %%px --setup
from torch.distributed.device_mesh import init_device_mesh

from manyhands.mesh import Mesh, einsum

grid = init_device_mesh(device.type, (2, 2), mesh_dim_names=("dp", "tp"))
DIMS = {"x": ("batch", "in"), "up": ("in", "hidden"), "down": ("hidden", "out")}
SIZES = {"batch": 8, "in": 8, "hidden": 16, "out": 4}
LAYOUTS = {"nothing cut": {}, "data parallel": {"batch": "dp"},
           "model parallel": {"hidden": "tp"},
           "both": {"batch": "dp", "hidden": "tp"}, "inputs cut": {"in": "tp"}}

def program(x, up, down):
    h = einsum(x, up, ("batch", "hidden")).map(torch.tanh)
    y = einsum(h, down, ("batch", "out"))
    return h, y

# %% [markdown]
# Rank $r$ is in row $r \,\mathrm{div}\, 2$ and column $r \bmod 2$, so ranks 0 and 2 differ along `dp`, which is downwards in the picture below, and ranks 0 and
# 1 along `tp`. The loss is the sum of squares of $y$.
#
# **Predict.** Take a batch of 8 rows, 8 inputs, 16 hidden units and 4 outputs, and add up how many numbers a rank contributes to all-reduces in forward and
# backward. Of the layouts that cut something, which has the smallest total, and which has it if the batch is 64?

# %%
# Run this cell to make your prediction.
predict("15-small",
        "Which layout sums the fewest numbers with batch 8, in 8, hidden 16, out 4?",
        ["data parallel", "model parallel", "both", "inputs cut"])
predict("15-large",
        "Which layout sums the fewest numbers with batch 64, in 8, hidden 16, out 4?",
        ["data parallel", "model parallel", "both", "inputs cut"])

# %% tags=["setup"]
# %%px --setup
def axis_of(entry):
    return next(axis for axis in ("dp", "tp")
                if tuple(dist.get_process_group_ranks(grid.get_group(axis))) == entry.ranks)

def run(layout, batch):
    """Return the bill of forward and backward as [(axis, numbers)], and whether all results
    agree with a single process."""
    sizes, mesh = {**SIZES, "batch": batch}, Mesh(grid, layout)
    torch.manual_seed(2)
    whole = {name: drawn(*(sizes[d] for d in dims)).requires_grad_(name != "x")
             for name, dims in DIMS.items()}
    one = (torch.tanh(whole["x"] @ whole["up"]) @ whole["down"]).square().sum()
    one.backward()
    pieces = {name: mesh.cut(tensor, DIMS[name]) for name, tensor in whole.items()}
    with Ledger() as ledger:
        loss = program(**pieces)[1].map(torch.square).total()
        loss.backward()
    pairs = [(loss, one), *((pieces[name].grad.whole(), whole[name].grad)
                            for name in ("up", "down"))]
    return [(axis_of(e), e.numel) for e in ledger.entries], apart(pairs) < 1e-12

# %%
# %%px
bills = {batch: {name: run(layout, batch) for name, layout in LAYOUTS.items()}
         for batch in (8, 64)}
if rank == 0:
    for name in LAYOUTS:
        (small, same), (large, also) = bills[8][name], bills[64][name]
        print(f"{name:<14} as one process: {same and also}; "
              f"batch 8: {sum(n for _, n in small):>3} of {small}; "
              f"batch 64: {sum(n for _, n in large)}")

# %%
# Run this cell to compare your prediction with the outcome.
def cheapest(batch):
    bills = cluster.pull("bills")[0][batch]
    return min([name for name in bills if name != "nothing cut"],
               key=lambda name: sum(numbers for _, numbers in bills[name][0]))

settle("15-small", lambda: cheapest(8))
settle("15-large", lambda: cheapest(64))

# %% [markdown]
# <details><summary>Why?</summary>
#
# *Data parallel* sums the gradients of its weights (128 + 64 numbers, whatever the batch) and the loss, whereas *model parallel* sums $y$ (batch x 4). *Both*
# sums half of the gradients and half of $y$, and *inputs cut* sums $h$ before tanh. *Nothing cut* sends nothing, since all four ranks do all the work. What is
# sent is therefore only one criterion, besides work and memory, and only *both* quarters the work of a rank.
# </details>
#
# The next picture shows what each rank holds, with the whole tensor in grey, and how many numbers are summed at $h$ and at $y$ according to the ledger.

# %%
# %%px
def held(layout):
    """Return the entries of x, h and y that this rank holds, and the sums behind them."""
    mesh, found = Mesh(grid, layout), {}
    pieces = {name: mesh.cut(drawn(*(SIZES[d] for d in dims)), dims)
              for name, dims in DIMS.items()}
    with Ledger() as at_h:
        h = einsum(pieces["x"], pieces["up"], ("batch", "hidden")).map(torch.tanh)
    with Ledger() as at_y:
        einsum(h, pieces["down"], ("batch", "out"))
    for name, dims, entries in (("x", DIMS["x"], []), ("h", h.dims, at_h.entries),
                                ("y", ("batch", "out"), at_y.entries)):
        shape = [SIZES[d] for d in dims]
        places = torch.arange(shape[0] * shape[1]).reshape(shape)
        found[name] = (shape, mesh.cut(places, dims).value.tolist(),
                       [(entry.ranks, entry.numel) for entry in entries])
    return found

seen = {name: held(layout) for name, layout in LAYOUTS.items() if layout}

# %%
from manyhands.plots.holdings import Held, extent, table, who_holds_what

seen = cluster.pull("seen")
picture = {}
for layout in seen[0]:
    picture[layout] = [
        Held(name, shape, [extent(of_rank[layout][name][1], shape[1]) for of_rank in seen],
             sorted({total for of_rank in seen for total in of_rank[layout][name][2]}))
        for name, (shape, _, _) in seen[0][layout].items()]
print(table(picture))
who_holds_what(picture, (2, 2))

# %% [markdown]
# The second row of the picture shows Megatron's two layers, where nothing is sent at $h$. However, not every layout is possible.

# %% tags=["raises-exception"]
# %%px --ranks 0
Mesh(grid, {"batch": "dp", "in": "dp"}).cut(torch.ones(8, 8), DIMS["x"])

# %% [markdown]
# ## DTensor: the layout travels with the tensor
#
# PyTorch's `DTensor` carries its **placements**, one for each axis of the mesh. `Shard(d)` means a cut along dimension d, `Replicate()` a copy on each rank,
# and `Partial()` a summand on each rank. The method `redistribute` changes the placements and sends whatever the change requires.

# %%
# %%px
import logging

from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

for module in ("_collective_utils", "_redistribute"):  # the text contains their advice
    logging.getLogger(f"torch.distributed.tensor.{module}").setLevel(logging.ERROR)
line = init_device_mesh(device.type, (4,), mesh_dim_names=("tp",))
whole = torch.arange(64.0, device=device).reshape(8, 8)
start = {p: DTensor.from_local(whole, line, [Replicate()]).redistribute(placements=[p])
         for p in (Shard(0), Shard(1), Replicate())}
start[Partial()] = DTensor.from_local(whole, line, [Partial()])
for before, after in ((Shard(0), Replicate()), (Partial(), Replicate()),
                      (Partial(), Shard(0)), (Replicate(), Shard(1)),
                      (Shard(0), Shard(1))):
    with Ledger() as ledger:
        start[before].redistribute(placements=[after])
    if rank == 0:
        print(f"{str(before):<12} -> {str(after):<12}: {calls(ledger)}")

# %% [markdown]
# On GPUs, the last of these changes is an all-to-all, which sends a quarter as many bytes. An operation on DTensors determines the placement of its result
# itself.
#
# **Predict.** `a` is cut by columns, `Shard(1)`, and `b` by rows, `Shard(0)`. What is the placement of `a @ b`?

# %%
# Run this cell to make your prediction.
predict("15-product",
        "If DTensor a is Shard(1) and b is Shard(0), what is the placement of a @ b?",
        ["Shard(0)", "Shard(1)", "Replicate()", "Partial()"])

# %%
# %%px
with Ledger() as ledger:
    product = start[Shard(1)] @ start[Shard(0)]
placement = product.placements[0]
with Ledger() as later:
    bent = torch.tanh(product)
if rank == 0:
    print(f"a @ b: {placement}, sent: {calls(ledger)}; "
          f"tanh of it: {bent.placements[0]}, sent: {calls(later)}")

# %%
# Run this cell to compare your prediction with the outcome.
settle("15-product", lambda: cluster.pull("type(placement).__name__ + '()'")[0])

# %% [markdown]
# The product is a row layer, and DTensor performs the sum only when an operation such as tanh needs it. The result is right, but messages are sent where you do
# not see them, so check with a `Ledger`.
#
# `parallelize_module` cuts a model according to a **plan**, which has a style for each layer. The code of our block stays unchanged.

# %%
# %%px
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleOutput,
                                               RowwiseParallel, SequenceParallel,
                                               parallelize_module)

def plan(columns=ColwiseParallel, rows=RowwiseParallel):
    return {**{name: columns() for name in ("q", "k", "v", "up")},
            **{name: rows() for name in ROWS}}

def tried(plan, shard=None):
    """Return what the block sends under a plan, and whether its gradients are right."""
    model = parallelize_module(copy.deepcopy(block), line, plan)
    model.zero_grad()
    x = data
    if shard:
        x = DTensor.from_local(x, line, [Replicate()]).redistribute(placements=[shard])
    with Ledger() as ahead:
        y = model(x)
    with Ledger() as back:
        loss = y.square().sum()
        (loss.full_tensor() if shard else loss).backward()
    pairs = [(p.grad.full_tensor() if isinstance(p.grad, DTensor) else p.grad, q.grad)
             for p, q in zip(model.parameters(), block.parameters())]
    return ahead, back, apart(pairs) < 1e-12

# %% [markdown]
# **Predict.** Cut by hand, the block needed 2 all-reduces in forward and 2 in backward. In the next plan, q, k, v and up are `ColwiseParallel`,
# while out and down are `RowwiseParallel`. How many all-reduces does the backward pass need now?

# %%
# Run this cell to make your prediction.
predict("15-plan", "How many all-reduces does the plan need in backward?",
        unit="all-reduces")

# %%
# %%px
ahead, back, same = tried(plan())
together = {"norm1": PrepareModuleOutput(
    output_layouts=Replicate(), desired_output_layouts=Replicate(), use_local_output=False)}
mended = tried({**plan(), **together})
if rank == 0:
    for name, (first, second, right) in (("plan", (ahead, back, same)), ("mended", mended)):
        print(f"{name:<6}: {first.count('allreduce')} forward, {second.count('allreduce')} "
              f"backward; as one process: {right}")

# %%
# Run this cell to compare your prediction with the outcome.
settle("15-plan", lambda: cluster.pull("back.count('allreduce')")[0])

# %% [markdown]
# <details><summary>Why?</summary>
#
# Each of the layers q, k and v receives the whole input separately, so f is called three times, and each call causes an all-reduce in backward. In the block
# that we cut by hand, a single f precedes all three layers. The plan `mended` turns the norm's output into a DTensor once, so that the three gradients are
# added while they are `Partial` and are then summed over the ranks once. A right result does not tell you how much was sent.
# </details>
#
# Sequence parallelism can also be written as a plan. The trap is that layers return plain tensors by default, whereas the residual adds a DTensor.

# %%
# %%px
from functools import partial as with_

def sequence(**rows):
    return {**plan(with_(ColwiseParallel, input_layouts=Shard(1)),
                   with_(RowwiseParallel, output_layouts=Shard(1), **rows)),
            "norm1": SequenceParallel(), "norm2": SequenceParallel()}

ahead, back, same = tried(sequence(use_local_output=False), Shard(1))
if rank == 0:
    print("forward: ", calls(ahead), "\nbackward:", calls(back))
    print("as one process:", same)
try:
    tried(sequence(), Shard(1))
except RuntimeError as error:
    if rank == 0:
        print("without use_local_output=False:", str(error).split(",")[0])

# %% [markdown]
# Again, the layers q, k and v send their messages separately.
#
# <details><summary>Where are the sums of the norms' gradients?</summary>
#
# These gradients are `Partial`, so `full_tensor()` summed them after the ledger had been closed. The all-reduce of one number sums the loss.
# </details>
#
# <details><summary>Can a single process do all of this?</summary>
#
# With PyTorch's `LocalTensor` (in `torch.distributed._local_tensor`, still private in 2.15), one process holds the pieces of all ranks, on a process group that
# is only simulated. Our block under the plan gives the same gradients there, and a ledger counts the same calls. A `LocalTensor` quickly shows placements,
# values and calls. However, it does not show times, hangs, or what happens when ranks do different things.
# </details>
#
# ## A vocabulary, cut
#
# The embedding and the head of a language model are split along the vocabulary. In the embedding, a rank that does not have the row for a word contributes
# zeros, and g sums the contributions of all ranks. The scores of the head must stay split, because they are usually the network's largest tensor if attention
# is fused. `loss_parallel` computes the cross-entropy of a
# DTensor that is split along the vocabulary.
#
# **Predict.** There are 32 positions and 128 words, of which each rank has 32. How many collectives does `loss_parallel` use in the forward pass of the
# cross-entropy?

# %%
# Run this cell to make your prediction.
predict("15-loss",
        "How many collectives does loss_parallel use forward if words are cut?",
        unit="collectives")

# %%
# %%px
from torch.distributed.tensor.parallel import loss_parallel

torch.manual_seed(5)
words, following = torch.randint(128, (2, 32)).to(device)
whole = [drawn(128, 16).requires_grad_() for _ in range(2)]  # embedding and head
loss_one = nn.functional.cross_entropy(whole[0][words] @ whole[1].T, following)
loss_one.backward()
table, head = (t.detach().chunk(size)[rank].clone().requires_grad_() for t in whole)

def embed(words, table):
    """Return the rows of these words from a table of which each rank has a part."""
    row = words - rank * len(table)
    here = (0 <= row) & (row < len(table))
    return reduce_from(table[row.where(here, 0)] * here[:, None])

# %%
# %%px
with Ledger() as embedding:
    h = embed(words, table)
scores = DTensor.from_local(copy_to(h) @ head.T, line, [Shard(1)])
with loss_parallel():
    with Ledger() as ahead:
        loss = nn.functional.cross_entropy(scores, following)
    with Ledger() as back:
        loss.backward()
with Ledger() as gathered:
    scores.full_tensor()
pairs = [(loss.full_tensor(), loss_one)] + [
    (part.grad, t.grad.chunk(size)[rank]) for part, t in zip((table, head), whole)]
if rank == 0:
    print("embedding:", calls(embedding), "\nloss:     ", calls(ahead), "forward,",
          calls(back), "backward; as one process:", apart(pairs) < 1e-12)
    print(f"the loss sends {ahead.bytes_sent} bytes forward; to gather the scores would "
          f"take {gathered.bytes_sent}")

# %%
# Run this cell to compare your prediction with the outcome.
settle("15-loss", lambda: cluster.pull("len(ahead.entries)")[0])

# %% [markdown]
# <details><summary>Why?</summary>
#
# For each position, the ranks need the largest score of all words, the sum of exp over all words, and the score of the word that follows. These are three
# numbers, however large the vocabulary is, whereas the scores for 8,192 positions and the 128,256 words of Llama 3 take 4.2 GB in float32. `loss_parallel` uses
# one all-reduce for each of the three numbers, although the last two, which are sums, could share one. In backward, each rank has the gradients of its own
# scores, and the only all-reduce is the one of f, where $h$ enters the head.
# </details>
#
# ## A mesh of two axes
#
# Large training runs combine several kinds of parallelism. GPT-3, for example, was cut both inside its matrix products and between its layers (Brown et al.
# 2020). Here, we use tensor parallelism along one axis and data parallelism with sharded weights along the other. `fully_shard` cuts what each rank has left,
# and gathers it when it is used (unit 16). The plan along `tp` must be applied before `fully_shard` along `dp`.

# %%
# %%px
from torch.distributed.fsdp import fully_shard

both = parallelize_module(copy.deepcopy(block), grid["tp"], plan())
both.zero_grad()
fully_shard(both, mesh=grid["dp"])
row = grid["dp"].get_local_rank()
loss = both(data[row:row + 1]).square().sum()
(2 * loss).backward()  # fully_shard takes the mean over dp, and we want the sum
pairs = [(p.grad.full_tensor(), q.grad)
         for p, q in zip(both.parameters(), block.parameters())]
weight = both.up.weight
if rank == 0:
    print(f"up: {tuple(weight.to_local().shape)} of {tuple(weight.shape)} on each rank")
    print(f"{weight.placements}; as one process: {apart(pairs) < 1e-12}")

# %% [markdown]
# Each rank has a quarter of each matrix. Both cuts of `up` are along dimension 0, and the cut along tp came first. `_StridedShard` remembers this, so that
# `full_tensor()` joins the pieces in the right order.
#
# ## The same in TensorFlow
#
# In TensorFlow, `tf.experimental.dtensor` gives each tensor a layout, and a compiler inserts the collectives.
# [scripts/15_tensorflow_mesh.py](scripts/15_tensorflow_mesh.py) runs our program under the five layouts, on four *logical devices*.

# %%
import subprocess
import sys

done = subprocess.run([sys.executable, "scripts/15_tensorflow_mesh.py"],
                      capture_output=True, text=True)
print(done.stdout or done.stderr, end="")

# %% [markdown]
# ## Context parallelism: ring attention and Ulysses
#
# If a text is long, even a single row has too many positions for one rank. *Context parallelism* therefore cuts the positions in attention, too. In **ring
# attention**, each rank keeps its queries, while keys and values travel around a ring (Liu et al. 2023). A softmax over all positions needs all scores, but it
# can be computed in pieces if we remember the largest score so far and shrink the old sums when a larger score arrives. This is called *online softmax*
# (Milakov and Gimelshein 2018).

# %%
# %%px
def ring(q, kv):
    """Compute the attention of this rank's positions to all positions, for q of shape
    [heads, positions, size of a head]. The keys and values, kv, travel round the ring."""
    largest = torch.full_like(q[..., :1], -torch.inf)
    total, out = torch.zeros_like(largest), torch.zeros_like(q)
    for step in range(size):
        works, came = [], torch.empty_like(kv)
        if step < size - 1:  # sent while we compute
            works = dist.batch_isend_irecv([
                dist.P2POp(dist.isend, kv, (rank + 1) % size),
                dist.P2POp(dist.irecv, came, (rank - 1) % size)])
        scores = q @ kv[0].mT / q.shape[-1] ** 0.5
        new = torch.maximum(largest, scores.amax(-1, keepdim=True))
        weights, shrink = (scores - new).exp(), (largest - new).exp()
        total = total * shrink + weights.sum(-1, keepdim=True)
        out, largest = out * shrink + weights @ kv[1], new
        for work in works:
            work.wait()
        kv = came
    return out / total

# %%
# %%px
attend = nn.functional.scaled_dot_product_attention
torch.manual_seed(3)
q, k, v = (5 * drawn(4, 16, 8) for _ in range(3))  # 4 heads, 16 positions
own_kv = torch.stack([k, v]).chunk(size, 2)[rank].contiguous()
with Ledger() as ledger:
    out = ring(q.chunk(size, 1)[rank], own_kv)
same = apart([(out, attend(q, k, v).chunk(size, 1)[rank])]) < 1e-12
if rank == 0:
    print(f"sent {ledger.messages_sent} messages, {ledger.bytes_sent} bytes; "
          f"as one process: {same}")

# %% [markdown]
# Each rank sends $P - 1$ messages, and no rank ever has all keys.
#
# <details><summary>Ring attention in PyTorch</summary>
#
# `context_parallel`, in `torch.distributed.tensor.experimental`, is PyTorch's ring attention. In PyTorch 2.15, it rejects a causal mask on CPUs, and without a
# mask, it gathers all keys and values there. On GPUs, it gathers them, too, unless you call `set_rotate_method("alltoall")`, after which they travel around the
# ring. (Llama 3 also gathers the keys and values instead of sending them around a ring.) By default, `context_parallel`, like Llama 3, balances the load by
# giving each rank two pieces, as shown below (`enable_load_balance`), so the rows of its output are in a different order. In our function, a send and a receive
# are started together because NCCL can hang otherwise (unit 14). In backward, keys and values travel around the ring again, together with their gradients.
# </details>
#
# A causal mask makes the work of the ranks uneven, since early positions see few keys, and every step of the ring takes as long as its slowest rank. We count
# the pairs of a query and a key that this query sees. First, we cut the positions in order, and then we give each rank two pieces, one from each end.

# %%
def seen_by(queries, keys):
    return sum(key <= query for query in queries for key in keys)

in_order = [range(4 * r, 4 * r + 4) for r in range(4)]
both_ends = [[2 * r, 2 * r + 1, 14 - 2 * r, 15 - 2 * r] for r in range(4)]
for name, places in (("in order", in_order), ("both ends", both_ends)):
    steps = [[seen_by(places[r], places[(r - step) % 4]) for r in range(4)]
             for step in range(4)]  # in a step, rank r has the keys of rank r - step
    each = [sum(of_rank) for of_rank in zip(*steps)]
    print(f"{name:<9}: the ranks compute {each} pairs; the ring takes as long as "
          f"{sum(map(max, steps))} of them")

# %% [markdown]
# With many ranks, the ring takes almost twice as long if the positions are cut in order.
#
# **Ulysses** (Jacobs et al. 2023) needs no ring. All-to-alls exchange the cut along the positions for a cut along the heads, each rank computes its heads for
# all positions, and one more all-to-all restores the cut along the positions. All ranks have the same amount of work, even with a causal mask.

# %%
# %%px
def exchange(pieces, dim):
    """Send piece r to rank r, and join what arrives along `dim`."""
    came = functional.all_to_all_single_autograd(torch.cat(pieces), None, None,
                                                 dist.group.WORLD)
    return torch.cat(came.chunk(size), dim)

def ulysses(q, k, v):
    """Compute causal attention of this rank's positions [heads, positions, head size]."""
    q, k, v = (exchange(t.chunk(size, 0), 1) for t in (q, k, v))
    return exchange(attend(q, k, v, is_causal=True).chunk(size, 1), 0)

whole = [t.clone().requires_grad_() for t in (q, k, v)]
one = attend(*whole, is_causal=True)
one.square().sum().backward()
mine = [t.chunk(size, 1)[rank].clone().requires_grad_() for t in (q, k, v)]
with Ledger() as ledger:
    out = ulysses(*mine)
out.square().sum().backward()
pairs = [(out, one.chunk(size, 1)[rank])] + [
    (part.grad, t.grad.chunk(size, 1)[rank]) for part, t in zip(mine, whole)]
if rank == 0:
    print(f"sent {calls(ledger)}, {ledger.bytes_sent} bytes; output and gradients as in "
          f"one process: {apart(pairs) < 1e-12}")

# %% [markdown]
# In forward, Ulysses sends $2 / P$ of the bytes that the ring sends, if keys and values have as many heads as queries. However, it can use at most
# as many ranks as there are heads, and no rank computes while its messages travel.

# %% [markdown]
# ## Experts with a capacity
#
# Unit 11 sent tokens to experts on different ranks, which is called *expert parallelism*, but its router was not trained. Here, the router learns, because the
# expert's result is multiplied by the router's probability. Each rank sends at most $C$ tokens to an expert, in a box of $C$ rows, so all messages have the
# same size and no counts are exchanged. A token that does not fit into the box gets nothing from the experts, so in a network only the residual carries
# it forward.

# %% tags=["setup"]
# %%px --setup
def swap(x):
    return functional.all_to_all_single_autograd(x, None, None, dist.group.WORLD)

def experts(tokens, router, weight, capacity):
    """Return the experts' output for these tokens [n, width], how many overflow, and the
    balance, which is 1 when all experts are chosen equally often. `weight` is this
    rank's expert."""
    probabilities = (tokens @ router).softmax(1)
    gate, chosen = probabilities.max(1)
    wanted = nn.functional.one_hot(chosen, size)
    place = (wanted.cumsum(0) * wanted).sum(1) - 1  # among those with the same expert
    fits = place < capacity
    row = (chosen * capacity + place)[fits]         # the box: expert 0's rows, 1's, ...
    box = tokens.new_zeros(size * capacity, tokens.shape[1])
    worked = swap(torch.tanh(swap(box.index_put((row,), tokens[fits])) @ weight))
    out = torch.zeros_like(tokens)
    out = out.index_put((fits.nonzero().flatten(),), gate[fits, None] * worked[row])
    balance = size * (wanted.double().mean(0) * probabilities.mean(0)).sum()
    return out, (~fits).sum().item(), balance

# %% [markdown]
# First, we leave room for all tokens and compare the router's gradient with the gradient that a single process computes.

# %%
# %%px
torch.manual_seed(4)
router, weights, tokens = drawn(8, 4).requires_grad_(), drawn(4, 8, 8), drawn(4, 16, 8)
experts(tokens[rank], router, weights[rank], capacity=16)[0].square().sum().backward()
dist.all_reduce(router.grad)  # each rank has the part of its own tokens
whole, everybody = router.detach().clone().requires_grad_(), tokens.flatten(0, 1)
gate, chosen = (everybody @ whole).softmax(1).max(1)
worked = torch.tanh(torch.einsum("nd,nde->ne", everybody, weights[chosen]))
(gate[:, None] * worked).square().sum().backward()
over = [experts(tokens[rank], router, weights[rank], c)[1] for c in (16, 8, 5, 4)]
print(f"router's gradient as in one process: {apart([(router.grad, whole.grad)]) < 1e-12}; "
      f"with capacity 16, 8, 5, 4 overflow {over}")

# %% [markdown]
# Then we train for 100 steps with tokens of four kinds, and the experts must learn a different function for each kind. A rank has 16 tokens for four experts,
# an average of four for each expert, so a capacity of 5 leaves one row to spare on average.

# %% tags=["setup"]
# %%px --setup
def train(balanced, steps=100):
    """Train, and return [(mean loss, tokens that overflow on all ranks)] of each step."""
    torch.manual_seed(0)
    kinds, maps = 2 * drawn(4, 8), drawn(4, 8, 8)
    router = (0.1 * drawn(8, 4)).requires_grad_()
    weight, told = drawn(4, 8, 8)[rank].clone().requires_grad_(), []
    optimizer = torch.optim.Adam([router, weight], lr=0.03)
    for step in range(steps):
        tokens = kinds.repeat(4, 1) + 0.5 * drawn(4, 16, 8)[rank]
        target = torch.tanh(torch.einsum("nd,nde->ne", tokens, maps.repeat(4, 1, 1)))
        out, over, balance = experts(tokens, router, weight, capacity=5)
        loss = (out - target).square().mean()
        optimizer.zero_grad()
        (loss + balanced * balance).div(size).backward()  # the mean over the ranks
        dist.all_reduce(router.grad)
        optimizer.step()
        told.append(torch.stack([loss.detach() / size, loss.new_tensor(over)]))
    told = torch.stack(told)
    dist.all_reduce(told)
    return told.tolist()

# %%
# %%px
for balanced in (0, 0.3):
    told = train(balanced)
    if rank == 0:
        print(f"balance x {balanced:<3}:", "; ".join(
            f"step {step}: loss {told[step][0]:.2f}, {told[step][1]:.0f} of 64 overflow"
            for step in (0, 50, 99)))

# %% [markdown]
# The choice of an expert has no gradient, but the expert's probability has one. Without help, this router sends too many tokens to a few experts, and nothing
# is learned from the tokens that overflow. (This depends on the seed.) The second run adds 0.3 times the
# *balance* of Switch Transformer (Fedus et al. 2021) to the loss. The balance spreads the tokens over the experts, and at steps 50 and 99 no token overflows.
#
# <details><summary>What is the balance?</summary>
#
# For each expert, multiply the fraction of tokens for which it was chosen by the mean of its probabilities. The balance is the sum of these products, times the
# number of experts. It is 1 when all experts are chosen equally often. A fraction has no gradient, but a probability has one, so minimising the balance reduces
# most strongly the probability of the expert with the largest fraction.
# </details>
#
# ## When, and what it costs
#
# **Use tensor parallelism** when one layer, or what it keeps for backward, is too large for a device, and the links are fast. Adding **sequence parallelism**
# saves memory without sending more bytes. **Context parallelism** is for long texts, and **experts** allow many weights with little computation for each token.
#
# **Do not use tensor parallelism** over slow links (unit 14's pipeline sends less) or with more ranks than heads.
#
# <details><summary>What if several query heads share keys and values?</summary>
#
# With grouped-query attention (GQA), several query heads share one head of keys and values. The number of ranks is then limited by the number of these shared
# heads (8 in Llama 3), unless they are copied to several ranks.
# </details>
#
# **What it costs:** the ranks wait four times per block and step. The matrix products are smaller, so they use a device less efficiently. Moreover,
# someone who knows the model's layers must decide how to cut them.
#
# **The most common mistakes.** The bias of a row layer is added on every rank. A matrix that contains q, k and v is cut as if it were one layer, so that a rank
# has all of q and none of v. The function f is left out, or g also all-reduces in backward, which makes gradients too large by a factor of P. The norms'
# gradients are not summed under sequence parallelism. Dropout uses the same random numbers on all ranks where activations are cut, or different ones where they
# are whole.
#
# ## Summary
#
# * A column layer, a nonlinearity and a row layer together need one all-reduce in forward (g) and one in backward (f).
# * A block that is cut by heads needs four all-reduces of a whole activation, or four all-gathers and four reduce-scatters that send the same number of bytes.
# * A layout assigns dimensions to the axes of a mesh. The results are the same under all layouts, and the sizes decide which layout sends least.
# * A DTensor carries its placements (`Shard`, `Replicate` or `Partial`) and sends when it must, so check with a ledger. A plan can send more than a block that
#   is cut by hand. On two axes, apply tensor parallelism first and then `fully_shard`.
# * If a vocabulary is split by words, the loss needs three numbers for each position.
# * In ring attention, each rank sends P - 1 messages and shrinks old sums, whereas Ulysses exchanges positions for heads. Experts need a capacity and a
#   balance.
#
# **Now the lab:** write f, g, the cut layers and the rules of the einsum, and predict what layouts send. Unit 16 then shards what is still whole.
#
# **References.** M. Shoeybi et al. 2019, *Megatron-LM*, [arXiv 1909.08053](https://arxiv.org/abs/1909.08053). D. Narayanan et al. 2021, *Efficient Large-Scale
# Language Model Training on GPU Clusters Using Megatron-LM*, [arXiv 2104.04473](https://arxiv.org/abs/2104.04473). V. Korthikanti et al. 2022, *Reducing
# Activation Recomputation in Large Transformer Models*, [arXiv 2205.05198](https://arxiv.org/abs/2205.05198). N. Shazeer et al. 2018, *Mesh-TensorFlow*,
# [arXiv 1811.02084](https://arxiv.org/abs/1811.02084). Y. Xu et al. 2021, *GSPMD*, [arXiv 2105.04663](https://arxiv.org/abs/2105.04663). M. Milakov, N.
# Gimelshein 2018, *Online normalizer calculation for softmax*, [arXiv 1805.02867](https://arxiv.org/abs/1805.02867). H. Liu et al. 2023, *Ring Attention with
# Blockwise Transformers*, [arXiv 2310.01889](https://arxiv.org/abs/2310.01889). S. A. Jacobs et al. 2023, *DeepSpeed Ulysses*,
# [arXiv 2309.14509](https://arxiv.org/abs/2309.14509). A. Grattafiori et al. 2024, *The Llama 3 Herd of Models*,
# [arXiv 2407.21783](https://arxiv.org/abs/2407.21783), section 3.3.2. D. Lepikhin et al. 2020, *GShard*, [arXiv 2006.16668](https://arxiv.org/abs/2006.16668)
# (capacity). W. Fedus et al. 2021, *Switch Transformers*, [arXiv 2101.03961](https://arxiv.org/abs/2101.03961). T. B. Brown et al. 2020,
# [arXiv 2005.14165](https://arxiv.org/abs/2005.14165), section 2.3 (GPT-3). PyTorch,
# [Tensor Parallelism](https://docs.pytorch.org/docs/stable/distributed.tensor.parallel.html),
# [DTensor](https://docs.pytorch.org/docs/stable/distributed.tensor.html). TensorFlow, [DTensor](https://www.tensorflow.org/guide/dtensor_overview).

# %%
cluster.stop()
