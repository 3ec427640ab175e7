# %% [markdown] unit={"minutes": 60, "ranks": 5, "framework": "torch", "title": "Parameter servers"}
# # 08 Lab: parameter servers under a byte limit
#
# You write parameter servers from messages between two ranks: several servers, each with a part of the variables. At the end you can
#
# * deal variables to servers such that no server's link carries more bytes than it may, and cut the variables that are too large for one;
# * push gradients to the servers that keep the variables, and pull the variables back, in place;
# * write a synchronous server, whose workers end with the weights of one process;
# * write an asynchronous server, replay a schedule on it, and tell how stale each gradient was;
# * say from latency and bandwidth how many servers are enough, and when more of them do not help;
# * train with TensorFlow's `ParameterServerStrategy`, each gradient on a worker, the variable on a server.
#
# **Before:** the tutorial of this unit. **Minutes:** 60. **Ranks:** 5. **Points:** 21.
#
# Cells that begin with `%%px` run on all five ranks; the others run in this kernel. The checks make servers of one, two or three of the ranks, not always the
# first ones, and workers of the others. A mistake may make ranks wait for each other: the cluster notices, says who waits for whom, and heals itself;
# cells marked `--setup` are run again by it. Below each check stands what it says when the answer is right.

# %% tags=["setup"]
from manyhands import Cluster, hint
from manyhands.checks import parameter_servers as check

cluster = Cluster(nodes=1, ranks_per_node=5, framework="torch")

# %% tags=["setup"]
# %%px --setup
from math import prod
from typing import NamedTuple

import torch
import torch.distributed as dist

if not dist.is_initialized():  # so that this cell can be run twice
    # with GPUs too: a server's weights lie in the memory of the CPU
    dist.init_process_group("gloo")

class Piece(NamedTuple):
    """Rows start, start + 1, ..., stop - 1 of a variable, and the server that keeps
    them."""

    variable: int
    start: int
    stop: int
    server: int

# %% [markdown]
# Everything is `float64`, 8 bytes a number. A variable has one dimension or two; `x[start:stop]` are some of its rows. A row is never cut.
#
# Servers are counted from 0, and so are workers. Their **ranks** stand in lists: `servers[piece.server]` is the rank of the server that keeps a piece.
#
# ## 1. Who keeps what
#
# In each step every worker pulls all variables. So what a server keeps goes out over its link once for **each** worker, and as many bytes of gradients come in. Deal the
# variables to the servers such that no server's link carries more than `link_bytes` in either direction in one step.
#
# A variable may be too large for one server: then cut it, into pieces of whole rows. A server keeps at most one piece of a variable: each piece is a
# message. There is always a way: `link_bytes` is at least `workers` times (the bytes of all variables / `servers` + the bytes of the largest row).
#
# *Difficulty ●●○, 10 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# How many bytes may a server keep? Fill one server after the other. For more, run `hint("08-place")` in a cell of its own.
# </details>

# %% tags=["solution"] grade_id="place"
# %%px --setup
def place(shapes: list[tuple[int, ...]], workers: int, servers: int,
          link_bytes: int) -> list[Piece]:
    """Deal variables of these shapes to the servers. Every row of every variable is in
    exactly one piece."""
    ### BEGIN SOLUTION
    room = link_bytes // workers  # what a server may keep
    pieces, server, free = [], 0, room
    for variable, shape in enumerate(shapes):
        row_bytes, start = 8 * prod(shape[1:]), 0
        while start < shape[0]:
            stop = min(shape[0], start + free // row_bytes)
            if stop == start:  # not one more row: go on with the next server
                server, free = server + 1, room
                continue
            pieces.append(Piece(variable, start, stop, server))
            free -= (stop - start) * row_bytes
            start = stop
    return pieces
    ### END SOLUTION

# %% tags=["check"] grade_id="place-check" points=4
check.place(cluster, "place")

# %% [markdown]
# ## 2. Push and pull
#
# Both ends of both messages. A worker **pushes** the gradient of each piece to the server that keeps it, and to every server how many rows of data the gradient is a sum over. The server
# **takes** the push of a worker in. Later the server **gives** its pieces to a worker, who **pulls** them into its variables.
#
# How a push is cut into messages is yours to choose: both ends are yours. Use `dist.send` and `dist.recv`, with `dst` and `src`. What is
# received must have room of the same shape and dtype.
#
# *Difficulty ●●○, 12 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# A slice of rows is a view: one can receive into it. For more, `hint("08-exchange")`.
# </details>

# %% tags=["solution"] grade_id="exchange"
# %%px --setup
def push(gradients: list[torch.Tensor], count: int, pieces: list[Piece],
         servers: list[int]) -> None:
    """A worker sends its gradients, one for each variable, to the servers. They are sums
    over `count` rows of data."""
    ### BEGIN SOLUTION
    for server in servers:
        dist.send(torch.tensor([count]), dst=server)
    for piece in pieces:
        dist.send(gradients[piece.variable][piece.start:piece.stop],
                  dst=servers[piece.server])
    ### END SOLUTION


def take(mine: list[torch.Tensor], worker: int) -> tuple[list[torch.Tensor], int]:
    """A server takes in the push of the worker with this rank. `mine` are its pieces, in
    the order of `pieces`; returns their gradients, and the count."""
    ### BEGIN SOLUTION
    count = torch.empty(1, dtype=torch.int64)
    dist.recv(count, src=worker)
    gradients = [torch.empty_like(piece) for piece in mine]
    for gradient in gradients:
        dist.recv(gradient, src=worker)
    return gradients, count.item()
    ### END SOLUTION


def give(mine: list[torch.Tensor], worker: int) -> None:
    """A server sends all its pieces to the worker with this rank."""
    ### BEGIN SOLUTION
    for piece in mine:
        dist.send(piece, dst=worker)
    ### END SOLUTION


def pull(variables: list[torch.Tensor], pieces: list[Piece], servers: list[int]) -> None:
    """A worker takes in what the servers give, and writes it into its variables, in
    place."""
    ### BEGIN SOLUTION
    for piece in pieces:
        dist.recv(variables[piece.variable][piece.start:piece.stop],
                  src=servers[piece.server])
    ### END SOLUTION

# %% tags=["check"] grade_id="exchange-check" points=3
check.exchange(cluster, "push", "take", "give", "pull")

# %% [markdown]
# ## 3. A synchronous step
#
# The server makes one step of gradient descent on the objective of *all* workers' rows together, as one process would:
#
# $$ w \leftarrow w - \text{rate} \cdot \Big( \frac{\sum_k g_k}{\sum_k n_k} + \text{decay} \cdot w \Big) $$
#
# where $g_k$ is what worker $k$ has pushed, and $n_k$ its count. Nobody gets an answer before everybody has pushed.
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Two loops over the workers, and the update between them. For more, `hint("08-step")`.
# </details>

# %% tags=["solution"] grade_id="step"
# %%px --setup
def synchronous_step(mine: list[torch.Tensor], workers: list[int], rate: float,
                     decay: float) -> None:
    """A server takes in the pushes of all workers (their ranks), changes `mine` in place,
    once, and gives it to all of them."""
    ### BEGIN SOLUTION
    sums, rows = [torch.zeros_like(w) for w in mine], 0
    for worker in workers:
        gradients, count = take(mine, worker)
        rows += count
        for total, gradient in zip(sums, gradients):
            total += gradient
    for w, total in zip(mine, sums):
        w -= rate * (total / rows + decay * w)
    for worker in workers:
        give(mine, worker)
    ### END SOLUTION

# %% tags=["check"] grade_id="step-check" points=3
check.step(cluster, "synchronous_step")

# %% [markdown]
# ## 4. An asynchronous server
#
# Now the server changes its variables at every push, and answers at once, and only to the worker who has pushed. It knows nothing of the others' rows: the step is that of this
# worker's mean, $w \leftarrow w - \text{rate} \cdot (g_k / n_k + \text{decay} \cdot w)$. (In the tutorial each push was a part of the mean. Here each is a whole step, so W pushes go
# about W times as far.)
#
# Real servers take pushes in the order in which they come, which is another one in every run. Here `schedule` says it: a list of ranks of workers, one for each push, so that
# everyone can compute the result.
#
# Return how **stale** each push was: how many updates the server has made since this worker last got the variables. At the start all have the server's.
#
# *Difficulty ●●○, 9 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Count the updates, and remember for each worker at which of them it was answered. For more, `hint("08-asynchronous")`.
# </details>

# %% tags=["solution"] grade_id="asynchronous"
# %%px --setup
def asynchronous(mine: list[torch.Tensor], schedule: list[int], rate: float,
                 decay: float) -> list[int]:
    """A server takes in the pushes in the order of the schedule, with an update and an
    answer after each. Returns the staleness of each push."""
    ### BEGIN SOLUTION
    answered, stale = {}, []
    for updates, worker in enumerate(schedule):
        gradients, count = take(mine, worker)
        stale.append(updates - answered.get(worker, 0))
        for w, gradient in zip(mine, gradients):
            w -= rate * (gradient / count + decay * w)
        answered[worker] = updates + 1
        give(mine, worker)
    return stale
    ### END SOLUTION

# %% tags=["check"] grade_id="asynchronous-check" points=3
check.asynchronous(cluster, "asynchronous")

# %% [markdown]
# ## 5. How many servers?
#
# More servers share the bytes, until a worker's own link is what everyone waits for. `manyhands.simulate` has the model of the tutorial:
#
# `parameter_server_s(workers, n_bytes, latency_s, bytes_per_s, servers=1)` is the time of one exchange in seconds: every worker pushes `n_bytes` of gradients, then pulls as many
# of variables. A limit that is just reached is kept.
#
# *Difficulty ●○○, 5 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# From how many servers on does the time not change any more? For more, `hint("08-servers")`.
# </details>

# %% tags=["solution"] grade_id="servers"
# %%px --setup
from manyhands.simulate import parameter_server_s

def fewest_servers(workers: int, n_bytes: float, latency_s: float, bytes_per_s: float,
                   limit_s: float) -> int | None:
    """The smallest number of servers with which an exchange takes at most limit_s; None if
    no number is enough."""
    ### BEGIN SOLUTION
    for servers in range(1, workers + 1):  # more servers than workers do not help
        if parameter_server_s(workers, n_bytes, latency_s, bytes_per_s, servers) <= limit_s:
            return servers
    return None
    ### END SOLUTION

# %% tags=["check"] grade_id="servers-check" points=2
check.servers(cluster, "fewest_servers")

# %% [markdown]
# ## All together, under the limit
#
# Nothing to write here. The check trains a small network with your servers, placed by your `place`, and with real gradients. The ledger stands at each link: in a step a server's
# link may carry `link_bytes`, and 64 bytes more for each worker, for the count and whatever else you send beside the gradients.

# %% tags=["check"] grade_id="train-check" points=3
check.train(cluster, "place", "push", "pull", "synchronous_step")

# %% [markdown]
# And the task of this track, on your servers: two of them, three workers. Not graded: it works when your pieces do.

# %%
# %%px
from torch.nn.functional import cross_entropy

from manyhands import track
from manyhands.data import shard

servers, workers = [0, 1], [2, 3, 4]
variables = [parameter.detach() for parameter in track.network().parameters()]
shapes = [tuple(v.shape) for v in variables]
# 5 % more than if all links were alike
limit = round(1.05 * len(workers) * 8 * sum(map(prod, shapes)) / len(servers))
pieces = place(shapes, len(workers), len(servers), limit)

# %%
# %%px
def work():
    x, y = (torch.from_numpy(array) for array in track.data())
    model = track.network()
    weights, mine = (list(model.parameters()),
                     shard(track.ROWS, workers.index(dist.get_rank()), len(workers)))
    for step in range(track.STEPS):
        rows = track.rows(step)
        loss = cross_entropy(model(x[rows][mine]), y[rows][mine], reduction="sum")
        push(torch.autograd.grad(loss, weights), mine.stop - mine.start, pieces, servers)
        pull([w.detach() for w in weights], pieces, servers)
    return track.distance(weights, track.one_process()[0])

# %%
# %%px
if dist.get_rank() in servers:
    mine = [variables[p.variable][p.start:p.stop] for p in pieces
            if servers[p.server] == dist.get_rank()]
    for step in range(track.STEPS):
        synchronous_step(mine, workers, track.RATE, track.DECAY)
    print(f"server: keeps {8 * sum(w.numel() for w in mine)} bytes; the limit of its link, "
          f"for each worker: {limit // len(workers)}")
else:
    print(f"worker: same weights as one process, to 1e-12: {work() < 1e-12}")

# %% [markdown]
# ## 6. The same with TensorFlow
#
# Now `ParameterServerStrategy`. In a job each process of `TF_CONFIG` runs a server and waits. For a try, TensorFlow lets servers live in one process: here, in this kernel, two workers and one parameter
# server. Your function is the chief's program.

# %% tags=["setup"]
import os

os.environ["TF_USE_LEGACY_KERAS"], os.environ["TF_CPP_MIN_LOG_LEVEL"] = "1", "3"
from manyhands.cluster.host.ports import reserve
from manyhands.quiet import quietly

with quietly():
    import tensorflow as tf

tf.get_logger().setLevel("ERROR")  # its notes name ports

held = reserve(3)  # ports that nobody else takes
where = [f"127.0.0.1:{port}" for port in held.ports]
spec = tf.train.ClusterSpec({"worker": where[:2], "ps": where[2:]})
# with few, servers in one process may wait for each other for ever
threads = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=8)
servers = [tf.distribute.Server(spec, job_name=kind, task_index=index, protocol="grpc",
                                config=threads)
           for kind, index in (("worker", 0), ("worker", 1), ("ps", 0))]
resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(spec, rpc_layer="grpc")

# %% tags=["setup"]
def gradient(w, x, y):
    """The gradient of the sum over these rows of (x w - y)^2 / 2."""
    return tf.linalg.matvec(x, tf.linalg.matvec(x, w) - y, transpose_a=True)

# %% [markdown]
# Gradient descent on least squares, one weight for each column of x, **synchronous**: in each step every worker's rows are one scheduled call of `gradient`; when all are back, the gradients are *added up*, and
# the variable, which lives on the server, is changed once: $w \leftarrow w - \text{rate} \cdot \sum_k g_k$.
#
# *Difficulty ●●○, 9 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# The five lines of the tutorial, and `coordinator.fetch`. For more, `hint("08-strategy")`.
# </details>

# %% tags=["solution"] grade_id="strategy"
def train_on_servers(resolver, start, steps, rate):
    """Train, and return the tf.Variable. `start`: its values; `steps`: for each step a list
    of (x, y), one pair of arrays for each call."""
    ### BEGIN SOLUTION
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        w = tf.Variable(start)
    push = tf.function(lambda x, y: gradient(w, x, y))
    for step in steps:
        pushed = coordinator.fetch([coordinator.schedule(push, args) for args in step])
        w.assign_sub(rate * tf.add_n(pushed))
    return w
    ### END SOLUTION

# %% tags=["check"] grade_id="strategy-check" points=3
check.strategy(train_on_servers, resolver)

# %% [markdown]
# ## Where to go on
#
# * Unit 09 looks at the asynchronous kind: which rate is still stable at which staleness, and what to do about slow workers.
# * TensorFlow's `ParameterServerStrategy` deals variables to servers one after the other, whatever their size. Which of the checks of exercise 1 would it pass?
# * M. Li et al. 2014, [Scaling distributed machine learning with the parameter server](https://www.usenix.org/conference/osdi14/technical-sessions/presentation/li_mu), OSDI.

# %%
cluster.stop()
