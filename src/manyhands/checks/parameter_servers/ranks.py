"""Run unit 08's experiments of placing, push and pull, and the synchronous step on the ranks.

All ranks run an experiment simultaneously, as servers or as workers. What each worker pushes is
drawn from the seed in the same way on all ranks, so that each rank can also compute alone what is
right and what the likely mistakes would give (`looks` names the one that fits). Everything is
float64.
"""

from __future__ import annotations

import random
from math import prod
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from manyhands.checks.by_hand import closed
from manyhands.checks.on_ranks import learners
from manyhands.checks.parameter_servers.diagnosis import place_cases, placed
from manyhands.checks.rank_tools import close, fresh_world, looks_like, numbers

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Unpack

    from manyhands.checks.parameter_servers.answers import More, PlacedCase, Shape, TensorsCase


def layouts(seed: int) -> list[tuple[list[int], list[int]]]:
    """Return [(ranks of the servers, ranks of the workers)].

    There are one, two and three servers of five ranks, each time in a different order.
    """
    draw, drawn = random.Random(seed), []
    for servers in (1, 2, 3):
        order = draw.sample(range(5), 5)
        drawn.append((order[:servers], order[servers:]))
    return drawn


class World:
    """One layout, and numbers that are drawn in the same way on all ranks.

    It has each rank's role, the variables' shapes, and the rows that each server keeps.
    """

    def __init__(self, seed: int, number: int, shapes: list[Shape] | None = None) -> None:
        self.seed, self.number, self.me = seed, number, dist.get_rank()
        self.servers, self.workers = layouts(seed)[number]
        draw = random.Random(f"{seed} {number}")
        rows, columns = draw.randint(7, 12), draw.randint(3, 6)
        self.shapes = shapes or [(rows, columns), (rows,), (rows + 1, draw.randint(2, 4))]
        self.pieces = placed(self.shapes, len(self.servers))
        # uneven
        self.counts = {
            worker: draw.randint(2, 9) + 9 * (worker == self.workers[-1]) for worker in self.workers
        }
        self.rate, self.decay = draw.uniform(0.2, 0.5), draw.uniform(0.2, 0.6)

    def learners_pieces(self) -> list[Any]:
        """Return the pieces as objects of the learner's class `Piece`."""
        piece = learners("Piece")
        return [piece(*numbers) for numbers in self.pieces]

    def draw(self, *what: object) -> torch.Tensor:
        """Draw one flat tensor for all variables, the same on all ranks."""
        generator = torch.Generator().manual_seed(
            random.Random(f"{self.seed} {self.number} {what}").randrange(2**31)
        )
        return torch.randn(sum(map(prod, self.shapes)), generator=generator, dtype=torch.float64)

    def cut(self, flat: torch.Tensor) -> list[torch.Tensor]:
        """Cut a flat tensor into a list of variables in separate memory."""
        parts = flat.split([prod(shape) for shape in self.shapes])
        return [part.view(shape).clone() for part, shape in zip(parts, self.shapes, strict=True)]

    def mine(self, flat: torch.Tensor) -> list[torch.Tensor]:
        """Cut this server's pieces from a flat tensor, in separate memory."""
        variables, me = self.cut(flat), self.servers.index(self.me)
        return [
            variables[v][start:stop].clone()
            for v, start, stop, server in self.pieces
            if server == me
        ]

    def places(self) -> list[int] | None:
        """Return the positions of a server's pieces in the flat tensor of all variables.

        Return None for a worker.
        """
        if self.me not in self.servers:
            return None
        return [
            int(place)
            for piece in self.mine(torch.arange(sum(map(prod, self.shapes))))
            for place in piece.flatten()
        ]

    def compare(
        self, got: Any, right: Any, wrong: Mapping[str, Any], **more: Unpack[More]
    ) -> TensorsCase:
        """Compare two lists of tensors, and return the result as plain data.

        If `got` is not such a list, it is None there.
        """
        got, right = flat(got), flat(right)
        looks = (
            "other"
            if got is None
            else looks_like(got, right, {name: flat(value) for name, value in wrong.items()})
        )
        return {
            "workers": len(self.workers),
            "got": None if got is None else numbers(got),
            "right": numbers(right),
            "looks": looks,
            **more,
        }


def flat(tensors: Any) -> Any:
    """Return a list of tensors as one tensor, or None if it is something else."""
    try:
        return torch.cat(
            [
                torch.empty(0, dtype=torch.float64),
                *(tensor.detach().flatten().double() for tensor in tensors),
            ]
        )
    except (TypeError, AttributeError, RuntimeError, ValueError):
        return None


def plain(pieces: Any) -> list[list[int]] | None:
    """Return the learner's pieces as lists of four whole numbers, or None for anything else."""
    try:
        plain_pieces = [[int(number) for number in piece] for piece in pieces]
    except (TypeError, ValueError):
        return None
    return plain_pieces if all(len(piece) == 4 for piece in plain_pieces) else None


# ------------------------------------------------------------------ 1: place


def place(name: str, seed: int) -> list[PlacedCase] | None:
    """Return the learner's pieces for several worlds on rank 0, and None on the other ranks.

    There is no communication.
    """
    function, cases = learners(name), place_cases(seed)
    if dist.get_rank():
        return None
    with closed(placed):
        return [
            {
                **case,
                "pieces": plain(
                    function(list(case["shapes"]), case["workers"], case["servers"], case["link"])
                ),
            }
            for case in cases
        ]


# ------------------------------------------------------------------ 2: push and pull


@fresh_world()
def exchange(push: Any, take: Any, give: Any, pull: Any, seed: int) -> list[TensorsCase]:
    """Run one push and one pull on each layout."""
    push, take, give, pull = map(learners, (push, take, give, pull))
    results: list[TensorsCase] = []
    for number in range(3):
        world = World(seed, number)
        weights = world.draw("weights")
        gradients = {worker: world.draw("gradient", worker) for worker in world.workers}
        if world.me in world.servers:
            results += _of_a_server(world, weights, gradients, take, give)
        else:
            results.append(_of_a_worker(world, weights, gradients, push, pull))
    return results


def _of_a_server(
    world: World, weights: torch.Tensor, gradients: dict[int, torch.Tensor], take: Any, give: Any
) -> list[TensorsCase]:
    mine = world.mine(weights)
    results: list[TensorsCase] = []
    answers = [take(mine, worker) for worker in world.workers]
    for worker in world.workers:
        give(mine, worker)
    for worker, answer in zip(world.workers, answers, strict=True):
        wrong: dict[str, list[torch.Tensor]] = {}
        for other in world.workers:
            if other != worker:  # of several others the last one
                wrong["another worker"] = world.mine(gradients[other])
        wrong |= {
            "own variables": world.mine(weights),
            "divided": world.mine(gradients[worker] / world.counts[worker]),
        }
        wrong["first rows"] = [rows.clone() for rows in _first_rows(world, gradients[worker])]
        got, count = _pair(answer)
        memory = _memory(got)
        others = [_memory(_pair(other)[0]) for other in answers if other is not answer]
        case = world.compare(got, world.mine(gradients[worker]), wrong, topic="push", count=count)
        case["looks"] = (
            case["looks"]
            if got is None or case["looks"]
            else ""
            if count == world.counts[worker]
            else "count"
        )
        if case["looks"] and got is not None and memory:
            case["looks"] = (
                "into the pieces"
                if memory & _memory(mine)
                else "one buffer"
                if any(memory & other for other in others)
                else case["looks"]
            )
        case["looks"] = "not a pair" if got is None else case["looks"]
        results.append(case)
    return results


def _memory(tensors: Any) -> set[int]:
    """Return the addresses at which the memory of some tensors begins."""
    return {
        tensor.untyped_storage().data_ptr()
        for tensor in tensors or ()
        if isinstance(tensor, torch.Tensor) and tensor.numel()
    }


def _pair(answer: Any) -> tuple[Any, int | None]:
    try:
        gradients, count = answer
        return (None, None) if flat(gradients) is None else (gradients, int(count))
    except (TypeError, ValueError, RuntimeError):
        return None, None


def _first_rows(world: World, gradient: torch.Tensor) -> list[torch.Tensor]:
    variables, me = world.cut(gradient), world.servers.index(world.me)
    return [variables[v][: stop - start] for v, start, stop, server in world.pieces if server == me]


def _of_a_worker(
    world: World, weights: torch.Tensor, gradients: dict[int, torch.Tensor], push: Any, pull: Any
) -> TensorsCase:
    pieces, right = world.learners_pieces(), world.cut(weights)
    own, variables = world.cut(gradients[world.me]), [torch.full_like(w, -1) for w in right]
    push(own, world.counts[world.me], pieces, list(world.servers))
    listed = list(variables)
    pull(listed, pieces, list(world.servers))
    case = world.compare(
        variables,
        right,
        {"unchanged": [torch.full_like(w, -1) for w in right], "added": [w - 1 for w in right]},
        topic="pull",
    )
    if case["looks"] == "other" and close(flat(variables), flat(right), 1e-5):
        case["looks"] = "rounded"
    if case["looks"] and flat(listed) is not None and close(flat(listed), weights):
        case["looks"] = "only in the list"
    elif case["looks"] in ("other", "not finite"):
        wrong = [
            number
            for number, (v, start, stop, _) in enumerate(world.pieces)
            if not close(variables[v][start:stop], right[v][start:stop])
        ]
        case["looks"] = f"from piece {wrong[0]}"
    return case


# ------------------------------------------------------------------ 3: the synchronous step


@fresh_world()
def step(name: str, seed: int) -> list[TensorsCase]:
    """Run two steps on each layout, with gradients that are drawn."""
    function, push, pull = map(learners, (name, "push", "pull"))
    results = []
    for number in range(3):
        world = World(seed, number)
        weights = world.draw("weights")
        variables = world.mine(weights) if world.me in world.servers else world.cut(weights)
        given = list(variables)
        for k in range(2):
            gradients = torch.stack([world.draw("gradient", worker, k) for worker in world.workers])
            if world.me in world.servers:
                function(given, list(world.workers), world.rate, world.decay)
            else:
                push(
                    world.cut(gradients[world.workers.index(world.me)]),
                    world.counts[world.me],
                    world.learners_pieces(),
                    list(world.servers),
                )
                pull(variables, world.learners_pieces(), list(world.servers))
            results.append(_step_case(world, k, weights, gradients, variables, given))
            weights = _stepped(world, weights, gradients)["right"]
    return results


def _step_case(
    world: World,
    k: int,
    weights: torch.Tensor,
    gradients: torch.Tensor,
    variables: list[torch.Tensor],
    given: list[torch.Tensor],
) -> TensorsCase:
    known = _stepped(world, weights, gradients)
    right = known.pop("right")
    if world.me in world.servers:
        earlier = (
            {"kept": _stepped(world, *_before(world, weights, gradients))["right"]} if k else {}
        )
        case = world.compare(
            variables,
            world.mine(right),
            {name: world.mine(value) for name, value in {**known, **earlier}.items()},
            topic="step",
            step=k,
            layout=world.number,
            places=world.places(),
        )
        if (
            case["looks"]
            and flat(given) is not None
            and close(flat(given), flat(world.mine(right)))
        ):
            case["looks"] = "only in the list"
        return case
    wrong = {"unchanged": world.cut(weights)}
    counts = torch.tensor([world.counts[worker] for worker in world.workers]).double()
    for some in range(1, len(world.workers)):
        slope = gradients[:some].sum(0) / counts[:some].sum()
        wrong[f"early {some}"] = world.cut(weights - world.rate * (slope + world.decay * weights))
    in_turn = weights
    for some, slope in enumerate((gradients / counts[:, None])[:-1], 1):
        in_turn = in_turn - world.rate * (slope + world.decay * in_turn)
        wrong[f"asynchronous {some}"] = world.cut(in_turn)
    return world.compare(
        variables, world.cut(right), wrong, topic="answer", step=k, layout=world.number
    )


def _before(
    world: World, weights: torch.Tensor, gradients: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what the second step adds up if the sums and counts of the first are still in it."""
    first = torch.stack([world.draw("gradient", worker, 0) for worker in world.workers])
    return weights, (gradients + first) / 2


def _stepped(world: World, w: torch.Tensor, g: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the right step, and what the likely mistakes make of it."""
    n = torch.tensor([world.counts[worker] for worker in world.workers]).double()
    p, total, rows, one_by_one = len(n), g.sum(0), n.sum(), w
    for slope in g / n[:, None]:
        one_by_one = one_by_one - world.rate * (slope + world.decay * one_by_one)

    def after(slope: torch.Tensor, decay: Any = world.decay) -> torch.Tensor:
        return w - world.rate * (slope + decay * w)

    shrunk = (w - world.rate * total / rows) * (1 - world.rate * world.decay)
    return {
        "right": after(total / rows),
        "unchanged": w,
        "decay after": shrunk,
        "not divided": after(total),
        "by workers": after(total / p),
        "mean of means": after((g / n[:, None]).mean(0)),
        "sum of means": after((g / n[:, None]).sum(0)),
        "decay on each": after(total / rows, p * world.decay),
        "decay by rows": after(total / rows, world.decay / rows),
        "no decay": after(total / rows, 0),
        "uphill": w + world.rate * (total / rows + world.decay * w),
        "decay without rate": w - world.rate * total / rows - world.decay * w,
        "last only": after(g[-1] / rows),
        "count of last": after(total / n[-1]),
        "only last": after(g[-1] / n[-1]),
        "one by one": one_by_one,
    }
