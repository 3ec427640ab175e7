"""What the board reads and writes in the hub's folder.

These are the accounts, the units' criteria, and its own file of results.
"""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.checks.record import BLOCKED, MIME
from manyhands.hub.accounts.table import ATTENDEE, Accounts
from manyhands.hub.board.state import BadResultError, Criterion
from manyhands.hub.folder import is_classroom

if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from typing import Any

    from manyhands.hub.accounts.table import Account
    from manyhands.hub.board.state import Board
    from manyhands.learner.questions import Question


NAME = "board.jsonl"
UNIT = re.compile(r"[0-9A-Za-z_]{1,64}")
# if it grows by more, it is written anew, with the last line of each row only
LARGEST_BYTES = 32 * 2**20


class People:
    """The table of accounts, read again when its file has changed."""

    def __init__(self, folder: str | Path) -> None:
        self.accounts = Accounts(folder)
        self.read: tuple[int, int] | None = None  # of the file that was read
        self.table: dict[str, Account] = {}

    def look(self) -> dict[str, Account]:
        """{name: Account} as it is now."""
        try:
            facts = os.stat(self.accounts.path)
        except FileNotFoundError:
            return {}
        seen = facts.st_mtime_ns, facts.st_ino
        if seen != self.read:
            self.table, self.read = self.accounts.load(), seen
        return self.table

    def of_name(self, name: str) -> Account | None:
        """The account if it is open, else None."""
        account = self.look().get(name)
        return account if account and account.state == "open" else None

    def of_uid(self, uid: int | None) -> Account | None:
        """The account whose processes carry this number, or None.

        In a demonstration, all have that of the one person who runs it.
        """
        table = self.look()
        if not is_classroom() and uid == os.geteuid():
            uid = next((account.uid for account in table.values()), None)
        account = next((account for account in table.values() if account.uid == uid), None)
        return account if account and account.state == "open" else None

    def attendees(self, uids_with_results: Container[int] = ()) -> dict[int, Account]:
        """{uid: Account} of all open attendees, and of ended ones with results."""
        return {
            account.uid: account
            for account in self.look().values()
            if account.role == ATTENDEE
            and (account.state == "open" or account.uid in uids_with_results)
        }

    def staff(self) -> set[int]:
        """The uids of instructors and assistants."""
        return {account.uid for account in self.look().values() if account.role != ATTENDEE}


class Course:
    """The criteria of each unit, and the questions.

    The criteria are those of the references that attendees' checks compare with.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder) / "course"
        self.known: dict[str, tuple[int, list[Criterion]]] = {}
        self.asked: tuple[list[tuple[str, int]] | None, dict[str, Question]] = (None, {})

    def criteria(self, unit: Any) -> list[Criterion]:
        """The unit's criteria in their order; none for what is no unit, or has no reference yet."""
        if not (isinstance(unit, str) and UNIT.fullmatch(unit)):
            return []
        path = self.folder / "references" / f"{unit}.json"
        try:
            seen = os.stat(path).st_mtime_ns
            if self.known.get(unit, (None,))[0] != seen:
                self.known[unit] = (
                    seen,
                    list(
                        _criteria(
                            _read(path)["shown"],
                            _read(self.folder / "labs" / unit / f"{unit}.ipynb"),
                        )
                    ),
                )
        except (OSError, ValueError, KeyError):
            return []
        return self.known[unit][1]

    def questions(self) -> dict[str, Question]:
        """{name: Question} of the predictions that the tutorials ask for, in the course's order."""
        from manyhands.learner.questions import questions

        notebooks = self.folder / "notebooks"
        seen = [(path.name, path.stat().st_mtime_ns) for path in sorted(notebooks.glob("*.ipynb"))]
        if self.asked[0] != seen:
            self.asked = (seen, questions(notebooks))
        return self.asked[1]


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _criteria(shown: dict[str, list[dict[str, Any]]], lab: dict[str, Any]) -> Iterator[Criterion]:
    """From a reference, {check: outputs}, and the released lab.

    A check that shows no record is one criterion: its output as a whole.
    """
    facts = [cell["metadata"].get("nbgrader", {}) for cell in lab["cells"]]
    points = {fact["grade_id"]: fact.get("points", 0) for fact in facts if "grade_id" in fact}
    for check, outputs in shown.items():
        records = [output["data"][MIME] for output in outputs if MIME in output.get("data", {})]
        if records:
            yield from (
                Criterion(
                    check,
                    criterion["name"],
                    criterion["text"],
                    criterion["points"],
                    criterion["status"] == BLOCKED,
                )
                for criterion in records[0]["criteria"]
            )
        else:
            yield Criterion(check, check, check.removesuffix("-check"), points[check])


class File:
    """The results on disk: one line for each change, the later one counts.

    Only the hub's own user may read it.
    """

    def __init__(self, folder: str | Path, board: Board) -> None:
        self.path, self.board = Path(folder) / NAME, board
        self._load()
        self._renew()

    def _load(self) -> None:
        """Into the board; a line that was cut off by a crash is passed over."""
        with suppress(FileNotFoundError), open(self.path, encoding="utf-8") as file:
            for line in file:
                try:
                    self.board.from_line(json.loads(line))
                except (ValueError, BadResultError) as problem:
                    print(
                        f"board: skipped a line of {self.path}: {problem}",
                        file=sys.stderr,
                        flush=True,
                    )

    def _renew(self) -> None:
        """Write the file anew, in one step."""
        from manyhands.shared.atomic import write_file

        write_file(self.path, "".join(json.dumps(line) + "\n" for line in self.board.as_lines()))
        self.file = open(self.path, "ab", buffering=0)  # noqa: SIM115 - lines are added to it
        self.most = self.file.tell() + LARGEST_BYTES

    def add(self, line: object) -> None:
        """Append a change.

        A full disk is told in the log: the board goes on, and a restart forgets the change.
        """
        try:
            self.file.write((json.dumps(line) + "\n").encode())
            if self.file.tell() > self.most:
                self.file.close()
                self._renew()
        except OSError as problem:
            print(f"board: {problem}", file=sys.stderr, flush=True)
