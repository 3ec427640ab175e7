"""The head of the board: how long the event still takes, when the board freezes, and the latest
entry.
"""

from __future__ import annotations

from datetime import datetime
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.hackathon.event.board_page import Board, Section
    from manyhands.hackathon.event.standings import Result


def head(board: Board) -> str:
    """The board's title, clock, latest entry and age, as HTML.

    Without the page's script, the clock names the times.
    """
    count = sum(len(one.results) for one in board.sections)
    when = datetime.fromtimestamp(board.now).strftime("%Y-%m-%d %H:%M:%S")
    judged = f"{count} {'entry' if count == 1 else 'entries'} judged"
    return (
        f"<h1>{escape(board.title)}</h1>{_clock(board)}{_latest(board)}"
        f'<p class="age">{judged}, as of <time data-at="{board.now:.0f}">{when}</time></p>'
    )


def _clock(board: Board) -> str:
    """When the event begins, ends and freezes.

    The script counts the seconds down from the same numbers.
    """
    if board.ends is None:
        return ""
    frozen = f' data-frozen="{board.frozen_from:.0f}"' if board.frozen_from is not None else ""
    return (
        f'<p id="clock" role="timer" data-begins="{board.begins:.0f}" '
        f'data-ends="{board.ends:.0f}"{frozen}><b>{_time_words(board, board.ends)}</b></p>'
    )


def _time_words(board: Board, ends: float) -> str:
    if board.now < board.begins:
        return f"Begins at {_time(board.begins)}"
    if board.now >= ends:
        return "The event is over"
    freezes = ""
    if board.frozen_from is not None and board.now < board.frozen_from:
        freezes = f", freezes at {_time(board.frozen_from)}"
    return f"Ends at {_time(ends)}{freezes}"


def latest(board: Board) -> tuple[Section, Result] | tuple[None, None]:
    """(the section, the result) of the entry that was handed in last of those that the board shows;
    two times None where it shows none.
    """
    found = [
        (result.at, result.number, place)
        for place, one in enumerate(board.sections)
        for result in one.results
    ]
    if not found:
        return None, None
    at, number, place = max(found)
    section = board.sections[place]
    return section, next(one for one in section.results if (one.at, one.number) == (at, number))


def _latest(board: Board) -> str:
    section, one = latest(board)
    if section is None or one is None:
        return ""
    score = "no score" if one.score is None else f"{one.score:.4g} {escape(section.unit)}"
    factor = "" if one.score is None else gain(one.score, section.baseline)
    against = f", a gain of {factor} over the baseline" if factor else ""
    return (
        f'<p class="news" role="status">Latest entry, {_time(one.at)}: <b>{escape(one.team)}</b>, '
        f"{escape(section.title)}: <b>{score}</b>{against}</p>"
    )


def gain(score: float | None, baseline: float | None) -> str:
    """By what factor a score is smaller than the baseline, as text; "" where there is no such
    factor.
    """
    if not score or score < 0 or not baseline:
        return ""
    factor = baseline / score
    return (
        f"{factor:.0f} ×" if factor >= 99.95 else f"{factor:.1f} ×" if factor >= 0.1 else "< 0.1 ×"
    )


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds):%H:%M}"
