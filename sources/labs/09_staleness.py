# %% [markdown] unit={"minutes": 55, "ranks": 4, "framework": "torch", "title": "Asynchrony and staleness"}
# # 09 Lab: old gradients, a barrier, and backups
#
# You write what a parameter server needs when its workers do not wait for each other. At the end, you can
#
# * read from a server's log how old each gradient was, and replay the run bit for bit.
# * compute the largest learning rate of plain SGD, without momentum, at which a delay does no harm.
# * write the barrier of bounded staleness, and keep it working when a worker dies.
# * compute how long a step takes if it does not wait for the slowest workers, and choose how many backup workers to have.
#
# **Before:** the tutorial of this unit. **Minutes:** 55 · **Ranks:** 4, from exercise 4 on · **Points:** 18.
#
# Exercises 1, 2, 3 and 5 run in this kernel, whereas exercise 4 runs on the ranks (`%%px`). The checks replay runs that are drawn at random, so no answer
# depends on the speed of your machine. The lists and arrays that your functions receive belong to the caller, so change only copies of them. Below each check,
# you see what it prints when the answer is right.

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
    # gloo even with GPUs, because NCCL refuses to receive from any rank, as a server does
    dist.init_process_group("gloo")

# %% [markdown]
# ## 1. From the log
#
# A server has logged what happened, in order. The entry `("pull", 2)` means that worker 2 received the newest weights, and `("push", 2)` means that the
# gradient of worker 2 arrived and was applied. **Version** v means the weights after v updates. A worker may pull long after its last push, and it may pull
# twice before it pushes, in which case the second pull counts.
#
# For each push, find the version from which the gradient was computed, and its **staleness**, that is, the number of updates between the pull of that version
# and the push.
#
# *Difficulty ●○○, 7 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# Which of the two events changes the version? For more help, run `hint("09-versions")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="versions"
def versions_of(log: list[tuple[str, int]]) -> tuple[list[int], list[int]]:
    """Return (versions, staleness). Each list has one number for each push, in the order of
    the log. Every worker pulls before it pushes."""
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
# The schedule of versions contains all that chance has done to an asynchronous run. With this schedule, a single process can repeat the run, so that you can
# find out what went wrong.
#
# Update t subtracts `rate * gradient(w, t)` from the **newest** weights, but this gradient is computed from the weights `w` of version `versions[t]`. The
# function `gradient` receives some weights and the number of the batch, which is t, and returns a new array. All numbers are integers.
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Which weights must be kept, and does `-=` keep them? For more help, run `hint("09-replay")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="replay"
def replay(w: np.ndarray, rate: int, versions: list[int], gradient) -> list[np.ndarray]:
    """Return the weights of all versions, namely w itself and the weights after each
    update. These are len(versions) + 1 arrays."""
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
# Near a minimum, a loss is a sum of parabolas, one for each direction, with curvatures $h_1, h_2, \ldots$ The weights are spread over several servers, and some
# servers are busier than others. We assume that each direction belongs to one server, so direction $i$ has its own delay $d_i$:
#
# $$ w_{t+1} = w_t - \text{rate} \cdot h_i \cdot w_{t-d_i} $$
#
# This is plain gradient descent, without momentum, and all servers use the same learning rate. What is the largest rate at which the weights do not grow in
# any direction? A relative error of 0.001 is allowed, and you may use a formula or a search.
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Try $w_t = z^t$. At the edge of stability, $|z| = 1$. In which direction does the weight grow first if one direction has a large curvature and another has a
# long delay? For more help, run `hint("09-rate")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="rate"
def largest_stable_rate(curvatures: list[float], delays: list[int]) -> float:
    """Return the largest learning rate that is stable in all directions. Direction i has a
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
# Write the barrier yourself, because the package's own barrier is blocked while the check calls yours. (In exercises 3 and 5, the package's formulas are
# blocked in the same way.)
#
# For each worker, the server counts the steps that the worker has finished. This number is the worker's **clock**. A worker may begin its next step if its
# clock is at most `bound` ahead of the **smallest** clock of all workers that have not left, including those that are computing. Otherwise, it waits. A bound
# of 0 means lockstep, and a bound of `float("inf")` means no barrier at all.
#
# The server calls `done(worker)` when a worker has finished a step. It calls `leave(worker)` when a worker has no more steps, or when it has died (in the
# middle of a step or while it was waiting). Both methods return the list of workers that may begin a step **now**, in ascending order. The server notifies each
# of them, and these workers start computing immediately. At the start, all workers have clock 0 and compute their first step.
#
# *Difficulty ●●●, 14 minutes, 5 points*
#
# <details><summary>Hint</summary>
#
# Which workers may begin as soon as the slowest worker finishes one more step? For more help, run `hint("09-barrier")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="barrier"
# %%px --setup
class Barrier:
    """Decide which workers may begin the next step, under bounded staleness."""

    def __init__(self, workers: int, bound: float):
        """Start with `workers` workers, numbered from 0 to workers - 1."""
        ### BEGIN SOLUTION
        self.bound, self.clocks, self.waiting = (bound, dict.fromkeys(range(workers), 0),
                                                 set())
        ### END SOLUTION

    def done(self, worker: int) -> list[int]:
        """Return the workers that may begin now that `worker` has finished a step and asks
        for the next one."""
        ### BEGIN SOLUTION
        self.clocks[worker] += 1
        self.waiting.add(worker)
        return self.free()
        ### END SOLUTION

    def leave(self, worker: int) -> list[int]:
        """Return the workers that may begin now that `worker` has left, so that no worker
        waits for it any longer."""
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
# The second remedy for old gradients is to stay synchronous, but to start `n + b` workers and take the step as soon as `n` gradients have arrived. Late
# gradients are discarded, so no gradient is old. The list `times_s` contains measured times of one gradient, in seconds. In each step, the time of each worker
# is drawn at random from this list, independently of the other workers.
#
# First, compute the expected time of a step to within 1 %, by a formula or by drawing. Since the mean of K draws is off by about their spread divided by
# sqrt(K), 10,000 draws are too few, whereas 200,000 are enough. Then make two choices, each to within 1 % of the best.
#
# * **The number of machines is fixed.** Of `machines` machines, b are backups, so a step has `machines` - b gradients. The function `steps(n)` returns how many
#   steps are needed to reach the target if each step averages n gradients. With fewer gradients, more steps are needed. Which b, from 0 to machines - 1, gives
#   the shortest time to the target?
# * **The machines are rented.** A step always has n gradients, and you pay for each of the n + b machines for as long as the step takes. Which b, from 0 to n -
#   1, makes a step cheapest?
#
# *Difficulty ●●○, 13 minutes, 5 points*
#
# <details><summary>Hint</summary>
#
# Draw n + b times and sort them. Which of them ends the step? For more help, run `hint("09-backups")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="backups"
def step_s(n: int, b: int, times_s: list[float]) -> float:
    """Return the expected seconds until n of n + b workers are done."""
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
    """Return how many of the machines must be backups for the shortest time to the target.
    steps(n) is the number of steps with n gradients each."""
    ### BEGIN SOLUTION
    return min(range(machines), key=lambda b: steps(machines - b)
               * step_s(machines - b, b, times_s))
    ### END SOLUTION


def cheapest_b(n: int, times_s: list[float]) -> int:
    """Return how many machines to rent beyond n for the cheapest step of n gradients."""
    ### BEGIN SOLUTION
    return min(range(n), key=lambda b: (n + b) * step_s(n, b, times_s))
    ### END SOLUTION

# %% tags=["check"] grade_id="backups-check" points=5
check.backups(step_s, best_b, cheapest_b)

# %% [markdown]
# ## All together
#
# Your barrier now runs on rank 0, with three real workers that do not wait for each other. One of the workers is four times as slow as the others. This part is
# not graded. Times and versions differ from run to run, so the cells print only what must always hold. The loss is $w^2 / 2$, the rate is 1, and all weights
# are integers.

# %%
# %%px
def work(steps, seconds):
    """Run a worker that pulls, computes and pushes until there are no more steps."""
    w = torch.zeros(1, dtype=torch.int64)
    for _ in range(steps):
        dist.recv(w, src=0)
        time.sleep(seconds)
        dist.send(w.clone(), dst=0)  # the gradient of w^2 / 2 is w

# %%
# %%px
def serve(w, steps, bound):
    """Run the server, which takes gradients from whichever worker is first. Return its log,
    all weights, and how far ahead a worker was at most when it began a step."""
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
# * Unit 08 divides the weights among several servers and uses TensorFlow's parameter servers. Unit 17 increases the batch instead of the number of updates. In
#   unit 18, workers die during synchronous training.
# * Q. Ho et al. 2013, *More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server*,
#   [NeurIPS 2013](https://proceedings.neurips.cc/paper/2013/hash/b7bb35b9c6ca2aee2df08cf09d7016c2-Abstract.html).
# * J. Chen et al. 2016, *Revisiting Distributed Synchronous SGD*, [arXiv 1604.00981](https://arxiv.org/abs/1604.00981).

# %%
cluster.stop()
