"""What a team is told of its entries, at an event in a folder and at one on a hub."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from manyhands.hackathon.event import fair_queue, standings
from manyhands.hackathon.event.board_page import duration
from manyhands.hackathon.event.event import NotTakenError

if TYPE_CHECKING:
    from manyhands.hackathon.event.event import Event
    from manyhands.hackathon.event.fair_queue import Submission


def handed_in(event: Event, team: str, challenge: str, source: str) -> str:
    """Hand in an entry: what the team is told."""
    number = event.submit(team, challenge, source)
    return f"Entry {number} of {team}: {challenge}. {_wait(event, number)}"


def withdrawn(event: Event, team: str, number: int) -> str:
    """Withdraw an entry; returns what the team is told."""
    being_judged = _being_judged(event)
    event.withdraw(team, number)
    stops = " The judge stops judging it." if being_judged and being_judged.number == number else ""
    return f"Entry {number} of {team} is withdrawn.{stops}"


def status(event: Event, team: str) -> str:
    """A line for each entry of a team."""
    if problem := event.settings.team_problem(team):
        raise NotTakenError(problem)
    mine = [submission for submission in event.submissions().values() if submission.team == team]
    lines = [
        f"Entry {submission.number}, {submission.challenge}: {state(event, submission)}"
        for submission in mine
    ]
    return "\n".join(lines) or f"{team} has handed in nothing yet."


def state(event: Event, submission: Submission) -> str:
    """What is known of an entry."""
    if submission.withdrawn:
        return "withdrawn"
    if submission.waits:
        return _wait(event, submission.number)
    (result,) = standings.results([submission])
    return result.problem if result.score is None else f"{result.score:.4g} {result.unit}"


def _being_judged(event: Event) -> Submission | None:
    """The entry that the judge has begun with; None if there is none, or if no judge is at work."""
    line = fair_queue.queue(event.submissions()) if event.is_judged() else []
    return line[0] if line and line[0].taken else None


def _wait(event: Event, number: int) -> str:
    wait, now = event.waiting(number), _being_judged(event)
    if wait is None:
        return "It is judged."
    if now and now.number == number:
        text = f"The judge has been working on it since {_clock(now.taken[-1])}."
    else:
        entries = "1 entry" if wait.before == 1 else f"{wait.before} entries"
        text = (
            f"It is waiting, with {entries} before it."
            if wait.before
            else "It is the first in the queue."
        )
        if event.submissions()[number].slow:
            text += (
                f" It took more than {fair_queue.SLOW_S} s while others waited, so it is judged "
                "when no other entry waits."
            )
        if now:
            text += (
                f" The judge has been working on entry {now.number} of {now.team} since "
                f"{_clock(now.taken[-1])}."
            )
        if now and event.submissions()[number].slow:
            return text
    if not event.is_judged():
        return (
            f"{text} No judge is running at the moment. Nothing is lost, but the time is not known."
        )
    if wait.about_s is None:
        return f"{text} No entry has a score yet, so the time is not known."
    if wait.about_s <= 0:
        return f"{text} Its result may arrive at any moment."
    return (
        f"{text} Its result is ready in about {duration(wait.about_s)}, or in "
        f"{duration(wait.at_most_s)} if all other teams hand in now. An entry whose judging keeps "
        f"others waiting for more than {fair_queue.SLOW_S} s is put behind them."
    )


def _clock(seconds: float) -> str:
    return time.strftime("%H:%M", time.localtime(seconds))
