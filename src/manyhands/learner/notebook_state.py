"""How far the learner is in a notebook, from the cells that have run.

`manyhands.learner.cells_run` notes these.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manyhands.units import Unit

LONGEST = 70  # characters of a heading or a line of code


@dataclass(frozen=True)
class Cell:
    """A code cell that is not empty."""

    id: str
    heading: str  # above it
    line: str  # its first one that is neither a magic nor a comment
    asked: int  # questions that it asks the learner to predict


@dataclass(frozen=True)
class Place:
    """Where the learner has run a cell last."""

    unit: str  # its name
    name: str  # the notebook's path inside `work`
    cell: Cell | None  # None if the notebook no longer has it
    number: int  # of the cell, from 1, among `total`
    total: int


def cells_in(path: Path) -> tuple[Cell, ...]:
    """The code cells of a notebook, in order; none if it cannot be read."""
    try:
        stat = path.stat()
        return _cells_in(path, stat.st_mtime_ns, stat.st_size)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ()


@functools.lru_cache(maxsize=100)
def _cells_in(path: Path, *version: int) -> tuple[Cell, ...]:
    """Keep what a version of the file holds.

    The page is often written anew, and few notebooks change.
    """
    heading = ""
    cells: list[Cell] = []
    for cell in json.loads(path.read_bytes())["cells"]:
        lines = "".join(cell["source"]).splitlines()
        if cell["cell_type"] == "markdown":
            heading = _last_heading(lines) or heading
        elif cell["cell_type"] == "code" and any(line.strip() for line in lines):
            asked = sum(line.startswith("predict(") for line in lines)
            cells.append(Cell(cell.get("id", ""), _short(heading), _short(_telling(lines)), asked))
    return tuple(cells)


def _last_heading(lines: Sequence[str]) -> str:
    """Return the text of the last heading among lines of Markdown, or "".

    A comment in a block of code is none.
    """
    heading, in_code = "", False
    for line in lines:
        in_code ^= line.startswith("```")
        heading = line.lstrip("#").strip() if line.startswith("#") and not in_code else heading
    return heading


def _telling(lines: Sequence[str]) -> str:
    """The line by which a reader recognizes the cell."""
    stripped = [line.strip() for line in lines if line.strip()]
    return next((line for line in stripped if line[0] not in "%#"), stripped[0])


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1].rstrip() + "…"


def tutorial_run(unit: Unit, entry: Mapping[str, Any]) -> tuple[int, int]:
    """(how many of its cells have run, how many there are) of the learner's copy of the tutorial.

    If there is also a newer copy next to it (`manyhands lab --new`), it is the copy of which more
    has run.
    """
    counted = [
        _counted(unit, name, ran)
        for name, ran in entry.get("ran", {}).items()
        if name.startswith(f"{unit.name}_tutorial.")
    ]
    return max(counted, key=lambda pair: pair[0] / max(1, pair[1]), default=(0, 0))


def _counted(unit: Unit, name: str, ran: Collection[str]) -> tuple[int, int]:
    cells = cells_in(unit.root / "work" / name)
    return sum(cell.id in ran for cell in cells), len(cells)


def questions_in(unit: Unit) -> int:
    """How many questions the tutorial asks the learner to predict; 0 if it cannot be read."""
    return sum(cell.asked for cell in cells_in(unit.root / (unit.tutorial or "")))


def left_off(root: str | Path, done: Mapping[str, Mapping[str, Any]]) -> Place | None:
    """The `Place` of the cell that was run last, or None.

    A notebook that no longer exists counts as not run.
    """
    last = [
        (datetime.fromisoformat(entry["last"]["when"]), unit, entry["last"])
        for unit, entry in done.items()
        if "last" in entry
    ]
    for _, unit, where in sorted(last, key=lambda run: run[0], reverse=True):
        path = Path(root) / "work" / where["notebook"]
        if path.is_file():
            cells = cells_in(path)
            numbered = zip(count(1), cells)
            number, cell = next(
                ((n, cell) for n, cell in numbered if cell.id == where["cell"]), (0, None)
            )
            return Place(unit, where["notebook"], cell, number, len(cells))
    return None
