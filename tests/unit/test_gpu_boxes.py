"""The box "On GPUs" of tutorial and deck, and the length of a tutorial."""

import re
from pathlib import Path

import pytest

from manyhands.authoring.reading_time import words

ROOT = Path(__file__).resolve().parents[2]
TUTORIALS = sorted((ROOT / "sources" / "tutorial").glob("*.py"))
NAMES = [path.stem for path in TUTORIALS]
# numbers of the units that must have the box, in the tutorial and in the deck
WITH_BOX = tuple(f"{number:02}" for number in (*range(17), 18, 19, 20))
WORDS = 2800  # in a tutorial's text, folds not counted
HEAD = "> **On GPUs.** "


def boxes(text):
    """The lines of each box, from its head to the end of its quotation."""
    lines, blocks = text.splitlines(), []
    for i, line in enumerate(lines):
        if "**On GPUs" in line:
            end = next(
                (j for j in range(i, len(lines)) if not lines[j].startswith(">")), len(lines)
            )
            blocks.append(lines[i : max(end, i + 1)])
    return blocks


def problems(cells, deck, wanted):
    """Return what is wrong with the boxes of a unit.

    `cells` are the texts of its tutorial, `deck` is the text of its slides.
    """
    own, shown = [cell for cell in cells if boxes(cell)], boxes(deck)
    if not own and not shown:
        return ["neither the tutorial nor the deck has the box"] if wanted else []
    sentences = [
        f"{where} has {n} boxes"
        for where, n in (("the tutorial", len(own)), ("the deck", len(shown)))
        if n != 1
    ]
    sentences += [
        "the tutorial's box does not stand in a cell of its own"
        for cell in own
        if not cell.strip().startswith(HEAD)
        or len(boxes(cell)[0]) != len(cell.strip().splitlines())
    ]
    for lines in [*(box for cell in own for box in boxes(cell)), *shown]:
        if not lines[0].startswith(HEAD) or not all(line.startswith("> ") for line in lines):
            sentences.append(f"not in the course's layout: {lines[0]!r}")
        if not 2 <= len(lines) <= 5:
            sentences.append(f"{len(lines)} lines, not 2 to 5: {lines[0]!r}")
    return sentences


def texts(path):
    """The Markdown cells of a source, without the comment signs."""
    cells = re.split(r"^# %%(.*)$", path.read_text(encoding="utf-8"), flags=re.M)
    return [
        re.sub(r"^# ?", "", text.strip(), flags=re.M)
        for head, text in zip(cells[1::2], cells[2::2], strict=True)
        if "[markdown]" in head
    ]


@pytest.mark.parametrize("path", TUTORIALS, ids=NAMES)
def test_tutorial_and_deck_have_the_same_kind_of_box(path):
    deck = (ROOT / "slides" / f"{path.stem}.md").read_text(encoding="utf-8")
    assert problems(texts(path), deck, path.stem[:2] in WITH_BOX) == []


@pytest.mark.parametrize("path", TUTORIALS, ids=NAMES)
def test_a_tutorial_is_not_too_long(path):
    assert words("\n".join(texts(path))) < WORDS


def test_a_bad_box_is_noticed():
    good = "> **On GPUs.** A call returns\n> when it is enqueued."
    assert (
        problems([good], f"# Slide\n\n{good}\n\nmore\n", True)
        == problems(["text"], "text", False)
        == []
    )
    assert problems(["text"], "text", True) == ["neither the tutorial nor the deck has the box"]
    assert problems([good], "text", False) == ["the deck has 0 boxes"]
    assert problems(["text"], good, False) == ["the tutorial has 0 boxes"]
    assert problems([f"before\n\n{good}"], good, True) == [
        "the tutorial's box does not stand in a cell of its own"
    ]
    assert problems([good], good.replace("GPUs.**", "GPUs**"), True) == [
        "not in the course's layout: '> **On GPUs** A call returns'"
    ]
    assert problems([good], good.partition("\n")[0], True) == [
        "1 lines, not 2 to 5: '> **On GPUs.** A call returns'"
    ]
    assert problems([good + "\n> more" * 4], good, True) == [
        "6 lines, not 2 to 5: '> **On GPUs.** A call returns'"
    ]
    assert problems([good.replace("\n> ", "\n")], good, True)


def test_words_in_folds_do_not_count():
    assert words("one two <details><summary>why</summary>\n\nthree\n</details> four") == 3
