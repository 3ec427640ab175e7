"""The copies that Colab and Kaggle open.

They are made from the notebooks, and their first cell prepares the folder.
"""

import copy
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

import tiny_course
from manyhands import unit_links
from manyhands.authoring import canonical, hosted_copies, labs, make, up_to_date

ADDRESS = "https://github.com/someone/course"
PYPROJECT = f'[project]\nname = "manyhands"\n[project.urls]\nRepository = "{ADDRESS}"\n'
STUB = (
    'import os, sys\n\n\ndef prepare(notebook):\n    print("prepared", notebook, '
    "os.path.dirname(os.path.dirname(__file__)))\n"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    root = tmp_path_factory.mktemp("course")
    (root / "pyproject.toml").write_text(PYPROJECT)
    text = tiny_course.TUTORIAL.replace(
        "count to two.",
        "count. See [the lab](../labs/90_tiny/90_tiny.ipynb#Two), "
        "[a script](scripts/90_a.py), [it](https://x.org/) and ![no](../link.svg).",
    )
    for piece in tiny_course.make(root, tutorial=text):
        notebook = make.expected_notebook(piece)  # as if it had run
        for number, cell in enumerate(
            (cell for cell in notebook.cells if cell.cell_type == "code"), 1
        ):
            cell.execution_count, cell.outputs = (
                number,
                [nbformat.v4.new_output("stream", text="it ran\n")],
            )
        make.write_if_changed(piece.notebook, canonical.to_bytes(notebook))
        make.build(piece, run=False)
    return root


@pytest.fixture
def course(built, tmp_path):
    """A copy to be spoilt."""
    for path in built.rglob("*"):
        if path.is_file():
            make.write_if_changed(tmp_path / path.relative_to(built), path.read_bytes())
    return tmp_path


def copy_of(course, kind):
    return canonical.load(course / f"hosted/90_tiny_{kind}.ipynb")


@pytest.mark.parametrize("kind", ["tutorial", "lab"])
def test_a_copy_begins_with_a_hidden_cell_and_goes_on_as_the_notebook(built, kind):
    made = copy_of(built, kind)
    notebook = canonical.load(
        built / ("notebooks/90_tiny.ipynb" if kind == "tutorial" else "labs/90_tiny/90_tiny.ipynb")
    )
    first, *rest = made.cells
    assert (
        first.metadata["jupyter"]["source_hidden"]
        and first.metadata["cellView"] == "form"
        and first.metadata["_kg_hide-input"]
    )
    assert f'"{ADDRESS}"' in first.source and f'"hosted/90_tiny_{kind}.ipynb"' in first.source
    assert max(map(len, first.source.splitlines())) <= 100
    theirs = [cell for cell in notebook.cells if cell.id not in (unit_links.HEAD, unit_links.FOOT)]
    ours = [cell for cell in rest if cell.id not in (unit_links.HEAD, unit_links.FOOT)]
    assert [cell.id for cell in ours] == [cell.id for cell in theirs]
    for cell, original in zip(ours, theirs, strict=True):
        assert cell.metadata == original.metadata and (
            cell.cell_type == "markdown" or cell.source == original.source
        )
        if cell.cell_type == "code":
            assert cell.outputs == ([] if kind == "tutorial" else original.outputs)


def test_the_notebooks_themselves_have_badges_and_no_such_cell(built):
    """So a learner's work, nbval, grading and stored outputs are as they were."""
    for path, kind in (
        ("notebooks/90_tiny.ipynb", "tutorial"),
        ("solutions/90_tiny/90_tiny.ipynb", "lab"),
        ("labs/90_tiny/90_tiny.ipynb", "lab"),
    ):
        notebook = canonical.load(built / path)
        [head] = [cell for cell in notebook.cells if cell.id == unit_links.HEAD]
        for place in (
            "colab.research.google.com/github/someone/course/blob/main",
            f"kaggle.com/kernels/welcome?src={ADDRESS}/blob/main",
        ):
            assert f"(https://{place}/hosted/90_tiny_{kind}.ipynb)" in head.source
        assert notebook.cells.index(head) == 1 and hosted_copies.PREPARE not in {
            cell.id for cell in notebook.cells
        }


def test_a_lab_of_a_class_has_no_badges(built):
    """An attendee hands in where the lab was fetched."""
    notebook = canonical.load(built / "solutions/90_tiny/90_tiny.ipynb")
    assert labs.ClearBadges in labs.preprocessors(
        gradebook=True
    ) and labs.ClearBadges not in labs.preprocessors(gradebook=False)
    made, _ = labs.ClearBadges().preprocess(copy.deepcopy(notebook), {})
    changed = [
        (cell, old) for cell, old in zip(made.cells, notebook.cells, strict=True) if cell != old
    ]
    [(head, _old)] = changed
    assert (
        head.id == unit_links.HEAD
        and head.source == "This lab follows [its tutorial](../../notebooks/90_tiny.ipynb)."
    )


def test_links_of_a_copy_lead_to_the_repository(built):
    text = copy_of(built, "tutorial").cells[1].source
    for path in ("labs/90_tiny/90_tiny.ipynb#Two", "notebooks/scripts/90_a.py"):
        assert f"({ADDRESS}/blob/main/{path})" in text
    assert "(https://x.org/)" in text and "![no](../link.svg)" in text
    foot = copy_of(built, "lab").cells[-1]
    assert (
        foot.id == unit_links.FOOT
        and "](.." not in foot.source
        and f"{ADDRESS}/blob/main/README.md#units" in foot.source
    )


def test_drift_of_a_copy_is_found_and_repaired(course):
    assert up_to_date.drifts(course) == []
    path = course / "hosted/90_tiny_lab.ipynb"
    path.write_text(path.read_text().replace(ADDRESS, "https://github.com/other/course"))
    [drift] = up_to_date.drifts(course)
    assert (
        drift.path == "hosted/90_tiny_lab.ipynb"
        and drift.remedy == "manyhands build 90 --no-execute"
    )


ASKING = (
    tiny_course.TUTORIAL.replace(
        "import time\n", "import time\n\nfrom manyhands import predict\nimport manyhands.data\n"
    )
    + """
# %%
predict("90-sum", "How much is 1 + 2?", unit="", within=0)
"""
)


def test_what_jupyterlab_hides_is_hidden_there_too_and_the_import_says_what_comes_first(tmp_path):
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    piece = tiny_course.make(tmp_path, tutorial=ASKING)[0]
    [made] = hosted_copies.copy_of(piece, make.expected_notebook(piece)).values()
    first, importing, *_, asks = (
        cell
        for cell in nbformat.reads(made.decode(), as_version=4).cells
        if cell.cell_type == "code"
    )
    assert asks.source.startswith(
        '#@title Run this cell to make your prediction. { display-mode: "form" }\npredict('
    )
    assert {name: asks.metadata[name] for name in ("cellView", "_kg_hide-input", "jupyter")} == {
        name: first.metadata[name] for name in ("cellView", "_kg_hide-input", "jupyter")
    }
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", importing.source], capture_output=True, text=True
    )
    assert "No module named 'manyhands'" in done.stderr, "the first cell was left out"
    lines = importing.source.splitlines()
    assert (
        "run the first cell of this notebook"
        in lines[lines.index("from manyhands import predict") - 1]
    )
    assert importing.source.count("first cell") == 1 and "cellView" not in importing.metadata


@pytest.mark.parametrize("address", ["", "https://gitlab.com/someone/course"])
def test_without_a_repository_that_they_read_nothing_is_promised(course, address):
    (course / "pyproject.toml").write_text(PYPROJECT.replace(ADDRESS, address))
    assert {drift.path for drift in up_to_date.orphans(course)} == {
        "hosted/90_tiny_tutorial.ipynb",
        "hosted/90_tiny_lab.ipynb",
    }
    for piece in tiny_course.make(course):
        assert hosted_copies.copy_of(piece, canonical.load(piece.notebook)) == {}
        assert "olab" not in str(unit_links.cells(course, piece.name, piece.kind))


@pytest.fixture
def place(built, tmp_path):
    """Colab's folder, elsewhere, and a repository with a stub of the course.

    `run()` runs the first cell there.
    """
    repository, top = tmp_path / "repository", tmp_path / "content"
    (repository / "src/manyhands/learner").mkdir(parents=True)
    for name, text in (
        ("__init__.py", ""),
        ("learner/__init__.py", ""),
        ("learner/hosted.py", STUB),
    ):
        (repository / "src/manyhands" / name).write_text(text)
    for words in (
        ["init", "--quiet"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "a"],
    ):
        subprocess.run(["git", "-C", repository, *words], check=True)
    top.mkdir()
    cell = (
        copy_of(built, "tutorial")
        .cells[0]
        .source.replace(ADDRESS, f"file://{repository}")
        .replace('"/content"', f'"{top}"')
    )
    cell = cell.replace('"/kaggle/working"', f'"{top}/kaggle"')

    def run(**variables):
        environ = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("COLAB", "KAGGLE"))
        }
        return subprocess.run(
            [sys.executable, "-c", cell],
            capture_output=True,
            text=True,
            env=environ | variables,
            cwd=tmp_path,
        )

    run.repository, run.top = repository, top
    return run


def test_the_first_cell_fetches_once_and_prepares(place):
    for _ in range(2):
        done = place(COLAB_RELEASE_TAG="x")
        assert (
            done.stdout
            == f"prepared hosted/90_tiny_tutorial.ipynb {place.top}/manyhands/src/manyhands\n"
        ), done.stderr
        (
            place.repository.rename(place.repository.with_name("gone"))
            if place.repository.exists()
            else None
        )
    assert os.listdir(place.top) == ["manyhands"]


def test_a_kaggle_with_colabs_variable_is_kaggle(place):
    Path(place.top, "kaggle").mkdir()
    assert (
        f"{place.top}/kaggle/manyhands"
        in place(COLAB_RELEASE_TAG="x", KAGGLE_KERNEL_RUN_TYPE="Batch").stdout
    )


def test_elsewhere_the_first_cell_does_nothing(place):
    done = place()
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0) and not os.listdir(place.top)


def test_what_cannot_be_fetched_is_said_and_leaves_nothing(place):
    place.repository.rename(place.repository.with_name("gone"))
    done = place(COLAB_RELEASE_TAG="x")
    assert (
        done.returncode
        and "The course could not be fetched from file://" in done.stderr
        and "Traceback" not in done.stderr
    )
    assert not os.path.exists(place.top / "manyhands")
    place.repository.with_name("gone").rename(place.repository)
    assert place(COLAB_RELEASE_TAG="x").stdout.startswith("prepared"), (
        "the next try is not hindered"
    )
