# %% [markdown] unit={"minutes": 55, "ranks": 4, "framework": "torch", "title": "Pipeline"}
# # 14 Pipeline
#
# In this unit, we cut a network between its layers into four stages, which four ranks compute simultaneously. At the end, you can
#
# * cut a network by the cost of its layers, and explain which rank waits for which if there are no micro-batches.
# * write GPipe and 1F1B with send and receive, and explain why 1F1B hangs if a send waits for its receiver.
# * predict the bubble of a step with a formula and with a simulation, and measure it.
# * compute what each rank must keep in memory under each schedule, and what full and selective recomputation save and cost.
# * balance the first and the last stage of a language model, share a matrix between them, and clip gradients over all stages.
# * run the schedules of `torch.distributed.pipelining`, read the orders that they print, and avoid their trial run.
#
# **Before:** you can use collectives (unit 04), and you have cut a network in two (unit 12). **Minutes:** 55 · **Ranks:** 4.

# %% [markdown]
# ## Four ranks
#
# This kernel starts four ranks, and cells that begin with `%%px` run on all of them. The option `--setup` marks the cells that are run again when the cluster
# is healed, which will happen in this unit. On every machine, the ranks compute on the CPU and use gloo, because what matters here is which rank waits for
# which.

# %% tags=["setup"]
from manyhands import Cluster, predict, settle

cluster = Cluster(nodes=1, ranks_per_node=4, framework="torch")

# %% tags=["setup"]
# %%px --setup
import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import mse_loss

from manyhands.ledger import Ledger

if not dist.is_initialized():  # so that this cell can run twice
    dist.init_process_group("gloo")
rank, stages = dist.get_rank(), dist.get_world_size()
last = stages - 1

# %% [markdown]
# ## Where to cut
#
# Each rank receives a block of neighbouring layers, which is called a **stage**. In the long run, a pipeline is only as fast as its slowest stage, so the most
# expensive block determines the speed. The next cell gives the costs of eight layers, in ms for the forward pass of a micro-batch, which is a part of the
# batch. (A backward pass takes twice as long.) We cut the layers in two ways, first into equal numbers of layers and then so that the most expensive stage is
# as cheap as possible.

# %%
from manyhands.simulate.pipeline import (bubble, cut, finish_s, gpipe, idle, one_f_one_b,
                                         play)

costs = [9, 9, 2, 2, 2, 3, 3, 6]
even = [slice(2 * i, 2 * i + 2) for i in range(4)]
for name, blocks in (("two layers each", even), ("by cost", cut(costs, 4))):
    stage_ms = [sum(costs[block]) for block in blocks]
    spans = play(gpipe(4, 8),
                 lambda event: stage_ms[event.stage] * {"F": 1, "B": 2}[event.kind])
    print(f"{name:<16} {[costs[block] for block in blocks]}  dearest {max(stage_ms)}, "
          f"a step of 8 micro-batches {finish_s(spans):.0f} ms")

# %% [markdown]
# From here on, all stages cost the same, because each stage has two of the eight equal layers below. Every rank also has the whole network, so that we can
# compare the gradients.

# %% tags=["setup"]
# %%px --setup
torch.manual_seed(0)  # the same numbers on every rank
layers = [nn.Sequential(nn.Linear(64, 64), nn.Tanh()).double() for _ in range(8)]
x, y = torch.randn(32, 64).double(), torch.randn(32, 64).double()
whole = nn.Sequential(*copy.deepcopy(layers))
mse_loss(whole(x), y).backward()

def off(parameters, first=2 * rank):
    """Return the largest difference between these gradients and the gradients that a
    single process computes, from layer `first` on."""
    right = [p.grad for p in whole[first:].parameters()]
    return max((p.grad - one).abs().max().item() for p, one in zip(parameters, right))

# %% [markdown]
# ## Micro-batches: GPipe, by hand
#
# If the whole batch goes through the stages in one piece, only one rank works at any time, because each rank needs what the rank before it has computed. On
# four ranks, three quarters of the time is lost. To avoid this, we split the batch into **micro-batches**, so that rank 0 can compute the second micro-batch
# while rank 1 computes the first. The gradients of the micro-batches add up, and if each loss is divided by the number of micro-batches, the sum is the
# gradient of the whole batch.
#
# A forward pass receives an activation from the previous rank and sends its output to the next rank. The tensor that a rank receives is a *leaf*, and it must
# require a gradient, since the backward pass sends this gradient back.

# %% tags=["setup"]
# %%px --setup
micro = 8
xs, ys = x.chunk(micro), y.chunk(micro)
stage, kept, sent, send = nn.Sequential(*layers[2 * rank:2 * rank + 2]), {}, [], dist.send

def receive(peer, m):
    tensor = torch.empty(32 // micro, 64, dtype=torch.float64)
    dist.recv(tensor, peer, tag=m)  # a hang report names the micro-batch
    return tensor

def forward(m):
    x = xs[m] if rank == 0 else receive(rank - 1, m).requires_grad_()
    y = stage(x) if rank < last else mse_loss(stage(x), ys[m]) / micro
    kept[m] = x, y
    if rank < last:
        send(y.detach(), rank + 1, tag=m)

# %% tags=["setup"]
# %%px --setup
def backward(m):
    x, y = kept.pop(m)
    y.backward(None if rank == last else receive(rank + 1, m))
    if rank > 0:
        send(x.grad, rank - 1, tag=m)

def run(order):
    """Run one step and return the largest number of micro-batches that this rank has
    kept at the same time."""
    stage.zero_grad()
    most = 0
    for kind, m, _ in order:
        (forward if kind == "F" else backward)(m)
        most = max(most, len(kept))
    for work in sent:
        work.wait()
    return most

# %% [markdown]
# **GPipe** runs the forward passes of all micro-batches and then all backward passes.
#
# **Predict.** How many messages does rank 1 send in a step of 8 micro-batches, and how many micro-batches must it keep in memory?

# %%
# Run this cell to make your prediction.
predict("14-messages", "How many messages does rank 1 send in a step of 8 micro-batches?",
        unit="messages")
predict("14-kept", "How many micro-batches does rank 1 keep at the same time, at most?",
        unit="micro-batches")

# %%
# %%px
order = [("F", m, rank) for m in range(micro)] + [("B", m, rank) for m in range(micro)]
with Ledger() as ledger:
    most = run(order)
print(f"as one process to 1e-15: {off(stage.parameters()) < 1e-15}; "
      f"sent {ledger.messages_sent} messages, {ledger.bytes_sent} bytes; "
      f"kept {most} micro-batches")

# %%
# Run this cell to compare your prediction with the outcome.
settle("14-messages", lambda: cluster.pull("ledger.messages_sent")[1])
settle("14-kept", lambda: cluster.pull("most")[1])

# %% [markdown]
# <details><summary>Why?</summary>
#
# Each micro-batch crosses each of the three borders twice, forward as an activation and backward as a gradient of the same size (4 x 64 numbers, 8 bytes each).
# Ranks 1 and 2 send both kinds, whereas rank 0 sends only activations and rank 3 only gradients, so there are $2 M (S-1)$ messages in all. Since no backward
# pass begins before the last forward pass has ended, each rank keeps all 8 micro-batches.
# </details>
#
# ## The bubble, by formula and by simulation
#
# The last rank can begin only after $S - 1$ forward passes, and after it has finished, $S - 1$ more backward passes follow until the first rank has finished.
# The rest of the step is work, namely $M$ forward and backward passes. Therefore, a rank is idle for
#
# $$ \frac{S - 1}{M + S - 1} $$
#
# of the step, which is called the **bubble**. (Some papers divide by the busy time instead, which gives $(S - 1) / M$, so check which definition a paper uses.)
# A *simulation* needs no formula. In a simulation, each event begins as soon as its rank is free and its input is available, so the simulation can also handle
# slow messages and stages of different costs.

# %%
for m in (1, 4, 8, 16, 32):
    spans = play(gpipe(4, m), lambda event: {"F": 1, "B": 2}[event.kind])
    slow = play(gpipe(4, m), lambda event: {"F": 1, "B": 2}[event.kind], message_s=0.2)
    print(f"{m:>2} micro-batches: formula {bubble(4, m):.3f}, simulated {idle(spans):.3f}, "
          f"with messages of a fifth of a forward {idle(slow):.3f}")

# %% [markdown]
# With more micro-batches, the bubble is smaller. However, the micro-batches are smaller, too, and a small matrix product uses a processor less efficiently.
# Moreover, GPipe keeps all micro-batches in memory.
#
# ## 1F1B keeps less
#
# A rank does not have to wait for the last forward pass, because the backward pass of micro-batch 0 can begin as soon as this micro-batch has passed through
# all stages. **1F1B** runs just enough forward passes ahead, namely $S - 1 - r$ on rank $r$. After that, it alternates between one forward and one backward
# pass, and at the end it runs the backward passes that are left.

# %%
for rank, order in enumerate(one_f_one_b(4, 8)):
    print(f"rank {rank}:", " ".join(f"{kind}{m}" for kind, m, _ in order))
spans = play(one_f_one_b(4, 8), lambda event: {"F": 1, "B": 2}[event.kind])
print("bubble", round(idle(spans), 3), "as GPipe's", round(bubble(4, 8), 3))

# %% [markdown]
# **Predict.** We run this order with the same functions. Over gloo, `dist.send` returns only when the other side has received the message, which is called a
# *rendezvous*. How does the step end?

# %%
# Run this cell to make your prediction.
predict("14-rendezvous",
        "If sends wait for their receiver, a step of 1F1B ends with ...",
        ["the right gradients", "wrong gradients", "some ranks waiting forever",
         "all ranks waiting forever"])

# %% tags=["setup"]
# %%px --setup
from manyhands.simulate.pipeline import one_f_one_b, read_orders

# %% tags=["raises-exception"]
# %%px --patience 3
run(one_f_one_b(stages, micro)[rank])

# %%
# Run this cell to compare your prediction with the outcome.
import sys

def who_waits():
    waiting = {waiter for waiter, _ in sys.last_value.edges}
    return f"{'all' if len(waiting) == 4 else 'some'} ranks waiting forever"

settle("14-rendezvous", who_waits)

# %% [markdown]
# <details><summary>Why?</summary>
#
# Rank 3 has finished the first backward pass and wants to send its gradient, while rank 2 wants to send the next activation. Each of them waits until the other
# one receives, and ranks 0 and 1 wait behind them, so every rank is inside a send. The tag in the report is the number of the micro-batch (0 is not printed).
# Under GPipe, all ranks send in one direction at a time, so no such deadlock can arise.
# </details>
#
# A simulation finds this deadlock without running any ranks. With `blocking=True`, every simulated send is a rendezvous.

# %%
from manyhands.simulate.pipeline import Stuck

try:
    play(one_f_one_b(4, 8), lambda event: 1, blocking=True)
except Stuck as stuck:
    print(stuck)

# %% [markdown]
# The remedy is `dist.isend`, which does not wait. It returns a work handle, which keeps the tensor alive. We must wait for this handle before the step ends,
# and `run` does so. (Over gloo, `is_completed()` is true only after `wait()`, which `run` calls at the end of a step. The messages therefore stay in the list
# until the first send of the next step. To free their memory earlier, wait for the handle of an activation when its gradient has arrived, because the
# activation must then have arrived, too.) The cluster has already healed itself.

# %% tags=["setup"]
# %%px --setup
def send(tensor, peer, tag):
    sent[:] = [work for work in sent if not work.is_completed()]  # each keeps its tensor
    sent.append(dist.isend(tensor, peer, tag=tag))

# %%
# %%px
most = run(one_f_one_b(stages, micro)[rank])
print(f"as one process to 1e-15: {off(stage.parameters()) < 1e-15}; "
      f"kept {most} micro-batches")

# %% [markdown]
# The gradients and the time are the same as with GPipe, but rank $r$ now keeps only $\min(M, S - r)$ micro-batches, and therefore at most $S$ of them.

# %% [markdown]
# > **On GPUs.** NCCL has no tags, so the i-th send to a rank matches its i-th receive. Two neighbours that send to each other can hang even with `isend`. For this reason, Megatron-LM and
# > `torch.distributed.pipelining` start a send and a receive together, with `dist.batch_isend_irecv`. Messages run on separate streams alongside the computation,
# > so a clock in Python measures only launches unless you call `torch.cuda.synchronize()`. Stages are usually placed on different nodes, because little data crosses a border (Narayanan et al. 2021).

# %% [markdown]
# ## Measured, on any machine
#
# Four ranks that compute on two cores slow each other down. For this reason, we emulate the computation. A `StageClock` around a stage adds 50 ms to its
# forward pass and 100 ms to its backward pass by *sleeping*, which needs no core. Outputs and gradients stay the same. The clock also records when each pass
# begins and ends, and how much memory is kept for the backward pass.

# %% tags=["setup"]
# %%px --setup
import gc

from manyhands.ledger.stage_clock import StageClock

def timed(step, clocks, order, repeats=3):
    """Return what the clocks of this rank's stages, {number: clock}, have recorded in
    each of the steps, as (spans, changes of memory)."""
    found = []
    for repeat in range(repeats + 1):  # the first one connects the ranks and is not kept
        gc.collect()  # free reference cycles that the step before has left
        for clock in clocks.values():
            clock.forward_s = 0.05 / len(clocks) if repeat else 0
            clock.backward_s = 2 * clock.forward_s
            clock.zero_grad(), clock.reset()
        dist.barrier()
        step()
        spans = [span for s, clock in clocks.items()
                 for span in clock.spans([event for event in order if event[2] == s])]
        memory = [change for clock in clocks.values() for change in clock.memory]
        found.append((spans, memory))
    return found[1:]

# %% tags=["measured"]
# %%px
runs, plain_stage = {}, stage
stage = StageClock(plain_stage)
all_forwards = [("F", m, rank) for m in range(micro)]
all_backwards = [("B", m, rank) for m in range(micro)]
for name, order in (("GPipe", all_forwards + all_backwards),
                    ("1F1B", one_f_one_b(stages, micro)[rank])):
    runs[name] = timed(lambda: run(order), {rank: stage}, order)
stage = plain_stage

# %% tags=["measured"]
from manyhands.plots.gantt import WORDS, bubble_of, gantt, quickest, table

by_hand = cluster.pull("runs")
for name, orders in (("GPipe", gpipe(4, 8)), ("1F1B", one_f_one_b(4, 8))):
    simulated = idle(play(orders, lambda event: {"F": 50, "B": 100}[event.kind]))
    spans, _ = quickest([of_rank[name] for of_rank in by_hand])
    print(f"{name:<6} bubble by formula {bubble(4, 8):.3f}, simulated {simulated:.3f}, "
          f"measured {bubble_of(spans):.3f}")

# %% [markdown]
# The difference between the formula and the measurement is caused by the messages and by other programs on this machine.
#
# ## Recomputation
#
# A backward pass needs what the layers inside a stage have computed. Instead of keeping these results, a stage can keep only its *input* and run its forward
# pass once more when its backward pass begins. In PyTorch, `torch.utils.checkpoint` does this and also restores the random state, so that dropout draws the
# same numbers again.
#
# **Predict.** A stage keeps its input and two outputs for each micro-batch. What fraction of this memory does recomputation save, and by what factor does a
# step become longer if a backward pass takes as long as two forward passes?

# %%
# Run this cell to make your prediction.
predict("14-saved",
        "What fraction of the kept memory does recomputation save (1/2 or 0.5)?",
        within=0.02)
predict("14-longer", "By what factor does recomputation lengthen a step?",
        unit="times", within=0.02)

# %%
# %%px
from torch.utils.checkpoint import checkpoint

class Again(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return checkpoint(self.module, x, use_reentrant=False)

plain_stage, peaks = stage, []
for module in (plain_stage, Again(plain_stage)):
    stage = StageClock(module)
    run(one_f_one_b(stages, micro)[rank])
    peaks.append(stage.peak_kept_bytes)
stage = plain_stage
print(f"kept for backward: {peaks[0]:>5} bytes, with recomputation {peaks[1]:>4}; "
      f"as one process: {off(plain_stage.parameters()) < 1e-15}")

# %%
steps = {}
for name, backward in (("plain", 2), ("recomputed", 3)):
    steps[name] = play(one_f_one_b(4, 8), lambda event: {"F": 1, "B": backward}[event.kind])
    print(f"{name:<11} a step is {finish_s(steps[name]):.0f} forwards long, "
          f"bubble {idle(steps[name]):.3f}")

# %%
# Run this cell to compare your prediction with the outcome.
settle("14-saved", lambda: cluster.pull("1 - peaks[1] / peaks[0]")[0])
settle("14-longer", lambda: finish_s(steps["recomputed"]) / finish_s(steps["plain"]))

# %% [markdown]
# <details><summary>Why?</summary>
#
# Only one of the three tensors is kept, so two thirds of the memory is saved. With more layers in a stage, the saving is even larger. The step takes a third
# longer, because a forward pass, a backward pass and a second forward pass take 4 units of time instead of 3. The bubble does not change, since it is a
# *fraction* of the step. While a backward pass runs, the activations of *one* micro-batch exist again, but the number above does not count them.
# </details>
#
# Repeating the whole forward pass is *full* recomputation, which GPipe always uses. A transformer does not have to pay this price, since *selective*
# recomputation repeats only the operations that need much memory and little computation. We try this on a block of the course's small GPT. A *policy* decides
# for each operation whether its result is kept, and our policy keeps the results of the linear layers. The backward pass then recomputes the scores and the
# softmax of attention, the norms and gelu.

# %%
import functools

import torch
from torch.utils import checkpoint as ckpt
from torch.utils.flop_counter import FlopCounterMode

from manyhands.gpt.transformer import Block
from manyhands.ledger.kept_bytes import KeptBytes

LINEAR = torch.ops.aten.addmm.default, torch.ops.aten.mm.default

def policy(context, operation, *args, **kwargs):
    policies = ckpt.CheckpointPolicy
    return policies.MUST_SAVE if operation in LINEAR else policies.PREFER_RECOMPUTE

torch.manual_seed(0)
block = Block(width=64, heads=4).double()
text = torch.randn(2, 64, 64, dtype=torch.float64, requires_grad=True)
full = functools.partial(ckpt.checkpoint, block, use_reentrant=False)
selective = functools.partial(full, context_fn=functools.partial(
    ckpt.create_selective_checkpoint_contexts, policy))

# %%
products, gradients = {}, {}
for name, way in {"plain": block, "full": full, "selective": selective}.items():
    block.zero_grad()
    with FlopCounterMode(display=False) as flops:
        with KeptBytes() as kept:
            y = way(text)
        kept_bytes = kept.nbytes - y.nbytes + text.nbytes  # the input, not the output
        y.square().sum().backward()
    products[name], gradients[name] = flops.get_total_flops(), block.q.weight.grad
    same = torch.allclose(gradients[name], gradients["plain"])
    print(f"{name:<9} keeps {kept_bytes / text.nbytes:>2.0f} times the input, matrix "
          f"products x {products[name] / products['plain']:.2f}, same gradients: {same}")

# %% [markdown]
# Full recomputation adds less than a third here because PyTorch stops as soon as the backward pass has all that it needs, so the last layer is not repeated.
# Korthikanti et al. (2022) report that selective recomputation, together with sequence parallelism (unit 15), needs a fifth of the memory for activations and
# saves more than 90 % of the extra time. FlashAttention always recomputes the scores in the backward pass.
#
# ## The first and the last stage
#
# The first stage of a language model also has the embedding, and the last one has the head. Both are matrices whose size is the number of words times the
# width. The embedding only looks up rows, so it takes memory but hardly any time, whereas the head multiplies every position by its whole matrix. We compare
# the head with a block by the number of weights, since each weight takes part in one multiplication for each position. (This leaves out the scores of
# attention.)

# %%
width, hidden, keys, words = 4096, 14336, 1024, 128256  # of Llama 3 8B, with 32 blocks
of_block = 2 * width * width + 2 * width * keys + 3 * width * hidden
head = words * width / of_block
print(f"head and embedding have {words * width / 1e6:.0f} million weights each, "
      f"a block {of_block / 1e6:.0f} million: the head costs {head:.1f} blocks")

costs = [0, *[1] * 32, head]
even = [slice(0, 9), slice(9, 17), slice(17, 25), slice(25, 34)]
for name, blocks in (("eight blocks each", even), ("by cost", cut(costs, 4))):
    stage_s = [sum(costs[block]) for block in blocks]
    spans = play(one_f_one_b(4, 16),
                 lambda event: stage_s[event.stage] * {"F": 1, "B": 2}[event.kind])
    print(f"{name:<18} {[f'{cost:.1f}' for cost in stage_s]}  a step takes "
          f"{finish_s(spans):.0f} forwards of a block, bubble {idle(spans):.3f}")

# %% [markdown]
# In the 405B model of Llama 3, the head costs only two thirds of a block, and the last stage has one block fewer than the others (Grattafiori et al. 2024). The
# first stage also has one block fewer, because it holds the embedding and, under 1F1B, keeps the most micro-batches.
#
# Many models use *one* matrix both as the embedding and as the head (*tied weights*, Press and Wolf 2017). A pipeline has two copies of this matrix, and each
# of the two stages gets only the gradient from its own place, so the two gradients must be summed before the optimiser step. Below, our eight layers get such a
# matrix at both ends.
#
# **Predict.** Clipping is a second trap, since the norm of a gradient belongs to the *whole* network. Suppose that each of the four stages calls
# `clip_grad_norm_(stage.parameters(), 0.01)`, and that on most stages the norm is larger than 0.01. What is the norm of the network's gradient afterwards?

# %%
# Run this cell to make your prediction.
predict("14-norm",
        "If 4 stages clip to 0.01 each, what is the norm of the whole network's gradient?",
        within=0.1)

# %%
# %%px
class Times(nn.Module):
    """Multiply by a matrix, like an embedding, or by its transpose, like a head."""

    def __init__(self, matrix, transposed=False):
        super().__init__()
        self.matrix, self.transposed = matrix, transposed

    def forward(self, x):
        return x @ (self.matrix.T if self.transposed else self.matrix)

torch.manual_seed(1)
matrix = nn.Parameter(torch.randn(64, 64).double() / 8)
network = [Times(matrix), *layers, Times(matrix, transposed=True)]
alone = nn.Sequential(*copy.deepcopy(network))  # deepcopy keeps the matrix shared
mse_loss(alone(x), y).backward()

def norm(gradients):
    return torch.stack([gradient.square().sum() for gradient in gradients]).sum().sqrt()

# %%
# %%px
plain_stage, first = stage, (0, 3, 5, 7, 10)
stage = nn.Sequential(*network[first[rank]:first[rank + 1]])
run(one_f_one_b(stages, micro)[rank])
ends, right = dist.new_group([0, last]), alone[0].matrix.grad
if rank in (0, last):
    before = (matrix.grad - right).norm() / right.norm()
    dist.all_reduce(matrix.grad, group=ends)
    after = (matrix.grad - right).norm() / right.norm()
    print(f"the matrix's gradient is off by {before:.0%}, after the sum by {after:.0%}")

# %%
# %%px
own = [p for p in stage.parameters() if rank < last or p is not matrix]  # counted once

def of_all_stages():
    squares = norm(p.grad for p in own).square()
    dist.all_reduce(squares)
    return squares.sqrt()

total = of_all_stages()
one_norm = norm(p.grad for p in alone.parameters())
nn.utils.clip_grad_norm_(stage.parameters(), 0.01)  # wrong: by the norm of one stage
clipped = of_all_stages()
stage = plain_stage
if rank == 0:
    print(f"norm over all stages {total:.4f}, of one process {one_norm:.4f}; "
          f"after each stage has clipped by its own norm: {clipped:.4f}")

# %%
# Run this cell to compare your prediction with the outcome.
settle("14-norm", lambda: cluster.pull("clipped.item()")[0])

# %% [markdown]
# <details><summary>Why?</summary>
#
# The norm of each stage's gradient is at most 0.01, so the norm of all four parts together is at most $\sqrt 4 \times 0.01$. This norm is a little smaller here
# because one stage was below the limit, and because the last stage's copy of the matrix is not counted a second time. Worse, each stage has multiplied its
# gradient by a different factor, so the direction has changed, and the two copies of the matrix drift apart. Instead, add up the squared norms of all stages
# with an all-reduce, and let every stage clip by the root of the sum.
# </details>
#
# ## Batch norm sees micro-batches
#
# Every layer that looks at a whole batch behaves differently in a pipeline. Batch norm, for example, computes the mean and the variance of the rows that it
# receives, which are 4 rows here instead of 32.

# %%
# %%px --ranks 0
one, many = nn.BatchNorm1d(64).double(), nn.BatchNorm1d(64).double()
apart = (one(x) - torch.cat([many(part) for part in xs])).abs().max()
means = (one.running_mean - many.running_mean).abs().max()
print(f"outputs differ by up to {apart:.2f}; running mean: {means:.2f};",
      f"updates {one.num_batches_tracked.item()} and {many.num_batches_tracked.item()}")

# %% [markdown]
# The result is a different network, just as under data parallelism (unit 01). Layer norm and group norm look at one row at a time, so they are not affected.
#
# ## torch.distributed.pipelining
#
# PyTorch provides all of this. The function `pipeline()` traces a module with one micro-batch and cuts it where you specify. The parameters keep their names.

# %%
# %%px --ranks 0
import warnings

from torch.distributed.pipelining import SplitPoint, pipeline

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # from torch's own tracing
    pipe = pipeline(nn.Sequential(*copy.deepcopy(layers)), mb_args=(xs[0],),
                    split_spec={name: SplitPoint.BEGINNING for name in "246"})
named = [pipe.get_stage_module(s).named_parameters() for s in range(4)]
print(pipe.num_stages, "stages;",
      *[[name for name, _ in pairs if "weight" in name] for pairs in named])

# %% [markdown]
# Alternatively, you can cut by hand and create `PipelineStage` objects. Some schedules need several stages on each rank. Here, there are eight stages in all.
#
# | schedule | stages on a rank | idea |
# |---|---|---|
# | GPipe, 1F1B | one | as above |
# | LoopedBFS, Interleaved1F1B | r and r + 4 | each stage is half as long, so the pipeline fills in half the time; the bubble is $\frac{S - 1}{v M + S - 1}$ with $v$ stages on each rank, for $M$ a multiple of $S$ |
# | InterleavedZeroBubble | r and r + 4 | backward in two parts: **I**, the gradient of the input, for which another rank waits, and **W**, the gradients of the weights, which can wait and fill the bubble |
# | ZBVZeroBubble, DualPipeV | r and 7 - r, a V | the first rank also has the last stage |

# %% tags=["setup"]
# %%px --setup
from torch.distributed import pipelining as pp

loop, vee = [rank, rank + 4], [rank, 7 - rank]
schedules = {"GPipe": (pp.ScheduleGPipe, [rank]), "1F1B": (pp.Schedule1F1B, [rank]),
             "LoopedBFS": (pp.ScheduleLoopedBFS, loop),
             "Interleaved1F1B": (pp.ScheduleInterleaved1F1B, loop),
             "InterleavedZero": (pp.ScheduleInterleavedZeroBubble, loop),
             "ZBVZeroBubble": (pp.ScheduleZBVZeroBubble, vee),
             "DualPipeV": (pp.ScheduleDualPipeV, vee)}

def build(name):
    """Return the schedule, a function that runs one step, and the clocks of this rank's
    stages by number."""
    kind, mine = schedules[name]
    per = 2 // len(mine)  # layers in a stage
    blocks = {s: copy.deepcopy(layers[s * per:(s + 1) * per]) for s in mine}
    clocks = {s: StageClock(nn.Sequential(*block)) for s, block in blocks.items()}
    parts = [pp.PipelineStage(clock, s, 8 // per, torch.device("cpu"))
             for s, clock in clocks.items()]
    # divides the gradients by `micro`
    schedule = kind(parts if len(mine) > 1 else parts[0], micro, loss_fn=mse_loss)
    inputs = (x,) if 0 in mine else ()
    target = {"target": y} if 8 // per - 1 in mine else {}
    return schedule, lambda: schedule.step(*inputs, **target), clocks

# %%
# %%px
printed, apart = {}, {}
for name in schedules:
    schedule, step, clocks = build(name)
    step()
    printed[name] = {r: [str(action) for action in actions]
                     for r, actions in schedule.pipeline_order.items()}
    apart[name] = max(off(clock.module.parameters(), first=s * len(clock.module))
                      for s, clock in clocks.items())
print("as one process to 1e-15:", *[name for name in schedules if apart[name] < 1e-15])

# %% [markdown]
# All seven schedules give the same gradients. A schedule can also print its order. In the output, `3F1` means that stage 3 runs the forward pass of micro-batch
# 1, and `None` is a pause.

# %%
printed = cluster.pull("printed")[0]
for name in ("Interleaved1F1B", "ZBVZeroBubble"):
    actions = [action for action in printed[name][3] if action != "None"]
    print(f"{name}, rank 3:", " ".join(actions))

# %% [markdown]
# We read, simulate and draw these orders. Where a rank has two stages, each stage takes half as long. (In torch 2.15, the order that Schedule1F1B *prints* for
# the last rank numbers the forward passes from 1. The schedule runs the right order, so we use our own.) The simulation hides no messages, so it cannot show
# the purpose of DualPipeV. DualPipeV runs the forward pass of one micro-batch alongside the backward pass of another, so that each hides the messages of the
# other, above all the all-to-alls of experts (DeepSeek-AI 2024).

# %%
from manyhands.simulate.pipeline import alive, read_orders

orders = {name: one_f_one_b(4, 8) if name == "1F1B" else read_orders(order)
          for name, order in printed.items()}

def ms(event, chunks):
    """Return the time of an event. For all stages of a rank together, a forward pass takes
    50 ms and a backward pass 100 ms. The first stage needs no gradient of its input."""
    first = event.stage == 0
    parts = {"F": 50, "B": 100, "I": 0 if first else 50, "W": 100 if first else 50}
    return parts[event.kind] / chunks

simulated = {}
for name, order in orders.items():
    chunks = 1 if name in ("GPipe", "1F1B") else 2
    spans = simulated[name] = play(order, lambda event: ms(event, chunks))
    print(f"{name:<16} simulated: {finish_s(spans):>5.0f} ms, bubble {idle(spans):.3f}; "
          f"forwards kept, by rank: {[alive(rank_order) for rank_order in order]}")

# %%
gantt({name: (simulated[name], None) for name in ("LoopedBFS", "DualPipeV")},
      title="two schedules, drawn from the orders that torch prints")

# %% [markdown]
# ## Four schedules, measured
#
# **Predict.** Which of GPipe, 1F1B, Interleaved1F1B and ZBVZeroBubble has the smallest bubble when we measure it, and under which of them does a rank keep the
# most memory?

# %%
# Run this cell to make your prediction.
predict("14-smallest", "Measured with messages, which schedule has the smallest bubble?",
        ["GPipe", "1F1B", "Interleaved1F1B", "ZBVZeroBubble"])
predict("14-most", "Under which schedule does a rank keep the most memory?",
        ["GPipe", "1F1B", "Interleaved1F1B", "ZBVZeroBubble"])

# %% tags=["measured"]
# %%px
runs = {}
for name in ("GPipe", "1F1B", "Interleaved1F1B", "ZBVZeroBubble"):
    schedule, step, clocks = build(name)
    order = one_f_one_b(stages, micro)[rank]
    if name != "1F1B":
        order = read_orders(schedule.pipeline_order)[rank]
    runs[name] = timed(step, clocks, order)

# %% tags=["measured"]
by_torch = cluster.pull("runs")
measured = {name: quickest([of_rank[name] for of_rank in by_torch], unit=1024)
            for name in by_torch[0]}
print(table(measured, unit="KiB kept"))
gantt(measured, words={**WORDS, "kept": "KiB kept"})

# %%
# Run this cell to compare your prediction with the outcome.
def bubble_measured(name):
    return bubble_of(measured[name].spans)

def most_kept(name):
    return max(kept for points in measured[name].memory for _, kept in points)

settle("14-smallest", lambda: min(measured, key=bubble_measured))
settle("14-most", lambda: max(measured, key=most_kept))

# %% [markdown]
# <details><summary>How to read it</summary>
#
# Time runs from left to right. Each rank has a row, and each pass is a box with the number of its micro-batch. GPipe and 1F1B have the same bubble in different
# places, but the memory curves of 1F1B are low, and they are lower on later ranks. Interleaved1F1B fills its pipeline in half the time, so by the formula its
# bubble falls from 0.27 to 0.16. However, more than twice as many messages are sent (across 7 borders instead of 3), and each rank keeps more in memory.
# ZBVZeroBubble puts the W passes into the gaps. On every rank, it keeps two thirds of what GPipe keeps, because it holds eight passes of half a stage, and the memory of an I pass is not freed until its W pass. Since each message takes time, the schedules with more messages and shorter passes deviate more from their
# simulations, and on a busy machine they lose what they have gained.
# </details>
#
# ## The trap: shapes by trial
#
# A `PipelineStage` that does not know its shapes determines them in its first step by running the stage a second time. The first stage runs on a micro-batch, and
# all others run on uninitialised memory. PyTorch then restores the random state for dropout and, from 2.15 on, also the buffers, such as the statistics of
# batch norm (with 2.13, batch norm counted the trial). However, it cannot restore what `forward` has written into an attribute.
#
# **Predict.** A stage counts the calls of its `forward` in an attribute. How many calls does it count in one step with eight micro-batches?

# %%
# Run this cell to make your prediction.
predict("14-seen", "How many calls does a stage count in one step with 8 micro-batches?",
        unit="calls")

# %%
# %%px
class Counted(nn.BatchNorm1d):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return super().forward(x)

def seen(**shapes):
    norm = Counted(64).double()
    part = pp.PipelineStage(norm, rank, stages, torch.device("cpu"), **shapes)
    inputs, target = (x,) if rank == 0 else (), {"target": y} if rank == last else {}
    pp.ScheduleGPipe(part, micro, loss_fn=mse_loss).step(*inputs, **target)
    return norm.calls, norm.num_batches_tracked.item()

def like(gradient):
    return torch.empty(4, 64, dtype=torch.float64, device="meta", requires_grad=gradient)

by_trial, batches = seen()
given = seen(input_args=like(rank > 0), output_args=like(True))
print(f"by trial: {by_trial} calls, and batch norm has counted {batches} batches;",
      f"with shapes given: {given[0]} and {given[1]}")

# %%
# Run this cell to compare your prediction with the outcome.
settle("14-seen", lambda: cluster.pull("by_trial")[0])

# %% [markdown]
# The ninth call was the trial. Whatever the trial has written outside of buffers, such as a counter or a moving average that is kept as an attribute, remains.
# On all stages but the first, the trial's input can be anything, even infinity. If your stage keeps such a state, specify the shapes, as above, with tensors on
# the `meta` device, which have a shape but no numbers. (Without `requires_grad`, the stages would send no gradients.)
#
# ## When, and what it costs
#
# **Use a pipeline** when the network does not fit on one device and the links between devices are slow, because only the activations at the borders and their
# gradients travel, in $2 M (S - 1)$ messages per step. A pipeline needs several times as many micro-batches as stages, and layers that can be cut into blocks
# of equal cost.
#
# **Do not use it** if the batch is small, or if a single layer is too large for a device (units 13 and 15).
#
# **What it costs** is the time of the bubble and the memory for the micro-batches in flight. In addition, the network must be a chain of blocks or be turned
# into one, and batch norm changes.
#
# **The most common mistakes.** The loss is not divided by the number of micro-batches, or all micro-batches have the same weight although their numbers of rows
# differ. A send waits for a receiver that is also sending. Each stage clips its gradients by its own norm, or the gradients of tied weights are not summed. The
# optimiser steps between micro-batches, so that a forward pass and its backward pass use different weights. (In 2019, PipeDream did so on purpose and kept old
# weights for this.)
#
# PyTorch rejects numbers that do not fit. Schedule1F1B needs at least as many micro-batches as stages, and a batch whose rows cannot be divided evenly fails in
# the middle of a step.

# %%
# %%px --ranks 3
part = pp.PipelineStage(stage, rank, stages, torch.device("cpu"))
try:
    pp.Schedule1F1B(part, 2, loss_fn=mse_loss)
except ValueError as error:
    print(error)

# %% [markdown]
# ## Summary
#
# * Cut the network so that the most expensive stage is as cheap as possible. Without micro-batches, $S - 1$ of $S$ ranks wait at any time.
# * GPipe and 1F1B give the same gradients and have the same bubble. Under 1F1B, neighbours send to each other at the same time, so 1F1B needs `isend`.
# * The bubble is $(S - 1) / (v M + S - 1)$ of the step, with $v$ stages on each rank. The simulation agrees with this formula exactly, and the measurement does
#   so approximately.
# * GPipe keeps $M$ micro-batches, whereas 1F1B keeps $\min(M, S - r)$. Full recomputation keeps only inputs and takes a third more time, while selective
#   recomputation costs far less.
# * At the ends of a language model, the head costs time and the embedding costs memory. The gradients of tied weights must be summed over both ends, and a
#   gradient's norm must be computed over all stages.
# * The schedules of `torch.distributed.pipelining` can print their orders. Give each stage its shapes, because otherwise a trial run calls its `forward` once
#   too often.
#
# **Now the lab:** write the schedules and the functions that run and predict them, and choose the cheapest plan. After that, unit 15 cuts inside the layers.
#
# **References.** Y. Huang et al. 2019, *GPipe*, [arXiv 1811.06965](https://arxiv.org/abs/1811.06965). D. Narayanan et al. 2019, *PipeDream*, SOSP; 2021,
# *Memory-Efficient Pipeline-Parallel DNN Training*, [arXiv 2006.09503](https://arxiv.org/abs/2006.09503); 2021, *Efficient Large-Scale Language Model Training
# on GPU Clusters Using Megatron-LM*, [arXiv 2104.04473](https://arxiv.org/abs/2104.04473) (interleaved, the other bubble). P. Qi et al. 2023, *Zero Bubble
# Pipeline Parallelism*, [arXiv 2401.10241](https://arxiv.org/abs/2401.10241); 2024, *Pipeline Parallelism with Controllable Memory*,
# [arXiv 2405.15362](https://arxiv.org/abs/2405.15362) (V-shaped). T. Chen et al. 2016, *Training Deep Nets with Sublinear Memory Cost*,
# [arXiv 1604.06174](https://arxiv.org/abs/1604.06174). V. Korthikanti et al. 2022, *Reducing Activation Recomputation in Large Transformer Models*,
# [arXiv 2205.05198](https://arxiv.org/abs/2205.05198). A. Grattafiori et al. 2024, *The Llama 3 Herd of Models*,
# [arXiv 2407.21783](https://arxiv.org/abs/2407.21783), section 3.3.2. O. Press, L. Wolf 2017, *Using the Output Embedding to Improve Language Models*,
# [arXiv 1608.05859](https://arxiv.org/abs/1608.05859). DeepSeek-AI 2024, *DeepSeek-V3 Technical Report*, [arXiv 2412.19437](https://arxiv.org/abs/2412.19437)
# (DualPipe). PyTorch, [Pipeline Parallelism](https://docs.pytorch.org/docs/stable/distributed.pipelining.html).

# %%
cluster.stop()
