# %% [markdown] unit={"minutes": 35, "ranks": 1, "framework": "torch", "title": "DataParallel"}
# # 03 DataParallel
#
# With one line of code, `nn.DataParallel` trains one module on several devices, in one process. In this notebook, you write `nn.DataParallel` yourself, as four
# functions. At the end you can
#
# * explain what DataParallel does in every step, namely scatter, replicate, parallel apply and gather, and what adds up the gradients;
# * predict how many rows each replica gets, and how many replicas there are;
# * explain which statistics batch norm keeps, and what is lost in a replica;
# * measure what threads cost, and explain for which models the GIL matters;
# * compute how many bytes fill device 0, and explain how to reduce them;
# * port a training loop to DistributedDataParallel, line by line.
#
# **Before:** unit 01 helps. **Minutes:** 35 · **Ranks:** none. Every cell runs in this kernel and no cluster is started, because DataParallel is *one
# process with one thread for each device*.

# %% [markdown]
# ## Four devices on any machine
#
# In this notebook, a device is given by its name. With four GPUs, the list of devices would be `["cuda:0", ..., "cuda:3"]`, whereas we use `"cpu"` four times.
# Replicas are still real copies and threads are still real threads, although all devices here share one memory. Real GPUs follow at the end.

# %% tags=["setup"]
import copy
import time
from threading import Thread

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from manyhands import predict, settle

# each operation uses one core, so that only our threads run several of them at a time
torch.set_num_threads(1)
devices = ["cpu"] * 4

# %% [markdown]
# ## Scatter
#
# `torch.chunk` splits a batch along its rows, and each piece is moved to its device.

# %%
def scatter(x, devices):
    return [piece.to(device) for piece, device in zip(x.chunk(len(devices)), devices)]

for rows in (12, 10, 250):
    print(f"{rows:>3} rows on 4 devices:",
          [len(piece) for piece in scatter(torch.arange(rows), devices)])

# %% [markdown]
# **Predict.** How many devices get rows if you scatter 5 rows over 4 devices, or 9 rows over 8 devices?

# %%
# Run this cell to make your prediction.
predict("03-devices", "If 9 rows are scattered over 8 devices, how many get rows?",
        unit="devices")

# %%
for rows, number in ((5, 4), (9, 8), (2, 4)):
    print(f"{rows} rows on {number} devices:",
          [len(piece) for piece in torch.arange(rows).chunk(number)])

# %%
# Run this cell to compare your prediction with the outcome.
settle("03-devices", lambda: len(torch.arange(9).chunk(8)))

# %% [markdown]
# <details><summary>Why?</summary>
#
# `chunk` rounds up, so 5 rows are cut into pieces of ceil(5 / 4) = 2 rows until no rows are left. The result is three pieces, and the fourth device has nothing
# to do in this step. Unit 01 distributed 250 rows as 63, 63, 62 and 62, whereas here the last piece takes what is left. In the last, small batch of an epoch,
# a device may get no rows.
# </details>
#
# `nn.DataParallel` splits **every tensor** of the inputs in this way, including the tensors in tuples, lists and dicts, and passes everything else to every
# replica. However, it cannot know which tensors are batches. To show this, we scatter a recurrent network's initial state, which has the batch in dimension 1,
# and a table that all rows need:

# %%
inputs = {"x": torch.zeros(8, 5), "state": torch.zeros(2, 8, 3), "table": torch.zeros(4, 4)}
first = {name: list(scatter(tensor, devices)[0].shape) for name, tensor in inputs.items()}
print("replica 0 gets", first)
print("pieces:", {name: len(scatter(tensor, devices)) for name, tensor in inputs.items()})

# %% [markdown]
# Replica 0 gets one of the two layers of the state and one of the four rows of the table. The input with the fewest pieces decides how many replicas run. Since
# the state has two pieces here, half of `x` would be skipped silently. Therefore, register tables as buffers of the module, and put the batch into dimension 0
# of each input.
#
# <details><summary>Positional and keyword arguments</summary>
#
# Rows are lost silently if all inputs are positional arguments, or if all of them are keyword arguments. If `x` is positional and `state` is a keyword
# argument, there are four pieces of `x` and two of `state`, and `nn.DataParallel` raises an error.
# </details>
#
# ## Replicate
#
# Each device needs a copy of the module, and `copy.deepcopy` makes one. **Predict.** The copy runs forward and backward. Where is the gradient afterwards?

# %%
# Run this cell to make your prediction.
predict("03-copy", "A deep copy runs forward and backward. Where is the gradient?",
        ["in the original", "in the copy", "in both", "in neither"])

# %%
w = nn.Linear(1, 1, bias=False)
twin = copy.deepcopy(w)
twin(torch.ones(1, 1)).sum().backward()
print("gradient in the copy:", twin.weight.grad, " in the original:", w.weight.grad)

# %%
# Run this cell to compare your prediction with the outcome.
WHERE = {(True, True): "in both", (True, False): "in the original",
         (False, True): "in the copy", (False, False): "in neither"}
settle("03-copy", lambda: WHERE[w.weight.grad is not None, twin.weight.grad is not None])

# %% [markdown]
# <details><summary>Why?</summary>
#
# The copy's weight is a separate leaf of the graph, and nothing connects it to the original. Since the optimiser knows only the original, whose gradient is
# missing, the optimiser would never change anything.
# </details>
#
# A copy that is made by an *operation* is connected to the original. For example, `to(device, copy=True)` is part of the graph, and its backward pass carries
# the gradient to the tensor that was copied. If there are several copies, the backward pass **adds up** their gradients, as it does for every tensor that is
# used several times. This sum takes the role of the all-reduce in unit 01, and you do not have to write it.

# %%
def connected(module, device, share):
    """Return a copy whose parameters and buffers are computed from the module's, in the
    graph. With `share`, the buffers are the module's own."""
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
# The module is copied **in every step**, because each step changes the weights and makes the old copies useless.
#
# ## Parallel apply
#
# Each replica runs in its own thread. Since the return value of a thread's function is lost, each thread stores its result at its place in a list.

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
# Why does `parallel_apply` need the line with `set_grad_enabled`? In the next cell, the caller has switched gradients off and autocast on. The cell shows what
# a new thread knows about these modes:

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
# Both modes are settings of a thread, and a new thread begins with the default modes. Moreover, an exception ends only the thread that raised it, so in the lab
# you pass exceptions on to the caller.
#
# <details><summary>What nn.DataParallel passes on to its threads</summary>
#
# `nn.DataParallel` passes on the grad mode and whether autocast is on. However, it does not pass on autocast's dtype, as you can read in `parallel_apply.py` of
# PyTorch 2.15. The default dtype is `bfloat16` on CPUs, as the cell shows, but `float16` on GPUs. Under `torch.autocast("cuda", dtype=torch.bfloat16)`, the
# replicas therefore use `float16`, which overflows where `bfloat16` does not.
# </details>
#
# ## Gather, and all together
#
# `gather` joins the outputs on one device. The test uses whole numbers, so the results must be identical down to the last bit.

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
# The results are the same, although the replicas had 3, 3, 3 and 1 rows. Because the loss is computed once, from all outputs, there is no mean of means,
# and you need not choose between a sum and a mean.
#
# ## The task of the track
#
# Most units from 01 to 10 train the same small network with different systems. Can you tell from the training loop that four replicas are at work?

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
# The weights agree to 1e-12 but not down to the last bit, because four partial sums are added in a different order (unit 01).
#
# ## What is lost in a replica
#
# With one exception, replicas are thrown away after each step, together with everything that their forward pass has written into them. The batch norm in
# the next cell keeps the mean of the last batch (`momentum=1`), and the rows are the numbers 0 to 7.
#
# **Predict.** Each of four replicas gets two of the eight rows. Is the running mean afterwards 3.5, 0.5, or a value in between?

# %%
# Run this cell to make your prediction.
predict("03-running-mean",
        "What is the running mean if each of four replicas gets two of the rows 0 to 7?")

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
# Run this cell to compare your prediction with the outcome.
settle("03-running-mean", lambda: norm.running_mean.item())

# %% [markdown]
# <details><summary>Why 0.5?</summary>
#
# Replica 0 has rows 0 and 1, and it *shares memory* with the original. `nn.DataParallel` copies nothing for the device where the module already is, and in our
# version replica 0 shares the buffers because of `share`. Since batch norm changes its buffers **in place**, what replica 0 writes is kept, whereas the other
# replicas write into copies.
#
# Moreover, each replica normalises with the mean and the standard deviation of only its two rows. During training, you notice nothing but noise. In evaluation,
# however, the statistics come from only a quarter of each batch. `nn.SyncBatchNorm` does not help, because it needs DistributedDataParallel.
# </details>
#
# What is not written in place is lost even in replica 0, both with `nn.DataParallel` and with our version:

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
# Python's global interpreter lock (GIL) lets only one thread at a time run Python code. PyTorch releases the lock while an operation computes, and acquires it
# again before the next operation. Therefore, threads help if operations are long, whereas they wait in line if operations are short. We compare two networks,
# each with one batch that is split over 1, 2 and 4 replicas:

# %%
class Again(nn.Module):
    """Apply one layer `times` times, as in a recurrent network."""
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
    """Return the durations of the phases of one step, in ms."""
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
# **Predict.** For which of the two networks does *parallel apply* become shorter with two replicas?

# %%
# Run this cell to make your prediction.
predict("03-gil",
        "For which network is parallel apply shorter with two replicas than with one?",
        ["many small ops", "few large ops", "both", "neither"])

# %% tags=["measured"]
from statistics import median
from manyhands.plots.phases import phases, phases_table

names, panels = ["scatter", "replicate", "parallel apply", "gather", "backward"], {}
for panel, (module, x) in networks.items():
    steps = {n: [] for n in (1, 2, 4)}
    for _ in range(14):  # in turn, so that a busy moment affects all alike
        for n in steps:
            steps[n].append(timed_step(module, x, devices[:n]))
    panels[panel] = {n: dict(zip(names, map(median, zip(*kept[2:]))))
                     for n, kept in steps.items()}
print(phases_table(panels))
phases(panels)

# %%
# Run this cell to compare your prediction with the outcome.
def shorter():
    found = [panel for panel, steps in panels.items()
             if steps[2]["parallel apply"] < steps[1]["parallel apply"]]
    return found[0] if len(found) == 1 else "both" if found else "neither"

settle("03-gil", shorter)

# %% [markdown]
# <details><summary>How to read it</summary>
#
# On the right, with few large operations, *parallel apply* becomes shorter with two replicas if there are two cores for them. With four replicas on two
# cores, nothing more is gained. On the left, with many small operations, every replica runs *all* the Python code of the module on a part of the rows. The
# rows take next to no time here, whereas the Python code takes nearly all of the time and must wait in line. So the more replicas there are, the slower the step
# becomes.
#
# *Replicate* is Python code, too, and it runs for each replica in every step. Here, it takes little time because these networks have only one layer, but with a
# hundred layers it takes much longer. Although `nn.DataParallel` copies more cleverly than our `deepcopy`, it also walks through all modules in Python.
#
# *Backward* is not shared between threads here, because for CPU tensors, PyTorch runs the backward pass in the thread that called `backward`. For GPUs, PyTorch
# has a C++ thread for each device.
#
# On a GPU, Python only *starts* an operation, and the device computes it. What counts is whether one Python process can start operations for all
# devices fast enough. Small operations on fast GPUs behave like the left panel.
# </details>
#
# ## Why device 0 fills up
#
# All outputs are gathered on device 0. The loss is computed there, and the gradients and the optimiser state are also stored there. We count the bytes for a
# network with many classes, in `float32`, with Adam, four devices and 1000 rows. The loss also keeps tensors for its backward pass, and autograd shows us their
# size.

# %%
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 5000))
x, y, kept = torch.randn(1000, 64), torch.randint(5000, (1000,)), []

def mb(*tensors):
    """Return the size of these tensors in megabytes, counting repeated ones once."""
    return sum({tensor.data_ptr(): tensor.nbytes for tensor in tensors}.values()) / 1e6

outputs = model(x)
with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor) or tensor,
                                              lambda tensor: tensor):
    loss = cross_entropy(outputs, y)
weights, inputs, hidden = mb(*model.parameters()), mb(x), mb(model[:2](x))
print(f"weights {weights:.1f} MB; outputs of all rows {mb(outputs):.1f} MB; kept for the "
      f"loss {mb(*kept):.1f} MB")

# %% [markdown]
# **Predict.** How much memory does device 0 need if the loss is computed there?

# %%
# Run this cell to make your prediction.
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
# Run this cell to compare your prediction with the outcome.
settle("03-device-0", lambda: replica + training + gathered)

# %% [markdown]
# Since the outputs are gathered on device 0, this device holds all of them in addition to its replica's own outputs. It also holds the log-probabilities of all
# rows, which the loss keeps. Therefore, device 0 runs out of memory first, whereas every other device holds only a seventh as much. (These numbers are added up
# over a step. What exists only during the backward pass is not counted.)
#
# The remedy is to compute the loss **inside** the module, where the outputs are. Then only a few numbers are gathered. Each replica keeps the log-probabilities
# of its rows (5 MB) instead of the outputs, so the other devices hold as much as before. Each replica returns the sum of its losses and the number of its rows,
# because a mean of means would be wrong for uneven pieces.

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
# Without a GPU, `nn.DataParallel` just calls the module. It raises no error, gives no warning and makes no replica, so a program that uses it needs no `if` for
# the CPU. However, the wrapper's `state_dict` has different names, so save the `state_dict` of `.module` instead.

# %%
device = "cuda:0" if torch.cuda.is_available() else "cpu"
wrapped, rows = nn.DataParallel(nn.Linear(3, 2)).to(device), torch.ones(5, 3, device=device)
print("same as the module:     ", torch.allclose(wrapped(rows), wrapped.module(rows)))
print("names in its state_dict:", list(wrapped.state_dict()))
print("names to save:          ", list(wrapped.module.state_dict()))

# %% [markdown]
# > **On GPUs.** There is one Python thread for each GPU, and the backward pass uses one C++ thread for each GPU. Copies, inputs, outputs and gradients travel
# > between the GPUs through device 0. Since Python only *starts* operations, the timing code above would have to call `torch.cuda.synchronize()` before it
# > reads the clock. The replicas' gradients are added up on device 0, with NCCL where it is available.

# %% [markdown]
# With two GPUs or more, the next cell runs `nn.DataParallel` on the track's task and shows the memory of each GPU. Otherwise, the cell is BLOCKED, which means
# that it cannot show anything on this machine and that we claim nothing.

# %% tags=["measured"]
def on_gpus(number):
    # it must be on device_ids[0] before the first step
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
# **Use DataParallel** for a quick experiment in a notebook, on a machine with a few GPUs and with a model of large operations. It is one line and needs no
# launcher and no ranks. **What it costs** in every step is a copy of all weights for each device, copies of all inputs and outputs, a run of the Python code
# for each replica, and memory on device 0.
#
# **Do not use it** for anything else. DistributedDataParallel (DDP, unit 06) has one process for each device. With DDP, the devices do not share a GIL, the
# weights are not copied in each step, gradients are sent while the backward pass runs, and several machines can take part. PyTorch's own page for
# `nn.DataParallel` recommends DDP even on one machine.
#
# **The three most common mistakes.** (1) If the loss is inside the module, `loss.mean()` over the replicas' losses is a mean of means, which is wrong for
# uneven pieces. (2) Some scripts trust what the forward pass has written, although batch norm's statistics come from replica 0's rows and attributes are lost.
# (3) Others expect a piece for every device, although the small last batch of an epoch may have fewer pieces. The lab's checks recognise the first and the
# third mistake as wrong answers, and they also examine the statistics.
#
# <details><summary>Two traps inside PyTorch</summary>
#
# PyTorch itself makes the third mistake. With few rows, a keyword argument that is not a tensor still goes to *all* devices, and a replica is called
# without its rows ([16432](https://github.com/pytorch/pytorch/issues/16432), [31460](https://github.com/pytorch/pytorch/issues/31460), both from 2019, and
# still present in 2.15). The second trap concerns padded sequences. If they are unpacked to the length of the longest sequence *of the replica*, they cannot be
# gathered. Use `pad_packed_sequence(..., total_length=...)` instead.
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
# | the loss of all rows | each rank's loss is the mean over its own rows, and the gradients are averaged, which is right if all ranks have equally many rows |
# | `loss.item()` in the log | one rank's loss only; for the loss of all rows, all ranks must call `dist.all_reduce` and divide the sum by the number of ranks |
# | batch norm: statistics of replica 0 | `model = nn.SyncBatchNorm.convert_sync_batchnorm(model)` before you wrap the model, or statistics of rank 0 |
# | `torch.save(model.module.state_dict(), path)` | the same, on rank 0 only |
#
# Everything that the script does once, such as a download, a print or a plot, now happens in each process, so choose one rank for it.
#
# ## What has aged
#
# <details><summary>What an older article says, and what is true today</summary>
#
# | an older article says | today |
# |---|---|
# | DataParallel takes the module and the ids of the GPUs; without ids, all GPUs | still true |
# | `model.to(device)` is needed as well | still true: parameters must be on `device_ids[0]` when forward is called, whether you move them before or after the wrapping |
# | on the CPU it must be left out with an `if` | not true, because without a GPU, DataParallel just calls the module |
# | DDP is faster even on one machine, because of the GIL | still true, but the GIL is only one of several reasons. Others are copies in every step, gathering and the lack of overlap. Python has had builds without a GIL since 3.13 (PEP 703), and has supported them officially since 3.14 (PEP 779), but the other reasons remain |
# | the code is easy to adapt | still true. However, in 2021 PyTorch's developers asked whether to remove it ([65936](https://github.com/pytorch/pytorch/issues/65936)); it is still there in 2.15, and new work goes into DDP and FSDP |
# </details>
#
# ## What you can do now
#
# * *Every step:* scatter splits the inputs, replicate copies the module, threads run the replicas, and gather joins the outputs. The backward pass takes
#   the same path in reverse, so that the copies' gradients add up in the original.
# * *Rows:* the pieces have ceil(n / devices) rows, until no rows are left, so 5 rows on 4 devices give 3 replicas.
# * *Lost:* what a replica writes is lost, unless replica 0 writes it in place. Batch norm keeps the statistics of replica 0's rows.
# * *Threads:* long operations run side by side, whereas Python code waits for the GIL.
# * *Device 0:* it holds outputs, loss, gradients and optimiser state, so compute the loss inside the module.
# * *Instead:* use DistributedDataParallel. The table above shows which lines change.
#
# **Go on** with the lab of this unit, where you complete the four functions. After that, unit 04 explains the all-reduce, and unit 06 explains DDP, which has
# replaced DataParallel.
#
# **References.** [nn.DataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html), PyTorch's documentation · S. Li et al.
# 2020, *PyTorch Distributed: Experiences on Accelerating Data Parallel Training*, [arXiv 2006.15704](https://arxiv.org/abs/2006.15704) · S. Ioffe and C.
# Szegedy 2015, *Batch Normalization*, [arXiv 1502.03167](https://arxiv.org/abs/1502.03167) · S. Gross 2023, *Making the Global Interpreter Lock Optional
# in CPython*, [PEP 703](https://peps.python.org/pep-0703/)
