"""The replay of the day: what the big screen's script shows again when the event is over."""

from __future__ import annotations

import json
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


def controls(board: Board, most: int) -> str:
    """The buttons and the day's data, as HTML; "" before the end.

    Without the script, nothing of it is seen.
    """
    if board.ends is None or board.now < board.ends:
        return ""
    # so that no text can end the element
    data = json.dumps(day(board, most)).replace("<", "\\u003c")
    return (
        '<button id="play" hidden>Replay the day</button><span id="replaying" hidden><label>Time '
        '<input id="at" type="range" min="0" max="1000" value="0"></label> <button '
        'id="pause">Pause</button> <button id="close">Close</button></span><script '
        f'type="application/json" id="data">{data}</script>'
    )


def day(board: Board, most: int) -> Day:
    """For each section the score that counted for each team, and from when on; teams in the order
    of the end, which is the order of their colours. `most` is how many rows the screen has for a
    challenge.
    """
    return {
        "begins": board.begins,
        "until": board.until,
        "left": score_chart.LEFT,
        "right": score_chart.RIGHT,
        "most": most,
        "sections": [_section(one, board.counts) for one in board.active],
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
