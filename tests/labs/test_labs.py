"""Every lab, as released and as solved, through the grader that learners use."""

import nbformat
import pytest

import mutants
from manyhands.checks.record import BLOCKED, FAIL
from manyhands.grading import grade_report, notebooks
from manyhands.grading.engine import grade

UNITS = mutants.units()


@pytest.fixture
def graded(works_in_sandbox):
    def graded(unit, path):
        with mutants.patience():
            return grade(path, mutants.solution_path(unit), seed=mutants.SEED, sandboxed=True)

    return graded


@pytest.mark.sandbox
@pytest.mark.parametrize("unit", UNITS)
def test_solution_gets_full_marks(unit, graded):
    got = graded(unit, mutants.solution_path(unit))
    assert got.full, grade_report.as_text(got)
    points = {
        name: notebooks.points_of(cell)
        for name, cell in notebooks.checks_of(notebooks.read(mutants.solution_path(unit))).items()
    }
    sums = {
        name: sum(criterion.points for criterion in got.criteria if criterion.check == name)
        for name in points
    }
    assert sums == points, (
        "the points in the check cells' headers are not the sums of their criteria"
    )


@pytest.mark.sandbox
@pytest.mark.parametrize("unit", UNITS)
def test_unsolved_lab_scores_nothing_and_is_told_why(unit, graded):
    got = graded(unit, mutants.ROOT / "labs" / unit / f"{unit}.ipynb")
    assert got.points == 0 and got.max > 0
    for criterion in got.criteria:
        assert criterion.status == BLOCKED or (
            criterion.status == FAIL and criterion.detail.get("mistake")
        ), criterion
    checks = {criterion.check.removesuffix("-check") for criterion in got.criteria}
    assert {name.split("-", 1)[1] for name in got.hints} == checks, "each check has a hint"
    assert not [note for note in got.notes if "-check:" in note], got.notes


@pytest.mark.parametrize("unit", UNITS)
def test_lab_shows_no_solution_and_keeps_its_targets(unit):
    lab = nbformat.read(mutants.ROOT / "labs" / unit / f"{unit}.ipynb", as_version=4)
    solution = notebooks.read(mutants.solution_path(unit))
    assert list(notebooks.checks_of(lab)) == list(notebooks.checks_of(solution))
    assert "BEGIN SOLUTION" not in nbformat.writes(lab) and "HIDDEN TESTS" not in nbformat.writes(
        lab
    )
    for cell in notebooks.checks_of(lab).values():
        shown = "".join(output.get("text", "") for output in cell.outputs)
        assert "PASS" in shown or "BLOCKED" in shown
        assert "FAIL" not in shown
