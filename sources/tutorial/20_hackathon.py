# %% [markdown] unit={"minutes": 45, "ranks": 4, "framework": "torch", "title": "Hackathon"}
# # 20 Hackathon
#
# A hackathon on distributed training has two halves. In the first half, you make your own script correct and fast. In the second half, all teams work on the
# same challenge. At the end, you can
#
# * examine a training script with the clinic, repair what it finds, and show that no mistake is left.
# * read the order of the events of a step in a profiler's trace, and explain what the same trace looks like on a GPU.
# * predict what a step of the script costs, and how long it would take on 1024 GPUs.
# * check a job before it occupies 64 GPUs.
# * explain how the hackathon counts time, and why it does not matter which machine a team uses.
# * hand in a first entry in 20 minutes: begin, try, find out what the score is paid with, take one step up, judge and verify.
#
# **Before:** you have worked through units 01, 05 and 06. **Minutes:** 45 · **Ranks:** 4, which the judge starts; 2 for the clinic.
#
# All cells run in this kernel, which starts commands. In a terminal, you can type each of these commands in the same way.

# %% tags=["setup"]
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from manyhands import predict, settle

home = tempfile.TemporaryDirectory()  # scripts and entries; deleted with the kernel

# %% [markdown]
# ## A script comes to the clinic
#
# [scripts/20_train.py](scripts/20_train.py) was written for one GPU and then parallelised in an evening. We start it with torchrun, and it trains:

# %%
text = Path("scripts/20_train.py").read_text()
print(text[text.index("    model = Dist"):text.index("        if rank == 0")])

# %%
from manyhands.cluster.launch.guarded import guarded

def torchrun(script):
    told = guarded("python", "-m", "torch.distributed.run", "--standalone",
                   "--nproc-per-node", "2", script)
    print(*[line for line in told.splitlines() if line.startswith("epoch")], sep="\n")

torchrun("scripts/20_train.py")

# %% [markdown]
# The loss falls on two ranks, but does this mean that the script works?
#
# **Predict.** Read the lines above once more. How many mistakes will the clinic find that make the script train differently
# from a single process?

# %%
# Run this cell to make your prediction.
predict("20-mistakes",
        "How many mistakes does the clinic find in this DDP script, whose loss falls?",
        ["none", "one", "two", "three"])

# %% [markdown]
# In a terminal, you would type `manyhands clinic scripts/20_train.py --ranks 2`. The command runs nine steps of a copy of the script, and observers on each
# rank record the weights, the rows, and the gradients before and after they are averaged. The script itself is not changed. Besides the text, the command
# writes a page, `clinic.html`, with a time line of a step. Open it in a browser (in JupyterLab, double-click the file and select *Trust HTML*; in a terminal,
# use the option `--open`). Here, we call the clinic from Python instead:

# %% tags=["measured"]
from manyhands.clinic.conclude import conclude
from manyhands.clinic.plain_page import as_text
from manyhands.clinic.visit import rehearsed, visit

seen = visit("scripts/20_train.py", ranks=2)
rehearsed(seen, "scripts/20_train.py")  # once more, for the third question
first = conclude(seen)
print(as_text(first))

# %%
print(*[one.title for one in first.mistakes], sep="\n")

# %%
# Run this cell to compare your prediction with the outcome.
NUMBERS = ["none", "one", "two", "three"]
settle("20-mistakes", lambda: NUMBERS[len(first.mistakes)])

# %% [markdown]
# <details><summary>Why did the loss fall, then?</summary>
#
# Two ranks that learn from the same rows do twice the work of one rank, but they learn only what one rank learns. Halving the gradient has the same effect as
# halving the learning rate, so training is slower but does not look wrong. Neither mistake raises an error or shows in a curve. You find them only by comparing
# the gradient that the optimiser received with the gradient that a single process computes from all the rows.
# </details>
#
# The page says what to do about each mistake. We mend the mistakes one after the other with `mend`, which replaces some lines and returns the script's new
# text:

# %%
def mend(text, old, new):
    assert text.count(old) == 1, "the old lines must occur exactly once"
    return text.replace(old, new)

def written(text, name):
    path = Path(home.name, name)
    path.write_text(text)
    return path

text = mend(text, "    loader = DataLoader(data, BATCH, shuffle=True)",
            "    sampler = DistributedSampler(data)\n"
            "    loader = DataLoader(data, BATCH, sampler=sampler)")
text = mend(text, "(loss / world).backward()", "loss.backward()")

# %% [markdown]
# DDP already averages the gradients, so the loss must not be divided. A sampler distributes the rows over the ranks.
#
# **Predict.** We repeat the same examination. What does the clinic find now?

# %%
# Run this cell to make your prediction.
predict("20-again",
        "What does the clinic find once both mistakes are mended as the page says?",
        ["nothing", "one new mistake", "the same two"])

# %% tags=["measured"]
second = conclude(visit(written(text, "second.py"), ranks=2))
for one in second.mistakes:
    print(f"{one.title}\n  {one.text}\n  -> {one.remedy}")

# %%
# Run this cell to compare your prediction with the outcome.
settle("20-again", lambda: "nothing" if not second.mistakes else "one new mistake"
       if not {one.key for one in second.mistakes} & {one.key for one in first.mistakes}
       else "the same two")

# %% [markdown]
# A sampler has to be given the number of each epoch, because otherwise it uses the same order in every epoch. Since mending one mistake may bring a new one,
# run the clinic after *each* change, and stop when it finds nothing.
#
# The clinic also counted two collectives in a step. The second one is a waste, because it sends a loss that is printed only once per epoch. Instead, a rank can
# add up its own losses, so that a single message is enough to compute the mean.

# %%
text = mend(text, "        total = torch.zeros(1)\n",
            "        sampler.set_epoch(epoch)\n        total = torch.zeros(1)\n")
text = mend(text, """            mean = loss.detach().clone()
            dist.all_reduce(mean)
            total += mean / world
""", """            total += loss.detach() / world
        dist.all_reduce(total)
""")
mended = written(text, "mended.py")

# %% tags=["measured"]
together = visit(mended, ranks=2)
third = conclude(together)
print(as_text(third).partition("\n2.")[0])
for name, done in (("before", first), ("after", third)):
    print(f"{name}: {done.costs.calls:.3g} collectives a step, "
          f"{done.costs.sent_bytes[0] / 1e3:.1f} KB sent by rank 0")

# %%
print(len(third.mistakes), "mistakes; exit code of the command:", third.code)
torchrun(mended)

# %% [markdown]
# After every step, the weights are now the weights that a single process computes. (Apart from DDP's calls, the only remaining collective is the message
# at the end of an epoch.) Look at the losses as well. They agree with the losses of the broken script nearly to the last digit. In the broken script, an epoch
# had 16 steps in which both ranks used the same rows and the gradients were halved, whereas 8 steps of 32 rows now get just as far. No curve would have shown
# the difference.
#
# ## Read a trace of one step
#
# Unit 06 reads the *durations* in a profiler's trace. Here, we read the *order* of the events of a step, because this order is the same on every machine. The
# cell below adds `torch.profiler` to a script. The profiler waits for some steps, warms up during one step and records the next one. Then every rank writes its
# own file. By default, the profiler records the CPU and, if there is one, the GPU.

# %%
RECORDER = """    data = images()
    prof = profile(schedule=schedule(wait=3, warmup=1, active=1, repeat=1),
                   record_shapes=True, on_trace_ready=lambda prof:
                   prof.export_chrome_trace(f"{__file__}.{rank}.json"))
    prof.start()
"""

def with_trace(text):
    text = mend(text, "    data = images()\n", RECORDER)
    text = mend(text, "in loader:\n", "in loader:\n            prof.step()\n")
    return "from torch.profiler import profile, schedule\n" + text

# %% [markdown]
# A trace is a list of events, each with a name, a start `ts` and a duration `dur`. Four names are enough for a first look at DDP. For example, `AddmmBackward0`
# computes the gradients of one linear layer, and `c10d::allreduce_` starts an all-reduce. The input shapes of this event show how many numbers are sent.

# %%
import json
import math

def order(text, name):
    """List what rank 0 starts during one step of a script, in this order."""
    path = written(with_trace(text), name)
    guarded("python", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
            "2", path, env={"KINETO_LOG_LEVEL": "99"})
    events = json.loads(Path(f"{path}.0.json").read_text())["traceEvents"]
    events = [event for event in events if event["ph"] == "X"]
    found = []
    for event in sorted(events, key=lambda event: event["ts"]):
        if event["name"] == "DistributedDataParallel.forward":
            found.append("forward")
        elif event["name"] == "AddmmBackward0":
            found.append("gradients")
        elif event["name"] == "c10d::allreduce_":
            numbers = sum(map(math.prod, event["args"]["Input Dims"][0]))
            found.append(f"all-reduce of {4 * numbers} bytes")
        elif event["name"].startswith("Optimizer.step"):
            found.append("optimizer")
    return found

# %% [markdown]
# We record three scripts: the original one, the mended one, and the mended one with buckets of 4 kB instead of DDP's 25 MiB.
#
# **Predict.** The network has two linear layers, and all 38 kB of its gradients fit into one bucket. When does the all-reduce of the mended script start?

# %%
# Run this cell to make your prediction.
predict("20-trace",
        "When does the all-reduce of two layers start, with 38 kB in one DDP bucket?",
        ["before all gradients", "after one layer's gradients", "after all gradients"])

# %%
scripts = {"as it came": Path("scripts/20_train.py").read_text(), "mended": text}
scripts["small buckets"] = mend(text, "Parallel(net)", "Parallel(net, bucket_cap_mb=0.004)")
orders = {name: order(script, f"trace_{i}.py")
          for i, (name, script) in enumerate(scripts.items())}
for name, found in orders.items():
    print(f"{name}:", *found, sep="\n    ")

# %%
# Run this cell to compare your prediction with the outcome.
MOMENTS = ["before all gradients", "after one layer's gradients", "after all gradients"]

def moment():
    sent = [part.startswith("all-reduce") for part in orders["mended"]].index(True)
    return MOMENTS[orders["mended"][:sent].count("gradients")]

settle("20-trace", moment)

# %% [markdown]
# The trace of the original script shows the waste, a second all-reduce of 4 bytes at the end of the step. In the mended script, the only all-reduce starts
# after the last gradients. This all-reduce is **exposed**, because no computation is left that could hide it. With small buckets, the first all-reduce starts
# before the gradients of the other layer are computed, so only the last one is now exposed. (In such a small network, a second message costs more than it
# hides, whereas it pays off for layers of many megabytes.)
#
# ### The same picture on a GPU
#
# *This part is taken from the documentation of PyTorch and of HTA, a tool that reads such traces, and from PyTorch's source. We did not measure it here.* With
# a GPU, the CPU's thread only *launches* kernels, and each stream of the GPU has a separate row in the trace. The kernels that compute are in one of these
# rows, and NCCL's kernels (`ncclDevKernel_...`) are in another. Look for four things, in this order:
#
# | you see | it means | what helps |
# |---|---|---|
# | gaps in the row that computes, while the CPU's row is busy | HTA calls it *host wait*: the CPU does not launch kernels fast enough | more rows per rank; fewer and fused operators (`torch.compile`) |
# | `cudaStreamSynchronize` in the CPU's row, and an empty row of kernels behind it | because of an `.item()`, a `print(loss)`, a `.cpu()` or an `if` on a tensor, the CPU waits until the GPU is done, and only then launches again | read the loss once in many steps |
# | NCCL's kernels below the kernels of backward | the all-reduces are hidden, like the first one with small buckets | nothing to do |
# | an NCCL kernel behind the last kernel of backward, and nothing above it | an exposed all-reduce, as in the mended script | a smaller `bucket_cap_mb`, fewer bytes, or `no_sync` (unit 06) |
#
# A collective cannot end before every rank has started it. Therefore, a long NCCL kernel may also mean that its rank was waiting for a slow rank, so compare
# the traces of two ranks before you blame the network. HTA computes the idle time for each cause, and the fraction of the communication that is hidden.

# %% [markdown]
# ## What would it take on 1024?
#
# `manyhands predict mended.py --to 8,64,1024 --machine dgx-h100 --times-as-fast 400` runs the script on one rank and on two, derives from these runs what a
# step computes and sends, and simulates the rest (unit 19). Since the runs use a core of this machine instead of a GPU, we *assume* here that a GPU is 400
# times as fast.
#
# **Predict.** Suppose that this small network is trained on 1024 H100 GPUs, with 16 rows per rank. What fraction of a step is spent on computing?

# %%
# Run this cell to make your prediction.
predict("20-scale",
        "On 1024 H100, 16 rows a rank, 10,000 weights, how much of a step is computing?",
        ["more than half", "a tenth to a half", "less than a tenth"])

# %% tags=["measured"]
from manyhands.clinic import scale
from manyhands.simulate.machines import named

found = scale.measured(visit(mended, ranks=1), together)
forecasts = [scale.forecast(found, named("dgx-h100", 0.7).machine, ranks, 400)
             for ranks in (8, 64, 1024)]
print(scale.table(forecasts))

# %%
# Run this cell to compare your prediction with the outcome.
def computing():
    part = forecasts[-1].step.computing
    return "more than half" if part > 0.5 else \
        "less than a tenth" if part < 0.1 else "a tenth to a half"

settle("20-scale", computing)

# %% [markdown]
# <details><summary>Why?</summary>
#
# A step of such a small network takes microseconds on a GPU, whereas an all-reduce among 1024 ranks needs many hops, however little it sends. A ring has 2046
# hops, so a sum of 40 kB takes 11.5 ms. For each message, the prediction uses the fastest algorithm, as NCCL does. With H100 GPUs, the switches perform the
# additions inside a node, and a double tree between the 128 nodes has 14 hops, so the same sum takes 0.16 ms. This is still far more than the computation
# takes. More rows per rank help, and so do fewer or less frequent messages, which you will try in the challenge. docs/PREDICT.md explains how far you can trust
# such a prediction.
# </details>
#
# ## Before you take 64 GPUs
#
# An hour on 64 GPUs costs as much as 64 hours on one. You can check each line of the following list on a laptop or on one node.
#
# | you can say | what shows it |
# |---|---|
# | Every gradient is what a single process computes. | `manyhands clinic train.py --ranks 4` ends with exit code 0 |
# | NCCL accepts what gloo accepts. | `manyhands rehearse train.py --ranks 4` |
# | We know how long a step on 64 GPUs should take, and what fraction of it is computation. | `manyhands predict train.py --to 8,64 --machine dgx-h100 --times-as-fast N` |
# | One node needs as long as predicted, or we know why not. | `torchrun --standalone --nproc-per-node 8 train.py`, with a trace of one step |
# | A resumed run is the same run. | stop after 10 of 20 steps, start again, and compare the losses with 20 steps in one go (unit 18, *Killed, twice*) |
# | Losing a process costs only minutes. | `torchrun --max-restarts 3 ...`, then `kill -9` one worker (unit 18, *torchrun starts it again*) |
# | We know the bytes and the seconds of a checkpoint, and how often to save. | `du -sh` its folder, time one save (unit 18, *How often?*) |
# | The output of every rank is kept, and its lines name the step. | `torchrun --log-dir logs --tee 3 ...` (unit 00) |
# | The job saves before the queue's limit ends it. | `#SBATCH --time` and `--signal=B:USR1@300`, tried with a limit of 10 minutes (unit 18) |
# | A hang ends and leaves a report, and we know who watches and who may stop the job. | `init_process_group(timeout=...)`, `TORCH_FR_DUMP_TEMP_FILE`; a name and `scancel` (docs/HANGS.md) |
#
# ## The hackathon
#
# Now all teams get the same task, so that their answers can be compared. A **challenge** defines the target, and an **entry** is a folder with one function:
#
# ```python
# def train(model, batches, comm):
#     ...                      # on each of four ranks; leaves the trained weights in model
# ```
#
# The **judge** is the program around this function. It holds the data, computes the gradients, carries the messages and keeps the clock. You can rely on its
# score for three reasons:
#
# * **The clock is counted, not measured.** On each rank's clock, a gradient takes 10 ms and a message of n bytes takes (n + 64) / rate + delay. Therefore, a
#   laptop and a server give the same time, to the last digit.
# * **The data stay with the judge.** An entry calls `model(batch)` to get a loss and a gradient, and pays for both with time on the clock. A rank has nothing
#   else to learn from.
# * **Each judging draws new seeds** for the data, for the initial weights, and for the choice of the slow rank. All five runs must reach the target, and the
#   median counts.
#
# There are four challenges: `slow_links`, `lame_rank` (one rank is always slow, and it is a different rank every quarter of a second), `does_not_fit` (a GPT
# within a memory limit) and `big_batch` (the fewest updates). The rules, the prizes and the day's plan are in docs/HACKATHON.md.
#
# ### Minute 0: begin

# %%
def hack(*words):
    """Run `manyhands hack ...` in the folder of this notebook's entries."""
    done = subprocess.run([sys.executable, "-m", "manyhands", "hack", *words],
                          capture_output=True, text=True, cwd=home.name)
    print(done.stdout + done.stderr, end="")
    return done.stdout

begun = hack("init", "slow_links", "ours")
print(Path(home.name, "ours", "entry.py").read_text())

# %% [markdown]
# The folder contains the task as `README.md` and the baseline as `entry.py`, which is correct but slow. The network has 22,026 weights in four tensors, of
# 65,536, 2,048, 20,480 and 40 bytes. The links carry 10 Mbit/s, with a delay of 5 ms.
#
# ### Minute 3: try
#
# **Predict.** The baseline takes 150 steps. Each step computes a gradient, which takes 10 ms, and performs four all-reduces among four ranks. An all-reduce
# consists of 6 messages, sent one after the other, each of a quarter of the tensor. How many seconds does the baseline take on the judge's clock?

# %%
# Run this cell to make your prediction.
predict("20-baseline",
        "How long do 150 steps of 4 all-reduces (88 kB) take at 10 Mbit/s and 5 ms?",
        unit="s", within=0.2)

# %%
told = hack("try", "ours", "--runs", "1")

# %%
# Run this cell to compare your prediction with the outcome.
def seconds(told):
    return float(re.search(r"run 1 of \d: ([\d.]+) s", told)[1])

settle("20-baseline", lambda: seconds(told))

# %% [markdown]
# `try` uses public seeds, shows what your ranks print, and keeps no record. We use `--runs 1` to save time, since by default there are five runs, as in a
# judging.
#
# <details><summary>What the rooms are, and what you see without them</summary>
#
# An entry that someone else wrote may do anything. For this reason, the judge runs each rank in a separate room, with no network, no file that can be written,
# and no other process (bubblewrap, on Linux, x86_64 or aarch64; use `apt-get install bubblewrap`, or ask the administrator of the machine to allow namespaces
# for users; root is not needed). If a machine cannot make rooms, `try` says so and runs your own entry without rooms. The clock and the score are the same, but
# there are no walls. `judge` refuses to run there, because other people rely on its records. The lab's checks do not use separate rooms either, because the
# notebook is your own, and the grader runs all of it in one room.
# </details>
#
# ### Minute 6: what is it paid with?
#
# Each number in the line above has a price. Since all ranks do the same here, each rank accounts for a quarter of the messages and bytes:

# %%
def paid(told):
    n, mb, messages = re.search(r"(\d+) gradients, ([\d.]+) MB in (\d+) messages",
                                told).groups()
    prices = {"gradients": int(n) * 0.010, "delays": int(messages) / 4 * 0.005,
              "bytes": float(mb) * 1e6 / 4 / 1.25e6}
    for what, price in prices.items():
        print(f"{what:<10}{price:6.1f} s")
    print(f"{'in all':<10}{sum(prices.values()):6.1f} s")

paid(told)

# %% [markdown]
# Computation takes the smallest part of the time. Half of the time is spent on delays, because each rank sends 24 messages in each step. The first step up is
# therefore to send fewer messages rather than fewer bytes.
#
# ### Minute 8: one step up
#
# We put the four gradients into one tensor. This is the fusion of unit 05, in three lines.
#
# **Predict.** A single all-reduce now sends all the bytes that four all-reduces sent before. What fraction of the time is left?

# %%
# Run this cell to make your prediction.
predict("20-fused",
        "How much of the time is left if one all-reduce, not four, sends the same bytes?",
        ["a quarter", "about 60 %", "more than 90 %"])

# %%
ENTRY = '''"""All gradients in one message at each step."""

import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters

STEPS, RATE = 150, 0.3


def train(model, batches, comm):
    for _, batch in zip(range(STEPS), batches):
        model.zero_grad()
        model(batch).backward()
        slopes = parameters_to_vector([weight.grad for weight in model.parameters()])
        dist.all_reduce(slopes, op=dist.ReduceOp.AVG, group=comm)
        weights = parameters_to_vector(model.parameters()).detach()
        vector_to_parameters(weights - RATE * slopes, model.parameters())
'''
Path(home.name, "ours", "entry.py").write_text(ENTRY)
faster = hack("try", "ours", "--runs", "1")
paid(faster)

# %%
# Run this cell to compare your prediction with the outcome.
settle("20-fused", lambda: min(
    (abs(seconds(faster) / seconds(told) - part), words) for part, words in
    ((0.25, "a quarter"), (0.6, "about 60 %"), (0.95, "more than 90 %")))[1])

# %% [markdown]
# Three quarters of the delays are gone, while the bytes are the same as before. Next, we can save bytes or even whole messages. There are three ways, each of
# which has a price in accuracy that only a run can show:
#
# * You can send fewer bits, for example 16 instead of 32.
# * You can send fewer numbers, namely the largest hundredth, and keep what was not sent for later (Stich et al. 2018).
# * You can send fewer messages. Each rank then trains alone for some steps before the weights are averaged (local SGD, Stich 2019), and the difference between
#   one average and the next can itself be used as a gradient (DiLoCo, Douillard et al. 2023).
#
# ### Minute 15: judge and verify
#
# At an event, you `submit` your entry and the judge's machine does the rest. Here, the same judge runs on your machine. `judge` draws five seeds that are not
# known in advance, and it writes a **record**, signed with the key of the person who judges. Because a record contains the seed of each run, anyone can repeat
# the judging. `verify` reports what the record contains and whether it has been changed.

# %% tags=["measured"]
key = subprocess.run([sys.executable, "-m", "manyhands", "certificate", "--new-key",
                      "judge.key"], capture_output=True, text=True, cwd=home.name)
judged = hack("judge", "ours", "--key", "judge.key")

# %% tags=["measured"]
verified = hack("verify", "ours.record", "--public", "judge.key.pub")

# %% [markdown]
# All five runs reached 85 %, since otherwise there would be no score. What happens if a friend of the judge lowers the score in the record by hand?

# %% tags=["measured"]
record = Path(home.name, "ours.record")
if record.exists():  # not where this machine has no rooms
    changed = re.sub(r'"score": [\d.]+', '"score": 1.0', record.read_text())
    Path(home.name, "forged.record").write_text(changed)
    forged = hack("verify", "forged.record")

# %% [markdown]
# This is a complete entry. At an event, there are also a queue, a leaderboard and a clock on the wall, and you hand in your entry with
# `manyhands hack submit ours --event autumn --team "The Rings"`.
#
# ## Rules, in short
#
# 1. All five runs must reach the target, and the median counts. Because the best entries are judged once more at the end, luck with the seeds does not last.
# 2. An entry learns from the gradients that it has paid for, and from nothing else. People read the winning entries to make sure of this.
# 3. The judge offers `model`, `batches` and `comm`. If you find a way around these three, tell the organisers, and you get a prize for your report.
#
# Ask mentors for questions rather than for lines of code. The first question that they will ask you is *what is it paid with?*

# %% [markdown]
# > **On GPUs.** The clinic runs a script on the devices where the script puts its tensors, so with GPUs it examines NCCL and counts the allocator's memory. Since the hackathon's clock is counted, a GPU changes no score, and the judge
# > needs none. On real GPUs, the kernels of a message also slow down the computation that runs at the same time (unit 19), but a counted clock does not include this effect. You can therefore compare the numbers of two entries, but they are not the numbers of a cluster.

# %% [markdown]
# ## Summary
#
# * The clinic compares each gradient with the gradient that a single process computes, because a falling loss proves nothing. Run it after each change.
# * A trace shows what a step starts, and in which order. Whatever starts after the last gradients is exposed. On a GPU, look for gaps, synchronisations and
#   NCCL's row as well.
# * A step costs messages, bytes and waiting on each rank, and a simulation shows what it would cost on 1024 ranks.
# * Before a job takes 64 GPUs, check ten statements, each with the command that verifies it.
# * The judge counts gradients, messages, bytes and delays, so you can price an entry before you run it.
# * The way to a first entry is `init`, `try --runs 1`, a price, one step up, `try`, `judge` and `verify`.
#
# **Now the lab:** you mend a training script, price it, compress its messages, and write your own entry, which earns more points the faster it is.
#
# **References.** S. Stich, J.-B. Cordonnier, M. Jaggi 2018, *Sparsified SGD with Memory*, [arXiv 1809.07599](https://arxiv.org/abs/1809.07599). S. Stich 2019,
# *Local SGD Converges Fast and Communicates Little*, [arXiv 1805.09767](https://arxiv.org/abs/1805.09767). A. Douillard et al. 2023, *DiLoCo: Distributed
# Low-Communication Training of Language Models*, [arXiv 2311.08105](https://arxiv.org/abs/2311.08105). PyTorch:
# [torch.profiler](https://docs.pytorch.org/docs/stable/profiler.html); *Performance Tuning Guide*,
# [Avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html). Holistic Trace Analysis (HTA):
# [Idle Time Breakdown and Communication Computation Overlap](https://hta.readthedocs.io/en/latest/).
