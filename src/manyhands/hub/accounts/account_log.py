"""What was done with accounts, and every log-in.

The log has one JSON object a line, which is appended and never changed.
"""

from __future__ import annotations

import getpass
import json
import os
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


NAME = "log.jsonl"


def write(folder: str | Path, action: str, name: str | None = None, **facts: object) -> None:
    """Append one line to the log in `folder`; readable by its owner alone."""
    line = {
        "when": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
        "action": action,
        "account": name,
        "by": _who(),
        **facts,
    }
    handle = os.open(Path(folder) / NAME, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        # one write: lines of two processes never mix; ASCII: no name ends a line or moves a cursor
        os.write(handle, (json.dumps(line) + "\n").encode())
    finally:
        os.close(handle)


def read(folder: str | Path) -> list[dict[str, Any]]:
    """All lines, as dictionaries; a line that was cut off by a crash is passed over."""
    lines: list[dict[str, Any]] = []
    with suppress(FileNotFoundError):
        for line in (Path(folder) / NAME).read_text(encoding="utf-8").split("\n"):
            with suppress(ValueError):
                lines.append(json.loads(line))
    return lines


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
