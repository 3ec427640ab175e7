# %% [markdown] unit={"minutes": 40, "ranks": 4, "framework": "torch", "title": "Data parallelism by hand"}
# # 01 Data parallelism by hand
#
# Four ranks train one network, each on a part of every batch, and end with the same weights as a single process. At the end, you can
#
# * explain why an objective can be split by rows, and what each rank must compute.
# * explain when a mean of means is wrong, and how often weight decay counts.
# * handle uneven shards, tied weights and frozen weights.
# * explain to how many digits weights can be "the same", and why.
# * name two kinds of layers that make the weights differ.
# * predict how many bytes a step sends, and decide when data parallelism is worth that cost.
#
# **Before:** you can train a model in PyTorch. **Minutes:** 40 · **Ranks:** 4. A map of all ways to train in parallel, and of the units that teach them, is at
# the end.

# %% [markdown]
# ## Four ranks
#
# This kernel starts the ranks, and cells that begin with `%%px` run on all four of them. The option `--setup` marks the cells that are run again if the cluster
# must be healed.

# %% tags=["setup"]
from manyhands import Cluster, predict, settle, track

cluster = Cluster(nodes=1, ranks_per_node=4, framework="torch")

# %% tags=["setup"]
# %%px --setup
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy, dropout

from manyhands import comm, links, track
from manyhands.data import shard
from manyhands.ledger import Ledger

if not dist.is_initialized():  # so that this cell can be run twice
    dist.init_process_group(os.environ["MANYHANDS_BACKEND"])
device = torch.device(os.environ["MANYHANDS_DEVICE"])
rank, world_size = dist.get_rank(), dist.get_world_size()

# %% [markdown]
# `dist.get_rank()` returns a rank's number in the world. If only some ranks form a *group*, `dist.get_rank(group)` returns a rank's number in the group,
# counted from 0. Here, the group is the world, which is not always the case in the lab.
#
# ## An objective is a sum
#
# Training minimises an objective, which adds a penalty on the weights to the losses of all rows $i$.
#
# $$ J(w) = \lambda R(w) + \sum_i \ell_i(w), \qquad \nabla J(w) = \lambda \nabla R(w) + \sum_i \nabla \ell_i(w) $$
#
# Since the gradient of a sum is the sum of the gradients, the rows can be distributed over ranks. Each rank computes the gradient for its own **shard**, and an
# **all-reduce** gives every rank the sum. We try this with ten rows on four ranks, and with whole numbers, so that the results must be identical down to the
# last bit.

# %%
# %%px
torch.manual_seed(0)  # the same numbers on every rank
a, b = (torch.randint(-3, 4, (10, 3)).double().to(device),
        torch.randint(-3, 4, (10,)).double().to(device))
w = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64, device=device, requires_grad=True)

def gradient(rows):
    return torch.autograd.grad((a[rows] @ w - b[rows]).square().sum(), w)[0]

mine = shard(10, rank, world_size)
total = gradient(mine)
print(f"rows {mine.start} to {mine.stop - 1}: {total.tolist()}", end="; ")
dist.all_reduce(total)  # in place, so it is now the sum over all ranks
print(f"sum over ranks {total.tolist()}, one process {gradient(slice(10)).tolist()}")

# %% [markdown]
# ## The task of this track
#
# Most units from 01 to 10 train the same small network on handwritten digits, each with a different system. Training always begins with the same weights and
# takes 60 steps in `float64`, each with a batch of 250 rows. The network and the training schedule are defined in `manyhands.track`. The objective contains the
# **mean** of the losses, as is usual today:
#
# $$ J(w) = \frac{\lambda}{2} \lvert w \rvert^2 + \frac{1}{250} \sum_i \ell_i(w) $$
#
# The table at the end of each unit says whether a system ends with the same weights as a single process. The reference is `track.one_process()`, a
# training run without any framework.

# %% tags=["setup"]
# %%px --setup
x, y = (torch.from_numpy(array).to(device) for array in track.data())
reference, serial = track.one_process()  # weights at the end, objective of each step

def update(model):
    with torch.no_grad():
        for parameter in model.parameters():
            # the gradient of the penalty is decay * w
            parameter -= track.RATE * (parameter.grad + track.DECAY * parameter)
            parameter.grad = None

def objective(model, x, y):
    return (cross_entropy(model(x), y) + track.DECAY / 2
            * sum(p.square().sum() for p in model.parameters()))

# %% [markdown]
# The training loop is the same for one process and for many. Only three things differ, namely which rows of the batch a rank takes, which loss it calls
# `backward` on, and what happens after the backward pass.

# %% tags=["setup"]
# %%px --setup
def train(mine, loss_of, after_backward):
    """Return the trained model, and the whole batch's objective before each step."""
    model, curve = track.network(device), []
    for step in range(track.STEPS):
        batch = track.rows(step)
        with torch.no_grad():
            # recorded for the curve, not used in training
            curve.append(objective(model, x[batch], y[batch]).item())
        loss_of(model(x[batch][mine]), y[batch][mine]).backward()
        after_backward(model)
        update(model)
    return model, curve

# %% tags=["setup"]
# %%px --setup
curves, far = {}, {}  # the results of each version

def keep(name, model, curve):
    curves[name], far[name] = curve, track.distance(model.parameters(), reference)

# %%
# %%px
keep("one process", *train(slice(250), cross_entropy, lambda model: None))
print(f"objective {curves['one process'][0]:.4f} to {curves['one process'][-1]:.4f}")

# %% [markdown]
# ## By hand
#
# Each rank takes 62 or 63 of the 250 rows. Its loss is its **part of the mean**, which is the sum of its own rows' losses divided by 250. The gradients of the
# four ranks then add up to the gradient of the mean. The penalty counts once, because `update` adds the penalty's gradient after the all-reduce, in the same
# way on every rank.

# %% tags=["setup"]
# %%px --setup
def part_of_the_mean(scores, labels):
    return cross_entropy(scores, labels, reduction="sum") / track.ROWS

def sum_gradients(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)

# %%
# %%px
mine = shard(track.ROWS, rank, world_size)
keep("by hand: sum of even shards", *train(mine, part_of_the_mean, sum_gradients))
curve = curves["by hand: sum of even shards"]
print(f"rows {mine.start} to {mine.stop - 1}; objective {curve[0]:.4f} to {curve[-1]:.4f}")

# %% [markdown]
# Each rank's gradients come from its own 62 or 63 rows, and no row was sent. (The objective of all 250 rows is computed only for the curve.) All four ranks
# hold the whole network, start from the same weights, and take the same steps.
#
# ## The same weights, to how many digits?
#
# **Predict.** Are the weights of the four ranks identical to each other, down to the last bit? Are they identical to a single process's weights?

# %%
# Run this cell to make your prediction.
predict("01-digits", "To the last bit, the weights of the four ranks are equal ...",
        ["to each other and to one process's", "to each other only", "to none at all"])

# %%
# %%px --ranks 0
tenth, third = (torch.tensor(0.1, dtype=torch.float64),
                torch.tensor(0.3, dtype=torch.float64))
print("(0.1 + 0.3) + 0.6 == 0.1 + (0.3 + 0.6):",
      ((tenth + third) + 0.6 == tenth + (third + 0.6)).item())
for dtype in (torch.float64, torch.float32):
    print(f"{track.STEPS} steps of sums of {track.ROWS}: "
          f"{track.STEPS * track.ROWS ** 0.5 * torch.finfo(dtype).eps:.1e} in {dtype}")
ones = torch.zeros((), dtype=torch.bfloat16)
for _ in range(1000):
    ones += 1
print(f"1000 times 1, added up one by one in torch.bfloat16: {ones.item():.0f}")

# %%
# %%px
def spread(model):
    """Return the largest difference between this rank's weights and rank 0's."""
    own = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    first = own.clone()
    dist.broadcast(first, src=0)
    return (own - first).abs().max().item()

model, _ = train(mine, part_of_the_mean, sum_gradients)
print(f"equal to rank 0: {spread(model) == 0}; equal to one process, to 1e-12: "
      f"{track.distance(model.parameters(), reference) < 1e-12}")

# %%
# Run this cell to compare your prediction with the outcome.
def equal():
    if any(cluster.pull("spread(model)")):
        return "to none at all"
    far = max(cluster.pull("track.distance(model.parameters(), reference)"))
    return "to each other only" if far else "to each other and to one process's"

settle("01-digits", equal)

# %% [markdown]
# <details><summary>Why?</summary>
#
# A computer rounds after each addition, so the result depends on the order of the additions. The all-reduce gives the same sum to all ranks, so their weights
# stay identical down to the last bit. A single process, however, adds up the 250 rows in a different order from four ranks, each of which first adds up its own
# rows.
#
# How far apart may the results be? If a sum of 250 terms is computed in a different order, it changes by about $\sqrt{250}$ rounding errors, and these
# changes add up over 60 steps. The second and third lines of the output show this estimate for two dtypes. It is the reason why we ask for 1e-12 in `float64`
# and for 2e-4 in `float32`. A larger difference means that there is a bug, because rounding cannot explain it. (The estimate is only a rule of thumb, since
# rounding errors can grow in a run with a larger learning rate.)
#
# An all-reduce adds in the dtype of its tensors. In `bfloat16`, which keeps eight significant bits, 256 + 1 is rounded back to 256, so a sum over many ranks
# stops growing. Therefore, gradients are often summed in `float32` even if the network computes in 16 bits (`reduce_dtype` in unit 16).
# </details>
#
# ## Sum or mean?
#
# By default, `cross_entropy` divides by the number of rows that it is given, and a rank gives it only the rank's own rows.
#
# **Predict.** Each rank calls `backward` on the mean over its own rows, and the gradients are added up. Compare a first step that uses this sum with a first
# step that uses the right gradient. For which optimiser do their lengths differ by more than a tenth?

# %%
# Run this cell to make your prediction.
predict("01-optimizer",
        "The gradients of four means are summed. Which first step has a wrong length?",
        ["SGD's only", "Adam's only", "SGD's and Adam's", "neither's"])

# %%
# %%px
def gradient_of(loss_of, mine):
    """Return the gradients of the first step, summed over ranks, as one vector."""
    model = track.network(device)
    loss_of(model(x[:250][mine]), y[:250][mine]).backward()
    sum_gradients(model)
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])

def step_length(optimizer, gradient):
    """Return how far a first step with this gradient moves the weights."""
    w = nn.Parameter(torch.zeros_like(gradient))
    w.grad = gradient
    optimizer([w], lr=0.1).step()
    return w.detach().norm().item()

right, of_means = gradient_of(part_of_the_mean, mine), gradient_of(cross_entropy, mine)
times = {one.__name__: step_length(one, of_means) / step_length(one, right)
         for one in (torch.optim.SGD, torch.optim.Adam)}
if rank == 0:
    print(f"gradient {(of_means.norm() / right.norm()).item():.1f} times as large; step of",
          ", of ".join(f"{name} {longer:.1f} times" for name, longer in times.items()))

# %%
# Run this cell to compare your prediction with the outcome.
def shown_by():
    differ = {name for name, longer in cluster.pull("times")[0].items()
              if abs(longer - 1) > 0.1}
    return {0: "neither's", 2: "SGD's and Adam's"}.get(len(differ),
                                                      f"{min(differ, default='')}'s only")

settle("01-optimizer", shown_by)

# %% [markdown]
# <details><summary>Why?</summary>
#
# Each of the four means is about as large as the mean of all rows, so their sum is about four times too large. With plain gradient descent, this has the same
# effect as a learning rate that is four times too large, and the loss curve shows it. Adam divides each gradient by the usual size of that gradient, so the
# steps look right, and the mistake stays hidden. Nevertheless, the mistake has an effect, because the balance with the penalty has shifted. In the gradient,
# the penalty counts only a quarter as much as it should. Moreover, clipping by the norm sets in too early.
# </details>
#
# Therefore, we divide the sum by the number of ranks, which gives the *mean of means*. Is this gradient correct?
#
# ## Uneven shards
#
# If a device is faster than the others, give it more rows. Here, rank 0 takes 200 of the 250 rows, rank 1 takes 30, and ranks 2 and 3 take 10 each.
#
# **Predict.** In the first version, every rank sums its losses and divides by 250. In the second, every rank takes the mean over its own rows, and these means
# are averaged. Which of the two still ends with the same weights as a single process?

# %%
# Run this cell to make your prediction.
predict("01-uneven",
        "With uneven shards, which version ends with the weights of a single process?",
        ["the sum, by all 250 rows", "the mean of the ranks' means", "both", "neither"])

# %%
# %%px
sizes = [200, 30, 10, 10]
mine = slice(sum(sizes[:rank]), sum(sizes[:rank + 1]))

def mean_of_means(scores, labels):
    return cross_entropy(scores, labels) / world_size

keep("by hand: sum of uneven shards", *train(mine, part_of_the_mean, sum_gradients))
keep("by hand: mean of means, uneven shards", *train(mine, mean_of_means, sum_gradients))
print(f"a row counts {200 / 10 if rank > 1 else 200 / sizes[rank]:.1f} times as much as "
      f"one of rank 0's in the mean of means")

# %%
print(track.table("01", cluster.pull("far")[0]))

# %%
# Run this cell to compare your prediction with the outcome.
def ends():
    far = cluster.pull("far")[0]
    summed = far["by hand: sum of uneven shards"] < 1e-12
    averaged = far["by hand: mean of means, uneven shards"] < 1e-12
    return {(True, True): "both", (True, False): "the sum, by all 250 rows",
            (False, True): "the mean of the ranks' means", (False, False): "neither",
            }[summed, averaged]

settle("01-uneven", ends)

# %% [markdown]
# This table grows from unit to unit.

# %%
from manyhands.plots.curves import WORDS, coinciding, gap

curves, serial = cluster.pull("curves")[0], cluster.pull("serial")[0]
for name, curve in curves.items():
    print(f"{name:<38} last objective {curve[-1]:.4f}, largest difference below 1e-12: "
          f"{gap(curve, serial) < 1e-12}")

# %% tags=["measured"]
names = {"even shards": "by hand: sum of even shards",
         "uneven, sums": "by hand: sum of uneven shards",
         "uneven, mean of means": "by hand: mean of means, uneven shards"}
shown = {short: curves[name] for short, name in names.items()}
print("largest difference:", ", ".join(f"{name} {gap(curve, serial):.0e}"
                                       for name, curve in shown.items()))
coinciding(("one process", serial), shown, tolerance=1e-12,
           words={**WORDS, "loss": "objective"},
           title="objective of one process and of three ways to share its rows")

# %% [markdown]
# <details><summary>How to read it</summary>
#
# The upper panel shows the objective, step by step. Two curves follow the wide pale line of the single process, while the dotted curve leaves it. The lower
# panel shows the distance from the single process, and each of its grid lines marks ten thousand times the distance of the line below. The curves of the two
# sums differ from the single process only in the last bits, for all 60 steps. The mean of means, however, is wrong from the first step, because it minimises a
# different objective, in which the rows of small shards count more. Nevertheless, the loss still falls, no call raises an error, and no rank differs from
# another.
# </details>
#
# With equal shards, the mean of means is right. However, 250 rows on four ranks do not make equal shards, and neither does the last batch of most epochs.
#
# ## Equal shards, and still wrong
#
# A mean is not always taken over the rows. With `ignore_index`, which is used for the padding of sequences, `cross_entropy` divides by the number of labels
# that are not ignored, and with class weights, it divides by the sum of the labels' weights.
#
# **Predict.** There are four equal shards of 62 rows, but half of rank 0's labels are padding. Is the mean of means right?

# %%
# Run this cell to make your prediction.
predict("01-padding",
        "With four equal shards, one of them padded, is the mean of means right?",
        ["yes", "no"])

# %%
# %%px
labels, mine = y[:248].clone(), shard(248, rank, world_size)
labels[:62:2] = -100  # cross_entropy ignores this label
scores = model(x[:248])  # the model that was trained above
mean = cross_entropy(scores[mine], labels[mine]).detach() / world_size
loss, count = (cross_entropy(scores[mine], labels[mine], reduction="sum").detach(),
               (labels[mine] != -100).sum())
for one in (mean, loss, count):
    dist.all_reduce(one)
if rank == 0:
    print(f"{count} labels: one process {cross_entropy(scores, labels):.4f}, sum / count "
          f"{loss / count:.4f}, mean of means {mean:.4f}")

# %%
# Run this cell to compare your prediction with the outcome.
RIGHT = "abs(mean - cross_entropy(scores, labels)).item() < 1e-4"
settle("01-padding", lambda: cluster.pull(RIGHT)[0])

# %% [markdown]
# The mean of means is wrong, because the ranks' counts of labels differ. Instead, each rank adds up its losses, one more number is all-reduced (the count of
# labels or the sum of their weights), and all ranks divide by the total once. For a language model, this total is the number of tokens.
#
# The four shards could just as well be four micro-batches whose gradients a single rank *accumulates*, since the arithmetic is the same. Dividing the loss of
# each micro-batch by its number of tokens, and the sum by four, was the default of several training libraries until 2024, when it was found to give sequences
# in short micro-batches too much weight ([transformers 34191](https://github.com/huggingface/transformers/pull/34191)). The division therefore needs the count
# of *all* tokens of the step, over all micro-batches and all ranks. Unit 06 divides in this way with DDP.
#
# ## Weight decay counts once
#
# **Predict.** Suppose that the penalty is in the loss, as in a single process, so that each rank calls `backward` on `part_of_the_mean + decay / 2 * |w|^2`.
# How many times does the penalty count after the gradients have been added up?

# %%
# Run this cell to make your prediction.
predict("01-decay",
        "If the penalty is in the loss of each of four ranks, how often does it count?",
        unit="times", within=0.01)

# %%
# %%px
def decay_in_sum(share):
    """Return how often the penalty is in the sum of the ranks' gradients, if each takes
    `share` of it."""
    model = track.network(device)
    (share * sum(p.square().sum() for p in model.parameters()) / 2).backward()
    sum_gradients(model)
    return (model[0].weight.grad / model[0].weight).mean().item()

whole, quarter = decay_in_sum(1), decay_in_sum(1 / world_size)
if rank == 0:
    print(f"the whole of it on each rank: {whole:.1f} times; a quarter on each: "
          f"{quarter:.1f} times")

# %%
# Run this cell to compare your prediction with the outcome.
settle("01-decay", lambda: cluster.pull("whole")[0])

# %% [markdown]
# Losses belong to rows, and rows belong to ranks, but the penalty belongs to no row. Therefore, add its gradient after the all-reduce (as an optimiser's
# `weight_decay` does), or give each rank an equal share of the penalty.
#
# **Clipping** by the norm of the gradient belongs after the all-reduce, too. If each rank clips its part of the gradient by the norm of that part, the sum of
# the clipped parts has a different direction. After the all-reduce, however, all ranks have the same gradient, compute the same norm, and need no further
# message.
#
# ## Tied and frozen weights
#
# Two layers can share one weight, which is then one tensor with two names. A weight can also be frozen, so that it has no gradient.

# %%
# %%px
model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3)).double().to(device)
model[2].weight = model[0].weight   # tied
model[0].bias.requires_grad_(False)  # frozen
model(a).square().sum().backward()
if rank == 0:
    print("state_dict:  ", list(model.state_dict()))
    print("parameters():", [name for name, _ in model.named_parameters()],
          "gradient of 0.bias:", model[0].bias.grad)

# %% [markdown]
# **Predict.** A loop over the *names* all-reduces the gradient of the tied weight under both names. All ranks have the same rows here, so the gradient should
# grow by a factor of 4. By what factor does it grow?

# %%
# Run this cell to make your prediction.
predict("01-tied",
        "By what factor does a tied gradient grow if it is all-reduced twice on 4 ranks?",
        unit="times", within=0.01)

# %%
# %%px
once = model[0].weight.grad.clone()
for name in ("0.weight", "2.weight"):
    dist.all_reduce(model.get_parameter(name).grad)
if rank == 0:
    print(f"{(model[0].weight.grad / once).mean().item():.0f} times its own")

# %%
# Run this cell to compare your prediction with the outcome.
TIMES = "(model[0].weight.grad / once).mean().item()"
settle("01-tied", lambda: cluster.pull(TIMES)[0])

# %% [markdown]
# <details><summary>Why 16?</summary>
#
# Both names refer to the same tensor. The first all-reduce multiplies the gradient by 4, and the second adds up four tensors that are sums already.
# `parameters()`, however, lists a tied weight only once.
#
# A frozen weight has no gradient to send, so skip it on all ranks. A parameter that a rank did not *use* has no gradient either, but only on that rank, which
# must send zeros. All-reduces are matched by their order, not by name. If a rank skips an all-reduce, its next gradient is added to a different gradient
# of the other ranks (silently, if the sizes agree), and in the end the other ranks wait in vain. One rule covers both cases: all ranks send the gradients of
# all parameters that require a gradient, in the same order.
# </details>
#
# ## Where the equality ends: batch norm
#
# Everything so far assumes that the loss of a row depends on that row alone. In training, **batch norm** breaks this assumption, because it subtracts from each
# row the mean of all rows that it sees, and divides by their standard deviation. Here, each rank's batch norm sees only a shard.

# %%
# %%px
c = comm.create_communicator(os.environ["MANYHANDS_BACKEND"], timeout_s=60)
rows, mine = x[:track.ROWS], shard(track.ROWS, rank, world_size)
for name, norm in {"nn.BatchNorm1d": nn.BatchNorm1d(64),
                   "links.MultiNodeBatchNorm": links.MultiNodeBatchNorm(64, c)}.items():
    here, alone, same = norm.double().to(device), nn.BatchNorm1d(64).double().to(device), []
    for mode in (True, False):  # training, then evaluation
        here.train(mode), alone.train(mode)
        same.append(torch.allclose(here(rows[mine]), alone(rows)[mine], rtol=0, atol=1e-9))
    print(f"{name:<24} as one process in training: {same[0]}, in evaluation: {same[1]}")

# %% [markdown]
# Evaluation uses the statistics that training has kept, so its results differ as well. A batch norm that exchanges counts, means and variances between the
# ranks has the statistics of the whole batch (PyTorch's `nn.SyncBatchNorm` does so on GPUs), but each such layer costs one collective in the forward pass and
# one in the backward pass.
#
# <details><summary>Why ranks may keep their own statistics</summary>
#
# Often, each rank uses the statistics of its own rows on purpose. The number of rows *per rank* is then a part of the model, and Goyal et al. (2017) keep it at
# 32, however many ranks there are. Since the statistics for evaluation also differ between ranks, send rank 0's statistics to all ranks before you compare
# or save models.
# </details>
#
# ## Where the equality ends: dropout
#
# **Dropout** draws random numbers for every row. In the next cell, there are eight rows, two for each rank, and rank 3 compares its mask with the mask that a
# single process draws for the same rows.

# %%
# %%px --ranks 3
def mask(seed, rows):
    torch.manual_seed(seed)
    return dropout(torch.ones(rows, 16), 0.5) > 0

mine_of_8 = shard(8, rank, world_size)
one = mask(0, rows=8)
print("all ranks with the same seed:   same as one process:",
      torch.equal(mask(0, rows=2), one[mine_of_8]))
print("each rank with a seed of its own:                   ",
      torch.equal(mask(rank, rows=2), one[mine_of_8]))
print("drawn for all 8 rows, and cut:                      ",
      torch.equal(mask(0, rows=8)[mine_of_8], one[mine_of_8]))

# %% [markdown]
# With the same seed, all ranks draw the *same* mask for different rows, so the same noise is used four times. Give each rank its own seed for dropout, but only
# **after** the model has been built, because the initial weights must be equal on all ranks. Training is then as good as in a single process, but not equal to
# it, just as two single-process runs with different seeds differ. To test for equality, turn dropout off, or draw the masks of all rows on each rank.
#
# <details><summary>The random numbers of data augmentation</summary>
#
# The random numbers of *data augmentation* need the same care. PyTorch's `DataLoader` draws a number from its rank's generator, and seeds each worker with this
# number plus the worker's number. If all ranks have the same seed, worker 0 of each rank therefore augments its images in the same way.
# </details>
#
# Therefore, first check a new system without dropout, augmentation and batch norm. If a difference appears after you have added them, its cause is known.
#
# ## What it costs
#
# A ring all-reduce of $m$ numbers moves $2 (p - 1) m$ numbers between $p$ ranks. Each rank sends $2 (p - 1) / p$ times the size of its gradients, which is a
# factor of 1.5 on four ranks and of nearly 2 on many ranks (unit 04). This amount depends on the model, and not on the number of rows. The ledger sees which
# tensors are all-reduced and counts the bytes of a ring for each, but it does not look into the library. So it shows only that each gradient is sent once.

# %%
# %%px
model = track.network(device)
cross_entropy(model(x[:250]), y[:250]).backward()
with Ledger() as ledger:
    sum_gradients(model)
sent = torch.tensor(float(ledger.bytes_sent), device=device)
dist.all_reduce(sent)
numbers = sum(parameter.numel() for parameter in model.parameters())
if rank == 0:
    print(f"{numbers} numbers of 8 bytes: {sent.item():.0f} bytes from all ranks together, "
          f"formula {2 * (world_size - 1) * numbers * 8}")

# %% [markdown]
# Now we time a step on your machine.

# %% tags=["measured"]
# %%px
import time

def median_ms(mine, after_backward):
    model, taken = track.network(device), []
    for _ in range(30):
        dist.barrier()
        start = time.perf_counter()
        cross_entropy(model(x[:1000][mine]), y[:1000][mine]).backward()
        after_backward(model)
        if device.type == "cuda":
            torch.cuda.synchronize()  # until here, work was only enqueued on the GPU
        taken.append((time.perf_counter() - start) * 1e3)
    return sorted(taken)[15]

# %% tags=["measured"]
# %%px
nothing, quarter = (lambda model: None), shard(1000, rank, world_size)
whole_ms, quarter_ms, together_ms = (median_ms(slice(1000), nothing),
                                     median_ms(quarter, nothing),
                                     median_ms(quarter, sum_gradients))
row_ms, sum_ms = (whole_ms - quarter_ms) / 750, together_ms - quarter_ms
if rank == 0:
    print(f"1000 rows: {whole_ms:.2f} ms; a quarter of them: {quarter_ms:.2f} ms; and the "
          f"sum of all gradients: {together_ms:.2f} ms")
    print(f"a row {row_ms:.4f} ms, the sum {sum_ms:.2f} ms; break-even at "
          f"{sum_ms / (0.75 * row_ms):.0f} rows")

# %% [markdown]
# **The break-even.** If a row takes time $c$ and summing the gradients takes time $s$, then $n$ rows take $c n$ on one device and $c n / p + s$ on
# $p$ devices. Therefore, sharing the rows begins to pay off at $n = s / \big(c (1 - 1/p)\big)$ rows. Since four ranks may share fewer than four cores, your
# figure holds for your machine only. (It costs less to send gradients during the backward pass, as unit 06 shows.)

# %% [markdown]
# > **On GPUs.** With NCCL, `all_reduce` returns as soon as the sum is *enqueued*, and `wait()` makes the GPU's stream wait instead of Python. Therefore, call
# > `torch.cuda.synchronize()` before you read a clock. Since the order of the additions depends on the algorithm that NCCL chooses for each size and
# > machine, compare results with a tolerance. Each rank stores its gradients on its own GPU (call `torch.cuda.set_device(local_rank)` first).

# %% [markdown]
# **Use data parallelism** when the network fits on one device and computing a shard takes longer than sending the gradients, as with many rows, convolutions or
# long sequences. It is the first method to try, because the result can be checked against a single process.
#
# **Do not use it** when the network is small, like this one, or when the batch would have to grow so much that training suffers (unit 17). Data parallelism
# cannot help if the network, its gradients and the optimiser's state do not fit on one device, because every rank holds all three in full (units 12 to 15 split
# the network, and unit 16 shards all three).
#
# **The three most common mistakes** are a mean of means with unequal shards, weight decay that is added on each rank, and ranks that send different lists of
# gradients (because of tied, frozen or unused weights). You meet all three in the lab, whose checks have a message for each.
#
# ## What has aged
#
# <details><summary>Slides and articles from 2018 to 2021: what holds, and what does not</summary>
#
# This unit discusses slides and articles from 2018 to 2021. The table shows which of their statements still hold.
#
# | they say | today |
# |---|---|
# | minimise $\lambda R(w) + \sum_i \ell_i(w)$; ranks compute parts of the sum | This holds. However, libraries compute **means**, so $\lambda$ and the learning rate apply to a mean, and they change if you switch to the sum. (In one of those lectures, the factor $\lambda$ is in the objective, but it is missing from the update.) |
# | with all-reduce, each rank has a copy of $w$ and updates it itself | This holds, and it is what you did here. |
# | with $p$ processes, divide the number of epochs by $p$ and multiply the learning rate by $p$ | In the Keras example of Horovod, every process went through *all* the data in an epoch, so $p$ epochs were done in one. With shards, an epoch remains one pass over the data. The rate changes only if the batch grows, which it does not do here. |
# | data parallelism makes the batch $p$ times as large | This is true if you keep the number of rows per rank. You can also keep the size of the batch, as here. Without batch norm and dropout, only the time then changes. |
# | each rank takes `batch_size // world_size` rows | 250 // 4 is 62, so two rows are lost in every batch. |
# | the distributed sampler gives no sample twice | It does if the data cannot be divided evenly (unit 06). |
# </details>

# %% [markdown]
# ## The map: what is cut, and what travels
#
# | | **data parallel**: cut the batch | **model parallel**: cut the network |
# |---|---|---|
# | a rank holds | the whole network and some rows | a part of the network, or of one image |
# | what it is for | more rows per second | what does not fit on one device |
# | what travels | gradients, as large as the network | activations and their gradients, which grow with the batch |
# | how often | once per step, where it can hide behind the backward pass | at each cut, forward and backward, while the next layer waits for it |
# | cut between layers | | [12](../notebooks/12_encoder_decoder.ipynb), [14](../notebooks/14_pipeline.ipynb) |
# | cut inside each layer | | [13](../notebooks/13_channel_parallel.ipynb), [15](../notebooks/15_tensor_parallel.ipynb), with the calls of [11](../notebooks/11_differentiable_communication.ipynb) |
#
# Unit [12](../notebooks/12_encoder_decoder.ipynb) combines data and model parallelism. Data-parallel methods differ in where the gradients are added up and in
# how often the ranks wait for each other:
#
# | | **synchronous**: each step waits for all ranks | **synchronous, but rarely**: all wait once in many steps | **asynchronous**: no rank waits |
# |---|---|---|---|
# | **peers**, by all-reduce | this unit, [02](../notebooks/02_mirrored_strategy.ipynb), [04](../notebooks/04_collectives.ipynb), [06](../notebooks/06_ddp.ipynb), [07](../notebooks/07_multiworker.ipynb), [10](../notebooks/10_horovod.ipynb) | [20](../notebooks/20_hackathon.ipynb): local SGD, which averages the weights | no unit |
# | **a server** adds up | [08](../notebooks/08_parameter_servers.ipynb); [03](../notebooks/03_dataparallel.ipynb), where the first device does it | no unit | [09](../notebooks/09_staleness.ipynb), [08](../notebooks/08_parameter_servers.ipynb) |
#
# If the network does not fit on one device, data-parallel ranks can hold shards of it, as in unit [16](../notebooks/16_sharded_states.ipynb). Unit
# [05](../notebooks/05_communication_costs.ipynb) measures what communication costs, unit [17](../notebooks/17_large_batches.ipynb) asks how large a batch may
# grow, and unit [19](../notebooks/19_scaling.ipynb) predicts how long a step would take on 1024 ranks. Unit [18](../notebooks/18_elastic_training.ipynb) shows
# how a training run continues when a rank dies, and unit [20](../notebooks/20_hackathon.ipynb) lets you bring your own script and ends in a hackathon for the
# whole class.

# %% [markdown]
# ## Summary
#
# * *An objective is a sum*, so rows can be distributed, and gradients can be added up. Each rank's loss is its part of the mean over all rows.
# * *A mean of means* is wrong for uneven shards. *Weight decay* belongs to no row, so it counts once.
# * The gradient of a *tied* weight is summed once, a *frozen* weight has no gradient to sum, and a gradient that is missing on one rank is sent as zeros.
# * *The same weights* means that they agree with a single process's weights up to rounding, here to 1e-12. Among the ranks, the weights are identical down to
#   the last bit.
# * *Batch norm* depends on other rows and *dropout* on random numbers, so neither preserves the equality.
# * *A step moves* $2 (p - 1)$ times the size of the gradients, whatever the number of rows.
#
# **Now the lab:** you write the data-parallel step yourself. After that, libraries take such a step in one process (units 02 and 03), unit 04 builds the
# all-reduce, and unit 06 needs only one line, with DistributedDataParallel.
#
# **References.** P. Goyal et al. 2017, *Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour*, [arXiv 1706.02677](https://arxiv.org/abs/1706.02677),
# section 3 for weight decay and the loss's divisor. N. J. Higham 1993, *The accuracy of floating point summation*, SIAM J. Sci. Comput. 14(4), for rounding in
# sums.

# %%
cluster.stop()
