# %% [markdown] unit={"minutes": 60, "ranks": 5, "framework": "torch", "title": "Parameter servers"}
# # 08 Lab: parameter servers under a byte limit
#
# You write parameter servers from messages between two ranks, with several servers that each store a part of the variables. At the end, you can
#
# * assign variables to servers so that no server's link carries more bytes than it may, and split the variables that are too large for one server.
# * push gradients to the servers that store the variables, and pull the variables back, in place.
# * write a synchronous server, whose workers end with the same weights as a single process.
# * write an asynchronous server, replay a schedule on it, and compute how stale each gradient was.
# * compute from latency and bandwidth how many servers are enough, and when more of them do not help.
# * train with TensorFlow's `ParameterServerStrategy`, which computes each gradient on a worker and stores the variable on a server.
#
# **Before:** the tutorial of this unit. **Minutes:** 60 · **Ranks:** 5 · **Points:** 21.
#
# Cells that begin with `%%px` run on all five ranks, while the others run in this kernel. The checks use one, two or three of the ranks (not always the first
# ones) as servers, and the others as workers. If a mistake makes the ranks wait for each other, the cluster notices it, reports which rank is waiting for
# which, and heals itself. It then runs the cells marked `--setup` again. Below each check, you see what it prints when the answer is right.

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
    # also with GPUs, because a server's weights are in CPU memory
    dist.init_process_group("gloo")

class Piece(NamedTuple):
    """The rows start, start + 1, ..., stop - 1 of a variable, and the server that keeps
    them."""

    variable: int
    start: int
    stop: int
    server: int

# %% [markdown]
# All numbers are `float64`, with 8 bytes each. A variable `x` has one or two dimensions, and `x[start:stop]` selects some of its rows. A row is never split.
#
# Both servers and workers are numbered from 0. Their **ranks** are stored in lists, so `servers[piece.server]` is the rank of the server that keeps a piece.
#
# ## 1. Which server keeps what
#
# In each step, every worker pulls all variables. All variables that a server keeps therefore leave through its link once for **each** worker, and the same
# number of bytes arrives as gradients. Assign the variables to the servers so that no server's link carries more than `link_bytes` in either direction in one
# step.
#
# If a variable is too large for one server, split it into pieces of whole rows. Because each piece is sent as a separate message, a server may keep at most one
# piece of each variable. A solution always exists, because `link_bytes` is at least `workers` times (the bytes of all variables / `servers` + the bytes of the
# largest row).
#
# *Difficulty ●●○, 10 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# How many bytes may a server keep? Fill one server after another. For more help, run `hint("08-place")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="place"
# %%px --setup
def place(shapes: list[tuple[int, ...]], workers: int, servers: int,
          link_bytes: int) -> list[Piece]:
    """Assign variables of these shapes to the servers, so that every row of every variable
    is in exactly one piece."""
    ### BEGIN SOLUTION
    room = link_bytes // workers  # what a server may keep
    pieces, server, free = [], 0, room
    for variable, shape in enumerate(shapes):
        row_bytes, start = 8 * prod(shape[1:]), 0
        while start < shape[0]:
            stop = min(shape[0], start + free // row_bytes)
            if stop == start:  # no further row fits, so go on with the next server
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
# You write both ends of a push and both ends of a pull. A worker **pushes** the gradient of each piece to the server that keeps the piece. The worker also
# sends every server the number of data rows over which the gradient was summed. The server **takes** the push of a worker. Later, the server **gives** its
# pieces to a worker, which **pulls** them into its variables.
#
# You may choose how a push is divided into messages, because you write both ends. Use `dist.send` with `dst`, and `dist.recv` with `src`. The tensor that
# receives a message must have the message's shape and dtype.
#
# *Difficulty ●●○, 12 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# A slice of rows is a view, so you can receive a message into it. For more help, run `hint("08-exchange")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="exchange"
# %%px --setup
def push(gradients: list[torch.Tensor], count: int, pieces: list[Piece],
         servers: list[int]) -> None:
    """Send a worker's gradients, one for each variable, to the servers. They are sums over
    `count` rows of data."""
    ### BEGIN SOLUTION
    for server in servers:
        dist.send(torch.tensor([count]), dst=server)
    for piece in pieces:
        dist.send(gradients[piece.variable][piece.start:piece.stop],
                  dst=servers[piece.server])
    ### END SOLUTION


def take(mine: list[torch.Tensor], worker: int) -> tuple[list[torch.Tensor], int]:
    """Receive on a server the push of the worker with this rank. `mine` are the server's
    pieces, in the order of `pieces`. Return their gradients, and the count."""
    ### BEGIN SOLUTION
    count = torch.empty(1, dtype=torch.int64)
    dist.recv(count, src=worker)
    gradients = [torch.empty_like(piece) for piece in mine]
    for gradient in gradients:
        dist.recv(gradient, src=worker)
    return gradients, count.item()
    ### END SOLUTION


def give(mine: list[torch.Tensor], worker: int) -> None:
    """Send all pieces of a server to the worker with this rank."""
    ### BEGIN SOLUTION
    for piece in mine:
        dist.send(piece, dst=worker)
    ### END SOLUTION


def pull(variables: list[torch.Tensor], pieces: list[Piece], servers: list[int]) -> None:
    """Receive on a worker what the servers give, and write it into the variables, in
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
# The server takes one step of gradient descent on the objective of *all* workers' rows together, as a single process would:
#
# $$ w \leftarrow w - \text{rate} \cdot \Big( \frac{\sum_k g_k}{\sum_k n_k} + \text{decay} \cdot w \Big) $$
#
# Here, $g_k$ is the gradient that worker $k$ has pushed, and $n_k$ is the number of its rows. The server must not answer any worker before all workers have
# pushed.
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# You need two loops over the workers, with the update between them. For more help, run `hint("08-step")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="step"
# %%px --setup
def synchronous_step(mine: list[torch.Tensor], workers: list[int], rate: float,
                     decay: float) -> None:
    """Receive on a server the pushes of all workers, which are given by their ranks, change
    `mine` in place, once, and give it to all of them."""
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
# Now the server changes its variables at every push, and it immediately answers the worker that has pushed, but no other worker. Since it knows nothing about
# the other workers' rows, it uses the mean over this worker's rows for the step, $w \leftarrow w - \text{rate} \cdot (g_k / n_k + \text{decay} \cdot w)$. (In
# the tutorial, each push was a part of the mean. Here each push is a whole step, so W pushes go about W times as far.)
#
# Real servers take pushes in the order in which they arrive, which differs from run to run. Here, `schedule` gives the order as a list of the workers' ranks,
# one for each push, so that everyone can compute the result.
#
# Return how **stale** each push was. The staleness is the number of updates that the server has made since the worker last received the variables. At the
# start, all workers have the server's variables.
#
# *Difficulty ●●○, 9 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Count the updates, and remember for each worker how many updates had been made when it was last answered. For more help, run `hint("08-asynchronous")` in a
# separate cell.
# </details>

# %% tags=["solution"] grade_id="asynchronous"
# %%px --setup
def asynchronous(mine: list[torch.Tensor], schedule: list[int], rate: float,
                 decay: float) -> list[int]:
    """Receive on a server the pushes in the order of the schedule, with an update and an
    answer after each of them. Return the staleness of each push."""
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
# Additional servers save time until a worker's own link becomes the bottleneck. The module `manyhands.simulate` contains the model of the tutorial.
#
# The function `parameter_server_s(workers, n_bytes, latency_s, bytes_per_s, servers=1)` returns the time in seconds of one exchange, in which every worker
# pushes `n_bytes` of gradients and then pulls as many bytes of variables. A time that is equal to the limit is allowed.
#
# *Difficulty ●○○, 5 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# From what number of servers on does the time no longer change? For more help, run `hint("08-servers")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="servers"
# %%px --setup
from manyhands.simulate import parameter_server_s

def fewest_servers(workers: int, n_bytes: float, latency_s: float, bytes_per_s: float,
                   limit_s: float) -> int | None:
    """Return the smallest number of servers with which an exchange takes at most limit_s,
    or None if no number is enough."""
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
# You do not need to write anything here. The check trains a small network on your servers with real gradients, and your `place` decides what each server keeps.
# The ledger watches each link. In a step, a server's link may carry `link_bytes` plus 64 bytes for each worker, for the count and whatever else you send in
# addition to the gradients.

# %% tags=["check"] grade_id="train-check" points=3
check.train(cluster, "place", "push", "pull", "synchronous_step")

# %% [markdown]
# The next cells train the network of this track on two of your servers with three workers. This part is not graded, but it works as soon as your functions do.

# %%
# %%px
from torch.nn.functional import cross_entropy

from manyhands import track
from manyhands.data import shard

servers, workers = [0, 1], [2, 3, 4]
variables = [parameter.detach() for parameter in track.network().parameters()]
shapes = [tuple(v.shape) for v in variables]
# 5 % more than with equal loads on all links
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
# Now you use `ParameterServerStrategy`. In a real job, each worker and each parameter server is a separate process that runs a `tf.distribute.Server` and
# waits. For a test, however, TensorFlow allows several servers in one process, so this kernel holds two workers and one parameter server. Your function is the
# chief's program.

# %% tags=["setup"]
import os

os.environ["TF_USE_LEGACY_KERAS"], os.environ["TF_CPP_MIN_LOG_LEVEL"] = "1", "3"
from manyhands.cluster.host.ports import reserve
from manyhands.quiet import quietly

with quietly():
    import tensorflow as tf

tf.get_logger().setLevel("ERROR")  # because its notes name ports

held = reserve(3)  # ports that no other program takes
where = [f"127.0.0.1:{port}" for port in held.ports]
spec = tf.train.ClusterSpec({"worker": where[:2], "ps": where[2:]})
# with fewer threads, servers in one process may wait for each other forever
threads = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=8)
servers = [tf.distribute.Server(spec, job_name=kind, task_index=index, protocol="grpc",
                                config=threads)
           for kind, index in (("worker", 0), ("worker", 1), ("ps", 0))]
resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(spec, rpc_layer="grpc")

# %% tags=["setup"]
def gradient(w, x, y):
    """Return the gradient of the sum of (x w - y)^2 / 2 over these rows."""
    return tf.linalg.matvec(x, tf.linalg.matvec(x, w) - y, transpose_a=True)

# %% [markdown]
# Write **synchronous** gradient descent for least squares, with one weight for each column of x. In each step, each worker's rows are processed by one
# scheduled call of `gradient`. When all calls have returned, the gradients are *added up*, and the variable, which is stored on the server, is changed
# once:
# $w \leftarrow w - \text{rate} \cdot \sum_k g_k$.
#
# *Difficulty ●●○, 9 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# You need the five lines of the tutorial's example, and `coordinator.fetch`. For more help, run `hint("08-strategy")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="strategy"
def train_on_servers(resolver, start, steps, rate):
    """Train, and return the tf.Variable, which starts with the values `start`. `steps` has
    for each step a list of (x, y), with one pair of arrays for each call."""
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
# * Unit 09 covers asynchronous training. It asks which learning rate is still stable at which staleness, and what you can do about slow workers.
# * TensorFlow's `ParameterServerStrategy` assigns variables to servers one after another, whatever their size. Which of the checks in exercise 1 would this
#   assignment pass?
# * M. Li et al. 2014, [Scaling distributed machine learning with the parameter
#   server](https://www.usenix.org/conference/osdi14/technical-sessions/presentation/li_mu), OSDI.

# %%
cluster.stop()
