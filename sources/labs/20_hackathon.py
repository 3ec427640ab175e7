# %% [markdown] unit={"minutes": 85, "ranks": 4, "framework": "torch", "title": "Hackathon"}
# # 20 Lab: an entry
#
# You mend a training, price it before you run it, write a message that is a hundred times smaller, and hand in an entry: the faster it is on slow links, the more points. At the end you can
#
# * show that a training of N ranks is that of one process, and find what keeps it from that;
# * say what a training takes on given links, before it has run;
# * send a small part of a gradient, and lose nothing;
# * find out why a training run that sends few numbers learns too slowly;
# * choose between fewer bytes and fewer messages, by the clock.
#
# **Before:** the tutorial of this unit; units 05 and 06. **Minutes:** 85. **Ranks:** 4, which the judge starts. **Points:** 22.
#
# Entries run as in the hackathon: on the judge's ranks, on its clock, in a process beside this kernel. An entry is **one cell**: what it uses is imported or defined in it. The clock is counted,
# so it is the same on a fast and on a slow machine, with GPUs or without. The ranks have no rooms here: this notebook is your own, and the grader has a room for all of it.

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
# A team's first training. It should be that of one process whose batch is the batches of all four ranks: momentum 0.9, rate 0.1, the averaged gradient clipped to a length of 2, all batches used. The ranks
# begin with the same weights. The training sends too many messages, too.

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
# Write it right: no mistake, and **one** all-reduce of one tensor in each step. The check runs it on four ranks for some batches, and one process with the same batches; then it compares the weights. That is what the clinic does with a script.
#
# *Difficulty ●●○, 15 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# Where does the clinic look? At the rows, the gradients before and after the average, the rate. For more, run `hint("20-mended")` in a cell of its own.
# </details>

# %% tags=["solution"] grade_id="mended"
import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def mended(model, batches, comm):
    """Train on all batches: the weights of one process, with one all-reduce a step."""
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
# On the challenge's clock a message of n bytes takes (n + 64) / rate + delay. An all-reduce of n bytes among p ranks is 2 (p - 1) messages of n / p bytes, one after the other; an all-gather p - 1 messages of all the n bytes
# that a rank gives. `rate_mbit` is in Mbit/s, `delay_ms` in ms.
#
# An entry takes `steps` gradients, of `gradient_s` each, and nothing overlaps. `entry_s`: after each `every`-th gradient, and not after the rest, it all-reduces `tensors`, a list of bytes, one after the other. `gathered_s`: after each gradient it
# all-gathers one message of `n_bytes`. Both get a right `message_s`, which takes the bytes alone.
#
# *Difficulty ●○○, 10 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# How often does it send, how many messages is that, and what is in each? For more, `hint("20-price")`.
# </details>

# %% tags=["solution"] grade_id="price"
def message_s(n_bytes: float, rate_mbit: float, delay_ms: float) -> float:
    """Seconds of one message."""
    ### BEGIN SOLUTION
    return (n_bytes + 64) / (rate_mbit * 1e6 / 8) + delay_ms / 1e3
    ### END SOLUTION


def entry_s(steps: int, every: int, tensors: list[int], ranks: int, gradient_s: float,
            message_s) -> float:
    """Seconds of an entry that all-reduces the tensors after each every-th gradient."""
    ### BEGIN SOLUTION
    sums_s = sum(2 * (ranks - 1) * message_s(n / ranks) for n in tensors)
    return steps * gradient_s + steps // every * sums_s
    ### END SOLUTION


def gathered_s(steps: int, n_bytes: int, ranks: int, gradient_s: float,
               message_s) -> float:
    """Seconds of an entry that all-gathers a message of n_bytes after each gradient."""
    ### BEGIN SOLUTION
    return steps * (gradient_s + (ranks - 1) * message_s(n_bytes))
    ### END SOLUTION

# %% tags=["check"] grade_id="price-check" points=4
check.price(message_s, entry_s, gathered_s)

# %% [markdown]
# What would you change first? The network has 22,026 weights, 88,104 bytes; on 10 Mbit/s and 5 ms, by your own functions (not graded):

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
# Most of a gradient's numbers are small. `pack` takes the `count` numbers of `kept` that are furthest from 0, puts their places and their values into **one** tensor of 4 bytes for each number, and takes
# what it sends out of `kept`, in place: the rest stays there, and the next gradient is added to it (*error feedback*). What rounding takes from a value is not sent, so it stays there too.
# The two functions run on different ranks: all that `unpack` needs is in the tensor. `unpack` makes of that tensor one of `size` numbers, in which those are, and 0 elsewhere. A
# value may be rounded to 16 bits. There are up to 65,536 places.
#
# *Difficulty ●●○, 15 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# `tensor.view(dtype)` reads the same bits as another type. For more, `hint("20-pack")`.
# </details>

# %% tags=["solution"] grade_id="pack"
def pack(kept: torch.Tensor, count: int) -> torch.Tensor:
    """The count largest numbers and their places, in one tensor; they leave kept."""
    ### BEGIN SOLUTION
    places = kept.abs().topk(count).indices
    values = kept[places].half()
    kept[places] -= values.float()  # what rounding has taken stays
    return torch.stack([places.to(torch.int16), values.view(torch.int16)])
    ### END SOLUTION


def unpack(message: torch.Tensor, size: int) -> torch.Tensor:
    """A tensor of size numbers, with those that were packed where they were."""
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
# A team sends few numbers, as in exercise 3. Each rank calls this function with its own gradient, and `weights` are the same on all ranks. `kept` is what the rank has not sent yet. The function
# runs without an error, and on a single rank it is right.

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
# The weights should reach a target, and the gradient of each rank contains a little noise, which is different on each rank. `in_ranks` calls a function on some ranks that are processes of this machine. The more ranks take
# part, the slower the weights approach the target, although a mean over more ranks has less noise.

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
# Write the step as it should be. The weights change by the mean over all ranks, and a rank that does not send a number for a place counts as 0 there. Send the values without rounding them. Then look at it with `show(sparse_step)`: the right step leaves the same part of the way with 1, 2 and 4 ranks. If less is left with more ranks, the step is wrong as well, because it is longer than the mean. The check compares `weights` and `kept` with the right ones and does not count what is sent, so an all-reduce of a dense tensor is allowed here, although it would send more.
#
# *Difficulty ●●○, 8 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# If `count` is the number of all weights, what should a step be, and what is it? For more, run `hint("20-sparse")`.
# </details>

# %% tags=["solution"] grade_id="sparse"
def sparse_step(weights: torch.Tensor, gradient: torch.Tensor, kept: torch.Tensor,
                count: int, rate: float) -> None:
    """Change `weights`, in place, by the mean over the ranks of the `count` numbers that
    each of them sends; `kept` keeps the others."""
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
# The challenge *slow links*: 22,026 weights, four ranks, 400 batches of 32 samples each at most. A gradient takes 10 ms. Reach **84 %** on the test's samples, as fast as you can. The check runs your entry three times, each time on new
# data that nobody has seen, over links of about 10 Mbit/s and 5 ms: all three must reach the target, and the median counts. The baseline takes 35.5 s over 10 Mbit/s and 5 ms.
#
# | | points |
# |---|---|
# | right: the target in all three runs, the same weights on all ranks | 2 |
# | faster than the baseline | 1 |
# | half of its time, or less | 1 |
# | a fifth, or less | 2 |
# | a tenth, or less | 2 |
#
# `train` returns when you say so: choose the number of steps so that the target is reached on any data. Some data are harder than others: so this notebook asks for 84 %, and the grader, who draws other data, for 80 %. What you have written above is not known in your entry's cell: copy it there.
#
# Run the cell with `try_out` first: it shows the time, the accuracy and the messages of a single run. The check below it makes three runs, and takes several minutes on a slow machine.
#
# *Difficulty ●●●, 35 minutes, 8 points*
#
# <details><summary>Hint</summary>
#
# Price first, then run. What may an entry send, and how often, if it is to take a tenth of 35.5 s? For more, `hint("20-entry")`.
# </details>

# %% tags=["solution"] grade_id="entry"
import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters

STEPS, RATE = 150, 0.3


def train(model, batches, comm):
    """Leave the trained weights in model, the same on all ranks."""
    ### BEGIN SOLUTION
    optimizer = torch.optim.SGD(model.parameters(), RATE)
    start = parameters_to_vector(model.parameters()).detach()
    outer = torch.nn.Parameter(start.clone())
    outer_step = torch.optim.SGD([outer], 0.7, momentum=0.8, nesterov=True)
    for step, batch in zip(range(1, STEPS + 1), batches):
        optimizer.zero_grad()
        model(batch).backward()
        optimizer.step()
        if step % 15 == 0:  # alone till here: now the mean of the ways that all have gone
            way = outer.detach() - parameters_to_vector(model.parameters()).detach()
            dist.all_reduce(way, op=dist.ReduceOp.AVG, group=comm)
            outer.grad = way
            outer_step.step()
            vector_to_parameters(outer.detach().clone(), model.parameters())
    ### END SOLUTION

# %% [markdown]
# A run on public data, not graded: time, accuracy, messages, and what your ranks print. `runs=5` are those that everybody has.

# %%
try_out(train, runs=1)

# %% tags=["check"] grade_id="entry-check" points=8
check.entry(train)

# %% [markdown]
# ## Where to go on
#
# * The hackathon itself: `manyhands hack init slow_links our_entry`, your cell into `our_entry/entry.py`, `manyhands hack try our_entry`. There the target is 85 %, and the judge has rooms without network and files. `docs/HACKATHON.md` has the rules, and three more challenges.
# * S. Stich et al. 2018, *Sparsified SGD with Memory*, [arXiv 1809.07599](https://arxiv.org/abs/1809.07599). S. Stich 2019, *Local SGD Converges Fast and Communicates Little*, [arXiv 1805.09767](https://arxiv.org/abs/1805.09767).
# * A. Douillard et al. 2023, *DiLoCo: Distributed Low-Communication Training of Language Models*, [arXiv 2311.08105](https://arxiv.org/abs/2311.08105).
