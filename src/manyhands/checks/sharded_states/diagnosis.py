"""How the checks of unit 16 judge an answer and find the mistake that a wrong one looks like.

Every `..._problem` returns None, or the details of a FAIL line: `rank`, `expected`, `got` and the
likely `mistake`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manyhands.checks.in_kernel import likely
from manyhands.checks.sharded_states import cases
from manyhands.checks.sharded_states.messages import MISTAKES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from manyhands.checks.report import Problem, Rank
    from manyhands.checks.sharded_states.answers import Finding

ULP = 2**-6  # of bfloat16 between 2 and 4, the range of the weights of exercise 6
_NAMES = ("ranks = {}", "stage = {}", "weight = {}", "gradient = {}", "states = {}")


def problem(
    key: str, expected: Any = None, got: Any = None, rank: Rank = None, **words: Any
) -> Problem:
    """Return the details of a FAIL line, whose text may name what is in `words`."""
    return {
        "rank": rank,
        "expected": expected,
        "got": got,
        "mistake": MISTAKES[key].format(expected=expected, got=got, **words),
    }


def memory_problems(
    asked: Sequence[cases.Model], answers: Sequence[float]
) -> Iterator[Problem | None]:
    """Yield the problem of each answer, or None."""
    all_parts = [cases.parts(*case) for case in asked]
    names = likely(
        [(parts.right, parts.wrong, got) for parts, got in zip(all_parts, answers, strict=True)]
    )
    for case, parts, got in zip(asked, all_parts, answers, strict=True):
        looks = (
            "no number"
            if got != got
            else next((name for name in names if parts.wrong[name] == got), "memory other")
        )
        yield (
            None
            if got == parts.right
            else _with_case(problem(looks, parts.right, got), "layers = {}", *_NAMES, values=case)
        )


def most_problems(
    asked: Sequence[cases.Device], answers: Sequence[float]
) -> Iterator[Problem | None]:
    """Yield the problem of each answer, or None."""
    counts = [_most(*case) for case in asked]
    names = likely([(*count, got) for count, got in zip(counts, answers, strict=True)])
    for case, (right, wrong), got in zip(asked, counts, answers, strict=True):
        looks = (
            "no number"
            if got != got
            else (
                "not whole"
                if got % 1
                else (
                    "below none"
                    if got < 0
                    else next((name for name in names if wrong[name] == got), "most other")
                )
            )
        )
        yield (
            None
            if got == right
            else _with_case(
                problem(looks, right, got), "size = {}", "device_bytes = {}", *_NAMES, values=case
            )
        )


def _most(
    size: int, device_bytes: int, ranks: int, stage: int, *kind: int
) -> tuple[int, dict[str, int]]:
    right, layer = (
        cases.most(size, device_bytes, ranks, stage, *kind),
        cases.parts([size], ranks, stage, *kind),
    )
    return right, {
        "every layer at work": device_bytes // layer.right,
        "nothing at work": device_bytes // layer.kept,
        "one too many": right + 1,
        "one too few": right - 1,
    }


def _with_case(result: Problem, *names: str, values: Sequence[Any]) -> Problem:
    asked = ", ".join(name.format(value) for name, value in zip(names, values, strict=True))
    return {**result, "mistake": f"{asked}: {result['mistake']}"}


def problem_of(finding: Finding) -> Problem | None:
    """Return the problem of what a rank has found (see `answers.Finding`), or None."""
    if finding["looks"] is None:
        return None
    result = problem(
        finding["looks"], finding["expected"], finding["got"], finding["rank"], **finding["words"]
    )
    return {**result, "mistake": f"{finding['at']}: {result['mistake']}"}
