"""A batch that is killed at any moment goes on where it stopped.

It ends with the gradebook of one that was not killed.
"""

import json
import multiprocessing
import os
import random
import signal
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil
from room import UNIT
from tqdm import tqdm

from manyhands.grading.classroom import steps

KILLS = 20
STUDENTS = 6


def tables(room):
    """What the gradebook holds.

    The identifiers that nbgrader draws and the times of grading are left out.
    """
    with room.book() as book:
        return sorted(
            (
                submission.student.id,
                submission.score,
                submission.timestamp,
                row.name,
                row.auto_score,
                row.manual_score,
                row.needs_manual_grade,
                row.max_score,
            )
            for submission in book.assignment_submissions(UNIT)
            for notebook in submission.notebooks
            for row in notebook.grades
        ) + sorted(
            (submission.student.id, row.name, row.auto_comment)
            for submission in book.assignment_submissions(UNIT)
            for notebook in submission.notebooks
            for row in notebook.comments
        )


def fill(room):
    wrong = [{}, {"square": "return 1"}, {"total": "return 0"}]
    for number in range(STUDENTS - 1):
        room.collected(f"student{number}", room.lab.handed_in(**wrong[number % 3]))
    room.collected("broken", data=b"no notebook")


def batch(room, log):
    def work():
        os.setsid()
        # its own, as a command has: whoever is killed with the one that forked processes share
        # keeps it for ever
        tqdm.set_lock(threading.RLock())
        with open(log, "a") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        code, shown = room.command("grade", "90")
        os.write(1, shown.encode())
        os._exit(code)

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    return process


def ended(process):
    """Its exit code; a batch takes some seconds."""
    process.join(300)
    assert process.exitcode is not None, "it hangs"
    return process.exitcode


def put_aside(room, target):
    """The class as before its first batch, but for the seed, which is drawn once."""
    target.mkdir()
    for name in ("gradebook.db", "grades", "autograded"):
        os.rename(room.folder / name, target / name)
    (room.folder / "grades" / UNIT).mkdir(parents=True)
    (room.folder / "grades" / UNIT / "seed").write_text(
        (target / "grades" / UNIT / "seed").read_text()
    )


def ours(folder):
    """The processes that were started with a file in this folder."""
    for process in psutil.process_iter():
        try:
            if str(folder) in " ".join(process.cmdline()):
                yield process
        except psutil.Error:
            pass


def test_killed_twenty_times_it_ends_with_the_same_gradebook(
    classroom, tmp_path, tmp_path_factory, monkeypatch
):
    temporary = tmp_path_factory.mktemp("k")  # short: the names of sockets are
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    fill(classroom)
    began = time.monotonic()
    process = batch(classroom, tmp_path / "log")
    code, whole_s, wanted = ended(process), time.monotonic() - began, tables(classroom)
    assert code == 0 and len(wanted) == 4 * STUDENTS
    grades = {
        student: classroom.grade_of(student)["points"] for student in classroom.students(UNIT)
    }
    put_aside(classroom, tmp_path / "undisturbed")

    chance, texts, killed = random.Random(5), {}, 0
    while killed < KILLS:
        process = batch(classroom, tmp_path / "log")
        process.join(chance.uniform(0, 0.35 * whole_s))
        if process.is_alive():
            killed += 1
            # all that are in its session, if it has one already; else the one process that leads
            if killed % 2 == 0:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            process.kill()
        assert ended(process) in (0, -signal.SIGKILL), (tmp_path / "log").read_text()
        # nothing that was there is lost or changed
        for path in sorted((classroom.folder / "grades").rglob("0*.json")):
            texts.setdefault(path, path.read_text())
        assert all(path.read_text() == text for path, text in texts.items())
        assert all(json.loads(text)["reason"] == "first grade" for text in texts.values())
        # it came to its end: as the undisturbed one, and from the beginning
        if process.exitcode == 0:
            assert tables(classroom) == wanted
            put_aside(classroom, tmp_path / f"after {killed} kills, {time.monotonic()}")
            texts.clear()
    process = batch(classroom, tmp_path / "log")
    assert ended(process) == 0, (tmp_path / "log").read_text()
    assert tables(classroom) == wanted
    assert {
        student: classroom.grade_of(student)["points"] for student in classroom.students(UNIT)
    } == grades
    assert all(len(steps.journal_of(classroom, UNIT).history(student)) == 1 for student in grades)
    until = time.monotonic() + 30
    while [*ours(temporary)] and time.monotonic() < until:
        time.sleep(0.05)
    assert [*ours(temporary)] == [] and list(Path(temporary).iterdir()) == []
