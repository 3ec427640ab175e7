"""A name that the ranks do not have.

Whether this kernel has it decides what the learner reads.
"""

from types import SimpleNamespace

import IPython
import pytest

from manyhands.cluster.faults import explain
from manyhands.cluster.faults.restart_lost_ranks import assigns_name

ERROR = {"memory": False, "ename": "NameError", "evalue": "name 'step' is not defined"}


@pytest.mark.parametrize(
    "names, expected",
    [
        ({"step": 1}, "step is defined in this kernel, not on the ranks."),
        ({}, "step is not defined on the ranks."),
    ],
)
def test_a_name_that_only_this_kernel_has(monkeypatch, names, expected):
    monkeypatch.setattr(
        IPython, "get_ipython", lambda: SimpleNamespace(user_ns=names, user_ns_hidden={})
    )
    assert explain._known(ERROR, lambda name: None).startswith(expected)


def test_without_a_kernel_there_is_none(monkeypatch):
    monkeypatch.setattr(IPython, "get_ipython", lambda: None)
    assert explain._known(ERROR, lambda name: None).startswith("step is not defined on the ranks.")


def test_a_name_of_a_setup_cell_that_the_healing_could_not_run():
    assert "begins with `import step`, did not run to its end" in explain._known(
        ERROR, {"step": "import step"}.get
    )


@pytest.mark.parametrize(
    "code, made",
    [
        ("import horovod.torch as hvd", True),
        ("hvd = 1", True),
        ("def hvd(): pass", True),
        ("hvd.init()", False),
        ("x = 1", False),
        ("!ls", False),
    ],
)
def test_which_cells_make_a_name(code, made):
    assert assigns_name(code, "hvd") == made


@pytest.mark.parametrize(
    "name", ["all_gather_single", "reduce_scatter_single", "all_gather_single_autograd"]
)
def test_a_name_that_an_older_pytorch_does_not_have(name):
    error = {
        "memory": False,
        "ename": "AttributeError",
        "evalue": f"module 'torch.distributed' has no attribute '{name}'",
    }
    message = explain._known(error, lambda name: None)
    assert "older than 2.13" in message and "all_gather_into_tensor" in message
    assert (
        explain._known(
            error | {"evalue": "module 'torch.distributed' has no attribute 'all_gather_singel'"},
            lambda name: None,
        )
        == ""
    )
