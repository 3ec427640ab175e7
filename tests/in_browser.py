"""A real Chromium for the tests of pages.

All tests of a process share one, because Playwright runs only once in a process. Pictures of what
was seen are kept in the test's temporary folder, or in MANYHANDS_SCREENSHOTS where that is set.
"""

import os
from importlib.resources import files
from pathlib import Path

import pytest

import needs

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

AXE = "rules => axe.run(document, {preload: false, resultTypes: ['violations'], runOnly: rules})"
ALL_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]


def shuts_out(page, rules=ALL_RULES, impacts=("serious", "critical")):
    """What axe-core finds on a page that shuts people out."""
    needs.package("axe_playwright_python", remedy="make site")
    # colours that are still on their way from light to dark would be measured where they stand
    page.evaluate("document.getAnimations().forEach(one => one.cancel())")
    page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text() + ";0")
    report = page.evaluate(AXE, rules)
    return [
        f"{violation['id']}: {violation['nodes'][0]['html'][:150]}"
        for violation in report["violations"]
        if violation["impact"] in impacts
    ]


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """A browser context: Chromium without a window, on an empty profile."""
    path = needs.program("chromium", package="chromium")
    playwright = pytest.importorskip("playwright.sync_api").sync_playwright().start()
    try:
        context = playwright.chromium.launch_persistent_context(
            str(tmp_path_factory.mktemp("profile")),
            executable_path=path,
            headless=True,
            args=FLAGS,
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
