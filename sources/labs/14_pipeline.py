# %% [markdown] unit={"minutes": 85, "ranks": 4, "framework": "torch", "title": "Pipeline"}
# # 14 Lab: a pipeline that trains as one process does
#
# You write the schedules of a pipeline, what runs them on several ranks, and what foretells them. At the end you can
#
# * say how much of a step is bubble, and what more micro-batches or more stages on each rank do to it;
# * write the orders of GPipe and 1F1B, and find an order that can never end;
# * foretell when each event of a step ends, with stages and messages of any cost;
# * run a stage on send and receive, with micro-batches of different sizes, so that all gradients are those of one process;
# * cut a network, and choose stages, micro-batches and schedule under a limit of memory and of idle time;
# * find what is wrong in an update that runs without an error.
#
# **Before:** the tutorial of this unit. **Minutes:** 85. **Ranks:** 4. **Points:** 21.
#
# Exercises 5 and 7 run on the ranks, and their cells begin with `%%px`. All others run in this kernel. A mistake may make the ranks wait for each other: after a few
# seconds the cluster notices, says who waits for whom, and heals. Below each check stands what it says when the answer is right.
# Every hint has two steps: run `hint(...)` again for the second.

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

if not dist.is_initialized():  # so that this cell can be run twice
    dist.init_process_group("gloo")

# %% [markdown]
# ## 1. The bubble
#
# S ranks with one stage each, M micro-batches; all stages cost the same, messages cost nothing. Which part **of the whole step** does a rank wait? With `chunks` stages on each
# rank, each a so much smaller part of the network, the first micro-batch is through the first S stages so much sooner (interleaved 1F1B, whose M is a multiple of S).
#
# *Difficulty ●○○, 4 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# Let a forward and a backward of one stage take one unit of time together. How long is a rank busy, and how long is the step? For more, run `hint("14-bubble")` in a cell of
# its own.
# </details>

# %% tags=["solution"] grade_id="bubble"
def bubble(stages: int, micro_batches: int, chunks: int = 1) -> float:
    """The part of a step, 0 to 1, in which a rank waits.

    stages: of one chunk, so as many as there are ranks.
    """
    ### BEGIN SOLUTION
    return (stages - 1) / (chunks * micro_batches + stages - 1)
    ### END SOLUTION

# %% tags=["check"] grade_id="bubble-check" points=2
check.bubble(bubble)

# %% [markdown]
# ## 2. Two orders
#
# An order is a list of what one rank does, `("F", m)` for the forward of micro-batch m, `("B", m)` for its backward; m counts from 0.
#
# * **GPipe**: all forwards, then all backwards.
# * **1F1B**: a warm-up of forwards, just enough to keep the ranks behind busy; then one forward and one backward in turn; then the backwards that are left. Micro-batches go
#   in the same order forward and backward.
#
# The last rank can begin its first backward at once, so it needs no warm-up. 1F1B takes as long as GPipe, and holds no more micro-batches than it must. There may be fewer
# micro-batches than stages.
#
# *Difficulty ●●○, 10 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# How many forwards must rank 2 of 4 have done before it can have its first gradient back, if nobody idles? For more, `hint("14-orders")`.
# </details>

# %% tags=["solution"] grade_id="orders"
def gpipe_order(rank: int, stages: int, micro_batches: int) -> list:
    """What this rank does in a step of GPipe: [("F", 0), ...]."""
    ### BEGIN SOLUTION
    return [(kind, m) for kind in "FB" for m in range(micro_batches)]
    ### END SOLUTION


def one_f_one_b_order(rank: int, stages: int, micro_batches: int) -> list:
    """What this rank does in a step of 1F1B."""
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
# Rank r holds stage r. An event begins as soon as its rank has done what stands before it in its order, and what it needs is there: a forward needs the activation from the stage
# before, a backward the gradient from the stage behind. What an event makes arrives on the other rank `message_s` seconds after its end; nobody waits for sending.
# A backward needs its own forward to be done.
#
# *Difficulty ●●●, 20 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Go round the ranks again and again, and let each do what it can. What if in one whole round nobody can do anything? For more, `hint("14-finish")`.
# </details>

# %% tags=["solution"] grade_id="finish"
def finish_times(orders: list, forward_s: list, backward_s: list,
                 message_s: float = 0.0) -> list:
    """For each rank, in its order, the time at which each event ends; the step begins at 0.

    orders: of all ranks, as above.
    forward_s, backward_s: seconds of one micro-batch on each stage.
    Raises ValueError if the orders can never be done.
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
# The slowest stage sets the pace. Cut layers of different costs into blocks of neighbours, one for each stage, so that the dearest block is as cheap as it can be. Every stage
# needs at least one layer.
#
# *Difficulty ●●○, 8 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# With 12 layers in 4 stages there are 165 ways. For more, `hint("14-cut")`.
# </details>

# %% tags=["solution"] grade_id="cut"
def cut(costs: list, stages: int) -> list:
    """The layers of each stage, as slices: [slice(0, 3), slice(3, 4), ...].

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
# Now on the ranks. Rank r of `group` holds stage r. `run_stage` does what stands in `order`, and leaves in the stage's parameters the gradients that one process would have
# with the whole network and the whole batch:
#
# * the loss is `mse_loss` over **all rows of the batch**; micro-batches may have different numbers of rows, but all targets have rows of one width;
# * a forward receives from rank r - 1, computes, and sends to rank r + 1; a backward the other way round. The first stage has `inputs`, the last one has `targets`;
# * `dist.send` ends only when the other side receives: so with 1F1B two neighbours would wait for each other. `dist.isend` does not wait; what it returns must be kept, and waited
#   for once before the step ends: at its end, or for an activation when its gradient has come (over gloo a second `wait()` never ends). (The ranks use gloo and CPU tensors, on a machine with GPUs too: with NCCL, two neighbours that send to
#   each other can hang even with `isend`; see *On GPUs* in the tutorial);
# * let go of what backward does not need any more: with 1F1B, rank r holds the inputs and outputs of at most S - r micro-batches, and no copies of others. The check counts the
#   bytes that are alive. A tensor that you have handed to `isend` does not count. Send `y.detach()` for this reason, because y itself would hold on to its whole graph;
# * `inputs` and `targets` belong to the caller, who uses them again in the next step. Their numbers stay as they are, and they do not ask for a gradient.
#
# `dist.recv(tensor, group=group, group_src=...)` and `dist.isend(tensor, group=group, group_dst=...)` count ranks inside the group; `dist.get_rank(group)` and
# `dist.get_world_size(group)` say who this is. A group may have one rank only. With `tag=m` a report of a hang names the micro-batch.
#
# *Difficulty ●●●, 20 minutes, 5 points*
#
# <details><summary>Hint</summary>
#
# A received tensor is a leaf: what must you ask of it, so that it has a gradient after backward? And what factor turns the mean over a micro-batch into its part of the mean over all
# rows? For more, `hint("14-run")`.
# </details>

# %% tags=["solution"] grade_id="run"
# %%px --setup
def run_stage(order, stage, inputs, targets, shapes, group=None):
    """Run this rank's part of one step, and add the gradients to those of the stage's
    parameters.

    order: [("F", 0), ...]. stage: a module.
    inputs: on the first stage a tensor for each micro-batch, else None.
    targets: on the last stage, else None.
    shapes: for each micro-batch, the shape of what comes in here; everything is float64.
        The first axis counts rows.
    Returns the loss of the whole batch on the last stage, as a float; None elsewhere.
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
# A class rents devices by the second, so a step costs **stages times seconds**. You get the measured costs of a network, and choose how many stages, how many micro-batches, and which
# schedule. The check has several such jobs; it simulates your plan, and all others. For each job some plan fits. Your functions of exercises 2 and 3 are of use here.
#
# `job` has these fields. `job.forward_s[S]`, `job.weight_bytes[S]`, `job.kept_bytes[S]` are lists, with a number for each stage of a network that has been cut into S stages;
# `for S in job.forward_s` goes through all S that are possible.
#
# | field | |
# |---|---|
# | `forward_s[S]` | seconds of a forward of the whole **batch** on each stage. A micro-batch takes its share, **plus** `start_s`; a backward takes twice that share, plus `start_s` |
# | `start_s` | seconds that a forward, and a backward, of any micro-batch takes in addition; this is work, and the device is not idle |
# | `message_s` | seconds of a message between two stages |
# | `weight_bytes[S]` | of the weights of each stage. Gradients and Adam's two numbers need three times as much again |
# | `kept_bytes[S]` | what each stage keeps for backward, of the whole **batch**; a micro-batch keeps its share, from its forward to its backward |
# | `micro_batches` | the numbers that divide the batch |
# | `memory_bytes` | of one device; a plan that needs exactly as much fits |
# | `idle` | the largest bubble that is allowed: the part of all devices' time, from 0 to the last event, in which they do nothing |
#
# *Difficulty ●●○, 13 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# There are few plans: try all of them. For more, `hint("14-plan")`.
# </details>

# %% tags=["solution"] grade_id="plan"
def plan(job) -> tuple:
    """(stages, micro-batches, "gpipe" or "1f1b"): the cheapest step that fits into the
    memory and the allowed bubble."""
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
# After the last backward, a stage still has to clip its gradients and to step. The network below begins with a matrix and ends with its transpose, as an embedding and a head do
# when their weights are tied. Hence the first and the last stage each have a copy of this matrix, `shared`, and `ends` is the group of these two ranks. When `faulty_update` is called,
# each copy has only the gradient from its place in the network. The function raises no error, and the loss falls.

# %%
# %%px --setup
def faulty_update(stage, optimiser, max_norm, shared, ends, group=None):
    norm = nn.utils.clip_grad_norm_(stage.parameters(), max_norm)
    if shared is not None:
        dist.all_reduce(shared.grad, group=ends)
    optimiser.step()
    return norm.item()

# %% [markdown]
# The next cell makes one update with the whole network in one process, and one with four stages. (To keep it short, each rank computes the gradients of all stages and then looks
# at its own only, so no pipeline has to run.) It prints how far the weights of each stage are from the weights of one process. The gradient of this network has a norm of about 18.

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
    alone[3]["shared"] = alone[0]["shared"]  # one process has one matrix
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
# Write the function as it should be. `group` is the group of all stages, and `None` is the world. The check also uses networks of 3 and 2 stages, whose first stage may be on a rank other than 0, so find a stage's position with `dist.get_rank(group)`. Then run the cell above with `update`.
#
# *Difficulty ●●○, 8 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# Nothing is wrong as long as nothing is clipped. What does `faulty_update` return on each rank, and what would one process return? For more, run `hint("14-update")`.
# </details>

# %% tags=["solution"] grade_id="update"
# %%px --setup
def update(stage, optimiser, max_norm, shared, ends, group=None):
    """Clip the gradients of the whole network to `max_norm`, and step; all ranks of `group`
    call it.

    shared: this stage's copy of the matrix that the first and the last stage share; None on
        the stages between them. ends: the group of these two, where there is a copy.
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
# Your pieces train a network on handwritten digits, on four ranks. Not graded: it works when your pieces do. The labels are written as vectors of ten numbers, so that the squared
# error will do.

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
# * `torch.distributed.pipelining` has these schedules, and better ones; the tutorial runs them.
# * Your `finish_times` knows one stage on each rank. With two, and a third field in each event, it can play interleaved 1F1B: `manyhands.simulate.pipeline.play` does.
# * A stage that keeps only its input, and computes the whole forward once more in backward (`torch.utils.checkpoint`), needs far less memory and a third more time. Which of the plans of
#   exercise 6 would change?
# * Y. Huang et al. 2019, *GPipe*, [arXiv 1811.06965](https://arxiv.org/abs/1811.06965); D. Narayanan et al. 2021, *Efficient Large-Scale Language Model Training on GPU Clusters*,
#   [arXiv 2104.04473](https://arxiv.org/abs/2104.04473).

# %%
cluster.stop()
