# %% [markdown] unit={"minutes": 25, "ranks": 4, "framework": "torch", "title": "Preflight: your cluster"}
# # 00 Lab: find the rank that did not arrive
#
# At the end, you can
#
# * work out a rank's place in the world from two numbers.
# * use the wait-for graph of a hang to name the ranks that are to blame.
# * repair an exchange that hangs, for a ring of any size.
# * get a job working again after a fault, without restarting the notebook.
#
# **Before:** the tutorial of this unit. **Minutes:** 25 · **Ranks:** 4, on 2 nodes · **Points:** 10.
#
# Cells that begin with `%%px` run on all four ranks, while the others run in this kernel. Fill in the cells that raise `NotImplementedError`, and then run the
# check below each of them. If a mistake makes the ranks hang, wait for the report, repair the cell, and run it again. Leave `--setup` where it is, because the
# checks break the cluster on purpose, and healing then restores your functions. Below each check, you see what it prints when the answer is right, so that you
# know what to aim for. The process group uses `gloo` on every machine, as in the tutorial, because a call to `gloo` waits on the line where you wrote it.

# %% tags=["setup"]
from manyhands import Cluster, hint
from manyhands.checks import preflight as check

cluster = Cluster(nodes=2, ranks_per_node=2, framework="torch")

# %% tags=["setup"]
# %%px --setup
import os

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()

# %% [markdown]
# ## 1. Where am I?
#
# `torchrun` (like our cluster) gives each rank the number of its node in `GROUP_RANK`, but other launchers have no such variable. If consecutive ranks fill one
# node after the other, however, two numbers are enough, namely `RANK` and `LOCAL_WORLD_SIZE`, which is the number of ranks on each node. Our cluster and
# `torchrun` place the ranks in this way, whereas Slurm's *cyclic* distribution and `mpirun --map-by node` distribute them over the nodes in turn, as cards are
# dealt. Write a function that computes a rank's place from only these two numbers, for the first kind of placement.
#
# *Difficulty ●○○, 4 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# With 3 ranks on each node, which node is rank 7 on? For more help, run `hint("00-place")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="place"
# %%px --setup
def where_am_i() -> tuple[int, int, int]:
    """Compute (rank, node, local rank) of this process from RANK and LOCAL_WORLD_SIZE.

    The environment variables are read each time the function is called.
    """
    ### BEGIN SOLUTION
    rank, ranks_per_node = int(os.environ["RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    return rank, rank // ranks_per_node, rank % ranks_per_node
    ### END SOLUTION

# %% tags=["check"] grade_id="place-check" points=2
check.place(cluster)

# %% [markdown]
# ## 2. Which ranks are to blame?
#
# Here is a hang in which ranks 0, 1 and 2 want to send their numbers around a ring, while rank 3 takes no part.

# %% tags=["raises-exception"]
# %%px --patience 2
ring = [0, 1, 2]
received = torch.zeros(1)
if rank in ring:
    dist.recv(received, ring[rank - 1])
    dist.send(torch.tensor([float(rank)]), ring[(rank + 1) % 3])

# %% [markdown]
# The picture of this hang is drawn from two objects, which this kernel keeps as `cluster.fault.waiting` and `cluster.fault.edges`.

# %%
for waiting_rank, where in cluster.fault.waiting.items():
    print(f"rank {waiting_rank} waits in {where.call}, line {where.line}, for rank "
          f"{where.peer}")
print(cluster.fault.edges)

# %% [markdown]
# Write a function that reads the wait-for graph for you. There are two kinds of hang:
#
# * `"absent"` means that some ranks are waited for but do not wait themselves, so they are to blame.
# * `"circle"` means that no rank is absent. Only the ranks of the circle are to blame. Other ranks may be waiting for the circle without being part of it.
#
# A rank may also have finished without being waited for, like rank 3 above. The check draws hangs of 4 to 8 ranks at random, and it causes three real hangs on
# your cluster.
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Where does the walk end if you follow the arrows from any rank that waits? For more help, run `hint("00-diagnose")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="diagnose"
def diagnose(waiting: dict, edges: list[tuple[int, int]]) -> tuple[str, list[int]]:
    """Name the ranks that are to blame for a hang.

    waiting: {rank: where it waits}, with only those ranks that wait.
    edges: (a, b) means that rank a waits for rank b.
    Returns ("absent", ranks) or ("circle", ranks).
    """
    ### BEGIN SOLUTION
    absent = {b for a, b in edges} - set(waiting)
    if absent:
        return "absent", sorted(absent)
    after = dict(edges)  # one arrow per rank is enough, because all lead to the circle
    here, path = min(waiting), []
    while here not in path:
        path.append(here)
        here = after[here]
    return "circle", sorted(path[path.index(here):])
    ### END SOLUTION

# %% tags=["check"] grade_id="diagnose-check" points=3
check.diagnose(cluster, diagnose)

# %% [markdown]
# ## 3. Repair the exchange
#
# Each rank in a ring gives its value to the next rank and receives the value of the previous rank. You have just seen that this exchange hangs if every rank
# receives first. (It also hangs if every rank sends first, because a large message leaves only when the other side receives it, and `gloo` treats small
# messages in the same way.) Repair the order of the calls.
#
# `members` lists the ranks in the order of the ring. For example, in `[2, 0, 3]`, rank 2 gives its value to rank 0, rank 0 to rank 3, and rank 3 to rank 2.
# The check uses rings of four, three and two ranks, and the remaining ranks do not take part.
#
# *Difficulty ●●○, 7 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# There are two solutions. In the first, some ranks begin with the send, and the others begin with the receive. Which ranks would begin with the send in a ring
# of three? In the second, each rank begins to send and immediately goes on to receive, for which you can use `dist.isend`. For more help, run
# `hint("00-exchange")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="exchange"
# %%px --setup
def exchange(value: torch.Tensor, members: list[int]) -> torch.Tensor:
    """Give `value` to the next rank of the ring `members`, and return what the previous
    rank gave.

    All members call this, with tensors of one shape and dtype, and each member sends one
    message and gets one. `value` stays as it is, and the caller may change it as soon as
    exchange has returned.
    """
    place = members.index(dist.get_rank())
    following, previous = members[(place + 1) % len(members)], members[place - 1]
    received = torch.empty_like(value)
    ### BEGIN SOLUTION
    request = dist.isend(value, dst=following)
    dist.recv(received, src=previous)
    request.wait()
    ### END SOLUTION
    return received

# %% tags=["check"] grade_id="exchange-check" points=3
check.exchange(cluster)

# %% [markdown]
# ## 4. Recover
#
# A job works on a `shard`, which is a different tensor on every rank. Now and then, it saves the numbers of all shards in this kernel.

# %%
# %%px
shard = torch.arange(3) + 10 * rank
numbers = shard.tolist()

# %%
saved = cluster.pull("numbers")
print(saved)

# %% [markdown]
# Then there is a fault, and the cluster heals. Since all ranks are new, they have no `shard`. Whether they have a process group depends on whether a `--setup`
# cell creates one. Write a function that gets the job working again in either case, so that each `shard` is what it was before the fault, namely a tensor of
# whole numbers (int64) with one axis.
#
# The check calls your function and then all-reduces the shards, first without a fault, then after a fault, and finally on ranks without a process group.
#
# *Difficulty ●●○, 6 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# `cluster.push({"name": value})` gives a value to all ranks, and `cluster.px("...")` runs a cell on them. Since `dist.init_process_group` raises an error if
# a group already exists, ask `dist.is_initialized()` first. For more help, run `hint("00-recover")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="recover"
def recover(cluster: Cluster, saved: list[list[int]]) -> None:
    """Bring the job back after a fault, on the new ranks of the same cluster.

    saved: the numbers of every rank's shard, in rank order.
    Afterwards, every rank has a process group and its own `shard`, which is a tensor.
    """
    ### BEGIN SOLUTION
    cluster.push({"saved": saved})
    cluster.px("""
import torch
import torch.distributed as dist

if not dist.is_initialized():
    dist.init_process_group("gloo")
shard = torch.tensor(saved[dist.get_rank()])
""")
    ### END SOLUTION

# %% tags=["check"] grade_id="recover-check" points=2
check.recover(cluster, recover)

# %% [markdown]
# ## Where to go on
#
# * To see your points, run `manyhands check 00` in a terminal. This command runs your lab again, with newly drawn numbers.
# * Next comes unit 01 (data parallelism by hand) or unit 02 (MirroredStrategy). Unit 04 builds an all-reduce from `send` and `recv`, in a ring like yours.
# * To read more about hangs, see T. Hilbrich et al. 2012, *MPI Runtime Error Detection with MUST*,
#   [doi:10.1109/SC.2012.79](https://doi.org/10.1109/SC.2012.79). The authors also use a wait-for graph, to find deadlocks in MPI programs.

# %%
cluster.stop()
