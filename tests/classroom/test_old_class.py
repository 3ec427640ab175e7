"""A class that was graded by an earlier version goes on.

That version's files had other places in the package.

class.tar.gz was made on 2026-11-24 with the version of commit 038cfe6, the last one before the
package's files moved into folders: three people handed in `90_tiny`; collect, grade, feedback and
export ran; the instructor gave bob one point by hand.
"""

import tarfile
from pathlib import Path

import nbformat
import pytest
from room import UNIT, Room

import tiny
from manyhands.grading.classroom import steps
from manyhands.grading.nbgrader.class_settings import Classroom

OLD = Path(__file__).parent / "before_the_folders" / "class.tar.gz"
MARKS = {
    "alice": {"square-check": (2.0, None, 2.0), "total-check": (2.0, None, 2.0)},
    "bob": {"square-check": (0.0, 1.0, 2.0), "total-check": (2.0, None, 2.0)},
    "carol": {"square-check": (2.0, None, 2.0), "total-check": (0.0, None, 2.0)},
}


class OldRoom(Room):
    """A class that is there already."""

    def __init__(self, root):
        Classroom.__init__(self, root)
        self.lab = tiny.Lab(root / "another")
        self.lab.folder, self.lab.notebook = root, nbformat.read(self.solution(UNIT), 4)


@pytest.fixture
def old(tmp_path, monkeypatch):
    with tarfile.open(OLD) as archive:
        archive.extractall(tmp_path / "course", filter="data")
    monkeypatch.setenv("MANYHANDS_ROOT", str(tmp_path / "course"))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("MANYHANDS_CLASSROOM", raising=False)
    monkeypatch.delenv("MANYHANDS_EXCHANGE", raising=False)
    return OldRoom(tmp_path / "course")


def test_grades_and_marks_stay_and_the_class_goes_on(old):
    journal = steps.journal_of(old, UNIT)
    before, seed = {student: journal.history(student) for student in MARKS}, journal.seed()
    assert old.marks() == MARKS
    assert old.command("grade", "90")[0] == 0
    assert old.marks() == MARKS and journal.seed() == seed
    assert {
        student: [entry["grade"]["points"] for entry in journal.history(student)]
        for student in MARKS
    } == {"alice": [4.0], "bob": [2.0], "carol": [2.0]}
    assert {student: journal.history(student) for student in MARKS} == before
    old.hand_in("dave", old.lab.handed_in(total="return 0"))
    code, printed = old.command("collect", "90")
    assert (code, printed) == (0, "90_tiny: 1 new, 0 handed in again, 3 as before.\n")
    code, printed = old.command("grade", "90")
    assert code == 0 and "1 graded, 3 already had a grade" in printed
    code, printed = old.command("feedback", "90")
    assert code == 0 and "4 pages" in printed
    code, table = old.command("export")
    assert code == 0 and table.count(",first grade,") == 4
    assert [
        line.split(",")[6] for line in table.splitlines() if line.startswith("90_tiny,bob,,bob,")
    ] == ["3.0"]
