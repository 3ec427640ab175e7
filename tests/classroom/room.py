"""A class in a folder, with the tiny lab of tests/labs and people who hand something in.

The lab is released as the build does it.
"""

import io
import shutil
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from nbgrader.api import Gradebook

import tiny
from manyhands.authoring import labs
from manyhands.grading.classroom import class_commands, steps
from manyhands.grading.nbgrader.class_settings import SETTINGS, Classroom

UNIT = "90_tiny"
SETTINGS_FILE = Path(__file__).resolve().parents[2] / SETTINGS


class Room(Classroom):
    """The course and its class; `lab` is a `tiny.Lab`."""

    def __init__(self, root):
        root.mkdir()
        super().__init__(root)
        self.lab = tiny.Lab(self.root)
        shutil.copy(SETTINGS_FILE, root)
        self.make_lab()

    def make_lab(self):
        for name, data in labs.release(self.lab.solution.parent, UNIT).items():
            path = self.root / "labs" / UNIT / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def collected(self, student, notebook=None, name=f"{UNIT}.ipynb", data=None):
        """Put something where collected work lies; the folder."""
        folder = self.made().step_folder("submitted", student, UNIT)
        folder.mkdir(parents=True, exist_ok=True)
        if notebook is not None:
            self.lab.write(folder.relative_to(self.root) / name, notebook)
        if data is not None:
            (folder / name).write_bytes(data)
        return folder

    def hand_in(self, student, notebook, **files):
        """Through nbgrader's exchange, as its button does it."""
        work = self.root / "homes" / student / UNIT
        shutil.rmtree(work, ignore_errors=True)
        self.lab.write(work.relative_to(self.root) / f"{UNIT}.ipynb", notebook)
        for name, text in files.items():
            (work / name).write_text(text)
        part = steps.exchange(self, UNIT, "Submit", student, assignment_dir=str(work.parent))
        part.start()
        return Path(part.inbound_path) / part.assignment_filename

    def command(self, name, *words):
        """Run one of our commands; (exit code, what it showed)."""
        out, errors = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(errors):
            code = getattr(class_commands, name)([*words])
        return code, out.getvalue() + errors.getvalue()

    def grade_of(self, student):
        return steps.journal_of(self, UNIT).current(student)["grade"]

    def book(self):
        return Gradebook(self.course.db_url, self.course.course_id)

    def marks(self):
        """{student: {check: (automatic, by hand, most)}} of nbgrader's gradebook."""
        with self.book() as book:
            return {
                submission.student.id: {
                    row.name: (row.auto_score, row.manual_score, row.max_score)
                    for notebook in submission.notebooks
                    for row in notebook.grades
                }
                for submission in book.assignment_submissions(UNIT)
            }
