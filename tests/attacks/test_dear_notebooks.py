"""Notebooks that are small to hand in and expensive to read.

nbformat would validate them for hours, and without bounds in memory.
"""

import json
import subprocess
import sys

import nbformat
import pytest

from manyhands.grading import notebooks
from manyhands.grading.notebooks import NotGradedError

EMPTY = {"cell_type": "raw", "source": "", "metadata": {}}
# name -> what is done to the notebook (plain data)
DEAR = {
    "outputs that are none": lambda notebook: notebook["cells"][1].update(
        outputs=[{"output_type": "stream", "name": 3}] * 20_000
    ),
    "tags that cannot be sorted": lambda notebook: notebook["cells"][1]["metadata"].update(
        tags=[{}, "a", 3, None, []] * 50_000
    ),
}


def old(notebook):
    """The same in the third format, with outputs that are none."""
    cells = [
        {
            "cell_type": "code",
            "input": cell["source"],
            "language": "python",
            "collapsed": False,
            "metadata": cell["metadata"],
            "outputs": [{"output_type": "x"}] * 5000,
        }
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]
    return {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {"name": ""},
        "worksheets": [{"cells": cells, "metadata": {}}],
    }


def written(lab, notebook):
    path = lab.folder / "90_tiny.ipynb"
    path.write_text(json.dumps(notebook))
    return path


READ = r"""
import pathlib, re, resource, sys
from manyhands.grading import notebooks
resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
print(*(notebooks.grade_id(cell) for cell in notebooks.read(sys.argv[1]).cells), re.search(r'VmHWM:\s+(\d+)', pathlib.Path('/proc/self/status').read_text())[1])
"""


@pytest.mark.parametrize("name", [*DEAR, "an old format"])
def test_what_is_wrong_in_outputs_and_tags_costs_nothing(lab, name):
    notebook = json.loads(nbformat.writes(lab.handed_in()))
    notebook = old(notebook) if name == "an old format" else (DEAR[name](notebook), notebook)[1]
    done = subprocess.run(
        [sys.executable, "-c", READ, written(lab, notebook)], capture_output=True, text=True
    )
    *names, memory_kb = done.stdout.split()
    assert [name for name in names if name != "None"] == [
        "square",
        "square-check",
        "total",
        "total-check",
    ], done.stderr
    assert int(memory_kb) < 300 * 1024


@pytest.mark.parametrize(
    "many",
    [
        {"cells": [EMPTY] * 2001, "nbformat_minor": 5},
        {"nbformat": 3, "worksheets": [{"cells": [EMPTY] * 700}] * 3},
    ],
    ids=["cells", "sheets of cells"],
)
def test_a_notebook_of_thousands_of_cells_is_not_graded(lab, many):
    with pytest.raises(NotGradedError, match="more than 2000 cells"):
        notebooks.read(written(lab, {"nbformat": 4, "nbformat_minor": 0, "metadata": {}, **many}))


def test_tags_that_are_text_stay(lab):
    notebook = json.loads(nbformat.writes(lab.handed_in()))
    notebook["cells"][1]["metadata"]["tags"] = ["raises-exception", {}, "a"]
    assert notebooks.read(written(lab, notebook)).cells[1].metadata.tags == [
        "a",
        "raises-exception",
    ]
