"""mypy, with `[tool.mypy]` of pyproject.toml, finds nothing in the package."""

import subprocess
import sys
from pathlib import Path

import pytest

import needs
from manyhands.toml import loads

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "manyhands"
OVERRIDES = loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"][
    "overrides"
]
STRICT = [
    module for part in OVERRIDES if part.get("disallow_untyped_calls") for module in part["module"]
]
OPENED = "functions links comm ledger simulate cluster.cluster".split()  # by learners


def test_mypy_finds_nothing():
    needs.package("mypy", remedy="make test")
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-color-output"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if run.returncode or not run.stdout.startswith("Success: "):
        pytest.fail(run.stdout + run.stderr, pytrace=False)


def test_what_learners_open_is_strict_and_exists():
    names = [module.removeprefix("manyhands.").removesuffix(".*") for module in STRICT]
    assert names == OPENED
    for name in names:
        path = PACKAGE.joinpath(*name.split("."))
        assert path.is_dir() or path.with_suffix(".py").is_file(), name
