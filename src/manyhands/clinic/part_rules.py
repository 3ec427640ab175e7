"""The mistakes among ranks that hold parts of one model.

What they hold copies of must get the same gradient, and what they compute together must give the
same loss.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from manyhands.clinic.dtensor_parts import groups_with_same_part
from manyhands.clinic.evidence import fit, relative_distance
from manyhands.clinic.rule import Finding, rule
from manyhands.clinic.tolerances import (
    COARSE_TOLERANCE,
    FACTOR_TOLERANCE,
    GRADIENT_TOLERANCE,
    ROUNDED_GRADIENT,
)

if TYPE_CHECKING:
    import torch

    from manyhands.clinic.evidence import Comparable, Evidence
    from manyhands.clinic.records import RankRecord, Shard, StepRecord

# their weights begin as ones, but on the ranks of a group they are copies
NORMS = ("LayerNorm", "RMSNorm")


@rule
def copies_of_sharded(evidence: Evidence) -> list[Finding]:
    """Find parameters of a sharded model (FSDP2, DTensor) whose copies get different gradients.

    The ranks hold the same part. They have the same rows, or only ranks whose rows differ have
    different gradients, so that these ranks' gradients are not averaged.
    """
    for number in range(evidence.count if evidence.sharded else 0):
        given, names, own = evidence.of(number, "given"), list(evidence.first["start"]), []
        copies: dict[str, list[int]] = {}
        least, rows = ROUNDED_GRADIENT * _length(given[0]), evidence.steps[number].rows
        for name in names:
            for group in groups_with_same_part(_cut_now(evidence, number, name)):
                unlike = [
                    rank
                    for rank in group[1:]
                    if _differ(
                        given[rank].get(name), given[group[0]].get(name), evidence.tolerance, least
                    )
                ]
                if any(rows[rank] == rows[group[0]] for rank in unlike):
                    copies.setdefault(name, group)
                elif unlike and name not in own:
                    own.append(name)
        if copies:
            ranks = next(iter(copies.values()))
            return [Finding("copies", {"names": list(copies), "step": number + 1, "ranks": ranks})]
        if len(own) == len(names):
            return [Finding("own", {"step": number + 1, "remedy": "no data parallel"})]
        if own:
            remedy = "no data parallel" if set(own) & set(evidence.sharded) else "not sharded"
            return [Finding("part own", {"names": own, "of": len(names), "remedy": remedy})]
    return []


def parts_held(evidence: Evidence, number: int, step: Comparable) -> Finding | None:
    """Judge ranks whose optimisers each hold a part of the parameters.

    The finding is that they got that part of the rank's own gradient, or of the gradient of one
    process with a factor of that rank; or None.
    """
    holders = getattr(step, "holders", None)
    if holders is None or len(holders.unique()) < 2:
        return None
    parts = [(rank, holders == rank) for rank in map(int, holders.unique())]
    own = [
        (
            fit(step.given[0][part], step.local[rank][part])[1],
            fit(step.given[0][part], step.right[part])[1],
        )
        for rank, part in parts
        if step.local
    ]
    if own and all(rest < evidence.tolerance < other for rest, other in own):
        return Finding("own", {"step": number + 1})
    fits = [fit(step.given[0][part], step.right[part]) for _, part in parts]
    factors = [factor for factor, _ in fits]
    if (
        max(rest for _, rest in fits) < evidence.tolerance
        and max(factors) > (1 + FACTOR_TOLERANCE) * min(factors) > 0
    ):
        return Finding("own clip", {"factors": factors})
    return None


def own_parts(step: Comparable, plain: torch.Tensor, near: float) -> list[str]:
    """The names of parameters whose gradient is each rank's own, or a multiple of it."""
    by_rank = [
        list(zip(given.split(step.sizes), local.split(step.sizes), strict=True))
        for given, local in zip(step.given, step.local, strict=True)
    ]
    means, own_names = plain.split(step.sizes), []
    for place, name in enumerate(step.names):
        pairs, mean = [of_rank[place] for of_rank in by_rank], means[place]
        own = all(relative_distance(given, local) < near for given, local in pairs)
        along = all(fit(given, local)[1] < near for given, local in pairs) and any(
            fit(given, mean)[1] > near for given, _ in pairs
        )
        if along or (own and any(relative_distance(local, mean) > near for _, local in pairs)):
            own_names.append(name)
    return own_names


def _cut_now(evidence: Evidence, number: int, name: str) -> list[Shard | None]:
    """Return by rank how the gradient of a parameter is cut in a step.

    Empty where not all ranks have one.
    """
    cuts, shards = (
        evidence.of(number, "cuts"),
        [record["sharded"].get(name) for record in evidence.seen],
    )
    if any(shard and name not in of_rank for shard, of_rank in zip(shards, cuts, strict=True)):
        return []
    return [
        shard and {**shard, "placements": of_rank[name]}
        for shard, of_rank in zip(shards, cuts, strict=True)
    ]


def _differ(a: torch.Tensor | None, b: torch.Tensor | None, tolerance: float, least: float) -> bool:
    if a is None or b is None or a.shape != b.shape:
        return a is not b
    return relative_distance(a, b) > tolerance and float((a.double() - b.double()).norm()) > least


def _length(parts: Mapping[str, torch.Tensor | None]) -> float:
    return math.sqrt(
        sum(float(part.double().norm()) ** 2 for part in parts.values() if part is not None)
    )


# -- what the ranks of one group have seen: `seen`, by rank ----------------------------------------


@rule
def different_losses(seen: list[RankRecord]) -> list[Finding]:
    """Ranks that compute one loss together, from the same rows, must all have it."""
    for number, of_step in enumerate(_steps(seen)):
        rows = [[row for call in step["calls"] for row in call["rows"]] for step in of_step]
        losses = [
            [loss for backward in step["backwards"] for loss in backward["losses"]]
            for step in of_step
        ]
        if (
            not rows[0]
            or any(other != rows[0] for other in rows[1:])
            or len(set(map(len, losses))) > 1
        ):
            continue
        for of_ranks in zip(*losses, strict=True):
            values = [loss["value"] for loss in of_ranks]
            if (
                None not in values
                and len({loss["terms"] for loss in of_ranks}) == 1
                and (max(values) - min(values) > _tolerance(seen) * max(map(abs, values)))
            ):
                return [
                    Finding(
                        "part losses",
                        {"losses": values, "step": number + 1, "ranks": _numbers(seen)},
                    )
                ]
    return []


@rule
def copies_in_group(seen: list[RankRecord]) -> list[Finding]:
    """Find copies in a tensor-parallel group that get different gradients.

    They are parameters of one name that begin the same on all of its ranks.
    """
    names = [
        name
        for name, part in seen[0]["start"].items()
        if all(
            name in other["start"] and relative_distance(other["start"][name], part) == 0
            for other in seen
        )
        and (_varies(part) or seen[0]["kinds"].get(name, "").endswith(NORMS))
    ]
    return _unlike(seen, [[(rank, name) for rank in range(len(seen))] for name in names])


@rule
def tied_copies(seen: list[RankRecord]) -> list[Finding]:
    """Find an embedding and a layer on a different stage of a pipeline that should stay tied.

    They begin with the same numbers, and get different gradients.
    """
    pairs: list[list[tuple[int, str]]] = []
    for rank, record in enumerate(seen):
        for name, part in record["start"].items():
            if "Embedding" in record["kinds"].get(name, "") and _varies(part):
                pairs += [
                    [(rank, name), (other, its)]
                    for other, of_rank in enumerate(seen)
                    if other != rank
                    for its, numbers in of_rank["start"].items()
                    if its != name and relative_distance(numbers, part) == 0
                ]
    return _unlike(seen, pairs)


def _unlike(seen: list[RankRecord], copies: list[list[tuple[int, str]]]) -> list[Finding]:
    """The finding on `copies`, lists of (rank, name), whose gradients differ in a step."""
    for number, of_step in enumerate(_steps(seen)):
        least = ROUNDED_GRADIENT * max(_length(step["given"]) for step in of_step)
        unlike = [
            places
            for places in copies
            if any(
                _differ(
                    of_step[rank]["given"].get(name),
                    of_step[places[0][0]]["given"].get(places[0][1]),
                    _tolerance(seen),
                    least,
                )
                for rank, name in places[1:]
            )
        ]
        if unlike:
            names = list(dict.fromkeys(name for places in unlike for _, name in places))
            ranks = sorted({_numbers(seen)[rank] for places in unlike for rank, _ in places})
            return [Finding("copies", {"names": names, "step": number + 1, "ranks": ranks})]
    return []


def _steps(seen: list[RankRecord]) -> Iterator[tuple[StepRecord, ...]]:
    """Of each step that all ranks have taken: what each has noted."""
    return zip(*(record["steps"] for record in seen), strict=False)


def _numbers(seen: list[RankRecord]) -> list[int]:
    return [record["rank"] for record in seen]


def _tolerance(seen: list[RankRecord]) -> float:
    return GRADIENT_TOLERANCE.get(
        next((str(part.dtype) for part in seen[0]["start"].values()), ""), COARSE_TOLERANCE
    )


def _varies(part: torch.Tensor) -> bool:
    return part.numel() > 1 and bool((part != part[0]).any())
