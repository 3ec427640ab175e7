"""What a person does in JupyterLab, as functions over a Playwright page."""

import re
import time
from contextlib import contextmanager

import nbformat

GRAPH = 'svg:has(title:text-is("wait-for graph"))'
LOAD_MS, RUN_MS = 60_000, 180_000


def open_start(page, address):
    """Open the address that `manyhands lab` printed; returns the rendered page."""
    page.goto(address)
    page.locator(".jp-MarkdownViewer h1").wait_for(timeout=LOAD_MS)
    return page.locator(".jp-MarkdownViewer")


def follow(page, unit_number, label):
    """Click a link in the unit's row of the start page; returns the notebook that it opens."""
    row = page.locator(".jp-MarkdownViewer tr").filter(has=page.locator(f"td:first-child:text-is('{unit_number}')"))
    row.get_by_role("link", name=label, exact=True).click()
    return Notebook(page)


class Notebook:
    """The notebook that is in front."""

    def __init__(self, page):
        self.page = page
        self.panel = page.locator(".jp-NotebookPanel:visible")
        self.panel.locator(".jp-Cell").first.wait_for(timeout=LOAD_MS)
        self.panel.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]').wait_for(timeout=LOAD_MS)

    def cell(self, text):
        """The code cell whose source has this text."""
        return self.panel.locator(".jp-CodeCell").filter(has=self.page.locator(".jp-InputArea", has_text=text)).first

    def run_all(self):
        with self._starting(self.panel.locator(".jp-CodeCell").first):
            self.page.locator(".lm-MenuBar-itemLabel", has_text=re.compile("^Run$")).click()
            self.page.locator(".lm-Menu-itemLabel", has_text=re.compile("^Run All Cells$")).click()
        self.wait()

    def run(self, cell):
        self.start(cell)
        self.wait()

    def start(self, cell):
        with self._starting(cell):
            cell.locator(".cm-content").click()
            self.page.keyboard.press("Control+Enter")

    @contextmanager
    def _starting(self, cell):
        """Until the prompt of the cell is another than before: the browser has taken the order."""
        prompt = cell.locator(".jp-InputPrompt").element_handle()
        before = prompt.inner_text()
        yield
        self.page.wait_for_function("([prompt, before]) => prompt.innerText !== before", arg=[prompt, before], timeout=LOAD_MS)

    def wait(self, timeout_ms=RUN_MS):
        """Until no cell is waiting or running."""
        self.page.wait_for_function(
            "() => [...document.querySelectorAll('.jp-NotebookPanel:not(.lm-mod-hidden) .jp-InputPrompt')].every(p => !p.innerText.includes('*'))",
            timeout=timeout_ms)

    def replace(self, cell, source):
        """Type `source` in the place of what the cell holds."""
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.press("Delete")
        self.page.keyboard.insert_text(source)

    def stop(self):
        """Press the stop button; returns how long it takes until nothing runs, in seconds."""
        start = time.monotonic()
        self.panel.locator('[data-jp-item-name="interrupt"] jp-button, [data-jp-item-name="interrupt"] button').first.click()
        self.wait()
        return time.monotonic() - start

    def saved(self, path):
        """Save it; returns what is then in its file."""
        before = path.stat().st_mtime_ns
        self.page.keyboard.press("Escape")
        self.page.keyboard.press("Control+s")
        until = time.monotonic() + 20
        while path.stat().st_mtime_ns == before and time.monotonic() < until:
            self.page.wait_for_timeout(100)
        return nbformat.read(path, as_version=4)

    def show(self, locator, picture):
        """Bring something into view and take a picture of the whole window."""
        locator.scroll_into_view_if_needed()
        self.page.screenshot(path=picture)
