# %% [markdown] unit={"minutes": 60, "ranks": 5, "framework": "torch", "title": "Collectives"}
# # 04 Lab: an all-reduce from send and recv
#
# You write the all-reduce with which most networks are trained. It is a ring, and you build it from nothing but messages between two ranks. At the end, you can
#
# * broadcast along a tree from any root, in log2 p rounds.
# * sum along a ring so that each rank ends with its part of the sum, and put the parts together again.
# * broadcast and sum for 5 and for 3 ranks, for sizes that the number of ranks does not divide, for any dtype, inside a group, and without a deadlock.
# * show with the ledger that each rank sends 2 (p - 1)/p times the tensor's bytes and no more.
# * predict what the star, the tree and the ring cost in worlds that you cannot start here.
# * find two bugs in an all-reduce that runs without an error, one from its values and the other from the ledger.
#
# **Before:** the tutorial of this unit. **Minutes:** 60 · **Ranks:** 5 · **Points:** 17.
#
# Cells that begin with `%%px` run on all five ranks, while the others run in this kernel. If a mistake makes the ranks wait for each other, the cluster notices
# it, reports which rank is waiting for which, and heals itself. It then runs the cells marked `--setup` again. Below each check, you see what it prints when
# the answer is right. Since all exercises use single messages, the ranks use gloo and CPU tensors, even on a machine with GPUs (NCCL has different rules for
# messages, as the tutorial explains).

# %% tags=["setup"]
from manyhands import Cluster, hint
from manyhands.checks import collectives as check

cluster = Cluster(nodes=1, ranks_per_node=5, framework="torch")

# %% tags=["setup"]
# %%px --setup
import torch
import torch.distributed as dist

from manyhands.data import digits, shard

if not dist.is_initialized():  # so that this cell can be run twice
    dist.init_process_group("gloo")

# %% [markdown]
# You use these four calls, and none of the collectives of `torch.distributed`:
#
# | call | returns |
# |---|---|
# | `dist.send(x, group=group, group_dst=peer)` | when x may be changed again, which with gloo is not before the receiver has called `recv` |
# | `dist.recv(x, group=group, group_src=peer)` | when x contains the message |
# | `work = dist.isend(x, group=group, group_dst=peer)` | immediately; keep `work`, because x may be changed only after `work.wait()` |
# | `work = dist.irecv(x, group=group, group_src=peer)` | immediately; x may be read after `work.wait()` |
#
# Ranks are numbered **inside the group**. Therefore, `dist.get_rank(group)` is between 0 and p - 1, and `dist.get_world_size(group)` is p. `group=None` means
# the world. The checks use groups of 5, 3 and 2 ranks. All tensors are contiguous, and all results are written *in place*.
#
# ## 1. A broadcast along a tree
#
# In a tree, the number of ranks that have x doubles in each round, from 1 to 2, to 4, and so on. The tutorial's tree works for root 0, whereas yours must work
# for any root.
#
# *Difficulty ●○○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Give the ranks new numbers that begin with 0 at the root. For more help, run `hint("04-broadcast")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="broadcast"
# %%px --setup
def tree_broadcast(x: torch.Tensor, root: int = 0,
                   group: dist.ProcessGroup | None = None) -> None:
    """Copy the x of rank `root` of the group to every rank of the group, in place.

    All ranks of the group call this function, with tensors of the same shape and dtype. It
    takes log2 p rounds, rounded up.
    """
    ### BEGIN SOLUTION
    p = dist.get_world_size(group)
    me, reach = (dist.get_rank(group) - root) % p, 1  # counted from the root
    while reach < p:
        if me < reach and me + reach < p:
            dist.send(x, group=group, group_dst=(me + reach + root) % p)
        elif reach <= me < 2 * reach:
            dist.recv(x, group=group, group_src=(me - reach + root) % p)
        reach *= 2
    ### END SOLUTION

# %% tags=["check"] grade_id="broadcast-check" points=3
check.broadcast(cluster, "tree_broadcast")

# %% [markdown]
# ## 2. The first half of the ring: reduce-scatter
#
# `chunks` is a list of p tensors with one dimension, and each chunk has the same size on all ranks. At the end, `chunks[r]` of rank r must hold the sum of
# `chunks[r]` over all ranks. What the other chunks hold afterwards does not matter.
#
# There are p - 1 rounds. In each round, every rank sends *one* chunk to the next rank, and adds the chunk that it receives from the previous rank to its own
# version of this chunk. The tutorial's ring leaves rank r with the sum of chunk r + 1. Here, however, rank r must end with the sum of chunk r, as in MPI and
# NCCL.
#
# The chunks of a list may differ in size and may be empty. Their dtype is float32, float64 or int64.
#
# *Difficulty ●●●, 14 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Work backwards. In the last round, a rank receives chunk `me`. Which chunk did it receive in the round before? In which round did it receive the chunk that it
# sends now? For more help, run `hint("04-reduce-scatter")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="reduce-scatter"
# %%px --setup
def ring_reduce_scatter(chunks: list[torch.Tensor],
                        group: dist.ProcessGroup | None = None) -> None:
    """Replace chunks[r] of each rank r by the sum of all ranks' chunks[r], in place. The
    other chunks may hold anything afterwards.

    All ranks of the group call this function. Each sends p - 1 messages of one chunk, and
    only to the next rank.
    """
    ### BEGIN SOLUTION
    me, p = dist.get_rank(group), dist.get_world_size(group)
    for s in range(p - 1):
        mine = chunks[(me - 2 - s) % p]
        work = dist.isend(chunks[(me - 1 - s) % p], group=group, group_dst=(me + 1) % p)
        came = torch.empty_like(mine)
        dist.recv(came, group=group, group_src=(me - 1) % p)
        work.wait()
        mine += came
    ### END SOLUTION

# %% tags=["check"] grade_id="reduce-scatter-check" points=3
check.reduce_scatter(cluster, "ring_reduce_scatter")

# %% [markdown]
# ## 3. The second half: all-gather
#
# Now `chunks[r]` of rank r is right, and the other chunks must be filled in. Use the same ring with p - 1 rounds, but without adding anything.
#
# *Difficulty ●●○, 7 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# What can a rank send in round 0? In round 1, which chunk does it have that the next rank does not have yet? For more help, run `hint("04-all-gather")` in a
# separate cell.
# </details>

# %% tags=["solution"] grade_id="all-gather"
# %%px --setup
def ring_all_gather(chunks: list[torch.Tensor],
                    group: dist.ProcessGroup | None = None) -> None:
    """Fill in the chunks of the other ranks, in place, so that chunks[r] becomes what rank
    r has in its chunks[r].

    All ranks of the group call this function. Each sends p - 1 messages of one chunk, and
    only to the next rank.
    """
    ### BEGIN SOLUTION
    me, p = dist.get_rank(group), dist.get_world_size(group)
    for s in range(p - 1):
        work = dist.isend(chunks[(me - s) % p], group=group, group_dst=(me + 1) % p)
        dist.recv(chunks[(me - 1 - s) % p], group=group, group_src=(me - 1) % p)
        work.wait()
    ### END SOLUTION

# %% tags=["check"] grade_id="all-gather-check" points=2
check.all_gather(cluster, "ring_all_gather")

# %% [markdown]
# ## 4. All-reduce
#
# Put the two halves together. x has any number of dimensions, any of the three dtypes, and any number of elements. This number need not be divisible by p, and
# it may be smaller than p.
#
# The check examines the values **and the ledger**. A solution that gathers everything and adds it up computes the right values, but it sends p/2 times as many
# bytes as a ring, so it fails.
#
# *Difficulty ●●○, 8 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# Your two halves write into the chunks. How do you split x so that a chunk is a piece of x and not a copy? For more help, run `hint("04-all-reduce")` in a
# separate cell.
# </details>

# %% tags=["solution"] grade_id="all-reduce"
# %%px --setup
def ring_all_reduce(x: torch.Tensor, group: dist.ProcessGroup | None = None) -> None:
    """Replace x by the sum of all ranks' x, in place, on every rank of the group.

    All ranks of the group call this function, with tensors of the same shape and dtype.
    Each sends 2 (p - 1)/p of x's bytes, and only to the next rank (Patarasuk and Yuan
    2009).
    """
    ### BEGIN SOLUTION
    chunks = list(x.view(-1).tensor_split(dist.get_world_size(group)))
    ring_reduce_scatter(chunks, group)
    ring_all_gather(chunks, group)
    ### END SOLUTION

# %% tags=["check"] grade_id="all-reduce-check" points=4
check.all_reduce(cluster, "ring_all_reduce")

# %% [markdown]
# ## 5. What does it cost?
#
# Compare four ways to compute an all-reduce of a tensor of `n_bytes`:
#
# | `way` | what the ranks do |
# |---|---|
# | `"star"` | all ranks send x to rank 0, which adds up what it receives and sends the sum to each of them |
# | `"tree"` | a sum to rank 0, backwards along the tree of exercise 1 (a *binomial* tree), and then a broadcast along the same tree |
# | `"ring"` | reduce-scatter and all-gather as you wrote them, where p divides the number of elements |
# | `"gather"` | each rank sends x to every other rank, and each rank adds up what it receives |
#
# `most_bytes` returns how many bytes the **busiest** rank *sends*, which matters because the others wait for this rank. `rounds` returns how many messages must
# follow one another in your tree broadcast (`"broadcast"`) or in your all-reduce (`"ring"`). The check runs all these algorithms, compares your answers with
# the ledger, and asks about worlds with more ranks.
#
# *Difficulty ●●○, 8 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# Draw the tree for 5 ranks. How often does rank 0 send, and in which half of the all-reduce? For more help, run `hint("04-cost")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="cost"
# %%px --setup
def most_bytes(way: str, p: int, n_bytes: int) -> int:
    """Return the bytes that the busiest of p ranks sends in an all-reduce of n_bytes."""
    ### BEGIN SOLUTION
    if way == "tree":
        return (p - 1).bit_length() * n_bytes
    return 2 * (p - 1) * n_bytes // p if way == "ring" else (p - 1) * n_bytes
    ### END SOLUTION


def rounds(way: str, p: int) -> int:
    """Return how many messages must follow each other. `way` is "broadcast" (along a tree)
    or "ring" (the all-reduce)."""
    ### BEGIN SOLUTION
    return (p - 1).bit_length() if way == "broadcast" else 2 * (p - 1)
    ### END SOLUTION

# %% tags=["check"] grade_id="cost-check" points=2
check.cost(cluster, "most_bytes", "rounds")

# %% [markdown]
# ## 6. Find the bugs
#
# `suspect_all_reduce` uses halving and doubling, as in the tutorial. Its author tested it on 2 and on 4 ranks, and all sums were right. Nevertheless, it has
# **two bugs**. One of them shows in the values if you use a different test. The other shows only in the ledger and not in any value. `swapped` has no bug.

# %% tags=["setup"]
# %%px --setup
def swapped(out: torch.Tensor, partner: int,
            group: dist.ProcessGroup | None) -> torch.Tensor:
    """Send `out` to the partner, and return the tensor of the same size that the partner
    sends."""
    came = torch.empty_like(out)
    work = dist.isend(out, group=group, group_dst=partner)
    dist.recv(came, group=group, group_src=partner)
    work.wait()
    return came

# %% tags=["setup"]
# %%px --setup
def suspect_all_reduce(x, group=None):
    me, reach, part, halves = (dist.get_rank(group), dist.get_world_size(group) // 2,
                               x.view(-1), [])
    while reach:  # halving
        lower, upper = part.chunk(2)
        mine, other = (lower, upper) if me < reach else (upper, lower)
        came = swapped(part, me ^ reach, group)
        mine += came.chunk(2)[0 if mine is lower else 1]
        halves.append((mine, other, me ^ reach))
        part, reach = mine, reach // 2
    for mine, other, partner in reversed(halves):  # doubling
        other.copy_(swapped(mine, partner, group))

# %% [markdown]
# The second cell below is the author's test, on ranks 0 to 3. Change what the ranks put into x until a sum is wrong, and compare the number of bytes with what
# it should be.

# %% tags=["setup"]
# %%px --setup
four = dist.new_group(range(4))

# %%
# %%px
from manyhands.ledger import Ledger

x = torch.full((8,), 10.0 ** dist.get_rank())
with Ledger() as ledger:
    if dist.get_rank() < 4:
        suspect_all_reduce(x, four)
if dist.get_rank() < 4:
    print(x.int().tolist(), " bytes sent:", ledger.bytes_sent, "of a tensor of", x.nbytes)

# %% [markdown]
# Now write the function correctly. Keep the algorithm, which is first halving and then doubling, in 2 log2 p rounds.
#
# *Difficulty ●●●, 12 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Let the numbers of a rank differ from each other, and not only from the numbers of the other ranks. How much of what arrives in a round is used? For more
# help, run `hint("04-halving")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="halving"
# %%px --setup
def halving_all_reduce(x: torch.Tensor, group: dist.ProcessGroup | None = None) -> None:
    """Replace x by the sum of all ranks' x, in place, by halving and doubling.

    All ranks of the group call this function. Their number p is 2, 4, 8, ... and divides
    the number of elements. Each sends 2 log2 p messages, which are 2 (p - 1)/p of x's bytes
    in total (Thakur, Rabenseifner and Gropp 2005).
    """
    ### BEGIN SOLUTION
    me, reach, part, halves = (dist.get_rank(group), dist.get_world_size(group) // 2,
                               x.view(-1), [])
    while reach:  # halving
        lower, upper = part.chunk(2)
        mine, other = (upper, lower) if me & reach else (lower, upper)
        mine += swapped(other, me ^ reach, group)
        halves.append((mine, other, me ^ reach))
        part, reach = mine, reach // 2
    for mine, other, partner in reversed(halves):  # doubling
        other.copy_(swapped(mine, partner, group))
    ### END SOLUTION

# %% tags=["check"] grade_id="halving-check" points=3
check.halving(cluster, "halving_all_reduce")

# %% [markdown]
# ## All together
#
# Your broadcast gives all ranks the same initial weights, and your all-reduce adds up their gradients. With these two functions, a network learns to read
# digits on five ranks and reaches the weights that a single process computes. This part is not graded, but it works only if your pieces do.

# %%
# %%px
rank, p = dist.get_rank(), dist.get_world_size()
x, y = (torch.from_numpy(array[:500]) for array in digits("train"))
x = x.double()  # so that rounding does not grow during training

def train(model, rows, average):
    for step in range(60):
        model.zero_grad()
        torch.nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        average(model)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.5 * parameter.grad

def average(model):
    for parameter in model.parameters():
        ring_all_reduce(parameter.grad)
        parameter.grad /= p

# %%
# %%px
torch.manual_seed(rank)  # different initial weights on each rank
ours, alone = (torch.nn.Linear(x.shape[1], 10).double() for _ in range(2))
for parameter in ours.parameters():
    tree_broadcast(parameter.data)
alone.load_state_dict(ours.state_dict())
train(ours, shard(len(x), rank, p), average)
train(alone, slice(None), lambda model: None)
same = all(torch.allclose(a, b, rtol=0, atol=1e-9)
           for a, b in zip(ours.parameters(), alone.parameters()))
loss = torch.nn.functional.cross_entropy(ours(x), y).item()
print(f"loss {loss:.3f}; weights as one process's, to 1e-9: {same}")

# %% [markdown]
# ## Where to go on
#
# * `dist.broadcast`, `dist.reduce_scatter`, `dist.all_gather` and `dist.all_reduce` do the same as your functions, with gloo or NCCL, so use them in your
#   programs.
# * Unit 05 measures what a message and a byte cost, and finds the size at which a tree and a ring take equally long. Unit 06 hides the all-reduce behind the
#   backward pass. Unit 16 uses each half of the ring separately.
# * P. Patarasuk, X. Yuan 2009, *Bandwidth optimal all-reduce algorithms for clusters of workstations*, Journal of Parallel and Distributed Computing 69(2).

# %%
cluster.stop()
