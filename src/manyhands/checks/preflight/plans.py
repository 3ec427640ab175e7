"""Hangs for unit 00's checks, imagined or really provoked, and mistakes in answers about them.

A plan says what each rank does in the end. For example, `{rank: BARRIER, rank: 2, rank: None}` is a
rank in a barrier, a rank that waits for a message from rank 2, and a rank that has finished.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from manyhands.checks.preflight.messages import MISTAKES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from manyhands.cluster import Cluster
    from manyhands.cluster.faults.kinds import Where

    Plan = dict[int, int | str | None]  # what each rank does in the end

BARRIER = "barrier"

_provoked: dict[tuple[str, int], Case] = {}  # (name, seed) -> Case
CODE = """
import torch
import torch.distributed as dist

if not dist.is_initialized():
    dist.init_process_group("gloo")
plan, phases = {plan}, {phases}
mine = plan[dist.get_rank()]
for phase in range(phases):
    dist.barrier()
if mine == "barrier":
    dist.barrier()
elif mine is not None:
    dist.recv(torch.zeros(1), src=mine)
"""

# how a rank misses the barrier
ENDS = ("pass", "raise ValueError('made by the check')", "os._exit(1)")
BREAK = """
import os
import torch.distributed as dist

if not dist.is_initialized():
    dist.init_process_group("gloo")
if dist.get_rank() == {culprit}:
    {end}
else:
    dist.barrier()
"""


@dataclass
class Case:
    """One hang, with what the learner's function is given, and the answer.

    The answer is ("absent" or "circle", sorted ranks).
    """

    waiting: dict[int, Where]
    edges: list[tuple[int, int]]
    answer: tuple[str, list[int]]


def draw_plan(
    name: str, draw: random.Random, world_size: int, mixed: bool = False
) -> tuple[Plan, tuple[str, list[int]]]:
    """Return the plan and the answer of a hang of the kind "absent", "chain" or "circle"."""
    ranks = draw.sample(range(world_size), world_size)
    if name == "absent":
        missing = ranks[: (world_size - 1) // 2]
        return {rank: None if rank in missing else BARRIER for rank in ranks}, (
            "absent",
            sorted(missing),
        )
    if name == "chain":
        # of those who wait; at least one rank has nothing to do with it
        length = draw.randint(2, world_size - 2)
        plan: Plan = dict(pairwise(ranks[: length + 1]))
        idle = BARRIER if mixed else None  # in a barrier, they wait for all ranks of the chain
        return {rank: plan.get(rank, None if rank == ranks[length] else idle) for rank in ranks}, (
            "absent",
            [ranks[length]],
        )
    size = draw.randint(2, world_size - 2)
    plan = {ranks[i]: ranks[(i + 1) % size] for i in range(size)}
    plan[ranks[size]] = draw.choice(ranks[:size])  # outside, and waits for the circle
    for rank in ranks[size + 1 :]:
        plan[rank] = draw.choice([None, ranks[size]])
    return plan, ("circle", sorted(ranks[:size]))


def imagine(name: str, draw: random.Random, world_size: int) -> Case:
    """Draw a hang, and return it as the cluster would report it."""
    return _case(*draw_plan(name, draw, world_size, mixed=world_size % 2 == 0))


def _case(plan: Plan, answer: tuple[str, list[int]]) -> Case:
    from manyhands.cluster.faults.diagnose import edges
    from manyhands.cluster.faults.kinds import Where

    where = {}
    for rank, does in sorted(plan.items()):
        if does is None:
            where[rank] = Where(rank, "finished")
        elif isinstance(does, str):
            where[rank] = Where(
                rank, "waits", call="barrier", place="line 4 of this cell", line=4, sequence=0
            )
        else:
            where[rank] = Where(
                rank,
                "waits",
                call="recv",
                place="line 4 of this cell",
                line=4,
                peer=does,
                shape=[1],
                dtype="float32",
            )
    waiting = {rank: here for rank, here in where.items() if here.state == "waits"}
    return Case(waiting, edges(where, len(plan)), answer)


def provoke(name: str, seed: int, cluster: Cluster, patience_s: float) -> Case | None:
    """Cause a drawn hang on the cluster, only the first time.

    Return None if anything else happened.
    """
    from manyhands.cluster import Fault

    if (name, seed) in _provoked:
        return _provoked[name, seed]
    draw = random.Random(f"provoked {name} {seed}")
    plan, answer = draw_plan(name, draw, cluster.world_size)
    code = CODE.format(plan=plan, phases=draw.randint(0, 3))
    try:
        call_quietly(cluster.px, code, patience_s=patience_s)
    except Fault as fault:
        if fault.edges == _case(plan, answer).edges:
            return _provoked.setdefault((name, seed), Case(fault.waiting, fault.edges, answer))
    except RuntimeError:
        pass  # the cluster was stopped
    return None


def call_quietly(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call `function`, and keep what it prints and shows from the page."""
    from IPython.utils.capture import capture_output

    with capture_output():
        return function(*args, **options)


def write_arrows(edges: Iterable[tuple[int, int]]) -> str:
    """Write edges of a wait graph as text: `0 -> 1, 2 -> 1`."""
    return ", ".join(f"{a} -> {b}" for a, b in edges)


def find_mistake(case: Case, answer: Sequence[Any]) -> str:
    """Return the likely mistake in a wrong answer, in words."""
    kind, ranks = case.answer
    if answer[0] not in ("absent", "circle"):
        return MISTAKES["pair"]
    if answer[0] != kind:
        return MISTAKES["wrong kind " + kind]
    for rank in answer[1:]:
        if rank in ranks:
            continue
        if rank not in case.waiting:
            return MISTAKES["not awaited"].format(rank=rank)
        if kind == "circle":
            return MISTAKES["outside"].format(rank=rank)
        return MISTAKES["waits itself"].format(
            rank=rank, other=next(b for a, b in case.edges if a == rank)
        )
    missing = [rank for rank in ranks if rank not in answer[1:]]
    if missing:
        return MISTAKES["missing"].format(rank=missing[0])
    return MISTAKES["repeated"].format(
        rank=next(rank for rank in ranks if answer[1:].count(rank) > 1)
    )
