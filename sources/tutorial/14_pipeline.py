# %% [markdown] unit={"minutes": 55, "ranks": 4, "framework": "torch", "title": "Pipeline"}
# # 14 Pipeline
#
# A network cut between its layers over four ranks, which all compute at once. At the end you can
#
# * cut a network by what its layers cost, and say who waits for whom without micro-batches;
# * write GPipe and 1F1B on send and receive, and say why the second one hangs where a send waits for its receiver;
# * foretell the bubble of a step by a formula and by simulation, and measure it;
# * say what each rank must keep in memory under each schedule, and what full and selective recomputation buy and cost;
# * balance the first and the last stage of a language model, share a matrix between them, and clip gradients over all stages;
# * run the schedules of `torch.distributed.pipelining`, read their printed orders, and keep batch norm out of their trap.
#
# **Before:** units 04 (collectives) and 12 (a network in two parts), or what is in them. **Minutes:** 55. **Ranks:** 4.

# %% [markdown]
# ## Four ranks
#
# This kernel starts the ranks. Cells that begin with `%%px` run on all four of them; `--setup` marks what is to be run again if the cluster
# must be healed, and it will be. This unit computes on the CPU, with gloo, on every machine: what matters here is who waits for whom.

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

if not dist.is_initialized():  # so that this cell can be run twice
    dist.init_process_group("gloo")
rank, stages = dist.get_rank(), dist.get_world_size()
last = stages - 1

# %% [markdown]
# ## Where to cut
#
# The ranks get blocks of neighbouring layers, the **stages**. In the long run a pipeline is as fast as its slowest stage: so what counts is the dearest block. Here are eight
# layers with their costs, in ms for the forward of a micro-batch, a part of the batch (a backward takes twice as long), cut into equal numbers of layers, and so that the dearest stage is as cheap as it can be.

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
# From here on all stages cost the same: two layers each of these eight. Every rank has the whole network too, to compare with.

# %% tags=["setup"]
# %%px --setup
torch.manual_seed(0)  # the same numbers on every rank
layers = [nn.Sequential(nn.Linear(64, 64), nn.Tanh()).double() for _ in range(8)]
x, y = torch.randn(32, 64).double(), torch.randn(32, 64).double()
whole = nn.Sequential(*copy.deepcopy(layers))
mse_loss(whole(x), y).backward()

def off(parameters, first=2 * rank):
    """The largest difference between these gradients and those of one process, from
    layer `first` on."""
    right = [p.grad for p in whole[first:].parameters()]
    return max((p.grad - one).abs().max().item() for p, one in zip(parameters, right))

# %% [markdown]
# ## Micro-batches: GPipe, by hand
#
# With the whole batch at once only one rank works at any time: rank 1 needs what rank 0 has computed, and so on; on four ranks three quarters of the time are lost. So cut the batch into
# **micro-batches**. While rank 1 has the first one, rank 0 has the second. Their gradients add up, and with the loss divided by their number the sum is the gradient of the whole batch.
#
# A forward receives an activation from the rank before, and sends one on. What was received is a *leaf*: it must ask for a gradient, as that is what backward sends back.

# %% tags=["setup"]
# %%px --setup
micro = 8
xs, ys = x.chunk(micro), y.chunk(micro)
stage, kept, sent, send = nn.Sequential(*layers[2 * rank:2 * rank + 2]), {}, [], dist.send

def receive(peer, m):
    tensor = torch.empty(32 // micro, 64, dtype=torch.float64)
    dist.recv(tensor, peer, tag=m)  # the micro-batch: a report of a hang names it
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
    """One step; returns the most micro-batches that this rank has kept at once."""
    stage.zero_grad()
    most = 0
    for kind, m, _ in order:
        (forward if kind == "F" else backward)(m)
        most = max(most, len(kept))
    for work in sent:
        work.wait()
    return most

# %% [markdown]
# **GPipe** does all forwards, then all backwards.
#
# **Predict.** What does rank 1 send in a step of 8 micro-batches, and what must it keep?

# %%
predict("14-messages", "How many messages does rank 1 send in a step of 8 micro-batches?",
        unit="messages")
predict("14-kept", "How many micro-batches does rank 1 keep at once, at most?",
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
settle("14-messages", lambda: cluster.pull("ledger.messages_sent")[1])
settle("14-kept", lambda: cluster.pull("most")[1])

# %% [markdown]
# <details><summary>Why?</summary>
#
# Each micro-batch crosses each of the three borders twice: an activation forward, a gradient of the same size (4 x 64 numbers of 8 bytes) back. Ranks 1 and 2 send both kinds,
# rank 0 only activations, rank 3 only gradients: $2 M (S-1)$ messages in all. And as no backward begins before the last forward, each rank keeps all 8.
# </details>
#
# ## The bubble, by formula and by simulation
#
# The last rank begins after $S - 1$ forwards, and after it has ended, the first one needs $S - 1$ backwards more. All else is work: $M$ forwards and backwards. So a rank idles for
#
# $$ \frac{S - 1}{M + S - 1} $$
#
# of the step: the **bubble**. (Some divide by the busy time instead: $(S - 1) / M$. Look which one a paper means.) A *simulation* needs no formula: each event begins when its rank is free and what
# it needs is there. So it can do stages of any cost, and slow messages.

# %%
for m in (1, 4, 8, 16, 32):
    spans = play(gpipe(4, m), lambda event: {"F": 1, "B": 2}[event.kind])
    slow = play(gpipe(4, m), lambda event: {"F": 1, "B": 2}[event.kind], message_s=0.2)
    print(f"{m:>2} micro-batches: formula {bubble(4, m):.3f}, simulated {idle(spans):.3f}, "
          f"with messages of a fifth of a forward {idle(slow):.3f}")

# %% [markdown]
# More micro-batches, less bubble. But they are smaller, and a small matrix product uses a processor less well; and GPipe keeps them all.
#
# ## 1F1B keeps less
#
# A rank need not wait for the last forward: as soon as micro-batch 0 has been through all stages, its backward can begin. **1F1B** does just enough forwards ahead, $S - 1 - r$ on rank $r$; then
# one forward and one backward in turn; then the backwards that are left.

# %%
for rank, order in enumerate(one_f_one_b(4, 8)):
    print(f"rank {rank}:", " ".join(f"{kind}{m}" for kind, m, _ in order))
spans = play(one_f_one_b(4, 8), lambda event: {"F": 1, "B": 2}[event.kind])
print("bubble", round(idle(spans), 3), "as GPipe's", round(bubble(4, 8), 3))

# %% [markdown]
# **Predict.** We run this order with the same functions. `dist.send` over gloo comes back only when the other side has received: a *rendezvous*. What happens?

# %%
predict("14-rendezvous",
        "1F1B with sends that wait for their receiver: the step ends with ...",
        ["the right gradients", "wrong gradients", "some ranks waiting for ever",
         "all ranks waiting for ever"])

# %% tags=["setup"]
# %%px --setup
from manyhands.simulate.pipeline import one_f_one_b, read_orders

# %% tags=["raises-exception"]
# %%px --patience 3
run(one_f_one_b(stages, micro)[rank])

# %%
import sys

def who_waits():
    waiting = {waiter for waiter, _ in sys.last_value.edges}
    return f"{'all' if len(waiting) == 4 else 'some'} ranks waiting for ever"

settle("14-rendezvous", who_waits)

# %% [markdown]
# <details><summary>Why?</summary>
#
# Rank 3 has done the first backward and wants to send its gradient. Rank 2 wants to send the next activation. Each waits until the other one receives. Ranks 0 and 1 wait behind them: every rank stands in
# a send. The tag in the report is the micro-batch (0 is not printed). In GPipe everybody sends in one direction at a time, so no circle can come about.
# </details>
#
# A simulation finds that without running anything: with `blocking=True` its sends are rendezvous.

# %%
from manyhands.simulate.pipeline import Stuck

try:
    play(one_f_one_b(4, 8), lambda event: 1, blocking=True)
except Stuck as stuck:
    print(stuck)

# %% [markdown]
# The cure: `dist.isend` does not wait. What it returns keeps the tensor, and must be waited for before the step ends; `run` does that. (Over gloo `is_completed()` is true only after `wait()`, and that `run` calls at the
# end of a step: its messages leave the list at the first send of the next step. To save their memory, wait for an activation's when its gradient has come: then it has arrived.) The cluster has healed itself.

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
# The same gradients in the same time, and rank $r$ keeps $\min(M, S - r)$ micro-batches, however many there are.

# %% [markdown]
# > **On GPUs.** NCCL has no tags: the i-th send to a rank meets its i-th receive. Two neighbours that send to each other can hang even with `isend`: Megatron-LM and
# > `torch.distributed.pipelining` start a send and a receive together, by `dist.batch_isend_irecv`. Messages run on streams of their own, beside the computing,
# > so a clock in Python shows launches, until `torch.cuda.synchronize()`. Stages on different nodes are the usual choice: a border moves little (Narayanan et al. 2021).

# %% [markdown]
# ## Measured, on any machine
#
# Four ranks that compute on two cores disturb each other. So the computing here is emulated: a `StageClock` around a stage adds 50 ms to its forward and 100 ms to its backward by *sleeping*, which needs no core; outputs and
# gradients stay as they are. It notes when each pass begins and ends, and what backward still needs.

# %% tags=["setup"]
# %%px --setup
import gc

from manyhands.ledger.stage_clock import StageClock

def timed(step, clocks, order, repeats=3):
    """For each of some steps what this rank's stages, {number: clock}, have noted:
    (spans, changes of memory)."""
    found = []
    for repeat in range(repeats + 1):  # the first one makes connections, and is not kept
        gc.collect()  # what the step before has left in circles of references
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
# What is left between formula and measurement are the messages, and whoever else uses this machine.
#
# ## Recomputation
#
# Backward needs what the layers inside a stage have computed. It can be computed anew: keep only the stage's *input*, and run its forward once more when its backward begins (`torch.utils.checkpoint`; the random
# numbers of dropout are put back to what they were).
#
# **Predict.** A stage keeps its input and two outputs for each micro-batch. What part of the memory is saved, and how much longer is a step, if a backward takes two forwards?

# %%
predict("14-saved", "Which part of what is kept does recomputation save? Like 1/2, or 0.5",
        within=0.02)
predict("14-longer", "A step with recomputation is how many times as long?",
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
settle("14-saved", lambda: cluster.pull("1 - peaks[1] / peaks[0]")[0])
settle("14-longer", lambda: finish_s(steps["recomputed"]) / finish_s(steps["plain"]))

# %% [markdown]
# <details><summary>Why?</summary>
#
# One of three tensors is kept, which is a third. With more layers in a stage it is far less. The step takes a third more time because forward, backward and forward again are 4 instead of 3. The bubble, a *part* of the step, does
# not change. While a backward runs, the activations of *one* micro-batch exist again; the number above does not count them.
# </details>
#
# This is *full* recomputation, which GPipe always does. A transformer need not pay that price, since *selective* recomputation repeats only what needs much memory and little computing. We try it on a block of the course's small GPT. A *policy* decides for each
# operation, and ours keeps the results of the linear layers. Backward then computes the scores and the softmax of attention, the norms and gelu once more.

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
# Full recomputation adds less than a third here because PyTorch stops as soon as backward has all that it needs, so the last layer is not repeated. Korthikanti et al. (2022) report that selective recomputation, together with sequence parallelism (unit 15), needs a fifth of the
# memory for activations and saves over 90 % of the extra time. FlashAttention always computes the scores again in backward.
#
# ## The first and the last stage
#
# The first stage of a language model also has the embedding, and the last one has the head. Both are matrices of words times width. The embedding only looks up rows, so it takes memory but hardly any time. The head multiplies every place by its whole matrix. We compare it with a
# block by the number of weights, since each weight takes part in one multiplication for each place. (This leaves out the scores of attention.)

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
# In the 405B model of Llama 3 the head costs only two thirds of a block, and its last stage has one block less than the others (Grattafiori et al. 2024). Its first stage has one block less, too, because it holds the embedding and, under 1F1B, keeps the most micro-batches.
#
# Many models use *one* matrix as embedding and as head (*tied weights*, Press and Wolf 2017). In a pipeline it exists twice, and each of the two stages finds only the gradient from its own place, so the two must be summed before the optimiser steps. Below, our eight layers get
# such a matrix at both ends.
#
# **Predict.** Clipping is a second trap, since the norm of a gradient belongs to the *whole* network. Suppose that each of the four stages calls `clip_grad_norm_(stage.parameters(), 0.01)`, and that on most stages the norm is larger than this. What norm does the gradient of the network have afterwards?

# %%
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
alone = nn.Sequential(*copy.deepcopy(network))  # it has one matrix, too
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
settle("14-norm", lambda: cluster.pull("clipped.item()")[0])

# %% [markdown]
# <details><summary>Why?</summary>
#
# The norm of each stage's gradient is 0.01 at most, so the norm of all four parts together is $\sqrt 4 \times 0.01$ at most. It is a little smaller here because one stage was below the limit, and because the last stage's copy of the matrix is not counted a second time. Worse, each stage has
# multiplied by a different factor, so the direction has changed, and the two copies of the matrix drift apart. Add up the squares of all stages with an all-reduce, and let every stage clip by the root of the sum.
# </details>
#
# ## Batch norm sees micro-batches
#
# All that looks at a whole batch changes. Batch norm takes mean and variance of what it is given: of 4 rows here, not of 32.

# %%
# %%px --ranks 0
one, many = nn.BatchNorm1d(64).double(), nn.BatchNorm1d(64).double()
apart = (one(x) - torch.cat([many(part) for part in xs])).abs().max()
means = (one.running_mean - many.running_mean).abs().max()
print(f"outputs differ by up to {apart:.2f}; running mean: {means:.2f};",
      f"updates {one.num_batches_tracked.item()} and {many.num_batches_tracked.item()}")

# %% [markdown]
# It is another network, as under data parallelism (unit 01). Layer norm and group norm look at one row at a time, and do not mind.
#
# ## torch.distributed.pipelining
#
# PyTorch has all of this. `pipeline()` cuts a module where you say, by tracing it with one micro-batch; parameters keep their names.

# %%
# %%px --ranks 0
import warnings

from torch.distributed.pipelining import SplitPoint, pipeline

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # of torch's own tracing
    pipe = pipeline(nn.Sequential(*copy.deepcopy(layers)), mb_args=(xs[0],),
                    split_spec={name: SplitPoint.BEGINNING for name in "246"})
named = [pipe.get_stage_module(s).named_parameters() for s in range(4)]
print(pipe.num_stages, "stages;",
      *[[name for name, _ in pairs if "weight" in name] for pairs in named])

# %% [markdown]
# Or you cut by hand, and make `PipelineStage`s. Some schedules want several stages on each rank, eight in all here:
#
# | schedule | stages on a rank | idea |
# |---|---|---|
# | GPipe, 1F1B | one | as above |
# | LoopedBFS, Interleaved1F1B | r and r + 4 | each stage is half as long, so the pipeline fills in half the time: $\frac{S - 1}{v M + S - 1}$ with $v$ stages on each rank, for $M$ a multiple of $S$ |
# | InterleavedZeroBubble | r and r + 4 | backward in two parts: **I**, the gradient of the input, which somebody waits for, and **W**, those of the weights, which can wait, and fill the bubble |
# | ZBVZeroBubble, DualPipeV | r and 7 - r: a V | the first rank has the last stage too |

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
    """The schedule, a function that does one step, and the clocks of this rank's stages
    by number."""
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
# Same gradients from all seven. A schedule can print its order: in `3F1` stage 3 does the forward of micro-batch 1; `None` is a pause.

# %%
printed = cluster.pull("printed")[0]
for name in ("Interleaved1F1B", "ZBVZeroBubble"):
    actions = [action for action in printed[name][3] if action != "None"]
    print(f"{name}, rank 3:", " ".join(actions))

# %% [markdown]
# We read these orders, let the simulator play them, and draw them. A stage is half as long here where a rank has two. (In torch 2.15 the order that Schedule1F1B *prints* for the last rank counts its forwards from 1. It runs the right one,
# so we take ours.) The simulation hides no messages, so it cannot show what DualPipeV is made for. It runs the forward of one micro-batch next to the backward of another, so that each hides the messages of the other, above all the all-to-alls of experts (DeepSeek-AI 2024).

# %%
from manyhands.simulate.pipeline import alive, read_orders

orders = {name: one_f_one_b(4, 8) if name == "1F1B" else read_orders(order)
          for name, order in printed.items()}

def ms(event, chunks):
    """A forward takes 50 ms, a backward 100 ms for a rank's stages together; the first
    stage has no input to find a gradient for."""
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
# **Predict.** Which of GPipe, 1F1B, Interleaved1F1B and ZBVZeroBubble has the smallest bubble, and which keeps the most?

# %%
predict("14-smallest", "Measured, with messages: which one has the smallest bubble?",
        ["GPipe", "1F1B", "Interleaved1F1B", "ZBVZeroBubble"])
predict("14-most", "In which one does a rank keep the most?",
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
def bubble_measured(name):
    return bubble_of(measured[name].spans)

def most_kept(name):
    return max(kept for points in measured[name].memory for _, kept in points)

settle("14-smallest", lambda: min(measured, key=bubble_measured))
settle("14-most", lambda: max(measured, key=most_kept))

# %% [markdown]
# <details><summary>How to read it</summary>
#
# Time goes to the right, a row for each rank, a box for each pass with the number of its micro-batch. GPipe and 1F1B have the same bubble, at other places; 1F1B's curves are low, and lower
# on later ranks. Interleaved1F1B fills its pipeline in half the time: the bubble falls from 0.27 to 0.16 by formula; more than twice as many messages stand on the way (7 borders in place of 3), and it keeps more. ZBVZeroBubble
# puts W into the gaps, and keeps two thirds of what GPipe does, on every rank: eight passes of half a stage, and what I has used is freed by W at the earliest. Each message costs something, so the schedules with more of them, and with shorter passes, miss their
# simulation by more; on a busy machine they lose what they had gained.
# </details>
#
# ## The trap: shapes by trial
#
# A `PipelineStage` that does not know its shapes finds them in its first step, by running the stage once more, the first one on a micro-batch and all others on memory that nothing has filled. PyTorch then puts back the random numbers of dropout, and from 2.15 on also the buffers,
# such as the statistics of batch norm (with 2.13, batch norm counted the trial). It cannot put back what `forward` has written into an attribute.
#
# **Predict.** A stage counts the calls of its `forward` in an attribute. How many calls does it count in one step with eight micro-batches?

# %%
predict("14-seen", "8 micro-batches in one step: how many calls does a stage count?",
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
settle("14-seen", lambda: cluster.pull("by_trial")[0])

# %% [markdown]
# The ninth call was the trial. Whatever it has written outside of buffers stays, for example a counter or a moving average that is kept as an attribute, and on all stages but the first its input can be anything, infinity too. If your stage keeps such a state, give the shapes, as above: on the `meta` device a tensor has a shape and no numbers.
# (Without `requires_grad` the stages would send no gradients.)
#
# ## When, and what it costs
#
# **Use a pipeline** when the network does not fit on one device, and the links between devices are slow: only activations at the borders travel, $2 M (S - 1)$ messages a step. It needs many micro-batches, several times the number of
# stages, and layers that can be cut into blocks of equal cost.
#
# **Do not** where a batch is small, or where one layer is too large for a device (units 13 and 15).
#
# **What it costs:** the bubble; the memory of the micro-batches under way; a network that must be a chain of blocks, or be made one; and batch norm.
#
# **The most common mistakes.** The loss is not divided by the number of micro-batches, or all micro-batches have the same weight although their numbers of rows differ. A send waits for a receiver that is sending, too. Each stage clips its gradients by its own norm, or tied weights are
# not summed. The optimiser steps between micro-batches, so that a forward and its backward have different weights. (PipeDream of 2019 did so on purpose, and kept old weights for it.)
#
# Bad numbers are refused: Schedule1F1B wants at least as many micro-batches as stages, a batch whose rows do not divide fails in the middle of a step.

# %%
# %%px --ranks 3
part = pp.PipelineStage(stage, rank, stages, torch.device("cpu"))
try:
    pp.Schedule1F1B(part, 2, loss_fn=mse_loss)
except ValueError as error:
    print(error)

# %% [markdown]
# ## What you can say now
#
# * *Cut* so that the dearest stage is as cheap as can be. Without micro-batches $S - 1$ of $S$ ranks wait.
# * *GPipe and 1F1B* have the same gradients and the same bubble. 1F1B's neighbours send to each other at once, so it needs `isend`.
# * *The bubble* is $(S - 1) / (v M + S - 1)$ of the step; the simulation agrees, and the clock nearly.
# * *Memory:* GPipe keeps $M$ micro-batches, 1F1B $\min(M, S - r)$. Full recomputation keeps inputs only, for a third more time, and selective recomputation costs far less.
# * *The ends* of a language model have additional work or memory: the head costs time, and the embedding costs memory. The gradients of tied weights are summed over both ends, and a gradient's norm is summed over all stages.
# * *torch.distributed.pipelining* prints its orders. Give it shapes, or batch norm sees one micro-batch too many.
#
# **Now the lab:** write all of this, and choose the cheapest plan. Then unit 15 cuts inside the layers.
#
# **References.** Y. Huang et al. 2019, *GPipe*, [arXiv 1811.06965](https://arxiv.org/abs/1811.06965). D. Narayanan et al. 2019, *PipeDream*, SOSP; 2021, *Memory-Efficient Pipeline-Parallel DNN Training*,
# [arXiv 2006.09503](https://arxiv.org/abs/2006.09503); 2021, *Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM*, [arXiv 2104.04473](https://arxiv.org/abs/2104.04473) (interleaved, the other
# bubble). P. Qi et al. 2023, *Zero Bubble Pipeline Parallelism*, [arXiv 2401.10241](https://arxiv.org/abs/2401.10241); 2024, *Pipeline Parallelism with Controllable Memory*, [arXiv
# 2405.15362](https://arxiv.org/abs/2405.15362) (V-shaped). T. Chen et al. 2016, *Training Deep Nets with Sublinear Memory Cost*, [arXiv 1604.06174](https://arxiv.org/abs/1604.06174). V. Korthikanti et al. 2022, *Reducing Activation Recomputation in Large Transformer Models*,
# [arXiv 2205.05198](https://arxiv.org/abs/2205.05198). A. Grattafiori et al. 2024, *The Llama 3 Herd of Models*, [arXiv 2407.21783](https://arxiv.org/abs/2407.21783), section 3.3.2. O. Press, L. Wolf 2017, *Using the Output Embedding to Improve Language Models*,
# [arXiv 1608.05859](https://arxiv.org/abs/1608.05859). DeepSeek-AI 2024, *DeepSeek-V3 Technical
# Report*, [arXiv 2412.19437](https://arxiv.org/abs/2412.19437) (DualPipe). PyTorch, [Pipeline Parallelism](https://docs.pytorch.org/docs/stable/distributed.pipelining.html).

# %%
cluster.stop()
