"""`python3 run.py OUT`: on the machine with the GPU.

Runs what OUT/report.json does not have yet, in order of worth.

It takes 8 minutes at most (`--minutes`), then says what was not reached: type the same line again,
and it goes on there. OUT/report.md and OUT/report.json are written anew after each item. See
tests/gpu/README.md.
"""

import argparse
import os
import subprocess
import sys
import tarfile
import time
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
SITE_FIRST = ("site-packages", "course/src", "course/tests/gpu")


def unpack():
    """Once: the two archives, beside this file."""
    for archive, folder in (("site.tar.xz", "site-packages"), ("course.tar.xz", "course")):
        if not (HERE / folder).exists():
            with tarfile.open(HERE / archive) as content:
                content.extractall(HERE, filter="data")


def environment():
    """The variables that show a Python what travelled, before what is here."""
    folders = [HERE / name for name in SITE_FIRST] + (
        [] if find_spec("sklearn") else [HERE / "digits"]
    )
    before = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*map(str, folders), *([before] if before else [])]),
    }


def main():
    begun = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", help="a folder for the report and the logs")
    parser.add_argument(
        "--minutes", type=float, default=8, help="how long this run may take (default: 8)"
    )
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="ITEM", help="these items only, done before or not"
    )
    options = parser.parse_args()
    if find_spec("torch") is None:
        sys.exit(
            f"{sys.executable} has no PyTorch, which does not travel: start this with the Python "
            "that has it"
        )
    unpack()
    left = options.minutes * 60 - (time.monotonic() - begun)
    command = [
        sys.executable,
        "-m",
        "gpu_visit",
        os.path.abspath(options.out),
        str(left),
        *options.only,
    ]
    return subprocess.run(command, env=environment(), cwd=HERE / "course").returncode


if __name__ == "__main__":
    sys.exit(main())
