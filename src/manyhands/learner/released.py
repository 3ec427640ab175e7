"""The labs that a class has released: what lies in the exchange to be fetched, and when it is due.

    EXCHANGE/manyhands/due.json    {"06_ddp": {"until": "2026-12-01T09:00:00+00:00", "shown": "2026-12-01 18:00 JST"}}

`shown` is in the time zone of the machine that has released it: a container or a node may have
another.
"""

import json
from pathlib import Path

COURSE = "manyhands"  # nbgrader's name of it


def due_file(exchange: str | Path) -> Path:
    """Where the exchange tells when labs are due; the instructor writes it, everybody reads it."""
    return Path(exchange) / COURSE / "due.json"


def due_in(exchange: str | Path) -> list[tuple[str, str]]:
    """Return [(lab's name, when it is due as people read it)], the next one first.

    [] where nothing is told, or nothing that can be read.
    """
    try:
        dates = json.loads(due_file(exchange).read_text(encoding="utf-8"))
        return [
            (name, str(date["shown"]))
            for name, date in sorted(dates.items(), key=lambda item: item[1]["until"])
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []


def labs_in(exchange: str | Path) -> list[str]:
    """The names of the labs that are in the exchange to be fetched."""
    return sorted(
        path.name for path in (Path(exchange) / COURSE / "outbound").glob("*") if path.is_dir()
    )
