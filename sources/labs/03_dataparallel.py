# %% [markdown] unit={"minutes": 50, "ranks": 1, "framework": "torch", "title": "DataParallel"}
# # 03 Lab: nn.DataParallel, written by hand
#
# You write the four parts of `nn.DataParallel` and put them together. At the end you can
#
# * split nested inputs into pieces for the replicas, for any number of rows, and join the replicas' outputs;
# * make replicas whose gradients arrive in the original, even with tied weights, frozen weights and buffers;
# * run replicas in threads that keep the caller's modes, and report what went wrong in which replica;
# * explain and show what becomes of batch norm's statistics;
# * keep the outputs off device 0.
#
# **Before:** the tutorial of this unit. **Minutes:** 50 · **Ranks:** none · **Points:** 24, one of which needs two GPUs.
#
# If you are short of time, do exercises 1, 3 and 4 (33 minutes), because what they teach remains useful, although `nn.DataParallel` is on its way out. Each
# check needs only its own function.
#
# Everything runs in this one kernel. A *device* is given by its name, such as `"cuda:1"`. Here, the list of devices contains `"cpu"` four times, but replicas
# are real copies and threads are real threads. The checks also use a device called `"meta"`. On every machine, tensors on this device have a shape but no
# numbers, so they show even without a GPU whether something was moved. Below each check, you see what it prints when the answer is right.

# %% tags=["setup"]
import copy
from threading import Thread

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from manyhands import hint
from manyhands.checks import torch_dataparallel as check

# %% [markdown]
# ## 1. Scatter
#
# A module's inputs can be nested, with tensors, numbers, strings and None inside tuples, lists and dicts. Split all tensors along their rows (dimension 0) as
# `torch.chunk` does, and make a list with one item for each replica. An item looks like `value`, except that each tensor is replaced by a piece of it.
#
# An object that is not a tensor is passed to all replicas, as the same object. With few rows, there may be fewer pieces than devices. For example, 5 rows on 4
# devices give pieces of 2, 2 and 1 rows. The list is then shorter, and other objects are passed only to the devices that have a piece, because the input with
# the fewest pieces decides. Containers keep their type, and an empty container is passed to all replicas.
#
# *Difficulty ●●○, 10 minutes, 5 points*
#
# <details><summary>Hint</summary>
#
# `zip(*lists)` combines the first items, then the second items, and so on, until the shortest list ends. If you need more help, run `hint("03-scatter")` in a
# separate cell.
# </details>

# %% tags=["solution"] grade_id="scatter"
def scatter(value, devices: list[str]) -> list:
    """Return one item for each replica, at most len(devices) of them. Item i is `value`
    with all tensors split, and its pieces are on devices[i]."""
    ### BEGIN SOLUTION
    if isinstance(value, torch.Tensor):
        return [piece.to(device) for piece, device in zip(value.chunk(len(devices)),
                                                          devices)]
    if isinstance(value, (tuple, list)) and value:
        return [type(value)(items)
                for items in zip(*(scatter(one, devices) for one in value))]
    if isinstance(value, dict) and value:
        return [dict(zip(value, items))
                for items in zip(*(scatter(one, devices) for one in value.values()))]
    return [value] * len(devices)
    ### END SOLUTION

# %% tags=["check"] grade_id="scatter-check" points=5
check.scatter(scatter)

# %% [markdown]
# ## 2. Gather
#
# Gather is the way back. All replicas have returned the same structure, and you combine their outputs into a single output, on one device. Tensors are joined
# along their rows. However, a tensor without dimensions has no rows, so such tensors are combined into a vector with one entry for each replica. None stays
# None.
#
# Your function must refuse two things, namely dicts with different keys (`ValueError`), and anything that is not a tensor, a container or None
# (`TypeError`). In the first case, something would be lost silently. In the second, the object (a Python number, for example) has no gradient.
#
# *Difficulty ●●○, 7 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# Look at the first replica's output to see what kind of object you must gather. If you need more help, run `hint("03-gather")`.
# </details>

# %% tags=["solution"] grade_id="gather"
def gather(outputs: list, device: str):
    """Return one output with the structure of each replica's output. It has the rows of all
    replicas in their order, and it is on `device`."""
    ### BEGIN SOLUTION
    first = outputs[0]
    if isinstance(first, torch.Tensor):
        join = torch.cat if first.dim() else torch.stack
        return join([one.to(device) for one in outputs])
    if first is None:
        return None
    if isinstance(first, dict):
        if any(one.keys() != first.keys() for one in outputs):
            raise ValueError("the replicas' dicts have different keys")
        return {key: gather([one[key] for one in outputs], device) for key in first}
    if isinstance(first, (tuple, list)):
        return type(first)(gather(list(items), device) for items in zip(*outputs))
    raise TypeError(f"cannot gather {type(first).__name__}: return tensors")
    ### END SOLUTION

# %% tags=["check"] grade_id="gather-check" points=4
check.gather(gather)

# %% [markdown]
# ## 3. Replicate
#
# Make a copy of the module for each device, with separate submodules at every depth. The backward pass must lead from a replica's parameters to the original
# parameters, so that the gradients of all replicas add up there. The original itself stays as it is, and a frozen weight stays frozen.
#
# A weight that two layers share has two names but is *one* tensor, so it is copied once and is shared in the replica, too. (The tutorial's version goes by
# name, and therefore leaves the second name unconnected.) Replica 0 shares the memory of its buffers with the original, so that whatever its layers write into
# the buffers is kept. The other replicas have copies of the buffers.
#
# *Difficulty ●●●, 11 minutes, 5 points*
#
# <details><summary>Hint</summary>
#
# `copy.deepcopy` takes a second argument, `memo`, which says what it must not copy and what to use instead. If you need more help, run
# `hint("03-replicate")`.
# </details>

# %% tags=["solution"] grade_id="replicate"
def replicate(module: nn.Module, devices: list[str]) -> list[nn.Module]:
    """Return a replica of `module` for each device. In the backward pass, the replicas'
    gradients add up in the parameters of `module`."""
    ### BEGIN SOLUTION
    replicas = []
    for i, device in enumerate(devices):
        memo = {id(one): one.to(device, copy=True) if i else one.view_as(one)
                for one in (*module.parameters(), *module.buffers())}
        replicas.append(copy.deepcopy(module, memo))
    return replicas
    ### END SOLUTION

# %% tags=["check"] grade_id="replicate-check" points=5
check.replicate(replicate)

# %% [markdown]
# ## 4. Parallel apply
#
# Run all replicas at the same time, each in a thread, and return their results in the order of the replicas. Two things do not pass between a thread and its
# caller automatically:
#
# * **Modes.** Grad mode and autocast belong to a thread, and a new thread begins with grad mode on and autocast off. Carry over the caller's modes, which you
#   get from `torch.is_grad_enabled()`, `torch.is_autocast_enabled(kind)` and `torch.get_autocast_dtype(kind)`, where `kind` is the type of the devices
#   (`"cpu"`, `"cuda"`).
# * **Exceptions.** An exception ends its thread, but the caller does not notice it. Therefore, wait for all threads first. If replicas have failed, raise a
#   `RuntimeError` whose text names the first of them, for example as `replica 2`, and keep the original exception as its cause (`raise ... from error`).
#
# *Difficulty ●●●, 12 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# The return value of a thread's function is lost. Instead, let the function write its result into a list of the caller, at the replica's place. If you need
# more help, run `hint("03-apply")`.
# </details>

# %% tags=["solution"] grade_id="apply"
def parallel_apply(replicas: list[nn.Module], inputs: list[tuple], kwargs: list[dict],
                   devices: list[str]) -> list:
    """Return the outputs of replicas[i](*inputs[i], **kwargs[i]), in order. They are
    computed in threads that run at the same time."""
    ### BEGIN SOLUTION
    kind = torch.device(devices[0]).type
    grad, on, dtype = (torch.is_grad_enabled(), torch.is_autocast_enabled(kind),
                       torch.get_autocast_dtype(kind))
    results, errors = [None] * len(replicas), {}

    def work(i):
        try:
            with torch.set_grad_enabled(grad), torch.autocast(kind, dtype=dtype,
                                                              enabled=on):
                results[i] = replicas[i](*inputs[i], **kwargs[i])
        except Exception as error:
            errors[i] = error

    threads = [Thread(target=work, args=(i,)) for i in range(len(replicas))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        first = min(errors)
        raise RuntimeError(
            f"replica {first} on {devices[first]}: {errors[first]}") from errors[first]
    return results
    ### END SOLUTION

# %% tags=["check"] grade_id="apply-check" points=4
check.apply(parallel_apply)

# %% [markdown]
# ## 5. The forward pass
#
# Put the four functions together. Positional and keyword arguments must give the same number of pieces. For example, with 5 rows on 4 devices, a keyword
# argument that is not a tensor must not start a fourth replica.
#
# One criterion needs two GPUs, because it compares your function with `nn.DataParallel` itself. On other machines, the criterion is BLOCKED, which means that
# it has neither failed nor passed and is not counted.
#
# *Difficulty ●○○, 5 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# Your `scatter` can split a tuple that contains a tuple and a dict. If you need more help, run `hint("03-forward")`.
# </details>

# %% tags=["solution"] grade_id="forward"
def data_parallel(module: nn.Module, inputs: tuple, kwargs: dict, devices: list[str],
                  output_device: str):
    """Return what module(*inputs, **kwargs) returns, computed by replicas on `devices`. The
    result is on `output_device`."""
    ### BEGIN SOLUTION
    pairs = scatter((inputs, kwargs), devices)
    used = devices[:len(pairs)]
    own_inputs, own_kwargs = zip(*pairs)
    outputs = parallel_apply(replicate(module, used), own_inputs, own_kwargs, used)
    return gather(outputs, output_device)
    ### END SOLUTION

# %% tags=["check"] grade_id="forward-check" points=4
check.forward(data_parallel)

# %% [markdown]
# ## 6. The loss inside
#
# Gathered scores fill device 0. Therefore, compute the loss where the scores are, and gather almost nothing. A replica returns **at most two numbers**, as
# tensors without dimensions. These numbers are gathered as in exercise 2. From them, `whole_loss` computes the mean loss over all rows, whatever the sizes of
# the pieces are.
#
# *Difficulty ●●○, 5 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# The mean of means is wrong if the last piece is smaller. What must you know about each piece? If you need more help, run `hint("03-loss")`.
# </details>

# %% tags=["solution"] grade_id="loss"
def loss_part(scores: torch.Tensor, labels: torch.Tensor) -> tuple:
    """Return what each replica contributes for its rows, which is at most two numbers, as
    tensors."""
    ### BEGIN SOLUTION
    return (cross_entropy(scores, labels, reduction="sum"),
            scores.new_tensor(float(len(labels))))
    ### END SOLUTION


def whole_loss(gathered: tuple) -> torch.Tensor:
    """Return the mean cross entropy over the rows of all replicas, computed from what was
    gathered, as a tensor that can run backward."""
    ### BEGIN SOLUTION
    sums, counts = gathered
    return sums.sum() / counts.sum()
    ### END SOLUTION

# %% tags=["check"] grade_id="loss-check" points=2
check.loss(loss_part, whole_loss)

# %% [markdown]
# ## All together
#
# Your functions now train the network of units 01 to 10 on handwritten digits. The training run takes 60 steps with batches of 250 rows, on four replicas (63,
# 63, 63 and 61 rows). The reference is a single process without PyTorch. This part is not graded, but it works only if your parts do.

# %%
from manyhands import track

class WithLoss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, y):
        return loss_part(self.model(x), y)

# %%
x, y = map(torch.from_numpy, track.data())
model = WithLoss(track.network())
optimiser = torch.optim.SGD(model.parameters(), lr=track.RATE, weight_decay=track.DECAY)
for step in range(track.STEPS):
    rows = track.rows(step)
    optimiser.zero_grad()
    whole_loss(data_parallel(model, (x[rows], y[rows]), {}, ["cpu"] * 4, "cpu")).backward()
    optimiser.step()
far = track.distance(model.parameters(), track.one_process()[0])
print(f"same weights as one process, to 1e-12: {far < 1e-12}")

# %% [markdown]
# ## Where to go on
#
# * Read `torch/nn/parallel/` in your own installation. The files `scatter_gather.py`, `replicate.py` and `parallel_apply.py` are short, and you now know
#   what each line is for.
# * Leave `reduction="sum"` out of your `loss_part`, run the cells after it again, and look at the last line that they print.
# * Unit 06 needs no threads, no copies in every step and no gathering on device 0, because it uses one process for each device.
#
# **References.** S. Li et al. 2020, *PyTorch Distributed: Experiences on Accelerating Data Parallel Training*, [arXiv
# 2006.15704](https://arxiv.org/abs/2006.15704) · [nn.DataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html) in PyTorch's
# documentation.
