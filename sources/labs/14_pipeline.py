# %% [markdown] unit={"minutes": 85, "ranks": 4, "framework": "torch", "title": "Pipeline"}
# # 14 Lab: a pipeline that trains as one process does
#
# In this lab, you write the schedules of a pipeline, the function that runs them on several ranks, and the functions that predict them. At the end, you can
#
# * compute what fraction of a step the bubble takes, and explain how more micro-batches or more stages on each rank change it.
# * write the orders of GPipe and 1F1B, and detect an order that can never finish.
# * predict when each event of a step ends, with stages and messages of any cost.
# * run a stage with send and receive on micro-batches of different sizes, so that all gradients are the same as in a single process.
# * cut a network, and choose stages, micro-batches and a schedule under limits on memory and idle time.
# * find what is wrong in an update that runs without an error.
#
# **Before:** the tutorial of this unit. **Minutes:** 85 · **Ranks:** 4 · **Points:** 21.
#
# Exercises 5 and 7 run on the ranks, so their cells begin with `%%px`, while all others run in this kernel. A mistake may make the ranks wait for each other.
# After a few seconds, the cluster notices this, reports which rank is waiting for which, and heals itself. Below each check, you see what it prints when the
# answer is right. Every hint has two steps, so run `hint(...)` again for the second one.

# %% tags=["setup"]
from manyhands import Cluster, hint
from manyhands.checks import pipeline as check

cluster = Cluster(nodes=1, ranks_per_node=4, framework="torch")

# %% tags=["setup"]
# %%px --setup
import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import mse_loss

if not dist.is_initialized():  # so that this cell can run twice
    dist.init_process_group("gloo")

# %% [markdown]
# ## 1. The bubble
#
# There are S ranks with one stage each, and M micro-batches. All stages cost the same, and messages cost nothing. For what fraction **of the whole step** does
# a rank wait? With `chunks` stages on each rank, each stage takes only 1 / `chunks` of the time, so the first micro-batch passes the first S stages in 1 /
# `chunks` of the time, too. (This is interleaved 1F1B, for which M is a multiple of S.)
#
# *Difficulty ●○○, 4 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# Assume that a forward and a backward pass of one stage together take one unit of time. How long is a rank busy, and how long is the step? For more help, run
# `hint("14-bubble")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="bubble"
def bubble(stages: int, micro_batches: int, chunks: int = 1) -> float:
    """Return the fraction of a step, 0 to 1, during which a rank waits.

    stages: the number of stages of one chunk, which is the number of ranks.
    """
    ### BEGIN SOLUTION
    return (stages - 1) / (chunks * micro_batches + stages - 1)
    ### END SOLUTION

# %% tags=["check"] grade_id="bubble-check" points=2
check.bubble(bubble)

# %% [markdown]
# ## 2. Two orders
#
# An order is a list of the passes that one rank runs. It contains `("F", m)` for the forward pass of micro-batch m and `("B", m)` for its backward pass, and m
# starts at 0.
#
# * **GPipe** runs all forward passes and then all backward passes.
# * **1F1B** begins with a warm-up of just enough forward passes to keep the later ranks busy. After that, it alternates one forward and one backward pass, and
#   it ends with the backward passes that are left. The forward and the backward passes process the micro-batches in the same order.
#
# The last rank can begin its first backward pass immediately, so it needs no warm-up. 1F1B takes as long as GPipe, but it holds no more micro-batches than it
# must. There may be fewer micro-batches than stages.
#
# *Difficulty ●●○, 10 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# If no rank is idle, how many forward passes must rank 2 of 4 have finished before it can receive its first gradient? For more help, run `hint("14-orders")` in
# a separate cell.
# </details>

# %% tags=["solution"] grade_id="orders"
def gpipe_order(rank: int, stages: int, micro_batches: int) -> list:
    """Return what this rank does in a step of GPipe, as [("F", 0), ...]."""
    ### BEGIN SOLUTION
    return [(kind, m) for kind in "FB" for m in range(micro_batches)]
    ### END SOLUTION


def one_f_one_b_order(rank: int, stages: int, micro_batches: int) -> list:
    """Return what this rank does in a step of 1F1B."""
    ### BEGIN SOLUTION
    warm_up = min(micro_batches, stages - 1 - rank)
    order = [("F", m) for m in range(warm_up)]
    for m in range(micro_batches - warm_up):
        order += [("F", warm_up + m), ("B", m)]
    return order + [("B", m) for m in range(micro_batches - warm_up, micro_batches)]
    ### END SOLUTION

# %% tags=["check"] grade_id="orders-check" points=4
check.orders(gpipe_order, one_f_one_b_order)

# %% [markdown]
# ## 3. When does each event end?
#
# Rank r holds stage r. An event begins as soon as its rank has finished all earlier events of its order and the input of the event has arrived. A forward pass
# needs the activation from the previous stage, whereas a backward pass needs its own forward pass and the gradient from the next stage. The result of an event
# arrives on the other rank `message_s` seconds after the event has ended. Sending does not make a rank wait.
#
# *Difficulty ●●●, 20 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Go round the ranks repeatedly, and let each of them do what it can. What does it mean if no rank can do anything in a whole round? For more help, run
# `hint("14-finish")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="finish"
def finish_times(orders: list, forward_s: list, backward_s: list,
                 message_s: float = 0.0) -> list:
    """Return, for each rank and in its order, the time at which each event ends. The step
    begins at 0.

    orders: the orders of all ranks, as above.
    forward_s, backward_s: seconds of one micro-batch on each stage.
    Raises ValueError if the orders can never be completed.
    """
    ### BEGIN SOLUTION
    ended, times = {}, [[] for _ in orders]
    while any(len(done) < len(order) for done, order in zip(times, orders)):
        before = len(ended)
        for rank, order in enumerate(orders):
            while len(times[rank]) < len(order):
                kind, m = order[len(times[rank])]
                source = (kind, m, rank - 1 if kind == "F" else rank + 1)
                outer = rank == (0 if kind == "F" else len(orders) - 1)
                if not outer and source not in ended:
                    break
                if kind == "B" and ("F", m, rank) not in ended:
                    break
                start = times[rank][-1] if times[rank] else 0.0
                if not outer:
                    start = max(start, ended[source] + message_s)
                seconds = (forward_s if kind == "F" else backward_s)[rank]
                ended[kind, m, rank] = start + seconds
                times[rank].append(start + seconds)
        if len(ended) == before:
            raise ValueError("each rank waits for another one")
    return times
    ### END SOLUTION

# %% tags=["check"] grade_id="finish-check" points=3
check.finish(finish_times)

# %% [markdown]
# ## 4. Cut the network
#
# The slowest stage sets the pace. Cut layers of different costs into blocks of neighbouring layers, one for each stage, so that the most expensive block is as
# cheap as possible. Every stage needs at least one layer.
#
# *Difficulty ●●○, 8 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# There are only 165 ways to cut 12 layers into 4 stages. For more help, run `hint("14-cut")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="cut"
def cut(costs: list, stages: int) -> list:
    """Return the layers of each stage as slices, [slice(0, 3), slice(3, 4), ...].

    Raises ValueError if there are fewer layers than stages.
    """
    ### BEGIN SOLUTION
    from itertools import combinations

    if len(costs) < stages:
        raise ValueError(f"{len(costs)} layers in {stages} stages: each needs a layer")

    def blocks(borders):
        return [slice(start, stop)
                for start, stop in zip((0, *borders), (*borders, len(costs)))]

    ways = map(blocks, combinations(range(1, len(costs)), stages - 1))
    return min(ways, key=lambda way: max(sum(costs[block]) for block in way))
    ### END SOLUTION

# %% tags=["check"] grade_id="cut-check" points=2
check.cut(cut)

# %% [markdown]
# ## 5. Run a stage
#
# This exercise runs on the ranks. Rank r of `group` holds stage r. Write `run_stage`, which runs the passes in `order` and leaves in the stage's parameters the
# gradients that a single process computes with the whole network and the whole batch. The following rules apply:
#
# * The loss is `mse_loss` over **all rows of the batch**. Micro-batches may have different numbers of rows, but the rows of all targets have the same width.
# * A forward pass receives from rank r - 1, computes, and sends to rank r + 1, and a backward pass does so in the opposite direction. The first stage has
#   `inputs`, and the last one has `targets`.
# * `dist.send` returns only when the other side receives, so with 1F1B two neighbours would wait for each other. `dist.isend` does not wait. Keep the work
#   handle that it returns, and wait for it once before the step ends, either at the end of the step or, for an activation, when its gradient has arrived (over
#   gloo, a second `wait()` never returns). (The ranks use gloo and CPU tensors, even on a machine with GPUs, because with NCCL two neighbours that send to each
#   other can hang even with `isend`; see *On GPUs* in the tutorial.)
# * Release what the backward pass no longer needs. With 1F1B, rank r holds the inputs and outputs of at most S - r micro-batches, and no copies of any others.
#   The check counts the bytes that are alive, except for tensors that you have passed to `isend`. Send `y.detach()`, because y itself would hold on to
#   its whole graph.
# * `inputs` and `targets` belong to the caller, who uses them again in the next step. Therefore, their numbers must not change, and they must not require a
#   gradient.
#
# `dist.recv(tensor, group=group, group_src=...)` and `dist.isend(tensor, group=group, group_dst=...)` number the ranks inside the group, while
# `dist.get_rank(group)` and `dist.get_world_size(group)` return this rank's number and the number of ranks, respectively. A group may have only one rank. If
# you pass `tag=m`, a hang report names the micro-batch.
#
# *Difficulty ●●●, 20 minutes, 5 points*
#
# <details><summary>Hint</summary>
#
# A received tensor is a leaf. What must you set on it so that it has a gradient after the backward pass? Which factor turns the mean over a micro-batch into its share of the mean over all rows? For more help, run `hint("14-run")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="run"
# %%px --setup
def run_stage(order, stage, inputs, targets, shapes, group=None):
    """Run this rank's part of one step, and add the gradients to the gradients of the
    stage's parameters.

    order: [("F", 0), ...]. stage: a module.
    inputs: a tensor for each micro-batch on the first stage, and None elsewhere.
    targets: a tensor for each micro-batch on the last stage, and None elsewhere.
    shapes: for each micro-batch, the shape of the input of this stage. All tensors are
        float64, and the first axis counts rows.
    Returns the loss of the whole batch as a float on the last stage, and None elsewhere.
    """
    ### BEGIN SOLUTION
    rank, last = dist.get_rank(group), dist.get_world_size(group) - 1
    rows, kept, sent, loss = sum(shape[0] for shape in shapes), {}, [], 0.0

    def receive(shape, source, m):
        x = torch.empty(shape, dtype=torch.float64)
        dist.recv(x, group=group, group_src=source, tag=m)
        return x

    for kind, m in order:
        if kind == "F":
            x = inputs[m] if rank == 0 else receive(shapes[m], rank - 1, m).requires_grad_()
            y = stage(x)
            if rank < last:
                sent.append(dist.isend(y.detach(), group=group, group_dst=rank + 1, tag=m))
            else:
                y = mse_loss(y, targets[m]) * shapes[m][0] / rows
                loss += y.item()
            kept[m] = x, y
        else:
            x, y = kept.pop(m)
            y.backward(None if rank == last else receive(y.shape, rank + 1, m))
            if rank > 0:
                sent.append(dist.isend(x.grad, group=group, group_dst=rank - 1, tag=m))
    for work in sent:
        work.wait()
    return loss if rank == last else None
    ### END SOLUTION

# %% tags=["check"] grade_id="run-check" points=5
check.run(cluster, "run_stage")

# %% [markdown]
# ## 6. The cheapest plan
#
# A class rents devices by the second, so a step costs **stages times seconds**. You get the measured costs of a network, and you choose the number of stages,
# the number of micro-batches and the schedule. The check has several jobs of this kind. It simulates your plan and all other plans. For each job, at least one
# plan fits. Your functions from exercises 2 and 3 are useful here.
#
# The fields of `job` are described below. `job.forward_s[S]`, `job.weight_bytes[S]` and `job.kept_bytes[S]` are lists with a number for each stage of a network
# that has been cut into S stages, and `for S in job.forward_s` iterates over all possible S.
#
# | field | meaning |
# |---|---|
# | `forward_s[S]` | duration in seconds of a forward pass of the whole **batch** on each stage. A micro-batch takes its share **plus** `start_s`, and its backward pass takes twice that share plus `start_s` |
# | `start_s` | additional seconds of each forward pass and of each backward pass of any micro-batch; this is work, so the device is not idle |
# | `message_s` | duration in seconds of a message between two stages |
# | `weight_bytes[S]` | bytes of the weights of each stage. In addition, gradients and Adam's two numbers for each weight need three times as many bytes |
# | `kept_bytes[S]` | bytes that each stage keeps for the backward pass of the whole **batch**; a micro-batch keeps its share, from its forward pass to its backward pass |
# | `micro_batches` | the numbers that divide the batch |
# | `memory_bytes` | memory of one device in bytes; a plan that needs exactly this many bytes fits |
# | `idle` | the largest bubble that is allowed, which is the fraction of all devices' time, from 0 to the last event, in which they do nothing |
#
# *Difficulty ●●○, 13 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# There are few plans, so you can try all of them. For more help, run `hint("14-plan")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="plan"
def plan(job) -> tuple:
    """Return (stages, micro-batches, "gpipe" or "1f1b") of the cheapest step that fits into
    the memory and the allowed bubble."""
    ### BEGIN SOLUTION
    best = None
    for stages, times in job.forward_s.items():
        for count in job.micro_batches:
            forward = [job.start_s + seconds / count for seconds in times]
            backward = [job.start_s + 2 * seconds / count for seconds in times]
            for schedule, order in (("gpipe", gpipe_order), ("1f1b", one_f_one_b_order)):
                alive = [count if schedule == "gpipe" else min(count, stages - rank)
                         for rank in range(stages)]
                each = zip(job.weight_bytes[stages], job.kept_bytes[stages], alive)
                memory = max(4 * weights + kept * number / count
                             for weights, kept, number in each)
                orders = [order(rank, stages, count) for rank in range(stages)]
                ends = finish_times(orders, forward, backward, job.message_s)
                cost = stages * max(max(end) for end in ends)
                idle = 1 - count * (sum(forward) + sum(backward)) / cost
                fits = memory <= job.memory_bytes and idle <= job.idle
                if fits and (best is None or cost < best[0]):
                    best = cost, (stages, count, schedule)
    return best[1]
    ### END SOLUTION

# %% tags=["check"] grade_id="plan-check" points=3
check.plan(plan)

# %% [markdown]
# ## 7. Find the bug
#
# After the last backward pass, a stage still has to clip its gradients and to run the optimiser step. The network below begins with a matrix and ends with its
# transpose, as an embedding and a head do when their weights are tied. Therefore, the first and the last stage each have a copy of this matrix, `shared`, and
# `ends` is the group of these two ranks. When `faulty_update` is called, each copy has only the gradient from its own place in the network. The function raises
# no error, and the loss falls.

# %%
# %%px --setup
def faulty_update(stage, optimiser, max_norm, shared, ends, group=None):
    norm = nn.utils.clip_grad_norm_(stage.parameters(), max_norm)
    if shared is not None:
        dist.all_reduce(shared.grad, group=ends)
    optimiser.step()
    return norm.item()

# %% [markdown]
# The next cell performs one update with the whole network in a single process and one with four stages. (To keep it short, each rank computes the gradients of
# all stages and then uses only its own, so no pipeline has to run.) The cell prints how far the weights of each stage are from the weights that a single
# process computes. The gradient of this network has a norm of about 18.

# %%
# %%px --setup
ends = dist.new_group([0, 3])

def loss_of(stages, x, y):
    h = x @ stages[0]["shared"]
    for stage in stages:
        h = torch.tanh(h @ stage["weight"])
    return mse_loss(h @ stages[-1]["shared"].T, y)

def off_by(update, max_norm):
    torch.manual_seed(0)
    x, y, matrix, *weights = (torch.randn(6, 6).double() for _ in range(7))
    stages = [nn.ParameterDict({"weight": nn.Parameter(weight)}) for weight in weights]
    for end in (0, 3):
        stages[end]["shared"] = nn.Parameter(matrix.clone())
    alone = copy.deepcopy(stages)
    alone[3]["shared"] = alone[0]["shared"]  # a single process has one matrix
    whole = nn.ModuleList(alone)
    loss_of(alone, x, y).backward()
    nn.utils.clip_grad_norm_(whole.parameters(), max_norm)
    torch.optim.SGD(whole.parameters(), lr=0.1).step()
    loss_of(stages, x, y).backward()
    mine, right = stages[dist.get_rank()], alone[dist.get_rank()]
    shared = mine["shared"] if dist.get_rank() in (0, 3) else None
    update(mine, torch.optim.SGD(mine.parameters(), lr=0.1), max_norm, shared, ends)
    return max((mine[name] - right[name]).abs().max().item() for name in mine)

# %%
# %%px
for max_norm in (100, 1):
    print(f"max_norm {max_norm:>3}: off by {off_by(faulty_update, max_norm):.4f}")

# %% [markdown]
# Write a function that performs this update correctly. `group` is the group of all stages, where `None` means the world. The check also uses networks of 3 and
# 2 stages, whose first stage may be on a rank other than 0, so find a stage's position with `dist.get_rank(group)`. Then run the cell above with `update`.
#
# *Difficulty ●●○, 8 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# Nothing is wrong as long as nothing is clipped. What does `faulty_update` return on each rank, and what would a single process return? For more help, run
# `hint("14-update")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="update"
# %%px --setup
def update(stage, optimiser, max_norm, shared, ends, group=None):
    """Clip the gradients of the whole network to `max_norm`, and step the optimiser. All
    ranks of `group` call this function.

    shared: this stage's copy of the matrix that the first and the last stage share, and
        None on the stages between them. ends: the group of the two ranks with a copy.
    Returns the norm of the whole network's gradient before clipping, on every rank.
    """
    ### BEGIN SOLUTION
    if shared is not None:
        dist.all_reduce(shared.grad, group=ends)
    first = dist.get_rank(group) == 0
    counted = [p.grad for p in stage.parameters() if p is not shared or first]
    squares = torch.stack([gradient.square().sum() for gradient in counted]).sum()
    dist.all_reduce(squares, group=group)
    norm = squares.sqrt()
    for p in stage.parameters():
        p.grad *= (max_norm / (norm + 1e-6)).clamp(max=1)
    optimiser.step()
    return norm.item()
    ### END SOLUTION

# %% tags=["check"] grade_id="update-check" points=2
check.update(cluster, "update")

# %% [markdown]
# ## All together
#
# On four ranks, your functions now train a network on handwritten digits. This part is not graded, and it works as soon as your functions do. The labels are
# written as vectors of ten numbers, so that we can use the squared error.

# %%
lengths = [64, 96, 48, 96, 32, 64, 48, 64, 10]  # of the activations between the layers
costs = [a * b for a, b in zip(lengths, lengths[1:])]
blocks = [range(8)[block] for block in cut(costs, 4)]
orders = [one_f_one_b_order(rank, 4, 8) for rank in range(4)]
cluster.push({"lengths": lengths, "blocks": blocks, "orders": orders})
print("layers of each stage:", [list(block) for block in blocks])

# %%
# %%px
from manyhands.data import digits

x, y = (torch.from_numpy(array) for array in digits("train"))
x, y = x.double(), nn.functional.one_hot(y, 10).double()
rank = dist.get_rank()
micro = [range(m * 1500 // 8, (m + 1) * 1500 // 8) for m in range(8)]  # 187 or 188 rows

torch.manual_seed(0)
layers = [nn.Sequential(nn.Linear(a, b), nn.Tanh()).double()
          for a, b in zip(lengths, lengths[1:])]
stage, alone = nn.Sequential(*[layers[i] for i in blocks[rank]]), nn.Sequential(*layers)
inputs = [x[rows.start:rows.stop] for rows in micro]
targets = [y[rows.start:rows.stop] for rows in micro]
shapes = [(len(rows), lengths[blocks[rank][0]]) for rows in micro]

# %%
# %%px
one_process = mse_loss(alone(x), y).item()
optimiser = torch.optim.Adam(stage.parameters(), lr=0.01)
losses = []
for step in range(30):
    optimiser.zero_grad()
    losses.append(run_stage(orders[rank], stage, inputs, targets, shapes))
    optimiser.step()
if rank == 3:
    print(f"loss {losses[0]:.4f} at first, of one process {one_process:.4f}; "
          f"{losses[-1]:.4f} after 30 steps")

# %% [markdown]
# ## Where to go on
#
# * `torch.distributed.pipelining` has the schedules of this lab and better ones. The tutorial runs them.
# * Your `finish_times` supports one stage on each rank. If you extend it to two stages and add a third field to each event, it can simulate interleaved 1F1B,
#   as `manyhands.simulate.pipeline.play` does.
# * A stage that keeps only its input and repeats the whole forward pass in the backward pass (`torch.utils.checkpoint`) needs far less memory and a third more
#   time. Which of the plans in exercise 6 would change?
# * Y. Huang et al. 2019, *GPipe*, [arXiv 1811.06965](https://arxiv.org/abs/1811.06965); D. Narayanan et al. 2021, *Efficient Large-Scale Language Model
#   Training on GPU Clusters*, [arXiv 2104.04473](https://arxiv.org/abs/2104.04473).

# %%
cluster.stop()
