# %% [markdown] unit={"minutes": 40, "ranks": 6, "framework": "torch, tensorflow", "title": "Parameter servers"}
# # 08 Parameter servers
#
# Some processes keep the weights, others compute gradients. So the first large deep networks were trained (Dean et al. 2012), and so are models whose tables fit on no single machine.
# At the end you can
#
# * write a parameter server from `send` and `recv`: push and pull, synchronous and asynchronous;
# * say which of the two ends with the weights of one process, and why the other does not;
# * predict the bytes on a server's link, and say when more servers help and when they do not;
# * cut variables such that no server gets more than its part;
# * train with TensorFlow's `ParameterServerStrategy`, lose a worker, and go on;
# * say what became of `tf.train.Server`, `RunConfig` and `train_and_evaluate`.
#
# **Before:** unit 01. Unit 04 helps. **Minutes:** 40. **Ranks:** 6, and TensorFlow's own processes.

# %% [markdown]
# ## Roles
#
# | role | what it does |
# |---|---|
# | **server** (`ps`) | keeps the newest weights, or a part of them; takes gradients in, changes the weights, hands them out |
# | **worker** | has a part of the data; **pulls** weights, computes a gradient, **pushes** it |
# | **chief**, once called master | in old systems a worker that also starts, saves and logs; in TensorFlow today the process that has the program, and gives the others work |
#
# All processes run one script, which branches by its role. So do our cells. Six ranks: 0 and 1 are servers, 2 to 5 are workers.
#
# A server keeps its weights in the memory of a CPU, and will take messages from whoever comes first. NCCL refuses that, so all pushes and pulls go over a group of gloo's, `wires`.

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
# workers compute on it
rank, device = dist.get_rank(), torch.device(os.environ["MANYHANDS_DEVICE"])
wires = dist.new_group(backend="gloo")
groups = {p: dist.new_group(range(2, 2 + p)) for p in (2, 3, 4)}  # of workers only
far = behind = 0.0  # distances from one process, which the workers will fill in

# %% [markdown]
# ## Push and pull
#
# Whole numbers first, so that we can add up ourselves. Server 0 keeps two weights, 100 and 200. Each worker pushes its own rank as the gradient of both. The server takes in
# all pushes, subtracts them, and hands the weights out.
#
# **Predict.** What does worker 2 have at the end, and what has worker 5?

# %%
predict("08-pull",
        "Workers 2 to 5 push their rank to a weight of 100. What does worker 2 have?")
predict("08-pull-5",
        "Workers 2 to 5 push their rank to a weight of 100. What does worker 5 have?")

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
settle("08-pull", lambda: cluster.pull("w.tolist()")[2][0])
settle("08-pull-5", lambda: cluster.pull("w.tolist()")[5][0])

# %% [markdown]
# All workers have the same: 100 - (2 + 3 + 4 + 5) and 200 - (2 + 3 + 4 + 5). The server waited for all four pushes before it gave an answer. That makes it **synchronous**. Rank 1 had
# nothing to do.
#
# ## A synchronous server
#
# Now the network of this track: 2410 weights, 60 steps with 250 rows of digits (`manyhands.track`). We lay all weights end to end, in one vector; a server keeps a slice of it. With
# several servers a worker cuts its gradient in slices, one for each.

# %% tags=["setup"]
# %%px --setup
def received(like, src):
    came = torch.empty_like(like)
    dist.recv(came, src=src, group=wires)
    return came

def serve(w, workers, steps):
    """A synchronous server: it keeps w, and nobody gets an answer before all have
    pushed."""
    for _ in range(steps):
        total = sum(received(w, worker) for worker in workers)
        w -= track.RATE * (total + track.DECAY * w)  # the weight decay: once in a step
        for worker in workers:
            dist.send(w, dst=worker, group=wires)

# %% tags=["setup"]
# %%px --setup
x, y = (torch.from_numpy(array).to(device) for array in track.data())

def gradient_of(model, batch, mine):
    """The gradient of this worker's part of the mean loss, as one vector in the memory of
    the CPU."""
    loss = (cross_entropy(model(x[batch][mine]), y[batch][mine], reduction="sum")
            / track.ROWS)
    return parameters_to_vector(torch.autograd.grad(loss, list(model.parameters()))).cpu()

def work(servers, workers, cuts, steps):
    """A worker: gradient, push, pull, again and again."""
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
# `cuts` says how many weights each server keeps. One branch by role, and it trains.
#
# **Predict.** Four workers, one server, 60 steps. Are the weights those of one process? To the last bit?

# %%
predict("08-sync", "A synchronous server: are the weights those of one process?",
        ["to the last bit", "up to rounding", "no"])

# %% tags=["setup"]
# %%px --setup
def train(servers, workers, cuts, serve=serve, steps=track.STEPS):
    """Run by all ranks, each in its role. A worker gets its model back."""
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
def same():
    furthest = max(cluster.pull("far if rank in FOUR else 0.0"))
    return "no" if furthest > 1e-12 else "up to rounding" if furthest else "to the last bit"

settle("08-sync", same)

# %% [markdown]
# <details><summary>Why?</summary>
#
# The server adds up four parts of the mean, and takes one step: that is the step of the big batch. Only the order of the additions differs, so the last digits do (unit 01). The workers are equal to
# each other to the last bit: they have all copied the same weights. No worker ever changes a weight itself.
# </details>
#
# The penalty belongs to no row and to no worker: the server adds it, once in a step. **Mistake 1:** each worker has it in its own loss. Four workers, four times the decay, and no error.
#
# ## The server's link
#
# Every worker pushes all gradients to the server, and pulls all weights. All of it goes over the server's one link. With several servers, each keeps a part of the weights, so the bytes are spread over their links.
#
# **Predict.** Two workers train with one server, then with two and with four. What happens to the bytes on the busiest link of all, when there are four servers instead of two?

# %%
predict("08-four-servers",
        "Two workers, four servers instead of two: the busiest link of all carries ...",
        ["half as much", "a little less", "just as much"])

# %% tags=["setup"]
# %%px --setup
def busiest_link(call):
    """The most bytes that any rank has sent, or received, in this call: in units of all
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
def compared():
    ratio = for_two[4] / for_two[2]
    return ("just as much" if ratio > 0.99 else "a little less" if ratio > 0.6
            else "half as much")

settle("08-four-servers", compared)

# %% [markdown]
# <details><summary>How to read it</summary>
#
# Lines are formulas, marks are what the ledger saw. One server's link carries $w S$ each way for $w$ workers, so all get slower with each worker that joins. Two servers halve the slope, but they do not bend it. With as many servers as workers, every link
# carries $S$ each way, however many there are. More servers do not help then, because each worker's own link still carries all of $S$. The ring carries nearly $2S$ each way, but it uses both directions at the same time. Here the pull comes after the push, so in time the two are about equal.
#
# That is no accident. Put a server on each worker's machine: then a push is a reduce-scatter, and a pull is an all-gather. Together they are an all-reduce.
# </details>
#
# **Push and pull overlap** if the weights travel in parts: while one part is pushed, the part before it is pulled, and both directions of each link are busy. With $n$ workers, $k$ servers on
# *other* machines and links of $B$ bytes per second, all is done in about $\max(S / B,\; n S / (k B))$: with as many servers as workers, half of the ring's time. That is the point of BytePS (Jiang et al. 2020): its
# servers are, first of all, spare machines without GPUs.
#
# In seconds, by the model of unit 05 (`manyhands.simulate`), pull after push: 100 MB of gradients, links of 10 Gbit/s, 50 microseconds of latency. Overlapped, the servers' times would be about half.

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
# Which server keeps which variable? Ours has four: weights of 2048 numbers, biases of 32, weights of 320, biases of 10. Dealt to two servers like cards, one server gets the first and the third.
#
# **Predict.** How much do two servers help then, in place of one?

# %%
predict("08-dealt",
        "Two servers, variables dealt in turn: how many times less on the busiest link?",
        unit="times", within=0.1)

# %%
# %%px
# in another order of the vector: only bytes count here
dealt = busiest_link(lambda: train([0, 1], FOUR, [2048 + 320, 32 + 10], steps=1))
layers = busiest_link(lambda: train([0, 1], FOUR, [2048 + 32, 320 + 10], steps=1))
halves = busiest_link(lambda: train([0, 1], FOUR, [1205, 1205], steps=1))
if rank == 0:
    print(f"4 workers; one server: {links['1 server'][4]:.2f}")
    print(f"two, variables dealt in turn: {dealt:.2f}; a layer for each: {layers:.2f}; cut "
          f"in halves: {halves:.2f}")

# %%
settle("08-dealt", lambda: links["1 server"][4] / cluster.pull("dealt")[0])

# %% [markdown]
# **Mistake 2: variables dealt by number.** The largest decides. It must be cut: servers then keep *rows* of it. In recommenders the tables of embeddings are most of the model: for these
# parameter servers are still used. A worker then pushes and pulls only the rows that its batch has met, which an all-reduce of the whole table cannot do. Or the tables are cut over the workers' own GPUs, and the rows are
# exchanged by an all-to-all (TorchRec), so that servers and workers are the same processes.
#
# In such tables, some rows are *hot*, because a few words, products or people are in most batches. Four workers draw 512 ids each, from a table of 8192 rows on four servers, in which small ids are frequent:

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
# So a worker pulls each row once for a batch, and adds up the gradients of a row before it pushes them. Rows are distributed round-robin or by a hash of the id. Only both measures together balance the servers. Hot rows can also be kept in a cache on each worker, where they
# become a little stale (Miao et al. 2022).
#
# ## An asynchronous server
#
# Why wait? An **asynchronous** server changes the weights at every push, and answers at once. One loop less:

# %% tags=["setup"]
# %%px --setup
def serve_asynchronously(w, workers, steps):
    """Changes w at every push and answers at once. Takes the pushes in turn, so that every
    run is the same."""
    for _ in range(steps):
        for worker in workers:
            w -= track.RATE * (received(w, worker) + track.DECAY / len(workers) * w)
            dist.send(w, dst=worker, group=wires)

# %% [markdown]
# The workers cannot see the difference. Each push is a part of the mean, with its part of the decay: so four pushes together make a step of about the same length as before.
#
# **Predict.** Is the result that of one process now? Which weights was the gradient of worker 5 computed with, when it comes in?

# %%
predict("08-async", "An asynchronous server: is the result that of one process, to 1e-12?",
        ["yes", "no"])

# %%
# %%px
model = train([0], FOUR, [SIZE], serve=serve_asynchronously)
if rank in FOUR:
    behind = track.distance(model.parameters(), track.one_process()[0])
    print(f"largest difference from one process: {behind:.4f}")

# %%
settle("08-async", lambda: max(cluster.pull("behind if rank in FOUR else 0.0")) < 1e-12)

# %% [markdown]
# <details><summary>Why?</summary>
#
# When worker 5 pushes for the second time, workers 2, 3 and 4 have changed the weights since it pulled. Its gradient is for weights that are three updates old: it is **stale**, with staleness 3. So are all
# others, but the first ones of workers 2, 3 and 4: they are 0, 1 and 2 updates old. (The four numbers differ because each worker has pulled at another moment, worker 5 last.) Here this hardly hurts, but the weights are others. Unit 09 asks how stale a gradient may be.
# </details>
#
# **Mistake 3: an answer too early.** A synchronous server that answers before all have pushed *is* an asynchronous one. No error, no hang; a loss that falls; and weights that are those of nobody else.
#
# We have taken the pushes in turn. A real server takes them as they come: over gloo, `dist.recv` without `src` takes a message from anyone, and returns who it was. Worker 5 is slow here: it sleeps 20 ms in each step.

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
# Synchronously all go at the pace of the slowest. Asynchronously the others run ahead, and the slow worker's gradients come in very stale. Your numbers differ from these, and in every run: started again, an
# asynchronous training ends with other weights. Only who logs the order of pulls and pushes can replay it (unit 09).
#
# | | synchronous | asynchronous |
# |---|---|---|
# | weights | those of one process | other ones, in every run |
# | gradients | fresh | stale: by about the number of other workers |
# | a slow worker | all wait for it | the others go on |
# | a lost worker | all wait for it, unless the server counts without it | the others go on |

# %% [markdown]
# > **On GPUs.** NCCL has no receive from anyone (`NotImplementedError`), no tags, and a `send` that has returned is only enqueued: a server that takes pushes as they come needs
# > gloo, MPI or TCP, and CPU memory. The gradients go from the GPU to the host first (`.cpu()` here, which waits for the GPU; BytePS copies and sends in a pipeline).
# > And as soon as all workers wait for each other anyway, the all-reduce between GPUs is there, and moves no bytes through the host where the network can reach them.

# %% [markdown]
# ## TensorFlow's parameter servers
#
# [scripts/08_parameter_server.py](scripts/08_parameter_server.py) trains the same network with `ParameterServerStrategy`: one chief, two workers, one server or two, each a process of its own that finds
# the others through `TF_CONFIG` (unit 07). Workers and servers run `tf.distribute.Server(...).join()`: they wait for operations to run. Only the **chief** has a program:
#
# ```python
# strategy = tf.distribute.ParameterServerStrategy(resolver)        # before any other operation
# coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
# with strategy.scope():
#     variable = tf.Variable(...)                                    # lives on a server
# result = coordinator.schedule(function, args)                      # runs on some worker; returns at once
# coordinator.join()                                                 # all that was scheduled is done
# ```
#
# What `schedule` gets must be a `tf.function`, or a concrete function of one: it is traced to a graph, and that is what a worker can run. A function that computes a gradient *and* changes the variables makes an asynchronous training: that is what this strategy is made for. A synchronous one is easy to build: the functions only return gradients, and the
# chief waits for all of them (`coordinator.fetch`), adds up, and changes the variables. First with one server:

# %%
import tempfile

folder = tempfile.TemporaryDirectory()  # the chief leaves the weights there
# shows nothing for up to a minute: new processes import TensorFlow
one = cluster.launch("scripts/08_parameter_server.py", folder.name, "--fit",
                     with_="tf_config", tasks={"chief": 1, "worker": 2, "ps": 1},
                     timeout_s=300)

# %% [markdown]
# The server had all 19,280 bytes. `Model.fit` and `Model.evaluate` work too (with Keras 2); the training is asynchronous, each step by some worker.
#
# Now two servers. TensorFlow deals variables to them in turn, whatever their size: mistake 2, built in. Server 0 would keep the matrices, 18,944 bytes, and server 1 the biases, 336 (run it
# without `--cut`). A `variable_partitioner` helps: `MinSizePartitioner` cuts variables by rows, here into parts of at least 4096 bytes. And a worker is killed in the midst of the asynchronous training.
#
# **Predict.** How many of the 120 updates are made, if one of two workers dies after 60?

# %%
predict("08-updates",
        "A worker dies after 60 of 120 updates: how many are made?", unit="updates")

# %%
two = cluster.launch("scripts/08_parameter_server.py", folder.name, "--cut", "--kill",
                     with_="tf_config", tasks={"chief": 1, "worker": 2, "ps": 2},
                     timeout_s=300)

# %%
import re

def updates():
    return int(re.search(r"(\d+) updates; loss", "".join(two.output.values()))[1])

settle("08-updates", updates)

# %% [markdown]
# <details><summary>Why?</summary>
#
# All 120 updates were made. When the worker had gone, the coordinator gave its work to the other one. That is its promise: what is scheduled runs *at least* once. Had the worker died between its update and its
# report, that update would have been made twice. (The script waits until nothing is under way before it kills, so that its numbers are the same in every run.)
# </details>
#
# A lost **server** is another matter: its part of the weights is gone. Then `schedule` or `join` raises an error. Somebody, or the cluster manager, must start the server and the chief again,
# and the chief's program loads the last checkpoint, which it is the chief's duty to save. If the chief is lost, the training stops until it is started again, from a checkpoint, too.

# %%
with np.load(f"{folder.name}/weights.npz") as saved:
    theirs = track.distance([saved[name] for name in saved], track.one_process()[0])
folder.cleanup()
print(track.table("08", {"parameter server by hand, synchronous": max(cluster.pull("far")),
                         "parameter server by hand, asynchronous": cluster.pull("behind")[
                             -1],
                         "ParameterServerStrategy, synchronous": theirs}))

# %% [markdown]
# ## What became of
#
# Old code and talks show parameter servers as TensorFlow 1 had them. What is left of the old names?

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
# <details><summary>What each piece has become, and what has aged besides</summary>
#
# Most pieces have an heir that runs in the script above; the table says which do not.
#
# | then | what it did | today, and where it runs in [the script](scripts/08_parameter_server.py) |
# |---|---|---|
# | `TF_CONFIG` with a `master` | cluster, and one's own task | the same, with a `chief`: `TFConfigClusterResolver`, in `main` |
# | `tf.train.Server(...)`, `server.join()` on the servers | waits for operations | `tf.distribute.Server(...).join()`, on servers **and workers**: `serve` |
# | the same program on every worker, each with a session of its own | every worker ran its own loop | one program, on the chief; workers get functions: `coordinator.schedule` |
# | `tf.train.replica_device_setter` | put variables on servers, in turn | `strategy.scope()`: `make_variables` |
# | `tf.fixed_size_partitioner` and others | cut variables | `tf.distribute.experimental.partitioners`, given to the strategy |
# | `SyncReplicasOptimizer` | waited for gradients, and dropped late ones | nothing built in; `fetch`, add up, update: `train_synchronously` |
# | `tf.estimator.DNNClassifier(config=RunConfig(...))` | a model, and the cluster from `TF_CONFIG` | a Keras model made in the scope; the strategy has read the cluster: `fit` |
# | `tf.estimator.train_and_evaluate` | trained by parameter servers; an `evaluator` task evaluated checkpoints | `Model.fit` and `Model.evaluate`, with Keras 2: `fit`; for an evaluation beside the training, `tf.keras.utils.SidecarEvaluator` (not run here) |
# | `tf.contrib.distribute.ParameterServerStrategy` | for Estimator | `tf.distribute.ParameterServerStrategy`: the same name, another programming model |
# | `MonitoredTrainingSession`, its hooks | started, saved, came back | `tf.train.Checkpoint`, `tf.train.CheckpointManager` on the chief (not run here) |
#
# What has aged besides, in our words:
#
# * *"The master is about the same as a worker, and also saves."* In TensorFlow today the chief computes no gradients: it hands out work.
# * *"All nodes run the same script, which branches by its role."* Still so, but only one branch has a program in it.
# * *"Synchronous updates train well, asynchronous ones do not mind lost or slow workers."* Still so. Today data-parallel training is nearly always synchronous, by all-reduce.
# * *"Parameter server, or peer to peer."* With a server on each worker's machine the two move the same bytes; what is left is who adds up.
# </details>

# %% [markdown]
# ## When, and when not
#
# | use it | do not |
# |---|---|
# | tables of embeddings that fit on no worker; each batch touches a few rows | a dense model that fits on each device: all-reduce (unit 06) |
# | workers that come and go, or differ much in speed | equal devices on a fast network |
# | spare machines with a good network and no GPU: with push and pull overlapped they beat a ring, up to twice | servers would be taken from the workers |
# | stale gradients do no harm | you must be able to repeat a run |
#
# The people who make these libraries are stricter than this table. Keras's author calls TensorFlow's `ParameterServerStrategy` "basically never the right idea, even if you have multiple machines", and for one model on many
# machines with GPUs he advises Keras 3 on JAX ([Keras issue 20585](https://github.com/keras-team/keras/issues/20585), 2024). Large tables of embeddings, the first row, remain the usual reason for servers.
#
# **What it costs.** $wS/s$ bytes each way on each of s servers' links, $S$ on each worker's, for w workers and $S$ bytes of weights. The servers' memory comes on top. A server that is lost takes its part of the weights with it: keep checkpoints, or replicas on
# other servers, as Li et al. 2014 do.

# %% [markdown]
# ## What you can say now
#
# * *Push and pull:* gradients to those who keep the weights, weights back. A synchronous server takes from all, then gives to all; an asynchronous one answers at once.
# * *One process:* the synchronous one ends with its weights, up to rounding. The asynchronous one uses stale gradients.
# * *The link:* $wS$ each way with one server, $wS/s$ with s of them. More than w servers do not help: a worker's own link carries $S$. Push and pull that overlap take half the time.
# * *Cutting:* by bytes, not by number; large variables by rows. Hot rows are pulled once for a batch, and dealt in turn.
# * *TensorFlow:* the chief schedules functions on workers, variables live on servers. A lost worker's work goes to another one.
# * *Old names:* see the table.
# * *Three mistakes:* the decay on each worker; variables dealt by number; an answer before all have pushed.
#
# **Now the lab:** sharded servers under a byte limit for each link, and TensorFlow's. Then unit 09 for staleness, and unit 06 for the way of today.
#
# **References.** J. Dean et al. 2012, *Large scale distributed deep networks*, NIPS, [paper](https://papers.nips.cc/paper/4687-large-scale-distributed-deep-networks).
# M. Li et al. 2014, *Scaling distributed machine learning with the parameter server*, OSDI, [paper](https://www.usenix.org/conference/osdi14/technical-sessions/presentation/li_mu).
# Y. Jiang et al. 2020, *A unified architecture for accelerating distributed DNN training in heterogeneous GPU/CPU clusters*, OSDI, [paper](https://www.usenix.org/conference/osdi20/presentation/jiang).
# X. Miao et al. 2022, *HET: scaling out huge embedding model training via cache-enabled distributed framework*, VLDB, [arXiv 2112.07221](https://arxiv.org/abs/2112.07221).
# TensorFlow, [Parameter server training](https://www.tensorflow.org/tutorials/distribute/parameter_server_training).

# %%
cluster.stop()
