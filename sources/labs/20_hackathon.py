# %% [markdown] unit={"minutes": 85, "ranks": 4, "framework": "torch", "title": "Hackathon"}
# # 20 Lab: an entry
#
# You mend a training script, price it before you run it, write a message that is a hundred times smaller than a gradient, and hand in an entry. The faster the
# entry is on slow links, the more points you get. At the end, you can
#
# * show that a training run of N ranks computes what a single process computes, and find what prevents it from doing so.
# * predict how long a training run takes on given links, before it has run.
# * send a small part of a gradient without losing the rest.
# * find out why a training run that sends few numbers learns too slowly.
# * use the clock to choose between fewer bytes and fewer messages.
#
# **Before:** the tutorial of this unit, and units 05 and 06. **Minutes:** 85 · **Ranks:** 4, which the judge starts · **Points:** 22.
#
# As in the hackathon, entries run on the judge's ranks and by the judge's clock, in a process next to this kernel. An entry is **one cell**, so everything that
# it uses must be imported or defined in this cell. Since the clock is counted, it shows the same time on a fast and on a slow machine, with GPUs or without.
# The ranks do not run in separate rooms here, because the notebook is your own, and the grader runs all of it in one room.

# %% tags=["setup"]
import torch
import torch.distributed as dist

from manyhands import hint
from manyhands.checks import hackathon as check
from manyhands.checks.hackathon import try_out
from manyhands.elastic.mortal import in_ranks

# %% [markdown]
# ## 1. Mend it
#
# The next cell contains a team's first training loop. The loop should compute what a single process would compute with a batch that consists of the batches of
# all four ranks. This process uses momentum 0.9 and learning rate 0.1, clips the averaged gradient to a norm of 2, and uses all batches. The ranks begin with
# the same weights. The loop is wrong, and it also sends too many messages.

# %%
def broken(model, batches, comm):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    optimizer.zero_grad()
    for batch in batches:
        model(batch).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        for weight in model.parameters():
            dist.all_reduce(weight.grad, group=comm)
        optimizer.step()

# %% [markdown]
# Write the loop without mistakes, and with **one** all-reduce of one tensor in each step. The check runs your loop on four ranks for some batches, trains a
# single process with the same batches, and compares the weights. The clinic examines a script in a similar way.
#
# *Difficulty ●●○, 15 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# Where does the clinic look? It looks at the rows, at the gradients before and after they are averaged, and at the learning rate. For more help, run
# `hint("20-mended")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="mended"
import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def mended(model, batches, comm):
    """Train on all batches to the weights that a single process computes, with one
    all-reduce in each step."""
    ### BEGIN SOLUTION
    weights = list(model.parameters())
    optimizer = torch.optim.SGD(weights, lr=0.1, momentum=0.9)
    for batch in batches:
        optimizer.zero_grad()
        model(batch).backward()
        slopes = parameters_to_vector([weight.grad for weight in weights])
        dist.all_reduce(slopes, op=dist.ReduceOp.AVG, group=comm)
        vector_to_parameters(slopes, [weight.grad for weight in weights])
        torch.nn.utils.clip_grad_norm_(weights, 2.0)
        optimizer.step()
    ### END SOLUTION

# %% tags=["check"] grade_id="mended-check" points=4
check.mended(mended)

# %% [markdown]
# ## 2. Price it
#
# On the challenge's clock, a message of n bytes takes (n + 64) / rate + delay. An all-reduce of n bytes among p ranks consists of 2 (p - 1) messages of n / p
# bytes, one after the other. An all-gather consists of p - 1 messages, each of which carries all n bytes that a rank contributes. `rate_mbit` is in Mbit/s, and
# `delay_ms` is in ms.
#
# An entry computes `steps` gradients, each of which takes `gradient_s` seconds, and nothing overlaps. The two kinds of entries differ in what they send:
#
# * `entry_s`: after each `every`-th gradient, the entry all-reduces `tensors`, one after the other. `tensors` is the list of their sizes in bytes. The
#   gradients that remain at the end are not sent.
# * `gathered_s`: after each gradient, the entry all-gathers one message of `n_bytes`.
#
# The check passes a correct `message_s`, whose only argument is the number of bytes, to both functions.
#
# *Difficulty ●○○, 10 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# How often does the entry send, how many messages does it send each time, and how many bytes does each message carry? For more help, run `hint("20-price")` in
# a separate cell.
# </details>

# %% tags=["solution"] grade_id="price"
def message_s(n_bytes: float, rate_mbit: float, delay_ms: float) -> float:
    """Return the seconds of one message."""
    ### BEGIN SOLUTION
    return (n_bytes + 64) / (rate_mbit * 1e6 / 8) + delay_ms / 1e3
    ### END SOLUTION


def entry_s(steps: int, every: int, tensors: list[int], ranks: int, gradient_s: float,
            message_s) -> float:
    """Return the seconds of an entry that all-reduces the tensors after each every-th
    gradient."""
    ### BEGIN SOLUTION
    sums_s = sum(2 * (ranks - 1) * message_s(n / ranks) for n in tensors)
    return steps * gradient_s + steps // every * sums_s
    ### END SOLUTION


def gathered_s(steps: int, n_bytes: int, ranks: int, gradient_s: float,
               message_s) -> float:
    """Return the seconds of an entry that all-gathers a message of n_bytes after each
    gradient."""
    ### BEGIN SOLUTION
    return steps * (gradient_s + (ranks - 1) * message_s(n_bytes))
    ### END SOLUTION

# %% tags=["check"] grade_id="price-check" points=4
check.price(message_s, entry_s, gathered_s)

# %% [markdown]
# What would you change first? The network has 22,026 weights, which take 88,104 bytes. The next cell uses your own functions to price several entries on links
# of 10 Mbit/s and 5 ms (not graded):

# %%
def on_slow_links(n_bytes):
    return message_s(n_bytes, 10, 5)

for words, every, tensors in (("four tensors", 1, [65536, 2048, 20480, 40]),
                              ("one tensor", 1, [88104]), ("of 16 bits", 1, [44052])):
    seconds = entry_s(160, every, tensors, 4, 0.01, on_slow_links)
    print(f"160 steps, {words:<14}{seconds:6.2f} s")
seconds = gathered_s(160, 880, 4, 0.01, on_slow_links)
print(f"160 steps, 880 gathered  {seconds:6.2f} s")

# %% [markdown]
# ## 3. A message a hundred times smaller
#
# Most of a gradient's numbers are small, so it is enough to send the large ones. Write two functions:
#
# * `pack` takes the `count` numbers of `kept` that are furthest from 0, and puts their places and their values into **one** tensor, with a total of 4 bytes for
#   each number that is sent. It subtracts what it sends from `kept`, in place. The rest stays in `kept`, and the next gradient is added to it
#   (*error feedback*). If a value is rounded, the part that is lost in rounding is not sent, so this part stays in `kept` as well.
# * `unpack` turns this tensor into a tensor of `size` numbers, which has the packed numbers at their places and 0 elsewhere. The two functions run on different
#   ranks, so everything that `unpack` needs must be in the tensor.
#
# You may round a value to 16 bits. There are up to 65,536 places.
#
# *Difficulty ●●○, 15 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# `tensor.view(dtype)` reads the same bits as a different type. For more help, run `hint("20-pack")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="pack"
def pack(kept: torch.Tensor, count: int) -> torch.Tensor:
    """Return the count numbers furthest from 0 and their places in one tensor, and
    subtract from kept what is sent."""
    ### BEGIN SOLUTION
    places = kept.abs().topk(count).indices
    values = kept[places].half()
    kept[places] -= values.float()  # what rounding takes away stays in kept
    return torch.stack([places.to(torch.int16), values.view(torch.int16)])
    ### END SOLUTION


def unpack(message: torch.Tensor, size: int) -> torch.Tensor:
    """Return a tensor of size numbers, with the packed ones at their old places."""
    ### BEGIN SOLUTION
    places, values = message
    dense = torch.zeros(size)
    dense[places.int() & 0xFFFF] = values.view(torch.float16).float()
    return dense
    ### END SOLUTION

# %% tags=["check"] grade_id="pack-check" points=4
check.pack(pack, unpack)

# %% [markdown]
# ## 4. Find the bug
#
# A team sends few numbers, as in exercise 3. Each rank calls the function below with its own gradient, while `weights` are the same on all ranks. `kept` is
# what the rank has not sent yet. The function runs without an error, and on a single rank its result is right.

# %%
def faulty_sparse_step(weights, gradient, kept, count, rate):
    world = dist.get_world_size()
    kept += gradient
    places = kept.abs().topk(count).indices
    values = kept[places]
    kept[places] = 0
    all_places = [torch.empty_like(places) for _ in range(world)]
    all_values = [torch.empty_like(values) for _ in range(world)]
    dist.all_gather(all_places, places)
    dist.all_gather(all_values, values)
    total = torch.zeros_like(weights)
    total[torch.cat(all_places)] += torch.cat(all_values)
    weights -= rate * total / world

# %% [markdown]
# The weights should reach a target. The gradient of each rank contains a little noise, which is different on each rank. `in_ranks` calls a function on several
# ranks, which are processes of this machine. With the faulty step, the weights approach the target more slowly the more ranks take part, although a mean over
# more ranks has less noise.

# %%
def distance(step, count):
    rank, target = dist.get_rank(), torch.linspace(-3, 3, 100)
    noise = torch.Generator().manual_seed(rank)
    weights, kept = torch.zeros(100), torch.zeros(100)
    for _ in range(40):
        gradient = weights - target + 0.1 * torch.randn(100, generator=noise)
        step(weights, gradient, kept, count, 0.1)
    return (weights - target).norm().item() / target.norm().item()


def show(step):
    for ranks in (1, 2, 4):
        ended = in_ranks(distance, step, 50, ranks=ranks)[0]
        print(f"{ranks} ranks:", ended.error or f"{ended.value:.2f} of the way is left")


show(faulty_sparse_step)

# %% [markdown]
# Write the step as it should be. The weights change by the mean over all ranks, and a rank that does not send a number for a place counts as 0 there. Send the
# values without rounding them.
#
# Then look at your step with `show(sparse_step)`. With the right step, the same fraction of the way to the target remains with 1, 2 and 4 ranks. If less
# remains with more ranks, the step is also wrong, because it is larger than the mean. The check compares `weights` and `kept` with the right values and does
# not count what is sent, so an all-reduce of a dense tensor is allowed here, although it would send more.
#
# *Difficulty ●●○, 8 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# Suppose that `count` is the number of all weights. What should a step be in this case, and what is it instead? For more help, run `hint("20-sparse")` in a
# separate cell.
# </details>

# %% tags=["solution"] grade_id="sparse"
def sparse_step(weights: torch.Tensor, gradient: torch.Tensor, kept: torch.Tensor,
                count: int, rate: float) -> None:
    """Change `weights` in place by the mean over the ranks of the `count` numbers that
    each rank sends, while `kept` keeps the others."""
    ### BEGIN SOLUTION
    world = dist.get_world_size()
    kept += gradient
    places = kept.abs().topk(count).indices
    values = kept[places]
    kept[places] = 0
    all_places = [torch.empty_like(places) for _ in range(world)]
    all_values = [torch.empty_like(values) for _ in range(world)]
    dist.all_gather(all_places, places)
    dist.all_gather(all_values, values)
    total = torch.zeros_like(weights)
    total.index_add_(0, torch.cat(all_places), torch.cat(all_values))
    weights -= rate * total / world
    ### END SOLUTION

# %% tags=["check"] grade_id="sparse-check" points=2
check.sparse(sparse_step)

# %% [markdown]
# ## 5. Your entry
#
# In the challenge *slow links*, four ranks train a network of 22,026 weights, and each rank has at most 400 batches of 32 samples. A gradient takes 10 ms.
# Reach an accuracy of **84 %** on the test samples, as fast as you can. The check runs your entry three times, each time on new data that you have not seen,
# over links of about 10 Mbit/s and 5 ms. All three runs must reach the target, and the median time counts. The baseline takes 35.5 s over links of 10 Mbit/s
# and 5 ms.
#
# | what your entry reaches | points |
# |---|---|
# | the target in all three runs, with the same weights on all ranks | 2 |
# | less time than the baseline | 1 |
# | half of the baseline's time, or less | 1 |
# | a fifth, or less | 2 |
# | a tenth, or less | 2 |
#
# You decide when `train` returns, so choose a number of steps that reaches the target on any data. Because some data are harder than others, this notebook asks
# for 84 %, whereas the grader, which draws different data, asks for 80 %. Your entry's cell cannot use what you have written above, so copy what you need into
# this cell.
#
# Run the cell with `try_out` first. This cell shows the time, the accuracy and the messages of a single run. The check performs three runs, which take several
# minutes on a slow machine.
#
# *Difficulty ●●●, 35 minutes, 8 points*
#
# <details><summary>Hint</summary>
#
# Price your entry before you run it. What may it send, and how often, if it may take only a tenth of 35.5 s? For more help, run `hint("20-entry")` in a
# separate cell.
# </details>

# %% tags=["solution"] grade_id="entry"
import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters

STEPS, RATE = 150, 0.3


def train(model, batches, comm):
    """Train, and leave the trained weights in model, the same on all ranks."""
    ### BEGIN SOLUTION
    optimizer = torch.optim.SGD(model.parameters(), RATE)
    start = parameters_to_vector(model.parameters()).detach()
    outer = torch.nn.Parameter(start.clone())
    outer_step = torch.optim.SGD([outer], 0.7, momentum=0.8, nesterov=True)
    for step, batch in zip(range(1, STEPS + 1), batches):
        optimizer.zero_grad()
        model(batch).backward()
        optimizer.step()
        if step % 15 == 0:  # average how far the ranks have moved alone
            way = outer.detach() - parameters_to_vector(model.parameters()).detach()
            dist.all_reduce(way, op=dist.ReduceOp.AVG, group=comm)
            outer.grad = way
            outer_step.step()
            vector_to_parameters(outer.detach().clone(), model.parameters())
    ### END SOLUTION

# %% [markdown]
# The next cell, which is not graded, runs your entry on public data. It shows the time, the accuracy, the messages, and what your ranks print. With `runs=5`,
# it uses the five public seeds, which are the same for everyone.

# %%
try_out(train, runs=1)

# %% tags=["check"] grade_id="entry-check" points=8
check.entry(train)

# %% [markdown]
# ## Where to go on
#
# * You can enter the hackathon itself. Run `manyhands hack init slow_links our_entry`, copy your cell into `our_entry/entry.py`, and run
#   `manyhands hack try our_entry`. The target is 85 % there, and the judge's rooms have no network and no files. `docs/HACKATHON.md` contains the rules and
#   three more challenges.
# * S. Stich et al. 2018, *Sparsified SGD with Memory*, [arXiv 1809.07599](https://arxiv.org/abs/1809.07599). S. Stich 2019, *Local SGD Converges Fast and
#   Communicates Little*, [arXiv 1805.09767](https://arxiv.org/abs/1805.09767).
# * A. Douillard et al. 2023, *DiLoCo: Distributed Low-Communication Training of Language Models*, [arXiv 2311.08105](https://arxiv.org/abs/2311.08105).
