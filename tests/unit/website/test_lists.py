"""The pages in front.

Every unit has a card with a picture and a sentence, and every manual has a sentence.
"""

import re
from html import escape
from pathlib import Path

import pytest

from manyhands.units import units
from manyhands.website import lists
from manyhands.website.lay_out import OWN_ENTRY

ROOT = Path(__file__).resolve().parents[3]
THERE = [unit for unit in units(ROOT) if not unit.planned]


@pytest.mark.parametrize("unit", THERE, ids=lambda unit: unit.number)
def test_a_card_has_a_picture_a_sentence_and_the_way_to_both_notebooks(unit):
    card = lists.cards(ROOT, [unit], "../", "h2")
    assert re.fullmatch(r"[A-Z].{60,110}\.", unit.sentence)
    assert (
        f"<p>{escape(unit.sentence)}</p>" in card
        and f'href="../notebooks/{unit.name}.html"' in card
        and f"/{unit.name}.html" in card
    )
    [(source, alt)] = re.findall(r'<img src="([^"]+)" alt="([^"]+)">', card)
    assert len(alt) > 20 and Path(source).name in lists.covers(ROOT, [unit])


def test_the_first_page_has_one_picture_and_three_doors():
    page = lists.first_page(ROOT, THERE)
    above, _, below = page.partition("## Units")
    assert above.count("<img") == 1 and re.findall(r"<h2[^>]*>(\w+)</h2>", above) == [
        "Learn",
        "Teach",
        "Compete",
    ]
    assert below.count('class="unit-card"') == len(THERE)
    assert "{" not in page  # nothing was left open


def test_every_manual_has_a_sentence():
    named = {name for pages in lists.MANUALS.values() for name in pages}
    assert {f"docs/{path.stem}" for path in ROOT.glob("docs/*.md")} - named == set(OWN_ENTRY)
    assert all((ROOT / f"{name}.md").is_file() for name in named)
    assert all(words.endswith(".") for pages in lists.MANUALS.values() for words in pages.values())


def test_predict_and_simulate_are_listed_for_learners():
    assert {"docs/PREDICT", "docs/SIMULATE"} <= set(lists.MANUALS["For attendees"])


def test_a_manual_without_a_sentence_is_listed_last():
    assert lists.manuals(["docs/NEW", "README"])[-2:] == ["* {doc}`/docs/NEW`<br>", ""]


def test_labs_are_listed_by_their_own_titles_and_decks_with_their_length():
    text = "\n".join(lists.labs(ROOT, THERE[:1]) + lists.slides(ROOT, THERE[:1]))
    assert "Find the rank that did not arrive" in text and re.search(
        r"\| \d\d \| <a href=\"built/00_preflight.pdf\"", text
    )
