# %% [markdown] unit={"minutes": 55, "ranks": 4, "framework": "torch", "title": "Elastic training and checkpoints"}
# # 18 Elastic training and checkpoints
#
# With many machines, some machine fails every few hours. A training must come through it, and must end as if nothing had happened. At the end you can
#
# * write a checkpoint that is whole or not there, whatever is killed and when;
# * name everything that is state, and show what one forgotten part costs;
# * go on with fewer ranks, or more, from the same checkpoint;
# * use `torch.distributed.checkpoint` and `torchrun --max-restarts`, and explain what Horovod, torchft, Keras and Slurm offer;
# * turn a sharded checkpoint into one file, and one file into shards;
# * find a rank that computes something wrong, or too slowly, without dying;
# * say how often to save.
#
# **Before:** units 01 (data parallelism by hand) and 06 (DDP), or what is in them. **Minutes:** 55. **Ranks:** 4, some of which will die.

# %% [markdown]
# ## Four ranks
#
# This kernel starts the ranks. Cells that begin with `%%px` run on all four of them; `--setup` marks what is to be run again when the cluster
# is healed, and it will be. Everything here computes on the CPU, with gloo, on every machine: what matters is what is on the disk and which process is alive.

# %% tags=["setup"]
import os
import tempfile
from pathlib import Path

import torch

from manyhands import Cluster, predict, settle
from manyhands.elastic.mortal import in_process

home = tempfile.TemporaryDirectory()
os.environ["CHECKPOINTS"] = home.name  # the ranks see it, also those that come later
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
# Llama 3 was trained on 16,384 GPUs. In 54 days, 419 failures stopped the job without warning (Grattafiori et al. 2024, section 3.3.4). Shared out over the GPUs, each of them stopped it once in 5.8 years.
#
# **Predict.** How often was the whole job stopped?

# %%
predict("18-often",
        "A GPU fails once in 5.8 years. How often does a job on 16,384 of them stop?",
        ["every 3 minutes", "every 3 hours", "every 3 days", "every 3 weeks"])

# %%
days, gpus, failures = 54, 16_384, 419
mtbf_s = days * 24 * 3600 / failures
print(f"one GPU: once in {days * gpus / failures / 365:.1f} years; "
      f"the job: once in {mtbf_s / 3600:.1f} hours")

# %%
settle("18-often", lambda: min(
    {"every 3 minutes": 180, "every 3 hours": 10_800, "every 3 days": 259_200,
     "every 3 weeks": 1_814_400}.items(), key=lambda item: abs(item[1] - mtbf_s))[0])

# %% [markdown]
# The mean time between failures (**MTBF**) of a job is that of one rank divided by the number of ranks, where one failure stops all. So it is not a question of bad luck.
#
# ## A file that is whole or not there
#
# `in_process` calls a function in a process of its own. With `file_bytes=3000, dies=True` the operating system kills that process when a file of it would grow beyond 3000 bytes (the signal
# is called SIGXFSZ). First the obvious way: the new checkpoint is written over the old one.
#
# **Predict.** The process is killed in the middle. What can be loaded then?

# %%
predict("18-over", "Killed while it writes over the old checkpoint: what can be loaded?",
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
settle("18-over", lambda: try_to_load(path))

# %% [markdown]
# The old file is cut to nothing when it is opened. Databases have known the cure for a long time. Write **beside**, then **rename**: `os.replace` puts the new file into the old one's place
# in one step, which is done or not done. But a rename does not wait for the disk: after a power cut the new name may stand for a file whose bytes were never written. So before the rename the file is
# synced (`fsync`), and after it the folder, in which the name stands.

# %%
def write_beside(state, path):
    part = path.with_suffix(".part")
    with open(part, "wb") as file:
        torch.save(state, file)
        file.flush()                # from Python to the system
        os.fsync(file.fileno())     # from the system to the disk
    os.replace(part, path)
    # and fsync of the folder: in the lab

write_beside(named("old"), path)
killed = in_process(write_beside, named("new"), path, file_bytes=3000, dies=True)
print(f"killed by {killed.killed_by}; loaded: {try_to_load(path)}")

# %% [markdown]
# One file may still be torn by something else: a bad disk, a copy that was cut. So keep **two at least**, in files of their own, and skip what cannot be read. In the lab the check tears files, fills
# the disk, and kills your `save` between write and rename.
#
# <details><summary>On a file system that many nodes share</summary>
#
# On NFS and Lustre a rename within one folder is atomic for whoever looks at the server, and `fsync` waits for the server. Another node may still see an older listing of the folder for some seconds, so let **one** rank
# look for the newest checkpoint, and tell the others its name. Object stores (S3) mostly have no rename. There one object is whole or not there by itself, and where a checkpoint is many objects, a small one
# that names the newest whole checkpoint is written last.
# </details>
#
# ## Everything that is state
#
# The training: two layers on 240 digits, `images()`, with dropout and momentum; a step takes 32 rows. Three things make it independent of the number of ranks:
#
# * **Rows** come from one endless order, a new permutation for each epoch, which depends on the seed and on nothing else. A step takes the next 32, `endless(start, 32, 240)`; a rank takes every `world`-th of these.
# * **Dropout:** each rank draws for all 32 rows, and uses its own.
# * **Gradients** are summed over the ranks, and the loss is divided by 32.

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
        """The sum over this rank's rows, divided by the rows of the batch."""
        mine, (x, y) = slice(rank, None, world), images()
        rows = endless(self.step * BATCH, BATCH, PER_EPOCH)[mine]
        keep = (torch.rand(BATCH, 24) > 0.2)[mine] / 0.8
        hidden = torch.tanh(self.net[0](x[rows])) * keep
        return cross_entropy(self.net[1](hidden), y[rows], reduction="sum") / BATCH

# %% tags=["setup"]
# %%px --setup
def train_step(training, world=4, group=None):
    """One step on all ranks of the group; the loss of the whole batch."""
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
# What must a checkpoint of it have? Four parts: the weights, the momentum, the generator of dropout, and the position, which is the number of steps made. We take them after 30 steps, begin a new training with another seed, put back all of them, or all but one, and train on to step 60.
#
# **Predict.** Which part may be left out, so that the weights still come out the same, to the last bit?

# %%
predict("18-part", "Which part may be left out, and the end is the same to the last bit?",
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
NAMES = {"momentum": "the momentum", "generator": "the generator of dropout",
         "step": "the position"}

def may_be_left_out():
    apart = cluster.pull("apart")[0]
    return next((NAMES[part] for part in NAMES if apart[part] == 0), "none of them")

settle("18-part", may_be_left_out)

# %% [markdown]
# <details><summary>Does it matter, then?</summary>
#
# Without one part the loss still falls, and nobody sees an error. That is the danger: rows that come twice and others never; a momentum that begins at zero, or Adam's step counter, with which its bias correction begins anew. And who cannot repeat
# a run to the bit cannot tell a mistake from chance.
#
# More state than here: the schedule of the rate, the scaler of mixed precision, batch norm's averages (in the model's `state_dict`), the generators of NumPy and of Python, a generator on each GPU, the data loader's own, an average of
# weights, and best values so far. And versions: the code that reads must know what it reads.
# </details>
#
# Note `deepcopy`, twice. `state_dict()` gives the *live* tensors: without the copy, "the state after step 30" trains on. And the optimizer's `load_state_dict` keeps the tensors that it is given: without the
# second copy, the first training that was restored would change what the next one gets.
#
# ## Killed, twice
#
# Now on the disk, and with real deaths. Rank 0 saves after each 10 steps. All ranks load by themselves: not only rank 0, or the others would train on with other momenta.
# `world` may be smaller than 4: then the last ranks are idle, as if their machine had gone.

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
    """A training in the state of the newest checkpoint; a new one if there is none."""
    training, found = Training(seed=1), sorted(home.glob("step-*.pt"))
    if not found:
        return Training()
    restore(training, torch.load(found[-1], weights_only=True))
    return training

# %% tags=["setup"]
# %%px --setup
def live(name, world=4, dies=None):
    """Train to the end on `world` ranks; `dies`: (rank, step) of a death."""
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
            dist.barrier(groups[world])  # nobody is ahead of the checkpoint
    return training

# %% [markdown]
# **Predict.** Rank 3 is killed after 27 steps, later rank 1 after 44 in all. Saved is after each 10. How many steps are done twice?

# %%
predict("18-twice",
        "Saved each 10 steps, killed after 27 and after 44: how many are done twice?",
        unit="steps")

# %% tags=["raises-exception", "measured"]
# %%px
live("first", dies=(3, 27))

# %% [markdown]
# Rank 3 is dead, and the others cannot go on: gloo's process group does not lose a member and stay a group (unit 00 names NCCL's way). (Which of them got an error, and which were still waiting, is another matter in each run.) The cluster is healed, as torchrun would have started the ranks anew. But the machine of two ranks
# is "gone": we go on with two.

# %% tags=["raises-exception", "measured"]
# %%px
live("second", world=2, dies=(1, 44))

# %% [markdown]
# And now there are three.

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
settle("18-twice", lambda: twice)

# %% [markdown]
# <details><summary>How to read it</summary>
#
# The thin curves lie on the thick one, all of it: with four ranks, with two, with three. Shaded is what was done twice, from the last checkpoint to the kill. With the same number of ranks each *bit* is the same; with
# another number the sums are added in another order, and 1e-12 is what rounding leaves.
# </details>
#
# **A batch that grows.** Here the batch is 32 rows for any number of ranks: nothing changes but the speed. The other way: each rank keeps its 8 rows, and the batch grows when nodes come. Then the learning rate must follow (unit 17): the **base**
# rate times the number of ranks. Whoever multiplies the rate that the checkpoint has brought back multiplies again with each restart. And count rows, not steps: 20 steps on four ranks are not 20 steps on two.

# %% [markdown]
# > **On GPUs.** The same parts, and one more: each GPU has its own generator (`torch.cuda.get_rng_state`), so dropout drawn there is state of that rank. Bits are the same only with deterministic kernels
# > (`torch.use_deterministic_algorithms`). `map_location` names the rank's own GPU, or the CPU; without it all ranks load into the GPU of the rank that saved.
# > A rank that waits in an NCCL call may hear nothing of the death of another rank, where gloo raises an error. Under torchrun with the rendezvous `c10d`, the agent of the dead rank's node starts a new rendezvous, and the other agents notice that at their next look and end their workers. Without such agents, or if a rank
# > *hangs* and does not die, the watchdog ends the waiting ranks after the group's `timeout`, by default 10 minutes.

# %% [markdown]
# ## Commit and rollback
#
# To start anew costs minutes on a large machine. **Elastic** frameworks keep the processes that live, and the state in memory. Horovod introduced the pattern, which has two calls and two events:
#
# * `commit`: a copy of the state in memory (and a look whether new hosts have come);
# * a rank is **lost** in a step: what is in memory is half a step. Roll back to the commit, make a new group, go on;
# * ranks **join**, between two steps: make a new group, send them the state. Nothing is rolled back.
#
# You write that loop in the lab. It needs something that says which ranks take part: a **rendezvous**. Each meeting has a number, its *generation*; a rank that holds an old number is out. In small, with a store that all can reach (threads of this kernel play the nodes a, b, c and d):

# %%
from datetime import timedelta
from threading import Thread

from torch.distributed import TCPStore

server = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)

def join(node, generation, expected, places):
    """Take a place in this meeting; wait until all `expected` are there."""
    store = TCPStore("127.0.0.1", server.port, timeout=timedelta(seconds=30))
    place = store.add(f"{generation}/count", 1) - 1      # atomic: no two have the same
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
# How many are `expected` is the real question. torchrun (`--nnodes 1:2`) waits until the smallest number is there, then a little longer (`last_call_timeout`), and closes the meeting. A node that comes later waits; the others see it at their next look,
# stop, and all meet again. A place is a **rank**: after each meeting ranks are dealt anew, so nothing may be kept under a rank's number.
#
# ## A checkpoint in pieces
#
# With sharded states (unit 16) no rank has the whole, and should not. `torch.distributed.checkpoint` (DCP) lets each rank write its pieces, with a table of what lies where; a rank that reads says what it wants, and reads only that. So four may write, and two or three
# read. Here with FSDP2, whose shards are rows: 33 rows on four ranks are 9, 9, 9 and 6.

# %% tags=["setup"]
# %%px --setup
import warnings

import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

warnings.filterwarnings("ignore", module="torch")
# made by all ranks, the idle ones too
meshes = {world: DeviceMesh("cpu", range(world)) for world in (2, 3, 4)}

class Sharded:
    """A network in shards on the first ranks; DCP calls state_dict and load_state_dict."""
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
# **Predict.** Three ranks read. Rank 1 needs rows 11 to 21 of the first weight. In how many of the four files do they lie?

# %%
predict("18-files",
        "A weight of 33 rows was written in pieces of 9, 9, 9, 6. Rows 11 to 21 lie in ...",
        ["1 file", "2 files", "4 files"])

# %%
# %%px
for world in (2, 3):
    group = groups[world]
    if rank < world:
        fewer = Sharded(world, seed=5)  # begins otherwise
        dcp.load({"app": fewer}, checkpoint_id=home / "pieces", process_group=group)
        sharded_steps(fewer, 3)
        same = all(abs(a - b) < 1e-12 for a, b in zip(sums(fewer), wanted))
        rows = fewer.net[0].weight.to_local().shape[0]
        print(f"{world} ranks: {rows} rows here; 3 steps on, as with 4 ranks: {same}")

# %%
from torch.distributed.checkpoint import FileSystemReader

def files_with(first, last):
    """In how many files the rows `first` to `last` of the first weight lie."""
    table = FileSystemReader(Path(home.name, "pieces")).read_metadata().storage_data
    starts = {where.relative_path: piece.offset[0] for piece, where in table.items()
              if piece.fqn == "app.net.0.weight"}
    return sum(start <= last and first < start + 9 for start in starts.values())

settle("18-files", lambda: f"{files_with(11, 21)} files")

# %% [markdown]
# Rows 11 to 21 lie in the pieces of ranks 1 (rows 9 to 17) and 2 (18 to 26). What is not cut (Adam's step counters, the rate) is written once, by one rank or another, and read by all: so rank 1 opens a third
# file, too. In the lab you write this arithmetic of overlaps for flat shards.
#
# **In the background.** `dcp.async_save` copies the state, returns, and writes in a thread, while training goes on. Its thread makes collectives of its own. On the default group they
# can mix with those of your step, and then both wait for each other. Give it **a group of its own**, of gloo: a group that has only NCCL it refuses.

# %%
# %%px
alone = dist.new_group(backend="gloo")
saving = dcp.async_save({"app": sharded}, checkpoint_id=home / "later", process_group=alone)
for weight in sharded.net.parameters():
    weight.detach().to_local().zero_()     # the training goes on, and changes the weights
saving.result()                # before the next save: raises what went wrong
copy = Sharded(world=4, seed=5)
dcp.load({"app": copy}, checkpoint_id=home / "later")
same = sums(copy) == wanted
if rank == 0:
    print("what was saved is the state at the time of the call:", same)

# %% [markdown]
# ## One file, and back
#
# A sharded checkpoint is made for the next training run. People who only use the network want one file instead. `dcp_to_torch_save` joins the pieces. It needs no ranks, so it can run
# on any machine that has enough memory for the whole, for example as the command `python -m torch.distributed.checkpoint.format_utils dcp_to_torch FOLDER FILE`. The next cell runs in this kernel:

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
# The way back is `torch_save_to_dcp`, which writes a folder that any number of ranks can load. It unpickles the file without `weights_only`, so use it only on files that you trust. You can also do without a folder. Only rank 0 reads the
# file, and the other ranks pass an empty dictionary. With `broadcast_from_rank0`, rank 0 sends one whole tensor after the other to all ranks, and each rank keeps its shard of it. It uses the default group, so all ranks of the job have to take part.
# The end of the cell shows the opposite direction during a run. All ranks take part in it as well. Because of `cpu_offload=True`, only rank 0 receives the whole, in the memory of the host.
# Without it, every rank would receive the whole on its device.

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
if rank == 0:  # read again: now there are shards in `file`
    file = torch.load(home / "whole.pt", weights_only=True)["app"]["net"]
    print("the whole is the file:", all(full[name].equal(file[name]) for name in full))

# %% [markdown]
# `get_model_state_dict` with `full_state_dict=True` is a collective call. The usual mistake is to call it inside `if rank == 0:`. Then rank 0 waits for the other ranks, and the script hangs. Other programs often ask for safetensors,
# which DCP writes with its `HuggingFaceStorageWriter` if the package safetensors is installed ([documentation](https://docs.pytorch.org/docs/stable/distributed.checkpoint.html); not run here).
#
# ## torchrun starts it again
#
# Outside a notebook the **agent** of torchrun, one on each node, watches its workers. If one dies, it ends the others, and starts all again, `--max-restarts` times. It keeps no state: your script finds its checkpoint.
# [scripts/18_train.py](scripts/18_train.py) is the training above; its last rank kills itself before step 12. Saved is each 5 steps.
#
# **Predict.** The second life begins at step 10. What is different at the end?

# %%
predict("18-torchrun",
        "Killed before step 12 of 30, saved each 5: the weights at the end are ...",
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
    return re.findall("digest (.*)", text)  # of all bits of the weights

calm, killed = run(), run("--dies-at", "12")

# %%
settle("18-torchrun", lambda: "the same, to the bit" if calm == killed and calm
       else "not the same")

# %% [markdown]
# `TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1` is needed with gloo (we have seen it in PyTorch 2.13 and 2.15): without it the agent's store still holds the dead ranks' addresses, and the new ranks try to reach them (pytorch issue 135712).
#
# <details><summary>Several nodes, and nodes that come and go</summary>
#
# `torchrun --nnodes 1:2 --rdzv-backend c10d --rdzv-endpoint HOST:PORT --max-restarts 3 train.py`, on each node. If a node is lost, the others meet again without it; if one comes, all stop and meet with it (not run in this notebook).
# Three things to know:
#
# * the host of the endpoint has the store: if it dies, the job is over;
# * workers live in sessions of their own. Whoever kills only an agent leaves its workers behind: they train on, and write checkpoints;
# * nodes that come do not use up `--max-restarts`. One that is lost does, where workers of the others fail for it.
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
# `horovodrun -np 2 --min-np 1 --max-np 4 --host-discovery-script ./hosts.sh python train.py`; the script prints a line `host:slots` for each host that is there now. The processes that live go on: `train` is called again, with the state of the last commit.
# New hosts are looked for in `commit`, so that nothing is rolled back for them. (`state.check_host_updates()` looks between two commits. If it finds one, plain numbers such as `step` go back to the last commit, and weights do not: Horovod 0.28.1.)
# Not all of the state is in `TorchState`: generators and the loader are yours (`ElasticSampler` for the rows). A host on which a worker died is not used again (with `--blacklist-cooldown-range` not for some time), so on a single machine the job ends at the
# first death (Horovod 0.28.1: "blacklisted slots count"). Not run in this notebook.
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
# Horovod's last release is of 2023. [torchft](https://github.com/meta-pytorch/torchft) brings the same idea to PyTorch, *for each step*. Its coordinator, the *lighthouse*, knows by heartbeats which replicas are healthy. If one fails, the others go on without it from the next step on. When it is back, it copies the state from a healthy replica.
# This works for DDP, for HSDP (a replica is then a whole group of shards, unit 16), for local SGD and for DiLoCo. The `commit`, rollback and regrouping above are its parts.
#
# We ran a script with these calls, with torchft 0.2.0 and gloo, as three processes on one machine. One replica was killed after 8 steps. The other two made the next step without it, and none of them was restarted. A replica that started late copied the state of another one and had the same weights from
# then on. torchft is not among this course's packages, because its lighthouse is a compiled program for Linux, so this notebook does not run it. NVIDIA's [Resiliency Extension](https://nvidia.github.io/nvidia-resiliency-ext/) restarts a job with spare nodes that are already waiting, or inside
# the living processes, and looks for slow ranks. It has not been run for this course.
# </details>
#
# <details><summary>Keras: BackupAndRestore, and what it forgets</summary>
#
# `keras.callbacks.BackupAndRestore(folder)` saves weights, optimiser and the epoch after each epoch (or each `save_freq` steps), and `fit` goes on from there; unit 07 kills a chief with it. The seeds of shuffling and of dropout are not in it: the training goes on,
# but not to the same weights. Shuffle with a seed of the epoch's own, if you need that.
# </details>
#
# <details><summary>The loader's position: StatefulDataLoader</summary>
#
# An order that is a function of the position, as here, has no state but a number. A `DataLoader` with `shuffle=True` and workers that read ahead has more: `torchdata`'s `StatefulDataLoader` has `state_dict()` and `load_state_dict()`
# ([documentation](https://meta-pytorch.org/data/main/torchdata.stateful_dataloader.html)). torchdata is not among this course's packages. By hand: a sampler that is given `endless` and a start.
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
# The script looks for the file `stop` after each step, on rank 0, which tells the others (a broadcast: all must stop at the same step), saves, removes the file, or the next life would stop at once, and ends. A job whose node fails is requeued by Slurm itself, if `JobRequeue` or `--requeue` allows it; `SLURM_RESTART_COUNT`
# says how often it was. A job that was requeued waits for two minutes before it may begin. ([sbatch](https://slurm.schedmd.com/sbatch.html))
# </details>
#
# ## Alive, but wrong
#
# Not every failure ends a process. Memory flips a bit, or a chip computes something wrong and reports no error. This is called **silent data corruption**. Ma et al. (2025) trained on nodes with such faults. Most errors were small, but some models ended with different weights, and some losses had spikes.
# Data parallelism makes some of these errors visible, because all ranks should have the same weights to the bit. So they can compare a checksum from time to time, which costs one small message.

# %% tags=["setup"]
# %%px --setup
def fingerprint(tensors):
    """A whole number that changes if any one of the tensors' numbers changes."""
    bits = torch.cat([one.detach().flatten() for one in tensors]).view(torch.int64)
    return (bits * (2 * torch.arange(len(bits)) + 1)).sum().reshape(1)

def of_all_ranks(value):
    values = [torch.empty_like(value) for _ in range(dist.get_world_size())]
    dist.all_gather(values, value)
    return [one.item() for one in values]

def odd_ranks(value):
    """The ranks whose value is not that of the majority."""
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
# The loss shows nothing, but the checksum names the rank. With sharded states there is no second copy to compare with, except under HSDP, where the replicas have one (unit 16).
#
# **Predict.** Now a rank's arithmetic is wrong, not its memory. Rank 2 computes the gradients of the first layer 10 % too large, and the gradients are summed over all ranks as always. After ten steps, which ranks have weights that differ from the majority's?

# %%
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
settle("18-silent", lambda: {0: "no rank", 1: "only that rank"}.get(
    len(cluster.pull("odd")[0]), "all ranks"))

# %% [markdown]
# The all-reduce has given the error to all ranks, so their weights are equal and equally wrong. A different question helps, namely what each rank computes from the *same* rows before anything is summed. It costs one step now and then.
# The comparison to the bit needs equal processors and deterministic kernels.
#
# **Alive, but slow.** A rank whose processor is too hot delays all the others, so every rank measures the same time for a step, and this time does not identify the slow rank. Measure two durations instead: how long a rank computes until it is ready, and how long it
# then waits for the others. The **straggler** computes longest and waits least. A bad network cable is not found in this way, because its rank is ready on time and the all-reduce then takes longer for all ranks. In this cell, rank 1 sleeps for 20 ms in each step.

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
# These are medians over the steps, because any rank is late now and then. On a GPU the clock of the host would only measure how long launching takes, so time with CUDA events or call `torch.cuda.synchronize()` before reading the clock. That is right for the time of a single step; the throughput of a run is measured over many steps without a pause (lab 19, exercise 7). With DDP, measure this step inside `no_sync()`, because otherwise `backward` already contains the all-reduce and so the waiting. In both cases, leave the machine out at the next restart. After a slow rank you can go on from the newest checkpoint. After a wrong one you need a checkpoint that was written before the fault began, so keep some older checkpoints, too.
#
# ## How often?
#
# Saving costs, and what lies behind the last checkpoint is lost. Young 1974: the sum is smallest at $\sqrt{2 \cdot \text{save} \cdot \text{mtbf}}$ seconds between two checkpoints. Here is the job at the top, if a save takes 60 s and a restart 300 s; *longer* means against the same job without saves and failures:

# %%
from manyhands.simulate.survival import job_s, young_s

best_s = young_s(60, mtbf_s)
for every_s in (best_s / 4, best_s / 2, best_s, 2 * best_s, 4 * best_s):
    work_s = 1e6
    longer = job_s(work_s, every_s, 60, 300, mtbf_s) / work_s - 1
    print(f"every {every_s / 60:5.1f} minutes: {100 * longer:4.1f} % longer")

# %% [markdown]
# **Predict.** Saving in the background stops the training for 2 s instead of 60. How often should it save then?

# %%
predict("18-young",
        "A save stops the training for 2 s, not 60: it should save ... as often",
        ["twice", "5 times", "30 times"])

# %%
quick_s = young_s(2, mtbf_s)
print(f"every {quick_s / 60:.1f} minutes: "
      f"{100 * (job_s(1e6, quick_s, 2, 300, mtbf_s) / 1e6 - 1):.1f} % longer")

# %%
settle("18-young", lambda: min(
    {"twice": 2, "5 times": 5, "30 times": 30}.items(),
    key=lambda item: abs(item[1] - best_s / quick_s))[0])

# %% [markdown]
# The root makes it forgiving: twice or half the best interval costs little more. Most of what is left with the quick save is the restart (300 s in 3.1 hours: 2.7 %), which no checkpoint makes shorter.
#
# ## What you can do now
#
# * **Whole or not there:** beside, flush, fsync, rename, fsync the folder; two at least; skip what cannot be read.
# * **State:** weights, optimiser, schedule, generators, position. To the bit, or something is missing.
# * **Other numbers of ranks:** an order of rows without the world in it; pieces with a table (DCP); the rate from the base rate.
# * **Frameworks:** torchrun starts all workers again, torchft and Horovod keep the living ones, and Slurm requeues the job. None of them knows your state.
# * **One file:** `dcp_to_torch_save` and `torch_save_to_dcp`; a full state dict is a collective call.
# * **Alive, but wrong or slow:** compare checksums of the weights, gradients of the same rows, and the time that each rank waits.
# * **How often:** $\sqrt{2 \cdot \text{save} \cdot \text{mtbf}}$, with the MTBF of the whole job.
#
# **References.** J. W. Young 1974, [A first order approximation to the optimum checkpoint interval](https://doi.org/10.1145/361147.361115). J. T. Daly 2006, [A higher order estimate of the optimum checkpoint interval for restart dumps](https://doi.org/10.1016/j.future.2004.11.016).
# T. S. Pillai et al. 2014, [All File Systems Are Not Created Equal](https://www.usenix.org/conference/osdi14/technical-sessions/presentation/pillai): what a power cut leaves. A. Grattafiori et al. 2024, [The Llama 3 Herd of Models](https://arxiv.org/abs/2407.21783), section 3.3.4. J. Ma et al. 2025, [Understanding Silent Data Corruption in LLM Training](https://arxiv.org/abs/2502.12340).
# [torchrun](https://docs.pytorch.org/docs/stable/elastic/run.html), [Distributed checkpoint](https://docs.pytorch.org/docs/stable/distributed.checkpoint.html), [Horovod elastic](https://horovod.readthedocs.io/en/stable/elastic_include.html): documentation.

# %%
cluster.stop()
home.cleanup()
