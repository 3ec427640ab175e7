"""`manyhands hack`: begin an entry, try it, judge it, verify a record.

What belongs to an event is in `event/event_command.py`.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.command_line import completed, printable, working
from manyhands.command_line import parser as command_parser
from manyhands.hackathon.entry.entry_file import BadEntryError, challenge_names, name_problem
from manyhands.hackathon.event import event_command
from manyhands.hackathon.event.event import NotTakenError
from manyhands.hackathon.event.event_settings import BadEventError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from manyhands.hackathon.judge.judging_record import Record
    from manyhands.hackathon.judge.referee import Run


DESCRIPTION = """The hackathon. An entry is a folder with a file entry.py that defines train(model, batches, comm).
docs/HACKATHON.md has the rules. Exit code 0: the entry has a score; 1: it has none; 2: it could not be judged."""
EXAMPLES = [
    "init slow_links our_entry",
    "try our_entry --runs 1",
    "judge our_entry --key judge.key",
    "judge our_entry --key judge.key --seeds-of our_entry.record",
    "verify our_entry.record",
    "event autumn",
    'submit our_entry --event autumn --team "The Rings"',
    "run autumn --key judge.key",
    "board autumn --reveal",
]
ENTRY_FOLDER = "the entry's folder, as `manyhands hack init` makes one"
WITHOUT_SANDBOXES = (
    "Tried without rooms, that is, with the same clock but without isolation of the ranks. Try only"
    " your own code."
)
OF_EVENT = ("event", "submit", "withdraw", "status", "run", "look", "board")


def parser() -> argparse.ArgumentParser:
    """Make the parser of `manyhands hack` with all its commands."""
    made = command_parser("hack", DESCRIPTION, EXAMPLES)
    names = "init", "try", "judge", "verify", *OF_EVENT
    does = made.add_subparsers(dest="does", required=True, metavar=" | ".join(names))
    command = does.add_parser(
        "init", help="make a folder with the challenge's start page and its baseline"
    )
    command.add_argument("challenge", help=f"one of {', '.join(challenge_names())}")
    command.add_argument("folder", help="a new one")
    command = does.add_parser(
        "try", help="judge an entry with public seeds, and show what it prints"
    )
    command.add_argument("entry", help=ENTRY_FOLDER)
    command.add_argument(
        "--runs",
        type=int,
        choices=range(1, 6),
        default=5,
        metavar="N",
        help="number of runs (of five)",
    )
    command = does.add_parser(
        "judge", help="judge an entry with hidden seeds, and write a signed record"
    )
    command.add_argument("entry", help=ENTRY_FOLDER)
    command.add_argument(
        "--key",
        required=True,
        metavar="FILE",
        help="the key to sign with: `manyhands certificate --new-key FILE` makes one",
    )
    command.add_argument(
        "--seeds-of", metavar="RECORD", help="judge again with the seeds of this record"
    )
    command.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="where to write the record (ENTRY.record); an existing one is never overwritten",
    )
    command = does.add_parser("verify", help="print what a record contains and who has signed it")
    command.add_argument("record", help="the file that `manyhands hack judge` wrote")
    command.add_argument("--public", metavar="FILE", help="the key that must have signed it")
    event_command.add_parsers(does)
    return made


def main(argv: list[str]) -> int:
    """Run `manyhands hack` with these arguments; returns the exit status."""
    from manyhands.hackathon.judge.judging_record import BadRecordError, NoFileError
    from manyhands.hackathon.judge.sandboxes import NoSandboxesError
    from manyhands.shared.signing import BadKeyError, BadSignatureError

    options = completed(parser()).parse_args(argv)
    try:
        if options.does in OF_EVENT:
            return getattr(event_command, options.does)(options)
        return {"init": _init, "try": _try, "judge": _judge, "verify": _verify}[options.does](
            options
        )
    except FileExistsError as problem:
        return _cannot(f"{problem.filename} already exists, and nothing is overwritten.")
    except FileNotFoundError as problem:
        return _cannot(_no_file(problem.filename, getattr(options, "key", None)))
    except (BadSignatureError, BadRecordError) as problem:
        return _cannot(f"{getattr(options, 'record', None) or options.seeds_of} {problem}.", 1)
    except IsADirectoryError as problem:
        return _cannot(f"{problem.filename} is a folder, but must be a file.")
    except (
        BadEntryError,
        BadEventError,
        NotTakenError,
        BadKeyError,
        NoFileError,
        NoSandboxesError,
    ) as problem:
        return _cannot(problem)
    except OSError as problem:
        return _cannot(f"{problem.filename}: {problem.strerror}." if problem.filename else problem)


def _no_file(path: str | Path, key: str | None) -> str:
    makes_one = (
        f" `manyhands certificate --new-key {path}` makes a key."
        if key and str(path) == key
        else ""
    )
    return f"there is no file {path}.{makes_one}"


def _cannot(problem: object, code: int = 2) -> int:
    print(f"manyhands hack: {printable(problem)}", file=sys.stderr)
    return code


def _init(options: argparse.Namespace) -> int:
    """Copy three small files.

    The challenge's numbers, whose import loads PyTorch, are not needed for that.
    """
    from manyhands.hackathon.entry.entry_file import CHALLENGE, ENTRY, challenge_folder

    if problem := name_problem(options.folder):
        return _cannot(problem)
    if options.challenge not in challenge_names():
        return _cannot(
            f"there is no challenge {options.challenge!r}. There are: "
            f"{', '.join(challenge_names())}."
        )
    source, folder = challenge_folder(options.challenge), Path(options.folder)
    copied = {ENTRY: source / "baseline.py", "README.md": source / "start.md"}
    texts = {target: path.read_text(encoding="utf-8") for target, path in copied.items()}
    folder.mkdir(parents=True)
    for target, text in {CHALLENGE: options.challenge + "\n", **texts}.items():
        (folder / target).write_text(text, encoding="utf-8")
    title = texts["README.md"].partition("\n")[0].removeprefix("# ")
    print(
        printable(
            f"{folder}: {title}. Read {folder / 'README.md'}, change {folder / ENTRY}, and try "
            f"it:\n  manyhands hack try {folder}"
        )
    )
    return 0


def _try(options: argparse.Namespace) -> int:
    from manyhands.hackathon.judge.judging import public_seeds

    record = _judged(options, public_seeds(options.runs), show=True)
    return 1 if record["problem"] else 0


def _judge(options: argparse.Namespace) -> int:
    from manyhands.hackathon.judge import judging
    from manyhands.shared import signing
    from manyhands.shared.atomic import write_file

    key, seeds, seeds_of = signing.load_key(options.key), judging.hidden_seeds(), None
    if options.seeds_of:
        seeds, seeds_of = _seeds_of(options.seeds_of)
    output = _output(options)
    record: Record = {**_judged(options, seeds, show=False), "seeds_of": seeds_of}
    write_file(output, judging.signed(record, key).decode(), new=True, mode=0o644)
    print(
        printable(
            f"{output}: signed with the key "
            f"{signing.fingerprint(key.public_key().public_bytes_raw())}."
        )
    )
    return 1 if record["problem"] else 0


def _seeds_of(path: str) -> tuple[list[bytes], str]:
    """(the seeds of an earlier record, the SHA-256 of its file)."""
    from manyhands.hackathon.judge import judging_record as record

    data = record.read_file(path)
    earlier, _ = record.verified(data)
    return [bytes.fromhex(seed) for seed in earlier["seeds"]], hashlib.sha256(data).hexdigest()


def _output(options: argparse.Namespace) -> Path:
    """Where the record will be written.

    What is wrong with that place is found before the judging, which takes long.
    """
    problem = name_problem(options.entry)
    if problem:
        raise BadEntryError(problem)
    output = Path(options.output or f"{Path(os.path.abspath(options.entry)).name}.record")
    try:
        os.lstat(output)
        raise FileExistsError(17, "the file already exists", str(output))
    except FileNotFoundError:
        pass
    if not os.access(output.parent, os.W_OK) or not output.parent.is_dir():
        raise BadEntryError(
            f"{output} cannot be written, because {output.parent} is not a folder in which you may "
            "write."
        )
    return output


def _judged(options: argparse.Namespace, seeds: Sequence[bytes], show: bool) -> Record:
    from manyhands.hackathon.challenges.challenge import CHALLENGES
    from manyhands.hackathon.entry import entry_file
    from manyhands.hackathon.judge import judging
    from manyhands.hackathon.judge.one_run import told
    from manyhands.hackathon.judge.open_judge import OpenSandboxes
    from manyhands.hackathon.judge.referee import in_a_line
    from manyhands.hackathon.judge.sandboxes import Sandboxes, why_none

    entry = entry_file.read(options.entry, list(CHALLENGES))
    challenge = CHALLENGES[entry.challenge]

    def tell(number: int, run: Run, said: Sequence[Sequence[str]]) -> None:
        line.clear()
        for rank, lines in enumerate(said if show else []):
            for text in lines:
                print(f"  [rank {rank}] {in_a_line(text)}")
        print(f"run {number + 1} of {len(seeds)}: {told(challenge, run)}", flush=True)

    what = f"{challenge.title}: {challenge.ranks} ranks run {entry.name}"
    closed = not show or why_none() is None
    if not closed:
        print(f"{WITHOUT_SANDBOXES} {why_none()}", file=sys.stderr)
    with (
        working(what) as line,
        (Sandboxes if closed else OpenSandboxes)(challenge.ranks) as sandboxes,
    ):
        record = judging.judge(entry, challenge, sandboxes, seeds, tell)
    print(_says(record))
    return record


def _says(record: Record) -> str:
    score = (
        f"no score: {record['problem']}"
        if record["problem"]
        else f"{record['score']:.4g} {record['unit']}"
    )
    flags = "".join(f"\nFlag: {flag}" for flag in record.get("flags", []))
    return f"{record['entry']}, {record['challenge']}: {score}{flags}"


def _verify(options: argparse.Namespace) -> int:
    from manyhands.hackathon.event import looks
    from manyhands.hackathon.judge import judging_record as records
    from manyhands.shared import signing

    wanted = signing.load_public(options.public) if options.public else None
    data = records.read_file(options.record)
    record, public = records.verified(data)
    if wanted not in (None, public):
        return _cannot(
            f"{options.record} was signed with a different key, {signing.fingerprint(public)}.", 1
        )
    seen = looks.read(looks.beside(Path(options.record), public), data.decode())
    looked = (
        "No person has signed that they have looked at it."
        if seen is None
        else f"{seen.by} has looked at it: it {'counts' if seen.counts else 'breaks the rules'}."
    )
    print(
        printable(
            f"{options.record}: signed, and unchanged since.\n{_says(record)}\njudged "
            f"{record['judged']}, the entry's text "
            f"{record['sha256'][:16]}\n{records.seeds_words(record)}\nThe key: "
            f"{signing.fingerprint(public)}\n{looked}"
        )
    )
    return 0
