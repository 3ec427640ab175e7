"""What exercise 1 of unit 16 asks for, drawn from a seed, and the right answers.

These are bytes on a rank, and layers that fit.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# (layers, ranks, stage, weight, gradient, states)
Model = tuple[list[int], int, int, int, int, int]
# (size, device_bytes, ranks, stage, weight, gradient, states)
Device = tuple[int, int, int, int, int, int, int]


class Parts(NamedTuple):
    """The bytes of a model on a rank, and {mistake: the bytes that it gives}."""

    right: int
    kept: int
    work: int
    wrong: dict[str, float]


# bytes of the weights, the gradients, the optimiser's states
KINDS = ((2, 2, 12), (4, 4, 8), (2, 4, 12))


def models(seed: int) -> dict[str, list[Model]]:
    """Return {criterion: [(layers, ranks, stage, weight, gradient, states)]}.

    It includes layers with fewer parameters than ranks, and one rank.
    """
    draw = random.Random(f"memory {seed}")
    questions: dict[str, list[Model]] = {"kept": [], "work": []}
    for stage in (0, 1, 2, 3):
        for ranks in (draw.randint(3, 9), 8, 64, 1):
            layers = [draw.randint(1, 400) for _ in range(draw.randint(2, 6))]
            layers = (
                [*layers, 5]
                if ranks == 64
                else [ranks * draw.randint(30, 60) for _ in layers]
                if ranks == 8
                else layers
            )
            draw.shuffle(layers)
            questions["kept" if stage < 2 else "work"].append(
                (layers, ranks, stage, *draw.choice(KINDS))
            )
    return questions


def devices(seed: int) -> list[Device]:
    """Return [(size, device_bytes, ranks, stage, weight, gradient, states)].

    There are devices that are just full, devices that are a byte too small, and one that not even
    one layer fits into.
    """
    draw = random.Random(f"most {seed}")
    questions: list[Device] = []
    for stage in (0, 1, 2, 3):
        size, ranks, kind, count = (
            draw.randint(1000, 9000),
            draw.randint(3, 9),
            draw.choice(KINDS),
            draw.randint(5, 40),
        )
        full = parts([size] * count, ranks, stage, *kind).right
        questions += [
            (size, device_bytes, ranks, stage, *kind) for device_bytes in (full, full - 1)
        ]
    size, ranks, kind = draw.randint(1000, 9000), draw.randint(3, 9), draw.choice(KINDS)
    return [*questions, (size, parts([size], ranks, 3, *kind).right // 3, ranks, 3, *kind)]


def parts(
    layers: Sequence[int], ranks: int, stage: int, weight: int, gradient: int, states: int
) -> Parts:
    """Return the bytes of a case, right and with usual mistakes."""

    # the bytes are whole unless `cut` returns parts of them
    def kept_bytes(
        cut: Callable[[int], Any],
        sizes: Sequence[int] = layers,
        begins: Sequence[int] = (3, 2, 1),
    ) -> Any:
        return sum(
            bytes_each * (cut(size) if stage >= begin else size)
            for size in sizes
            for bytes_each, begin in zip((weight, gradient, states), begins, strict=True)
        )

    def shard(size: int) -> int:
        return -(-size // ranks)

    padded, work = (
        [ranks * shard(size) for size in layers],
        {2: gradient, 3: weight + gradient}.get(stage, 0),
    )
    whole = work * max(padded)
    return Parts(
        right=kept_bytes(shard) + whole,
        kept=kept_bytes(shard),
        work=whole,
        wrong={
            "no padding": kept_bytes(lambda size: size / ranks) + work * max(layers),
            "cut down": kept_bytes(lambda size: size // ranks) + whole,
            "one vector": kept_bytes(shard, [sum(layers)]) + whole,
            "work without padding": kept_bytes(shard) + work * max(layers),
            "no work": kept_bytes(shard),
            "all at work": kept_bytes(shard) + work * sum(padded),
            "work of all layers": kept_bytes(shard) + work * sum(layers),
            "no gradient at work": kept_bytes(shard) + weight * (stage == 3) * max(padded),
            "instead of": kept_bytes(shard) + whole - whole // ranks,
            "one stage late": kept_bytes(shard, begins=(4, 3, 2)) + whole,
            "gradients early": kept_bytes(shard, begins=(3, 1, 1)) + whole,
            "stage 0": sum(layers) * (weight + gradient + states),
        },
    )


def most(size: int, device_bytes: int, ranks: int, stage: int, *kind: int) -> int:
    """Return how many layers fit."""
    layer = parts([size], ranks, stage, *kind)
    return max(0, (device_bytes - layer.work) // layer.kept)
