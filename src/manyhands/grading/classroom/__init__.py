"""A class, from the release of a lab to the table of grades.

`configure` is here for each clone's `nbgrader_config.py`.
"""

from manyhands.grading.nbgrader.class_settings import configure

__all__ = ["configure"]
