"""The board of the hackathon: one self-contained page, and a table for a spreadsheet.

The page is complete without its script (`scores.js`), which counts down, looks for a newer page
once in a while and changes what differs, and shows the day again. No other script may run
(`policy`). What comes from teams, their names and the problems of their entries, is escaped.
"""

from __future__ import annotations

import base64
import csv
import functools
import hashlib
import io
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from manyhands.hackathon.event import board_head, day_replay, score_chart, standings
from manyhands.shared import html_template

if TYPE_CHECKING:
    from jinja2 import Template

    from manyhands.hackathon.event.standings import Result

    Layout = tuple[int, tuple[int, int]]  # rows of a challenge, the size of its picture
    Waiting = tuple[str, str, float | None]  # team, challenge's title, about how many seconds


STYLE, SCRIPT = (
    Path(__file__).with_name(name).read_text(encoding="utf-8")
    for name in ("scores.css", "scores.js")
)
# how many challenges: (rows of each on the big screen, the size of its picture, in the units of its
# letters)
SCREEN = {1: (8, (960, 200)), 2: (8, (640, 260)), 3: (6, (440, 380)), 4: (3, (740, 140))}
# a cell that begins so is computed by a spreadsheet, also behind a semicolon, which separates cells
# in some countries
FORMULA = re.compile(r"(^|;)(?=\s*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20])")


@dataclass(frozen=True)
class Section:
    """A challenge on the board: its results in the order in which they were handed in."""

    title: str
    unit: str
    baseline: float
    results: list[Result]
    name: str


class Line(NamedTuple):
    """A line of a challenge's table.

    It has a result, its place, the class of its team's colour, what is remarked, and whether it is
    the latest entry.
    """

    result: Result
    place: int | None
    colour: str
    remarks: list[str]
    latest: bool


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
        there = [section for section in self.sections if section.results]
        return sorted(there, key=lambda section: -max(result.at for result in section.results))

    @property
    def quiet(self) -> list[Section]:
        """The sections without a judged entry, in the event's order."""
        return [section for section in self.sections if not section.results]


def policy() -> str:
    """What a browser may load and run for the page, as a Content-Security-Policy.

    That is the page itself and its script.
    """
    script = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{script}'; connect-src "
        "'self'; frame-src 'self' file:"
    )


def page(board: Board, screen: bool = False) -> str:
    """The page as HTML, from the template scores.html.

    With `screen` it is for a big screen: larger, the best only, no queue, at the end with a replay.
    """
    active = board.active
    layout = SCREEN[min(len(active), max(SCREEN))] if screen and active else None
    latest_in, latest = board_head.latest(board)
    return _template().render(
        board=board,
        screen=screen,
        brief=layout is not None,
        policy=policy(),
        style=STYLE,
        script=SCRIPT,
        count=sum(len(section.results) for section in board.sections),
        times=board_head.times(board),
        latest=latest,
        latest_in=latest_in,
        sections=[_section(section, board, latest, layout) for section in active],
        waiting=None if screen else board.waiting,
        day=day_replay.day(board, layout[0]) if layout and board_head.is_over(board) else None,
    )


@functools.cache
def _template() -> Template:
    environment = html_template.environment(__package__)
    environment.filters |= {
        "gain": board_head.gain,
        "duration": duration,
        "time_of_day": board_head.time_of_day,
        "seconds": lambda at: f"{datetime.fromtimestamp(at):%S}",  # tell equal scores apart
        "date_and_time": lambda at: f"{datetime.fromtimestamp(at):%Y-%m-%d %H:%M:%S}",
    }
    return environment.get_template("scores.html")


def _section(
    section: Section, board: Board, latest: Result | None, layout: Layout | None
) -> tuple[Section, str, list[Line], Result | None]:
    """A challenge, its chart as SVG, its lines, and the simplest good entry.

    The lines are all of the table, or on a big screen the first ones that have a score.
    """
    rows = standings.table(section.results, board.counts)
    ways = standings.steps(section.results, board.counts)
    teams = [row.team for row in rows if row.team in ways]
    most, size = layout or (score_chart.NAMED, (score_chart.WIDTH, score_chart.HEIGHT))
    chart = score_chart.svg(
        ways, teams, section.unit, board.begins, board.until, section.baseline, size, most
    )
    colours = {team: f" t{place}" for place, team in enumerate(teams[: score_chart.NAMED])}
    lines = [
        Line(
            row, place, colours.get(row.team, ""), _remarks(row, layout is not None), row is latest
        )
        for row, place in zip(rows, standings.places(rows), strict=True)
        if row.score is not None or not layout
    ]
    return (
        section,
        chart,
        lines[:most] if layout else lines,
        standings.simplest(rows, section.baseline),
    )


def _remarks(row: Result, brief: bool) -> list[str]:
    remarks = ["judged with the seeds of an earlier record"] if row.seeds_of else []
    return remarks + ([f"looked at by {row.looked}"] if row.looked and not brief else [])


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
        for result in section.results:
            score = "" if result.score is None else result.score
            cells = [
                section.name,
                places.get(result) or "",
                result.team,
                score,
                result.unit,
                result.size or "",
                result.number or "",
                datetime.fromtimestamp(result.at).astimezone().isoformat(timespec="seconds"),
                result.problem,
                result.sha256,
                result.seeds_of,
                result.looked,
            ]
            writer.writerow(
                [FORMULA.sub(r"\1'", cell) if isinstance(cell, str) else cell for cell in cells]
            )
    return text.getvalue()
