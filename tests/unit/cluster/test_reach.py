"""New engines are asked until each has answered."""

import os
import time

import pytest

from manyhands.cluster.engines import reach


class Engines:
    """Of an ipyparallel client what is needed: each engine loses the first `lost[engine]` messages, and takes `slow_s` to answer."""

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
    reach.until_answering(engines, engines.lost)
    assert engines.asked == [5, 6, 7, 6, 7, 6]


def test_an_answer_counts_though_the_engine_was_asked_again_before_it_came(monkeypatch):
    """On a busy machine every answer may take longer than the time between two questions."""
    monkeypatch.setattr(reach, "AGAIN_S", 0.05)
    monkeypatch.setattr(reach, "LIMIT_S", 5.0)
    engines = Engines({5: 0, 6: 1}, slow_s=0.2)
    reach.until_answering(engines, engines.lost)
    assert 4 < len(engines.asked) < 12


def test_who_never_answers_is_named(monkeypatch):
    monkeypatch.setattr(reach, "LIMIT_S", 0.0)
    with pytest.raises(RuntimeError, match=r"Engines \[6\] came, but did not answer"):
        reach.until_answering(Engines({5: 0, 6: 10**9}), [5, 6])
