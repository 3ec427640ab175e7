# %% [markdown] unit={"minutes": 45, "ranks": 4, "framework": "torch", "title": "Horovod"}
# # 10 Lab: find the bug
#
# This lab has four functions from training scripts with Horovod. Each of them runs without an error but is wrong, because it was written for a single process.
# You examine what each function leaves behind on all ranks, find out what is wrong, and repair it. At the end, you can
#
# * identify the missing edit from a few numbers.
# * tell from weights, losses, rows and files what a training script lacks.
# * repair such a script, so that all ranks together do what a single process would do.
#
# **Before:** the tutorial of this unit. **Minutes:** 45 · **Ranks:** 4, on 2 nodes · **Points:** 13.
#
# Cells that begin with `%%px` run on all four ranks, while the others run in this kernel. If a mistake makes the ranks wait for each other, the cluster notices
# it, reports which rank is waiting for which, and heals itself. It then runs the cells marked `--setup` again. Below each check, you see what it prints when
# the answer is right. The checks also run your functions in a world of three ranks.

# %% tags=["setup"]
from manyhands import Cluster, hint
from manyhands.checks import horovod as check

cluster = Cluster(nodes=2, ranks_per_node=2, framework="torch")

# %% tags=["setup"]
# %%px --setup
import os

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from manyhands.cluster.horovod import rendezvous
import horovod.torch as hvd

if not hvd.is_initialized():  # so that this cell can be run twice
    rendezvous()  # what horovodrun does for its processes
    hvd.init()

# %% [markdown]
# ## 1. Which edit is missing?
#
# A colleague sends you some numbers from a training run on 4 ranks and asks what is wrong. The numbers are in a dict with these keys.
#
# | key | meaning |
# |---|---|
# | `apart_at_start` | the largest distance between the weights of two ranks, before the first step |
# | `apart_at_end` | the same after the last step |
# | `rows_counted` | number of rows in the batches of one step, added up over all ranks |
# | `rows_there` | number of distinct rows among them |
# | `writers` | number of ranks that wrote the checkpoint |
#
# At most one edit is missing, and exactly one rank must have written the checkpoint. The answer is `"start"` (no broadcast), `"gradients"` (no
# DistributedOptimizer), `"rows"` (no shards), `"files"` (no rank wrote it, or several did), or `"nothing"`. Distances below 1e-9 are due to rounding.
#
# *Difficulty ●○○, 5 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# Ranks that start apart also end apart. For more help, run `hint("10-diagnose")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="diagnose"
def diagnose(symptoms: dict) -> str:
    """Return the missing edit: "start", "gradients", "rows", "files" or "nothing"."""
    ### BEGIN SOLUTION
    if symptoms["apart_at_start"] > 1e-9:
        return "start"
    if symptoms["apart_at_end"] > 1e-9:
        return "gradients"
    if symptoms["rows_counted"] != symptoms["rows_there"]:
        return "rows"
    return "files" if symptoms["writers"] != 1 else "nothing"
    ### END SOLUTION

# %% tags=["check"] grade_id="diagnose-check" points=2
check.diagnose(cluster, diagnose)

# %% [markdown]
# ## 2. First case: resume from step 7
#
# A training run was stopped, and its checkpoint is at `path`, on rank 0's disk only. All ranks call the following function and then continue to train.

# %% tags=["setup"]
# %%px --setup
def broken_resume(model, optimiser, path):
    step = 0
    if hvd.rank() == 0:
        found = torch.load(path)
        model.load_state_dict(found["model"])
        optimiser.load_state_dict(found["optimiser"])
        step = found["step"]
    return step

# %% [markdown]
# The next cell shows what the function leaves behind, for a small model with batch norm, whose optimiser uses momentum and weight decay.

# %%
# %%px
def small():
    torch.manual_seed(hvd.rank())
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).double()
    return (model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9,
                                   weight_decay=0.1))

path = os.environ["MANYHANDS_NODE_DIR"] + f"/before-{hvd.rank()}.pt"
if hvd.rank() == 0:
    model, optimiser = small()
    model(torch.ones(2, 2).double()).sum().backward()
    optimiser.step()
    torch.save({"model": model.state_dict(), "optimiser": optimiser.state_dict(),
                "step": 7}, path)
model, optimiser = small()
step = broken_resume(model, optimiser, path)
print(f"goes on at step {step}; {len(optimiser.state)} momenta; first weight "
      f"{model[0].weight[0, 0].item():.3f}, batches seen {model[1].num_batches_tracked}")

# %% [markdown]
# **Find the bugs.** Each number that differs from rank 0's number is a bug. Then repair the function, so that training on all ranks continues exactly as it
# would on rank 0 alone.
#
# *Difficulty ●●○, 10 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# What does the broadcast of an optimiser's state do on a rank whose optimiser has no state yet? For more help, run `hint("10-resume")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="resume"
# %%px --setup
def resume(model: nn.Module, optimiser: torch.optim.Optimizer, path: str) -> int:
    """Restore model and optimiser on all ranks from the checkpoint at `path`, which exists
    on rank 0 only, and return its step on all ranks."""
    ### BEGIN SOLUTION
    step = broken_resume(model, optimiser, path)
    hvd.broadcast_optimizer_state(optimiser, root_rank=0)
    # this comes last, because the line before may have taken a step
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    return hvd.broadcast_object(step, root_rank=0, name="step")
    ### END SOLUTION

# %% tags=["check"] grade_id="resume-check" points=3
check.resume(cluster, "resume")

# %% [markdown]
# ## 3. Second case: twenty rows
#
# Each rank has its own rows of the data, x and y, but not every rank has the same number of rows. All ranks start with the same weights.

# %% tags=["setup"]
# %%px --setup
def broken_fit(model, x, y, rate, steps):
    optimiser = torch.optim.SGD(model.parameters(), lr=rate)
    for step in range(steps):
        optimiser.zero_grad()
        cross_entropy(model(x), y).backward()
        optimiser.step()

# %%
# %%px
torch.manual_seed(0)
model, x, y = nn.Linear(4, 3).double(), torch.randn(20, 4).double(), torch.randint(3, (20,))
mine = [slice(0, 9), slice(9, 14), slice(14, 18), slice(18, 20)][hvd.rank()]
before = cross_entropy(model(x[mine]), y[mine]).item()
broken_fit(model, x[mine], y[mine], rate=0.5, steps=20)
print(f"loss of its own rows {before:.3f} to "
      f"{cross_entropy(model(x[mine]), y[mine]).item():.3f}, of all rows "
      f"{cross_entropy(model(x), y).item():.3f}")

# %% [markdown]
# **Find the bug.** What do the two losses tell you about the four models? Then repair the function, so that after the last step, all ranks have the weights
# that a single process computes when it minimises the **mean of the losses of all rows**, with the same learning rate and the same number of steps.
#
# *Difficulty ●●○, 10 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Is an average of means right here, where the ranks have different numbers of rows? For more help, run `hint("10-fit")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="fit"
# %%px --setup
def fit(model: nn.Module, x: torch.Tensor, y: torch.Tensor, rate: float,
        steps: int) -> None:
    """Run gradient descent on the mean loss of the rows of all ranks. x and y are this
    rank's rows, and all ranks start with the same model."""
    ### BEGIN SOLUTION
    optimiser = torch.optim.SGD(model.parameters(), lr=rate)
    optimiser = hvd.DistributedOptimizer(optimiser,
                                         named_parameters=model.named_parameters(),
                                         op=hvd.Sum)
    count = hvd.allreduce(torch.tensor(len(x)), op=hvd.Sum)
    for step in range(steps):
        optimiser.zero_grad()
        (cross_entropy(model(x), y, reduction="sum") / count).backward()
        optimiser.step()
    ### END SOLUTION

# %% tags=["check"] grade_id="fit-check" points=3
check.fit(cluster, "fit")

# %% [markdown]
# ## 4. Third case: an epoch
#
# This function returns the rows that a rank takes in the steps of an epoch, and the learning rate. The rate `base_rate` suits a single process whose steps have
# `rows_per_rank` rows.

# %% tags=["setup"]
# %%px --setup
def broken_epoch(n, rows_per_rank, epoch, base_rate):
    order = torch.randperm(n)
    return list(order.split(rows_per_rank)), base_rate

# %%
# %%px
torch.manual_seed(hvd.rank())
steps, rate = broken_epoch(12, rows_per_rank=2, epoch=0, base_rate=0.1)
print(f"{len(steps)} steps at rate {rate}:", [rows.tolist() for rows in steps])

# %% [markdown]
# **Find the bugs**, for example by counting how often row 0 is used. Then repair the function according to these rules.
#
# * The order of an epoch is `torch.randperm(n, generator=torch.Generator().manual_seed(epoch))`, and no row is used twice in an epoch.
# * A step takes `rows_per_rank` rows on each rank. All ranks take the same number of steps, namely as many whole steps as the rows allow, and the remaining
#   rows are left out.
# * The linear rule adapts the learning rate to the number of rows in a step.
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# How many rows do all ranks take together in one step? For more help, run `hint("10-epoch")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="epoch"
# %%px --setup
def epoch_of(n: int, rows_per_rank: int, epoch: int,
             base_rate: float) -> tuple[list, float]:
    """Return this rank's steps of an epoch over n rows, as a list of tensors of row
    numbers, and the learning rate."""
    ### BEGIN SOLUTION
    order = torch.randperm(n, generator=torch.Generator().manual_seed(epoch))
    steps = n // (rows_per_rank * hvd.size())
    mine = order[hvd.rank()::hvd.size()][:steps * rows_per_rank]
    return list(mine.view(steps, rows_per_rank)), base_rate * hvd.size()
    ### END SOLUTION

# %% tags=["check"] grade_id="epoch-check" points=3
check.epoch(cluster, "epoch_of")

# %% [markdown]
# ## 5. Fourth case: the end
#
# Each rank has the mean loss of its own rows. (Here, all ranks have the same number of rows.)

# %% tags=["setup"]
# %%px --setup
def broken_finish(model, loss, path):
    torch.save({"model": model.state_dict(), "loss": loss}, path)
    return loss

# %%
# %%px
path = os.environ["MANYHANDS_NODE_DIR"] + f"/after-{hvd.rank()}.pt"
print(f"rank {hvd.rank()} says {broken_finish(model, float(hvd.rank()), path)}; it wrote: "
      f"{os.path.exists(path)}")

# %% [markdown]
# **Find the bugs.** Then repair the function, so that only one file is written, as if there were a single process. The loss in this file is the mean over all
# ranks, and **every** rank returns this mean as a `float`.
#
# *Difficulty ●○○, 5 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# Which lines may follow `if hvd.rank() == 0`, and which may not? For more help, run `hint("10-finish")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="finish"
# %%px --setup
def finish(model: nn.Module, loss: float, path: str) -> float:
    """Save {"model": state, "loss": mean over the ranks} at `path`, on rank 0 only, and
    return that mean on every rank."""
    ### BEGIN SOLUTION
    loss = hvd.allreduce(torch.tensor(loss, dtype=torch.float64), name="loss").item()
    if hvd.rank() == 0:
        torch.save({"model": model.state_dict(), "loss": loss}, path)
    return loss
    ### END SOLUTION

# %% tags=["check"] grade_id="finish-check" points=2
check.finish(cluster, "finish")

# %% [markdown]
# ## As scripts
#
# The folder of this lab also contains the scripts [10_pytorch.py](10_pytorch.py) and [10_tensorflow.py](10_tensorflow.py), which make all four edits. Here,
# `horovodrun` and `mpirun` start them on two emulated nodes, whereas on Slurm you start them with [10_horovod.sbatch](10_horovod.sbatch), for example with
# `sbatch 10_horovod.sbatch`. Since these files are your own copies, you can leave out one edit at a time and look for the symptom.

# %%
run = cluster.launch("10_pytorch.py", with_="horovodrun", ranks_per_node=1, timeout_s=300)

# %%
run = cluster.launch("10_tensorflow.py", with_="mpirun", ranks_per_node=1, timeout_s=300)

# %% [markdown]
# ## Where to go on
#
# * Unit 06 asks the same questions about DDP, and unit 17 asks how far the learning rate can be scaled. Unit 11 spreads the model itself over the ranks.

# %%
cluster.stop()
