# %% [markdown] unit={"minutes": 45, "ranks": 4, "framework": "simulation", "title": "Scaling to 1024"}
# # 19 Scaling to 1024
#
# You will rarely be able to borrow 1024 GPUs just to find out whether your training scales. This notebook shows how to predict the scaling instead. You measure
# a little, simulate the rest, and learn how far you can trust the result. At the end, you can
#
# * simulate a training step on any number of ranks, each with its own clock.
# * calibrate the simulator on a few steps of your own cluster, and check it on steps that it has not seen.
# * predict how long a step takes on 1024 ranks of a machine that you know only from its data sheet, and what this time is spent on.
# * explain why trees, switches that add, overlap, a larger batch and fewer bytes make a step faster.
# * predict a published table from two of its rows, and explain where the model is wrong.
#
# **Before:** you have worked through unit 05; units 06 and 14 help. **Minutes:** 45 · **Ranks:** 4, on an emulated network.
#
# All cells run in this kernel. `cluster.run(function, ...)` calls a function on all ranks.

# %% tags=["setup"]
import numpy as np

from manyhands import Cluster, predict, settle, simulate
from manyhands.plots import scaling
from manyhands.simulate import clocks, networks, published, recorded, survival
from manyhands.simulate.machines import named
from manyhands.simulate.stragglers import slowness
from manyhands.simulate.training_step import Layer, Machine, Way, step

# %% [markdown]
# ## A clock for each rank
#
# The formulas of unit 05 hold for ranks that begin together, but in practice ranks never do. We therefore give each rank a clock, so that the clocks of all
# ranks are a vector of times. A simulated all-reduce takes the times at which the ranks arrive and returns the times at which they continue. Along a ring, each
# rank needs the data of every other rank before it can continue, so all ranks continue together after the last one has arrived. In a tree, some ranks can
# continue earlier than others.
#
# **Predict.** 1024 ranks begin a ring all-reduce, but one of them is 2 ms late. How many ranks continue later than they would have otherwise?

# %%
# Run this cell to make your prediction.
predict("19-late",
        "If one of 1024 ranks is 2 ms late to a ring all-reduce, how many continue later?",
        ["only that one", "its neighbours too", "all 1024"])

# %%
link = (5e-6, 7e9)                    # latency in s, bandwidth in bytes per s
together, late = np.zeros(1024), np.zeros(1024)
late[7] = 0.002
delay = clocks.ring(late, 100e6, link) - clocks.ring(together, 100e6, link)
print(f"ring: {np.count_nonzero(delay > 1e-9)} ranks go on later, "
      f"by {delay.max() * 1e3:.1f} ms")

# %%
# Run this cell to compare your prediction with the outcome.
settle("19-late", lambda: {1: "only that one", 1024: "all 1024"}.get(
    np.count_nonzero(delay > 1e-9), "its neighbours too"))

# %% [markdown]
# <details><summary>Why?</summary>
#
# The sum needs the part of every rank, so no rank can have the sum before the last rank has arrived. Therefore, one late rank in a thousand costs as much as a
# thousand late ranks.
# </details>
#
# ## A step, simulated
#
# A step consists of a forward pass and a backward pass. During the backward pass, the gradients are sent in buckets, one after the other (unit 06). The
# simulator takes a **machine** (two kinds of links), a **model** (layers with their sizes in bytes and their times in seconds) and a **way** to train:

# %%
machine = Machine(ranks_per_node=8, inside=(5e-6, 80e9), between=(30e-6, 6.25e9))
model = [Layer(weights_bytes=2e6, forward_s=1e-3, backward_s=2e-3)] * 50
for ranks in (1, 8, 64, 1024):
    one = step(machine, model, Way(data=ranks))
    print(f"{ranks:>5} ranks: {one.seconds * 1e3:6.1f} ms, computing {one.computing:.2f}, "
          f"bubble {one.bubble:.2f}, exposed {one.exposed:.2f}")

# %% [markdown]
# `computing`, `bubble` and `exposed` are the fractions of the step in which an average rank computes, waits in a pipeline (there is none here), and waits for
# messages or slower ranks, respectively. The three fractions add up to 1.
#
# From 64 ranks on, the simulator assumes that the ranks differ a little, because in large jobs no two ranks take the same time. Their times then have an
# exponential tail of 1 %. (With `step(..., slowness=1)`, all ranks are equally fast.)
#
# The simulator does not run the ranks one by one. Whatever differs between ranks is stored in an array, and whatever is the same is computed by a formula.
# Therefore, the number of ranks hardly affects how long the simulation takes:

# %% tags=["measured"]
import time

for ranks in (1000, 100_000):
    start_s = time.perf_counter()
    step(machine, model, Way(ranks), slowness(Way(ranks), 0.02))
    took_s = time.perf_counter() - start_s
    print(f"{ranks:>7} ranks, each with its own clock: {took_s:.3f} s")

# %% [markdown]
# Is the result right? The package's tests simulate every message of 200 small steps one by one, as well as every message of rings and trees on two kinds of
# links, and compare the times with the simulator's. These tests show that the *calculation* is right, but only a real cluster can show whether the *model* is
# right.
#
# ## Calibrate on your own cluster
#
# Our cluster has four nodes, connected by a separate emulated network with 10 Mbit/s and a latency of 10 ms. This network is so slow that the two cores of this
# machine hardly matter. While a GPU computes, the processor next to it waits, so we replace the computation by a `sleep` here. There are 4 layers, each of
# which takes 20 ms in forward and 40 ms in backward. The duration of a step varies a little at random on each rank, as it does on real ranks.

# %%
SIZES, LAYER_S, SPREAD = [80_000] * 4, 0.04, 0.1  # bytes, s of backward, part of the mean

def join():
    import torch.distributed as dist
    if not dist.is_initialized():
        dist.init_process_group("gloo")

def all_reduce_s(ranks, n_bytes, calls=4):
    """Measure the seconds of each all-reduce of the first `ranks` ranks."""
    import time, torch, torch.distributed as dist
    group = dist.new_group(range(ranks))
    if dist.get_rank() >= ranks:
        return None
    x, times_s = torch.zeros(n_bytes // 4), []
    for _ in range(calls + 1):
        start_s = time.perf_counter()
        dist.all_reduce(x, group=group)
        times_s.append(time.perf_counter() - start_s)
    return times_s[1:]  # the first call only opens the connections

# %% [markdown]
# The next function is the training step. Like NCCL's stream, a separate thread sends the buckets one after the other while the computation continues:

# %%
def train(ranks, sizes, layer_s, spread, steps=5):
    """Return (seconds of a step, seconds until its backward ended) for each step."""
    import random, time, torch, torch.distributed as dist
    from concurrent.futures import ThreadPoolExecutor
    group, chance, done = dist.new_group(range(ranks)), random.Random(dist.get_rank()), []
    if dist.get_rank() >= ranks:
        return None
    with ThreadPoolExecutor(1) as network:
        for _ in range(steps + 1):
            start_s, sent = time.perf_counter(), []
            slow = 1 - spread + spread * chance.expovariate(1)
            time.sleep(slow * layer_s / 2 * len(sizes))  # forward
            for n_bytes in sizes:
                time.sleep(slow * layer_s)
                sent.append(network.submit(dist.all_reduce, torch.ones(n_bytes // 4),
                                           group=group))
            computed_s = time.perf_counter() - start_s
            [one.result() for one in sent]
            done.append((time.perf_counter() - start_s, computed_s))
    return done[1:]

# %% tags=["measured"]
from manyhands.cluster import emulated

blocked = emulated.missing()
if blocked:
    print("BLOCKED:", blocked, "\nBelow are recorded times.")

def network_of(rate_mbit):
    network = Cluster(nodes=4, ranks_per_node=1, profile="emulated", rate_mbit=rate_mbit,
                      delay_ms=10, name=f"network{rate_mbit}")
    joined = network.run(join)
    return network

def steps_s(network, rate_mbit, ranks):
    """Of five steps, each as long as its slowest rank took."""
    if blocked:
        return recorded.STEPS["steps_s"][rate_mbit, ranks]
    got = network.run(train, ranks, SIZES, LAYER_S, SPREAD)[:ranks]
    return [max(one[0] for one in ranks_of) for ranks_of in zip(*got)]

network = None if blocked else network_of(10)

# %% [markdown]
# We first need the latency alpha and the bandwidth B, so we measure all-reduces of 2 and 4 ranks with two sizes each. `calibrate(model, rows, guess)` finds the
# constants for which a model comes closest to the measured rows, in terms of relative errors.

# %% tags=["measured"]
rows = list(recorded.STEPS["all_reduce_s"].items())
if not blocked:
    rows = []
    for ranks, n_bytes in recorded.STEPS["all_reduce_s"]:
        calls = zip(*network.run(all_reduce_s, ranks, n_bytes)[:ranks])
        rows.append(((ranks, n_bytes), np.median([max(one) for one in calls])))

def ring(constants, x):
    ranks, n_bytes = x
    return simulate.ring_s(ranks, n_bytes, constants["latency_s"], constants["bytes_per_s"])

mine = simulate.calibrate(ring, rows, {"latency_s": 0.02, "bytes_per_s": 1e6})
print(f"latency {mine['latency_s'] * 1e3:.1f} ms, {mine['bytes_per_s'] / 1e6:.2f} MB/s")
for (ranks, n_bytes), measured in rows:
    print(f"{ranks} ranks, {n_bytes:>6} bytes: measured {measured:.3f} s, "
          f"fitted {ring(mine, (ranks, n_bytes)):.3f} s")

# %% [markdown]
# The latency is more than twice the 10 ms of the link, because in each round of a ring, gloo first asks whether there is room (unit 05), and because processes
# have to wake up. The fitted latency includes both delays.
#
# Next, we run five steps on one rank to measure the computing time and how much it varies.

# %% tags=["measured"]
one_s = recorded.STEPS["one_s"] if blocked else [
    computed for _, computed in network.run(train, 1, SIZES, LAYER_S, SPREAD)[0]]
mean_s = float(np.mean(one_s))
print(f"one rank: {mean_s:.3f} s, standard deviation {np.std(one_s):.3f} s")
print(f"so four ranks compute for {mean_s * survival.slowest(4, 0, one_s):.3f} s: "
      "the slowest counts")

# %%
def predicted_s(ranks, bytes_per_s):
    """Average 20 simulated steps, whose ranks are as slow as the measured steps."""
    layers = [Layer(n, mean_s / 3 / len(SIZES), mean_s * 2 / 3 / len(SIZES)) for n in SIZES]
    here = Machine(1, (0.0, 1e30), (mine["latency_s"], bytes_per_s))
    way = Way(ranks, bucket_bytes=0)
    return np.mean([step(here, layers, way, slowness(way, 0, one_s, seed)).seconds
                    for seed in range(20)])

# %% [markdown]
# **Predict.** One rank needs 0.25 s for a step. On several ranks, a step also sends 320 kB in four buckets over links of 1.25 MB/s, and each round has the
# latency that you have just calibrated. How long will a step on three ranks take?

# %%
# Run this cell to make your prediction.
predict("19-three", "How many seconds does a step of three ranks take at 10 Mbit/s?",
        unit="s", within=0.25)

# %% tags=["measured"]
found = {10: {ranks: float(np.median(steps_s(network, 10, ranks))) for ranks in (2, 3, 4)}}
print("10 Mbit/s   predicted   measured")
for ranks, seconds in found[10].items():
    expected = predicted_s(ranks, mine["bytes_per_s"])
    print(f"{ranks} ranks {expected:>12.3f} s {seconds:>8.3f} s  "
          f"{expected / seconds - 1:+.0%}")

# %%
# Run this cell to compare your prediction with the outcome.
settle("19-three", lambda: found[10][3])

# %% [markdown]
# The calibration used neither three ranks nor a training step on more than one rank. Now we change the network to 40 Mbit/s. We measure nothing for this
# prediction and only multiply the bandwidth by four.
#
# **Predict.** The bandwidth becomes four times as large. By what factor does a step on four ranks become faster?

# %%
# Run this cell to make your prediction.
predict("19-bandwidth",
        "By what factor does four times the bandwidth speed up a step of four ranks?",
        ["less than 2 times", "2 to 3 times", "more than 3 times"])

# %% tags=["measured"]
if not blocked:
    network.stop()
    network = network_of(40)
found[40] = {ranks: float(np.median(steps_s(network, 40, ranks))) for ranks in (2, 3, 4)}
if not blocked:
    network.stop()
print("40 Mbit/s   predicted   measured")
for ranks, seconds in found[40].items():
    expected = predicted_s(ranks, 4 * mine["bytes_per_s"])
    print(f"{ranks} ranks {expected:>12.3f} s {seconds:>8.3f} s  "
          f"{expected / seconds - 1:+.0%}")

# %%
# Run this cell to compare your prediction with the outcome.
def faster():
    times = found[10][4] / found[40][4]
    return "less than 2 times" if times < 2 else "2 to 3 times" if times < 3 else \
        "more than 3 times"

settle("19-bandwidth", faster)

# %% tags=["measured"]
curves, marks = {}, {}
for rate in (10, 40):
    name = f"{rate} Mbit/s"
    curves[name] = {ranks: mean_s / predicted_s(ranks, mine["bytes_per_s"] * rate / 10)
                    for ranks in (1, 2, 3, 4, 6, 8, 16)}
    marks[name] = {ranks: mean_s / seconds for ranks, seconds in found[rate].items()}
    for what, points in (("predicted", curves[name]), ("measured", marks[name])):
        print(name, what, {ranks: round(float(e), 2) for ranks, e in points.items()})
scaling.efficiency(curves, marks)

# %% [markdown]
# <details><summary>Why is it not four times as fast?</summary>
#
# Sending bytes becomes cheaper, but latencies do not. Four ranks pay for four buckets of six rounds each, for a total of 24 latencies. These latencies make the
# curve drop, and a prediction from bytes alone would be far off. One bucket instead of four would save 18 of the latencies, but it would lose all of the
# overlap.
#
# (The efficiency on one rank is not exactly 1, because the prediction draws 20 steps from the five that were measured.)
# </details>
#
# ## Machines of the past and of today
#
# `machines.toml` describes machines by published numbers and names the source of each number. `p2-8xlarge` has K80 GPUs, `big-basin-p100` has P100 GPUs, the
# DGX machines are named after their GPUs, and a `gb200-nvl72` is a rack in which NVLink connects 72 GPUs. We train ResNet-50 with 32 images on each GPU and sum
# the gradients along rings like those that NCCL builds. Each ring passes through the GPUs of a node and then goes on to the next node. A node has as many rings
# as network links, so all links are used. With 128 nodes, at most 256 of a chunk's 2046 hops cross the network. Since latencies are rarely published, we
# *assume* 5 µs inside a node and, between nodes, 30 µs (Ethernet) or 10 µs (InfiniBand). The speed that a GPU reaches is not published either. For K80 and
# P100, it comes from TensorFlow's table of 2017 (below), and for the newer GPUs we *assume* a fifth of the peak.
#
# Weak and strong scaling differ in what stays the same. Here, each GPU keeps its 32 images, so the batch grows with the ranks (*weak*). If instead the batch
# stays the same and each rank gets fewer images (*strong*), the computation shrinks while the number of rounds stays the same, so the curve drops earlier.
#
# **Predict.** On which of these machines do 1024 GPUs spend less than four fifths of a step on computing?

# %%
# Run this cell to make your prediction.
predict("19-fifth",
        "On which machines do 1024 GPUs compute for less than four fifths of a step?",
        ["on none", "on A100, H100 and GB200", "on all but the K80", "on all of them"])

# %%
REACHED = {"p2-8xlarge": 1.3e12, "big-basin-p100": 5.4e12, "dgx-a100": 0.2 * 312e12,
           "dgx-h100": 0.2 * 989e12, "gb200-nvl72": 0.2 * 2500e12}

def on(name, ranks, batch=32, itemsize=4, **way):
    model = networks.layers(networks.resnet(50), batch, REACHED[name], itemsize)
    return step(named(name).machine, model, Way(ranks, **way))

RANKS, rings = (1, 8, 64, 256, 1024, 4096), {}
for name in REACHED:
    rings[name] = {p: on(name, 1).seconds / on(name, p).seconds for p in RANKS}
    print(f"{name:<16}", {p: round(float(e), 2) for p, e in rings[name].items()})
scaling.efficiency(rings)

# %%
# Run this cell to compare your prediction with the outcome.
def elsewhere():
    lost = [name for name, one in rings.items() if one[1024] < 0.8]
    return {0: "on none", 3: "on A100, H100 and GB200", 4: "on all but the K80",
            5: "on all of them"}[len(lost)]

settle("19-fifth", elsewhere)

# %% [markdown]
# <details><summary>Why?</summary>
#
# A GPU of today needs only a small fraction of the time that a GPU of 2017 needed for a step. Although its network has more bandwidth as well, latencies have
# fallen far less (here, only to a third between nodes), and every bucket in a ring of 1024 ranks passes 2046 hops. The faster the computation is, the less of
# the communication it can hide. On the older machines, late ranks cost more than the network does.
# </details>
#
# ## What mends it
#
# We try several changes on 1024 H100 GPUs, one after the other:

# %%
ways = {"ring": {}, "ring, 16 bit": {"itemsize": 2},
        "ring, one bucket": {"bucket_bytes": 1e15},
        "two levels": {"all_reduce": "hierarchical"},
        "double tree": {"all_reduce": "double tree"},
        "switches add": {"all_reduce": "in network"},
        "double tree, 256 images": {"all_reduce": "double tree", "batch": 256}}
mended = {name: on("dgx-h100", 1024, **way) for name, way in ways.items()}
print(scaling.bars_table(mended))
scaling.bars(mended)

# %% [markdown]
# On 1024 ranks, it is the hops rather than the bytes that cost time. *16 bit* halves the bytes and therefore the number of buckets. *One bucket* hides nothing
# behind the backward pass and is still faster, because it saves the hops of the other buckets. *Two levels* form a ring inside each node and then one between
# the nodes, which take 14 and 254 rounds, respectively. NCCL has a better algorithm. Its *double tree* connects the nodes by two binary trees, each with half
# of the tensor, so a chunk crosses the network only 14 times, while each rank sends about as many bytes as in a ring. Where *switches add* (NVLS), a rank sends
# its numbers once and receives the sum. NCCL chooses among these algorithms for each message, as `all_reduce="auto"` does here. *More images* on each GPU hide
# nearly everything that is left, and unit 17 shows whether the network still learns as well.
#
# ## The slowest of 1024
#
# No network can help if the ranks themselves differ in speed, because a step waits for the slowest of its p ranks.
#
# **Predict.** The step times of the ranks are normally distributed with a standard deviation of 5 %. How much longer does a step of 1024 ranks take than an
# average rank's step?

# %%
# Run this cell to make your prediction.
predict("19-slowest",
        "Ranks vary by 5 %. How much slower than the mean is the slowest of 1024?",
        ["about 5 %", "about 16 %", "about 50 %"])

# %%
laws = {"normal": "normal", "exponential tail": "exponential"}
for law, how in laws.items():
    print(f"{law:<17}", {p: f"{survival.slowest(p, 0.05, how) - 1:.1%}"
                        for p in (1, 8, 64, 1024, 100_000)})

# %%
# Run this cell to compare your prediction with the outcome.
def how_much():
    late = survival.slowest(1024, 0.05) - 1
    return min(((abs(late - part), words) for part, words in
                ((0.05, "about 5 %"), (0.16, "about 16 %"), (0.5, "about 50 %"))))[1]

settle("19-slowest", how_much)

# %% [markdown]
# <details><summary>Why?</summary>
#
# The largest of p normal numbers is about $\sqrt{2 \ln p}$ standard deviations above the mean, and slightly less unless p is huge. For 1024 ranks, it is 3.2
# deviations above the mean. With an exponential tail, it is $H_p - 1$ deviations above the mean, where $H_p$ is the harmonic number. This is about $\ln p +
# 0.577 - 1$, or 6.5 for 1024 ranks. What counts is therefore the tail of the distribution and not its standard deviation.
# </details>
#
# Ranks also fail. If a rank fails once in five years, one of 1024 ranks fails every 43 hours. The next cell computes how often to save, and how long the job
# takes in the end (unit 18; Daly 2006):

# %%
mtbf_s = 5 * 365 * 86_400 / np.array([8, 1024, 16_384])
for ranks, mtbf in zip((8, 1024, 16_384), mtbf_s):
    every_s = survival.daly_s(60, mtbf)
    job_s = survival.job_s(7 * 86_400, every_s, 60, 300, mtbf)
    print(f"{ranks:>6} ranks: a failure every {mtbf / 3600:7.1f} h, save every "
          f"{every_s / 60:5.0f} min, a week takes {job_s / 86_400:.2f} days")

# %% [markdown]
# ## Three dimensions
#
# A GPT of 76 billion weights does not fit on a single GPU, so replicas alone are not enough. It does fit if its layers are split over the 8 GPUs of a node and
# a pipeline runs through 4 nodes (units 15 and 14). We simulate 1024 A100 GPUs and 1792 sequences per step (Narayanan et al. 2021, table 1), and we assume that
# a GPU reaches 190 TFLOP/s. The arguments are `Way(data, stages, split, micro_batches)`, and `recompute=True` recomputes the activations during the backward
# pass:

# %%
blocks = networks.transformer(60, 10_240, 2048, 51_200)
gpt = networks.layers(blocks, 1, 190e12, itemsize=2, recompute=True)
a100 = named("dgx-a100").machine
shapes = {"split 8, 4 stages": Way(32, 4, 8, 56), "interleaved": Way(
              32, 4, 8, 56, schedule="interleaved", chunks=3),
          "split 8, 16 stages": Way(8, 16, 8, 224),
          "split 16, 2 stages": Way(32, 2, 16, 56),
          "few micro-batches": Way(32, 4, 8, 8)}
three = {name: step(a100, gpt, way._replace(all_reduce="auto"))
         for name, way in shapes.items()}
print(scaling.bars_table(three))
first, peak = three["split 8, 4 stages"], named("dgx-a100").flops_per_s
print(f"MFU of the first: {networks.mfu(blocks, 1792 / 1024, first.seconds, peak):.0%}")
scaling.bars(three)

# %% [markdown]
# More stages mean a larger bubble, namely 5 % for 4 stages and 6 % for 16 stages by unit 14's formula. The rest of the bubble arises because 60 blocks and the
# output layer cannot be cut evenly, least of all into 16 stages. A split that extends beyond its node waits for a slow link at each layer. (On a rack in which
# NVLink connects 72 GPUs, a split of 16 would stay on fast links.) *Few micro-batches* is a step of 256 sequences, so it is shorter than the other steps, and
# only its bubble should be compared.
#
# The **model FLOPs utilisation** (MFU) is the fraction of the GPUs' peak that the step's necessary operations use, not counting those that recomputation repeats.
# Training runs of language models are compared by this number. For the shape of the first row, the paper measured 140 TFLOP/s per GPU (table 1), which gives
# 16.1 s for the 2.3e18 operations of a step (the paper's equation 3, which counts the recomputation). Our time is 6 % too short in the first row and 9 % too
# short in the second.
#
# ## Published tables
#
# The hardest test uses numbers that other people measured. We begin without any fit. Only the speed of one GPU comes from the table, the links have seven
# tenths of their published rates, and nothing overlaps:

# %%
rows = published.unfitted()
for name, gpus, number, said in rows:
    if "K80" in name or "VGG" in name or "AlexNet" in name:
        print(f"{name:<30}{gpus:>4} GPUs {number:>7.5g}{said:>7.5g} "
              f"{said / number - 1:>+7.1%}")
errors = [abs(said / number - 1) for _, _, number, said in rows]
print(f"of all {len(errors)} rows, {sum(e < 0.1 for e in errors)} are within 10 %")

# %% [markdown]
# Next, we fit the model: two rows determine two constants, and the other rows are predicted. The columns show the number of GPUs (of micro-batches for
# pipelines), the published number, the predicted number, and the error. The numbers are images per second, except for pipelines, where they are multiples of
# the speed of 2 stages with 1 micro-batch.

# %%
chosen = ["Inception V3, K80, parameter servers", "ResNet-50, K80, parameter servers",
          "VGG-16, P100 of a DGX-1", "AlexNet, P100 of a DGX-1",
          "torchgpipe, AmoebaNet-D, 8 stages", "torchgpipe, AmoebaNet-D, 4 stages"]
for table in published.tables():
    if table.name in chosen:
        print(f"{table.name}: {table.unit}")
        for row in published.predicted(table)[1]:
            error = "fitted" if row.fitted else f"{row.predicted / row.published - 1:+.1%}"
            print(f"{row.x:>8}{row.published:>10.5g}{row.predicted:>10.5g}  {error}")

# %% [markdown]
# Most predictions are within a few per cent of the published numbers. The other rows are more interesting. In each of them, the model is wrong because it lacks
# something real.
#
# * Without a fit, the prediction for *AlexNet* on 8 GPUs was 28 % too fast, until the model took into account that NCCL built a single ring in 2017, in which
#   two of eight hops pass through PCIe. With a fit, the prediction is 12 % too slow on 2 and 4 GPUs. AlexNet's last three layers hold 96 % of its weights, and
#   their gradients are ready first, so sending some of them overlapped with the computation.
# * *torchgpipe, 4 stages*, is 17 % off, because its layers cannot be cut into four equal parts, and the cut is different for each number of micro-batches.
# * *K80* was 10 % off until the machine's description took into account that the GPUs of one host share a PCIe connection.
# * Goyal et al. (2017) report steps that are 12 % longer on 352 GPUs than on 8. The published rates alone give +0.6 %. With ranks that are 2 % apart (the
#   exponential tail), the simulator gives 8 %, so most of the additional time is spent waiting for the slowest rank.

# %%
for spread in (0.0, 0.02):
    base, many = published.goyal(1, spread), published.goyal(44, spread)
    print(f"Goyal, ranks {spread:.0%} apart: {many / base - 1:+.1%} (published +12 %)")

# %% [markdown]
# Because late ranks matter this much, `step` assumes them from 64 ranks on, unless you pass your own `slowness`.
#
# All tables, with the error of each row, are in `docs/SIMULATE.md`, which also explains how to predict your own training runs.

# %% [markdown]
# > **On GPUs.** Calibrate with `torch.cuda.synchronize()` or events around many steps together. Waiting after each step gives the time of one step, but a lower throughput than a whole run reaches (lab 19, exercise 7). Take alpha and B from nccl-tests' `all_reduce_perf` with `NCCL_ALGO=Ring`, fitted to two sizes around the size of your buckets, for example 8 and 64 MB. The time for 8 bytes would mislead you, because NCCL
# > sends short messages with its protocol LL and buckets with LL128 or Simple. For a ring's hop over the network, its own table of latencies (`tuning.cc`) has 2.7, 4 and 14 µs for these three protocols, respectively.
# > NCCL also chooses among rings, trees and switches that add (NVLS, SHARP) according to the size and the number of ranks. Its kernels occupy some of the GPU's processors, so a backward pass that runs at the same time slows down. This slowdown is not in the model.

# %% [markdown]
# ## What has aged
#
# <details><summary>Older talks and articles, and what is left of them</summary>
#
# | they say | today |
# |---|---|
# | on 1024 GPUs more than a fifth of the time is communication | This is a talk's number for its machine, and it is about what you would expect. For ResNet-50 with 32 images and rings, this model loses 16 % on P100s with Ethernet and 30 µs (`big-basin-p100` above), and 13 % on P100s with InfiniBand and 10 µs (`dgx-1-p100`), or 15 % if nothing overlaps. About 5 % of this are late ranks. On a GPU of today a ring loses far more, whereas a tree with more images per GPU loses less. |
# | ResNet-50 on ImageNet in 15 minutes on 1024 P100 (Akiba et al. 2017) | The run used 32 images per GPU, as above, and 90 epochs: 90 · 1.281 million / 32,768 = 3519 steps, which leaves 0.26 s for each step. In MLPerf v0.6 (2019) the two fastest needed about 80 s, on 1536 V100 and on 1024 TPU v3 chips. |
#
# </details>
#
# ## Summary
#
# * A step is simulated with a clock for each rank. Gradients become ready on each rank, buckets follow each other, and the last rank determines the time.
# * Alpha and B are calibrated with a few all-reduces, and the computing time and its spread with a few steps of one rank. The model must then be checked on
#   cases that were not measured.
# * On 1024 ranks, the number of rounds and the delay of the slowest rank have grown, whereas the bytes that a rank sends have not. The faster a GPU is, the
#   earlier its curve drops.
# * Trees and switches that add, overlap, fewer bytes and more images per GPU all make the step faster.
# * Two rows of a table predict the others to a few per cent if the model includes what matters, such as balance, shared buses and late ranks.
#
# **Now the lab:** you build the parts of the simulator by hand and apply them to hidden machines and tables.
#
# **References.** P. Goyal et al. 2017, *Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour*, [arXiv 1706.02677](https://arxiv.org/abs/1706.02677). T.
# Akiba, S. Suzuki, K. Fukuda 2017, *Extremely Large Minibatch SGD*, [arXiv 1711.04325](https://arxiv.org/abs/1711.04325). D. Narayanan et al. 2021, *Efficient
# Large-Scale Language Model Training on GPU Clusters Using Megatron-LM*, [arXiv 2104.04473](https://arxiv.org/abs/2104.04473). Y. Huang et al. 2019, *GPipe*,
# [arXiv 1811.06965](https://arxiv.org/abs/1811.06965). C. Kim et al. 2020, *torchgpipe*, [arXiv 2004.09910](https://arxiv.org/abs/2004.09910). J. T. Daly 2006,
# *A higher order estimate of the optimum checkpoint interval for restart dumps*, Future Generation Computer Systems 22(3). TensorFlow 2017, *Benchmarks*
# (docs_src/performance/benchmarks.md of its repository).
