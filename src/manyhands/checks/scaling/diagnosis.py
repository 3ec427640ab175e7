"""How the checks of unit 19 judge which mistake a wrong answer looks like.

Every `problem` is None or the details of a FAIL line: `expected`, `got` and the likely `mistake`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from manyhands.checks.in_kernel import NAN, likely, number
from manyhands.checks.report import Stopped
from manyhands.checks.scaling.messages import MISTAKES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from manyhands.checks.report import Problem
    from manyhands.checks.scaling.cases import Case

MOST_LINES = 20_000  # of Python, for a step of 100,000 ranks and some 40 gradients


def near(got: Any, expected: Any) -> bool:
    """Return whether numbers differ by no more than rounding."""
    return bool(np.allclose(got, expected, rtol=1e-6, atol=0))


def numbers(answer: Any, count: int) -> list[float]:
    """Return `count` floats, which are NaN if the answer is not a sequence.

    Raise `Stopped` if its length differs.
    """
    try:
        floats = [number(value) for value in answer]
    except TypeError:
        return [NAN] * count
    if len(floats) != count:
        raise Stopped(MISTAKES["count"].format(count=count, found=len(floats)))
    return floats


def problem(case: Case, got: Any) -> Problem | None:
    """Return the problem of one answer to a `cases.Case`."""
    return next(problems([case], [got]))


def problems(asked: Sequence[Case], answers: Sequence[Any]) -> Iterator[Problem | None]:
    """Return the problem of each answer, or None."""
    names = likely(
        [(case.right, case.wrong, got) for case, got in zip(asked, answers, strict=True)],
        same=near,
    )
    for case, got in zip(asked, answers, strict=True):
        if near(got, case.right):
            yield None
            continue
        name = (
            "no number"
            if not np.all(np.isfinite(got))
            else next((name for name in names if near(got, case.wrong[name])), case.other)
        )
        yield {"expected": case.right, "got": got, "mistake": f"{case.question}: {MISTAKES[name]}"}
