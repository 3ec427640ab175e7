"""Cells that were turned into text, deleted, copied, split, merged, moved or changed.

Each grades right, or a note says which cell it is and what to do; no alteration gives points
without work, and the file that was handed in stays as it is.
"""

import contextlib
import copy
import io

import jupytext
import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from nbformat.v4 import new_code_cell

from manyhands.checks import unrun_answers
from manyhands.grading import altered_cells, check_command, engine, grade_report, notebooks
from manyhands.grading.nbgrader import feedback
from manyhands.grading.store.submissions import Solution

SQUARE, SQUARE_CHECK, TOTAL = 2, 3, 4  # places of cells in the tiny lab
Y = "press Esc and then Y"


def turned(kind):
    def alter(notebook):
        cell = notebook.cells[SQUARE]
        cell.cell_type = kind
        cell.pop("outputs", None), cell.pop("execution_count", None)

    return alter


def deleted(notebook):
    del notebook.cells[SQUARE]


def emptied(notebook):
    notebook.cells[SQUARE].source = " \n"


def split_with_both_marks(notebook):
    head, body = notebook.cells[SQUARE].source.split("\n")
    second = copy.deepcopy(notebook.cells[SQUARE])
    notebook.cells[SQUARE].source, second.source = f"{head}\n    pass", body
    notebook.cells.insert(SQUARE + 1, second)


def split_with_one_mark(notebook):
    head, body = notebook.cells[SQUARE].source.split("\n")
    notebook.cells[SQUARE].source = f"{head}\n    pass"
    notebook.cells.insert(SQUARE + 1, new_code_cell(body))


def merged_into_the_check(notebook):
    notebook.cells[SQUARE_CHECK].source = (
        notebook.cells[SQUARE].source + "\n" + notebook.cells[SQUARE_CHECK].source
    )
    del notebook.cells[SQUARE]


def merged_with_the_check(notebook):
    notebook.cells[SQUARE].source += "\n" + notebook.cells[SQUARE_CHECK].source
    del notebook.cells[SQUARE_CHECK]


def copied(notebook):
    notebook.cells.insert(SQUARE, copy.deepcopy(notebook.cells[SQUARE]))
    notebook.cells[SQUARE].source = "def square(x):\n    return 1"


def moved_after_its_check(notebook):
    notebook.cells.insert(SQUARE_CHECK, notebook.cells.pop(SQUARE))


def renamed(notebook):
    notebook.cells[SQUARE].metadata["nbgrader"]["grade_id"] = "my-square"


def marks_of_one_exercise_lost(notebook):
    for cell in notebook.cells[SQUARE : SQUARE_CHECK + 1]:
        cell.metadata = nbformat.NotebookNode()


def marks_lost_and_moved_to_the_end(notebook):
    marks_of_one_exercise_lost(notebook)
    notebook.cells += [notebook.cells.pop(SQUARE), notebook.cells.pop(SQUARE)]


def tags(*names):
    def alter(notebook):
        notebook.cells[SQUARE].metadata["tags"] = ["solution", *names]

    return alter


def raises_with_its_tag(notebook):
    tags("raises-exception")(notebook)
    notebook.cells[SQUARE].source = "def square(x)\n    return x * x"


def begins_with(line):
    def alter(notebook):
        notebook.cells[SQUARE].source = line + "\n" + notebook.cells[SQUARE].source

    return alter


def set_up_as_text(notebook):
    notebook.cells[1].cell_type = "markdown"
    notebook.cells[1].pop("outputs"), notebook.cells[1].pop("execution_count")


CASES = {  # what is done: (points of 4, what a note says)
    "markdown": (turned("markdown"), 2, "The answer cell `square` is a text cell now (markdown)"),
    "raw": (turned("raw"), 2, "The answer cell `square` is a text cell now (raw)"),
    "deleted": (deleted, 2, "`square` is not in this notebook"),
    "emptied": (emptied, 2, "The answer cell `square` is empty"),
    "split, both marked": (
        split_with_both_marks,
        2,
        "contains the answer cell `square` 2 times, because it was copied or split",
    ),
    "split, one marked": (split_with_one_mark, 2, "second half of the answer"),
    "merged into the check": (
        merged_into_the_check,
        2,
        "check cell `square-check` contains your own code",
    ),
    "merged with the check": (merged_with_the_check, 4, None),
    "copied": (copied, 4, "the last one counts"),
    "moved after its check": (moved_after_its_check, 4, None),
    "renamed": (renamed, 4, "Cell 3 defines `square`, and it was run"),
    "marks lost": (marks_of_one_exercise_lost, 4, "Cell 3 defines `square`, and it was run"),
    "marks lost, moved": (marks_lost_and_moved_to_the_end, 4, "defines `square`, and it was run"),
    "tagged skip": (tags("skip-execution", "raises-exception", "hide-input"), 4, None),
    "raises with its tag": (raises_with_its_tag, 2, "cell 3 (square)"),
    "script": (begins_with("%%script false"), 2, "`square` begins with `%%script false`"),
    "on the ranks": (begins_with("%%px"), 2, "`square` begins with `%%px`"),
    "set-up as text": (set_up_as_text, 2, "Cell 2 is code in the lab and text in this notebook"),
}


def run(plan):
    """(points, notes) of a plan that is run in this process."""
    names, shown, notes = {}, io.StringIO(), list(plan.notes)
    for step in plan.steps:
        if step.source.startswith("%%"):
            continue
        try:
            with contextlib.redirect_stdout(shown if step.check else io.StringIO()):
                exec(step.source, names)
        except Exception as error:  # noqa: BLE001 - an altered cell may raise anything
            notes += [] if step.may_raise else [f"{step.where}: {error}"]
    return 2 * shown.getvalue().count("PASS 2/2"), notes


@pytest.mark.parametrize("case", CASES)
def test_an_altered_cell_grades_right_or_has_a_note(case, lab):
    alter, points, says = CASES[case]
    notebook = lab.handed_in()
    alter(notebook)
    before = lab.submit(notebook).read_bytes()
    path = lab.folder / "work/90_tiny/90_tiny.ipynb"
    got, notes = run(notebooks.plan(notebooks.read(path), notebooks.read(lab.solution)))
    assert (got, path.read_bytes()) == (points, before)
    assert any(says in note for note in notes) if says else notes == []
    assert says is None or points == 4 or "square" in " ".join(notes) or "Cell 2" in notes[0]


@pytest.mark.parametrize("case", CASES)
def test_no_alteration_gives_points_without_work(case, lab):
    notebook = lab.handed_in(square="raise NotImplementedError", total="raise NotImplementedError")
    CASES[case][0](notebook)
    if case == "copied":
        notebook.cells[SQUARE].source = notebook.cells[SQUARE + 1].source
    assert (
        run(notebooks.plan(notebooks.read(lab.submit(notebook)), notebooks.read(lab.solution)))[0]
        == 0
    )


@pytest.mark.parametrize("form", ["py:percent", "md"])
def test_a_notebook_that_jupytext_has_converted_and_back_grades_right(form, lab):
    notebook = jupytext.reads(jupytext.writes(lab.handed_in(), fmt=form), fmt=form)
    assert run(
        notebooks.plan(notebooks.read(lab.submit(notebook)), notebooks.read(lab.solution))
    ) == (4, [])


def test_a_notebook_as_it_was_handed_out_has_no_note(lab):
    released, solution = (
        lab.handed_in(square="raise NotImplementedError"),
        notebooks.read(lab.solution),
    )
    assert altered_cells.notes_of(notebooks.read(lab.submit(released)), solution) == []


@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_the_report_of_check_says_which_answer_is_text(kind, lab, monkeypatch, capsys):
    (lab.folder / "pyproject.toml").write_text('name = "manyhands"')
    monkeypatch.setenv("MANYHANDS_ROOT", str(lab.folder))
    notebook = lab.handed_in()
    turned(kind)(notebook)
    lab.submit(notebook)
    assert check_command.main(["90", "--no-sandbox"]) == 1
    shown = capsys.readouterr().out
    assert (
        f"The answer cell `square` is a text cell now ({kind})" in shown
        and Y in shown
        and "2 of 4 points" in shown
    )


def test_the_pages_of_the_grade_and_of_the_feedback_say_it(lab):
    notebook = lab.handed_in()
    turned("markdown")(notebook)
    folder = lab.submit(notebook).parent
    grade = engine.Grade("90_tiny", notes=notebooks.plan(notebook, lab.notebook).notes)
    marks = {
        "score": 2,
        "max": 4,
        "student": "ann",
        "submitted": "",
        "late_s": 0,
        "penalty": 0,
        "checks": {},
        "comments": {},
    }
    data = grade_report.as_data(grade)
    assert "<p>The answer cell `square` is a text cell now" in feedback.page(
        Solution(lab.solution), folder, data, data, marks
    )
    assert "<p>The answer cell `square` is a text cell now" in grade_report.as_html(grade)
    assert Y in grade_report.from_data(grade_report.as_data(grade)).notes[0]


@pytest.mark.parametrize(
    "source, cell_id, says",
    [
        (
            "check.lars(lars_step)",
            "lars-check",
            "its answer cell, `lars` or an earlier one, has not been run",
        ),
        (
            "check.by_hand(lars_step)",
            None,
            "its answer cell, `by-hand` or an earlier one, has not been run",
        ),
        ("lars_step()", "lars", None),
        ("check.lars(cluster)", "lars-check", "a set-up cell at the top"),
    ],
)
def test_the_notebook_says_that_an_answer_was_not_run(source, cell_id, says, capsys):
    shell = InteractiveShell()
    # it has no `lars`, which is asked for only after the arguments are known
    shell.user_ns["check"] = altered_cells
    altered_cells.lars = altered_cells.by_hand = print
    try:
        unrun_answers.register(shell)
        shell.run_cell(source, cell_id=cell_id)
    finally:
        del altered_cells.lars, altered_cells.by_hand
    shown = capsys.readouterr().out
    assert says in shown and Y in shown if says else Y not in shown
