# %% [markdown] unit={"minutes": 85, "ranks": 4, "framework": "torch", "title": "Tensor and mesh parallelism"}
# # 15 Lab: layers cut over ranks
#
# In this lab, you split the layers of a Transformer among the ranks of a group, as Megatron-LM does. After that, you write the rules by which any product of
# tensors can be split over a mesh of ranks. At the end, you can
#
# * write the forward and backward passes of the two functions that are called where a tensor enters and leaves a cut layer.
# * cut a linear layer by columns or by rows, use only one all-reduce in each direction for two such layers, and cut attention by heads.
# * determine the axes over which forward and backward must sum, for any product of tensors with named dimensions and any layout on a mesh.
# * predict which all-reduces a layout causes, and choose the layout that sends the fewest bytes within a memory limit.
# * find what is wrong in a loss over a vocabulary that is split over the ranks.
#
# **Before:** the tutorial of this unit. **Minutes:** 85 · **Ranks:** 4 · **Points:** 28.
#
# In exercises 1 to 4 and 8, your functions run on the ranks, so their cells begin with `%%px`. The functions of exercises 5 to 7 run in this kernel. A mistake
# may make the ranks wait for each other. After a few seconds, the cluster notices the hang, reports which rank is waiting for which, and heals. Below each
# check, you see what it prints when the answer is right. Every hint has two steps, so run `hint(...)` again for the second one.

# %% tags=["setup"]
import itertools
import math

from manyhands import Cluster, hint
from manyhands.checks import tensor_parallel as check

cluster = Cluster(nodes=1, ranks_per_node=4, framework="torch")

# %% tags=["setup"]
# %%px --setup
import os

import torch
import torch.distributed as dist
from torch import nn

if not dist.is_initialized():  # so that this cell can run twice
    dist.init_process_group(os.environ["MANYHANDS_BACKEND"])
nccl = dist.get_backend() == "nccl"  # gloo's reduce-scatter takes only CPU tensors
device = torch.device(os.environ["MANYHANDS_DEVICE"] if nccl else "cpu")

# %% [markdown]
# ## The rules of all exercises
#
# * A weight has the shape `[in, out]`, and a layer computes `y = x @ w + b`, so the columns of `w` belong to the outputs. (`nn.Linear` keeps the same matrix
#   transposed.)
# * All ranks of a group compute **the same loss from the same output**, and `loss.backward()` runs on all of them. The loss must nevertheless count only once,
#   not once for each rank.
# * An answer is right if its numbers and gradients are those that a single process computes in float64 with the whole layer, and if no more is sent than
#   necessary. The check counts calls and bytes with a ledger. A group of one rank sends nothing, whatever is called.
# * The checks use groups of 4, 3, 2 and 1 ranks. `group=None` means the world. In the group of ranks 1 and 3, rank 1 has the number 0.
# * You can use the functions that you write in one exercise in later exercises.
#
# ## 1. f and g
#
# | | forward | backward |
# |---|---|---|
# | `copy_to`, Megatron's *f*: x, which is the same on all ranks, enters the cut part | x as it is | the sum of all ranks' gradients |
# | `reduce_from`, Megatron's *g*: each rank has a part of a sum, which leaves the cut part | the sum of all ranks' x | the gradient as it is |
#
# Each sum is **one** `dist.all_reduce`. This function adds up numbers in the order in which they lie in memory, so a tensor must be contiguous on every rank
# (`contiguous`). If it is not contiguous, gloo silently returns a wrong sum and NCCL raises an error. A transposed gradient, for example, is not contiguous,
# and `clone()` keeps its order in memory. In addition, `all_reduce` writes into the tensor that it is given. However, x and the gradient that `backward`
# receives belong to other code that still needs them, so their numbers must not change.
#
# *Difficulty ●●○, 9 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Which of the four boxes of the table need a message? What does `backward` return for an argument that is not a tensor? For more help, run
# `hint("15-f-and-g")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="f-and-g"
# %%px --setup
class CopyTo(torch.autograd.Function):
    """Return x in forward, and the sum of all ranks' gradients in backward."""

    @staticmethod
    def forward(ctx, x, group):
        ### BEGIN SOLUTION
        ctx.group = group
        return x.view_as(x)
        ### END SOLUTION

    @staticmethod
    def backward(ctx, gradient):
        ### BEGIN SOLUTION
        total = gradient.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total, group=ctx.group)
        return total, None
        ### END SOLUTION


class ReduceFrom(torch.autograd.Function):
    """Return the sum of all ranks' x in forward, and the gradient in backward."""

    @staticmethod
    def forward(ctx, x, group):
        ### BEGIN SOLUTION
        total = x.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total, group=group)
        return total
        ### END SOLUTION

    @staticmethod
    def backward(ctx, gradient):
        ### BEGIN SOLUTION
        return gradient, None
        ### END SOLUTION


def copy_to(x, group=None):
    return CopyTo.apply(x, group)


def reduce_from(x, group=None):
    return ReduceFrom.apply(x, group)

# %% tags=["check"] grade_id="f-and-g-check" points=3
check.f_and_g(cluster, "copy_to", "reduce_from")

# %% [markdown]
# ## 2. A layer cut by columns
#
# Each rank has the whole x, some columns of the weight and the matching numbers of the bias. Your function returns this rank's columns of the output.
#
# *Difficulty ●○○, 5 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# What does each rank know about the gradient of x after its own part of the backward pass? For more help, run `hint("15-column")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="column"
# %%px --setup
def column(x, w, b, group=None):
    """Return this rank's columns of x @ whole weight + whole bias.

    x: [..., in], the same on all ranks. w: [in, columns], b: [columns] of this rank.
    """
    ### BEGIN SOLUTION
    return copy_to(x, group) @ w + b
    ### END SOLUTION

# %% tags=["check"] grade_id="column-check" points=3
check.column(cluster, "column")

# %% [markdown]
# ## 3. A layer cut by rows, and two layers
#
# Each rank has some rows of the weight and the matching columns of x, which are exactly what `column` returns. Every rank has the whole bias and trains it. All
# ranks return the whole output.
#
# *Difficulty ●○○, 5 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# How many times may the sum contain the bias? For more help, run `hint("15-row")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="row"
# %%px --setup
def row(x, w, b, group=None):
    """Return whole x @ whole weight + b, on all ranks.

    x: [..., rows], the columns of this rank. w: [rows, out] of this rank. b: [out], the
    same on all ranks.
    """
    ### BEGIN SOLUTION
    return reduce_from(x @ w, group) + b
    ### END SOLUTION

# %% tags=["check"] grade_id="row-check" points=3
check.row(cluster, "row")

# %% [markdown]
# Now write two layers, the first one cut by columns and the second one by rows, with `torch.tanh` after **each** of them. They need only one all-reduce in
# forward and one in backward, because nothing is sent between the layers.
#
# *Difficulty ●○○, 4 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# How is tanh of a part of a sum related to tanh of the whole sum? For more help, run `hint("15-mlp")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="mlp"
# %%px --setup
def mlp(x, up, up_bias, down, down_bias, group=None):
    """Return tanh(tanh(x @ whole up + its bias) @ whole down + its bias), on all ranks.

    x: [..., in], the same on all ranks. up: [in, hidden], up_bias: [hidden],
    down: [hidden, out] of this rank. down_bias: [out], the same on all ranks.
    """
    ### BEGIN SOLUTION
    hidden = torch.tanh(column(x, up, up_bias, group))
    return torch.tanh(row(hidden, down, down_bias, group))
    ### END SOLUTION

# %% tags=["check"] grade_id="mlp-check" points=3
check.mlp(cluster, "mlp")

# %% [markdown]
# ## 4. Attention cut by heads
#
# `qkv` is a single matrix, `[width, 3 * heads * head_size]`, with the weights of queries, keys and values. It contains first the columns of q, then the columns
# of k, and then the columns of v. In each of these three parts, the columns of head 0 come first, followed by the columns of head 1, and so on. `out` is
# `[heads * head_size, width]`, with its rows in the order of the heads. There are no biases.
#
# `cut_heads` cuts `qkv` and `out` for one of `size` ranks and sends nothing. Rank r gets `heads / size` consecutive heads, beginning with head
# `r * heads / size`. The function returns a matrix `[width, 3 * its heads * head_size]` in the same order as the whole one (q, k, v), and the rows of `out`
# that belong to its heads. Both results must be copies, because a view would keep the whole weight alive. If the number of heads is not divisible by the number
# of ranks, raise a `ValueError`.
#
# `attention` receives the pieces that `cut_heads` returns, and computes `softmax(q @ k.mT / sqrt(head_size)) @ v` for each head with a causal mask, so that
# position i sees positions 0 to i. All ranks return the whole output. Use one all-reduce in forward and **one** in backward.
#
# *Difficulty ●●●, 20 minutes, 5 points*
#
# <details><summary>Hint</summary>
#
# With 4 heads on 2 ranks, which columns of qkv does rank 1 need? They are not all next to each other. For more help, run `hint("15-attention")` in a separate
# cell.
# </details>

# %% tags=["solution"] grade_id="attention"
# %%px --setup
def cut_heads(qkv, out, heads, rank, size):
    """Return (columns of qkv, rows of out) for `rank` of `size` ranks.

    heads: the number of heads of the whole layer. Raises ValueError if it cannot be
    divided by the number of ranks.
    """
    ### BEGIN SOLUTION
    if heads % size:
        raise ValueError(f"{heads} heads do not divide by {size} ranks")
    mine = slice(heads // size * rank, heads // size * (rank + 1))
    return (qkv.unflatten(1, (3, heads, -1))[:, :, mine].flatten(1).clone(),
            out.unflatten(0, (heads, -1))[mine].flatten(0, 1).clone())
    ### END SOLUTION


def attention(x, qkv, out, heads, group=None):
    """Return the output of all heads, [rows, positions, width], on all ranks.

    x: [rows, positions, width], the same on all ranks. qkv, out: from `cut_heads`.
    heads: the number of heads of the whole layer.
    """
    ### BEGIN SOLUTION
    here = heads // dist.get_world_size(group)
    products = (copy_to(x, group) @ qkv).unflatten(-1, (3, here, -1))
    q, k, v = products.permute(2, 0, 3, 1, 4)  # each [rows, heads, positions, head_size]
    later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
    scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(later, -torch.inf)
    each = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
    return reduce_from(each @ out, group)
    ### END SOLUTION

# %% tags=["check"] grade_id="attention-check" points=5
check.attention(cluster, "cut_heads", "attention")

# %% [markdown]
# ## 5. Any product, any layout
#
# Now the layers are products of tensors whose dimensions have names. A **layout** specifies which dimension is cut along which axis of a mesh of ranks. For
# example, under `{"batch": "x", "hidden": "y"}`, every tensor with a dimension `batch` is cut along x, and every tensor with a dimension `hidden` along y.
# Where a tensor is not cut along an axis, all ranks along this axis have the same piece, and they must have the same gradient.
#
# As in `einsum`, the product of `a` and `b` is summed over all dimensions that are not in `out`. Each rank multiplies its two pieces. Your function returns the
# axes over which a sum is still needed:
#
# * in forward, for the product of the pieces, where `reduce_from` is called;
# * in backward, for the gradient of `a`, for which `copy_to` is called on `a` before the product;
# * in backward, for the gradient of `b`.
#
# Two dimensions of one product cannot be cut along the same axis, because together, the ranks would compute only the blocks on the diagonal. This is also true
# if one of the two dimensions is in `a` and the other in `b`. A layout may also name dimensions that this product does not have; these can be ignored here. The
# check computes products on a 2 by 2 mesh of ranks, with the sums that you return. The check's dimensions and axes have different names from the ones above,
# and its tensors may have three or more dimensions.
#
# *Difficulty ●●○, 12 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# Look at the two layers of exercise 3. Which dimension was cut, and where did the two all-reduces come from? Then suppose that a dimension appears only in `b`,
# is cut, and is summed over. What does each rank know about the gradient of `a` in this case? For more help, run `hint("15-reductions")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="reductions"
def reductions(a: tuple, b: tuple, out: tuple, layout: dict) -> tuple:
    """Return the axes to sum over as (forward, in the gradient of a, in the gradient of b),
    each of which is a list or a set.

    a, b, out: names of dimensions, such as ("batch", "in"). layout: {dimension: axis}.
    Raises ValueError if two dimensions of the product are cut along the same axis.
    """
    ### BEGIN SOLUTION
    def axes(dims):
        return {layout[d] for d in dims if d in layout}

    if len(axes((*a, *b))) < sum(d in layout for d in {*a, *b}):
        raise ValueError(f"{a}, {b}: two dimensions on one axis of {layout}")
    return (axes(a) | axes(b)) - axes(out), axes(b) - axes(a), axes(a) - axes(b)
    ### END SOLUTION

# %% tags=["check"] grade_id="reductions-check" points=4
check.reductions(cluster, reductions)

# %% [markdown]
# ## 6. What a layout sends
#
# A program is a list of products, one for each layer. The first `a` is data and needs no gradient. Every other `a` is the output of the previous product, to
# which a function that treats each number separately has been applied. Every `b` is a weight. A step consists of forward and backward with all gradients except
# the gradient of the data. The loss is not part of it.
#
# ```python
# program = [(("batch", "in"), ("in", "hidden"), ("batch", "hidden")),
#            (("batch", "hidden"), ("hidden", "out"), ("batch", "out"))]
# ```
#
# Predict the all-reduces. For each all-reduce, return its axis and how many numbers a rank contributes to it. Every product sums once over each axis that
# `reductions` returns, except that an axis with only one rank needs no sum. All sizes can be divided evenly. The check runs programs of two or three layers,
# whose dimensions have different names and whose tensors may have three dimensions, and compares your answer with what the ledger records.
#
# *Difficulty ●●○, 8 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# What is summed in forward has the shape of the output's piece. What shape does a sum in backward have? For more help, run `hint("15-price")` in a separate
# cell.
# </details>

# %% tags=["solution"] grade_id="price"
def price(program: list, sizes: dict, layout: dict, mesh: dict) -> list:
    """Return [(axis, numbers), ...] of all all-reduces of a step, in any order.

    program: [(a, b, out), ...]. sizes: {dimension: size before the cut}.
    mesh: {axis: number of ranks along it}.
    """
    ### BEGIN SOLUTION
    def numbers(dims):
        return math.prod(sizes[d] // mesh[layout[d]] if d in layout else sizes[d]
                         for d in dims)

    found = []
    for i, (a, b, out) in enumerate(program):
        forward, for_a, for_b = reductions(a, b, out, layout)
        found += [(axis, numbers(out)) for axis in forward]
        found += [(axis, numbers(a)) for axis in for_a if i > 0]
        found += [(axis, numbers(b)) for axis in for_b]
    return [(axis, count) for axis, count in found if mesh[axis] > 1]
    ### END SOLUTION

# %% tags=["check"] grade_id="price-check" points=2
check.price(cluster, price)

# %% [markdown]
# ## 7. Choose a layout
#
# A program of two layers does not fit into the memory of a rank if nothing is cut. Of the layouts that fit, choose the one in which a rank sends the fewest
# bytes in a step. If several layouts send the same number, you may return any of them. All numbers are float32 and take 4 bytes each. The check gives you
# several jobs. For each of them, at least one layout fits, and the names and the number of dimensions differ from job to job.
#
# * A rank **holds** its piece of each weight four times (the weight, its gradient and Adam's two numbers), its piece of the data once, and its piece of the
#   output of each product once. Together, these pieces may take at most `memory_bytes`, so a layout that needs exactly this much fits.
# * In an all-reduce of n numbers over p ranks, each rank must **send** 2 (p - 1) / p times n numbers, as in a ring.
# * A layout is **possible** if `reductions` accepts all products, and if each size that is cut is divisible by the number of ranks along its axis.
#
# (The time for computation is not counted here. Along an axis along which nothing is cut, all ranks do the same work.)
#
# *Difficulty ●●○, 12 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# With four dimensions, each of which is cut along one of two axes or not at all, there are 81 layouts. For more help, run `hint("15-choose")` in a separate
# cell.
# </details>

# %% tags=["solution"] grade_id="choose"
def choose(program: list, sizes: dict, mesh: dict, memory_bytes: int) -> dict:
    """Return the layout, {dimension: axis}, that fits and sends the fewest bytes."""
    ### BEGIN SOLUTION
    best = None
    for axes in itertools.product([None, *mesh], repeat=len(sizes)):
        layout = {d: axis for d, axis in zip(sizes, axes) if axis}
        if any(sizes[d] % mesh[axis] for d, axis in layout.items()):
            continue
        piece = {d: sizes[d] // mesh[layout[d]] if d in layout else sizes[d] for d in sizes}

        def numbers(dims):
            return math.prod(piece[d] for d in dims)

        held = 4 * numbers(program[0][0]) + sum(
            4 * (4 * numbers(b) + numbers(out)) for _, b, out in program)
        try:
            sums = price(program, sizes, layout, mesh)
        except ValueError:
            continue
        sent = sum(4 * n * 2 * (mesh[axis] - 1) / mesh[axis] for axis, n in sums)
        if held <= memory_bytes and (best is None or sent < best[0]):
            best = sent, layout
    return best[1]
    ### END SOLUTION

# %% tags=["check"] grade_id="choose-check" points=2
check.choose(choose)

# %% [markdown]
# ## 8. Find the bug
#
# At each position, the head of a language model computes a score for each word of the vocabulary, so these scores are often the model's largest tensor. If the
# head is cut by columns, each rank has the scores of only some words. The cross-entropy of a position is the logarithm of the sum of `exp(score)` over *all*
# words, minus the score of the word that follows. Usually, the largest score is subtracted from all scores first, because `exp` would overflow otherwise.
#
# The function below computes the cross-entropy with two small sums and never gathers the scores. It runs without an error, and all ranks return the same
# numbers.

# %%
# %%px --setup
def faulty_loss(h, head, targets, group=None):
    scores = h @ head
    scores = scores - scores.detach().amax(1, keepdim=True)
    total = reduce_from(scores.exp().sum(1), group)
    word = targets - dist.get_rank(group) * head.shape[1]  # its number on this rank
    here = (0 <= word) & (word < head.shape[1])
    own = scores.gather(1, word.where(here, 0)[:, None])[:, 0] * here
    return total.log() - reduce_from(own, group)

# %% [markdown]
# The next two cells compare `faulty_loss` with what a single process computes with the whole head, first for small scores and then for very large ones. They
# print the largest differences, and they need your functions of exercise 1.

# %%
# %%px --setup
def off_by(loss_of, times):
    torch.manual_seed(0)
    h, head = times * torch.randn(6, 5).double(), torch.randn(5, 16).double()
    targets = torch.randint(16, (6,)).to(device)
    h, head = (one.to(device).requires_grad_() for one in (h, head))
    right = nn.functional.cross_entropy(h @ head, targets, reduction="none")
    wanted = torch.autograd.grad(right.mean(), (h, head))
    mine = slice(4 * dist.get_rank(), 4 * dist.get_rank() + 4)
    part = head.detach()[:, mine].clone().requires_grad_()
    losses = loss_of(h, part, targets)
    gradients = torch.autograd.grad(losses.mean(), (h, part))
    pairs = {"loss": (losses, right), "gradient of h": (gradients[0], wanted[0]),
             "of head": (gradients[1], wanted[1][:, mine])}
    return ", ".join(f"{name} {(got - one).abs().max():.4f}"
                     for name, (got, one) in pairs.items())

# %%
# %%px
for times in (1, 300):
    print(f"scores x {times:>3}: {off_by(faulty_loss, times)}")

# %% [markdown]
# Write a function `vocabulary_loss` that computes the cross-entropy correctly, and then run the cell above with it. In forward, a rank may contribute at most
# three numbers for each position to all-reduces. In backward, it must contribute exactly one tensor as large as `h`. The check counts bytes. You may pack
# several sums into one all-reduce, but an all-gather of the same numbers sends more on 3 or 4 ranks, so the check rejects it.
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# There are two faults, one in the numbers and one in the gradients. Begin with the numbers, and write down for one position what each rank subtracts. For more
# help, run `hint("15-vocabulary")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="vocabulary"
# %%px --setup
def vocabulary_loss(h, head, targets, group=None):
    """Return the cross-entropy of each position, [positions], on all ranks.

    h: [positions, width], the same on all ranks. head: [width, words], the columns of this
    rank, of which all ranks have the same number. targets: [positions], numbers in the
    whole vocabulary.
    """
    ### BEGIN SOLUTION
    scores = copy_to(h, group) @ head
    largest = scores.detach().amax(1, keepdim=True)
    dist.all_reduce(largest, op=dist.ReduceOp.MAX, group=group)
    scores = scores - largest
    total = reduce_from(scores.exp().sum(1), group)
    word = targets - dist.get_rank(group) * head.shape[1]  # its number on this rank
    here = (0 <= word) & (word < head.shape[1])
    own = scores.gather(1, word.where(here, 0)[:, None])[:, 0] * here
    return total.log() - reduce_from(own, group)
    ### END SOLUTION

# %% tags=["check"] grade_id="vocabulary-check" points=3
check.vocabulary(cluster, "vocabulary_loss")

# %% [markdown]
# ## All together
#
# On four ranks, your functions now train a network to read handwritten digits. The 8 rows of an image are the 8 positions of an attention layer, and the two
# layers after it recognise the digit. This part is not graded, and it works if your functions do. The four ranks train the cut network together. For
# comparison, rank 0 also trains the whole network alone, in a group of one rank.

# %%
# %%px
from manyhands.data import digits

x, y = (torch.from_numpy(array).to(device) for array in digits("train"))
x, y = x.double().unflatten(1, (8, 8)), nn.functional.one_hot(y, 10).double()  # 8 positions
alone = [dist.new_group([r]) for r in range(4)][dist.get_rank()]


def weights(group):
    """Draw the same numbers for every group, and cut them for this rank."""
    chance, size = torch.Generator().manual_seed(0), dist.get_world_size(group)
    mine = dist.get_rank(group)

    def whole(*shape):
        drawn = torch.randn(shape, generator=chance, dtype=torch.float64)
        return (drawn / shape[0] ** 0.5).to(device)

    qkv, out = cut_heads(whole(8, 3 * 32), whole(32, 8), 4, mine, size)
    up, down, zeros = whole(64, 48), whole(48, 10), torch.zeros(48, device=device).double()
    cut = [qkv, out, up.chunk(size, 1)[mine], zeros.chunk(size)[mine],
           down.chunk(size)[mine], zeros[:10]]
    return [one.clone().requires_grad_() for one in cut]

# %%
# %%px
def train(group, steps=20):
    """Train, and return the loss before each step."""
    qkv, out, *layers = weights(group)
    optimiser, losses = torch.optim.Adam([qkv, out, *layers], lr=0.01), []
    for step in range(steps):
        seen = x + attention(x, qkv, out, 4, group)
        loss = nn.functional.mse_loss(mlp(seen.flatten(1), *layers, group), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


cut_losses = train(None)
if dist.get_rank() == 0:
    whole_losses = train(alone)
    same = all(abs(a - b) < 1e-6 for a, b in zip(cut_losses, whole_losses))
    print(f"loss {cut_losses[0]:.3f} at first, {cut_losses[-1]:.3f} after 20 steps; "
          f"the same as in one process: {same}")

# %% [markdown]
# ## Where to go on
#
# * `manyhands.mesh` contains full versions of `copy_to` and `reduce_from`, and an `einsum` on a `Mesh`, which calls these two functions by the rules of
#   exercise 5. `torch.distributed.tensor.parallel` does the same for existing modules.
# * *Sequence parallelism*: between the cut parts of a Transformer, every rank keeps all positions of x, and LayerNorm computes the same values everywhere. If
#   you cut the positions there, `copy_to` becomes an all-gather whose backward is a reduce-scatter, and `reduce_from` becomes a reduce-scatter whose backward
#   is an all-gather. A ring sends as many bytes as before, while the activations between the cut parts shrink. However, parameters outside the cut parts, such
#   as LayerNorm's, then see only some positions on each rank, so their gradients need a sum.
# * Extend exercise 7 so that it minimises the time of a step. Assume that a rank performs a fixed number of multiplications per second, both in its piece of
#   each product and in its pieces of the two products that each product needs in backward, and that it sends a fixed number of bytes per second. Which layouts
#   are best now?
# * M. Shoeybi et al. 2019, *Megatron-LM*, [arXiv 1909.08053](https://arxiv.org/abs/1909.08053); N. Shazeer et al. 2018, *Mesh-TensorFlow*,
#   [arXiv 1811.02084](https://arxiv.org/abs/1811.02084); V. Korthikanti et al. 2022, *Reducing Activation Recomputation in Large Transformer Models*
#   (sequence parallel), [arXiv 2205.05198](https://arxiv.org/abs/2205.05198).

# %%
cluster.stop()
