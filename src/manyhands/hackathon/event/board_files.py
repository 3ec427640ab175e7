"""The board of an event, or of a folder with records, written as files.

The files are board.html, screen.html and board.csv.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.hackathon.event import board_page, fair_queue, looks, standings
from manyhands.hackathon.event.board_page import Board, Section
from manyhands.hackathon.judge import judging_record as record
from manyhands.shared import signing
from manyhands.shared.atomic import write_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from manyhands.hackathon.challenges.challenge import Challenge
    from manyhands.hackathon.event.event import Event
    from manyhands.hackathon.event.fair_queue import Submission
    from manyhands.hackathon.event.standings import Result


FILES = ("board.html", "screen.html", "board.csv")


def of_event(event: Event, challenges: Mapping[str, Challenge], reveal: bool = False) -> Board:
    """The `Board` of an event as it is now.

    Without `reveal`, it is from the freeze on as it was then: entries that were handed in later are
    not shown. `challenges` are {name: `Challenge`}.
    """
    settings, now, submissions = event.settings, event.now(), event.submissions()
    frozen = now >= settings.frozen_from and settings.freeze_min and not reveal
    shown = standings.results(submissions.values(), settings.frozen_from if frozen else None)
    line, at_work = fair_queue.queue(submissions), event.is_judged()
    waits = [
        fair_queue.wait(submissions, submission.number, len(settings.teams), now)
        for submission in line
    ]
    waiting = [
        (submission.team, challenges[submission.challenge].title, wait.about_s if at_work else None)
        for submission, wait in zip(line, waits, strict=True)
    ]
    note = ""
    if frozen:
        note = (
            f"Frozen at {_clock(settings.frozen_from)}. Entries are still judged, and the "
            "organisers show the result after the end."
        )
    elif waiting and not at_work:
        note = "No judge is running at the moment. Entries wait, and none of them is lost."
    until = settings.frozen_from if frozen else min(now, settings.ends)
    return Board(
        settings.title,
        _sections(settings.challenges, challenges, shown),
        settings.counts,
        settings.begins,
        until,
        note,
        None if frozen else tuple(waiting),
        now,
        settings.ends,
        settings.frozen_from if settings.freeze_min and not reveal else None,
    )


def of_records(
    folder: str | Path,
    challenges: Mapping[str, Challenge],
    verified: Callable[[bytes], tuple[record.Record, bytes]],
    now: float,
    tell: Callable[[Path, str], object] = lambda path, problem: None,
) -> Board:
    """The `Board` of all `*.record` files in a folder and below.

    The team is the entry's name in the record. `verified` gives a record's mapping and raises where
    it was changed. `tell` hears of each file that is left out, and why.
    """
    shown = []
    for path in sorted(Path(folder).rglob("*.record")):
        try:
            data = record.read_file(path)
            result_record, public = verified(data)
            if result_record["challenge"] not in challenges:
                raise record.BadRecordError(
                    f"is of the challenge {result_record['challenge']}, which this version does not have"
                )
        except (signing.BadSignatureError, record.BadRecordError) as problem:
            tell(path, f"{path} {problem}.")
        except record.NoFileError as problem:
            tell(path, str(problem))
        else:
            seen = looks.read(looks.beside(path, public), data.decode())
            shown.append(
                standings.result(
                    result_record,
                    result_record["entry"],
                    0,
                    record.judged_s(result_record),
                    seen=seen,
                )
            )
    shown.sort(key=lambda result: result.at)
    there = [name for name in challenges if any(result.challenge == name for result in shown)]
    times = [result.at for result in shown] or [now]
    return Board(
        "Hackathon",
        _sections(there or challenges, challenges, shown),
        "best",
        min(times),
        now,
        now=now,
    )


def write(board: Board, folder: str | Path) -> None:
    """Write the board's files, each in one step."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in zip(
        FILES,
        (board_page.page(board), board_page.page(board, screen=True), board_page.as_csv(board)),
        strict=True,
    ):
        write_file(folder / name, text, mode=0o644)


def write_records(submissions: Iterable[Submission], folder: str | Path) -> None:
    """Each signed record as a file of its own, as `manyhands hack verify` reads it.

    One that was replaced when its entry was judged again is kept beside the new one.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for submission in submissions:
        if submission.judged is not None:
            path = folder / f"{submission.number:04d}-{int(submission.judged)}.record"
            if not path.exists():
                write_file(path, submission.record, mode=0o644)
            if submission.look:
                write_file(path.with_suffix(looks.SUFFIX), submission.look, mode=0o644)


def _sections(
    names: Iterable[str], challenges: Mapping[str, Challenge], results: Sequence[Result]
) -> list[Section]:
    return [
        Section(
            challenges[name].title,
            challenges[name].unit,
            challenges[name].baseline,
            [result for result in results if result.challenge == name],
            name,
        )
        for name in names
    ]


def _clock(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%H:%M")
