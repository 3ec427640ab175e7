"""The board's pages with a full room, in Chromium.

What is large enough, what fits, and that what attendees send stays text.
"""

import asyncio
import json
import random
import threading
import time
from contextlib import contextmanager

import pytest

from board_alone import UNIT, pages, write_accounts, write_unit
from in_browser import ALL_RULES, shuts_out
from manyhands.hub.board.service import Service

CHECKS = {
    "broadcast-check": [
        (
            "every rank has the trainable parameters of the group's first rank, in place, in groups"
            " of 4, 3 and 2"
        ),
        "the same holds for frozen parameters and buffers, whole numbers included",
    ],
    "buckets-check": [
        "buckets go from the last parameter to the first, each is closed at bucket_bytes, and "
        "frozen parameters are left out"
    ],
    "flight-check": [
        "a bucket leaves as one all-reduce, and launch does not wait for it",
        (
            "every gradient is the mean over the group, in groups of 4, 3 and 2, and a missing "
            "gradient counts as zeros"
        ),
    ],
    "hooks-check": [
        (
            "the gradients of two steps equal what a single process computes from the whole batch, "
            "to 1e-5, although ranks are seeded differently"
        ),
        (
            "each bucket leaves as one all-reduce as soon as it is complete, and backward waits for"
            " none of them"
        ),
        "a parameter that only some ranks used is averaged too, and no rank hangs",
    ],
    "no_sync-check": [
        "no all-reduce is sent inside no_sync, and one per bucket after it, even after an error",
        "three micro-batches give the gradients of the whole batch, to 1e-5",
    ],
    "sampler-check": [
        (
            "all ranks get the same number of samples, every sample is seen, and the repeated ones "
            "come from the beginning"
        ),
        (
            "each epoch has a different order, which is the same on all ranks and is distributed "
            "over the ranks in turn"
        ),
    ],
}
MISTAKES = [
    (
        "You summed the gradients, but did not divide by the number of ranks in the group: with "
        "weight decay the weights drift apart."
    ),
    "rank: 2 expected: [0.25, -1.5, 0.125] got: [1.0, -6.0, 0.5]",
    '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>',
    "NotImplementedError('write make_buckets')",
    "W" * 200,
]
ATTENDEES = [f"hand{number:02d}" for number in range(1, 41)]


def full_room(folder, attendees=ATTENDEES, checks=CHECKS):
    """Forty attendees at work for an hour, three of whom have not begun."""
    write_accounts(
        folder,
        dict.fromkeys(attendees, "attendee") | {"teacher": "instructor"},
        hand07={"full_name": "Émilie du Châtelet"},
    )
    write_unit(
        folder,
        {
            check: [(f"c{number}", text, 1) for number, text in enumerate(texts)]
            for check, texts in checks.items()
        },
    )
    service, draw, now = Service(folder), random.Random(1), time.time()
    criteria = service.course.criteria(UNIT)
    for number, name in enumerate(attendees[min(3, len(attendees) - 1) :]):
        uid, waited_s = service.people.of_name(name).uid, draw.randint(0, 2400)
        for passed, when in ((0, now - 3600), (draw.randint(0, len(criteria)), now - waited_s)):
            messages = [
                {
                    "check": criterion.check,
                    "name": criterion.name,
                    "status": "pass" if place < passed else "fail",
                    "message": MISTAKES[number % len(MISTAKES)],
                }
                for place, criterion in enumerate(criteria)
            ]
            service.board.take(
                uid,
                UNIT,
                criteria,
                {"criteria": messages[: passed + 4], "hints": draw.randint(0, 3)},
                when,
            )
    service.announce(
        service.people.of_name("teacher"), "Lunch at 12:30. Unit 07 starts at 13:30 <b>sharp</b>."
    )
    return service


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    """(the service, its address, how to call a function in its thread)."""
    with served(full_room(tmp_path_factory.mktemp("board"))) as board:
        yield board


@contextmanager
def served(service):
    """The same of a service."""
    ready, running = threading.Event(), {}

    async def serve():
        async with pages(service) as address:
            running.update(address=address, loop=asyncio.get_running_loop(), over=asyncio.Event())
            ready.set()
            await running["over"].wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(60)
    yield service, running["address"], running["loop"].call_soon_threadsafe
    running["loop"].call_soon_threadsafe(running["over"].set)
    thread.join(60)


def open_as(page, board, name, width, height):
    page.set_viewport_size({"width": width, "height": height})
    page.set_extra_http_headers({"Authorization": f"token {name}"})
    page.goto(board[1])
    page.locator("#numbers b").first.wait_for(timeout=60_000)


@pytest.mark.parametrize(("width", "height"), [(1920, 1080), (1280, 800)])
def test_a_room_of_forty_fits_and_can_be_read_from_the_back(
    board, page, screenshots, width, height
):
    open_as(page, board, "teacher", width, height)
    page.screenshot(path=screenshots / f"board_{width}.png")
    assert (
        page.locator("#people tbody tr").count() == 40
        and page.locator("#criteria li").count() == 12
    )
    assert page.evaluate(ROOM_CUT) <= 0
    boxes = [row.bounding_box() for row in page.locator("#people tbody tr").all()]
    assert all(
        box["x"] >= 0
        and box["y"] + box["height"] <= height
        and box["x"] + box["width"] <= width * 0.68
        for box in boxes
    )
    size = page.evaluate("parseFloat(getComputedStyle(document.querySelector('#people')).fontSize)")
    assert size >= height / 60, f"letters of {size} pixels"
    assert (
        page.locator("#numbers").inner_text().endswith("37 of 40 have checked · 5 with full marks")
    ), page.locator("#numbers").inner_text()
    waits = page.evaluate("room.rows.filter(row => row.stuck).map(row => row.stuck.since)")
    first = page.evaluate(
        "room.rows.find(row => row.name === document.querySelector('#stuck "
        ".who').textContent.split(' ')[0]).stuck.since"
    )
    assert first == min(waits)


ROOM_CUT = "(one => one.scrollWidth - one.clientWidth)(document.querySelector('#people'))"
USED = """() => {
    const main = document.querySelector("main").getBoundingClientRect();
    const boxes = [...document.querySelectorAll("#people td, #criteria li, #stuck li")].map(node => node.getBoundingClientRect());
    const list = document.querySelector("#criteria").getBoundingClientRect();
    return {below: Math.max(...[...document.querySelectorAll("#criteria li")].map(node => node.getBoundingClientRect().bottom)) - list.bottom, right: Math.max(...boxes.map(box => box.right)) / innerWidth, bottom: (Math.max(...boxes.map(box => box.bottom)) - main.top) / main.height,
            cut: [...document.querySelectorAll("#criteria, #criteria .text, #criteria li")].filter(node => node.scrollWidth > node.clientWidth + 1 && getComputedStyle(node).overflowX !== "visible").map(node => node.textContent),
            people: parseFloat(getComputedStyle(document.querySelector("#people")).fontSize),
            criteria: parseFloat(getComputedStyle(document.querySelector("#criteria")).fontSize) / innerWidth}; }"""


@pytest.mark.parametrize(
    ("people", "checks", "width"),
    [(1, 1, 1280), (3, 6, 1280), (3, 6, 1920), (5, 6, 1280), (10, 1, 1920)],
)
def test_a_small_room_fills_the_window_too_and_no_criterion_is_cut(
    page, tmp_path, screenshots, people, checks, width
):
    height = width * 9 // 16
    with served(
        full_room(tmp_path, ATTENDEES[:people], dict(list(CHECKS.items())[:checks]))
    ) as small:
        open_as(page, small, "teacher", width, height)
        page.locator("#stuck li").first.wait_for(timeout=60_000)
        page.screenshot(path=screenshots / f"board_of_{people}_{checks}_{width}.png")
        used, cut = page.evaluate(USED), page.evaluate(ROOM_CUT)
    assert cut <= 0, "the points are out of sight"
    assert (
        used["cut"] == [] and used["below"] <= 1 and used["right"] > 0.9 and used["bottom"] > 0.5
    ), used
    assert used["people"] > height / 40 and used["criteria"] > 1 / 110, used
    assert page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
    ) == [width, height]


def test_a_room_in_which_no_one_waits_says_so(page, tmp_path):
    write_accounts(tmp_path, {"hand01": "attendee", "teacher": "instructor"})
    write_unit(tmp_path, {"square-check": [("one", "it squares", 1)]})
    service = Service(tmp_path)
    service.board.take(
        service.people.of_name("hand01").uid,
        UNIT,
        service.course.criteria(UNIT),
        {"criteria": [{"check": "square-check", "name": "one", "status": "pass"}]},
    )
    with served(service) as small:
        open_as(page, small, "teacher", 1280, 800)
        page.locator("#stuck", has_text="No one is stuck.").wait_for(timeout=60_000)
        assert page.locator("#numbers").inner_text().endswith("1 with full marks")
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.get_by_placeholder("Announcement, or empty to remove it").evaluate(
                "one => one.scrollWidth <= one.clientWidth"
            )


def test_a_room_that_has_not_begun_shows_no_empty_lists(page, tmp_path):
    write_accounts(tmp_path, {"hand01": "attendee", "teacher": "instructor"})
    with served(Service(tmp_path)) as empty:
        page.set_extra_http_headers({"Authorization": "token teacher"})
        with page.expect_response("**/events?*"):
            page.goto(empty[1])
        assert (
            page.locator("h2:visible").count() == 0
            and page.locator("#numbers").inner_text() == "No one has checked a lab yet."
        )


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        ("teacher", 1280, "light"),
        ("teacher", 1280, "dark"),
        ("teacher", 390, "light"),
        ("hand09", 390, "dark"),
    ],
)
def test_the_board_shuts_nobody_out_and_a_phone_scrolls_down_only(
    board, page, screenshots, name, width, scheme
):
    page.emulate_media(color_scheme=scheme)
    open_as(page, board, name, width, 844)
    page.screenshot(path=screenshots / f"board_{name}_{width}_{scheme}.png", full_page=True)
    assert (
        shuts_out(page, [*ALL_RULES, "best-practice"], ("minor", "moderate", "serious", "critical"))
        == []
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if name == "teacher":
        assert page.evaluate(ROOM_CUT) <= 0
        bars = page.evaluate("getComputedStyle(document.querySelector('progress')).backgroundColor")
        assert bars == {"light": "rgb(244, 244, 244)", "dark": "rgb(36, 36, 36)"}[scheme]
    page.emulate_media(color_scheme="light")


def test_what_attendees_send_stays_text(board, page):
    open_as(page, board, "teacher", 1280, 800)
    for row in page.locator("#people tbody tr").all()[3:8]:
        row.click()
        page.keyboard.press("Escape")
    assert page.evaluate(
        "window.hacked === undefined && !document.querySelector('img, #announcement b, ol script')"
    )
    assert "<b>sharp</b>" in page.locator("#announcement").inner_text()


def test_a_result_appears_by_itself_and_the_dialog_tells_all(board, page, screenshots):
    service, _, call = board
    open_as(page, board, "teacher", 1280, 800)
    row = page.locator("#people tbody tr").filter(has_text="hand01")
    assert row.locator(".p").count() == 0
    uid, criteria = service.people.of_name("hand01").uid, service.course.criteria(UNIT)
    messages = [
        {
            "check": criterion.check,
            "name": criterion.name,
            "status": "pass" if place < 3 else "fail",
            "message": "not yet",
        }
        for place, criterion in enumerate(criteria)
    ]
    call(
        service.take,
        service.people.of_uid(uid),
        json.dumps({"unit": UNIT, "criteria": messages, "hints": 2}),
    )
    row.locator(".p").nth(2).wait_for(timeout=60_000)
    row.click()
    dialog = page.locator("#person")
    assert "3 of 12 · 2 hints" in dialog.inner_text() and "not yet" in dialog.inner_text()
    page.screenshot(path=screenshots / "board_person.png")


def test_an_attendee_sees_the_own_row(board, page, screenshots):
    open_as(page, board, "hand09", 1280, 800)
    page.screenshot(path=screenshots / "board_own.png")
    assert (
        page.locator("#own li").count() == 12 and page.locator("#people, #stuck, form").count() == 0
    )
    assert "the median of the class" in page.locator("#numbers").inner_text()
    assert [row["name"] for row in page.evaluate("room.rows")] == ["hand09"]


def test_the_keyboard_reaches_everybody(board, page):
    open_as(page, board, "teacher", 1280, 800)
    row = page.locator("#people tbody tr").filter(has_text="hand09")
    row.focus()
    page.keyboard.press("Enter")
    dialog = page.locator("#person")
    assert dialog.is_visible() and "hand09" in dialog.inner_text()
    page.keyboard.press("Escape")
    assert not dialog.is_visible() and row.evaluate("row => row === document.activeElement")
    page.keyboard.press("Space")
    assert dialog.is_visible()
    page.keyboard.press("Escape")


def test_the_board_is_dark_where_the_browser_prefers_it(board, page, screenshots):
    page.emulate_media(color_scheme="dark")
    open_as(page, board, "teacher", 1280, 800)
    page.screenshot(path=screenshots / "board_dark.png")
    ratios = page.evaluate("""() => {
        const light = colour => { const [r, g, b] = colour.match(/[0-9.]+/g).map(Number).map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
                                  return .2126 * r + .7152 * g + .0722 * b; };
        const ground = node => { for (; node; node = node.parentElement) { const c = getComputedStyle(node).backgroundColor;
                                 if (!/, 0\\)$|transparent/.test(c)) return c; } return "rgb(22, 22, 22)"; };
        return [...document.querySelectorAll("h1, h2, #numbers, #announcement, #people td, #people th, #criteria li, #stuck li div, footer small")]
            .filter(node => node.textContent.trim() && node.offsetParent).map(node => {
                const [a, b] = [light(getComputedStyle(node).color), light(ground(node))].sort((x, y) => y - x);
                return [(a + .05) / (b + .05), node.className + node.tagName];
            }).sort((x, y) => x[0] - y[0]);
    }""")
    assert len(ratios) > 50 and ratios[0][0] >= 4.5, ratios[:5]
    assert (
        page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        == "rgb(22, 22, 22)"
    )
