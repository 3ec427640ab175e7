"""A name that the ranks do not have: whether this kernel has it decides what the learner is told."""

from types import SimpleNamespace

import IPython
import pytest

from manyhands.cluster.faults import explain

ERROR = {"memory": False, "ename": "NameError", "evalue": "name 'step' is not defined"}


@pytest.mark.parametrize("names, told", [({"step": 1}, "step is defined in this kernel, not on the ranks."), ({}, "step is not defined on the ranks.")])
def test_a_name_that_only_this_kernel_has(monkeypatch, names, told):
    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace(user_ns=names, user_ns_hidden={}))
    assert explain._known(ERROR, ()).startswith(told)


def test_without_a_kernel_there_is_none(monkeypatch):
    monkeypatch.setattr(IPython, "get_ipython", lambda: None)
    assert explain._known(ERROR, ()).startswith("step is not defined on the ranks.")
