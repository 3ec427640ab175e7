"""The decks as a room sees them: each slide is drawn by a real Chromium.

Everything on it is read, in size, and in its position.

No text may be smaller than 20 px of 720, the footer and the number of the page included.
"""

import re
import zlib
from contextlib import suppress
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DECKS = sorted((ROOT / "slides" / "built").glob("*.html"))
LOOK = (HERE / "looks_at_slides.js").read_text(encoding="utf-8")


@pytest.fixture
def seen(page):
    """`seen(path)`: what `looks_at_slides.js` says of the deck, and what the page asked for."""

    def look(path):
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        page.set_viewport_size({"width": 1280, "height": 720})
        page.goto(path.as_uri())
        page.emulate_media(media="print")
        page.evaluate("document.fonts.ready")
        return page.evaluate(LOOK), [
            url for url in asked if not url.startswith(("data:", path.as_uri()))
        ]

    return look


def pdf_objects(data):
    """The text of a PDF's objects, those in compressed streams unpacked."""
    parts = [data.decode("latin-1")]
    for match in re.finditer(rb"stream\r?\n(.*?)\r?\nendstream", data, re.S):
        with suppress(zlib.error):
            # what ends with the byte of a line's end is cut by one here: all that matters has come
            # out by then
            parts.append(zlib.decompressobj().decompress(match.group(1)).decode("latin-1"))
    return "\n".join(parts)


def pdf_outline(objects):
    """The titles of a PDF's bookmarks, in order."""
    problems = [
        bytes.fromhex(text) for text in re.findall(r"/Title\s*<([0-9A-Fa-f]+)>\s*/Parent", objects)
    ]
    return [
        (
            text.decode("utf-16")
            if text.startswith((b"\xfe\xff", b"\xff\xfe"))
            else text.decode("latin-1")
        ).replace("\u00ad", "")
        for text in problems
    ]


@pytest.mark.parametrize("path", DECKS, ids=[path.stem for path in DECKS])
def test_every_slide_can_be_read_in_the_last_row(path, seen):
    deck, asked = seen(path)
    wrong = [
        f"slide {number}: {problem}"
        for number, problems in enumerate(deck["slides"], 1)
        for problem in problems
    ]
    assert deck["slides"] and not deck["wide"]
    assert wrong == []
    assert asked == [], "a deck needs no network"
    assert deck["lang"] == "en"
    assert deck["notes"] == len(deck["slides"]), "every slide has its notes in the presenter's view"
    assert deck["titled"]
    objects = pdf_objects(path.with_suffix(".pdf").read_bytes())
    assert len(re.findall(r"/Type\s*/Page\b(?!s)", objects)) == len(deck["slides"])
    assert pdf_outline(objects) == [words.replace("\u00ad", "") for words in deck["headings"]], (
        "the PDF says what the page says"
    )


def test_a_picture_is_built_up_key_by_key(page):
    """In deck 00 each key draws an arrow of the circle of waiting ranks.

    The next one turns the page.
    """
    (path,) = (ROOT / "slides" / "built").glob("00_*.html")
    page.goto(path.as_uri() + "#7")
    arrows = page.locator("section[id='7'] [data-marpit-fragment]")
    for drawn in range(arrows.count() + 1):
        shown = [
            seen != "hidden"
            for seen in arrows.evaluate_all(
                "all => all.map(arrow => getComputedStyle(arrow).visibility)"
            )
        ]
        assert shown == [k < drawn for k in range(4)]
        assert page.evaluate("location.hash").startswith("#7")
        page.keyboard.press("ArrowRight")
    assert page.evaluate("location.hash").startswith("#8")


BAD = {
    "into the footer": '<p style="margin-top: 600px">low</p>',
    "outside the page": '<p style="position: absolute; left: 1250px">far away</p>',
    "letters of 19.0 px": '<p style="font-size: 19px">small</p>',
    "letters of 10.0 px": (
        '<svg role="img" aria-label="a" width="100" height="100" viewBox="0 0 200 200"><text y="50"'
        ' font-size="20">a</text></svg>'
    ),
    "a contrast of 2.8": '<p style="color: #999">grey</p>',
    "a contrast of 1.0": (
        '<svg role="img" aria-label="a" width="100" height="100"><rect width="90" '
        'height="90"/><text x="9" y="50" font-size="30">a</text></svg>'
    ),
    "cut off at the edge of its picture": (
        '<svg role="img" aria-label="a" width="100" height="100"><text x="80" y="50" '
        'font-size="30">abc</text></svg>'
    ),
    "wider than its frame": (
        '<pre style="overflow: auto; width: 100px; font-size: 20px">a long line of code</pre>'
    ),
    "no words for those who cannot see it": '<svg width="100" height="100"></svg>',
}


@pytest.mark.parametrize("problem", BAD)
def test_a_bad_slide_is_noticed(problem, tmp_path, seen):
    path = tmp_path / "deck.html"
    path.write_text(
        '<html lang="en"><body style="margin: 0"><svg data-marpit-svg viewBox="0 0 1280 720" '
        'role="img" aria-label="slide"><foreignObject width="1280" height="720"><section '
        'style="width: 1280px; height: 720px; position: relative; font-size: '
        f'30px"><h2>Title</h2>{BAD[problem]}<footer style="position: absolute; top: '
        '680px">foot</footer></section></foreignObject></svg></body></html>'
    )
    deck, _ = seen(path)
    assert any(problem in description for description in deck["slides"][0]), deck["slides"]
