"""The learner's copies: made once, never overwritten, never lost."""

import json

import pytest

from manyhands import unit_links
from manyhands.cli import lab
from manyhands.learner.copies import copy_course, number_of
from manyhands.learner.prepare import prepare

LAB, TUTORIAL = "06_ddp/06_ddp.ipynb", "06_ddp_tutorial.ipynb"


@pytest.fixture
def clone(tmp_path):
    for name in (
        "labs/06_ddp/06_ddp.ipynb",
        "labs/06_ddp/06_train.py",
        "notebooks/06_ddp.ipynb",
        "notebooks/scripts/06_train.py",
        "labs/06_ddp/.ipynb_checkpoints/06_ddp-checkpoint.ipynb",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"first {name}")
    return tmp_path


def test_first_start_copies_everything_at_the_same_depth(clone):
    (clone / "notebooks/outcomes.json").write_text('{"00-whose-x": 100}')
    made = copy_course(clone).made
    assert made == [TUTORIAL, "scripts/06_train.py", "06_ddp/06_ddp.ipynb", "06_ddp/06_train.py"]
    assert (clone / "work" / LAB).read_text() == "first labs/06_ddp/06_ddp.ipynb"
    assert not list((clone / "work").rglob("*checkpoint*"))
    assert not list((clone / "work").rglob(".new-*"))


def test_a_tutorial_comes_without_outputs_and_a_lab_with_those_that_are_aims(clone):
    run = {
        "cells": [
            {"cell_type": "markdown", "metadata": {}, "source": "**Predict.**"},
            {
                "cell_type": "code",
                "execution_count": 3,
                "metadata": {"tags": ["measured"]},
                "outputs": [{"text": "42"}],
                "source": "f()",
            },
        ],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    for place in ("notebooks/06_ddp.ipynb", "labs/06_ddp/06_ddp.ipynb"):
        (clone / place).write_text(json.dumps(run))
    copy_course(clone)
    tutorial, lab_cells = (
        json.loads((clone / "work" / name).read_text())["cells"] for name in (TUTORIAL, LAB)
    )
    assert (
        tutorial == [run["cells"][0], {**run["cells"][1], "outputs": [], "execution_count": None}]
        and lab_cells == run["cells"]
    )
    assert copy_course(clone).newer == [], "the version is that of the course's file"


def test_badges_are_for_those_who_do_not_have_the_course_yet(clone):
    """In a learner's copy, the cell of badges would only lead away.

    A lab's keeps its link to the tutorial.
    """
    cells = [
        {
            "cell_type": "markdown",
            "id": name,
            "metadata": {},
            "source": "[![Open in Colab](a.svg)](b)",
        }
        for name in (unit_links.HEAD, unit_links.FOOT)
    ]
    for place in ("notebooks/06_ddp.ipynb", "labs/06_ddp/06_ddp.ipynb"):
        (clone / place).write_text(json.dumps({"cells": cells}))
    copy_course(clone)
    tutorial, lab_cells = (
        json.loads((clone / "work" / name).read_text())["cells"] for name in (TUTORIAL, LAB)
    )
    assert [cell["id"] for cell in tutorial] == [unit_links.FOOT]
    assert (
        next(cell["source"] for cell in lab_cells)
        == "This lab follows [its tutorial](../06_ddp_tutorial.ipynb)."
    )


def test_second_start_touches_nothing(clone):
    copy_course(clone)
    (clone / "work" / LAB).write_text("my answer")
    again = copy_course(clone)
    assert (again.made, again.newer, again.beside) == ([], [], [])
    assert (clone / "work" / LAB).read_text() == "my answer"


def test_newer_lab_is_told_and_put_beside_only_on_request(clone):
    copy_course(clone)
    (clone / "work" / LAB).write_text("my answer")
    (clone / "labs" / LAB).write_text("second")
    assert copy_course(clone).newer == [LAB]
    assert copy_course(clone, beside=["00"]).newer == [LAB]
    assert copy_course(clone, beside=["06"]).beside == ["06_ddp/06_ddp.new.ipynb"]
    assert copy_course(clone).newer == []
    assert (clone / "work/06_ddp/06_ddp.new.ipynb").read_text() == "second"
    assert (clone / "work" / LAB).read_text() == "my answer"


def test_newer_version_never_takes_the_place_of_an_earlier_one(clone):
    copy_course(clone)
    for version in ("second", "third"):
        (clone / "labs" / LAB).write_text(version)
        copy_course(clone, beside=["06"])
    assert (clone / "work/06_ddp/06_ddp.new.ipynb").read_text() == "second"
    assert (clone / "work/06_ddp/06_ddp.new2.ipynb").read_text() == "third"


def test_deleted_copy_is_made_again(clone):
    copy_course(clone)
    (clone / "work" / LAB).unlink()
    assert copy_course(clone).made == [LAB]


def test_a_lab_that_comes_through_the_exchange_is_not_copied_but_kept_whole(clone):
    assert not any(
        name.startswith("06_ddp/") for name in copy_course(clone, fetched=["06_ddp"]).made
    )
    (clone / "work/06_ddp").mkdir()
    assert "06_ddp/06_train.py" in copy_course(clone, fetched=["06_ddp"]).made


@pytest.mark.parametrize("broken", ["", "{", "[1]"])
def test_lost_or_broken_record_costs_no_work(clone, broken):
    copy_course(clone)
    (clone / "work" / LAB).write_text("my answer")
    (clone / "work/.manyhands/copies.json").write_text(broken)
    assert copy_course(clone).made == []
    assert (clone / "work" / LAB).read_text() == "my answer"
    assert LAB in json.loads((clone / "work/.manyhands/copies.json").read_text())


def test_file_system_without_hard_links(clone, monkeypatch):
    def refuse(*_):
        raise PermissionError("no links here")

    monkeypatch.setattr("os.link", refuse)
    copy_course(clone)
    (clone / "work" / LAB).write_text("my answer")
    copy_course(clone)
    assert (clone / "work" / LAB).read_text() == "my answer"
    assert not list((clone / "work").rglob(".new-*"))


def test_unit_of_a_path():
    assert [number_of(name) for name in (LAB, TUTORIAL, "scripts/06_train.py", "notes.txt")] == [
        "06",
        "06",
        "06",
        "",
    ]


def test_what_the_learner_is_told(clone, capsys):
    prepare(clone)
    assert "4 files of the units 06" in capsys.readouterr().out
    (clone / "labs" / LAB).write_text("second")
    prepare(clone)
    assert (
        "Unit 06 has a newer version. Your copies in work/ are not changed."
        in capsys.readouterr().out
    )
    prepare(clone, ["06"])
    assert "work/06_ddp/06_ddp.new.ipynb" in capsys.readouterr().out
    assert (clone / "work/Start_Here.md").is_file()


def test_unknown_unit_is_refused_with_the_list(clone, capsys, monkeypatch):
    monkeypatch.setenv("MANYHANDS_ROOT", str(clone))
    assert lab.main(["--copy-only", "--new", "66"]) == 2
    assert "no unit 66; the units are 00_preflight" in capsys.readouterr().err


def files(folder):
    return {
        path: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file() and ".manyhands" not in path.parts
    }


def test_a_work_folder_of_before_is_never_touched(clone):
    """With answers and outputs, and from a course that kept no record of versions."""
    for name in (LAB, TUTORIAL, "scripts/06_train.py"):
        (clone / "work" / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / "work" / name).write_text(f"mine: {name}")
    before = files(clone / "work")
    copy_course(clone)
    (clone / "labs" / LAB).write_text("second")
    copy_course(clone)
    copy_course(clone, beside=["06"])
    after = files(clone / "work")
    assert {path: after[path] for path in before} == before


def test_a_clean_copy_comes_beside_work_of_the_same_version(clone):
    copy_course(clone)
    assert copy_course(clone, beside=["06"]).beside == [], (
        "nothing was changed, so there is nothing to begin anew"
    )
    (clone / "work" / LAB).write_text("my answer")
    for _ in range(2):
        assert copy_course(clone, beside=["06"]).beside == ["06_ddp/06_ddp.new.ipynb"], (
            "one is enough"
        )
    assert (clone / "work/06_ddp/06_ddp.new.ipynb").read_text() == "first labs/06_ddp/06_ddp.ipynb"
    assert (clone / "work" / LAB).read_text() == "my answer" and not list(
        (clone / "work").rglob("*.new2*")
    )
    assert copy_course(clone).newer == []
