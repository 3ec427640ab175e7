"""The board of the hackathon: one page that needs nothing but itself, and a table for a
spreadsheet.

The page is complete without its script (`scores.js`), which counts down, looks for a newer page
once in a while and changes what differs, and shows the day again. No other script may run
(`policy`). What comes from teams, their names and the problems of their entries, is escaped.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
from dataclasses import dataclass
from datetime import datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.hackathon.event import board_head, day_replay, score_chart, standings

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from manyhands.hackathon.event.standings import Result

    Layout = tuple[int, tuple[int, int]]  # rows of a challenge, the size of its picture
    Waiting = tuple[str, str, float | None]  # team, challenge's title, about how many seconds


STYLE, SCRIPT = (
    Path(__file__).with_name(name).read_text(encoding="utf-8")
    for name in ("scores.css", "scores.js")
)
SCREEN = {1: (8, (960, 200)), 2: (8, (640, 260)), 3: (6, (440, 380)), 4: (3, (740, 140))}
# how many challenges: (rows of each on the big screen, the size of its picture, in the units of its
# letters) a cell that begins so is computed by a spreadsheet, also behind a semicolon, which
# separates cells in some countries
FORMULA = re.compile(r"(^|;)(?=\s*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20])")
COLUMNS = (
    '<th class="number">place<th>team<th class="number">score, {unit}<th class="number">gain'
    '<th class="number size">size<th class="when">handed in'
)
GAIN = "Lower is better. The gain says by what factor a score is smaller than the baseline."
SIZE = "The size counts the nodes of an entry's syntax tree."


@dataclass(frozen=True)
class Section:
    """A challenge on the board: its results in the order in which they were handed in."""

    title: str
    unit: str
    baseline: float
    results: list[Result]
    name: str


@dataclass(frozen=True)
class Board:
    """What the page shows.

    `waiting`: (team, challenge's title, about how many seconds or None) of each entry that waits;
    None where nothing is told of that. `note` is a sentence above all, or "". Times are seconds
    since 1970; `ends` and `frozen_from` are None where there is no event, or no freeze.
    """

    title: str
    sections: list[Section]
    counts: str
    begins: float
    until: float
    note: str = ""
    waiting: tuple[Waiting, ...] | None = ()
    now: float = 0.0
    ends: float | None = None
    frozen_from: float | None = None

    @property
    def active(self) -> list[Section]:
        """The sections with a judged entry, the one with the latest entry first."""
        there = [one for one in self.sections if one.results]
        return sorted(there, key=lambda one: -max(result.at for result in one.results))

    @property
    def quiet(self) -> list[Section]:
        """The sections without a judged entry, in the event's order."""
        return [one for one in self.sections if not one.results]


def policy() -> str:
    """What a browser may load and run for the page, as a Content-Security-Policy: the page itself
    and its script.
    """
    script = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{script}'; connect-src "
        "'self'; frame-src 'self' file:"
    )


def page(board: Board, screen: bool = False) -> str:
    """The page as HTML; with `screen` for a big screen: larger, the best only, no queue, at the end
    with a replay.
    """
    active = board.active
    layout = SCREEN[min(len(active), max(SCREEN))] if screen and active else None
    sections = "".join(_section(one, board, layout) for one in active) + _quiet(
        board.quiet, bool(screen and active)
    )
    kind = f' class="screen of{len(active)}"' if screen else ""
    note = f'<p class="note">{escape(board.note)}</p>' if board.note else ""
    queue = "" if screen or board.waiting is None else _queue(board.waiting)
    day = day_replay.controls(board, layout[0]) if layout else ""
    return (
        f'<!DOCTYPE html>\n<html lang="en"{kind}><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy()}">'
        f"<title>{escape(board.title)}</title><style>{STYLE}</style></head><body>"
        f'<header id="head">{board_head.head(board)}{note}</header>'
        f'<main id="board">{sections}</main><aside id="queue" aria-label="Queue">{queue}</aside>'
        f'<footer><div id="day">{day}</div><p id="lost" role="status"></p></footer>'
        f"<script>{SCRIPT}</script></body></html>\n"
    )


def _section(section: Section, board: Board, layout: Layout | None) -> str:
    """A challenge, with all rows, or on a big screen with the first of those that have a score."""
    rows = standings.table(section.results, board.counts)
    ways = standings.steps(section.results, board.counts)
    teams = [row.team for row in rows if row.team in ways]
    most, size = layout or (score_chart.NAMED, (score_chart.WIDTH, score_chart.HEIGHT))
    chart = score_chart.svg(
        ways, teams, section.unit, board.begins, board.until, section.baseline, size, most
    )
    shown = [row for row in rows if row.score is not None][:most] if layout else rows
    latest = board_head.latest(board)[1]
    lines = "".join(
        _row(row, place, teams, section.baseline, row is latest, bool(layout))
        for row, place in zip(shown, standings.places(rows), strict=False)
    )
    lines = lines or '<tr><td colspan="6">no entry has a score yet</td></tr>'
    first = standings.simplest(rows, section.baseline)
    prize = _prize(first, bool(layout)) if first else ""
    told = _baseline(section) if layout else f"{_baseline(section)} {GAIN} {SIZE}"
    columns = COLUMNS.format(unit=escape(section.unit))
    return (
        "<section "
        f'data-name="{escape(section.name)}"><h2>{escape(section.title)}</h2><p>{told}</p>{chart}<table>'
        f"<thead><tr>{columns}</thead><tbody>{lines}</tbody></table>{prize}</section>"
    )


def _baseline(section: Section) -> str:
    return f"Baseline (dashed): {section.baseline:g} {escape(section.unit)}."


def _quiet(sections: Sequence[Section], in_a_line: bool) -> str:
    """The challenges in which nothing has happened yet."""
    if not sections:
        return ""
    known = [
        f"<b>{escape(one.title)}</b> (baseline: {one.baseline:g} {escape(one.unit)})"
        for one in sections
    ]
    if in_a_line:
        return f'<p class="quiet">No entry has been judged yet: {", ".join(known)}</p>'
    listed = "".join(f"<li>{one}</li>" for one in known)
    return (
        f'<section class="quiet"><h2>No entry has been judged yet</h2><ul>{listed}</ul></section>'
    )


def _prize(first: Result, short: bool) -> str:
    """Short for the big screen, where a column may be narrow, and what does not fit is cut off."""
    team = f"<b>{escape(first.team)}</b>"
    return (
        f"<p>Simplest, {first.size} nodes: {team}</p>"
        if short
        else f"<p>Simplest: {team}, {first.size} nodes, of those better than the baseline.</p>"
    )


def _row(
    row: Result, place: int | None, teams: list[str], baseline: float, latest: bool, short: bool
) -> str:
    at = teams.index(row.team) if row.team in teams else score_chart.NAMED
    colour = f" t{at}" if at < score_chart.NAMED else ""
    remarks = ["judged with the seeds of an earlier record"] if row.seeds_of else []
    remarks += [f"looked at by {row.looked}"] if row.looked and not short else []
    said = f" <small>({escape('; '.join(remarks))})</small>" if remarks else ""
    begins, team = (
        '<tr class="latest">' if latest else "<tr>",
        f'<td class="team{colour}">{escape(row.team)}{said}',
    )
    if row.score is None:
        return (
            f'{begins}<td class="number">{team}<td class="problem" '
            f'colspan="4">{escape(row.problem)}</tr>'
        )
    return (
        f'{begins}<td class="number">{place}{team}<td class="number">{row.score:.4g}<td '
        f'class="number">{board_head.gain(row.score, baseline)}<td class="number '
        f'size">{"" if row.size is None else row.size}<td class="when">{_when(row.at, short)}</tr>'
    )


def _queue(waiting: Collection[Waiting]) -> str:
    if not waiting:
        return "<h2>No entry is waiting.</h2>"
    rows = "".join(
        f"<tr><td class=number>{number}<td class=team>{escape(team)}<td>{escape(title)}<td "
        f"class=number>{duration(about_s)}</tr>"
        for number, (team, title, about_s) in enumerate(waiting, 1)
    )
    return (
        f"<h2>Waiting entries: {len(waiting)}</h2><table><thead><tr><th "
        "class=number>turn<th>team<th>challenge<th class=number>result in "
        f"about</thead><tbody>{rows}</tbody></table>"
    )


def duration(seconds: float | None) -> str:
    """A time to wait, in words."""
    if seconds is None:
        return "not known yet"
    if seconds <= 0:
        return "any moment"  # it takes longer than others have
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def as_csv(board: Board) -> str:
    """All results, also of entries that do not count, and the place of those that do."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(
        [
            "challenge",
            "place",
            "team",
            "score",
            "unit",
            "size",
            "entry",
            "handed in",
            "problem",
            "sha256",
            "seeds of",
            "looked at by",
        ]
    )
    for section in board.sections:
        rows = standings.table(section.results, board.counts)
        places = dict(zip(rows, standings.places(rows), strict=True))
        for one in section.results:
            score = "" if one.score is None else one.score
            cells = [
                section.name,
                places.get(one) or "",
                one.team,
                score,
                one.unit,
                one.size or "",
                one.number or "",
                datetime.fromtimestamp(one.at).astimezone().isoformat(timespec="seconds"),
                one.problem,
                one.sha256,
                one.seeds_of,
                one.looked,
            ]
            writer.writerow(
                [FORMULA.sub(r"\1'", cell) if isinstance(cell, str) else cell for cell in cells]
            )
    return text.getvalue()


def _when(at: float, short: bool) -> str:
    """The time of day; the seconds, which tell equal scores apart, where there is room for them."""
    when = datetime.fromtimestamp(at)
    return f"{when:%H:%M}" if short else f"{when:%H:%M}<small>:{when:%S}</small>"
