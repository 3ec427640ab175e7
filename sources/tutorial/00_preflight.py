# %% [markdown] unit={"minutes": 20, "ranks": 4, "framework": "torch", "title": "Preflight: your cluster"}
# # 00 · Preflight: your cluster
#
# After this notebook you can
#
# 1. say what a rank, a node and the world are, and read from each rank where it stands;
# 2. tell which process runs a cell: this kernel, or which ranks;
# 3. let ranks communicate: a process group, an all-reduce, a message;
# 4. read a wait-for graph: which rank do the others wait for, or do they wait in a circle?
# 5. go on after a fault without restarting anything, and say what was lost and what came back.
#
# **You need** a little Python. **Minutes:** 20, then the lab. **Ranks:** 4, on 2 nodes.
# Run the cells from top to bottom with Shift+Enter. Three of them end in an error, on purpose.

# %% [markdown]
# ## A world of four ranks
#
# Training on many devices means many processes that work together.
#
# * A **rank** is one of these processes. Its number is called its rank too.
# * A **node** is a machine with some of the ranks on it.
# * The **world** is all ranks together. Its size is the number of ranks.
#
# This cell starts a world of 2 nodes with 2 ranks each. Both nodes are on this one machine; on a real cluster they would be two
# machines, and the rest of this notebook would stay as it is.

# %% tags=["setup"]
from manyhands import Cluster, predict, settle

cluster = Cluster(nodes=2, ranks_per_node=2, framework="torch")
print(cluster.nodes, "nodes with", cluster.ranks_per_node, "ranks each: a world of",
      cluster.world_size)

# %% tags=["measured"]
cluster  # a picture; the devices in it are those of your machine

# %% [markdown]
# ## Who runs this cell?
#
# So far every cell was run by **this kernel**: the one Python process behind the notebook. A cell that begins with `%%px` is run by
# **all ranks** at once, and this kernel shows what they print, in the order of the ranks.
#
# Underneath is **ipyparallel**, a package that starts processes for a notebook (its *engines*; here each is a rank) and carries cells to them. It has a `%%px`
# too; the one here is the course's own, built on it, with the order of the ranks, `--setup`, and the watch that you will meet below.
#
# Each rank finds its place in environment variables, as it would under PyTorch's launcher `torchrun`:

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
# | `LOCAL_RANK` | my number on my node, from 0: it chooses my GPU |
#
# The same code ran four times, and only these numbers made a difference. That is how nearly all distributed training is written: *one program,
# and each rank does its own part of it.*
#
# **Predict, then run.** First this kernel sets `x`, then each rank does. What does the last of the three cells print? The next cell asks you: choose,
# *Lock*, run on, and read how it was settled. Or run on without an answer. `Start_Here` counts how often you were right, and how surprised.

# %%
predict("00-whose-x",
        "This kernel sets x = 100, each rank its number squared. What does "
        "print(x) print here?",
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
settle("00-whose-x", lambda: str(x))

# %% [markdown]
# <details><summary><b>Why?</b></summary>
#
# 100. Five processes, five variables called `x`. A rank never sees this kernel's variables, and this kernel never sees a rank's.
# Nothing is shared; what one process needs from another must be sent.
# </details>
#
# You can send values between this kernel and the ranks, and run a cell on some ranks only:

# %%
print(cluster.pull("x"))        # from every rank, in rank order
cluster.push({"greeting": "hello"})  # to every rank

# %%
# %%px --ranks 1,3
print(greeting, "from rank", os.environ["RANK"])

# %% [markdown]
# ## The first communication
#
# Ranks talk to each other through a **process group**. In `init_process_group` they find each other: at `MASTER_ADDR` and `MASTER_PORT` there is
# a small store, kept by rank 0 or by the launcher, where each rank leaves its address. Whether a rank waits there until all have come depends on the library: do not count on it. `gloo`
# is the library that carries the messages; it works on every CPU. `nccl` is the one for GPUs; this unit takes `gloo` even where there are some, because
# with it a call waits in the line where it stands, and that is what we want to see.
#
# Remember the word `--setup`; it will become important.

# %% tags=["setup"]
# %%px --setup
import os
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()

# %% [markdown]
# An **all-reduce** combines a tensor over all ranks (it adds, unless told otherwise), and every rank gets the result. It is the heart of data parallel training, where the tensor is
# the gradient.
#
# **Predict, then run.** What does rank 2 print?

# %%
predict("00-all-reduce",
        "All-reduce of [1, rank, 10 * rank] on 4 ranks: what does rank 2 print?",
        ["[1, 2, 20]", "[1, 6, 60]", "[4, 6, 60]", "[4, 8, 80]"])

# %%
# %%px
t = torch.tensor([1, rank, 10 * rank])
dist.all_reduce(t)
print(t.tolist())

# %%
settle("00-all-reduce", lambda: str(cluster.pull("t.tolist()")[2]))

# %% [markdown]
# <details><summary><b>Why?</b></summary>
#
# `[4, 6, 60]`, like every other rank: 1 + 1 + 1 + 1, 0 + 1 + 2 + 3, and ten times that. The sum takes the place of what was in `t`.
# Run the cell's middle line a second time, and you sum the sums.
# </details>
#
# An all-reduce is a **collective**: *every* rank of the group must call it, because every rank has a part of the result. What if one does not?
#
# ## A barrier, missed on purpose
#
# The simplest collective is the **barrier**: it sends no data, it only lets nobody go on before all have come.
#
# **Predict, then run.** Rank 2 does not call it. What do ranks 0, 1 and 3 do, and for how long?

# %%
predict("00-barrier", "Rank 2 does not call the barrier. What do ranks 0, 1 and 3 do?",
        ["they go on", "they raise an error at once", "they wait, and get no error"])

# %% tags=["raises-exception"]
# %%px --patience 3
keepsake = torch.tensor([rank])
if rank != 2:
    dist.barrier()

# %%
import sys

settle("00-barrier", lambda: {"hang": "they wait, and get no error"}.get(
    sys.last_value.kind, "they raise an error at once"))

# %% [markdown]
# <details><summary><b>Why?</b></summary>
#
# They wait. No rank has failed, so nobody gets an error message before the group's time-out (for `gloo` 30 minutes, unless you set another), and until then a
# wait inside the library cannot even be interrupted from Python. In a real job you would see four processes that look alive, and a log that does not grow.
# </details>
#
# Here it ended, because the cluster watches its ranks. When every rank that has not finished waits in a communication call, and has done so for
# the *patience* (10 seconds, or 30 where each rank has a GPU, unless the cell says otherwise), it is a **hang**. Then the cluster asks each rank where it stands. Read the report
# from top to bottom:
#
# * one line per rank: what it does, in which line of the cell;
# * who waits for whom: `0 -> 2` means that rank 0 waits for rank 2;
# * the likely cause;
# * what was done about it. We come to that.
#
# ## The wait-for graph
#
# The picture is this unit's most useful one. Circles are ranks, and **an arrow goes from a rank that waits to the rank it waits for**. To find
# the cause, follow the arrows. If each rank waits for all ranks that its arrows point to, there are only two ways for this to end:
#
# * **at a rank without an outgoing arrow.** It waits for no other rank; it just did not make the call. Ask what *it* did. (Above, this is rank 2.)
# * **never, because the arrows form a circle** (a *cycle*; the hang is a *deadlock*). No rank is missing, and still none of them can be first.
#
# A receive from any rank (units 08 and 09) waits for only *one* of its arrows, so there a circle alone is not a deadlock: a rank outside the circle may
# still send (Holt 1972).
#
# **Predict, then run.** Each rank wants to give its number to the next one. What does the graph look like?

# %%
predict("00-graph",
        "All receive from the one before, then send. What is the wait-for graph?",
        ["a line that ends at one rank", "a circle through all", "two pairs", "no arrows"])

# %% tags=["raises-exception"]
# %%px --patience 3
following, previous = (rank + 1) % world_size, (rank - 1) % world_size
received = torch.zeros(1)
dist.recv(received, src=previous)
dist.send(torch.tensor([float(rank)]), dst=following)

# %%
def shape():
    """Follow the arrows from rank 0, until a rank has none, or was there before."""
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
# Every rank waits to receive first, so nobody ever comes to the line that sends. `send` and `recv` are messages between two ranks, and here
# each waits for the one before it: a circle through all four. No rank is to blame more than another; the *order of the calls* is wrong. You will
# mend it in the lab.
# </details>
#
# ## Healed: what was lost, what came back
#
# After a hang the old ranks are of no use: they sit in a call that cannot be interrupted before its time-out. So the cluster **heals**: it ends all four
# processes and starts four new ones, as `torchrun --max-restarts=3` does when a rank has failed. All four, because `gloo`'s
# process group cannot go on with a part of its members. (NCCL's can: `dist.shrink_group` makes a group of those that are left.)
#
# This kernel was not restarted, and `x` is still 100 here. But the ranks are new processes.
#
# **Predict, then run.** Before the first hang one cell set `rank` and `world_size` on the ranks, and another one `keepsake`. Without looking back at the
# reports: which are still there?

# %%
predict("00-healed", "After the healing, which of these are still there on the ranks?",
        ["rank, world_size, keepsake", "rank, world_size", "keepsake", "none of them"])

# %%
# %%px
print([name for name in ("rank", "world_size", "keepsake") if name in globals()],
      dist.is_initialized())

# %%
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
# All variables of the ranks were lost with their processes. Then the cluster ran the cells marked `--setup` again, in their order: they brought
# back the imports, the process group, `rank` and `world_size`. Nobody brought back `keepsake`.
# </details>
#
# So: **put `--setup` on cells that prepare** (imports, the process group, functions), not on cells that work. What a job must not lose,
# it keeps outside its ranks: in this kernel, or in a file. Such a copy is called a *checkpoint*. `cluster.heal()` heals by hand.
#
# ## An exception on one rank
#
# A rank can also fail loudly, while the others wait for it. Then patience is not needed: the exception comes first, and then who waited for
# that rank. (It is the same when a rank dies, because its memory was full or its machine failed.)

# %% tags=["raises-exception"]
# %%px
batches = [3, 0, 4, 2]
mean = 12 / batches[rank]
dist.barrier()

# %% [markdown]
# Without the watch, you would have seen three ranks that wait, and might have looked for the mistake there.
#
# **A rank that only works is not part of a hang**, however long it takes. Rank 3 is late here, and the patience of one second is over long
# before it comes:

# %%
# %%px --patience 1
if rank == 3:
    time.sleep(2)  # a long computation
dist.barrier()
print("through")

# %% [markdown]
# ## The stop button
#
# A rank in an endless loop works, too. So it is not a hang, and it is up to you: press the **stop button** (■, above the notebook). It stops the
# cell on all ranks, and shows where each of them was. Where a rank cannot be stopped otherwise, the cluster is healed. Try it now, and then you
# are safe: add a cell below with these lines, run it, and press ■.
#
# ```python
# %%px
# while rank == 1:
#     pass
# dist.barrier()
# ```
#
# If you do nothing, the cell ends after two minutes (`--limit` sets another time).

# %% [markdown]
# ## Outside this course
#
# A job on a cluster is usually started by `torchrun`. When a rank fails, it ends the others and prints a report, in which each of them is a failure, too. Therefore read its last part first, *Root Cause (first observed failure)*.
# `--log-dir` keeps what each rank prints in a separate file, `--tee 3` shows it on the screen as well, and the decorator `record` puts the traceback of the failed rank into the report. Here is the exception from above once more.

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
# The most common hang right at the start of a job on several nodes has a different cause. A node has several network interfaces, and the library has chosen one over which the other nodes cannot be reached. Name the right one, for
# example `eth0`, in the table's last row.
#
# If a job hangs later, nothing watches the ranks as this course does. PyTorch and other tools give you the following:
#
# | tool | what it says | with |
# |---|---|---|
# | `py-spy dump --pid ...` | the line that a running process is in. The program needs no preparation, but you may need root, or `--cap-add SYS_PTRACE` in a container | both |
# | `init_process_group(timeout=...)` | a stuck call raises after it. With `gloo` the process goes on, but later calls of the same group fail, so make a new group. With NCCL the process is ended | both |
# | `dist.monitored_barrier(timeout=...)` | on rank 0: which rank did not come | gloo only |
# | `TORCH_DISTRIBUTED_DEBUG=DETAIL` | before each collective, whether all ranks make the same one with the same shapes; slow | both |
# | flight recorder | each rank's last collectives, with their lines. A time-out writes them to the files that `TORCH_FR_DUMP_TEMP_FILE` names, `torchfrtrace` compares these | NCCL (`gloo` records, and writes no file) |
# | `NCCL_DEBUG=INFO` | what NCCL has found and chosen, its network interface included, and its errors | NCCL |
# | `NCCL_SOCKET_IFNAME=eth0`, `GLOO_SOCKET_IFNAME=eth0` | nothing, but chooses the interface: `ip addr` lists them | each its own |

# %% [markdown]
# > **On GPUs.** NCCL's calls return when they are *queued*, so a hang shows in a later line: the one that needs the result (`print`, `.item()`).
# > A watchdog ends the process after 10 minutes, if you set no other time. Nothing is connected in `init_process_group`, but in the first
# > collective (unless you give `device_id=`). Tags and a receive from anybody do not exist, and opposite messages belong into one `batch_isend_irecv`.

# %% [markdown]
# ## What you can do now
#
# 1. *Rank, node, world:* a process, a machine with some of them, all of them. `RANK`, `GROUP_RANK`, `WORLD_SIZE`, and `LOCAL_RANK` on the node.
# 2. *Who runs a cell:* this kernel, or with `%%px` all ranks, or with `%%px --ranks 1,3` some. Nothing is shared between them.
# 3. *Communicate:* `init_process_group`, then `all_reduce`, `barrier`, `send`, `recv`. Every rank of the group must call a collective.
# 4. *Read a wait-for graph:* follow the arrows, to a rank that waits for nobody, or round a circle.
# 5. *Go on:* all ranks are new, their variables are lost, cells marked `--setup` are run again, this kernel keeps everything.
#
# **Go on** with the lab `work/00_preflight`, then unit 01 (data parallelism by hand) or 02 (MirroredStrategy). Collectives are built in unit 04.
#
# **References.** E. G. Coffman, M. Elphick and A. Shoshani 1971, *System Deadlocks*,
# [doi:10.1145/356586.356588](https://doi.org/10.1145/356586.356588) · R. C. Holt 1972, *Some Deadlock Properties of Computer Systems*,
# [doi:10.1145/356603.356607](https://doi.org/10.1145/356603.356607) · T. Hilbrich et al. 2012, *MPI Runtime
# Error Detection with MUST*, [doi:10.1109/SC.2012.79](https://doi.org/10.1109/SC.2012.79) · S. Li et al. 2020, *PyTorch
# Distributed: Experiences on Accelerating Data Parallel Training*, [arXiv:2006.15704](https://arxiv.org/abs/2006.15704) · PyTorch,
# [Distributed communication package](https://docs.pytorch.org/docs/stable/distributed.html)

# %%
cluster.stop()
