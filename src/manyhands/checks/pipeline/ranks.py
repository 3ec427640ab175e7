"""The half of unit 14's checks that runs on the ranks.

It compares the learner's `run_stage` with a single process that has the whole network. Everything
is float64 and on the CPU. A network has a stage for each rank of a group, with a different width at
each border, and a batch has micro-batches of different sizes.
"""

from __future__ import annotations

import copy
import math
import random
from contextlib import nullcontext
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import mse_loss

from manyhands.checks.by_hand import closed, loaded
from manyhands.checks.on_ranks import learners
from manyhands.checks.pipeline import cases
from manyhands.checks.pipeline.messages import MISTAKES
from manyhands.checks.pipeline.watched_ranks import Memories, Watched
from manyhands.checks.rank_tools import (
    add_to_errors,
    close,
    fresh_world,
    looks_like,
    numbers,
    short_lived,
)
from manyhands.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from manyhands.checks.pipeline.answers import Gradient, Run, RunCase, Touched

RUNS = (
    ([0, 1, 2, 3], "gpipe", 6),
    ([0, 1, 2, 3], "1f1b", 8),
    ([0, 1, 2, 3], "odd", 5),
    ([0, 2, 3], "1f1b", 5),
    ([1, 3], "1f1b", 1),
    ([2], "1f1b", 3),
    ([0, 1, 2, 3], "1f1b", 24),
)
# micro-batches of the run in which bytes are counted, and the rows of each. Whatever is kept of
# each soon exceeds the limit
MANY, ROWS = 24, 12
FRAMEWORKS = (
    "torch.distributed.pipelining.schedules:PipelineScheduleSingle.step",
    "torch.distributed.pipelining.schedules:PipelineScheduleMulti.step",
    # PyTorch's own pipelines
    "torch.distributed.pipelining.stage:_PipelineStageBase.forward_one_chunk",
)


@fresh_world()
def run(name: str, seed: int) -> list[RunCase]:
    """Return the result of each run in which this rank took part.

    All ranks make the groups, and the world is `None`.
    """
    function = learners(name)
    runs: list[RunCase] = []
    groups: dict[tuple[int, ...], Any] = {}
    for number, (members, schedule, count) in enumerate(RUNS):
        if tuple(members) not in groups:
            groups[tuple(members)] = (
                None
                if len(members) == dist.get_world_size()
                else short_lived(dist.new_group(members, backend="gloo"))
            )
        if dist.get_rank() in members:
            case = Case(f"{seed} {number}", len(members), schedule, count)
            runs.append({"run": number, **_run(function, case, groups[tuple(members)])})
        dist.barrier()
    return runs


class Case:
    """A network, a batch in micro-batches and orders, drawn from the seed.

    They are the same on every rank.
    """

    def __init__(self, seed: str, stages: int, schedule: str, count: int) -> None:
        draw = random.Random(seed)
        self.stages, self.count, self.schedule = stages, count, schedule
        self.counts_bytes = count == MANY
        self.widths = [
            draw.randint(*((7, 8) if self.counts_bytes else (3, 9))) for _ in range(stages + 1)
        ]
        rows = (
            [ROWS] * count
            if self.counts_bytes
            else [2, *(draw.randint(1, 6) for _ in range(count - 1))]
        )
        torch.manual_seed(draw.randrange(2**31))
        self.network = [
            nn.Sequential(nn.Linear(a, 7), nn.Tanh(), nn.Linear(7, b), nn.Tanh()).double()
            for a, b in pairwise(self.widths)
        ]
        self.inputs, self.targets = (
            [torch.randn(n, width, dtype=torch.float64) for n in rows]
            for width in (self.widths[0], self.widths[-1])
        )
        self.rows = rows
        self.orders = (
            cases.odd(draw, stages, count, in_turn=True)
            if schedule == "odd"
            else cases.plain(schedule, stages, count)
        )

    def serial(
        self, rank: int
    ) -> tuple[list[torch.Tensor], list[float], list[tuple[torch.Tensor, ...]]]:
        """Compute in a single process what a rank's stage gets and gives.

        Return (inputs of the rank's stage, losses of the micro-batches, gradients of the rank's
        stage for each micro-batch), where each loss is a mean over its own rows.
        """
        network = copy.deepcopy(self.network)
        before, rest, parameters = (
            nn.Sequential(*network[:rank]),
            nn.Sequential(*network[rank:]),
            list(network[rank].parameters()),
        )
        inputs, losses, gradients = [before(x).detach() for x in self.inputs], [], []
        for x, y in zip(inputs, self.targets, strict=True):
            loss = mse_loss(rest(x), y)
            losses.append(loss.item())
            gradients.append(torch.autograd.grad(loss, parameters))
        return inputs, losses, gradients

    def memories(self, rank: int) -> Memories | None:
        """Return the counter of the bytes in the rank's step, if they are counted."""
        widths = self.widths[rank], 7, self.widths[rank + 1]
        return (
            Memories(8 * ROWS * sum(widths), 8 * ROWS * max(widths)) if self.counts_bytes else None
        )


def _run(function: Callable[..., Any], case: Case, group: dist.ProcessGroup | None) -> Run:
    rank, last = dist.get_rank(group), case.stages - 1
    # before the learner's code gets the tensors
    right_inputs, losses, gradients = case.serial(rank)
    memories = case.memories(rank)
    may_hold = min(case.count, case.stages - rank) if case.schedule == "1f1b" else case.count
    stage = Watched(copy.deepcopy(case.network[rank]), rank > 0, right_inputs, may_hold, memories)
    before = 0.5 if case.schedule == "odd" else None  # gradients that exist already
    if before:
        for parameter in stage.parameters():
            parameter.grad = torch.full_like(parameter, before)
    shapes = [(n, case.widths[rank]) for n in case.rows]
    lent = {
        "inputs": [x.clone() for x in case.inputs] if rank == 0 else None,
        "targets": [y.clone() for y in case.targets] if rank == last else None,
    }
    given = {name: tensors and list(tensors) for name, tensors in lent.items()}
    where = MISTAKES["where"].format(
        ranks=dist.get_process_group_ranks(group or dist.group.WORLD),
        schedule=case.schedule,
        count=case.count,
    )
    with (
        closed(*loaded(*FRAMEWORKS)),
        add_to_errors(where),
        Ledger() as ledger,
        memories or nullcontext(),
    ):
        loss = function(list(case.orders[rank]), stage, *given.values(), shapes, group)
    graph = isinstance(loss, torch.Tensor) and loss.requires_grad
    loss = (
        math.nan
        if graph
        else loss.item()
        if isinstance(loss, torch.Tensor) and loss.numel() == 1
        else loss
    )
    if memories:
        memories.end(stage)
    shares = [n / sum(case.rows) for n in case.rows]
    right = sum(share * own_loss for share, own_loss in zip(shares, losses, strict=True))
    itemsize, sums = 8, sum(case.rows)
    return {
        "rank": dist.get_rank(),
        "stage": rank,
        "schedule": case.schedule,
        "loss": loss,
        "loss has a graph": graph,
        "right loss": right if rank == last else None,
        "wrong losses": {
            "loss summed": sum(losses),
            "loss mean": sum(losses) / case.count,
            "loss last": losses[-1],
        },
        "gradients": list(_gradients(stage, gradients, shares, before or 0.0)),
        "sent": [ledger.messages_sent, ledger.bytes_sent],
        "right sent": [
            case.count * ((rank < last) + (rank > 0)),
            itemsize
            * sums
            * (case.widths[rank + 1] * (rank < last) + case.widths[rank] * (rank > 0)),
        ],
        "held": stage.held,
        "held back": stage.held_back,
        "made": stage.made,
        "may hold": may_hold,
        **_touched(case, lent),
        "bytes": [memories.excess, memories.needed] if memories else [0, 0],
    }


def _touched(case: Case, lent: Mapping[str, list[torch.Tensor] | None]) -> Touched:
    """Return which of the caller's tensors the learner's function has touched.

    They have different numbers now, or they require a gradient.
    """
    pairs = [
        (f"{name}[{m}]", tensor, right)
        for name, tensors in lent.items()
        if tensors is not None
        for m, (tensor, right) in enumerate(zip(tensors, getattr(case, name), strict=True))
    ]
    return {
        "changed": [
            name for name, tensor, right in pairs if not torch.equal(tensor.detach(), right)
        ],
        "asked": [
            name for name, tensor, _ in pairs if tensor.requires_grad or tensor.grad is not None
        ],
    }


def _gradients(
    stage: Watched,
    gradients: Sequence[tuple[torch.Tensor, ...]],
    shares: Sequence[float],
    before: float,
) -> Iterator[Gradient]:
    """Compare each parameter's gradient with the right gradient.

    It is also compared with the gradients that usual mistakes give.
    """
    # strict=False, because the learner's code may have changed the module
    for (name, parameter), *each in zip(stage.module.named_parameters(), *gradients, strict=False):
        added = sum(share * gradient for share, gradient in zip(shares, each, strict=True))
        wrong = {
            "summed": before + sum(each),
            "mean": before + sum(each) / len(each),
            "last": before + shares[-1] * each[-1],
            "not added": added if before else added + 1,
        }
        got = parameter.grad
        if got is None or got.shape != added.shape:
            yield {
                "name": name,
                "right": False,
                "looks": "none",
                "sample": [],
                "wanted": numbers(added)[:3],
            }
            continue
        looks = looks_like(got, before + added, wrong)
        looks = "rounded" if looks == "other" and close(got, before + added, 1e-4) else looks
        yield {
            "name": name,
            "right": looks is None,
            "looks": "other" if looks == "not finite" else looks,
            "sample": [*numbers(got)[:3], got.sum().item()],
            "wanted": [*numbers(before + added)[:3], (before + added).sum().item()],
        }
