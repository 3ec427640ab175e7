"""A class of five predicts: the histogram that the room sees before the reveal, and after it."""

import asyncio
import json
import threading

import nbformat
import pytest

from board_alone import pages, write_accounts
from in_browser import ALL_RULES, shuts_out
from manyhands.hub.board.service import Service

ATTENDEES = [f"hand{number:02d}" for number in range(1, 6)]
CELLS = [
    (
        'predict("06-apart", "Four models start apart and take the mean of their gradients. Do they'
        ' come closer?",\n        ["closer to each other", "further apart", "neither"])'
    ),
    'predict("06-messages", "How many <b>messages</b> does a step send?", unit="messages")',
]


@pytest.fixture
def board(tmp_path):
    """(how somebody sends something, the address)."""
    write_accounts(tmp_path, dict.fromkeys(ATTENDEES, "attendee") | {"teacher": "instructor"})
    (tmp_path / "course" / "notebooks").mkdir(parents=True)
    nbformat.write(
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS]),
        tmp_path / "course" / "notebooks" / "06_ddp.ipynb",
    )
    service, ready, board = Service(tmp_path), threading.Event(), {}

    async def serve():
        async with pages(service) as address:
            board.update(address=address, loop=asyncio.get_running_loop(), over=asyncio.Event())
            ready.set()
            await board["over"].wait()

    def send(name, **message):
        board["loop"].call_soon_threadsafe(
            service.take, service.people.of_name(name), json.dumps(message)
        )

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(60)
    yield send, board["address"]
    board["loop"].call_soon_threadsafe(board["over"].set)
    thread.join(60)


def bars(page):
    return dict(
        zip(
            page.locator("#bars .label").all_inner_texts(),
            page.locator("#bars .count").all_inner_texts(),
            strict=False,
        )
    )


def test_a_class_of_five_before_and_after_the_reveal(board, page, screenshots):
    send, address = board
    page.set_viewport_size({"width": 1280, "height": 800})
    page.set_extra_http_headers({"Authorization": "token teacher"})
    page.goto(address + "predictions")
    page.locator("#numbers", has_text="No one has predicted yet.").wait_for(timeout=60_000)
    for name, guess in zip(
        ATTENDEES,
        ["closer to each other", "closer to each other", "further apart", "neither"],
        strict=False,
    ):
        send(name, prediction="06-apart", guess=guess)
    page.locator("#numbers", has_text="4 of 5 have predicted").wait_for(timeout=60_000)
    assert bars(page) == {"closer to each other": "2", "further apart": "1", "neither": "1"}
    send("hand05", prediction="06-apart", guess="closer to each other")  # it comes by itself
    page.locator("#numbers", has_text="5 of 5 have predicted").wait_for(timeout=60_000)
    send("teacher", prediction="06-apart", came="neither")
    page.wait_for_timeout(1500)
    page.screenshot(path=screenshots / "predictions_before.png")
    assert bars(page)["closer to each other"] == "3" and not page.locator("#came").is_visible()
    assert "✓" not in page.content() and "hand0" not in page.content()

    page.get_by_role("button", name="Reveal the outcome").click()
    page.locator("#came", has_text="The run: neither · 1 of 5 right").wait_for(timeout=60_000)
    page.wait_for_timeout(500)
    page.screenshot(path=screenshots / "predictions_after.png")
    assert (
        page.locator("#bars li.came").inner_text().split() == ["✓", "neither", "1"]
        and "hand0" not in page.content()
    )

    page.get_by_role("button", name="Show names").click()
    page.locator("#bars .names", has_text="hand01, hand02, hand05").wait_for(timeout=60_000)
    for width, scheme in ((1024, "light"), (1920, "dark")):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": width * 10 // 16})
        page.wait_for_timeout(300)
        page.screenshot(path=screenshots / f"predictions_names_{width}_{scheme}.png")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert (
            page.evaluate(
                "parseFloat(getComputedStyle(document.querySelector('#bars .label')).fontSize)"
            )
            >= width / 64
        )
    page.emulate_media(color_scheme="light")


def test_another_question_is_not_revealed_yet_and_texts_stay_texts(board, page, screenshots):
    send, address = board
    page.set_viewport_size({"width": 1280, "height": 800})
    page.set_extra_http_headers({"Authorization": "token teacher"})
    page.goto(address)
    page.get_by_role("link", name="Predictions").click()
    for name, guess in zip(ATTENDEES, [8, 6, 6, 12, 1000], strict=False):
        send(name, prediction="06-messages", guess=guess)
    send("hand01", prediction="06-messages", came=6)
    page.get_by_role("button", name="Reveal the outcome").click()
    page.locator("#came", has_text="The run: 6 messages · 2 of 5 right").wait_for(timeout=60_000)
    page.screenshot(path=screenshots / "predictions_numbers.png")
    assert bars(page) == {
        "✓ 6 messages": "2",
        "8 messages": "1",
        "12 messages": "1",
        "1,000 messages": "1",
    }
    assert page.locator("#question").inner_text() == "How many <b>messages</b> does a step send?"
    page.locator("#asked").select_option("06-apart")
    page.locator("#numbers", has_text="0 of 5 have predicted").wait_for(timeout=60_000)
    assert (
        page.get_by_role("button", name="Reveal the outcome").get_attribute("aria-pressed")
        == "false"
        and not page.locator("#came").is_visible()
    )


def test_the_page_is_filled_and_read_from_the_back_and_keys_move_on(board, page, screenshots):
    send, address = board
    page.set_extra_http_headers({"Authorization": "token teacher"})
    for name, guess in zip(
        ATTENDEES,
        ["closer to each other", "closer to each other", "further apart", "neither"],
        strict=False,
    ):
        send(name, prediction="06-apart", guess=guess)
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(address + "predictions")
    page.locator("#numbers", has_text="4 of 5").wait_for(timeout=60_000)
    for width, height, scheme in ((1920, 1080, "light"), (1280, 720, "dark"), (390, 844, "light")):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(600)
        page.screenshot(path=screenshots / f"predictions_filled_{width}.png")
        low, wide = page.evaluate(
            "[Math.max(...[...document.querySelectorAll('#bars li')].map(node => "
            "node.getBoundingClientRect().bottom)), document.documentElement.scrollWidth]"
        )
        assert height * 0.75 <= low <= height and wide <= width
        size = page.evaluate(
            "Math.min(...[...document.querySelectorAll('button, select')].map(node => "
            "parseFloat(getComputedStyle(node).fontSize)))"
        )
        assert size >= max(16, width / 90)
        assert (
            shuts_out(
                page, [*ALL_RULES, "best-practice"], ("minor", "moderate", "serious", "critical")
            )
            == []
        )
    page.emulate_media(color_scheme="light")

    page.keyboard.press("r")
    page.locator("#came").wait_for()
    page.keyboard.press("ArrowRight")
    page.locator("#question", has_text="How many <b>messages</b>").wait_for(timeout=60_000)
    assert page.locator("#reveal").get_attribute("aria-pressed") == "false"
    page.keyboard.press("ArrowRight")  # there is no other one
    page.get_by_role("button", name="Previous").click()
    page.locator("#question", has_text="Four models").wait_for(timeout=60_000)
    page.keyboard.press("n")
    page.locator("#bars .names", has_text="hand01, hand02").wait_for(timeout=60_000)
