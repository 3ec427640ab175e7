# %% [markdown] unit={"minutes": 55, "ranks": 4, "framework": "torch", "title": "What communication costs"}
# # 05 Lab: measure, fit, predict
#
# You measure a link, find its latency and its bandwidth, and say what an all-reduce will take on worlds that you do not have. At the end you can
#
# * time messages so that the times mean something;
# * fit latency and bandwidth to times of which some are far off, and say how far the result can be trusted;
# * predict collectives that the tutorial has no formula for, and choose into how many pieces a broadcast is cut;
# * find the largest number of ranks on which a ring is not slower than a tree;
# * choose how many gradients travel together.
#
# **Before:** the tutorial of this unit. **Minutes:** 55. **Ranks:** 4. **Points:** 17.
#
# Only the first exercise runs on the ranks (`%%px`); the others run in this kernel. The checks draw hidden links with known latency and bandwidth, so there is a
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
# The answers must be right to 10 %, on each of five hidden links, from shared memory and NVLink to a line between two cities.
#
# *Difficulty ●●○, 8 minutes, 2 points*
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

# %% tags=["check"] grade_id="fit-check" points=2
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
# ## 4. A chain in pieces
#
# Predict two collectives that the tutorial's table does not have. The first is an **all-gather** along a ring, where `n_bytes` is the size of the whole gathered tensor. The second is a **broadcast along a chain**, in which rank 0 sends
# to rank 1, rank 1 to rank 2, and so on. The tensor is cut into `pieces` equal parts. A rank passes a part on while it receives the next one, but it sends one part at a time, and each begins when the one before has
# arrived. NCCL moves large tensors like this along its chains and trees.
#
# Then choose the number of pieces. The check accepts a whole number with which the broadcast takes at most 3 % longer than with the best one.
#
# Links are full duplex, and messages on different links do not disturb each other. One rank alone sends nothing. Do not round a part of the tensor, although it may be a fraction of a byte.
#
# *Difficulty ●●○, 12 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# Draw the chain for 4 ranks and 3 pieces as a table, with a row for each rank and a column for each round. When does the last piece arrive at the last rank? For more, `hint("05-chain")`.
# </details>

# %% tags=["solution"] grade_id="chain"
def all_gather_s(p: int, n_bytes: int, latency_s: float, bytes_per_s: float) -> float:
    """Seconds of an all-gather along a ring of p ranks, after which each has n_bytes."""
    ### BEGIN SOLUTION
    return (p - 1) * (latency_s + n_bytes / p / bytes_per_s)
    ### END SOLUTION


def chain_s(p: int, n_bytes: int, pieces: int, latency_s: float,
            bytes_per_s: float) -> float:
    """Seconds of a broadcast of n_bytes along a chain of p ranks, in so many pieces."""
    ### BEGIN SOLUTION
    rounds = p - 2 + pieces if p > 1 else 0
    return rounds * (latency_s + n_bytes / pieces / bytes_per_s)
    ### END SOLUTION


def best_pieces(p: int, n_bytes: int, latency_s: float, bytes_per_s: float) -> int:
    """Into how many pieces, at least 1, a broadcast along a chain of p >= 2 ranks should be
    cut."""
    ### BEGIN SOLUTION
    best = ((p - 2) * n_bytes / (latency_s * bytes_per_s)) ** 0.5
    return min((max(1, int(best)), int(best) + 1),
               key=lambda pieces: chain_s(p, n_bytes, pieces, latency_s, bytes_per_s))
    ### END SOLUTION

# %% tags=["check"] grade_id="chain-check" points=4
check.chain(all_gather_s, chain_s, best_pieces)

# %% [markdown]
# ## 5. How many ranks for a ring?
#
# A library always sums tensors of one size. What is the largest number of ranks, up to `limit`, on which a ring takes no longer than a tree? (On some smaller numbers it may take longer.) The ring has $2(p-1)$ rounds of a p-th
# of the tensor, and the tree $2\lceil\log_2 p\rceil$ rounds of the whole tensor, as in the tutorial's table.
#
# *Difficulty ●●○, 7 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# Look at the sizes in the tutorial at which ring and tree cross on 4 and on 5 ranks. Which way do they change? For more, `hint("05-ranks")`.
# </details>

# %% tags=["solution"] grade_id="ranks"
def most_ranks(n_bytes: int, latency_s: float, bytes_per_s: float, limit: int) -> int:
    """The largest number of ranks from 1 to `limit` on which an all-reduce of n_bytes takes
    no longer along a ring than along a tree."""
    ### BEGIN SOLUTION
    def ring_s(p):
        return 2 * (p - 1) * (latency_s + n_bytes / p / bytes_per_s)

    def tree_s(p):
        return 2 * (p - 1).bit_length() * (latency_s + n_bytes / bytes_per_s)

    return max(p for p in range(1, limit + 1) if ring_s(p) <= tree_s(p))
    ### END SOLUTION

# %% tags=["check"] grade_id="ranks-check" points=2
check.ranks(most_ranks)

# %% [markdown]
# ## 6. Buckets
#
# Gradients become ready one after the other, while the backward pass goes on. They are put into a bucket in this order; it is full as soon as it holds `bucket_bytes` **or more**. A bucket is sent when
# it is full (the last one: when there are no more gradients) and the network is free: one bucket at a time. `all_reduce_s(n_bytes)` says how long that takes.
#
# First: when has the last gradient been summed? Then: which size of buckets is best? The check accepts a time that is at most 8 % longer than the best. No formula is asked for; try sizes.
#
# *Difficulty ●●○, 10 minutes, 4 points*
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

# %% tags=["check"] grade_id="fusion-check" points=4
check.fusion(finish_s, best_bucket_bytes)

# %% [markdown]
# ## All together
#
# Your own machine, with your own tools: measure, fit, and predict. Not graded, and different each time: these are real times. The last three lines are predictions by the alpha-beta model, with the latency and the bandwidth that you have fitted. For
# each size, *a ring up to ...* is the largest number of ranks, of at most 4096, on which a ring takes no longer than a tree. A chain of 64 ranks in its best number of pieces is compared with the same chain in one piece.

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
for n_bytes in (1000, 1_000_000, 100_000_000):
    pieces = best_pieces(64, n_bytes, latency_s, bytes_per_s)
    print(f"{n_bytes / 1e6:>7g} MB: a ring up to "
          f"{most_ranks(n_bytes, latency_s, bytes_per_s, 4096)} ranks; a chain of 64 ranks "
          f"takes {chain_s(64, n_bytes, pieces, latency_s, bytes_per_s):.3g} s in {pieces} "
          f"pieces, and {chain_s(64, n_bytes, 1, latency_s, bytes_per_s):.3g} s in one")

# %% [markdown]
# Are such predictions right? The tutorial checks its own. On one machine the ranks of a ring share cores and memory, and gloo's "ready" costs a second latency in each round, and the model knows neither. On separate links the tree
# takes the predicted time, and so does the ring if all receives are posted ahead.
#
# ## Where to go on
#
# * `manyhands.simulate` has the same models, and more. Unit 19 feeds them with your measurements, and predicts published tables.
# * Unit 06 has real buckets, with `bucket_cap_mb`. Unit 08 cuts the server's link in parts. Unit 10 has Horovod's fusion buffer.
# * R. Thakur, R. Rabenseifner, W. Gropp 2005, *Optimization of collective communication operations in MPICH*, Int. J. High Perform. Comput. Appl. 19(1).

# %%
cluster.stop()
