"""The containers profile with nodes that are processes of this machine.

tests/containers/ has them in real containers.
"""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
import world_checks
from our_processes import SETUP, our_processes, wait_for_none

from manyhands import Cluster
from manyhands.cluster import RankDied
from manyhands.cluster.engines import containers


def start_node():
    return subprocess.Popen(
        [sys.executable, "-m", "manyhands.cluster.engines.container_node"],
        start_new_session=True,
        stdout=subprocess.PIPE,
        text=True,
    )


def end_node(node):
    """As if its container was killed: everything in it at once."""
    for process in [*psutil.Process(node.pid).children(recursive=True), psutil.Process(node.pid)]:
        process.kill()
    node.communicate()


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    """Three nodes: one more than the clusters here want."""
    before = our_processes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MANYHANDS_FOLDER", str(tmp_path_factory.mktemp("ring")))
        started = []
        try:
            for number in range(3):
                started.append(start_node())
                assert started[-1].stdout.readline().startswith(f"node {number} waits at ")
            yield started
        finally:
            for node in started:
                if node.poll() is None:
                    node.send_signal(signal.SIGTERM)
                    assert node.wait(10) == 0
                    node.stdout.close()
    assert not wait_for_none(before, 10)


@pytest.fixture(scope="class")
def cluster(nodes):
    with Cluster(nodes=2, ranks_per_node=2, profile="containers", name="containers") as cluster:
        yield cluster


class TestCluster:
    """One cluster for all of these; it takes two of the three nodes, and gives them back."""

    def test_ranks_meet_at_the_first_nodes_address(self, cluster):
        assert world_checks.table(cluster) == world_checks.expected(2, 2)
        cluster.px("import os; told = os.environ['MASTER_ADDR'], os.environ['MANYHANDS_DEVICE']")
        assert (
            {where for where, _ in cluster.pull("told")} == {containers.address()} != {"127.0.0.1"}
        )

    def test_faults_are_told_and_healed(self, cluster):
        world_checks.check_faults_and_healing(cluster)

    def test_a_lost_node_is_named_and_the_next_one_takes_its_place(self, cluster, nodes):
        cluster.px(SETUP, setup=True)
        before = [str(node) for node in cluster._runtime._engines._nodes]
        end_node(nodes[0])
        with pytest.raises(RankDied) as death:
            cluster.px("dist.barrier()")
        assert (
            death.value.culprits == [0, 1]
            and f"{before[0]} was lost with all its ranks" in death.value.text
        )
        assert world_checks.table(cluster) == world_checks.expected(2, 2)
        assert [node.number for node in cluster._runtime._engines._nodes] == [1, 2]
        nodes[0] = start_node()
        # the lowest number that is free
        assert nodes[0].stdout.readline().startswith("node 0 waits at ")


def test_nothing_outlives_the_kernel(nodes):
    world_checks.check_that_nothing_outlives_the_kernel("containers", 20)


def test_the_socket_is_for_its_owner_only(nodes):
    folder = containers.nodes_folder()
    assert {
        os.stat(os.path.join(folder, name)).st_mode & 0o777
        for name in os.listdir(folder)
        if name.endswith(".sock")
    } == {0o600}


def test_too_few_nodes_are_told(nodes, monkeypatch):
    monkeypatch.setattr(containers, "START_TIMEOUT_S", 0.5)
    begun = time.monotonic()
    with pytest.raises(
        RuntimeError, match="4 nodes were requested, but only 3 arrived within 0 s .*--scale node=4"
    ):
        Cluster(nodes=4, ranks_per_node=1, framework=None, profile="containers", name="containers")
    assert time.monotonic() - begun < 60


def test_without_a_shared_folder_it_says_what_to_do(monkeypatch):
    monkeypatch.delenv("MANYHANDS_FOLDER", raising=False)
    with pytest.raises(ValueError, match="MANYHANDS_FOLDER"):
        Cluster(nodes=1, ranks_per_node=1, framework=None, profile="containers", name="containers")
