"""The notebooks on the oldest PyTorch that a site's own may be, set up as docs/SETUP.md says.

make test-oldest     takes half an hour and gigabytes; TORCH_INDEX= names an index of CPU builds, which are smaller
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from manyhands.cli.pythons import SITE_TORCH
from manyhands.cli.setup_plan import read_pins

pytestmark = pytest.mark.oldest
ROOT = Path(__file__).resolve().parents[2]
OLDEST = ".".join(map(str, SITE_TORCH))
NUMPY = read_pins(ROOT / "constraints.txt")["numpy"]
DIFFER = {  # notebook -> what its output says there; all others are as stored
    "14_pipeline.ipynb": "9 calls, and batch norm has counted 9 batches",
}


def run(command, **options):
    done = subprocess.run(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    )
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A clone, set up over an environment that has nothing but this PyTorch and NumPy.

    A site's module offers such an environment.
    """
    site, clone = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("clone") / "manyhands"
    index = os.environ.get("MANYHANDS_TORCH_INDEX")
    environ = os.environ | {"PATH": f"{site / 'bin'}:{os.environ['PATH']}", "MANYHANDS_SITE": "1"}
    for command in (
        [sys.executable, "-m", "venv", site],
        [
            site / "bin" / "pip",
            "install",
            f"torch=={OLDEST}.*",
            f"numpy=={NUMPY}",
            *(["--extra-index-url", index] if index else []),
        ],
        ["git", "clone", "--quiet", ROOT, clone],
        ["make", "-C", clone, "setup"],
    ):
        code, printed = run(command, env=environ)
        assert code == 0, printed
    return clone


@pytest.mark.timeout(3600)
def test_the_notebooks_run_on_it(course):
    """Every output of every tutorial and solution is as stored, but for the cells in DIFFER."""
    printed = run(
        [course / ".venv" / "bin" / "python", "-c", "import torch; print(torch.__version__)"]
    )[1]
    assert printed.startswith(OLDEST)
    _, printed = run([course / ".venv" / "bin" / "manyhands", "validate"], cwd=course)
    failed = sorted(
        line.rpartition("/")[2] for line in printed.splitlines() if line.startswith("FAIL  ")
    )
    print(printed)
    assert failed == sorted(DIFFER) and all(text in printed for text in DIFFER.values()), printed
