"""Sources: what they may say, and that text -> notebook -> text loses nothing."""

import nbformat
import pytest

from manyhands.authoring import BuildError, text
from tiny_course import LAB, TUTORIAL

code, markdown = nbformat.v4.new_code_cell, nbformat.v4.new_markdown_cell


@pytest.mark.parametrize("source", [TUTORIAL, LAB])
def test_text_to_notebook_to_text_is_the_same(source):
    assert text.write(text.read(source)) == source


def test_options_and_magics_are_read():
    cells = text.read(TUTORIAL).cells
    assert cells[0].metadata["unit"]["minutes"] == 10
    assert cells[3].metadata["tags"] == ["measured"]
    assert cells[3].source.startswith("%time sum")
    check = text.read(LAB).cells[2]
    assert (check.metadata["grade_id"], check.metadata["points"]) == ("double-check", 2)


@pytest.mark.parametrize(
    "cell",
    [
        code("%%px --ranks 0,2\nif True:\n    %time f()\n\n\n\nprint(1)"),
        code("x = '''\n# %% in a string\n%%px\n'''"),
        code("# + \n# ---\n# only comments"),
        code("x = 1  # %% a tail"),
        code("@decorator\ndef f():\n    ...\n\n\nclass A:\n    pass"),
        code("%%writefile train.py\nimport os\n# words"),
        code("!echo one\n%matplotlib inline"),
        code("a = (1\n     % 2)"),
        markdown("---\ntitle: not a header\n---"),
        markdown("```python\n# %% not a cell\n%px x\n```\n\n$a % b$ ｍ 日本語"),
        markdown("two spaces at the end  \nof a line\n\n    code\n\n#\n\n#!"),
        nbformat.v4.new_raw_cell("raw <b>"),
    ],
    ids=lambda cell: cell.source.split("\n")[0],
)
def test_awkward_cells_survive(cell):
    notebook = nbformat.v4.new_notebook(cells=[markdown("before"), cell, markdown("after")])
    assert text.same_cells(text.read(text.write(notebook)), notebook)


@pytest.mark.parametrize(
    "source, complaint",
    [
        ("# %%\n%time 1\n", "line 2: write the magic as a comment: # %time 1"),
        ("# %%\n# why?\n", "reads this comment as a command"),
        ("# %%\n# ls\n", "reads this comment as a command"),
        ("# %%\n\n# %%\n1\n", "the cell is empty"),
        (f"# %%\nx = {'1' * 89}\n", "a line of code has 93 characters, but only 92"),
        ('# %% tags=["mesured"]\n1\n', "unknown tag 'mesured'"),
        ('# %% tagz=["measured"]\n1\n', "unknown option 'tagz'"),
        ('# %% tags=["solution"]\n### BEGIN SOLUTION\n1\n### END SOLUTION\n', "needs a name"),
        ('# %% tags=["solution"] grade_id="a"\n1\n', "needs ### BEGIN SOLUTION"),
        ('# %% tags=["check"] grade_id="a-check"\n1\n', "a check needs points=N"),
        ('# %% tags=["check"] grade_id="a-check" points=0\n1\n', "a check needs points=N"),
        ("# %% points=1\n1\n", "points go with"),
        ('# %% grade_id="a"\n1\n', "grade_id goes with"),
        ("# %%\n### BEGIN SOLUTION\n1\n### END SOLUTION\n", "BEGIN SOLUTION goes with"),
        (
            '# %% tags=["check"] grade_id="a" points=1\n### BEGIN HIDDEN TESTS\n',
            "hidden tests do not exist",
        ),
        ("# %%\n# NBVAL_SKIP\n1\n", "leave the marks of nbval out"),
        (LAB + "\n" + LAB.split("\n\n", 1)[1], "two cells are called grade_id='double'"),
    ],
)
def test_mistakes_are_named(source, complaint):
    with pytest.raises(BuildError, match="source") as error:
        text.read(source)
    assert complaint in str(error.value)


def test_markdown_may_hold_percent_and_apostrophes():
    assert (
        text.read("# %% [markdown]\n# don't stop at 50 %: it's '''fine\n\n# %%\n1\n")
        .cells[1]
        .source
        == "1"
    )
