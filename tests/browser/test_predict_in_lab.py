"""A learner predicts in JupyterLab: picks, locks, runs, reads what came, and cannot change it afterwards."""

import json

import nbformat
import pytest
from lab_page import Notebook, open_start
from running_course import copy_course, left_over

CELLS = ["from manyhands import predict, settle",
         'predict("06-apart", "Each model starts with a seed of its own. Do the four models come closer in 20 steps with averaged gradients?",\n'
         '        ["closer to each other", "further apart", "neither"])',
         "apart = [3, 3]", 'settle("06-apart", lambda: "neither" if apart[0] == apart[-1] else "closer to each other")',
         'predict("06-messages", "How many messages does DDP send in a step?", unit="messages")', "sent = 4", 'settle("06-messages", lambda: sent)',
         'predict("06-skipped", "Is it skipped?", ["yes", "no"])', 'settle("06-skipped", True)']
FORM = ".manyhands-prediction"


@pytest.fixture
def course(tmp_path, start_course):
    return start_course(copy_course(tmp_path / "clone"))


def kept(course):
    return json.loads((course.root / "work/.manyhands/progress.json").read_text())["06_ddp"]["predictions"]


def test_a_learner_picks_locks_runs_and_cannot_change_it(course, page, screenshots):
    address = course.address()
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS]), course.root / "work" / "Predict.ipynb")
    page.set_viewport_size({"width": 1024, "height": 800})
    open_start(page, address)
    page.goto(address.split("?")[0] + "lab/tree/work/Predict.ipynb")
    unit = Notebook(page)
    asked, settled = unit.cell('predict("06-apart"'), unit.cell('settle("06-apart"')
    unit.run(unit.cell("from manyhands"))
    unit.run(asked)
    asked.get_by_role("radio", name="further apart").wait_for(timeout=60_000)
    page.screenshot(path=screenshots / "predict_asked.png")
    asked.get_by_role("radio", name="closer to each other").check()
    asked.get_by_role("radio", name="further apart").check()  # until it is locked it may be changed
    asked.get_by_role("button", name="Lock").click()
    asked.locator(FORM, has_text="You predicted: further apart. It is locked").wait_for(timeout=60_000)
    assert asked.get_by_role("radio", name="neither").is_disabled() and not asked.get_by_role("button", name="Lock").is_visible()
    assert kept(course)["06-apart"]["guess"] == "further apart"

    unit.run(unit.cell("apart ="))
    unit.run(settled)
    came = "You predicted: further apart. The run: neither. The outcome differs from your prediction."
    assert came in unit.shown(settled)
    asked.locator(FORM, has_text=came).wait_for(timeout=60_000)
    page.screenshot(path=screenshots / "predict_settled.png")

    unit.run(asked)  # again: nothing is asked any more
    assert came in unit.shown(asked) and asked.get_by_role("radio").count() == 0
    unit.run(settled)
    assert kept(course)["06-apart"]["guess"] == "further apart" and kept(course)["06-apart"]["right"] is False

    number = unit.cell('predict("06-messages"')
    unit.run(number)
    number.get_by_role("textbox").last.fill("4")  # the first one is the cell's own editor
    unit.run(unit.cell("sent ="))  # without the button: the run locks it
    number.locator(FORM, has_text="You predicted: 4 messages. It is locked").wait_for(timeout=60_000)
    unit.run(unit.cell('settle("06-messages"'))
    assert "You predicted: 4 messages. The run: 4 messages. Right." in unit.shown(unit.cell('settle("06-messages"'))

    skipped = unit.cell('predict("06-skipped"')
    unit.run(skipped)
    unit.run(unit.cell('settle("06-skipped"'))
    assert "The run: yes. (You made no prediction.)" in unit.shown(unit.cell('settle("06-skipped"'))
    assert skipped.get_by_role("radio", name="no", exact=True).is_disabled() and set(kept(course)) == {"06-apart", "06-messages"}
    unit.show(skipped, screenshots / "predict_skipped.png")
    page.locator(".lm-MenuBar-itemLabel", has_text="Settings").click()
    page.locator(".lm-Menu-itemLabel", has_text="Theme").first.hover()
    page.locator(".lm-Menu-itemLabel", has_text="JupyterLab Dark").first.click()
    page.locator("body[data-jp-theme-light=false]").wait_for(state="attached", timeout=60_000)
    unit.show(skipped, screenshots / "predict_dark.png")
    start = open_start(page, address)
    told = start.locator("tr", has_text="DistributedDataParallel").last
    unit.show(told, screenshots / "predict_start_here.png")
    assert told.locator("td").all_inner_texts() == ["06", "DistributedDataParallel", "2", "1", "0.5"]
    course.stop()
    assert left_over(course.root) == []
