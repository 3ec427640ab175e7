"""New engines are asked until each has answered."""

import os

import pytest

from manyhands.cluster.engines import reach


class Engines:
    """Of an ipyparallel client what is needed: each engine loses the first `lost[engine]` messages."""

    def __init__(self, lost):
        self.lost, self.asked = lost, []

    def __getitem__(self, number):
        return Engine(self, number)


class Engine:
    def __init__(self, engines, number):
        self.engines, self.number = engines, number

    def apply_async(self, function):
        assert function is os.getpid
        self.engines.asked.append(self.number)
        self.came = self.engines.asked.count(self.number) > self.engines.lost[self.number]
        return self

    def wait(self, timeout):
        return self.came


def test_who_is_silent_is_asked_again():
    engines = Engines({5: 0, 6: 2, 7: 1})
    reach.until_answering(engines, engines.lost)
    assert engines.asked == [5, 6, 7, 6, 7, 6]


def test_who_never_answers_is_named(monkeypatch):
    monkeypatch.setattr(reach, "LIMIT_S", 0.0)
    with pytest.raises(RuntimeError, match=r"Engines \[6\] came, but did not answer"):
        reach.until_answering(Engines({5: 0, 6: 10**9}), [5, 6])
