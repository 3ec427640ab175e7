"""The part of `manyhands hack` that belongs to an event.

Its commands make an event, hand entries in, judge what came, and write the board.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.command_line import printable, working
from manyhands.hackathon.entry import entry_file
from manyhands.hackathon.event import (
    board_files,
    event_messages,
    event_settings,
    hub_line,
    looks,
    team_requests,
)
from manyhands.hackathon.event.event import Event, NotTakenError, judge_all
from manyhands.hackathon.judge import judging_record as record
from manyhands.hackathon.judge.judging_record import NoFileError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from manyhands.hackathon.challenges.challenge import Challenge
    from manyhands.hackathon.event.fair_queue import Submission
    from manyhands.hackathon.judge.sandboxes import Sandboxes


# the judge: between two looks at an empty queue; between two boards where nothing is judged
LOOK_S, RENEW_S = 1, 15
RECORDS, BOARD = "records", "board"  # folders in that of the event


def add_parsers(does: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands of an event to those of `manyhands hack`."""
    command = does.add_parser(
        "event", help="make the folder of an event, with a file event.toml to fill in"
    )
    command.add_argument("folder")
    for name, words in (
        ("submit", "hand in an entry, and print its number and how long judging takes"),
        ("withdraw", "withdraw an entry, so that it is not judged or does not count"),
        ("status", "list a team's entries, their results, and how long the others take"),
    ):
        command = does.add_parser(name, help=words)
        if name != "status":
            command.add_argument(
                "entry" if name == "submit" else "number", type=str if name == "submit" else int
            )
        command.add_argument(
            "--event", metavar="FOLDER", help="the event's folder (omit it on a hub)"
        )
        command.add_argument(
            "--team", metavar="NAME", help="the team (omit it on a hub, which knows who asks)"
        )
    command = does.add_parser(
        "run", help="judge what teams hand in and update the board, until Ctrl-C"
    )
    command.add_argument("event", metavar="EVENT")
    command.add_argument("--key", required=True, metavar="FILE", help="the key to sign with")
    command.add_argument("--once", action="store_true", help="stop when no entry is waiting")
    command.add_argument(
        "--again",
        type=int,
        action="append",
        default=[],
        metavar="NUMBER",
        help="first judge this entry once more, under new seeds (may be repeated)",
    )
    command = does.add_parser(
        "look", help="record that a person has read an entry, and whether it counts"
    )
    command.add_argument("event", metavar="EVENT")
    command.add_argument("number", type=int)
    command.add_argument("--by", required=True, metavar="NAME", help="the person who has read it")
    command.add_argument(
        "--key", required=True, metavar="FILE", help="the judge's key, to sign with"
    )
    verdict = command.add_mutually_exclusive_group(required=True)
    verdict.add_argument("--counts", action="store_true", help="the entry keeps to the rules")
    verdict.add_argument("--breaks-rules", action="store_true", help="the entry does not count")
    command = does.add_parser(
        "board", help="write the board of an event, or of a folder with records"
    )
    command.add_argument("folder")
    command.add_argument(
        "-o", "--output", metavar="FOLDER", help="where to write it (FOLDER/board)"
    )
    command.add_argument(
        "--reveal", action="store_true", help="show also what was handed in after the freeze"
    )
    command.add_argument(
        "--public",
        metavar="FILE",
        help="for a folder with records: the key that must have signed them",
    )


def event(options: argparse.Namespace) -> int:
    """Make the folder of an event, and print what to do next."""
    path = event_settings.write_template(options.folder)
    print(
        printable(
            f"{path}: enter the times, the challenges and the teams in this file. Then run on the "
            f"judge's machine:\n  manyhands hack run {options.folder} --key judge.key"
        )
    )
    return 0


def submit(options: argparse.Namespace) -> int:
    """Hand in an entry, and print what the team is told."""
    entry = entry_file.read(options.entry, entry_file.challenge_names())
    return _told(options, "submit", entry.challenge, entry.source)


def withdraw(options: argparse.Namespace) -> int:
    """Withdraw an entry, and print what the team is told."""
    return _told(options, "withdraw", options.number)


def status(options: argparse.Namespace) -> int:
    """Print a line for each entry of the team."""
    return _told(options, "status")


def _told(options: argparse.Namespace, what: str, *values: object) -> int:
    """Do it in the event's folder, or, on an attendee's server, ask the hub."""
    if options.event and options.team:
        print(printable(team_requests.do(Event(options.event), options.team, what, [*values])))
    elif options.event or options.team:
        raise NotTakenError("Name both, the event and the team: --event FOLDER --team NAME.")
    else:
        print(printable(hub_line.ask(what, *values)))
    return 0


def run(options: argparse.Namespace) -> int:
    """Judge what teams hand in, and write the board, until Ctrl-C."""
    from manyhands.hackathon.challenges.challenge import CHALLENGES
    from manyhands.hackathon.judge.sandboxes import Sandboxes
    from manyhands.shared import signing

    key, there = signing.load_key(options.key), Event(options.event)
    with there.judge():
        for number in options.again:
            there.again(number)
        with working(f"{there.settings.title}: opening rooms") as line, Sandboxes(4) as sandboxes:
            line.clear()
            shown = _Shown(there, CHALLENGES)

            def judge_one(submission: Submission) -> str | None:
                shown.write()  # that it is judged now
                return judged(there, submission, sandboxes, key, shown.renew)

            def tell(submission: Submission) -> None:
                shown.write()
                state = event_messages.state(there, there.submissions()[submission.number])
                print(
                    printable(f"Entry {submission.number} of {submission.team}: {state}"),
                    flush=True,
                )

            try:
                _go_on(there, judge_one, tell, options.once, shown)
            except KeyboardInterrupt:
                print("The judge stops. Waiting entries are judged when it is started again.")
    return 0


class _Shown:
    """The board's files, and the records.

    Teams hand in while an entry is judged: so they are renewed then, too.
    """

    def __init__(self, there: Event, challenges: Mapping[str, Challenge]) -> None:
        self.there, self.challenges, self.written = there, challenges, float("-inf")

    def write(self) -> None:
        board_files.write(
            board_files.of_event(self.there, self.challenges), self.there.folder / BOARD
        )
        board_files.write_records(self.there.submissions().values(), self.there.folder / RECORDS)
        self.written = time.monotonic()

    def renew(self, *_: object) -> None:
        """Where the last one is old."""
        if time.monotonic() > self.written + RENEW_S:
            self.write()


def _go_on(
    there: Event,
    judge_one: Callable[[Submission], str | None],
    tell: Callable[[Submission], object],
    once: bool,
    shown: _Shown,
) -> None:
    while True:
        judge_all(there, judge_one, tell)
        shown.renew()
        if once:
            return
        time.sleep(LOOK_S)


def judged(
    there: Event,
    submission: Submission,
    sandboxes: Sandboxes,
    key: Ed25519PrivateKey,
    tell: Callable[..., object],
) -> str | None:
    """The signed record of a submission, or None where its judging was stopped.

    `tell` hears of each run.
    """
    from manyhands.hackathon.challenges.challenge import CHALLENGES
    from manyhands.hackathon.judge import judging
    from manyhands.hackathon.judge.one_run import JudgingStoppedError

    def look(lasted_s: float) -> None:
        tell()
        why = there.stop(submission.number, lasted_s)
        if why:
            raise JudgingStoppedError(why)

    entry = entry_file.Entry(
        f"{submission.team} {submission.number}",
        submission.challenge,
        submission.source,
        submission.sha256,
    )
    try:
        record = judging.judge(
            entry, CHALLENGES[submission.challenge], sandboxes, judging.hidden_seeds(), tell, look
        )
    except JudgingStoppedError:
        return None
    return judging.signed(record, key).decode()


def look(options: argparse.Namespace) -> int:
    """Sign that a person has read an entry, and whether it counts."""
    from manyhands.shared import signing

    key, there = signing.load_key(options.key), Event(options.event)
    submission = there.submissions().get(options.number)
    if submission is None or submission.judged is None:
        raise NotTakenError(f"There is no judged entry {options.number}.")
    with suppress(signing.BadSignatureError):  # where the judge gave up, the record is not signed
        if signing.verified(submission.record.encode())[1] != key.public_key().public_bytes_raw():
            raise NotTakenError("--key must be the key that signed the record of this entry.")
    if (
        not options.by.strip()
        or not options.by.isprintable()
        or len(options.by) > event_settings.MOST_LETTERS
    ):
        raise NotTakenError(
            f"--by takes the name of a person: 1 to {event_settings.MOST_LETTERS} printable "
            "characters."
        )
    signed_text = looks.text(submission.record, options.by, options.counts, there.now())
    there.looked_at(options.number, signing.signed(signed_text, key).decode())
    looked_at = there.submissions()[options.number]
    board_files.write_records([looked_at], there.folder / RECORDS)
    print(
        printable(
            f"Entry {submission.number} of {submission.team}: {event_messages.state(there, looked_at)}"
        )
    )
    return 0


def board(options: argparse.Namespace) -> int:
    """Write the board; 1 where a file was left out, because it is no record that can be shown."""
    from manyhands.hackathon.challenges.challenge import CHALLENGES

    folder, left_out = Path(options.folder), []
    output = Path(options.output) if options.output else folder / BOARD
    if (folder / event_settings.NAME).exists():
        shown = board_files.of_event(Event(folder), CHALLENGES, options.reveal)
    elif folder.is_dir():
        verified = _verified_by(options.public)
        shown = board_files.of_records(
            folder, CHALLENGES, verified, time.time(), lambda *problem: left_out.append(problem)
        )
    else:
        raise NoFileError(f"{folder} is not a folder with an event or with records.")
    for _, problem in left_out:
        print(
            f"manyhands hack: a record in {printable(folder)} is left out: {printable(problem)}",
            file=sys.stderr,
        )
    board_files.write(shown, output)
    print(printable(f"{output}: {', '.join(board_files.FILES)}."))
    return 1 if left_out else 0


def _verified_by(path: str | None) -> Callable[[bytes], tuple[record.Record, bytes]]:
    """What gives the record of a file's bytes.

    With the file of a public key, it gives only records that were signed with that key, because
    anybody can make a key and sign with it.
    """
    from manyhands.shared import signing

    wanted = signing.load_public(path) if path else None

    def verified(data: bytes) -> tuple[record.Record, bytes]:
        signed_record, public = record.verified(data)
        if wanted not in (None, public):
            raise record.BadRecordError(
                f"was signed with a different key, {signing.fingerprint(public)}"
            )
        return signed_record, public

    return verified
