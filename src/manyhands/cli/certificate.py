"""`manyhands certificate`: a PDF of the points of a path.

An instructor makes a signed one, and anybody can verify it.
"""

from __future__ import annotations

import csv
import getpass
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.checks import progress
from manyhands.command_line import completed, in_words, no_output_file, printable, refuse, working
from manyhands.command_line import parser as command_parser
from manyhands.learner import certificate_paper, start_page
from manyhands.shared import signing
from manyhands.units import NotACloneError, find_root, units

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from typing import Any

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from manyhands.units import Unit


DESCRIPTION = """Make a certificate of the points that `manyhands check` gave you for the labs of a path, as PDF. It is not signed:
an instructor makes a signed one for an attendee, from the grades of the class, which everyone can verify."""
EXAMPLES = [
    '--name "Ada Lovelace"',
    "--path two_days -o ada.pdf",
    "--verify ada.pdf --public instructor.key.pub",
    "--new-key instructor.key",
    '--attendee hand01 --name "Ada Lovelace" --key instructor.key',
]
HOW = {
    False: "Grade them: manyhands check {numbers}",
    True: "Collect and grade them: manyhands grade {numbers}",
}
COMPARE = (
    "Compare the key's letters with the letters that your instructor has published, or give the "
    "key's file with --public FILE.pub"
)


class RefusedError(Exception):
    """What was asked for cannot be done; the message says why and what to do."""


def parser() -> argparse.ArgumentParser:
    """Make the parser of `manyhands certificate`."""
    made = command_parser("certificate", DESCRIPTION, EXAMPLES)
    made.add_argument(
        "--path",
        choices=list(certificate_paper.PATH_TITLES),
        default="one_day",
        help="the path through the course (one_day)",
    )
    made.add_argument("--name", help="the name on it (your log-in name)")
    made.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="where to write it (certificate.pdf); never overwritten",
    )
    made.add_argument(
        "--verify",
        metavar="FILE",
        help="report who has signed a certificate, and whether it was changed",
    )
    made.add_argument(
        "--public", metavar="FILE", help="with --verify: the key that must have signed it"
    )
    made.add_argument(
        "--attendee",
        metavar="NAME",
        help="instructors: certify this attendee's grades in the class",
    )
    made.add_argument("--key", metavar="FILE", help="instructors: the key to sign with")
    made.add_argument(
        "--new-key", metavar="FILE", help="instructors: make a key, and FILE.pub to publish"
    )
    return made


def main(argv: Sequence[str]) -> int:
    """Run `manyhands certificate`: write, sign or verify one; returns the exit status."""
    options = completed(parser()).parse_args(argv)
    if bool(options.attendee) != bool(options.key):
        print(
            "manyhands certificate: --attendee and --key must be used together, because only points"
            " from the class's grading are signed.",
            file=sys.stderr,
        )
        return 2
    work = (
        _verify
        if options.verify is not None
        else _new_key
        if options.new_key is not None
        else _make
    )
    try:
        return work(options)
    except FileExistsError as problem:
        return refuse(
            "certificate",
            f"{problem.filename} exists already, and nothing is overwritten. Name another file.",
        )
    except OSError as problem:
        return refuse("certificate", in_words(problem))
    except (NotACloneError, signing.BadKeyError) as problem:
        return refuse("certificate", problem)
    except (RefusedError, certificate_paper.NoCertificateError) as problem:
        print(f"manyhands certificate: {printable(problem)}", file=sys.stderr)
        return 1


def _make(options: argparse.Namespace) -> int:
    root, output = (
        find_root(),
        Path("certificate.pdf" if options.output is None else options.output),
    )
    if problem := no_output_file(output, None):
        return refuse("certificate", problem)
    key = signing.load_key(options.key) if options.key else None
    chosen = [unit for unit in start_page.units_of(units(root), options.path) if not unit.planned]
    # {unit's name: what has points, max and when}
    grades: dict[str, Any] = (
        _class_grades(root, options.attendee, chosen) if key else progress.load(root / "work")
    )
    missing = [
        unit.number for unit in chosen if not certificate_paper.graded(grades.get(unit.name))
    ]
    try:
        made = certificate_paper.make_certificate(
            options.name or options.attendee or getpass.getuser(),
            options.path,
            chosen,
            grades,
            by_instructor=bool(key),
        )
    except certificate_paper.NoCertificateError as problem:
        raise RefusedError(
            f"{problem} {HOW[bool(key)].format(numbers=' '.join(missing)) if missing else ''}"
        ) from None
    data = certificate_paper.render_pdf(made)
    with open(output, "xb") as file:
        file.write(signing.signed(data, key) if key else data)
    print(
        f"{output}: {_says(made.brief)}"
        + (f"\nSigned with the key {_letters(key)}." if key else "")
    )
    return 0


def _class_grades(root: Path, attendee: str, chosen: Sequence[Unit]) -> dict[str, dict[str, Any]]:
    """Return {unit's name: grade} of an attendee, as `manyhands export` tells them.

    Points by hand and for lateness are included.
    """
    from manyhands.grading.classroom import steps
    from manyhands.grading.nbgrader.class_settings import Classroom

    classroom = Classroom(root)
    names = [unit.name for unit in chosen if (classroom.folder / "grades" / unit.name).is_dir()]
    table = io.StringIO()
    if names:
        with working(f"reading the grades of {len(names)} labs"):
            steps.export(classroom, names, table)
    table.seek(0)
    return {
        row["lab"]: {
            "points": float(row["points"]),
            "max": float(row["max"]),
            "when": row["graded"],
        }
        for row in csv.DictReader(table)
        if row["student"] == attendee and row["points"] and not row["verdict"]
    }


def _new_key(options: argparse.Namespace) -> int:
    private, public = signing.new_key(options.new_key)
    print(
        f"{private}: keep this file to yourself, because anyone who has it can sign in your "
        f"name.\n{public}: publish this file and its letters: "
        f"{signing.fingerprint(signing.load_public(public))}"
    )
    return 0


def _verify(options: argparse.Namespace) -> int:
    data, file = Path(options.verify).read_bytes(), options.verify
    wanted = signing.load_public(options.public) if options.public else None
    try:
        before, public = signing.verified(data)
    except signing.BadSignatureError as problem:
        statement = certificate_paper.brief_of(data)
        raise RefusedError(
            f"{file} {problem}."
            if statement or signing.MARK in data
            else f"{file} is no certificate of this course."
        ) from None
    statement = certificate_paper.brief_of(before)
    if statement is None:
        raise RefusedError(f"{file} is no certificate of this course.")
    if wanted not in (None, public):
        raise RefusedError(
            f"{file} was signed with a different key, {signing.fingerprint(public)}."
        )
    print(
        f"{file}: signed, and unchanged since.\n{_says(statement)}\nThe key: "
        f"{signing.fingerprint(public)}" + ("" if wanted else f"\n{COMPARE}")
    )
    return 0


def _says(brief: dict[str, Any]) -> str:
    return (
        f"{brief['name']}, path {brief['path']}, {brief['units']} units, {brief['points']:g} of "
        f"{brief['max']:g} points, {brief['day']}"
    )


def _letters(key: Ed25519PrivateKey) -> str:
    return signing.fingerprint(key.public_key().public_bytes_raw())
