# %% [markdown] unit={"minutes": 65, "ranks": 4, "framework": "torch", "title": "What communication costs"}
# # 05 Lab: measure, fit, predict
#
# You measure a link, find its latency and its bandwidth, and predict how long an all-reduce will take in worlds that you do not have. At the end, you can
#
# * time messages reliably.
# * fit the latency and bandwidth of a link that uses different protocols for small and large messages, although some of the measured times are far off.
# * estimate how far a fit can be trusted.
# * predict the time of collectives for which the tutorial has no formula, and choose the number of pieces into which a broadcast is cut.
# * find the largest number of ranks on which a ring is not slower than a tree.
# * choose how many gradients are sent in one message.
#
# **Before:** the tutorial of this unit. **Minutes:** 65 · **Ranks:** 4 · **Points:** 17.
#
# Only the first exercise runs on the ranks (`%%px`), while the others run in this kernel. The checks draw hidden links whose true latency and bandwidth they
# know, and your answers must match these within the stated tolerance. Below each check, you see what it prints when the answer is right. The messages go
# through gloo with CPU tensors, even on a machine with GPUs, because on a GPU, a clock would time the call and not the message (see *On GPUs* in the tutorial).

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
# Rank 0 sends a message to rank `peer`, which sends a message of the same size back. `clock()` returns seconds, as `time.perf_counter()` does. The check passes
# its own clock, which advances with the messages. All ranks call the function, but ranks other than 0 and `peer` do nothing.
#
# *Difficulty ●●○, 10 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# When does a round begin, and what has happened by the time rank 0 knows that the round is over? How many messages have been sent? For more help, run
# `hint("05-ping-pong")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="ping-pong"
# %%px --setup
def ping_pong(n_bytes: int, repeats: int, warm_up: int, peer: int,
              clock=time.perf_counter) -> list[float] | None:
    """Return on rank 0 the seconds that one message of n_bytes takes between rank 0 and
    rank `peer`, as a list with one time for each of `repeats` rounds.

    All ranks call this function. The first `warm_up` rounds are played, but they are not in
    the list. Only send and recv are used, with tensors of n_bytes bytes.
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
# ## 2. A link with two protocols
#
# Libraries send small and large messages by different protocols, for example LL and Simple in NCCL, or eager and rendezvous in MPI. The protocol for small
# messages has the lower latency, but also the lower bandwidth. The times of such a link therefore follow two lines, one for each protocol, and a single line
# through all sizes fits neither. Find the latency and the bandwidth of the protocol for **large** messages, since this protocol carries the buckets of
# gradients.
#
# `n_bytes` holds the sizes in ascending order, each about twice the previous one. For each size, `times_s` holds a list of measured times, which is long for
# small messages and shorter for large ones. Most times are within a few per cent of the truth. However, about every seventh time is far too long, because
# something else ran at the same time. At one of the sizes, which you must find, the protocol changes. All smaller sizes are sent by the protocol for small
# messages, while this size and all larger ones are sent by the protocol for large messages. At least four of the sizes belong to each protocol.
#
# Your answers must be right to within 10 % on each of five hidden links, which range from shared memory and NVLink to a line between two cities. The sizes span
# up to seven powers of ten on some links, and fewer than three on others.
#
# *Difficulty ●●●, 15 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# If you knew at which size the protocol changes, how would you fit the line of the larger sizes? You do not know this size, so try every possible one. With
# which size do two lines, one through the smaller sizes and one through the others, fit best, and in which unit must their errors be compared? For more help,
# run `hint("05-fit")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="fit"
def fit(n_bytes: list[int], times_s: list[list[float]]) -> tuple[float, float]:
    """Return (latency_s, bytes_per_s) of the protocol for large messages, by which a
    message of n bytes takes latency_s + n / bytes_per_s.

    Sizes below the change of protocols, which is not known, have a different latency and
    bandwidth. At least four sizes are below it, and at least four are not."""
    ### BEGIN SOLUTION
    def line(n, t):
        seconds_per_byte, latency_s = np.polyfit(n, t, 1, w=1 / t)
        errors = (latency_s + n * seconds_per_byte) / t - 1
        return latency_s, 1 / seconds_per_byte, np.sum(errors**2)

    n, t = np.array(n_bytes, float), np.array([np.median(one) for one in times_s])
    pairs = [(line(n[:cut], t[:cut]), line(n[cut:], t[cut:]))
             for cut in range(4, len(n) - 3)]
    _, large = min(pairs, key=lambda pair: pair[0][2] + pair[1][2])
    return large[:2]
    ### END SOLUTION

# %% tags=["check"] grade_id="fit-check" points=2
check.fit(fit)

# %% [markdown]
# ## 3. How far can it be trusted?
#
# Compute a band for the latency and one for the bandwidth by the **bootstrap**, which pretends that you measure again. For each size, draw as many of its times
# as there are, with replacement. Fit the drawn times, and repeat this procedure (200 repetitions are enough). The middle part of the results, a fraction of
# `level`, is the band.
#
# The check measures one link 16 times, and examines how often your bands contain the truth and how wide they are. This link has only one protocol,
# and the check passes a correct `fit` for one protocol, so this exercise does not depend on the previous one.
#
# *Difficulty ●●○, 8 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# `draw.choice(times, len(times))` draws with replacement. If 0.9 of the results must be inside the band, what fraction is below it? For more help, run
# `hint("05-interval")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="interval"
def interval(n_bytes: list[int], times_s: list[list[float]], level: float,
             fit) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return ((lowest, highest) latency_s, (lowest, highest) bytes_per_s), which enclose
    the middle `level` of what `fit(n_bytes, times_s)` returns for resampled times."""
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
# Predict the times of two collectives that are not in the tutorial's table. The first is an **all-gather** along a ring, for which `n_bytes` is the size of the
# whole gathered tensor. The second is a **broadcast along a chain**, in which rank 0 sends to rank 1, rank 1 to rank 2, and so on. The tensor is cut into
# `pieces` equal parts. A rank passes a part on while it receives the next one, but it sends only one part at a time, and each part begins when the previous one
# has arrived. NCCL moves large tensors along its chains and trees in this way.
#
# Then choose the number of pieces. The check accepts any whole number with which the broadcast takes at most 3 % longer than with the best one.
#
# Links are full duplex, and messages on different links do not disturb each other. A single rank sends nothing. Do not round the size of a part, although it
# may not be a whole number of bytes.
#
# *Difficulty ●●○, 12 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# Draw the chain for 4 ranks and 3 pieces as a table, with a row for each rank and a column for each round. When does the last piece arrive at the last rank?
# For more help, run `hint("05-chain")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="chain"
def all_gather_s(p: int, n_bytes: int, latency_s: float, bytes_per_s: float) -> float:
    """Return the seconds of an all-gather along a ring of p ranks, after which each has
    n_bytes."""
    ### BEGIN SOLUTION
    return (p - 1) * (latency_s + n_bytes / p / bytes_per_s)
    ### END SOLUTION


def chain_s(p: int, n_bytes: int, pieces: int, latency_s: float,
            bytes_per_s: float) -> float:
    """Return the seconds of a broadcast of n_bytes in `pieces` pieces along a chain of p
    ranks."""
    ### BEGIN SOLUTION
    rounds = p - 2 + pieces if p > 1 else 0
    return rounds * (latency_s + n_bytes / pieces / bytes_per_s)
    ### END SOLUTION


def best_pieces(p: int, n_bytes: int, latency_s: float, bytes_per_s: float) -> int:
    """Return into how many pieces (at least 1) a broadcast along a chain of p >= 2 ranks
    should be cut."""
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
# A library always sums tensors of the same size. What is the largest number of ranks, up to `limit`, on which a ring takes no longer than a tree? (It may take
# longer on some smaller numbers of ranks.) As in the tutorial's table, the ring has $2(p-1)$ rounds, each of which sends a p-th of the tensor, and the tree has
# $2\lceil\log_2 p\rceil$ rounds, each of which sends the whole tensor.
#
# *Difficulty ●●○, 7 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# In the tutorial, look at the sizes at which ring and tree cross on 4 and on 5 ranks. Which of the two sizes is larger? For more help, run `hint("05-ranks")`
# in a separate cell.
# </details>

# %% tags=["solution"] grade_id="ranks"
def most_ranks(n_bytes: int, latency_s: float, bytes_per_s: float, limit: int) -> int:
    """Return the largest number of ranks from 1 to `limit` on which an all-reduce of
    n_bytes takes no longer along a ring than along a tree."""
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
# Gradients become ready one after another while the backward pass continues, and they are put into a bucket in this order. A bucket is full as soon as it holds
# `bucket_bytes` **or more**. The network carries only one bucket at a time, so a bucket is sent as soon as it is full and the network is free. (Once there
# are no more gradients, the last bucket is sent even if it is not full.) `all_reduce_s(n_bytes)` returns how long the network needs for a bucket of
# `n_bytes`.
#
# First compute when the last gradient has been summed. Then choose the best bucket size. The check accepts a time that is at most 8 % longer than the shortest.
# You do not need a formula, because you can try several sizes.
#
# *Difficulty ●●○, 10 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# When does the network begin to send a bucket? The answer is the later of two moments. For more help, run `hint("05-fusion")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="fusion"
def finish_s(ready_s: list[float], n_bytes: list[int], bucket_bytes: float,
             all_reduce_s) -> float:
    """Return the time at which the last gradient has been summed.

    Gradient i is ready at ready_s[i], in ascending order, and has n_bytes[i] bytes. If
    bucket_bytes is 0, each gradient travels alone."""
    ### BEGIN SOLUTION
    free_s, held = 0.0, 0
    for i, (ready, size) in enumerate(zip(ready_s, n_bytes)):
        held += size
        if held >= bucket_bytes or i == len(n_bytes) - 1:
            free_s, held = max(free_s, ready) + all_reduce_s(held), 0
    return free_s
    ### END SOLUTION


def best_bucket_bytes(ready_s: list[float], n_bytes: list[int], all_reduce_s) -> float:
    """Return a size of buckets with which the last gradient has been summed as early as
    possible, or nearly so."""
    ### BEGIN SOLUTION
    sizes = [sum(n_bytes) / k for k in range(1, len(n_bytes) + 1)]
    return min(sizes, key=lambda size: finish_s(ready_s, n_bytes, size, all_reduce_s))
    ### END SOLUTION

# %% tags=["check"] grade_id="fusion-check" points=4
check.fusion(finish_s, best_bucket_bytes)

# %% [markdown]
# ## All together
#
# Now you measure your own machine, fit the times, and make predictions, all with your own tools. This part is not graded, and its results differ from run to
# run because the times are real. Your `fit` looks for a change of protocols here as well, so its latency and bandwidth describe only the larger sizes, even if
# your machine uses the same protocol for all sizes. The last three lines of the output are predictions of the alpha-beta model with the latency and the
# bandwidth that you have fitted. For each size, *a ring up to ...* gives the largest number of ranks, up to 4096, on which a ring takes no longer than a tree.
# A broadcast along a chain of 64 ranks in the best number of pieces is compared with the same broadcast in one piece.

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
    if latency_s <= 0:  # the larger sizes show little of it, so chance can make it negative
        print("The latency is below 0, so run this cell and the one above again.")
        break
    pieces = best_pieces(64, n_bytes, latency_s, bytes_per_s)
    print(f"{n_bytes / 1e6:>7g} MB: a ring up to "
          f"{most_ranks(n_bytes, latency_s, bytes_per_s, 4096)} ranks; a chain of 64 ranks "
          f"takes {chain_s(64, n_bytes, pieces, latency_s, bytes_per_s):.3g} s in {pieces} "
          f"pieces, and {chain_s(64, n_bytes, 1, latency_s, bytes_per_s):.3g} s in one")

# %% [markdown]
# Are such predictions right? The tutorial checks its own predictions. On one machine, the ranks of a ring share cores and memory, and gloo's "ready" message
# costs a second latency in each round, but the model includes neither effect. On separate links, the tree takes the predicted time, and so does the ring if all
# receives are posted ahead.
#
# ## Where to go on
#
# * `manyhands.simulate` contains the same models and others. Unit 19 applies them to your measurements and predicts published tables.
# * Unit 06 uses real buckets (`bucket_cap_mb`), unit 08 replaces the one server by several, and unit 10 uses Horovod's fusion buffer.
# * R. Thakur, R. Rabenseifner, W. Gropp 2005, *Optimization of collective communication operations in MPICH*, Int. J. High Perform. Comput. Appl. 19(1).

# %%
cluster.stop()
