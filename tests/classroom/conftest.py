"""What the tests of a class share: a class with a tiny lab, and its attendees."""

import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import room

from sandboxed import own_cache, works_in_sandbox  # noqa: F401 (fixtures)


@pytest.fixture(autouse=True)
def in_sandbox(works_in_sandbox):
    """None of these tests can do without."""


@pytest.fixture
def time_zone(monkeypatch):
    """Puts this process into a time zone, until the test ends."""

    def put(name):
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield put
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def classroom(tmp_path, monkeypatch):
    """A class whose only lab asks two questions (see `room.Room`)."""
    made = room.Room(tmp_path / "course")
    monkeypatch.setenv("MANYHANDS_ROOT", str(made.root))
    # where nbgrader keeps a copy of what was handed in
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("MANYHANDS_CLASSROOM", raising=False)
    monkeypatch.delenv("MANYHANDS_EXCHANGE", raising=False)
    return made
