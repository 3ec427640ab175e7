"""The replay of the day: what the big screen's script shows again when the event is over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from manyhands.hackathon.event import score_chart, standings

if TYPE_CHECKING:
    from manyhands.hackathon.event.board_page import Board, Section


class SectionOfDay(TypedDict):
    """A challenge in the data of the page's script."""

    name: str
    title: str
    unit: str
    baseline: float
    teams: list[list[Any]]  # each a team and its `standings.Way`


class Day(TypedDict):
    """The data of the page's script."""

    begins: float
    until: float
    left: int
    right: int
    most: int
    sections: list[SectionOfDay]


def day(board: Board, most: int) -> Day:
    """For each section the score that counted for each team, and from when on.

    Teams are in the order of the end, which is the order of their colours. `most` is how many rows
    the screen has for a challenge.
    """
    return {
        "begins": board.begins,
        "until": board.until,
        "left": score_chart.LEFT,
        "right": score_chart.RIGHT,
        "most": most,
        "sections": [_section(section, board.counts) for section in board.active],
    }


def _section(section: Section, counts: str) -> SectionOfDay:
    ways = standings.steps(section.results, counts)
    teams = [row.team for row in standings.table(section.results, counts) if row.team in ways]
    return {
        "name": section.name,
        "title": section.title,
        "unit": section.unit,
        "baseline": section.baseline,
        "teams": [[team, ways[team]] for team in teams],
    }
