"""Run unit 08's experiments of the asynchronous server and of training on the ranks.

Between them is the number of servers. Training is under the limit.
"""

from __future__ import annotations

import random
from math import ceil
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import cross_entropy

from manyhands.checks.on_ranks import learners
from manyhands.checks.parameter_servers.diagnosis import (
    COUNTS,
    between,
    cover_problem,
    room_for,
    staleness,
)
from manyhands.checks.parameter_servers.ranks import World, flat, plain
from manyhands.checks.rank_tools import fresh_world
from manyhands.simulate import parameter_server_s

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from manyhands.checks.parameter_servers.answers import (
        ServersCase,
        StaleCase,
        TensorsCase,
        TrainCase,
    )

STEPS = 3


# ------------------------------------------------------------------ 4: the asynchronous server


def schedule_of(world: World) -> list[int]:
    """Return the workers' ranks in the order of thirteen pushes.

    Each worker pushes at least twice, and one of them twice in a row.
    """
    draw = random.Random(f"{world.seed} {world.number} schedule")
    order = [*world.workers * 2, *draw.choices(world.workers, k=12)][:12]
    draw.shuffle(order)
    return [*order[:5], order[4], *order[5:]]


class Rows:
    """A least-squares problem, so that a gradient depends on the variables.

    x @ matrix + bias should be y. The gradients are sums over the worker's rows.
    """

    def __init__(self, world: World, worker: int) -> None:
        generator = torch.Generator().manual_seed(
            random.Random(f"{world.seed} {world.number} {worker} rows").randrange(2**31)
        )
        (inputs, outputs), n = world.shapes[0], world.counts[worker]
        self.x, self.y = (
            torch.randn(n, size, generator=generator, dtype=torch.float64)
            for size in (inputs, outputs)
        )

    def gradients(self, variables: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return the gradients of half the sum of squares at these variables."""
        matrix, bias = variables
        error = self.x @ matrix + bias - self.y
        return [self.x.T @ error, error.sum(0)]


@fresh_world()
def asynchronous(name: str, seed: int) -> list[TensorsCase]:
    """Run the learner's server on a schedule, with one, two and three servers."""
    function, push, pull = map(learners, (name, "push", "pull"))
    results: list[TensorsCase] = []
    for number in range(3):
        draw = random.Random(f"{seed} {number} least squares")
        inputs, outputs = draw.randint(6, 9), draw.randint(2, 3)
        world = World(seed, number, [(inputs, outputs), (outputs,)])
        world.rate, schedule, start = world.rate / 10, schedule_of(world), world.draw("weights")
        if world.me in world.servers:
            variables = world.mine(start)
            returned = function(list(variables), list(schedule), world.rate, world.decay)
            case = _asynchronous_case(world, schedule, start, variables, world.mine)
            stale: StaleCase = {
                **case,
                "stale": _whole(returned),
                "wanted": staleness(schedule),
                "between": between(schedule),
                "schedule": schedule,
            }
            results.append(stale)
        else:
            variables, rows = world.cut(start), Rows(world, world.me)
            for _ in range(schedule.count(world.me)):
                push(
                    rows.gradients(variables),
                    world.counts[world.me],
                    world.learners_pieces(),
                    list(world.servers),
                )
                pull(variables, world.learners_pieces(), list(world.servers))
            results.append(_asynchronous_case(world, schedule, start, variables, world.cut))
    return results


def _asynchronous_case(
    world: World,
    schedule: list[int],
    start: torch.Tensor,
    variables: list[torch.Tensor],
    part: Callable[[torch.Tensor], list[torch.Tensor]],
) -> TensorsCase:
    of_worker = world.me in world.workers
    replays = {
        name: replayed(world, schedule, start, **mistake) for name, mistake in MISTAKES.items()
    }
    known = {
        name: pulled[world.me] if of_worker else newest
        for name, (newest, pulled) in replays.items()
    }
    right = known.pop("right")
    return world.compare(
        variables,
        part(right),
        {name: part(value) for name, value in {"unchanged": start, **known}.items()},
        topic="asynchronous",
    )


MISTAKES: dict[str, dict[str, Any]] = {
    "right": {},
    "given before": {"before": True},
    "lost updates": {"lost": True},
    "all rows": {"rows": "all"},
    "not divided": {"rows": "one"},
    "no decay": {"decays": 0},
    "decay shared": {"decays": "shared"},
    "shared out": {"rows": "shared", "decays": "shared"},
}


def replayed(
    world: World,
    schedule: list[int],
    start: torch.Tensor,
    before: bool = False,
    lost: bool = False,
    rows: str = "own",
    decays: Any = 1,
) -> tuple[torch.Tensor, dict[int, torch.Tensor]]:
    """Return (the servers' variables at the end, {worker: what it has last pulled}), flat.

    The other arguments make mistakes on purpose.
    """
    newest, pulled = start, dict.fromkeys(world.workers, start)
    decay = world.decay / len(world.workers) if decays == "shared" else world.decay * decays
    for worker in schedule:
        n = {
            "own": world.counts[worker],
            "all": sum(world.counts.values()),
            "one": 1,
            "shared": world.counts[worker] * len(world.workers),
        }[rows]
        slope = flat(Rows(world, worker).gradients(world.cut(pulled[worker]))) / n
        base, old = pulled[worker] if lost else newest, newest
        newest = base - world.rate * (slope + decay * base)
        pulled[worker] = old if before else newest
    return newest, pulled


def _whole(numbers: Any) -> list[int] | None:
    """Return a list of whole numbers, or None if it is something else."""
    if isinstance(numbers, (dict, set)):
        return None
    try:
        return [int(number) for number in numbers]
    except (TypeError, ValueError):
        return None


# ------------------------------------------------------------------ 5: how many servers


def servers(name: str, seed: int) -> list[ServersCase]:
    """Return the learner's numbers for several limits.

    Some number of servers just keeps or just misses a limit, or no number keeps it. In the case
    "exact", time and limit are the same number, whichever way it is computed.
    """
    function, draw = learners(name), random.Random(f"{seed} servers")
    cases: list[ServersCase] = []
    for kind in (
        "one",
        "some",
        "all",
        "exact",
        "none",
        "none",
        "just missed",
        "many",
        "all but missed",
    ):
        workers, n_bytes = (
            draw.randint(12, 40) if kind != "many" else draw.randint(150, 300),
            draw.uniform(50e6, 400e6),
        )
        latency_s, bytes_per_s = draw.uniform(0.5e-3, 5e-3), draw.uniform(0.5e9, 4e9)
        if kind == "exact":
            workers, n_bytes, latency_s, bytes_per_s = (
                draw.choice((32, 64)),
                2.0 ** draw.randint(25, 28),
                2.0 ** -draw.randint(8, 10),
                2.0 ** draw.randint(30, 32),
            )
        right = {
            "one": 1,
            "some": draw.randint(5, workers - 5),
            "all": workers,
            "many": workers - draw.randint(0, 50),
            "exact": draw.choice((4, 8, 16)),
            "just missed": draw.randint(3, 8),
        }.get(kind)
        # with so many servers it takes about the limit
        at: Any = {
            "none": workers,
            "all but missed": workers,
            "just missed": right and right - 1,
        }.get(kind, right)
        factor = {"none": 0.97, "all but missed": 0.9995, "just missed": 0.9995, "exact": 1}.get(
            kind, 1.0001
        )
        limit_s = parameter_server_s(workers, n_bytes, latency_s, bytes_per_s, at) * factor
        carried_s = workers * n_bytes / bytes_per_s
        wrong: dict[str, int | None] = (
            {}
            if right is None
            else {"just missed" if kind == "just missed" else "rounded down": right - 1}
        )
        wrong |= {"all but missed": workers} if kind == "all but missed" else {}
        more: dict[str, dict[str, int | None]] = {
            "exact": {"less than": right and right + 1},
            "all": {"all of them": None},
        }
        wrong |= more.get(kind, {})
        wrong |= {
            "own link": ceil(carried_s / (limit_s / 2 - latency_s)),
            "one way": max(1, ceil(carried_s / (limit_s - latency_s))),
            "no latency": ceil(carried_s / (limit_s / 2)),
        }
        cases.append(
            {
                "workers": workers,
                "limit_s": limit_s,
                "right": right,
                "got": _number(function(workers, n_bytes, latency_s, bytes_per_s, limit_s)),
                "wrong": wrong,
            }
        )
    return cases


def _number(answer: Any) -> float | str | None:
    try:
        return None if answer is None else int(answer) if answer == int(answer) else float(answer)
    except (TypeError, ValueError, OverflowError):
        return "not a number"


# ------------------------------------------------------------------ training under the limit


@fresh_world()
def train(place: Any, push: Any, pull: Any, step: Any, seed: int) -> list[TrainCase]:
    """Train a small network on two and on three servers, under a ledger.

    The learner's functions and placement are used.
    """
    place, push, pull, step = map(learners, (place, push, pull, step))
    results = []
    for number in (1, 2):
        world = World(seed, number)
        inputs, hidden, classes = world.shapes[0][1] + 3, world.shapes[0][0], 4
        world.shapes = [(hidden, inputs), (hidden,), (classes, hidden), (classes,)]
        link = len(world.workers) * room_for(world.shapes, len(world.servers))
        given = place(list(world.shapes), len(world.workers), len(world.servers), link)
        world.pieces = plain(given) or []
        results.append(_trained(world, given, link, push, pull, step))
    return results


def _trained(world: World, given: Any, link: int, push: Any, pull: Any, step: Any) -> TrainCase:
    from manyhands.ledger import Ledger

    start, right = world.draw("weights") / 2, world.draw("weights") / 2
    answer: TrainCase = {
        "rank": world.me,
        "server": world.me in world.servers,
        "workers": len(world.workers),
        "bytes": None,
        "allowed": link + COUNTS * len(world.workers),
        "got": [],
        "right": [],
        "looks": "other",
    }
    if cover_problem(
        {"shapes": world.shapes, "servers": len(world.servers), "pieces": world.pieces}
    ):
        return answer
    server, variables = answer["server"], world.cut(start)
    own = world.mine(start) if server else variables
    with Ledger() as ledger:
        for k in range(STEPS):
            if server:
                step(own, list(world.workers), world.rate, world.decay)
            else:
                push(
                    _gradients(world, variables, world.me, k),
                    world.counts[world.me],
                    given,
                    list(world.servers),
                )
                pull(variables, given, list(world.servers))
    for k in range(STEPS):
        total = sum(
            flat(_gradients(world, world.cut(right), worker, k)) for worker in world.workers
        )
        right = right - world.rate * (total / sum(world.counts.values()) + world.decay * right)
    case = world.compare(own, world.mine(right) if server else world.cut(right), {}, topic="train")
    return {
        **answer,
        **case,
        "bytes": max(ledger.bytes_sent, ledger.bytes_received) // STEPS if server else 0,
    }


def _gradients(
    world: World, variables: Sequence[torch.Tensor], worker: int, k: int
) -> list[torch.Tensor]:
    """Compute the gradients of the sum of the worker's losses.

    They are those of a small network and of rows that are drawn.
    """
    generator = torch.Generator().manual_seed(
        random.Random(f"{world.seed} {world.number} {worker} {k}").randrange(2**31)
    )
    x = torch.randn(
        world.counts[worker], world.shapes[0][1], generator=generator, dtype=torch.float64
    )
    y = torch.randint(world.shapes[2][0], (world.counts[worker],), generator=generator)
    w1, b1, w2, b2 = weights = [variable.clone().requires_grad_() for variable in variables]
    loss = cross_entropy(torch.tanh(x @ w1.T + b1) @ w2.T + b2, y, reduction="sum")
    return list(torch.autograd.grad(loss, weights))
