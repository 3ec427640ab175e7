"""The slurm profile on a real Slurm of three nodes, which all live on this host (slurm_on_one_host.py)."""

import os

import pytest

import needs
import world_checks
from our_processes import SLOWER, our_processes, wait_for_none
from manyhands import Cluster
from slurm_on_one_host import SlurmOnOneHost

pytestmark = pytest.mark.slurm
PROGRAMS = {"slurmctld": "slurmctld", "slurmd": "slurmd", "munged": "munge", "srun": "slurm-client"}


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    for name, package in PROGRAMS.items():
        needs.program(name, package)
    before, folder = our_processes(), tmp_path_factory.mktemp("slurm")
    with SlurmOnOneHost(folder / "daemons") as slurm, pytest.MonkeyPatch.context() as patch:
        for name in ("SLURM_CONF", "PATH"):
            patch.setenv(name, slurm.env[name])
        world_checks.ipython_in(folder, patch)
        yield slurm
        slurm.wait_for_no_job()
        assert set(os.listdir(folder / "ipython")) <= {"profile_default"}  # nor are the files of a cluster
    assert not wait_for_none(before, 10)


@pytest.fixture(scope="class")
def slurm_cluster(slurm):
    with Cluster(nodes=2, ranks_per_node=2, framework="torch", profile="slurm", name="slurm") as cluster:
        yield cluster


class TestCluster:
    """One cluster for all of these; it takes two of the three nodes, and gives them back."""

    def test_ranks_know_their_places(self, slurm_cluster):
        assert world_checks.table(slurm_cluster) == world_checks.expected(2, 2)

    def test_nodes_are_slurms_nodes(self, slurm, slurm_cluster):
        slurm_cluster.px("import os; told = [os.environ[name] for name in ('SLURMD_NODENAME', 'SLURM_PROCID', 'SLURM_LOCALID')]")
        places = slurm_cluster.pull("told")
        assert [place[1:] for place in places] == [["0", "0"], ["1", "1"], ["2", "0"], ["3", "1"]]
        nodes = [place[0] for place in places]
        assert nodes[0] == nodes[1] != nodes[2] == nodes[3] and set(nodes) <= set(slurm.nodes)

    def test_faults_are_told_and_healed(self, slurm_cluster):
        world_checks.check_faults_and_healing(slurm_cluster)


def test_nothing_outlives_the_kernel(slurm):
    world_checks.check_that_nothing_outlives_the_kernel("slurm", seconds=10 * SLOWER)
    slurm.wait_for_no_job()


@pytest.mark.slow
def test_unit_06_runs_unchanged(slurm, monkeypatch):
    assert world_checks.run_notebook("06_ddp.ipynb", "slurm", monkeypatch) > 10
