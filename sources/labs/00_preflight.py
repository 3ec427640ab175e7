# %% [markdown] unit={"minutes": 25, "ranks": 4, "framework": "torch", "title": "Preflight: your cluster"}
# # 00 Lab: find the rank that did not come
#
# At the end you can
#
# * work out from two numbers where a rank stands in the world;
# * name the ranks to blame for a hang, from its wait-for graph;
# * mend an exchange that hangs, for a ring of any size;
# * bring a job back to work after a fault, without a restart.
#
# **Before:** the tutorial of this unit. **Minutes:** 25. **Ranks:** 4, on 2 nodes. **Points:** 10.
#
# Cells that begin with `%%px` run on all four ranks; the others run in this kernel. Fill in the cells that raise `NotImplementedError`, then
# run the check below each. A mistake may make the ranks hang: wait for the report, mend, run again. Leave `--setup` where it is: the checks
# break the cluster on purpose, and healing brings your functions back. Below each check stands what it says when the answer is right: that is what to
# aim at. The process group is `gloo`'s on every machine, as in the tutorial: with it a call waits where it stands.

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
# `torchrun` (and our cluster) tells each rank its node in `GROUP_RANK`. Other launchers have no such variable. Where consecutive ranks fill
# one node after the other, two numbers are enough: `RANK`, and `LOCAL_WORLD_SIZE`, how many ranks each node has. So it is here and under `torchrun`; Slurm's
# *cyclic* distribution and `mpirun --map-by node` deal the ranks out like cards. Write a function for the first kind that needs only these two numbers.
#
# *Difficulty ●○○, 4 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# With 3 ranks on each node, which node is rank 7 on? For more, run `hint("00-place")` in a cell of its own.
# </details>

# %% tags=["solution"] grade_id="place"
# %%px --setup
def where_am_i() -> tuple[int, int, int]:
    """(rank, node, local rank) of this process, worked out from RANK and LOCAL_WORLD_SIZE.

    Reads the environment variables each time it is called.
    """
    ### BEGIN SOLUTION
    rank, ranks_per_node = int(os.environ["RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    return rank, rank // ranks_per_node, rank % ranks_per_node
    ### END SOLUTION

# %% tags=["check"] grade_id="place-check" points=2
check.place(cluster)

# %% [markdown]
# ## 2. Who is to blame?
#
# Here is a hang. Ranks 0, 1 and 2 want to send their numbers round a ring; rank 3 has nothing to do with it:

# %% tags=["raises-exception"]
# %%px --patience 2
ring = [0, 1, 2]
received = torch.zeros(1)
if rank in ring:
    dist.recv(received, ring[rank - 1])
    dist.send(torch.tensor([float(rank)]), ring[(rank + 1) % 3])

# %% [markdown]
# The picture is made of two things, which this kernel has kept as `cluster.fault.waiting` and `cluster.fault.edges`:

# %%
for waiting_rank, where in cluster.fault.waiting.items():
    print(f"rank {waiting_rank} waits in {where.call}, line {where.line}, for rank "
          f"{where.peer}")
print(cluster.fault.edges)

# %% [markdown]
# Write the function that reads the graph for you. There are two kinds of hangs:
#
# * `"absent"`: there are ranks that others wait for and that do not wait themselves. They are to blame.
# * `"circle"`: nobody is absent. To blame are the ranks of the circle, and only they: other ranks may be waiting for the circle without
#   being part of it.
#
# A rank may also have finished without anybody waiting for it, like rank 3 above. The check draws hangs of 4 to 8 ranks, and makes three real
# ones on your cluster.
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Where does the walk end, if you follow the arrows from any rank that waits? For more, `hint("00-diagnose")`.
# </details>

# %% tags=["solution"] grade_id="diagnose"
def diagnose(waiting: dict, edges: list[tuple[int, int]]) -> tuple[str, list[int]]:
    """Name the ranks to blame for a hang.

    waiting: {rank: where it waits}, with those ranks only that wait.
    edges: (a, b) says that rank a waits for rank b.
    Returns ("absent", ranks) or ("circle", ranks).
    """
    ### BEGIN SOLUTION
    absent = {b for a, b in edges} - set(waiting)
    if absent:
        return "absent", sorted(absent)
    after = dict(edges)  # one arrow of each rank is enough: all of them lead to the circle
    here, path = min(waiting), []
    while here not in path:
        path.append(here)
        here = after[here]
    return "circle", sorted(path[path.index(here):])
    ### END SOLUTION

# %% tags=["check"] grade_id="diagnose-check" points=3
check.diagnose(cluster, diagnose)

# %% [markdown]
# ## 3. Mend the exchange
#
# Each rank of a ring gives its value to the next rank, and gets that of the previous one. You have just seen how not to do it: everybody
# receives first. (Everybody sending first is no better: a large message leaves only when the other side takes it, and `gloo` treats small ones
# the same way.) Mend the order of the calls.
#
# `members` lists the ranks of the ring, in its order: in `[2, 0, 3]` rank 2 gives to 0, 0 to 3, and 3 to 2. The check uses rings of four, three
# and two ranks; the others do not take part.
#
# *Difficulty ●●○, 7 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# There are two ways. Some ranks send first, the others receive first: which ones, in a ring of three? Or each begins to send, and goes on at once
# to receive: look at `dist.isend`. For more, `hint("00-exchange")`.
# </details>

# %% tags=["solution"] grade_id="exchange"
# %%px --setup
def exchange(value: torch.Tensor, members: list[int]) -> torch.Tensor:
    """Give `value` to the next rank of the ring `members`; return what the previous one
    gave.

    All members call it, with tensors of one shape and dtype. One message out and one in.
    `value` stays as it is; the caller may change it as soon as exchange has returned.
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
# A job works on a `shard`, a tensor of its own on every rank. Now and then it saves the numbers of all shards in this kernel:

# %%
# %%px
shard = torch.arange(3) + 10 * rank
numbers = shard.tolist()

# %%
saved = cluster.pull("numbers")
print(saved)

# %% [markdown]
# Then there is a fault. The cluster heals, and all ranks are new: no `shard`. Whether they have a process group depends on whether a `--setup`
# cell makes one. Write the function that puts the job back to work in either case: each `shard` is
# again what it was, a tensor of whole numbers (int64) along one axis.
#
# The check calls your function and then all-reduces the shards: first without any fault, then after one, then on ranks without a process
# group.
#
# *Difficulty ●●○, 6 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# `cluster.push({"name": value})` gives a value to all ranks, and `cluster.px("...")` runs a cell on them. `dist.init_process_group` raises an
# error where a group exists: ask `dist.is_initialized()`. For more, `hint("00-recover")`.
# </details>

# %% tags=["solution"] grade_id="recover"
def recover(cluster: Cluster, saved: list[list[int]]) -> None:
    """Bring the job back after a fault, on the new ranks of the same cluster.

    saved: the numbers of every rank's shard, in rank order.
    Afterwards every rank has a process group and its own `shard`, a tensor.
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
# * To see your points, run `manyhands check 00` in a terminal. It runs your lab again, with other drawn numbers.
# * Next: unit 01 (data parallelism by hand) or 02 (MirroredStrategy). Unit 04 builds all-reduce from `send` and `recv`, in a ring like yours.
# * More on reading hangs: T. Hilbrich et al. 2012, *MPI Runtime Error Detection with MUST*,
#   [doi:10.1109/SC.2012.79](https://doi.org/10.1109/SC.2012.79), finds deadlocks in MPI programs by a wait-for graph, too.

# %%
cluster.stop()
