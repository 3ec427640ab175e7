"""What happens at an event: an entry is handed in, withdrawn, taken by the judge, judged.

Each is one line of the log, written under its lock after a look at all lines before it. So none is
lost, and none is judged twice into the table, whoever is killed when (`event_log.py`).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.hackathon.entry import entry_file
from manyhands.hackathon.event import event_settings, fair_queue
from manyhands.hackathon.event.event_log import Log

if TYPE_CHECKING:
    import io
    from collections.abc import Callable, Collection, Iterator
    from typing import Literal

    from manyhands.hackathon.event.event_lines import Line
    from manyhands.hackathon.event.fair_queue import Submission, Wait


HOUR_S = 3600
FREE_WITHDRAWALS = 3  # entries that a team may take back in an hour before they count as handed in
# that a judge begins with one entry: what ends the judge itself must not do so for ever
MOST_TIMES = 4
GIVEN_UP = (
    json.dumps(
        {
            "score": None,
            "problem": (
                f"The judge was stopped {MOST_TIMES} times while it was judging this "
                "entry. Ask the organisers."
            ),
        }
    )
    + "\n"
)


class NotTakenError(Exception):
    """The event does not take this; the message tells the team why, and what to do."""


class Event:
    """The event in a folder. `now` gives the time, in seconds since 1970."""

    def __init__(self, folder: str | Path, now: Callable[[], float] = time.time) -> None:
        self.folder, self.now = Path(folder), now
        self.settings, self.log = event_settings.read(folder), Log(folder)
        self._lines: list[Line] | None = None
        self._found: dict[int, Submission] = {}
        self._count, self._folding = 0, threading.Lock()

    def submissions(self) -> dict[int, Submission]:
        """{number: `Submission`}, in the order in which they came."""
        return self._of(self.log.read())

    def _of(self, lines: list[Line]) -> dict[int, Submission]:
        """The same of the log's lines, of which only those that are new are gone through."""
        with self._folding:
            if lines is not self._lines:
                self._lines, self._count, self._found = lines, 0, {}
            new = lines[self._count :]
            fair_queue.submissions(new, self._found)
            self._count += len(new)
            return dict(self._found)

    def waiting(self, number: int) -> Wait | None:
        """The `Wait` of an entry that waits; None if it waits no more."""
        submissions = self.submissions()
        if not submissions[number].waits:
            return None
        return fair_queue.wait(submissions, number, len(self.settings.teams), self.now())

    def submit(self, team: str, challenge: str, source: str) -> int:
        """A team hands in the text of an entry: its number.

        Raises `NotTakenError`, or `entry_file.BadEntryError`.
        """
        source = entry_file.checked(source)
        sha256 = hashlib.sha256(source.encode()).hexdigest()
        with self.log.changing() as (lines, append):
            submissions = self._of(lines)
            self._check(submissions, team, challenge, sha256)
            number = max(submissions, default=0) + 1
            append(
                {
                    "do": "submit",
                    "number": number,
                    "team": team,
                    "challenge": challenge,
                    "sha256": sha256,
                    "source": source,
                    "at": self.now(),
                    "round": fair_queue.next_round(submissions, team),
                }
            )
            return number

    def _check(
        self, submissions: dict[int, Submission], team: str, challenge: str, sha256: str
    ) -> None:
        settings, now = self.settings, self.now()
        if problem := settings.team_problem(team):
            raise NotTakenError(problem)
        if challenge not in settings.challenges:
            raise NotTakenError(
                f"The event has no challenge {challenge!r}. Its challenges are "
                f"{', '.join(settings.challenges)}."
            )
        if not settings.begins <= now <= settings.ends:
            when = "has not begun" if now < settings.begins else "is over"
            raise NotTakenError(
                f"The event {when}: it takes entries from {_clock(settings.begins)} to "
                f"{_clock(settings.ends)}."
            )
        mine = [submission for submission in submissions.values() if submission.team == team]
        for submission in mine:
            if submission.waits and (submission.challenge, submission.sha256) == (
                challenge,
                sha256,
            ):
                raise NotTakenError(f"This entry is already waiting as number {submission.number}.")
        used, taken_back = _used(mine, now)
        if used >= settings.an_hour:
            ends = sorted(
                submission.at + HOUR_S for submission in mine if submission.at + HOUR_S > now
            )
            again = next(end for end in ends if _used(mine, end)[0] < settings.an_hour)
            room = (
                "If you withdraw an entry that is still waiting, you can hand in another one."
                if taken_back < FREE_WITHDRAWALS
                else (
                    "Withdrawing another entry does not help, because in any hour only the first "
                    f"{FREE_WITHDRAWALS} withdrawn entries do not count, and your team has "
                    f"withdrawn {taken_back}."
                )
            )
            raise NotTakenError(
                f"Your team has handed in {used} entries in the last hour, and may do so "
                f"{settings.an_hour} times: the next from {_clock(again)} on. {room}"
            )

    def withdraw(self, team: str, number: int) -> None:
        """Let a team take back an entry.

        If the entry waits, it is not judged; if it is judged, it does not count.
        """
        with self.log.changing() as (lines, append):
            submission = self._of(lines).get(number)
            if submission is None or submission.team != team:
                raise NotTakenError(f"Your team has no entry {number}.")
            if submission.withdrawn:
                raise NotTakenError(f"Entry {number} has already been withdrawn.")
            append({"do": "withdraw", "number": number, "at": self.now()})

    # ------------------------------------------------------------ the judge

    @contextmanager
    def judge(self) -> Iterator[None]:
        """Within it no other process judges; `NotTakenError` if one does.

        The lock goes with its process.
        """
        with open(self.folder / "judge.lock", "a") as lock:
            for _ in range(20):  # `is_judged` has it for a moment
                if _locked(lock):
                    break
                time.sleep(0.05)
            else:
                raise NotTakenError(f"Another process is already judging {self.folder}.")
            yield

    def is_judged(self) -> bool:
        """Whether a process judges this event now, on this machine."""
        try:
            with open(self.folder / "judge.lock") as lock:
                return not _locked(lock)
        except FileNotFoundError:
            return False

    def take(self) -> Submission | None:
        """The entry that is to be judged now; None if none waits.

        One whose judge was killed comes first.
        """
        with self.log.changing() as (lines, append):
            for submission in fair_queue.queue(self._of(lines)):
                if len(submission.taken) < MOST_TIMES:
                    append({"do": "take", "number": submission.number, "at": self.now()})
                    return submission
                append(
                    {
                        "do": "judged",
                        "number": submission.number,
                        "at": self.now(),
                        "record": GIVEN_UP,
                    }
                )
            return None

    def stop(self, number: int, lasted_s: float) -> Literal["withdrawn", "slow"] | None:
        """Whether the judge must end the judging of an entry that has lasted so long.

        Returns "withdrawn" if its team has taken it back, "slow" if it keeps another entry waiting
        for longer than `fair_queue.SLOW_S`, else None.
        """
        submissions = self.submissions()
        if submissions[number].withdrawn:
            return "withdrawn"
        others = any(
            submission.number != number and not submission.slow
            for submission in fair_queue.queue(submissions)
        )
        return "slow" if lasted_s > fair_queue.SLOW_S and others else None

    def put_behind(self, number: int) -> None:
        """Put a slow entry behind all others.

        It is judged from the beginning when no other one waits.
        """
        with self.log.changing() as (_, append):
            append({"do": "behind", "number": number, "at": self.now()})

    def looked_at(self, number: int, look: str) -> None:
        """A person has looked at an entry: `look` is what they signed (`looks.py`)."""
        with self.log.changing() as (lines, append):
            submission = self._of(lines).get(number)
            if submission is None or submission.judged is None:
                raise NotTakenError(f"There is no judged entry {number}.")
            append({"do": "looked", "number": number, "at": self.now(), "look": look})

    def settle(self, number: int, record: str) -> bool:
        """Keep the signed record of an entry's judging.

        Returns whether it was the first of this entry.
        """
        with self.log.changing() as (lines, append):
            submission = self._of(lines)[number]
            first = submission.judged is None or submission.again
            if first:
                append({"do": "judged", "number": number, "at": self.now(), "record": record})
            return first

    def again(self, number: int) -> None:
        """The organisers want an entry judged once more.

        Its record counts until there is the new one.
        """
        with self.log.changing() as (lines, append):
            submission = self._of(lines).get(number)
            if submission is None or submission.waits or submission.withdrawn:
                raise NotTakenError(f"There is no judged entry {number} that counts.")
            append({"do": "again", "number": number, "at": self.now()})


def judge_all(
    event: Event,
    judge_one: Callable[[Submission], str | None],
    tell: Callable[[Submission], object] = lambda submission: None,
) -> None:
    """Judge what waits, one after the other, until nothing waits.

    `judge_one(submission)` gives the signed record, or None where the judging was stopped.
    """
    while submission := event.take():
        record = judge_one(submission)
        if record is not None:
            event.settle(submission.number, record)
        elif not event.submissions()[submission.number].withdrawn:
            event.put_behind(submission.number)
        tell(submission)


def _used(mine: Collection[Submission], now: float) -> tuple[int, int]:
    """(how many of a team's entries of the last hour count, how many were withdrawn in time).

    In time means before the judge took them. The first few of these are free, so that nobody can
    hand in and withdraw without end.
    """
    lately = [submission for submission in mine if submission.at > now - HOUR_S]
    taken_back = sum(
        submission.withdrawn
        and not (submission.taken or submission.slow or submission.judged is not None)
        for submission in lately
    )
    return len(lately) - min(taken_back, FREE_WITHDRAWALS), taken_back


def _locked(lock: io.TextIOWrapper) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _clock(seconds: float) -> str:
    return time.strftime("%H:%M", time.localtime(seconds))
