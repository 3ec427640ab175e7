"""What cannot be shown stops the build of the site, with notebook, cell and cause.

Nothing is written then.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import needs

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = "notebooks/00_preflight.ipynb"


@pytest.fixture
def clone(tmp_path):
    """A clone with one unit, small enough for a build of seconds."""
    needs.package("sphinx", remedy="make site")
    clone = tmp_path / "clone"
    for name in (
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "CITATION.cff",
        "SECURITY.md",
        "CODE_OF_CONDUCT.md",
        "LICENSE",
        "LICENSE-TEXT",
        "pyproject.toml",
        "constraints.txt",
    ):
        clone.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, clone / name)
    for name in ("docs", "docker", "notebooks/scripts", "labs/00_preflight", "tests/carried_over"):
        shutil.copytree(ROOT / name, clone / name)
    for name in (
        NOTEBOOK,
        "slides/built/00_preflight.html",
        "slides/built/00_preflight.pdf",
        "tests/mutants/README.md",
    ):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, clone / name)
    return clone


def built(clone):
    """(status, what was said on stderr, whether a site was written)."""
    done = subprocess.run(
        [sys.executable, "-m", "manyhands", "site"],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=clone,
    )
    return done.returncode, done.stderr, (clone / "build" / "site").exists()


def change(clone, number, **what):
    """Change the first cell of a kind; returns its number from 1."""
    path = clone / NOTEBOOK
    notebook = json.loads(path.read_text())
    notebook["cells"][number].update(what)
    path.write_text(json.dumps(notebook))
    return number + 1, len(notebook["cells"])


def code_cell(clone):
    cells = json.loads((clone / NOTEBOOK).read_text())["cells"]
    return next(
        number
        for number, cell in enumerate(cells)
        if number > 3 and cell["cell_type"] == "code" and not cell["metadata"].get("tags")
    )


def test_a_file_that_is_no_json(clone):
    (clone / NOTEBOOK).write_text((clone / NOTEBOOK).read_text()[:3000])
    status, output, there = built(clone)
    assert (
        status == 1
        and not there
        and f"{NOTEBOOK}, line " in output
        and "this is not JSON" in output
        and "Traceback" not in output
    )


def test_a_cell_that_is_none(clone):
    at, of = change(clone, code_cell(clone), outputs=[{"output_type": "stream", "name": "stdout"}])
    status, output, there = built(clone)
    assert (
        status == 1
        and not there
        and f"{NOTEBOOK}, cell {at} of {of}" in output
        and "'text' is a required property" in output
    )


def test_an_error_that_is_stored_and_not_taught(clone):
    at, of = change(
        clone,
        code_cell(clone),
        source="1 / 0\n",
        outputs=[
            {
                "output_type": "error",
                "ename": "ZeroDivisionError",
                "evalue": "division by zero",
                "traceback": [],
            }
        ],
    )
    status, output, there = built(clone)
    assert status == 1 and not there and "make build NB=" in output
    assert (
        f'{NOTEBOOK}, cell {at} of {of} ("1 / 0"): it is stored with an error, ZeroDivisionError: '
        "division by zero" in output
    )


def test_outcomes_of_predictions_that_cannot_be_read(clone):
    (clone / "notebooks/outcomes.json").write_text("{")
    status, output, there = built(clone)
    assert (
        status == 1
        and not there
        and "notebooks/outcomes.json is not JSON" in output
        and "manyhands build" in output
        and "Traceback" not in output
    )


def test_a_link_that_leads_nowhere(clone):
    change(clone, 0, source="# 00 Preflight\n\n[there](../docs/NOWHERE.md)\n")
    status, output, there = built(clone)
    assert (
        status == 1
        and not there
        and f"{NOTEBOOK} links to docs/NOWHERE.md, which does not exist." in output
    )


def test_what_sphinx_complains_of_is_told_with_the_cell(clone):
    """And the site that was there before stays."""
    (clone / "build" / "site").mkdir(parents=True)
    (clone / "build" / "site" / ".manyhands-site").touch()
    cells = json.loads((clone / NOTEBOOK).read_text())["cells"]
    at, of = change(
        clone,
        next(
            number
            for number, cell in enumerate(cells)
            if number and cell["cell_type"] == "markdown"
        ),
        source="## Here\n\n[there](../docs/SETUP.md#no-such-heading)\n",
    )
    status, output, _there = built(clone)
    assert (
        status == 1
        and f'{NOTEBOOK}, cell {at} of {of} ("## Here")' in output
        and "no-such-heading" in output
    )
    assert [path.name for path in (clone / "build" / "site").iterdir()] == [".manyhands-site"]
