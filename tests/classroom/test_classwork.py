"""From the release of a lab to the table of grades, by our commands.

They go through nbgrader's exchange and gradebook.
"""

import csv
import io
import json
import multiprocessing
import os
import signal
import stat
import tempfile
from types import SimpleNamespace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from nbgrader.api import Gradebook
from nbgrader.converters import GenerateAssignment
from room import UNIT

from manyhands.cli import certificate
from manyhands.grading import engine
from manyhands.grading.classroom import steps
from manyhands.grading.nbgrader import feedback, gradebook
from manyhands.learner.released import due_file, due_in

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"


def outbound(room):
    return room.exchange / "manyhands" / "outbound" / UNIT


def test_a_lab_is_released_once_and_again_when_asked(classroom):
    assert classroom.command("release", "90", "--due", "2026-12-01 18:00 +0900") == (
        0,
        f"{UNIT}: released.\n",
    )
    assert (outbound(classroom) / f"{UNIT}.ipynb").read_bytes() == (
        classroom.root / "labs" / UNIT / f"{UNIT}.ipynb"
    ).read_bytes()
    with classroom.book() as book:
        assignment = book.find_assignment(UNIT)
        assert (assignment.max_score, assignment.duedate.hour) == (4, 9)
    assert stat.S_IMODE(due_file(classroom.exchange).stat().st_mode) == 0o644
    assert "was released before" in classroom.command("release", "90")[1]
    classroom.lab.notebook.cells[0].source = "# Two questions, better asked"
    classroom.lab.write(f"solutions/{UNIT}/{UNIT}.ipynb", classroom.lab.notebook)
    classroom.make_lab()
    code, printed = classroom.command("release", "90")
    assert (
        code == 2
        and "different version" in printed
        and "better asked" not in (outbound(classroom) / f"{UNIT}.ipynb").read_text()
    )
    assert classroom.command("release", "90", "--again")[0] == 0
    assert "better asked" in (outbound(classroom) / f"{UNIT}.ipynb").read_text()
    assert classroom.command("release", "90", "--due", "soon") == (
        2,
        (
            "manyhands: 'soon' is not a time. Write it as 2026-12-01 18:00, "
            "or with its zone: 2026-12-01 18:00 +0900.\n"
        ),
    )


def test_attendees_are_told_when_a_released_lab_is_due_in_the_rooms_time(classroom, time_zone):
    time_zone("Asia/Tokyo")
    # as the clock on the wall has it
    classroom.command("release", "90", "--due", "2026-12-01 18:00")
    with classroom.book() as book:
        assert f"{book.find_assignment(UNIT).duedate}" == "2026-12-01 09:00:00"
    assert due_in(classroom.exchange) == [(UNIT, "2026-12-01 18:00 JST")]
    assert (
        classroom.command("release", "90", "--due", "2026-12-02 12:00 +0000")[1]
        == f"{UNIT}: was released before.\n"
    )
    assert due_in(classroom.exchange) == [(UNIT, "2026-12-02 21:00 JST")]
    classroom.command("release", "90", "--again")
    assert due_in(classroom.exchange) == [(UNIT, "2026-12-02 21:00 JST")]


def test_what_is_handed_in_is_collected_and_all_of_it_is_kept(classroom):
    classroom.command("release", "90")
    first = classroom.hand_in("alice", classroom.lab.handed_in(square="return 1"))
    assert classroom.command("collect", "90") == (
        0,
        f"{UNIT}: 1 new, 0 handed in again, 0 as before.\n",
    )
    classroom.hand_in("alice", classroom.lab.handed_in(), **{"notes.txt": "mine"})
    classroom.hand_in("bob", classroom.lab.handed_in())
    assert classroom.command("collect", "90") == (
        0,
        f"{UNIT}: 1 new, 1 handed in again, 0 as before.\n",
    )
    assert classroom.command("collect", "90") == (
        0,
        f"{UNIT}: 0 new, 0 handed in again, 2 as before.\n",
    )
    now = classroom.step_folder("submitted", "alice", UNIT)
    assert sorted(path.name for path in now.iterdir()) == [
        f"{UNIT}.ipynb",
        "notes.txt",
        "submission_secret.txt",
        "timestamp.txt",
    ]
    assert "return 1" not in (now / f"{UNIT}.ipynb").read_text()
    assert sorted(
        (folder / f"{UNIT}.ipynb").read_text().count("return 1")
        for folder in classroom.received("alice", UNIT).iterdir()
    ) == [0, 1]
    assert first.is_dir()  # the exchange itself is left as it is


def test_work_put_there_by_hand_is_kept_when_something_is_collected(classroom):
    classroom.command("release", "90")
    classroom.collected("alice", classroom.lab.handed_in(square="return 'by hand'"))
    classroom.hand_in("alice", classroom.lab.handed_in())
    classroom.command("collect", "90")
    assert (
        "by hand"
        not in (classroom.step_folder("submitted", "alice", UNIT) / f"{UNIT}.ipynb").read_text()
    )
    (by_hand,) = classroom.received("alice", UNIT).glob("by hand*")
    assert "by hand" in (by_hand / f"{UNIT}.ipynb").read_text()


def test_collecting_follows_no_link_believes_no_name_and_goes_on(classroom):
    classroom.command("release", "90")
    linked = classroom.hand_in("alice", classroom.lab.handed_in())
    (linked / "secret.txt").symlink_to(classroom.lab.solution)
    (linked / "gone").symlink_to("/nowhere")
    os.mkfifo(linked / "pipe")
    inbound, honest = linked.parent, classroom.hand_in("zoe", classroom.lab.handed_in())
    for name in (
        f"..+{UNIT}+2026-01-01 10:00:00.0 UTC+x",
        f"a b+{UNIT}+2026-01-01 10:00:00.0 UTC+x",
        f"carol+{UNIT}+yesterday?+x",
    ):
        (inbound / name).mkdir()
    (inbound / f"dave+{UNIT}+2026-01-01 10:00:00.0 UTC+x").symlink_to(honest)
    owner = "nobody" if os.geteuid() != 65534 else "root"
    (inbound / f"{owner}+{UNIT}+2026-01-01 10:00:00.0 UTC+x").mkdir()
    code, printed = classroom.command("collect", "90")
    assert code == 1 and "2 new" in printed and printed.count("Not collected") == 5
    assert f"says that it is from {owner}" in printed
    assert classroom.students(UNIT) == ["alice", "zoe"]
    # whose attendees are no users of the machine
    accounts = classroom.root / ".manyhands" / "hub" / "accounts.json"
    accounts.parent.mkdir(parents=True)
    accounts.write_text(
        json.dumps(
            {"accounts": [{"name": "zoe", "uid": os.geteuid()}, {"name": "yan", "uid": 70001}]}
        )
    )
    for name in ("yan", "xia"):
        (inbound / f"{name}+{UNIT}+2026-01-01 10:00:00.0 UTC+x").mkdir()
    assert "yan, but it belongs to zoe" in classroom.command("collect", "90")[1]
    assert classroom.students(UNIT) == ["alice", "zoe"]
    accounts.unlink()
    got = classroom.step_folder("submitted", "alice", UNIT)
    assert (got / "secret.txt").is_symlink() and not (got / "pipe").exists()
    assert classroom.command("grade", "90")[0] == 0
    assert classroom.grade_of("alice")["points"] == 4
    assert any("not a plain file: pipe" in note for note in classroom.grade_of("alice")["notes"])


def test_marks_of_people_stay_and_a_changed_grade_keeps_the_old_one(classroom):
    classroom.collected("alice", classroom.lab.handed_in(square="return 1"))
    classroom.collected("bob", classroom.lab.handed_in())
    assert "2 graded, 0 already had" in classroom.command("grade", "90")[1]
    with classroom.book() as book:
        grade = book.find_grade("square-check", UNIT, UNIT, "alice")
        grade.manual_score, grade.extra_credit, grade.needs_manual_grade = 1.5, 0.5, False
        book.find_comment("square", UNIT, UNIT, "alice").manual_comment = "Nearly."
        book.db.commit()
    assert "0 graded, 2 already had" in classroom.command("grade", "90")[1]
    assert classroom.marks()["alice"] == {"square-check": (0, 1.5, 2), "total-check": (2, None, 2)}
    classroom.collected("alice", classroom.lab.handed_in())
    printed = classroom.command("grade", "90")[1]
    assert (
        "1 graded, 1 already had" in printed
        and "alice: 2 points before, 4 now: a different submission was handed in" in printed
    )
    with classroom.book() as book:
        grade = book.find_grade("square-check", UNIT, UNIT, "alice")
        assert (
            grade.auto_score,
            grade.manual_score,
            grade.extra_credit,
            grade.needs_manual_grade,
        ) == (2, 1.5, 0.5, True)
        assert book.find_comment("square", UNIT, UNIT, "alice").comment == "Nearly."
    history = steps.journal_of(classroom, UNIT).history("alice")
    assert [(entry["number"], entry["grade"]["points"], entry["reason"]) for entry in history] == [
        (1, 2, "first grade"),
        (2, 4, "a different submission was handed in"),
    ]
    assert "0 of 4" not in printed and all(entry["time"] for entry in history)
    # the first one again: its grade is known
    classroom.collected("alice", classroom.lab.handed_in(square="return 1"))
    assert "0 graded, 2 already had" in classroom.command("grade", "90")[1]
    assert classroom.marks()["alice"]["square-check"][0] == 0


def test_a_changed_solution_and_an_order_grade_again(classroom):
    classroom.collected("alice", classroom.lab.handed_in())
    classroom.command("grade", "90")
    assert "1 graded" in classroom.command("grade", "90", "--again")[1]
    grades = steps.journal_of(classroom, UNIT)
    assert len(grades.history("alice")) == 1  # the same grade once more is no change
    check = classroom.lab.notebook.cells[3]
    check.source = check.source.replace(
        "number ** 2", "number ** 2 if seed() == 0 else number * number * 1.0"
    )
    classroom.lab.write(f"solutions/{UNIT}/{UNIT}.ipynb", classroom.lab.notebook)
    assert "1 graded" in classroom.command("grade", "90")[1]
    assert [entry["reason"] for entry in grades.history("alice")] == [
        "first grade",
        "the solution or its checks have changed",
    ]


def test_what_is_blocked_here_is_no_part_of_the_gradebooks_sum(classroom):
    for cell in classroom.lab.notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "total-check":
            cell.source = cell.source.replace(
                "\nreport.show()",
                "\nreport.blocked('nccl', points=3, text='NCCL works', why='no "
                "GPU')\nreport.show()",
            )
            cell.metadata["nbgrader"]["points"] = 5
    classroom.lab.write(f"solutions/{UNIT}/{UNIT}.ipynb", classroom.lab.notebook)
    classroom.collected("alice", classroom.lab.handed_in())
    classroom.collected("bob", data=b"no notebook")
    classroom.command("grade", "90")
    assert {student: marks["total-check"] for student, marks in classroom.marks().items()} == {
        "alice": (2, None, 2),
        "bob": (0, None, 2),
    }


@pytest.fixture
def graded(classroom):
    """Three attendees, one of them hostile, one with nothing readable, graded."""
    classroom.command("release", "90", "--due", "2020-01-01 00:00")
    hostile = classroom.lab.handed_in(
        square=f"raise ValueError({HOSTILE!r} + __import__('os').environ['MANYHANDS_SEED'])"
    )
    hostile.cells[0].source = HOSTILE
    hostile.cells.insert(1, new_markdown_cell(f"~~~\n{HOSTILE}\n~~~\n[x](javascript:alert(3))"))
    hostile.cells.insert(
        1,
        new_code_cell(f"# {HOSTILE}", outputs=[new_output("display_data", {"text/html": HOSTILE})]),
    )
    classroom.hand_in("mallory", hostile)
    # right under the public seed only
    classroom.hand_in("alice", classroom.lab.handed_in(square="return 9.0"))
    (classroom.hand_in("bob", classroom.lab.handed_in()) / f"{UNIT}.ipynb").write_text(
        "no notebook"
    )
    classroom.command("collect", "90")
    assert classroom.command("grade", "90")[0] == 0
    return classroom


def test_a_seed_of_which_pages_may_tell_grades_nobody_any_more(graded):
    """Answers that fail or pass by a bit of the seed tell it, a bit each.

    Who has a grade keeps it.
    """

    def seeds(student):
        return [entry["key"]["seed"] for entry in steps.journal_of(graded, UNIT).history(student)]

    (seed,) = seeds("alice")
    assert seeds("bob") == seeds("mallory") == [seed]
    graded.command("feedback", "90", "--hold-back")
    graded.collected("carol", graded.lab.handed_in())
    graded.collected("dave", graded.lab.handed_in())
    assert "2 graded, 3 already had a grade" in graded.command("grade", "90")[1]
    assert seeds("alice") == [seed] and seeds("carol") == seeds("dave") != [seed]
    assert "1 graded" in graded.command("grade", "90", "--student", "alice", "--again")[1]
    assert seeds("alice") == [seed]  # the same grade again


def test_feedback_shows_what_helps_and_nothing_hidden_or_alive(graded):
    with graded.book() as book:
        book.find_grade("square-check", UNIT, UNIT, "mallory").manual_score = 1
        book.find_comment("square", UNIT, UNIT, "mallory").manual_comment = f"See me. {HOSTILE}"
        book.update_or_create_student("mallory", first_name=HOSTILE)
        book.db.commit()
    seed = str(steps.journal_of(graded, UNIT).seed())
    code, printed = graded.command("feedback", "90")
    assert code == 0 and "3 pages" in printed and "3 of them released" in printed, printed
    pages = {
        student: (graded.step_folder("feedback", student, UNIT) / f"{UNIT}.html").read_text()
        for student in graded.students(UNIT)
    }
    for page in pages.values():
        assert (
            "<script" not in page
            and "<img" not in page
            and "http" not in page.replace("http-equiv", "")
            and seed not in page
        )
        assert "Late" in page and "default-src 'none'" in page
    assert "3 of 4 points" in pages["mallory"] and "marked by the instructor" in pages["mallory"]
    assert "See me. &lt;script&gt;" in pages["mallory"] and "ValueError" in pages["mallory"]
    assert feedback.HIDDEN in pages["alice"] and "return 9.0" in pages["alice"]
    assert "not a notebook that can be read" in pages["bob"] and "0 of 4 points" in pages["bob"]
    released = list((graded.exchange / "manyhands" / "feedback").glob("*.html"))
    assert sorted(path.read_text() for path in released) == sorted(pages.values())
    # what formgrader shows to the instructor
    shown = nbformat.read(graded.step_folder("autograded", "mallory", UNIT) / f"{UNIT}.ipynb", 4)
    assert not [
        output
        for cell in shown.cells
        for output in cell.get("outputs", [])
        if output.output_type != "stream"
    ]
    for cell in shown.cells:
        if cell.cell_type == "markdown" and "<script" in cell.source:
            fence = cell.source.split("text\n")[0]
            assert (
                set(fence) == {"~"}
                and cell.source.endswith("\n" + fence)
                and cell.source.count(fence) == 2
            )
    assert [
        cell.metadata.nbgrader.grade_id for cell in shown.cells if "nbgrader" in cell.metadata
    ] == ["square", "square-check", "total", "total-check"]
    with graded.book() as book:
        assert (
            book.find_comment("total", UNIT, UNIT, "mallory").auto_comment
            == "PASS 2/2 total gives the right value"
        )
        assert seed not in book.find_comment("square", UNIT, UNIT, "mallory").auto_comment


def test_feedback_wants_a_grade_for_what_was_collected_last(graded):
    graded.hand_in("alice", graded.lab.handed_in())
    graded.command("collect", "90")
    code, printed = graded.command("feedback", "90")
    assert (
        code == 1
        and "2 pages" in printed
        and "  alice: what was collected last has no grade yet" in printed
    )


def test_export_is_a_table_of_grades(graded):
    with graded.book() as book:
        book.update_or_create_student("alice", first_name="=1+1", last_name='Smith, "A"')
    code, text = graded.command("export", "90")
    rows = list(csv.DictReader(io.StringIO(text)))
    whole = {row["student"]: row for row in rows if not row["check"]}
    assert code == 0 and len(rows) == 3 * 3
    assert (
        whole["alice"]["points"],
        whole["alice"]["max"],
        whole["alice"]["first_name"],
        whole["alice"]["last_name"],
    ) == ("2.0", "4.0", "'=1+1", 'Smith, "A"')
    assert float(whole["alice"]["late_s"]) > 86400 and whole["alice"]["reason"] == "first grade"
    assert "not a notebook" in whole["bob"]["verdict"]
    assert [
        row["check_points"] for row in rows if row["student"] == "mallory" and row["check"]
    ] == ["0.0", "2.0"]
    target = graded.root / "grades.csv"
    assert graded.command("export", "-o", str(target)) == (0, f"9 rows in {target}\n")
    assert target.read_text() == text.replace("\r\n", "\n")


def test_a_certificate_has_the_grades_of_the_class_and_of_nobody_else(graded):
    unit = SimpleNamespace(name=UNIT)
    assert (
        certificate._class_grades(graded.root, "alice", [unit])[UNIT].items()
        >= {"points": 2.0, "max": 4.0}.items()
    )
    assert certificate._class_grades(graded.root, "bob", [unit]) == {}, (
        "his notebook could not be read"
    )
    assert certificate._class_grades(graded.root, "nobody", [unit]) == {}
    assert certificate._class_grades(graded.root, "alice", [SimpleNamespace(name="91_never")]) == {}


def test_who_is_unknown_or_ungraded_is_said(classroom):
    assert classroom.command("grade", "90", "--student", "eve") == (
        2,
        f"manyhands: eve: no hand-in for {UNIT} was collected from them.\n",
    )
    assert classroom.command("collect", "90")[0] == 2
    assert "There is no lab '77'" in classroom.command("grade", "77")[1]
    classroom.lab.notebook.cells[2].source = "def square(x):\n    return x"
    classroom.lab.write(f"solutions/{UNIT}/{UNIT}.ipynb", classroom.lab.notebook)
    classroom.collected("alice", classroom.lab.handed_in())
    code, printed = classroom.command("grade", "90")
    assert code == 2 and "The solution does not pass its own checks" in printed


def test_where_the_grader_itself_fails_no_grade_is_written(classroom, monkeypatch):
    for student in ("alice", "bob"):
        classroom.collected(student, classroom.lab.handed_in())
    with monkeypatch.context() as broken:
        broken.setattr(engine, "grade", lambda *args, **options: os.kill(os.getpid(), 9))
        code, printed = classroom.command("grade", "90")
    assert (
        code == 1
        and "0 graded" in printed
        and printed.count("NOT GRADED, the process that graded it ended with code -9") == 2
    )
    assert not steps.journal_of(classroom, UNIT).students()
    assert "2 graded" in classroom.command("grade", "90")[1]


def test_without_a_sandbox_nothing_is_graded(classroom, monkeypatch):
    classroom.collected("alice", classroom.lab.handed_in())
    monkeypatch.setattr("manyhands.isolation.choose.why_none", lambda: "none here")
    code, printed = classroom.command("grade", "90")
    assert code == 2 and "in a sandbox only, and there is none here: none here" in printed
    assert not steps.journal_of(classroom, UNIT).students()


def test_a_gradebook_is_there_whole_or_not_at_all(classroom):
    with gradebook.opened(classroom):
        pass
    assert not list(classroom.folder.glob(".new-*"))
    assert (classroom.folder / "gradebook.db").stat().st_mode & 0o077 == 0
    for name in ("submitted", "received", "grades", "public", "autograded", "feedback"):
        assert (classroom.folder / name).stat().st_mode & 0o077 == 0


def test_what_is_left_where_the_gradebook_is_told_of_a_unit_and_killed_goes_later(
    classroom, tmp_path, monkeypatch
):
    temporary = tmp_path / "temporary"
    temporary.mkdir()

    def work():
        tempfile.tempdir = str(temporary)
        monkeypatch.setattr(
            GenerateAssignment, "start", lambda self: os.kill(os.getpid(), signal.SIGKILL)
        )
        gradebook.register(classroom, UNIT)

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()
    (left,) = classroom.folder.glob(".new-*")
    assert process.exitcode == -signal.SIGKILL and list(temporary.iterdir()) == []
    gradebook.register(classroom, UNIT)
    assert left.is_dir()  # somebody may be at work in it
    os.utime(left, (0, 0))
    gradebook.register(classroom, UNIT)
    assert [*classroom.folder.glob(".new-*")] == []


@pytest.mark.parametrize("kind", ["grade_cell", "solution_cell", "source_cell"])
def test_a_unit_of_which_the_gradebook_was_told_half_is_told_whole_before_grades_go_in(
    classroom, monkeypatch, kind
):
    """Killed before the last of a kind of cells.

    Grades without comments were written for all, and stayed so (seen in test_killed).
    """
    classroom.collected("alice", classroom.lab.handed_in(square="return 1"))
    with monkeypatch.context() as half:
        taken, real = [], getattr(Gradebook, f"update_or_create_{kind}")

        def one_then_an_end(*args, **options):
            if taken:
                raise SystemExit("killed")
            taken.append(args)
            return real(*args, **options)

        half.setattr(Gradebook, f"update_or_create_{kind}", one_then_an_end)
        with pytest.raises(gradebook.GradebookError, match="killed"):
            gradebook.register(classroom, UNIT)
    assert classroom.command("grade", "90")[0] == 0
    with classroom.book() as book:
        notebook = book.find_submission_notebook(UNIT, UNIT, "alice")
        assert {row.name: row.auto_score for row in notebook.grades} == {
            "square-check": 0,
            "total-check": 2,
        }
        assert {row.name: row.auto_comment.split()[0] for row in notebook.comments} == {
            "square": "FAIL",
            "total": "PASS",
        }
