"""How the end of a call is noted where Python does not wait for its work."""

import time

import pytest

torch = pytest.importorskip("torch")

from manyhands.ledger import taps  # noqa: E402
from manyhands.ledger.entry import Entry  # noqa: E402


class Work:
    def __init__(self, future):
        self.future = future

    def get_future(self):
        return self.future


def test_a_work_that_has_ended_costs_no_thread(monkeypatch):
    """As all of NCCL's look from the start.

    A thread for each took a millisecond of a step of DDP on a GPU.
    """
    monkeypatch.setattr(
        taps._thread, "start_new_thread", lambda *_: pytest.fail("a thread was started")
    )
    future, entry = torch.futures.Future(), Entry("allreduce", 1, 4, 2, time.perf_counter())
    future.set_result(None)
    taps._note_end(Work(future), entry)
    assert entry.stop_s >= entry.start_s and entry not in taps._flying


def test_the_end_of_a_work_under_way_is_noted_when_it_comes():
    future, entry = torch.futures.Future(), Entry("allreduce", 1, 4, 2, time.perf_counter())
    taps._note_end(Work(future), entry)
    assert entry.stop_s is None and entry in taps._flying
    future.set_result(None)
    taps._land()
    assert entry.stop_s >= entry.start_s and entry not in taps._flying
