"""Unit 06's script with Lightning's Trainer ends with the weights of one process."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "sources" / "scripts" / "06_lightning.py"


def test_two_ranks_end_with_the_weights_of_one_process():
    env = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")} | {
        "OMP_NUM_THREADS": "1"
    }
    done = subprocess.run(
        [sys.executable, SCRIPT], env=env, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert "2 ranks, 60 steps;" in done.stdout and "equal to 1e-12: True" in done.stdout
