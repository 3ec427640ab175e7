# %% [markdown] unit={"minutes": 20, "ranks": 4, "framework": "torch", "title": "Differentiable communication"}
# # 11 Differentiable communication
#
# When a model is spread over ranks, forward sends activations, and backward must send gradients. This notebook takes that apart. At the end you can
#
# * write a communication call as a matrix over all ranks' data, and read its backward off the transpose;
# * write `send` and `recv` as autograd functions, and say what a *delegate variable* is for;
# * explain a deadlock by the graph that backward could not walk through, and cure it;
# * say why a loss that is computed on N ranks gives N times the gradient;
# * send tokens to experts on other ranks and train through it, as a mixture of experts does.
#
# **Before:** you can train a model in PyTorch, and know what a broadcast is. **Minutes:** 20. **Ranks:** 4, on 2 nodes.

# %% [markdown]
# ## Four ranks
#
# This kernel starts the ranks. Cells that begin with `%%px` run on all four of them; `--setup` marks what is to be run again if the cluster
# must be healed, and it will be.

# %% tags=["setup"]
from manyhands import Cluster

cluster = Cluster(nodes=2, ranks_per_node=2, framework="torch")

# %% tags=["setup"]
# %%px --setup
import torch
import torch.distributed as dist

if not dist.is_initialized():  # so that this cell can be run twice
    dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()

# %% [markdown]
# ## A call is a matrix
#
# A communication call moves numbers and adds numbers. Nothing in it is squared. So over the data of *all* ranks together it is a linear map, and
# a linear map is a matrix. We can measure it: rank `j` starts with 1, all others with 0; what everyone holds afterwards is column `j`.

# %% tags=["setup"]
# %%px --setup
def everywhere(x):
    """The one-dimensional tensors of all ranks, one after the other."""
    parts = [torch.empty_like(x) for _ in range(world_size)]
    dist.all_gather(parts, x)
    return torch.cat(parts)

def matrix_of(call):
    columns = []
    for j in range(world_size):
        x = torch.tensor([float(rank == j)])
        columns.append(everywhere(call(x)))
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
# %%px
def sum_at_1(gradient):
    total = gradient.clone()
    dist.reduce(total, dst=1)
    return total if rank == 1 else torch.zeros_like(total)

B = matrix_of(sum_at_1)
show("B: a sum at rank 1", B)
show("A transposed", A.T)

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
# * *allgather:* each rank's piece is copied to all. Transposed: each rank gets, from all, the gradients of its own piece (an all-to-all), and **sums** them.
# * *alltoall:* what rank `i` has for rank `j` goes there. Transposed: rank `j` sends the gradient of it back to `i`, an **alltoall** again.
# * *allreduce* (sum): each output is the sum of all inputs. The matrix is all ones, and its own transpose: backward **sums** the gradients, on all ranks.

# %% [markdown]
# ## send and recv, written out
#
# For autograd, a call and its backward are two methods of one `Function`. PyTorch calls `backward` with the gradient of each output, and wants one
# gradient for each input of `forward`, `None` where there is none to be had.

# %% tags=["setup"]
# %%px --setup
class Send(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, peer, tag):
        ctx.peer, ctx.tag, ctx.shape = peer, tag, x.shape
        dist.send(x.detach(), dst=peer, tag=tag)
        return torch.zeros(())  # the delegate: see below

    @staticmethod
    def backward(ctx, _):
        gradient = torch.empty(ctx.shape)
        dist.recv(gradient, src=ctx.peer, tag=ctx.tag)
        return gradient, None, None

# %% [markdown]
# `Send` has a problem: what should it *return*? The data has gone to another rank. But `backward` is called only if something depends on an output. So
# it returns a zero that stands for what was sent, and which we can hand on. ChainerMN calls it the **delegate variable**.
#
# `Recv` has the opposite problem: nothing on this rank goes *in*. Autograd records only functions with an input that requires a gradient. So it
# takes one: a delegate, or a zero made for the purpose.

# %% tags=["setup"]
# %%px --setup
class Recv(torch.autograd.Function):
    @staticmethod
    def forward(ctx, delegate, shape, peer, tag):
        ctx.peer, ctx.tag = peer, tag
        x = torch.empty(shape)
        dist.recv(x, src=peer, tag=tag)
        return x

    @staticmethod
    def backward(ctx, gradient):
        dist.send(gradient.contiguous(), dst=ctx.peer, tag=ctx.tag)
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
# On two ranks. `connect` says whether rank 0 hands the delegate of its `Send` to its `Recv`, or not.

# %% tags=["setup"]
# %%px --setup
def there_and_back(connect):
    """Returns what backward starts from, the rank's send delegate, and its parameters by name."""
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

# %% tags=["raises-exception"]
# %%px --ranks 0,1 --patience 3
for step in range(2):
    start, _, named = there_and_back(connect=False)
    start.backward()

# %% [markdown]
# <details><summary>Why?</summary>
#
# Rank 0's backward walks from `y` through `Recv` (which sends the gradient of `z` to rank 1) and ends there, at the zero that was made for the purpose. It
# never meets `Send`, so it never receives what rank 1 sends back. For rank 0 step 0 is done, and it goes on to step 1, where it sends. Rank 1 is still in
# backward, where it sends too. Each waits for the other to receive: a circle, a deadlock.
#
# With one step only, rank 1 would wait for a rank that has finished. If the library keeps a copy of small messages and lets the sender go on, nobody would
# wait at all: `w0` would just never learn.
# </details>
#
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

# %%
cluster.stop()
