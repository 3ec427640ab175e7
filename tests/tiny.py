"""A lab of two questions that runs in a second: square a number, sum some numbers."""

import copy

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

CHECK = """from manyhands.checks import Report, seed
report = Report("{name}")
number = float(seed() % 1000) + 3
try:
    got = {call}
    report.criterion("value", points=2, text="{name} gives the right value", passed=abs(got - ({right})) < 1e-6, values=[got],
                     atol=1e-6, expected={right}, got=got, mistake="Read the question again.")
except Exception as error:
    report.criterion("value", points=2, text="{name} gives the right value", passed=False, mistake=repr(error))
report.show()"""
TOTAL_CHECK = (
    CHECK.format(name="total", call="total([number, 1.0, 2.0])", right="number + 3.0")
    + "\nprint('done')"
)
SQUARE_CHECK = CHECK.format(name="square", call="square(number)", right="number ** 2")


def answer(name, body, signature):
    source = f"def {name}({signature}):\n    {body}"
    mark = {
        "grade_id": name,
        "grade": False,
        "solution": True,
        "locked": False,
        "task": False,
        "schema_version": 3,
    }
    return new_code_cell(source, metadata={"nbgrader": mark, "tags": ["solution"]})


def check(name, source, points=2):
    mark = {
        "grade_id": f"{name}-check",
        "grade": True,
        "solution": False,
        "locked": True,
        "task": False,
        "points": points,
        "schema_version": 3,
    }
    return new_code_cell(source, metadata={"nbgrader": mark, "tags": ["check"]})


class Lab:
    """The solution is on disk; `submit` writes what a learner hands in and tells where."""

    def __init__(self, folder):
        self.folder = folder
        self.notebook = new_notebook(
            cells=[
                new_markdown_cell("# Two questions"),
                new_code_cell("import math"),
                answer("square", "return x * x", "x"),
                check("square", SQUARE_CHECK),
                answer("total", "return math.fsum(xs)", "xs"),
                check("total", TOTAL_CHECK),
                new_code_cell("print('the end')"),
            ]
        )
        self.solution = self.write("solutions/90_tiny/90_tiny.ipynb", self.notebook)

    def write(self, place, notebook):
        path = self.folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, path)
        return path

    def handed_in(self, **answers):
        """A copy of the notebook, the named answers replaced (`square="return x"`)."""
        notebook = copy.deepcopy(self.notebook)
        for cell in notebook.cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id")
            if name in answers:
                cell.source = cell.source.split("\n")[0] + "\n    " + answers[name]
        return notebook

    def submit(self, notebook):
        return self.write("work/90_tiny/90_tiny.ipynb", notebook)
