"""An entry: a folder with `entry.py`, and `challenge.txt`, which names the challenge.

Both are only read. What the file's text means is found out in a rank's sandbox, not here.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


ENTRY, CHALLENGE = "entry.py", "challenge.txt"
MOST_BYTES = 20_000  # what people can read; and too little for weights that were trained before
MOST_LETTERS = 100  # of the folder's name
CHALLENGES = Path(__file__).parents[1] / "challenges"


class Entry(NamedTuple):
    """What a folder's files hold; `sha256` is of the source."""

    name: str
    challenge: str
    source: str
    sha256: str


def challenge_names() -> list[str]:
    """The challenges that there are: a folder each."""
    return sorted(path.parent.name for path in CHALLENGES.glob("*/start.md"))


def challenge_folder(name: str) -> Path:
    """`start.md`, `baseline.py`, and in `ladder/` entries that are better, one idea each."""
    return CHALLENGES / name


class BadEntryError(Exception):
    """This is no entry; the message says why."""


def read(folder: str | Path, challenges: Sequence[str]) -> Entry:
    """The `Entry` of a folder; `challenges` are the names that there are."""
    folder = Path(folder)
    if problem := name_problem(folder):
        raise BadEntryError(problem)
    if not folder.is_dir():
        raise BadEntryError(
            f"{folder} is not a folder. `manyhands hack init {challenges[0]} {folder}` makes one."
        )
    challenge = _text(folder / CHALLENGE).strip()
    if challenge not in challenges:
        raise BadEntryError(
            f"{folder / CHALLENGE} names no challenge. There are: {', '.join(challenges)}."
        )
    source = _text(folder / ENTRY)
    return Entry(
        Path(os.path.abspath(folder)).name,
        challenge,
        source,
        hashlib.sha256(source.encode()).hexdigest(),
    )


def name_problem(folder: str | Path) -> str | None:
    """Why this folder's name cannot be that of an entry, and what to do; None if it can.

    It comes into records, on the board and on terminals.
    """
    name = Path(os.path.abspath(folder)).name
    if name and name.isprintable() and len(name) <= MOST_LETTERS:
        return None
    return (
        f"{str(folder)!r}: the name of an entry's folder has 1 to {MOST_LETTERS} characters that "
        "can be printed, in UTF-8. Rename the folder, or choose a different name."
    )


def checked(text: str, name: str = ENTRY) -> str:
    """The text of an entry that is not a file, if it may be one; raises `BadEntryError`."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise BadEntryError(f"{name} is not text in UTF-8.") from None
    if len(data) > MOST_BYTES:
        raise BadEntryError(f"{name} is longer than {MOST_BYTES} bytes.")
    return text


def _text(path: Path) -> str:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise BadEntryError(f"{path} is missing.") from None
    except OSError as error:
        raise BadEntryError(f"{path} cannot be read as a plain file: {error.strerror}.") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise BadEntryError(f"{path} is not a plain file.")
    with open(handle, "rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise BadEntryError(f"{path} is longer than {MOST_BYTES} bytes.")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise BadEntryError(f"{path} is not text in UTF-8.") from None
