"""Collecting from people who mean harm.

Nothing but their own files comes along, and each stops nobody but themselves.
"""

import json
import os
import shutil
from datetime import UTC, datetime, timedelta

import pytest
from room import UNIT

from manyhands.grading import engine, grade_report
from manyhands.grading.classroom import steps
from manyhands.grading.nbgrader import autograded, feedback, receive
from manyhands.grading.store import grade_journal, submissions

FILE = f"{UNIT}.ipynb"
NAMED = "%Y-%m-%d %H:%M:%S.%f UTC"


@pytest.fixture
def released(classroom):
    classroom.command("release", "90")
    return classroom


def before_opening(monkeypatch, changes):
    """Have changes done when a path is opened that ends in a name, with the call itself.

    `changes` is {name: [change or None for each time]}.
    """
    open_now = os.open

    def slow_open(path, flags, *rest, **more):
        coming = (
            changes.get(os.path.basename(path)) if isinstance(path, (str, os.PathLike)) else None
        )
        if coming and (change := coming.pop(0)):
            change()
        return open_now(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", slow_open)


def test_what_becomes_a_link_or_a_pipe_while_it_is_collected_gives_nothing_away_and_stops_nobody(
    released, monkeypatch
):
    hidden = steps.journal_of(released, UNIT)
    secret, changes, writers = str(hidden.seed()), {}, []

    def become_link(inner):
        inner.rename(inner.with_name("away"))
        inner.symlink_to(hidden.folder)

    def become_pipe(path):
        path.unlink()
        os.mkfifo(path)
        writers.append(os.open(path, os.O_RDWR))  # somebody could still write: who reads waits

    for student, opened, waits in (
        ("ann", "seed", 0),
        ("ben", "inner-ben", 0),
        ("cat", "inner-cat", 1),
    ):
        inner = released.hand_in(student, released.lab.handed_in()) / f"inner-{student}"
        inner.mkdir()
        (inner / "seed").write_text("mine, and as long as what is to be stolen")
        changes.setdefault(opened, []).extend(
            [None] * waits + [lambda inner=inner: become_link(inner)]
        )
    piped = released.hand_in("dan", released.lab.handed_in()) / "piped.txt"
    piped.write_text("mine")
    changes["piped.txt"] = [lambda: become_pipe(piped)]
    released.hand_in("zoe", released.lab.handed_in())
    before_opening(monkeypatch, changes)
    code, printed = released.command("collect", "90")
    assert (code, printed) == (0, f"{UNIT}: 5 new, 0 handed in again, 0 as before.\n")
    taken = [
        path
        for place in ("received", "submitted")
        for path in (released.folder / place).rglob("*")
        if path.is_file()
    ]
    assert len(taken) >= 10 and secret not in [path.read_text() for path in taken]
    assert not any(changes.values())
    # who opens it by its name reads this
    assert [
        path.read_text() for path in released.exchange.glob("manyhands/inbound/*/inner-*/seed")
    ] == [secret] * 3
    assert (
        "could not be read: piped.txt"
        in submissions.notes_of(released.step_folder("submitted", "dan", UNIT))[0]
    )
    os.close(*writers)


def our_names(room, folder):
    for name in (submissions.NOTES, *submissions.STAMPS):
        (folder / name).unlink(missing_ok=True)
        (folder / name).mkdir()
        (folder / name / "x").write_text("x")


def nested(room, folder):
    here = os.open(folder, os.O_RDONLY)
    for _ in range(1100):
        os.mkdir("d", dir_fd=here)
        here, before = os.open("d", os.O_RDONLY, dir_fd=here), here
        os.close(before)
    os.close(here)


def half_letters(room, folder):
    data = json.loads((folder / FILE).read_text())
    data["metadata"]["\udc80"] = "\ud800"
    data["cells"][0]["source"] = "Two \ud800 questions \U0001f600"
    data["cells"][1]["source"] += "\nname = '\ud800'\nassert name == '?', name"
    data["cells"][1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "\udfff"}]
    (folder / FILE).write_text(json.dumps(data))


def no_letters(room, folder):
    """Names that are not UTF-8."""
    inner = os.fsencode(folder) + b"/\xff\xfe"
    os.mkdir(inner)
    os.mkfifo(inner + b"/\xe9")
    shutil.copy(folder / FILE, inner + b"/\xe8.ipynb")


def no_letters_in_its_name(room, folder):
    time = folder.name.split("+")[2]
    folder.rename(
        folder.with_name(
            os.fsdecode(
                f"no_letters_in_its_name+{UNIT}+".encode() + b"\xff" + f"+{UNIT}+{time}+x".encode()
            )
        )
    )


def unit_twice(room, folder):
    folder.rename(folder.with_name(folder.name.replace(f"+{UNIT}+", f"+{UNIT}+{UNIT}+")))


def no_folder(room, folder):
    shutil.rmtree(folder)
    folder.write_text("a file")


TAKEN = {
    our_names: "uses this name for its own notes: collected.txt/x",
    nested: "its folder is too deep",
    half_letters: "",
    no_letters: "not a plain file: ??/?",
}
REFUSED = [no_letters_in_its_name, unit_twice, no_folder]


def test_whatever_one_hands_in_the_others_are_collected_graded_and_get_their_page(released):
    for make in [*TAKEN, *REFUSED]:
        make(released, released.hand_in(make.__name__, released.lab.handed_in()))
    for honest in ("alice", "zoe"):
        released.hand_in(honest, released.lab.handed_in())
    everybody = sorted([make.__name__ for make in TAKEN] + ["alice", "zoe"])
    code, printed = released.command("collect", "90")
    assert (
        code == 1
        and f"{len(everybody)} new" in printed
        and printed.count("Not collected: ") == len(REFUSED)
    ), printed
    assert all(f"Not collected: {make.__name__}+" in printed for make in REFUSED)
    assert released.students(UNIT) == everybody
    code, printed = released.command("grade", "90")
    assert code == 0 and f"{len(everybody)} graded" in printed, printed
    assert {
        student: released.grade_of(student)["points"] for student in everybody
    } == dict.fromkeys(everybody, 4)
    for make, words in TAKEN.items():
        assert words in "\n".join(released.grade_of(make.__name__)["notes"])
    code, printed = released.command("feedback", "90")
    assert (
        code == 0
        and f"{len(everybody)} pages" in printed
        and f"{len(everybody) - 1} of them released" in printed
    ), printed
    assert "our_names: it was not handed in through the exchange" in printed
    code, printed = released.command("export", "90")
    assert code == 0 and all(f"{UNIT},{student}," in printed for student in everybody)
    assert sorted(released.marks()) == everybody  # and nobody was invented
    # pytest's own way would end in a RecursionError
    os.system(f"rm -r {released.exchange}/manyhands/inbound")


def test_a_disk_that_is_full_and_too_many_hand_ins_of_one_are_told_by_name(released, monkeypatch):
    for student in ("alice", "mallory", "mallory", "mallory", "zoe"):
        released.hand_in(student, released.lab.handed_in())
    copy = submissions.copy

    def broken(there, place, *rest, **more):
        if "alice" in str(place):
            raise OSError(28, "No space left on device")
        return copy(there, place, *rest, **more)

    monkeypatch.setattr(receive, "MOST_KEPT", 2)
    with monkeypatch.context() as patched:
        patched.setattr(submissions, "copy", broken)
        code, printed = released.command("collect", "90")
    assert (
        code == 1
        and "2 new" in printed
        and "Not collected: alice+" in printed
        and "No space left on device" in printed
    )
    assert (
        printed.count("2 hand-ins are already kept") == 1
        and len(list(released.received("mallory", UNIT).iterdir())) == 2
    )
    assert (
        f"{UNIT}: 1 new, 0 handed in again, 2 as before.\n" in released.command("collect", "90")[1]
    )


def test_a_name_with_an_earlier_time_does_not_make_late_work_early(classroom):
    due = datetime.now(UTC).replace(tzinfo=None) - timedelta(hours=1)
    classroom.command("release", "90", "--due", f"{due:%Y-%m-%d %H:%M} +0000")
    alice, mallory = (
        classroom.hand_in(student, classroom.lab.handed_in()) for student in ("alice", "mallory")
    )
    mallory.rename(mallory.with_name(f"mallory+{UNIT}+{due - timedelta(days=1):{NAMED}}+x"))
    code, printed = classroom.command("collect", "90")
    assert (
        code == 0
        and printed.count("that time counts") == 1
        and "mallory: The name of the folder says" in printed
    )
    times = {
        student: submissions.handed_in_at(classroom.step_folder("submitted", student, UNIT))
        for student in ("alice", "mallory")
    }
    assert times["mallory"] > due + timedelta(minutes=50)
    assert times["alice"] == datetime.strptime(alice.name.split("+")[2], NAMED)
    assert (
        "that time counts"
        in submissions.notes_of(classroom.step_folder("submitted", "mallory", UNIT))[0]
    )
    assert classroom.command("collect", "90") == (
        0,
        f"{UNIT}: 0 new, 0 handed in again, 2 as before.\n",
    )


@pytest.fixture
def graded(classroom):
    """Three who handed in what is no notebook, with the grade that it gets."""
    solution, grades = (
        submissions.Solution(classroom.lab.solution),
        steps.journal_of(classroom, UNIT),
    )
    for student in ("alice", "mallory", "zoe"):
        key = {
            "submission": submissions.digest(classroom.collected(student, data=b"none")),
            "solution": solution.digest,
            "seed": grades.seed(),
        }
        grade = grade_report.as_data(engine.not_graded(solution.path, "This is no notebook."))
        grades.add(student, grade_journal.entry(key, grade, grade_journal.FIRST, None))
    return classroom


def of_mallory(function, where):
    """The function, broken for one student, whose folder or name is its argument number `where`."""

    def broken(*arguments, **options):
        if "mallory" in str(arguments[where]):
            raise ValueError("nobody thought of this")
        return function(*arguments, **options)

    return broken


def test_what_the_grader_stumbles_over_is_told_by_name_and_the_others_go_on(graded, monkeypatch):
    def printed(command, module, name, where, words):
        with monkeypatch.context() as patched:
            patched.setattr(module, name, of_mallory(getattr(module, name), where))
            code, text = graded.command(command, "90")
        assert code == 1 and f"{words}ValueError: nobody thought of this" in text, text
        return text

    assert "2 already had a grade" in printed(
        "grade", submissions, "digest", 0, "mallory: NOT GRADED, "
    )
    assert {"alice", "zoe"} <= set(graded.marks())
    assert "3 already had a grade" in printed(
        "grade", autograded, "write", 2, "mallory: graded, but NOT IN THE GRADEBOOK, "
    )
    assert graded.step_folder("autograded", "zoe", UNIT).is_dir()
    assert "2 pages" in printed("feedback", feedback, "marks_of", 2, "mallory: ")
    assert (graded.step_folder("feedback", "zoe", UNIT) / f"{UNIT}.html").is_file()
    table = printed("export", feedback, "marks_of", 2, f"{UNIT}: mallory: NOT IN THE TABLE, ")
    assert (
        table.count(f"{UNIT},alice,") == table.count(f"{UNIT},zoe,") == 3
        and f"{UNIT},mallory" not in table
    )


def test_feedback_where_nothing_is_graded_is_no_success(classroom):
    code, printed = classroom.command("feedback", "90")
    assert (
        code == 2
        and printed
        == f"manyhands: No hand-in for {UNIT} was collected or graded. First run `manyhands collect"
        " 90`, and then `manyhands grade 90`.\n"
    )
    classroom.collected("alice", data=b"none")
    assert classroom.command("feedback", "90") == (
        2,
        (
            "manyhands: alice: what was collected last has no grade yet. First run `manyhands grade"
            " 90`.\n"
        ),
    )
