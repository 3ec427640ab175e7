"""Where in the learner's text a frame of a rank stands: "line 3 of this cell"."""

from __future__ import annotations

import linecache
import re
from difflib import SequenceMatcher
from os.path import basename
from typing import TYPE_CHECKING, NamedTuple

from manyhands.cluster.faults.fault_messages import SENTENCES
from manyhands.cluster.on_rank.stack import TIMED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from manyhands.cluster.payloads import Note, Spot

# where Python ends a line, and a notebook too: str.splitlines would also end one at a form feed
LINE_END = re.compile(r"\r\n|\r|\n")


class Cell(NamedTuple):
    """A cell that was sent to the ranks."""

    lines: list[tuple[int, str]]  # (number that the learner sees, text) of what Python compiles
    inner: str | None  # the file of what a second magic runs


class Places:
    """Turns (file, line) of a frame into "line 3 of this cell".

    Knows the cells that were sent to the ranks.
    """

    def __init__(self) -> None:
        self._cells: dict[str, Cell] = {}

    def add(self, code: str, first_line: int) -> str:
        """Remember a cell; `first_line` is the number that the learner sees beside its first line.

        Returns its file's name.
        """
        from ipykernel.compiler import get_file_name

        name, lines, inner = basename(get_file_name(code)), _numbered(code, first_line), None
        magic, *body = LINE_END.split(code.lstrip(), maxsplit=1)
        if magic.startswith("%%") and body:  # `%%time`: the rest is compiled by itself
            inner = self.add(body[0] if body[0].endswith("\n") else body[0] + "\n", lines[0][0] + 1)
        self._cells[name] = Cell(lines, inner)
        return name

    def find(self, lines: Sequence[Spot], this_cell: str) -> tuple[str, str, int]:
        """(place, source, line number) of the innermost of the learner's lines."""
        lines = self._own(lines, this_cell)
        return self._name(lines[-1], this_cell) if lines else ("", "", 0)

    def callers(self, lines: Sequence[Spot], this_cell: str) -> list[tuple[str, str]]:
        """[(place, source), ...] of the learner's lines that led there, innermost first."""
        return [
            self._name(spot, this_cell)[:2] for spot in reversed(self._own(lines, this_cell)[:-1])
        ]

    def named(self, file: str, line: int, this_cell: str) -> str:
        """The words for one line of a file, as `find` has them."""
        return self._name(
            {"file": basename(file), "path": file, "line": line, "function": "a function"},
            this_cell,
        )[0]

    def _own(self, lines: Sequence[Spot], this_cell: str) -> list[Spot]:
        """The lines without those of second magics.

        What `%%time` runs has no name of its own: it is taken for this cell's.
        """
        *magics, innermost = self._files(this_cell)
        named: list[Spot] = [
            {**spot, "file": innermost} if magics and spot["file"].startswith(TIMED) else spot
            for spot in lines
        ]
        named = [spot for spot in named if not spot["file"].startswith(TIMED)]
        return [spot for spot in named if spot["file"] not in magics] or named

    def _files(self, cell: str) -> list[str]:
        """The file of a cell, and those of what its magics run."""
        inner = self._cells[cell].inner if cell in self._cells else None
        return [cell, *(self._files(inner) if inner else [])]

    def _name(self, spot: Spot, this_cell: str) -> tuple[str, str, int]:
        if spot["file"] in self._cells:
            lines = self._cells[spot["file"]].lines
            shown, source = (
                lines[spot["line"] - 1] if 0 < spot["line"] <= len(lines) else (spot["line"], "")
            )
            if spot["file"] in self._files(this_cell):
                return SENTENCES["this cell"].format(line=shown), source, shown
            return (
                SENTENCES["other cell"].format(
                    line=shown, head=lines[0][1].strip() if lines else ""
                ),
                source,
                shown,
            )
        source = linecache.getline(spot["path"], spot["line"])
        if "ipykernel_" in spot["path"] or spot["path"].startswith("<"):
            return (
                SENTENCES["function"].format(line=spot["line"], function=spot["function"]),
                source,
                spot["line"],
            )
        return SENTENCES["file"].format(line=spot["line"], file=spot["file"]), source, spot["line"]


def spot_of(note: Note) -> Spot:
    """The line of a call, for `Places.find`."""
    return {"path": "", "function": "", "file": note["file"], "line": note["line"]}


def _numbered(code: str, first_line: int) -> list[tuple[int, str]]:
    r"""[(number, text), ...] of the lines that Python compiles.

    IPython drops empty ones before the first, and joins those of a `!command \`.
    """
    from IPython.core.inputtransformer2 import TransformerManager

    lines = list(enumerate(LINE_END.split(code.rstrip()), first_line))
    while lines and not lines[0][1].strip():
        del lines[0]
    compiled = LINE_END.split(TransformerManager().transform_cell(code).rstrip())
    if len(compiled) == len(lines):
        return lines
    changes = SequenceMatcher(
        None,
        [text.strip() for _, text in lines],
        [text.strip() for text in compiled],
        autojunk=False,
    ).get_opcodes()
    return [
        line for _, first, _, start, end in changes for line in lines[first : first + end - start]
    ]
