# %% [markdown] unit={"minutes": 45, "ranks": 4, "framework": "torch", "title": "Differentiable communication"}
# # 11 Differentiable communication
#
# When a model is spread over ranks, the forward pass sends activations, and the backward pass must send gradients. This notebook examines both passes. At the
# end, you can
#
# * write a communication call as a matrix over the data of all ranks, and read its backward pass off the transpose of this matrix.
# * write `send` and `recv` as autograd functions, and explain what a *delegate variable* is for.
# * trace a deadlock back to a gap in the graph of the backward pass, and repair the graph.
# * explain why a loss that is computed on N ranks gives N times the gradient.
# * send tokens to experts on other ranks, as a mixture of experts does, and bring all gradients back.
#
# **Before:** you can train a model in PyTorch, and you know what a broadcast is. **Minutes:** 45 · **Ranks:** 4, on 2 nodes.

# %% [markdown]
# ## Four ranks
#
# This kernel starts four ranks, and cells that begin with `%%px` run on all of them. The option `--setup` marks the cells that are run again if the cluster
# must be healed. In this unit, healing will be necessary.

# %% tags=["setup"]
from manyhands import Cluster, predict, settle

cluster = Cluster(nodes=2, ranks_per_node=2, framework="torch")

# %% tags=["setup"]
# %%px --setup
import os

import torch
import torch.distributed as dist

if not dist.is_initialized():  # so that this cell can be run twice
    dist.init_process_group(os.environ["MANYHANDS_BACKEND"])
device = torch.device(os.environ["MANYHANDS_DEVICE"])
rank, world_size = dist.get_rank(), dist.get_world_size()

# %% [markdown]
# ## A call is a matrix
#
# The calls in this unit only move and add numbers. (An all-reduce can also compute a maximum or a product.) Over the data of *all* ranks together, such a call
# is therefore a linear map, which can be written as a matrix. To measure this matrix, we let rank `j` start with 1 and all others with 0. What the ranks hold
# afterwards is column `j`.

# %% tags=["setup"]
# %%px --setup
def everywhere(x):
    """Join the one-dimensional tensors of all ranks, in the order of the ranks."""
    parts = [torch.empty_like(x) for _ in range(world_size)]
    dist.all_gather(parts, x)
    return torch.cat(parts)

def matrix_of(call):
    columns = [everywhere(call(torch.tensor([float(rank == j)], device=device)))
               for j in range(world_size)]
    return torch.stack(columns, dim=1).int()

def show(title, matrix):
    if rank == 0:
        print(title, *["  " + " ".join(map(str, row)) for row in matrix.tolist()], sep="\n")

# %%
# %%px
def broadcast_from_1(x):
    x = x.clone()
    dist.broadcast(x, src=1)
    return x

A = matrix_of(broadcast_from_1)
show("A: a broadcast from rank 1", A)

# %% [markdown]
# Row `i` describes what rank `i` holds afterwards, which is 1 times rank 1's value plus 0 times the values of all others.
#
# Now let a loss $L$ depend on all outputs $y = A x$. Write $\bar y_i = \partial L / \partial y_i$ for the gradient that rank `i` has at its output. The chain
# rule gives the gradient at the inputs:
#
# $$ \bar x_j = \sum_i \frac{\partial y_i}{\partial x_j} \bar y_i = \sum_i A_{ij} \, \bar y_i, \qquad \text{that is} \quad \bar x = A^{\mathsf T} \bar y . $$
#
# **Backward is the transpose**, which is also called the *adjoint*. The transpose is again the matrix of a communication call, with all messages reversed.
#
# **Predict.** Which call has the matrix $A^{\mathsf T}$? What does each rank receive in that call?

# %%
# Run this cell to make your prediction.
predict("11-transpose", "Which call has the transposed matrix of a broadcast from rank 1?",
        ["a broadcast from rank 1", "a scatter from rank 1", "a sum at rank 1",
         "a sum at every rank"])

# %%
# %%px
def sum_at_1(gradient):
    total = gradient.clone()
    dist.reduce(total, dst=1)
    return total if rank == 1 else torch.zeros_like(total)

B = matrix_of(sum_at_1)
show("B: a sum at rank 1", B)
show("A transposed", A.T)

# %%
# Run this cell to compare your prediction with the outcome.
SAME = "bool((B == A.T).all())"
settle("11-transpose", lambda: {True: "a sum at rank 1"}[cluster.pull(SAME)[0]])

# %% [markdown]
# <details><summary>Why?</summary>
#
# Row 1 of the transpose has a 1 in each column, so rank 1, the root, gets the *sum* of all ranks' gradients. The other rows are zero, because the values that
# the other ranks had passed in were overwritten, so nothing depends on them. A number that was used in four places collects the gradients from all four.
# The same happens in a single process, where the gradient of a variable that you use four times is a sum of four terms.
# </details>
#
# The backward pass of every other call follows in the same way:
#
# * *send and recv:* a number moves from one rank to another. In the transposed call, the gradient moves back.
# * *gather:* the root holds the pieces of all ranks, one after another. In the transposed call, the root gives each rank the gradient of its piece, which is a
#   **scatter**. Conversely, the transpose of a scatter is a gather.
# * *allgather:* each rank's piece is copied to all ranks. In the transposed call, each rank gets the gradients of its own piece from all ranks (an all-to-all)
#   and **sums** them. Together, these two steps are a *reduce-scatter*.
# * *alltoall:* rank `i` sends each rank `j` the piece that is meant for it. In the transposed call, rank `j` sends the gradient of that piece back to `i`,
#   which is an **alltoall** again.
# * *allreduce* (sum): each output is the sum of all inputs. The matrix contains only ones and equals its transpose, so the backward pass **sums** the gradients
#   for all ranks.

# %% [markdown]
# ## send and recv, written out
#
# For autograd, a call and its backward pass are two methods of one `Function`. PyTorch calls `backward` with the gradient of each output and expects one
# gradient for each input of `forward`, or `None` for an input that has no gradient. A *tag* tells the messages between two ranks apart. Since NCCL has no tags,
# these messages go through a gloo group on the CPU, even on a machine with GPUs.

# %% tags=["setup"]
# %%px --setup
messages = dist.new_group(backend="gloo")

# %% tags=["setup"]
# %%px --setup
class Send(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, peer, tag):
        ctx.peer, ctx.tag, ctx.shape = peer, tag, x.shape
        dist.send(x.detach(), dst=peer, tag=tag, group=messages)
        return torch.zeros(())  # the delegate, which is explained below

    @staticmethod
    def backward(ctx, _):
        gradient = torch.empty(ctx.shape)
        dist.recv(gradient, src=ctx.peer, tag=ctx.tag, group=messages)
        return gradient, None, None

# %% [markdown]
# It is not clear what `Send` should *return*. The data has gone to another rank, but autograd calls `backward` only if something depends on an output. `Send`
# therefore returns a zero that represents what was sent and that we can pass on. ChainerMN calls this zero the **delegate variable**.
#
# `Recv` has the opposite problem, because it has no *input* on this rank. Autograd records only functions with an input that requires a gradient. For example,
# `torch.zeros(2).exp().grad_fn` is `None`, whereas `torch.zeros(2, requires_grad=True).exp().grad_fn` is an `ExpBackward0`. For this reason, `Recv` takes an
# input that requires a gradient, namely a delegate or a zero made for the purpose.

# %% tags=["setup"]
# %%px --setup
class Recv(torch.autograd.Function):
    @staticmethod
    def forward(ctx, delegate, shape, peer, tag):
        ctx.peer, ctx.tag = peer, tag
        x = torch.empty(shape)
        dist.recv(x, src=peer, tag=tag, group=messages)
        return x

    @staticmethod
    def backward(ctx, gradient):
        dist.send(gradient.contiguous(), dst=ctx.peer, tag=ctx.tag, group=messages)
        return torch.zeros(()), None, None, None

def nothing():
    return torch.zeros((), requires_grad=True)

# %% [markdown]
# Is each `backward` the transpose of its `forward`? You can test this with neither a matrix nor finite differences. For all $x$ and $\bar y$, the two sides of
#
# $$ \langle A x, \bar y \rangle = \langle x, A^{\mathsf T} \bar y \rangle $$
#
# must be the same number. The left side uses what `forward` computed, the right side uses what `backward` computed, and each product is summed over all ranks.
# With whole numbers, the two sides must be identical down to the last bit. In the next cell, rank 0 sends three numbers to rank 1.

# %%
# %%px --ranks 0,1
if rank == 0:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    Send.apply(x, 1, 7).backward()
    print("<x, gradient of x> =", x.detach().dot(x.grad).item())
else:
    y = Recv.apply(nothing(), (3,), 0, 7)
    gradient_of_y = torch.tensor([4.0, 5.0, 6.0])
    y.backward(gradient_of_y)
    print("<y, gradient of y> =", y.detach().dot(gradient_of_y).item())

# %% [markdown]
# ## There and back
#
# We now place a model on two ranks. Rank 0 multiplies by `w0` and sends the result, rank 1 multiplies by `w1` and sends its result back, and rank 0 multiplies
# by `w2`. If each layer is a single number, $y = w_2 w_1 w_0 x = 7 \cdot 5 \cdot 3 \cdot 2 = 210$, and a single process computes these gradients:

# %% tags=["setup"]
# %%px --setup
def parameters():
    return [torch.tensor(value, requires_grad=True) for value in (3.0, 5.0, 7.0)]

w0, w1, w2 = parameters()
y = w2 * w1 * w0 * 2
y.backward()
print("one process: gradients", [w.grad.item() for w in (w0, w1, w2)])

# %% [markdown]
# The next cell defines the same model on two ranks. The graph of each rank records what its forward pass has done, including messages. Chainer called this
# *define-by-run*. The argument `connect` decides whether rank 0 passes the delegate of its `Send` to its `Recv`.

# %% tags=["setup"]
# %%px --setup
def there_and_back(connect):
    """Return what backward starts from, the delegate of the rank's send, and its parameters
    by name."""
    w0, w1, w2 = parameters()
    if rank == 0:
        delegate = Send.apply(w0 * 2, 1, 0)
        z = Recv.apply(delegate if connect else nothing(), (), 1, 1)
        return w2 * z, delegate, {"w0": w0, "w2": w2}
    z = Recv.apply(nothing(), (), 0, 0)
    delegate = Send.apply(w1 * z, 0, 1)
    return delegate, delegate, {"w1": w1}

# %% [markdown]
# Rank 1's only output is its delegate, so its backward pass starts at this delegate.
#
# **Predict.** If rank 0 does not use the delegate (`connect=False`), which part of its graph does its backward pass reach from `y`? What will rank 1 wait for?
# In a training loop of two steps, which rank is stuck, and in which call?

# %%
# Run this cell to make your prediction.
predict("11-delegate", "In two steps without the delegate, which rank waits for which?",
        ["0 for 1", "1 for 0", "each for the other", "nobody: one gradient is missing"])

# %% tags=["raises-exception"]
# %%px --ranks 0,1 --patience 3
for step in range(2):
    start, _, named = there_and_back(connect=False)
    start.backward()

# %%
# Run this cell to compare your prediction with the outcome.
import sys

def waits():
    edges = sys.last_value.edges
    if len(edges) != 1:
        return "each for the other" if edges else "nobody: one gradient is missing"
    return f"{edges[0][0]} for {edges[0][1]}"

settle("11-delegate", waits)

# %% [markdown]
# <details><summary>Why?</summary>
#
# Rank 0's backward pass walks from `y` through `Recv`, which sends the gradient of `z` to rank 1, and ends at the zero that `Recv` was given. It never
# reaches `Send`, so it never receives the gradient that rank 1 sends back. Rank 0 has then finished step 0, continues with step 1 and sends an activation.
# Meanwhile, rank 1 is still in the backward pass and sends a gradient. Each rank waits for the other to receive, which is a deadlock. (The report sees only the
# calls, and therefore recommends a different order. A different order would not help here, since rank 0 would still never receive the gradient.)
#
# With only one step, rank 1 would wait for a rank that has finished. If the library kept a copy of small messages and let the sender continue, no rank would
# wait at all, but `w0` would never learn.
# </details>
#
# <details><summary>Why not isend, which does not wait?</summary>
#
# With `dist.isend`, no rank would hang here, but `w0` would still never learn. Moreover, the tensor and the object that `isend` returns must be kept until the
# message has arrived, whereas the local variables of `backward` are lost when `backward` returns. (In the lab, a list keeps them.)
# </details>

# %% [markdown]
# > **On GPUs.** NCCL drops the tag, so the i-th send to a rank meets its i-th receive. Messages are paired only by their order, so if two backward passes run in
# > different orders, gradients are swapped. Calls return when they are enqueued, so the deadlock above would appear later, at the first line that needs a result
# > (`item()`, `print`), and after ten minutes a watchdog would end the process. Two messages in opposite directions may hang even with `isend`. To avoid this,
# > start them together with `dist.batch_isend_irecv`.

# %% [markdown]
# ## The picture: what backward can reach
#
# Now that the cluster has healed itself, we look at the graphs that autograd has recorded, without starting a backward pass. The function `walk` follows
# `grad_fn` from a tensor to everything from which it was computed.

# %%
# %%px
from manyhands.plots.graph import walk

graphs = {}
for title, connect in (("without the delegate", False), ("with the delegate", True)):
    if rank < 2:
        start, delegate, named = there_and_back(connect)
        graphs[title] = walk(start, delegate, names=named)

# %%
from manyhands.plots import graph

by_rank = cluster.pull("graphs")
pictures = {title: {rank: by_rank[rank][title] for rank in (0, 1)} for title in by_rank[0]}
print(graph.table(pictures))
graph.graph(pictures)

# %% [markdown]
# <details><summary>How to read it</summary>
#
# Each lane is the graph of one rank, with the forward pass running from left to right. The backward pass starts at the box on the right and follows the arrows.
# Thick arrows are gradients that travel to the other rank. In the upper picture, rank 0's backward pass ends at the zero (`leaf`) that its `recv` was given. It
# never reaches the pale boxes, and the gradient that rank 1 sends (dotted, with a cross) is never received. In the lower picture, the dashed arrow is the
# delegate, which opens a way from `recv` back to `send`. No data flows along this arrow, because it only tells autograd where to continue.
# </details>
#
# **On each rank, one backward pass must reach every send.** The forward pass does not depend on this, so nothing warns you before the backward pass. With the
# delegate, both training steps run:

# %%
# %%px --ranks 0,1
for step in range(2):
    start, _, named = there_and_back(connect=True)
    start.backward()
print({name: w.grad.item() for name, w in named.items()})

# %% [markdown]
# These are the gradients that a single process computes, namely 70, 42 and 30.
#
# ## The package's functions
#
# From here on, we use the functions of the `manyhands` package. They work on a *communicator* `c`, find out shapes and dtypes by themselves, and have a
# timeout. They also give each message a separate identity, so that gradients cannot be swapped, whatever the order of the backward passes. Since they are
# called as in ChainerMN, programs written for ChainerMN need few changes. Rank 0's part of *There and back* is now `phi = functions.send(w0 * 2, c, rank=1)`,
# followed by `z = functions.recv(c, rank=1, delegate_variable=phi)`.

# %% tags=["setup"]
# %%px --setup
from manyhands import comm, functions

c = comm.create_communicator(timeout_s=8)
pair = c.split(rank // 2)  # two communicators of two ranks: 0 and 1, 2 and 3

# %% [markdown]
# Is each of these functions correct? We measure both matrices of each call and compare them. The forward matrix is measured with inputs that are 0 except for a
# single 1, and the backward matrix with gradients of the same form.

# %% tags=["setup"]
# %%px --setup
def unit(n, place):
    """Return this rank's `n` numbers. If the numbers of all ranks are put in a row, all of
    them are 0 except the one at `place`."""
    before = sum(c.allgather_obj(n)[:rank])
    return [torch.tensor(float(before + i == place), device=device, requires_grad=True)
            for i in range(n)]

def world(numbers):
    return [number.item() for part in c.allgather_obj(numbers) for number in part]

# %% tags=["setup"]
# %%px --setup
def forward_matrix(call, n):
    return torch.tensor([world(call(unit(n, j))) for j in range(c.size * n)]).T.int()

def backward_matrix(call, n, outputs):
    columns = []
    for i in range(outputs):
        xs = unit(n, None)
        ys = call(xs)
        torch.autograd.backward(ys, unit(len(ys), i))
        columns.append(world([x.new_zeros(()) if x.grad is None else x.grad for x in xs]))
    return torch.tensor(columns).T.int()

# %% [markdown]
# Each rank passes `n` numbers to a call, and the call returns a list of numbers. For a `send`, this list contains the delegate. The same is true for a `gather`
# on all ranks except the root, so a `gather` has 7 outputs (4 numbers at the root and 3 delegates).

# %% tags=["setup"]
# %%px --setup
def to_and_fro(xs):  # rank 0 of each pair sends
    return [functions.send(xs[0], pair, rank=1) if pair.rank == 0
            else functions.recv(pair, rank=0)]

def at_root(y):
    return list(y) if isinstance(y, tuple) else [y]

calls = {"send, recv": (to_and_fro, 1),
         "bcast": (lambda xs: [functions.bcast(c, xs[0], root=1)], 1),
         "gather": (lambda xs: at_root(functions.gather(c, xs[0], root=1)), 1),
         "scatter": (lambda xs: [functions.scatter(c, xs, root=1)], 4),
         "allgather": (lambda xs: list(functions.allgather(c, xs[0])), 1),
         "alltoall": (lambda xs: list(functions.alltoall(c, xs)), 4),
         "allreduce": (lambda xs: [functions.allreduce(c, xs[0])], 1)}

# %%
# %%px
for name, (call, n) in calls.items():
    A = forward_matrix(call, n)
    B = backward_matrix(call, n, len(A))
    if rank == 0:
        print(f"{name:<11} A is {len(A):>2} x {len(A.T):<2}  backward is A transposed: "
              f"{torch.equal(B, A.T)}  "
              f"added in one place: {B.sum(1).max()}")

# %% [markdown]
# The last column is the largest number of ones in any row of the transpose, which is the number of gradients that meet in one place. This gives the following table.
#
# | forward | backward | does it add? |
# |---|---|---|
# | send | recv | no |
# | recv | send | no |
# | bcast | reduce to the root, **which sums** | yes |
# | gather | scatter | no |
# | scatter | gather | no |
# | allgather | reduce-scatter, an alltoall **and a sum** | yes |
# | alltoall | alltoall | no |
# | allreduce | allreduce | yes |
#
# PyTorch has some of these calls (but not send and recv) in `torch.distributed.nn.functional`, with the backward passes of this table. (In 2.13, `broadcast`
# gave the root a gradient of zero in a group in which the root's rank differs from its rank in the world; 2.15 has corrected this.) Five of the module's nine
# calls are deprecated, in favour of `torch.distributed._functional_collectives`. There, all-reduce (a sum), all-gather, reduce-scatter and all-to-all have the
# same backward passes. However, its `broadcast` has no backward pass yet. It gives a warning, and each rank keeps its own gradient, although the root should
# get the sum.
#
# ## A model with calls in it
#
# The article that introduces ChainerMN's functions begins with a model that consists of a broadcast, a convolution, a ReLU and a gather. In the next cell, each
# rank has its own convolution, and the root computes a loss from what it gathers. For comparison, a single process has the image and all four convolutions.

# %% tags=["setup"]
# %%px --setup
def convolution(seed):
    torch.manual_seed(seed)
    return torch.nn.Conv2d(1, 2, 3, dtype=torch.float64).to(device)

def picture():
    draw = torch.Generator().manual_seed(0)
    return torch.rand(1, 1, 8, 8, dtype=torch.float64,
                      generator=draw).to(device).requires_grad_()

# %%
# %%px
image, conv = picture(), convolution(rank)
y = functions.gather(c, conv(functions.bcast(c, image, root=0)).relu(), root=0)
(torch.cat(y, 1).square().sum() if rank == 0 else y).backward()  # elsewhere y is a delegate

alone, convs = picture(), [convolution(r) for r in range(4)]
torch.cat([one(alone).relu() for one in convs], 1).square().sum().backward()
right = {"convolution": torch.allclose(conv.weight.grad, convs[rank].weight.grad, rtol=0,
                                       atol=1e-12)}
if rank == 0:
    right["image"] = torch.allclose(image.grad, alone.grad, rtol=0, atol=1e-12)
print("gradients of one process, to 1e-12:", right)

# %% [markdown]
# The image's gradient is the sum of the gradients that four ranks sent back, because the backward pass of `bcast` adds them up.
#
# A data-parallel model also contains communication, since the weights are broadcast and the losses are averaged. ChainerMN provides data parallelism as one
# line around an optimiser, and so does this package. The optimiser's first `update` only copies rank 0's weights to all ranks, and from the second `update` on,
# it averages gradients. In the next cell, the loss of each rank `r` pulls the weight towards `r`, so the mean of the losses pulls it towards 1.5.

# %%
# %%px
from manyhands import links

weight = torch.nn.Parameter(torch.tensor(10.0 * rank, device=device))
optimiser = links.create_multi_node_optimizer(torch.optim.SGD([weight], lr=0.25), c)
for step in range(3):
    optimiser.update(lambda: (weight - rank).square())
    print(weight.item(), end=" ")

# %% [markdown]
# On all ranks, the first `update` sets the weight to 0, and each further `update` halves the distance to 1.5.
#
# ## Two wrong rows
#
# The same article, on the blog of Preferred Networks, also has a table of backward passes. Five of its seven rows agree with the rows above. The other two are
# as follows.
#
# | forward | backward |
# |---|---|
# | bcast | allgather |
# | allgather | allgather |
#
# A gather puts numbers next to each other and adds none of them. However, `backward` must return *one* gradient for `x`. If you take these rows literally,
# `backward` can only pick one of the gathered gradients, for example the rank's own.

# %%
# %%px
class BcastByTheTable(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return c.bcast_obj(x.detach(), root=1).clone()

    @staticmethod
    def backward(ctx, gradient):
        gathered = c.allgather_obj(gradient)
        return gathered[rank] if rank == 1 else torch.zeros_like(gradient)

# %%
# %%px
class AllgatherByTheTable(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return tuple(c.allgather_obj(x.detach()))

    @staticmethod
    def backward(ctx, *gradients):
        gathered = c.allgather_obj(gradients[rank])
        return gathered[rank]

# %% [markdown]
# **Predict.** Rank `r` holds `x = r + 1`, and each output has the gradient `r + 1`. For the broadcast from rank 1, what are $\langle A x, \bar y \rangle$ and
# $\langle x, B \bar y \rangle$, first with the right backward method and then with the article's?

# %%
# Run this cell to make your prediction.
predict("11-adjoint",
        "What is the second product of the broadcast with the right backward?")
predict("11-by-the-table",
        "What is the second product of the broadcast with the table's backward?")

# %%
# %%px
def both_sides(call):
    x = torch.tensor(rank + 1.0, device=device, requires_grad=True)
    ys = call(x)
    gradients = [torch.full_like(y, rank + 1.0) for y in ys]
    torch.autograd.backward(ys, gradients)
    left = sum(y.item() * gradient.item() for y, gradient in zip(ys, gradients))
    return (c.allreduce_obj(left),
            c.allreduce_obj(0 if x.grad is None else x.item() * x.grad.item()))

for name, call in {"bcast": lambda x: [functions.bcast(c, x, root=1)],
                   "bcast by the table": lambda x: [BcastByTheTable.apply(x)],
                   "allgather": lambda x: functions.allgather(c, x),
                   "allgather by the table": lambda x: AllgatherByTheTable.apply(
                       x)}.items():
    left, right = both_sides(call)
    if rank == 0:
        print(f"{name:<23} <Ax, g> = {left:<4g} <x, Bg> = {right:g}")

# %%
# Run this cell to compare your prediction with the outcome.
RIGHT = "lambda x: [functions.bcast(c, x, root=1)]"
TABLE = "lambda x: [BcastByTheTable.apply(x)]"
settle("11-adjoint", lambda: cluster.pull(f"both_sides({RIGHT})[1]")[0])
settle("11-by-the-table", lambda: cluster.pull(f"both_sides({TABLE})[1]")[0])

# %% [markdown]
# <details><summary>Why?</summary>
#
# After the broadcast, every rank holds 2, and the gradients are 1, 2, 3 and 4. The first product is therefore 2 + 4 + 6 + 8 = 20. The right backward pass gives
# rank 1 the sum of the gradients, so the second product is 2 times this sum, which is also 20. The table's backward pass gives rank 1 only its own gradient, so
# the second product is 2 times 2. In the allgather, rank `r` holds 1, 2, 3 and 4, each with the gradient `r + 1`, so the first product is (1 + 2 + 3 + 4)(1 + 2
# + 3 + 4) = 100. Without the sum, however, the second product is 1 + 4 + 9 + 16 = 30.
#
# Both rows omit the sum. The text of the same article is right (the gradients are all-reduced to the master), and ChainerMN's code computes the sum, too.
# </details>
#
# ## N times the gradient
#
# Since `allgather` gives all ranks the same numbers, all ranks can compute the same loss. In the next cells, they do so, and each rank calls `backward()`. A
# single process with all four weights would get the gradient $2 w$, which is 2, 4, 6 and 8.
#
# **Predict.** By what factor is the gradient that each rank gets too large?

# %%
# Run this cell to make your prediction.
predict("11-times",
        "By what factor is each gradient too large if 4 ranks compute the same loss?",
        unit="times")

# %%
# %%px
def replicated(scale):
    w = torch.tensor(rank + 1.0, device=device, requires_grad=True)
    loss = sum(one * one for one in functions.allgather(c, w))
    (scale * loss).backward()
    return w.grad.item()

print("every rank's loss counts:", replicated(1), " divided by 4:", replicated(1 / 4),
      " only rank 0's counts:", replicated(float(rank == 0)))

# %%
# Run this cell to compare your prediction with the outcome.
settle("11-times", lambda: cluster.pull("replicated(1) / (2 * (rank + 1))")[0])

# %% [markdown]
# <details><summary>Why?</summary>
#
# The backward pass is the adjoint of what *all* ranks computed together, and they computed four losses. The result is therefore the gradient of the sum of four
# equal losses, which is four times as large. This is not a bug in `allgather`, and no code inside it should divide. Only *you* know that the four losses are
# the same loss. Either divide the loss where you compute it, or let only one rank's loss count.
# </details>
#
# ## Two sends: pseudo_connect
#
# A rank that sends twice has two delegates, and one `backward()` must reach both. The function `pseudo_connect(delegate, y)` returns `y` with an additional
# edge to the delegate. The value of `y` stays the same, and the backward pass reaches both `y` and the delegate. In this way, you can join two delegates into
# one, or a delegate to a loss. The function returns a *tuple*, here of one tensor, and this tuple has its own `backward()`. If you want to compute with the
# tensor, unpack it with `y, = pseudo_connect(delegate, y)`.
#
# (The article's recipe for two sends hangs in ChainerMN 7.8.1.)
#
# In the next cell, rank 0 of each pair sends $2w$ and $w^2$, and rank 1 multiplies them. The result is $y = 2 w^3$, so its gradient is
# $6 w^2 = 54$ for $w = 3$.

# %%
# %%px
if pair.rank == 0:
    w = torch.tensor(3.0, device=device, requires_grad=True)
    phi1 = functions.send(2 * w, pair, rank=1)
    phi2 = functions.send(w * w, pair, rank=1)
    psi = functions.pseudo_connect(phi1, phi2)
    psi.backward()
    print("gradient of w:", w.grad.item())
else:
    y = functions.recv(pair, rank=0) * functions.recv(pair, rank=0)
    y.backward()

# %% [markdown]
# ## The same mistake again
#
# What do the package's functions do with a graph that is not connected? A `send` whose delegate was dropped can never receive its gradient. The rank that
# dropped it knows this and informs the other rank, whose backward pass then raises an error instead of waiting.

# %%
# %%px
try:
    if pair.rank == 0:
        functions.send(w * 2, pair, rank=1)  # what it returns is dropped
        (functions.recv(pair, rank=1) * 7).backward()
    else:
        functions.send(functions.recv(pair, rank=0) * 5, pair, rank=0).backward()
except comm.CommunicationError as error:
    if rank == 1:
        print(*str(error).split(". "), sep=".\n")

# %% [markdown]
# If a variable still holds the delegate, its rank cannot know that the delegate will not be used. A small gradient then arrives at this rank and is never
# fetched. As soon as the variable is released, for example in the next step of a loop, the error is raised on *that* rank. After a single step, however, no
# rank raises an error, and `w` has no gradient.
#
# If a rank does wait in vain, the communicator's timeout ends the call (here after 8 seconds). The rank then gets an error that names the other rank, the call
# and the tag, and reports what the other rank is doing. Nothing has to be healed, because the communicator can be used again. The cluster's watch, which you saw
# above, is meant for programs that do not have their own timeout.
#
# ## The same over MPI
#
# Nothing in a program determines how its messages travel. The script [scripts/11_mpi.py](scripts/11_mpi.py) contains *There and back* and both products for the
# article's two rows. When `mpirun` starts it, `create_communicator()` finds MPI, which was ChainerMN's only option.

# %%
run = cluster.launch("scripts/11_mpi.py", with_="mpirun", timeout_s=300)

# %% [markdown]
# The numbers are the same as above, namely the gradients 70, 42 and 30, and the products 20, 20, 100 and 100.
#
# ## Tokens to experts, and back
#
# A **mixture of experts** has many small networks (the experts), and a router sends each token (a row of numbers) to one or a few of them. Here, each token
# goes to one expert. With an expert on each rank, routing takes two calls to `alltoall`, one that carries the tokens to their experts and one that carries the
# results back. The number of tokens for each expert changes in every step. The backward pass makes the same two trips in reverse.

# %%
# %%px
def mixture(expert, tokens, gate, chosen):
    """Send each token to its expert and bring the result back. `chosen[i]` is the rank
    whose expert processes this rank's token i, and `gate[i]` is the weight of its
    result."""
    order = chosen.argsort(stable=True)
    counts = chosen.bincount(minlength=c.size).tolist()
    # came[r] holds rank r's tokens for this rank's expert
    came = functions.alltoall(c, tokens[order].split(counts))
    worked = expert(torch.cat(came)).split([len(part) for part in came])
    # the results for this rank's tokens, in the order in which the tokens left
    back = torch.cat(functions.alltoall(c, worked))
    return gate[:, None] * back[order.argsort()]

# %% [markdown]
# Each rank has 5 tokens of 2 whole numbers, drawn at random like the gates and the router's choices. Is the gradient equal to the gradient that a
# single process with all tokens and all experts computes?

# %%
# %%px
def drawn(seed):
    g = torch.Generator().manual_seed(seed)
    whole = (lambda *shape: torch.randint(-3, 4, shape,
                                          generator=g).float().to(device).requires_grad_())
    return (whole(2, 2), whole(5, 2), whole(5),
            torch.randint(4, (5,), generator=g).to(device))

weight, tokens, gate, chosen = drawn(rank)
mixture(lambda x: (x @ weight).square(), tokens, gate, chosen).sum().backward()

everyone = [drawn(r) for r in range(4)]  # what a single process has
for _, x, g, where in everyone:
    (g[:, None] * torch.stack([(one @ everyone[e][0]).square()
                               for one, e in zip(x, where)])).sum().backward()
same = [torch.equal(a.grad, b.grad) for a, b in zip((weight, tokens, gate), everyone[rank])]
print(f"tokens to experts 0-3: {chosen.bincount(minlength=4).tolist()}; same gradients of "
      f"expert, tokens, gates:", *same)

# %% [markdown]
# Since all numbers are whole, the gradients are identical down to the last bit. No router is trained here.
#
# <details><summary>What does a real router need?</summary>
#
# In a real mixture of experts, the gate of a token is the probability that the router gave to the expert it chose. The router learns through the gradient of
# the gate, because the choice itself has none. A real router needs two more things. The first is a *capacity*, which limits the number of tokens that an expert
# accepts from a batch (Lepikhin et al. 2020). The second is a term in the loss that balances the load, because otherwise the router soon sends everything to a
# few experts (Shazeer et al. 2017).
#
# If each token goes to $k$ experts, the all-to-alls carry $4 T k h$ numbers for $T$ tokens of $h$ numbers, because each copy of a token travels there and back,
# and so does its gradient. Of these, only the numbers that stay on their rank are not sent. On many ranks, these calls can be the bottleneck, and unit 14 names
# a schedule that hides this communication.
# </details>
#
# ## Summary
#
# * A call is a matrix over the data of all ranks, and its backward pass is the transpose, so it sums what the forward pass copied. Thus, backward through
#   `bcast` sums at the root, and backward through `allgather` sums each piece at its owner.
# * `send` returns a delegate, a zero that represents what was sent. `recv` takes a delegate, so that the backward pass can go on to that `send`.
# * A graph that is not connected can deadlock in the backward pass, because one rank sends a gradient that the other rank never receives. Delegate variables
#   and `pseudo_connect` connect the graph.
# * N equal losses give N times the gradient. Divide where you know that these losses are the same.
# * A mixture of experts takes two calls to `alltoall`, one in each direction, and their backward passes carry the gradients back.
# * The functions give the same numbers over gloo and over MPI. (They are written for NCCL, too, but were not run there.) Plain messages do not carry over to
#   NCCL, because it has no tags.
#
# **Now the lab:** write these backward methods. Then unit 12 splits an encoder and a decoder over ranks, and unit 13 a convolution.
#
# **References.** A. Griewank and A. Walther 2008, *Evaluating Derivatives*, 2nd edition, SIAM (adjoints). J. Utke et al. 2009, *Toward Adjoinable MPI*, IPDPS.
# T. Akiba, K. Fukuda, S. Suzuki 2017, *ChainerMN: Scalable Distributed Deep Learning Framework*, [arXiv 1710.11351](https://arxiv.org/abs/1710.11351). N.
# Shazeer et al. 2017, *Outrageously Large Neural Networks: The Sparsely-Gated Mixture-of-Experts Layer*, [arXiv 1701.06538](https://arxiv.org/abs/1701.06538).
# D. Lepikhin et al. 2020, *GShard: Scaling Giant Models with Conditional Computation and Automatic Sharding*,
# [arXiv 2006.16668](https://arxiv.org/abs/2006.16668).

# %%
cluster.stop()
