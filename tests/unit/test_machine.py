"""What this machine says of itself: here, its time."""

import time
from datetime import datetime, timedelta, timezone

import pytest

from manyhands.machine import local_time


@pytest.fixture
def tokyo(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    "when",
    [
        0,
        datetime(1970, 1, 1),
        datetime(1970, 1, 1, tzinfo=timezone.utc),
        datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
    ],
)
def test_a_time_is_that_of_the_room(when, tokyo):
    assert (
        local_time(when) == "1970-01-01 09:00 JST"
        and local_time(when, seconds=True) == "1970-01-01 09:00:00 JST"
    )
