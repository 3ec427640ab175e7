"""The grades of a unit on disk: one file for each grade ever given.

A file is written in one step and never changed. In `<folder>/<student>/0001.json`, `0002.json`,
..., the last one counts, the others are its history, each with its time and with the reason why it
was given.
"""

from __future__ import annotations

import fcntl
import json
import secrets
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from manyhands.grading.store import submissions
from manyhands.shared.atomic import write_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from typing import TextIO

    from manyhands.grading.grade_report import GradeData

FIRST = "first grade"
RESUBMITTED = "a different submission was handed in"
CHANGED = "the solution or its checks have changed"
AGAIN = "graded again on request"
LEFT_BEHIND_S = 2  # a process that a killed batch has just forked may keep its lock for a moment


class Key(TypedDict):
    """What a grade depends on: digests, and the seed of the checks."""

    submission: str
    solution: str
    seed: int


class Entry(TypedDict):
    """A grade as it is kept; in its file stands its number too."""

    time: str
    reason: str
    key: Key
    grade: GradeData
    submitted: str | None


class BusyError(RuntimeError):
    """Somebody else is grading this unit now."""


class Journal:
    """The kept grades of one unit."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    @contextmanager
    def lock(self) -> Iterator[TextIO]:
        """Within it no other process writes here; `BusyError` if one does.

        Gives the open file of the lock, to be closed in forks.
        """
        with open(self.folder / "lock", "a+") as file:
            until = time.monotonic() + LEFT_BEHIND_S
            while not _locked(file):
                if time.monotonic() > until:
                    raise BusyError(
                        f"{self.folder.name} is being graded by another process. Wait until it has "
                        "finished."
                    )
                time.sleep(0.05)
            for left in self.folder.rglob(".new-*"):  # by a process that was killed
                left.unlink(missing_ok=True)
            yield file

    def seed(self) -> int:
        """The hidden seed of this unit in this class.

        It is the same for everybody, until `forget_seed`.
        """
        path = self.folder / "seed"
        with suppress(OSError, ValueError):
            return int(path.read_text())
        write_file(path, str(secrets.randbelow(2**31 - 1) + 1))
        return int(path.read_text())

    def forget_seed(self) -> None:
        """Let those who are graded from now on have another seed.

        What passes and what fails may tell of a seed, and some have seen that.
        """
        (self.folder / "seed").unlink(missing_ok=True)

    def history(self, student: str) -> list[Entry]:
        """All grades of a student, the oldest first."""
        return [json.loads(path.read_text(encoding="utf-8")) for path in self._paths(student)]

    def current(self, student: str) -> Entry | None:
        """The grade that counts, or None."""
        paths = self._paths(student)
        return json.loads(paths[-1].read_text(encoding="utf-8")) if paths else None

    def students(self) -> list[str]:
        """Everybody who has a grade."""
        return sorted({path.parent.name for path in self.folder.glob("*/[0-9]*.json")})

    def add(self, student: str, entry: Entry) -> None:
        """Keep a grade. `entry` is what `entry()` makes; its number is the next one."""
        paths = self._paths(student)
        number = int(paths[-1].stem) + 1 if paths else 1
        path = self.folder / student / f"{number:04d}.json"
        path.parent.mkdir(exist_ok=True, mode=0o700)
        write_file(path, json.dumps({"number": number, **entry}, indent=1), new=True)

    def _paths(self, student: str) -> list[Path]:
        return sorted((self.folder / student).glob("[0-9]*.json"), key=lambda path: int(path.stem))


def entry(key: Key, grade: GradeData, reason: str, submitted: datetime | None) -> Entry:
    """A grade as it is kept.

    `key` is {"submission", "solution", "seed"}; `submitted` is a time or None.
    """
    return {
        "time": submissions.now(),
        "reason": reason,
        "key": key,
        "grade": grade,
        "submitted": submitted.isoformat() if submitted else None,
    }


def same_work(first: Key, second: Key) -> bool:
    """Whether two keys are of the same submission and solution, under whatever seed."""
    return {**first, "seed": second["seed"]} == second


def reason(before: Entry | None, key: Key) -> str:
    """Why a grade with this key is given now.

    `before` is the one that counted until now (or None).
    """
    if before is None:
        return FIRST
    if before["key"]["submission"] != key["submission"]:
        return RESUBMITTED
    return AGAIN if same_work(before["key"], key) else CHANGED


def same(first: GradeData, second: GradeData) -> bool:
    """Whether two grades (plain data) give the same for each criterion."""

    def essence(grade: GradeData) -> tuple[str, list[tuple[str, str, str, float]]]:
        return grade["verdict"], [
            (line["check"], line["name"], line["status"], line["points"])
            for line in grade["criteria"]
        ]

    return essence(first) == essence(second)


def _locked(file: TextIO) -> bool:
    """Whether this process has the lock of a file now."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
