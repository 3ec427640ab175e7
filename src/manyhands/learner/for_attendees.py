"""The part of Start_Here that an attendee of a class's hub has.

It is about the account, the labs that the class releases, when they are due, what was handed in,
and where feedback is waiting.

The hub tells it by the environment: MANYHANDS_NOTICE, a sentence about the account;
MANYHANDS_EXCHANGE, the folder through which labs, hand-ins and feedback go.
"""

from __future__ import annotations

import os
from collections.abc import Container, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from manyhands.learner import handed_in
from manyhands.learner.markdown import link, plain
from manyhands.learner.released import due_file, due_in, labs_in

if TYPE_CHECKING:
    from manyhands.learner.handed_in import HandIns
    from manyhands.units import Unit

EXCHANGE = """
**Labs that your instructor releases** are in the menu under *Nbgrader*, *Assignment List*. There you fetch a lab (it is copied to `work/`) and hand it in (*Submit*).
Before you hand it in, save the notebook with Ctrl+S. You may hand in a lab again, and only the last one counts. This page says when your feedback is ready.
"""
DUE = """
**Due:** {labs}.
"""
READY = """
**Handed in, feedback ready:** {labs}
"""
HANDED_IN = """
**Handed in, no feedback yet:** {labs}
"""


def exchange() -> str | None:
    """Where labs are fetched from, on a server of a class's hub; else None."""
    return os.environ.get("MANYHANDS_EXCHANGE") if "JUPYTERHUB_USER" in os.environ else None


def released() -> list[str]:
    """The labs that can be fetched."""
    return labs_in(there) if (there := exchange()) else []


def to_fetch(root: str | Path) -> list[str]:
    """Those of them that the learner has not yet."""
    return [name for name in released() if not (Path(root) / "work" / name).exists()]


def watched(root: str | Path) -> list[Path]:
    """List the files and folders that change when what this part shows has changed.

    The class or the learner changes it.
    """
    return [due_file(there), *handed_in.watched(root, there)] if (there := exchange()) else []


def fetch_feedback(root: str | Path) -> None:
    """Bring the feedback that the class has released into the learner's folder."""
    if there := exchange():
        handed_in.fetch(root, there)


def section(root: str | Path, course: Sequence[Unit]) -> str:
    """The section, as Markdown; nothing where there is no class."""
    notice = os.environ.get("MANYHANDS_NOTICE")
    account = f"\n**Your account:** {notice}\n" if notice else ""
    there = exchange()
    if not there:
        return account
    hand_ins = handed_in.handed_in(root)
    return account + EXCHANGE + _due(there, hand_ins, course) + _handed_in(root, hand_ins, course)


def lab_states(root: str | Path) -> dict[str, str]:
    """Return {lab: what the table says of it} of each lab that was handed in.

    It is a link if feedback is ready.
    """
    hand_ins = handed_in.handed_in(root) if exchange() else {}
    pages = {name: _feedback(root, tries) for name, tries in hand_ins.items()}
    return {name: link("feedback", page) if page else "handed in" for name, page in pages.items()}


def _titles(course: Sequence[Unit]) -> dict[str, str]:
    return {unit.name: f"{unit.number} {unit.title}" for unit in course}


def _due(there: str, hand_ins: Container[str], course: Sequence[Unit]) -> str:
    """Write a paragraph that says until when the released labs are to be handed in, or nothing."""
    titles = _titles(course)
    labs = [
        f"{titles.get(name, plain(name))}: {when}{' (handed in)' if name in hand_ins else ''}"
        for name, when in due_in(there)
    ]
    return DUE.format(labs=" · ".join(labs)) if labs else ""


def _handed_in(root: str | Path, hand_ins: HandIns, course: Sequence[Unit]) -> str:
    """Write a paragraph on the labs whose feedback is ready, with links to it.

    A second one is on the others that were handed in.
    """
    titles = _titles(course)
    ready: list[str] = []
    waiting: list[str] = []
    for name, tries in sorted(hand_ins.items()):
        title, page = titles.get(name, plain(name)), _feedback(root, tries)
        if page:
            newest = tries[-1].page(_work(root)).is_file()
            again = (
                ""
                if newest
                else f" (on an earlier version; handed in again {plain(tries[-1].shown)})"
            )
            ready.append(link(title, page) + again)
        else:
            waiting.append(f"{title}, {plain(tries[-1].shown)}")
    return "".join(
        form.format(labs=" · ".join(labs))
        for form, labs in ((READY, ready), (HANDED_IN, waiting))
        if labs
    )


def _work(root: str | Path) -> Path:
    return Path(root) / "work"


def _feedback(root: str | Path, tries: Sequence[handed_in.HandIn]) -> str | None:
    """The newest page of feedback on a lab, as a link from `work/`, or None."""
    pages = [page for hand_in in reversed(tries) if (page := hand_in.page(_work(root))).is_file()]
    return quote(pages[0].relative_to(_work(root)).as_posix()) if pages else None
