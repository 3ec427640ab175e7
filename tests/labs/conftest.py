"""What the tests of grading share."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

import needs  # noqa: E402
import tiny  # noqa: E402
from manyhands.grading import sandbox  # noqa: E402


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """References are kept in a folder of the test run, not in the user's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def lab(tmp_path):
    """A tiny lab: `lab.solution` and what a learner may hand in."""
    return tiny.Lab(tmp_path)


@pytest.fixture
def works_in_sandbox():
    if sandbox.why_none():
        needs.lacking("a sandbox", sandbox.why_none())
