"""What people hand in when it is no proper notebook.

Each gets a verdict that says what to do, and the others get their grades.
"""

import json
import os
import sqlite3
import subprocess
import sys
import time

import nbformat
import pytest
from nbformat.v4 import new_code_cell
from room import UNIT

from manyhands.grading import notebooks, submission_limits
from manyhands.grading.store import submissions
from manyhands.isolation import kernel_limits

FILE = f"{UNIT}.ipynb"


def text(notebook):
    return nbformat.writes(notebook).encode()


def no_json(room, folder):
    (folder / FILE).write_text("def square(x): return x * x")


def cut_off(room, folder):
    (folder / FILE).write_bytes(text(room.lab.handed_in())[:-200])


def json_but_no_notebook(room, folder):
    (folder / FILE).write_text('{"answer": 42}')


def other_encoding(room, folder):
    (folder / FILE).write_bytes(text(room.lab.handed_in()).decode().encode("utf-16"))


def empty_file(room, folder):
    (folder / FILE).write_bytes(b"")


def huge(room, folder):
    with open(folder / FILE, "wb") as file:
        file.truncate(submission_limits.NOTEBOOK_BYTES + 1)


def many_values(room, folder):
    """Four megabytes that are four hundred when they are read."""
    data = text(room.lab.handed_in())
    (folder / FILE).write_bytes(
        data[: data.rindex(b"}")] + b', "more": [' + b",".join([b"{}"] * 1_500_000) + b"]}"
    )


def another_lab(room, folder):
    notebook = room.lab.handed_in()
    for cell in notebook.cells:
        cell.metadata.pop("nbgrader", None)
    (folder / FILE).write_bytes(text(notebook))


def future_format(room, folder):
    (folder / FILE).write_text(
        json.dumps({**json.loads(text(room.lab.handed_in())), "nbformat": 9})
    )


def nothing(room, folder):
    pass


def only_a_script(room, folder):
    (folder / "answer.py").write_text("print('done')")


def link(room, folder):
    (folder / FILE).symlink_to(room.lab.solution)


def link_to_nothing(room, folder):
    (folder / FILE).symlink_to("/nowhere")


def folder_in_its_place(room, folder):
    (folder / FILE).mkdir()


def pipe(room, folder):
    os.mkfifo(folder / FILE)


def two_copies(room, folder):
    for name in ("first.ipynb", "last.ipynb"):
        (folder / name).write_bytes(text(room.lab.handed_in()))


def renamed_other_work(room, folder):
    (folder / "party.ipynb").write_bytes(
        text(nbformat.v4.new_notebook(cells=[new_code_cell("1 + 1")]))
    )


VERDICTS = {
    no_json: "not a notebook that can be read",
    cut_off: "not a notebook that can be read",
    json_but_no_notebook: "not a notebook",
    other_encoding: "not a notebook that can be read",
    empty_file: "not a notebook",
    huge: "larger than 20 MB. Clear its outputs",
    many_values: "holds too many values to be read. Clear its outputs",
    another_lab: "not a copy of the lab",
    future_format: "not a notebook that can be read",
    nothing: "does not contain a notebook",
    only_a_script: "does not contain a notebook",
    link: "is a symbolic link",
    link_to_nothing: "is a symbolic link",
    folder_in_its_place: "is not a file",
    pipe: "is not a file",
    two_copies: "more than one copy of the lab: first.ipynb, last.ipynb",
    renamed_other_work: "no other notebook here is a copy of this lab: party.ipynb",
}


def missing_answer(room, folder):
    notebook = room.lab.handed_in()
    notebook.cells = [cell for cell in notebook.cells if notebooks.grade_id(cell) != "square"]
    (folder / FILE).write_bytes(text(notebook))


def missing_checks(room, folder):
    notebook = room.lab.handed_in()
    notebook.cells = [
        cell for cell in notebook.cells if "check" not in cell.metadata.get("tags", [])
    ]
    (folder / FILE).write_bytes(text(notebook))


def doubled_answer(room, folder):
    notebook = room.lab.handed_in()
    first = notebook.cells[2]
    assert notebooks.grade_id(first) == "square"
    notebook.cells.insert(2, new_code_cell("def square(x): return 0", metadata=first.metadata))
    (folder / FILE).write_bytes(text(notebook))


def wrong_kernel(room, folder):
    notebook = room.lab.handed_in()
    notebook.metadata["kernelspec"] = {"name": "ir", "display_name": "R", "language": "R"}
    (folder / FILE).write_bytes(text(notebook))


def old_format(room, folder):
    (folder / FILE).write_text(nbformat.v3.writes_json(nbformat.convert(room.lab.handed_in(), 3)))


def windows_lines(room, folder):
    notebook = room.lab.handed_in()
    for cell in notebook.cells:
        cell.source = cell.source.replace("\n", "\r\n")
    (folder / FILE).write_bytes(b"\xef\xbb\xbf" + text(notebook).replace(b"\n", b"\r\n"))


def renamed(room, folder):
    (folder / "my lab (final).ipynb").write_bytes(text(room.lab.handed_in()))
    (folder / ".ipynb_checkpoints").mkdir()
    (folder / ".ipynb_checkpoints" / FILE).write_bytes(text(room.lab.handed_in()))


def links_beside(room, folder):
    (folder / FILE).write_bytes(text(room.lab.handed_in()))
    (folder / "helper.py").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe")
    (folder / "deep").symlink_to("/")


POINTS = {  # what can be graded all the same: (points, words of a note)
    missing_answer: (2, "`square` is not in this notebook"),
    missing_checks: (4, ""),
    doubled_answer: (4, "the answer cell `square` 2 times"),
    wrong_kernel: (4, "a different language ('R')"),
    old_format: (4, ""),
    windows_lines: (4, ""),
    renamed: (4, "was called my lab (final).ipynb"),
    links_beside: (4, "not a plain file: helper.py"),
}


def test_every_broken_submission_gets_its_verdict_and_the_batch_goes_on(classroom):
    for make in [*VERDICTS, *POINTS]:
        make(classroom, classroom.collected(make.__name__))
    code, shown = classroom.command("grade", "90")
    assert code == 0, shown
    for make, words in VERDICTS.items():
        grade = classroom.grade_of(make.__name__)
        assert words in grade["verdict"], (make.__name__, grade["verdict"])
        assert (grade["points"], grade["max"]) == (0, 4), make.__name__
        assert grade["verdict"] in shown
        assert all(ord(letter) < 128 and letter.isprintable() for letter in grade["verdict"])
    for make, (points, words) in POINTS.items():
        grade = classroom.grade_of(make.__name__)
        assert (grade["points"], grade["verdict"]) == (points, ""), (make.__name__, grade)
        assert words in "\n".join(grade["notes"]), (make.__name__, grade["notes"])
    marks = classroom.marks()
    assert marks["renamed"] == {"square-check": (2, None, 2), "total-check": (2, None, 2)}
    assert marks["huge"] == {"square-check": (0, None, 2), "total-check": (0, None, 2)}
    assert set(marks) == {make.__name__ for make in [*VERDICTS, *POINTS]}


def test_one_whose_grading_does_not_end_is_told_by_name_and_the_others_get_their_grades(
    classroom, monkeypatch
):
    monkeypatch.setattr(kernel_limits, "OWN_S", 10)
    plan = notebooks.plan

    def plan_for_ever(submission, solution):
        if any("for ever" in cell.source for cell in submission.cells):
            time.sleep(100)
        return plan(submission, solution)

    monkeypatch.setattr(notebooks, "plan", plan_for_ever)
    for student, answers in {
        "alice": {},
        "bob": {"square": "return 'for ever'"},
        "carol": {"square": "return 0"},
    }.items():
        classroom.collected(student, classroom.lab.handed_in(**answers))
    code, shown = classroom.command("grade", "90", "--timeout", "10")
    assert (
        code == 1 and "2 graded" in shown and "bob: NOT GRADED, it was stopped after 20 s" in shown
    ), shown
    assert [classroom.grade_of(student)["points"] for student in ("alice", "carol")] == [4, 2]


def test_what_cannot_be_read_is_said_to_be_unreadable(classroom):
    folder = classroom.collected("alice", classroom.lab.handed_in())
    (folder / FILE).chmod(0)
    solution = submissions.Solution(classroom.lab.solution)
    before = os.geteuid()
    if before == 0:
        for parent in [folder, *folder.parents][:-2]:
            parent.chmod(parent.stat().st_mode | 0o055)
        os.seteuid(65534)
    try:
        with pytest.raises(notebooks.NotGradedError, match="could not be read"):
            notebooks.read(folder / FILE)
        with pytest.raises(notebooks.NotGradedError, match="could not be read: 90_tiny.ipynb"):
            submissions.notebook_in(folder, solution)
        assert len(submissions.digest(folder)) == 64
    finally:
        os.seteuid(before)


def _locked(path):
    connection = sqlite3.connect(path)
    connection.execute("BEGIN EXCLUSIVE")
    return connection


def _cut_off(path):
    path.write_bytes(path.read_bytes()[:5000])


def _text(path):
    path.write_text("student,points\nada,3\n" * 500)


def _foreign(path):
    path.unlink()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE bookmarks (address TEXT)")


@pytest.mark.parametrize("spoil", [_locked, _cut_off, _text, _foreign])
def test_a_gradebook_that_cannot_be_used_is_named_in_a_sentence(classroom, spoil):
    """Each command says which file, why, and what to do.

    The file and the grades beside it stay as they are.
    """
    classroom.collected("ada", classroom.lab.notebook)
    assert classroom.command("grade", "90")[0] == 0
    path = classroom.folder / "gradebook.db"
    opened = spoil(path)
    before = path.read_bytes()
    for command in (["release", "90"], ["grade", "90"], ["feedback", "90"], ["export", "90"]):
        code, printed = classroom.command(*command)
        assert code == 2 and str(path) in printed and "run the command again" in printed, (
            command,
            printed,
        )
        assert "Traceback" not in printed and "sqlalche" not in printed
        assert ("locked" in printed) == (opened is not None)
    assert path.read_bytes() == before
    if opened:
        opened.close()
    else:
        path.rename(path.with_name("gradebook.old"))
    code, printed = classroom.command("export", "90")
    assert code == 0 and ",ada," in printed


KILLED_WHILE_IT_WRITES = """
import os, signal, sqlite3, sys
book = sqlite3.connect(sys.argv[1], isolation_level=None)
book.execute("PRAGMA cache_size = 1")  # what is written goes to the file before it is committed
book.execute("BEGIN")
book.execute("DELETE FROM grade")
book.execute("CREATE TABLE more (text TEXT)")
book.executemany("INSERT INTO more VALUES (?)", [["x" * 4000]] * 50)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("command", ["release", "grade", "feedback", "export"])
def test_what_a_killed_process_wrote_in_part_is_taken_back(classroom, command):
    classroom.collected("ada", classroom.lab.handed_in())
    assert classroom.command("grade", "90")[0] == 0
    path, marks = classroom.folder / "gradebook.db", classroom.marks()
    subprocess.run([sys.executable, "-c", KILLED_WHILE_IT_WRITES, path])
    assert path.with_name("gradebook.db-journal").stat().st_size > 0
    code, printed = classroom.command(command, "90")
    assert code == 0, printed
    assert classroom.marks() == marks and marks
