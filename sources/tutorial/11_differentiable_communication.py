# %% [markdown] unit={"minutes": 45, "ranks": 4, "framework": "torch", "title": "Differentiable communication"}
# # 11 Differentiable communication
#
# When a model is spread over ranks, forward sends activations, and backward must send gradients. This notebook takes that apart. At the end you can
#
# * write a communication call as a matrix over all ranks' data, and read its backward off the transpose;
# * write `send` and `recv` as autograd functions, and say what a *delegate variable* is for;
# * explain a deadlock by the graph that backward could not walk through, and cure it;
# * say why a loss that is computed on N ranks gives N times the gradient;
# * send tokens to experts on other ranks, as a mixture of experts does, and bring all gradients back.
#
# **Before:** you can train a model in PyTorch, and know what a broadcast is. **Minutes:** 45. **Ranks:** 4, on 2 nodes.

# %% [markdown]
# ## Four ranks
#
# This kernel starts the ranks. Cells that begin with `%%px` run on all four of them; `--setup` marks what is to be run again if the cluster
# must be healed, and it will be.

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
# The calls of this unit move numbers and add numbers, no more. (An all-reduce can also take a maximum or a product.) So over the data of *all* ranks
# together such a call is a linear map, and a linear map is a matrix. We can measure it: rank `j` starts with 1, all others with 0; what everyone holds afterwards is column `j`.

# %% tags=["setup"]
# %%px --setup
def everywhere(x):
    """The one-dimensional tensors of all ranks, one after the other."""
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
# Row `i` says what rank `i` holds afterwards: 1 times the number of rank 1, and 0 times all others.
#
# Now let a loss $L$ depend on all outputs $y = A x$. Write $\bar y_i = \partial L / \partial y_i$ for the gradient that rank `i` has at its output.
# The chain rule says what the gradient at the inputs is:
#
# $$ \bar x_j = \sum_i \frac{\partial y_i}{\partial x_j} \bar y_i = \sum_i A_{ij} \, \bar y_i, \qquad \text{that is} \quad \bar x = A^{\mathsf T} \bar y . $$
#
# **Backward is the transpose**, also called the *adjoint*. It is the matrix of another communication call, with the arrows turned round.
#
# **Predict.** Which call has the matrix $A^{\mathsf T}$? Who gets what?

# %%
predict("11-transpose", "Which call has the transpose of A, the broadcast from rank 1?",
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
SAME = "bool((B == A.T).all())"
settle("11-transpose", lambda: {True: "a sum at rank 1"}[cluster.pull(SAME)[0]])

# %% [markdown]
# <details><summary>Why?</summary>
#
# Row 1 of the transpose has a 1 in each column: rank 1, the root, gets the *sum* of all ranks' gradients. The other rows are zero: what the others had
# put in was overwritten, so nothing depends on it. One number that was used in four places collects the gradients of four places. It is the same in one
# process: use a variable four times, and its gradient is a sum of four terms.
# </details>
#
# All others follow in the same way:
#
# * *send and recv:* a number moves from one rank to another. Transposed: the gradient moves back.
# * *gather:* pieces of all ranks stand in a row at the root. Transposed: the root gives each rank the gradient of its piece, a **scatter**. And the other way round.
# * *allgather:* each rank's piece is copied to all. Transposed: each rank gets, from all, the gradients of its own piece (an all-to-all), and **sums** them: together a *reduce-scatter*.
# * *alltoall:* what rank `i` has for rank `j` goes there. Transposed: rank `j` sends the gradient of it back to `i`, an **alltoall** again.
# * *allreduce* (sum): each output is the sum of all inputs. The matrix is all ones, and its own transpose: backward **sums** the gradients, on all ranks.

# %% [markdown]
# ## send and recv, written out
#
# For autograd, a call and its backward are two methods of one `Function`. PyTorch calls `backward` with the gradient of each output, and wants one
# gradient for each input of `forward`, `None` where there is none to be had. A *tag* tells the messages between two ranks apart. NCCL has no tags: so these
# messages go through a group of gloo's, on the CPU, also where there are GPUs.

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
        return torch.zeros(())  # the delegate: see below

    @staticmethod
    def backward(ctx, _):
        gradient = torch.empty(ctx.shape)
        dist.recv(gradient, src=ctx.peer, tag=ctx.tag, group=messages)
        return gradient, None, None

# %% [markdown]
# `Send` has a problem: what should it *return*? The data has gone to another rank. But `backward` is called only if something depends on an output. So
# it returns a zero that stands for what was sent, and which we can hand on. ChainerMN calls it the **delegate variable**.
#
# `Recv` has the opposite problem: nothing on this rank goes *in*, and autograd records only functions with an input that requires a gradient:
# `torch.zeros(2).exp().grad_fn` is `None`, that of `torch.zeros(2, requires_grad=True).exp()` is an `ExpBackward0`. So `Recv` takes one: a delegate, or a
# zero made for the purpose.

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
# Is each backward the transpose of its forward? There is a test that needs no matrix, and no gradient check by small steps. For all $x$ and
# $\bar y$, the two sides of
#
# $$ \langle A x, \bar y \rangle = \langle x, A^{\mathsf T} \bar y \rangle $$
#
# must be the same number. On the left what forward made, on the right what backward made; each product is summed over all ranks. With whole
# numbers they must be equal to the last bit. Rank 0 sends three numbers to rank 1:

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
# Now a model on two ranks: rank 0 multiplies by `w0` and sends; rank 1 multiplies by `w1` and sends back; rank 0 multiplies by `w2`. With one
# number in place of each layer, $y = w_2 w_1 w_0 x = 7 \cdot 5 \cdot 3 \cdot 2 = 210$, and

# %% tags=["setup"]
# %%px --setup
def parameters():
    return [torch.tensor(value, requires_grad=True) for value in (3.0, 5.0, 7.0)]

w0, w1, w2 = parameters()
y = w2 * w1 * w0 * 2
y.backward()
print("one process: gradients", [w.grad.item() for w in (w0, w1, w2)])

# %% [markdown]
# Now the same on two ranks. The graph of each rank is what its forward has run, messages included; Chainer called this *define-by-run*. `connect` says whether rank 0 hands the delegate of its `Send` to its `Recv`.

# %% tags=["setup"]
# %%px --setup
def there_and_back(connect):
    """Returns what backward starts from, the rank's send delegate, and its parameters by
    name."""
    w0, w1, w2 = parameters()
    if rank == 0:
        delegate = Send.apply(w0 * 2, 1, 0)
        z = Recv.apply(delegate if connect else nothing(), (), 1, 1)
        return w2 * z, delegate, {"w0": w0, "w2": w2}
    z = Recv.apply(nothing(), (), 0, 0)
    delegate = Send.apply(w1 * z, 0, 1)
    return delegate, delegate, {"w1": w1}

# %% [markdown]
# Rank 1 has no output but its delegate, so that is where its backward starts.
#
# **Predict.** Without the delegate (`connect=False`), where does rank 0's backward go, from `y`? What will rank 1 wait for? In two steps of
# training, who is stuck where?

# %%
predict("11-delegate", "Two steps without the delegate: who waits for whom?",
        ["0 for 1", "1 for 0", "each for the other", "nobody: one gradient is missing"])

# %% tags=["raises-exception"]
# %%px --ranks 0,1 --patience 3
for step in range(2):
    start, _, named = there_and_back(connect=False)
    start.backward()

# %%
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
# Rank 0's backward walks from `y` through `Recv` (which sends the gradient of `z` to rank 1) and ends there, at the zero that was made for the purpose. It
# never meets `Send`, so it never receives what rank 1 sends back. For rank 0 step 0 is done, and it goes on to step 1, where it sends. Rank 1 is still in
# backward, where it sends too. Each waits for the other to receive: a circle, a deadlock. (The report sees only the calls, and advises another order. That
# would not help here: rank 0 would still never come to receive the gradient.)
#
# With one step only, rank 1 would wait for a rank that has finished. If the library keeps a copy of small messages and lets the sender go on, nobody would
# wait at all: `w0` would just never learn.
# </details>
#
# Why not `dist.isend`, which does not wait? Then nobody would hang here, and `w0` would still never learn. And what `isend` returns, and the tensor, must be kept until the
# message has arrived, while backward's own variables are gone when it returns. (In the lab, a list keeps them.)

# %% [markdown]
# > **On GPUs.** NCCL drops the tag: the i-th send to a rank meets its i-th receive. Only the order pairs messages, and where two backward passes run in different orders,
# > gradients are swapped. Calls return when they are enqueued: the deadlock above would show at a later line, the first that needs a result (`item()`, `print`), and after
# > ten minutes a watchdog ends the process. Two messages in opposite directions may hang even with `isend`: start them together, with `dist.batch_isend_irecv`.

# %% [markdown]
# ## The picture: what backward can reach
#
# The cluster has healed itself. Let us look at the graphs that autograd has recorded, without starting backward. `walk` follows `grad_fn` from a tensor to
# all that it was made from.

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
# Each lane is a rank's own graph, forward from left to right. Backward starts at the box on the right and goes along the arrows. Thick arrows are gradients
# that travel to another rank. Above, rank 0's backward ends at the zero (`leaf`) that its `recv` was given. The pale boxes are never reached, and rank 1's gradient
# (dotted, with a cross) is sent to nobody. Below, the dashed arrow is the delegate: now there is a way from `recv` back to `send`. No data flows along it; it only
# says *go on there*.
# </details>
#
# **On each rank, one backward must reach every send.** The forward pass does not care, so nothing warns you until backward. With the delegate:

# %%
# %%px --ranks 0,1
for step in range(2):
    start, _, named = there_and_back(connect=True)
    start.backward()
print({name: w.grad.item() for name, w in named.items()})

# %% [markdown]
# The same gradients as in one process: 70, 42 and 30.
#
# ## The package's functions
#
# From here on we use the package's versions. They work on a *communicator* `c`, find out shapes and dtypes by themselves, give each message an identity of
# its own (so gradients cannot be swapped, whatever the order of backward), and they have a time-out. They are called as in
# ChainerMN, so programs written for it need little change. *There and back* on rank 0 is now `phi = functions.send(w0 * 2, c, rank=1)`, then
# `z = functions.recv(c, rank=1, delegate_variable=phi)`.

# %% tags=["setup"]
# %%px --setup
from manyhands import comm, functions

c = comm.create_communicator(timeout_s=8)
pair = c.split(rank // 2)  # two communicators of two ranks: 0 and 1, 2 and 3

# %% [markdown]
# Is each of them right? We measure both matrices of each call, forward from inputs and backward from gradients that are 0 but for a single 1. Then we compare.

# %% tags=["setup"]
# %%px --setup
def unit(n, place):
    """This rank's `n` numbers, of all ranks' numbers in a row: all are 0 but the one at
    `place`."""
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
# `n` numbers go in on each rank, and a list of numbers comes out. For a `send` it holds the delegate. So it does for a `gather` on all ranks but the root:
# 4 numbers at the root and 3 delegates make 7.

# %% tags=["setup"]
# %%px --setup
def to_and_fro(xs):  # in each pair, its rank 0 sends
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
# The last column is the largest number of ones in a row of the transpose: how many gradients meet in one place. So the table is
#
# | forward | backward | does it add? |
# |---|---|---|
# | send | recv | no |
# | recv | send | no |
# | bcast | reduce: to the root, **and sum** | yes |
# | gather | scatter | no |
# | scatter | gather | no |
# | allgather | reduce-scatter: alltoall, **and sum** | yes |
# | alltoall | alltoall | no |
# | allreduce | allreduce | yes |
#
# PyTorch has some of them itself, without send and recv: `torch.distributed.nn.functional`, with the backward of this table. (In 2.13, `broadcast` gave the root a gradient of zero in a group in which the root's number differs from its number in the world; 2.15 has corrected this.) Five of its nine calls are deprecated, in favour of
# `torch.distributed._functional_collectives`. There all-reduce (a sum), all-gather, reduce-scatter and all-to-all have the same backward. Its `broadcast` has none yet: a warning, and each rank keeps
# its own gradient, where the root should get the sum.
#
# ## A model with calls in it
#
# The article that introduces ChainerMN's functions begins with a model of a broadcast, a convolution, a ReLU and a gather. Here each rank has a convolution of its own, and
# the root a loss of what it gathers. One process has the image and all four convolutions.

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
# The image's gradient is the sum of what four ranks sent back: that is `bcast`'s backward.
#
# Data parallelism is such a model too: the weights are broadcast, the losses averaged. ChainerMN has it in one line around an optimiser, and so has this package. Its
# first `update` only copies rank 0's weights to all; from the second on it averages gradients. Each rank `r` wants its weight at `r`, so the mean wants 1.5:

# %%
# %%px
from manyhands import links

weight = torch.nn.Parameter(torch.tensor(10.0 * rank, device=device))
optimiser = links.create_multi_node_optimizer(torch.optim.SGD([weight], lr=0.25), c)
for step in range(3):
    optimiser.update(lambda: (weight - rank).square())
    print(weight.item(), end=" ")

# %% [markdown]
# 0, then half of the way to 1.5 in each step, on all ranks.
#
# ## Two wrong rows
#
# The same article, on the blog of Preferred Networks, has such a table too. Five of its seven rows are the ones above. The
# other two are
#
# | forward | backward |
# |---|---|
# | bcast | allgather |
# | allgather | allgather |
#
# A gather puts numbers side by side, and adds none. But `backward` must return *one* gradient for `x`. Take the rows literally, and it can only pick one of
# those that it has gathered: its own, say.

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
# **Predict.** Rank `r` holds `x = r + 1`, and each output has the gradient `r + 1`. What are $\langle A x, \bar y \rangle$ and $\langle x, B \bar y \rangle$ for
# the broadcast from rank 1, with the right backward and with the table's?

# %%
predict("11-adjoint", "The broadcast with the right backward: what is the second product?")
predict("11-by-the-table",
        "The broadcast with the table's backward: what is the second product?")

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
RIGHT = "lambda x: [functions.bcast(c, x, root=1)]"
TABLE = "lambda x: [BcastByTheTable.apply(x)]"
settle("11-adjoint", lambda: cluster.pull(f"both_sides({RIGHT})[1]")[0])
settle("11-by-the-table", lambda: cluster.pull(f"both_sides({TABLE})[1]")[0])

# %% [markdown]
# <details><summary>Why?</summary>
#
# Broadcast: everyone holds 2, the gradients are 1, 2, 3, 4: 2 + 4 + 6 + 8 = 20, and right is 2 times their sum. The table's backward gives rank 1 its own gradient
# only: 2 times 2. Allgather: rank `r` has all of 1, 2, 3, 4 with the gradient `r + 1`: (1 + 2 + 3 + 4)(1 + 2 + 3 + 4) = 100; without the sum, 1 + 4 + 9 + 16 = 30.
#
# Both rows lose the sum. The article's own text says it rightly (the gradients are all-reduced to the master), and ChainerMN's code sums.
# </details>
#
# ## N times the gradient
#
# `allgather` gives all ranks the same numbers, so all can compute the same loss. They do so here, and each calls `backward()`. One process with all four weights
# would get the gradient $2 w$, that is 2, 4, 6 and 8.
#
# **Predict.** What do the ranks get?

# %%
predict("11-times", "All compute the same loss: how many times one process's gradient?",
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
settle("11-times", lambda: cluster.pull("replicated(1) / (2 * (rank + 1))")[0])

# %% [markdown]
# <details><summary>Why?</summary>
#
# Backward is the adjoint of what *all* ranks computed together, and they computed four losses. So it is the gradient of the sum of four equal losses: four times as
# large. That is no mistake of `allgather`, and nothing inside it should divide. *You* know that the four losses are one: divide where you compute it,
# or let one rank's count.
# </details>
#
# ## Two sends: pseudo_connect
#
# A rank that sends twice has two delegates, and one `backward()` must reach both. `pseudo_connect(delegate, y)` returns `y` with an additional edge to the delegate:
# the value is that of `y`, and backward goes to both. It joins two delegates to one, or a delegate to a loss. What it returns is a *tuple*, here of one tensor, which
# has a `backward()` of its own; to go on computing, unpack it: `y, = pseudo_connect(delegate, y)`.
#
# (The article has this recipe for two sends. In ChainerMN 7.8.1 it hangs.)
#
# Here rank 0 of each pair sends $2w$ and $w^2$, and rank 1 multiplies them: $y = 2 w^3$, and with $w = 3$ the gradient is $6 w^2 = 54$.

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
# What do the package's functions make of an unconnected graph? A `send` whose delegate was dropped can never receive its gradient. Its rank knows that, and tells the
# other one, whose backward then raises an error instead of waiting:

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
# If the delegate is still held in a variable, its rank cannot know. A small gradient then comes and lies there; the error is raised on *that* rank once the
# variable has gone, as in the next steps of a loop. After a single step nobody is told, and `w` has no gradient.
#
# And where a rank does wait in vain, the communicator's time-out strikes (8 seconds here): it gets an error that names the other rank, the call and the tag, and
# says where the other one is. Nothing has to be healed: the communicator can be used again. The cluster's watch, which you saw above, is for programs that have
# no time-out of their own.
#
# ## The same over MPI
#
# Nothing in a program says how its messages travel. [scripts/11_mpi.py](scripts/11_mpi.py) has *There and back* and both sides of the table's rows; `mpirun` starts it, and
# `create_communicator()` finds MPI. ChainerMN had only that way.

# %%
run = cluster.launch("scripts/11_mpi.py", with_="mpirun", timeout_s=300)

# %% [markdown]
# The same numbers: 70, 42 and 30; 20 and 20, 100 and 100.
#
# ## Tokens to experts, and back
#
# A **mixture of experts** has many small networks, and sends each token (a row of numbers) to one or a few that a router has chosen; here to one. With an expert on each rank, that takes two calls of `alltoall`:
# tokens go to their experts, and results come back. How many go where changes in every step. Backward makes the same two trips, in reverse.

# %%
# %%px
def mixture(expert, tokens, gate, chosen):
    """`chosen[i]` is the rank whose expert works on token i of this rank; `gate[i]` is the
    weight of its result."""
    order = chosen.argsort(stable=True)
    counts = chosen.bincount(minlength=c.size).tolist()
    # came[r]: what rank r has for this rank's expert
    came = functions.alltoall(c, tokens[order].split(counts))
    worked = expert(torch.cat(came)).split([len(part) for part in came])
    # this rank's tokens again, in the order in which they left
    back = torch.cat(functions.alltoall(c, worked))
    return gate[:, None] * back[order.argsort()]

# %% [markdown]
# Each rank has 5 tokens of 2 whole numbers. Is the gradient equal to one process's, which has all tokens and all experts? The gates and the router's choices are drawn, too.

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

everyone = [drawn(r) for r in range(4)]  # one process
for _, x, g, where in everyone:
    (g[:, None] * torch.stack([(one @ everyone[e][0]).square()
                               for one, e in zip(x, where)])).sum().backward()
same = [torch.equal(a.grad, b.grad) for a, b in zip((weight, tokens, gate), everyone[rank])]
print(f"tokens to experts 0-3: {chosen.bincount(minlength=4).tolist()}; same gradients of "
      f"expert, tokens, gates:", *same)

# %% [markdown]
# Whole numbers, so the gradients are equal to the last bit.
#
# No router is trained here. In a real one, a token's gate is the probability that the router gave to the expert it chose, and the gate's gradient is how the router learns: the choice
# itself has none. Two things more are needed there. A *capacity*: an expert takes so many tokens of a batch and no more (Lepikhin et al. 2020). And a term in the loss that
# balances the load, or the router soon sends everything to a few (Shazeer et al. 2017).
#
# ## What you can say now
#
# * *A call is a matrix* over all ranks' data; its backward is the transpose. What was copied is summed: `bcast` sums at the root, `allgather` sums each piece at its owner.
# * *send returns a delegate*, a zero that stands for what was sent; *recv* takes one, so that backward can go on to that `send`.
# * *A graph that is not connected* can deadlock in backward: one rank sends a gradient that the other's backward never comes to receive. Delegate variables and `pseudo_connect` connect it.
# * *N losses give N times the gradient.* Divide where you know that they are one.
# * *A mixture of experts* is two calls of `alltoall`, there and back; the same two bring the gradients.
# * *Over gloo and over MPI* the functions give the same numbers. (Over NCCL they are written, and were not run.) Plain messages do not carry over to NCCL: it has no tags.
#
# **Now the lab:** write these backward methods. Then unit 12 splits an encoder and a decoder over ranks, and unit 13 a convolution.
#
# **References.** A. Griewank and A. Walther 2008, *Evaluating Derivatives*, 2nd edition, SIAM (adjoints).
# J. Utke et al. 2009, *Toward Adjoinable MPI*, IPDPS.
# T. Akiba, K. Fukuda, S. Suzuki 2017, *ChainerMN: Scalable Distributed Deep Learning Framework*, [arXiv 1710.11351](https://arxiv.org/abs/1710.11351).
# N. Shazeer et al. 2017, *Outrageously Large Neural Networks: The Sparsely-Gated Mixture-of-Experts Layer*, [arXiv 1701.06538](https://arxiv.org/abs/1701.06538).
# D. Lepikhin et al. 2020, *GShard: Scaling Giant Models with Conditional Computation and Automatic Sharding*, [arXiv 2006.16668](https://arxiv.org/abs/2006.16668).

# %%
cluster.stop()
