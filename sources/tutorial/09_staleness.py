# %% [markdown] unit={"minutes": 55, "ranks": 4, "framework": "torch", "title": "Asynchrony and staleness"}
# # 09 Asynchrony and staleness
#
# Three workers and a server train together, and no worker waits for another. At the end, you can
#
# * measure how old gradients are when applied, and compute how old they must be on average.
# * replay an asynchronous run exactly, from a list of versions.
# * derive and compute the largest learning rate that a delay allows, and explain how momentum and Adam change it.
# * bound the age of gradients with a barrier, and explain what that bound promises.
# * compute how long a step takes if some machines are backups, and choose the number of backups.
# * average weights rarely, as local SGD and DiLoCo do, and weight old samples, as asynchronous reinforcement learning does.
# * recognise three mistakes, namely the learning rate of a synchronous run, a barrier that forgets which workers wait, and backups without counting steps.
#
# **Before:** unit 01, and unit 08 for parameter servers themselves. **Minutes:** 55 · **Ranks:** 4. A place to stop is marked.

# %% [markdown]
# ## A server, and workers that do not wait
#
# This kernel starts the ranks, and cells that begin with `%%px` run on all of them. Rank 0 is the server, and ranks 1 to 3 are workers 0 to 2. They train the
# network of this track, whose weights form one long vector here.

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
# NCCL refuses to receive from any rank, so messages stay in the memory of the CPU
wires = dist.new_group(backend="gloo")
device = torch.device(os.environ["MANYHANDS_DEVICE"])  # where workers compute
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
    """Return the gradient of the objective of this batch at the weights w."""
    parts = torch.autograd.grad(objective(w, track.rows(batch)), list(model.parameters()))
    return torch.cat([part.reshape(-1) for part in parts]).cpu()

# %% [markdown]
# All that a worker does is **pull** the weights, compute a gradient, and **push** it (*Downpour SGD*, Dean et al. 2012). Each message begins with the number of
# the batch, followed by weights or a gradient.

# %% tags=["setup"]
# %%px --setup
def work(pause_s):
    """Run a worker until the server stops it. `pause_s` makes the worker slower, as if its
    network were larger."""
    message = torch.zeros(1 + len(start), dtype=torch.float64)
    while True:
        dist.recv(message, src=0, group=wires)
        if message[0] < 0:
            return
        time.sleep(pause_s)
        message[1:] = gradient(message[1:], int(message[0]))
        dist.send(message, dst=0, group=wires)

# %% [markdown]
# The server takes a gradient from **whichever worker is first**, because it calls `dist.recv` without `src`. It applies this gradient immediately and sends
# that worker the new weights, while the other workers learn nothing of the update. `Barrier` is explained later. With a bound of infinity, it never makes
# a worker wait.

# %% tags=["setup"]
# %%px --setup
def hand_out(worker, batch, w):
    dist.send(torch.cat([torch.tensor([batch], dtype=w.dtype), w]), dst=worker + 1,
              group=wires)

def stop(busy):
    """Receive and drop the gradients that are still under way, and stop all workers."""
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
            # when the worker pulled, and which version
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
# **Version** v means the weights after v updates. The **staleness** of a gradient is the number of updates, all made by other workers, between the pull of its
# weights and its push.
#
# In the next run, worker 2 is four times as slow as the others.
#
# **Predict.** How stale is a gradient, on average over all 60 updates? How stale would it be if all three workers were equally fast?

# %%
# Run this cell to make your prediction.
predict("09-stale", "How stale is a gradient on average, with one slow worker among three?",
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
# Run this cell to compare your prediction with the outcome.
settle("09-stale", lambda: sum(step.staleness for step in log) / len(log))

# %% [markdown]
# <details><summary>Why is the mean always about 2?</summary>
#
# A worker pulls right after it pushes. Therefore, each update that *another* worker makes between this worker's first pull and last push falls between the pull
# and the push of exactly one of this worker's gradients and adds 1 to this gradient's staleness. For example, an update by worker 0 counts once for worker 1
# and once for worker 2. With W workers, the mean staleness is **W - 1**, minus a little because of the two ends of the run. This holds however fast or slow
# each worker is, if the run is long compared with the slowest worker's step and if no worker waits. The slow worker sends few gradients, but they are old.
# </details>
#
# The next cell checks the mean by counting. In every run, the sum of all staleness values equals the sum of the versions after each worker's last push, minus
# the number of updates.

# %%
last = {step.worker: number for number, step in enumerate(log, 1)}
print(sum(step.staleness for step in log) == sum(last.values()) - len(log))

# %% [markdown]
# ## The schedule is all that chance has done
#
# If you train again, gradients come from different versions, and the final weights differ. However, the log records from which version each gradient was
# computed, so a single process can **replay** the run. Update t subtracts the gradient at version `v[t]` from the newest weights.
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
# From here on, we replay schedules, because a replay is exact, repeatable, and possible with any delay.
#
# ## What an old gradient does
#
# Take a single weight and the loss $w^2/2$, so that the gradient is $w$ itself. The learning rate is 1, and each gradient is `delay` updates old.
#
# **Predict.** Without a delay, one update finds the minimum. What happens with a delay of 1, and what with a delay of 2?

# %%
# Run this cell to make your prediction.
predict("09-delay-1", "What do the swings of a weight with loss w^2/2 do at a delay of 1?",
        ["die out", "stay as large", "grow"])
predict("09-delay-2", "What do the swings of a weight with loss w^2/2 do at a delay of 2?",
        ["die out", "stay as large", "grow"])

# %%
def descend(delay, rate, updates):
    """Return the weight after each update. Before the first update, it is always 1."""
    w = [1] * (delay + 1)
    for _ in range(updates):
        w.append(w[-1] - rate * w[-1 - delay])
    return w[delay:]

for delay in (0, 1, 2):
    print(f"delay {delay}:", *(f"{w:>3}" for w in descend(delay, 1, 17)))

# %%
# Run this cell to compare your prediction with the outcome.
def swings(delay):
    weights = list(map(abs, descend(delay, 1, 120)))
    early, late = max(weights[:60]), max(weights[60:])
    return "stay as large" if early == late else "grow" if late > early else "die out"

settle("09-delay-1", lambda: swings(1))
settle("09-delay-2", lambda: swings(2))

# %% [markdown]
# <details><summary>Why?</summary>
#
# With a delay of 1, the weight has reached 0, the minimum, when it receives the gradient that was right at its previous position. Therefore, the weight goes
# too far and then comes back: 1, 1, 0, -1, -1, 0, and so on forever. With a delay of 2, the weight goes further each time.
# </details>
#
# ## The largest stable rate
#
# With curvature $h$ and delay $d$, the update is $w_{t+1} = w_t - a\, w_{t-d}$, where $a = \text{rate} \cdot h$. If we try $w_t = z^t$, we get
#
# $$ z^{d+1} - z^d + a = 0 $$
#
# The weight tends to 0 if all roots $z$ are inside the unit circle. For a tiny $a$ they are, since $d$ of them are near 0 and one is near $1 - a$. The roots
# move as $a$ grows, and the largest stable $a$ is the one at which the first root reaches the circle. On the circle, $z = e^{i\theta}$, so
#
# $$ a = z^d (1 - z) = 2 \sin\tfrac{\theta}{2} \; e^{\,i\left((d + 1/2)\,\theta - \pi/2\right)} $$
#
# Because $a$ is real and positive, $(d + \frac12)\,\theta$ must be $\frac{\pi}{2}$, possibly plus full turns. Since full turns make $\theta$ and $a$ larger,
# the first root that reaches the circle has
#
# $$ \text{rate} \cdot h = 2 \sin \frac{\pi}{2\,(2d + 1)} $$
#
# Levin and May (1976) derived this bound. At the edge, $\theta = \pi/(2d+1)$, so the weight swings with a period of $2(2d+1)$ updates, which is 6 for a delay
# of 1, as above.

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
# The formula, the roots and the replay agree. For long delays, the sine nearly equals its angle, so the largest $\text{rate} \cdot h$ is just below
# $\pi / (2d + 1)$, which is 1.57 divided by $d + \frac12$. This explains **mistake 1, the learning rate of a synchronous run.** A rate that was safe with fresh
# gradients is far too large when gradients are W - 1 updates old.
#
# This bound holds for **plain SGD**, but most training runs use momentum: $v_{t+1} = m\,v_t + h\,w_{t-d}$ and $w_{t+1} = w_t - \text{rate} \cdot v_{t+1}$.
#
# **Predict.** Is the largest stable rate with momentum 0.9 larger or smaller than the rate without momentum? Answer for fresh gradients and for a delay of 1.

# %%
# Run this cell to make your prediction.
predict("09-momentum-fresh",
        "Is the largest stable rate without a delay larger or smaller with momentum 0.9?",
        ["larger", "smaller"])
predict("09-momentum-late",
        "Is the largest stable rate at a delay of 1 larger or smaller with momentum 0.9?",
        ["larger", "smaller"])

# %%
import numpy as np

def largest_rate(delay, momentum):
    """Find the largest stable rate by halving, from the roots of z^n - (1 + momentum)
    z^(n-1) + momentum z^(n-2) + rate z^(n-1-delay), where n is the order."""
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
# Run this cell to compare your prediction with the outcome.
def with_momentum(delay):
    return "larger" if largest_rate(delay, 0.9) > largest_rate(delay, 0) else "smaller"

settle("09-momentum-fresh", lambda: with_momentum(0))
settle("09-momentum-late", lambda: with_momentum(1))

# %% [markdown]
# <details><summary>How to read it</summary>
#
# With fresh gradients, the bound is $2 (1 + m)$, so momentum allows a larger rate. With a delay of 1, the bound is $1 - m$, which is a tenth of the bound
# without momentum, and longer delays behave in a similar way. Each gradient enters all later steps, in total $1 + m + m^2 + \ldots = 1 / (1 - m)$ times, so
# momentum 0.9 moves the weight ten times as far. If we multiply the largest rates by ten for this reason, the delays 1, 4 and 8 allow 1, 0.27 and 0.14,
# respectively, instead of 1, 0.35 and 0.18 without momentum. If you adopt both the rate *and* the momentum of a synchronous run, you are far beyond the
# bound.
# </details>
#
# Moreover, in a model with random waits, W workers that do not wait for each other act like a momentum of $1 - 1/W$ by themselves (Mitliagkas et al. 2016).
# Therefore, turn your own momentum down.
#
# The next cell uses the same rate, 0.2, for three delays, without momentum. Its picture shows the weight on the horizontal axis and its last change on the
# vertical axis. A swing of constant size would be a closed loop, a swing that dies out spirals inwards, and a swing that grows spirals outwards.
#
# **Predict.** For which of the delays 0, 4 and 8 does the weight come to rest? Use the table above.

# %%
# Run this cell to make your prediction.
predict("09-rest", "At which delays does the weight come to rest at a rate of 0.2?",
        ["delay 0", "delay 0, delay 4", "delay 0, delay 4, delay 8", "none"])

# %%
ways = {f"delay {delay}": descend(delay, 0.2, 100) for delay in (0, 4, 8)}
for name, weights in ways.items():
    print(f"{name}, after 0, 25, 50, 75, 100 updates:",
          *(f"{w:>8.3f}" for w in weights[::25]))
plots.spirals(ways)

# %%
# Run this cell to compare your prediction with the outcome.
settle("09-rest", lambda: ", ".join(
    name for name, weights in ways.items() if abs(weights[-1]) < 0.1) or "none")

# %% [markdown]
# ## A real network
#
# Near its minimum, a loss is a sum of parabolas, one for each direction, and the direction with the largest curvature grows first. We now replay the training
# of the track's network with gradients that are `delay` updates old, at the usual rate of 0.5 and at a fifth of it.

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
# Next, we compute the largest curvature at the end of the undelayed run by the power method, which repeatedly multiplies a direction by the matrix of second
# derivatives.

# %%
# %%px --ranks 0
w, v = (ends[0][0.5], torch.randn(len(start), dtype=torch.float64,
                                  generator=torch.Generator().manual_seed(0)))
for _ in range(60):
    v /= v.norm()
    # the six batches contain all the data
    v = ((sum(gradient(w + 1e-4 * v, b) - gradient(w - 1e-4 * v, b) for b in range(6)) / 6)
         / 2e-4)
curvature = v.norm().item()
print(f"largest curvature {curvature:.2f}; largest rates",
      ", ".join(f"{stable_rate(d) / curvature:.3f} at delay {d}" for d in ends))

# %% [markdown]
# <details><summary>How to read it</summary>
#
# A rate of 0.1 is below the bounds for delays up to 4, so the delay hardly matters. (At delay 8, this rate is a quarter above the bound, but 120 updates are
# too few to show it.) A rate of 0.5 is below the bound only at delay 0. The longer the delay, the worse the objective becomes, and from delay 4 on, the
# training fails. The bound is only a rule of thumb here, because the curvature changes during the run.
#
# The runs at a rate of 0.1 show one reason why asynchronous training can work. Where the noise of small batches demands a rate far below the largest stable
# rate without delay, a delay costs little. At a rate near the limit, however, a delay costs everything.
# </details>
#
# ## Adam and old gradients
#
# Adam divides a running average of the gradients by a running average of their size. Since a constant factor in all gradients cancels, the learning rate alone
# sets the scale of the steps.
#
# **Predict.** Take one weight and the loss $w^2/2$ again, now with Adam at a rate of 0.1 and a delay of 4. How do the swings of the weight develop?

# %%
# Run this cell to make your prediction.
predict("09-adam",
        "What do the swings do with the loss w^2/2, Adam at rate 0.1 and a delay of 4?",
        ["die out", "stay, at a limited size", "grow without limit"])

# %%
def adam(delay, rate, updates):
    """Return the weight after each update of Adam with its usual averages, for w^2/2."""
    w, mean, square, first, second = [1.0] * (delay + 1), 0.0, 0.0, 1.0, 1.0
    for _ in range(updates):
        gradient = w[-1 - delay]
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient * gradient
        first, second = 0.9 * first, 0.999 * second  # both averages start at 0
        size = (square / (1 - second)) ** 0.5 + 1e-8
        w.append(w[-1] - rate * mean / (1 - first) / size)
    return w[delay:]

print("largest weight before update    1000    5000   10000")
for rate, delay in ((0.1, 0), (0.1, 1), (0.1, 4), (0.1, 8), (0.02, 4)):
    weights = adam(delay, rate, 10000)
    print(f"rate {rate:<4}, delay {delay}:              ",
          *(f"{max(map(abs, weights[n - 300:n])):>7.2f}" for n in (1000, 5000, 10000)))

# %%
# Run this cell to compare your prediction with the outcome.
def swings_of_adam():
    weights = list(map(abs, adam(4, 0.1, 10000)))
    early, late = max(weights[700:1000]), max(weights[-300:])
    return ("die out" if late < early / 10 else "grow without limit" if late > 10 * early
            else "stay, at a limited size")

settle("09-adam", swings_of_adam)

# %% [markdown]
# <details><summary>Why?</summary>
#
# Near the minimum, the gradients become small, and Adam divides by their size. Therefore, its effective rate grows until this rate exceeds the bound for the
# delay. Then the weight swings, the gradients become larger, and the effective rate falls again. For this reason, the swing neither dies out nor explodes, and
# its size grows with the rate and with the delay. Even fresh gradients have a bound, so with a delay of 0, the weight begins to swing, too, but only after more
# than 10,000 updates, and by about 0.02. The last line of the output is a warning, because at a rate of 0.02 the weight has come to rest after 1000 updates but
# swings later.
# </details>
#
# Now we train the network with Adam, at a rate that is good for fresh gradients and at a fifth of this rate.

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
# Adam does not cure old gradients. At a delay of 1, the larger rate is still better, but at delays of 4 and 8, the smaller rate wins, as with SGD.
#
# ## What the bound does not cover (optional)
#
# The formula for the bound assumes a *constant* delay, whereas real delays change.
#
# **Predict.** The rate is 3 % below the bound for delay 8, and no gradient is ever older than 8 updates. Can the weight grow?

# %%
# Run this cell to make your prediction.
predict("09-swing",
        "Can the weight grow below the bound of delay 8 if no gradient is older than 8?",
        ["yes", "no"])

# %%
import random

def swing(rate, choose, updates=4000):
    """Return the largest of the last weights. Each update takes one of the last nine
    weights as its gradient, namely `choose(t, the nine)`."""
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
# Run this cell to compare your prediction with the outcome.
def pushed():
    return swing(rate, lambda t, nine: (min if t // 14 % 2 else max)(nine))

settle("09-swing", lambda: pushed() > 1)  # it was 1 at the start

# %% [markdown]
# <details><summary>Why?</summary>
#
# An opponent who may choose the age of each gradient can push the weight like a swing, always at the right moment. In the limit of long delays, the safe bound
# falls from $\pi/2$ divided by the delay to $3/2$ divided by the delay (Yorke 1970, for the equation in continuous time), which is about 5 % less. Chance is a
# weaker opponent, since with ages drawn from 0 to 8 the weight comes to rest even at twice the rate. Therefore, use the formula for the order of magnitude and
# for the way in which the bound falls with the delay.
# </details>

# %% [markdown]
# > **A good place to stop.** The second half bounds the age of gradients, drops slow workers, averages rarely, and corrects old samples. In a new kernel, run
# > the cells from the top to this one, and continue here.

# %% [markdown]
# ## Bounded staleness
#
# A worker that is slow for a long time sends very old gradients. **Stale synchronous parallel** training limits their age (Ho et al. 2013). The server counts
# the steps that each worker has finished (the worker's *clock*). A worker may begin a step if its clock is at most `bound` ahead of the slowest worker's clock,
# and otherwise it waits. A bound of 0 means lockstep, and a bound of infinity means no barrier.
#
# What does this bound promise? While a worker computes at clock c, another worker can push at most $2 \cdot \text{bound} + 1$ times, because the other worker's
# clock was at least $c - \text{bound}$ at the pull, and that worker can begin no step beyond $c + \text{bound}$. Therefore, no gradient is more than
# $(W - 1)(2 \cdot \text{bound} + 1)$ updates old. The next runs, with the slow worker, test this bound.

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
# <details><summary>Why is a bound of 2 hardly faster than lockstep?</summary>
#
# Since worker 2 is *always* slower, a bound lets the others run ahead by a few steps once, but after that, the others move at the pace of worker 2. Therefore,
# a bound helps if the workers take turns at being slow. If one worker is always slow, give it fewer rows (unit 01) or leave it out.
#
# Without a bound, the fast workers contribute most of the gradients. If each worker has its own rows, as here, the rows of the fast workers count more often,
# so the run minimises a different objective.
# </details>
#
# The next trap is **mistake 2, a barrier that forgets who waits.** When the slowest worker moves on, the server must check *all* workers that wait. If it
# answers only the worker that has just pushed, the others wait forever. The same happens when a worker dies, unless its clock is removed from the minimum. You
# write such a barrier in the lab.
#
# ## Backup workers
#
# A second remedy keeps gradients fresh. It is **synchronous but does not wait for the last workers**. Start N + b workers on the same weights, take the
# step with the first N gradients, and discard the late gradients.
#
# How late are the late gradients? Each worker in turn times 100 gradients, alongside whatever else your machine is doing.

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
# **Predict.** Each of 100 machines is late in one step in a hundred, independently of the others. What percentage of the steps waits for a late machine?

# %%
# Run this cell to make your prediction.
predict("09-late",
        "If each of 100 machines is late in 1 step of 100, what share of the steps waits?",
        unit="%", within=0.1)

# %%
from math import comb

for late in (0, 1, 2, 4):
    waits = 1 - sum(comb(100, k) * 0.01**k * 0.99 ** (100 - k) for k in range(late + 1))
    print(f"{late} backups of 100: {waits:.1%} of the steps")

# %%
# Run this cell to compare your prediction with the outcome.
settle("09-late", lambda: 100 * (1 - 0.99**100))

# %% [markdown]
# <details><summary>Why so many?</summary>
#
# A step is as slow as the slowest machine that it waits for, so without backups, a fraction $1 - 0.99^{100}$ of the steps includes a late machine. Each backup
# makes up for one late machine. The time of a step is an **order statistic**, the N-th fastest of N + b times. Suppose that each worker's time is drawn from K
# measured times. Then the N-th fastest draw is at most the k-th smallest measured time if at least N of the N + b draws are. The probability of this event is a
# binomial sum, so no drawing is needed.
# </details>
#
# The number of machines, however, is given (here 20), so each backup removes one gradient from the step. A step with fewer gradients is noisier, so more steps
# are needed. To find out how many, we let each machine compute the gradient of one row and count the steps until the objective of our network is below 0.75.

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

# each rank draws different rows
counts = {n: steps_to(0.75, n, seed=rank) for n in (20, 16, 12, 8, 6)}

# %%
found = cluster.pull("counts")
counts = {n: np.mean([one[n] for one in found]) for n in found[0]}
slope, least = np.polyfit([1 / n for n in counts], list(counts.values()), 1)
for n, count in counts.items():
    print(f"{n:>3} gradients: {count:6.1f} steps, fitted {least + slope / n:6.1f}")

# %% [markdown]
# The number of steps roughly follows $s\,(1 + \text{noise}/n)$, the form that McCandlish et al. (2018) found (unit 17), so we can compute it for any n. The
# time to the target is this number multiplied by the duration of a step.

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
# The dashed line shows that each backup makes a step shorter, most of all at first, as long as the backups make up for late machines. The dotted line shows
# that more and more steps are needed to reach the target. The wide line is the product of the two. The position of the wide line's lowest point depends on the
# stragglers. If few gradients are late, but very late, a few backups are best, whereas many backups are best if every second gradient is late, as on a machine
# that is busy with other work. Chen et al. (2016) report 96 + 4 as the best division of 100 machines.
# </details>
#
# The last trap is **mistake 3, backups without counting steps.** The goal is neither the shortest step, which has the most backups, nor the most gradients per
# second. Instead, minimise a step's duration times the number of steps.
#
# The gradients of a machine that is *always* slow are always dropped. If each machine has a separate shard, the rows of the slow machine never count. To avoid
# this, draw the rows of all machines from the whole data set, or give the slow machine less to do.

# %% [markdown]
# ## Talk rarely: local SGD and DiLoCo
#
# A slow network can also be used less often. In *local SGD*, every rank takes H steps alone, and then all ranks average their weights (Stich 2019). *DiLoCo*
# treats the average change of the weights as a gradient, with which an **outer optimiser**, SGD with Nesterov momentum, takes a step (Douillard et al. 2023).
# Since no rank runs ahead, both methods are synchronous, but they communicate rarely.
#
# Here, all four ranks are workers. Plain averaging is an outer step with a rate of 1 and without momentum.

# %%
# %%px
def train_rarely(alone, times, outer_rate=1.0, momentum=0.0):
    """Average `times` times, each time after `alone` steps of this rank alone."""
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
# With 15 all-reduces, local SGD and DiLoCo reach about the same objective as a run with 120, because eight steps are few and the ranks' data are alike. (There
# are six batches and four ranks, so ranks 0 and 2 see batches 0, 2 and 4, and ranks 1 and 3 see the other three.) The outer momentum hardly helps a run of 15
# rounds. DiLoCo's paper uses an outer rate of 0.7, a momentum of 0.9, AdamW as the inner optimiser, and hundreds of steps between two averages.
#
# ## Old samples: asynchronous reinforcement learning
#
# Reinforcement learning of language models lives with staleness today. Some machines generate answers with weights that are a few updates old and do not wait
# for newer ones, while other machines train on these answers (for example, AReaL, Fu et al. 2025). Here, the *sample* is old, not the gradient. The gradient
# of the expected reward needs answers from the newest policy $\pi$. A sample that was drawn with $\pi_{\text{old}}$ is corrected by its **importance weight**
# $\pi / \pi_{\text{old}}$.
#
# Take a policy that chooses one of only three answers, so that we can compute expectations exactly instead of drawing samples.

# %%
def policy(scores):
    return np.exp(scores) / np.exp(scores).sum()

reward = np.array([0.0, 0.5, 1.0])
old, new = policy(np.array([1.0, 0.0, 0.0])), policy(np.array([0.0, 0.0, 1.0]))

def mean_gradient(drawn, weight):
    """Return the gradient of the expected reward of answers with probabilities `drawn`."""
    of_log = np.eye(3) - new  # row a: the gradient of log new[a] with respect to the scores
    return (drawn * weight * reward) @ of_log

for name, drawn, weight in (("new samples", new, 1), ("old samples", old, 1),
                            ("old samples, weighted", old, new / old),
                            ("weights of at most 2", old, np.minimum(new / old, 2))):
    print(f"{name:<22}", *(f"{part:>7.3f}" for part in mean_gradient(drawn, weight)),
          f"  largest weight {np.max(weight):.2f}")

# %% [markdown]
# Without weights, old samples even change the sign of one component, whereas with weights, the mean is exactly right. However, a large weight makes the
# gradient noisy, and the weight of a long answer is a product of one factor for each token. Therefore, weights are limited (IMPALA, Espeholt et al. 2018, as in
# the last line), or samples whose probability has changed too much get no gradient (PPO, Schulman et al. 2017). Limits make the gradient a little wrong again,
# and the staleness of samples is also bounded.

# %% [markdown]
# > **On GPUs.** NCCL refuses a receive without `src`, and its collectives wait for all members. Therefore, bounded staleness, backup workers, and any server
# > that takes the first gradient need messages over gloo, MPI or TCP, from CPU memory. A timer around a gradient must wait for the GPU (here in `.cpu()`, in
# > general in `torch.cuda.synchronize()`), because otherwise it measures only the launch.

# %% [markdown]
# ## When to use it, when not, what it costs
#
# | | use it | not | costs |
# |---|---|---|---|
# | asynchronous | workers of different speed, workers that come and go, sparse models where updates rarely collide (Hogwild!, Recht et al. 2011, where threads write into one memory without locks); rates well below the limit | equal GPUs on a fast network; rates near the limit | a smaller rate; no two runs alike; W - 1 versions of staleness |
# | bounded staleness | speeds that change in turn | one worker that is always slow | waiting, and a server that counts |
# | N + b | stragglers that are rare but very late, many machines | few machines, or all equally slow | the work of b machines is discarded |
# | local SGD, DiLoCo | slow networks, training between sites | a fast network | weights that differ from a single process's; H to be tuned |
# | old samples, weighted | reinforcement learning, where generating takes longer than training | supervised data, which does not age | noise, or a bias if the weights are limited |
# | synchronous, all-reduce | nearly everything else | | the slowest rank sets the pace |
#
# ## What has aged
#
# <details><summary>What still holds of slides from 2018 and 2019, and what does not</summary>
#
# | they say | today |
# |---|---|
# | synchronous training converges well, without stale gradients; asynchronous training survives a worker's death and has a high throughput, because it does not wait for slow workers | This still holds, and you have measured it. However, with equal GPUs and all-reduce, synchronous training has become the rule (Goyal et al. 2017). Equal weights on all ranks are given up where the network is slow (local SGD). Fresh samples are given up in reinforcement learning, where they are drawn with older weights while the newest ones train. Elastic training deals with the death of a worker (unit 18) |
# | in asynchronous training, the model is updated when one *or more* gradients have arrived | Here, each gradient updates the model separately, but averaging a few gradients first is also in use |
# | against staleness, start N + b workers and do not wait for the last b | This avoids staleness because it is *synchronous* and drops late gradients. It does nothing for asynchronous training |
# | asynchronous training loses accuracy | This is true at the same rate and momentum. With a rate and a momentum that suit the delay, part of the accuracy comes back; how much depends on the task |
# </details>

# %% [markdown]
# ## Summary
#
# * In a long run without a barrier, the mean staleness is W - 1, whichever worker is slow. The slow worker's gradients are the oldest.
# * The schedule of versions contains all randomness of the run, so you can replay a run with it.
# * For curvature h and delay d, the largest stable rate of plain SGD is $2 \sin(\pi / (2(2d+1))) / h$, just below $1.57 / ((d + \frac12) h)$. As soon as there
#   is a delay, momentum m allows at most $1 - m$ times that rate.
# * With bounded staleness, a worker that begins a step is at most `bound` steps ahead of the slowest worker, and a gradient is at most
#   $(W-1)(2\,\text{bound}+1)$ updates old.
# * With backup workers, the time to the target is the N-th fastest of N + b times, multiplied by the number of steps with N gradients.
# * Local SGD averages weights rarely, and DiLoCo takes an outer step with their average change.
# * Old samples are corrected by the importance weight $\pi / \pi_{\text{old}}$, which is limited.
#
# **Now the lab:** you read the log, replay a run, write the barrier, and choose b. After that, unit 17 studies the batch instead of the delay, and unit 18
# handles workers that die.
#
# **References.** S. A. Levin, R. M. May 1976, *A note on difference-delay equations*, [Theor. Popul. Biol. 9(2)](https://doi.org/10.1016/0040-5809(76)90043-5).
# J. A. Yorke 1970, *Asymptotic stability for one dimensional differential-delay equations*,
# [J. Differ. Equ. 7(1)](https://doi.org/10.1016/0022-0396(70)90132-4). I. Mitliagkas et al. 2016, *Asynchrony begets Momentum*,
# [arXiv 1605.09774](https://arxiv.org/abs/1605.09774). S. U. Stich 2019, *Local SGD Converges Fast and Communicates Little*,
# [arXiv 1805.09767](https://arxiv.org/abs/1805.09767). A. Douillard et al. 2023, *DiLoCo*, [arXiv 2311.08105](https://arxiv.org/abs/2311.08105). W. Fu et al.
# 2025, *AReaL*, [arXiv 2505.24298](https://arxiv.org/abs/2505.24298). J. Schulman et al. 2017, *Proximal Policy Optimization Algorithms*,
# [arXiv 1707.06347](https://arxiv.org/abs/1707.06347). L. Espeholt et al. 2018, *IMPALA*, [arXiv 1802.01561](https://arxiv.org/abs/1802.01561). B. Recht et al.
# 2011, *Hogwild!*, [arXiv 1106.5730](https://arxiv.org/abs/1106.5730). J. Dean et al. 2012, *Large Scale Distributed Deep Networks*,
# [NeurIPS 2012](https://proceedings.neurips.cc/paper/2012/hash/6aca97005c68f1206823815f66102863-Abstract.html). Q. Ho et al. 2013, *More Effective Distributed
# ML via a Stale Synchronous Parallel Parameter Server*,
# [NeurIPS 2013](https://proceedings.neurips.cc/paper/2013/hash/b7bb35b9c6ca2aee2df08cf09d7016c2-Abstract.html). J. Chen et al. 2016, *Revisiting Distributed
# Synchronous SGD*, [arXiv 1604.00981](https://arxiv.org/abs/1604.00981). P. Goyal et al. 2017, [arXiv 1706.02677](https://arxiv.org/abs/1706.02677). S.
# McCandlish et al. 2018, *An Empirical Model of Large-Batch Training*, [arXiv 1812.06162](https://arxiv.org/abs/1812.06162).

# %%
cluster.stop()
