"""One network for all: the small GPT, trained by one process and by each way of the course.

All of them come to the same weights.

    result = train("FSDP2", steps=4)  # on all ranks, after dist.init_process_group
    distance(result.weights, train("one process", steps=4).weights) < tolerance(4)

Every way begins with the same weights, reads the same batches and takes the same steps of Adam, in
float64; what differs is where the weights lie and what travels. Tensors are where any call of the
backend takes them, `cuts.DEVICE`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor.parallel import parallelize_module
from torch.nn.parallel import DistributedDataParallel

from manyhands.gpt import CONTEXT, GPT, ROWS, SYMBOLS, batches, loss_of
from manyhands.gpt.cuts import (
    DEVICE,
    MICRO_BATCHES,
    axis_of,
    cut_by_heads,
    gather_whole,
    mesh_of,
    my_rows,
    plan,
)
from manyhands.gpt.transformer import WIDTH
from manyhands.ledger import Ledger

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

# foreach: one weight after the other, because they may lie on different meshes
ADAM: dict[str, Any] = {"lr": 1e-3, "eps": 1e-8, "foreach": False}


class Result(NamedTuple):
    """What a way to train ends with, how many bytes it has sent, and how long its steps took."""

    weights: dict[str, torch.Tensor]
    losses: list[float]
    sent_bytes: int
    peak_bytes: int | None
    seconds: list[float]


# of x and y: the loss, None where this rank has none
Step = Callable[[torch.Tensor, torch.Tensor], float | None]
Built = tuple[Step, GPT]


def train(way: str, steps: int, rows: int = ROWS, memory: bool = False) -> Result:
    """Train for some steps by one of `WAYS`.

    Returns a `Result`.

    `weights`: {name: whole tensor on the CPU}, by the names of one process, and `losses`, that of
    each step's whole batch before the step, are the same on all ranks. `sent_bytes`: what this rank
    sent in the last step, by a ledger (in its second step DDP arranges its buckets, and sends a
    little more). `peak_bytes`: with `memory`, the peak of this rank's memory
    (`manyhands.ledger.memory`) over making the model and all steps. `seconds` of each step, here.

    All ranks of the world call it, after init_process_group; with "one process" nothing is sent,
    and any rank can call it alone. ValueError if there is no such way or no step, or if heads,
    blocks or rows do not divide over the ranks.
    """
    if way not in WAYS:
        raise ValueError(f"there is no way {way!r}: choose one of {', '.join(WAYS)}")
    if steps < 1:
        raise ValueError(f"steps is {steps}: take at least one")
    build, axes = WAYS[way]
    losses, seconds = [], []
    mesh = mesh_of(way, axes, rows)
    with Ledger(memory=memory) as ledger:
        step, model = build(mesh, rows)
        for number in range(steps):
            x, y = (my_rows(part, mesh).to(DEVICE) for part in batches(number, rows))
            begun = time.perf_counter()
            with Ledger() as of_step:
                losses.append(step(x, y))
            seconds.append(time.perf_counter() - begun)
    from_all = _gather_from_all(
        ({name: gather_whole(p, mesh) for name, p in model.named_parameters()}, losses), mesh
    )
    weights = {name: tensor for of_rank, _ in from_all for name, tensor in of_rank.items()}
    # in a pipeline, those of the last stages
    known = [of_rank for _, of_rank in from_all if None not in of_rank]
    return Result(
        weights,
        [sum(each) / len(known) for each in zip(*known, strict=True)],
        of_step.bytes_sent,
        ledger.peak_bytes,
        seconds,
    )


def tolerance(steps: int, rows: int = ROWS) -> float:
    """How far weights may be apart that were computed in a different order.

    For each step, this is a rounding of a gradient, as Adam enlarges it.

    A gradient is a mean of n = rows * CONTEXT terms. In another order it differs by about eps /
    sqrt(n) times the size of a term, if the roundings have random signs; terms here are below 1.
    Where the gradient itself is nothing but such a rounding, Adam's step is lr / eps of Adam times
    it: so it is for the bias of k, which moves all scores of a row alike, and softmax does not see
    that.
    """
    return (
        steps
        * ADAM["lr"]
        / ADAM["eps"]
        * torch.finfo(torch.float64).eps
        / math.sqrt(rows * CONTEXT)
    )


def distance(weights: Mapping[str, torch.Tensor], reference: Mapping[str, torch.Tensor]) -> float:
    """The largest difference between the weights of two results.

    KeyError if they have other names.
    """
    if weights.keys() != reference.keys():
        raise KeyError(f"only one of the two has {sorted(weights.keys() ^ reference.keys())}")
    return max((weights[name] - reference[name]).abs().max().item() for name in reference)


# --- the ways: each makes its model from the mesh, and returns its step(x, y) -> loss, and the
# model


def one_process(mesh: DeviceMesh | None, rows: int) -> Built:
    """The reference."""
    model = GPT().to(DEVICE)
    return _plain_step(model, torch.optim.Adam(model.parameters(), **ADAM)), model


def ddp(mesh: DeviceMesh | None, rows: int) -> Built:
    """Each rank has the whole model and some rows; gradients are averaged by all-reduce.

    Unit 06.
    """
    model = GPT().to(DEVICE)
    return (
        _plain_step(DistributedDataParallel(model), torch.optim.Adam(model.parameters(), **ADAM)),
        model,
    )


def zero_1(mesh: DeviceMesh | None, rows: int) -> Built:
    """As DDP, but each rank has Adam's states of some tensors only. Unit 16.

    It steps these tensors, and broadcasts them.
    """
    model = GPT().to(DEVICE)
    return (
        _plain_step(
            DistributedDataParallel(model),
            ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, **ADAM),
        ),
        model,
    )


def fsdp2(mesh: DeviceMesh | None, rows: int) -> Built:
    """Weights, gradients and states are sharded over "data"; a block is gathered when it is needed.

    Unit 16.

    With an axis "tensor" each block is cut by heads and columns first.
    """
    model = GPT().to(DEVICE)
    mesh = cast("DeviceMesh", mesh)  # all ways that come here have axes
    if "tensor" in (mesh.mesh_dim_names or ()):
        parallelize_module(model, mesh["tensor"], plan())
    for block in model.blocks.values():
        fully_shard(block, mesh=mesh["data"])
    fully_shard(model, mesh=mesh["data"])
    return _plain_step(model, torch.optim.Adam(model.parameters(), **ADAM)), model


def tensor_dtensor(mesh: DeviceMesh | None, rows: int) -> Built:
    """Each rank has all rows, and of each block some heads and columns, as DTensor lays them out.

    Unit 15.
    """
    model = cast("GPT", parallelize_module(GPT().to(DEVICE), mesh, plan()))
    return _plain_step(model, torch.optim.Adam(model.parameters(), **ADAM)), model


def tensor_by_hand(mesh: DeviceMesh | None, rows: int) -> Built:
    """The same with f and g of Megatron-LM. Unit 15."""
    model = cut_by_heads(GPT().to(DEVICE), axis_of(mesh, "tensor"))
    return _plain_step(model, torch.optim.Adam(model.parameters(), **ADAM)), model


def pipeline(mesh: DeviceMesh | None, rows: int) -> Built:
    """Each rank has some blocks; micro-batches go through them by 1F1B.

    Unit 14.

    With an axis "tensor" each stage is cut by hand; with "data" gradients are averaged over it
    after the last micro-batch.
    """
    data, stages = axis_of(mesh, "data"), axis_of(mesh, "stages")
    model = cut_by_heads(GPT(stages.rank, stages.size).to(DEVICE), axis_of(mesh, "tensor"))
    border = partial(torch.empty, rows // data.size // MICRO_BATCHES, CONTEXT, device="meta")
    inner = partial(border, WIDTH, dtype=torch.float64, requires_grad=True)
    stage = PipelineStage(
        model,
        stages.rank,
        stages.size,
        DEVICE,
        group=stages.group,
        input_args=border(dtype=torch.long) if model.first else inner(),
        output_args=(
            border(SYMBOLS, dtype=torch.float64, requires_grad=True) if model.last else inner()
        ),
    )
    schedule: Any = Schedule1F1B(stage, MICRO_BATCHES, loss_fn=loss_of)
    optimizer = torch.optim.Adam(model.parameters(), **ADAM)

    def step(x: torch.Tensor, y: torch.Tensor) -> float | None:
        losses: list[torch.Tensor] = []
        optimizer.zero_grad()
        schedule.step(
            *([x] if model.first else []), **({"target": y, "losses": losses} if model.last else {})
        )
        if data.size > 1:
            for parameter in model.parameters():
                gradient = cast("torch.Tensor", parameter.grad)  # all of them took part in the loss
                dist.all_reduce(gradient, group=data.group)
                gradient /= data.size
        optimizer.step()
        return sum(loss.item() for loss in losses) / MICRO_BATCHES if model.last else None

    return step, model


# way -> (how it is made, the axes of its mesh: -1 is as many ranks as there are)
WAYS: dict[str, tuple[Callable[[DeviceMesh | None, int], Built], dict[str, int]]] = {
    "one process": (one_process, {}),
    "DDP": (ddp, {"data": -1}),
    "ZeRO-1": (zero_1, {"data": -1}),
    "FSDP2": (fsdp2, {"data": -1}),
    "tensor, by hand": (tensor_by_hand, {"tensor": -1}),
    "tensor, DTensor": (tensor_dtensor, {"tensor": -1}),
    "pipeline": (pipeline, {"stages": -1}),
    "FSDP2 x tensor": (fsdp2, {"data": -1, "tensor": 2}),
    "data x pipeline": (pipeline, {"data": -1, "stages": 2}),
    "data x pipeline x tensor": (pipeline, {"data": -1, "stages": 2, "tensor": 2}),
}


def _plain_step(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> Step:
    def step(x: torch.Tensor, y: torch.Tensor) -> float:
        loss = loss_of(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def _gather_from_all(own: Any, mesh: DeviceMesh | None) -> list[Any]:
    if mesh is None:
        return [own]
    from_all = [None] * dist.get_world_size()
    dist.all_gather_object(from_all, own)
    return from_all
