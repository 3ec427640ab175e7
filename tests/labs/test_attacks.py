"""Code that tries to gain points without an answer. Each gets what its answers are worth, and no more."""

import pytest
from manyhands.grading import report
from manyhands.grading.engine import grade
from nbformat.v4 import new_code_cell

SEED = 4711
MIME = "application/vnd.manyhands.record+json"
WRONG = {"square": "return 2 * x", "total": "return 0"}
FORGED = '''
def forge(name):
    criterion = dict(name="value", text="", points=1000, status="pass", values=[9.0], atol=1e9, rtol=1e9, detail=dict())
    return dict(schema=1, name=name, criteria=[criterion])
'''

ATTACKS = {
    "later cells emptied, full marks printed": '''
get_ipython().input_transformers_cleanup.append(lambda lines: ["print('PASS 2/2  square gives the right value')\\n"])
''',
    "check cells replaced by forged records": FORGED + f'''
def swap(lines):
    source = "".join(lines)
    for name in ("square", "total"):
        if f'Report("{{name}}")' in source:
            return [f"from IPython.display import publish_display_data as p; p({{{{ {MIME!r}: forge({{name!r}}) }}}})\\n"]
    return lines
get_ipython().input_transformers_cleanup.append(swap)
''',
    "a forged record beside the real one": FORGED + f'''
from IPython.display import publish_display_data
get_ipython().events.register("pre_run_cell", lambda info: publish_display_data({{ {MIME!r}: forge("square") }}))
''',
    "every verdict turned to pass": '''
from manyhands.checks import Report
import manyhands.checks
honest = Report.criterion
def lenient(self, name, *, passed, values=(), **rest):
    return honest(self, name, passed=True, values=values or [1.0], **rest)
Report.criterion = lenient
''',
    "tolerance widened and points raised": '''
from manyhands.checks import Report
honest = Report.criterion
def lenient(self, name, *, passed, points, atol, **rest):
    return honest(self, name, passed=True, points=1000, atol=1e9, values=[1.0], text=rest["text"])
Report.criterion = lenient
''',
    "the seed set back to the public one": '''
import os
import manyhands.checks
os.environ["MANYHANDS_SEED"] = "0"
manyhands.checks.seed = lambda: 0
def square(x): return 9.0
''',
    "abs made harmless": '''
import builtins
builtins.abs = lambda x: 0.0
''',
    "a record updated afterwards": FORGED + f'''
import IPython
shell = IPython.get_ipython()
honest = shell.display_pub.publish
def publish(data, metadata=None, **rest):
    honest(data, metadata, transient=dict(display_id="r"))
    honest({{ {MIME!r}: forge(data.get({MIME!r}, dict()).get("name")) }}, metadata, transient=dict(display_id="r"), update=True)
shell.display_pub.publish = publish
''',
    "messages that are broken": '''
import IPython
shell = IPython.get_ipython()
honest = shell.display_pub.publish
def publish(data, metadata=None, **rest):
    for broken in (None, 3, [1], {"name": "square", "criteria": 5}, {"name": "square", "criteria": [None]}, "x" * 6_000_000):
        honest({"application/vnd.manyhands.record+json": broken})
shell.display_pub.publish = publish
''',
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_attack_gains_nothing(lab, attack):
    notebook = lab.handed_in(**WRONG)
    notebook.cells.insert(1, new_code_cell(ATTACKS[attack]))
    got = grade(lab.submit(notebook), lab.solution, seed=SEED)
    assert (got.points, got.max) == (0, 4), report.as_text(got)
    assert [criterion.points for criterion in got.criteria] == [2, 2]
    assert [criterion.text for criterion in got.criteria] == ["square gives the right value", "total gives the right value"]


@pytest.mark.filterwarnings("ignore:Non-unique cell id")
def test_deleted_doubled_edited_and_swapped_check_cells_do_not_matter(lab):
    notebook = lab.handed_in(square="return 2 * x")
    square, total = notebook.cells[3], notebook.cells[5]
    assert square.metadata.nbgrader.grade_id == "square-check"
    for cell in (square, total):
        cell.source = "print('PASS')"
    variants = {
        "edited": notebook.cells,
        "deleted": [cell for cell in notebook.cells if cell is not square],
        "all deleted": [cell for cell in notebook.cells if cell not in (square, total)],
        "doubled": [*notebook.cells, square, total, square],
        "first": [square, total, *[cell for cell in notebook.cells if cell not in (square, total)], square, total],
    }
    for name, cells in variants.items():
        notebook.cells = cells
        got = grade(lab.submit(notebook), lab.solution, seed=SEED)
        assert got.points == 2 if name != "first" else got.points in (0, 2), name
        assert got.max == 4 and [criterion.check for criterion in got.criteria] == ["square-check", "total-check"], name


def test_check_cells_disguised_as_answers_are_not_run(lab):
    notebook = lab.handed_in(**WRONG)
    notebook.cells[3].metadata = notebook.cells[2].metadata  # the learner's "check" carries an answer's mark
    got = grade(lab.submit(notebook), lab.solution, seed=SEED)
    assert (got.points, got.max) == (0, 4)


def test_what_a_kernel_says_cannot_steer_the_terminal(lab):
    notebook = lab.handed_in(square="raise ValueError('\\x1b[2J\\x07 wiped')", total="import sys; sys.exit('\\x1b]0;x')")
    text = report.as_text(grade(lab.submit(notebook), lab.solution, seed=SEED))
    assert "wiped" in text and "\x1b" not in text and "\x07" not in text


def test_floods_are_cut(lab):
    notebook = lab.handed_in(square="print('x' * 40_000_000); return x * x")
    assert grade(lab.submit(notebook), lab.solution, seed=SEED).points == 2
