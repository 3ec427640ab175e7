# %% [markdown] unit={"minutes": 30, "ranks": 4, "framework": "torch", "title": "Asynchrony and staleness"}
# # 09 Asynchrony and staleness
#
# Three workers and a server, and nobody waits for anybody. At the end you can
#
# * measure how old gradients are when they are applied, and say how old they must be on average;
# * replay an asynchronous run exactly, from a list of versions;
# * give the largest learning rate that a delay allows, derive it, and say what momentum and Adam make of it;
# * bound the age of gradients with a barrier, and say what that bound promises;
# * say how long a step takes if some machines are backups, and choose how many;
# * average rarely, as local SGD and DiLoCo do, and weight old samples, as asynchronous reinforcement learning does;
# * recognise three mistakes: the rate of a synchronous run, a barrier that forgets who waits, backups without counting steps.
#
# **Before:** unit 01; unit 08 for parameter servers themselves. **Minutes:** 30. **Ranks:** 4. There is a marked place to stop in the middle.

# %% [markdown]
# ## A server, and workers that do not wait
#
# This kernel starts the ranks. Cells that begin with `%%px` run on all of them: rank 0 is the server, ranks 1 to 3 are workers 0 to 2. The task is that of the
# whole track, with its weights as one long vector.

# %% tags=["setup"]
from manyhands import Cluster, predict, settle

cluster = Cluster(nodes=1, ranks_per_node=4, framework="torch")

# %% tags=["setup"]
# %%px --setup
import os
import time

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from manyhands import track
from manyhands.simulate.asynchrony import Barrier, Step, stable_rate

if not dist.is_initialized():  # so that this cell can be run twice
    dist.init_process_group(os.environ["MANYHANDS_BACKEND"])
# NCCL refuses to receive from anyone: messages lie in the memory of the CPU
wires = dist.new_group(backend="gloo")
device = torch.device(os.environ["MANYHANDS_DEVICE"])  # here workers compute
rank, workers = dist.get_rank(), dist.get_world_size() - 1

# %% tags=["setup"]
# %%px --setup
x, y = (torch.from_numpy(array).to(device) for array in track.data())
model = track.network(device)
start = parameters_to_vector(model.parameters()).detach().cpu().clone()

def objective(w, rows=slice(None)):
    vector_to_parameters(w.to(device), model.parameters())
    return (cross_entropy(model(x[rows]), y[rows]) + track.DECAY / 2
            * sum(p.square().sum() for p in model.parameters()))

def gradient(w, batch):
    """Of the objective of this batch, at the weights w."""
    parts = torch.autograd.grad(objective(w, track.rows(batch)), list(model.parameters()))
    return torch.cat([part.reshape(-1) for part in parts]).cpu()

# %% [markdown]
# A worker **pulls** the weights, computes a gradient, and **pushes** it. Nothing more (*Downpour SGD*, Dean et al. 2012). A message is one number, which batch, and then weights or a gradient.

# %% tags=["setup"]
# %%px --setup
def work(pause_s):
    """A worker, until the server says stop. `pause_s` makes it slower, as if its network
    were larger."""
    message = torch.zeros(1 + len(start), dtype=torch.float64)
    while True:
        dist.recv(message, src=0, group=wires)
        if message[0] < 0:
            return
        time.sleep(pause_s)
        message[1:] = gradient(message[1:], int(message[0]))
        dist.send(message, dst=0, group=wires)

# %% [markdown]
# The server takes a gradient from **whoever comes first**: `dist.recv` without `src`. It applies it at once, and that worker goes on with the new weights. The others know nothing of it.
# `Barrier` comes later; with the bound infinity it lets everyone go.

# %% tags=["setup"]
# %%px --setup
def hand_out(worker, batch, w):
    dist.send(torch.cat([torch.tensor([batch], dtype=w.dtype), w]), dst=worker + 1,
              group=wires)

def stop(busy):
    """Take in the gradients that are still under way, drop them, and send everyone home."""
    for worker in range(workers):
        if worker in busy:
            dist.recv(torch.zeros(1 + len(start), dtype=torch.float64), src=worker + 1,
                      group=wires)
        hand_out(worker, -1, start)

# %% tags=["setup"]
# %%px --setup
def serve(updates, rate, bound=float("inf")):
    w, message, log, busy, clocks = (start.clone(),
                                     torch.zeros(1 + len(start), dtype=torch.float64), [],
                                     {}, [0] * workers)
    barrier, free, zero_s = Barrier(workers, bound), range(workers), time.perf_counter()
    while len(log) < updates:
        for worker in free:
            # pulled when, and which version
            busy[worker] = (time.perf_counter() - zero_s, len(log))
            hand_out(worker, clocks[worker] * workers + worker, w)
        worker = dist.recv(message, group=wires) - 1  # from any rank
        start_s, version = busy.pop(worker)
        log.append(Step(worker, clocks[worker], start_s, time.perf_counter() - zero_s,
                        version, len(log) - version))
        clocks[worker] += 1
        w -= rate * message[1:]
        free = barrier.done(worker)
    stop(busy)
    return w, log

# %% [markdown]
# **Version** v of the weights is what they are after v updates. The **staleness** of a gradient is the number of updates between its pull and its push: what the others have done meanwhile.
#
# Worker 2 is four times slower here.
#
# **Predict.** How stale is a gradient, on average over all 60? And if all three were equally fast?

# %%
predict("09-stale", "Three workers, one of them slow: how stale is a gradient on average?",
        unit="updates", within=0.15)

# %% tags=["measured"]
# %%px
log = []
if rank:
    work(pause_s=(0.01, 0.01, 0.04)[rank - 1])
else:
    w, log = serve(updates=60, rate=0.1)
    for worker in range(workers):
        own = [step.staleness for step in log if step.worker == worker]
        print(f"worker {worker}: {len(own)} gradients, staleness {np.mean(own):.2f} on "
              f"average, {max(own)} at most")
    print(f"all: staleness {np.mean([step.staleness for step in log]):.2f} on average")

# %% tags=["measured"]
from manyhands.plots import staleness as plots

log = cluster.pull("log")[0]  # of rank 0
print("the first gradients, worker: staleness  ",
      ", ".join(f"{step.worker}: {step.staleness}" for step in log[:16]), "...")
plots.schedule(log[:30])

# %%
settle("09-stale", lambda: sum(step.staleness for step in log) / len(log))

# %% [markdown]
# <details><summary>Why always about 2?</summary>
#
# A worker pulls right after it pushes. So, between its first pull and its last push, each update by *another* worker falls into exactly one of its gradients, and counts there once. An update by worker 0 thus counts
# once for worker 1 and once for worker 2. With W workers the mean is **W - 1**, less a little at the ends, however fast or slow each is, if the run is long against the slowest one's step and nobody waits. The slow one has few gradients, and old ones.
# </details>
#
# The next cell checks that, by counting: all staleness together is the sum of each worker's last version, less the number of updates. It is true in every run.

# %%
last = {step.worker: number for number, step in enumerate(log, 1)}
print(sum(step.staleness for step in log) == sum(last.values()) - len(log))

# %% [markdown]
# ## The schedule is all that chance has done
#
# Run it again, and other versions meet: other weights come out. But which version each gradient was computed from stands in the log. With that, one process can **replay** the run: update t takes the
# gradient at version `v[t]` off the newest weights.
#
# $$ w_{t+1} = w_t - \text{rate} \cdot \nabla \ell_t(w_{v_t}), \qquad \text{staleness} = t - v_t $$

# %%
# %%px --ranks 0
versions = [start]
for step in log:
    stale = gradient(versions[step.version], step.clock * workers + step.worker)
    # a new tensor: the old versions are still needed
    versions.append(versions[-1] - 0.1 * stale)
print("the weights of the run, to 1e-12:", (versions[-1] - w).abs().max().item() < 1e-12)

# %% [markdown]
# From here on, schedules are replayed: exact, the same each time, and with any delay we like.
#
# ## What an old gradient does
#
# One weight, the loss $w^2/2$, so the gradient is $w$ itself. The rate is 1, and each gradient is `delay` updates old.
#
# **Predict.** Without delay, one update finds the minimum. What happens with a delay of 1? Of 2?

# %%
predict("09-delay-1", "A delay of 1: what do the weight's swings do?",
        ["die out", "stay as large", "grow"])
predict("09-delay-2", "A delay of 2: what do the weight's swings do?",
        ["die out", "stay as large", "grow"])

# %%
def descend(delay, rate, updates):
    """The weight after each update; before the first one it has always been 1."""
    w = [1] * (delay + 1)
    for _ in range(updates):
        w.append(w[-1] - rate * w[-1 - delay])
    return w[delay:]

for delay in (0, 1, 2):
    print(f"delay {delay}:", *(f"{w:>3}" for w in descend(delay, 1, 17)))

# %%
def swings(delay):
    weights = list(map(abs, descend(delay, 1, 120)))
    early, late = max(weights[:60]), max(weights[60:])
    return "stay as large" if early == late else "grow" if late > early else "die out"

settle("09-delay-1", lambda: swings(1))
settle("09-delay-2", lambda: swings(2))

# %% [markdown]
# <details><summary>Why?</summary>
#
# With a delay of 1, the weight stands at 0, the minimum, and still gets the gradient that was right where it stood before. So it goes too far, and comes back: 1, 1, 0, -1, -1, 0, for ever. With a delay of 2 it goes further each time.
# </details>
#
# ## The largest stable rate
#
# With curvature $h$ and delay $d$ the update is $w_{t+1} = w_t - a\, w_{t-d}$, where $a = \text{rate} \cdot h$. Try $w_t = z^t$:
#
# $$ z^{d+1} - z^d + a = 0 $$
#
# The weight dies out if all roots $z$ lie inside the unit circle. For a tiny $a$ they do: $d$ of them are near 0, and one is near $1 - a$. As $a$ grows they move, and the first one to reach the circle ends it. On the circle $z = e^{i\theta}$, so
#
# $$ a = z^d (1 - z) = 2 \sin\tfrac{\theta}{2} \; e^{\,i\left((d + 1/2)\,\theta - \pi/2\right)} $$
#
# which must be real and positive: $(d + \frac12)\,\theta = \frac{\pi}{2}$, or that plus full turns. Full turns make $\theta$ and $a$ larger, so the first is
#
# $$ \text{rate} \cdot h = 2 \sin \frac{\pi}{2\,(2d + 1)} $$
#
# (Levin and May 1976). At the edge $\theta = \pi/(2d+1)$: the weight swings with a period of $2(2d+1)$ updates. That is 6 for a delay of 1, as above.

# %%
from manyhands.simulate.asynchrony import growth, stable_rate

print("delay   largest rate   largest root there   after 4000 updates: 2 % below   2 % "
      "above")
for delay in (0, 1, 2, 4, 8, 16):
    edge = stable_rate(delay)
    below, above = (max(map(abs, descend(delay, part * edge, 4000)[-70:]))
                    for part in (0.98, 1.02))
    print(f"{delay:>5}{edge:>15.4f}{growth(delay, edge):>21.4f}"
          f"{'dies out' if below < 0.2 else '?':>32}{'grows' if above > 5 else '?':>12}")

# %% [markdown]
# The formula, the roots and the replay agree. For long delays the sine is about its angle: the largest $\text{rate} \cdot h$ is just below $\pi / (2d + 1)$, which is 1.57 divided by $d + \frac12$. **Mistake 1: the rate of a synchronous run.** What was safe with fresh gradients is far too large with W - 1 others in between.
#
# All of this is for **plain SGD**. Most training has momentum: $v_{t+1} = m\,v_t + h\,w_{t-d}$ and $w_{t+1} = w_t - \text{rate} \cdot v_{t+1}$.
#
# **Predict.** With momentum 0.9, is the largest rate larger or smaller than without? With fresh gradients, and with a delay of 1?

# %%
predict("09-momentum-fresh", "Fresh gradients: with momentum 0.9 the largest rate is ...",
        ["larger", "smaller"])
predict("09-momentum-late", "A delay of 1: with momentum 0.9 the largest rate is ...",
        ["larger", "smaller"])

# %%
import numpy as np

def largest_rate(delay, momentum):
    """By halving, from the roots of z^n - (1 + momentum) z^(n-1) + momentum z^(n-2) + rate
    z^(n-1-delay); n is the order."""
    low, high = 0.0, 4.0
    for _ in range(40):
        rate, terms = (low + high) / 2, np.zeros(max(delay, 1) + 2)
        terms[:3] = 1, -1 - momentum, momentum
        terms[delay + 1] += rate
        low, high = (rate, high) if abs(np.roots(terms)).max() < 1 else (low, rate)
    return low

for delay in (0, 1, 4, 8):
    plain, heavy = largest_rate(delay, 0), largest_rate(delay, 0.9)
    print(f"delay {delay}: largest rate {plain:.3f}; with momentum 0.9: {heavy:.3f}, which "
          f"moves as far as {heavy / (1 - 0.9):.3f} without")

# %%
def with_momentum(delay):
    return "larger" if largest_rate(delay, 0.9) > largest_rate(delay, 0) else "smaller"

settle("09-momentum-fresh", lambda: with_momentum(0))
settle("09-momentum-late", lambda: with_momentum(1))

# %% [markdown]
# <details><summary>How to read it</summary>
#
# With fresh gradients the bound is $2 (1 + m)$: momentum allows more. With a delay of 1 it is $1 - m$, a tenth, and so it goes on. A gradient goes into all later steps, in all $1 + m + m^2 + \ldots = 1 / (1 - m)$ times: so momentum 0.9 moves ten times as
# far. Counted so, the delays 1, 4 and 8 allow 1, 0.27 and 0.14, in place of 1, 0.35 and 0.18. Who takes over a synchronous run's rate *and* its momentum is far beyond the edge.
# </details>
#
# More: in a model with random waits, W workers that do not wait for each other act like a momentum of $1 - 1/W$ by themselves (Mitliagkas et al. 2016). So turn your own down.
#
# The same rate, 0.2, three times, without momentum. To the right the weight, upwards its last change: a swing that stays as it is would be a closed loop, one that dies out is a spiral inwards, one that grows a spiral outwards.
#
# **Predict.** Which of the three comes to rest, for delays 0, 4 and 8? Look at the table.

# %%
predict("09-rest", "Which come to rest at a rate of 0.2?",
        ["delay 0", "delay 0, delay 4", "delay 0, delay 4, delay 8", "none"])

# %%
ways = {f"delay {delay}": descend(delay, 0.2, 100) for delay in (0, 4, 8)}
for name, weights in ways.items():
    print(f"{name}, after 0, 25, 50, 75, 100 updates:",
          *(f"{w:>8.3f}" for w in weights[::25]))
plots.spirals(ways)

# %%
settle("09-rest", lambda: ", ".join(
    name for name, weights in ways.items() if abs(weights[-1]) < 0.1) or "none")

# %% [markdown]
# ## A real network
#
# A loss near its minimum is a sum of such parabolas, one for each direction; the direction with the largest curvature grows first. Here is the track's network, replayed with each gradient `delay` updates old, at its own rate of 0.5 and at a fifth of it.

# %%
# %%px --ranks 0
def replay(delay, rate, updates=120):
    versions = [start]
    for t in range(updates):
        versions.append(versions[-1] - rate * gradient(versions[max(0, t - delay)], t))
    return versions[-1]

ends = {}
for delay in (0, 1, 2, 4, 8):
    ends[delay] = {rate: replay(delay, rate) for rate in (0.5, 0.1)}
    print(f"delay {delay}: objective after 120 updates",
          ", ".join(f"{objective(w).item():.3g} at rate {rate}"
                    for rate, w in ends[delay].items()))

# %% [markdown]
# And the largest curvature, where the undelayed run has come to, by the power method: multiply a direction by the matrix of second derivatives, many times.

# %%
# %%px --ranks 0
w, v = (ends[0][0.5], torch.randn(len(start), dtype=torch.float64,
                                  generator=torch.Generator().manual_seed(0)))
for _ in range(60):
    v /= v.norm()
    # six batches are all the data
    v = ((sum(gradient(w + 1e-4 * v, b) - gradient(w - 1e-4 * v, b) for b in range(6)) / 6)
         / 2e-4)
curvature = v.norm().item()
print(f"largest curvature {curvature:.2f}; largest rates",
      ", ".join(f"{stable_rate(d) / curvature:.3f} at delay {d}" for d in ends))

# %% [markdown]
# <details><summary>How to read it</summary>
#
# At rate 0.1, below the bounds up to delay 4, the delay hardly matters. (At delay 8 the rate is a quarter above the bound; 120 updates are too few to show it.) At 0.5 it is below the bound of delay 0 only, and the longer the delay, the worse the objective; from delay 4 on the training is lost. The bound is a rule of thumb here: the curvature differs along the way.
#
# That is one reason why asynchronous training can work: where the noise of small batches demands a rate far below what is stable without delay, a delay costs little. At a rate near the limit it costs everything.
# </details>
#
# ## Adam and old gradients
#
# Adam divides each gradient by a running average of its size, so the length of a step depends on the rate and hardly on the gradient.
#
# **Predict.** One weight and the loss $w^2/2$ again, Adam with a rate of 0.1, and a delay of 4. What do the swings of the weight do?

# %%
predict("09-adam",
        "Loss w^2/2, Adam at a rate of 0.1, a delay of 4: what do the swings do?",
        ["die out", "stay, at a limited size", "grow without limit"])

# %%
def adam(delay, rate, updates):
    """The weight after each update of Adam, with its usual averages, for the loss w^2/2."""
    w, mean, square, first, second = [1.0] * (delay + 1), 0.0, 0.0, 1.0, 1.0
    for _ in range(updates):
        gradient = w[-1 - delay]
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient * gradient
        first, second = 0.9 * first, 0.999 * second  # both averages began with 0
        size = (square / (1 - second)) ** 0.5 + 1e-8
        w.append(w[-1] - rate * mean / (1 - first) / size)
    return w[delay:]

print("largest weight before update    1000    5000   10000")
for rate, delay in ((0.1, 0), (0.1, 1), (0.1, 4), (0.1, 8), (0.02, 4)):
    weights = adam(delay, rate, 10000)
    print(f"rate {rate:<4}, delay {delay}:              ",
          *(f"{max(map(abs, weights[n - 300:n])):>7.2f}" for n in (1000, 5000, 10000)))

# %%
def swings_of_adam():
    weights = list(map(abs, adam(4, 0.1, 10000)))
    early, late = max(weights[700:1000]), max(weights[-300:])
    return ("die out" if late < early / 10 else "grow without limit" if late > 10 * early
            else "stay, at a limited size")

settle("09-adam", swings_of_adam)

# %% [markdown]
# <details><summary>Why?</summary>
#
# In the vicinity of the minimum the gradients become small, and Adam divides by their size. So its effective rate grows, until it exceeds the bound of the delay. Then the weight swings, the gradients become larger, and the effective rate falls again. The swing neither dies out nor
# explodes. Its size grows with the rate and with the delay. The last line shows how treacherous this is: at a rate of 0.02 the weight has come to rest after 1000 updates, and swings later.
# </details>
#
# On the network, each of two rates once more, a good one for fresh gradients and a fifth of it:

# %%
# %%px --ranks 0
def replay_adam(delay, rate, updates=120):
    versions, mean, square = [start], torch.zeros_like(start), torch.zeros_like(start)
    for t in range(updates):
        stale = gradient(versions[max(0, t - delay)], t)
        mean, square = 0.9 * mean + 0.1 * stale, 0.999 * square + 0.001 * stale**2
        size = (square / (1 - 0.999 ** (t + 1))).sqrt() + 1e-8
        versions.append(versions[-1] - rate * mean / (1 - 0.9 ** (t + 1)) / size)
    return versions[-1]

for delay in (0, 1, 4, 8):
    print(f"Adam, delay {delay}: objective after 120 updates",
          ", ".join(f"{objective(replay_adam(delay, rate)).item():.3g} at rate {rate}"
                    for rate in (0.01, 0.002)))

# %% [markdown]
# So Adam is no remedy for old gradients. As with SGD, a delay asks for a smaller rate.
#
# ## What the bound does not cover (optional)
#
# The formula is for a *constant* delay. Real delays change.
#
# **Predict.** The rate is 3 % below the bound of delay 8. No gradient is ever older than 8. Can the weight grow?

# %%
predict("09-swing",
        "Below the bound of delay 8, no gradient older: can the weight grow?",
        ["yes", "no"])

# %%
import random

def swing(rate, choose, updates=4000):
    """Each update gets one of the last nine weights as its gradient: `choose(t, the nine)`.
    Returns the largest of the last weights."""
    w = [1.0] * 9
    for t in range(updates):
        w.append(w[-1] - rate * choose(t, w[-9:]))
    return max(map(abs, w[-40:]))

rate, chance = 0.97 * stable_rate(8), random.Random(0)
print(f"always 8 old:                                        "
      f"{swing(rate, lambda t, nine: nine[0]):.0e}")
print(f"14 times the largest of nine, 14 times the smallest: "
      f"{swing(rate, lambda t, nine: (min if t // 14 % 2 else max)(nine)):.0e}")
print(f"twice the rate, 0 to 8 old, drawn:                   "
      f"{swing(2 * rate, lambda t, nine: chance.choice(nine)):.0e}")

# %%
def pushed():
    return swing(rate, lambda t, nine: (min if t // 14 % 2 else max)(nine))

settle("09-swing", lambda: pushed() > 1)  # it was 1 at the start

# %% [markdown]
# <details><summary>Why?</summary>
#
# Someone who may choose the age of each gradient can push the weight like a swing, always in time. In the limit of long delays the safe bound falls from $\pi/2$ to $3/2$ divided by the delay (Yorke 1970, for the equation in continuous time): about 5 % less. Chance is not so mean: with ages drawn from 0 to 8, the weight comes to rest at twice the rate. So take the formula for what it is: the order of magnitude, and the way it falls with the delay.
# </details>

# %% [markdown]
# > **A good place to stop.** The first half was about gradients of any age. The second half bounds their age and drops slow workers. In a new kernel, run the cells from the top to this one, and go on here.

# %% [markdown]
# ## Bounded staleness
#
# A worker that is slow for long has very old gradients. **Stale synchronous parallel** puts a bound to that (Ho et al. 2013). The server counts each worker's finished steps, its clock. A worker may begin a step if its clock is at most `bound` ahead of the slowest one's. Else it waits. Bound 0 is lockstep, infinity no barrier.
#
# What does that promise? While a worker computes at clock c, another can push at most $2 \cdot \text{bound} + 1$ times: it was at $c - \text{bound}$ or later when the worker pulled, and can begin no step beyond $c + \text{bound}$. So no gradient is more than $(W - 1)(2 \cdot \text{bound} + 1)$ updates old. Real runs, each with the slow worker:

# %% tags=["measured"]
# %%px
for bound in (0, 2, float("inf")):
    if rank:
        work(pause_s=(0.01, 0.01, 0.04)[rank - 1])
    else:
        w, log = serve(60, rate=0.1, bound=bound)
        oldest, promised = (max(step.staleness for step in log),
                            (workers - 1) * (2 * bound + 1))
        shares = [sum(step.worker == worker for step in log) for worker in range(workers)]
        assert oldest <= promised
        print(f"bound {bound}: {60 / log[-1].stop_s:.0f} gradients per second, by worker "
              f"{shares}, at most {oldest} old (promised: {promised}), objective "
              f"{objective(w).item():.3f}")

# %% [markdown]
# <details><summary>Why is bound 2 hardly faster than lockstep?</summary>
#
# Because worker 2 is *always* slower. A bound lets the others run ahead by a few steps, once; then they move at its pace. It helps against workers that are slow now and then, in turn. And against a worker that is always slow? Give it fewer rows (unit 01), or leave it out.
#
# Without a bound, the fast workers give most of the gradients. If each has its own rows, as here, theirs count more often: the run minimises another objective.
# </details>
#
# **Mistake 2: a barrier that forgets who waits.** When the slowest moves on, *all* that wait must be looked at. A server that answers only the one who has just come leaves the others asleep for ever. The same when a worker dies: its clock must leave the minimum. You write this barrier in the lab.
#
# ## Backup workers
#
# The other way out keeps gradients fresh: **synchronous, but not waiting for the last**. Start N + b workers on the same weights, make the step from the first N gradients, throw the late ones away.
#
# How late are the late ones? The workers measure 100 gradients each, one worker after the other, beside whatever else your machine is doing.

# %% tags=["measured"]
# %%px
times_s = []
for turn in range(1, workers + 1):
    dist.barrier()
    for batch in range(110) if turn == rank else ():
        begin_s = time.perf_counter()
        gradient(start, batch)
        times_s.append(time.perf_counter() - begin_s)
if rank:
    fastest, middle, slowest = (1e3 * np.quantile(times_s[10:], part)
                                for part in (0, 0.5, 1))
    print(f"fastest {fastest:.2f} ms, median {middle:.2f} ms, slowest {slowest:.2f} ms")

# %% [markdown]
# **Predict.** Of 100 machines each is late in one step of a hundred, independently. How many of the steps wait for a late one?

# %%
predict("09-late",
        "100 machines, each late in 1 step of 100: how many percent of the steps wait?",
        unit="%", within=0.1)

# %%
from math import comb

for late in (0, 1, 2, 4):
    waits = 1 - sum(comb(100, k) * 0.01**k * 0.99 ** (100 - k) for k in range(late + 1))
    print(f"{late} backups of 100: {waits:.1%} of the steps")

# %%
settle("09-late", lambda: 100 * (1 - 0.99**100))

# %% [markdown]
# <details><summary>Why so many?</summary>
#
# A step is as slow as the slowest of those that it waits for: without backups, $1 - 0.99^{100}$ of the steps have a late one. Each backup forgives one. That is an **order statistic**, the N-th fastest of N + b. If a worker's time is drawn from K measured times, the N-th fastest is at most the k-th smallest of them
# with the probability that N or more of N + b draws are: a binomial sum, no drawing needed.
# </details>
#
# But the machines are given, here 20, and each backup is a gradient less in the step. Fewer gradients are a noisier step, so more steps. How many? Measured on our network: each machine gives the gradient of one row, and we count the steps until the objective is below 0.75.

# %%
# %%px
def steps_to(target, n, seed):
    w, draw, count = start.clone(), np.random.default_rng(seed), 0
    while objective(w) > target:
        rows = draw.integers(0, len(x), n)
        w = (w - 0.5
             * torch.cat([part.reshape(-1)
                          for part in torch.autograd.grad(objective(w, rows),
                                                          list(model.parameters()))]).cpu())
        count += 1
    return count

# each rank draws other rows
counts = {n: steps_to(0.75, n, seed=rank) for n in (20, 16, 12, 8, 6)}

# %%
found = cluster.pull("counts")
counts = {n: np.mean([one[n] for one in found]) for n in found[0]}
slope, least = np.polyfit([1 / n for n in counts], list(counts.values()), 1)
for n, count in counts.items():
    print(f"{n:>3} gradients: {count:6.1f} steps, fitted {least + slope / n:6.1f}")

# %% [markdown]
# The steps follow $s\,(1 + \text{noise}/n)$ roughly, the form that McCandlish et al. 2018 found (unit 17). It gives the steps for any n. The time to the target is their product with the seconds of a step.

# %% tags=["measured"]
from manyhands.simulate.asynchrony import nth_fastest_s

# of the workers
times_s = np.concatenate([one[10:] for one in cluster.pull("times_s")[1:]])
wait_s = [nth_fastest_s(20 - b, 20, times_s) for b in range(15)]
steps = [least + slope / (20 - b) for b in range(15)]
print(plots.against_b_table(wait_s, steps))
plots.against_b(20, wait_s, steps)

# %% [markdown]
# <details><summary>How to read it</summary>
#
# Dashed: a step gets shorter with each backup, steeply at first, while the backups forgive the late ones. Dotted: the steps to the target, more and more. The wide line is their product. Where its lowest point is depends on the stragglers: if few gradients are late, but very late, a few backups are best; if every other one is late, as on a machine that has much else to do, many. Chen et al. 2016 report 96 + 4 of 100 machines as their best.
# </details>
#
# **Mistake 3: backups without counting steps.** The shortest step has the most backups, and most gradients per second is not it either. Multiply by the steps.
#
# A machine that is *always* slow is always dropped. If each machine has a shard of its own, the rows of that one never count: draw rows for all machines from all data, or give it less to do.

# %% [markdown]
# ## Talk rarely: local SGD and DiLoCo
#
# A slow network can also be used less often. In *local SGD*, every rank takes H steps alone, and then all ranks average their weights (Stich 2019). *DiLoCo* treats the average change of the weights as a
# gradient. An **outer optimiser** takes a step with it, which is SGD with Nesterov momentum (Douillard et al. 2023). No rank runs ahead here, so both are synchronous, with rare communication.
#
# In this cell all four ranks are workers. Plain averaging is an outer step of rate 1 without momentum.

# %%
# %%px
def train_rarely(alone, times, outer_rate=1.0, momentum=0.0):
    """`times` averages, each after `alone` steps of this rank alone."""
    w, velocity, ranks = start.clone(), torch.zeros_like(start), dist.get_world_size()
    for turn in range(times):
        own = w.clone()
        for step in range(turn * alone, (turn + 1) * alone):
            own = own - 0.5 * gradient(own, step * ranks + rank)
        change = w - own
        dist.all_reduce(change, group=wires)
        change /= ranks
        velocity = momentum * velocity + change
        w = w - outer_rate * (change + momentum * velocity)  # Nesterov
    return objective(w).item()

for name, options in {"an average after each step, 15 steps": (1, 15),
                      "an average after each step, 120 steps": (1, 120),
                      "local SGD, 15 times 8 steps": (8, 15),
                      "DiLoCo, 15 times 8 steps": (8, 15, 0.7, 0.9)}.items():
    value = train_rarely(*options)
    if rank == 0:
        print(f"{name:<38} {options[1]:>3} all-reduces, objective {value:.3f}")

# %% [markdown]
# With 15 all-reduces, both reach about what 120 all-reduces reach, because eight steps are few and our ranks draw their rows from the same data. The outer momentum hardly helps a run of 15 rounds. DiLoCo's paper takes an outer rate of 0.7, a
# momentum of 0.9, AdamW inside and hundreds of steps between two averages.
#
# ## Old samples: asynchronous reinforcement learning
#
# Reinforcement learning of language models lives with staleness today. Some machines generate answers with weights that are some updates old and do not wait for newer ones, while other machines train on these answers (for example AReaL, Fu et al. 2025). Here the *sample* is
# old, and not the gradient. The gradient of the expected reward needs answers of the newest policy $\pi$. An old sample, drawn with $\pi_{\text{old}}$, is corrected by its **importance weight** $\pi / \pi_{\text{old}}$.
#
# Take a policy that chooses one of three answers. There are so few that we can compute expectations exactly, instead of drawing samples:

# %%
def policy(scores):
    return np.exp(scores) / np.exp(scores).sum()

reward = np.array([0.0, 0.5, 1.0])
old, new = policy(np.array([1.0, 0.0, 0.0])), policy(np.array([0.0, 0.0, 1.0]))

def mean_gradient(drawn, weight):
    """Of the expected reward, from answers with the probabilities `drawn`."""
    of_log = np.eye(3) - new  # row a: the gradient of log new[a] with respect to the scores
    return (drawn * weight * reward) @ of_log

for name, drawn, weight in (("new samples", new, 1), ("old samples", old, 1),
                            ("old samples, weighted", old, new / old),
                            ("weights of at most 2", old, np.minimum(new / old, 2))):
    print(f"{name:<22}", *(f"{part:>7.3f}" for part in mean_gradient(drawn, weight)),
          f"  largest weight {np.max(weight):.2f}")

# %% [markdown]
# Without weights, old samples even change the sign of one component. With them the mean is exactly right. However, a large weight makes the gradient noisy, and the weight of a long answer is a product of one factor for each token. Therefore weights are
# limited (PPO, Schulman et al. 2017; IMPALA, Espeholt et al. 2018), which makes the gradient a little wrong again, and the staleness of samples is bounded, as above.

# %% [markdown]
# > **On GPUs.** NCCL refuses a receive from anyone, and its collectives wait for all members: a server that takes what comes first, bounds or backups need messages over gloo, MPI or TCP, from the memory of the
# > CPU. A clock around a gradient must wait for the GPU: `.cpu()` does it here, `torch.cuda.synchronize()` in general; without that it measures the launch.

# %% [markdown]
# ## When to use it, when not, what it costs
#
# | | use it | not | costs |
# |---|---|---|---|
# | asynchronous | workers of different speed, workers that come and go, sparse models where updates seldom meet (Hogwild!, Recht et al. 2011: threads that write into one memory without locks); rates well below the limit | equal GPUs on a fast network; rates near the limit | a smaller rate; no two runs alike; W - 1 versions of staleness |
# | bounded staleness | speeds that change in turn | one worker that is always slow | waiting, and a server that counts |
# | N + b | rare, long stragglers, many machines | few machines, or all equally slow | b machines' work is thrown away |
# | local SGD, DiLoCo | slow networks, training between sites | a fast network | different weights from one process; H to be tuned |
# | old samples, weighted | reinforcement learning, where generating takes longer than training | supervised data, which does not age | noise, or a bias if the weights are limited |
# | synchronous, all-reduce | nearly everything else | | the slowest sets the pace |
#
# ## What has aged
#
# <details><summary>What still holds of slides of 2018 to 2019, and what does not</summary>
#
# | they say | today |
# |---|---|
# | synchronous: converges well, no stale gradients; asynchronous: survives a worker's death, high throughput, no waiting for the slow | holds, and you have measured it. Yet with equal GPUs and all-reduce synchronous has become the rule (Goyal et al. 2017). Equal weights on all ranks are given up where the network is slow (local SGD). Fresh samples are given up in reinforcement learning, where they are drawn with older weights while the newest ones train. Deaths are met by elastic training (unit 18) |
# | asynchronous: the model is updated when one *or more* gradients have come | one at a time here. To average a few first is in use too |
# | against staleness, have N + b workers and do not wait for the last b | it avoids staleness: it is *synchronous*, and late gradients are dropped. It does nothing for asynchronous training |
# | asynchronous training loses accuracy | at the same rate and momentum. With those that suit the delay, part of it comes back; how much depends on the task |
# </details>

# %% [markdown]
# ## What you can say now
#
# * *Staleness* is W - 1 on average in a long run without a barrier, whoever is slow; the slow worker's gradients are the old ones.
# * *The schedule of versions* is all that chance has done: with it, a run is replayed.
# * *The largest rate* is $2 \sin(\pi / (2(2d+1))) / h$ for plain SGD, just below $1.57 / ((d + \frac12) h)$; with momentum m it is at most $1 - m$ times that, as soon as there is a delay.
# * *Bounded staleness:* who begins a step is at most `bound` ahead of the slowest; a gradient is at most $(W-1)(2\,\text{bound}+1)$ updates old.
# * *N + b:* the N-th fastest of N + b, times the steps that N gradients need.
# * *Rare communication:* local SGD averages weights, and DiLoCo takes an outer step with their change.
# * *Old samples* get the importance weight $\pi / \pi_{\text{old}}$, within limits.
# * *Three mistakes:* the rate of a synchronous run; a barrier that forgets who waits; backups without counting steps.
#
# **Now the lab:** the log, the replay, the barrier, and the choice of b. Then unit 17 for the batch instead of the delay, and unit 18 for workers that die.
#
# **References.** S. A. Levin, R. M. May 1976, *A note on difference-delay equations*, [Theor. Popul. Biol. 9(2)](https://doi.org/10.1016/0040-5809(76)90043-5).
# J. A. Yorke 1970, *Asymptotic stability for one dimensional differential-delay equations*, [J. Differ. Equ. 7(1)](https://doi.org/10.1016/0022-0396(70)90132-4).
# I. Mitliagkas et al. 2016, *Asynchrony begets Momentum*, [arXiv 1605.09774](https://arxiv.org/abs/1605.09774). S. U. Stich 2019, *Local SGD Converges Fast and Communicates Little*, [arXiv 1805.09767](https://arxiv.org/abs/1805.09767). A. Douillard et al. 2023, *DiLoCo*, [arXiv 2311.08105](https://arxiv.org/abs/2311.08105).
# W. Fu et al. 2025, *AReaL*, [arXiv 2505.24298](https://arxiv.org/abs/2505.24298). J. Schulman et al. 2017, *Proximal Policy Optimization Algorithms*, [arXiv 1707.06347](https://arxiv.org/abs/1707.06347).
# L. Espeholt et al. 2018, *IMPALA*, [arXiv 1802.01561](https://arxiv.org/abs/1802.01561).
# B. Recht et al. 2011, *Hogwild!*, [arXiv 1106.5730](https://arxiv.org/abs/1106.5730).
# J. Dean et al. 2012, *Large Scale Distributed Deep Networks*, [NeurIPS 2012](https://proceedings.neurips.cc/paper/2012/hash/6aca97005c68f1206823815f66102863-Abstract.html).
# Q. Ho et al. 2013, *More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server*, [NeurIPS 2013](https://proceedings.neurips.cc/paper/2013/hash/b7bb35b9c6ca2aee2df08cf09d7016c2-Abstract.html).
# J. Chen et al. 2016, *Revisiting Distributed Synchronous SGD*, [arXiv 1604.00981](https://arxiv.org/abs/1604.00981).
# P. Goyal et al. 2017, [arXiv 1706.02677](https://arxiv.org/abs/1706.02677). S. McCandlish et al. 2018, *An Empirical Model of Large-Batch Training*, [arXiv 1812.06162](https://arxiv.org/abs/1812.06162).

# %%
cluster.stop()
