"""Comparing what a check cell showed in the learner's kernel with what it shows for the solution.

This is done outside any kernel.
"""

from __future__ import annotations

import copy
import math
import types
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any, TypedDict

import nbformat
from nbval.plugin import IPyNbCell, coalesce_streams, nocolors

from manyhands.checks.record import BLOCKED, FAIL, MIME, PASS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from manyhands.checks.record import Status

NOT_COMPARED = (
    "metadata",
    "traceback",
    "prompt_number",
    "output_type",
    "name",
    "execution_count",
    "image/png",
    "image/jpeg",
    "image/svg+xml",
    "application/vnd.jupyter.widget-view+json",
)
Output = dict[str, Any]  # of a cell, as nbformat has it
Shown = dict[str, list[Output]]  # {grade_id of a check cell: its outputs}
LONGEST = 600  # letters of a detail
MUCH = 10_000  # letters more than the solution shows: nbval takes hours over some long lines


class Reference(TypedDict):
    """A criterion of the solution's record (`manyhands.checks.record`)."""

    name: str
    text: str
    points: float
    status: Status
    values: list[Any]
    atol: float
    rtol: float
    detail: dict[str, Any]


@dataclass
class Criterion:
    """One line of a grade.

    `points` and `text` come from the reference, never from the learner's kernel.
    """

    check: str
    name: str
    text: str
    points: float
    status: Status
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def earned(self) -> float:
        """The points that it brings: all of them, or none."""
        return self.points if self.status == PASS else 0


def records(outputs: Iterable[Output]) -> list[Any]:
    """All records among a cell's outputs."""
    return [
        _data(output)[MIME]
        for output in outputs
        if output.get("output_type") in ("display_data", "execute_result") and MIME in _data(output)
    ]


def _data(output: Output) -> dict[str, Any]:
    """What an output shows, by type; a kernel may have put anything in its place."""
    return output["data"] if isinstance(output.get("data"), dict) else {}


def compare(
    check: str, points: float, got: Sequence[Output], reference: Sequence[Output]
) -> list[Criterion]:
    """The criteria of one check cell.

    They come from its outputs in the learner's kernel and those of the solution.
    """
    wanted = records(reference)
    if not wanted:
        return [_compare_text(check, points, got, reference)]
    why_not, learner = _the_record(records(got), wanted[0])
    return [
        _compare_criterion(check, criterion, learner.get(criterion["name"]), why_not)
        for criterion in wanted[0]["criteria"]
    ]


def _the_record(
    records_shown: Sequence[Any], wanted: dict[str, Any]
) -> tuple[str | None, dict[str, Any]]:
    """(why it does not count or None, {name: criterion}) of a check cell's record.

    A check cell shows exactly one.
    """
    if not records_shown:
        return "The check cell showed no result.", {}
    if len(records_shown) > 1:
        return "The check cell showed more than one result.", {}
    record = records_shown[0]
    criteria = (
        record.get("criteria")
        if isinstance(record, dict) and record.get("name") == wanted["name"]
        else None
    )
    if not isinstance(criteria, list) or not all(
        isinstance(criterion, dict) for criterion in criteria
    ):
        return "The check cell showed something that is not a result of this check.", {}
    return None, {
        criterion.get("name"): criterion
        for criterion in criteria
        if isinstance(criterion.get("name"), str)
    }


def _compare_criterion(
    check: str, reference: Reference, learner: dict[str, Any] | None, why_not: str | None
) -> Criterion:
    verdict = Criterion(check, reference["name"], reference["text"], reference["points"], FAIL)
    if reference["status"] == BLOCKED:
        verdict.status, verdict.detail = BLOCKED, dict(reference["detail"])
    elif learner is None:
        verdict.detail = {"problem": why_not or "The check did not reach this criterion."}
    elif learner.get("status") != PASS:
        verdict.detail = _safe_detail(learner.get("detail"))
    else:
        problem = differs(
            learner.get("values"), reference["values"], reference["atol"], reference["rtol"]
        )
        if problem is None:
            verdict.status = PASS
        else:
            verdict.detail = {"problem": problem}
    return verdict


def differs(values: Any, reference: Sequence[Any], atol: float, rtol: float) -> str | None:
    """None if the values are the reference's, to the tolerance, else what is wrong.

    The reference itself is not told.
    """
    if not isinstance(values, list) or len(values) != len(reference):
        return (
            "It passes in your notebook, but its evidence does not have the length of a right "
            "solution's."
        )
    for number, (value, wanted) in enumerate(zip(values, reference, strict=True), 1):
        if not _equal(value, wanted, atol, rtol):
            return (
                f"It passes in your notebook, but with a different seed, value {number} of "
                f"{len(reference)} of its evidence differs from a right solution's. Does the "
                "answer contain fixed numbers that should be computed?"
            )
    return None


def _equal(value: Any, wanted: Any, atol: float, rtol: float) -> bool:
    numbers = [
        isinstance(number, Real) and not isinstance(number, bool) for number in (value, wanted)
    ]
    if all(numbers):
        try:
            return math.isfinite(value) and abs(value - wanted) <= atol + rtol * abs(wanted)
        except OverflowError:
            return False
    return not any(numbers) and type(value) is type(wanted) and value == wanted


def _safe_detail(detail: Any) -> dict[str, str]:
    """What a failing criterion says of itself, as short text: it is shown, and never counts."""
    detail = detail if isinstance(detail, dict) else {}
    return {
        key: printable(str(detail[key])[:LONGEST])
        for key in ("rank", "expected", "got", "mistake")
        if key in detail
    }


def printable(text: str) -> str:
    """Text from a learner's kernel without what could steer a terminal."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)


def in_a_line(text: str, longest: int) -> str:
    """The same in one line, cut."""
    return " ".join(printable(text[: 10 * longest]).split())[:longest]


def describe_error(problem: BaseException) -> str:
    """An error in one line of text that may be shown."""
    return in_a_line(f"{type(problem).__name__}: {problem}", 300)


class _Comparator:
    """nbval's comparison of outputs without pytest: it needs only these attributes."""

    compare_outputs = IPyNbCell.compare_outputs
    sanitize = IPyNbCell.sanitize
    colors = nocolors

    def __init__(self) -> None:
        self.parent = types.SimpleNamespace(skip_compare=NOT_COMPARED, sanitize_patterns={})
        self.comparison_traceback: list[str] = []

    def format_output_compare(self, key: str, left: Any, right: Any) -> None:
        self.comparison_traceback.append(key)


def _compare_text(
    check: str, points: float, got: Sequence[Output], reference: Sequence[Output]
) -> Criterion:
    verdict = Criterion(check, check, "The output is equal to the solution's.", points, FAIL)
    if _same(got, reference):
        verdict.status = PASS
    else:
        verdict.detail = {"got": printable(_text(got))[:LONGEST] or "no output"}
    return verdict


def _same(got: Sequence[Output], reference: Sequence[Output]) -> bool:
    try:
        if len(str(got)) > 2 * len(str(reference)) + MUCH:
            return False
        return _Comparator().compare_outputs(
            *(
                coalesce_streams(
                    [nbformat.from_dict(copy.deepcopy(dict(output))) for output in outputs]
                )
                for outputs in (got, reference)
            )
        )
    except Exception:  # noqa: BLE001 - nothing that a kernel showed may stop the grader
        return False


def _text(outputs: Iterable[Output]) -> str:
    parts: list[str] = []
    for output in outputs:
        data = _data(output)
        stream = isinstance(output.get("text"), str)
        parts += (
            [output["text"]]
            if stream
            else [
                f"{part}\n"
                for part in (data.get("text/plain"), output.get("evalue"))
                if part and isinstance(part, str)
            ]
        )
    return "".join(parts).strip()
