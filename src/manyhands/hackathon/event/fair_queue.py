"""Which entry is judged next, and how long the others wait.

Each entry gets a round when it is handed in: the one that is being judged now, or the one behind
its team's last, whichever is later. Rounds are judged one after the other, in each the entries as
they came. So a team has one entry in a round: who hands in ten at once keeps another team waiting
for one of them, and an entry is overtaken by each other team once at most for each round that it
waits (start-time fair queueing: Goyal, Vin, Cheng, SIGCOMM 1996).
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from manyhands.hackathon.event import standings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from manyhands.hackathon.event.event_lines import Line


KNOWN = 20  # so many of the last judgings tell how long one takes
SURELY_S = 10  # so much more than twice the usual time is no busy machine
# so long a judging may keep other entries waiting; entries of the ladders take 5 to 80 s
SLOW_S = 120


@dataclass
class Submission:
    """An entry that was handed in.

    Times are seconds since 1970; `round` is its place in the queue.
    """

    number: int
    team: str
    challenge: str
    sha256: str
    source: str
    at: float
    round: int
    withdrawn: bool = False
    # when a judge has begun with it; more than once where a judge was killed
    taken: tuple[float, ...] = ()
    judged: float | None = None
    lasted_s: float | None = None  # where it came to a score, so through all runs
    record: str = ""  # as the judge has signed it
    again: bool = False  # the organisers want it judged once more; until then its record counts
    slow: bool = False  # its judging was stopped because it kept others waiting
    look: str = ""  # what a person has signed who has looked at it

    @property
    def waits(self) -> bool:
        """Whether the entry is still to be judged, for the first time or again."""
        return not self.withdrawn and (self.judged is None or self.again)


def submissions(
    lines: Iterable[Line], found: dict[int, Submission] | None = None
) -> dict[int, Submission]:
    """{number: Submission} of the lines of an event's log, in the order in which they came.

    `found`: what earlier lines have given, which is changed.
    """
    found = {} if found is None else found
    for line in lines:
        submission = found.get(line["number"])
        if line["do"] == "submit":
            found[line["number"]] = Submission(
                line["number"],
                line["team"],
                line["challenge"],
                line["sha256"],
                line["source"],
                line["at"],
                line["round"],
            )
        elif submission is None:
            pass  # the line that handed it in was lost
        elif line["do"] == "take":
            submission.taken += (line["at"],)
        elif line["do"] == "judged":
            submission.judged, submission.record, submission.again, submission.look = (
                line["at"],
                line["record"],
                False,
                "",
            )
            through = submission.taken and standings.has_score(line["record"])
            submission.lasted_s = line["at"] - submission.taken[-1] if through else None
        elif line["do"] == "again":
            submission.again, submission.taken = True, ()
        elif line["do"] == "behind":
            submission.slow, submission.taken = True, ()
        elif line["do"] == "looked":
            submission.look = line["look"]
        elif line["do"] == "withdraw":
            submission.withdrawn = True
    return found


def queue(found: Mapping[int, Submission]) -> list[Submission]:
    """Those that wait, in the order in which they are judged.

    The one with which a judge has begun is the first, and those whose judging was stopped because
    it kept others waiting are the last.
    """
    return sorted(
        (submission for submission in found.values() if submission.waits),
        key=lambda submission: (
            not submission.taken,
            submission.slow,
            submission.round,
            submission.number,
        ),
    )


def current_round(found: Mapping[int, Submission]) -> int:
    """The round of the last entry that a judge has begun with."""
    return max((submission.round for submission in found.values() if submission.taken), default=0)


def next_round(found: Mapping[int, Submission], team: str) -> int:
    """The round of an entry that the team hands in now."""
    return max(
        [
            current_round(found),
            *(submission.round + 1 for submission in found.values() if submission.team == team),
        ]
    )


def judging_s(found: Mapping[int, Submission], challenge: str) -> float | None:
    """How long the judging of an entry takes, in seconds; None as long as there was none.

    It is the median of the last ones for the challenge that came to a score, else for any. An entry
    that crashes is over immediately, and says nothing about the next.
    """
    lasted = [
        (submission.challenge == challenge, submission.lasted_s)
        for submission in found.values()
        if submission.lasted_s is not None
    ]
    known = [seconds for same, seconds in lasted if same] or [seconds for _, seconds in lasted]
    return statistics.median(known[-KNOWN:]) if known else None


@dataclass(frozen=True)
class Wait:
    """How long until an entry has its result, in seconds.

    It is `about_s` if nobody hands in anything more, `at_most_s` if each other team does so
    immediately; both are None as long as no entry has a score. `before` entries are judged earlier.
    """

    before: int
    about_s: float | None
    at_most_s: float | None


def wait(found: Mapping[int, Submission], number: int, teams: int, now: float) -> Wait:
    """The `Wait` of an entry that waits; `teams` is how many there are."""
    line = queue(found)
    place = [submission.number for submission in line].index(number)
    each = {
        challenge: seconds
        for challenge in {other.challenge for other in found.values()}
        if (seconds := judging_s(found, challenge)) is not None
    }
    if not each:  # none has a score; with one score, a time is known for all
        return Wait(place, None, None)
    submission, lasts = line[place], [each[other.challenge] for other in line[: place + 1]]
    if line[0].taken:
        lasts[0] = _remaining_s(lasts[0], now - line[0].taken[-1], place > 0)
    about_s = sum(lasts)
    return Wait(
        place, about_s, about_s + _overtaking(found, submission, teams) * max(each.values())
    )


def _remaining_s(usual_s: float, elapsed_s: float, keeps_waiting: bool) -> float:
    """How long the judging that has begun still takes.

    One that has taken more than twice as long as others is likely to go on until it is stopped,
    which happens after `SLOW_S` where it keeps another entry waiting.
    """
    limit_s = SLOW_S if keeps_waiting and elapsed_s > 2 * usual_s + SURELY_S else usual_s
    return max(0, limit_s - elapsed_s)


def _overtaking(found: Mapping[int, Submission], submission: Submission, teams: int) -> int:
    """How many entries of other teams may still come before this one.

    That is one of each team in each round before its own, less those that are there.
    """
    now = current_round(found)
    there = sum(
        now <= other.round < submission.round and other.team != submission.team
        for other in found.values()
    )
    return 0 if submission.taken else max(0, (submission.round - now) * (teams - 1) - there)
