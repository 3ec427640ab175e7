# %% [markdown] unit={"minutes": 45, "ranks": 4, "framework": "torch", "title": "Differentiable communication"}
# # 11 Lab: the backward of communication
#
# You write the backward passes of four communication calls, and you connect a graph that the backward pass cannot traverse. At the end, you can
#
# * name the call that is the adjoint of send, of a broadcast and of an allgather, and write it as an autograd function.
# * send no more than the adjoint needs.
# * let the backward passes of two ranks run in different orders without a deadlock or swapped gradients.
# * connect sends and receives so that one `backward()` on each rank reaches all of them.
# * find messages that gloo lets through and NCCL does not, before a GPU is available.
#
# **Before:** the tutorial of this unit. **Minutes:** 45 · **Ranks:** 4, on 2 nodes · **Points:** 14.
#
# Cells that begin with `%%px` run on all four ranks, while the others run in this kernel. If a mistake makes the ranks wait for each other, the cluster notices
# it, reports which rank is waiting for which, and heals itself. It then runs the cells marked `--setup` again. Below each check, you see what it prints when
# the answer is right.

# %% tags=["setup"]
from manyhands import Cluster, hint
from manyhands.checks import differentiable_communication as check

cluster = Cluster(nodes=2, ranks_per_node=2, framework="torch")

# %% tags=["setup"]
# %%px --setup
import os

import torch
import torch.distributed as dist

from manyhands import comm, functions

if not dist.is_initialized():  # so that this cell can be run twice
    dist.init_process_group(os.environ["MANYHANDS_BACKEND"])
nccl = dist.get_backend() == "nccl"  # over gloo, messages take only tensors on the CPU
device = torch.device(os.environ["MANYHANDS_DEVICE"] if nccl else "cpu")

# %% [markdown]
# In exercises 1 to 3, you use plain `torch.distributed`. All ranks are numbered **inside the group**, for which you need `group_src`, `group_dst` and
# `dist.get_rank(group)`. The checks use groups of 4, 3 and 2 ranks, and `float64`.
#
# ## 1. send and recv
#
# The forward methods are given, and so is `post`, which starts a send and returns without waiting. (Plain `dist.isend` is not enough, because the tensor and
# the work handle must live until the message has arrived, whereas the local variables of `backward` are lost when `backward` returns.) You write the two
# backward methods.
#
# If there are two messages, the two ranks may run their backward passes in *different orders*. For this reason, a gradient must be sent without waiting for the
# other side, and it must be received by the tag of its message rather than in a fixed order. Since NCCL has no tags, the check gives this exercise gloo groups
# and tensors on the CPU, even on a machine with GPUs.
#
# *Difficulty ●●○, 12 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# In which direction does each message move? Return one gradient (or `None`) for each argument of `forward`. For more help, run `hint("11-messages")` in a
# separate cell.
# </details>

# %% tags=["setup"]
# %%px --setup
posted = []

def post(tensor, peer, tag, group):
    """Start to send a contiguous tensor to rank `peer` of the group, without waiting. The
    tensor is kept until it has arrived."""
    posted.append((dist.isend(tensor, group=group, group_dst=peer, tag=tag), tensor))

def settle():
    """Wait until every posted tensor has arrived. The check calls it after backward."""
    for work, _ in posted:
        work.wait()
    posted.clear()

# %% tags=["solution"] grade_id="messages"
# %%px --setup
class Send(torch.autograd.Function):
    """Send `x` to rank `peer` of `group`, and return a delegate, which is a zero that
    represents what was sent."""

    @staticmethod
    def forward(ctx, x, peer, tag, group):
        ctx.peer, ctx.tag, ctx.group = peer, tag, group
        ctx.shape, ctx.dtype = x.shape, x.dtype
        dist.send(x.detach().contiguous(), group=group, group_dst=peer, tag=tag)
        return torch.zeros((), dtype=x.dtype)

    @staticmethod
    def backward(ctx, gradient_of_delegate):
        """Return one gradient for each of x, peer, tag, group."""
        ### BEGIN SOLUTION
        gradient = torch.empty(ctx.shape, dtype=ctx.dtype)
        dist.recv(gradient, group=ctx.group, group_src=ctx.peer, tag=ctx.tag)
        return gradient, None, None, None
        ### END SOLUTION


class Recv(torch.autograd.Function):
    """Receive a tensor of this shape and dtype from rank `peer` of `group`. `delegate`
    connects it to the earlier calls of this rank."""

    @staticmethod
    def forward(ctx, delegate, shape, dtype, peer, tag, group):
        ctx.peer, ctx.tag, ctx.group = peer, tag, group
        x = torch.empty(shape, dtype=dtype)
        dist.recv(x, group=group, group_src=peer, tag=tag)
        return x

    @staticmethod
    def backward(ctx, gradient):
        """Return one gradient for each of delegate, shape, dtype, peer, tag, group."""
        ### BEGIN SOLUTION
        post(gradient.contiguous(), ctx.peer, ctx.tag, ctx.group)
        return torch.zeros((), dtype=gradient.dtype), None, None, None, None, None
        ### END SOLUTION

# %% tags=["check"] grade_id="messages-check" points=4
check.messages(cluster, "Send", "Recv")

# %% [markdown]
# ## 2. A broadcast
#
# All ranks call the broadcast, but the values of `x` matter only on the root. On the other ranks, a tensor of the same shape and dtype only provides the
# memory. There, the gradient of `x` is zero, because no output depends on it.
#
# The check also counts the numbers that move. With `p` ranks and `n` numbers, the backward pass moves `(p - 1) * n` numbers between ranks in total, and no
# more. A collective that also gives the result to ranks that do not need it moves more. (The counter is the ledger from unit 04, which assumes one textbook
# algorithm for each collective.)
#
# *Difficulty ●○○, 7 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Column `root` of the matrix of a broadcast is all ones. What is row `root` of its transpose? For more help, run `hint("11-broadcast")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="broadcast"
# %%px --setup
class Bcast(torch.autograd.Function):
    """Copy the root's `x` to every rank of the group."""

    @staticmethod
    def forward(ctx, x, root, group):
        ctx.root, ctx.group = root, group
        y = x.detach().clone()
        dist.broadcast(y, group=group, group_src=root)
        return y

    @staticmethod
    def backward(ctx, gradient):
        """Return one gradient for each of x, root, group."""
        ### BEGIN SOLUTION
        total = gradient.clone(memory_format=torch.contiguous_format)
        dist.reduce(total, group=ctx.group, group_dst=ctx.root)
        return (total if dist.get_rank(ctx.group) == ctx.root else torch.zeros_like(total),
                None, None)
        ### END SOLUTION

# %% tags=["check"] grade_id="broadcast-check" points=3
check.broadcast(cluster, "Bcast")

# %% [markdown]
# ## 3. An allgather
#
# Each rank passes in one piece and gets the pieces of all ranks as a tuple, in the order of the ranks. All pieces have the same shape. `backward` gets one
# gradient for each piece of the tuple, and autograd fills in zeros for pieces that were not used.
#
# Here, too, the check counts the numbers that move. For pieces of `n` numbers, it allows `p * (p - 1) * n` in all. If you gathered all gradients on all ranks,
# `p` times as many numbers would move.
#
# *Difficulty ●●●, 12 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Which ranks hold gradients of *your* piece? Of whose pieces do *you* hold gradients? For more help, run `hint("11-allgather")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="allgather"
# %%px --setup
class Allgather(torch.autograd.Function):
    """Give every rank of the group the pieces of all ranks, as a tuple."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        pieces = [torch.empty_like(x, memory_format=torch.contiguous_format)
                  for _ in range(dist.get_world_size(group))]
        dist.all_gather(pieces, x.detach().contiguous(), group=group)
        return tuple(pieces)

    @staticmethod
    def backward(ctx, *gradients):
        """Return one gradient for each of x, group. `gradients[r]` belongs to the piece of
        rank r."""
        ### BEGIN SOLUTION
        outgoing = torch.stack(gradients)
        incoming = torch.empty_like(outgoing)
        dist.all_to_all_single(incoming, outgoing, group=ctx.group)
        return incoming.sum(dim=0), None
        ### END SOLUTION

# %% tags=["check"] grade_id="allgather-check" points=3
check.allgather(cluster, "Allgather")

# %% [markdown]
# ## 4. Connect the graph
#
# From here on, you use the package's functions, on a communicator `c` with `c.rank` and `c.size`. The package sends a gradient only through calls that the
# backward pass reaches.
#
# `round_trip` is *There and back* from the tutorial, for any number of ranks. Even if you write it without delegates, it returns the right values. In the
# backward pass, however, rank 0's `stage` gets no gradient, and the rank that sends the gradient gets an error. A `recv` takes the delegate as
# `delegate_variable`.
#
# In `fan_out`, rank 0 has several sends and its own loss, and its single `backward()` must reach all of them. Since `pseudo_connect` returns a tuple, you have
# to unpack it.
#
# *Difficulty ●●○, 10 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# Draw rank 0's graph. From the tensor that you return, can the backward pass walk to every send? For more help, run `hint("11-connect")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="connect"
# %%px --setup
def round_trip(c, x, stage, last):
    """Send stage(x) from rank 0 around the ring. Each other rank applies its `stage` to the
    tensor that it receives and sends the result to the next rank, and the last rank sends
    it to rank 0, which applies `last`.

    Return the tensor on which this rank calls backward(), which is the result on rank 0 and
    a delegate on the others. `x` and `last` are used only on rank 0.
    """
    ### BEGIN SOLUTION
    following, previous = (c.rank + 1) % c.size, (c.rank - 1) % c.size
    if c.rank == 0:
        delegate = functions.send(stage(x), c, rank=following)
        return last(functions.recv(c, rank=previous, delegate_variable=delegate))
    return functions.send(stage(functions.recv(c, rank=previous)), c, rank=following)
    ### END SOLUTION


def fan_out(c, pieces, own_loss):
    """Send pieces[r] from rank 0 to each other rank r.

    Return on rank 0 a loss with the value of `own_loss` whose backward also reaches every
    send, and on the others the piece that they received. `pieces` and `own_loss` are used
    only on rank 0.
    """
    ### BEGIN SOLUTION
    if c.rank > 0:
        return functions.recv(c, rank=0)
    for r in range(1, c.size):
        delegate = functions.send(pieces[r], c, rank=r)
        own_loss, = functions.pseudo_connect(delegate, own_loss)
    return own_loss
    ### END SOLUTION

# %% tags=["check"] grade_id="connect-check" points=2
check.connect(cluster, "round_trip", "fan_out")

# %% [markdown]
# ## 5. A ring that NCCL runs too
#
# `shift` works here because gloo's `isend` returns immediately. With NCCL, however, the two sides of a connection have to meet when it is first used. The
# option `--rehearse` runs the cell on the CPU and replays the ranks' calls to `torch.distributed` by NCCL's rules. (If each rank has a separate GPU, the cell
# does hang. The cluster then reports which rank is waiting for which, and heals itself.)

# %%
# %%px --setup
def shift(x, group=None):
    """Send `x` to the next rank of the group's ring, and return what the previous rank has
    sent."""
    me, size = dist.get_rank(group), dist.get_world_size(group)
    came = torch.empty_like(x)
    work = dist.isend(x, group=group, group_dst=(me + 1) % size)
    dist.recv(came, group=group, group_src=(me - 1) % size)
    work.wait()
    return came

# %%
# %%px --rehearse
print(shift(torch.full((2,), float(dist.get_rank()), device=device)).tolist())

# %% [markdown]
# Write `ring_shift` so that a rehearsal finds no problem. As before, each rank sends one message to the next rank, and there is no collective.
#
# *Difficulty ●○○, 4 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# Read what the rehearsal prints under *What to do*. For more help, run `hint("11-ring")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="ring"
# %%px --setup
def ring_shift(x, group=None):
    """Do the same as `shift`, so that NCCL runs it, too."""
    ### BEGIN SOLUTION
    me, size = dist.get_rank(group), dist.get_world_size(group)
    came = torch.empty_like(x)
    both = [dist.P2POp(dist.isend, x, group=group, group_peer=(me + 1) % size),
            dist.P2POp(dist.irecv, came, group=group, group_peer=(me - 1) % size)]
    for work in dist.batch_isend_irecv(both):
        work.wait()
    return came
    ### END SOLUTION

# %% tags=["check"] grade_id="ring-check" points=2
check.ring(cluster, "ring_shift")

# %% [markdown]
# ## All together
#
# A network of four hidden layers, one on each rank, learns to add up its four inputs. Your `round_trip` carries activations and gradients. This part is not
# graded, and it works as soon as your function does.

# %%
# %%px
c = comm.create_communicator(timeout_s=10)
torch.manual_seed(rank := c.rank)
stage = torch.nn.Sequential(torch.nn.Linear(4 if rank == 0 else 16, 16),
                            torch.nn.Tanh()).to(device)
last = torch.nn.Linear(16, 1).to(device) if rank == 0 else None
optimiser = torch.optim.Adam([*stage.parameters(), *(last.parameters() if last else [])],
                             lr=0.02)
x = torch.rand(64, 4, generator=torch.Generator().manual_seed(0)).to(device)

# %%
# %%px
for step in range(200):
    out = round_trip(c, x, stage, last)
    loss = (out - x.sum(1, keepdim=True)).square().mean() if rank == 0 else out
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    if rank == 0 and step in (0, 199):
        print(f"step {step}: loss {loss.item():.3f}")
c.close()

# %% [markdown]
# ## Where to go on
#
# * The module `functions` of the package has the same calls for any shapes and for several tensors at once, with timeouts that report which rank is waiting for
#   which.
# * Unit 12 uses these calls to split an encoder and a decoder over ranks. Unit 13 splits a convolution, for which an allgather and its backward pass do the
#   work.
# * T. Akiba, K. Fukuda, S. Suzuki 2017, [ChainerMN: Scalable Distributed Deep Learning Framework](https://arxiv.org/abs/1710.11351).

# %%
cluster.stop()
