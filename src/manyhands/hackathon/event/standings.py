"""Who stands where: tables of an event's challenges, from records.

A smaller score is better, in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from manyhands.hackathon.event import looks
from manyhands.hackathon.judge import judging_record as records

if TYPE_CHECKING:
    from collections.abc import Iterable

    from manyhands.hackathon.event.fair_queue import Submission


Way = list[tuple[float, float | None]]  # the score that counts, and from when on

HELD = "This entry is flagged, so it does not count until a person has looked at it."


@dataclass(frozen=True)
class Result:
    """A judged entry.

    `score` is None where it has none, and `problem` says why; `size` is None where that is not
    known; `number` is 0 where it did not come through an event.
    """

    team: str
    challenge: str
    number: int
    at: float  # when it was handed in
    score: float | None
    unit: str
    problem: str
    size: int | None
    sha256: str
    seeds_of: str = ""  # of an earlier record, where the seeds were not drawn for this judging
    looked: str = ""  # the person who has looked at it


def result(
    record: records.Record | records.EventRecord,
    team: str,
    number: int,
    at: float,
    challenge: str | None = None,
    seen: looks.Look | None = None,
) -> Result:
    """The `Result` of a record as a mapping, which has been checked.

    A score with a flag counts only after a person has looked at the entry; `seen` is their
    `looks.Look`.
    """
    score, problem = record["score"], record.get("problem", "")
    if seen and not seen.counts:
        score, problem = None, f"{seen.by} has looked at this entry, and it breaks the rules."
    elif score is not None and record.get("flags") and not seen:
        score, problem = None, f"{HELD} {record['flags'][0]}"
    return Result(
        team,
        challenge or record["challenge"],
        number,
        at,
        score,
        record.get("unit", ""),
        problem,
        record.get("size"),
        record.get("sha256", ""),
        record.get("seeds_of") or "",
        seen.by if seen else "",
    )


def has_score(record: str) -> bool:
    """Whether the text of a record in an event's log has a score."""
    return _of_event(record)["score"] is not None


def _of_event(text: str) -> records.EventRecord:
    """The record of an event's log as a mapping.

    Where it cannot be read, the mapping says so, so that the others go on.
    """
    try:
        return records.of_event(text)
    except records.BadRecordError as problem:
        return {
            "score": None,
            "problem": f"The record of this judging {problem}: ask the organisers.",
        }


def results(submissions: Iterable[Submission], until: float | None = None) -> list[Result]:
    """The results of all entries that are judged and not withdrawn.

    They are in the order in which they were handed in; with `until`, only those that had been
    handed in by then.
    """
    return [
        result(
            _of_event(submission.record),
            submission.team,
            submission.number,
            submission.at,
            submission.challenge,
            looks.read(submission.look, submission.record),
        )
        for submission in submissions
        if submission.judged is not None
        and not submission.withdrawn
        and (until is None or submission.at <= until)
    ]


def table(results: Iterable[Result], counts: str) -> list[Result]:
    """The results that count, one for each team, the best first; those without a score last.

    Equal scores: who was first. `counts`: "best" or "last" of a team's results; where the last has
    no score, the team has none.
    """
    best: dict[str, Result] = {}
    for result in results:
        before = best.get(result.team)
        if counts == "last" or before is None or _order(result) < _order(before):
            best[result.team] = result
    return sorted(best.values(), key=_order)


def _order(result: Result) -> tuple[bool, float, float, int]:
    return (result.score is None, result.score or 0, result.at, result.number)


def places(rows: Iterable[Result]) -> list[int | None]:
    """The place of each row of a table: equal scores share one; None without a score."""
    scores = [row.score for row in rows]
    return [None if score is None else 1 + scores.index(score) for score in scores]


def simplest(rows: Iterable[Result], baseline: float) -> Result | None:
    """The smallest row among those better than the baseline (the better one of equals), or None."""
    good = [
        row
        for row in rows
        if row.score is not None and row.score < baseline and row.size is not None
    ]
    return min(good, key=lambda row: (row.size, *_order(row)), default=None)


def steps(results: Iterable[Result], counts: str) -> dict[str, Way]:
    """{team: [(time, score), ...]}: what counted from when on.

    The score is None from the time on at which none counted.
    """
    ways: dict[str, Way] = {}
    before: dict[str, list[Result]] = {}
    for result in results:
        before.setdefault(result.team, []).append(result)
        now, way = table(before[result.team], counts)[0].score, ways.setdefault(result.team, [])
        if not way or way[-1][1] != now:
            way.append((result.at, now))
    return {team: way for team, way in ways.items() if any(score is not None for _, score in way)}
