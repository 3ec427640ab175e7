"""The grader on a tiny lab: what counts, what is shown, what is left untouched."""

import json
import stat

import nbformat
import psutil
import pytest

import tiny
from manyhands.grading import engine, grade_report
from manyhands.grading.engine import SolutionFailsError, grade
from manyhands.grading.store import hidden_seed, references
from manyhands.isolation.kernel_limits import Limits

SEED = 4711


def graded(lab, notebook, **options):
    return grade(lab.submit(notebook), lab.solution, **{"seed": SEED, **options})


def test_solution_has_full_marks_and_nothing_is_written(lab):
    path = lab.submit(lab.handed_in())
    before = path.read_bytes()
    others = set(psutil.Process().children(recursive=True))
    got = grade(path, lab.solution, seed=SEED)
    assert (got.points, got.max, got.full, got.verdict) == (4, 4, True, "")
    assert path.read_bytes() == before
    assert not set(psutil.Process().children(recursive=True)) - others
    assert grade_report.as_text(got).startswith("90_tiny: 4 of 4 points")


def test_wrong_answer_loses_its_points_and_is_told_why(lab):
    got = graded(lab, lab.handed_in(square="return 2 * x"))
    assert (got.points, got.max, got.full) == (2, 4, False)
    text = grade_report.as_text(got)
    assert "FAIL" in text and "expected:" in text and "Read the question again." in text
    assert "0/2" in text and "2/2" in text
    assert "Read the question again." in grade_report.as_html(got)


def test_unwritten_lab_scores_nothing(lab):
    got = graded(
        lab,
        lab.handed_in(square="raise NotImplementedError()", total="raise NotImplementedError()"),
    )
    assert (got.points, got.max) == (0, 4)
    assert all("NotImplementedError" in criterion.detail["mistake"] for criterion in got.criteria)


def test_numbers_hard_coded_for_the_public_seed_do_not_count(lab):
    notebook = lab.handed_in(square="return 9.0", total="return 6.0")
    assert graded(lab, notebook, seed=0).points == 4
    assert graded(lab, notebook).points == 0


def test_reference_is_run_once_per_seed(lab, monkeypatch):
    graded(lab, lab.handed_in())
    seen = []
    graded(lab, lab.handed_in(), progress=lambda what, done, of: seen.append(what))
    assert set(seen) == {"your notebook"}
    lab.notebook.cells[2].source += "  # changed"
    lab.write("solutions/90_tiny/90_tiny.ipynb", lab.notebook)
    graded(lab, lab.handed_in(), progress=lambda what, done, of: seen.append(what))
    assert "running the solution for reference" in seen


def test_hidden_seeds_are_few_and_those_with_a_reference_come_first(lab, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    drawn = {hidden_seed.draw(lab.solution, lab.notebook) for _ in range(60)}
    assert len(drawn) == hidden_seed.SEEDS and 0 not in drawn
    stored_seed = drawn.pop()
    references.save(references.key(lab.solution, lab.notebook, stored_seed), {})
    again = [hidden_seed.draw(lab.solution, lab.notebook) for _ in range(60)]
    assert again.count(stored_seed) > 30 and set(again) > {stored_seed}
    assert stat.S_IMODE(references.cache_folder().stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in references.cache_folder().iterdir()} == {
        0o600
    }


def test_blocked_criteria_leave_the_denominator(lab):
    for cell in lab.notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "total-check":
            cell.source = cell.source.replace(
                "\nreport.show()",
                "\nreport.blocked('nccl', points=3, text='NCCL works', why='no "
                "GPU')\nreport.show()",
            )
    lab.write("solutions/90_tiny/90_tiny.ipynb", lab.notebook)
    got = graded(lab, lab.handed_in())
    assert (got.points, got.max, got.full) == (4, 4, True)
    assert "BLOCKED   -/3  NCCL works" in grade_report.as_text(
        got
    ) and "no GPU" in grade_report.as_text(got)


def test_check_cells_without_a_record_are_compared_as_text(lab):
    lab.notebook.cells.append(tiny.check("shown", "print('square of two:', square(2.0))", points=1))
    lab.write("solutions/90_tiny/90_tiny.ipynb", lab.notebook)
    assert graded(lab, lab.handed_in()).points == 5
    got = graded(lab, lab.handed_in(square="return x + x + 1"))
    assert got.points == 2 and got.criteria[-1].detail["got"] == "square of two: 5.0"


def test_solution_that_fails_is_not_a_reference(lab):
    lab.notebook.cells[2].source = "def square(x):\n    return x"
    lab.write("solutions/90_tiny/90_tiny.ipynb", lab.notebook)
    with pytest.raises(SolutionFailsError, match="square-check: value"):
        graded(lab, lab.handed_in())


def test_scripts_beside_the_notebook_come_along_and_notebooks_do_not(lab):
    notebook = lab.handed_in(
        square=(
            "import os, helper\n    assert sorted(os.listdir()) in (['helper.py'], ['__pycache__', "
            "'helper.py'])\n    return helper.square(x)"
        )
    )
    path = lab.submit(notebook)
    path.with_name("helper.py").write_text("def square(x):\n    return x * x\n")
    path.with_name(".secret").write_text("x")
    assert grade(path, lab.solution, seed=SEED).points == 4


@pytest.mark.parametrize(
    "content, words",
    [
        ("", "not a notebook"),
        ("{}", "not a notebook"),
        ('{"cells": 3}', "not a notebook"),
        ("[" * 20_000, "not a notebook"),
        (None, "no file"),
        (b"\xff\xfe\x00", "not a notebook"),
    ],
)
def test_what_is_no_notebook_gets_a_verdict(lab, content, words):
    path = lab.folder / "work" / "broken.ipynb"
    path.parent.mkdir()
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    got = grade(path, lab.solution, seed=SEED)
    assert words in got.verdict and (got.points, got.max) == (0, 4)
    assert got.verdict in grade_report.as_text(got) and not got.full


def test_notebook_without_the_labs_marks_gets_a_verdict(lab):
    notebook = lab.handed_in()
    for cell in notebook.cells:
        cell.metadata = nbformat.NotebookNode()
    assert "not a copy of the lab" in graded(lab, notebook).verdict


def test_renamed_answer_is_named(lab):
    notebook = lab.handed_in()
    notebook.cells[2].metadata["nbgrader"]["grade_id"] = "my-square"
    got = graded(lab, notebook)
    assert got.points == 4  # the function is there all the same
    assert "`square` is not in this notebook" in grade_report.as_text(got)


def test_endless_loop_costs_its_own_points_only(lab):
    got = graded(lab, lab.handed_in(square="while True: pass"), limits=Limits(cell_s=5))
    assert got.points == 2
    assert "square-check: it took more than 5 s" in grade_report.as_text(got)


def test_cells_after_the_last_check_are_not_run(lab):
    notebook = lab.handed_in()
    notebook.cells[-1].source = "while True: pass"
    got = graded(lab, notebook)
    assert (got.points, got.notes) == (4, [])


def test_total_time_is_limited(lab):
    graded(lab, lab.handed_in())
    got = graded(lab, lab.handed_in(square="import time; time.sleep(60)"), limits=Limits(total_s=4))
    assert got.points == 0 and "more than 4 s in total" in grade_report.as_text(got)


NO_CLUSTER = """
from pathlib import Path
from manyhands.cluster import ClusterNotStarted
tried = Path({tried!r})
if not tried.exists():
    {mark}
    raise ClusterNotStarted("Ranks [0] did not start; the machine may be busy")
"""


def test_a_cluster_that_starts_the_second_time_costs_no_points(lab, tmp_path):
    cell = nbformat.v4.new_code_cell(
        NO_CLUSTER.format(tried=str(tmp_path / "tried"), mark="tried.touch()")
    )
    notebook = lab.handed_in()
    notebook.cells.insert(1, cell)
    got = graded(lab, notebook, sandboxed=False)
    assert (got.points, got.verdict, got.notes) == (4, "", []) and (tmp_path / "tried").exists()


def test_a_cluster_that_does_not_start_is_no_grade_of_0(lab, tmp_path):
    notebook = lab.handed_in()
    notebook.cells.insert(
        1, nbformat.v4.new_code_cell(NO_CLUSTER.format(tried=str(tmp_path / "tried"), mark="pass"))
    )
    got = graded(lab, notebook, sandboxed=False)
    assert (
        got.verdict.startswith("The cluster did not start in two attempts.")
        and "Ranks [0] did not start" in got.verdict
    )
    assert not got.full and "The cluster did not start" in grade_report.as_text(got)


@pytest.mark.parametrize("tags, graded_at_all", [(["setup"], False), ([], True)])
def test_a_set_up_that_takes_too_long_is_no_grade_of_0(lab, tags, graded_at_all):
    notebook = lab.handed_in()
    notebook.cells.insert(
        1,
        nbformat.v4.new_code_cell(
            "import time; time.sleep(60)  # before Cluster()", metadata={"tags": tags}
        ),
    )
    got = graded(lab, notebook, sandboxed=False, limits=Limits(cell_s=2))
    assert ("took more than 2 s and was interrupted" in grade_report.as_text(got)) and bool(
        got.verdict
    ) != graded_at_all
    assert got.verdict.startswith("The cluster did not start in two attempts.") != graded_at_all


SILENT = """
from manyhands import Cluster
from manyhands.cluster.engines import local, reach
reach.START_S = 2.0
local.LocalEngines._listen = lambda *args: None  # nothing is heard of the ranks
Cluster(nodes=1, ranks_per_node=1, framework=None)
"""


def test_a_cluster_whose_start_takes_for_ever_is_no_grade_of_0(lab):
    notebook = lab.handed_in()
    notebook.cells.insert(1, nbformat.v4.new_code_cell(SILENT))
    got = graded(lab, notebook, sandboxed=False, limits=Limits(cell_s=25))
    assert (
        got.verdict.startswith("The cluster did not start in two attempts.")
        and "within 2 s" in got.verdict
    )


@pytest.mark.parametrize("sandboxed", [True, False])
def test_kernel_that_dies_is_told(lab, sandboxed, request):
    if sandboxed:
        request.getfixturevalue("works_in_sandbox")
    got = graded(lab, lab.handed_in(total="import os; os._exit(3)"), sandboxed=sandboxed)
    assert got.points == 2 and "The kernel ended" in grade_report.as_text(got)


@pytest.mark.parametrize("sandboxed", [True, False])
def test_memory_is_limited(lab, sandboxed, request):
    if sandboxed:
        request.getfixturevalue("works_in_sandbox")
    graded(lab, lab.handed_in())
    got = graded(
        lab,
        lab.handed_in(total="return len(bytearray(2**29) + bytearray(2**29))"),
        sandboxed=sandboxed,
        limits=Limits(memory_bytes=400 * 2**20),
    )
    assert got.points == 2 and "GB of memory" in grade_report.as_text(got)


def test_memory_is_watched_where_no_cgroup_can_be_made(lab, monkeypatch):
    graded(lab, lab.handed_in())
    # as where there is none
    monkeypatch.setattr(
        "manyhands.isolation.process_limits.own_group", lambda controller: {}[controller]
    )
    grow = "import time\n    kept = [b'x' * 2**20 for _ in range(600)]\n    time.sleep(20)"
    got = graded(lab, lab.handed_in(total=grow), limits=Limits(memory_bytes=400 * 2**20))
    assert got.points == 2 and "GB of memory" in grade_report.as_text(got)


def test_too_many_processes_are_ended(lab):
    fork = (
        "import subprocess, time\n    many = [subprocess.Popen(['sleep', '60']) for _ in "
        "range(40)]\n    time.sleep(20)"
    )
    got = graded(lab, lab.handed_in(total=fork), limits=Limits(processes=30))
    assert got.points == 2 and "more than 30 processes" in grade_report.as_text(got)


def test_grade_is_plain_data(lab):
    data = grade_report.as_data(graded(lab, lab.handed_in(square="return 'five'")))
    assert json.loads(json.dumps(data))["points"] == 2
    assert engine.Grade("90_tiny").full is False
