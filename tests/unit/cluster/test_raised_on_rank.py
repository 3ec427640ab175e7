"""What a rank answers where the learner's exception is false.

Python allows it, as of a class with `__len__`.
"""

from types import SimpleNamespace

import IPython
import pytest

from manyhands.cluster.on_rank import agent


class EmptyError(Exception):
    def __len__(self):
        return 0


class Shell:
    """IPython's shell, as far as a rank uses it.

    A cell raises, and the exception is in the result, or was only shown.
    """

    def __init__(self, in_result):
        self.in_result, self.user_ns, self.user_ns_hidden = in_result, {}, {}

    def showtraceback(self):
        pass

    showsyntaxerror = showtraceback

    def run_cell(self, code, store_history):
        try:
            raise EmptyError("nothing")
        except EmptyError as error:
            self.showtraceback()
            return SimpleNamespace(
                error_before_exec=None, error_in_exec=error if self.in_result else None, result=None
            )


@pytest.fixture
def rank(monkeypatch):
    nothing = SimpleNamespace(entered=0, install=lambda: None, tally=SimpleNamespace(facts=dict))
    monkeypatch.setattr(
        agent, "RANK", SimpleNamespace(begin=lambda cell: None, end=lambda: None, recorder=nothing)
    )


@pytest.mark.parametrize("in_result", [True, False])
def test_a_cell_that_raised_is_not_taken_for_a_good_one(in_result, rank, monkeypatch):
    monkeypatch.setattr(IPython, "get_ipython", lambda: Shell(in_result))
    reply = agent.run_cell("code", 1)
    assert (
        not reply["ok"]
        and reply["error"]["ename"] == "EmptyError"
        and reply["error"]["evalue"] == "nothing"
    )


def test_nor_is_such_a_function(rank, monkeypatch):
    def raises():
        raise EmptyError("nothing")

    monkeypatch.setattr(IPython, "get_ipython", lambda: Shell(True))
    reply = agent.call(raises, (), 1)
    assert not reply["ok"] and reply["error"]["ename"] == "EmptyError"
