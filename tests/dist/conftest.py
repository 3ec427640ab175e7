"""Clusters for the tests: one that is kept for a module."""

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
