"""Code that tries to gain points without an answer.

Each gets what its answers are worth, and no more; each would have gained something from a grader
that believes what the kernel says of itself.
"""

import json
import subprocess
import sys

import pytest
import target
from jupyter_client.kernelspec import KernelSpecManager
from nbformat.v4 import new_code_cell, new_output
from target import WRONG

from manyhands.grading.compare import compare

MIME = "application/vnd.manyhands.record+json"
TOOLS = f"""
import json, os, sys, threading, time, types
from IPython.display import publish_display_data
shell = get_ipython()
kernel, MIME = shell.kernel, {MIME!r}

def forge(name):
    criterion = dict(name="value", text="", points=1000, status="pass", values=[9.0], atol=1e9, rtol=1e9, detail=dict())
    return dict(schema=1, name=name, criteria=[criterion])

def of(source):
    return next((name for name in ("square", "total") if f'Report("{{name}}")' in source), None)

def in_place_of_checks(source):
    shell.input_transformers_cleanup.append(lambda lines: [source % of("".join(lines))] if of("".join(lines)) else lines)

def publish_as(publish):
    honest = shell.display_pub.publish
    shell.display_pub.publish = lambda data, *rest, **more: publish(honest, data) if MIME in data else honest(data, *rest, **more)

def tell(kind, content, parent):
    kernel.session.send(kernel.iopub_socket, kind, content, parent=parent)
"""
ATTACKS = {
    "input transformer: full marks printed in place of the checks": """
in_place_of_checks("print('PASS 2/2  %s gives the right value')\\n")
""",
    "input transformer: forged records in place of the checks": """
in_place_of_checks("publish_display_data({MIME: forge(%r)})\\n")
""",
    "input transformer: a forged record as the value of the cell": """
in_place_of_checks("type('R', (), dict(_repr_mimebundle_=lambda *a, **k: {MIME: forge(%r)}))()\\n")
""",
    "input transformer: a forged record printed as text": """
in_place_of_checks("print(json.dumps({MIME: forge(%r)}), 'PASS 2/2  right', sep='\\\\n')\\n")
""",
    "transformer of syntax trees: every verdict and its evidence replaced": """
import ast
class Lenient(ast.NodeTransformer):
    def visit_keyword(self, node):
        new = {"passed": ast.Constant(True), "values": ast.parse("[9.0]").body[0].value}.get(node.arg)
        return ast.keyword(node.arg, new) if new else node
shell.ast_transformers.append(Lenient())
""",
    "a forged record beside the real one": """
shell.events.register("pre_run_cell", lambda info: publish_display_data({MIME: forge(of(info.raw_cell))}))
""",
    "the real record changed on its way": """
publish_as(lambda honest, data: honest({MIME: forge(data[MIME]["name"])}))
""",
    "the real record updated afterwards": """
def publish(honest, data):
    honest(data, transient=dict(display_id="r"))
    honest({MIME: forge(data[MIME]["name"])}, transient=dict(display_id="r"), update=True)
publish_as(publish)
""",
    "the real record wiped by clear_output, then a forged one": """
def publish(honest, data):
    honest(data)
    shell.display_pub.clear_output()
    honest({MIME: forge(data[MIME]["name"])})
publish_as(publish)
""",
    "the cell said to be done before its check has run": """
def early(info):
    if of(info.raw_cell):
        publish_display_data({MIME: forge(of(info.raw_cell))})
        tell("status", dict(execution_state="idle"), kernel.get_parent("shell"))
        time.sleep(0.3)
shell.events.register("pre_run_cell", early)
""",
    "records sent under the numbers of requests to come, all the time": """
first = kernel.get_parent("shell")
stem, _, begun = first["header"]["msg_id"].rpartition("_")
def flood():
    while True:
        for name, request in (("square", int(begun) + 3), ("total", int(begun) + 5)):
            parent = {**first, "header": {**first["header"], "msg_id": f"{stem}_{request}"}}
            tell("display_data", dict(data={MIME: forge(name)}, metadata={}), parent)
        time.sleep(0.01)
threading.Thread(target=flood, daemon=True).start()
time.sleep(0.05)
""",
    "every verdict turned to pass": """
from manyhands.checks import Report
honest = Report.criterion
def lenient(self, name, *, passed=None, values=(), **rest):
    return honest(self, name, passed=True, values=values or [1.0], **rest)
Report.criterion = lenient
""",
    "tolerance widened and points raised": """
from manyhands.checks import Report
honest = Report.criterion
def lenient(self, name, *, text, **rest):
    return honest(self, name, passed=True, points=1000, atol=1e9, values=[1.0], text=text)
Report.criterion = lenient
""",
    "the code of a check's function swapped": """
from manyhands.checks import Report
def show(self):
    from IPython import get_ipython
    get_ipython().user_ns["publish_display_data"]({get_ipython().user_ns["MIME"]: get_ipython().user_ns["forge"](self.name)})
Report.show.__code__ = show.__code__
""",
    "the module of the checks replaced": """
import manyhands.checks
fake = types.ModuleType("manyhands.checks")
class Report:
    def __init__(self, name): self.name = name
    def criterion(self, *rest, **more): pass
    def show(self): publish_display_data({MIME: forge(self.name)})
fake.Report, fake.seed = Report, lambda: 0
sys.modules["manyhands.checks"] = fake
""",
    "abs and the comparison of numbers made harmless": """
import builtins
builtins.abs = lambda x: 0.0
""",
    "the seed set back to the public one": """
import manyhands.checks
os.environ["MANYHANDS_SEED"] = "0"
manyhands.checks.seed = lambda: 0
""",
}
SLOW = "import time; time.sleep(0.2); "  # the flood needs a moment to come by
ANSWERS = {
    "records sent under the numbers of requests to come, all the time": {
        name: SLOW + body for name, body in WRONG.items()
    },
    "the seed set back to the public one": {"square": "return 9.0", "total": "return 6.0"},
}


@pytest.mark.parametrize("name", ATTACKS)
def test_forged_results_gain_nothing(lab, attack, name):
    notebook = lab.handed_in(**ANSWERS.get(name, WRONG))
    notebook.cells.insert(1, new_code_cell(TOOLS + ATTACKS[name]))
    got = attack(notebook)
    assert got.believed >= 4, "the attack does nothing"
    assert got.points == (0, 4), got.notes
    assert [(criterion.points, criterion.text) for criterion in got.grade.criteria] == [
        (2, "square gives the right value"),
        (2, "total gives the right value"),
    ]


def test_a_number_that_is_equal_to_all_numbers(lab, attack):
    notebook = lab.handed_in(square="return Agreeable(1)", total="return Agreeable(1)")
    notebook.cells.insert(
        1,
        new_code_cell("class Agreeable(float):\n    def __sub__(self, other):\n        return 0.0"),
    )
    got = attack(notebook)
    assert (got.believed, *got.points) == (4, 0, 4)


def test_answers_written_down_under_the_public_seed(lab, attack):
    notebook = lab.handed_in(square="return 9.0", total="return 6.0")
    assert attack(notebook, seed=0).points == (4, 4)
    assert attack(notebook).points == (0, 4)


def test_answers_written_down_for_many_seeds(lab, attack):
    table = (
        "{seed: (float(seed % 1000) + 3) ** 2 for seed in "
        "range(1000)}[int(__import__('os').environ['MANYHANDS_SEED'])]"
    )
    notebook = lab.handed_in(square=f"return {table}", total="return 0")
    assert attack(notebook, seed=77).points == (2, 4)
    assert attack(notebook).points == (0, 4)


def test_outputs_stored_in_the_notebook(lab, attack):
    notebook = lab.handed_in(**WRONG)
    for cell in notebook.cells:
        if "check" in cell.metadata.get("tags", []):
            cell.outputs, cell.execution_count = (
                [new_output("stream", name="stdout", text="PASS 2/2  right\n")],
                1,
            )
    assert [
        max(target._claims(cell.outputs))
        for cell in notebook.cells
        if cell.cell_type == "code" and cell.outputs
    ] == [2, 2]
    got = attack(notebook)
    assert (got.believed, *got.points) == (0, 0, 4)


@pytest.mark.parametrize(
    "how",
    [
        "edited",
        "deleted",
        "all deleted",
        "doubled",
        "first",
        "raw",
        "markdown",
        "disguised as an answer",
    ],
)
@pytest.mark.filterwarnings("ignore:Non-unique cell id")
def test_check_cells_that_were_changed_are_the_labs_own_again(lab, attack, how):
    notebook = lab.handed_in(square="return 2 * x")
    square, total = notebook.cells[3], notebook.cells[5]
    assert square.metadata.nbgrader.grade_id == "square-check"
    others = [cell for cell in notebook.cells if cell not in (square, total)]
    for cell in (square, total):
        cell.source = "print('PASS 2/2  right')"
    if how in ("raw", "markdown"):
        square.cell_type = total.cell_type = how
        for cell in (square, total):
            del cell["outputs"], cell["execution_count"]
    if how.startswith("disguised"):
        square.metadata = notebook.cells[2].metadata
    notebook.cells = {
        "deleted": [cell for cell in notebook.cells if cell is not square],
        "all deleted": others,
        "doubled": [*notebook.cells, square, total, square],
        "first": [square, total, *others, square, total],
    }.get(how, notebook.cells)
    got = attack(notebook)
    assert got.grade.points <= 2 and got.grade.max == 4
    assert got.grade.points == 2 or how == "first"
    assert [criterion.check for criterion in got.grade.criteria] == ["square-check", "total-check"]


NUMBERS = [float("nan"), float("inf"), True, None, "16", [16.0], {"a": 1}, 10**400, "nan"]


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_evidence_that_is_no_number(number):
    """Straight into the comparison: a record may hold whatever JSON can say."""

    def shown(values, status="pass"):
        criterion = {
            "name": "value",
            "text": "t",
            "points": 2,
            "status": status,
            "values": values,
            "atol": 1e-6,
            "rtol": 0.0,
            "detail": {},
        }
        return [
            new_output(
                "display_data",
                data={MIME: {"schema": 1, "name": "square", "criteria": [criterion]}},
            )
        ]

    (right,) = compare("square-check", 2, shown([16.0]), shown([16.0]))
    assert right.earned == 2
    for values in ([number], [16.0, number], {"0": 16.0}, 16.0, [], None):
        (got,) = compare("square-check", 2, shown(values), shown([16.0]))
        assert got.earned == 0 and got.detail["problem"]


FILES = [
    "sitecustomize.py",
    "usercustomize.py",
    "json.py",
    "torch.py",
    "zmq.py",
    "runpy.py",
    "ipykernel_launcher.py",
    "conftest.py",
    "manyhands.py",
    "ipykernel/__init__.py",
    "IPython/__init__.py",
    "ipython_config.py",
    "jupyter_config.py",
    "nbgrader_config.py",
    "startup/00.py",
    "python",
    "python3",
    "sh",
    "cp",
    "bwrap",
    "env",
]
PROGRAM = """#!{python}
import pathlib
for place in ("ran.txt", {canary!r}):
    try:
        pathlib.Path(place).write_text("ran")
    except OSError:
        pass
try:
    get_ipython().input_transformers_cleanup.append(lambda lines: ["print('PASS 2/2  right')\\n"])
except NameError:
    pass
"""


def test_files_beside_the_notebook_that_bear_the_names_of_modules_and_programs(
    lab, attack, outside, tmp_path, monkeypatch
):
    place = lab.submit(lab.handed_in(**WRONG)).parent
    for name in FILES:
        path = place / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(PROGRAM.format(python=sys.executable, canary=str(outside.gradebook)))
        path.chmod(0o755)
    monkeypatch.chdir(place)
    got = attack(lab.handed_in(square="import torch; return 9.0"))
    assert got.believed == 2 and got.points == (
        0,
        4,
    ), "torch.py has run in the sandbox, and was of no use"
    assert outside.harm() == [] and not (place / "ran.txt").exists()
    subprocess.run([sys.executable, "-c", "import torch"], cwd=place, check=True)  # it is real
    assert (place / "ran.txt").read_text() == outside.gradebook.read_text() == "ran"
    outside.gradebook.write_text(target.SECRET)
    outside.before = outside._files()


def test_a_notebook_that_asks_for_a_kernel_of_its_own(lab, attack, outside, monkeypatch):
    command = ["/bin/sh", "-c", f"echo ran > {outside.gradebook}"]
    notebook = lab.handed_in()
    notebook.metadata.kernelspec = {
        "name": "mine",
        "display_name": "mine",
        "language": "python",
        "argv": command,
    }
    path = lab.submit(notebook)
    spec = path.parent / "share" / "jupyter" / "kernels" / "mine" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text(json.dumps(notebook.metadata.kernelspec))
    monkeypatch.setenv("JUPYTER_PATH", str(path.parent / "share" / "jupyter"))
    # Jupyter itself would start it
    assert KernelSpecManager().get_kernel_spec("mine").argv == command
    assert attack(path).points == (4, 4)


def test_evidence_is_judged_with_the_solutions_tolerance_and_points(lab, attack):
    notebook = lab.handed_in(square="return x * x * 1.001", total="return 0")
    notebook.cells.insert(
        1,
        new_code_cell(
            TOOLS
            + ATTACKS["tolerance widened and points raised"].replace(
                "values=[1.0]", "values=rest['values']"
            )
        ),
    )
    got = attack(notebook)
    assert got.believed >= 1000 and got.points == (0, 4)
