# %% [markdown] unit={"minutes": 40, "ranks": 6, "framework": "torch, tensorflow", "title": "Parameter servers"}
# # 08 Parameter servers
#
# With parameter servers, some processes store the weights while others compute gradients. The first large deep networks were trained in this way (Dean et al.
# 2012), and models whose embedding tables do not fit on any single machine still are today. At the end, you can
#
# * write a parameter server from `send` and `recv`, with push and pull, in a synchronous and an asynchronous version.
# * explain which of the two versions ends with the same weights as a single process, and why the other does not.
# * predict the bytes on a server's link, and explain when more servers help and when they do not.
# * split variables so that no server stores more than its share.
# * train with TensorFlow's `ParameterServerStrategy`, lose a worker, and continue.
# * explain what became of `tf.train.Server`, `RunConfig` and `train_and_evaluate`.
#
# **Before:** unit 01 (unit 04 helps). **Minutes:** 40 · **Ranks:** 6, and TensorFlow's own processes.

# %% [markdown]
# ## Roles
#
# | role | what it does |
# |---|---|
# | **server** (`ps`) | stores the newest weights, or a part of them; receives gradients, changes the weights, and sends them out |
# | **worker** | has a part of the data; **pulls** weights, computes a gradient, and **pushes** it |
# | **chief**, formerly called master | in old systems, a worker that also starts, saves and logs; in TensorFlow today, the process that has the program and gives work to the others |
#
# All processes run one script, which branches by role, and our cells do the same. Of the six ranks, 0 and 1 are servers, and 2 to 5 are workers.
#
# A server keeps its weights in CPU memory, and it must accept a message from whichever worker sends first. Since NCCL has no such receive, all pushes and pulls
# use a gloo group, `wires`.

# %% tags=["setup"]
from manyhands import Cluster, predict, settle, track

cluster = Cluster(nodes=1, ranks_per_node=6, framework="torch")

# %% tags=["setup"]
# %%px --setup
import os

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from manyhands import track
from manyhands.data import shard
from manyhands.ledger import Ledger

if not dist.is_initialized():  # so that this cell can be run twice
    dist.init_process_group(os.environ["MANYHANDS_BACKEND"])
# workers compute on this device
rank, device = dist.get_rank(), torch.device(os.environ["MANYHANDS_DEVICE"])
wires = dist.new_group(backend="gloo")
groups = {p: dist.new_group(range(2, 2 + p)) for p in (2, 3, 4)}  # contain only workers
far = behind = 0.0  # distances from a single process, which the workers fill in

# %% [markdown]
# ## Push and pull
#
# We begin with whole numbers, so that you can check the sums yourself. Server 0 keeps two weights, 100 and 200. Each worker pushes its rank as the gradient of
# both weights. The server receives all pushes, subtracts them from the weights, and sends the weights back.
#
# **Predict.** Which weights does worker 2 have at the end, and which does worker 5 have?

# %%
# Run this cell to make your prediction.
predict("08-pull",
        "Workers 2 to 5 push their rank to a weight of 100. What does worker 2 pull?")
predict("08-pull-5",
        "Workers 2 to 5 push their rank to a weight of 100. What does worker 5 pull?")

# %%
# %%px
w = torch.tensor([100.0, 200.0]) if rank == 0 else torch.zeros(2)
if rank == 0:
    for worker in (2, 3, 4, 5):
        gradient = torch.empty(2)
        dist.recv(gradient, src=worker, group=wires)
        w -= gradient
    for worker in (2, 3, 4, 5):
        dist.send(w, dst=worker, group=wires)
elif rank > 1:
    dist.send(torch.full((2,), float(rank)), dst=0, group=wires)  # push
    dist.recv(w, src=0, group=wires)                              # pull
print(w.tolist())

# %%
# Run this cell to compare your prediction with the outcome.
settle("08-pull", lambda: cluster.pull("w.tolist()")[2][0])
settle("08-pull-5", lambda: cluster.pull("w.tolist()")[5][0])

# %% [markdown]
# All workers have the same weights, namely 100 - (2 + 3 + 4 + 5) and 200 - (2 + 3 + 4 + 5). The server is **synchronous**, because it waited for all four
# pushes before it answered. Rank 1 had nothing to do.
#
# ## A synchronous server
#
# We now train the network of this track, which has 2410 weights, for 60 steps of 250 rows of digits (`manyhands.track`). All weights are laid end to end in one
# vector, and a server keeps a slice of this vector. If there are several servers, a worker splits its gradient into slices, one for each server.

# %% tags=["setup"]
# %%px --setup
def received(like, src):
    came = torch.empty_like(like)
    dist.recv(came, src=src, group=wires)
    return came

def serve(w, workers, steps):
    """Run a synchronous server. It keeps w, and it answers no worker before all of them
    have pushed."""
    for _ in range(steps):
        total = sum(received(w, worker) for worker in workers)
        w -= track.RATE * (total + track.DECAY * w)  # the weight decay, once in a step
        for worker in workers:
            dist.send(w, dst=worker, group=wires)

# %% tags=["setup"]
# %%px --setup
x, y = (torch.from_numpy(array).to(device) for array in track.data())

def gradient_of(model, batch, mine):
    """Return the gradient of this worker's part of the mean loss, as one vector in CPU
    memory."""
    loss = (cross_entropy(model(x[batch][mine]), y[batch][mine], reduction="sum")
            / track.ROWS)
    return parameters_to_vector(torch.autograd.grad(loss, list(model.parameters()))).cpu()

def work(servers, workers, cuts, steps):
    """Run a worker, which computes a gradient, pushes and pulls in each step."""
    model, mine = (track.network(device), shard(track.ROWS, workers.index(rank),
                                                len(workers)))
    for step in range(steps):
        slices = gradient_of(model, track.rows(step), mine).split(cuts)
        for server, part in zip(servers, slices):
            dist.send(part, dst=server, group=wires)
        pulled = [received(part, server) for server, part in zip(servers, slices)]
        vector_to_parameters(torch.cat(pulled).to(device), model.parameters())
    return model

# %% [markdown]
# `cuts` lists how many weights each server keeps. With one branch for each role, the program can train.
#
# **Predict.** After 60 steps, do four workers and one server have the same weights as a single process? Do the weights agree to the last bit?

# %%
# Run this cell to make your prediction.
predict("08-sync", "Does a synchronous server give the weights of a single process?",
        ["to the last bit", "up to rounding", "no"])

# %% tags=["setup"]
# %%px --setup
def train(servers, workers, cuts, serve=serve, steps=track.STEPS):
    """Run this rank in its role. All ranks call this, and a worker returns its model."""
    if rank in servers:
        slices = parameters_to_vector(track.network().parameters()).detach().split(cuts)
        serve(slices[servers.index(rank)].clone(), workers, steps)
    elif rank in workers:
        return work(servers, workers, cuts, steps)

# %%
# %%px
SIZE, FOUR = 2410, [2, 3, 4, 5]
model = train([0], FOUR, [SIZE])
if rank in FOUR:
    far = track.distance(model.parameters(), track.one_process()[0])
    print("same weights as one process, to 1e-12:", far < 1e-12)

# %%
# Run this cell to compare your prediction with the outcome.
def same():
    furthest = max(cluster.pull("far if rank in FOUR else 0.0"))
    return "no" if furthest > 1e-12 else "up to rounding" if furthest else "to the last bit"

settle("08-sync", same)

# %% [markdown]
# <details><summary>Why?</summary>
#
# The server adds up four parts of the mean and takes one step, which is the same step as for the whole batch. Only the order of the additions differs, so only
# the last digits of the weights differ (unit 01). The workers agree with each other to the last bit because they have all copied the same weights, and no
# worker ever changes a weight itself.
# </details>
#
# The penalty belongs to no row and to no worker, so the server adds it once per step. **Mistake 1** is to put the penalty into each worker's loss. Four
# workers then apply four times the decay without an error.
#
# ## The server's link
#
# Every worker pushes all gradients to the server and pulls all weights from it, and all these bytes cross the server's one link. With several servers, each
# server keeps a part of the weights, so the bytes are spread over their links.
#
# **Predict.** Two workers train with one server, then with two, and then with four. How does the number of bytes on the busiest link change from two servers to
# four?

# %%
# Run this cell to make your prediction.
predict("08-four-servers",
        "With two workers and four servers instead of two, the busiest link carries ...",
        ["half as much", "a little less", "just as much"])

# %% tags=["setup"]
# %%px --setup
def busiest_link(call):
    """Return the most bytes that any rank sent or received in this call, in units of all
    weights."""
    with Ledger() as ledger:
        call()
    return (max(max(each["bytes_sent"], each["bytes_received"])
                for each in ledger.gather().ranks) / (8 * SIZE))

def all_reduce(p):
    if rank in range(2, 2 + p):
        dist.all_reduce(torch.ones(SIZE, dtype=torch.float64, device=device),
                        group=groups[p])

# %%
# %%px
def step_of(servers, p):
    cuts = [SIZE // len(servers) + (i < SIZE % len(servers)) for i in range(len(servers))]
    train(servers, list(range(6 - p, 6)), cuts, steps=1)

links = {"1 server": {p: busiest_link(lambda: step_of([0], p)) for p in (2, 3, 4)},
         "2 servers": {p: busiest_link(lambda: step_of([0, 1], p)) for p in (2, 3, 4)},
         "w servers": {p: busiest_link(lambda: step_of(list(range(p)), p)) for p in (2, 3)},
         "all-reduce": {p: busiest_link(lambda: all_reduce(p)) for p in (2, 3, 4)}}
for_two = {s: busiest_link(lambda: step_of(list(range(s)), 2)) for s in (1, 2, 4)}

# %%
from manyhands.plots.collectives import busiest, busiest_table

links = cluster.pull("links")[0]
formulas = {"1 server": lambda p: p, "2 servers": lambda p: max(p / 2, 1),
            "w servers": lambda p: 1, "all-reduce": lambda p: 2 * (p - 1) / p}
print("bytes on the busiest link, in one direction; unit: all weights. w workers; measured "
      "/ formula")
print(busiest_table(links, formulas, more=(16, 64)).replace("ranks", "    w", 1))
words = {"x": "workers w", "y": "busiest link; unit: all weights", "formula": ""}
busiest(links, formulas, words=words, title="bytes on the busiest link: parameter servers "
                                            "and all-reduce")

# %%
for_two = cluster.pull("for_two")[0]
print("2 workers, bytes on the busiest link by number of servers:",
      ", ".join(f"{s}: {part:.2f}" for s, part in for_two.items()))

# %%
# Run this cell to compare your prediction with the outcome.
def compared():
    ratio = for_two[4] / for_two[2]
    return ("just as much" if ratio > 0.99 else "a little less" if ratio > 0.6
            else "half as much")

settle("08-four-servers", compared)

# %% [markdown]
# <details><summary>How to read it</summary>
#
# The lines follow formulas, and the marks are what the ledger recorded. With $w$ workers and $S$ bytes of weights, one server's link carries $w S$ in each
# direction, so every additional worker slows down all of them. Two servers halve the slope, but the line stays straight. With as many servers as workers, every
# link carries $S$ in each direction, however many workers there are. More servers than that do not help, because each worker's own link still carries all of
# $S$. The ring carries nearly $2S$ in each direction, but it uses both directions at the same time. Our workers pull only after they have pushed, so servers
# and ring take about the same time.
#
# That the times are similar is no coincidence. If you put a server on each worker's machine, a push is a reduce-scatter and a pull is an all-gather. Together,
# push and pull are an all-reduce.
# </details>
#
# <details><summary>What if push and pull overlap?</summary>
#
# Push and pull overlap if the weights are sent in parts. While one part is pushed, the previous part is pulled, so both directions of each link are busy. With
# $n$ workers, $k$ servers on *separate* machines and links of $B$ bytes per second, an exchange of $S$ bytes takes about $\max(S / B,\; n S / (k B))$ seconds.
# With as many servers as workers, this is half of the ring's time. BytePS (Jiang et al. 2020) is built on this idea, and its servers run mainly on spare
# machines without GPUs.
# </details>
#
# The next cell computes the times in seconds with the model of unit 05 (`manyhands.simulate`), for a pull after the push, 100 MB of gradients, links of 10
# Gbit/s and a latency of 50 microseconds. With overlap, the servers' times would be about half as long.

# %%
from manyhands.simulate import parameter_server_s, ring_s

link = {"latency_s": 50e-6, "bytes_per_s": 10e9 / 8}
print("workers   1 server   4 servers   w servers   ring     seconds for an exchange")
for w in (4, 16, 64):
    times = [parameter_server_s(w, 100e6, servers=s, **link) for s in (1, 4, w)]
    print(f"{w:>7}{times[0]:>11.2f}{times[1]:>12.2f}{times[2]:>12.2f}"
          f"{ring_s(w, 100e6, **link):>7.2f}")

# %% [markdown]
# ## Sharding: by bytes, not by number
#
# Which server should keep which variable? Our network has four variables, which hold 2048 weights, 32 biases, 320 weights and 10 biases, respectively. If the
# variables are assigned to two servers in turn, one server keeps the first and the third.
#
# **Predict.** By what factor do the two servers reduce the bytes on the busiest link, compared with one server?

# %%
# Run this cell to make your prediction.
predict("08-dealt",
        "Two servers get variables in turn. By what factor does the busiest link fall?",
        unit="times", within=0.1)

# %%
# %%px
# uses a different order of the vector, because only bytes count here
dealt = busiest_link(lambda: train([0, 1], FOUR, [2048 + 320, 32 + 10], steps=1))
layers = busiest_link(lambda: train([0, 1], FOUR, [2048 + 32, 320 + 10], steps=1))
halves = busiest_link(lambda: train([0, 1], FOUR, [1205, 1205], steps=1))
if rank == 0:
    print(f"4 workers; one server: {links['1 server'][4]:.2f}")
    print(f"two, variables dealt in turn: {dealt:.2f}; a layer for each: {layers:.2f}; cut "
          f"in halves: {halves:.2f}")

# %%
# Run this cell to compare your prediction with the outcome.
settle("08-dealt", lambda: links["1 server"][4] / cluster.pull("dealt")[0])

# %% [markdown]
# **Mistake 2 is to assign variables by number instead of bytes.** The largest variable dominates, so it must be split, and each server then keeps some of its
# *rows*. Recommender systems still use parameter servers, because their models consist mostly of embedding tables. A worker pushes and pulls only the rows that
# occur in its batch, whereas an all-reduce would have to send the whole table. Alternatively, the tables are split over the workers' own GPUs, and an
# all-to-all exchanges the rows (TorchRec), so that servers and workers are the same processes.
#
# Some rows of embedding tables are *hot*, because a few words, products or people occur in most batches. Here, four workers draw 512 ids each, most of them
# small, from a table of 8192 rows on four servers:

# %%
import numpy as np

draw = np.random.default_rng(0)
batches = (draw.zipf(1.2, (4, 512)) - 1) % 8192
once = np.concatenate([np.unique(batch) for batch in batches])
for name, ids in (("each id", batches.ravel()), ("each id once a batch", once)):
    for rule, server in (("ranges of 2048 rows", ids // 2048), ("in turn", ids % 4)):
        print(f"{name:<20}, rows dealt {rule:<19}: pulled from the four servers",
              np.bincount(server, minlength=4).tolist())

# %% [markdown]
# A worker should therefore pull each row only once per batch, and add up the gradients of a row before it pushes their sum. In addition, rows should be
# distributed round-robin or by a hash of the id. Only the two measures together balance the servers. Hot rows can also be kept in a cache on each worker, where
# they become slightly stale (Miao et al. 2022).
#
# ## An asynchronous server
#
# Instead of waiting, an **asynchronous** server changes the weights at every push and answers immediately. Its code has one loop fewer:

# %% tags=["setup"]
# %%px --setup
def serve_asynchronously(w, workers, steps):
    """Change w at every push and answer immediately. The server takes the pushes in turn,
    so that every run is the same."""
    for _ in range(steps):
        for worker in workers:
            w -= track.RATE * (received(w, worker) + track.DECAY / len(workers) * w)
            dist.send(w, dst=worker, group=wires)

# %% [markdown]
# The workers' code does not change. Each push is a part of the mean and is applied with its part of the decay. Therefore, four pushes together make a step of
# about the same size as one synchronous step.
#
# **Predict.** Does training now end with the same weights as a single process? When the gradient of worker 5 arrives, with which weights was it computed?

# %%
# Run this cell to make your prediction.
predict("08-async",
        "Does an asynchronous server give the weights of a single process, to 1e-12?",
        ["yes", "no"])

# %%
# %%px
model = train([0], FOUR, [SIZE], serve=serve_asynchronously)
if rank in FOUR:
    behind = track.distance(model.parameters(), track.one_process()[0])
    print(f"largest difference from one process: {behind:.4f}")

# %%
# Run this cell to compare your prediction with the outcome.
settle("08-async", lambda: max(cluster.pull("behind if rank in FOUR else 0.0")) < 1e-12)

# %% [markdown]
# <details><summary>Why?</summary>
#
# When worker 5 pushes for the second time, workers 2, 3 and 4 have changed the weights since worker 5 pulled. The gradient of worker 5 belongs to weights that
# are three updates old, so it is **stale**, with a staleness of 3. The same holds for all other gradients except the first ones of workers 2, 3 and 4, whose
# weights are 0, 1 and 2 updates old, respectively. (The four printed numbers differ because each worker has pulled at a different moment, worker 5 last.) Here,
# staleness does little harm, but the weights differ from those of a single process. Unit 09 asks how stale a gradient may be.
# </details>
#
# **Mistake 3 is to answer too early.** A synchronous server that answers before all workers have pushed *is* an asynchronous one. There is no error and no
# hang, and the loss falls, but the weights match no reference.
#
# So far, we have received the pushes in turn, whereas a real server takes them as they arrive. Over gloo, `dist.recv` without `src` accepts a message from any
# rank and returns the rank of the sender. Here, worker 5 is slow, because it sleeps for 20 ms in each step.

# %% tags=["setup"]
# %%px --setup
import time

def serve_anyone(w, workers, steps):
    order.clear()
    gradient = torch.empty_like(w)
    for _ in range(steps * len(workers)):
        worker = dist.recv(gradient, group=wires)
        w -= track.RATE * (gradient + track.DECAY / len(workers) * w)
        order.append(worker)
        dist.send(w, dst=worker, group=wires)

# %% tags=["setup"]
# %%px --setup
def train_with_a_slow_worker(serve):
    global gradient_of
    usual = gradient_of
    if rank == 5:
        gradient_of = lambda *args: (time.sleep(0.02), usual(*args))[1]  # noqa: E731
    begin = time.perf_counter()
    train([0], FOUR, [SIZE], serve=serve, steps=30)
    gradient_of = usual
    return time.perf_counter() - begin

order = []

# %% tags=["measured"]
# %%px
waiting, running = train_with_a_slow_worker(serve), train_with_a_slow_worker(serve_anyone)
if rank == 0:
    print("of the first 60 pushes came from worker",
          {worker: order[:60].count(worker) for worker in FOUR})
if rank in (2, 5):
    print(f"worker {rank} had made its 30 steps after {waiting:.2f} s synchronously, "
          f"{running:.2f} s asynchronously")

# %% [markdown]
# With the synchronous server, all workers go at the pace of the slowest. With the asynchronous server, the others run ahead, and the slow worker's gradients
# arrive very stale. Your numbers will differ, as they do in every run. If you start asynchronous training again, it ends with different weights, and you can
# replay a run only if you have logged the order of pulls and pushes (unit 09).
#
# | | synchronous | asynchronous |
# |---|---|---|
# | weights | the same as in a single process | different in every run |
# | gradients | fresh | stale, by about the number of other workers |
# | a slow worker | all wait for it | the others continue |
# | a lost worker | all wait for it, unless the server goes on without it | the others continue |

# %% [markdown]
# > **On GPUs.** NCCL has no receive without `src` (`NotImplementedError`) and no tags, and when a `send` returns, its message has only been enqueued.
# > Therefore, a server that takes pushes as they arrive needs gloo, MPI or TCP, and CPU memory. The gradients are first copied from the GPU to the host (here
# > by `.cpu()`, which waits for the GPU, whereas BytePS copies and sends in a pipeline). If all workers wait for each other anyway, use the all-reduce between
# > GPUs instead, which moves no bytes through the host if the network can reach the GPUs directly.

# %% [markdown]
# ## TensorFlow's parameter servers
#
# [scripts/08_parameter_server.py](scripts/08_parameter_server.py) trains the same network with `ParameterServerStrategy`. It needs one chief, two workers, and
# one or two servers, each as a separate process that finds the others through `TF_CONFIG` (unit 07). Workers and servers run `tf.distribute.Server(...).join()`
# and wait for work. Only the **chief** has a program:
#
# ```python
# strategy = tf.distribute.ParameterServerStrategy(resolver)        # before any other operation
# coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
# with strategy.scope():
#     variable = tf.Variable(...)                                    # is stored on a server
# result = coordinator.schedule(function, args)                      # runs on some worker; returns immediately
# coordinator.join()                                                 # waits for all that was scheduled
# ```
#
# You must pass a `tf.function`, or a concrete function of one, to `schedule`, because such a function is traced to a graph, and only a graph can be run by a
# worker. If the function computes a gradient *and* changes the variables, training is asynchronous, which is what this strategy is made for. Synchronous
# training is also easy to build. For this purpose, the functions only return gradients, and the chief waits for all of them (`coordinator.fetch`), adds them
# up, and changes the variables. We begin with one server:

# %%
import tempfile

folder = tempfile.TemporaryDirectory()  # the chief saves the weights there
# shows nothing for up to a minute, because new processes import TensorFlow
one = cluster.launch("scripts/08_parameter_server.py", folder.name, "--fit",
                     with_="tf_config", tasks={"chief": 1, "worker": 2, "ps": 1},
                     timeout_s=300)

# %% [markdown]
# The server kept all 19,280 bytes of weights. `Model.fit` and `Model.evaluate` work too (with Keras 2), but training is then asynchronous, with each step on
# one of the workers.
#
# Now we use two servers. TensorFlow assigns variables to them in turn, whatever their size, so mistake 2 is built in. Server 0 would keep the matrices (18,944
# bytes), and server 1 the biases (336 bytes), as a run without `--cut` shows. A `variable_partitioner` helps, for example `MinSizePartitioner`, which splits
# variables by rows, here into parts of at least 4096 bytes. In addition, the script kills a worker in the middle of asynchronous training.
#
# **Predict.** How many of the 120 updates are made if one of two workers dies after 60 updates?

# %%
# Run this cell to make your prediction.
predict("08-updates",
        "A worker dies after 60 of 120 updates. How many are made in all?", unit="updates")

# %%
two = cluster.launch("scripts/08_parameter_server.py", folder.name, "--cut", "--kill",
                     with_="tf_config", tasks={"chief": 1, "worker": 2, "ps": 2},
                     timeout_s=300)

# %%
# Run this cell to compare your prediction with the outcome.
import re

def updates():
    return int(re.search(r"(\d+) updates; loss", "".join(two.output.values()))[1])

settle("08-updates", updates)

# %% [markdown]
# <details><summary>Why?</summary>
#
# All 120 updates were made, because the coordinator gave the lost worker's work to the other worker. The coordinator promises that every scheduled function
# runs *at least* once. If the worker had died between its update and its report, that update would have been made twice. (The script waits until no call is
# running before it kills the worker, so that its numbers are the same in every run.)
# </details>
#
# A lost **server** is a different matter, because its part of the weights is lost with it. In this case, `schedule` or `join` raises an error. You, or the
# cluster manager, must start the server and the chief again, and the chief's program loads the last checkpoint, which the chief must have saved. If the chief
# is lost, training stops until the chief is started again and loads a checkpoint.

# %%
with np.load(f"{folder.name}/weights.npz") as saved:
    theirs = track.distance([saved[name] for name in saved], track.one_process()[0])
folder.cleanup()
print(track.table("08", {"parameter server by hand, synchronous": max(cluster.pull("far")),
                         "parameter server by hand, asynchronous": cluster.pull("behind")[
                             -1],
                         "ParameterServerStrategy, synchronous": theirs}))

# %% [markdown]
# ## What became of the old names
#
# Old code and talks show parameter servers as they were in TensorFlow 1. Which of the old names still exist?

# %%
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
from manyhands.quiet import quietly

with quietly():
    import tensorflow as tf

for name in ("train.Server", "estimator", "contrib", "compat.v1.train.Server",
             "compat.v1.train.replica_device_setter", "distribute.Server",
             "distribute.ParameterServerStrategy"):
    found = tf
    for part in name.split("."):
        found = getattr(found, part, None)
    print(f"tf.{name:<40}", "is gone" if found is None else "is here")
print("tf.compat.v1.train.Server is tf.distribute.Server:",
      tf.compat.v1.train.Server is tf.distribute.Server)

# %%
cluster_of_2018 = tf.train.ClusterSpec({"master": ["127.0.0.1:1"],
                                        "worker": ["127.0.0.1:2"], "ps": ["127.0.0.1:3"]})
try:
    tf.distribute.ParameterServerStrategy(
        tf.distribute.cluster_resolver.SimpleClusterResolver(cluster_of_2018,
                                                             rpc_layer="grpc"))
except ValueError as error:
    print(str(error).split(".")[0])

# %% [markdown]
# <details><summary>What each piece has become, and what else has aged</summary>
#
# Most of the old pieces have a successor that runs in the script above, and the table marks the others.
#
# | then | what it did | today, and where it runs in [the script](scripts/08_parameter_server.py) |
# |---|---|---|
# | `TF_CONFIG` with a `master` | gave the cluster and the process's own task | the same, with a `chief`: `TFConfigClusterResolver`, in `main` |
# | `tf.train.Server(...)`, `server.join()` on the servers | waited for operations | `tf.distribute.Server(...).join()`, on servers **and workers**: `serve` |
# | the same program on every worker, each with a separate session | every worker ran its own loop | one program, on the chief; workers get functions: `coordinator.schedule` |
# | `tf.train.replica_device_setter` | put variables on servers, in turn | `strategy.scope()`: `make_variables` |
# | `tf.fixed_size_partitioner` and others | split variables | `tf.distribute.experimental.partitioners`, passed to the strategy |
# | `SyncReplicasOptimizer` | waited for gradients, and dropped late ones | nothing built in; `fetch`, add up, update: `train_synchronously` |
# | `tf.estimator.DNNClassifier(config=RunConfig(...))` | a model, and the cluster from `TF_CONFIG` | a Keras model created in the scope; the strategy has read the cluster: `fit` |
# | `tf.estimator.train_and_evaluate` | trained by parameter servers; an `evaluator` task evaluated checkpoints | `Model.fit` and `Model.evaluate`, with Keras 2: `fit`; for an evaluation next to the training run, `tf.keras.utils.SidecarEvaluator` (not run here) |
# | `tf.contrib.distribute.ParameterServerStrategy` | served Estimator | `tf.distribute.ParameterServerStrategy`, which has the same name but a different programming model |
# | `MonitoredTrainingSession`, its hooks | started, saved and recovered training | `tf.train.Checkpoint`, `tf.train.CheckpointManager` on the chief (not run here) |
#
# Four older statements, in our words, have aged as follows:
#
# * *"The master is about the same as a worker, and also saves."* In TensorFlow today, the chief computes no gradients but gives work to the workers.
# * *"All nodes run the same script, which branches by its role."* This is still true, but only one branch contains a program.
# * *"Synchronous updates train well, asynchronous ones do not mind lost or slow workers."* This is still true. Today, however, data-parallel training is nearly
#   always synchronous, by all-reduce.
# * *"Parameter server, or peer to peer."* With a server on each worker's machine, the two move the same bytes, and they differ only in which process adds up.
# </details>

# %% [markdown]
# ## When, and when not
#
# | use it | do not use it |
# |---|---|
# | embedding tables fit on no worker, and each batch touches a few rows | a dense model fits on each device; use an all-reduce (unit 06) |
# | workers come and go, or differ much in speed | equal devices are on a fast network |
# | spare machines have a good network and no GPU; with overlapping push and pull, they beat a ring by up to a factor of two | servers would be taken from the workers |
# | stale gradients do no harm | you must be able to repeat a run |
#
# The people who make these libraries are stricter than the table above. Keras's author calls TensorFlow's `ParameterServerStrategy` "basically never the right
# idea, even if you have multiple machines", and for one model on many machines with GPUs, he recommends Keras 3 on JAX
# ([Keras issue 20585](https://github.com/keras-team/keras/issues/20585), 2024). Large embedding tables (the first row) remain the usual reason for servers.
#
# **What it costs.** For w workers and $S$ bytes of weights, the link of each of s servers carries $wS/s$ bytes in each direction, and each worker's link
# carries $S$. You also need the servers' memory. Since a lost server takes its part of the weights with it, keep checkpoints, or replicas on other servers, as
# Li et al. (2014) do.

# %% [markdown]
# ## Summary
#
# * *A push* sends gradients to the processes that store the weights, and *a pull* fetches the weights from them. A synchronous server receives the pushes of
#   all workers before it answers any of them, whereas an asynchronous server answers each push immediately.
# * *A synchronous server* ends with the same weights as a single process, up to rounding. An asynchronous one uses stale gradients.
# * With w workers and $S$ bytes of weights, *the link* of one server carries $wS$ in each direction, and the link of each of s servers carries $wS/s$. More
#   than w servers do not help, because a worker's own link carries $S$. Overlapping push and pull halves the time.
# * *Variables are distributed* by bytes and not by number, and large variables are split by rows. Hot rows are pulled once per batch, and rows are assigned
#   to servers in turn.
# * *In TensorFlow*, the chief schedules functions on workers, and servers store the variables. If a worker is lost, a different worker takes over its work.
# * *The old names* and their successors are in the table above.
# * *Three mistakes* are the decay on each worker, variables assigned by number, and an answer before all workers have pushed.
#
# **Now the lab:** you write sharded servers under a byte limit for each link, and train with TensorFlow's servers. After that, unit 09 covers staleness, and
# unit 06 shows today's usual method.
#
# **References.** J. Dean et al. 2012, *Large scale distributed deep networks*, NIPS,
# [paper](https://papers.nips.cc/paper/4687-large-scale-distributed-deep-networks).
# M. Li et al. 2014, *Scaling distributed machine learning with the parameter server*, OSDI,
# [paper](https://www.usenix.org/conference/osdi14/technical-sessions/presentation/li_mu).
# Y. Jiang et al. 2020, *A unified architecture for accelerating distributed DNN training in heterogeneous GPU/CPU clusters*, OSDI,
# [paper](https://www.usenix.org/conference/osdi20/presentation/jiang).
# X. Miao et al. 2022, *HET: scaling out huge embedding model training via cache-enabled distributed framework*, VLDB,
# [arXiv 2112.07221](https://arxiv.org/abs/2112.07221).
# TensorFlow, [Parameter server training](https://www.tensorflow.org/tutorials/distribute/parameter_server_training).

# %%
cluster.stop()
