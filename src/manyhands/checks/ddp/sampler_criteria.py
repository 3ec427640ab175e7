"""The criteria of unit 06's sampler.

Their points and texts, the experiment on the ranks, the right answer, the diagnosis of a wrong one
and its messages are all in this file. The hint is with the unit's other hints, in `messages`.
"""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any, TypedDict

from manyhands.checks import by_rank
from manyhands.checks.by_hand import closed
from manyhands.checks.on_ranks import learners

if TYPE_CHECKING:
    from collections.abc import Sequence

    from manyhands.checks.on_ranks import Mistakes
    from manyhands.checks.report import Problem

SAMPLER_CRITERIA: dict[str, tuple[float, str]] = {  # {criterion: (points, what it asks for)}
    "padding": (
        1,
        (
            "all ranks get the same number of samples, every sample is seen, and the repeated "
            "ones come from the beginning"
        ),
    ),
    "epochs": (
        1,
        (
            "each epoch has a different order, which is the same on all ranks and is "
            "distributed over the ranks in turn"
        ),
    ),
}

SAMPLER_MISTAKES: Mistakes = {
    "uneven": (
        "The ranks have different numbers of samples, so a rank with more samples would wait "
        "forever in the last all-reduce."
    ),
    "too many": (
        "All ranks have the same number of samples, but it is too large. {n} / {world_size}, "
        "rounded up, are enough. (n // world_size + 1 is one too many if there is no remainder.)"
    ),
    "without end": "The sampler does not end. It must give len(self) indices.",
    "dropped": (
        "Samples were dropped. Pad instead, so that {n} samples on {world_size} ranks are "
        "rounded up."
    ),
    "length": "len(sampler) differs from the number of samples that the sampler gives.",
    "not covered": "Some of the {n} samples are never assigned to any rank.",
    "other padding": "The repeated samples are not the ones at the beginning of the drawn order.",
    "epoch ignored": "Epochs 0 and 1 have the same order. To avoid this, draw with seed + epoch.",
    "not repeatable": (
        "The same epoch gave two different orders. Draw from a generator that is seeded again each "
        "time, and not from torch's global one."
    ),
    "global generator": (
        "The orders are right, but torch's global generator was used, and seeded. Whatever the "
        "training run draws after it, dropout for example, depends on that seed. Draw from a "
        "separate torch.Generator() instead."
    ),
    "not twice": (
        "A second iteration in the same epoch has a different order. Since only set_epoch may "
        "change the epoch, make and seed a new generator in each __iter__."
    ),
    "not shuffled": "The samples are in their stored order. Draw a permutation instead.",
    "dealt otherwise": (
        "The right samples are on the wrong ranks. Rank r takes places r, r + {world_size}, r + 2 *"
        " {world_size}, ..."
    ),
    "order cut off": (
        "In epoch {epoch} the order is right, but only {k} of its {n} samples are distributed."
    ),
    "order goes on otherwise": (
        "In epoch {epoch} the drawn order and its distribution over the ranks are right, but what "
        "follows is not. It must be the order from its beginning, as often as needed, until each "
        "rank has {per_rank}."
    ),
    "other order": (
        "In epoch {epoch}, the order is not torch.randperm({n}) under a generator seeded with seed "
        "+ epoch."
    ),
}

MOST = 100  # indices of a sampler that are looked at


_Left = TypedDict("_Left", {"generator left alone": bool})


class SamplerCase(_Left):
    """The indices of all ranks in the epochs 0, 1, 0 and once more, and the right orders."""

    n: int
    world_size: int
    epochs: list[list[list[int]]]
    lengths: list[int]
    again: list[list[int]]
    drawn: list[list[int]]


# ------------------------------------------------------------------ the experiment, on one rank


def sampler(class_name: str, seed: int) -> list[SamplerCase]:
    """Every rank's indices for several sizes and worlds and two epochs.

    They come with whether torch's global generator is left alone. There is no communication.
    """
    import torch
    from torch.utils.data import DistributedSampler

    PaddedSampler, draw = learners(class_name), random.Random(seed)
    cases: list[SamplerCase] = []
    for n, world_size in (
        (draw.randint(9, 30), 4),
        (draw.randint(9, 30), 3),
        (12, 4),
        (3, 4),
        (1, 4),
        (7, 1),
    ):
        # odd, so that it makes a difference how the epoch is mixed into it
        own_seed = 2 * draw.randint(1, 10**6) + 1
        before = torch.get_rng_state()
        with closed(DistributedSampler.__init__, DistributedSampler.__iter__, distribute):
            samplers = [PaddedSampler(n, rank, world_size, own_seed) for rank in range(world_size)]
            first = [_indices(sampler) for sampler in samplers]  # before set_epoch: epoch 0
            epochs = [
                first,
                *([_indices(sampler, epoch) for sampler in samplers] for epoch in (1, 0)),
            ]
            # no different epoch has been set
            again = [_indices(sampler) for sampler in samplers]
        cases.append(
            {
                "n": n,
                "world_size": world_size,
                "epochs": epochs,
                "lengths": [len(sampler) for sampler in samplers],
                "again": again,
                "generator left alone": bool(torch.equal(before, torch.get_rng_state())),
                "drawn": [_permutation(n, own_seed + epoch) for epoch in (0, 1, 0)],
            }
        )
    return cases


def _indices(sampler: Any, epoch: int | None = None) -> list[int]:
    """What a sampler gives in an epoch; one without an end ends here."""
    if epoch is not None:
        sampler.set_epoch(epoch)
    return [int(i) for i in itertools.islice(sampler, MOST)]


def _permutation(n: int, seed: int) -> list[int]:
    import torch

    return torch.randperm(n, generator=torch.Generator().manual_seed(seed)).tolist()


# ------------------------------------------------------------------ the right answer, and what is
# wrong with another


def distribute(drawn: list[int], world_size: int) -> list[list[int]]:
    """The right answer: the drawn order, distributed over the ranks in turn.

    The order is repeated from its beginning until it divides.
    """
    per_rank = -(-len(drawn) // world_size)
    padded = (drawn * world_size)[: per_rank * world_size]
    return [padded[rank::world_size] for rank in range(world_size)]


def count_in_order(ranks: Sequence[Sequence[int]], drawn: list[int]) -> int | None:
    """How many samples of the drawn order, before any is repeated, the ranks have together.

    None if a rank has one of them in a different place than it should.
    """
    places = [
        (rank + k * len(ranks), index)
        for rank, indices in enumerate(ranks)
        for k, index in enumerate(indices)
        if rank + k * len(ranks) < len(drawn)
    ]
    return len(places) if all(drawn[place] == index for place, index in places) else None


def padding_problem(case: SamplerCase) -> Problem | None:
    """Judge how many samples each rank has in the first epoch, and which ones."""
    n, world_size, got = case["n"], case["world_size"], case["epochs"][0]
    per_rank, facts = -(-n // world_size), {"n": n, "world_size": world_size}
    sizes = [len(indices) for indices in got]
    if len(set(sizes)) > 1 or sizes[0] != per_rank:
        even = len(set(sizes)) == 1
        mistake = (
            "dropped"
            if sum(sizes) < n
            else "without end"
            if max(sizes) == MOST
            else "too many"
            if even
            else "uneven"
        )
        return {
            "expected": [per_rank] * world_size,
            "got": sizes,
            "mistake": SAMPLER_MISTAKES[mistake].format(**facts),
            "picture": by_rank.numbers("samples", per_rank, sizes),
        }
    if case["lengths"] != sizes:
        return {
            "expected": sizes,
            "got": case["lengths"],
            "mistake": SAMPLER_MISTAKES["length"].format(**facts),
        }
    if {index for indices in got for index in indices} != set(range(n)):
        return {"got": got, "mistake": SAMPLER_MISTAKES["not covered"].format(**facts)}
    together, right = (
        sorted(sum(got, [])),
        sorted(sum(distribute(case["drawn"][0], world_size), [])),
    )
    if together != right:
        return {
            "expected": right,
            "got": together,
            "mistake": SAMPLER_MISTAKES["other padding"].format(**facts),
        }
    return None


def epoch_problem(case: SamplerCase) -> Problem | None:
    """Judge the order of the samples in each epoch."""
    right = [distribute(drawn, case["world_size"]) for drawn in case["drawn"]]
    for epoch, got, expected in zip((0, 1, 0), case["epochs"], right, strict=True):
        if got == expected:
            continue
        rank = (
            next(rank for rank, (a, b) in enumerate(zip(got, expected, strict=True)) if a != b)
            if len(got) == len(expected)
            else 0
        )
        in_order = count_in_order(got, case["drawn"][epoch])
        if case["n"] > 8 and case["epochs"][0] == case["epochs"][1]:
            mistake = "epoch ignored"
        elif case["epochs"][0] != case["epochs"][2]:
            mistake = "not repeatable"
        elif in_order is not None:
            mistake = "order cut off" if in_order < case["n"] else "order goes on otherwise"
        elif sum(got, []) == sum(
            distribute(sorted(sum(got, []))[: case["n"]], case["world_size"]), []
        ):
            mistake = "not shuffled"
        elif sorted(sum(got, [])) == sorted(sum(expected, [])):
            mistake = "dealt otherwise"
        else:
            mistake = "other order"
        return {
            "rank": rank,
            "expected": expected[rank],
            "got": got[rank],
            "mistake": SAMPLER_MISTAKES[mistake].format(
                epoch=epoch,
                n=case["n"],
                world_size=case["world_size"],
                k=in_order,
                per_rank=len(expected[rank]),
            ),
        }
    if case["again"] != right[2]:
        rank = next(
            rank for rank, (a, b) in enumerate(zip(case["again"], right[2], strict=True)) if a != b
        )
        return {
            "rank": rank,
            "expected": right[2][rank],
            "got": case["again"][rank],
            "mistake": SAMPLER_MISTAKES["not twice"],
        }
    return (
        None if case["generator left alone"] else {"mistake": SAMPLER_MISTAKES["global generator"]}
    )
