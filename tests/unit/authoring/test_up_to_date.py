"""The drift check finds each kind of difference and names the first cell.

The command that it names repairs it.
"""

import pytest

import tiny_course
from manyhands.authoring import layout, make, up_to_date
from manyhands.authoring.command import main
from tiny_course import replace


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    root = tmp_path_factory.mktemp("built")
    pieces = tiny_course.make(root)
    (root / "sources/scripts").mkdir()
    (root / "sources/scripts/90_script.py").write_text("print('hello')\n")
    for piece in pieces:
        make.build(piece)
    return {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def course(built, tmp_path):
    """A fresh copy of the built course, to be spoilt."""
    for name, data in built.items():
        make.write_if_changed(tmp_path / name, data)
    return tmp_path


def test_a_fresh_build_has_no_drift(course):
    assert up_to_date.drifts(course) == []
    assert up_to_date.drifts(course, run=True) == []


NOTEBOOK, LAB = "notebooks/90_tiny.ipynb", "labs/90_tiny/90_tiny.ipynb"
SOURCE, SOLUTION = "sources/tutorial/90_tiny.py", "solutions/90_tiny/90_tiny.ipynb"
SPOILS = {
    "source": (SOURCE, '"count:"', '"Count:"', NOTEBOOK, "cell 3 has another source"),
    "tags": (SOURCE, '"measured"', '"measured", "setup"', NOTEBOOK, "cell 4 has another metadata"),
    "points": (
        "sources/labs/90_tiny.py",
        "points=2",
        "points=3",
        SOLUTION,
        "cell 4 has another metadata",
    ),
    "header": (
        SOURCE,
        '"minutes": 10',
        '"minutes": 15',
        NOTEBOOK,
        "was built from a different version of its source",
    ),
    "untidy": (SOURCE, "\n\n# %%\n", "\n\n\n# %%\n", SOURCE, "line 9 is not in canonical form"),
    "mistake": (SOURCE, '"setup"', '"set-up"', SOURCE, "unknown tag 'set-up'"),
    "edited": (NOTEBOOK, "count to two", "count to three", NOTEBOOK, "cell 1 has another source"),
    "indent": (
        NOTEBOOK,
        ' "nbformat": 4,',
        '  "nbformat": 4,',
        NOTEBOOK,
        "is not in canonical form",
    ),
    "count": (
        NOTEBOOK,
        '"execution_count": 1,',
        '"execution_count": null,',
        NOTEBOOK,
        "cell 2 was never executed",
    ),
    "lab": (LAB, "PASS 2/2", "PASS 9/9", LAB, "cell 4 differs from what the solution gives"),
    "leak": (LAB, "# YOUR CODE HERE", "twice = number + number", LAB, "cell 3 differs"),
    "script": (
        "sources/scripts/90_script.py",
        "hello",
        "Hello",
        "notebooks/scripts/90_script.py",
        "differs",
    ),
}


@pytest.mark.parametrize("spoil", SPOILS)
def test_each_kind_of_drift_is_named(course, spoil):
    file, old, new, where, what = SPOILS[spoil]
    path = course / file
    path.write_text(path.read_text().replace(old, new, 1))
    differences = up_to_date.drifts(course)
    assert differences[0].path == where and what in differences[0].what
    assert "manyhands build 90" in differences[0].remedy


@pytest.mark.parametrize("spoil", ["source", "points", "untidy", "edited", "count", "leak"])
def test_the_command_that_is_named_repairs_the_drift(course, spoil, monkeypatch):
    file, old, new, *_ = SPOILS[spoil]
    path = course / file
    path.write_text(path.read_text().replace(old, new, 1))
    monkeypatch.setenv("MANYHANDS_ROOT", str(course))
    for drift in up_to_date.drifts(course):
        words = drift.remedy.split(",")[0].split()
        assert words[:2] == ["manyhands", "build"]
        assert main(words[2:]) == 0
    assert up_to_date.drifts(course) == []


def test_an_untidy_source_is_tidied_by_the_build_and_nothing_else_changes(course):
    before = {path: path.read_bytes() for path in course.rglob("*.ipynb")}
    replace(course / SOURCE, "\n\n# %%\n", "\n\n\n# %%\n")
    piece = layout.pieces(course, [SOURCE])[0]
    assert make.build(piece) == [course / SOURCE]
    assert {path: path.read_bytes() for path in course.rglob("*.ipynb")} == before


def test_a_notebook_with_the_marks_of_a_merge_is_named(course, capsys, monkeypatch):
    monkeypatch.setenv("MANYHANDS_ROOT", str(course))
    (course / NOTEBOOK).write_text(
        (course / NOTEBOOK).read_text().replace(' "cells"', '<<<<<<< HEAD\n "cells"')
    )
    for words in (["--check", "--no-execute"], ["--no-execute", "90"]):
        assert main(words) != 0
        output = capsys.readouterr()
        assert (
            "90_tiny.ipynb is not a notebook. A merge has left its marks in it."
            in output.out + output.err
        )


def test_outputs_are_compared_when_asked(course):
    replace(course / NOTEBOOK, '"count: 2\\n"', '"count: 3\\n"')
    assert up_to_date.drifts(course) == []
    (drift,) = up_to_date.drifts(course, run=True)
    assert "cell 3 has other outputs" in drift.what and '"count: 2\\n"' in drift.what


def test_missing_and_ownerless_files_are_named(course):
    (course / NOTEBOOK).unlink()
    (course / "labs/90_tiny/90_script.py").unlink()
    (course / "labs/90_tiny/notes.txt").write_text("")
    (course / "labs/91_gone").mkdir()
    (course / "labs/91_gone/91_gone.ipynb").write_text("{}")
    differences = {(drift.path, drift.what) for drift in up_to_date.drifts(course)}
    assert differences == {
        (NOTEBOOK, "was never built"),
        ("labs/90_tiny/90_script.py", "was never built"),
        ("labs/90_tiny/notes.txt", "has no source"),
        ("labs/91_gone/91_gone.ipynb", "it has no source in sources/"),
    }


def test_the_command_tells_and_returns_one_and_two_for_a_name_that_is_none(
    course, monkeypatch, capsys
):
    monkeypatch.setenv("MANYHANDS_ROOT", str(course))
    assert main(["--check", "--no-execute"]) == 0
    replace(course / SOURCE, '"count:"', '"Count:"')
    assert main(["--check", "--no-execute", "90"]) == 1
    output = capsys.readouterr()
    assert "notebooks/90_tiny.ipynb: cell 3 has another source" in output.err
    assert "to repair: manyhands build 90" in output.err
    assert main(["90_tiny", "7"]) == 2
    assert "there is no unit '7' in sources/; the units: 90_tiny" in capsys.readouterr().err


def test_units_are_named_in_several_ways(course, monkeypatch):
    monkeypatch.chdir(course / "sources/tutorial")
    both = layout.pieces(course)
    for word in ("90", "90_tiny"):
        assert layout.pieces(course, [word]) == both
    for word in (SOURCE, NOTEBOOK, "90_tiny.py", str(course / SOURCE)):
        assert layout.pieces(course, [word]) == both[:1]
    assert layout.pieces(course, ["90", SOLUTION]) == both
