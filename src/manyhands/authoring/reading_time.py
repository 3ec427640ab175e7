"""How many minutes a tutorial takes to read, counted from its source.

    python -m manyhands.authoring.reading_time            # a table: counted, and what the headers say
    python -m manyhands.authoring.reading_time --write    # raise headers and first cells that state less than that

A reader is assumed to take 200 words or 15 lines of code a minute, and 2 minutes for each
prediction. What is folded away, blank lines, and the cells that ask and settle predictions do not
count, nor do the minutes in which cells run. A header may state more than is counted, for example
where the reader works with commands.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from manyhands.units import find_root, units

if TYPE_CHECKING:
    from collections.abc import Sequence

WORDS_A_MINUTE, LINES_A_MINUTE, MINUTES_A_PREDICTION, STEP = 200, 15, 2, 5
FOLD = re.compile(r"<details>.*?</details>", re.S)
ASKED = re.compile(r"^(?:# )?(?:predict|settle)\(", re.M)
HEADER = re.compile(r'^(# %%.*unit=\{"minutes": )(\d+)', re.M)
FIRST_CELL = re.compile(r"(\*\*Minutes:\*\* )(\d+)")


class Counted(NamedTuple):
    """What a tutorial has to read, and the minutes that it takes."""

    words: int
    lines: int
    predictions: int
    minutes: int


def cells(source: str) -> list[tuple[bool, str]]:
    """The cells of a source in the percent form, as pairs (whether it is text, its content).

    The content has no comment signs.
    """
    parts = re.split(r"^# %%(?= |$)(.*)$", source, flags=re.M)
    cells_read = []
    for head, body in zip(parts[1::2], parts[2::2], strict=True):
        is_text = "[markdown]" in head
        cells_read.append(
            (is_text, re.sub(r"^# ?", "", body.strip(), flags=re.M) if is_text else body.strip())
        )
    return cells_read


def words(text: str) -> int:
    """How many words there are to read, what is folded away not counted."""
    return len(FOLD.sub("", text).split())


def counted(source: str) -> Counted:
    """What a tutorial's source has to read, and the minutes that it takes.

    They are rounded up to a multiple of 5.
    """
    texts = [body for is_text, body in cells(source) if is_text]
    codes = [body for is_text, body in cells(source) if not is_text]
    read = sum(map(words, texts))
    lines = sum(
        bool(line.strip()) for code in codes if not ASKED.search(code) for line in code.splitlines()
    )
    asked = sum(len(re.findall(r"^predict\(", code, re.M)) for code in codes)
    minutes = read / WORDS_A_MINUTE + lines / LINES_A_MINUTE + asked * MINUTES_A_PREDICTION
    return Counted(read, lines, asked, STEP * int(-(-minutes // STEP)))


def stated(source: str) -> tuple[int | None, ...]:
    """The minutes that the header and the first cell of a source state.

    None where one states none.
    """
    return tuple(
        int(match[2]) if (match := pattern.search(source)) else None
        for pattern in (HEADER, FIRST_CELL)
    )


def with_minutes(source: str, minutes: int) -> str:
    """The source with these minutes in its header and in its first cell."""
    for pattern in (HEADER, FIRST_CELL):
        source = pattern.sub(rf"\g<1>{minutes}", source, count=1)
    return source


def tutorials(root: str | Path | None = None) -> list[Path]:
    """The sources of all tutorials, in the order of the units."""
    root = Path(root or find_root())
    paths = [root / "sources" / "tutorial" / f"{unit.name}.py" for unit in units(root)]
    return [path for path in paths if path.is_file()]


def main(argv: Sequence[str] | None = None) -> None:
    """Print the minutes of each tutorial; with --write, raise those that are too low."""
    parser = argparse.ArgumentParser(
        prog="python -m manyhands.authoring.reading_time", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--write", action="store_true", help="raise the minutes that are too low")
    arguments = parser.parse_args(argv)
    print(
        "tutorial                            words  lines  predictions  counted  header  first cell"
    )
    for path in tutorials():
        source = path.read_text(encoding="utf-8")
        counts, (header, first) = counted(source), stated(source)
        honest = max(counts.minutes, *(value or 0 for value in (header, first)))
        print(
            f"{path.stem:<34}{counts.words:>7}{counts.lines:>7}{counts.predictions:>13}{counts.minutes:>9}{header or '-':>8}"
            f"{first or '-':>12}{'' if header == first == honest else '  too low'}"
        )
        if arguments.write:
            path.write_text(with_minutes(source, honest), encoding="utf-8")
    if arguments.write:
        print("Now run: manyhands build --no-execute, and python -m manyhands.units README.md")


if __name__ == "__main__":
    main()
