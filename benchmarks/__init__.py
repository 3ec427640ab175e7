"""The figures of docs/BENCHMARKS.md.

`python -m benchmarks` prints them all, `python -m benchmarks start` one of them.

With MANYHANDS_SMOKE=1 in the environment a benchmark does as little as it can, to show that it
still starts: it measures each thing once, on few people or small data. Its figures mean nothing
then.
"""

import os
import sys
from pathlib import Path

SMOKE = os.environ.get("MANYHANDS_SMOKE") == "1"
TESTS = Path(__file__).resolve().parents[1] / "tests"


def few(number, smoke=1):
    """`number`, or in a smoke test so many only."""
    return smoke if SMOKE else number


def from_tests(*folders):
    """Make modules of `tests/`, or of these folders in it, importable.

    Benchmarks measure what tests set up.
    """
    sys.path[:0] = [str(TESTS.joinpath(folder)) for folder in folders or ("",)]
