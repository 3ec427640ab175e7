# %% [markdown] unit={"minutes": 45, "ranks": 4, "framework": "torch", "title": "Hackathon"}
# # 20 Hackathon
#
# A hackathon on distributed training has two halves: your own script becomes right and fast, and a challenge in which all teams have the same task. At the end you can
#
# * let the clinic look at a training script, mend what it finds, and show that nothing is left;
# * read the order of a step in a profiler's trace, and explain what the same trace looks like on a GPU;
# * say what a step of it costs, and what it would take on 1024 GPUs;
# * check a job before it takes 64 GPUs;
# * say how the hackathon counts time, and why nobody's machine matters;
# * hand in a first entry in 20 minutes: begin, try, read what the score is paid with, one step up, judge, verify.
#
# **Before:** units 01, 05 and 06. **Minutes:** 45. **Ranks:** 4, which the judge starts; 2 for the clinic.
#
# All cells run in this kernel, which starts commands. Each of them is typed the same way in a terminal.

# %% tags=["setup"]
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from manyhands import predict, settle

home = tempfile.TemporaryDirectory()  # for scripts and entries; ended with the kernel

# %% [markdown]
# ## A script comes to the clinic
#
# [scripts/20_train.py](scripts/20_train.py) was written for one GPU, and then made parallel in an evening. It is started with torchrun, and it trains:

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
# The loss falls on two ranks. So it works?
#
# **Predict.** Read the lines above once more. How many mistakes will be found that make it another training than that of one process?

# %%
predict("20-mistakes",
        "A script for torchrun with DDP; its loss falls. How many mistakes are found?",
        ["none", "one", "two", "three"])

# %% [markdown]
# In a terminal: `manyhands clinic scripts/20_train.py --ranks 2`. It runs nine steps of a copy, with observers on each rank: the weights, the rows, the gradients before and after they are averaged. It changes nothing in the
# script. Besides the text it writes a page, `clinic.html`, with a time line of a step: open it in a browser (in JupyterLab: a double click on the file, then *Trust HTML*; in a terminal `--open` does it). Here the same, called from Python:

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
NUMBERS = ["none", "one", "two", "three"]
settle("20-mistakes", lambda: NUMBERS[len(first.mistakes)])

# %% [markdown]
# <details><summary>Why did the loss fall, then?</summary>
#
# Two ranks that learn from the same rows do twice the work of one, and learn what one learns. A gradient that is halved is a rate that is halved: slower, not wrong to look at. Neither raises an error, and no curve shows it. Only a comparison does: the
# gradient that the optimiser got, against that of one process with all the rows.
# </details>
#
# The page says what to do. We mend one after the other; `mend` replaces some lines and keeps the script's new text:

# %%
def mend(text, old, new):
    assert text.count(old) == 1, "it stands there once"
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
# DDP averages already, so the loss is not divided; and a sampler deals the rows to the ranks.
#
# **Predict.** The same examination again. What is found now?

# %%
predict("20-again",
        "Both mistakes are mended as the page says. What does the clinic find now?",
        ["nothing", "one new mistake", "the same two"])

# %% tags=["measured"]
second = conclude(visit(written(text, "second.py"), ranks=2))
for one in second.mistakes:
    print(f"{one.title}\n  {one.text}\n  -> {one.remedy}")

# %%
settle("20-again", lambda: "nothing" if not second.mistakes else "one new mistake"
       if not {one.key for one in second.mistakes} & {one.key for one in first.mistakes}
       else "the same two")

# %% [markdown]
# A sampler brings a duty along: it must be told each epoch, or it deals the same order for ever. Mending one thing may bring another; so run the clinic after *each* change, and stop when it finds nothing.
#
# And one waste: each step sends a second message, for a loss that is printed once an epoch. A rank can add up its own, and one message tells the mean.

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
# The weights are those of one process now, step by step. (The one call beside DDP's is that of the epoch's end.) And look at the losses: those of the broken script, nearly to the last digit. Its epochs had 16 steps, whose
# rows both ranks took and whose gradients were halved; now 8 steps, of 32 rows, come as far. No curve would have told.
#
# ## Read a trace of one step
#
# Unit 06 reads the *durations* in a profiler's trace. Here we read the *order* of a step, because it is the same on every machine. The cell below adds `torch.profiler` to a script. The profiler waits for some steps, warms up during
# one, records one, and then every rank writes its own file. By default, it records the CPU and, if there is one, the GPU.

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
# A trace is a list of events, each with a name, a start `ts` and a duration `dur`. Four names are enough for a first look at DDP. `AddmmBackward0` computes the gradients of one linear layer, and `c10d::allreduce_` starts an all-reduce;
# its shapes show how many numbers travel.

# %%
import json
import math

def order(text, name):
    """What rank 0 starts during one step of a script, in this order."""
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
# We record three scripts: the one that came, the mended one, and the mended one with buckets of 4 kB instead of DDP's 25 MiB.
#
# **Predict.** The network has two linear layers, and all 38 kB of its gradients fit into one bucket. When does the all-reduce of the mended script start?

# %%
MOMENTS = ["before all gradients", "after one layer's gradients", "after all gradients"]
predict("20-trace",
        "Two layers, 38 kB of gradients in one DDP bucket: when does its all-reduce start?",
        MOMENTS)

# %%
scripts = {"as it came": Path("scripts/20_train.py").read_text(), "mended": text}
scripts["small buckets"] = mend(text, "Parallel(net)", "Parallel(net, bucket_cap_mb=0.004)")
orders = {name: order(script, f"trace_{i}.py")
          for i, (name, script) in enumerate(scripts.items())}
for name, found in orders.items():
    print(f"{name}:", *found, sep="\n    ")

# %%
def moment():
    sent = [part.startswith("all-reduce") for part in orders["mended"]].index(True)
    return MOMENTS[orders["mended"][:sent].count("gradients")]

settle("20-trace", moment)

# %% [markdown]
# The script that came shows its waste: a second all-reduce of 4 bytes at the end of the step. In the mended script, the only all-reduce starts after the last gradients. It is **exposed**, because no computing is left that could hide
# it. With small buckets, the first all-reduce starts while the gradients of the other layer are still to be computed. Only the last one is exposed now. (In so small a network, a second message costs more than it hides. With layers of
# many megabytes, it pays.)
#
# ### The same picture on a GPU
#
# *This part is taken from the documentation of PyTorch and of HTA, a tool that reads such traces, and from PyTorch's source. We did not measure it here.* On a GPU, the CPU's thread only *launches* kernels, and each
# stream of the GPU has a row of its own: the kernels that compute are in one of them, NCCL's kernels (`ncclDevKernel_...`) in another. Look for four things, in this order:
#
# | you see | it means | what helps |
# |---|---|---|
# | gaps in the row that computes, while the CPU's row is busy | HTA calls it *host wait*: the CPU does not launch kernels fast enough | more rows a rank; fewer and fused operators (`torch.compile`) |
# | `cudaStreamSynchronize` in the CPU's row, and an empty row of kernels behind it | an `.item()`, a `print(loss)`, a `.cpu()` or an `if` on a tensor: the CPU waits until the GPU is done, and only then launches again | read the loss once in many steps |
# | NCCL's kernels below the kernels of backward | the all-reduces are hidden, as the first one with small buckets | nothing to do |
# | an NCCL kernel behind the last kernel of backward, and nothing above it | an exposed all-reduce, as in the mended script | a smaller `bucket_cap_mb`, fewer bytes, or `no_sync` (unit 06) |
#
# A collective cannot end before every rank has started it. Therefore a long NCCL kernel may also be a wait for a slow rank: compare the traces of two ranks before you blame the network. HTA computes the idle time by cause, and the
# share of the communication that is hidden.

# %% [markdown]
# ## What would it take on 1024?
#
# `manyhands predict mended.py --to 8,64,1024 --machine dgx-h100 --times-as-fast 400` runs the script on one rank and on two, takes from that what a step computes and sends, and simulates the rest (unit 19). A GPU is not a core of
# this machine: here we *assume* that one is 400 times as fast.
#
# **Predict.** This small network, 16 rows a rank, on 1024 H100: which part of a step is computing?

# %%
predict("20-scale",
        "A net of 10,000 weights, 16 rows a rank, 1024 H100: how much of a step computes?",
        ["more than half", "a tenth to a half", "less than a tenth"])

# %% tags=["measured"]
from manyhands.clinic import scale
from manyhands.simulate.machines import named

found = scale.measured(visit(mended, ranks=1), together)
forecasts = [scale.forecast(found, named("dgx-h100", 0.7).machine, ranks, 400)
             for ranks in (8, 64, 1024)]
print(scale.table(forecasts))

# %%
def computing():
    part = forecasts[-1].step.computing
    return "more than half" if part > 0.5 else \
        "less than a tenth" if part < 0.1 else "a tenth to a half"

settle("20-scale", computing)

# %% [markdown]
# <details><summary>Why?</summary>
#
# A step of so small a network takes microseconds on a GPU, whereas an all-reduce among 1024 ranks needs many hops, whatever it sends. A ring has 2046 hops, so a sum of 40 kB takes 11.5 ms. The prediction takes the fastest way for each message, as NCCL does. On H100 the switches add inside a node, and a double tree between the 128 nodes has 14 hops, so the same sum takes 0.16 ms. This
# is still far more than the computing. What helps is more rows a rank, fewer messages, or messages that are sent less often. The last is what you will try in the challenge. How far you can trust such a prediction is the subject of docs/PREDICT.md.
# </details>
#
# ## Before you take 64 GPUs
#
# An hour on 64 GPUs costs as much as 64 hours on one. Each line of this list is checked on a laptop or on one node.
#
# | you can say | what shows it |
# |---|---|
# | Every gradient is what a single process computes. | `manyhands clinic train.py --ranks 4` ends with exit code 0 |
# | NCCL accepts what gloo accepts. | `manyhands rehearse train.py --ranks 4` |
# | We know how long a step on 64 GPUs should take, and which part of it computes. | `manyhands predict train.py --to 8,64 --machine dgx-h100 --times-as-fast N` |
# | One node needs as long as predicted, or we know why not. | `torchrun --standalone --nproc-per-node 8 train.py`, with a trace of one step |
# | A resumed run is the same run. | stop after 10 of 20 steps, start again, and compare the losses with 20 steps in one go (unit 18, *Killed, twice*) |
# | The loss of one process costs minutes. | `torchrun --max-restarts 3 ...`, then `kill -9` one worker (unit 18, *torchrun starts it again*) |
# | We know the bytes and the seconds of a checkpoint, and how often to save. | `du -sh` its folder, time one save (unit 18, *How often?*) |
# | The output of every rank is kept, and its lines name the step. | `torchrun --log-dir logs --tee 3 ...` (unit 00) |
# | The job saves before the queue's limit ends it. | `#SBATCH --time` and `--signal=B:USR1@300`, tried with a limit of 10 minutes (unit 18) |
# | A hang ends and leaves a report, and we know who watches and who may stop the job. | `init_process_group(timeout=...)`, `TORCH_FR_DUMP_TEMP_FILE`; a name and `scancel` (docs/HANGS.md) |
#
# ## The hackathon
#
# Now all teams get the same task, and an answer that can be compared. A **challenge** says what is to be reached; an **entry** is a folder with one function:
#
# ```python
# def train(model, batches, comm):
#     ...                      # on each of four ranks; leaves the trained weights in model
# ```
#
# The **judge** is the harness around it: it has the data, computes the gradients, carries the messages and has the clock. Three things make its score one to rely on:
#
# * **The clock is counted, not measured.** A gradient takes 10 ms, a message of n bytes (n + 64) / rate + delay, on each rank's own clock. So a laptop and a server give the same time, to the last digit.
# * **The data stay with the judge.** `model(batch)` asks for a loss and a gradient, and pays for it. A rank has nothing else to learn from.
# * **Each judging draws new seeds**: for data, starts, and who is slow. All five runs must reach the target; the median counts.
#
# Four challenges: `slow_links`, `lame_rank` (one is always late, each quarter second another), `does_not_fit` (a GPT under a limit of memory), `big_batch` (the fewest updates). Rules, prizes and the day's plan stand in docs/HACKATHON.md.
#
# ### Minute 0: begin

# %%
def hack(*words):
    """`manyhands hack ...` in the folder of this notebook's entries."""
    done = subprocess.run([sys.executable, "-m", "manyhands", "hack", *words],
                          capture_output=True, text=True, cwd=home.name)
    print(done.stdout + done.stderr, end="")
    return done.stdout

begun = hack("init", "slow_links", "ours")
print(Path(home.name, "ours", "entry.py").read_text())

# %% [markdown]
# The folder has the task as `README.md`, and the baseline as `entry.py`: right, and slow. The network has 22,026 weights in four tensors, of 65,536, 2,048, 20,480 and 40 bytes. Links carry 10 Mbit/s, with a delay of 5 ms.
#
# ### Minute 3: try
#
# **Predict.** 150 steps, each a gradient of 10 ms and four all-reduces among four ranks. An all-reduce is 6 messages of a quarter, one after the other. How long is that on the clock?

# %%
predict("20-baseline", "150 steps, 88 kB in 4 all-reduces each, 10 Mbit/s, 5 ms: how long?",
        unit="s", within=0.2)

# %%
told = hack("try", "ours", "--runs", "1")

# %%
def seconds(told):
    return float(re.search(r"run 1 of \d: ([\d.]+) s", told)[1])

settle("20-baseline", lambda: seconds(told))

# %% [markdown]
# `try` uses public seeds, shows what your ranks print, and writes nothing down. `--runs 1` saves time; without it there are five runs, as the judge has them.
#
# <details><summary>What the rooms are, and what you see without them</summary>
#
# An entry of somebody else may do anything. So the judge runs each rank in a room of its own: no network, no file that can be written, no other process (bubblewrap, on Linux, x86_64 or aarch64; `apt-get install bubblewrap`, or who runs the machine
# allows namespaces for users; root is not needed). Where a machine cannot make rooms, `try` says so and runs your own entry without them: the same clock, the same score, no walls. `judge` refuses there: its records count for others. The lab's checks use no rooms of
# their own either: the notebook is yours, and the grader has a room for all of it.
# </details>
#
# ### Minute 6: what is it paid with?
#
# Each number of that line has a price. All ranks do the same here, so a quarter of the messages and bytes is one rank's:

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
# Computing is the smallest part. Half of the time is delays: 24 messages a step. So the first step up is not fewer bytes.
#
# ### Minute 8: one step up
#
# Put the four gradients into one tensor. It is the fusion of unit 05, in three lines.
#
# **Predict.** One all-reduce of all bytes in place of four. How much of the time is left?

# %%
predict("20-fused",
        "One all-reduce of the same bytes in place of four: how much of the time is left?",
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
settle("20-fused", lambda: min(
    (abs(seconds(faster) / seconds(told) - part), words) for part, words in
    ((0.25, "a quarter"), (0.6, "about 60 %"), (0.95, "more than 90 %")))[1])

# %% [markdown]
# Three quarters of the delays are gone, the bytes are as they were. Now they are what to save, or the messages as a whole. Three roads, each with a price in accuracy that only a run tells:
#
# * fewer bits: 16 in place of 32;
# * fewer numbers: the largest hundredth, and what was not sent is kept for later (Stich et al. 2018);
# * fewer messages: each rank trains alone for some steps, then weights are averaged (local SGD, Stich 2019), and the way from one average to the next can itself be a gradient (DiLoCo, Douillard et al. 2023).
#
# ### Minute 15: judge and verify
#
# At an event you `submit`, and the judge's machine does the rest. The same judge runs here: `judge` takes five seeds that nobody knows, and writes a **record**, signed with the key of whoever judges. A record tells each run's seed, so that anybody can judge again; `verify` says
# what is in it, and whether it was changed.

# %% tags=["measured"]
key = subprocess.run([sys.executable, "-m", "manyhands", "certificate", "--new-key",
                      "judge.key"], capture_output=True, text=True, cwd=home.name)
judged = hack("judge", "ours", "--key", "judge.key")

# %% tags=["measured"]
verified = hack("verify", "ours.record", "--public", "judge.key.pub")

# %% [markdown]
# All five reached 85 %, or there would be no score. What if a judge's friend makes the number a bit smaller, by hand?

# %% tags=["measured"]
record = Path(home.name, "ours.record")
if record.exists():  # not where this machine has no rooms
    changed = re.sub(r'"score": [\d.]+', '"score": 1.0', record.read_text())
    Path(home.name, "forged.record").write_text(changed)
    forged = hack("verify", "forged.record")

# %% [markdown]
# That is a whole entry. At an event the queue, the board and the clock on the wall come besides: `manyhands hack submit ours --event autumn --team "The Rings"`.
#
# ## Rules, in short
#
# 1. All five runs reach the target; the median counts; the best are judged once more at the end. So luck with seeds does not hold.
# 2. An entry learns from the gradients that it has paid for, and from nothing else. People read the entries that win.
# 3. What the judge offers is `model`, `batches` and `comm`. Who finds a way around them tells the organisers, and gets a prize for that.
#
# Ask mentors for questions, not for lines of code: *what is it paid with?* is the first that they will ask you.

# %% [markdown]
# > **On GPUs.** The clinic runs a script where the script puts its tensors, so with GPUs it looks at NCCL, and counts the allocator's memory. The hackathon's clock is counted: a GPU changes no score, and the judge
# > needs none. On real GPUs a message also costs kernels beside the computing (unit 19), and a counted clock does not know that: numbers of two entries compare, they are not those of a cluster.

# %% [markdown]
# ## What you can say now
#
# * *The clinic* compares each gradient with that of one process; a falling loss proves nothing. Run it after each change.
# * *A trace* shows what a step starts, in which order. What starts after the last gradients is exposed. On a GPU, gaps, synchronisations and NCCL's row tell the rest.
# * *The cost:* messages, bytes, waiting by rank; and what 1024 ranks would make of it.
# * *Before 64 GPUs:* ten lines, each with the command that shows it.
# * *The judge* counts: a gradient, a message, its bytes, its delay. What is counted can be priced before it runs.
# * *A first entry:* `init`, `try --runs 1`, price, one step up, `try`, `judge`, `verify`.
#
# **Now the lab:** mend, price, compress, and an entry of your own, with points for each rung.
#
# **References.** S. Stich, J.-B. Cordonnier, M. Jaggi 2018, *Sparsified SGD with Memory*, [arXiv 1809.07599](https://arxiv.org/abs/1809.07599).
# S. Stich 2019, *Local SGD Converges Fast and Communicates Little*, [arXiv 1805.09767](https://arxiv.org/abs/1805.09767).
# A. Douillard et al. 2023, *DiLoCo: Distributed Low-Communication Training of Language Models*, [arXiv 2311.08105](https://arxiv.org/abs/2311.08105).
# PyTorch: [torch.profiler](https://docs.pytorch.org/docs/stable/profiler.html); *Performance Tuning Guide*, [Avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html).
# Holistic Trace Analysis (HTA): [Idle Time Breakdown and Communication Computation Overlap](https://hta.readthedocs.io/en/latest/).
