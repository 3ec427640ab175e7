"""A learner predicts in JupyterLab.

They pick, lock, run, read the outcome, and cannot change it afterwards. The source of these cells
is hidden.
"""

import json

import nbformat
import pytest
from lab_page import Notebook, open_start
from running_course import copy_course, left_over

from manyhands.authoring import hidden

CELLS = [
    "from manyhands import predict, settle",
    (
        'predict("06-apart", "Each model starts with a seed of its own. Do the four models come '
        'closer in 20 steps with averaged gradients?",\n        ["closer to each other", "further '
        'apart", "neither"])'
    ),
    "apart = [3, 3]",
    'settle("06-apart", lambda: "neither" if apart[0] == apart[-1] else "closer to each other")',
    'predict("06-messages", "How many messages does DDP send in a step?", unit="messages")',
    "sent = 4",
    'settle("06-messages", lambda: sent)',
    'predict("06-skipped", "Is it skipped?", ["yes", "no"])',
    'settle("06-skipped", True)',
    "the_end = True",
]
FORM, CARD, REMARK = (
    ".manyhands-prediction",
    "[aria-label='result of the prediction']",
    "[aria-label='prediction']",
)


@pytest.fixture
def course(tmp_path, start_course):
    return start_course(copy_course(tmp_path / "clone"))


def kept(course):
    return json.loads((course.root / "work/.manyhands/progress.json").read_text())["06_ddp"][
        "predictions"
    ]


def notebook():
    """As the build writes them: labelled and hidden."""
    made = [
        nbformat.v4.new_code_cell(
            hidden.labelled(cell),
            metadata={"jupyter": hidden.METADATA} if hidden.call_of(cell) else {},
        )
        for cell in CELLS
    ]
    return nbformat.v4.new_notebook(cells=made)


def test_a_learner_picks_locks_runs_and_cannot_change_it(course, page, screenshots):
    address = course.address()
    nbformat.write(notebook(), course.root / "work" / "Predict.ipynb")
    page.set_viewport_size({"width": 1024, "height": 1600})
    open_start(page, address)
    page.goto(address.split("?")[0] + "lab/tree/work/Predict.ipynb")
    unit = Notebook(page)
    cells = unit.panel.locator(".jp-CodeCell")
    asked, settled, number, skipped = cells.nth(1), cells.nth(3), cells.nth(4), cells.nth(7)

    def go_on():  # runs the selected cell and selects the next one, as a reader does
        page.keyboard.press("Shift+Enter")
        unit.wait()

    def no_answer_in_sight():
        text = unit.panel.inner_text()
        assert (
            "settle(" not in text
            and "lambda" not in text
            and text.count(hidden.LABELS["settle"]) == 3
        )

    no_answer_in_sight()
    cells.nth(0).locator(".jp-InputPrompt").click()
    go_on()
    go_on()
    asked.get_by_role("radio", name="further apart").wait_for(timeout=60_000)
    page.screenshot(path=screenshots / "predict_asked.png")
    asked.get_by_role("radio", name="closer to each other").check()
    asked.get_by_role("radio", name="further apart").check()  # until it is locked it may be changed
    asked.get_by_role("button", name="Lock").click()
    asked.locator(FORM, has_text="You predicted: further apart. It is locked").wait_for(
        timeout=60_000
    )
    assert (
        asked.get_by_role("radio", name="neither").is_disabled()
        and not asked.get_by_role("button", name="Lock").is_visible()
    )
    assert kept(course)["06-apart"]["guess"] == "further apart"
    no_answer_in_sight()

    cells.nth(2).locator(".jp-InputPrompt").click()
    go_on()
    go_on()
    card = settled.locator(CARD)
    card.wait_for(timeout=60_000)
    shown = card.inner_text().split("\n")
    assert (
        shown[1:]
        == [
            "✗ The outcome differs from your prediction.",
            "Your prediction: further apart",
            "The run: neither",
        ]
        and "Each model" in shown[0]
    )
    asked.locator(
        FORM, has_text="You predicted: further apart. The result is shown below the run."
    ).wait_for(timeout=60_000)
    assert "differs" not in asked.inner_text(), "the result is shown once"
    assert (
        kept(course)["06-apart"]["guess"] == "further apart"
        and kept(course)["06-apart"]["right"] is False
    )
    page.screenshot(path=screenshots / "predict_settled.png")

    go_on()  # the question of a number
    number.get_by_role("textbox").fill("4")
    cells.nth(5).locator(".jp-InputPrompt").click()
    go_on()  # without the button: the run locks it
    number.locator(FORM, has_text="You predicted: 4 messages. It is locked").wait_for(
        timeout=60_000
    )
    for _ in range(3):
        go_on()
    cells.nth(8).locator(CARD, has_text="○ You made no prediction.").wait_for(timeout=60_000)
    assert "✓ Right." in cells.nth(6).inner_text() and cells.nth(6).locator(CARD).count() == 1
    assert skipped.get_by_role("radio", name="no", exact=True).is_disabled() and set(
        kept(course)
    ) == {"06-apart", "06-messages"}

    unit.run_all()  # nothing is asked any more
    asked.locator(
        REMARK, has_text="You predicted: further apart. The result is shown below the run."
    ).wait_for(timeout=60_000)
    settled.locator(CARD).wait_for(timeout=60_000)
    no_answer_in_sight()
    unit.show(skipped, screenshots / "predict_again.png")

    # the source can be opened with the mouse, and from the menu without it
    settled.locator(".jp-Placeholder-content").click()
    assert 'lambda: "neither"' in unit.text(settled)
    cells.nth(5).locator(".jp-InputPrompt").click()
    go_on()  # the arrow keys skip hidden cells
    cells.nth(6).and_(page.locator(".jp-mod-active")).wait_for(timeout=60_000)
    page.wait_for_timeout(500)  # the menu's items follow the selection
    page.locator(".lm-MenuBar-itemLabel", has_text="View").click()
    page.wait_for_timeout(500)
    page.locator(".lm-Menu-itemLabel", has_text="Expand Selected Code").click()
    assert "lambda: sent" in unit.text(cells.nth(6))

    page.locator(".lm-MenuBar-itemLabel", has_text="Settings").click()
    page.locator(".lm-Menu-itemLabel", has_text="Theme").first.hover()
    page.locator(".lm-Menu-itemLabel", has_text="JupyterLab Dark").first.click()
    page.locator("body[data-jp-theme-light=false]").wait_for(state="attached", timeout=60_000)
    unit.show(skipped, screenshots / "predict_dark.png")
    start = open_start(page, address)
    row = start.locator("tr", has_text="DistributedDataParallel").last
    unit.show(row, screenshots / "predict_start_here.png")
    assert row.locator("td").all_inner_texts() == [
        "06",
        "DistributedDataParallel",
        "2",
        "1",
        "0.5",
    ]
    course.stop()
    assert left_over(course.root) == []
