"""The part of Start_Here that an instructor of a class's hub has besides what attendees see.

The hub tells it by the environment: MANYHANDS_TEACHES, the hub's address; MANYHANDS_SOLUTIONS,
where the solutions are seen, on an instructor's server alone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.units import Unit

# beside work/: `solutions` would be where `manyhands check` looks for what to grade against
LINK = "solved"
SECTION = """
## For instructors

In [Formgrader]({hub}/services/formgrader/), you see what was handed in, grade it, and give marks and comments. See also [the board of the whole class]({hub}/services/board/) ·
[the predictions of the class]({hub}/services/board/predictions) · [who works now]({hub}/hub/admin)
{solutions}
* **A lab, from release to grades.** In a terminal of the hub's machine, run `manyhands release 06 --due "2026-12-01 18:00"`, so that attendees can fetch the lab and hand
  it in. Afterwards, run `manyhands collect 06`, `manyhands grade 06`, `manyhands feedback 06`, and `manyhands export -o grades.csv`. You can also use the buttons of formgrader instead.
* **Marks and comments by hand.** Use *Manual Grading* in formgrader. A later `manyhands grade` keeps them, and `manyhands feedback` shows them to the attendee.
* **An attendee is stuck.** The board says who is stuck, since when and on what. From *who works now*, you can open their server to help them.
"""
SOLUTIONS = """
* **Solutions,** which attendees do not have: {links}.
"""


def link(root: str | Path) -> None:
    """Make the link to the solutions in the home folder `root`, where the hub shows any."""
    there, made = os.environ.get("MANYHANDS_SOLUTIONS"), Path(root) / LINK
    if there and os.path.isdir(there) and not made.is_symlink() and not made.exists():
        made.symlink_to(there)


def section(root: str | Path, course: Sequence[Unit]) -> str:
    """The section, as Markdown; nothing for anybody else."""
    hub = os.environ.get("MANYHANDS_TEACHES", "").rstrip("/")
    if not hub:
        return ""
    links = [
        f"[{unit.number}](../{LINK}/{unit.name}/{unit.name}.ipynb)"
        for unit in course
        if (Path(root) / LINK / unit.name / f"{unit.name}.ipynb").is_file()
    ]
    return SECTION.format(
        hub=hub, solutions=SOLUTIONS.format(links=" · ".join(links)).rstrip() if links else ""
    )
