# %% [markdown] unit={"minutes": 70, "ranks": 1, "framework": "simulation", "title": "Scaling to 1024"}
# # 19 Lab: predict a training step
#
# In this lab, you write the parts of a simulator and use them to predict tables. At the end, you can
#
# * compute the cost of an all-reduce by halving and doubling, and of an all-reduce in two levels.
# * simulate a step of 100,000 ranks, each with its own clock, in a single vector.
# * compute from measured times how slow the slowest of p ranks is.
# * compute how long a step of a pipeline with unequal stages takes.
# * find two constants from two rows of a table, and predict the other rows.
# * find what is wrong in a benchmark whose numbers look plausible.
#
# **Before:** the tutorial of this unit. **Minutes:** 70 · **Ranks:** none, because everything runs in this kernel · **Points:** 19.
#
# The checks draw random machines, steps and tables. They compare your numbers, to within 1e-6, with the results of the package's simulator and of a simulation
# that processes the events one by one. Since the checks measure no time, and the simulation is the same on every machine, it does not matter whether you have
# GPUs.

# %% tags=["setup"]
import numpy as np

from manyhands import hint
from manyhands.checks import scaling as check
from manyhands.simulate.virtual_device import Bench

# %% [markdown]
# ## 1. Halving and doubling
#
# In the first round, rank $r$ exchanges half of the tensor with rank $r \oplus 1$ and adds what it receives. In the second round, it exchanges a quarter with
# rank $r \oplus 2$. This continues until each rank has a p-th of the sum. Then the same rounds run in reverse order without adding, which amounts to an
# all-gather. `p` is a power of two. A message takes `latency_s` + bytes / rate. Note that the rate is given in Gbit/s, because networks are sold that way.
#
# *Difficulty ●○○, 6 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# How many rounds are there, and what do the bytes of all the rounds add up to? For more help, run `hint("19-halving-doubling")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="halving-doubling"
def halving_doubling_s(p: int, n_bytes: float, latency_s: float,
                       gbit_per_s: float) -> float:
    """Return the seconds of an all-reduce of n_bytes over p ranks, which uses halving
    and doubling."""
    ### BEGIN SOLUTION
    bytes_per_s, seconds, part = gbit_per_s * 1e9 / 8, 0.0, n_bytes
    for _ in range(p.bit_length() - 1):
        part /= 2
        seconds += 2 * (latency_s + part / bytes_per_s)  # this way, and later the way back
    return seconds
    ### END SOLUTION

# %% tags=["check"] grade_id="halving-doubling-check" points=2
check.halving_doubling(halving_doubling_s)

# %% [markdown]
# ## 2. Two levels
#
# The `ranks_per_node` ranks of a node are connected by fast links `inside`, and each node has `links_per_node` links to the other nodes. For example, a cloud
# node often has a single network card, whereas a DGX H100 has eight, one for each GPU. `inside` and `between` describe one link of each kind as a pair
# (latency_s, bytes_per_s).
#
# There are three phases, one after the other:
#
# 1. A reduce-scatter runs along a ring inside each node.
# 2. Each rank all-reduces its part with the ranks that hold the same part in the other nodes, and all parts are sent at the same time. The ranks of a node are
#    distributed evenly over its links, and the ranks of one link share its rate. Since a rank uses a single link, a node with more links than ranks leaves some
#    links idle.
# 3. An all-gather runs along the ring inside each node.
#
# `all_reduce_s(p, n_bytes, latency_s, bytes_per_s)` returns how many seconds one all-reduce among p partners takes.
#
# *Difficulty ●●○, 8 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# How many bytes pass through each link of a node in the second phase if the node has one link, and how many if it has one link for each rank? For more help,
# run `hint("19-hierarchical")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="hierarchical"
def hierarchical_s(nodes: int, ranks_per_node: int, n_bytes: float,
                   inside: tuple[float, float], between: tuple[float, float],
                   links_per_node: int, all_reduce_s) -> float:
    """Return the seconds of an all-reduce of n_bytes over nodes * ranks_per_node ranks."""
    ### BEGIN SOLUTION
    latency_s, bytes_per_s = inside
    half_s = (ranks_per_node - 1) * (latency_s + n_bytes / ranks_per_node / bytes_per_s)
    bytes_of_a_link = n_bytes / min(links_per_node, ranks_per_node)
    return half_s + all_reduce_s(nodes, bytes_of_a_link, *between) + half_s
    ### END SOLUTION

# %% tags=["check"] grade_id="hierarchical-check" points=2
check.hierarchical(hierarchical_s)

# %% [markdown]
# ## 3. A step of many ranks
#
# Gradient i has `sizes[i]` bytes. On a rank that is not slow, it is ready `ready_s[i]` seconds after the start of the step, and on rank r it is ready after
# `slow[r] * ready_s[i]` seconds. Gradients are put into buckets in the order of i. A bucket is full as soon as it holds `bucket_bytes` **or more**, and the
# last bucket is sent when there are no more gradients.
#
# The buckets are sent one after the other, so a rank arrives at an all-reduce when its gradients are ready **and** it has finished the previous all-reduce.
# `all_reduce(clocks, n_bytes)` takes the vector of the times at which the ranks arrive, and returns the times at which they continue, which need not be equal.
# When does the last rank have the last sum?
#
# A Python loop over 100,000 ranks would take too long, so the check counts the lines that are executed. `map` and `np.vectorize` call a Python function for
# each rank, so they count as loops.
#
# *Difficulty ●●●, 15 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# Keep a vector of the times at which each rank's network is free. For more help, run `hint("19-step")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="step"
def step_s(slow: np.ndarray, ready_s: list[float], sizes: list[int], bucket_bytes: float,
           all_reduce) -> float:
    """Return the seconds from the start of the step until the last rank has the last
    sum."""
    ### BEGIN SOLUTION
    free, held = np.zeros(len(slow)), 0
    for i, (ready, size) in enumerate(zip(ready_s, sizes)):
        held += size
        if held >= bucket_bytes or i == len(sizes) - 1:
            free, held = all_reduce(np.maximum(free, slow * ready), held), 0
    return free.max()
    ### END SOLUTION

# %% tags=["check"] grade_id="step-check" points=4
check.step(step_s)

# %% [markdown]
# ## 4. The slowest rank, and efficiency
#
# `times_s` are the measured step times of one rank. Each of p ranks draws its own time from them, with replacement, and all ranks wait for the slowest. How
# long does the slowest rank take on average? Compute the exact mean, without drawing random numbers.
#
# Then compute the efficiency of many ranks compared with a base of few ranks. The efficiency is the number of images per second and rank on the many ranks,
# divided by the number of images per second and rank on the base. Both arguments are pairs (ranks, images_per_s).
#
# *Difficulty ●●○, 10 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# What is the probability that none of p ranks is slower than the i-th of the sorted times? For more help, run `hint("19-slowest")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="slowest"
def slowest_s(p: int, times_s: list[float]) -> float:
    """Return the mean of the largest of p times, drawn from times_s with replacement."""
    ### BEGIN SOLUTION
    n = len(times_s)
    chances = np.diff((np.arange(n + 1) / n) ** p)  # of the i-th being the largest
    return chances @ np.sort(times_s)
    ### END SOLUTION


def efficiency(base: tuple[int, float], many: tuple[int, float]) -> float:
    """Return the images per second and rank of many ranks, as a fraction of the base's."""
    ### BEGIN SOLUTION
    return (many[1] / many[0]) / (base[1] / base[0])
    ### END SOLUTION

# %% tags=["check"] grade_id="slowest-check" points=3
check.slowest(slowest_s, efficiency)

# %% [markdown]
# ## 5. A pipeline
#
# In a step of GPipe, all micro-batches first go forward through the stages, one after the other. When the last stage has processed all of them, they all go
# backward, in the same order. `forward_s[s]` and `backward_s[s]` are the times in seconds that stage s needs for one micro-batch. The stages are not equal, and
# messages cost nothing. Compute the duration of the step.
#
# *Difficulty ●●○, 8 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# A single micro-batch takes as long as all stages together. How much time does a second one add? For more help, run `hint("19-pipeline")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="pipeline"
def pipeline_s(forward_s: list[float], backward_s: list[float],
               micro_batches: int) -> float:
    """Return the seconds of a step of GPipe."""
    ### BEGIN SOLUTION
    return sum(sum(wave) + (micro_batches - 1) * max(wave)
               for wave in (forward_s, backward_s))
    ### END SOLUTION

# %% tags=["check"] grade_id="pipeline-check" points=2
check.pipeline(pipeline_s)

# %% [markdown]
# ## 6. Two rows, and the rest
#
# A table has rows (ranks, images_per_s), and each rank processes `batch` images in a step. `network_s(ranks)` returns how long the all-reduce of the gradients
# takes according to the published numbers of the network. However, part of this time may be hidden behind the computation, and the network may not reach its
# published numbers, so we multiply the time by a factor. A step then takes
#
# $$ t(\mathrm{ranks}) = \mathrm{compute} + \mathrm{factor} \cdot \mathrm{network}(\mathrm{ranks}) $$
#
# Find the two constants, compute and factor, from **the first two rows**, without looking at the others. Because the rows also contain noise, the factor that
# follows from them may be below 0. Return the factor even then. Then predict the images per second for each row after the second. (The check passes a correct
# `calibrate` to `predict_rest`.)
#
# *Difficulty ●●○, 12 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# Begin with seconds: how many images are in a step, and how long does a step take? For more help, run `hint("19-calibration")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="calibration"
def calibrate(rows: list[tuple[int, float]], batch: int,
              network_s) -> tuple[float, float]:
    """Return (compute_s, factor), so that the model meets the first two rows."""
    ### BEGIN SOLUTION
    (one, t1), (two, t2) = [(ranks, ranks * batch / images) for ranks, images in rows[:2]]
    factor = (t2 - t1) / (network_s(two) - network_s(one))
    return t1 - factor * network_s(one), factor
    ### END SOLUTION


def predict_rest(rows: list[tuple[int, float]], batch: int, network_s,
                 calibrate) -> list[float]:
    """Return the images per second of each row after the second, with the constants
    that calibrate(rows, batch, network_s) returns."""
    ### BEGIN SOLUTION
    compute_s, factor = calibrate(rows, batch, network_s)
    return [ranks * batch / (compute_s + factor * network_s(ranks))
            for ranks, _ in rows[2:]]
    ### END SOLUTION

# %% tags=["check"] grade_id="calibration-check" points=4
check.calibration(calibrate, predict_rest)

# %% [markdown]
# ## 7. Find the bug
#
# Every table begins with a measurement. A `Bench` is one of `bench.world` ranks that all run the same program, on a virtual clock. `bench.step()` puts a
# training step into the queue of the device and returns immediately, as on a GPU. `bench.synchronize()` waits until the device has done everything that is in
# its queue, and `bench.now_s()` reads the clock of the host. Suppose that a team measures its throughput as follows:

# %%
def faulty_images_per_s(bench, steps, warmup, batch):
    for _ in range(warmup):
        bench.step()
    times = []
    for _ in range(steps):
        start_s = bench.now_s()
        bench.step()
        bench.synchronize()
        times.append(bench.now_s() - start_s)
    return bench.world * batch / np.median(times)

# %% [markdown]
# On three machines, the team compares the result with the result of a run of 100,000 steps. The first 5 steps are slow on each machine, because the device tries
# several kernels and keeps the fastest. On the second machine, every eighth step waits for data.

# %%
def machines():
    slow, usual = [0.5] * 5, [0.02] * 8
    return {"even steps": Bench(8, slow + usual, slow_steps=5),
            "some slow steps": Bench(8, slow + usual[:-1] + [0.06], slow_steps=5),
            "short steps": Bench(8, slow + [0.002] * 8, slow_steps=5)}


def compare(images_per_s):
    for (name, bench), fresh in zip(machines().items(), machines().values()):
        for _ in range(100_000):
            fresh.step()
        fresh.synchronize()
        long_run = 8 * 32 * 100_000 / fresh.now_s()
        reported = images_per_s(bench, steps=16, warmup=6, batch=32)
        print(f"{name:<16} reported {reported:>8.0f} images/s  long run {long_run:>8.0f}")


compare(faulty_images_per_s)

# %% [markdown]
# Write the benchmark so that its number agrees with the number from a long run. Each rank processes `batch` images in a step. Measure `steps` steps after `warmup`
# steps that do not count, and return the images per second of all ranks together. `compare(images_per_s)` shows how well your benchmark does. Small differences
# remain, because the long run contains the slow steps, and because the device is idle while the first step of your measurement is launched.
#
# *Difficulty ●●○, 8 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# Change one thing at a time, and look at all three rows after each change. For more help, run `hint("19-bench")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="bench"
def images_per_s(bench: Bench, steps: int, warmup: int, batch: int) -> float:
    """Return the images per second of all ranks together, as in a long run."""
    ### BEGIN SOLUTION
    for _ in range(warmup):
        bench.step()
    bench.synchronize()  # so that no step of the warm-up is measured
    start_s = bench.now_s()
    for _ in range(steps):
        bench.step()
    bench.synchronize()
    return bench.world * batch * steps / (bench.now_s() - start_s)
    ### END SOLUTION

# %% tags=["check"] grade_id="bench-check" points=2
check.bench(images_per_s)

# %% [markdown]
# On a real GPU, `torch.cuda.synchronize()` plays the role of `bench.synchronize()`, and every rank has to measure the same steps. The checks of this lab do not
# measure time.
#
# ## All together
#
# Your functions now predict a published table (this part is not graded). The table shows Inception V3 on 1 to 64 K80 GPUs with parameter servers, 8 GPUs per
# node, 64 images per GPU, and 10 Gbit/s (TensorFlow 2017, docs_src/performance/benchmarks.md). The gradients take 95 MB. A model that is fitted to one GPU and
# to one node would know nothing about the network, so we fit it to 8 and 16 GPUs.

# %%
rows = [(8, 229), (16, 459), (32, 902), (64, 1783)]

def network_s(ranks):
    return halving_doubling_s(ranks // 8, 95e6, 30e-6, 10)

print("ranks  published  predicted")
for (ranks, published), images in zip(rows[2:],
                                      predict_rest(rows, 64, network_s, calibrate)):
    print(f"{ranks:>5}{published:>11}{images:>11.0f}  {images / published - 1:+.1%}")
print(f"efficiency of 64 GPUs against 8: {efficiency(rows[0], rows[-1]):.3f}")

# %% [markdown]
# The predictions are too high by 2 and 3 %. From 8 to 16 GPUs, the images per second of the table more than double (229 to 459), so the fitted factor of the
# network is even a little below 0. A fit to two rows also fits the noise of these two rows. For this reason, the tutorial fits the two ends of the table, where
# the network has a visible effect.
#
# ## Where to go on
#
# * `manyhands.simulate` contains all these functions and simulates more, for example ZeRO, split layers, interleaved pipelines and failures. `docs/SIMULATE.md`
#   shows how to predict a table.
# * P. Goyal et al. 2017, *Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour*, [arXiv 1706.02677](https://arxiv.org/abs/1706.02677), describes halving
#   and doubling between servers, in three phases.
# * R. Thakur, R. Rabenseifner, W. Gropp 2005, *Optimization of collective communication operations in MPICH*, Int. J. High Perform. Comput. Appl. 19(1).
