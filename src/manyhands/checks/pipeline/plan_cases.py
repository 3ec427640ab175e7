"""The jobs of unit 14's exercise 6, drawn from a seed.

Each comes with what its plans need and cost, and what they seem to by an incomplete calculation.
"""

from __future__ import annotations

import random
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from manyhands.checks.pipeline.cases import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ORDERS = ("gpipe", "1f1b")
Plan = tuple[int, int, str]  # (stages, micro-batches, schedule)


class Numbers(NamedTuple):
    """Of a plan."""

    memory: float
    idle: float
    price: float


def _of_1f1b(alive: Callable[[int, int, int], int]) -> dict[str, Any]:
    """Return `alive` of `evaluate` with the right number for GPipe."""
    return {
        "alive": lambda schedule, stages, count, rank: (
            count if schedule == "gpipe" else alive(stages, count, rank)
        )
    }


# incomplete calculations, as arguments of `evaluate`, under the names that `words` uses, too
THOUGHTS: dict[str, dict[str, Any]] = {
    "weights thrice": {"copies": 3},
    "weights twice": {"copies": 2},
    "weights once": {"copies": 1},
    "starts idle": {"busy_starts": 0},
    "starts of forwards": {"starts": (1, 0)},
    "starts doubled": {"starts": (1, 2)},
    "no starts": {"starts": (0, 0)},
    "messages free": {"message": 0},
    "backward as forward": {"times": (1, 1)},
    "alive stages": _of_1f1b(lambda stages, count, rank: min(count, stages)),
    "alive few": _of_1f1b(lambda stages, count, rank: stages - rank),
    "alive all": _of_1f1b(lambda stages, count, rank: count),
    "alive one": {"alive": lambda *of: 1},
    "kept whole": {"share": 0},
    "mean memory": {"fullest": lambda needs: sum(needs) / len(needs)},
    "strictly less": {"strictly": True},
}
# kind of a job -> the incomplete calculation that leads to a different plan there, or None for a
# forgotten limit
TRAPS = {
    "memory": "alive stages",
    "messages": "messages free",
    "many": "starts of forwards",
    "starts": "starts doubled",
    "fullest": "mean memory",
    "few": "alive few",
    "idle": None,
    "weights": "weights thrice",
    "busy": "starts idle",
    "exactly": "strictly less",
}
# weights and kept bytes of the layers of "few"
FEW = [5e7] * 6 + [2e8] * 2 + [3.2e8] + [3.5e8] * 3, [1.1e9] * 6 + [5.5e8] * 6
# the limit that is between the right number and the incomplete one
BETWEEN = {"many": "idle", "starts": "idle", "busy": "idle", "fullest": "memory"}
# that are possible, if not 1 to 4
STAGES = {"busy": (1, 2, 4, 6), "starts": (2, 3, 4), "weights": (1, 2, 3, 5)}
# if it is not 8
BATCHES = {"memory": 12, "messages": 12, "many": 12, "fullest": 10, "weights": 12, "exactly": 12}
# all that is needed, divided by what a device has, if that is not 1.5 to 3
PARTS_OF = {"messages": (1.2, 2), "memory": (2, 4), "few": (3.4, 3.6)}
LIMITS = 6
PARTS = 240  # bytes are whole multiples of it, so that no rounding decides what fits


def jobs(seed: int) -> list[tuple[Any, dict[Plan, Numbers]]]:
    """Return one job of each kind for exercise 6, as [(job, {plan: `evaluate` of it})].

    In each job, the second best plan costs at least 3 % more than the best, and some incomplete
    calculation leads to a wrong plan.
    """
    draw = random.Random(f"plan {seed}")
    return [_job(draw, kind, trap) for kind, trap in TRAPS.items()]


def _job(draw: random.Random, kind: str, trap: str | None) -> tuple[Any, dict[Plan, Numbers]]:
    while True:
        job = _draw_job(draw, kind)
        plans = {plan: evaluate(job, *plan) for plan in every_plan(job)}
        for _ in range(LIMITS):  # drawing these is faster than simulating a job
            _draw_limits(draw, kind, trap, job, plans)
            costs = by_price(job, plans)
            if (
                len(costs) > 1
                and costs[1][0] >= 1.03 * costs[0][0]
                and _is_wanted(kind, trap, job, plans, costs[0][1])
            ):
                return job, plans


def _draw_limits(
    draw: random.Random, kind: str, trap: str | None, job: Any, plans: dict[Plan, Numbers]
) -> None:
    job.memory_bytes = int(
        (4 * sum(job.weight_bytes[2]) + sum(job.kept_bytes[2]))
        / draw.uniform(*PARTS_OF.get(kind, (1.5, 3)))
    )
    job.idle = draw.uniform(*((0.75, 0.85) if kind == "few" else (0.3, 0.5)))
    cheap = next((plan for _, plan in by_price(job, plans)), None)
    if cheap and kind == "idle":  # the bubble of the plan that would be cheapest is just too large
        job.idle = 0.99 * plans[cheap].idle
    elif cheap and kind == "exactly":
        job.memory_bytes = int(plans[cheap].memory)
    elif cheap and trap and kind in BETWEEN:
        _set_between(job, BETWEEN[kind], plans[cheap], evaluate(job, *cheap, **THOUGHTS[trap]))


def _is_wanted(
    kind: str, trap: str | None, job: Any, plans: dict[Plan, Numbers], best: Plan
) -> bool:
    stages, count, schedule = best
    wanted = {
        "memory": schedule == "1f1b" and not fits(job, plans[stages, count, "gpipe"]),
        "messages": schedule == "gpipe",
        "many": count < max(job.micro_batches),
        "few": count < stages,
        "exactly": plans[best].memory == job.memory_bytes,
    }
    return stages > 1 and wanted.get(kind, True) and not (trap and thought_of(job, trap) == best)


def thought_of(job: Any, name: str) -> Plan | None:
    """Return the plan that an incomplete calculation leads to, or None if none seems to fit."""
    thought = dict(THOUGHTS[name])
    strictly = thought.pop("strictly", False)
    plans = {plan: evaluate(job, *plan, **thought) for plan in every_plan(job)}
    return next(
        (
            plan
            for _, plan in by_price(job, plans)
            if not strictly or plans[plan].memory < job.memory_bytes
        ),
        None,
    )


def _set_between(job: Any, limit: str, right: Numbers, thought: Numbers) -> None:
    between = (getattr(right, limit) + getattr(thought, limit)) / 2
    setattr(job, {"memory": "memory_bytes"}.get(limit, limit), between)


def by_price(job: Any, plans: dict[Plan, Numbers]) -> list[tuple[float, Plan]]:
    """Return [(price, plan)] of the plans that fit, the cheapest first."""
    return sorted((numbers.price, plan) for plan, numbers in plans.items() if fits(job, numbers))


def _draw_job(draw: random.Random, kind: str) -> Any:
    few = kind == "few"
    batch, layers = BATCHES.get(kind, 8), [draw.uniform(0.5, 1.5) for _ in range(12)]
    cuts = {
        stages: [slice(12 * i // stages, 12 * (i + 1) // stages) for i in range(stages)]
        for stages in STAGES.get(kind, (1, 2, 3, 4))
    }
    weights, activations = ([draw.uniform(1, 3) * times for _ in range(12)] for times in (1e8, 4e8))
    if few:  # the first stages keep the most, and the last one has the most weights
        weights, activations = (
            [draw.uniform(0.95, 1.05) * size for size in shape] for shape in FEW
        )
    in_parts: list[list[float]] = [
        [int(size // PARTS * PARTS) for size in sizes] for sizes in (weights, activations)
    ]
    forward_s, weight_bytes, kept_bytes = (
        {stages: [sum(numbers[block]) for block in blocks] for stages, blocks in cuts.items()}
        for numbers in (layers, *in_parts)
    )
    start_s, message_s = {
        "messages": ((0.01, 0.03), (0.2, 0.5)),
        "memory": ((0.01, 0.03), (0.0, 0.05)),
        "few": ((2.2, 3), (0.0, 0.05)),
    }.get(kind, ((0.06, 0.15), (0.0, 0.05)))
    return SimpleNamespace(
        forward_s=forward_s,
        weight_bytes=weight_bytes,
        kept_bytes=kept_bytes,
        start_s=draw.uniform(*start_s),
        message_s=draw.uniform(*message_s),
        micro_batches=[n for n in range(1, batch + 1) if batch % n == 0],
    )


def every_plan(job: Any) -> list[Plan]:
    """Return all plans that the job has."""
    return [
        (stages, count, schedule)
        for stages in job.forward_s
        for count in job.micro_batches
        for schedule in ORDERS
    ]


def fits(job: Any, numbers: Numbers) -> bool:
    """Return whether a plan with these numbers stays within both limits of the job."""
    return numbers.memory <= job.memory_bytes and numbers.idle <= job.idle


def alive(schedule: str, stages: int, count: int, rank: int) -> int:
    """Return how many micro-batches a rank holds at most."""
    return count if schedule == "gpipe" else min(count, stages - rank)


def needs(
    job: Any,
    stages: int,
    count: int,
    schedule: str,
    alive: Callable[[str, int, int, int], int] = alive,
    copies: int = 4,
    share: int = 1,
) -> list[tuple[float, float]]:
    """Return what each device needs for a plan.

    It is [(bytes of the weights with what they need in addition, bytes of what is kept for
    backward)].
    """
    return [
        (
            copies * weights,
            activations * alive(schedule, stages, count, rank) / (count if share else 1),
        )
        for rank, (weights, activations) in enumerate(
            zip(job.weight_bytes[stages], job.kept_bytes[stages], strict=True)
        )
    ]


def evaluate(
    job: Any,
    stages: int,
    count: int,
    schedule: str,
    fullest: Callable[[list[float]], float] = max,
    message: float = 1,
    starts: tuple[float, float] = (1, 1),
    times: tuple[float, float] = (1, 2),
    busy_starts: int = 1,
    **of_memory: Any,
) -> Numbers:
    """Simulate what a plan needs and costs.

    Return `Numbers` of the memory of its fullest device, its bubble, and its price.
    """
    forward, backward = (
        [start * job.start_s + factor * seconds / count for seconds in job.forward_s[stages]]
        for factor, start in zip(times, starts, strict=True)
    )
    whole = _step_s(_orders(schedule, stages, count), forward, backward, message * job.message_s)
    memory = fullest([sum(parts) for parts in needs(job, stages, count, schedule, **of_memory)])
    busy = (
        count * (sum(forward) + sum(backward))
        - (1 - busy_starts) * count * stages * sum(starts) * job.start_s
    )
    return Numbers(memory, 1 - busy / (stages * whole), stages * whole)


_orders = cache(plain)


def _step_s(
    orders: Sequence[Sequence[Any]],
    forward: Sequence[float],
    backward: Sequence[float],
    message_s: float,
) -> float:
    """Return the end of the last event, for orders that can be completed.

    This is a short `simulate.pipeline.play`, for some hundred plans.
    """
    ended: dict[tuple[str, int, int], float] = {}
    times, places, last = [0.0] * len(orders), [0] * len(orders), len(orders) - 1
    while any(place < len(order) for place, order in zip(places, orders, strict=True)):
        for rank, order in enumerate(orders):
            while places[rank] < len(order):
                kind, m = order[places[rank]]
                outer = rank == (0 if kind == "F" else last)
                came = 0.0 if outer else ended.get((kind, m, rank - 1 if kind == "F" else rank + 1))
                if came is None:
                    break
                start = times[rank] if outer else max(times[rank], came + message_s)
                times[rank] = ended[kind, m, rank] = (
                    start + (forward if kind == "F" else backward)[rank]
                )
                places[rank] += 1
    return max(times)
