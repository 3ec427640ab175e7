"""What a person does in JupyterLab, as functions over a Playwright page."""

import re
import time
from contextlib import contextmanager

import nbformat

GRAPH = '.jp-RenderedSVG img[src*="wait-for%20graph"]'  # JupyterLab shows an SVG as an image
LOAD_MS, RUN_MS = 60_000, 180_000
NOTHING_RUNS = """([quiet_ms, to_the_end]) => {
    const panel = document.querySelector('.jp-NotebookPanel:not(.lm-mod-hidden)');
    const prompts = [...panel.querySelectorAll('.jp-CodeCell .jp-InputPrompt')].map(prompt => prompt.textContent);  // not innerText: cells out of view are not drawn
    const idle = panel.querySelector('.jp-Notebook-ExecutionIndicator').dataset.status === 'idle';
    if (!idle || prompts.some(prompt => prompt.includes('*'))) panel.quietSince = undefined;
    else panel.quietSince ??= performance.now();
    const quiet = panel.quietSince === undefined ? -1 : performance.now() - panel.quietSince;
    return quiet >= (to_the_end && /[0-9]/.test(prompts.at(-1)) ? 500 : quiet_ms);
}"""
# After a taught error JupyterLab takes the [*] from cells that the kernel still runs: a run of all
# cells has ended when the last one has its number, or, where an error stopped it, after a long
# silence.
SILENCE_MS = 15_000


def open_start(page, address):
    """Open the address that `manyhands lab` printed; returns the rendered page."""
    page.goto(address)
    page.locator(".jp-MarkdownViewer h1").wait_for(timeout=LOAD_MS)
    return page.locator(".jp-MarkdownViewer")


def follow(page, unit_number, label):
    """Click a link in the unit's row of the start page; returns the notebook that it opens."""
    row = page.locator(".jp-MarkdownViewer tr").filter(
        has=page.locator(f"td:first-child:text-is('{unit_number}')")
    )
    row.get_by_role("link", name=label, exact=True).click()
    return Notebook(page)


class Notebook:
    """The notebook that is in front."""

    def __init__(self, page):
        self.page = page
        self.panel = page.locator(".jp-NotebookPanel:visible")
        self.panel.locator(".jp-Cell").first.wait_for(timeout=LOAD_MS)
        page.locator("#jp-main-statusbar").get_by_text("Python 3 (ipykernel) | Idle").wait_for(
            timeout=LOAD_MS
        )

    def cell(self, text):
        """The code cell whose source has this text."""
        return (
            self.panel.locator(".jp-CodeCell")
            .filter(has=self.page.locator(".jp-InputArea", has_text=text))
            .first
        )

    def run_all(self):
        with self._starting(self.panel.locator(".jp-CodeCell").first):
            self.page.locator(".lm-MenuBar-itemLabel", has_text=re.compile("^Run$")).click()
            self.page.locator(".lm-Menu-itemLabel", has_text=re.compile("^Run All Cells$")).click()
        self.wait(SILENCE_MS, to_the_end=True)

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
        before = prompt.text_content()
        yield
        self.panel.evaluate("panel => { panel.quietSince = undefined; }")
        self.page.wait_for_function(
            "([prompt, before]) => prompt.textContent !== before",
            arg=[prompt, before],
            timeout=LOAD_MS,
        )

    def wait(self, quiet_ms=0, to_the_end=False):
        """Wait until no cell is waiting or running, and the kernel has been idle for `quiet_ms`.

        `to_the_end`: or the last cell has run.
        """
        self.page.wait_for_function(
            NOTHING_RUNS, arg=[quiet_ms, to_the_end], timeout=RUN_MS, polling=50
        )

    def text(self, cell):
        """What stands in a cell."""
        cell.scroll_into_view_if_needed()
        cell.locator(".cm-line").first.wait_for(timeout=LOAD_MS)
        return "\n".join(line.rstrip("\n") for line in cell.locator(".cm-line").all_inner_texts())

    def shown(self, cell):
        """What a cell with its outputs shows."""
        cell.scroll_into_view_if_needed()
        self.page.wait_for_timeout(500)  # cells are drawn when they come into view
        return cell.inner_text()

    def replace(self, cell, source):
        """Type `source` in the place of what the cell holds."""
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.press("Delete")
        self.page.keyboard.insert_text(source)

    def stop(self):
        """Press the stop button; returns how long it takes until nothing runs, in seconds."""
        start = time.monotonic()
        self.panel.locator(
            '[data-jp-item-name="interrupt"] jp-button, [data-jp-item-name="interrupt"] button'
        ).first.click()
        self.wait()
        return time.monotonic() - start

    def saved(self, path):
        """Save it; returns what is then in its file.

        Our extension keeps the tab marked as unsaved for as long as the file is behind.
        """
        self.page.keyboard.press("Escape")
        self.page.keyboard.press("Control+s")
        self.page.locator(".lm-TabBar-tab.lm-mod-current.jp-mod-dirty").wait_for(
            state="detached", timeout=LOAD_MS
        )
        return nbformat.read(path, as_version=4)

    def show(self, locator, picture):
        """Bring something into view and take a picture of the whole window."""
        locator.scroll_into_view_if_needed()
        self.page.wait_for_timeout(1000)  # cells are drawn when they come into view
        self.page.screenshot(path=picture)
