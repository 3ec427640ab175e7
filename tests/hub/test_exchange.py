"""The exchange as attendees reach it from their sandboxes.

What one has handed in, no other can see, move or take the place of.
"""

import os
import sys

import pytest

from manyhands.grading.nbgrader import exchange

TRY = """
import os, sys
from pathlib import Path
root = Path(os.environ["MANYHANDS_EXCHANGE"])
inbound, feedback = root / "manyhands" / "inbound", root / "manyhands" / "feedback"
def attempt(what):
    try:
        return what()
    except OSError as error:
        return type(error).__name__
"""
ACT = (
    TRY
    + """
from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange import ExchangeFactory
from traitlets.config import PyFileConfigLoader
Path("work").mkdir(exist_ok=True)
config = PyFileConfigLoader("nbgrader_config.py", path=sys.argv[1]).load_config()
for part in sys.argv[2:]:
    course = CourseDirectory(config=config, assignment_id="90_tiny")
    made = getattr(ExchangeFactory(config=config), part)(coursedir=course, authenticator=Authenticator(config=config), config=config)
    print(made.start() or getattr(made, "assignment_filename", part))
"""
)
SETTINGS = os.path.join(os.path.dirname(exchange.__file__), "attendee")


@pytest.fixture(scope="module")
def shared(folder, neighbours):
    """An exchange with a released lab."""
    root = folder / "exchange"
    exchange.make(root)
    lab = root / "manyhands" / "outbound" / "90_tiny"
    lab.mkdir()
    (lab / "90_tiny.ipynb").write_text(
        '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
    )
    return root


@pytest.fixture(scope="module")
def inside(neighbours, shared):
    """`inside("ann", program, ...)`: what the program printed in ann's sandbox, line by line."""

    def run(name, program, *arguments):
        environment = {
            "MANYHANDS_EXCHANGE": str(shared),
            "JUPYTERHUB_USER": name,
            "MANYHANDS_ROOT": f"/home/{name}",
            "HOME": f"/home/{name}",
        }
        return neighbours.run(
            name, program, *arguments, shared=[shared], environment=environment, stderr=sys.stderr
        ).splitlines()

    return run


@pytest.fixture(scope="module")
def handed_in(inside):
    """The name of the folder that ann has handed in."""
    return inside("ann", ACT, SETTINGS, "FetchAssignment", "Submit")[-1]


def test_who_handed_in_is_told_by_name_and_by_number(neighbours, shared, handed_in):
    folder = shared / "manyhands" / "inbound" / handed_in
    assert handed_in.startswith("ann+90_tiny+")
    uid = neighbours.accounts.get("ann").uid
    assert {path.stat().st_uid for path in (folder, *folder.iterdir())} == {uid} and (
        folder / "90_tiny.ipynb"
    ).is_file()
    assert {oct(path.stat().st_mode & 0o777) for path in folder.iterdir()} == {
        "0o600"
    } and folder.stat().st_mode & 0o777 == 0o700


def test_nobody_else_sees_it_even_who_knows_its_name(inside, handed_in):
    assert (
        inside(
            "ben",
            TRY
            + """
theirs = inbound / sys.argv[1]
print(attempt(lambda: os.listdir(inbound)), attempt(lambda: os.listdir(theirs)), attempt(lambda: (theirs / "90_tiny.ipynb").read_text()))
print(attempt(lambda: theirs.rename(inbound / "mine")), attempt(lambda: (theirs / "more").write_text("x")), attempt(lambda: os.listdir(feedback)))
""",
            handed_in,
        )
        == [" ".join(["PermissionError"] * 3)] * 2
    )


def test_nobody_can_put_a_course_of_their_own_in_its_place(inside):
    assert inside(
        "ben",
        TRY
        + """
print(*[attempt(lambda: (root / "manyhands" / name).rename(root / "manyhands" / "aside")) for name in ("inbound", "outbound", "feedback")])
print(attempt(lambda: (root / "manyhands").rename(root / "aside")), attempt(lambda: (root / "other").mkdir()), attempt(lambda: (feedback / "x").write_text("x")))
print(attempt(lambda: (root / "manyhands" / "outbound" / "90_tiny" / "90_tiny.ipynb").write_text("x")))
""",
    ) == [" ".join(["PermissionError"] * count) for count in (3, 3, 1)]


def test_what_is_there_is_never_fetched_over(neighbours, inside, handed_in):
    own = neighbours.accounts.home("ann") / "work" / "90_tiny" / "90_tiny.ipynb"
    own.write_text("my answer")
    assert inside("ann", ACT, SETTINGS, "FetchAssignment") == []
    assert own.read_text() == "my answer"


def test_feedback_comes_to_who_handed_in(neighbours, shared, inside, handed_in):
    from nbgrader.utils import notebook_hash

    secret = (shared / "manyhands" / "inbound" / handed_in / "submission_secret.txt").read_text()
    page = (
        shared
        / "manyhands"
        / "feedback"
        / f"{notebook_hash(secret=secret, notebook_id='90_tiny')}.html"
    )
    page.write_text("4 of 4 points")
    assert inside("ann", ACT, SETTINGS, "FetchFeedback") == ["FetchFeedback"]
    (fetched,) = (neighbours.accounts.home("ann") / "work" / "90_tiny" / "feedback").rglob("*.html")
    assert fetched.read_text() == "4 of 4 points"
