"""Unit 06's script with Lightning's Trainer ends with the weights of one process. Skipped where Lightning is not installed: the course does without."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "sources" / "scripts" / "06_lightning.py"


def test_two_ranks_end_with_the_weights_of_one_process():
    pytest.importorskip("lightning")
    env = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")} | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, SCRIPT], env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert "2 ranks, 60 steps;" in done.stdout and "equal to 1e-12: True" in done.stdout
