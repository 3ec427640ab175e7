"""New engines are asked until each has answered.

A start has one limit, which is less than a cell's.
"""

import os
import time

import pytest

from manyhands.cluster import ClusterNotStarted
from manyhands.cluster.engines import reach
from manyhands.isolation.kernel_limits import Limits
from manyhands.machine import CELL_S


class Engines:
    """What is needed of an ipyparallel client.

    Each engine loses the first `lost[engine]` messages, and takes `slow_s` to answer.
    """

    def __init__(self, lost, slow_s=0.0):
        self.lost, self.slow_s, self.asked = lost, slow_s, []

    def __getitem__(self, number):
        return Engine(self, number)


class Engine:
    def __init__(self, engines, number):
        self.engines, self.number = engines, number

    def apply_async(self, function):
        assert function is os.getpid
        self.engines.asked.append(self.number)
        came = self.engines.asked.count(self.number) > self.engines.lost[self.number]
        return Answer(time.monotonic() + self.engines.slow_s if came else float("inf"))


class Answer:
    def __init__(self, at):
        self.at = at

    def ready(self):
        return time.monotonic() >= self.at


def test_who_is_silent_is_asked_again(monkeypatch):
    monkeypatch.setattr(reach, "AGAIN_S", 0.05)
    engines = Engines({5: 0, 6: 2, 7: 1})
    reach.until_answering(engines, engines.lost, reach.StartLimit(5.0))
    assert engines.asked == [5, 6, 7, 6, 7, 6]


def test_an_answer_counts_though_the_engine_was_asked_again_before_it_came(monkeypatch):
    """On a busy machine every answer may take longer than the time between two questions."""
    monkeypatch.setattr(reach, "AGAIN_S", 0.05)
    engines = Engines({5: 0, 6: 1}, slow_s=0.2)
    reach.until_answering(engines, engines.lost, reach.StartLimit(5.0))
    assert 4 < len(engines.asked) < 12


def test_who_never_answers_is_named():
    with pytest.raises(RuntimeError, match=r"Engines \[6\] came, but did not answer"):
        reach.until_answering(Engines({5: 0, 6: 10**9}), [5, 6], reach.StartLimit(0.0))


def test_a_cell_has_time_to_say_that_its_cluster_did_not_start():
    assert reach.START_S + 20 <= CELL_S == Limits().cell_s


def test_all_steps_of_a_start_have_one_limit(monkeypatch):
    monkeypatch.setattr(reach, "AGAIN_S", 0.05)
    limit = reach.StartLimit(0.3)
    reach.until_answering(Engines({5: 0}, slow_s=0.2), [5], limit)
    with pytest.raises(ClusterNotStarted, match=r"\[5\] came, but did not answer within 0.3 s"):
        reach.until_answering(Engines({5: 0}, slow_s=0.2), [5], limit)
    limit.begin()
    assert 0.2 < limit.left_s <= 0.3 and limit.half().left_s <= 0.15


class Silent:
    def ready(self):
        return False

    def get(self, timeout):
        assert timeout <= 0.1
        raise TimeoutError


def test_a_rank_that_does_not_say_who_it_is_is_named():
    with pytest.raises(ClusterNotStarted, match=r"\[3\] came, but did not answer within 0.1 s"):
        reach.answers({3: Silent()}, reach.StartLimit(0.1))
