# %% [markdown] unit={"minutes": 35, "ranks": 1, "framework": "torch", "title": "DataParallel"}
# # 03 DataParallel
#
# `nn.DataParallel` trains one module on several devices with one line, in one process. Here you write it yourself, in four functions. At the end you can
#
# * say what it does in every step: scatter, replicate, parallel apply, gather, and who adds up the gradients;
# * predict how many rows each replica gets, and how many replicas there are;
# * say which statistics batch norm keeps, and what else is lost in a replica;
# * measure what threads cost, and say for which models the GIL matters;
# * count in bytes why device 0 fills up, and what to do about it;
# * port a training loop to DistributedDataParallel, line by line.
#
# **Before:** unit 01 helps. **Minutes:** 35. **Ranks:** none. Every cell runs in this kernel: DataParallel is *one process with one thread for each device*,
# and no cluster is started.

# %% [markdown]
# ## Four devices on any machine
#
# Here a device is a name. With four GPUs it would be `["cuda:0", ..., "cuda:3"]`; we take four times `"cpu"`. Replicas are real copies then, and threads are
# real threads; only the memory is shared. We come to real GPUs at the end.

# %% tags=["setup"]
import copy
import time
from threading import Thread

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from manyhands import predict, settle

# an operation uses one core; several at the same time come from our threads only
torch.set_num_threads(1)
devices = ["cpu"] * 4

# %% [markdown]
# ## Scatter
#
# A batch is cut along its rows by `torch.chunk`, and each piece is moved to its device.

# %%
def scatter(x, devices):
    return [piece.to(device) for piece, device in zip(x.chunk(len(devices)), devices)]

for rows in (12, 10, 250):
    print(f"{rows:>3} rows on 4 devices:",
          [len(piece) for piece in scatter(torch.arange(rows), devices)])

# %% [markdown]
# **Predict.** And 5 rows on 4 devices? 9 rows on 8?

# %%
predict("03-devices", "9 rows on 8 devices: how many of them get rows?", unit="devices")

# %%
for rows, number in ((5, 4), (9, 8), (2, 4)):
    print(f"{rows} rows on {number} devices:",
          [len(piece) for piece in torch.arange(rows).chunk(number)])

# %%
settle("03-devices", lambda: len(torch.arange(9).chunk(8)))

# %% [markdown]
# <details><summary>Why?</summary>
#
# `chunk` rounds up: pieces of ceil(5 / 4) = 2 rows, until none are left. So there are three pieces, and the fourth device has nothing to do in this step. Unit
# 01 dealt 250 rows out as 63, 63, 62, 62; here the last piece takes what is left. The last, small batch of an epoch is where this is met.
# </details>
#
# `nn.DataParallel` cuts **every tensor** among the inputs in this way, in tuples, lists and dicts too, and gives all else to every replica. It cannot know
# which tensors are batches. Here a recurrent network's first state, with the batch in dimension 1, and a table that all rows need:

# %%
inputs = {"x": torch.zeros(8, 5), "state": torch.zeros(2, 8, 3), "table": torch.zeros(4, 4)}
first = {name: list(scatter(tensor, devices)[0].shape) for name, tensor in inputs.items()}
print("replica 0 gets", first)
print("pieces:", {name: len(scatter(tensor, devices)) for name, tensor in inputs.items()})

# %% [markdown]
# Replica 0 gets one of the two layers of the state, and one of the four rows of the table. The fewest pieces decide how many replicas run. Here the state has two pieces, so half of `x` would silently never be seen.
# Therefore make tables buffers of the module, and put batches into dimension 0.
#
# <details><summary>Positional and keyword arguments</summary>
#
# This holds if all inputs are positional or all are keywords. If `x` is positional and `state` is a keyword, there are four pieces of `x` and two of `state`, and `nn.DataParallel` raises an error.
# </details>
#
# ## Replicate
#
# Each device needs a copy of the module. `copy.deepcopy` makes one. **Predict.** The copy runs forward and backward. Where is the gradient?

# %%
predict("03-copy", "A deep copy runs forward and backward. Where is the gradient?",
        ["in the original", "in the copy", "in both", "in neither"])

# %%
w = nn.Linear(1, 1, bias=False)
twin = copy.deepcopy(w)
twin(torch.ones(1, 1)).sum().backward()
print("gradient in the copy:", twin.weight.grad, " in the original:", w.weight.grad)

# %%
WHERE = {(True, True): "in both", (True, False): "in the original",
         (False, True): "in the copy", (False, False): "in neither"}
settle("03-copy", lambda: WHERE[w.weight.grad is not None, twin.weight.grad is not None])

# %% [markdown]
# <details><summary>Why?</summary>
#
# The copy's weight is a separate leaf, and nothing connects it with the original. The optimiser, which knows the original only, would never move anything.
# </details>
#
# A copy made by an *operation* is connected: `to(device, copy=True)` is in the graph, and its backward carries the gradient to where the copy came from. With
# several copies, backward **adds up**, as for every tensor that is used several times. That sum is the all-reduce of unit 01, and nobody has to write it.

# %%
def connected(module, device, share):
    """A copy whose parameters come from those of `module`, in the graph; its buffers too.
    With `share`, buffers are the module's own."""
    replica = copy.deepcopy(module)
    for name, parameter in module.named_parameters():
        path, _, key = name.rpartition(".")
        replica.get_submodule(path)._parameters[key] = parameter.to(device, copy=True)
    for name, buffer in module.named_buffers():
        path, _, key = name.rpartition(".")
        replica.get_submodule(path)._buffers[key] = (buffer if share
                                                     else buffer.to(device, copy=True))
    return replica

def replicate(module, devices):
    return [connected(module, device, share=i == 0) for i, device in enumerate(devices)]

# %%
w = nn.Linear(1, 1, bias=False)
for rows, replica in zip((2, 3), replicate(w, devices[:2])):
    replica(torch.ones(rows, 1)).sum().backward()
    print(f"after a replica with {rows} rows, the gradient in the original is "
          f"{w.weight.grad.item():.0f}")

# %% [markdown]
# All that is done **in every step**: the weights have changed, so the old copies are worth nothing.
#
# ## Parallel apply
#
# One thread for each replica. What a thread's function returns goes nowhere, so each writes into its place in a list.

# %%
def parallel_apply(replicas, inputs):
    results, grad = [None] * len(replicas), torch.is_grad_enabled()
    def work(i):
        with torch.set_grad_enabled(grad):
            results[i] = replicas[i](inputs[i])
    threads = [Thread(target=work, args=(i,)) for i in range(len(replicas))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results

# %% [markdown]
# Why does it need the line with `set_grad_enabled`? Here the caller has switched gradients off and autocast on. See what a new thread knows of that:

# %%
def modes(where):
    print(f"{where:<7} grad mode {torch.is_grad_enabled()}, autocast "
          f"{torch.is_autocast_enabled('cpu')}, dtype {torch.get_autocast_dtype('cpu')}")

with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16):
    modes("caller:")
    thread = Thread(target=modes, args=("thread:",))
    thread.start()
    thread.join()

# %% [markdown]
# Both modes belong to a thread, and a new thread begins with the defaults. An exception also ends only its own thread, so in the lab you pass it on to the caller.
#
# <details><summary>What nn.DataParallel hands on to its threads</summary>
#
# It hands on the grad mode and whether autocast is on. It does not hand on autocast's dtype, as you can read in `parallel_apply.py` of PyTorch 2.15. The default is `bfloat16` on CPUs, as the cell shows, but `float16` on GPUs.
# So under `torch.autocast("cuda", dtype=torch.bfloat16)` the replicas use `float16`, which overflows where `bfloat16` does not.
# </details>
#
# ## Gather, and all together
#
# Join the outputs on one device. With whole numbers, "equal" means equal to the last bit.

# %%
def gather(outputs, device):
    return torch.cat([one.to(device) for one in outputs])

def data_parallel(module, x, devices):
    pieces = scatter(x, devices)
    replicas = replicate(module, devices[:len(pieces)])
    return gather(parallel_apply(replicas, pieces), devices[0])

# %%
torch.manual_seed(0)
module, x = nn.Linear(3, 2).double(), torch.randint(-3, 4, (10, 3)).double()
with torch.no_grad():
    for parameter in module.parameters():
        parameter.copy_(torch.randint(-3, 4, parameter.shape))

for name, outputs in (("one process", module(x)),
                      ("four replicas", data_parallel(module, x, devices))):
    module.zero_grad()
    outputs.square().sum().backward()
    print(f"{name:<14} outputs {outputs.sum().item():.0f}, gradients "
          f"{module.weight.grad.long().tolist()}, {module.bias.grad.long().tolist()}")

# %% [markdown]
# The same, with 3, 3, 3 and 1 rows. The loss is computed once, from all outputs: so there is no mean of means, and no question of sum or mean.
#
# ## The task of the track
#
# Units 01 to 10 train one small network with different systems. Can you tell from the loop that four replicas are at work?

# %%
from manyhands import track

x, y = map(torch.from_numpy, track.data())
reference, _ = track.one_process()
model = track.network()
optimiser = torch.optim.SGD(model.parameters(), lr=track.RATE, weight_decay=track.DECAY)
for step in range(track.STEPS):
    rows = track.rows(step)
    optimiser.zero_grad()
    cross_entropy(data_parallel(model, x[rows], devices), y[rows]).backward()
    optimiser.step()
print(track.table("03",
                  {"DataParallel by hand, with threads": track.distance(model.parameters(),
                                                                        reference)}))

# %% [markdown]
# Equal to 1e-12 and not to the last bit: four partial sums are added in another order (unit 01).
#
# ## What is lost in a replica
#
# Replicas are thrown away after each step, with all that forward has written into them. With one exception. This batch norm keeps the mean of the last batch
# (`momentum=1`), and the rows are the numbers 0 to 7.
#
# **Predict.** Two rows for each of four replicas. What is the running mean afterwards: 3.5, 0.5, or something in between?

# %%
predict("03-running-mean",
        "Rows 0 to 7, two for each of four replicas: what is the running mean?")

# %%
numbers = torch.arange(8.0).reshape(8, 1)
norm = nn.BatchNorm1d(1, momentum=1.0)
norm(numbers)
print("one process:   mean", norm.running_mean.item(), " batches",
      norm.num_batches_tracked.item())
norm = nn.BatchNorm1d(1, momentum=1.0)
data_parallel(norm, numbers, devices)
print("four replicas: mean", norm.running_mean.item(), " batches",
      norm.num_batches_tracked.item())

# %%
settle("03-running-mean", lambda: norm.running_mean.item())

# %% [markdown]
# <details><summary>Why 0.5?</summary>
#
# Replica 0 has rows 0 and 1. It *shares memory* with the original: with `nn.DataParallel` because nothing is copied for the device where the module
# already is, here because of `share`. Batch norm changes its buffers **in place**, so what replica 0 writes is kept. The other replicas write into copies.
#
# And each replica normalises with the mean and the standard deviation of its own two rows. In training you see nothing of that but noise; in evaluation the statistics are those of a
# quarter of each batch. `nn.SyncBatchNorm` does not help: it needs DistributedDataParallel.
# </details>
#
# What is not written in place is lost even in replica 0, with `nn.DataParallel` and with ours:

# %%
class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.register_buffer("in_place", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        self.in_place += len(x)
        return x

counter = Counter()
data_parallel(counter, numbers, devices)
print("calls:", counter.calls, " rows counted in the buffer:", counter.in_place.item(),
      "of", len(numbers))

# %% [markdown]
# ## The GIL, measured
#
# Python's global interpreter lock (GIL) lets one thread at a time run Python. PyTorch gives the lock away while an operation computes, and takes it back to
# come to the next one. So threads help when operations are long, and stand in line when they are short. Two networks, each with one batch on 1, 2 and 4
# replicas:

# %%
class Again(nn.Module):
    """One layer, applied `times` times, as in a recurrent network."""
    def __init__(self, width, times):
        super().__init__()
        self.layer, self.times = nn.Linear(width, width), times

    def forward(self, x):
        for _ in range(self.times):
            x = torch.tanh(self.layer(x))
        return x

torch.manual_seed(0)
networks = {"many small ops": (Again(16, 400), torch.randn(64, 16)),
            "few large ops": (Again(512, 4), torch.randn(1024, 512))}

# %%
def timed_step(module, x, devices):
    """The phases of one step, in ms."""
    marks, now = [time.perf_counter()], lambda: marks.append(time.perf_counter())
    pieces = scatter(x, devices)
    now()
    replicas = replicate(module, devices)
    now()
    outputs = parallel_apply(replicas, pieces)
    now()
    together = gather(outputs, devices[0])
    now()
    together.square().mean().backward()
    now()
    return [(b - a) * 1e3 for a, b in zip(marks, marks[1:])]

# %% [markdown]
# **Predict.** For which of the two does *parallel apply* become shorter with two replicas?

# %%
predict("03-gil", "For which does parallel apply become shorter with two replicas?",
        ["many small ops", "few large ops", "both", "neither"])

# %% tags=["measured"]
from statistics import median
from manyhands.plots.phases import phases, phases_table

names, panels = ["scatter", "replicate", "parallel apply", "gather", "backward"], {}
for panel, (module, x) in networks.items():
    steps = {n: [] for n in (1, 2, 4)}
    for _ in range(14):  # in turn, so that a busy moment hits all alike
        for n in steps:
            steps[n].append(timed_step(module, x, devices[:n]))
    panels[panel] = {n: dict(zip(names, map(median, zip(*kept[2:]))))
                     for n, kept in steps.items()}
print(phases_table(panels))
phases(panels)

# %%
def shorter():
    found = [panel for panel, steps in panels.items()
             if steps[2]["parallel apply"] < steps[1]["parallel apply"]]
    return found[0] if len(found) == 1 else "both" if found else "neither"

settle("03-gil", shorter)

# %% [markdown]
# <details><summary>How to read it</summary>
#
# Right, few large operations: *parallel apply* becomes shorter with two replicas, if there are two cores for them. With four replicas on two cores nothing more
# is won. Left, many small ones: every replica runs *all* the Python of the module, on a part of the rows. The rows cost next to nothing here. Python costs
# nearly everything, and it stands in line: the more replicas, the slower.
#
# *Replicate* is Python too, for each replica and in every step. Here it is small, because these networks have one layer. With a hundred layers it is not;
# `nn.DataParallel` copies more cleverly than our `deepcopy`, but it walks through all modules in Python as well.
#
# *Backward* is not shared out here: for CPU tensors, PyTorch runs it in the thread that has called it. For GPUs it has a C++ thread for each device.
#
# On a GPU an operation is *started* by Python and computed by the device. What counts is then whether one Python process can start operations for all devices
# fast enough. Small operations on fast GPUs are the left panel.
# </details>
#
# ## Why device 0 fills up
#
# All outputs are gathered on device 0. The loss is computed there, and gradients and optimiser live there. We count the bytes of a network with many classes, in `float32`, with Adam, four
# devices and 1000 rows. The loss keeps something for its backward pass, too, which autograd shows us.

# %%
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 5000))
x, y, kept = torch.randn(1000, 64), torch.randint(5000, (1000,)), []

def mb(*tensors):
    """Megabytes of these tensors; one that appears twice counts once."""
    return sum({tensor.data_ptr(): tensor.nbytes for tensor in tensors}.values()) / 1e6

outputs = model(x)
with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor) or tensor,
                                              lambda tensor: tensor):
    loss = cross_entropy(outputs, y)
weights, inputs, hidden = mb(*model.parameters()), mb(x), mb(model[:2](x))
print(f"weights {weights:.1f} MB; outputs of all rows {mb(outputs):.1f} MB; kept for the "
      f"loss {mb(*kept):.1f} MB")

# %% [markdown]
# **Predict.** How much does device 0 hold, if the loss is computed there?

# %%
predict("03-device-0",
        "How many MB does device 0 hold (weights 2.6, outputs 20, Adam and the loss)?",
        unit="MB", within=0.1)

# %%
replica = weights + (inputs + hidden + mb(outputs)) / 4  # a copy, and a quarter of the rows
gathered = mb(outputs, *kept)
training = weights + 2 * weights  # gradients, and Adam's two averages
print(f"every device holds {replica:.1f} MB. Device 0 holds {training:.1f} MB more for "
      f"gradients and Adam, and {gathered:.1f} MB more for outputs and loss:")
print(f"{replica + training + gathered:.1f} MB with the loss on device 0, "
      f"{replica + training:.1f} MB with the loss in the replicas")

# %%
settle("03-device-0", lambda: replica + training + gathered)

# %% [markdown]
# Device 0 has all outputs a second time, gathered, and the log-probabilities of all rows, which the loss keeps. So it runs out of memory first, while every other device holds a seventh of that. (These
# numbers are added up over a step. What exists only during the backward pass is not counted.)
#
# The remedy is to compute the loss **inside** the module, where the outputs are. Then only a few numbers are gathered. Each replica keeps the log-probabilities of its own rows (5 MB) instead of their outputs, so the other devices hold as much as before. Each replica returns the sum of its losses
# and the number of its rows, because a mean of means would be wrong for uneven pieces.

# %%
class WithLoss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, y):
        return torch.stack([cross_entropy(self.model(x), y, reduction="sum"),
                            x.new_tensor(len(y))])

pieces = zip(scatter(x, devices), scatter(y, devices))
sums, counts = gather([WithLoss(model)(*piece)[None] for piece in pieces], "cpu").T
print("the loss of all rows:", torch.allclose(sums.sum() / counts.sum(), loss))

# %% [markdown]
# ## nn.DataParallel itself
#
# Without a GPU it just calls the module. No error, no warning, no replica; so a program with it needs no `if` for the CPU. But its `state_dict` has other
# names: save that of `.module`.

# %%
device = "cuda:0" if torch.cuda.is_available() else "cpu"
wrapped, rows = nn.DataParallel(nn.Linear(3, 2)).to(device), torch.ones(5, 3, device=device)
print("same as the module:     ", torch.allclose(wrapped(rows), wrapped.module(rows)))
print("names in its state_dict:", list(wrapped.state_dict()))
print("names to save:          ", list(wrapped.module.state_dict()))

# %% [markdown]
# > **On GPUs.** One thread for each GPU, and backward runs in a C++ thread for each. Copies, inputs, outputs and gradients go between the GPUs
# > through device 0. Operations are only *started* by Python: the clock of the cells above would have to call `torch.cuda.synchronize()` first.
# > The replicas' gradients are added up on device 0, with NCCL where it is there.

# %% [markdown]
# With two GPUs or more, the next cell runs it on the track's task, and shows the memory of each. Elsewhere it is BLOCKED: it cannot be shown there, and nothing
# is claimed.

# %% tags=["measured"]
def on_gpus(number):
    # on device_ids[0] before the first step
    model = nn.DataParallel(track.network("cuda:0"))
    optimiser = torch.optim.SGD(model.parameters(), lr=track.RATE, weight_decay=track.DECAY)
    x, y = (torch.from_numpy(array).to("cuda:0") for array in track.data())
    for step in range(track.STEPS):
        optimiser.zero_grad()
        cross_entropy(model(x[track.rows(step)]), y[track.rows(step)]).backward()
        optimiser.step()
    print("same weights, to 1e-12:", track.distance(model.parameters(), reference) < 1e-12)
    print("most memory, in KB:", [torch.cuda.max_memory_allocated(i) // 1000
                                  for i in range(number)])

if torch.cuda.device_count() >= 2:
    on_gpus(torch.cuda.device_count())
else:
    print("BLOCKED: nn.DataParallel on real GPUs needs two of them")

# %% [markdown]
# ## When, when not, and the three most common mistakes
#
# **Use it** for a quick look at a machine with a few GPUs, in a notebook, for a model of large operations: it is one line, with no launcher and no ranks.
# **What it costs**, in every step: a copy of all weights to each device, of all inputs and outputs, Python once for each replica, and the memory of device 0.
#
# **Do not use it** for anything else. DistributedDataParallel (DDP, unit 06) has one process for each device. So there is no GIL between the devices, the weights are not copied in each step, gradients are sent
# while the backward pass runs, and several machines can take part. PyTorch's own page for `nn.DataParallel` recommends it on one machine, too.
#
# **The three most common mistakes.** (1) `loss.mean()` over the replicas' losses when the loss is inside the module: a mean of means, wrong for uneven pieces.
# (2) To trust what forward has written: batch norm's statistics are those of replica 0's rows, and attributes are lost. (3) To count on a piece for every
# device: the small last batch of an epoch has fewer. The lab's checks know the first and the third as wrong answers, and look at the statistics.
#
# <details><summary>Two traps inside PyTorch</summary>
#
# The third mistake is in PyTorch itself. With few rows, a keyword argument that is not a tensor still goes to *all* devices, and a replica is called without its rows
# ([16432](https://github.com/pytorch/pytorch/issues/16432), [31460](https://github.com/pytorch/pytorch/issues/31460), both of 2019, and still so in 2.15).
# Padded sequences that are unpacked to the longest sequence *of the replica* cannot be gathered. Use `pad_packed_sequence(..., total_length=...)`.
# </details>
#
# ## From DataParallel to DDP, line by line
#
# | in a script with DataParallel | with DDP (unit 06 runs it) |
# |---|---|
# | `python train.py` | `torchrun --nproc-per-node 4 train.py`, one process for each GPU |
# | | `dist.init_process_group("nccl")` at the start, `dist.destroy_process_group()` at the end |
# | `model.to("cuda:0")` | `local_rank = int(os.environ["LOCAL_RANK"])`, `torch.cuda.set_device(local_rank)`, `model.to(local_rank)` |
# | `x.to("cuda:0")`, `y.to("cuda:0")` | `x.to(local_rank)`, `y.to(local_rank)` |
# | `nn.DataParallel(model)` | `DistributedDataParallel(model, device_ids=[local_rank])` |
# | `DataLoader(data, batch_size=256, shuffle=True)`, the rows of all GPUs | `DataLoader(data, batch_size=64, sampler=DistributedSampler(data))`, the rows of one GPU; `sampler.set_epoch(epoch)` before each epoch |
# | the loss of all rows | each rank's loss is the mean of its own rows, and the gradients are averaged, which is right if all ranks have equally many rows |
# | `loss.item()` in the log | one rank's loss only; for the loss of all rows, all ranks must call `dist.all_reduce` and divide the sum by the number of ranks |
# | batch norm: statistics of replica 0 | `model = nn.SyncBatchNorm.convert_sync_batchnorm(model)` before the wrapping, or statistics of rank 0 |
# | `torch.save(model.module.state_dict(), path)` | the same, on rank 0 only |
#
# Everything that the script does once, such as a download, a print or a plot, now happens in each process. Choose a rank for it.
#
# ## What has aged
#
# <details><summary>What an older article says, and today</summary>
#
# | an older article says | today |
# |---|---|
# | DataParallel takes the module and the ids of the GPUs; without ids, all GPUs | holds |
# | besides, `model.to(device)` is needed | holds: parameters must be on `device_ids[0]` when forward is called, before or after the wrapping |
# | on the CPU it must be left out with an `if` | no: without a GPU it calls the module |
# | DDP is faster even on one machine, because of the GIL | holds, but the GIL is one reason of several: copies in every step, gathering, no overlap. Python has builds without a GIL since 3.13 (PEP 703), and supports them officially since 3.14 (PEP 779); the other reasons stay |
# | the code is easy to adapt | holds. But in 2021 PyTorch's developers asked whether to remove it ([65936](https://github.com/pytorch/pytorch/issues/65936)); it is still there in 2.15, and new work goes into DDP and FSDP |
# </details>
#
# ## What you can do now
#
# * *Every step:* scatter cuts inputs, replicate copies the module, threads run the replicas, gather joins the outputs; backward goes the same way back, and the copies' gradients add up in the original.
# * *Rows:* pieces of ceil(n / devices), until none are left; 5 rows on 4 devices are 3 replicas.
# * *Lost:* all that is not written in place in replica 0; batch norm keeps the statistics of replica 0's rows.
# * *Threads:* long operations run side by side, Python stands in line.
# * *Device 0:* outputs, loss, gradients and optimiser. Compute the loss inside.
# * *Instead:* DistributedDataParallel. The table above says which lines change.
#
# **Go on** with the lab of this unit, where the four functions become complete; then unit 04 for the all-reduce, and unit 06 for what took DataParallel's place.
#
# **References.** [nn.DataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html), PyTorch's documentation · S. Li et al. 2020,
# *PyTorch Distributed: Experiences on Accelerating Data Parallel Training*, [arXiv 2006.15704](https://arxiv.org/abs/2006.15704) · S. Ioffe and C. Szegedy
# 2015, *Batch Normalization*, [arXiv 1502.03167](https://arxiv.org/abs/1502.03167) · S. Gross 2023, *Making the Global Interpreter Lock Optional in CPython*,
# [PEP 703](https://peps.python.org/pep-0703/)
