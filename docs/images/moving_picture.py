"""Make `docs/images/course.gif`, the moving picture of the README.

It shows a hang, its report and the healed cluster.

    .venv/bin/python docs/images/moving_picture.py

Opens unit 00's tutorial in a real JupyterLab (Debian's chromium), in a copy of the course, runs its
cells and takes a picture of each moment.
"""

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parents[1] / "tests"), str(HERE.parents[1] / "tests" / "browser")]

from lab_page import follow, open_start  # noqa: E402
from running_course import Course, copy_course  # noqa: E402

from in_browser import FLAGS  # noqa: E402
from manyhands.authoring.slides import find_browser  # noqa: E402

SIZE = {"width": 960, "height": 640}
COLOURS = 48
BEFORE = ("from manyhands import Cluster", "init_process_group")
MISSED, AFTER = "if rank != 2:", "t = torch.tensor([1, rank"


def main():
    """Film a copy of the course in a browser, and write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        course = Course(copy_course(Path(folder) / "course"))
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=find_browser(), args=FLAGS)
                frames = film(browser.new_page(viewport=SIZE), course.address())
        finally:
            course.stop()
    write(frames, HERE / "course.gif")


def film(page, address):
    """`[(picture, milliseconds to show it)]`."""
    open_start(page, address)
    notebook = follow(page, "00", "tutorial")
    page.keyboard.press("Control+b")  # without the list of files
    for text in BEFORE:
        notebook.run(notebook.cell(text))
    missed, frames = notebook.cell(MISSED), []

    def show(milliseconds, **clip):
        frames.append((Image.open(io.BytesIO(page.screenshot(**clip))), milliseconds))

    top(notebook, missed)
    missed.locator(".cm-content").click()
    show(2200)
    notebook.start(missed)
    for _ in range(3):  # in the last one, the line that says which ranks wait
        page.wait_for_timeout(800)
        show(600)
    missed.locator("text=HANG").first.wait_for(timeout=60_000)
    notebook.wait()
    top(notebook, missed)
    show(4200)
    below = missed.locator("text=The cluster is healed").first
    below.scroll_into_view_if_needed()
    page.wait_for_timeout(700)
    show(3500)
    after = (
        notebook.panel.locator(".jp-CodeCell")
        .filter(has=page.locator(".jp-InputArea", has_text=AFTER))
        .last
    )
    after.scroll_into_view_if_needed()
    page.wait_for_timeout(700)
    show(1200)
    notebook.run(after)
    page.wait_for_timeout(700)
    show(3500)
    return frames


def top(notebook, cell):
    """Scroll the cell to the top of the window."""
    cell.evaluate("cell => cell.scrollIntoView({block: 'start'})")
    notebook.page.wait_for_timeout(900)


def write(frames, path):
    """Write the frames, pairs of a picture and its milliseconds, as a GIF with few colours."""
    pictures = [
        picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE) for picture, _ in frames
    ]
    pictures[0].save(
        path,
        save_all=True,
        append_images=pictures[1:],
        duration=[ms for _, ms in frames],
        loop=0,
        optimize=True,
    )
    print(f"{path.name}: {len(pictures)} pictures, {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
