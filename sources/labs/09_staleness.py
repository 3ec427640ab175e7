# %% [markdown] unit={"minutes": 55, "ranks": 4, "framework": "torch", "title": "Asynchrony and staleness"}
# # 09 Lab: old gradients, a barrier, and backups
#
# You write what a parameter server needs when its workers do not wait for each other. At the end you can
#
# * read from a server's log how old each gradient was, and replay the run to the last bit;
# * say the largest learning rate of plain SGD, without momentum, at which a delay does no harm;
# * write the barrier of bounded staleness, and keep it alive when a worker dies;
# * say how long a step takes if the slowest workers are not waited for, and choose how many backups to have.
#
# **Before:** the tutorial of this unit. **Minutes:** 55. **Ranks:** 4, from exercise 4 on. **Points:** 18.
#
# Exercises 1, 2, 3 and 5 run in this kernel, exercise 4 on the ranks (`%%px`). The checks replay runs that are drawn: no answer depends on how fast anything
# is. What your functions are given belongs to the caller: change no list or array of theirs, but a copy. Below each check stands what it says when
# the answer is right.

# %% tags=["setup"]
import math

import numpy as np

from manyhands import Cluster, hint
from manyhands.checks import staleness as check

cluster = Cluster(nodes=1, ranks_per_node=4, framework="torch")

# %% tags=["setup"]
# %%px --setup
import time

import torch
import torch.distributed as dist

if not dist.is_initialized():  # so that this cell can be run twice
    # with GPUs too: NCCL refuses to receive from anyone, as a server does
    dist.init_process_group("gloo")

# %% [markdown]
# ## 1. From the log
#
# A server has written down what happened, in order: `("pull", 2)` means that worker 2 got the newest weights, `("push", 2)` that its gradient came and was applied. **Version** v of the weights is what
# they were after v updates. A worker may pull long after its last push, and it may pull twice before it pushes: then the second pull counts.
#
# For each push: from which version was the gradient computed? And how **stale** was it: how many updates came between that pull and this push?
#
# *Difficulty ●○○, 7 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# What changes the version, and what does not? For more, run `hint("09-versions")` in a cell of its own.
# </details>

# %% tags=["solution"] grade_id="versions"
def versions_of(log: list[tuple[str, int]]) -> tuple[list[int], list[int]]:
    """(versions, staleness), one number in each list for each push, in the order of the
    log. Every worker pulls before it pushes."""
    ### BEGIN SOLUTION
    version, pulled, versions, staleness = 0, {}, [], []
    for what, worker in log:
        if what == "pull":
            pulled[worker] = version
        else:
            versions.append(pulled[worker])
            staleness.append(version - pulled[worker])
            version += 1
    return versions, staleness
    ### END SOLUTION

# %% tags=["check"] grade_id="versions-check" points=2
check.versions(versions_of)

# %% [markdown]
# ## 2. Replay a run
#
# All that chance has done to an asynchronous run stands in its schedule of versions. With it, one process can repeat the run, and find out what went wrong.
#
# Update t takes `rate * gradient(w, t)` off the **newest** weights, but its gradient has been computed from the weights of version `versions[t]`. `gradient` is a function of some weights and of the
# number of the batch, which is t; it returns a new array. All numbers are whole ones.
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Which weights must be kept, and does `-=` keep them? For more, `hint("09-replay")`.
# </details>

# %% tags=["solution"] grade_id="replay"
def replay(w: np.ndarray, rate: int, versions: list[int], gradient) -> list[np.ndarray]:
    """The weights of all versions: w itself, then those after each update; len(versions) +
    1 arrays."""
    ### BEGIN SOLUTION
    history = [w]
    for t, version in enumerate(versions):
        history.append(history[-1] - rate * gradient(history[version], t))
    return history
    ### END SOLUTION

# %% tags=["check"] grade_id="replay-check" points=3
check.replay(replay)

# %% [markdown]
# ## 3. The largest stable rate
#
# Near a minimum a loss is a sum of parabolas, one for each direction, with curvatures $h_1, h_2, \ldots$ The weights are spread over several servers, and some servers are busier than others. So each direction has its own
# delay $d_i$:
#
# $$ w_{t+1} = w_t - \text{rate} \cdot h_i \cdot w_{t-d_i} $$
#
# That is plain gradient descent, without momentum, and all servers use the same rate. What is the largest rate at which no direction grows, to a thousandth? You may use a formula or a search.
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Put $w_t = z^t$. At the edge, $|z| = 1$. Which direction grows first, if one is steep and another one late? For more, `hint("09-rate")`.
# </details>

# %% tags=["solution"] grade_id="rate"
def largest_stable_rate(curvatures: list[float], delays: list[int]) -> float:
    """The largest learning rate that is stable in all directions. Direction i has a
    positive curvature, and its gradients are `delays[i]` (0 or more) updates old."""
    ### BEGIN SOLUTION
    return min(2 * math.sin(math.pi / (2 * (2 * delay + 1))) / curvature
               for curvature, delay in zip(curvatures, delays))
    ### END SOLUTION

# %% tags=["check"] grade_id="rate-check" points=3
check.rate(largest_stable_rate)

# %% [markdown]
# ## 4. The barrier of bounded staleness
#
# Write it yourself: the package's is closed while yours is asked (and so are its formulas in exercises 3 and 5).
#
# The server counts for each worker the steps that it has finished: its **clock**. A worker may begin its next step if its clock is at most `bound` ahead of the **smallest** clock of all workers that are
# still there, those that compute included. Else it waits. Bound 0 is lockstep; `float("inf")` is no barrier at all.
#
# The server calls `done(worker)` when a worker has finished a step, and `leave(worker)` when one is gone: it has no more steps, or it has died, in the middle of a step or while it waited. Both return
# the list of workers that may begin a step **now**, in ascending order; each of them is told, and computes from then on. At the start all workers have clock 0 and compute their first step.
#
# *Difficulty ●●●, 14 minutes, 5 points*
#
# <details><summary>Hint</summary>
#
# Whom can one more step of the slowest worker set free? For more, `hint("09-barrier")`.
# </details>

# %% tags=["solution"] grade_id="barrier"
# %%px --setup
class Barrier:
    """Who may begin the next step, under bounded staleness."""

    def __init__(self, workers: int, bound: float):
        """Workers are numbered from 0 to workers - 1."""
        ### BEGIN SOLUTION
        self.bound, self.clocks, self.waiting = (bound, dict.fromkeys(range(workers), 0),
                                                 set())
        ### END SOLUTION

    def done(self, worker: int) -> list[int]:
        """`worker` has finished a step and asks for the next one. Who may begin now?"""
        ### BEGIN SOLUTION
        self.clocks[worker] += 1
        self.waiting.add(worker)
        return self.free()
        ### END SOLUTION

    def leave(self, worker: int) -> list[int]:
        """`worker` is gone, and nobody waits for it any more. Who may begin now?"""
        ### BEGIN SOLUTION
        del self.clocks[worker]
        self.waiting.discard(worker)
        return self.free()

    def free(self):
        slowest = min(self.clocks.values(), default=0)
        free = sorted(worker for worker in self.waiting if self.clocks[worker]
                      - slowest <= self.bound)
        self.waiting.difference_update(free)
        return free
        ### END SOLUTION

# %% tags=["check"] grade_id="barrier-check" points=5
check.barrier(cluster, "Barrier")

# %% [markdown]
# ## 5. Backup workers
#
# The other way out: stay synchronous, but start `n + b` workers, and make the step as soon as `n` gradients are there. The late ones are thrown away, so no gradient is old. `times_s` are measured seconds of one
# gradient; each worker takes one of them in each step, at random, independently.
#
# First, the expected time of a step, to 1 %: a formula, or draws: the mean of K draws is off by about their spread / sqrt(K), so 10,000 are too few, and 200,000 enough. Then two choices, each to
# within 1 % of the best:
#
# * **a fixed number of machines** is there: of `machines`, b are backups, and a step has machines - b gradients. `steps(n)` says how many steps reach the target if each averages n gradients: fewer gradients, more
#   steps. Which b, from 0 to machines - 1, has the shortest time to the target?
# * **machines are rented**: a step always has n gradients, and each of n + b machines is paid for as long as the step takes. Which b, from 0 to n - 1, makes a step cheapest?
#
# *Difficulty ●●○, 13 minutes, 5 points*
#
# <details><summary>Hint</summary>
#
# Draw n + b times and sort them: which one ends the step? For more, `hint("09-backups")`.
# </details>

# %% tags=["solution"] grade_id="backups"
def step_s(n: int, b: int, times_s: list[float]) -> float:
    """Expected seconds until n of n + b workers are done."""
    ### BEGIN SOLUTION
    workers, ordered = n + b, sorted(times_s)

    # the probability that n or more of the draws are among the k smallest times
    def all_done(k):
        p = k / len(ordered)
        return sum(math.comb(workers, j) * p**j * (1 - p) ** (workers - j)
                   for j in range(n, workers + 1))

    return sum(time * (all_done(k + 1) - all_done(k)) for k, time in enumerate(ordered))
    ### END SOLUTION


def best_b(machines: int, times_s: list[float], steps) -> int:
    """How many of the machines are backups, for the shortest time to the target; steps(n):
    how many steps with n gradients each."""
    ### BEGIN SOLUTION
    return min(range(machines), key=lambda b: steps(machines - b)
               * step_s(machines - b, b, times_s))
    ### END SOLUTION


def cheapest_b(n: int, times_s: list[float]) -> int:
    """How many machines more than n to rent, for the cheapest step of n gradients."""
    ### BEGIN SOLUTION
    return min(range(n), key=lambda b: (n + b) * step_s(n, b, times_s))
    ### END SOLUTION

# %% tags=["check"] grade_id="backups-check" points=5
check.backups(step_s, best_b, cheapest_b)

# %% [markdown]
# ## All together
#
# Your barrier on rank 0, and three real workers that do not wait for each other, one of them four times slower. Not graded. What differs from run to run, times and versions, is not printed; what must
# always hold is. The gradient is the one of $w^2 / 2$, in whole numbers and with rate 1.

# %%
# %%px
def work(steps, seconds):
    """A worker: pull, compute, push, until there are no more steps."""
    w = torch.zeros(1, dtype=torch.int64)
    for _ in range(steps):
        dist.recv(w, src=0)
        time.sleep(seconds)
        dist.send(w.clone(), dst=0)  # the gradient of w^2 / 2 is w

# %%
# %%px
def serve(w, steps, bound):
    """The server: takes gradients from whoever comes first. Returns its log, all weights,
    and how far a beginner was ahead."""
    barrier, clocks, log, history, ahead = (Barrier(3, bound), {1: 0, 2: 0, 3: 0}, [],
                                            [w.clone()], [])
    free, gradient = [0, 1, 2], torch.zeros_like(w)
    while True:
        for worker in [one + 1 for one in free]:
            ahead.append(clocks[worker] - min(clocks.values()))
            log.append(("pull", worker))
            dist.send(w, dst=worker)
        if sum(clock == steps for clock in clocks.values()) == 3:
            return log, history, max(ahead)
        worker = dist.recv(gradient)  # from any rank
        w -= gradient
        history.append(w.clone())
        log.append(("push", worker))
        clocks[worker] += 1
        free = (barrier.leave(worker - 1) if clocks[worker] == steps
                else barrier.done(worker - 1))

# %%
# %%px
steps, bound = 12, 2
log, history, ahead = [], [], 0
if dist.get_rank() == 0:
    log, history, ahead = serve(torch.tensor([1]), steps, bound)
    history = [w.item() for w in history]
else:
    work(steps, 0.02 if dist.get_rank() == 3 else 0.005)

# %%
log, history, ahead = (cluster.pull(name)[0] for name in ("log", "history", "ahead"))
versions, staleness = versions_of(log)
again = replay(np.array([1]), 1, versions, lambda w, t: w)
print(f"{len(versions)} updates; nobody began more than 2 ahead: {ahead <= 2}")
print("oldest gradient at most (3 - 1) (2 * 2 + 1) = 10 updates old:", max(staleness) <= 10)
print("the replay has all weights of the run, to the last bit:",
      [int(w[0]) for w in again] == history)

# %% [markdown]
# ## Where to go on
#
# * Unit 08 cuts a server in parts, and has TensorFlow's. Unit 17 raises the batch instead of the number of updates. Unit 18 lets workers die in synchronous training.
# * Q. Ho et al. 2013, *More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server*,
#   [NeurIPS 2013](https://proceedings.neurips.cc/paper/2013/hash/b7bb35b9c6ca2aee2df08cf09d7016c2-Abstract.html).
# * J. Chen et al. 2016, *Revisiting Distributed Synchronous SGD*, [arXiv 1604.00981](https://arxiv.org/abs/1604.00981).

# %%
cluster.stop()
