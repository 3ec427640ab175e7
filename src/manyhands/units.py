"""The units of the course: their list (`units.toml`), and what of them is there in a clone.

The README's table is made from it: `python -m manyhands.units README.md` writes it anew.
"""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from manyhands import repository, toml

MARKS = ("<!-- units: written by `python -m manyhands.units README.md` -->", "<!-- /units -->")
NO_CLONE = (
    "This is not a clone of manyhands. The notebooks are in a clone and not in the installed "
    "package, so change into its folder, or name it in MANYHANDS_ROOT."
)


class NotACloneError(RuntimeError):
    """There is no clone of the course where we are."""

    def __init__(self) -> None:
        address = repository.address()
        get = f" To get one: git clone {address}" if repository.is_known(address) else ""
        super().__init__(f"{NO_CLONE}{get}")


def find_root(start: str | Path | None = None) -> Path:
    """Find the folder of the clone.

    It is `MANYHANDS_ROOT`, or the nearest above `start`, or that of the installed package.
    """
    if named := os.environ.get("MANYHANDS_ROOT"):
        return Path(named).resolve()
    here = Path(start or Path.cwd()).resolve()
    for folder in (here, *here.parents, Path(__file__).resolve().parents[2]):
        if _is_clone(folder):
            return folder
    raise NotACloneError


def _is_clone(folder: Path) -> bool:
    try:
        return 'name = "manyhands"' in (folder / "pyproject.toml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False


@dataclass(frozen=True)
class Unit:
    """One unit, seen from a clone."""

    root: Path
    name: str  # NN_topic
    title: str
    framework: str
    sentence: str = ""  # what the unit does, on the web site
    # of the tutorial's processes at their peak: `python -m benchmarks memory`
    memory_gib: float | None = None
    torch: str = ""  # the oldest PyTorch on which each cell runs, where older ones lack something

    @property
    def number(self) -> str:
        """The number of the unit, two digits: `06`."""
        return self.name[:2]

    def _there(self, path: str) -> str | None:
        return path if (self.root / path).is_file() else None

    @property
    def tutorial(self) -> str | None:
        """The tutorial notebook's path inside the clone, or None while it is planned."""
        return self._there(f"notebooks/{self.name}.ipynb")

    @property
    def lab(self) -> str | None:
        """The path of its lab in the clone, or None as long as there is none."""
        return self._there(f"labs/{self.name}/{self.name}.ipynb")

    @property
    def slides(self) -> str | None:
        """The path of its deck in the clone, PDF rather than HTML, or None."""
        return self._there(f"slides/built/{self.name}.pdf") or self._there(
            f"slides/built/{self.name}.html"
        )

    @property
    def planned(self) -> bool:
        """Whether its tutorial or its lab is still missing."""
        return not (self.tutorial and self.lab)

    @property
    def coming(self) -> bool:
        """Whether neither its sources nor, in a clone without sources, its notebooks are there."""
        if (self.root / "sources").is_dir():
            return not all(
                self._there(f"sources/{kind}/{self.name}.py") for kind in ("tutorial", "labs")
            )
        return self.planned

    @cached_property
    def facts(self) -> dict[str, dict[str, Any]]:
        """Return what the sources say of themselves, by kind of notebook.

        `{"tutorial": {"minutes": ..., "ranks": ...}, "lab": {...}}`.
        """
        file = self.root / ".course" / "facts.json"  # on an attendee's server, which has no sources
        if file.is_file():
            return json.loads(file.read_text(encoding="utf-8"))[self.name]
        sources = {"tutorial": "tutorial", "lab": "labs"}
        return {
            part: _facts(self.root / "sources" / folder / f"{self.name}.py")
            for part, folder in sources.items()
        }

    @property
    def minutes(self) -> tuple[int | None, int | None]:
        """Minutes of the tutorial and of the lab, each a number or None."""
        return self.facts["tutorial"].get("minutes"), self.facts["lab"].get("minutes")

    @property
    def ranks(self) -> int | None:
        """How many ranks its notebooks start, as their sources say; None if they do not."""
        return self.facts["tutorial"].get("ranks") or self.facts["lab"].get("ranks")


def _facts(source: Path) -> dict[str, Any]:
    """The `unit={...}` of a source's first cell header; nothing where there is none."""
    if not source.is_file():
        return {}
    for line in source.read_text(encoding="utf-8").splitlines():
        if line.startswith("# %%") and "unit=" in line:
            return json.JSONDecoder().raw_decode(line.split("unit=", 1)[1])[0]
    return {}


@cache
def _catalogue() -> dict[str, Any]:
    return toml.loads(files("manyhands").joinpath("units.toml").read_text(encoding="utf-8"))


def is_number(word: str, number: str) -> bool:
    """Whether what was typed is the number of a unit: `6`, `06` or `006` is "06"."""
    return word.isascii() and word.isdigit() and word.lstrip("0").zfill(2) == number


def units(root: str | Path | None = None) -> list[Unit]:
    """All units of the course, in order."""
    root = Path(root or find_root())
    return [Unit(root, **unit) for unit in _catalogue()["unit"]]


def paths() -> dict[str, list[str]]:
    """`{"one_day": [numbers], "two_days_more": [numbers], "three_days_more": [numbers]}`."""
    return _catalogue()["paths"]


def minutes_in_class() -> dict[str, int]:
    """Return `{"one_day": minutes, "two_days": minutes, "three_days": minutes}` of the schedules.

    Breaks are not counted.
    """
    return _catalogue()["minutes_in_class"]


def minutes_text(unit: Unit) -> str:
    """`15 + 40`: the tutorial's minutes and the lab's."""
    return " + ".join("?" if part is None else str(part) for part in unit.minutes)


def readme_table(root: str | Path | None = None) -> str:
    """The table of units that stands in the README, between its marks."""
    lines = [
        "| # | unit | framework | minutes | ranks | memory | state |",
        "|---|---|---|---|---|---|---|",
    ]
    for unit in units(root):
        if unit.planned:
            row = (unit.number, unit.title, unit.framework, "", "", "", "coming")
        else:
            memory = f"{unit.memory_gib} GiB" if unit.memory_gib else ""
            row = (
                unit.number,
                f"[{unit.title}]({unit.tutorial})",
                unit.framework,
                minutes_text(unit),
                str(unit.ranks or ""),
                memory,
                f"[lab](labs/{unit.name}), ready",
            )
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def with_table(text: str, table: str) -> str:
    """`text` with the table between the marks replaced."""
    before, mark, rest = text.partition(MARKS[0])
    _, closed, after = rest.partition(MARKS[1])
    if not (mark and closed):
        raise ValueError(f"The file does not contain the two marks {MARKS[0]!r} and {MARKS[1]!r}.")
    return f"{before}{MARKS[0]}\n{table}\n{MARKS[1]}{after}"


def main(argv: Sequence[str]) -> None:
    """Write the table of units anew into each of the files, such as README.md."""
    for name in argv:
        path = Path(name)
        path.write_text(
            with_table(path.read_text(encoding="utf-8"), readme_table()), encoding="utf-8"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
