"""nbgrader's own commands and formgrader's buttons grade, collect and give feedback as ours do."""

import http.client
import json
import os
import socket
import subprocess
import sys
import time

import pytest
from room import UNIT

from manyhands.authoring import labs
from manyhands.grading.classroom import steps
from manyhands.grading.nbgrader import gradebook


class Formgrader:
    """A Jupyter server with formgrader in the course's folder.

    It is spoken to over a socket of its own.
    """

    def __init__(self, room, folder):
        self.socket, self.log = folder / "s", folder / "log"
        command = [
            sys.executable,
            "-m",
            "jupyter",
            "server",
            f"--ServerApp.sock={self.socket}",
            "--IdentityProvider.token=t",
            "--allow-root",
            "--ServerApp.open_browser=False",
            f"--ServerApp.root_dir={room.root}",
            "--ServerApp.jpserver_extensions={'nbgrader.server_extensions.formgrader': True}",
        ]
        environment = {
            **os.environ,
            **{f"JUPYTER_{name}_DIR": str(folder / name) for name in ("CONFIG", "DATA", "RUNTIME")},
        }
        environment["PATH"] = os.path.dirname(sys.executable) + os.pathsep + environment["PATH"]
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                command, cwd=room.root, env=environment, stdout=log, stderr=subprocess.STDOUT
            )

    def ask(self, path, method="GET"):
        connection = http.client.HTTPConnection("localhost", timeout=300)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(self.socket))
        connection.request(
            method,
            path,
            headers={"Authorization": "token t"},
            body=b"" if method == "POST" else None,
        )
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def wait(self):
        until = time.monotonic() + 120
        while time.monotonic() < until and self.process.poll() is None:
            try:
                return self.ask("/api/status")
            except OSError:
                time.sleep(0.1)
        raise RuntimeError(self.log.read_text())

    def button(self, path):
        status, text = self.ask(f"/formgrader/api/{path}", "POST")
        assert status == 200, self.log.read_text()
        answer = json.loads(text)
        assert answer["success"], answer
        return answer

    def close(self):
        self.process.terminate()
        self.process.wait()


@pytest.fixture
def formgrader(classroom, tmp_path_factory):
    classroom.command("release", "90")
    made = Formgrader(classroom, tmp_path_factory.mktemp("f"))
    try:
        made.wait()
        yield made
    finally:
        made.close()


def test_formgraders_buttons_do_what_our_commands_do(classroom, formgrader):
    inbound = classroom.hand_in("alice", classroom.lab.handed_in(square="return 1"))
    (inbound / "secret.txt").symlink_to(classroom.lab.solution)
    formgrader.button(f"assignment/{UNIT}/collect")
    assert (classroom.step_folder("submitted", "alice", UNIT) / "secret.txt").is_symlink()
    formgrader.button(f"submission/{UNIT}/alice/autograde")
    assert classroom.grade_of("alice")["points"] == 2
    assert classroom.marks()["alice"] == {"square-check": (0, None, 2), "total-check": (2, None, 2)}
    (row,) = json.loads(formgrader.ask(f"/formgrader/api/submissions/{UNIT}")[1])
    assert (row["student"], row["score"], row["max_score"], row["autograded"]) == (
        "alice",
        2,
        4,
        True,
    )
    with classroom.book() as book:
        (page,) = [notebook.id for notebook in book.find_submission(UNIT, "alice").notebooks]
    status, text = formgrader.ask(f"/formgrader/submissions/{page}/")
    assert status == 200 and "Read the question again." in text and 'id="square-check"' in text
    # what the button did counts
    assert "0 graded, 1 already had" in classroom.command("grade", "90")[1]
    formgrader.button(f"assignment/{UNIT}/alice/generate_feedback")
    page = (classroom.step_folder("feedback", "alice", UNIT) / f"{UNIT}.html").read_text()
    assert "2 of 4 points" in page and "Content-Security-Policy" in page and "MathJax" not in page
    formgrader.button(f"assignment/{UNIT}/alice/release_feedback")
    (released,) = (classroom.exchange / "manyhands" / "feedback").glob("*.html")
    assert released.read_text() == page


def test_formgrader_has_names_to_show(classroom, monkeypatch):
    """The full name of the hub's table, else the account's.

    What an instructor has written stays.
    """
    monkeypatch.setenv("MANYHANDS_HUB", str(classroom.root))
    classroom.command("release", "90")
    table = [
        {"name": name, "uid": os.geteuid(), "full_name": full}
        for name, full in (("alice", "Alice Liddell"), ("bob", ""), ("carol", "Carol"))
    ]
    with gradebook.opened(classroom) as book:
        book.add_student("carol", first_name="Caroline")
    for student in ("alice", "bob", "carol"):
        classroom.hand_in(student, classroom.lab.handed_in())
    (classroom.root / "accounts.json").write_text(json.dumps({"accounts": table}))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)  # these three share our number
    assert classroom.command("collect", "90")[0] == 0
    with classroom.book() as book:
        people = {person.id: (person.first_name, person.last_name) for person in book.students}
    assert people == {
        "alice": ("", "Alice Liddell"),
        "bob": ("", "bob"),
        "carol": ("Caroline", None),
    }


def test_generate_makes_the_lab_of_the_build_and_shows_no_solved_script(classroom):
    script = classroom.lab.solution.with_name("90_train.py")
    script.write_text(
        "def train():\n    ### BEGIN SOLUTION\n    return 'the answer'\n    ### END SOLUTION\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", "generate_assignment", UNIT, "--force"],
        cwd=classroom.root,
        env={
            **os.environ,
            "PATH": os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"],
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lab = classroom.root / "labs" / UNIT
    assert {path.name: path.read_bytes() for path in lab.iterdir()} == labs.release(
        classroom.lab.solution.parent, UNIT
    )
    assert "the answer" not in (lab / "90_train.py").read_text()


def test_attendees_fetch_their_page(classroom):
    classroom.command("release", "90")
    classroom.hand_in("alice", classroom.lab.handed_in())
    classroom.command("collect", "90")
    classroom.command("grade", "90")
    classroom.command("feedback", "90")
    home = classroom.root / "homes" / "alice"
    part = steps.exchange(classroom, UNIT, "FetchFeedback", "alice", assignment_dir=str(home))
    part.start()
    (page,) = (home / UNIT / "feedback").rglob("*.html")
    assert "4 of 4 points" in page.read_text()
