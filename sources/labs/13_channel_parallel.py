# %% [markdown] unit={"minutes": 50, "ranks": 4, "framework": "torch", "title": "Channel-parallel convolution"}
# # 13 Lab: a convolution on several ranks, equal to nn.Conv2d
#
# You write a dense convolution whose weight is spread over the ranks. At the end, you can
#
# * split a convolution by output or by input channel, even if the channels do not divide evenly.
# * write the three operators with which a channel-parallel layer communicates, forward and backward.
# * show that outputs and gradients are the same as with one `nn.Conv2d`, even though all ranks compute the loss.
# * combine two layers so that a single sum is enough.
# * predict how many bytes a layer moves, and when data parallelism moves fewer.
#
# **Before:** the tutorial of this unit. **Minutes:** 50 · **Ranks:** 4 · **Points:** 17.
#
# Cells that begin with `%%px` run on all four ranks, while the others run in this kernel. If a mistake makes the ranks wait for each other, their communicator
# gives up after 8 seconds, and the check reports the timeout. Below each check, you see what it prints when the answer is right. Every hint has two steps, so
# run `hint(...)` again for the second one.

# %% tags=["setup"]
from manyhands import Cluster, hint
from manyhands.checks import channel_parallel as check

cluster = Cluster(nodes=1, ranks_per_node=4, framework="torch")

# %% tags=["setup"]
# %%px --setup
import copy
import math

import torch
from torch import nn
from torch.nn.functional import conv2d, cross_entropy, max_pool2d, relu

from manyhands import comm, functions
from manyhands.data import digits, shard

# %% [markdown]
# Your functions get a communicator `c`. On each rank, `c.rank` is the rank's number and `c.size` is the number of ranks. You need two operations:
#
# * `c.allreduce(tensor)` returns the sum of the tensors of all ranks. Autograd does not record it.
# * `functions.allgather(c, tensor)` returns a tuple with the tensors of all ranks, whose shapes may differ. Autograd does record it, and its backward pass
#   sums the gradients of all ranks.
#
# The checks use communicators of 4, 3 and 2 ranks, numbers of channels that do not divide evenly, and float64. **The loss is replicated:** all ranks
# compute the same loss from the same output, and each rank calls `backward`. The gradient of this loss must count only once.
#
# ## 1. Cut the layer
#
# A weight has the shape `[output channels, input channels, k, k]`. Rank `r` takes a contiguous block of the channels, `shard(n, rank, size)`. For example, 10
# channels on 4 ranks form blocks of 3, 3, 2 and 2. Write `part`, which returns a rank's part of a layer:
#
# | | weight | bias |
# |---|---|---|
# | `split="out"` | the rank's output channels | the rank's output channels |
# | `split="in"` | the rank's input channels | whole, on every rank |
#
# *Difficulty ●○○, 6 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# Which axis holds the output channels, and which axis holds the input channels? What does a slice of a tensor keep in memory? For more help, run
# `hint("13-part")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="part"
# %%px --setup
def part(conv: nn.Conv2d, split: str, rank: int, size: int):
    """Return this rank's `(weight, bias)` of a whole layer, as `nn.Parameter`s. `bias` is
    None if the layer has none.

    The parameters are trained, so they must be leaves. They must have separate memory, so
    that the whole layer can be deleted.
    """
    ### BEGIN SOLUTION
    def own(tensor):
        return None if tensor is None else nn.Parameter(tensor.detach().clone())

    if split == "out":
        rows = shard(conv.out_channels, rank, size)
        return own(conv.weight[rows]), own(None if conv.bias is None else conv.bias[rows])
    return own(conv.weight[:, shard(conv.in_channels, rank, size)]), own(conv.bias)
    ### END SOLUTION

# %% tags=["check"] grade_id="part-check" points=2
check.part(cluster, "part")

# %% [markdown]
# ## 2. Three operators
#
# All communication of a channel-parallel layer takes place in three small operators. The first and the second are the conjugate pair *f* and *g* of Shoeybi et
# al. (2019), in which the forward pass of the one is the backward pass of the other.
#
# | operator | forward | backward |
# |---|---|---|
# | `copy_to_parts` | x as it is, since all ranks have the same x | the sum of all ranks' gradients |
# | `sum_of_parts` | the sum of all ranks' tensors | the gradient as it is |
# | `join_parts` | the channels (axis 1) of all ranks, rank 0 first | the rank's own channels of the gradient |
#
# Ranks may hold different numbers of channels. Only what the table lists may travel, so you must not even send the sizes in separate messages. A rank can
# read the sizes from the tensors that arrive. The check counts bytes and messages exactly.
#
# *Difficulty ●●○, 12 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# What must `Join` remember in the forward pass, so that the backward pass knows which channels belong to this rank? For more help, run `hint("13-operators")`
# in a separate cell.
# </details>

# %% tags=["solution"] grade_id="operators"
# %%px --setup
class Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, c):
        ### BEGIN SOLUTION
        ctx.c = c
        return x.view_as(x)
        ### END SOLUTION

    @staticmethod
    def backward(ctx, gradient):
        ### BEGIN SOLUTION
        return ctx.c.allreduce(gradient), None
        ### END SOLUTION


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, c):
        ### BEGIN SOLUTION
        return c.allreduce(x)
        ### END SOLUTION

    @staticmethod
    def backward(ctx, gradient):
        ### BEGIN SOLUTION
        return gradient, None
        ### END SOLUTION


class Join(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, c):
        ### BEGIN SOLUTION
        parts = functions.allgather(c, x)
        ctx.start = sum(part.shape[1] for part in parts[:c.rank])
        ctx.channels = x.shape[1]
        return torch.cat(parts, dim=1)
        ### END SOLUTION

    @staticmethod
    def backward(ctx, gradient):
        ### BEGIN SOLUTION
        return gradient[:, ctx.start:ctx.start + ctx.channels], None
        ### END SOLUTION


copy_to_parts, sum_of_parts, join_parts = Copy.apply, Sum.apply, Join.apply

# %% tags=["check"] grade_id="operators-check" points=4
check.operators(cluster, "copy_to_parts", "sum_of_parts", "join_parts")

# %% [markdown]
# ## 3. By output channel
#
# Every rank has the whole `x`, and the weight and bias that `part(conv, "out", ...)` returns. Write `out_split`, which returns the whole output on every rank.
# In the forward pass, only the outputs may travel, and in the backward pass only the gradient of x, because each rank already has its own channels of the
# output's gradient.
#
# *Difficulty ●●○, 7 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Which operator makes the output whole? What is the gradient of an `x` that four ranks have used? For more help, run `hint("13-out-split")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="out-split"
# %%px --setup
def out_split(x, weight, bias, c, stride=1, padding=0):
    """Return the output of the whole layer on every rank, with the gradients of the whole
    layer.

    x: [batch, all input channels, height, width], the same on every rank. weight, bias:
    this rank's output channels.
    """
    ### BEGIN SOLUTION
    return join_parts(conv2d(copy_to_parts(x, c), weight, bias, stride, padding), c)
    ### END SOLUTION

# %% tags=["check"] grade_id="out-split-check" points=3
check.out_split(cluster, "out_split")

# %% [markdown]
# ## 4. By input channel
#
# Every rank has only its own channels of `x`, the weight that `part(conv, "in", ...)` returns, and the whole bias. Write `in_split`, which returns the whole
# output on every rank.
#
# *Difficulty ●●○, 7 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# How often may the bias be added? Which ranks need its gradient? For more help, run `hint("13-in-split")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="in-split"
# %%px --setup
def in_split(x, weight, bias, c, stride=1, padding=0):
    """Return the output of the whole layer on every rank, with the gradients of the whole
    layer.

    x: [batch, this rank's input channels, height, width]. weight: the same channels. bias:
    whole, or None.
    """
    ### BEGIN SOLUTION
    y = sum_of_parts(conv2d(x, weight, None, stride, padding), c)
    return y if bias is None else y + bias[:, None, None]
    ### END SOLUTION

# %% tags=["check"] grade_id="in-split-check" points=3
check.in_split(cluster, "in_split")

# %% [markdown]
# ## 5. Two layers, one sum
#
# What the out split computes on a rank is exactly what the in split needs there. Therefore, the two layers of `pair` need no join between them. They need only
# one sum in the forward pass, and one sum in the backward pass, for the gradient of x.
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# May the ReLU be computed before the channels are joined? For more help, run `hint("13-pair")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="pair"
# %%px --setup
def pair(x, first, second, c, padding=1):
    """Return the whole second(relu(first(x))) on every rank.

    x: all channels, the same on every rank. first: (weight, bias) of `part(..., "out")`.
    second: (weight, bias) of `part(..., "in")`.
    """
    ### BEGIN SOLUTION
    hidden = relu(conv2d(copy_to_parts(x, c), *first, padding=padding))
    weight, bias = second
    return in_split(hidden, weight, bias, c, padding=padding)
    ### END SOLUTION

# %% tags=["check"] grade_id="pair-check" points=3
check.pair(cluster, "pair")

# %% [markdown]
# ## 6. Predict the bytes
#
# A training step moves activations in a channel-parallel layer, and gradients of weights in data parallelism. Predict how many bytes **all ranks together**
# send in one step:
#
# | `way` | travels in the forward pass | travels in the backward pass |
# |---|---|---|
# | `"out"` | y, joined | gradient of x, summed |
# | `"in"` | y, summed | nothing |
# | `"pair"` | y of the second layer, summed | gradient of the first layer's x, summed |
# | `"data"` | nothing | gradient of the weight, summed (no bias in this exercise) |
#
# All numbers are float32. A join sends each rank's part to all other ranks. A sum (`c.allreduce`) has two steps. First, each rank receives the other ranks'
# numbers for its share and sums them. Then the shares are joined. The check runs all four ways of the table and compares your predictions with the ledger.
#
# Then answer a question with `largest_side`. Assume stride 1, an output as large as the input, no bias, and the in split of the table above. Since each rank
# has only its own channels of x, nothing travels in the backward pass. (In the tutorial, every rank had the whole x, so the backward pass needed an additional
# join.) What is the largest side of a square image for which this in split moves no more bytes than data parallelism?
#
# *Difficulty ●●○, 10 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# In a join on four ranks, how often does each number of y travel? How often does it travel in each of the two steps of a sum? For more help, run
# `hint("13-moved")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="moved"
# %%px --setup
def moved_bytes(way: str, x: tuple, weight: tuple, y: tuple, size: int) -> int:
    """Return the bytes that all `size` ranks together send in one step. x, weight, y:
    shapes of the whole tensors."""
    ### BEGIN SOLUTION
    def joined(shape):
        return (size - 1) * 4 * math.prod(shape)

    def summed(shape):
        return 2 * joined(shape)

    return {"out": joined(y) + summed(x), "in": summed(y), "pair": summed(y) + summed(x),
            "data": summed(weight)}[way]
    ### END SOLUTION


def largest_side(batch: int, c_in: int, c_out: int, kernel: int) -> int:
    """Return the largest side of an image for which the in split moves no more bytes than
    data parallelism."""
    ### BEGIN SOLUTION
    return math.isqrt(c_in * kernel * kernel // batch)
    ### END SOLUTION

# %% tags=["check"] grade_id="moved-check" points=2
check.moved(cluster, "moved_bytes", "largest_side")

# %% [markdown]
# ## All together
#
# Your functions train a small network on handwritten digits. For comparison, each rank also trains the same network with whole layers, as a single process
# would. This part is not graded, and it works as soon as your functions do. The number before "of" at the end of the output counts this rank's weights and
# biases, including the second layer's whole bias.

# %%
# %%px
c = comm.create_communicator()
device = c.device
x, y = (torch.from_numpy(array).to(device) for array in digits("train"))
x = x.view(-1, 1, 8, 8).double()  # so that rounding does not grow during training

torch.manual_seed(0)  # the same whole layers on every rank, to be split
layers = (nn.Conv2d(1, 10, 3, padding=1), nn.Conv2d(10, 7, 3, padding=1),
          nn.Linear(7 * 16, 10))
one, two, head = (layer.double().to(device) for layer in layers)
first, second = part(one, "out", c.rank, c.size), part(two, "in", c.rank, c.size)
own_head = copy.deepcopy(head)

def alone(x):
    return head(max_pool2d(two(relu(one(x))), 2).flatten(1))

def together(x):
    return own_head(max_pool2d(pair(x, first, second, c), 2).flatten(1))

# %%
# %%px
whole = [*one.parameters(), *two.parameters(), *head.parameters()]
parts = [*first, *second, *own_head.parameters()]
for model, parameters in ((alone, whole), (together, parts)):
    optimiser = torch.optim.Adam(parameters, lr=0.03)
    for step in range(40):
        rows = slice(step % 5 * 300, step % 5 * 300 + 300)
        cross_entropy(model(x[rows]), y[rows]).backward()
        optimiser.step()
        optimiser.zero_grad()
x_test, y_test = (torch.from_numpy(array).to(device) for array in digits("test"))
with torch.no_grad():
    outputs = [model(x_test.view(-1, 1, 8, 8).double()) for model in (alone, together)]
correct = (outputs[1].argmax(1) == y_test).float().mean().item()
held = sum(parameter.numel() for parameter in [*first, *second])
close = torch.allclose(*outputs, atol=1e-6)
print(f"accuracy {correct:.2f}, as one process to 1e-6: {close}; {held} of "
      f"{sum(p.numel() for p in whole[:4])} weights of the convolutions are here")

# %% [markdown]
# ## Where to go on
#
# * `links.ParallelConv2d(..., split="in" | "out")` is a ready-made layer of this kind, with which the tutorial trains. Its in split takes the whole x, so it
#   joins x's gradient in the backward pass.
# * M. Shoeybi et al. 2019, *Megatron-LM*, [arXiv 1909.08053](https://arxiv.org/abs/1909.08053), use the operators f and g for matrices instead of convolutions.
#   Unit 15 does the same with PyTorch's DTensor.
# * A. Krizhevsky 2014, *One weird trick for parallelizing convolutional neural networks*, [arXiv 1404.5997](https://arxiv.org/abs/1404.5997), explains where to
#   split by channel and where by sample.

# %%
cluster.stop()
