"""nbval of all notebooks and solutions, against the sum of plain `pytest --nbval` file by file.

It runs as `make test` runs it.
"""

import subprocess
import sys
import time
from pathlib import Path

from . import SMOKE
from .pairs import ratio_line

ROOT = Path(__file__).parents[1]


def timed(command):
    """(seconds, the finished process) of a command."""
    start = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return time.perf_counter() - start, done


def main():
    """Measure both, and give the lines of the table."""
    which = "03_dataparallel" if SMOKE else "*"
    files = sorted(
        [*ROOT.glob(f"notebooks/{which}.ipynb"), *ROOT.glob(f"solutions/{which}/*.ipynb")]
    )
    ours, done = timed([sys.executable, "-m", "manyhands", "validate", *(["03"] if SMOKE else [])])
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    alone = sum(
        timed(
            [
                sys.executable,
                "-m",
                "pytest",
                "-p",
                "no:cacheprovider",
                "--nbval",
                "--rootdir",
                str(file.parent),
                str(file),
            ]
        )[0]
        for file in files
    )
    yield ratio_line(
        f"nbval of all {len(files)} notebooks and solutions", [ours], [alone], "s", 0.7
    )
