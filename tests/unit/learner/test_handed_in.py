"""A hub's Start_Here after a lab was handed in with nbgrader.

What it says, and the feedback that it fetches.
"""

import json
import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange import ExchangeFactory
from nbgrader.utils import notebook_hash
from traitlets.config import Config

from manyhands.grading.nbgrader import exchange
from manyhands.learner import for_attendees, handed_in, start_page
from manyhands.learner.jupyter_server import environment
from manyhands.learner.released import due_file
from manyhands.learner.renewing import Renewal

LAB = "06_ddp"
NOTEBOOK = json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@pytest.fixture
def seat(tmp_path, monkeypatch):
    """An attendee's home with a lab that was fetched.

    `submit()` and `give_back(page)` do what nbgrader does.
    """
    home, shared = tmp_path / "home", tmp_path / "exchange"
    (home / "work" / LAB).mkdir(parents=True)
    (home / "work" / LAB / f"{LAB}.ipynb").write_text(NOTEBOOK)
    exchange.make(shared)
    (shared / "manyhands" / "outbound" / LAB).mkdir()
    (shared / "manyhands" / "outbound" / LAB / f"{LAB}.ipynb").write_text(NOTEBOOK)
    for name, value in {
        **environment(home),
        "JUPYTERHUB_USER": "hand01",
        "MANYHANDS_EXCHANGE": str(shared),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(home)

    def submit(lab=LAB):
        config = Config()
        exchange.use_as_attendee(config, home / "work")
        made = ExchangeFactory(config=config).Submit(
            coursedir=CourseDirectory(config=config, assignment_id=lab),
            authenticator=Authenticator(config=config),
            config=config,
        )
        made.start()
        return Path(made.cache_path) / made.assignment_filename.rsplit("+", 1)[0]

    def give_back(page, hand_in):
        secret = (hand_in / "submission_secret.txt").read_text()
        path = (
            shared
            / "manyhands"
            / "feedback"
            / f"{notebook_hash(secret=secret, notebook_id=LAB)}.html"
        )
        path.with_suffix(".tmp").write_text(page)
        os.replace(path.with_suffix(".tmp"), path)

    return SimpleNamespace(home=home, shared=shared, submit=submit, give_back=give_back)


def paragraph(text, words):
    """The rest of the paragraph that begins with these words, or None."""
    match = re.search(rf"^\*\*{words}:\*\* (.*)$", text, re.MULTILINE)
    return match and match[1]


def link_in(text):
    return re.search(r"\[[^]]*\]\(([^)]*)\)", text)[1].replace("%20", " ").replace("%3A", ":")


def test_from_handing_in_to_the_link_to_the_feedback(seat):
    renewal = Renewal(seat.home)
    assert "anded in" not in start_page.text(seat.home) and not renewal.look()
    hand_in = seat.submit()
    assert renewal.look(), "the server sees it, and nobody has to load anything again"
    text = (seat.home / "work" / start_page.NAME).read_text()
    assert re.fullmatch(
        r"06 DistributedDataParallel, 20\d\d-\d\d-\d\d \d\d:\d\d \S+",
        paragraph(text, "Handed in, no feedback yet"),
    )
    assert not renewal.look()
    seat.give_back("<h1>3 of 4</h1>", hand_in)
    assert renewal.look()
    text = (seat.home / "work" / start_page.NAME).read_text()
    assert (
        seat.home / "work" / link_in(paragraph(text, "Handed in, feedback ready"))
    ).read_text() == "<h1>3 of 4</h1>"
    assert paragraph(text, "Handed in, no feedback yet") is None
    seat.give_back("<h1>4 of 4</h1>", hand_in)
    assert renewal.look(), "graded again"
    assert [
        page.read_text() for page in (seat.home / "work" / LAB / "feedback").rglob("*.html")
    ] == ["<h1>4 of 4</h1>"]


def test_feedback_on_an_earlier_version_is_said_to_be_that(seat):
    first = seat.submit()
    second = seat.submit()
    seat.give_back("first", first)
    start_page.write(seat.home)
    line = paragraph(start_page.text(seat.home), "Handed in, feedback ready")
    assert "on an earlier version; handed in again 20" in line
    seat.give_back("second", second)
    start_page.write(seat.home)
    line = paragraph(start_page.text(seat.home), "Handed in, feedback ready")
    assert (seat.home / "work" / link_in(line)).read_text() == "second" and "earlier" not in line


def test_due_labs_say_that_they_were_handed_in(seat):
    due_file(seat.shared).write_text(
        json.dumps({LAB: {"until": "2026-12-02", "shown": "2026-12-02 18:00 JST"}})
    )
    assert (
        paragraph(start_page.text(seat.home), "Due")
        == "06 DistributedDataParallel: 2026-12-02 18:00 JST."
    )
    seat.submit()
    assert (
        paragraph(start_page.text(seat.home), "Due")
        == "06 DistributedDataParallel: 2026-12-02 18:00 JST (handed in)."
    )


def test_a_lab_that_was_removed_or_renamed_is_not_made_again(seat):
    hand_in = seat.submit()
    os.rename(seat.home / "work" / LAB, seat.home / "work" / "mine")
    seat.give_back("page", hand_in)
    start_page.write(seat.home)
    assert not (seat.home / "work" / LAB).exists() and paragraph(
        start_page.text(seat.home), "Handed in, no feedback yet"
    )


@pytest.mark.parametrize(
    "fault", ["a file for a folder", "no secret", "read-only", "odd names", "no exchange"]
)
def test_no_state_of_the_folders_costs_the_page(seat, fault):
    hand_in = seat.submit()
    seat.give_back("page", hand_in)
    if fault == "a file for a folder":
        (seat.home / "work" / LAB / "feedback").write_text("mine")
    elif fault == "no secret":
        (hand_in / "submission_secret.txt").unlink()
    elif fault == "read-only":
        (seat.home / "work" / LAB).chmod(0o500)
    elif fault == "odd names":
        for name in ("x", "a+b", "a+<b>*[x](y)+c", "a+..+c", "+" * 9, "hand01+06_ddp+yesterday"):
            (hand_in.parent / name).mkdir()
    else:
        os.rename(seat.shared, seat.shared.with_name("away"))
    text = start_page.write(seat.home).read_text()
    assert (
        "## The units" in text
        and "<b>" not in text
        and (seat.home / "work" / LAB / f"{LAB}.ipynb").read_text() == NOTEBOOK
    )
    if fault == "a file for a folder":
        assert (seat.home / "work" / LAB / "feedback").read_text() == "mine"


def test_nothing_is_asked_outside_a_hub(seat, monkeypatch):
    seat.give_back("page", seat.submit())
    monkeypatch.delenv("JUPYTERHUB_USER")
    start_page.write(seat.home)
    assert (
        "anded in" not in start_page.text(seat.home)
        and not (seat.home / "work" / LAB / "feedback").exists()
    )
    assert for_attendees.watched(seat.home) == [] and handed_in.handed_in(seat.home).keys() == {LAB}
