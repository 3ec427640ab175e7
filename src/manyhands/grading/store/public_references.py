"""References under the public seed.

A check needs them where the solutions are not, as on an attendee's server.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.grading import engine, notebooks
from manyhands.grading.store import references
from manyhands.shared.atomic import write_file

if TYPE_CHECKING:
    from manyhands.grading.compare import Shown

PUBLIC_SEED = 0  # the one that a lab's checks have on the learner's own machine
NOT_YET = (
    "The reference for {unit} does not exist yet, because the classroom's server makes all "
    "references when it is started for the first time. Try again in a few minutes. The check cells "
    "in the notebook already work."
)


class NoReferenceError(LookupError):
    """There is no reference for this lab yet, or there will be none."""


def path_of(root: str | Path, unit: str) -> Path:
    """Where an attendee's folder keeps the reference of a unit."""
    return Path(root) / ".course" / "references" / f"{unit}.json"


def load(root: str | Path, unit: str) -> Shown:
    """{grade_id: outputs of the solution's check cell}; raises NoReferenceError."""
    try:
        return json.loads(path_of(root, unit).read_text(encoding="utf-8"))["shown"]
    except (OSError, ValueError, KeyError):
        raise NoReferenceError(NOT_YET.format(unit=unit)) from None


def renew(solution_path: str | Path, path: str | Path) -> bool:
    """Make the reference of a solution, unless it is there and up to date.

    Returns whether it was made. Raises SolutionFailsError.
    """
    solution = notebooks.read(solution_path)
    key, path = references.key(solution_path, solution, PUBLIC_SEED), Path(path)
    try:
        if json.loads(path.read_text(encoding="utf-8"))["key"] == key:
            return False
    except (OSError, ValueError, KeyError):
        pass
    write_file(
        path,
        json.dumps({"key": key, "shown": engine.reference(solution_path, solution, PUBLIC_SEED)}),
    )
    path.chmod(0o644)
    return True
