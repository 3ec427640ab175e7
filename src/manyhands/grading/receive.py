"""Taking in what attendees have handed in through nbgrader's exchange.

nbgrader's own `collect` copies what symbolic links point to, with the instructor's rights, believes the name in a folder's
name, and stops at the first folder that it cannot read. Here links are not followed, a folder that belongs to somebody else
is refused, everything that was ever handed in is kept, and one that cannot be read is told and passed over.
"""

import json
import os
import pwd
import shutil
from pathlib import Path

from nbgrader.exchange.default import ExchangeCollect

from manyhands.grading import gradebook, submissions
from manyhands.grading.classroom import OF_THE_MACHINE, STUDENT, Classroom
from manyhands.grading.folders import replace_folder

NOT_A_NAME = "Not collected: {folder} does not name an attendee."
NOT_THEIRS = "Not collected: {folder} says that it is by {student}, but it belongs to {owner}."
NO_TIME = "Not collected: {folder} does not say when it was handed in."


class Collect(ExchangeCollect):
    """nbgrader's collecting, of `nbgrader collect` and formgrader too; `taken` says afterwards what it has done."""

    def init_src(self):
        self.taken = {"new": [], "again": [], "same": [], "refused": []}
        self.course_path = os.path.join(self.root, self.coursedir.course_id)
        self.inbound_path = os.path.join(self.course_path, "inbound")
        if not os.path.isdir(self.inbound_path):
            self.fail(f"Nothing can be collected: there is no {self.inbound_path}. Release a lab first.")
        self.src_records = []
        hub = Path(os.environ.get("MANYHANDS_HUB") or Path(self.coursedir.root) / ".manyhands" / "hub")
        self.accounts = _accounts(hub)
        numbered = os.geteuid() == 0 and not (hub / OF_THE_MACHINE).exists()  # without root all its people have our own number
        attendees = {name: account["uid"] for name, account in self.accounts.items()} if numbered else {}
        self.numbers = {**{entry.pw_name: entry.pw_uid for entry in pwd.getpwall()}, **attendees}
        self.names = {number: name for name, number in attendees.items()}

    def copy_files(self):
        classroom = Classroom(self.coursedir.root).made()
        wanted = None if self.coursedir.student_id in ("", "*") else self.coursedir.student_id
        newest = {}
        for path in sorted(Path(self.inbound_path).iterdir()):
            record = self._record(path)
            if record and wanted in (None, record["username"]):
                self._keep(classroom, path, record)
                newest.setdefault(record["username"], []).append(record)
        for student, records in sorted(newest.items()):
            self._collect(classroom, student, self._chosen(records, student))
        self._name(classroom, newest)

    def _record(self, path):
        """Who handed this in, and when: nbgrader's record, or None for what is another unit's, or refused."""
        name, plus, rest = path.name.partition(f"+{self.coursedir.assignment_id}+")
        if not plus:
            return None
        if not STUDENT.fullmatch(name) or path.is_symlink() or not path.is_dir():
            return self._refuse(NOT_A_NAME, path)
        try:
            record = self._path_to_record(str(path))
        except Exception:  # somebody else has chosen this name
            return self._refuse(NO_TIME, path)
        owner = path.lstat().st_uid
        if self.check_owner and (self.numbers.get(name, owner) != owner or self.names.get(owner, name) != name):
            return self._refuse(NOT_THEIRS, path, student=name, owner=self.names.get(owner, f"user {owner}"))
        return record

    def _refuse(self, why, path, **more):
        self.taken["refused"].append(why.format(folder=submissions.shown(path.name), **more))
        self.log.warning(self.taken["refused"][-1])

    def _keep(self, classroom, path, record):
        """Copy it to what was received, unless it is there."""
        place = self._place(classroom, record)
        if not place.is_dir():
            with replace_folder(place) as folder:
                notes = submissions.copy(path, folder, f"{self.coursedir.assignment_id}.ipynb", links=True)
                self._stamp(folder, record, notes)

    def _place(self, classroom, record):
        return classroom.received(record["username"], self.coursedir.assignment_id) / record["timestamp"].isoformat()

    def _stamp(self, folder, record, notes):
        for name in (submissions.STAMPS[0], submissions.NOTES):
            (folder / name).unlink(missing_ok=True)
        (folder / submissions.STAMPS[0]).write_text(f"{record['timestamp'].isoformat(sep=' ')} UTC")
        if notes:
            (folder / submissions.NOTES).write_text("\n".join(notes))

    def _chosen(self, records, student):
        """The last one; with nbgrader's `before_duedate`, the last one in time if there is one."""
        records = sorted(records, key=lambda record: record["timestamp"])
        due = self._due(student) if self.before_duedate else None
        in_time = [record for record in records if due is None or record["timestamp"] <= due]
        return (in_time or records)[-1]

    def _due(self, student):
        from nbgrader.api import Gradebook, MissingEntry

        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as book:
            try:
                return book.find_assignment(self.coursedir.assignment_id).duedate
            except MissingEntry:
                return None

    def _collect(self, classroom, student, record):
        target = classroom.place("submitted", student, self.coursedir.assignment_id)
        there = submissions.handed_in_at(target)
        if there == record["timestamp"] or there and not self.update:
            self.taken["same"].append(student)
            return
        if target.is_dir() and not (there and self._place(classroom, {"username": student, "timestamp": there}).is_dir()):
            by_hand = classroom.received(student, self.coursedir.assignment_id) / f"by hand, until {submissions.now()}"
            shutil.copytree(target, by_hand, symlinks=True)
        with replace_folder(target) as folder:
            shutil.copytree(self._place(classroom, record), folder, symlinks=True, dirs_exist_ok=True)
        self.taken["again" if there else "new"].append(student)
        self.log.info("Collected: %s %s", student, self.coursedir.assignment_id)

    def _name(self, classroom, students):
        """Names of people into the gradebook where it has none: formgrader would show "None, None"."""
        with gradebook.opened(classroom) as book:
            for student in students:
                person = book.update_or_create_student(student)
                if person.first_name is None and person.last_name is None:
                    book.update_or_create_student(student, first_name="", last_name=self.accounts.get(student, {}).get("full_name") or student)


def _accounts(hub):
    """{name: account} as in the hub's table; empty where there is none."""
    try:
        return {account["name"]: account for account in json.loads((hub / "accounts.json").read_text(encoding="utf-8"))["accounts"]}
    except (OSError, ValueError, LookupError, TypeError):
        return {}
