"""What is written in a call, read from the frame that it is made in."""

import sys

import pytest

from manyhands.cluster.on_rank.cpu_groups import written

CALLS = {
    'new_group(backend="gloo")': "'gloo'",
    'new_group([0, 1], None, "gloo")': "'gloo'",
    "new_group(\n    [0, 1],\n    backend=Backend.GLOO,  # of the CPU\n)": "Backend.GLOO",
    'new_group("gloo", backend=name)': "name",
    'new_group([0, 1])  # "gloo"': "",
    'new_group(*[[0, 1], None, "gloo"])': "",
    'new_group(**{"backend": "gloo"})': "",
    'new_group(backend="nccl" if cuda else "gloo")': "",
    'new_group(backend=cuda or "gloo")': "",
    '[new_group(backend="gloo"), "nccl" if cuda else "gloo"][0]': "'gloo'",
    '(Backend\n .new_group(backend="gloo"))': "'gloo'",
}


def new_group(ranks=None, timeout=None, backend=None):
    return written(sys._getframe(1), "backend", 2)


class Backend:
    GLOO, new_group = "gloo", new_group


@pytest.mark.parametrize("call", CALLS)
def test_an_argument_as_it_is_written(call, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(f"ä = {call}\n")
    names = {"new_group": new_group, "Backend": Backend, "name": "gloo", "cuda": False}
    exec(compile(path.read_text(), path, "exec"), names)
    assert names["ä"] == CALLS[call]


def test_nothing_is_known_without_a_text():
    assert eval('new_group(backend="gloo")') == ""
