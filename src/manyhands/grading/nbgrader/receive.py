"""Taking in what attendees have handed in through nbgrader's exchange.

nbgrader's own `collect` copies what symbolic links point to, with the instructor's rights, believes
the name in a folder's name, and stops at the first folder that it cannot read. Here links are not
followed, a folder that belongs to somebody else is refused, everything that was ever handed in is
kept, and one that cannot be read is told and passed over.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from nbgrader.exchange.default import ExchangeCollect

from manyhands.grading.compare import describe_error
from manyhands.grading.nbgrader import gradebook
from manyhands.grading.nbgrader.class_settings import Classroom
from manyhands.grading.store import submissions
from manyhands.grading.store.beneath import Below
from manyhands.grading.store.paths import OF_THE_MACHINE, STUDENT
from manyhands.grading.submission_limits import MOST_KEPT
from manyhands.machine import local_time
from manyhands.shared.atomic import replace_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SLACK = timedelta(minutes=2)  # handing in takes a moment, and clocks of machines differ
NOT_A_NAME = "Not collected: {folder} does not name an attendee."
NO_FOLDER = "Not collected: {folder} is not a folder, or cannot be read."
NOT_THEIRS = "Not collected: {folder} says that it is from {student}, but it belongs to {owner}."
WRONG = "Not collected: {folder}: {problem}"
FULL = "{most} hand-ins are already kept. You may delete those in {folder} that you do not need"
DATED = (
    "The name of the folder says that it was handed in at {named}, but it was last changed at "
    "{changed}, and that time counts."
)
NO_TIME = "Not collected: {folder} does not say when it was handed in."


class Taken(TypedDict):
    """What was done: students by what became of their work, and sentences on what went wrong."""

    new: list[str]
    again: list[str]
    same: list[str]
    refused: list[str]
    dated: list[str]


class Record(TypedDict):
    """A hand-in: whose it is, when it was handed in, and where it is kept."""

    username: str
    timestamp: datetime
    place: Path


class Collect(ExchangeCollect):
    """nbgrader's collecting, of `nbgrader collect` and formgrader too.

    `taken` says afterwards what it has done.
    """

    def progress(self, done: int, of: int) -> None:
        """Hears how many of the folders are taken in.

        A command puts another function in its place.
        """

    def init_src(self) -> None:
        """Find out where hand-ins are, and to whom each number of a user belongs."""
        self.taken: Taken = {"new": [], "again": [], "same": [], "refused": [], "dated": []}
        self.course_path = os.path.join(self.root, self.coursedir.course_id)
        self.inbound_path = os.path.join(self.course_path, "inbound")
        if not os.path.isdir(self.inbound_path):
            self.fail(
                f"Nothing can be collected, because {self.inbound_path} does not exist. Release a "
                "lab first."
            )
        self.src_records: list[dict[str, Any]] = []
        hub = Path(
            os.environ.get("MANYHANDS_HUB") or Path(self.coursedir.root) / ".manyhands" / "hub"
        )
        self.accounts = _accounts(hub)
        # without root all its people have our own number
        numbered = os.geteuid() == 0 and not (hub / OF_THE_MACHINE).exists()
        attendees = (
            {name: account["uid"] for name, account in self.accounts.items()} if numbered else {}
        )
        self.numbers = {**{entry.pw_name: entry.pw_uid for entry in pwd.getpwall()}, **attendees}
        self.names = {number: name for name, number in attendees.items()}

    def copy_files(self) -> None:
        """Take in every folder of the exchange, and choose each student's newest one."""
        classroom = Classroom(self.coursedir.root).made()
        newest: dict[str, list[Record]] = {}
        folders = sorted(Path(self.inbound_path).iterdir())
        for number, path in enumerate(folders, 1):
            self.progress(number, len(folders))
            with self._alone(path.name):
                if record := self._received(classroom, path):
                    newest.setdefault(record["username"], []).append(record)
        for student, records in sorted(newest.items()):
            with self._alone(student):
                self._collect(classroom, student, self._chosen(records, student))
        self._name(classroom, newest)

    @contextmanager
    def _alone(self, whose: str) -> Iterator[None]:
        """What goes wrong with one hand-in is told by name and logged; the others go on."""
        try:
            yield
        except Exception as problem:  # noqa: BLE001 - one hand-in's failure must not end the others'
            self._refuse(WRONG, whose, problem=describe_error(problem))

    def _received(self, classroom: Classroom, path: Path) -> Record | None:
        """Take in one folder, unless it is there.

        Returns a record of it, or None for what is another unit's, or refused.
        """
        unit = self.coursedir.assignment_id
        name, plus, _ = path.name.partition(f"+{unit}+")
        if not plus or self.coursedir.student_id not in ("", "*", name):
            return None
        if not STUDENT.fullmatch(name):
            self._refuse(NOT_A_NAME, path.name)
            return None
        try:
            record = self._path_to_record(str(path))
        except Exception:  # noqa: BLE001 - somebody else has chosen this name
            self._refuse(NO_TIME, path.name)
            return None
        # the unit is in it twice: nbgrader and formgrader would see another attendee
        if record["username"] != name:
            self._refuse(NOT_A_NAME, path.name)
            return None
        try:
            there = Below(path, own=True)
        except OSError:
            self._refuse(NO_FOLDER, path.name)
            return None
        with there:
            if self.check_owner and (
                self.numbers.get(name, there.owner) != there.owner
                or self.names.get(there.owner, name) != name
            ):
                self._refuse(
                    NOT_THEIRS,
                    path.name,
                    student=name,
                    owner=self.names.get(there.owner, f"user {there.owner}"),
                )
                return None
            place = classroom.received(name, unit) / record["timestamp"].isoformat()
            if not place.is_dir():
                self._keep(there, place, record)
        return {
            "username": name,
            "place": place,
            "timestamp": submissions.handed_in_at(place) or record["timestamp"],
        }

    def _refuse(self, why: str, name: str, **more: object) -> None:
        self.taken["refused"].append(why.format(folder=submissions.shown(name), **more))
        self.log.warning(self.taken["refused"][-1])

    def _keep(self, there: Below, place: Path, record: dict[str, Any]) -> None:
        """Copy an open folder to what was received.

        It was handed in when its name says so, if the clock of its files agrees.
        """
        unit, ours = self.coursedir.assignment_id, (submissions.STAMPS[0], submissions.NOTES)
        if place.parent.is_dir() and len(list(place.parent.iterdir())) >= MOST_KEPT:
            raise OSError(FULL.format(most=MOST_KEPT, folder=place.parent))
        with replace_folder(place) as folder:
            notes = submissions.copy(there, folder, f"{unit}.ipynb", links=True, left_out=ours)
            time, changed = (
                record["timestamp"],
                datetime.fromtimestamp(there.changed, UTC).replace(tzinfo=None, microsecond=0),
            )
            if abs(changed - time) > SLACK:
                notes.append(
                    DATED.format(named=local_time(time, True), changed=local_time(changed, True))
                )
                self.taken["dated"].append(f"{record['username']}: {notes[-1]}")
                self.log.warning(self.taken["dated"][-1])
                time = changed
            (folder / ours[0]).write_text(f"{time.isoformat(sep=' ')} UTC")
            if notes:
                (folder / ours[1]).write_text("\n".join(notes))

    def _chosen(self, records: list[Record], student: str) -> Record:
        """The last one; with nbgrader's `before_duedate`, the last one in time if there is one."""
        records = sorted(records, key=lambda record: record["timestamp"])
        due = self._due(student) if self.before_duedate else None
        in_time = [record for record in records if due is None or record["timestamp"] <= due]
        return (in_time or records)[-1]

    def _due(self, student: str) -> datetime | None:
        from nbgrader.api import Gradebook, MissingEntry

        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as book:
            try:
                return book.find_assignment(self.coursedir.assignment_id).duedate
            except MissingEntry:
                return None

    def _collect(self, classroom: Classroom, student: str, record: Record) -> None:
        target, received = (
            classroom.step_folder("submitted", student, self.coursedir.assignment_id),
            record["place"].parent,
        )
        there = submissions.handed_in_at(target)
        if there == record["timestamp"] or (there and not self.update):
            self.taken["same"].append(student)
            return
        if target.is_dir() and not (
            there
            and any(submissions.handed_in_at(earlier) == there for earlier in received.iterdir())
        ):
            shutil.copytree(target, received / f"by hand, until {submissions.now()}", symlinks=True)
        with replace_folder(target) as folder:
            shutil.copytree(record["place"], folder, symlinks=True, dirs_exist_ok=True)
        self.taken["again" if there else "new"].append(student)
        self.log.info("Collected: %s %s", student, self.coursedir.assignment_id)

    def _name(self, classroom: Classroom, students: Iterable[str]) -> None:
        """Write people's names into the gradebook where it has none.

        Formgrader would show "None, None".
        """
        with gradebook.opened(classroom) as book:
            for student in students:
                with self._alone(student):
                    person = book.update_or_create_student(student)
                    if person.first_name is None and person.last_name is None:
                        book.update_or_create_student(
                            student,
                            first_name="",
                            last_name=self.accounts.get(student, {}).get("full_name") or student,
                        )


def _accounts(hub: Path) -> dict[str, dict[str, Any]]:
    """{name: account} as in the hub's table; empty where there is none."""
    try:
        return {
            account["name"]: account
            for account in json.loads((hub / "accounts.json").read_text(encoding="utf-8"))[
                "accounts"
            ]
        }
    except (OSError, ValueError, LookupError, TypeError):
        return {}
