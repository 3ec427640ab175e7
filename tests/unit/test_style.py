"""The style that pyproject.toml asks for, `[tool.ruff]`: short lines, no name unused or undefined."""

import os
import subprocess
import sys
from pathlib import Path

import needs

ROOT = Path(__file__).resolve().parents[2]


def test_ruff_finds_nothing():
    ruff = needs.search("ruff", os.path.dirname(sys.executable)) or needs.lacking("ruff", "make setup")
    run = subprocess.run([ruff, "check", "--no-cache", "--quiet", "--output-format", "concise"], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
