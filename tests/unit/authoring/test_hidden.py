"""The cells that ask for predictions and settle them.

Their source is hidden, and what is shown of it has no answer.
"""

from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from manyhands.authoring import adopt, canonical, hidden, layout, make, text
from manyhands.learner.copies import copy_course

ROOT = Path(__file__).resolve().parents[3]
TUTORIALS = sorted((ROOT / "notebooks").glob("*.ipynb"))
ASK, RESULT = hidden.LABELS["predict"], hidden.LABELS["settle"]


@pytest.mark.parametrize(
    ("source", "function"),
    [
        ('predict("06-a", "?")', "predict"),
        ('settle("06-a", x)\nsettle("06-b", y)', "settle"),
        ('import sys\n\nx = 3\ndef came():\n    return x\n\nsettle("06-a", came)', "settle"),
        ('# why\nsettle("06-a", lambda: "the answer")', "settle"),
        ('predict("06-a", "?")\nprint(3)', None),
        ("x = model.predict(y)", None),
        ('y = predict("06-a", "?")', None),
        ("def predict(): pass", None),
        ('for x in y:\n    settle("06-a", x)', None),
        ("", None),
        ("x = 3", None),
        ('%%px\npredict("06-a", "?")', None),
        ('settle("06-a",', None),
        ("x\x00", None),
    ],
)
def test_which_cells_are_hidden(source, function):
    assert hidden.call_of(source) == function
    labelled = hidden.labelled(source)
    assert (
        labelled == (f"{hidden.LABELS[function]}\n{source}" if function else source)
        and hidden.labelled(labelled) == labelled
    )


def test_the_build_writes_the_line_and_the_metadata_and_the_way_back_keeps_both():
    source = text.read('# %%\nsettle("06-a", lambda: "the answer")\n\n# %%\nprint(3)\n')
    notebook = canonical.notebook_of(source, "x.py", "")
    assert [cell.metadata.get("jupyter") for cell in notebook.cells] == [
        {"source_hidden": True},
        None,
    ]
    assert notebook.cells[0].source.startswith(RESULT + "\n") and text.write(source).startswith(
        f"# %%\n{RESULT}\n"
    )
    assert canonical.clean(notebook).cells[0].metadata.jupyter == {"source_hidden": True}
    # opened, its line deleted
    edited = new_notebook(
        cells=[
            new_code_cell('predict("06-a", "?")', metadata={"jupyter": {"source_hidden": False}})
        ]
    )
    assert (
        adopt.as_source(edited, layout.Piece(ROOT, "tutorial", "06_ddp"))
        .cells[0]
        .source.startswith(ASK)
    )


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_no_answer_is_in_sight_below_its_question(path):
    cells = [cell for cell in canonical.load(path).cells if cell.cell_type == "code"]
    asking = [
        cell
        for cell in cells
        if any(line.startswith(("predict(", "settle(")) for line in cell.source.split("\n"))
    ]
    assert asking
    for cell in asking:
        assert cell.metadata["jupyter"]["source_hidden"] is True and cell.source.split("\n")[0] in (
            ASK,
            RESULT,
        ), cell.source
    assert [
        cell.source for cell in cells if "jupyter" in cell.metadata and cell not in asking
    ] == []


def test_labs_hide_nothing():
    for piece in layout.pieces(ROOT):
        if piece.lab:
            assert all(
                "jupyter" not in cell.metadata for cell in make.expected_notebook(piece).cells
            ), piece.name


def test_a_learners_copy_hides_them_and_a_copy_of_before_stays_and_is_told(tmp_path):
    notebook = canonical.notebook_of(text.read('# %%\nsettle("06-a", lambda: 3)\n'), "x.py", "")
    (tmp_path / "notebooks").mkdir()
    course, copy = tmp_path / "notebooks/06_ddp.ipynb", tmp_path / "work/06_ddp_tutorial.ipynb"
    course.write_bytes(
        canonical.to_bytes(new_notebook(cells=[new_code_cell('settle("06-a", lambda: 3)', id="a")]))
    )
    assert copy_course(tmp_path).made == ["06_ddp_tutorial.ipynb"]
    before = copy.read_bytes()
    course.write_bytes(canonical.to_bytes(notebook))
    assert copy_course(tmp_path).newer == ["06_ddp_tutorial.ipynb"] and copy.read_bytes() == before
    assert copy_course(tmp_path, beside=["06"]).beside == ["06_ddp_tutorial.new.ipynb"]
    assert canonical.load(tmp_path / "work/06_ddp_tutorial.new.ipynb").cells[
        0
    ].metadata.jupyter == {"source_hidden": True}
