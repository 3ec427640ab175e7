"""nbgrader's settings for a class, and the class as its commands see it.

The commands see paths (`manyhands.grading.store.paths`) and settings.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.grading.store.paths import STUDENT, exchange_of, folder_of
from manyhands.learner.released import COURSE

if TYPE_CHECKING:
    from typing import Literal

    from nbgrader.coursedir import CourseDirectory
    from traitlets.config import Config

SETTINGS = "nbgrader_config.py"


def configure(c: Config, root: str | Path) -> None:
    """Set nbgrader's settings for a clone.

    They say where things are, and put our grading, feedback and collecting in place of its own.
    """
    from manyhands.authoring.labs import preprocessors
    from manyhands.grading.nbgrader import exchange

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
    c.GenerateAssignment.post_convert_hook = (
        "manyhands.grading.nbgrader.exporters.make_the_lab_as_the_build_does"
    )
    c.ExchangeFactory.collect = "manyhands.grading.nbgrader.receive.Collect"
    c.Autograde.exporter_class = "manyhands.grading.nbgrader.exporters.Graded"
    c.Autograde.sanitize_preprocessors = []
    c.Autograde.autograde_preprocessors = []
    c.GenerateFeedback.exporter_class = "manyhands.grading.nbgrader.exporters.FeedbackPage"
    c.GenerateFeedback.preprocessors = []


class Classroom:
    """The class of one clone.

    It has paths, and nbgrader's settings as the clone's `nbgrader_config.py` gives them.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root).resolve()
        self.folder = folder_of(root)

    def made(self) -> Classroom:
        """Itself, its folder made if it was not there.

        The folder is closed to others but for passing through to the exchange.
        """
        if not self.folder.is_dir():
            self.folder.mkdir(parents=True)
            self.folder.chmod(0o711)
        for name in ("received", "submitted", "autograded", "feedback", "grades", "public"):
            (self.folder / name).mkdir(exist_ok=True, mode=0o700)
        return self

    @cached_property
    def config(self) -> Config:
        """nbgrader's settings: those of the clone's file, or ours where there is none."""
        from traitlets.config import Config, PyFileConfigLoader

        if not (self.root / SETTINGS).is_file():
            config = Config()
            configure(config, self.root)
            return config
        return PyFileConfigLoader(SETTINGS, path=str(self.root)).load_config()

    @cached_property
    def course(self) -> CourseDirectory:
        """nbgrader's CourseDirectory."""
        from nbgrader.coursedir import CourseDirectory

        return CourseDirectory(config=self.config)

    def solution(self, unit: str) -> Path:
        """The path of the unit's solution."""
        return self.root / "solutions" / unit / f"{unit}.ipynb"

    def step_folder(
        self, step: Literal["submitted", "autograded", "feedback"], student: str, unit: str
    ) -> Path:
        """nbgrader's folder of a step for a student and a unit."""
        return self.folder / step / student / unit

    def received(self, student: str, unit: str) -> Path:
        """All that this student has ever handed in for the unit, one folder for each time."""
        return self.folder / "received" / student / unit

    def students(self, unit: str) -> list[str]:
        """Who has handed in this unit."""
        folders = (self.folder / "submitted").glob(f"*/{unit}")
        return sorted(path.parent.name for path in folders if STUDENT.fullmatch(path.parent.name))

    @property
    def exchange(self) -> Path:
        """The outermost folder of nbgrader's exchange."""
        return Path(self.config.Exchange.root)
