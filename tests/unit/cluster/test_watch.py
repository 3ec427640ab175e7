"""When a wait is a hang, and when it is not: the watch's verdict at moments of our choosing."""

import types

import pytest

from manyhands.cluster.faults import watch

CELL = 7


class Finished:
    """An Answer that has arrived."""

    def ready(self):
        return True

    def get(self):
        return {"ok": True, "notes": []}


class Working(Finished):
    def ready(self):
        return False


@pytest.fixture
def clock(monkeypatch):
    now = types.SimpleNamespace(s=0.0)
    monkeypatch.setattr(watch, "time", types.SimpleNamespace(monotonic=lambda: now.s))
    return now


@pytest.fixture
def reports(clock):
    made = watch.Reports.__new__(watch.Reports)  # without its socket
    made.clear()
    return made


def stands(reports, clock, rank, until_s, blocked=True, key="call 1"):
    """Report the same place of a rank a few times a second.

    The second report of a wait brings the rank's notes.
    """
    first = True
    while clock.s < until_s:
        notes = {} if first or not blocked else {"notes": [], "names": []}
        reports._note({"rank": rank, "cell": CELL, "key": key, "blocked": blocked, **notes})
        first = False
        clock.s += 0.15


def watching(reports, pending):
    return watch.Watch(pending, CELL, reports, exits=dict, hang_timeout_s=10.0, limit_s=120.0)


def test_a_wait_longer_than_the_patience_is_a_hang(reports, clock):
    cell_watch = watching(reports, {0: Working()})
    stands(reports, clock, 0, 9)
    assert cell_watch._reason_to_end(clock.s) is None
    stands(reports, clock, 0, 11)
    assert cell_watch._reason_to_end(clock.s) == "hang"


def test_a_rank_that_computes_is_never_part_of_one(reports, clock):
    cell_watch = watching(reports, {0: Working(), 1: Working()})
    while clock.s < 60:
        reports._note({"rank": 1, "cell": CELL, "key": "line 3", "blocked": False})
        stands(reports, clock, 0, clock.s + 0.1)
    assert cell_watch._reason_to_end(clock.s) is None


def test_who_waited_for_a_late_rank_has_time_to_say_that_it_is_through(reports, clock):
    pending = {0: Working(), 3: Working()}
    cell_watch = watching(reports, pending)
    stands(reports, clock, 0, 30)  # for rank 3, which works
    cell_watch.pending[3] = Finished()
    cell_watch._collect()
    assert cell_watch._reason_to_end(clock.s) is None, (
        "rank 0 is through, too, and its next report will say so"
    )
    stands(reports, clock, 0, 41)
    assert cell_watch._reason_to_end(clock.s) == "hang"


def test_a_rank_that_does_not_report_is_at_work(reports, clock):
    cell_watch = watching(reports, {0: Working()})
    stands(reports, clock, 0, 5)
    clock.s = 40.0  # a long call that holds Python's lock: nothing was heard
    assert cell_watch._reason_to_end(clock.s) is None
    stands(reports, clock, 0, 42)
    assert cell_watch._reason_to_end(clock.s) == "hang"


def test_a_wait_that_was_reported_once_is_not_yet_one(reports, clock):
    reports._note({"rank": 0, "cell": CELL, "key": "call 1", "blocked": True})
    clock.s += 0.5
    assert reports.blocked_s(0, CELL) == 0
    reports._note(
        {"rank": 0, "cell": CELL, "key": "call 1", "blocked": True, "notes": [], "names": ["x"]}
    )
    assert reports.blocked_s(0, CELL) == 0.5 and reports.names(0, CELL) == ["x"]


def test_a_rank_that_cannot_report_is_seen_from_outside(reports, clock):
    """C++ holds Python's lock: its last report says that it computes."""
    stood = {
        "blocked": True,
        "key": "stack",
        "call": {"call": "MultiWorkerMirroredStrategy"},
        "lines": [],
    }
    cell_watch = watch.Watch(
        {0: Working()},
        CELL,
        reports,
        exits=dict,
        hang_timeout_s=10.0,
        limit_s=120.0,
        look_at=lambda rank: stood,
    )
    stands(reports, clock, 0, 1, blocked=False)
    while clock.s < 15:
        if (reason := cell_watch._reason_to_end(clock.s)) is not None:
            break
        cell_watch._look_from_outside()
        clock.s += 0.25
    assert reason == "hang" and 12 < clock.s < 14
