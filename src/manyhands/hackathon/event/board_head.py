"""The head of the board: the event's times, and the latest entry."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.hackathon.event.board_page import Board, Section
    from manyhands.hackathon.event.standings import Result


def times(board: Board) -> str:
    """When the event begins, ends and freezes.

    This is for readers of the page without its script, which counts the seconds down.
    """
    if board.ends is None:
        return ""
    if board.now < board.begins:
        return f"Begins at {time_of_day(board.begins)}"
    if is_over(board):
        return "The event is over"
    freezes = ""
    if board.frozen_from is not None and board.now < board.frozen_from:
        freezes = f", freezes at {time_of_day(board.frozen_from)}"
    return f"Ends at {time_of_day(board.ends)}{freezes}"


def is_over(board: Board) -> bool:
    """Whether the board is that of an event that has ended."""
    return board.ends is not None and board.now >= board.ends


def latest(board: Board) -> tuple[Section, Result] | tuple[None, None]:
    """(the section, the result) of the latest entry that the board shows.

    The latest entry is the one that was handed in last. Two times None where the board shows none.
    """
    entries = [
        (result.at, result.number, place)
        for place, section in enumerate(board.sections)
        for result in section.results
    ]
    if not entries:
        return None, None
    at, number, place = max(entries)
    section = board.sections[place]
    return section, next(
        result for result in section.results if (result.at, result.number) == (at, number)
    )


def gain(score: float | None, baseline: float | None) -> str:
    """By what factor a score is smaller than the baseline, as text.

    It is "" where there is no such factor.
    """
    if not score or score < 0 or not baseline:
        return ""
    factor = baseline / score
    return (
        f"{factor:.0f} ×" if factor >= 99.95 else f"{factor:.1f} ×" if factor >= 0.1 else "< 0.1 ×"
    )


def time_of_day(seconds: float) -> str:
    """The hour and the minute of a time in seconds since 1970, as this machine's clock shows it."""
    return f"{datetime.fromtimestamp(seconds):%H:%M}"
