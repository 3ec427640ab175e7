# %% [markdown] unit={"minutes": 55, "ranks": 4, "framework": "torch", "title": "What communication costs"}
# # 05 What communication costs
#
# Unit 04 counted rounds and bytes, and this unit determines what they cost. It measures two numbers for a link and derives the time of every collective from
# them. At the end, you can
#
# * time messages reliably, and fit latency and bandwidth with a confidence band.
# * predict how long a ring, a tree, halving and doubling, a parameter server, and an all-reduce over two kinds of links take on any number of ranks.
# * find the size at which the times of ring and tree cross, and check the prediction.
# * explain what a model assumes, and find out why a measurement is twice the prediction.
# * explain why Horovod and DistributedDataParallel collect gradients in buffers, and how large these should be.
#
# **Before:** unit 04. **Minutes:** 55 · **Ranks:** 4, and then 4 on an emulated network. A place to stop is marked in the middle.
#
# All cells run in this kernel. `cluster.run(function, ...)` calls a function in the processes of all ranks and returns what each rank returns. The function must import what it needs. Single messages go through gloo with CPU tensors, even on a machine with GPUs. The box *On GPUs* explains what is different
# there.

# %%
from functools import partial

import numpy as np

from manyhands import Cluster, predict, settle, simulate
from manyhands.simulate import recorded

cluster = Cluster(nodes=1, ranks_per_node=4, framework="torch")

# %%
def join():
    """Join all ranks to one process group, with gloo for CPU tensors and, if each rank has
    a GPU, NCCL for the others."""
    import os
    import torch.distributed as dist

    if not dist.is_initialized():
        dist.init_process_group(
            os.environ["MANYHANDS_BACKEND"].replace("nccl", "cpu:gloo,cuda:nccl"))

joined = cluster.run(join)

# %% [markdown]
# ## Two numbers for a link
#
# A message of $n$ bytes takes
#
# $$ t(n) = \alpha + \frac{n}{B} $$
#
# The **latency** $\alpha$ is the time that even an empty message takes. The **bandwidth** $B$ is measured in bytes per second, and $\beta = 1/B$ is the time
# per byte. These two numbers are the whole *alpha-beta model* (Hockney 1994). At $n = \alpha B$, a message costs twice the latency. Much smaller messages are
# dominated by the latency, and much larger ones by the bandwidth.
#
# ## A ping-pong
#
# The sender cannot see when a message arrives. Therefore, the receiver sends a reply, and we take half the round-trip time. The first rounds do not count,
# because they set up the connection.

# %%
def ping_pong(n_bytes, repeats=15, warm_up=3):
    """Return on rank 0 the seconds that a message to rank 1 takes, for each round."""
    import time
    import torch
    import torch.distributed as dist

    x, rank, times_s = torch.zeros(n_bytes, dtype=torch.uint8), dist.get_rank(), []
    for _ in range(warm_up + repeats):
        start_s = time.perf_counter()
        if rank < 2:
            first, second = (dist.send, dist.recv) if rank == 0 else (dist.recv, dist.send)
            first(x, 1 - rank)
            second(x, 1 - rank)
        times_s.append((time.perf_counter() - start_s) / 2)
    return times_s[warm_up:]

# %% [markdown]
# **Predict.** How many times as long as a message of 4 bytes does a message of 1024 bytes take?

# %%
# Run this cell to make your prediction.
predict("05-latency", "How many times as long as 4 bytes do 1024 bytes take?",
        ["less than 3 times", "3 to 30 times", "more than 30 times"])

# %% tags=["measured"]
sizes = [4**k for k in range(1, 13)]
times_s = [cluster.run(ping_pong, size)[0] for size in sizes]
print("     bytes   median    mean    most (us)")
for size, one in zip(sizes, times_s):
    print(f"{size:>10}" + "".join(f"{value * 1e6:>9.0f}"
                                  for value in (np.median(one), np.mean(one), max(one))))

# %%
# Run this cell to compare your prediction with the outcome.
def longer():
    times = np.median(times_s[sizes.index(1024)]) / np.median(times_s[0])
    if times < 3:
        return "less than 3 times"
    return "3 to 30 times" if times < 30 else "more than 30 times"

settle("05-latency", longer)

# %% [markdown]
# <details><summary>Why?</summary>
#
# The message of 1024 bytes takes hardly any longer, because well below $\alpha B$ (tens of thousands of bytes on a quiet machine, hundreds of thousands on a
# busy one), you pay for the latency, which comes from system calls and from waking up the other process. Only above $\alpha B$ do the bytes dominate.
#
# The last column shows that something else ran on the machine, and that one message waited for it. The wait raises the mean, but not the median. Therefore,
# never report the mean of a few timings.
# </details>
#
# ## The fit
#
# To see which fit is right, we need a link whose true values are known. We therefore draw the times of a link with a latency of 30 µs, a bandwidth of 2 GB/s
# and a noise of 2.5 %. About every seventh time is disturbed, as on real machines. (The lab's checks draw times in the same way.)

# %%
from manyhands.checks.communication_costs import cases

true = simulate.Link(latency_s=30e-6, bytes_per_s=2e9)
n_bytes = [4**k for k in range(1, 15)]
drawn_s = cases.times(cases.generator(0, "tutorial"), true, n_bytes, repeats=31)

def show(name, link):
    print(f"{name:<32} latency {link[0] * 1e6:8.1f} us, bandwidth {link[1] / 1e9:.2f} GB/s")

# %% [markdown]
# **Predict.** We fit three straight lines. The first goes through the means, with the smallest relative errors. The second goes through the medians, with the
# smallest errors in seconds. The third goes through the medians, with the smallest relative errors. Which of these lines find 30 µs and 2 GB/s?

# %%
# Run this cell to make your prediction.
predict("05-fit", "Which line finds both 30 us and 2 GB/s to within 5 %?",
        ["means, relative errors", "medians, errors in seconds", "medians, relative errors",
         "more than one of them"])

# %%
n = np.array(n_bytes, float)
means, medians = (np.array([middle(times) for times in drawn_s])
                  for middle in (np.mean, np.median))
lines = {}
for name, t, weights in (("means, relative errors", means, 1 / means),
                         ("medians, errors in seconds", medians, np.ones(len(n))),
                         ("medians, relative errors", medians, 1 / medians)):
    beta, alpha = np.polyfit(n, t, 1, w=weights)
    lines[name] = alpha, 1 / beta
    show(name, lines[name])

# %%
# Run this cell to compare your prediction with the outcome.
def fitting():
    near = [name for name, (alpha, bandwidth) in lines.items()
            if abs(alpha / 30e-6 - 1) < 0.05 and abs(bandwidth / 2e9 - 1) < 0.05]
    return near[0] if len(near) == 1 else "more than one of them"

settle("05-fit", fitting)

# %% [markdown]
# <details><summary>Why?</summary>
#
# The means give three times the true latency, because a few disturbed times count as much as all others together. If we minimise errors in seconds, an error of
# 1 % at 268 MB is 1340 µs, which is more than forty times the latency that we are looking for. As a result, the largest messages alone determine the line, and
# the latency is whatever they leave over, which is 17 µs here and can even be negative with different noise. Relative errors treat all sizes alike. To use
# relative errors, minimise $\sum \big((\alpha + n\beta - t)/t\big)^2$, that is, weight each error by $1/t$.
# </details>
#
# ## How far can it be trusted?
#
# If you measure again, the numbers differ a little. To estimate by how much, the **bootstrap** (Efron 1979) pretends to measure again. For each size,
# it draws as many of our times as there are, with replacement. It fits these times and repeats the procedure. The middle 90 % of the fits form a band.
# `manyhands.simulate` contains the fit and the bootstrap.

# %%
def told(n_bytes, times_s):
    """Describe the link by its latency and bandwidth, each with its 90 % band."""
    link = simulate.fit(n_bytes, times_s)
    low, high = simulate.interval(simulate.bootstrap(n_bytes, times_s))
    return (f"latency {link.latency_s * 1e6:,.1f} us ({low[0] * 1e6:,.1f} to "
            f"{high[0] * 1e6:,.1f}), "
            f"bandwidth {link.bytes_per_s / 1e6:.4g} MB/s ({low[1] / 1e6:.4g} to "
            f"{high[1] / 1e6:.4g})")

print("drawn:", told(n_bytes, drawn_s))

# %% tags=["measured"]
print("yours:", told(sizes, times_s))

# %% [markdown]
# The band shows how much the numbers vary by chance, and nine in ten such bands contain the truth. However, a band does not show whether the *model* is right,
# because even a straight line through a curve can have a very narrow band.
#
# ## Four all-reduces
#
# A collective consists of rounds that follow each other. Each round costs $\alpha$ and the time for its bytes. The ledger of unit 04 counted both rounds
# and bytes:
#
# | all-reduce of $n$ bytes | rounds | bytes in each | time |
# |---|---|---|---|
# | ring | $2(p-1)$ | $n/p$ | $2(p-1)\,(\alpha + n/(pB))$ |
# | tree, sum and broadcast | $2\lceil\log_2 p\rceil$ | $n$ | $2\lceil\log_2 p\rceil\,(\alpha + n/B)$ |
# | halving and doubling, $p$ a power of two | $2\log_2 p$ | $n/2, n/4, \ldots, n/p$ and back | $2\log_2 p\;\alpha + 2\frac{p-1}{p}\,n/B$ |
# | one server and $w$ workers | 2 | $w\,n$ through the server's link | $2\,(\alpha + (w-1)\,o + w\,n/B)$ |
#
# The model assumes that links are full duplex and alike, that messages on different links do not disturb each other, that adding up costs nothing, and that all
# ranks start together.
#
# The server's messages travel at the same time, so their latencies overlap. However, the server has to handle the messages one after another, and each occupies
# the server for a time that the LogP model (Culler et al. 1993) calls the *overhead* $o$. We assume 1 µs.
#
# <details><summary>Is this unit 04's star?</summary>
#
# The server differs from that star, in which each send waited for the previous one and was therefore a separate round. Note also that a measured latency
# already contains the overhead of one message.
# </details>
#
# **Predict.** Which all-reduce is the fastest for a loss value of 4 bytes, and which one for 100 MB of gradients, on 4 ranks and on 1024?

# %%
# Run this cell to make your prediction.
predict("05-small", "Which all-reduce is the fastest for 4 bytes on 1024 ranks?",
        ["ring", "tree or halving (nearly equal)", "server"])
predict("05-large", "Which all-reduce is the fastest for 100 MB on 1024 ranks?",
        ["ring", "tree", "halving", "server"])

# %%
link = true
models = {"ring": simulate.ring_s, "tree": simulate.tree_s,
          "halving": simulate.halving_doubling_s,
          "server": partial(simulate.parameter_server_s, overhead_s=1e-6)}
print("ranks      bytes" + "".join(f"{way + ' (ms)':>14}" for way in models))
for p in (4, 64, 1024):
    for size in (4, 100_000_000):
        print(f"{p:>5}{size:>11}" + "".join(f"{model(p, size, *link) * 1e3:>14.4g}"
                                            for model in models.values()))

# %%
# Run this cell to compare your prediction with the outcome.
def fastest(n_bytes):
    return min(models, key=lambda way: models[way](1024, n_bytes, *link))

def small():
    way = fastest(4)
    return "tree or halving (nearly equal)" if way in ("tree", "halving") else way

settle("05-small", small)
settle("05-large", lambda: fastest(100_000_000))

# %% [markdown]
# <details><summary>Why?</summary>
#
# With 4 bytes, the tree and halving win on 1024 ranks, because they have only $2\log_2 p$ latencies. The server has two latencies, which take 0.06 ms, but 1024
# incoming and 1024 outgoing messages occupy it for 2 ms. The server is slower than the tree as soon as each message occupies it for 0.3 µs. On 4 and on 64
# ranks, where it handles few messages, the server is the fastest.
#
# With 100 MB, halving and the ring win, because their bytes never take longer than $2n/B$, whatever the number of ranks. The ring's latencies do grow, to 61 of
# the 161 ms on 1024 ranks. Halving has few latencies, and on a power of two, none of the other three all-reduces beats it. However, the model does not know
# that partners in halving are far apart and that their messages may share wires, so libraries use rings all the same. The server's link carries $w$ times the
# tensor in each direction. (A server can be split into several, as in unit 08.)
# </details>
#
# The times of ring and tree are two straight lines in $n$. From 4 ranks on, the tree has fewer rounds but the steeper line, so the lines cross at
#
# $$ n^* = \alpha B \, \frac{p - 1 - L}{L - (p - 1)/p}, \qquad L = \lceil\log_2 p\rceil $$

# %%
for p in (2, 3, 4, 5, 8, 64, 1024):
    print(f"{p:>5} ranks: ring and tree cross at "
          f"{simulate.crossover_bytes(p, *link):>12,.0f} bytes")

# %% [markdown]
# For 2 and 3 ranks, the ring has no more rounds than the tree and never loses. With many ranks, the size at the crossing grows like $p / \log_2 p$ times
# $\alpha B$.
#
# ## Check it
#
# A prediction must be checked. We therefore time the ring and the tree of unit 04 on your four ranks. We read the clock after every three calls, keep the
# shorter of two measurements on each rank, and report the slowest rank's time.

# %%
def all_reduce_s(way, n_bytes, calls=3, repeats=2):
    """Return the seconds of an all-reduce of n_bytes along the ring or tree of unit 04."""
    import time
    import torch
    import torch.distributed as dist
    from manyhands.checks.collectives.ranks import WAYS

    x, times_s = torch.zeros(n_bytes, dtype=torch.uint8), []
    WAYS[way](x, None)
    for _ in range(repeats):
        dist.barrier()
        start_s = time.perf_counter()
        for _ in range(calls):
            WAYS[way](x, None)
        times_s.append((time.perf_counter() - start_s) / calls)
    return min(times_s)

# %% [markdown]
# The next function times the rounds of a ring alone, without adding anything up. With `ready_ahead`, it posts all receives before the first round. This option
# becomes important later.

# %%
def ring_rounds(n_bytes, ready_ahead, repeats=3, p=4):
    """Return the seconds of the 2 (p - 1) rounds of a ring in which all ranks take part and
    nothing is added. With ready_ahead, all receives are posted before."""
    import time, torch, torch.distributed as dist
    (out, *into), times_s = (torch.zeros(2 * p - 1, max(1, n_bytes // p),
                                         dtype=torch.uint8), [])
    after, before = (dist.get_rank() + 1) % p, (dist.get_rank() - 1) % p
    for _ in range(repeats):
        receives = [dist.irecv(room, before) for room in into] if ready_ahead else []
        dist.barrier()
        start_s = time.perf_counter()
        for k, room in enumerate(into):
            sending = dist.isend(out, after)
            receives[k].wait() if ready_ahead else dist.recv(room, before)
            sending.wait()
        times_s.append(time.perf_counter() - start_s)
    return min(times_s)

# %%
def check(cluster, n_bytes):
    """Return {way: {bytes: seconds}} for ring and tree, and for the ring's rounds alone if
    all receives are posted ahead."""
    found = {way: {n: max(cluster.run(all_reduce_s, way, n)) for n in n_bytes}
             for way in ("ring", "tree")}
    return {**found, "ready ahead": {n: max(cluster.run(ring_rounds, n, True))
                                     for n in n_bytes}}

def predicted(link):
    """Return the models of ring and tree on 4 ranks."""
    ring, tree = (lambda n, model=model: model(4, n, *link)
                  for model in (simulate.ring_s, simulate.tree_s))
    return {"ring": ring, "tree": tree, "ready ahead": ring}

# %% tags=["measured"]
from manyhands.plots.crossover import crossover, crossover_table

mine = simulate.fit(sizes, times_s)
found = check(cluster, sizes[::2])
print(f"measured / predicted on this machine; they should cross at "
      f"{simulate.crossover_bytes(4, *mine):,.0f} bytes")
print(crossover_table(predicted(mine), found))
crossover(predicted(mine), found, at=simulate.crossover_bytes(4, *mine))

# %% [markdown]
# <details><summary>How to read it</summary>
#
# If the ring takes longer than predicted, compare it with `ready ahead`, which has the same rounds and the same four ranks that send simultaneously, but posts
# all receives beforehand. If the time of `ready ahead` is close to the prediction, the number of simultaneous messages is not to blame. Instead, each round of
# our ring also waits for something else, as the emulated network below will show. If `ready ahead` takes much longer, too (look at the largest size), the ranks
# share cores and memory, so the assumption that *messages on different links do not disturb each other* does not hold. In addition, the ring adds chunks and
# starts each round from Python, and the model includes neither. As a result, on one machine the ring and the tree may cross at a different size than predicted,
# or not at all.
# </details>
#
# The next cell compares a message between two ranks with a round of the ring, in which all ranks take part and each receive is posted in its own round. (For
# comparison, set `ready_ahead`, the last argument, to True.)

# %% tags=["measured"]
for size in (16, 1_000_000):
    alone, crowd = (np.median(cluster.run(ping_pong, size // 4)[0]),
                    max(cluster.run(ring_rounds, size, False)) / 6)
    print(f"{size // 4:>8} bytes: {alone * 1e6:6.0f} us between two ranks, "
          f"{crowd * 1e6:6.0f} us in a round of the ring")

# %% [markdown]
# > **A good place to stop.** In a new kernel, run the cells from the top to this one, and go on here.

# %% [markdown]
# ## A network of links
#
# To check the model, we need links that do not share a processor. The profile `emulated` gives each node a separate network inside this machine. Each node is a
# network namespace, and a switch between the nodes delays each packet as a link of the given bandwidth and delay would. We take four nodes with 10 Mbit/s and
# 10 ms between them, as on a poor line between two cities, because such a link is so slow that the processor hardly matters.
#
# If this machine cannot emulate a network, the next cell prints BLOCKED with the reason, and the pictures show our recorded times, labelled as such.

# %% tags=["measured"]
from manyhands.cluster import emulated

blocked = emulated.missing()
if blocked:
    print("BLOCKED:", blocked)
else:
    network = Cluster(nodes=4, ranks_per_node=1, profile="emulated", rate_mbit=10,
                      delay_ms=10, name="network")
    joined = network.run(join)
    print("four nodes, 10 Mbit/s and 10 ms between them")

# %% [markdown]
# The fit should give about 10 ms and 1.25 MB/s. For such a link, the formula predicts the size at which ring and tree cross.
#
# **Predict.** We time the ring and the tree of unit 04 on these links. At which size will the *measured* times cross?

# %%
# Run this cell to make your prediction.
predict("05-crossing",
        "Where will the measured ring and tree cross on four nodes with emulated links?",
        ["near the predicted size", "at a clearly smaller size",
         "at a clearly larger size, or not at all"])

# %% tags=["measured"]
far = recorded.EMULATED  # our own run
if not blocked:
    far_s = [network.run(ping_pong, size, 5, 2)[0] for size in far.n_bytes]
    far = recorded.Measurement("measured here", far.n_bytes, far_s,
                               check(network, far.n_bytes[1::2]))
print(f"{far.what}: {told(far.n_bytes, far.times_s)}")

# %% tags=["measured"]
far_link = simulate.fit(far.n_bytes, far.times_s)
at = simulate.crossover_bytes(4, *far_link)
print(f"{far.what}: ring and tree should cross at {at:,.0f} bytes; measured / predicted:")
print(crossover_table(predicted(far_link), far.all_reduce_s))
crossover(predicted(far_link), far.all_reduce_s, at=at)

# %%
# Run this cell to compare your prediction with the outcome.
def crossed():
    """Compare the size at which the measured times cross with the predicted size."""
    ring, tree = far.all_reduce_s["ring"], far.all_reduce_s["tree"]
    n = sorted(ring)
    ahead = [np.log(ring[size] / tree[size]) for size in n]  # above 0: the tree wins
    last = max((i for i, one in enumerate(ahead) if one > 0), default=-1)
    if last == len(n) - 1:
        return "at a clearly larger size, or not at all"
    found = n[0] if last < 0 else np.exp(np.interp(
        0, [ahead[last + 1], ahead[last]], np.log([n[last + 1], n[last]])))
    if 1 / 1.5 <= found / at <= 1.5:
        return "near the predicted size"
    return ("at a clearly larger size, or not at all" if found > at
            else "at a clearly smaller size")

settle("05-crossing", crossed)

# %% [markdown]
# The next cell shows our recorded run on a busy machine with two cores. In this run, `ready ahead` is the ring again, with one difference:

# %%
far_link = simulate.fit(recorded.EMULATED.n_bytes, recorded.EMULATED.times_s)
print("recorded:", told(recorded.EMULATED.n_bytes, recorded.EMULATED.times_s))
print(f"ring and tree should cross at {simulate.crossover_bytes(4, *far_link):,.0f} bytes; "
      f"measured / predicted:")
print(crossover_table(predicted(far_link), recorded.EMULATED.all_reduce_s))

# %% [markdown]
# Although the machine is busy, the tree takes the predicted time to within a quarter, because the links no longer share anything. (The fitted latency exceeds
# the link's 10 ms because it includes the time in which processes wake up.) However, for small messages the ring of unit 04 takes **twice** the predicted time,
# although no other message disturbs it. For this reason, ring and tree cross at about 64 kB instead of 15 kB.
#
# **Predict.** What adds a second latency to each round?

# %%
# Run this cell to make your prediction.
predict("05-second-latency", "What takes a second latency in each round?",
        ["adding up the chunk", "the receiver's word that there is room",
         "the first contact of two ranks"])

# %%
# Run this cell to compare your prediction with the outcome.
def second_latency():
    """Compare the ring with `ready ahead`, which posts all receives ahead."""
    ways = recorded.EMULATED.all_reduce_s
    saved = ways["ready ahead"][4096] < 0.6 * ways["ring"][4096]
    return "the receiver's word that there is room" if saved else "adding up the chunk"

settle("05-second-latency", second_latency)

# %% [markdown]
# <details><summary>Why?</summary>
#
# gloo sends no data before it knows that the receiver has room for them, so the receiver first sends a message that says "ready". In a ping-pong and in a tree,
# the receiver has been waiting for a long time, so its "ready" has arrived before it is needed. In a ring, however, all ranks call `isend` and `recv` at the
# same moment. Therefore, "ready" takes one latency, and the data that follow take another. MPI calls this a *rendezvous* and uses it for large messages.
#
# `ready ahead` posts all receives of the ring before the first round. The rounds then take the predicted time to within an eighth. The factor of two was not
# due to an inaccurate prediction but to a message that we had not thought of. A model is useful precisely because it reveals such messages.
# </details>
#
# ## Two bandwidths that benchmarks print
#
# For each collective, NVIDIA's nccl-tests print **algbw**, which is $S/t$ for a tensor of $S$ bytes and a time of $t$, and **busbw**. The latter is
# $\frac{S}{t} \cdot 2\,\frac{p-1}{p}$ for an all-reduce, $\frac{S}{t} \cdot \frac{p-1}{p}$ for an all-gather, a reduce-scatter or an all-to-all, and
# $\frac{S}{t}$ for a broadcast or a reduce. Multiplied by $S$, the factor is the least that the busiest rank must send or receive *if the ranks do the adding*.
# (For an all-gather, $S$ is the size of the gathered tensor.) With a ring, busbw can therefore be compared with the bandwidth of a link, on any number of
# ranks.
#
# **Predict.** The links have a bandwidth of 1.25 MB/s. Which busbw do the recorded all-reduces reach at 4 kB and at 64 kB?

# %%
# Run this cell to make your prediction.
predict("05-busbw", "Which busbw does the recorded `ready ahead` reach at 64 kB?",
        unit="MB/s", within=0.25)

# %%
print("   bytes              algbw   busbw (MB/s)")
for n in (4096, 65536):
    for way, points in recorded.EMULATED.all_reduce_s.items():
        algbw = n / points[n] / 1e6
        print(f"{n:>8}  {way:<12}{algbw:>8.3f}{algbw * 2 * 3 / 4:>8.3f}")

# %%
# Run this cell to compare your prediction with the outcome.
settle("05-busbw", lambda: algbw * 2 * 3 / 4)  # algbw of the last printed line

# %% [markdown]
# <details><summary>Why?</summary>
#
# Even `ready ahead` reaches less than half of the link's bandwidth at 64 kB, because six latencies take half of its time. A bandwidth describes only large
# tensors, so report the time for small ones. Moreover, busbw counts the bytes that *must* move. The tree moves more bytes than that, so it can keep its links
# busy and still have a low busbw.
#
# On 8 H100 GPUs, NCCL lets the NVSwitch do the adding (NVLS) by default, and nccl-tests then print a busbw of up to 480 GB/s on links of 450 GB/s, because
# fewer bytes travel. In this case, busbw no longer describes a link. With `NCCL_ALGO=Ring`, the tests print about 370 GB/s
# ([nccl-tests 212](https://github.com/NVIDIA/nccl-tests/issues/212)). On two nodes, the busbw of NCCL's tree can also exceed the network's bandwidth
# ([196](https://github.com/NVIDIA/nccl-tests/issues/196)).
# </details>
#
# ## Two kinds of links
#
# In a cluster, the GPUs of one node have fast links, while the links between nodes are slow. An all-reduce in **two levels** sends fewer bytes over the slow
# links. With $g$ ranks on each of $m$ nodes, it performs a reduce-scatter inside each node. Then each rank all-reduces its part with its counterparts in the
# other nodes, and an all-gather inside each node follows. Each level has its own latency and bandwidth. The $g$ rings between the nodes share a node's
# $l \le g$ links, so the time is
#
# $$ 2(g-1)\left(\alpha_1 + \frac{n}{g B_1}\right) + 2(m-1)\left(\alpha_2 + \frac{n}{m\,l\,B_2}\right) $$
#
# Our emulated nodes have one link each, so $l = 1$. A GPU server often has one network link for each GPU.
#
# The next cell builds a flat all-reduce and one in two levels from the collectives of `torch.distributed`.

# %%
def flat(x, inside, across):
    import torch.distributed as dist

    dist.all_reduce(x)

def two_levels(x, inside, across):
    import torch
    import torch.distributed as dist

    parts = list(x.chunk(2))
    mine = torch.empty_like(parts[0])
    dist.reduce_scatter(mine, parts, group=inside)
    dist.all_reduce(mine, group=across)
    dist.all_gather(parts, mine, group=inside)

# %%
def on_nodes_s(call, n_bytes, calls=3):
    """Return the seconds of an all-reduce on two nodes of two ranks."""
    import time, torch, torch.distributed as dist

    inside = [dist.new_group(ranks) for ranks in ([0, 1], [2, 3])][dist.get_rank() // 2]
    across = [dist.new_group(ranks) for ranks in ([0, 2], [1, 3])][dist.get_rank() % 2]
    x = torch.ones(n_bytes // 4)
    call(x, inside, across)
    assert torch.equal(x, torch.full_like(x, 4))
    dist.barrier()
    start_s = time.perf_counter()
    for _ in range(calls):
        call(x, inside, across)
    return (time.perf_counter() - start_s) / calls

# %% [markdown]
# **Predict.** Two nodes of two ranks each are connected as above. How many times does a large tensor cross a node's link in a flat all-reduce, and how many
# times in two levels? By what factor are two levels faster?

# %%
# Run this cell to make your prediction.
predict("05-node-link",
        "How many times does a large tensor go over a node's link in two levels?",
        unit="times", within=0.1)
predict("05-two-levels",
        "How many times as fast as flat are two levels for a large tensor?",
        unit="times", within=0.2)

# %% tags=["measured"]
nodes = recorded.TWO_NODES
if not blocked:
    network.stop()
    network = Cluster(nodes=2, ranks_per_node=2, profile="emulated", rate_mbit=10,
                      delay_ms=10, name="two nodes")
    joined, nodes = network.run(join), {"flat": {}, "two levels": {}}
    for way, call in (("flat", flat), ("two levels", two_levels)):
        for n in (16, 65536, 262144):
            before = emulated.sent(network)[0].payload_bytes
            seconds = max(network.run(on_nodes_s, call, n))
            # 4 calls
            nodes[way][n] = (seconds, (emulated.sent(network)[0].payload_bytes - before) / 4
                             / n)

# %%
def show_nodes(nodes, link):
    flat, levels = partial(simulate.ring_s, 4), partial(simulate.hierarchical_s, 2, 2)
    print(
        "     bytes   way         measured / predicted (ms)    tensors over a node's link")
    for way, model in (("flat", lambda n: flat(n, *link)),
                       ("two levels", lambda n: levels(n, true, link))):
        for n, (seconds, tensors) in nodes[way].items():
            print(f"{n:>10}   {way:<12}{seconds * 1e3:>10.3g} / "
                  f"{model(n) * 1e3:<10.3g}{tensors:>20.2f}")

print("recorded")
show_nodes(recorded.TWO_NODES, far_link)

# %% tags=["measured"]
print("BLOCKED, recorded again" if blocked else "measured here")
show_nodes(nodes, simulate.fit(far.n_bytes, far.times_s))

# %%
# Run this cell to compare your prediction with the outcome.
settle("05-node-link", lambda: nodes["two levels"][262144][1])
settle("05-two-levels", lambda: nodes["flat"][262144][0] / nodes["two levels"][262144][0])

# %% [markdown]
# <details><summary>Why?</summary>
#
# In the flat ring, which passes through the ranks in order, each node's last rank sends $2 \cdot \frac{3}{4}$ tensors to the other node. In two levels, each of
# a node's two ranks sends $2 \cdot \frac{1}{2}$ times half a tensor, so together they send one tensor. Therefore, two levels are 1.5 times as fast for a large
# tensor, or slightly more. (With 16 bytes, nearly all of the traffic is set-up. For so few bytes, the model is also rough. It lets each round of `flat` wait
# for the slow link, although a chunk crosses this link in only three of its six hops, and it omits the second latency, for "ready", that a crossing may take.)
#
# With many nodes and one link each, both all-reduces send nearly two tensors over each link. However, two levels save rounds, since they take $2(g-1) + 2(m-1)$
# rounds instead of $2(gm-1)$, for example 44 instead of 254 on 16 nodes of 8 ranks. In a DGX H100, each of the 8 GPUs has 450 GB/s of NVLink each way and a
# network link (an InfiniBand NIC) of 50 GB/s, so $l = g = 8$. With such a link for each rank, two levels use all $g$ links of a node, while a single flat ring
# enters and leaves a node through only one. (NCCL builds several rings, which use different links.)
# </details>
#
# ## Many small gradients
#
# A network has hundreds of gradients, and most of them are small. The next cell sums 64 kB in 64 messages, in 8 and in one.

# %%
def in_messages(count, n_bytes=65536, repeats=12):
    """Return the seconds to all-reduce n_bytes in `count` messages, with the backend's own
    all-reduce."""
    import os, time, torch, torch.distributed as dist

    device = torch.device(os.environ["MANYHANDS_DEVICE"])
    pieces, times_s = torch.zeros(n_bytes // 4, device=device).chunk(count), []
    for _ in range(repeats):
        dist.barrier()
        start_s = time.perf_counter()
        for piece in pieces:
            dist.all_reduce(piece)
        if device.type == "cuda":
            torch.cuda.synchronize()  # until then the calls are only enqueued
        times_s.append(time.perf_counter() - start_s)
    return sorted(times_s)[repeats // 2]

# %% tags=["measured"]
for count in (64, 8, 1):
    print(f"{count:>3} messages: {max(cluster.run(in_messages, count)) * 1e3:8.2f} ms")

# %% [markdown]
# The bytes are the same, but 64 messages pay the latencies 64 times as often as a single one. Therefore, libraries combine gradients into larger messages, a
# technique called **message fusion**. Horovod copies what is ready into a *fusion buffer* (128 MB, with a new round each millisecond; settings
# `HOROVOD_FUSION_THRESHOLD`, `HOROVOD_CYCLE_TIME`), and DistributedDataParallel has *buckets* (`bucket_cap_mb=25`). The libraries do not put everything into
# one message, because the backward pass computes the last layer's gradients first, and these can travel while the first layers' gradients are still being
# computed.
#
# ResNet-50 has 161 gradients with a total of 102 MB. Goyal et al. (2017) report 120 ms for the backward pass, and we use that figure. We also assume that the
# gradients become ready one after another at equal intervals, that 64 ranks have links of 10 Gbit/s with a latency of 50 µs, and that a library chooses the
# faster of ring and tree, or the fastest of ring, tree and halving.
#
# **Predict.** How many buckets are best: one for each gradient, a single one for all, or a number in between? What changes in a library with halving?

# %%
# Run this cell to make your prediction.
predict("05-buckets", "How many buckets are best on 64 ranks with ring and tree?",
        ["one", "2 to 10", "11 to 50", "more"])

# %%
gradients = simulate.resnet50_bytes()
ready_s = np.linspace(0, 0.120, len(gradients) + 1)[1:]
ethernet = simulate.Link(latency_s=50e-6, bytes_per_s=1.25e9)

def summed_after_s(bucket_bytes, *ways):
    return simulate.finish_s(ready_s, gradients, bucket_bytes,
                             lambda n: min(way(64, n, *ethernet) for way in ways))

print("                         all summed after (ms), with")
print("bucket (MiB)   buckets   ring or tree   or halving")
for mib in (0, 0.25, 1, 4, 10, 25, 50, 100):
    two = summed_after_s(mib * 2**20, simulate.ring_s, simulate.tree_s)
    three = summed_after_s(mib * 2**20, simulate.ring_s, simulate.tree_s,
                           simulate.halving_doubling_s)
    print(f"{mib:>12}{len(simulate.buckets(gradients, mib * 2**20)):>10}{two * 1e3:>15.0f}"
          f"{three * 1e3:>13.0f}")

# %%
# Run this cell to compare your prediction with the outcome.
def best():
    mib = min((0, 0.25, 1, 4, 10, 25, 50, 100), key=lambda mib: summed_after_s(
        mib * 2**20, simulate.ring_s, simulate.tree_s))
    count = len(simulate.buckets(gradients, mib * 2**20))
    if count <= 10:
        return "one" if count == 1 else "2 to 10"
    return "11 to 50" if count <= 50 else "more"

settle("05-buckets", best)

# %% [markdown]
# <details><summary>Why?</summary>
#
# If the gradients travel one by one, they pay the latencies of an all-reduce 161 times. One bucket is slow with either library (287 or 282 ms), because
# nothing is sent before the backward pass ends. A number in between is best, but how much it helps depends on the library. With only ring and tree, small
# buckets look terrible, but nearly half of the 476 ms for 161 buckets are spent on the bytes of our tree, which sends the whole tensor in each round. With
# halving, buckets of 10 MiB are best, and buckets of 4 to 25 MiB take the same time to within 4 ms, so DistributedDataParallel's default of 25 MiB is in a flat
# valley. For a different number of ranks or different links, a different size is best, and in the lab, you look for this size. The backward pass itself ends
# after 120 ms, but the network needs 161 ms for these bytes, whatever the size of the buckets. Together with the latencies and the time before the first bucket
# is ready, 50 ms are therefore not hidden.
# </details>
#
# ## Compute against bytes
#
# Whether buckets can hide the messages depends on the machine. The backward pass of a large transformer with $P$ weights over $T$ tokens takes about $4PT$
# operations on each rank, while a ring sends nearly $4P$ bytes for gradients in 16 bits. At $F$ operations and $B$ bytes per second, the messages are hidden if
# $4PT/F \ge 4P/B$, that is, if $T \ge F/B$, whatever the size of the model (Austin et al. 2025). If the gradients are summed in `float32` (unit 01), there are
# twice as many bytes, so twice as many tokens are needed. The next cell assumes that today's machines reach 40 % of their peak and 80 % of their links' rates.

# %%
from manyhands.simulate import machines

print("tokens needed:         on each GPU, if all GPUs   in each node, if its GPUs")
print("machine                 of a node sum together           split each layer")
for name in ("dgx-a100", "dgx-h100", "dgx-b200", "a2-highgpu-8g"):
    kind = machines.named(name, reached=0.8)
    inside, between = kind.machine.inside[1], kind.machine.between[1]
    links, gpus = kind.machine.links_per_node, kind.machine.ranks_per_node
    together, apart = min(inside, links * between), between * links / gpus
    print(f"{name:<16}{0.4 * kind.flops_per_s / together:>35,.0f}"
          f"{0.4 * kind.flops_per_s / apart:>27,.0f}")

# %% [markdown]
# On DGX H100 nodes, 1236 tokens on each GPU, or 9890 in a node, hide the rings' messages over all eight links. If the GPUs of a node split each layer (unit
# 15), each GPU has an eighth of the weights and sums their gradients with its counterparts in the other nodes over its share of the links. All eight GPUs work
# on the same tokens, so the right column, which also shows 9890, counts the tokens of a node. Hence, splitting the layers does not change the batch that hides
# the gradients. With fewer tokens, or with one slow link for eight GPUs, the ranks wait, unless the batch grows (unit 17). Each hop between nodes also adds a latency of 2.7 to 14 µs in NCCL's own table ([tuning.cc](https://github.com/NVIDIA/nccl/blob/master/src/graph/tuning.cc)).
#
# ## When to use it, and what it costs
#
# **Use the model** to choose between ring and tree, between one server and four, or between a larger bucket and a faster network, and to *notice* that
# something takes three times as long as predicted. The model's two numbers can be measured in a minute, and its ranking is right long before its milliseconds
# are.
#
# **Do not use it** to promise milliseconds, because the model includes no messages that share a wire, no slow rank, no adding up, and no second latency for
# "ready". A library may also choose a different algorithm. For example, NCCL chooses by size and wiring, while gloo uses a ring for an all-reduce of any size.

# %% [markdown]
# > **On GPUs.** A call returns when it is *enqueued*, so a timer around the call measures only the enqueuing. Call `torch.cuda.synchronize()` before each look
# > at the clock, or use `torch.cuda.Event`s. The first collective of a group and the first message of a pair also pay for NCCL's set-up, so warm up. NCCL's
# > kernels run on the GPU's own processors and slow down the computations that run next to them. For a ping-pong, `send` and `recv` are enough, but a
# > hand-written ring needs `dist.batch_isend_irecv` (unit 04). Judge your cluster by the busbw of nccl-tests' `all_reduce_perf`.

# %% [markdown]
# **The three most common mistakes.** If you time *only the sending*, you miss the arrival, because `send` returns when the message has been handed over, and a
# GPU call returns even before anything has happened. If you fit *errors in seconds*, the largest messages alone determine the fit, and the fitted latency is
# their noise. If you count *the latency once*, you forget that a collective pays the latency in every round, $2(p-1)$ times in a ring.
#
# ## What has aged
#
# <details><summary>What older talks and articles say, and what is still true</summary>
#
# | older talks and articles say | today |
# |---|---|
# | two GPUs do 200 iterations' work in the time of 100 | This holds if messages cost nothing. Between two GPUs they cost $n/B$ and two latencies, and between many GPUs, nearly $2n/B$ and $2(p-1)$ latencies. Overlap hides these costs (unit 06). |
# | with 1024 GPUs more than 20 % of the time goes into communication | This is the talk's own number. According to the model, mainly the number of rounds grows with $p$, so 100 MB at 7 GB/s and 5 µs take 29 ms on 64 ranks and 39 ms on 1024. NCCL has more than a ring, namely trees between the nodes with chains inside them, and switches that add up (unit 04). |
# | a parameter server in the middle, or peer to peer | The server's one link carries everything, so servers are sharded (unit 08), or there is no server. |
# | Horovod's pull request tests a *fused* all-reduce | Fusion is still its core. The buffer has doubled to 128 MB, and the cycle is 1 ms instead of 5 ([0.21, 2020](https://github.com/horovod/horovod/pull/2468)). |
#
# </details>
#
# ## Summary
#
# * To time a message, warm up, send it there and back, halve the time, and take the median. Fit with relative errors, and use a bootstrap for the band.
# * The time of a collective is the number of its rounds times the latency, plus the bytes over the busiest link divided by the bandwidth (see the table in
#   *Four all-reduces*).
# * With two kinds of links, an all-reduce in two levels sends fewer bytes over the slow links and takes far fewer rounds. Each level has its own latency and
#   bandwidth.
# * The size at which ring and tree cross is proportional to $\alpha B$, and it usually grows with the number of ranks. However, it drops just above each power
#   of two, where the tree needs two more rounds. For 2 and 3 ranks, the times do not cross.
# * The model assumes links that do not disturb each other and one latency per round. On one machine with few cores, links do disturb each other, and a library
#   that asks before it sends pays two latencies.
# * Buffers save latencies, and *several* buffers save waiting. The best number of buffers also depends on the algorithm.
# * A rank needs $F/B$ tokens in a step to hide its gradients.
#
# **Now the lab:** write your own ping-pong, fit, band and prediction, and test these on hidden measurements. Afterwards, unit 06 covers real buckets, unit 08
# the server's link, and unit 19 predictions for 1024 ranks.
#
# **References.** R. Hockney 1994, *The communication challenge for MPP: Intel Paragon and Meiko CS-2*, Parallel Computing 20(3). R. Thakur, R. Rabenseifner, W.
# Gropp 2005, *Optimization of collective communication operations in MPICH*, Int. J. High Perform. Comput. Appl. 19(1). P. Patarasuk, X. Yuan 2009, *Bandwidth
# optimal all-reduce algorithms for clusters of workstations*, J. Parallel Distrib. Comput. 69(2). B. Efron 1979, *Bootstrap methods: another look at the
# jackknife*, Annals of Statistics 7(1). D. Culler et al. 1993, *LogP: Towards a realistic model of parallel computation*,
# [PPoPP](https://doi.org/10.1145/155332.155333). P. Goyal et al. 2017, *Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour*,
# [arXiv 1706.02677](https://arxiv.org/abs/1706.02677). A. Sergeev, M. Del Balso 2018, *Horovod: fast and easy distributed deep learning in TensorFlow*,
# [arXiv 1802.05799](https://arxiv.org/abs/1802.05799). H. Mikami et al. 2018, *Massively Distributed SGD: ImageNet/ResNet-50 Training in a Flash*,
# [arXiv 1811.05233](https://arxiv.org/abs/1811.05233), for two levels. J. Austin et al. 2025, *How to Scale Your Model*,
# [chapter on training](https://jax-ml.github.io/scaling-book/training/), for the tokens that hide the gradients. NVIDIA,
# [nccl-tests: performance](https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md), for algbw and busbw. S. Li et al. 2020, *PyTorch Distributed:
# Experiences on Accelerating Data Parallel Training*, [arXiv 2006.15704](https://arxiv.org/abs/2006.15704).

# %%
if not blocked:
    network.stop()
cluster.stop()
