"""What is wrong with how ranks that take their steps alone put together what they have learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from manyhands.clinic.evidence import fit, join_vector, relative_distance
from manyhands.clinic.rule import Finding
from manyhands.clinic.tolerances import AVERAGE_TOLERANCE, FACTOR_TOLERANCE

if TYPE_CHECKING:
    import torch

    from manyhands.clinic.records import AverageRecord


def have_same_outer_gradient(averages: list[AverageRecord | None]) -> bool:
    """Whether the outer optimisers of all ranks got the same gradient.

    Then ranks that began apart stay apart.
    """
    given = [average["given"] for average in averages if average and average.get("given")]
    return len(given) == len(averages) and all(
        relative_distance(other.get(name), part) < AVERAGE_TOLERANCE
        for other in given[1:]
        for name, part in given[0].items()
    )


def find_average_mistakes(averages: list[AverageRecord | None]) -> list[Finding]:
    """Find what is wrong with the average of the ranks' weights.

    Where an outer optimiser takes a step, the average is of the changes of the weights. `averages`
    is what `average_observer` has noted on each rank.
    """
    noted, n = [average for average in averages if average], len(averages)
    if len(noted) < n or len({(average["step"], "given" in average) for average in noted}) > 1:
        return []
    outer, step = "given" in noted[0], noted[0]["step"]
    first = noted[0]["given"] if outer else noted[0]["after"]
    names = sorted(first)
    sizes = [first[name].numel() for name in names]
    parts = [join_vector(average["before"], names, sizes) for average in noted]
    if outer:
        parts = [
            join_vector(average["from"], names, sizes) - part
            for average, part in zip(noted, parts, strict=True)
        ]
    result = join_vector(first, names, sizes)
    factor, rest = fit(result, cast("torch.Tensor", sum(parts)) / n)
    if rest < AVERAGE_TOLERANCE:
        summed = abs(abs(factor) / n - 1) < FACTOR_TOLERANCE
        return [Finding("weights summed", {"n": n, "step": step})] if summed else []
    own = [
        rank
        for rank, part in enumerate(parts)
        if outer and fit(result, part)[1] < AVERAGE_TOLERANCE
    ]
    return [Finding("one rank's weights", {"rank": own[0], "step": step})] if own else []
