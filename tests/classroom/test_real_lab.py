"""A lab of the course, with a cluster of four ranks, as a class hands it in."""

import shutil
from pathlib import Path

import nbformat

from manyhands.grading import notebooks
from manyhands.grading.classroom import grading, steps
from manyhands.grading.nbgrader.class_settings import Classroom
from manyhands.grading.store import submissions

ROOT = Path(__file__).resolve().parents[2]
UNIT = "01_data_parallel"


def test_a_lab_with_a_cluster_is_released_and_graded(tmp_path, monkeypatch):
    monkeypatch.delenv("MANYHANDS_CLASSROOM", raising=False)
    monkeypatch.delenv("MANYHANDS_EXCHANGE", raising=False)
    for folder in ("solutions", "labs"):
        shutil.copytree(ROOT / folder / UNIT, tmp_path / folder / UNIT)
    room = Classroom(tmp_path)
    assert steps.release(room, UNIT)
    solution = submissions.Solution(room.solution(UNIT))
    assert solution.clustered
    partly = nbformat.read(room.solution(UNIT), 4)
    for cell in partly.cells:
        if notebooks.grade_id(cell) == "step":
            cell.source = "raise NotImplementedError()"
    for student, notebook in (("alice", nbformat.read(room.solution(UNIT), 4)), ("bob", partly)):
        folder = room.step_folder("submitted", student, UNIT)
        folder.mkdir(parents=True)
        nbformat.write(notebook, folder / f"{UNIT}.ipynb")
    outcome = grading.grade(room, UNIT)
    assert (sorted(outcome.graded), outcome.failed) == (["alice", "bob"], {})
    points = {
        name: notebooks.points_of(cell)
        for name, cell in notebooks.checks_of(solution.notebook).items()
    }
    with_step = {
        student: grading.journal_of(room, UNIT).current(student)["grade"]["points"]
        for student in ("alice", "bob")
    }
    assert with_step == {
        "alice": sum(points.values()),
        "bob": sum(points.values()) - points["step-check"],
    }
