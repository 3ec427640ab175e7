"""What is changed in a notebook while JupyterLab saves it."""

import nbformat
import pytest
from lab_page import LOAD_MS, Notebook, open_start
from running_course import copy_course

UNSAVED = ".lm-TabBar-tab.lm-mod-current.jp-mod-dirty"


@pytest.fixture
def course(tmp_path, start_course):
    return start_course(copy_course(tmp_path / "clone"))


@pytest.fixture
def path(course):
    return course.root / "work" / "Scratch.ipynb"


@pytest.fixture
def scratch(course, path, page):
    address = course.address()
    nbformat.write(
        nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(f"print({text!r})") for text in ("one", "two")]
        ),
        path,
    )
    open_start(page, address)
    page.goto(address.split("?")[0] + "lab/tree/work/Scratch.ipynb")
    opened = Notebook(page)
    page.wait_for_timeout(2000)  # our extension looks once a second for what has been opened
    return opened


class SlowSave:
    """Saves all that is open; what is sent of it does not come to the server before `go_on()`."""

    def __init__(self, page):
        self.page, self._held = page, []
        page.route("**/api/contents/work/Scratch.ipynb*", self._hold_first)
        page.locator(".lm-MenuBar-itemLabel", has_text="File").click()
        page.locator(".lm-Menu-itemLabel", has_text="Save All").click()
        page.wait_for_timeout(100)
        while not self._held:
            page.wait_for_timeout(100)

    def _hold_first(self, route):
        if route.request.method == "PUT" and not self._held:
            self._held.append(route)
        else:
            route.continue_()

    def go_on(self):
        with self.page.expect_response(lambda response: response.request == self._held[0].request):
            self._held[0].continue_()


def shown(path):
    """The outputs in the file of a notebook."""
    return [
        output.text for cell in nbformat.read(path, as_version=4).cells for output in cell.outputs
    ]


def test_what_has_come_during_a_save_is_marked_as_unsaved(scratch, path, page):
    scratch.run(scratch.cell("'one'"))
    save = SlowSave(page)
    scratch.run(scratch.cell("'two'"))
    save.go_on()
    page.wait_for_timeout(1000)
    assert shown(path) == ["one\n"]
    assert page.locator(UNSAVED).count() == 1, "the file has no two, and the tab does not tell"
    scratch.saved(path)
    assert shown(path) == ["one\n", "two\n"]


def test_a_save_during_a_save_waits_for_its_end(scratch, path, page):
    scratch.run(scratch.cell("'one'"))
    save = SlowSave(page)
    scratch.run(scratch.cell("'two'"))
    page.keyboard.press("Control+s")
    page.wait_for_timeout(1000)
    save.go_on()
    page.locator(UNSAVED).wait_for(state="detached", timeout=LOAD_MS)
    assert page.locator(".jp-Dialog").count() == 0
    assert shown(path) == ["one\n", "two\n"]
