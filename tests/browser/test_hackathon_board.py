"""The hackathon's board in Chromium: on a stage, frozen, dark, on a phone: that it fits, and that it can be read."""

import pytest

from manyhands.hackathon.challenge import CHALLENGES
from manyhands.hackathon.event import board_page
from manyhands.hackathon.event.board_page import Board, Section
from manyhands.hackathon.event.standings import Result

BEGINS, HOUR = 1_800_000_000, 3600
TEAMS = ["Ring & Tree", "The Stragglers", "Overflow, Underflow and the Very Long Na", "Sly", "Asynchronous Anonymous", "W" * 40, "x",
         "Gradient descendants", "Barrier reef", "<b>Bold</b>", "NCCL and dimed", "Rank and file"]
PROBLEM = "All ranks wait, and none of them can continue: Rank 0 waits in recv from rank 1 (tag 0). Rank 1 has returned. Rank 2 has returned."
CONTRAST = """() => {
    const parts = colour => colour.match(/[0-9.]+/g).map(Number);
    const light = colour => { const [r, g, b] = parts(colour).map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
                              return .2126 * r + .7152 * g + .0722 * b; };
    const ground = node => { for (; node; node = node.parentElement) { const c = parts(getComputedStyle(node).backgroundColor);
                             if (c.length < 4 || c[3] > 0) return getComputedStyle(node).backgroundColor; } };
    return [...document.querySelectorAll("h1, h2, h3, p, th, td, b, svg text")].filter(node => node.textContent.trim()).map(node => {
        const style = getComputedStyle(node), [a, b] = [light(node.closest("svg") ? style.fill : style.color), light(ground(node))].sort((x, y) => y - x);
        return [(a + .05) / (b + .05), node.getAttribute("class") + node.tagName + node.textContent];
    }).sort((x, y) => x[0] - y[0]);
}"""
LETTERS = """() => [...document.querySelectorAll("svg text")].filter(node => getComputedStyle(node).display !== "none").map(
    node => parseFloat(getComputedStyle(node).fontSize) * node.ownerSVGElement.getScreenCTM().a)"""


def board(challenges, note="", waiting=()):
    """Twelve teams after five hours; the last has no score, anywhere."""
    sections = []
    for name in list(CHALLENGES)[:challenges]:
        one = CHALLENGES[name]
        results = [Result(team, name, 1, BEGINS + 600 * (place + 1) + 3600 * again, one.baseline * 0.8 ** (place + 3 * again) if place < 11 else None,
                          one.unit, "" if place < 11 else PROBLEM, 10 + place, "0") for again in (0, 1) for place, team in enumerate(TEAMS)]
        sections.append(Section(one.title, one.unit, one.baseline, results, name))
    return Board("Autumn hackathon", sections, "best", BEGINS, BEGINS + 5 * HOUR, note, waiting, BEGINS + 5 * HOUR)


@pytest.fixture
def look(page, tmp_path, screenshots):
    """Opens a board: (a page, how often it asked for anything but itself)."""
    def open_it(shown, name, width, height, scheme="light", screen=False):
        path, asked = tmp_path / f"{name}.html", []
        path.write_text(board_page.page(shown, screen))
        page.on("request", lambda request: asked.append(request.url))
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        page.goto(path.as_uri())
        page.screenshot(path=screenshots / f"hackathon_{name}.png", full_page=not screen)
        assert asked == [path.as_uri()]
        return page
    return open_it


FROZEN = "Frozen at 14:00. Entries are still judged, and the organisers show the result after the end."


@pytest.mark.parametrize("challenges", [1, 2, 3, 4])
def test_the_big_screen_fits_frozen_too_and_is_read_from_the_back(look, challenges):
    for width, height in ((1920, 1080), (1280, 720), (1024, 768)):
        page = look(board(challenges, FROZEN, None), f"screen_{challenges}_{width}", width, height, "dark", screen=True)
        assert page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]") == [width, height]
        low = page.evaluate("Math.max(...[...document.querySelectorAll('section > *, tr')].map(node => node.getBoundingClientRect().bottom))")
        assert low <= height, f"something ends at {low} of {height} pixels"
        cut = page.evaluate("""[...document.querySelectorAll('table')].map(node => node.getBoundingClientRect().right
                               - node.parentElement.getBoundingClientRect().right)""")
        assert max(cut) <= 1, f"a table is {max(cut)} pixels wider than its place"
        short = page.evaluate("[...document.querySelectorAll('section p')].filter(node => node.scrollWidth > node.clientWidth).map(node => node.textContent)")
        assert short == [], "cut off"
        assert page.evaluate("parseFloat(getComputedStyle(document.querySelector('td.team')).fontSize)") >= min(width, height * 16 / 9) / 90
        assert min(page.evaluate(LETTERS)) >= min(width, height * 16 / 9) / 160
        assert page.locator("tbody tr").count() == challenges * board_page.SCREEN[challenges][0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_that_is_written_stands_out(look, scheme):
    waiting = (("Sly", "Slow links", 25.0), ("x", "Big batch", None))
    page = look(board(2, FROZEN, waiting), f"board_{scheme}", 1280, 900, scheme)
    ratios = page.evaluate(CONTRAST)
    assert len(ratios) > 100 and ratios[0][0] >= 4.5, ratios[:5]
    assert page.locator("main b", has_text="Rank and file").count() == 0 and page.locator("td.problem").count() == 2
    assert page.locator("td.team", has_text="<b>Bold</b>").count() == 2  # what a team calls itself stays text


def test_a_phone_needs_no_scrolling_to_the_side(look):
    page = look(board(4, FROZEN, None), "phone", 390, 844)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.evaluate("Math.max(...[...document.querySelectorAll('table, p, h1, h2')].map(node => node.getBoundingClientRect().right))") <= 390
    assert min(page.evaluate(LETTERS)) >= 11
