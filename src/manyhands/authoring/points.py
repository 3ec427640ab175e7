"""The points of a lab follow from its criteria.

Its check cells, its texts and its deck repeat them, and the build refuses what disagrees.
"""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING

from manyhands.authoring import BuildError

if TYPE_CHECKING:
    from nbformat import NotebookNode

_CHECKS = re.compile(r"^from manyhands\.checks import (\w+)", re.M)
_EXERCISE = re.compile(r"\*Difficulty [^*]*?(\d+) points?\*")
_LAB = re.compile(r"\*\*Points:\*\* (\d+)")
_DECK = re.compile(r"\blab \d+ minutes, (\d+) points|^\d+ minutes, (\d+) points: `labs/", re.M)


def of_criteria(topic: str) -> dict[str, int]:
    """{check: points} of a lab's criteria, from `manyhands.checks.<topic>.messages`."""
    messages = importlib.import_module(f"manyhands.checks.{topic}.messages")
    return {
        check: sum(points for points, _ in criteria.values())
        for check, criteria in messages.CRITERIA.items()
    }


def refuse_others(source: NotebookNode, name: str) -> None:
    """Raise a BuildError if points in a lab's source are not those of the criteria.

    It names every such place. A lab whose check cells come from elsewhere than `manyhands.checks`
    has nothing to compare with.
    """
    imported = [
        topic
        for cell in source.cells
        if cell.cell_type == "code"
        for topic in _CHECKS.findall(cell.source)
    ]
    if not imported:
        return
    criteria, wrong = of_criteria(imported[0]), []
    place = f"CRITERIA of manyhands.checks.{imported[0]}.messages"
    exercise: str | None = None
    promised, counted, total = 0, 0, 0

    def compare(what: str, stated: int, true: int) -> None:
        if stated != true:
            wrong.append(f"{what} says {stated} points, and by {place} it has {true}")

    for cell in source.cells:
        exercise_points = _EXERCISE.search(cell.source) if cell.cell_type == "markdown" else None
        if exercise_points or (cell.cell_type == "markdown" and cell.source.startswith("## ")):
            if exercise:
                compare(exercise, promised, counted)
            exercise = cell.source.splitlines()[0].lstrip("# ") if exercise_points else None
            promised, counted = int(exercise_points[1]) if exercise_points else 0, 0
        elif "check" in cell.metadata.get("tags", []):
            grade_id = cell.metadata["grade_id"]
            check = grade_id.removesuffix("-check")
            if check not in criteria:
                wrong.append(
                    f"the check cell {grade_id} has no criteria: {place} has {', '.join(criteria)}"
                )
                continue
            compare(f"the check cell {grade_id}", cell.metadata["points"], criteria[check])
            counted, total = counted + criteria[check], total + criteria[check]
    if exercise:
        compare(exercise, promised, counted)
    for number in _LAB.findall(source.cells[0].source):
        compare("the first cell", int(number), total)
    if wrong:
        raise BuildError("\n".join(f"{name}: {line}" for line in wrong))


def deck_mistakes(deck: str, lab: str) -> list[str]:
    """One line for each number of points in a deck that the lab's source does not have.

    Both are given as their texts.
    """
    total = _LAB.search(lab)
    stated = [int(first or second) for first, second in _DECK.findall(deck)]
    return [
        f"it says {points} points, and the lab has {total[1]}"
        for points in stated
        if total and points != int(total[1])
    ]
