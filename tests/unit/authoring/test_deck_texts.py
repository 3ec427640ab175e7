"""The texts of the decks.

Each slide has notes for the speaker, and pictures are what their script draws.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from manyhands.grading import notebooks
from manyhands.units import units

SLIDES = Path(__file__).resolve().parents[3] / "slides"
DECKS = sorted(SLIDES.glob("[0-9][0-9]_*.md"))
NOTE = re.compile(r"<!--\n(\d+) min\. (.*?)\n-->", re.S)
CLASSES = ("lead", "predict", "lab")


def slides_of(text):
    """The texts of a deck's slides, without its front matter."""
    return re.split(r"^---$", text, flags=re.M)[2:]


def problems(text):
    """What is wrong with the notes of a deck."""
    lacking, minutes = [], 0
    for number, slide in enumerate(slides_of(text), 1):
        notes = NOTE.findall(slide)
        if len(notes) != 1:
            lacking.append(f"slide {number} has {len(notes)} notes that begin with its minutes")
            continue
        minutes += int(notes[0][0])
        if not re.search(r"Ask the room: [^\n]*\?", notes[0][1]):
            lacking.append(f"slide {number} has no question for the room")
        if len(notes[0][1].split("\n")[-1].split()) < 2:
            lacking.append(f"slide {number} does not say what to answer")
    if f". {minutes} min in all. " not in slides_of(text)[0]:
        lacking.append(f"the first slide does not say that the deck takes {minutes} min in all")
    return lacking


@pytest.mark.parametrize("path", DECKS, ids=[path.stem for path in DECKS])
def test_every_slide_has_minutes_and_a_question(path):
    text = path.read_text(encoding="utf-8")
    assert problems(text) == []
    slides = slides_of(text)
    assert (
        "_class: lead" in slides[0]
        and "_class: lab" in slides[-1]
        and f"labs/{path.stem}" in slides[-1]
    )
    assert set(re.findall(r"_class: (\w+)", text)) <= set(CLASSES)


@pytest.mark.parametrize("unit", units(SLIDES.parent), ids=lambda unit: unit.name)
def test_minutes_and_points_are_those_of_the_unit(unit):
    slides = slides_of((SLIDES / f"{unit.name}.md").read_text(encoding="utf-8"))
    points = sum(
        notebooks.points_of(cell)
        for cell in notebooks.checks_of(notebooks.read(unit.root / unit.lab)).values()
    )
    tutorial, lab = unit.minutes
    assert f"Notebook {tutorial} minutes · lab {lab} minutes, {points:g} points" in slides[0]
    assert f"{lab} minutes, {points:g} points: `labs/{unit.name}`" in slides[-1]


def test_bad_notes_are_noticed():
    deck = (
        "---\nmarp: true\n---\n# A\n<!--\n1 min. 3 min in all. Ask the room: who?\nYou "
        "know.\n-->\n---\n# B\n<!--\n2 min. Ask the room: why?\nSo it is.\n-->\n"
    )
    assert problems(deck) == []
    assert problems(deck.replace("2 min.", "4 min.")) == [
        "the first slide does not say that the deck takes 5 min in all"
    ]
    assert (
        problems(deck.replace("2 min. ", ""))[0]
        == "slide 2 has 0 notes that begin with its minutes"
    )
    assert problems(deck.replace("why?", "why.")) == ["slide 2 has no question for the room"]
    assert problems(deck.replace("So it is.", "")) == ["slide 2 does not say what to answer"]


def test_pictures_are_what_the_script_draws_and_each_is_shown():
    drawn = subprocess.run(
        [sys.executable, str(SLIDES / "figures" / "draw.py"), "--check"],
        capture_output=True,
        text=True,
    )
    assert drawn.stdout == "" and drawn.returncode == 0, drawn.stdout + drawn.stderr
    shown = {
        name
        for path in DECKS
        for name in re.findall(r"\]\(figures/([^)]+)\)", path.read_text(encoding="utf-8"))
    }
    assert shown == {path.name for path in (SLIDES / "figures").glob("*.svg")}
