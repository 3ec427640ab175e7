"""The course as attendees see it.

It has tutorials, labs, slides, and what checks need in the place of the solutions.

    course/notebooks  course/labs  course/slides      copies of the clone's folders
    course/facts.json                                 minutes and ranks of the units, which the sources tell in a clone
    course/references/06_ddp.json                     what the solution shows under the public seed

A check on an attendee's server compares with the reference, so the solution need not be there. The
seed is public: whoever writes the reference's numbers into a lab deceives nobody but themselves,
for grades are taken under a hidden one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.hub.folder import WITH_PARENT
from manyhands.units import units

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO


FOLDERS = ("notebooks", "labs", "slides/built")


def make(root: str | Path, course: str | Path) -> None:
    """Copy the clone's course to the folder `course`; the references that are there stay.

    Call it before sandboxes are opened.
    """
    for name in FOLDERS:
        source, target = Path(root) / name, Path(course) / name
        shutil.rmtree(target, ignore_errors=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    (Path(course) / "facts.json").write_text(
        json.dumps({unit.name: unit.facts for unit in units(root)})
    )
    (Path(course) / "references").mkdir(exist_ok=True)
    _readable(course)


def make_solutions(root: str | Path, folder: str | Path) -> None:
    """Copy the clone's solutions to `folder`, which only instructors' servers are shown.

    The folder above it is closed to all but its owner.
    """
    folder = Path(folder)
    folder.parent.mkdir(mode=0o700, exist_ok=True)
    folder.parent.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
    if (Path(root) / "solutions").is_dir():
        shutil.copytree(
            Path(root) / "solutions", folder, ignore=shutil.ignore_patterns(".*", "__pycache__")
        )
        _readable(folder)


def _readable(folder: str | Path) -> None:
    for place, _, files in os.walk(folder):
        os.chmod(place, 0o755)
        for name in files:
            os.chmod(Path(place) / name, 0o644)


def start_references(
    root: str | Path, course: str | Path, log: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Begin to make the references that are missing or out of date; returns the process.

    They are made one after the other, behind all else.
    """
    command = [
        *WITH_PARENT,
        "nice",
        "-n",
        "19",
        sys.executable,
        "-P",
        "-m",
        "manyhands.hub.course",
        str(root),
        str(course),
    ]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def make_references(
    root: str | Path, course: str | Path, report: Callable[..., object] = print
) -> None:
    """Make them.

    A solution that does not pass its own checks here is told and tried once more: the machine may
    have been too busy.
    """
    solutions = {
        unit.name: Path(root) / "solutions" / unit.name / f"{unit.name}.ipynb"
        for unit in units(root)
    }
    left = [name for name, path in solutions.items() if path.is_file()]
    for _ in range(2):
        left = [
            name
            for name in left
            if not _made(
                name, solutions[name], Path(course) / "references" / f"{name}.json", report
            )
        ]


def _made(name: str, solution: Path, path: Path, report: Callable[..., object]) -> bool:
    from manyhands.grading import engine, notebooks
    from manyhands.grading.store import public_references

    try:
        report(
            f"{name}: reference "
            f"{'made' if public_references.renew(solution, path) else 'is there'}",
            flush=True,
        )
        return True
    except (engine.SolutionFailsError, notebooks.NotGradedError, OSError) as problem:
        report(f"{name}: NO reference: {problem}", flush=True)
        return False


if __name__ == "__main__":
    make_references(sys.argv[1], sys.argv[2])
