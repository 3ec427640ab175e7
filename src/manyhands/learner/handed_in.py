"""What the learner has handed in on a class's hub, and the feedback on it.

Start_Here shows both.

    DATA/nbgrader_cache/manyhands/hand01+06_ddp+TIME/submission_secret.txt   what Submit keeps at home of each hand-in
    EXCHANGE/manyhands/feedback/HASH.html                                    a page; the hash comes from that secret
    work/06_ddp/feedback/TIME/06_ddp.html                                    where nbgrader's Fetch Feedback puts it

`fetch` does what that button does, so that the page is there as soon as the class has it. Nothing
is read but the person's own folder and the pages whose names only they can know.
"""

import filecmp
import hashlib
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from manyhands.learner.jupyter_server import state_folder
from manyhands.learner.released import COURSE
from manyhands.machine import local_time


@dataclass(frozen=True)
class HandIn:
    """One lab that was handed in once."""

    folder: Path  # its copy in nbgrader's cache
    lab: str
    time: str  # as nbgrader writes it, which is also the name of a folder

    @property
    def shown(self) -> str:
        """The time as people read it: `2026-12-01 18:00 JST`."""
        try:
            return local_time(datetime.strptime(self.time, "%Y-%m-%d %H:%M:%S.%f UTC"))
        except ValueError:
            return self.time

    def page(self, work: str | Path) -> Path:
        """Where its feedback is once it has been fetched."""
        return Path(work) / self.lab / "feedback" / self.time / f"{self.lab}.html"

    def released_page(self, exchange: str | Path) -> Path | None:
        """Where the class puts its feedback, or None if nbgrader has kept no secret for it."""
        try:
            secret = (self.folder / "submission_secret.txt").read_bytes()
        except OSError:
            return None
        # as nbgrader's notebook_hash
        name = hashlib.md5(secret + self.lab.encode(), usedforsecurity=False).hexdigest()
        return Path(exchange) / COURSE / "feedback" / f"{name}.html"


HandIns = dict[str, list[HandIn]]  # of each lab, the newest last


def watched(root: str | Path, exchange: str | Path) -> list[Path]:
    """List the folders that change when the learner hands something in.

    They also change when the class releases feedback.
    """
    return [_cache(root), Path(exchange) / COURSE / "feedback"]


def _cache(root: str | Path) -> Path:
    return state_folder(root) / "data" / "nbgrader_cache" / COURSE


def handed_in(root: str | Path) -> HandIns:
    """{lab: [HandIn, ...]}, the newest hand-in of a lab last."""
    hand_ins: HandIns = {}
    with suppress(OSError):
        for folder in sorted(_cache(root).iterdir(), key=lambda path: path.name):
            parts = folder.name.split("+")
            if len(parts) == 3 and all(parts) and parts[1][0] != "." and folder.is_dir():
                hand_ins.setdefault(parts[1], []).append(HandIn(folder, parts[1], parts[2]))
    return {lab: sorted(tries, key=lambda hand_in: hand_in.time) for lab, tries in hand_ins.items()}


def fetch(root: str | Path, exchange: str | Path) -> None:
    """Fetch every page of feedback that the class has released and that is missing here.

    A page of which there is another version is fetched, too.

    A lab whose folder the learner has removed or renamed is left out.
    """
    work = Path(root) / "work"
    for hand_in in (hand_in for tries in handed_in(root).values() for hand_in in tries):
        there, here = hand_in.released_page(exchange), hand_in.page(work)
        with suppress(OSError):
            if not there or not there.is_file() or not (work / hand_in.lab).is_dir():
                continue
            if not (here.is_file() and filecmp.cmp(there, here, shallow=False)):
                _copy(there, here)


def _copy(there: Path, here: Path) -> None:
    """Write the page in one step, so that a page that is being read is never half of one."""
    here.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=here.parent, prefix=".new-")
    os.close(handle)
    try:
        shutil.copyfile(there, temporary)
        os.replace(temporary, here)
    except BaseException:
        os.unlink(temporary)
        raise
