"""Telling a class's board of a result: only on an attendee's server, where MANYHANDS_BOARD names
the board's socket.

The board shows what it is told as the person's own; grades come from grading only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manyhands.checks.record import FAIL, cut
from manyhands.grading.compare import in_a_line
from manyhands.learner import board_line

if TYPE_CHECKING:
    from manyhands.grading.compare import Criterion
    from manyhands.grading.engine import Grade

LONGEST = 200


def tell(grade: Grade, hints: int) -> str:
    """Tell the board of a grade and of how many hints were opened; returns the class's
    announcement, or "".
    """
    announcement = board_line.send(_message(grade, hints)).get("announcement", "")
    return in_a_line(announcement, LONGEST) if isinstance(announcement, str) else ""


def _message(grade: Grade, hints: int) -> dict[str, Any]:
    criteria = [
        {"check": one.check, "name": one.name, "status": one.status, "message": _why(one)}
        for one in grade.criteria
    ]
    return {"unit": grade.unit, "verdict": grade.verdict, "criteria": criteria, "hints": hints}


def _why(criterion: Criterion) -> str:
    """One line: the likely mistake, else what was expected and what came."""
    if criterion.status != FAIL:
        return ""
    told = criterion.detail
    words = [told[key] for key in ("mistake", "problem") if key in told] or [
        f"{key}: {value}" for key, value in told.items()
    ]
    return cut(in_a_line(" ".join(map(str, words)), 10 * LONGEST), LONGEST)
