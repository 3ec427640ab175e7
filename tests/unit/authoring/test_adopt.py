"""The way back from an edited notebook to its source.

Nothing is lost, and what cannot go back is refused with a reason.
"""

import nbformat
import pytest

import tiny_course
from manyhands.authoring import BuildError, adopt, canonical, make, text


@pytest.fixture
def course(tmp_path):
    """A course whose notebooks stand for their sources (outputs do not matter here)."""
    for piece in tiny_course.make(tmp_path):
        make.build(piece, run=False)
    return tmp_path


def edit(path, change):
    notebook = canonical.load(path)
    change(notebook)
    path.write_bytes(canonical.to_bytes(notebook))


@pytest.mark.parametrize("name", ["notebooks/90_tiny.ipynb", "solutions/90_tiny/90_tiny.ipynb"])
def test_adopting_what_was_built_changes_nothing(course, name):
    before = {path: path.read_text() for path in course.rglob("*.py")}
    (course / "sources/labs/90_tiny.py").touch()
    assert "is already the same" in adopt.adopt(course, course / name)[0]
    notebook = canonical.load(course / name)
    piece = adopt.piece_of(course, course / name)
    assert text.write(adopt.as_source(notebook, piece)) == piece.source.read_text()
    assert {path: path.read_text() for path in course.rglob("*.py")} == before


def test_an_edit_goes_back_with_tags_names_and_points(course):
    def change(notebook):
        notebook.cells[2].source = notebook.cells[2].source.replace("twice", "both")
        notebook.cells[3].metadata.nbgrader.points = 5
        notebook.cells.insert(1, nbformat.v4.new_markdown_cell("New words."))
        notebook.cells.insert(
            2, nbformat.v4.new_code_cell("%time 1\n", metadata={"execution": {"started": "now"}})
        )
        notebook.cells.append(nbformat.v4.new_code_cell(""))

    edit(course / "solutions/90_tiny/90_tiny.ipynb", change)
    lines = adopt.adopt(course, course / "solutions/90_tiny/90_tiny.ipynb")
    assert lines == ["sources/labs/90_tiny.py written; now run: manyhands build 90"]
    expected = tiny_course.LAB.replace("twice", "both").replace("points=2", "points=5")
    expected = expected.replace(
        "# %% tags", "# %% [markdown]\n# New words.\n\n# %%\n# %time 1\n\n# %% tags", 1
    )
    assert (course / "sources/labs/90_tiny.py").read_text() == expected
    assert not list(course.rglob("*.bak*"))


def test_a_cell_made_an_answer_in_jupyterlab_gets_its_tag(course):
    def change(notebook):
        grading = {
            "grade": False,
            "grade_id": "more",
            "locked": False,
            "schema_version": 3,
            "solution": True,
            "task": False,
        }
        source = "### BEGIN SOLUTION\nx = 1\n### END SOLUTION"
        notebook.cells.append(nbformat.v4.new_code_cell(source, metadata={"nbgrader": grading}))

    edit(course / "solutions/90_tiny/90_tiny.ipynb", change)
    adopt.adopt(course, course / "solutions/90_tiny/90_tiny.ipynb")
    assert (
        '# %% tags=["solution"] grade_id="more"\n'
        in (course / "sources/labs/90_tiny.py").read_text()
    )


def test_a_source_edited_since_the_build_is_kept(course):
    source = course / "sources/tutorial/90_tiny.py"
    for number, backup in enumerate(["90_tiny.py.bak", "90_tiny.py.bak2"]):
        newer = source.read_text() + f"\n# %%\nnewer = {number}\n"
        source.write_text(newer)
        lines = adopt.adopt(course, course / "notebooks/90_tiny.ipynb")
        assert f"its old text is kept in {backup}" in lines[0]
        assert (source.parent / backup).read_text() == newer
        assert source.read_text() == tiny_course.TUTORIAL


def test_an_untidy_source_is_tidied(course):
    source = course / "sources/tutorial/90_tiny.py"
    source.write_text(
        "# ---\n# jupyter:\n#   kernelspec:\n#     display_name: Python 3\n#     name: python3\n# "
        "---\n\n" + tiny_course.TUTORIAL + "\n\n"
    )
    adopt.adopt(course, source)
    assert source.read_text() == tiny_course.TUTORIAL


def test_a_notebook_without_a_source_becomes_one(course):
    source = course / "sources/tutorial/90_tiny.py"
    source.unlink()
    lines = adopt.adopt(course, course / "notebooks/90_tiny.ipynb")
    assert "lacks unit=" in lines[-1]
    assert source.read_text() == tiny_course.TUTORIAL.replace(
        tiny_course.TUTORIAL.split("\n")[0], "# %% [markdown]"
    )


@pytest.mark.parametrize(
    "name, complaint",
    [
        ("labs/90_tiny/90_tiny.ipynb", "made from the solution, which a lab does not contain"),
        ("work/90_tiny/90_tiny.ipynb", "a learner's own copy"),
        ("notebooks/tiny.ipynb", "adopt takes notebooks/NN_topic.ipynb"),
        ("somewhere/90_tiny.ipynb", "adopt takes notebooks/NN_topic.ipynb"),
    ],
)
def test_other_notebooks_are_refused_with_the_reason(course, name, complaint):
    path = course / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes((course / "notebooks/90_tiny.ipynb").read_bytes())
    before = {path: path.read_bytes() for path in course.rglob("*.py")}
    with pytest.raises(BuildError, match=complaint):
        adopt.adopt(course, path)
    assert {path: path.read_bytes() for path in course.rglob("*.py")} == before


@pytest.mark.parametrize(
    "cell, complaint",
    [
        (
            nbformat.v4.new_markdown_cell(
                "![a](attachment:a.png)", attachments={"a.png": {"image/png": ""}}
            ),
            "pasted picture",
        ),
        (
            nbformat.v4.new_code_cell("if True:\n    files = !ls"),
            "cell 7 would not survive as text",
        ),
        (nbformat.v4.new_code_cell("x\n\n# %%\n\ny"), "cell 7 would not survive as text"),
        (
            nbformat.v4.new_code_cell("1", metadata={"tags": ["mesured"]}),
            "cell 7: unknown tag 'mesured'",
        ),
    ],
)
def test_what_a_text_cannot_hold_is_refused(course, cell, complaint):
    edit(course / "notebooks/90_tiny.ipynb", lambda notebook: notebook.cells.append(cell))
    with pytest.raises(BuildError, match=complaint):
        adopt.adopt(course, course / "notebooks/90_tiny.ipynb")
    assert (course / "sources/tutorial/90_tiny.py").read_text() == tiny_course.TUTORIAL
