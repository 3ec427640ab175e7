"""The minutes of a tutorial are counted from its source, and its header does not promise fewer."""

import re
from pathlib import Path

import pytest

from manyhands.authoring.reading_time import cells, counted, main, stated, tutorials, with_minutes

ROOT = Path(__file__).resolve().parents[3]
LABS = sorted((ROOT / "sources" / "labs").glob("*.py"))
EXERCISE = re.compile(r"^# \*Difficulty [^,]*, (\d+) minutes", re.M)
SOURCE = """# %% [markdown] unit={"minutes": 5, "ranks": 4, "framework": "torch", "title": "T"}
# # Title with four words
#
# **Minutes:** 5. WORDS
#
# <details><summary>Why?</summary>
#
# folded away
# </details>

# %% tags=["setup"]
# %%px --setup
import torch

LINES
# %%
predict("00-a", "Which?", ["one", "two"])
predict("00-b", "Which?", ["one", "two"])

# %%
def which():
    return "one"

settle("00-a", which)
"""


def source(words=0, lines=0):
    return SOURCE.replace("WORDS", "word " * words).replace("LINES", "x = 1\n" * lines)


def test_what_is_counted():
    counts = counted(source())
    # "#" of the title is a word, as it is for the limit
    assert (counts.words, counts.lines, counts.predictions) == (7, 2, 2)
    assert [is_text for is_text, _ in cells(source())] == [True, False, False, False]


@pytest.mark.parametrize(
    "words, lines, minutes",
    [(0, 0, 5), (187, 0, 10), (593, 13, 10), (594, 13, 10), (800, 13, 10), (994, 13, 15)],
)
def test_the_minutes_are_rounded_up_to_five(words, lines, minutes):
    assert counted(source(words, lines)).minutes == minutes


def test_the_minutes_are_written_into_both_places():
    assert stated(source()) == (5, 5) and stated(with_minutes(source(), 25)) == (25, 25)
    assert with_minutes(source(), 25).replace("25", "5") == source()


def test_the_command_shows_every_tutorial(capsys):
    main([])
    shown = capsys.readouterr().out
    assert all(path.stem in shown for path in tutorials(ROOT))


def test_no_header_promises_less_than_is_counted():
    low = {}
    for path in tutorials(ROOT):
        text = path.read_text(encoding="utf-8")
        (header, first), minutes = stated(text), counted(text).minutes
        if header != first or header < minutes:
            low[path.stem] = (
                f"{header} and {first}, counted {minutes}: python -m manyhands.authoring.reading_time "
                "--write"
            )
    assert not low


@pytest.mark.parametrize("lab", LABS, ids=lambda path: path.stem)
def test_no_lab_promises_fewer_minutes_than_its_exercises(lab):
    text = lab.read_text(encoding="utf-8")
    header, first = stated(text)
    assert header == first >= sum(map(int, EXERCISE.findall(text))) > 0


@pytest.mark.parametrize("lab", LABS, ids=lambda path: path.stem)
def test_a_deck_promises_the_minutes_of_its_notebooks(lab):
    deck = (ROOT / "slides" / f"{lab.stem}.md").read_text(encoding="utf-8")
    tutorial, minutes = (
        stated((ROOT / "sources" / kind / lab.name).read_text(encoding="utf-8"))[0]
        for kind in ("tutorial", "labs")
    )
    assert f"Notebook {tutorial} minutes · lab {minutes} minutes" in deck
    assert {int(digits) for digits in re.findall(r"(\d+) minutes, \d+ points", deck)} == {minutes}
