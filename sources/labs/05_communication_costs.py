# %% [markdown] unit={"minutes": 50, "ranks": 4, "framework": "torch", "title": "What communication costs"}
# # 05 Lab: measure, fit, predict
#
# You measure a link, find its latency and its bandwidth, and say what an all-reduce will take on worlds that you do not have. At the end you can
#
# * time messages so that the times mean something;
# * fit latency and bandwidth to times of which some are far off, and say how far the result can be trusted;
# * predict a ring, a tree and a parameter server for any number of ranks, and the size at which ring and tree cross;
# * choose how many gradients travel together.
#
# **Before:** the tutorial of this unit. **Minutes:** 50. **Ranks:** 4. **Points:** 17.
#
# Only the first exercise runs on the ranks (`%%px`); the others are in this kernel. The checks draw links of their own, with known latency and bandwidth: so there is a
# truth, and your answers must meet it within the tolerance that is stated. Below each check stands what it says when the answer is right. The messages go through gloo with CPU tensors,
# on a machine with GPUs too: there, the clock would see the call, and not the message (tutorial, *On GPUs*).

# %% tags=["setup"]
import numpy as np

from manyhands import Cluster, hint
from manyhands.checks import communication_costs as check

cluster = Cluster(nodes=1, ranks_per_node=4, framework="torch")

# %% tags=["setup"]
# %%px --setup
import time

import torch
import torch.distributed as dist

if not dist.is_initialized():  # so that this cell can be run twice
    dist.init_process_group("gloo")

# %% [markdown]
# ## 1. A ping-pong
#
# Rank 0 sends a message to rank `peer`, which sends one of the same size back. `clock()` gives seconds, as `time.perf_counter()` does; the check hands in a clock of its own, that moves
# with the messages. All ranks call the function; those that are neither 0 nor `peer` do nothing.
#
# *Difficulty ●●○, 10 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Where does a round begin, and what has happened when rank 0 knows that it is over? How many messages was that? For more, run `hint("05-ping-pong")` in a cell of its own.
# </details>

# %% tags=["solution"] grade_id="ping-pong"
# %%px --setup
def ping_pong(n_bytes: int, repeats: int, warm_up: int, peer: int,
              clock=time.perf_counter) -> list[float] | None:
    """Seconds that one message of n_bytes takes between rank 0 and rank `peer`: on rank 0 a
    list, one time for each of `repeats` rounds.

    All ranks call it. `warm_up` rounds come first, which are played but not in the list.
    Only send and recv are used, with tensors of n_bytes bytes.
    """
    ### BEGIN SOLUTION
    x, times_s = torch.zeros(n_bytes, dtype=torch.uint8), []
    for _ in range(warm_up + repeats):
        if dist.get_rank() == 0:
            start_s = clock()
            dist.send(x, dst=peer)
            dist.recv(x, src=peer)
            times_s.append((clock() - start_s) / 2)
        elif dist.get_rank() == peer:
            dist.recv(x, src=0)
            dist.send(x, dst=0)
    return times_s[warm_up:] if dist.get_rank() == 0 else None
    ### END SOLUTION

# %% tags=["check"] grade_id="ping-pong-check" points=3
check.ping_pong(cluster, "ping_pong")

# %% [markdown]
# ## 2. Latency and bandwidth
#
# `n_bytes` holds sizes, the smallest first, and `times_s` a list of measured times for each of them: many for small messages, few for large ones. Most are within a few per cent of the truth.
# About every seventh is far too long, because something else ran. The sizes may span eight powers of ten, or just three; the smallest may be larger than nothing.
#
# The answers must be right to 10 %, on each of five hidden links, from shared memory to a line between two cities.
#
# *Difficulty ●●○, 10 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# Two questions. Which one number stands for the times of a size? And what must be small: errors in seconds, or errors in per cent? For more, `hint("05-fit")`.
# </details>

# %% tags=["solution"] grade_id="fit"
def fit(n_bytes: list[int], times_s: list[list[float]]) -> tuple[float, float]:
    """(latency_s, bytes_per_s) of the link whose messages of n bytes take latency_s + n /
    bytes_per_s."""
    ### BEGIN SOLUTION
    n, t = np.array(n_bytes, float), np.array([np.median(one) for one in times_s])
    seconds_per_byte, latency_s = np.polyfit(n, t, 1, w=1 / t)
    return latency_s, 1 / seconds_per_byte
    ### END SOLUTION

# %% tags=["check"] grade_id="fit-check" points=4
check.fit(fit)

# %% [markdown]
# ## 3. How far can it be trusted?
#
# Give a band for each of the two numbers by the **bootstrap**: pretend that you measure again. For each size draw as many of its times as there are, with replacement, and fit those. The middle
# `level` of what comes out is the band. 200 repetitions are enough.
#
# The check measures one link 16 times, and looks how often your bands hold the truth, and how wide they are. It hands in a right `fit`, so that this exercise does not depend on the last one.
#
# *Difficulty ●●○, 8 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# `draw.choice(times, len(times))` draws with replacement. And if 0.9 is to lie inside, how much lies below? For more, `hint("05-interval")`.
# </details>

# %% tags=["solution"] grade_id="interval"
def interval(n_bytes: list[int], times_s: list[list[float]], level: float,
             fit) -> tuple[tuple[float, float], tuple[float, float]]:
    """((lowest, highest) latency_s, (lowest, highest) bytes_per_s): the middle `level` of
    what `fit(n_bytes, times_s)` gives for resampled times."""
    draw = np.random.default_rng(0)
    ### BEGIN SOLUTION
    links = [fit(n_bytes, [draw.choice(one, len(one)) for one in times_s])
             for _ in range(200)]
    low, high = np.quantile(links, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return (low[0], high[0]), (low[1], high[1])
    ### END SOLUTION

# %% tags=["check"] grade_id="interval-check" points=2
check.interval(interval)

# %% [markdown]
# ## 4. Three all-reduces
#
# Predict what an all-reduce of `n_bytes` takes in three ways: along a ring; as a sum and a broadcast along a binomial tree, where the sum takes as many rounds as the broadcast; and through one parameter
# server. The server is a separate process, to which `workers` send their gradients and from which they get the sum.
#
# Links are full duplex, adding up costs nothing, and messages on different links do not disturb each other. The server takes all messages at the same time, so their latencies pass together, but its link
# carries everything that goes in, and then everything that goes out. The work that a message makes for the server is left out ($o = 0$). One rank alone needs no ring and no tree. Do not round
# a p-th of the tensor, although it may be a fraction of a byte.
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Count the rounds, then the bytes of one round. In the last case there are two rounds. For more, `hint("05-all-reduce")`.
# </details>

# %% tags=["solution"] grade_id="all-reduce"
def ring_s(p: int, n_bytes: int, latency_s: float, bytes_per_s: float) -> float:
    """Seconds of an all-reduce of n_bytes along a ring of p ranks."""
    ### BEGIN SOLUTION
    return 2 * (p - 1) * (latency_s + n_bytes / p / bytes_per_s)
    ### END SOLUTION


def tree_s(p: int, n_bytes: int, latency_s: float, bytes_per_s: float) -> float:
    """Seconds of a sum along a binomial tree of p ranks and a broadcast along the same
    tree."""
    ### BEGIN SOLUTION
    return 2 * (p - 1).bit_length() * (latency_s + n_bytes / bytes_per_s)
    ### END SOLUTION


def server_s(workers: int, n_bytes: int, latency_s: float, bytes_per_s: float) -> float:
    """Seconds until all workers have sent n_bytes to one server, and have got n_bytes
    back."""
    ### BEGIN SOLUTION
    return 2 * (latency_s + workers * n_bytes / bytes_per_s)
    ### END SOLUTION

# %% tags=["check"] grade_id="all-reduce-check" points=3
check.all_reduce(ring_s, tree_s, server_s)

# %% [markdown]
# ## 5. Where they cross
#
# Below some size the tree is faster, above it the ring. Which size? To 1 %; and 0 where the ring is never slower.
#
# *Difficulty ●●○, 6 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# Two straight lines over the size. Pen and paper, or a search by halving. For more, `hint("05-crossover")`.
# </details>

# %% tags=["solution"] grade_id="crossover"
def crossover_bytes(p: int, latency_s: float, bytes_per_s: float) -> float:
    """The size in bytes above which a ring of p >= 2 ranks is faster than a tree."""
    ### BEGIN SOLUTION
    rounds = (p - 1).bit_length()
    return latency_s * bytes_per_s * (p - 1 - rounds) / (rounds - (p - 1) / p)
    ### END SOLUTION

# %% tags=["check"] grade_id="crossover-check" points=2
check.crossover(crossover_bytes)

# %% [markdown]
# ## 6. Buckets
#
# Gradients become ready one after the other, while the backward pass goes on. They are put into a bucket in this order; it is full as soon as it holds `bucket_bytes` **or more**. A bucket is sent when
# it is full (the last one: when there are no more gradients) and the network is free: one bucket at a time. `all_reduce_s(n_bytes)` says how long that takes.
#
# First: when has the last gradient been summed? Then: which size of buckets is best? The check accepts a time that is at most 8 % longer than the best. No formula is asked for; try sizes.
#
# *Difficulty ●●○, 10 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# When does the network begin with a bucket? At the later of two moments. For more, `hint("05-fusion")`.
# </details>

# %% tags=["solution"] grade_id="fusion"
def finish_s(ready_s: list[float], n_bytes: list[int], bucket_bytes: float,
             all_reduce_s) -> float:
    """When the last gradient has been summed. ready_s[i]: when gradient i is ready, in
    ascending order; n_bytes[i]: its size. bucket_bytes 0: each travels alone."""
    ### BEGIN SOLUTION
    free_s, held = 0.0, 0
    for i, (ready, size) in enumerate(zip(ready_s, n_bytes)):
        held += size
        if held >= bucket_bytes or i == len(n_bytes) - 1:
            free_s, held = max(free_s, ready) + all_reduce_s(held), 0
    return free_s
    ### END SOLUTION


def best_bucket_bytes(ready_s: list[float], n_bytes: list[int], all_reduce_s) -> float:
    """A size of buckets with which the last gradient has been summed as early as possible,
    or nearly so."""
    ### BEGIN SOLUTION
    sizes = [sum(n_bytes) / k for k in range(1, len(n_bytes) + 1)]
    return min(sizes, key=lambda size: finish_s(ready_s, n_bytes, size, all_reduce_s))
    ### END SOLUTION

# %% tags=["check"] grade_id="fusion-check" points=3
check.fusion(finish_s, best_bucket_bytes)

# %% [markdown]
# ## All together
#
# Your own machine, with your own tools: measure, fit, and predict. Not graded, and different each time: these are real times.

# %% tags=["measured"]
# %%px
sizes = [4**k for k in range(1, 12)]
measured = [ping_pong(n_bytes, repeats=15, warm_up=3, peer=1) for n_bytes in sizes]

# %% tags=["measured"]
sizes, measured = cluster.pull("sizes")[0], cluster.pull("measured")[0]
latency_s, bytes_per_s = fit(sizes, measured)
for name, unit, value, (low, high) in zip(("latency", "bandwidth"), ("us", "GB/s"),
                                          (latency_s * 1e6, bytes_per_s / 1e9),
                                          np.array(interval(sizes, measured, 0.9, fit))
                                          * [[1e6], [1e-9]]):
    print(f"{name:<10}{value:8.3g} {unit:<5}90 % band: {low:.3g} to {high:.3g}")
for p in (4, 64, 1024):
    print(f"{p:>5} ranks: ring and tree cross at "
          f"{crossover_bytes(p, latency_s, bytes_per_s) / 1e3:8.3g} kB; "
          f"100 MB take {ring_s(p, 100_000_000, latency_s, bytes_per_s):.3g} s "
          f"along a ring")

# %% [markdown]
# Is the prediction for 4 ranks right? The tutorial checks its own: on one machine the ranks of a ring share cores and memory, and gloo's "ready" costs a second latency in each round; the model knows
# neither. On separate links the tree comes out as predicted, and so does the ring if all receives are posted ahead.
#
# ## Where to go on
#
# * `manyhands.simulate` has the same models, and more. Unit 19 feeds them with your measurements, and predicts published tables.
# * Unit 06 has real buckets, with `bucket_cap_mb`. Unit 08 cuts the server's link in parts. Unit 10 has Horovod's fusion buffer.
# * R. Thakur, R. Rabenseifner, W. Gropp 2005, *Optimization of collective communication operations in MPICH*, Int. J. High Perform. Comput. Appl. 19(1).

# %%
cluster.stop()
