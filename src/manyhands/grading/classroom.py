"""Where a class's files stand, and nbgrader's settings for them.

Everything of a class lies in one folder, `classroom/` in the clone or `MANYHANDS_CLASSROOM`: nbgrader's gradebook, what was
received and collected, the grades with their history, the feedback pages. The exchange, which attendees must reach, is
`exchange/` in it, or `MANYHANDS_EXCHANGE`.
"""

import os
import re
from contextlib import suppress
from functools import cached_property
from pathlib import Path

COURSE = "manyhands"
STUDENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}")
SETTINGS = "nbgrader_config.py"
OF_THE_MACHINE = "people_are_users"  # a file in the hub's folder, where accounts have the names of the machine's own users, and their numbers


def configure(c, root):
    """nbgrader's settings for a clone: where things are, and our grading, feedback and collecting in place of its own."""
    from manyhands.build.labs import preprocessors
    from manyhands.grading import exchange

    folder = folder_of(root)
    with suppress(OSError):  # nbgrader's own commands may be the first ones
        Classroom(root).made()
    c.CourseDirectory.root = str(root)
    c.CourseDirectory.course_id = COURSE
    c.CourseDirectory.source_directory = "solutions"
    c.CourseDirectory.release_directory = "labs"
    for step in ("submitted", "autograded", "feedback"):
        setattr(c.CourseDirectory, f"{step}_directory", str(folder / step))
    c.CourseDirectory.db_url = f"sqlite:///{folder / 'gradebook.db'}"
    c.Exchange.root = exchange_of(root)
    exchange.use(c)
    c.GenerateAssignment.preprocessors = preprocessors(gradebook=True)
    c.GenerateAssignment.post_convert_hook = "manyhands.grading.nbgrader_parts.make_the_lab_as_the_build_does"
    c.ExchangeFactory.collect = "manyhands.grading.receive.Collect"
    c.Autograde.exporter_class = "manyhands.grading.nbgrader_parts.Graded"
    c.Autograde.sanitize_preprocessors = []
    c.Autograde.autograde_preprocessors = []
    c.GenerateFeedback.exporter_class = "manyhands.grading.nbgrader_parts.FeedbackPage"
    c.GenerateFeedback.preprocessors = []


def folder_of(root):
    """The folder of the class that belongs to this clone."""
    named = os.environ.get("MANYHANDS_CLASSROOM")
    return Path(named).resolve() if named else Path(root).resolve() / "classroom"


def exchange_of(root):
    """The exchange's folder, as a text."""
    return os.environ.get("MANYHANDS_EXCHANGE") or str(folder_of(root) / "exchange")


def released(exchange):
    """The names of the labs that are in the exchange to be fetched."""
    return sorted(path.name for path in (Path(exchange) / COURSE / "outbound").glob("*") if path.is_dir())


class Classroom:
    """The class of one clone: paths, and nbgrader's settings as the clone's `nbgrader_config.py` gives them."""

    def __init__(self, root):
        self.root = Path(root).resolve()
        self.folder = folder_of(root)

    def made(self):
        """Itself, its folder made if it was not there: closed to others but for passing through to the exchange."""
        if not self.folder.is_dir():
            self.folder.mkdir(parents=True)
            self.folder.chmod(0o711)
        for name in ("received", "submitted", "autograded", "feedback", "grades", "public"):
            (self.folder / name).mkdir(exist_ok=True, mode=0o700)
        return self

    @cached_property
    def config(self):
        from traitlets.config import Config, PyFileConfigLoader

        if not (self.root / SETTINGS).is_file():
            config = Config()
            configure(config, self.root)
            return config
        return PyFileConfigLoader(SETTINGS, path=str(self.root)).load_config()

    @cached_property
    def course(self):
        """nbgrader's CourseDirectory."""
        from nbgrader.coursedir import CourseDirectory

        return CourseDirectory(config=self.config)

    def solution(self, unit):
        return self.root / "solutions" / unit / f"{unit}.ipynb"

    def place(self, step, student, unit):
        """nbgrader's folder of a step ("submitted", "autograded", "feedback") for a student and a unit."""
        return self.folder / step / student / unit

    def received(self, student, unit):
        """All that this student has ever handed in for the unit, one folder for each time."""
        return self.folder / "received" / student / unit

    def students(self, unit):
        """Who has handed in this unit."""
        found = (self.folder / "submitted").glob(f"*/{unit}")
        return sorted(path.parent.name for path in found if STUDENT.fullmatch(path.parent.name))

    @property
    def exchange(self):
        return Path(self.config.Exchange.root)
