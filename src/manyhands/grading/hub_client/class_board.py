"""Report a check's result to the class board, which only an attendee's server on a hub can reach.

The board shows the report as the person's own; grades come from grading only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manyhands.checks.record import FAIL, cut
from manyhands.grading.compare import in_a_line
from manyhands.shared import hub_client

if TYPE_CHECKING:
    from manyhands.grading.compare import Criterion
    from manyhands.grading.engine import Grade

LONGEST = 200


def report(grade: Grade, hints: int) -> str:
    """Report a grade and the number of opened hints; returns the class's announcement, or ""."""
    announcement = hub_client.ask_board(_message(grade, hints)).get("announcement", "")
    return in_a_line(announcement, LONGEST) if isinstance(announcement, str) else ""


def _message(grade: Grade, hints: int) -> dict[str, Any]:
    criteria = [
        {
            "check": criterion.check,
            "name": criterion.name,
            "status": criterion.status,
            "message": _why(criterion),
        }
        for criterion in grade.criteria
    ]
    return {"unit": grade.unit, "verdict": grade.verdict, "criteria": criteria, "hints": hints}


def _why(criterion: Criterion) -> str:
    """One line: the likely mistake, else what was expected and what came."""
    if criterion.status != FAIL:
        return ""
    detail = criterion.detail
    words = [detail[key] for key in ("mistake", "problem") if key in detail] or [
        f"{key}: {value}" for key, value in detail.items()
    ]
    return cut(in_a_line(" ".join(map(str, words)), 10 * LONGEST), LONGEST)
