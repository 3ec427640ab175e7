"""Our grading and feedback as parts of nbgrader.

So its commands and formgrader's buttons do what `manyhands` does. nbgrader names them in its
settings (see `classroom.configure`). They start `manyhands` in a process of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbconvert.exporters import Exporter

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Ours(Exporter):
    """What nbgrader calls for each notebook.

    It runs one of our commands, which writes the file that is given back.
    """

    parent: Any  # nbgrader's converter
    step: str
    words: tuple[str, ...]

    # nbgrader writes the text that it is given, whatever a notebook's exporter should give
    def from_filename(  # type: ignore[override]
        self, filename: str, resources: dict[str, Any] | None = None, **_: Any
    ) -> tuple[str, dict[str, Any]]:
        assert resources is not None  # nbgrader says whose work it is
        facts = resources["nbgrader"]
        course = self.parent.coursedir
        step = getattr(course, f"{self.step}_directory")
        made = (
            Path(course.format_path(step, facts["student"], facts["assignment"]))
            / f"{facts['notebook']}{self.file_extension}"
        )
        if Path(filename) != made:
            self._command(course.root, facts)
        resources["output_extension"] = self.file_extension
        return made.read_text(encoding="utf-8"), resources

    def _command(self, root: str | Path, facts: dict[str, str]) -> None:
        command = [
            sys.executable,
            "-m",
            "manyhands",
            *self.words,
            facts["assignment"],
            "--student",
            facts["student"],
        ]
        done = subprocess.run(
            command, env={**os.environ, "MANYHANDS_ROOT": str(root)}, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(command[2:])}\n{done.stdout}{done.stderr}")


class Graded(_Ours):
    """For `nbgrader autograde`."""

    step, words, file_extension = "autograded", ("grade",), ".ipynb"


class FeedbackPage(_Ours):
    """For `nbgrader generate_feedback`."""

    step, words, file_extension = "feedback", ("feedback", "--hold-back"), ".html"


def make_the_lab_as_the_build_does(assignment: str, student: str, notebooks: Sequence[str]) -> None:
    """Make the lab, for `nbgrader generate_assignment`.

    nbgrader itself would copy solved scripts into the lab as they are.
    """
    from manyhands.authoring import labs

    solution = Path(notebooks[0]).parent
    lab = solution.parents[1] / "labs" / solution.name
    shutil.rmtree(lab)
    for name, data in labs.release(solution, solution.name).items():
        (lab / name).parent.mkdir(parents=True, exist_ok=True)
        (lab / name).write_bytes(data)
