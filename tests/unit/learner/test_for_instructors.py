"""The part of Start_Here that only an instructor of a hub has."""

import re

import pytest

from manyhands.learner import for_instructors, start_page


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home, and a folder with the solution of one unit that the hub shows."""
    solved = tmp_path / "shown" / "06_ddp"
    solved.mkdir(parents=True)
    (solved / "06_ddp.ipynb").write_text("{}")
    monkeypatch.setenv("MANYHANDS_TEACHES", "http://hub.example:8000/")
    monkeypatch.setenv("MANYHANDS_SOLUTIONS", str(tmp_path / "shown"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def test_an_instructor_finds_solutions_the_board_and_how_to_grade(home):
    for_instructors.link(home)
    for_instructors.link(home)  # at the next start
    text = start_page.write(home).read_text(encoding="utf-8")
    links = re.findall(r"\]\((\.\./solved/[^)]+)\)", text)
    assert links and all((home / "work" / link).is_file() for link in links)
    assert all(
        f"http://hub.example:8000/{place}" in text
        for place in ("services/board/", "services/formgrader/", "hub/admin")
    )
    assert all(
        f"`manyhands {step} 06" in text for step in ("release", "collect", "grade", "feedback")
    )


def test_what_a_person_has_of_that_name_stays(home):
    (home / for_instructors.LINK).write_text("mine")
    for_instructors.link(home)
    assert (
        home / for_instructors.LINK
    ).read_text() == "mine" and "Solutions" not in start_page.text(home)


def test_an_attendee_has_none_of_it(home, monkeypatch):
    monkeypatch.delenv("MANYHANDS_TEACHES")
    monkeypatch.delenv("MANYHANDS_SOLUTIONS")
    for_instructors.link(home)
    assert (
        "instructors" not in start_page.text(home)
        and not (home / for_instructors.LINK).is_symlink()
    )
