"""Points are stated once, in a lab's criteria.

`manyhands build` and `manyhands slides` refuse a text that disagrees.
"""

import shutil
from pathlib import Path

import pytest

from manyhands.authoring import BuildError, slides
from manyhands.authoring.command import main
from manyhands.checks.data_parallel import messages
from tiny_course import replace

ROOT = Path(__file__).resolve().parents[3]
SOURCE = "sources/labs/01_data_parallel.py"


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course that has lab 01 alone, with its deck."""
    for name in (SOURCE, "src/manyhands/units.toml", "slides/01_data_parallel.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.setenv("MANYHANDS_ROOT", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(capsys):
    """What `manyhands build --no-execute 01` says of points."""
    main(["--no-execute", "01"])
    output = capsys.readouterr()
    return [
        line for line in (output.out + output.err).splitlines() if "points, and by CRITERIA" in line
    ]


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        (
            'grade_id="share-check" points=4',
            'grade_id="share-check" points=5',
            ["the check cell share-check says 5 points"],
        ),
        ("9 minutes, 4 points", "9 minutes, 3 points", ["says 3 points"]),
        ("**Points:** 13", "**Points:** 12", ["the first cell says 12 points"]),
    ],
)
def test_each_place_that_disagrees_is_named(course, capsys, old, new, named):
    replace(course / SOURCE, old, new)
    lines = refused(capsys)
    assert len(lines) == 1 and named[0] in lines[0] and SOURCE in lines[0]


def test_a_new_criterion_names_every_place_that_it_changes(course, capsys, monkeypatch):
    monkeypatch.setitem(messages.CRITERIA["rows"], "new", (2, "a new criterion"))
    lines = refused(capsys)
    assert [line.partition(" says ")[0].rpartition(": ")[2] for line in lines] == [
        "the check cell rows-check",
        "1. Rows",
        "the first cell",
    ]
    assert all(line.endswith(("it has 4", "it has 15")) for line in lines)


def test_a_deck_that_disagrees_with_its_lab_is_refused(course):
    replace(
        course / "slides/01_data_parallel.md", "35 minutes, 13 points: ", "35 minutes, 14 points: "
    )
    [drift] = slides.drifts(course)
    assert (drift.path, drift.what) == (
        "slides/01_data_parallel.md",
        "it says 14 points, and the lab has 13",
    )
    with pytest.raises(BuildError, match="01_data_parallel.md: it says 14 points"):
        slides.build(course)
