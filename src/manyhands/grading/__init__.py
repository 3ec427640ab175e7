"""Grades for labs.

One engine for the learner, for the tests and for the instructor.

`grade(submission_path, solution_path)` is the engine; `check("06")` shows a grade in a notebook;
`manyhands check 06` in a terminal. What runs in the learner's kernel is never believed: it only
hands over numbers, which are compared here.
"""

from importlib import import_module
from typing import Any

_HOME = {
    "grade": "manyhands.grading.engine",
    "Grade": "manyhands.grading.engine",
    "SolutionFailsError": "manyhands.grading.engine",
    "check": "manyhands.grading.notebook_view",
}
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'manyhands.grading' has no attribute {name!r}")
