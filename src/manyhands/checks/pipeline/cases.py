"""What unit 14's checks ask for, drawn from a seed.

These are pipelines, orders, networks to cut and more.
"""

from __future__ import annotations

import random
from itertools import combinations
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def pipelines(seed: int) -> list[tuple[int, int]]:
    """Return [(stages, micro-batches)] for exercise 2.

    There are more, as many and fewer micro-batches than stages, one stage, and one micro-batch.
    Fewer means fewer than a warm-up of stages - 1, since otherwise an answer that forgets this case
    would be right. More means numbers with two digits.
    """
    draw = random.Random(f"orders {seed}")
    stages = draw.randint(3, 6)
    return [
        (4, draw.randint(11, 14)),
        (stages, stages),
        (5, draw.randint(2, 3)),
        (2, draw.randint(3, 9)),
        (1, draw.randint(2, 9)),
        (draw.randint(2, 4), 1),
    ]


def bubbles(seed: int) -> list[tuple[int, int, int]]:
    """Return [(stages, micro-batches, chunks)] with one chunk and with more chunks.

    With one chunk, there are also fewer micro-batches than stages, and one stage.
    """
    draw = random.Random(f"bubble {seed}")
    questions = [
        (draw.randint(3, 16), draw.randint(5, 64), chunks if chunks == 1 else draw.randint(2, 6))
        for chunks in (1, 2)
        for _ in range(5)
    ]
    return [
        *questions,
        (draw.randint(9, 16), draw.randint(2, 8), 1),
        (1, draw.randint(2, 9), 1),
        (1, draw.randint(2, 9), draw.randint(2, 6)),
    ]


def timings(
    seed: int, messages: bool
) -> list[tuple[list[list[Any]], list[float], list[float], float]]:
    """Return [(orders, forward_s, backward_s, message_s)] for exercise 3."""
    draw, questions = random.Random(f"finish {seed} {messages}"), []
    for name, stages, micro_batches in (
        *(
            (name, draw.randint(2, 5), draw.randint(3, 7))
            for name in ("gpipe", "1f1b", "1f1b", "odd")
        ),
        ("odd", draw.randint(6, 7), draw.randint(11, 12)),
        ("odd", 1, draw.randint(2, 5)),
        ("gpipe", 3, 1),
    ):
        orders = (
            odd(draw, stages, micro_batches)
            if name == "odd"
            else plain(name, stages, micro_batches)
        )
        forward_s, backward_s = (
            [round(draw.uniform(0.5, 3) * times, 3) for _ in range(stages)] for times in (1, 2)
        )
        questions.append(
            (orders, forward_s, backward_s, round(draw.uniform(0.2, 2), 3) if messages else 0.0)
        )
    return questions


def deadlocks(seed: int) -> list[tuple[list[list[Any]], bool]]:
    """Return [(orders, whether they can be completed)] for exercise 3."""
    draw, questions = random.Random(f"stuck {seed}"), []
    for broken in (None, "circle", None, "own forward", "circle"):
        stages, micro_batches = draw.randint(2, 5), draw.randint(3, 7)
        orders = odd(draw, stages, micro_batches)
        # the last rank does a backward before its forward, which on other ranks would be a circle
        # too
        if broken == "own forward":
            order, m = orders[-1], draw.randrange(micro_batches)
            first, second = order.index(("F", m)), order.index(("B", m))
            order[first], order[second] = order[second], order[first]
        elif broken:  # one rank waits for its first gradient, the next one for all activations
            orders = plain("gpipe", stages, micro_batches)
            orders[draw.randrange(stages - 1)] = [
                (kind, m) for m in range(micro_batches) for kind in "FB"
            ]
        questions.append((orders, broken is None))
    draw.shuffle(questions)
    return questions


def odd(
    draw: random.Random, stages: int, micro_batches: int, in_turn: bool = False
) -> list[list[Any]]:
    """Return odd orders that can be completed.

    Again and again, some rank does some event that is possible. With `in_turn`, all ranks take the
    micro-batches in the same order, so that messages need no tags.
    """
    # micro-batches whose activation or gradient has arrived
    ready: list[dict[str, list[int]]] = [{"F": [], "B": []} for _ in range(stages)]
    ready[0]["F"] += range(micro_batches)
    orders: list[list[Any]] = [[] for _ in range(stages)]
    while any(len(order) < 2 * micro_batches for order in orders):
        rank, kind = draw.randrange(stages), draw.choice("FB")
        if waiting := ready[rank][kind]:
            m = waiting.pop(0 if in_turn else draw.randrange(len(waiting)))
            orders[rank].append((kind, m))
            if kind == "F":
                (ready[rank + 1]["F"] if rank + 1 < stages else ready[rank]["B"]).append(m)
            elif rank > 0:
                ready[rank - 1]["B"].append(m)
    return orders


def plain(name: str, stages: int, micro_batches: int) -> list[list[Any]]:
    """Return the orders of GPipe or 1F1B as the lab writes them.

    They are [[("F", 0), ...] for each rank].
    """
    from manyhands.simulate import pipeline

    orders = {"gpipe": pipeline.gpipe, "1f1b": pipeline.one_f_one_b}[name](stages, micro_batches)
    return [[(kind, m) for kind, m, _ in order] for order in orders]


def play_orders(
    orders: Sequence[Sequence[Any]],
    forward_s: Sequence[float],
    backward_s: Sequence[float],
    message_s: float = 0.0,
) -> Any:
    """Play the lab's orders, and return a list of spans for each rank.

    Raises `Stuck` if they cannot be completed.
    """
    from manyhands.simulate.pipeline import Event, play

    events = [[Event(kind, m, rank) for kind, m in order] for rank, order in enumerate(orders)]
    return play(
        events, lambda event: {"F": forward_s, "B": backward_s}[event.kind][event.stage], message_s
    )


def networks(seed: int) -> list[tuple[list[int], int]]:
    """Return [(costs, stages)] for exercise 4, in whole numbers, so that sums are exact.

    In the first four, neither equal numbers of layers nor filling up to the mean is best. In one of
    them, the least sum of squares is not best, and in another, the least spread. In the fifth, a
    layer is so expensive that many cuts are best, and some would be with an empty stage.
    """
    draw, questions, measures = random.Random(f"cut {seed}"), [], [squares, spread, None, None]
    while measures:
        layers, stages = draw.randint(7, 11), draw.randint(3, 5)
        costs = [draw.choice((1, 2, 3, 5, 8, 13)) * draw.randint(3, 9) for _ in range(layers)]
        wrong, evened = (
            [even_cut(costs, stages), greedy_cut(costs, stages)],
            [least(measure, costs, stages) for measure in (squares, spread)],
        )
        if any(way in wrong for way in evened):
            continue  # the mistake would be taken for a different one
        if measures[0]:
            wrong.append(least(measures[0], costs, stages))
        if smallest(costs, stages) < min(dearest(costs, way) for way in wrong):
            questions.append((costs, stages))
            measures.pop(0)
    small = [draw.randint(2, 9) for _ in range(5)]
    return [
        *questions,
        ([*small[:3], sum(small) + 1, *small[3:]], 4),
        ([draw.randint(2, 9) for _ in range(4)], 4),
        ([draw.randint(2, 9) for _ in range(6)], 1),
    ]


def ways(costs: list[int], stages: int) -> list[list[slice]]:
    """Return all cuts."""
    borders = combinations(range(1, len(costs)), stages - 1)
    return [
        [slice(*pair) for pair in zip((0, *inner), (*inner, len(costs)), strict=True)]
        for inner in borders
    ]


def dearest(costs: list[int], blocks: Sequence[slice]) -> int:
    """Return the cost of the most expensive block."""
    return max(sum(costs[block]) for block in blocks)


def squares(costs: list[int], blocks: Sequence[slice]) -> int:
    """Return the sum of the squares of the blocks' costs."""
    return sum(sum(costs[block]) ** 2 for block in blocks)


def spread(costs: list[int], blocks: Sequence[slice]) -> int:
    """Return the difference between the most and the least expensive block."""
    sums = [sum(costs[block]) for block in blocks]
    return max(sums) - min(sums)


def least(
    measure: Callable[[list[int], list[slice]], int], costs: list[int], stages: int
) -> list[slice]:
    """Return the cut for which `measure(costs, cut)` is least."""
    return min(ways(costs, stages), key=lambda way: measure(costs, way))


def smallest(costs: list[int], stages: int) -> int:
    """Return the cost of the most expensive block of the best cut."""
    return dearest(costs, least(dearest, costs, stages))


def even_cut(costs: list[int], stages: int) -> list[slice]:
    """Return blocks with equal numbers of layers."""
    return [slice(len(costs) * i // stages, len(costs) * (i + 1) // stages) for i in range(stages)]


def greedy_cut(costs: list[int], stages: int) -> list[slice]:
    """Fill block after block up to the mean, so that the last one gets what is left."""
    borders, mean = [0], sum(costs) / stages
    for stage in range(stages - 1):
        stop = borders[-1] + 1
        while (
            stop < len(costs) - (stages - stage - 1) and sum(costs[borders[-1] : stop + 1]) <= mean
        ):
            stop += 1
        borders.append(stop)
    return [slice(*pair) for pair in zip(borders, [*borders[1:], len(costs)], strict=True)]
