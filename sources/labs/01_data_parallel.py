# %% [markdown] unit={"minutes": 35, "ranks": 4, "framework": "torch", "title": "Data parallelism by hand"}
# # 01 Lab: a data-parallel step that equals the big batch
#
# You write data parallelism in four small pieces, and the only collective that you need is an all-reduce. At the end, you can
#
# * split a batch of any size into one shard for each rank.
# * add up the gradients of all ranks, with tied and frozen weights, and with gradients that are missing on some ranks.
# * write each rank's share of an objective so that the shares add up to the objective, with the losses averaged over all rows and weight decay counted once.
# * take a step on several ranks, and end with the same weights as a single process.
#
# **Before:** the tutorial of this unit, or the PyTorch functions that it uses. **Minutes:** 35 · **Ranks:** 4, on 2 nodes · **Points:** 13.
#
# Cells that begin with `%%px` run on all four ranks, while the others run in this kernel. If a mistake makes the ranks wait for each other, the cluster
# notices it, reports which rank is waiting for which, and heals itself. It then runs the cells marked `--setup` again. Below each check, you see what it
# prints when the answer is right.

# %% tags=["setup"]
from manyhands import Cluster, hint
from manyhands.checks import data_parallel as check

cluster = Cluster(nodes=2, ranks_per_node=2, framework="torch")

# %% tags=["setup"]
# %%px --setup
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

if not dist.is_initialized():  # so that this cell can be run twice
    dist.init_process_group(os.environ["MANYHANDS_BACKEND"])

# %% [markdown]
# ## 1. Rows
#
# A batch has `n` rows. Split it into one slice for each rank, so that neighbouring rows stay together and the slices follow the order of the ranks. If `n`
# cannot be divided evenly, each of the first ranks takes one more row. If there are fewer rows than ranks, the last ranks get an empty slice.
#
# *Difficulty ●○○, 4 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# Which two numbers does `divmod(n, world_size)` return? For more help, run `hint("01-rows")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="rows"
# %%px --setup
def rows_of(n: int, rank: int, world_size: int) -> slice:
    """Return the rows of `rank`, as a slice of a batch of n rows."""
    ### BEGIN SOLUTION
    share, extra = divmod(n, world_size)
    start = rank * share + min(rank, extra)
    return slice(start, start + share + (rank < extra))
    ### END SOLUTION

# %% tags=["check"] grade_id="rows-check" points=2
check.rows(cluster, "rows_of")

# %% [markdown]
# ## 2. The sum of all gradients
#
# Every rank has run the backward pass on its own rows. Now the gradient of each *trained* parameter (one that requires a gradient) must become the sum of this
# gradient over the ranks of the group.
#
# The check's network is deliberately difficult. Two of its layers share one weight, whose gradient must be summed once. One weight is frozen, so it has no
# gradient, and it must not have one afterwards. One rank did not use the last layer, so that layer's gradients are `None` on this rank and count as zeros. (If
# *no* rank has used a trained parameter, its gradient may be zeros or stay `None`, and the check accepts both. PyTorch's optimisers skip a parameter whose
# gradient is `None`. With plain SGD, zeros have the same effect, but with weight decay or momentum, a parameter moves even if its gradient is zero.)
#
# The check also counts the numbers that are sent. An all-reduce of `m` numbers moves `2 * (p - 1) * m` numbers between `p` ranks, whereas gathering all
# gradients on every rank would move more.
#
# *Difficulty ●●○, 10 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# Which list of parameters is the same on all ranks, whatever they have computed? For more help, run `hint("01-gradients")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="gradients"
# %%px --setup
def sum_gradients(model: nn.Module, group: dist.ProcessGroup | None = None) -> None:
    """Write into the gradient of every trained parameter the sum of the gradients of all
    ranks of `group`.

    All ranks of the group call this function, and `group=None` is the world.
    """
    ### BEGIN SOLUTION
    trained = [p for p in model.parameters() if p.requires_grad]
    flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten()
                      for p in trained])
    dist.all_reduce(flat, group=group)
    for p, piece in zip(trained, flat.split([p.numel() for p in trained])):
        p.grad = piece.view_as(p)
    ### END SOLUTION

# %% tags=["check"] grade_id="gradients-check" points=4
check.gradients(cluster, "sum_gradients")

# %% [markdown]
# ## 3. A rank's share of the objective
#
# For the `n` rows of the batch, a single process would minimise
#
# $$ J(w) = \lambda R(w) + \frac{1}{n} \sum_{i=1}^{n} \ell_i(w), \qquad R(w) = \frac{1}{2} \sum_j w_j^2 $$
#
# where the $w_j$ are all the numbers in the trained parameters (those of a tied parameter count only once), and $\ell_i$ is the cross entropy of row $i$.
#
# Each rank has some of the rows, or perhaps none. Write a function that computes a rank's share, so that the shares of all ranks **add up** to $J$. This
# function does not communicate, because it needs only numbers that each rank knows. Nor does it ask on which rank it runs, because the check computes all
# shares on one rank.
#
# *Difficulty ●●○, 9 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# What does `cross_entropy` divide by if you do not choose a reduction? How often does R occur in the sum of all shares? For more help, run `hint("01-share")`
# in a separate cell.
# </details>

# %% tags=["solution"] grade_id="share"
# %%px --setup
def share(model: nn.Module, x: torch.Tensor, y: torch.Tensor, n: int, decay: float,
          world_size: int) -> torch.Tensor:
    """Return this rank's share of J, as a scalar that can run backward. `x` and `y` are
    this rank's rows, while the whole batch has n."""
    ### BEGIN SOLUTION
    losses = cross_entropy(model(x), y, reduction="sum") / n
    penalty = sum(p.square().sum() for p in model.parameters() if p.requires_grad) / 2
    return losses + decay / world_size * penalty
    ### END SOLUTION

# %% tags=["check"] grade_id="share-check" points=4
check.share(cluster, "share")

# %% [markdown]
# ## 4. The step
#
# Now put the pieces together. Every rank of the group receives the same model and the whole batch, but it puts only its own rows through the model. The update
# is the simplest possible, `w -= rate * gradient`, so you need no optimiser.
#
# Return the objective of the whole batch as it was before the update, which is the number that a single process would print.
#
# The checks use groups of 4, 3 and 2 ranks, with three steps in each, and batches of different sizes. In the group that consists of ranks 1 and 3, rank 3 of
# the world is rank 1 of the group, as `dist.get_rank(group)` reports.
#
# *Difficulty ●●○, 12 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Use the rank within the group. What is in `grad` when the second step begins? For more help, run `hint("01-step")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="step"
# %%px --setup
def train_step(model: nn.Module, x: torch.Tensor, y: torch.Tensor, rate: float,
               decay: float, group: dist.ProcessGroup | None = None) -> float:
    """Take one step of gradient descent on the whole batch (x, y), shared by all ranks of
    `group`, and return J as it was before the step."""
    ### BEGIN SOLUTION
    n, rank, world_size = len(x), dist.get_rank(group), dist.get_world_size(group)
    mine = rows_of(n, rank, world_size)
    model.zero_grad()
    objective = share(model, x[mine], y[mine], n, decay, world_size)
    objective.backward()
    sum_gradients(model, group)
    with torch.no_grad():
        for p in model.parameters():
            if p.requires_grad:
                p -= rate * p.grad
    objective = objective.detach()
    dist.all_reduce(objective, group=group)
    return objective.item()
    ### END SOLUTION

# %% tags=["check"] grade_id="step-check" points=3
check.step(cluster, "train_step")

# %% [markdown]
# ## All together
#
# One task spans units 01 to 10: a network is trained on handwritten digits for 60 steps, with batches of 250 rows. Your step trains this network on four ranks,
# and the reference is a single process without PyTorch. This part is not graded, but it works only if your pieces do.

# %%
# %%px
from manyhands import track

device = torch.device(os.environ["MANYHANDS_DEVICE"])
x, y = (torch.from_numpy(array).to(device) for array in track.data())
model = track.network(device)
said = [train_step(model, x[track.rows(k)], y[track.rows(k)], track.RATE, track.DECAY)
        for k in range(track.STEPS)]
weights, objectives = track.one_process()
far = track.distance(model.parameters(), weights)
print(f"objective {said[0]:.4f} to {said[-1]:.4f}, one process {objectives[-1]:.4f}; same "
      f"weights to 1e-12: {far < 1e-12}")

# %% [markdown]
# ## Where to go on
#
# * Unit 04 takes the all-reduce apart, unit 05 asks what it costs, and unit 06 sends gradients while the backward pass is still running.
# * As an experiment, put `nn.BatchNorm1d(32).double()` behind the first layer of `track.network`. Train this network with `train_step` on four ranks, and with
#   a plain loop over whole batches in one process, and compare the weights of the two runs. (`track.one_process()` has no batch norm, so it is not the
#   reference here.)
# * What a *larger* batch does to training, with the same number of steps or with fewer, is the topic of unit 17 and of P. Goyal et al. 2017,
#   [Accurate, Large Minibatch SGD](https://arxiv.org/abs/1706.02677). Section 3 of that paper describes two of the mistakes of this lab, namely those in the
#   loss's divisor and in weight decay.

# %%
cluster.stop()
