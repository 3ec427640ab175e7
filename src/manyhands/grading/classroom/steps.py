"""What an instructor does with a unit: release, collect, grade, give feedback, export.

The commands show what these return.
"""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from nbgrader.auth import Authenticator
from nbgrader.exchange import ExchangeError, ExchangeFactory

from manyhands.checks.record import FAIL
from manyhands.grading.classroom.grading import RefusedError, batch_of, journal_of
from manyhands.grading.classroom.marks import alone, into_gradebook, is_of
from manyhands.grading.nbgrader import feedback, gradebook
from manyhands.grading.store import submissions
from manyhands.learner.released import due_file, labs_in
from manyhands.machine import local_time
from manyhands.shared.atomic import replace_folder, write_file

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import TextIO

    from nbgrader.api import Gradebook

    from manyhands.grading.grade_report import GradeData
    from manyhands.grading.nbgrader.class_settings import Classroom
    from manyhands.grading.nbgrader.receive import Taken
    from manyhands.grading.store.grade_journal import Entry

NOTHING = (
    "No hand-in for {unit} was collected or graded. First run `manyhands collect {number}`, and "
    "then `manyhands grade {number}`."
)


def release(classroom: Classroom, unit: str, due: str | None = None, again: bool = False) -> bool:
    """Put a lab into the exchange; where it is there already, only with `again`.

    Returns whether it was put there.
    """
    lab = classroom.root / "labs" / unit
    if not (lab / f"{unit}.ipynb").is_file():
        raise RefusedError(
            f"There is no lab in labs/{unit}: `manyhands build {unit[:2]}` makes it."
        )
    gradebook.register(classroom, unit)
    if due is not None:
        with gradebook.opened(classroom) as book:
            book.update_or_create_assignment(unit, duedate=_time(due))
    out = exchange(classroom, unit, "ReleaseAssignment", force=again)
    released = _released(classroom, unit)
    if released.is_dir():
        publish_due_dates(classroom)
    if released.is_dir() and not again:
        if _content(released) != _content(lab):
            raise RefusedError(
                f"A different version of {unit} was released before. `--again` replaces it by the "
                "new one, but attendees who have fetched the old one keep it."
            )
        return False
    _start(out)
    publish_due_dates(classroom)
    return True


def publish_due_dates(classroom: Classroom) -> None:
    """Publish until when the labs that are released are to be handed in.

    Attendees read it in the exchange.
    """
    with gradebook.opened(classroom) as book:
        dates = {
            assignment.name: assignment.duedate.replace(tzinfo=UTC)
            for assignment in book.assignments
            if assignment.duedate
        }
    dates_shown = {
        name: {"until": dates[name].isoformat(), "shown": local_time(dates[name])}
        for name in labs_in(classroom.exchange)
        if name in dates
    }
    path, text = due_file(classroom.exchange), json.dumps(dates_shown, indent=1)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_file(path, text, mode=0o644)


def _released(classroom: Classroom, unit: str) -> Path:
    """Where the exchange holds a lab that was released."""
    return classroom.exchange / classroom.course.course_id / "outbound" / unit


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text.strip().replace(" +", "+").replace(" -", "-"))
        return time.astimezone(UTC).replace(tzinfo=None)  # without a zone it is this machine's
    except (ValueError, OverflowError):
        raise RefusedError(
            f"{text!r} is not a time. Write it as 2026-12-01 18:00, or with its zone: 2026-12-01 "
            "18:00 +0900."
        ) from None


def _content(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def exchange(classroom: Classroom, unit: str, part: str, student: str = "", **options: Any) -> Any:
    """One of the parts of nbgrader's exchange, ready to be started.

    `part` is "ReleaseAssignment", "Collect" or "ReleaseFeedback".
    """
    from nbgrader.coursedir import CourseDirectory

    log, log_text = gradebook.quiet_log(part)
    course = CourseDirectory(
        config=classroom.config,
        log=log,
        assignment_id=unit,
        **({"student_id": student} if student else {}),
    )
    authenticator = Authenticator(config=classroom.config, log=log)
    factory = ExchangeFactory(config=classroom.config, log=log)
    made = getattr(factory, part)(
        coursedir=course,
        authenticator=authenticator,
        parent=None,
        config=classroom.config,
        log=log,
        **options,
    )
    made.said = log_text
    return made


def _start(part: Any) -> None:
    try:
        part.start()
    except ExchangeError as problem:
        raise RefusedError(f"{problem}") from None
    except (Exception, SystemExit) as problem:  # noqa: BLE001 - whatever nbgrader raises, its output says more
        raise RefusedError(f"nbgrader stopped: {problem}\n{part.said.getvalue()}") from None


def collect(
    classroom: Classroom,
    unit: str,
    student: str = "",
    progress: Callable[[int, int], None] | None = None,
) -> Taken:
    """Take in what was handed in.

    Returns {"new", "again", "same": students, "refused", "dated": sentences}. `progress(done, of)`
    hears of the folders that were handed in.
    """
    if not _released(classroom, unit).is_dir():
        raise RefusedError(
            f"{unit} was not released yet, so no one can have handed it in. First run: manyhands "
            f"release {unit[:2]}"
        )
    part = exchange(classroom.made(), unit, "Collect", student, update=True)
    part.progress = progress or part.progress
    _start(part)
    return part.taken


def give_feedback(
    classroom: Classroom,
    unit: str,
    students: Sequence[str] = (),
    hold_back: bool = False,
    **options: Any,
) -> tuple[dict[str, Path], dict[str, str], dict[str, str]]:
    """Write the feedback pages of all that are graded, and release them unless they are held back.

    Returns ({student: path of the page}, {student: why it was not released}, {student: what else
    was not done}).
    """
    grades = journal_of(classroom, unit)
    everybody = students or sorted({*grades.students(), *classroom.students(unit)})
    entries: dict[str, Entry] = {}
    failed: dict[str, str] = {}
    for student in everybody:
        entry = grades.current(student)
        if entry is not None and is_of(entry, classroom.step_folder("submitted", student, unit)):
            entries[student] = entry
        else:
            failed[student] = (
                f"what was collected last has no grade yet. First run `manyhands grade {unit[:2]}`."
            )
    if not entries:
        raise RefusedError(
            "\n".join(f"{student}: {why}" for student, why in failed.items())
            or NOTHING.format(unit=unit, number=unit[:2])
        )
    failing = [
        student
        for student, entry in entries.items()
        if not entry["grade"]["verdict"]
        and any(line["status"] == FAIL for line in entry["grade"]["criteria"])
    ]
    if failing:
        outcome = batch_of(classroom, unit, "public", failing, **options).run()
        failed.update(
            {
                student: f"the expected values are not on the page: {why}"
                for student, why in outcome.failed.items()
            }
        )
    grades.forget_seed()  # before anybody can read what has passed
    pages = _pages(
        classroom, unit, entries, failing, failed, options.get("progress", lambda *_: None)
    )
    why_not = {
        student: _release_page(classroom, unit, student) for student in ([] if hold_back else pages)
    }
    return pages, {student: why for student, why in why_not.items() if why}, failed


def _pages(
    classroom: Classroom,
    unit: str,
    entries: dict[str, Entry],
    failing: Container[str],
    failed: dict[str, str],
    progress: Callable[[int, int, str], object],
) -> dict[str, Path]:
    """Write the pages of those whose marks are in the gradebook: {student: path}."""
    public = journal_of(classroom, unit, "public")
    solution = submissions.Solution(classroom.solution(unit))
    pages: dict[str, Path] = {}
    without = into_gradebook(classroom, unit, journal_of(classroom, unit), entries)
    failed.update(without)
    with gradebook.opened(classroom) as book:
        for number, (student, entry) in enumerate(entries.items(), 1):
            progress(number, len(entries), student)
            if student in without:
                continue
            with alone(failed, student, book):
                shown = public.current(student) if student in failing else None
                seen = (
                    shown["grade"]
                    if shown and shown["key"]["submission"] == entry["key"]["submission"]
                    else None
                )
                pages[student] = _page(
                    classroom, unit, student, solution, entry["grade"], seen, book
                )
    return pages


def _page(
    classroom: Classroom,
    unit: str,
    student: str,
    solution: submissions.Solution,
    given: GradeData,
    seen: GradeData | None,
    book: Gradebook,
) -> Path:
    submitted = classroom.step_folder("submitted", student, unit)
    text = feedback.page(solution, submitted, given, seen, feedback.marks_of(book, unit, student))
    target = classroom.step_folder("feedback", student, unit)
    with replace_folder(target) as folder:
        (folder / f"{unit}.html").write_text(text, encoding="utf-8")
        (folder / f"{unit}.html").chmod(0o644)  # nbgrader releases it with the mode that it has
        for name, content in submissions.stamps(submitted).items():
            (folder / name).write_bytes(content)
    return target / f"{unit}.html"


def _release_page(classroom: Classroom, unit: str, student: str) -> str | None:
    """Put a page into the exchange; why not, if nbgrader refuses."""
    if not (classroom.step_folder("feedback", student, unit) / submissions.STAMPS[1]).is_file():
        return "it was not handed in through the exchange, so give them the page yourself"
    try:
        _start(exchange(classroom, unit, "ReleaseFeedback", student))
    except RefusedError as problem:
        return str(problem)
    return None


HEAD = [
    "lab",
    "student",
    "first_name",
    "last_name",
    "submitted",
    "late_s",
    "points",
    "max",
    "late_penalty",
    "check",
    "check_points",
    "check_max",
    "by_hand",
    "graded",
    "reason",
    "verdict",
]


def export(classroom: Classroom, units: Iterable[str], file: TextIO) -> tuple[int, dict[str, str]]:
    """Write a table of all grades as CSV.

    It has one row for each student and lab, and one for each of its checks.

    Returns (how many rows, {whose: why they are not in it}).
    """
    table = csv.DictWriter(file, HEAD)
    table.writeheader()
    count = 0
    failed: dict[str, str] = {}
    for unit in units:
        grades = journal_of(classroom, unit)
        without = into_gradebook(classroom, unit, grades, grades.students())
        with gradebook.opened(classroom) as book:
            for student in [student for student in grades.students() if student not in without]:
                with alone(without, student, book):
                    rows = [
                        {key: _cell(value) for key, value in row.items()}
                        for row in _rows(classroom, book, unit, student)
                    ]
                    table.writerows(rows)
                    count += len(rows)
        failed.update({f"{unit}: {student}": why for student, why in without.items()})
    return count, failed


def _rows(
    classroom: Classroom, book: Gradebook, unit: str, student: str
) -> Iterator[dict[str, Any]]:
    marks, entry, person = (
        feedback.marks_of(book, unit, student),
        journal_of(classroom, unit).current(student),
        book.find_student(student),
    )
    assert entry is not None  # rows are made of who has a grade
    both = {"lab": unit, "student": student}
    yield {
        **both,
        "first_name": person.first_name,
        "last_name": person.last_name,
        "submitted": marks["submitted"],
        "late_s": f"{marks['late_s']:.0f}",
        "points": marks["score"],
        "max": marks["max"],
        "late_penalty": marks["penalty"],
        "by_hand": any(mark["by_hand"] for mark in marks["checks"].values()),
        "graded": entry["time"],
        "reason": entry["reason"],
        "verdict": entry["grade"]["verdict"],
    }
    for name, mark in marks["checks"].items():
        yield {
            **both,
            "check": name,
            "check_points": mark["score"],
            "check_max": mark["max"],
            "by_hand": mark["by_hand"],
        }


def _cell(value: object) -> str:
    """A value that no spreadsheet takes for a formula."""
    text = "" if value is None else str(value)
    return (
        f"'{text}"
        if text[:1] in ("=", "+", "-", "@", "\t", "\r") and not isinstance(value, (int, float))
        else text
    )
