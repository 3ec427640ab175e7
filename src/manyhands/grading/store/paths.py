"""Where a class's files stand.

Everything of a class lies in one folder, `classroom/` in the clone or `MANYHANDS_CLASSROOM`:
nbgrader's gradebook, what was received and collected, the grades with their history, the feedback
pages. The exchange, which attendees must reach, is `exchange/` in it, or `MANYHANDS_EXCHANGE`.
"""

import os
import re
from pathlib import Path

STUDENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}")
# a file in the hub's folder, where accounts have the names of the machine's own users, and their
# numbers
OF_THE_MACHINE = "people_are_users"


def folder_of(root: str | Path) -> Path:
    """The folder of the class that belongs to this clone."""
    named = os.environ.get("MANYHANDS_CLASSROOM")
    return Path(named).resolve() if named else Path(root).resolve() / "classroom"


def exchange_of(root: str | Path) -> str:
    """The exchange's folder, as a text."""
    return os.environ.get("MANYHANDS_EXCHANGE") or str(folder_of(root) / "exchange")
