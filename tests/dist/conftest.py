"""Clusters for the tests: one that is kept for a module."""

import textwrap

import pytest
from our_processes import SETUP, our_processes, wait_for_none

from manyhands import Cluster


@pytest.fixture(scope="module")
def cluster():
    """Four ranks on two emulated nodes, with a process group that comes back after each healing."""
    before = our_processes()
    with Cluster(nodes=2, ranks_per_node=2, framework="torch", name="tests") as cluster:
        cluster.px(SETUP, setup=True)
        yield cluster
    assert not wait_for_none(before, 10)


@pytest.fixture
def script(tmp_path):
    """write(text) makes a script in tmp_path and returns its path."""

    def write(text, name="train.py"):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        return path

    return write
