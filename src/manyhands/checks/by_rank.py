"""A picture of what was expected and what came, by rank, in the card of a failed criterion.

A diagnosis adds `"picture": by_rank.numbers(...)`, or `rows` or `samples`, to the details of a FAIL
line. A picture is a table whose last column is drawn, so the numbers are its text alternative. It
is not part of the plain lines or of the record. Its lines have the page's own colour, and its bars
have a contrast of 3 or more on a light and on a dark page.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from html import escape
from numbers import Real
from typing import TYPE_CHECKING, Any

from manyhands.checks.record import CLOSE, FAIL, PASS, cut, plain, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# ranks, runs of neighbouring rows of a rank, and characters of a text
MOST_RANKS, MOST_RUNS, LONGEST = 12, 40, 48
FILL = {PASS: "#2e8b57", FAIL: "#d1453b"}
SIGN = {PASS: "✓", FAIL: "✗"}
CELL = "padding: .1em .6em .1em 0; text-align: left; vertical-align: middle"
DRAWING = (
    '<svg aria-hidden="true" viewBox="0 0 200 16" preserveAspectRatio="none" '
    'style="display: block; width: 100%; min-width: 5em; height: 1.1em">{}</svg>'
)


@dataclass(frozen=True)
class Line:
    """A rank's line of a picture: name, whether it is right, both values as text, and drawing."""

    name: str
    right: bool
    expected: str
    got: str
    drawing: str


@dataclass(frozen=True)
class Picture:
    """A table with a line for each rank. `legend` says what is drawn."""

    title: str
    who: str
    legend: str
    lines: tuple[Line, ...]
    at_most: bool = False

    def html(self) -> str:
        """The table, with the ranks that are wrong first if there are too many to show."""
        shown = sorted(
            sorted(enumerate(self.lines), key=lambda numbered: numbered[1].right)[:MOST_RANKS]
        )
        more = len(self.lines) - len(shown)
        heads = (self.who, "at most" if self.at_most else "expected", "got", self.legend)
        head = "".join(
            f'<th scope="col" style="{CELL}"><small>{escape(name)}</small></th>' for name in heads
        )
        rest = f"<div><small>and {more} more</small></div>" if more else ""
        return (
            f'<div style="max-width: 38em; margin: .4em 0; overflow-x: auto"><table style="width: '
            f"100%; margin: 0; "
            'border-collapse: collapse; table-layout: auto; font-size: .92em">'
            f'<caption style="text-align: left"><small>{escape(self.title)}</small></caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{''.join(_row(line) for _, line in shown)}</tbody></table>"
            f"{rest}</div>"
        )


def numbers(
    what: str,
    expected: Any,
    got: Sequence[Any],
    ranks: Sequence[Any] | None = None,
    *,
    who: str = "rank",
    at_most: bool = False,
    within: float = 0.0,
) -> Picture | None:
    """A picture of one number for each rank, or None if it would show no difference.

    `what`: the number and its unit, such as "rows"; `expected`, `got`: lists by rank, where
    `expected` may be one number for all; `ranks`: their names; `at_most`: `expected` is a limit;
    `within`: the tolerance, which is relative for numbers above 1.
    """
    expected = expected if isinstance(expected, (list, tuple)) else [expected] * len(got)
    given = list(zip(expected, got, strict=True)) if len(expected) == len(got) else []
    expected, got = ([_number(pair[place]) for pair in given] for place in (0, 1))
    known = [value for value in (*expected, *got) if value is not None]
    low, high = min(known, default=0), max(known, default=0)
    dots = not at_most and (low < 0 or any(value % 1 for value in known))
    low, high = (low, high) if dots else (min(low, 0), high)
    lines = []
    # if the numbers are too few or too many, there are names, but nothing to draw
    for name, pair, want, have in zip(ranks or range(len(got)), given, expected, got, strict=False):
        right = _agree(want, have, at_most, within)
        drawing = (_dot if dots else _bar)(want, have, low, high, FILL[PASS if right else FAIL])
        texts = _in_words(*pair)
        lines.append(Line(str(name), right, texts[0], texts[1], drawing))
    legend = f"{'● got' if dots else '▬ got'}, ┃ {'at most' if at_most else 'expected'}"
    return _picture(f"{what} by {who}", who, legend, lines, at_most)


def rows(
    n: int,
    expected: Sequence[Sequence[int]],
    got: Sequence[Sequence[int]],
    ranks: Sequence[Any] | None = None,
) -> Picture | None:
    """A picture of which of the rows 0 to n - 1 each rank takes, or None if it shows no difference.

    `expected`, `got`: a list of rows for each rank.
    """
    lines = []
    for name, want, have in zip(ranks or range(len(got)), expected, got, strict=True):
        drawing = _lane(_runs(want), n, 1, 'fill="none" stroke="currentColor" stroke-opacity=".7"')
        wanted = set(want)
        drawing += _lane(
            _runs([row for row in have if row in wanted]), n, 9, f'fill="{FILL[PASS]}"'
        )
        drawing += _lane(
            _runs([row for row in have if row not in wanted]), n, 9, f'fill="{FILL[FAIL]}"'
        )
        lines.append(
            Line(
                str(name),
                sorted(want) == sorted(have),
                _rows(want),
                _rows(have),
                DRAWING.format(drawing),
            )
        )
    return _picture(
        f"rows by rank, of rows 0 to {n - 1}", "rank", "above: expected, below: got", lines
    )


def samples(n: int, got: Sequence[Sequence[int]], who: str = "rank") -> Picture | None:
    """A picture of which of the samples 0 to n - 1 each rank takes, where any rank may take any.

    Each sample may be taken only once. The last line has the samples that no rank takes.
    """
    taken = Counter(row for rows in got for row in rows)
    lines = []
    for name, rows in enumerate(got):
        twice = [row for row in rows if taken[row] > 1]
        lines.append(_share(str(name), rows, twice, n, "each once"))
    missing = [row for row in range(n) if row not in taken]
    lines += [_share("none", missing, missing, n, "no samples")] if missing else []
    return _picture(
        f"samples by {who}, of samples 0 to {n - 1}",
        who,
        "green: once, red: twice or not at all",
        lines,
    )


def _share(name: str, rows: Sequence[int], wrong: Sequence[int], n: int, expected: str) -> Line:
    drawing = _lane(_runs(rows), n, 5, f'fill="{FILL[PASS]}"') + _lane(
        _runs(wrong), n, 5, f'fill="{FILL[FAIL]}"'
    )
    return Line(name, not wrong, expected, _rows(rows, "sample"), DRAWING.format(drawing))


def _picture(
    title: str, who: str, legend: str, lines: Iterable[Line], at_most: bool = False
) -> Picture | None:
    return (
        Picture(title, who, legend, tuple(lines), at_most)
        if any(not line.right for line in lines)
        else None
    )


def _row(line: Line) -> str:
    state = PASS if line.right else FAIL
    cells = "".join(
        f'<td style="{CELL}">{text}</td>'
        for text in (escape(line.expected), f"{SIGN[state]} {escape(line.got)}")
    )
    return (
        f'<tr><th scope="row" style="{CELL}; font-weight: normal">{escape(line.name)}</th>{cells}'
        f'<td style="{CELL}; width: 45%">{line.drawing}</td></tr>'
    )


def _number(value: Any) -> float | None:
    """The value as a finite number, or None."""
    value = plain(value)
    real = isinstance(value, Real) and not isinstance(value, bool)
    fits = real and abs(value) < 1e300 and math.isfinite(value)
    return value if fits else None


def _agree(want: float | None, have: float | None, at_most: bool, within: float) -> bool:
    if want is None or have is None:
        return False
    allowed = max(within, CLOSE) * max(abs(want), 1)
    return have - want <= allowed and (at_most or want - have <= allowed)


def _in_words(want: Any, have: Any) -> list[str]:
    texts = [
        "none" if value is None else f"{value:,}" if type(value) is int else shorten(value)
        for value in (want, have)
    ]
    if texts[0] == texts[1] and want != have and None not in (_number(want), _number(have)):
        texts = [f"{float(value):.12g}" for value in (want, have)]
    return [cut(text, LONGEST) for text in texts]


def _place(value: float, low: float, high: float) -> float:
    """Where a value is on a drawing of 200 units, with a margin of 4 on each side."""
    return 4 + 192 * (value - low) / (high - low) if high > low else 100.0


def _mark(want: float, low: float, high: float) -> str:
    x = _place(want, low, high)
    return f'<rect x="{x - 1:.1f}" y="0" width="2" height="16" fill="currentColor"/>'


def _bar(want: float | None, have: float | None, low: float, high: float, colour: str) -> str:
    zero = _place(0, low, high) if high > low else 4
    width = 0 if have is None else _place(have, low, high) - zero if high > low else 0
    bar = f'<rect x="{zero:.1f}" y="3" width="{max(width, 1):.1f}" height="10" fill="{colour}"/>'
    return DRAWING.format(
        ("" if have is None else bar) + ("" if want is None else _mark(want, low, high))
    )


def _dot(want: float | None, have: float | None, low: float, high: float, colour: str) -> str:
    parts = "" if want is None else _mark(want, low, high)
    if have is not None:
        x = _place(have, low, high)
        if want is not None:
            start, stop = sorted((x, _place(want, low, high)))
            parts += (
                f'<rect x="{start:.1f}" y="7" width="{stop - start:.1f}" height="2" '
                f'fill="{colour}"/>'
            )
        parts += f'<rect x="{x - 3:.1f}" y="4" width="6" height="8" rx="3" fill="{colour}"/>'
    return DRAWING.format(parts)


def _runs(rows: Iterable[int]) -> list[list[int]]:
    """[first, last] of neighbouring rows."""
    runs: list[list[int]] = []
    for row in sorted(set(rows)):
        if runs and row == runs[-1][1] + 1:
            runs[-1][1] = row
        else:
            runs.append([row, row])
    return runs


def _lane(runs: Sequence[Sequence[int]], n: int, y: int, style: str) -> str:
    return "".join(
        f'<rect x="{4 + 192 * first / n:.1f}" y="{y}" width="{192 * (last + 1 - first) / n:.1f}" '
        f'height="6" {style}/>'
        for first, last in runs[:MOST_RUNS]
        if first >= 0 and last < n
    )


def _rows(rows: Sequence[int], word: str = "row") -> str:
    """`12 rows: 0-9, 12, 13`."""
    runs = ", ".join(
        str(first) if first == last else f"{first}-{last}"
        for first, last in _runs(rows)[:MOST_RUNS]
    )
    twice = " (some twice)" if len(set(rows)) < len(rows) else ""
    return (
        cut(
            f"{len(rows)} {word}{'s' * (len(rows) != 1)}: {runs}" if runs else f"no {word}s",
            LONGEST,
        )
        + twice
    )
