"""A real Chromium for the tests of pages: one for all tests of a process, since Playwright runs only once in it.

Pictures of what was seen are kept in the test's temporary folder, or in MANYHANDS_SCREENSHOTS where that is set.
"""

import os
from pathlib import Path

import needs
import pytest

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]


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
    """An empty tab; the cookies of the test before are gone."""
    chromium.clear_cookies()
    page = chromium.new_page()
    yield page
    page.close()


@pytest.fixture
def screenshots(tmp_path):
    """The folder for pictures."""
    folder = Path(os.environ.get("MANYHANDS_SCREENSHOTS") or tmp_path / "screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
