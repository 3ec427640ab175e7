# %% [markdown] unit={"minutes": 55, "ranks": 4, "framework": "torch, tensorflow", "title": "Horovod"}
# # 10 Horovod
#
# With Horovod, a few added lines turn a training script for one process into a script for many processes, in PyTorch, TensorFlow or Keras. At the end, you can
#
# * explain what `horovodrun` gives to a process, and start Horovod on ranks that are already running.
# * make the four edits in each of the three libraries, and reach the weights that a single process computes.
# * recognise from the symptoms which edit is missing.
# * adapt the learning rate to the number of ranks, and decide when to change the number of epochs.
# * read Horovod's timeline, and explain what fusion and compression do.
# * describe what Horovod is today, and port a script to DistributedDataParallel line by line.
#
# **Before:** unit 01, or the ability to explain the sum of gradients in your own words, and a little PyTorch and Keras. **Minutes:** 55 · **Ranks:** 4, on 2
# nodes.

# %% [markdown]
# ## What horovodrun gives to a process
#
# This kernel starts four ranks, and cells that begin with `%%px` run on all of them. The option `--setup` marks the cells that are run again if the cluster
# must be healed.

# %% tags=["setup"]
from manyhands import Cluster, predict, settle, track

cluster = Cluster(nodes=2, ranks_per_node=2, framework="both")

# %% [markdown]
# `horovodrun` starts the processes, gives each of them its number, and starts a server where they leave their addresses for each other. Our ranks are already
# running, so `rendezvous()` does only the rest of this work. Then we call `hvd.init()`, as every Horovod script does.

# %% tags=["setup"]
# %%px --setup
import os

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from manyhands import track
from manyhands.cluster.horovod import rendezvous
from manyhands.data import shard

# %% tags=["setup"]
# %%px --setup
import horovod.torch as hvd

# the timeline is read later
os.environ["HOROVOD_TIMELINE"] = os.environ["MANYHANDS_NODE_DIR"] + "/timeline.json"
if not hvd.is_initialized():  # so that this cell can be run twice
    rendezvous()
    hvd.init()

# %%
# %%px
total = hvd.allreduce(torch.tensor(hvd.rank()), op=hvd.Sum).item()
print(f"rank {hvd.rank()} of {hvd.size()}, local rank {hvd.local_rank()} of "
      f"{hvd.local_size()}, node {hvd.cross_rank()} of {hvd.cross_size()}; "
      f"sum of all ranks {total}")

# %% [markdown]
# Horovod reads these numbers from environment variables.
#
# | variable | meaning |
# |---|---|
# | `HOROVOD_RANK`, `HOROVOD_SIZE` | number of this process, and number of processes |
# | `HOROVOD_LOCAL_RANK`, `HOROVOD_LOCAL_SIZE` | the same on its own node |
# | `HOROVOD_CROSS_RANK`, `HOROVOD_CROSS_SIZE` | number of the node, and number of nodes |
# | `HOROVOD_GLOO_RENDEZVOUS_ADDR`, `..._PORT` | address and port of the server where the processes meet |
#
# Under `mpirun`, Horovod gets these numbers from MPI instead. Without a launcher, `hvd.size()` is 1 in every process, and each process trains alone. In this
# case, the symptom is *four lines with "rank 0 of 1"*.
#
# To use **one GPU for each process**, call `torch.cuda.set_device(hvd.local_rank())` right after `hvd.init()`. In TensorFlow, call
# `tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")` before any operation. Both Horovod scripts of this unit do so, because otherwise all processes
# of a node would use the node's first GPU.
#
# <details><summary>Processes that are started by hand</summary>
#
# With `CUDA_VISIBLE_DEVICES=0 python a.py & CUDA_VISIBLE_DEVICES=1 python b.py &`, each process sees only one GPU, which has the number 0 in that process.
# </details>

# %% [markdown]
# > **On GPUs.** Horovod uses NCCL for the tensors and Gloo or MPI for the negotiation if it was built with `HOROVOD_GPU_OPERATIONS=NCCL`. The set-up builds it this way
# > on request (`docs/SETUP.md`), but this option has never been tried. Without it, `hvd.nccl_built()` is 0, PyTorch's tensors on a GPU are refused, and the script stays
# > on the CPU. NCCL's calls run on a separate stream, in parallel with the computation. NCCL refuses two ranks on one GPU, so selecting a GPU for each process is not
# > only a matter of speed.

# %% [markdown]
# ## PyTorch: four edits
#
# As in most units so far, we train a small network on handwritten digits for 60 steps of 250 rows, in `float64`. As in most real programs, the ranks start with
# different weights. Rank 0 has the weights that we want, as if it had read a checkpoint, whereas the others have random weights.

# %% tags=["setup"]
# %%px --setup
x, y = (torch.from_numpy(array) for array in track.data())
reference = track.one_process()[0]  # the weights at the end

def network():
    model = track.network()
    torch.manual_seed(hvd.rank())
    if hvd.rank() != 0:
        [layer.reset_parameters() for layer in (model[0], model[2])]
    return model

def flat(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])

# %% [markdown]
# Here is the training loop, with the first three edits numbered. Later, we use the argument `without` to omit one of these edits. The script for a real cluster
# is [scripts/10_pytorch.py](scripts/10_pytorch.py).

# %% tags=["setup"]
# %%px --setup
def train(without=None):
    model = network()
    optimiser = torch.optim.SGD(model.parameters(), lr=track.RATE, weight_decay=track.DECAY)
    # edit 1: the optimiser's step begins with the sum of all gradients
    if without != "gradients":
        optimiser = hvd.DistributedOptimizer(optimiser,
                                             named_parameters=model.named_parameters(),
                                             op=hvd.Sum)
    if without != "start":      # edit 2: all ranks begin with rank 0's weights
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    # edit 3: each rank has its own rows
    mine = slice(250) if without == "rows" else shard(250, hvd.rank(), hvd.size())
    ways = [flat(model)]
    for step in range(track.STEPS):
        run_step(model, optimiser, x[track.rows(step)][mine], y[track.rows(step)][mine])
        ways += [flat(model)] if step % 3 == 2 else []
    return model, torch.stack(ways).numpy(), len(x[:250][mine])

# %% tags=["setup"]
# %%px --setup
def run_step(model, optimiser, x, y):
    optimiser.zero_grad()
    # rows of this step, on all ranks together
    count = hvd.allreduce(torch.tensor(len(x)), op=hvd.Sum, name="count")
    (cross_entropy(model(x), y, reduction="sum") / count).backward()
    optimiser.step()

# %% [markdown]
# By default, Horovod uses `op=hvd.Average`, the mean of the ranks' gradients. Our shards have 62 or 63 rows, so a mean of means would be wrong (unit 01).
# Therefore, each rank divides the sum of its losses by the number of rows in the batch, and the gradients are summed.
#
# What does the wrapper do? `DistributedOptimizer` creates a class that inherits from the optimiser's class. It gives each parameter's gradient a hook that
# passes the gradient to Horovod as soon as the backward pass has computed it (`allreduce_async_`, under the parameter's name). The method `step()` waits for
# all sums (`synchronize()`) and then calls the original `step()`. As a result, gradients are summed while the backward pass continues.

# %%
# %%px
model, way, rows = train()
far = {"Horovod, PyTorch": track.distance(model.parameters(), reference)}
print(f"{rows} rows of each batch; weights of one process, to 1e-12: "
      f"{far['Horovod, PyTorch'] < 1e-12}")

# %% [markdown]
# The fourth edit concerns files: **rank 0 alone writes**. Since all ranks have the same weights, one copy is enough. Four processes that write the same file
# simultaneously may corrupt it.
#
# **Predict.** A script writes the checkpoint under `if hvd.local_rank() == 0`. On our 2 nodes with 2 ranks each, how many ranks write it?

# %%
# Run this cell to make your prediction.
predict("10-writers",
        "How many ranks write if local_rank() == 0, on 2 nodes of 2 ranks?", unit="ranks")

# %%
# %%px
for rule, writes in {"always": True, "local_rank() == 0": hvd.local_rank() == 0,
                     "rank() == 0": hvd.rank() == 0}.items():
    writers = hvd.allreduce(torch.tensor(int(writes)), op=hvd.Sum).item()
    if hvd.rank() == 0:
        print(f"if {rule}: {writers} of {hvd.size()} ranks write")

# %%
# Run this cell to compare your prediction with the outcome.
settle("10-writers", lambda: sum(cluster.pull("hvd.local_rank() == 0")))

# %% [markdown]
# Never put a Horovod call behind an `if` that depends on the rank. For example, `if hvd.rank() == 0: hvd.allreduce(loss)` waits for three ranks that never
# arrive. Instead, let all ranks average the loss first, and then let rank 0 print it.
#
# ## Leave one out
#
# Now we run the same training loop three more times, each time without one of the first three edits. None of the runs raises an error.
#
# **Predict.** Which of the three runs end with different models on the ranks? Which of them still ends with the right model?

# %%
# Run this cell to make your prediction.
predict("10-apart", "Without which edits do the ranks end with different models?",
        ["start", "gradients", "rows", "start, gradients", "start, gradients, rows"])
predict("10-right", "Without which edit do the ranks still end with the right model?",
        ["start", "gradients", "rows"])

# %% tags=["setup"]
# %%px --setup
def symptoms(without):
    model, way, rows = train(without)
    seen = hvd.allreduce(torch.tensor(rows), op=hvd.Sum).item()
    first = hvd.broadcast(torch.from_numpy(way), root_rank=0)
    apart = [hvd.allreduce((torch.from_numpy(way) - first)[k].norm(), op=hvd.Max).item()
             for k in (0, -1)]
    own = cross_entropy(model(x[:250]), y[:250]).item()
    losses = [round(loss, 3) for loss in hvd.allgather(torch.tensor([own])).tolist()]
    return {"way": way, "apart": apart, "rows": seen, "losses": losses,
            "far": track.distance(model.parameters(), reference)}

# %%
# %%px
found = {without: symptoms(without) for without in (None, "start", "gradients", "rows")}

# %%
results = cluster.pull("found")
for without, one in results[0].items():
    far = max(result[without]["far"] for result in results)
    print(f"without {without}:" if without else "all edits:")
    print(f"    ranks apart: {one['apart'][0]:.3f} at the start, {one['apart'][1]:.3f} at "
          f"the end; from one process: {'0' if far < 1e-12 else f'{far:.3f}'}")
    print(f"    rows of a step, on all ranks: {one['rows']}; loss of the first batch, by "
          f"rank: {one['losses']}")

# %%
# Run this cell to compare your prediction with the outcome.
edits = ["start", "gradients", "rows"]
settle("10-apart", lambda: ", ".join(
    edit for edit in edits if results[0][edit]["apart"][1] > 1e-9))
settle("10-right", lambda: min(edits, key=lambda edit: results[0][edit]["far"]))

# %% [markdown]
# <details><summary>How to read it</summary>
#
# * **Without the broadcast**, the ranks start apart and stay apart. All ranks take the same steps, but from four different places. (The ranks come a little
#   closer to each other, because weight decay multiplies every difference by 1 - 0.5 * 0.01 in each step, so 0.740 of it is left after 60 steps.) The
#   gradient that they share is a sum of gradients at four different places, so it is the gradient of none of the models.
# * **Without DistributedOptimizer**, the ranks start together and drift apart. Each rank learns from its own quarter alone, and its steps are smaller by a
#   factor of about four, since the other ranks' parts of the gradient are missing. However, the loss falls on every rank, so nothing looks wrong.
# * **Without shards**, the results are right but nothing is gained, because each row is computed four times. You notice this only if you count the rows or
#   measure the time.
# </details>
#
# The next picture shows the paths of the four ranks through the space of the weights, projected onto a plane. A ring marks a start, and a dot marks an end.

# %%
import numpy as np

from manyhands.plots.drift import apart, drift

ways = {without or "all edits": np.stack([result[without]["way"] for result in results])
        for without in (None, "start", "gradients")}
for name, paths in ways.items():
    print(f"{name:<10} largest distance from rank 0 after 0, 15, 30, 45, 60 steps:",
          " ".join(f"{far:.3f}" for far in apart(paths)[::5]))
begin = ways["all edits"][0, 0]
named = {"all edits": "all edits", "no broadcast": "start",
         "no DistributedOptimizer": "gradients"}
drift({name: ways[key] for name, key in named.items()},
      (begin, np.concatenate([w.ravel() for w in track.one_process()[0]])))

# %% [markdown]
# On the left, the four paths coincide. In the middle, the same path appears four times, side by side. On the right, four paths leave the same start in
# different directions.
#
# ## What else must be broadcast
#
# An optimiser also has a state, such as momentum or Adam's averages. If rank 0 has read a checkpoint, its optimiser's state must be sent to all ranks with
# `hvd.broadcast_optimizer_state(optimiser, root_rank=0)`. This call has a trap. On a rank whose optimiser has no state yet, Horovod creates one by taking a
# step with zero gradients, and **weight decay acts in that step**.
#
# **Predict.** A weight is 8 on all ranks, and the learning rate and the weight decay are both 0.5. Rank 0's optimiser has a momentum buffer of 1, from a
# checkpoint. What is the weight on each rank if you first broadcast the weights and then the optimiser's state? What is it in the opposite order?

# %%
# Run this cell to make your prediction.
predict("10-resume", "What is the weight on rank 1 if the weights are broadcast first?")
predict("10-other-order",
        "What is the weight on rank 1 if the optimiser's state is broadcast first?")

# %%
# %%px
def resume(weights_first):
    weight = nn.Parameter(torch.tensor([8.0]))
    optimiser = torch.optim.SGD([weight], lr=0.5, weight_decay=0.5, momentum=0.9)
    if hvd.rank() == 0:
        optimiser.state[weight]["momentum_buffer"] = torch.tensor([1.0])
    if weights_first:
        hvd.broadcast_parameters({"weight": weight}, root_rank=0)
    hvd.broadcast_optimizer_state(optimiser, root_rank=0)
    if not weights_first:
        hvd.broadcast_parameters({"weight": weight}, root_rank=0)
    return (f"weight {weight.item()}, momentum "
            f"{optimiser.state[weight]['momentum_buffer'].item()}")

print("weights first:", resume(weights_first=True), "  optimiser first:",
      resume(weights_first=False))

# %%
# Run this cell to compare your prediction with the outcome.
def weight_on_1(weights_first):
    return float(cluster.pull(f"resume({weights_first})")[1].split()[1].rstrip(","))

settle("10-resume", lambda: weight_on_1(True))
settle("10-other-order", lambda: weight_on_1(False))

# %% [markdown]
# <details><summary>Why?</summary>
#
# The ranks without a state took a step with a gradient of zero, in which only the decay acted, so their weight is 8 - 0.5 * (0 + 0.5 * 8) = 6. Horovod's own
# examples broadcast the weights first. Without weight decay, both orders are right, but with weight decay, you must broadcast **the optimiser first and the
# weights last**. Plain SGD has no state, so `broadcast_optimizer_state` takes a step with zero gradients on every rank, including rank 0. In this case, leave
# this call out.
#
# A second trap is that `DistributedOptimizer(optimiser)` returns a new optimiser without the state of the original optimiser. Therefore, wrap the optimiser
# first, and read the checkpoint afterwards.
# </details>
#
# Broadcast `model.state_dict()` and not `model.named_parameters()`, because only the former contains a model's buffers (such as batch norm's running mean). For
# a number such as the epoch, call `hvd.broadcast_object(epoch, root_rank=0, name="epoch")`. Pass a name, because Horovod matches calls by *name*. Without one,
# it uses the object's type, so ranks that pass a dict and ranks that pass `None` wait forever.
#
# ## Learning rate and epochs
#
# Above, the batch stayed at 250 rows, so nothing had to change. Usually, however, each *rank* keeps its number of rows, since this keeps a GPU busy. Then a
# step has `hvd.size()` times as many rows, and an epoch has fewer steps. The rule of thumb is to multiply the learning rate by `hvd.size()`.
#
# **Predict.** Three runs train for ten epochs of 1500 rows. They take 250 rows per step at a rate of 0.2, 1000 rows at 0.2, and 1000 rows at 0.8, respectively.
# How do their objectives compare? The task's usual rate is 0.5. Will 1000 rows work with a rate of 2?

# %%
# Run this cell to make your prediction.
predict("10-linear",
        "What do 1000 rows at rate 0.8 reach, compared with 250 rows at rate 0.2?",
        ["a better objective", "about the same", "a worse objective"])
predict("10-too-large",
        "What do 1000 rows at rate 2 reach, compared with 250 rows at rate 0.5?",
        ["a better objective", "about the same", "a worse objective"])

# %%
# %%px
def objective_after(epochs, rows_of_step, rate):
    model = track.network()
    optimiser = torch.optim.SGD(model.parameters(), lr=rate, weight_decay=track.DECAY)
    optimiser = hvd.DistributedOptimizer(optimiser,
                                         named_parameters=model.named_parameters(),
                                         op=hvd.Sum)
    steps = epochs * len(x) // rows_of_step
    for step in range(steps):
        rows = torch.arange(step * rows_of_step, (step + 1) * rows_of_step) % len(x)
        mine = rows[shard(rows_of_step, hvd.rank(), hvd.size())]
        run_step(model, optimiser, x[mine], y[mine])
    return (steps, (cross_entropy(model(x), y) + track.DECAY / 2
                    * flat(model).square().sum()).item())

# %%
# %%px
settings = [(250, 0.2), (1000, 0.2), (1000, 0.2 * hvd.size()), (250, 0.5),
            (1000, 0.5 * hvd.size())]
runs = [objective_after(10, *setting) for setting in settings]
if hvd.rank() == 0:
    for (rows, rate), (steps, value) in zip(settings, runs):
        print(f"{rows:>4} rows a step, rate {rate}: {steps} steps, objective {value:.3f}")

# %%
# Run this cell to compare your prediction with the outcome.
def compared(large, small):
    values = cluster.pull("[value for _, value in runs]")[0]
    ratio = values[large] / values[small]
    if 0.9 < ratio < 1.1:
        return "about the same"
    return "a worse objective" if ratio > 1 else "a better objective"

settle("10-linear", lambda: compared(2, 0))
settle("10-too-large", lambda: compared(4, 3))

# %% [markdown]
# <details><summary>Why?</summary>
#
# With a quarter as many steps of the same length, training does not get as far. Here, steps that are four times as long make up for this, because one long step
# has about the same effect as four short ones if the weights move little during these four (Goyal et al. 2017). However, this rule has a limit. A rate of 0.5
# is already large here, and at four times that rate the steps are too large for the loss to fall. Often the rule fails only at the start of training, so the
# rate is raised over the first epochs (`LearningRateWarmupCallback` in Keras). Unit 17 covers the rest.
#
# Divide the number of epochs by `hvd.size()` only if every rank goes through *all* the data in an epoch, as in Horovod's first Keras example. With shards, an
# epoch remains an epoch.
# </details>
#
# ## Fusion and the timeline
#
# A network has many small gradients, and each message has a fixed cost. Therefore, Horovod's own thread checks at short intervals (`HOROVOD_CYCLE_TIME`)
# which tensors are ready **on all ranks**. It copies them into one buffer of up to 128 MiB (`HOROVOD_FUSION_THRESHOLD`) and performs one all-reduce for all of
# them. This is *tensor fusion*.
#
# <details><summary>Both settings</summary>
#
# The cycle time is 1 ms by default. Here, `rendezvous()` sets it to 5 ms to reduce the load on your processor. With `HOROVOD_AUTOTUNE=1`, Horovod tries
# different values of both settings during the first steps.
# </details>
#
# The next cell sends twelve tensors, first one at a time and then all at once.

# %%
# %%px
tensors = [torch.full((1000,), float(k)) for k in range(12)]

def one_by_one():
    return [hvd.allreduce(tensor, op=hvd.Sum, name=f"single {k:02}")
            for k, tensor in enumerate(tensors)]

def together():
    handles = [hvd.allreduce_async(tensor, op=hvd.Sum, name=f"joint {k:02}")
               for k, tensor in enumerate(tensors)]
    return [hvd.synchronize(handle) for handle in handles]

for way in (one_by_one, together):
    sums = [way() for repeat in range(3)][-1]
    print(f"{way.__name__}: sums {[int(total[0]) for total in sums]}", end="; ")

# %% [markdown]
# Both ways give the same sums. In the file that `HOROVOD_TIMELINE` names, Horovod has recorded what it did and when, in the format of Chrome's
# `chrome://tracing`. `hvd.shutdown()` completes the file.
#
# Before `hvd.shutdown()`, we try **compression**. `hvd.Compression.fp16` converts each number to 16 bits, sends and *adds* the numbers in this form, and
# converts the sum back.

# %%
# %%px
third = torch.tensor([1 / 3], dtype=torch.float64)
sums = [hvd.allreduce(third, op=hvd.Sum, compression=way).item()
        for way in (hvd.Compression.none, hvd.Compression.fp16)]
try:
    hvd.allreduce(third, op=hvd.Adasum)
except Exception as error:
    said = str(error)
hvd.shutdown()
print(f"4 times a third: {sums[0]:.6f}, through 16 bits: {sums[1]:.6f}; Adasum: {said}")

# %% [markdown]
# The message has half as many bytes as in `float32`, and the sum has three correct digits, or fewer on many ranks, since each addition is rounded. This
# precision is often enough for gradients, as long as none of them *and none of their sums* is too large or too small for 16 bits. For example, if two ranks
# average gradients of 40,000, the result is infinity. For this reason, compression is combined with loss scaling.
#
# <details><summary>What Adasum is</summary>
#
# `hvd.Adasum` is a different way to combine gradients, which adds up their orthogonal parts and averages their parallel parts (Maleki et al. 2020). It needs
# MPI. On CPUs, the number of ranks must be a power of two, and Horovod's guide recommends 2 to 2.5 times the learning rate of a single process, regardless of
# the number of ranks. With NCCL, the number of *nodes* must be a power of two. Adasum then averages inside each node, and the rate is scaled by the number of
# GPUs in a node.
# </details>
#
# Now we look at the timeline. Your times will differ.

# %% tags=["measured"]
from manyhands.plots import horovod_timeline as trace

def read_timeline():  # on rank 0, where the file is
    import os
    from manyhands.plots import horovod_timeline
    return horovod_timeline.read(os.environ["HOROVOD_TIMELINE"])

phases = cluster.run(read_timeline, ranks=0)[0]
lanes = {name: trace.pick(phases, prefix, last=1)
         for name, prefix in {"one by one": "allreduce.single ",
                              "together": "allreduce.joint "}.items()}
for name, lane in lanes.items():
    print(f"{name}: {trace.messages(lane)} all-reduces, "
          f"{max(phase.stop_ms for phase in lane):.1f} ms")
trace.timeline(lanes)

# %% [markdown]
# Each row is a tensor. In the *upper* part, the tensors are sent one at a time, and each waits for one or two of the checks that Horovod's thread makes
# every 5 ms. Most of the time is spent waiting, not sending. In the *negotiation*, the ranks find out when all of them have the tensor, so they may submit
# gradients in any order. A tensor must not be sent earlier, because an all-reduce that one rank does not join would wait forever. In the *lower* part, the
# tensors are submitted together, copied into the fusion buffer, and sent in a few messages. (This part shows the third repetition.)
#
# DDP (unit 06) groups gradients in buckets and keeps these buckets after its first step, so it needs no negotiation, whereas Horovod regroups tensors in every
# cycle.
#
# <details><summary>How the negotiation becomes cheap, and three more switches</summary>
#
# Every rank reports the name, shape and type of a *new* tensor to rank 0. After that, the tensor is in the **response cache**, so from the second step on the
# ranks combine only a few bits, one for each known tensor.
#
# If a tensor waits more than 60 s for a rank, the *stall inspector* on rank 0 reports which ranks are missing (`HOROVOD_STALL_CHECK_TIME_SECONDS`). With
# `hvd.join()`, a rank that has run out of rows continues to answer the other ranks' all-reduces with zeros. `backward_passes_per_step=k` adds up the gradients
# of `k` micro-batches before they are sent.
# </details>
#
# ## TensorFlow: the tape
#
# In TensorFlow, the same edits have different names. `DistributedGradientTape` wraps the tape, and its `gradient` returns means over all ranks, or sums with
# `op=hvd_tf.Sum`. `broadcast_variables` sends rank 0's variables to all ranks. Both were added with Horovod's eager mode, in a pull request from November 2018.
# The wrapper is a tape whose `gradient` calls the original method, all-reduces each gradient, and returns the results.

# %% tags=["setup"]
# %%px --setup
import sys

import numpy as np
import tensorflow as tf
import tf_keras

# Horovod's callbacks know only Keras 2, so this comes before their import
sys.modules["keras"] = tf_keras
import horovod.tensorflow.keras as hvd_keras
import horovod.tensorflow as hvd_tf

tf.get_logger().setLevel("ERROR")

# %% tags=["setup"]
# %%px --setup
hvd.shutdown()  # each library has its own Horovod, and only one may run at a time
if not hvd_tf.is_initialized():
    os.environ.pop("HOROVOD_TIMELINE", None)
    rendezvous()
    hvd_tf.init()

# %% tags=["setup"]
# %%px --setup
rows_x, rows_y = track.data()
mine = shard(track.ROWS, hvd_tf.rank(), hvd_tf.size())

def losses(labels, scores):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores)

def own_start():  # the right numbers on rank 0 only
    return [array.T if hvd_tf.rank() == 0 else 0 * array.T for array in track.start()]

def distance(arrays):
    return track.distance([array.T for array in arrays], reference)

# %%
# %%px
w1, b1, w2, b2 = variables = [tf.Variable(array) for array in own_start()]
hvd_tf.broadcast_variables(variables, root_rank=0)

@tf.function(autograph=False)
def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(losses(y, tf.tanh(x @ w1 + b1) @ w2 + b2)) / track.ROWS
    tape = hvd_tf.DistributedGradientTape(tape, op=hvd_tf.Sum)
    for variable, gradient in zip(variables, tape.gradient(loss, variables)):
        variable.assign_sub(track.RATE * (gradient + track.DECAY * variable))

for number in range(track.STEPS):
    step(rows_x[track.rows(number)][mine], rows_y[track.rows(number)][mine])
far["Horovod, TensorFlow eager"] = distance([variable.numpy() for variable in variables])
print(f"weights of one process, to 1e-12: {far['Horovod, TensorFlow eager'] < 1e-12}")

# %% [markdown]
# A Keras optimiser creates its variables in its first step. If it has any (such as momentum buffers), broadcast them **after the first step**, together with
# the model's variables.
#
# ## One test, in eager and graph mode
#
# The pull request that introduced the eager mode also changed Horovod's tests, so that each test function ran twice, once as a graph and once eagerly. Today,
# `tf.function` builds the graph, and `subTest` counts the two modes separately. `test_gradient` tests the wrapped tape, and `test_warmup` tests a learning rate
# that grows by 0.1 in each step.

# %% tags=["setup"]
# %%px --setup
import unittest

def modes(function):
    return {"eager": function, "graph": tf.function(function, autograph=False)}

class StepTest(tf.test.TestCase):
    def test_gradient(self):
        w = tf.Variable(3.0)
        def gradient(x):
            with tf.GradientTape() as tape:
                loss = x * w
            tape = hvd_tf.DistributedGradientTape(tape, op=hvd_tf.Sum)
            return tape.gradient(loss, [w])[0]
        for mode, call in modes(gradient).items():
            with self.subTest(mode=mode):
                self.assertEqual(call(tf.constant(hvd_tf.rank() + 1.0)), 1 + 2 + 3 + 4)

    def test_warmup(self):
        def rate():
            self.steps += 1  # a Python number, not a tensor
            return tf.constant(0.1 * self.steps)
        for mode, call in modes(rate).items():
            self.steps = 0
            with self.subTest(mode=mode):
                self.assertAllClose([call() for _ in range(3)], [0.1, 0.2, 0.3])

# %% [markdown]
# **Predict.** `test_warmup` takes its rate from a Python counter. In which mode does it fail?

# %%
# Run this cell to make your prediction.
predict("10-modes",
        "In which mode does the test of a rate from a Python counter fail in TensorFlow?",
        ["eager", "graph", "both", "neither"])

# %%
# %%px
def failed(name):
    result = unittest.TestResult()
    StepTest(name).run(result)
    failures = [test.params["mode"] for test, _ in result.failures + result.errors]
    return {0: "neither", 2: "both"}.get(len(failures), *failures[:1])

print(f"test_gradient fails in: {failed('test_gradient')}; test_warmup fails in: "
      f"{failed('test_warmup')}")

# %%
# Run this cell to compare your prediction with the outcome.
settle("10-modes", lambda: cluster.pull("failed('test_warmup')")[0])

# %% [markdown]
# <details><summary>Why?</summary>
#
# TensorFlow runs the Python code of a `tf.function` only while it traces the graph, which happens once here. The graph then contains 0.1 as a constant, and the
# counter is never increased again. Therefore, a number that changes from step to step must be a tensor or a `tf.Variable`. The test of the all-reduce passes in
# both modes, because the all-reduce is an operation of the graph.
#
# These tests call collectives, so all ranks must run the tests in the same order. If an assertion fails on one rank before a collective, the other ranks wait
# in that collective. Horovod's [own tests](https://github.com/horovod/horovod/blob/master/test/parallel/test_tensorflow.py) have a version for the CPU and a
# version for the GPU, which is skipped where there is no GPU.
# </details>
#
# ## Keras: callbacks
#
# In Keras, the edits are a wrapped optimiser and callbacks.
#
# | callback | what it does |
# |---|---|
# | `BroadcastGlobalVariablesCallback(0)` | sends rank 0's variables, including the optimiser's, to all ranks |
# | `MetricAverageCallback()` | averages the metrics over the ranks at the end of an epoch, so that the log does not show only rank 0's metrics |
# | `LearningRateWarmupCallback(...)` | raises the rate over the first epochs |
# | `ModelCheckpoint(path)`, Keras's own | writes files; added only `if hvd.rank() == 0` |
#
# Since `fit` takes the rows in order, we store each rank's own rows batch by batch. Horovod 0.28.1 works with Keras 2 (`tf_keras`) but not with Keras 3.

# %% tags=["setup"]
# %%px --setup
batches = range(track.DIGITS // track.ROWS)  # six
own_x, own_y = (np.concatenate([array[track.rows(k)][mine] for k in batches])
                for array in (rows_x, rows_y))

def part_of_the_mean(labels, scores):
    return (tf.reduce_sum(losses(tf.cast(tf.reshape(labels, [-1]), tf.int64), scores))
            / track.ROWS)

# %% tags=["setup"]
# %%px --setup
def fit(broadcast_first, path):
    dense = tf_keras.layers.Dense
    model = tf_keras.Sequential([dense(32, "tanh", dtype="float64", input_shape=(64,)),
                                 dense(10, dtype="float64")])
    model.set_weights(own_start())
    if broadcast_first:
        hvd_tf.broadcast_variables(model.variables, root_rank=0)
    # a plain float becomes a float32
    optimizer = tf_keras.optimizers.SGD(track.RATE, weight_decay=np.float64(track.DECAY))
    model.compile(hvd_keras.DistributedOptimizer(optimizer, op=hvd_tf.Sum),
                  part_of_the_mean)
    callbacks = [hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0),
                 hvd_keras.callbacks.MetricAverageCallback()]
    callbacks += ([tf_keras.callbacks.ModelCheckpoint(path, save_weights_only=True)]
                  if hvd_tf.rank() == 0 else [])
    model.fit(own_x, own_y, batch_size=len(own_x) // len(batches), shuffle=False, epochs=10,
              callbacks=callbacks, verbose=0)
    return model.get_weights()

# %% [markdown]
# **Predict.** Only rank 0 starts with the right weights. With the callbacks alone, are the four models equal at the end? Do they have the weights that a single
# process computes?

# %%
# Run this cell to make your prediction.
predict("10-callbacks", "How do the four models end with the callbacks alone?",
        ["equal, as one process", "equal, not as one process", "different"])

# %%
# %%px
for name, first in {"callbacks alone": False, "Horovod, Keras": True}.items():
    path = (f"{os.environ['MANYHANDS_NODE_DIR']}/{name.replace(' ', '_')}-"
            f"{hvd_tf.rank()}.weights.h5")
    weights = fit(first, path)
    far[name] = distance(weights)
    same = hvd_tf.allgather(tf.constant([[array.sum() for array in weights]])).numpy()
    print(f"{name}: equal on all ranks: {bool((same == same[0]).all())}; weights of one "
          f"process, to 1e-12: {far[name] < 1e-12}; "
          f"a file: {os.path.exists(path)}")

# %%
# Run this cell to compare your prediction with the outcome.
def ended():
    away = cluster.pull("far['callbacks alone']")
    if len(set(away)) > 1:
        return "different"
    return "equal, as one process" if away[0] < 1e-12 else "equal, not as one process"

settle("10-callbacks", ended)

# %% [markdown]
# <details><summary>Why?</summary>
#
# The callback broadcasts *at the end of the first batch*, when the optimiser has created its variables. By then, the first step has already been taken, with a
# sum of gradients from four places. For a new training run, one such step does not matter. When you resume from a checkpoint, however, give all ranks the
# weights first with `broadcast_variables(model.variables, root_rank=0)`, as in the second line of the output.
# </details>
#
# ## Scripts: horovodrun and mpirun
#
# A script does not need `rendezvous()`, because the launcher does the same work. You can take [scripts/10_pytorch.py](scripts/10_pytorch.py) and
# [scripts/10_tensorflow.py](scripts/10_tensorflow.py) to any cluster. The latter contains both the custom loop and the Keras version.
#
# `horovodrun` starts processes on other nodes by ssh, whereas `mpirun` does so in MPI's own way. Inside a Slurm job, `mpirun` uses Slurm
# ([scripts/10_horovod.sbatch](scripts/10_horovod.sbatch)). The first lines of output may take a minute to appear, because each process imports its framework.
#
# <details><summary>MPICH and Open MPI</summary>
#
# Horovod was built here with both Gloo and MPI. The MPI implementation is MPICH, whose `mpirun` takes `-hosts a:2,b:2` and `-ppn 2`. Open MPI, which Horovod's
# own documents use, takes `-H a:2,b:2` and `--map-by ppr:2:node` instead.
# </details>

# %%
run = cluster.launch("scripts/10_pytorch.py", with_="horovodrun", timeout_s=300)

# %%
run = cluster.launch("scripts/10_tensorflow.py", with_="mpirun", nodes=1, ranks_per_node=2,
                     timeout_s=300)

# %% [markdown]
# ## The table

# %%
systems = [system for unit, system, _ in track.SYSTEMS if unit == "10"]
print(track.table("10", {system: max(one[system] for one in cluster.pull("far"))
                         for system in systems}))

# %% [markdown]
# ## From Horovod to DistributedDataParallel, line by line
#
# If you encounter Horovod today, you probably have a script to port. Horovod wraps the *optimiser*, whereas DDP (unit 06) wraps the *module*, so a few lines
# move.
#
# | Horovod | PyTorch's own |
# |---|---|
# | `horovodrun -np 4 python train.py` | `torchrun --nproc-per-node 4 train.py` |
# | `hvd.init()`, `hvd.shutdown()` | `dist.init_process_group("nccl")` (`"gloo"` on CPUs), `dist.destroy_process_group()` |
# | `hvd.rank()`, `hvd.size()` | `dist.get_rank()`, `dist.get_world_size()` |
# | `hvd.local_rank()` | `int(os.environ["LOCAL_RANK"])` |
# | `hvd.broadcast_parameters(model.state_dict(), 0)` | `model = DistributedDataParallel(model)`: its constructor sends rank 0's parameters and buffers |
# | `hvd.DistributedOptimizer(optimiser, ...)` | the plain optimiser; the wrapped module all-reduces the gradients |
# | `op=hvd.Average`, Horovod's default | the same |
# | `op=hvd.Sum` | multiply the loss by `dist.get_world_size()`, since DDP always averages |
# | `hvd.broadcast_optimizer_state(optimiser, 0)` | nothing in DDP; every rank loads the checkpoint |
# | `hvd.broadcast_object(epoch, 0)` | `box = [epoch]`, `dist.broadcast_object_list(box, src=0)`, then `box[0]` |
# | `hvd.allreduce(loss)`, a new tensor with the mean | `dist.all_reduce(loss)`, in place, the sum; divide it by the number of ranks |
# | `optimiser.synchronize()` before clipping | nothing; after `backward()` the gradients are averaged |
# | `backward_passes_per_step=k` | `with model.no_sync():` for the first k - 1 micro-batches |
# | `compression=hvd.Compression.fp16` | `model.register_comm_hook(None, fp16_compress_hook)` |
# | `hvd.join()` | `with model.join():` around the loop; it answers only DDP's messages, so the loop may contain no other collectives |
# | `model.state_dict()` for the checkpoint | `model.module.state_dict()`; otherwise all names begin with `module.` |
# | `hvd.elastic.run` | `torchrun --nnodes 2:4 --max-restarts 3 --rdzv-backend c10d --rdzv-endpoint HOST:PORT train.py` and a checkpoint: all processes start again (unit 18) |
#
# [scripts/10_ddp.py](scripts/10_ddp.py) is the PyTorch script, ported with this table. Compare the two files.

# %%
run = cluster.launch("scripts/10_ddp.py", with_="torchrun", timeout_s=300)

# %% [markdown]
# ## Horovod today
#
# Horovod began at Uber in 2017, with ring all-reduce for TensorFlow at a time when TensorFlow itself had parameter servers. Later, the frameworks learned to do
# the same.
#
# <details><summary>How well it scales</summary>
#
# Sergeev and Del Balso (2018) report 88 % scaling efficiency for Inception V3 and ResNet-101 on 128 GPUs over TCP, and more than 90 % with RDMA. Horovod's
# README reports 90 % for the same two networks on 128 servers with 4 GPUs each, but 68 % for VGG-16, whose gradients have several times as many bytes (unit
# 05).
# </details>
#
# | you use | today's way to do the same |
# |---|---|
# | PyTorch | `DistributedDataParallel` (unit 06), FSDP (unit 16) |
# | TensorFlow | `MirroredStrategy`, with Keras 2 or 3; `MultiWorkerMirroredStrategy`, whose `fit` needs Keras 2 (units 02, 07) |
#
# The last release is 0.28.1, from June 2023, and a C++ extension without releases gets no security fixes. Lightning removed its Horovod strategy in December
# 2022. Ray's new Train removed Horovod in 2025, because it had not worked with PyTorch versions after 2.3, was hardly used, and seemed unmaintained. This
# course builds Horovod with a few changed lines in Horovod's build files. This is enough for a course, but not for a new project.
#
# **Use it** where it already works, for example on a cluster with MPI or in old scripts. **Do not use it** for a new project, with Keras 3, or where the
# model does not fit on one device.
#
# **What it costs.** Every rank has the whole model. In each step, after a negotiation, each rank sends $2 (p - 1)/p$ times the bytes of the gradients (unit
# 04). Horovod's own threads keep part of a core busy.
#
# **Why learn it?** Every data-parallel system needs the four edits (one start, summed gradients, own rows, and one writer). DDP's constructor makes the first
# two, and you make the others. In Horovod, you see all four.
#
# **The three most common mistakes** are a broadcast that omits something (the optimiser's state or the buffers) or is in the wrong order, a Horovod call behind
# `if hvd.rank() == 0`, and rank 0's own loss in the log, mistaken for the loss of all ranks. The lab contains all of them.
#
# ## What has aged
#
# <details><summary>The slides and the article that this unit follows are from 2018 and 2019</summary>
#
#
# | they say | today |
# |---|---|
# | Horovod works with sessions only; eager mode comes with a pull request, as `hvd.bcast` | The pull request was merged, as `broadcast_variables` and `DistributedGradientTape`. Sessions disappeared with TensorFlow 1 |
# | `BroadcastGlobalVariablesHook(0)` with Estimator or `MonitoredTrainingSession` | This no longer exists, because `tf.estimator` left TensorFlow in 2.16. Use `broadcast_variables` or the callback |
# | `config.gpu_options.visible_device_list = str(hvd.local_rank())` | Use `tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")`. The rule, one process for each GPU, still holds |
# | `import horovod.keras` with `keras` | `horovod.tensorflow.keras` with `tf_keras` |
# | Keras has no distributed training of its own, so use Horovod | `tf.distribute` works with Keras 2 and, except for `fit` on several workers, with Keras 3. `keras.distribution` is for Keras 3 on JAX |
# | only rank 0 has a `model_dir`; only rank 0 has `ModelCheckpoint` | This still holds (see *Keras: callbacks*) |
# | number of epochs inversely proportional to the number of processes, rate proportional to it | Change the rate if the batch grows, and the epochs only if each rank goes through all the data |
# | start with `mpirun` | This still holds. `horovodrun` was added later and works without MPI, too |
#
# </details>
#
# ## Summary
#
# * `horovodrun` gives each process its number and a meeting place. Without them, every process is rank 0 of 1.
# * With four edits (one start, summed gradients, own rows, and one writer), PyTorch, TensorFlow and Keras reach a single process's weights to within 1e-12.
# * Missing edits show up as ranks that start apart, ranks that drift apart, rows computed several times, or several writers.
# * If the batch grows with the number of ranks, multiply the learning rate by that number, but keep the number of epochs.
# * The timeline shows the negotiation, the fusion buffer and the all-reduce. Small tensors are sent together. Compression halves the bytes but loses digits in
#   each addition.
# * Test a step in both eager and graph mode, because a graph runs Python code only while it is traced.
# * Today, DDP, FSDP and `tf.distribute` have replaced Horovod. You can port a script line by line, and the four edits remain.
#
# **Now the lab:** you find bugs by their symptoms and repair them. So far, every rank has held the whole model (data parallelism). Unit 11 begins model
# parallelism, in which the model itself is spread over the ranks, and activations travel within every step. Unit 17 continues with large batches.
#
# **References.** A. Sergeev, M. Del Balso 2018, *Horovod: fast and easy distributed deep learning in TensorFlow*,
# [arXiv 1802.05799](https://arxiv.org/abs/1802.05799). P. Goyal et al. 2017, *Accurate, Large Minibatch SGD*,
# [arXiv 1706.02677](https://arxiv.org/abs/1706.02677). S. Maleki et al. 2020, *Scaling Distributed Training with Adaptive Summation*,
# [arXiv 2006.02924](https://arxiv.org/abs/2006.02924). Eager mode: [pull request 670](https://github.com/horovod/horovod/pull/670). On its state:
# [release 0.28.1](https://github.com/horovod/horovod/releases/tag/v0.28.1), [Lightning 16150](https://github.com/Lightning-AI/pytorch-lightning/pull/16150),
# [Ray 49454](https://github.com/ray-project/ray/issues/49454).

# %%
cluster.stop()
