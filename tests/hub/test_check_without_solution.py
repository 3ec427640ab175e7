"""`manyhands check` on an attendee's server.

No solution is there, and a reference under the public seed stands in for it.
"""

import shutil

import nbformat
import pytest

from grading.conftest import *  # noqa: F403 (the tiny lab)
from manyhands.grading import check_command, engine
from manyhands.grading.store import public_references


@pytest.fixture
def home(lab, monkeypatch):
    """The tiny lab's clone with its solution taken away, after the reference was made."""
    lab.write("labs/90_tiny/90_tiny.ipynb", lab.handed_in(square="raise NotImplementedError()"))
    solution = lab.folder / "solutions" / "90_tiny" / "90_tiny.ipynb"
    path = public_references.path_of(lab.folder, "90_tiny")
    path.parent.mkdir(parents=True)
    assert public_references.renew(solution, path) and not public_references.renew(solution, path)
    shutil.rmtree(lab.folder / "solutions")
    monkeypatch.setenv("MANYHANDS_ROOT", str(lab.folder))
    return lab


def test_it_grades_as_with_the_solution(home, capsys):
    own = home.submit(home.handed_in())
    assert check_command.main(["90"]) == 0
    assert "Graded with the public seed, on your own server, in " in capsys.readouterr().out
    nbformat.write(home.handed_in(square="return 1"), own)
    assert check_command.main(["90"]) == 1
    assert "FAIL" in capsys.readouterr().out


def test_numbers_copied_from_the_reference_earn_nothing_in_grading(home, tmp_path, capsys):
    """Why everybody may read the reference: grades are taken under a hidden seed."""
    own = home.submit(home.handed_in(square="return 9.0"))  # the public seed asks for 3 * 3
    assert check_command.main(["90"]) == 0
    solution = home.write("elsewhere/90_tiny/90_tiny.ipynb", home.notebook)
    grade = engine.grade(own, solution, seed=7, sandboxed=False)
    assert [criterion.status for criterion in grade.criteria] == ["fail", "pass"]


def test_without_a_reference_it_says_so(home, capsys):
    home.submit(home.handed_in())
    public_references.path_of(home.folder, "90_tiny").unlink()
    assert check_command.main(["90"]) == 3
    assert "Try again in a few minutes" in capsys.readouterr().err
