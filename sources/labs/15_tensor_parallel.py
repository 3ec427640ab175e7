# %% [markdown] unit={"minutes": 85, "ranks": 4, "framework": "torch", "title": "Tensor and mesh parallelism"}
# # 15 Lab: layers cut over ranks
#
# You cut the layers of a Transformer over the ranks of a group, as Megatron-LM does, and then write the rules by which any product of tensors can be cut
# along a mesh of ranks. At the end you can
#
# * write the two functions that stand where a tensor enters and leaves a cut layer, forward and backward;
# * cut a linear layer by columns or by rows, two of them with one all-reduce in each direction, and attention by heads;
# * say for any product of tensors with named dimensions, and any layout on a mesh, over which axes forward and backward must sum;
# * predict which all-reduces a layout causes, and choose the layout that sends least under a limit of memory;
# * find what is wrong in a loss over a vocabulary that is cut over the ranks.
#
# **Before:** the tutorial of this unit. **Minutes:** 85. **Ranks:** 4. **Points:** 28.
#
# In exercises 1 to 4 and 8 your functions run on the ranks, and their cells begin with `%%px`. Those of 5 to 7 run in this kernel. A mistake may make the ranks wait
# for each other: after a few seconds the cluster notices, says who waits for whom, and heals. Below each check stands what it says when the answer is right.
# Every hint has two steps: run `hint(...)` again for the second.

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

if not dist.is_initialized():  # so that this cell can be run twice
    dist.init_process_group(os.environ["MANYHANDS_BACKEND"])
nccl = dist.get_backend() == "nccl"  # gloo's reduce-scatters take the CPU's tensors only
device = torch.device(os.environ["MANYHANDS_DEVICE"] if nccl else "cpu")

# %% [markdown]
# ## The rules of all exercises
#
# * A weight is `[in, out]`, and a layer is `y = x @ w + b`: so columns are columns. (`nn.Linear` keeps the same matrix transposed.)
# * All ranks of a group compute **the same loss from the same output**. So a loss counts once, and not once for each rank; `loss.backward()` runs on all of
#   them.
# * An answer is right if its numbers and gradients are those of one process with the whole layer, in float64, and if no more is sent than need be. The check
#   counts calls and bytes with a ledger; a group of one rank sends nothing, whatever is called.
# * The checks use groups of 4, 3 and 2 ranks and of one rank. `group=None` is the world; in the group of ranks 1 and 3 the first one is rank 1.
# * Use your own functions from one exercise in the next.
#
# ## 1. f and g
#
# | | forward | backward |
# |---|---|---|
# | `copy_to`, Megatron's *f*: x, which is the same on all ranks, enters the cut part | x as it is | the sum of all ranks' gradients |
# | `reduce_from`, its *g*: each rank has a part of a sum, which leaves it | the sum of all ranks' x | the gradient as it is |
#
# Each sum is **one** `dist.all_reduce`. It adds up memory as it lies, so the numbers must lie in order on every rank (`contiguous`): of others gloo makes
# a wrong sum without a word, and NCCL refuses them. A transposed gradient is such a one, and `clone()` keeps its order. And `all_reduce` writes into the
# tensor that it is given. But x, and the gradient that comes into `backward`, belong to others, who still need them: their numbers must stay as they are.
#
# *Difficulty ●●○, 9 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Which of the four boxes of the table needs a message? What does `backward` return for an argument that is no tensor? For more, run `hint("15-f-and-g")` in a
# cell of its own.
# </details>

# %% tags=["solution"] grade_id="f-and-g"
# %%px --setup
class CopyTo(torch.autograd.Function):
    """Forward: x. Backward: the sum of all ranks' gradients."""

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
    """Forward: the sum of all ranks' x. Backward: the gradient."""

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
# Each rank has the whole x, and some columns of the weight, with the numbers of the bias that belong to them. It returns its own columns of the output.
#
# *Difficulty ●○○, 5 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# What does each rank know of the gradient of x, after its own part of backward? For more, `hint("15-column")`.
# </details>

# %% tags=["solution"] grade_id="column"
# %%px --setup
def column(x, w, b, group=None):
    """This rank's columns of x @ whole weight + whole bias.

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
# Each rank has some rows of the weight, and of x the columns that belong to them: just what `column` returns. Every rank has the whole bias, and trains it.
# All return the whole output.
#
# *Difficulty ●○○, 5 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# How often may the bias be in the sum? For more, `hint("15-row")`.
# </details>

# %% tags=["solution"] grade_id="row"
# %%px --setup
def row(x, w, b, group=None):
    """whole x @ whole weight + b, on all ranks.

    x: [..., rows], the columns of this rank. w: [rows, out] of this rank. b: [out], the
    same on all ranks.
    """
    ### BEGIN SOLUTION
    return reduce_from(x @ w, group) + b
    ### END SOLUTION

# %% tags=["check"] grade_id="row-check" points=3
check.row(cluster, "row")

# %% [markdown]
# Now two layers, the first one cut by columns and the second one by rows, with `torch.tanh` after **each** of them. One all-reduce forward, one backward:
# nothing is sent between the layers.
#
# *Difficulty ●○○, 4 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# What does tanh of a part of a sum have to do with tanh of the sum? For more, `hint("15-mlp")`.
# </details>

# %% tags=["solution"] grade_id="mlp"
# %%px --setup
def mlp(x, up, up_bias, down, down_bias, group=None):
    """tanh(tanh(x @ whole up + its bias) @ whole down + its bias), on all ranks.

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
# `qkv` is the weight of queries, keys and values in one matrix, `[width, 3 * heads * head_size]`: first the columns of q, then those of k, then those of v;
# in each of the three come the columns of head 0, then of head 1, and so on. `out` is `[heads * head_size, width]`, with its rows in the order of the heads.
# There are no biases.
#
# `cut_heads` cuts both for one rank out of `size`. Rank r gets `heads / size` neighbouring heads, beginning with head `r * heads / size`: a matrix
# `[width, 3 * its heads * head_size]` in the same order as the whole one, q, k, v; and the rows of `out` that belong to its heads. Both have memory of their
# own: a view would keep the whole weight alive. Nothing is sent. Heads that do not divide by the ranks are refused with a `ValueError`.
#
# `attention` gets these pieces, and computes for each head `softmax(q @ k.mT / sqrt(head_size)) @ v` with a causal mask: place i sees the places 0 to i. All
# ranks return the whole output. One all-reduce forward, and **one** backward.
#
# *Difficulty ●●●, 20 minutes, 5 points*
#
# <details><summary>Hint</summary>
#
# With 4 heads on 2 ranks, which columns of qkv does rank 1 need? They do not lie side by side. For more, `hint("15-attention")`.
# </details>

# %% tags=["solution"] grade_id="attention"
# %%px --setup
def cut_heads(qkv, out, heads, rank, size):
    """(this rank's columns of qkv, its rows of out), for `rank` of `size` ranks.

    heads: of the whole layer. Raises ValueError if they do not divide by the ranks.
    """
    ### BEGIN SOLUTION
    if heads % size:
        raise ValueError(f"{heads} heads do not divide by {size} ranks")
    mine = slice(heads // size * rank, heads // size * (rank + 1))
    return (qkv.unflatten(1, (3, heads, -1))[:, :, mine].flatten(1).clone(),
            out.unflatten(0, (heads, -1))[mine].flatten(0, 1).clone())
    ### END SOLUTION


def attention(x, qkv, out, heads, group=None):
    """The output of all heads, [rows, places, width], on all ranks.

    x: [rows, places, width], the same on all ranks. qkv, out: from `cut_heads`.
    heads: of the whole layer.
    """
    ### BEGIN SOLUTION
    here = heads // dist.get_world_size(group)
    products = (copy_to(x, group) @ qkv).unflatten(-1, (3, here, -1))
    q, k, v = products.permute(2, 0, 3, 1, 4)  # each [rows, heads, places, head_size]
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
# Now the layers are products of tensors whose dimensions have names. A **layout** says which dimension is cut along which axis of a mesh of ranks: under
# `{"batch": "x", "hidden": "y"}` every tensor that has a dimension `batch` is cut along x, every one with `hidden` along y. Where a tensor is not cut along
# an axis, all ranks along it have the same piece, and are to have the same gradient.
#
# The product of `a` and `b` is summed over all dimensions that are not in `out`, as `einsum` does it. Each rank multiplies its two pieces. What is missing
# then? Your function says over which axes to sum:
#
# * forward, the product of the pieces: what `reduce_from` is called for;
# * backward, the gradient of `a`: what `copy_to` is called for, with `a`, before the product;
# * backward, the gradient of `b`.
#
# Two dimensions of one product on one axis cannot be: a rank would only ever meet the blocks of a diagonal. That is so too if one of them is in `a` and the
# other in `b`. A layout may also name dimensions that this product has not: they do not matter here. The check runs products on the ranks, on a mesh of 2 by
# 2, with the sums that you say. Its dimensions and axes have other names than those above, and its tensors may have three dimensions or more.
#
# *Difficulty ●●○, 12 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# Take the two layers of exercise 3: which dimension was cut, and where did the two all-reduces come from? And suppose that a dimension of `b` alone is cut, and
# summed away: what does each rank then know of the gradient of `a`? For more, `hint("15-reductions")`.
# </details>

# %% tags=["solution"] grade_id="reductions"
def reductions(a: tuple, b: tuple, out: tuple, layout: dict) -> tuple:
    """The axes to sum over: (forward, in the gradient of a, in the gradient of b), each a
    list or a set.

    a, b, out: names of dimensions, as ("batch", "in"). layout: {dimension: axis}.
    Raises ValueError if two dimensions of the product lie on one axis.
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
# A program is a list of products, one layer after the other. The first `a` is data, of which nobody needs the gradient. Every other `a` is the output of the
# product before, after a function that treats each number by itself. Every `b` is a weight. All gradients but that of the data are wanted, so this is a step,
# forward and backward; the loss is not part of it.
#
# ```python
# program = [(("batch", "in"), ("in", "hidden"), ("batch", "hidden")),
#            (("batch", "hidden"), ("hidden", "out"), ("batch", "out"))]
# ```
#
# Foretell the all-reduces: for each of them its axis, and how many numbers a rank hands to it. Every product sums once over each axis that `reductions`
# gives. An axis with one rank needs none. All sizes divide. The check runs programs of two layers or three, whose dimensions have other names and whose tensors
# may have three dimensions, and compares with what the ledger sees.
#
# *Difficulty ●●○, 8 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# What is summed forward has the shape of the output's piece. And backward? For more, `hint("15-price")`.
# </details>

# %% tags=["solution"] grade_id="price"
def price(program: list, sizes: dict, layout: dict, mesh: dict) -> list:
    """[(axis, numbers), ...] of all all-reduces of a step, in any order.

    program: [(a, b, out), ...]. sizes: {dimension: size of the whole}.
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
# A program of two layers does not fit into the memory of a rank if nothing is cut. Choose the layout that fits and makes a rank send the fewest bytes in a
# step. If several send the same, any of them will do. All numbers are float32: 4 bytes. For each job some layout fits; names and numbers of dimensions differ
# from job to job.
#
# * A rank **holds** its pieces of each weight four times (the weight, its gradient, Adam's two numbers), of the data once, and of the output of each product
#   once. That may be at most `memory_bytes`, so a layout that needs exactly as much fits.
# * An all-reduce of n numbers over p ranks makes each of them **send** 2 (p - 1) / p times n numbers, as a ring does.
# * A layout is **possible** if `reductions` refuses none of the products, and if each size that is cut divides by the ranks along its axis.
#
# (Seconds of computing are not counted here. Along an axis on which nothing is cut, ranks compute the same as each other.)
#
# *Difficulty ●●○, 12 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# With four dimensions, each on one of two axes or on none, there are 81 layouts. For more, `hint("15-choose")`.
# </details>

# %% tags=["solution"] grade_id="choose"
def choose(program: list, sizes: dict, mesh: dict, memory_bytes: int) -> dict:
    """The layout, {dimension: axis}, that sends least among those that fit."""
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
# The head of a language model gives a score for each word of the vocabulary, so these scores are often its largest tensor. If the head is cut by columns, each rank has the scores of some words only. The
# cross-entropy of a place is the logarithm of the sum of `exp(score)` over *all* words, minus the score of the word that follows. Usually the largest score is subtracted from all of them first, as `exp` overflows otherwise.
#
# The function below computes this with two small sums, and never gathers the scores. It runs without an error, and all ranks return the same numbers.

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
# The next cell compares it with one process that has the whole head. It does so with small scores and with very large ones, and it prints the largest difference. It needs `copy_to` and `reduce_from` of exercise 1.

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
# Write the function as it should be, then run the cell above with `vocabulary_loss`. In forward, a rank may hand at most three numbers for each place to all-reduces. In backward, it must hand over exactly one tensor as large as `h`. The check
# compares bytes. You may pack several sums into one all-reduce, but an all-gather of the same numbers sends more on 3 or 4 ranks and fails.
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# There are two faults, one in the numbers and one in the gradients. Begin with the numbers: for one place, write down what each rank subtracts. For more, run `hint("15-vocabulary")`.
# </details>

# %% tags=["solution"] grade_id="vocabulary"
# %%px --setup
def vocabulary_loss(h, head, targets, group=None):
    """The cross-entropy of each place, [places], on all ranks.

    h: [places, width], the same on all ranks. head: [width, words], the columns of this
    rank; all ranks have equally many. targets: [places], numbers in the whole vocabulary.
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
# Your pieces read handwritten digits, on four ranks: the 8 rows of an image are 8 places, attention looks at them, and two layers tell the digit. Not graded:
# it works when your pieces do. Each rank trains the cut network with the others, and for comparison the whole one by itself, in a group of one rank.

# %%
# %%px
from manyhands.data import digits

x, y = (torch.from_numpy(array).to(device) for array in digits("train"))
x, y = x.double().unflatten(1, (8, 8)), nn.functional.one_hot(y, 10).double()  # 8 places
alone = [dist.new_group([r]) for r in range(4)][dist.get_rank()]


def weights(group):
    """The same numbers whatever the group, cut for this rank."""
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
    """The loss before each step."""
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
# * `manyhands.mesh` has these pieces for real: `copy_to`, `reduce_from`, and `einsum` on a `Mesh`, which calls them by the rules of exercise 5.
#   `torch.distributed.tensor.parallel` does the same to modules that are there already.
# * *Sequence parallel*: between the cut parts of a Transformer every rank keeps all places of x, and LayerNorm computes the same everywhere. Cut the places
#   there: `copy_to` becomes an all-gather whose backward is a reduce-scatter, `reduce_from` the other way round. The bytes of a ring stay the same, the
#   activations in between shrink. Then parameters outside, as those of LayerNorm, see only some places on each rank: their gradients need a sum.
# * In exercise 7 add seconds: a rank computes its piece of each product, and of the two that backward makes of it, at so many multiplications a
#   second, and sends at so many bytes a second. Which layouts win now?
# * M. Shoeybi et al. 2019, *Megatron-LM*, [arXiv 1909.08053](https://arxiv.org/abs/1909.08053); N. Shazeer et al. 2018, *Mesh-TensorFlow*,
#   [arXiv 1811.02084](https://arxiv.org/abs/1811.02084); V. Korthikanti et al. 2022, *Reducing Activation Recomputation in Large Transformer Models*
#   (sequence parallel), [arXiv 2205.05198](https://arxiv.org/abs/2205.05198).

# %%
cluster.stop()
