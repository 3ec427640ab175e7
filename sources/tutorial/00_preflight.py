# %% [markdown] unit={"minutes": 30, "ranks": 4, "framework": "torch", "title": "Preflight: your cluster"}
# # 00 · Preflight: your cluster
#
# After this notebook, you can
#
# 1. explain what a rank, a node and the world are, and read each rank's place in the world.
# 2. tell whether a cell is run by this kernel or by one or more ranks.
# 3. let ranks communicate through a process group, with an all-reduce and a message.
# 4. read a wait-for graph, and tell whether the ranks wait for a missing rank or for each other in a circle.
# 5. continue after a fault without restarting anything yourself, and explain what was lost and what was restored.
#
# **Before:** you can read a little Python. **Minutes:** 30, then the lab · **Ranks:** 4, on 2 nodes. Run the cells from top to bottom with Shift+Enter. Three
# of them end in an error on purpose.

# %% [markdown]
# ## A world of four ranks
#
# Training on many devices means that many processes work together.
#
# * A **rank** is one of these processes, and its number is also called its rank.
# * A **node** is a machine that runs some of the ranks.
# * The **world** is the set of all ranks, and its size is the number of ranks.
#
# The next cell starts a world of 2 nodes with 2 ranks each. Here, both nodes are on this one machine. On a real cluster, they would be two machines, and the
# rest of this notebook would stay as it is.

# %% tags=["setup"]
from manyhands import Cluster, predict, settle

cluster = Cluster(nodes=2, ranks_per_node=2, framework="torch")
print(cluster.nodes, "nodes with", cluster.ranks_per_node, "ranks each: a world of",
      cluster.world_size)

# %% tags=["measured"]
cluster  # draws the cluster, with the devices of your machine

# %% [markdown]
# ## Who runs this cell?
#
# So far, every cell has been run by **this kernel**, which is the Python process behind the notebook. A cell that begins with `%%px` is run by **all ranks** at
# the same time, and this kernel shows what they print, in the order of the ranks.
#
# The cluster is built on the package **ipyparallel**, which starts processes for a notebook (the *engines*, each of which is a rank here) and sends cells to
# them. This package also has a `%%px`, but the notebook uses the course's own version, which prints in the order of the ranks, adds the option `--setup`, and
# includes the watch that you will meet below.
#
# Each rank reads its place in the world from environment variables, just as it would under PyTorch's launcher `torchrun`.

# %%
# %%px
import os

names = "RANK", "WORLD_SIZE", "GROUP_RANK", "LOCAL_RANK"
print(*[f"{name}={os.environ[name]}" for name in names])

# %% [markdown]
# | variable | what it says |
# |---|---|
# | `RANK` | my number in the world, from 0 |
# | `WORLD_SIZE` | how many ranks there are |
# | `GROUP_RANK` | the number of my node |
# | `LOCAL_RANK` | my number on my node, from 0, which selects my GPU |
#
# The same code ran four times, and only the values of these variables distinguished the ranks. Nearly all code for distributed training is written in this way,
# as *one program in which each rank does its own part.*
#
# **Predict, then run.** In three short cells, first this kernel sets `x`, then each rank sets `x`, and finally this kernel prints `x`. What does the kernel
# print? The next cell asks you this question, so choose an answer, click *Lock*, run the cells that follow, and read how your prediction was settled. You can
# also continue without an answer. `Start_Here` shows how often you were right, and how surprised you were. The code of these cells is hidden, because it
# contains the answer. To see it, click on its first line. Without a mouse, run the cell above with Shift+Enter, which selects the hidden cell,
# and choose *View*, *Expand Selected Code*. (The arrow keys skip hidden cells.)

# %%
# Run this cell to make your prediction.
predict("00-whose-x",
        "x is 100 in this kernel and rank ** 2 on each rank. "
        "What does this kernel print for x?",
        ["0", "9", "0, 1, 4 and 9", "100"])

# %%
x = 100

# %%
# %%px
x = int(os.environ["RANK"]) ** 2
print(x)

# %%
print(x)

# %%
# Run this cell to compare your prediction with the outcome.
settle("00-whose-x", lambda: str(x))

# %% [markdown]
# <details><summary><b>Why?</b></summary>
#
# This kernel prints 100, because there are five processes and therefore five variables called `x`. A rank never sees this kernel's variables, and this kernel
# never sees a rank's variables. Since nothing is shared, whatever one process needs from another process must be sent.
# </details>
#
# You can send values between this kernel and the ranks, and you can run a cell on only some of the ranks:

# %%
print(cluster.pull("x"))        # from every rank, in rank order
cluster.push({"greeting": "hello"})  # to every rank

# %%
# %%px --ranks 1,3
print(greeting, "from rank", os.environ["RANK"])

# %% [markdown]
# ## The first communication
#
# Ranks talk to each other through a **process group**. In `init_process_group`, they find each other through a small store, which rank 0 or the launcher keeps
# at `MASTER_ADDR` and `MASTER_PORT` and in which each rank leaves its address. Whether a rank waits in this call until all ranks have arrived depends on the
# library, so do not rely on such a wait.
#
# The library that carries the messages here is `gloo`, which works on every CPU, whereas `nccl` is made for GPUs. This unit uses `gloo` even if you have GPUs,
# because a call to `gloo` waits on the line where you wrote it, and these waits are what we want to see.
#
# Remember the option `--setup`, because it will become important.

# %% tags=["setup"]
# %%px --setup
import os
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()

# %% [markdown]
# An **all-reduce** combines the tensors of all ranks (it adds them, unless you choose a different operation), and every rank receives the result. It is the
# heart of data-parallel training, in which the tensors are gradients.
#
# **Predict, then run.** Each rank passes `[1, rank, 10 * rank]` to an all-reduce. What does rank 2 print afterwards?

# %%
# Run this cell to make your prediction.
predict("00-all-reduce",
        "What does rank 2 print after an all-reduce of [1, rank, 10 * rank] on 4 ranks?",
        ["[1, 2, 20]", "[1, 6, 60]", "[4, 6, 60]", "[4, 8, 80]"])

# %%
# %%px
t = torch.tensor([1, rank, 10 * rank])
dist.all_reduce(t)
print(t.tolist())

# %%
# Run this cell to compare your prediction with the outcome.
settle("00-all-reduce", lambda: str(cluster.pull("t.tolist()")[2]))

# %% [markdown]
# <details><summary><b>Why?</b></summary>
#
# Rank 2 prints `[4, 6, 60]`, and so does every other rank. The numbers are 1 + 1 + 1 + 1, 0 + 1 + 2 + 3, and ten times that. The sum replaces what was in
# `t`, so if you run the all-reduce a second time, you add up the sums.
# </details>
#
# An all-reduce is a **collective**, which means that *every* rank of the group must call it, because every rank contributes to the result. What happens if one
# rank does not call it?
#
# ## A barrier that one rank skips on purpose
#
# The simplest collective is the **barrier**. It sends no data, but no rank can pass it until every rank has reached it.
#
# **Predict, then run.** Rank 2 does not call the barrier. What do ranks 0, 1 and 3 do, and for how long?

# %%
# Run this cell to make your prediction.
predict("00-barrier", "Rank 2 does not call the barrier. What do ranks 0, 1 and 3 do?",
        ["they go on", "they raise an error at once", "they wait, and get no error"])

# %% tags=["raises-exception"]
# %%px --patience 3
keepsake = torch.tensor([rank])
if rank != 2:
    dist.barrier()

# %%
# Run this cell to compare your prediction with the outcome.
import sys

settle("00-barrier", lambda: {"hang": "they wait, and get no error"}.get(
    sys.last_value.kind, "they raise an error at once"))

# %% [markdown]
# <details><summary><b>Why?</b></summary>
#
# Ranks 0, 1 and 3 wait and get no error. Since no rank has failed, there is no error message before the group's timeout (for `gloo`, 30 minutes unless you set
# a different one). Until then, a wait inside the library cannot even be interrupted from Python. In a real job, you would see four processes that look alive
# and a log that does not grow.
# </details>
#
# Here, the wait ended because the cluster watches its ranks. Below a cell whose ranks have waited for two seconds, a line says which of them are waiting, in which
# call and for how long. If every rank that has not finished has been waiting in a communication call for the length of the *patience* (10 seconds, or 30 if each
# rank has a GPU, unless the cell sets a different time), the cluster regards this as a **hang** and asks each rank where it is waiting. From top to bottom, its
# report shows:
#
# * one line for all ranks that do the same, which says what they are doing and on which line of the cell;
# * which rank waits for which, for example `0 -> 2` if rank 0 waits for rank 2;
# * the likely cause; and
# * what the cluster did about the hang, which we explain below.
#
# ## The wait-for graph
#
# The picture in the report is the most useful one in this unit. Each disc is a rank, and **an arrow points from a rank that waits to the rank for which it
# waits**. To find the cause, follow the arrows. If each rank waits for all ranks that its arrows point to, this walk has only two possible outcomes:
#
# * **The walk ends at a rank without an outgoing arrow.** That rank does not wait for any other rank, and it has not made the call in which the others wait.
#   Ask what *it* did instead. (Above, this is rank 2.)
# * **The walk never ends, because the arrows form a circle** (this is called a *cycle*, and such a hang a *deadlock*). No rank is missing, but none of the
#   ranks can go first.
#
# However, a receive from any rank (units 08 and 09) needs only *one* of the ranks that its arrows point to. With such a receive, a cycle alone is not a
# deadlock, because a rank outside the cycle may still send (Holt 1972).
#
# **Predict, then run.** Each rank wants to give its number to the next rank, but it receives before it sends. What does the wait-for graph look like?

# %%
# Run this cell to make your prediction.
predict("00-graph",
        "All ranks receive from the one before, then send. What is the wait-for graph?",
        ["a line that ends at one rank", "a circle through all", "two pairs", "no arrows"])

# %% tags=["raises-exception"]
# %%px --patience 3
following, previous = (rank + 1) % world_size, (rank - 1) % world_size
received = torch.zeros(1)
dist.recv(received, src=previous)
dist.send(torch.tensor([float(rank)]), dst=following)

# %%
# Run this cell to compare your prediction with the outcome.
def shape():
    """Follow the arrows from rank 0 to a rank that has none or was visited before."""
    to, way = dict(sys.last_value.edges), [0]
    while to.get(way[-1], 0) not in way:
        way.append(to[way[-1]])
    if way[-1] not in to:
        return "a line that ends at one rank" if to else "no arrows"
    return "a circle through all" if len(way) == 4 else "two pairs"

settle("00-graph", shape)

# %% [markdown]
# <details><summary><b>Why?</b></summary>
#
# Every rank waits to receive first, so no rank ever reaches the line that sends. `send` and `recv` transfer a message between two ranks. Here, each rank waits
# for the rank before it, so the arrows form a circle through all four. No rank is more to blame than the others, because it is the *order of the calls* that is
# wrong. You will repair this order in the lab.
# </details>
#
# ## Healing: what is lost, and what comes back
#
# After a hang, the old ranks are of no use, because they are stuck in a call that cannot be interrupted before its timeout. Therefore, the cluster **heals**,
# which means that it ends all four processes and starts four new ones, as `torchrun --max-restarts=3` does when a rank has failed. The cluster replaces all
# four because `gloo`'s process group cannot continue with only some of its members. (With NCCL, `dist.shrink_group` makes a new group of the ranks that are
# left.)
#
# This kernel was not restarted, so `x` is still 100 here. The ranks, however, are new processes.
#
# **Predict, then run.** Before the first hang, one cell set `rank` and `world_size` on the ranks, and another cell set `keepsake`. Which of these variables
# still exist on the ranks? Answer without looking back at the reports.

# %%
# Run this cell to make your prediction.
predict("00-healed", "After the healing, which of these variables exist on the ranks?",
        ["rank, world_size, keepsake", "rank, world_size", "keepsake", "none of them"])

# %%
# %%px
print([name for name in ("rank", "world_size", "keepsake") if name in globals()],
      dist.is_initialized())

# %%
# Run this cell to compare your prediction with the outcome.
LEFT = "[name for name in ('rank', 'world_size', 'keepsake') if name in globals()]"
settle("00-healed", lambda: ", ".join(cluster.pull(LEFT)[0]) or "none of them")

# %%
# %%px
t = torch.tensor([1, rank, 10 * rank])
dist.all_reduce(t)
print(t.tolist())

# %% [markdown]
# <details><summary><b>Why?</b></summary>
#
# All variables of the ranks were lost together with the old processes. After that, the cluster ran the cells marked `--setup` again, in order. These cells
# restored the imports, the process group, `rank` and `world_size`, but none of them sets `keepsake`.
# </details>
#
# Therefore, **put `--setup` on cells that prepare the ranks** (with imports, the process group and functions), and not on cells that do the work. If a job must
# not lose something, keep a copy of it outside the ranks, either in this kernel or in a file. Such a copy is called a *checkpoint*. You can also heal the
# cluster by hand with `cluster.heal()`.
#
# ## An exception on one rank
#
# A rank can also fail loudly while the others wait for it. In that case, the cluster does not wait for the patience to run out, and its report shows the
# exception first, followed by the ranks that waited for the failed rank. (The cluster reacts in the same way when a rank dies because its memory is full or its
# machine fails.)

# %% tags=["raises-exception"]
# %%px
batches = [3, 0, 4, 2]
mean = 12 / batches[rank]
dist.barrier()

# %% [markdown]
# Without the watch, you would have seen three waiting ranks, and you might have looked for the mistake in these ranks.
#
# **A rank that is still working is not part of a hang**, however long its work takes. In the next cell, rank 3 is late, and the patience of one second runs out
# before that rank arrives.

# %%
# %%px --patience 1
if rank == 3:
    time.sleep(2)  # a long computation
dist.barrier()
print("through")

# %% [markdown]
# ## The stop button
#
# A rank in an endless loop is working, too. Since this is not a hang, it is up to you to press the **stop button** (■, above the notebook). The button stops
# the cell on all ranks and shows where each of them was. If a rank cannot be stopped in any other way, the cluster is healed. Try the button now, so that you
# know it when you need it. Add a cell below with these lines, run it, and press ■.
#
# ```python
# %%px
# while rank == 1:
#     pass
# dist.barrier()
# ```
#
# If you do nothing, the cell ends after two minutes, or after the time that you set with `--limit`.

# %% [markdown]
# ## Outside this course
#
# A job on a cluster is usually started by `torchrun`. When a rank fails, `torchrun` ends the other ranks and prints a report that lists them as failures, too.
# Therefore, begin with the last part of the report, *Root Cause (first observed failure)*.
#
# With `--redirects 3`, the output of each rank is written to a separate file instead of to the screen, and with `--tee 3` it is written to both. The option
# `--log-dir` names the folder for these files. The decorator `record` puts the traceback of the failed rank into the report. The next cell raises the exception
# from above once more, this time under `torchrun`.

# %%
import subprocess
import sys
import tempfile
from pathlib import Path

program = """
import os, time
from torch.distributed.elastic.multiprocessing.errors import record

@record
def main():
    mean = 12 / [3, 0, 4, 2][int(os.environ["RANK"])]
    time.sleep(60)  # the other ranks are still at work

main()
"""
with tempfile.TemporaryDirectory() as folder:
    Path(folder, "train.py").write_text(program)
    job = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone",
                          "--nproc-per-node=4", "--log-dir=logs", "--tee=3", "train.py"],
                         cwd=folder, capture_output=True, text=True)
    kept = [path.parent.name + "/" + path.name for path in Path(folder).rglob("*.log")]
report = job.stderr[job.stderr.rindex("Failures:"):]
print(report.count("Signal 15 (SIGTERM)"), "ranks were ended by torchrun")
cause = report[report.index("Root Cause"):]
print(*[line for line in cause.splitlines() if "rank  " in line or "Error:" in line
        or "Root Cause" in line], sep="\n")
print("files:", *sorted(kept))

# %% [markdown]
# If a job on several nodes hangs right at its start, the network is often the cause. A node has several network interfaces, and the library may have chosen one
# over which the other nodes cannot be reached. Choose the right one, for example `eth0`, with the variables in the last row of the table below.
#
# If a job hangs later, nothing watches its ranks as the course's cluster does. However, PyTorch and other tools can tell you the following:
#
# | tool | what it says | with |
# |---|---|---|
# | `py-spy dump --pid ...` | the line that a running process is in. The program needs no preparation, but you may need root privileges or, in a container, `--cap-add SYS_PTRACE` | both |
# | `init_process_group(timeout=...)` | a stuck call raises an error after this time. With `gloo`, the process goes on, but later calls of the same group fail, so make a new group. With NCCL, the process is ended | both |
# | `dist.monitored_barrier(timeout=...)` | on rank 0, which rank did not arrive | gloo only |
# | `TORCH_DISTRIBUTED_DEBUG=DETAIL` | before each collective, whether all ranks call the same one with the same shapes. This is slow | both |
# | flight recorder | each rank's last collectives, with their lines. A timeout writes them to the files that `TORCH_FR_DUMP_TEMP_FILE` names, and `torchfrtrace` compares these files | NCCL (`gloo` records, but writes no file) |
# | `NCCL_DEBUG=INFO` | NCCL's errors, and what it has found and chosen, including the network interface | NCCL |
# | `NCCL_SOCKET_IFNAME=eth0`, `GLOO_SOCKET_IFNAME=eth0` | nothing, but it chooses the interface (`ip addr` lists all interfaces) | each its own |

# %% [markdown]
# > **On GPUs.** NCCL's calls return when they are *enqueued*, so a hang shows up only on a later line that needs the result (`print`, `.item()`). A watchdog
# > ends the process after 10 minutes, unless you set a different time. Connections are made in the first collective, not in `init_process_group` (unless you
# > give `device_id=`). NCCL has no tags and no receive from an arbitrary rank. If two ranks send to each other, both messages belong in one
# > `batch_isend_irecv`.

# %% [markdown]
# ## What you can do now
#
# 1. *Rank, node, world:* A rank is a process, a node is a machine with some of the ranks, and the world is the set of all ranks. The variables are `RANK`,
#    `GROUP_RANK`, `WORLD_SIZE` and, for the number on the node, `LOCAL_RANK`.
# 2. *Which process runs a cell:* A cell is run by this kernel, by all ranks if it begins with `%%px`, or by some ranks if it begins with, for example,
#    `%%px --ranks 1,3`. The processes share no variables.
# 3. *Communication:* After `init_process_group`, you can call `all_reduce`, `barrier`, `send` and `recv`. A collective must be called by every rank of the
#    group.
# 4. *The wait-for graph:* Follow the arrows until you reach a rank that does not wait, or until you are going around in a circle.
# 5. *Healing:* All ranks are replaced, so their variables are lost. The cluster runs the cells marked `--setup` again, and this kernel keeps its variables.
#
# **Next,** do the lab `work/00_preflight`, and then unit 01 (data parallelism by hand) or unit 02 (MirroredStrategy). In unit 04, you build the collectives.
#
# **References.** E. G. Coffman, M. Elphick and A. Shoshani 1971, *System Deadlocks*, [doi:10.1145/356586.356588](https://doi.org/10.1145/356586.356588) · R.
# C. Holt 1972, *Some Deadlock Properties of Computer Systems*, [doi:10.1145/356603.356607](https://doi.org/10.1145/356603.356607) · T. Hilbrich et al. 2012,
# *MPI Runtime Error Detection with MUST*, [doi:10.1109/SC.2012.79](https://doi.org/10.1109/SC.2012.79) · S. Li et al. 2020, *PyTorch Distributed: Experiences
# on Accelerating Data Parallel Training*, [arXiv:2006.15704](https://arxiv.org/abs/2006.15704) · PyTorch, [Distributed communication
# package](https://docs.pytorch.org/docs/stable/distributed.html)

# %%
cluster.stop()
