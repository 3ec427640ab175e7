"""The order of all tests, cheapest first, and the tests that need a GPU."""

from pathlib import Path

import pytest

from manyhands.cli.setup_plan import gpu_here

HERE = Path(__file__).resolve().parent
# Folders and files of tests/ from cheap to dear; what is not named here comes after the unit tests.
ORDER = ("unit", "test_drift.py", "", "labs", "dist", "notebooks", "browser")


def cost(item):
    """The place of a test in the order."""
    part = item.path.relative_to(HERE).parts[0] if item.path.is_relative_to(HERE) else ""
    return ORDER.index(part if part in ORDER else "")


def pytest_collection_modifyitems(items):
    """Sort (the order inside a folder stays), and skip what needs a GPU where there is none, in CI too."""
    items.sort(key=cost)
    if any(item.get_closest_marker("gpu") for item in items) and not gpu_here():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="there is no GPU here: run `make test-gpu` where there is one"))
