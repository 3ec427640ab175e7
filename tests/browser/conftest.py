"""A real `manyhands lab` in a copy of the course, and a real Chromium before it.

Pictures of what was seen are kept in the test's temporary folder, or in MANYHANDS_SCREENSHOTS where that is set.
"""

import os
from pathlib import Path

import needs
import pytest
from running_course import Course

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(item.fspath).parent == Path(__file__).parent:
            item.add_marker(pytest.mark.browser)


@pytest.fixture
def start_course():
    """`start_course(folder)` starts one; all are stopped at the end."""
    started = []

    def start(root, *arguments):
        started.append(Course(root, *arguments))
        return started[-1]

    yield start
    for course in started:
        course.stop()


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """A browser context: Chromium without a window, on an empty profile."""
    path = needs.program("chromium", package="chromium")
    playwright = pytest.importorskip("playwright.sync_api").sync_playwright().start()
    try:
        context = playwright.chromium.launch_persistent_context(
            str(tmp_path_factory.mktemp("profile")), executable_path=path, headless=True, args=FLAGS,
            viewport={"width": 1280, "height": 900},
        )
        yield context
        context.close()
    finally:
        playwright.stop()


@pytest.fixture
def page(chromium):
    page = chromium.new_page()
    yield page
    page.close()


@pytest.fixture
def screenshots(tmp_path):
    """The folder for pictures."""
    folder = Path(os.environ.get("MANYHANDS_SCREENSHOTS") or tmp_path / "screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
