# %% [markdown] unit={"minutes": 55, "ranks": 4, "framework": "torch", "title": "Elastic training and checkpoints"}
# # 18 Elastic training and checkpoints
#
# In a large cluster, some machine fails every few hours. A training run must survive such failures and end as if nothing had happened. At the end, you can
#
# * write a checkpoint that is either whole or absent, no matter which process is killed and when.
# * name everything that is state, and show what one forgotten part costs.
# * continue with fewer or more ranks from the same checkpoint.
# * use `torch.distributed.checkpoint` and `torchrun --max-restarts`, and explain what Horovod, torchft, Keras and Slurm offer.
# * turn a sharded checkpoint into one file, and one file into shards.
# * find a rank that is alive but computes wrong results or is too slow.
# * compute how often a training run should save.
#
# **Before:** you can implement data parallelism by hand (unit 01), and you know DDP (unit 06). **Minutes:** 55 · **Ranks:** 4, some of which will die.

# %% [markdown]
# ## Four ranks
#
# This kernel starts the ranks, and cells that begin with `%%px` run on all four of them. The option `--setup` marks the cells that run again when the cluster
# is healed. On every machine, this notebook computes on the CPU with gloo, because all that matters is which files are on the disk and which processes are
# alive.

# %% tags=["setup"]
import os
import tempfile
from pathlib import Path

import torch

from manyhands import Cluster, predict, settle
from manyhands.elastic.mortal import in_process

home = tempfile.TemporaryDirectory()
os.environ["CHECKPOINTS"] = home.name  # all ranks see it, including those started later
cluster = Cluster(nodes=1, ranks_per_node=4, framework="torch")
torch.set_num_threads(1)

# %% tags=["setup"]
# %%px --setup
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

from manyhands.elastic.job import endless, images
from manyhands.elastic.mortal import kill_me

if not dist.is_initialized():  # so that this cell can be run twice
    dist.init_process_group("gloo")
rank, home = dist.get_rank(), Path(os.environ["CHECKPOINTS"])
torch.set_num_threads(1)

# %% [markdown]
# ## Failures are the rule
#
# Llama 3 was trained on 16,384 GPUs. In 54 days, 419 failures stopped the job without warning (Grattafiori et al. 2024, section 3.3.4). On average, each GPU
# therefore stopped the job once every 5.8 years.
#
# **Predict.** How often did the whole job stop?

# %%
# Run this cell to make your prediction.
predict("18-often",
        "A GPU fails once in 5.8 years. How often does a job on 16,384 of them stop?",
        ["every 3 minutes", "every 3 hours", "every 3 days", "every 3 weeks"])

# %%
days, gpus, failures = 54, 16_384, 419
mtbf_s = days * 24 * 3600 / failures
print(f"one GPU: once in {days * gpus / failures / 365:.1f} years; "
      f"the job: once in {mtbf_s / 3600:.1f} hours")

# %%
# Run this cell to compare your prediction with the outcome.
settle("18-often", lambda: min(
    {"every 3 minutes": 180, "every 3 hours": 10_800, "every 3 days": 259_200,
     "every 3 weeks": 1_814_400}.items(), key=lambda item: abs(item[1] - mtbf_s))[0])

# %% [markdown]
# If one failure stops the whole job, the job's mean time between failures (**MTBF**) is the MTBF of one rank divided by the number of ranks.
#
# ## A file that is whole or not there
#
# `in_process` calls a function in a separate process. With `file_bytes=3000, dies=True`, the operating system kills that process as soon as one of its files
# would grow beyond 3000 bytes (signal SIGXFSZ). We begin with the obvious way, in which the new checkpoint is written over the old one.
#
# **Predict.** The process is killed while it writes. Which state can be loaded afterwards?

# %%
# Run this cell to make your prediction.
predict("18-over", "What can be loaded after a kill while the old file is overwritten?",
        ["the new state", "the old state", "neither"])

# %%
def write_over(state, path):
    torch.save(state, path)

def try_to_load(path):
    try:
        return torch.load(path, weights_only=True)["name"]
    except RuntimeError:
        return "neither"

def named(name):
    return {"name": f"the {name} state", "weights": torch.ones(1000)}

path = Path(home.name, "over.pt")
write_over(named("old"), path)
killed = in_process(write_over, named("new"), path, file_bytes=3000, dies=True)
print(f"killed by {killed.killed_by}; loaded: {try_to_load(path)}")

# %%
# Run this cell to compare your prediction with the outcome.
settle("18-over", lambda: try_to_load(path))

# %% [markdown]
# The old file is emptied when it is opened for writing. Databases have long used a remedy: write the new file **next to** the old one, and then **rename** it.
# `os.replace` puts the new file in the place of the old one in a single step, which happens either completely or not at all. However, a rename does not wait
# for the disk. After a power cut, the new name may belong to a file whose bytes were never written. For this reason, the file is synced (`fsync`) before the
# rename, and the folder, which stores the name, is synced after it.

# %%
def write_beside(state, path):
    part = path.with_suffix(".part")
    with open(part, "wb") as file:
        torch.save(state, file)
        file.flush()                # from Python to the system
        os.fsync(file.fileno())     # from the system to the disk
    os.replace(part, path)
    # the lab adds the fsync of the folder

write_beside(named("old"), path)
killed = in_process(write_beside, named("new"), path, file_bytes=3000, dies=True)
print(f"killed by {killed.killed_by}; loaded: {try_to_load(path)}")

# %% [markdown]
# A file may still be damaged in a different way, for example by a bad disk or an interrupted copy. Therefore, keep **at least two** checkpoints in
# separate files, and skip those that cannot be read. The lab's check truncates files, fills the disk, and kills your `save` between write and rename.
#
# <details><summary>On a file system that many nodes share</summary>
#
# On NFS and Lustre, a rename within one folder is atomic on the server, and `fsync` waits for the server. However, another node may still see an older listing
# of the folder for some seconds, so let **one** rank look for the newest checkpoint and send its name to the others. Most object stores (S3) have no rename. A
# single object in such a store is always whole or absent. If a checkpoint consists of many objects, finally write a small object that names the newest whole
# checkpoint.
# </details>
#
# ## Everything that is state
#
# We train two layers on the 240 digits of `images()`, with dropout and momentum, in steps of 32 rows. Three things make the result independent of the number of
# ranks:
#
# * **Rows** come from one endless order, in which each epoch is a new permutation that depends only on the seed and the epoch. A step takes the next 32 rows,
#   `endless(start, 32, 240)`, and each rank takes every `world`-th of these rows.
# * **Dropout** masks are drawn by each rank for all 32 rows, although a rank uses only its own part of them.
# * **Gradients** are summed over the ranks, and each rank divides the sum of its losses by 32.

# %% tags=["setup"]
# %%px --setup
BATCH, STEPS, PER_EPOCH = 32, 60, 240

class Training:
    def __init__(self, seed=0):
        torch.manual_seed(seed)
        self.net = nn.ModuleList([nn.Linear(64, 24), nn.Linear(24, 10)]).double()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.2, momentum=0.9)
        self.step = 0

    def loss(self, world):
        """Return the sum over this rank's rows, divided by the batch's number of rows."""
        mine, (x, y) = slice(rank, None, world), images()
        rows = endless(self.step * BATCH, BATCH, PER_EPOCH)[mine]
        keep = (torch.rand(BATCH, 24) > 0.2)[mine] / 0.8
        hidden = torch.tanh(self.net[0](x[rows])) * keep
        return cross_entropy(self.net[1](hidden), y[rows], reduction="sum") / BATCH

# %% tags=["setup"]
# %%px --setup
def train_step(training, world=4, group=None):
    """Take one step on all ranks of the group; return the loss of the whole batch."""
    loss = training.loss(world)
    training.optimizer.zero_grad()
    loss.backward()
    for weight in training.net.parameters():
        dist.all_reduce(weight.grad, group=group)
    training.optimizer.step()
    training.step += 1
    total = loss.detach()
    dist.all_reduce(total, group=group)
    return total.item()

# %% [markdown]
# A checkpoint of this training run needs four parts, namely the weights, the momentum, dropout's random generator, and the position (the number of steps taken).
# We store all four after 30 steps and begin a new run with a different seed. In this run, we restore all parts, or all but one, and continue training to step
# 60.
#
# **Predict.** Which part can you leave out if the weights must still be the same to the last bit?

# %%
# Run this cell to make your prediction.
predict("18-part", "Which part can be left out so that the weights stay equal to the bit?",
        ["the momentum", "the generator of dropout", "the position", "none of them"])

# %% tags=["setup"]
# %%px --setup
from copy import deepcopy

def state_of(training):
    return deepcopy({"weights": training.net.state_dict(), "step": training.step,
                     "momentum": training.optimizer.state_dict(),
                     "generator": torch.get_rng_state()})

def restore(training, state, without=()):
    state = deepcopy(state)  # the optimizer keeps the tensors that it is given
    if "weights" not in without:
        training.net.load_state_dict(state["weights"])
    if "momentum" not in without:
        training.optimizer.load_state_dict(state["momentum"])
    if "generator" not in without:
        torch.set_rng_state(state["generator"])
    if "step" not in without:
        training.step = state["step"]

# %%
# %%px
right = Training()
undisturbed = [train_step(right) for _ in range(STEPS)]
first = Training()
for _ in range(30):
    train_step(first)
state, apart = state_of(first), {}
for left_out in ("nothing", "weights", "momentum", "generator", "step"):
    again = Training(seed=1)
    restore(again, state, without=left_out)
    for _ in range(30):
        train_step(again)
    apart[left_out] = max((mine - one).abs().max().item() for mine, one
                          in zip(again.net.parameters(), right.net.parameters()))
    if rank == 0:
        print(f"without {left_out:<10} weights are {apart[left_out]:.1g} apart")

# %%
# Run this cell to compare your prediction with the outcome.
NAMES = {"momentum": "the momentum", "generator": "the generator of dropout",
         "step": "the position"}

def may_be_left_out():
    apart = cluster.pull("apart")[0]
    return next((NAMES[part] for part in NAMES if apart[part] == 0), "none of them")

settle("18-part", may_be_left_out)

# %% [markdown]
# <details><summary>Does it matter, then?</summary>
#
# A missing part is dangerous because the loss still falls and you see no error. Without the position, some rows are used twice and others never. Without the
# optimiser's state, the momentum begins at zero, or Adam's step counter does, so its bias correction starts again. Moreover, if you cannot repeat a run to the
# bit, you cannot tell a mistake from chance.
#
# A larger job has more state than this one: the learning-rate schedule, the scaler of mixed precision, batch norm's averages (in the model's `state_dict`), the
# generators of NumPy and of Python, a generator on each GPU, the generator of the data loader, an average of the weights, and the best values so far. Add a
# version number, because the code that reads a checkpoint must know the checkpoint's format.
# </details>
#
# <details><summary>Why is `deepcopy` used twice?</summary>
#
# `state_dict()` returns the *live* tensors, so without the first copy, "the state after step 30" would change with each further step. The optimiser's
# `load_state_dict` keeps the tensors that it is given, so without the second copy, the first restored run would change the state that the next run gets.
# </details>
#
# ## Killed, twice
#
# Now we write to the disk and kill real processes. Rank 0 saves after every 10 steps, and every rank loads the checkpoint itself. If only rank 0 loaded it, the
# others would continue with different momenta. If `world` is smaller than 4, the last ranks are idle, as if their machine had been lost.

# %% tags=["setup"]
# %%px --setup
groups = {world: dist.new_group(range(world)) for world in (2, 3, 4)}

def save(training):
    part = home / "part"
    with open(part, "wb") as file:
        torch.save(state_of(training), file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, home / f"step-{training.step:012}.pt")

def newest():
    """Return a run in the state of the newest checkpoint, or a new run if there is none."""
    training, found = Training(seed=1), sorted(home.glob("step-*.pt"))
    if not found:
        return Training()
    restore(training, torch.load(found[-1], weights_only=True))
    return training

# %% tags=["setup"]
# %%px --setup
def live(name, world=4, dies=None):
    """Train to the end on `world` ranks; `dies` is the (rank, step) of a death."""
    if rank >= world:
        return
    training = newest()
    with open(home / f"{name}.txt", "a") as log:
        while training.step < STEPS:
            if dies == (rank, training.step):
                kill_me()
            step, loss = training.step, train_step(training, world, groups[world])
            if rank == 0:
                print(step, loss, file=log, flush=True)
                if training.step % 10 == 0:
                    save(training)
            dist.barrier(groups[world])  # no rank gets ahead of the checkpoint
    return training

# %% [markdown]
# **Predict.** Rank 3 is killed after 27 steps, and later rank 1 is killed after 44 steps in all. The run saves after every 10 steps. How many steps are
# computed twice?

# %%
# Run this cell to make your prediction.
predict("18-twice",
        "How many steps run twice (saved every 10, killed after 27 and 44)?",
        unit="steps")

# %% tags=["raises-exception", "measured"]
# %%px
live("first", dies=(3, 27))

# %% [markdown]
# Rank 3 is dead, and the others cannot continue, because gloo's process group cannot lose a member (unit 00 describes what NCCL does). Which ranks raised an
# error and which were still waiting differs from run to run. The cluster has been healed, just as torchrun would have started the ranks again. However, we
# pretend that the machine of two ranks is lost, and we continue with the other two.

# %% tags=["raises-exception", "measured"]
# %%px
live("second", world=2, dies=(1, 44))

# %% [markdown]
# In its third life, the training run has three ranks.

# %%
# %%px
training = live("third", world=3)

# %%
# %%px
right = Training()
undisturbed = [train_step(right) for _ in range(STEPS)]
same = rank > 2 or all(torch.allclose(mine, one, rtol=0, atol=1e-12) for mine, one in
                       zip(training.net.parameters(), right.net.parameters()))

# %%
from manyhands.plots.survival_curve import survived

def life(name, world):
    log = Path(home.name, f"{name}.txt").read_text()
    lines = [line.split() for line in log.splitlines()]
    return world, int(lines[0][0]), [float(loss) for _, loss in lines]

lives = [life("first", 4), life("second", 2), life("third", 3)]
for world, start, losses in lives:
    print(f"{world} ranks: steps {start} to {start + len(losses) - 1}, "
          f"loss {losses[0]:.4f} to {losses[-1]:.4f}")
twice = sum(len(losses) for *_, losses in lives) - 60
print(f"steps done twice: {twice}; weights as without a kill, to 1e-12:",
      all(cluster.pull("same")))
survived(cluster.pull("undisturbed")[0], lives, ranks=4)

# %%
# Run this cell to compare your prediction with the outcome.
settle("18-twice", lambda: twice)

# %% [markdown]
# <details><summary>How to read it</summary>
#
# The thin curves coincide with the thick one everywhere, with four, two and three ranks. The shaded steps, from the last checkpoint to the kill, were computed
# twice. With the same number of ranks, every *bit* is the same. With a different number, the summands are added in a different order, and rounding leaves a
# difference of up to 1e-12.
# </details>
#
# **A batch that grows.** Here, the batch has 32 rows for any number of ranks, so only the speed changes. Alternatively, each rank keeps its 8 rows, and the
# batch grows when nodes join. The learning rate must then be the **base** rate times the number of ranks (unit 17). If you multiply the rate from the
# checkpoint instead, you multiply it again at each restart. Also, count rows rather than steps, because 20 steps on four ranks use more rows than 20 steps on
# two.

# %% [markdown]
# > **On GPUs.** The state of each rank has one more part, because each GPU has its own generator (`torch.cuda.get_rng_state`), from which dropout draws. Results are identical to the bit only
# > with deterministic kernels (`torch.use_deterministic_algorithms`). Set `map_location` to the rank's own GPU or to the CPU. Without it, all ranks load into the GPU of the rank that saved.
# > If a rank dies, gloo raises an error on the others, but a rank that waits in an NCCL call may not notice. Under torchrun with the rendezvous `c10d`, the agent of the dead rank's node starts a new rendezvous, and the other agents notice this at their next check and end their workers. Without such agents, or if a rank
# > *hangs* and does not die, the watchdog ends the waiting ranks after the group's `timeout` (10 minutes by default).

# %% [markdown]
# ## Commit and rollback
#
# Restarting a large job takes minutes. **Elastic** frameworks therefore keep the surviving processes alive and the state in memory. Horovod
# introduced this pattern, which has two calls (commit and rollback) and two events:
#
# * `commit` makes a copy of the state in memory (and looks for new hosts).
# * If a rank is **lost** during a step, the memory holds the result of half a step. The other ranks roll back to the last commit, form a new group, and
#   continue.
# * If ranks **join** between two steps, all ranks form a new group, in which the new ranks receive the state. Nothing is rolled back.
#
# In the lab, you write a loop with commits and rollbacks. Such a loop needs a **rendezvous**, which decides which ranks take part. Each rendezvous has a number,
# its *generation*, and a rank that holds an old number no longer belongs to the group. In the small version below, with a store that all nodes can reach,
# threads of this kernel represent the nodes a, b, c and d:

# %%
from datetime import timedelta
from threading import Thread

from torch.distributed import TCPStore

server = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)

def join(node, generation, expected, places):
    """Take a place in this meeting and wait until all `expected` nodes have one."""
    store = TCPStore("127.0.0.1", server.port, timeout=timedelta(seconds=30))
    place = store.add(f"{generation}/count", 1) - 1      # atomic, so no two are equal
    store.set(f"{generation}/{place}", node)
    store.wait([f"{generation}/{other}" for other in range(expected)])
    places.append([store.get(f"{generation}/{i}").decode() for i in range(expected)])

def meet(generation, nodes):
    places = []
    all_of_them = [Thread(target=join, args=(node, generation, len(nodes), places))
                   for node in nodes]
    for thread in all_of_them:
        thread.start()
    for thread in all_of_them:
        thread.join()
    return places

for generation, nodes in enumerate((["a", "b", "c"], ["a", "c"], ["a", "c", "d"])):
    places = meet(generation, nodes)
    agreed = all(order == places[0] for order in places)
    print(f"generation {generation}: {sorted(places[0])}, all agree on the ranks: {agreed}")

# %% [markdown]
# The difficult question is how many nodes are `expected`. torchrun (`--nnodes 1:2`) waits until the smallest permitted number has arrived, waits a little
# longer (`last_call_timeout`), and then closes the meeting. A node that arrives later waits. The other nodes notice the newcomer at their next check and stop,
# and then all nodes meet again. A node's place in the meeting is its **rank**. Since ranks are assigned anew at each meeting, nothing may be stored under a
# rank's number.
#
# ## A checkpoint in pieces
#
# With sharded states (unit 16), no rank has the whole state, and no rank should. `torch.distributed.checkpoint` (DCP) lets each rank write its pieces, together
# with a table that records where each piece is. When loading, a rank specifies what it needs and reads only these parts. For this reason, four ranks can write
# what two or three ranks read. Here, we use FSDP2, whose shards are rows, so four ranks hold 9, 9, 9 and 6 of 33 rows.

# %% tags=["setup"]
# %%px --setup
import warnings

import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

warnings.filterwarnings("ignore", module="torch")
# all ranks create them, including the idle ones
meshes = {world: DeviceMesh("cpu", range(world)) for world in (2, 3, 4)}

class Sharded:
    """Shards a network over the first ranks; DCP calls state_dict and load_state_dict."""
    def __init__(self, world, seed):
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Linear(7, 33), nn.Tanh(), nn.Linear(33, 5)).double()
        self.net = fully_shard(net, mesh=meshes[world])
        self.optimizer = torch.optim.Adam(net.parameters(), 1e-2)

    def state_dict(self):
        return dict(zip(("net", "optimizer"), get_state_dict(self.net, self.optimizer)))

    def load_state_dict(self, state):
        set_state_dict(self.net, self.optimizer, model_state_dict=state["net"],
                       optim_state_dict=state["optimizer"])

# %% tags=["setup"]
# %%px --setup
def sharded_steps(sharded, steps):
    x = torch.ones(8, 7, dtype=torch.float64)
    for _ in range(steps):
        sharded.optimizer.zero_grad()
        sharded.net(x).square().mean().backward()
        sharded.optimizer.step()

def sums(sharded):
    return [round(weight.full_tensor().sum().item(), 12)
            for weight in sharded.net.parameters()]

# %%
# %%px
sharded = Sharded(world=4, seed=0)
sharded_steps(sharded, 3)
dcp.save({"app": sharded}, checkpoint_id=home / "pieces")
sharded_steps(sharded, 3)
wanted = sums(sharded)
if rank == 0:
    print(sorted(path.name for path in (home / "pieces").iterdir()))
    table = dcp.FileSystemReader(home / "pieces").read_metadata().state_dict_metadata
    print([tuple(chunk.sizes) for chunk in table["app.net.0.weight"].chunks])

# %% [markdown]
# **Predict.** Three ranks read the checkpoint that four ranks wrote. Rank 1 needs rows 11 to 21 of the first weight. How many of the four files contain some of
# these rows?

# %%
# Run this cell to make your prediction.
predict("18-files",
        "How many files hold rows 11 to 21 of 33, in pieces of 9, 9, 9 and 6 rows?",
        ["1 file", "2 files", "4 files"])

# %%
# %%px
for world in (2, 3):
    group = groups[world]
    if rank < world:
        fewer = Sharded(world, seed=5)  # begins with different weights
        dcp.load({"app": fewer}, checkpoint_id=home / "pieces", process_group=group)
        sharded_steps(fewer, 3)
        same = all(abs(a - b) < 1e-12 for a, b in zip(sums(fewer), wanted))
        rows = fewer.net[0].weight.to_local().shape[0]
        print(f"{world} ranks: {rows} rows here; 3 steps on, as with 4 ranks: {same}")

# %%
# Run this cell to compare your prediction with the outcome.
from torch.distributed.checkpoint import FileSystemReader

def files_with(first, last):
    """Count the files that contain rows `first` to `last` of the first weight."""
    table = FileSystemReader(Path(home.name, "pieces")).read_metadata().storage_data
    starts = {where.relative_path: piece.offset[0] for piece, where in table.items()
              if piece.fqn == "app.net.0.weight"}
    return sum(start <= last and first < start + 9 for start in starts.values())

settle("18-files", lambda: f"{files_with(11, 21)} files")

# %% [markdown]
# Rows 11 to 21 are in the pieces of ranks 1 (rows 9 to 17) and 2 (rows 18 to 26). What is not split (Adam's step counters and the learning rate) is written
# once, by one of the ranks, and is read by all of them, so rank 1 opens a third file, too. In the lab, you compute such overlaps for flat shards.
#
# **In the background.** `dcp.async_save` copies the state, returns, and writes the copy in a thread while training continues. This thread performs its own
# collectives. On the default group, these can mix with the collectives of your step, and then both threads hang. To avoid this, pass **a separate group** that
# uses gloo, since a group that has only NCCL is rejected.

# %%
# %%px
alone = dist.new_group(backend="gloo")
saving = dcp.async_save({"app": sharded}, checkpoint_id=home / "later", process_group=alone)
for weight in sharded.net.parameters():
    weight.detach().to_local().zero_()     # training continues and changes the weights
saving.result()                # call it before the next save: it raises errors
copy = Sharded(world=4, seed=5)
dcp.load({"app": copy}, checkpoint_id=home / "later")
same = sums(copy) == wanted
if rank == 0:
    print("what was saved is the state at the time of the call:", same)

# %% [markdown]
# ## One file, and back
#
# A sharded checkpoint is made for the next training run, whereas people who only use the network want one file. `dcp_to_torch_save` joins the pieces. Since it
# needs no ranks, it can run on any machine that has enough memory for the whole state, for example as the command
# `python -m torch.distributed.checkpoint.format_utils dcp_to_torch FOLDER FILE`. The next cell runs in this kernel:

# %%
from torch import nn
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp

pieces, whole, again = (Path(home.name, name) for name in ("pieces", "whole.pt", "again"))
dcp_to_torch_save(pieces, whole)
state = torch.load(whole, weights_only=True)["app"]
alone = nn.Sequential(nn.Linear(7, 33), nn.Tanh(), nn.Linear(33, 5)).double()
print({name: tuple(weight.shape) for name, weight in state["net"].items()})
print(alone.load_state_dict(state["net"]))
torch_save_to_dcp(whole, again)
print(sorted(path.name for path in again.iterdir()))

# %% [markdown]
# The way back is `torch_save_to_dcp`, which writes a folder that any number of ranks can load. It unpickles the file without `weights_only`, so use it only on
# files that you trust. If you do without such a folder, only rank 0 reads the file, and the other ranks pass an empty dictionary. With
# `broadcast_from_rank0`, rank 0 sends whole tensors to all ranks, one after the other, and each rank keeps its shard of each tensor. The broadcast uses the
# default group, so all ranks of the job have to take part.
#
# The end of the next cell collects the whole state during a run. Again, all ranks take part. Because of `cpu_offload=True`, only rank 0 receives the
# whole state, and it does so in the host's memory. Without this option, every rank would receive the whole state on its device.

# %%
# %%px
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions, get_model_state_dict, set_model_state_dict)

if rank < 3:
    back = Sharded(3, seed=5)
    dcp.load({"app": back}, checkpoint_id=home / "again", process_group=groups[3])
    sharded_steps(back, 3)
    print("a folder, 3 ranks: 3 steps on, as without the detour:",
          all(abs(a - b) < 1e-12 for a, b in zip(sums(back), wanted)))

given = Sharded(4, seed=6)
file = torch.load(home / "whole.pt", weights_only=True) if rank == 0 else None
options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
set_model_state_dict(given.net, file["app"]["net"] if file else {}, options=options)
options = StateDictOptions(full_state_dict=True, cpu_offload=True)
full = get_model_state_dict(given.net, options=options)
print(f"one file, 4 ranks: {given.net[0].weight.to_local().shape[0]} rows here;",
      f"tensors of the whole: {len(full)}")
if rank == 0:  # read it again, because `file` now holds shards
    file = torch.load(home / "whole.pt", weights_only=True)["app"]["net"]
    print("the whole is the file:", all(full[name].equal(file[name]) for name in full))

# %% [markdown]
# `get_model_state_dict` with `full_state_dict=True` is a collective call. A common mistake is to call it inside `if rank == 0:`. Rank 0 then waits for the
# other ranks, and the script hangs. Other programs often expect safetensors, which DCP writes with its `HuggingFaceStorageWriter` if the package safetensors is
# installed ([documentation](https://docs.pytorch.org/docs/stable/distributed.checkpoint.html); not run here).
#
# ## torchrun starts it again
#
# Outside a notebook, each node runs one **agent** of torchrun, which watches its workers. If one of them dies, the agent ends the others and starts all of them
# again, up to `--max-restarts` times. The agent keeps no state, so your script must find its checkpoint. [scripts/18_train.py](scripts/18_train.py) contains
# the training run above, with a checkpoint every 5 steps. The script's last rank kills itself before step 12.
#
# **Predict.** The second life begins at step 10. How do the final weights compare with the weights of a run that was not killed?

# %%
# Run this cell to make your prediction.
predict("18-torchrun",
        "How are the weights after a kill before step 12 of 30, saved every 5?",
        ["the same, to the bit", "the same, to 1e-12", "not the same"])

# %%
import re

from manyhands.cluster.launch.guarded import guarded

TORCHRUN = ("python", "-m", "torch.distributed.run", "--standalone",
            "--nproc-per-node", "2", "--max-restarts", "3", "scripts/18_train.py")

def run(*options):
    with tempfile.TemporaryDirectory() as folder:
        text = guarded(*TORCHRUN, folder, *options,
                       env={"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"})
    told = [line for line in text.splitlines() if re.match("started|done|not", line)]
    print("\n".join(line.split(", digest")[0] for line in told))
    return re.findall("digest (.*)", text)  # a digest of all bits of the weights

calm, killed = run(), run("--dies-at", "12")

# %%
# Run this cell to compare your prediction with the outcome.
settle("18-torchrun", lambda: "the same, to the bit" if calm == killed and calm
       else "not the same")

# %% [markdown]
# `TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1` is needed with gloo (as we have seen in PyTorch 2.13 and 2.15). Without it, the agent's store still holds the dead
# ranks' addresses, and the new ranks try to reach them (pytorch issue 135712).
#
# <details><summary>Several nodes, and nodes that come and go</summary>
#
# Run `torchrun --nnodes 1:2 --rdzv-backend c10d --rdzv-endpoint HOST:PORT --max-restarts 3 train.py` on each node. If a node is lost, the others meet again
# without it. If a node joins, the others stop and meet again together with it (not run in this notebook). Three facts are important:
#
# * The host of the endpoint holds the store, so the job ends if this host dies.
# * Workers run in separate sessions. If you kill only an agent, its workers survive, train on, and write checkpoints.
# * Nodes that join do not use up `--max-restarts`. Losing a node uses up one restart if workers on the other nodes fail because of it.
# </details>
#
# <details><summary>Horovod elastic</summary>
#
#     @hvd.elastic.run
#     def train(state):
#         while state.step < STEPS:
#             step(); state.step += 1
#             if state.step % 10 == 0:
#                 state.commit()
#
#     state = hvd.elastic.TorchState(model=model, optimizer=optimizer, step=0)
#     train(state)
#
# The command is `horovodrun -np 2 --min-np 1 --max-np 4 --host-discovery-script ./hosts.sh python train.py`. The host discovery script prints a line
# `host:slots` for each host that is available at that moment. The surviving processes continue, since Horovod calls `train` again with the state of the last
# commit. `commit` also looks for new hosts, so nothing is rolled back when hosts join. (`state.check_host_updates()` looks for new hosts between two commits.
# In Horovod 0.28.1, if it finds a new host, plain numbers such as `step` go back to the last commit, whereas weights do not.) `TorchState` does not contain the
# whole state, so you have to handle the generators and the loader yourself (`ElasticSampler` handles the rows). A host on which a worker died is not used again
# (with `--blacklist-cooldown-range`, it is not used for some time), so on a single machine the job ends at the first death (Horovod 0.28.1: "blacklisted slots
# count"). This notebook does not run Horovod.
# </details>
#
# <details><summary>Today: torchft, and spare nodes</summary>
#
#     from torchft import DistributedDataParallel, Manager, Optimizer, ProcessGroupGloo
#
#     manager = Manager(pg=ProcessGroupGloo(), min_replica_size=1, replica_id="a",
#                       state_dict=get_state, load_state_dict=set_state)
#     model = DistributedDataParallel(manager, model)
#     optimizer = Optimizer(manager, optimizer)
#     while manager.current_step() < STEPS:
#         optimizer.zero_grad()                 # which replicas take part in this step?
#         loss(model, rows(manager)).backward()
#         optimizer.step()                      # only if no replica has failed in it
#
# Horovod's last release dates from 2023. [torchft](https://github.com/meta-pytorch/torchft) brings the same idea to PyTorch and applies it *at every step*. Its
# coordinator, the *lighthouse*, uses heartbeats to learn which replicas are healthy. If a replica fails, the others continue without it from the next step on.
# When it comes back, it copies the state from a healthy replica. This works for DDP, for HSDP (where a replica is a whole group of shards, unit 16), for local
# SGD and for DiLoCo. It is built from the commit, rollback and regrouping described above.
#
# We ran a script with these calls, with torchft 0.2.0 and gloo, as three processes on one machine. One replica was killed after 8 steps. The other two took the
# next step without it, and neither of them was restarted. A replica that started late copied another one's state and had the same weights from then on. torchft
# is not among this course's packages, because its lighthouse is a compiled program for Linux, so this notebook does not run it. NVIDIA's
# [Resiliency Extension](https://nvidia.github.io/nvidia-resiliency-ext/) restarts a job with spare nodes that are already waiting, or inside the surviving
# processes, and looks for slow ranks. It has not been run for this course.
# </details>
#
# <details><summary>Keras: BackupAndRestore, and what it forgets</summary>
#
# `keras.callbacks.BackupAndRestore(folder)` saves the weights, the optimiser and the epoch after each epoch (or every `save_freq` steps), and `fit` continues
# from there. Unit 07 kills a chief that uses this callback. The backup does not contain the seeds of shuffling and of dropout, so the training run continues
# but does not reach the same weights. If you need the same weights, shuffle with a seed that depends on the epoch.
# </details>
#
# <details><summary>The loader's position: StatefulDataLoader</summary>
#
# An order that is a function of the position, as here, has no state except the position. A `DataLoader` with `shuffle=True` and workers that read ahead has
# more state. The `StatefulDataLoader` of `torchdata` saves and restores this state with `state_dict()` and `load_state_dict()`
# ([documentation](https://meta-pytorch.org/data/main/torchdata.stateful_dataloader.html)). torchdata is not among this course's packages. Instead, you can
# write a sampler that takes its rows from `endless`, beginning at a given position.
# </details>
#
# <details><summary>On Slurm: the end of the time, and requeue</summary>
#
#     #SBATCH --time=04:00:00
#     #SBATCH --signal=B:USR1@300      # 300 s before the end, to the batch script
#     #SBATCH --requeue                # may be started again, under the same number
#     #SBATCH --open-mode=append       # keep what was logged before
#
#     trap 'touch "$CHECKPOINTS/stop"; wait "$job"; scontrol requeue "$SLURM_JOB_ID"' USR1
#     srun torchrun ... train.py & job=$!
#     wait "$job"
#
# After each step, rank 0 of the script looks for the file `stop` and broadcasts the result, because all ranks must stop at the same step. If the file exists,
# the script saves, removes the file (otherwise the next life would stop immediately), and ends. If a node fails, Slurm itself requeues the job, provided that
# `JobRequeue` or `--requeue` allows it. `SLURM_RESTART_COUNT` counts how often a job has been requeued. A job that was requeued waits for two minutes before it
# may begin. ([sbatch](https://slurm.schedmd.com/sbatch.html))
# </details>
#
# ## Alive, but wrong
#
# Not every failure ends a process. If a bit flips in memory, or a chip miscalculates without reporting an error, this is called **silent data
# corruption**. Ma et al. (2025) trained on nodes with such faults. Most errors were small, but some models ended with different weights, and some losses had
# spikes. Data parallelism makes some of these errors visible, because all ranks should have the same weights to the bit. The ranks can therefore compare a
# checksum from time to time, which costs one small message.

# %% tags=["setup"]
# %%px --setup
def fingerprint(tensors):
    """Return an integer that changes if any single number of the tensors changes."""
    bits = torch.cat([one.detach().flatten() for one in tensors]).view(torch.int64)
    return (bits * (2 * torch.arange(len(bits)) + 1)).sum().reshape(1)

def of_all_ranks(value):
    values = [torch.empty_like(value) for _ in range(dist.get_world_size())]
    dist.all_gather(values, value)
    return [one.item() for one in values]

def odd_ranks(value):
    """Return the ranks whose value differs from the majority's."""
    values = of_all_ranks(value)
    usual = max(set(values), key=values.count)
    return [one for one in range(len(values)) if values[one] != usual]

# %%
# %%px
flipped = Training()
for step in range(10):
    if step == 5 and rank == 2:  # one bit of one weight
        flipped.net[0].weight.detach().view(torch.int64)[0, 0] ^= 1 << 40
    loss = train_step(flipped)
odd = odd_ranks(fingerprint(flipped.net.parameters()))
if rank == 0:
    print(f"loss {loss:.4f}, undisturbed {undisturbed[9]:.4f}; "
          f"other weights on ranks {odd}")

# %% [markdown]
# The loss shows nothing, but the checksum identifies the rank. With sharded states, there is no second copy to compare with, except under HSDP, where another
# replica has one (unit 16).
#
# **Predict.** Now a rank's arithmetic is wrong instead of its memory. Rank 2 computes gradients of the first layer that are 10 % too large, and the gradients
# are summed over all ranks as always. After ten steps, which ranks have weights that differ from the majority's?

# %%
# Run this cell to make your prediction.
predict("18-silent",
        "One rank's gradients are 10 % too large. Which ranks get different weights?",
        ["only that rank", "all ranks", "no rank"])

# %%
# %%px
wrong = Training()
if rank == 2:
    wrong.net[0].weight.register_hook(lambda slope: 1.1 * slope)
for _ in range(10):
    train_step(wrong)
odd = odd_ranks(fingerprint(wrong.net.parameters()))

wrong.optimizer.zero_grad()
x, y = images()  # the same rows on all ranks, and no all-reduce
cross_entropy(wrong.net[1](torch.tanh(wrong.net[0](x[:32]))), y[:32]).backward()
odd_gradients = odd_ranks(fingerprint(one.grad for one in wrong.net.parameters()))
if rank == 0:
    print(f"other weights on ranks {odd}; "
          f"other gradients of the same rows on ranks {odd_gradients}")

# %%
# Run this cell to compare your prediction with the outcome.
settle("18-silent", lambda: {0: "no rank", 1: "only that rank"}.get(
    len(cluster.pull("odd")[0]), "all ranks"))

# %% [markdown]
# The all-reduce has spread the error to all ranks, so their weights are equal and equally wrong. Instead, compare the gradients that each rank computes from
# the *same* rows before anything is summed. This costs one step now and then, and comparing bits requires identical processors and deterministic kernels.
#
# **Alive, but slow.** A rank whose processor is too hot delays all the others, so every rank measures the same time for a step, and this time does not identify
# the slow rank. Instead, measure two durations: how long a rank computes until it is ready, and how long it then waits for the others. The **straggler**
# computes the longest and waits the least. A bad network cable is not found in this way, because its rank is ready on time and the all-reduce then takes longer
# for all ranks. In the next cell, rank 1 sleeps for 20 ms in each step.

# %% tags=["measured"]
# %%px
import time

timed, busy_s, wait_s = Training(), [], []
for _ in range(11):
    begun = time.perf_counter()
    timed.loss(4).backward()
    if rank == 1:
        time.sleep(0.02)
    ready = time.perf_counter()
    dist.barrier()
    busy_s.append(ready - begun)
    wait_s.append(time.perf_counter() - ready)
busy_ms, wait_ms = ([1000 * one for one in of_all_ranks(torch.tensor([sorted(all_s)[5]]))]
                    for all_s in (busy_s, wait_s))
if rank == 0:
    print("busy, ms:   ", *(f"{one:6.1f}" for one in busy_ms))
    print("waiting, ms:", *(f"{one:6.1f}" for one in wait_ms))
    print("the straggler is rank", busy_ms.index(max(busy_ms)))

# %% [markdown]
# The cell prints medians over the steps, because every rank is late now and then. Whether a rank is wrong or slow, leave its machine out at the next restart.
# If the rank was only slow, you can continue from the newest checkpoint. If it was wrong, you need a checkpoint that was written before the fault began, so
# keep some older checkpoints, too.
#
# <details><summary>Measuring this on a GPU and with DDP</summary>
#
# On a GPU, the clock of the host would measure only how long it takes to launch the kernels, so use CUDA events, or call `torch.cuda.synchronize()` before you
# read the clock. With DDP, measure the computation inside `no_sync()`, because otherwise `backward` already contains the all-reduce and therefore the waiting.
# This is the right way to time a single step. To measure the throughput of a run, in contrast, time many steps without a pause (lab 19, exercise 7).
# </details>
#
# ## How often?
#
# Saving takes time, and the work since the last checkpoint is lost when a job stops. According to Young (1974), the sum of both costs is smallest with
# $\sqrt{2 \cdot \text{save} \cdot \text{mtbf}}$ seconds between two checkpoints. We apply this rule to the Llama 3 job, assuming that a save takes 60 s and a
# restart 300 s. In the output, *longer* is relative to the same job without saves and failures:

# %%
from manyhands.simulate.survival import job_s, young_s

best_s = young_s(60, mtbf_s)
for every_s in (best_s / 4, best_s / 2, best_s, 2 * best_s, 4 * best_s):
    work_s = 1e6
    longer = job_s(work_s, every_s, 60, 300, mtbf_s) / work_s - 1
    print(f"every {every_s / 60:5.1f} minutes: {100 * longer:4.1f} % longer")

# %% [markdown]
# **Predict.** If the job saves in the background, a save stops it for 2 s instead of 60 s. By what factor should the job save more often?

# %%
# Run this cell to make your prediction.
predict("18-young",
        "How much more often should a job save if a save takes 2 s, not 60 s?",
        ["twice", "5 times", "30 times"])

# %%
quick_s = young_s(2, mtbf_s)
print(f"every {quick_s / 60:.1f} minutes: "
      f"{100 * (job_s(1e6, quick_s, 2, 300, mtbf_s) / 1e6 - 1):.1f} % longer")

# %%
# Run this cell to compare your prediction with the outcome.
settle("18-young", lambda: min(
    {"twice": 2, "5 times": 5, "30 times": 30}.items(),
    key=lambda item: abs(item[1] - best_s / quick_s))[0])

# %% [markdown]
# The choice of the interval is forgiving, because twice or half the best interval costs little more. With the quick save, most of the remaining cost is the
# restart (300 s in 3.1 hours, or 2.7 %), which no checkpoint makes shorter.
#
# ## Summary
#
# * To write a checkpoint that is whole or absent, write next to the old file, flush, fsync, rename, and fsync the folder. Keep at least two checkpoints, and
#   skip those that cannot be read.
# * The state consists of weights, optimiser, schedule, generators and position. If a resumed run differs in a single bit, something is missing.
# * For a different number of ranks, use an order of rows that does not depend on the world size, pieces with a table (DCP), and a learning rate computed from
#   the base rate.
# * torchrun starts all workers again, torchft and Horovod keep the surviving ones, and Slurm requeues the job, but none of these tools knows your state.
# * `dcp_to_torch_save` and `torch_save_to_dcp` convert between pieces and one file. A full state dict is a collective call.
# * To find a rank that is wrong or slow, compare checksums of the weights, gradients of the same rows, and the time that each rank waits.
# * Save every $\sqrt{2 \cdot \text{save} \cdot \text{mtbf}}$ seconds, with the MTBF of the whole job.
#
# **References.** J. W. Young 1974, [A first order approximation to the optimum checkpoint interval](https://doi.org/10.1145/361147.361115). J. T. Daly 2006,
# [A higher order estimate of the optimum checkpoint interval for restart dumps](https://doi.org/10.1016/j.future.2004.11.016). T. S. Pillai et al. 2014,
# [All File Systems Are Not Created Equal](https://www.usenix.org/conference/osdi14/technical-sessions/presentation/pillai): what a power cut leaves. A.
# Grattafiori et al. 2024, [The Llama 3 Herd of Models](https://arxiv.org/abs/2407.21783), section 3.3.4. J. Ma et al. 2025,
# [Understanding Silent Data Corruption in LLM Training](https://arxiv.org/abs/2502.12340). [torchrun](https://docs.pytorch.org/docs/stable/elastic/run.html),
# [Distributed checkpoint](https://docs.pytorch.org/docs/stable/distributed.checkpoint.html),
# [Horovod elastic](https://horovod.readthedocs.io/en/stable/elastic_include.html): documentation.

# %%
cluster.stop()
home.cleanup()
