"""nbgrader's exchange with folders that only their owner can rearrange.

The attendee's side of it is here too.

    EXCHANGE/manyhands/outbound/06_ddp/                       a released lab: everybody reads it
    EXCHANGE/manyhands/inbound/hand01+06_ddp+TIME+RANDOM/     handed in: all may add to `inbound`, nobody can list it
    EXCHANGE/manyhands/feedback/HASH.html                     a page: only who handed the work in can know its name

nbgrader asks for an outermost folder that everybody may write to. Whoever may write there can put a
folder of their own in the place of `manyhands`, and read what is handed in. So ours are the owner's
alone, and nbgrader's parts do not ask.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from nbgrader.exchange import default

from manyhands.learner.released import COURSE

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from traitlets.config import Config

MODES = {
    "": 0o755,
    COURSE: 0o755,
    f"{COURSE}/outbound": 0o755,
    f"{COURSE}/inbound": 0o3733,
    f"{COURSE}/feedback": 0o711,
}
NONE = (
    "There is no exchange at {root}. Your instructor makes it by `manyhands release`, or by "
    "starting the hub."
)


def make(root: str | Path) -> None:
    """Make the exchange's folders, or put their modes right.

    Raises OSError, for example where they are somebody else's.
    """
    for name, mode in MODES.items():
        folder = Path(root) / name
        folder.mkdir(parents=True, exist_ok=True)
        if folder.stat().st_mode & 0o7777 != mode:
            folder.chmod(mode)


class _Closed:
    root: str
    fail: Callable[[str], NoReturn]

    def ensure_root(self) -> None:
        if not os.path.isdir(self.root):
            self.fail(NONE.format(root=self.root))


class List(_Closed, default.ExchangeList):
    """What was released and handed in."""


class FetchAssignment(_Closed, default.ExchangeFetchAssignment):
    """A released lab comes to the attendee; one that is there already is never touched."""

    def copy_files(self) -> None:
        """Copy the lab, and renew the start page, which shows it."""
        from manyhands.learner import start_page

        super().copy_files()
        start_page.renew()


class FetchFeedback(_Closed, default.ExchangeFetchFeedback):
    """Pages of feedback come to the attendee."""


class Submit(_Closed, default.ExchangeSubmit):
    """Work goes to the instructor, readable for its author and root alone.

    nbgrader relies on the unknown name of its folder.
    """

    def set_perms(self, dest: str, fileperms: int, dirperms: int) -> None:
        """Set the modes of files that nobody else reads, whatever nbgrader asks for."""
        super().set_perms(dest, 0o600, 0o700)

    def copy_files(self) -> None:
        """Copy the work, and close its folder to others."""
        super().copy_files()
        os.chmod(os.path.join(self.inbound_path, self.assignment_filename), 0o700)


class ReleaseAssignment(default.ExchangeReleaseAssignment):
    """Labs go to the attendees."""

    def ensure_root(self) -> None:
        """Make the exchange's folders, or put their modes right."""
        make(self.root)


def use(c: Config) -> None:
    """For nbgrader's settings on the instructor's side."""
    c.ExchangeFactory.list = f"{__name__}.List"
    c.ExchangeFactory.fetch_assignment = f"{__name__}.FetchAssignment"
    c.ExchangeFactory.fetch_feedback = f"{__name__}.FetchFeedback"
    c.ExchangeFactory.release_assignment = f"{__name__}.ReleaseAssignment"


def use_as_attendee(c: Config, work: str | Path) -> None:
    """For nbgrader's settings on an attendee's server, whose hub tells the exchange and the name.

    `work`: where labs come to.
    """
    use(c)
    c.ExchangeFactory.submit = f"{__name__}.Submit"
    c.CourseDirectory.course_id = COURSE
    c.CourseDirectory.student_id = os.environ["JUPYTERHUB_USER"]
    c.Exchange.root = os.environ["MANYHANDS_EXCHANGE"]
    c.Exchange.assignment_dir = str(work)
