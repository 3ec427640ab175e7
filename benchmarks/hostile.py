"""A class of thirty, five of whom hand in what was made to stop the class.

It is compared with the same class without those five.

Both are collected, graded and given feedback by our commands, timed from start to end. The 25 must
have the grades that they have without the five, and each of the five must be told by name: a run in
which that is not so ends with an error.
"""

import copy
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import nbformat

from manyhands.authoring import labs

from . import SMOKE, few, from_tests
from .grading import ROOT, SIMPLE, timed
from .pairs import ratio_line

HONEST = few(25, 2)
ANSWERS = [{}, {"square": "return 1"}, {"total": "return 0"}]
COMMANDS = ("collect", "grade", "feedback")
FLOOD = """import os
from IPython import get_ipython
from IPython.display import display
"""
MANY_OF_ONE_NAME = (
    FLOOD
    + """
for _ in range(1500):
    display({"text/plain": "x"}, raw=True, display_id="one")
display({"text/plain": "x" * 2_000_000}, raw=True, display_id="one", update=True)
"""
)
LARGE_HEADERS = (
    FLOOD
    + """
session, socket = get_ipython().kernel.session, get_ipython().kernel.iopub_socket
parent = {"msg_id": "x", "numbers": [[number] for number in range(5_000_000)]}
session.send(socket, "stream", {"name": "stdout", "text": "x"}, parent=parent)
"""
)


def with_cell(what, source):
    """A hand-in whose first cell does that, too."""

    def write(folder, notebook):
        notebook.cells[1].source += "\n" + source
        nbformat.write(notebook, folder / f"{SIMPLE}.ipynb")

    write.__doc__ = what
    return write


def deep(folder, notebook):
    """1,100 folders, one in the other."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(1100):
        os.mkdir("d", dir_fd=here)
        there = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = there
    os.close(here)


def named_as_ours(folder, notebook):
    """A folder that has the name of the grader's own notes."""
    nbformat.write(notebook, folder / f"{SIMPLE}.ipynb")
    (folder / "collected.txt").mkdir()


def half_a_letter(folder, notebook):
    """Half a letter in a text cell, and in the code of an answer."""
    text = json.dumps(notebook).replace("# Two questions", r"# Two \ud800 questions")
    (folder / f"{SIMPLE}.ipynb").write_text(text)


HOSTILE = {"oscar": deep, "eve": named_as_ours, "ivan": half_a_letter} | (
    {}
    if SMOKE
    else {
        "mallory": with_cell(
            "1,500 displays of one name, then one update of 2 MB.", MANY_OF_ONE_NAME
        ),
        "trudy": with_cell("A message whose parent holds five million lists.", LARGE_HEADERS),
    }
)


def course(folder):
    """A course with the small lab and nothing else, released."""
    from_tests()
    import tiny

    lab = tiny.Lab(folder)
    for name, data in labs.release(lab.solution.parent, SIMPLE).items():
        path = folder / "labs" / SIMPLE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (folder / "nbgrader_config.py").write_text((ROOT / "nbgrader_config.py").read_text())
    timed(folder, "manyhands", "release", SIMPLE)
    return lab


def hand_in(folder, student, write, notebook):
    """As nbgrader's button leaves it in the exchange."""
    time = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f UTC")
    place = (
        folder / "classroom" / "exchange" / "manyhands" / "inbound" / f"{student}+{SIMPLE}+{time}+x"
    )
    place.mkdir()
    (place / "timestamp.txt").write_text(time)
    (place / "submission_secret.txt").write_text(secrets.token_hex(32))
    write(place, notebook)


def plain(folder, notebook):
    """A hand-in as it is."""
    nbformat.write(notebook, folder / f"{SIMPLE}.ipynb")


def run(folder, command):
    """(seconds, what it printed) of one of our commands.

    That something was refused is no error here.
    """
    environment = {
        **os.environ,
        "MANYHANDS_ROOT": str(folder),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "OMP_NUM_THREADS": "1",
    }
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "manyhands", command, SIMPLE],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    printed = done.stdout + done.stderr
    if done.returncode > 1:
        raise RuntimeError(f"{command}: {printed}")
    return time.perf_counter() - start, printed


def points(folder, student):
    """What the last grade of a student says, or None."""
    grades = sorted((folder / "classroom" / "grades" / SIMPLE / student).glob("[0-9]*.json"))
    return json.loads(grades[-1].read_text())["grade"]["points"] if grades else None


def grade_class(folder, hostile):
    """({command: seconds}, {student: points}, all that was printed) of a class.

    The class has honest students and the given hostile ones.
    """
    lab = course(folder)
    honest = [f"student{number:02d}" for number in range(HONEST)]
    for number, name in enumerate(honest):
        hand_in(folder, name, plain, lab.handed_in(**ANSWERS[number % 3]))
    for name, write in hostile.items():
        hand_in(folder, name, write, copy.deepcopy(lab.notebook))
    ran = {command: run(folder, command) for command in COMMANDS}
    # shutil.rmtree cannot remove what is so deep
    subprocess.run(["rm", "-rf", folder / "classroom" / "exchange"], check=True)
    return (
        {name: seconds for name, (seconds, _) in ran.items()},
        {name: points(folder, name) for name in honest},
        "".join(printed for _, printed in ran.values()),
    )


def main():
    """Grade both classes; RuntimeError if a grade differs, or a hostile hand-in is not named."""
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as peer:
        our_s, ours_got, printed = grade_class(Path(ours), HOSTILE)
        peer_s, peer_got, _ = grade_class(Path(peer), {})
        lines_about = {
            name: [line.strip() for line in printed.splitlines() if name in line]
            for name in HOSTILE
        }
    wrong = [
        name
        for number, name in enumerate(peer_got)
        if not ours_got[name] == peer_got[name] == [4, 2, 2][number % 3]
    ]
    silent = [name for name, lines in lines_about.items() if not lines]
    if wrong or silent:
        raise RuntimeError(f"not graded right: {wrong}; not told: {silent}\n{printed}")
    for command in COMMANDS:
        yield ratio_line(
            f"`manyhands {command}`, {HONEST} honest and {len(HOSTILE)} hostile (peer: the {HONEST}"
            " alone)",
            [our_s[command]],
            [peer_s[command]],
            "s",
            None,
        )
    for name, lines in lines_about.items():
        yield f"| {name}: {HOSTILE[name].__doc__} | {'; '.join(lines)} | | | | |"
