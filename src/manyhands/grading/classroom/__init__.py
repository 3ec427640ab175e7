"""A class, from the release of a lab to the table of grades.

`configure` is here for each clone's `nbgrader_config.py`; nbgrader, a second of imports, comes with
it and not before.
"""

from typing import Any

__all__ = ["configure"]


def __getattr__(name: str) -> Any:
    if name == "configure":
        from manyhands.grading.nbgrader.class_settings import configure

        return configure
    raise AttributeError(f"module 'manyhands.grading.classroom' has no attribute {name!r}")
