"""What is wrong with an answer to exercise 7.

Every `..._problem` returns None or the details of a FAIL line. `case` is what one rank reports of
one update (see `update_ranks.update`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyhands.checks.pipeline.diagnosis import problem
from manyhands.checks.pipeline.messages import MISTAKES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from manyhands.checks.pipeline.answers import UpdateCase
    from manyhands.checks.report import Problem


def ambiguous(case: UpdateCase) -> bool:
    """Return whether the stage with the largest norm has used its own norm.

    On other stages, two mistakes can be distinguished that look the same here.
    """
    return "own or largest" in f"{case['norm looks']} {case['looks']}"


def mark_small_groups(found: Sequence[UpdateCase]) -> None:
    """Attribute what is wrong in a smaller group only to the group.

    It must have no known reason, and the answer must be right with all ranks.
    """
    most = max(case["stages"] for case in found)
    for key in ("norm looks", "looks"):
        if all(case[key] is None for case in found if case["stages"] == most):
            for case in found:
                case[key] = (
                    f"{case[key]} here" if case[key] in ("norm other", "other") else case[key]
                )


def norm_problem(case: UpdateCase) -> Problem | None:
    """Judge the norm that the learner's function returned."""
    looks = case["norm looks"]
    if looks is None:
        return None
    return problem(
        looks,
        f"{case['right norm']:.6g}",
        _number(case["norm"]),
        case["rank"],
        ranks=case["members"],
    )


def weights_problem(case: UpdateCase) -> Problem | None:
    """Judge the weights of a rank's stage after the update."""
    looks = case["looks"]
    if looks is None:
        return None
    looks = f"weights {looks}" if f"weights {looks}" in MISTAKES else "weights other"
    where = "smaller" if case["max_norm"] > case["right norm"] else "larger"
    return problem(
        looks, case["wanted"], case["weights"][:3], case["rank"], ranks=case["members"], where=where
    )


def _number(value: float | None) -> str:
    return "not a number" if value is None else f"{value:.6g}"
