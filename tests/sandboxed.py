"""What the tests of grading share, wherever they stand."""

import os

import pytest

import needs
from manyhands.isolation import bubblewrap, choose, container

CAN = """
def can(place):
    try:
        open(place, "w").close()
        return True
    except OSError:
        return False
"""


def forget():
    """What is remembered of which sandbox works here."""
    for known in (bubblewrap.namespaces, container.engine, container.identity):
        known.cache_clear()


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """Keep references in a folder of the test run, not in the user's.

    All processes of the test run share it.
    """
    mine = tmp_path_factory.getbasetemp()
    monkeypatch.setenv(
        "XDG_CACHE_HOME",
        str((mine.parent if "PYTEST_XDIST_WORKER" in os.environ else mine) / "cache"),
    )


@pytest.fixture
def works_in_sandbox():
    """Skip where bubblewrap does not work; tests/containers looks after containers."""
    if choose.contained():
        needs.lacking("bubblewrap's sandbox", bubblewrap.namespaces())
