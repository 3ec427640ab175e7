"""The mpi profile: ranks under one mpiexec of the mpich wheel, which is told of two nodes."""

import time

import pytest
import world_checks
from our_processes import SLOWER, our_processes, wait_for_none

from manyhands import Cluster
from manyhands.cluster.engines import mpi_profile
from manyhands.cluster.engines.remote_engines import make_profile


@pytest.fixture(scope="module")
def mpi_cluster():
    before = our_processes()
    with Cluster(
        nodes=2, ranks_per_node=2, framework="torch", profile="mpi", name="mpi"
    ) as cluster:
        yield cluster
    assert not wait_for_none(before, 10)


def test_ranks_know_their_places(mpi_cluster):
    assert world_checks.table(mpi_cluster) == world_checks.expected(2, 2)


def test_mpi_sees_the_same_ranks_and_nodes(mpi_cluster):
    mpi_cluster.px("""
import os
from mpi4py import MPI
world = MPI.COMM_WORLD
local = world.Split_type(MPI.COMM_TYPE_SHARED)
told = [world.rank == int(os.environ["RANK"]), local.rank == int(os.environ["LOCAL_RANK"]), local.size, world.allreduce(world.rank)]
""")
    assert mpi_cluster.pull("told") == [[True, True, 2, 6]] * 4


def test_a_script_is_launched_beside_it(mpi_cluster, tmp_path):
    world_checks.check_a_launch(mpi_cluster, tmp_path)


def test_faults_are_told_and_healed(mpi_cluster):
    world_checks.check_faults_and_healing(mpi_cluster)


def test_nothing_outlives_the_kernel():
    world_checks.check_that_nothing_outlives_the_kernel("mpi", seconds=10 * SLOWER)


@pytest.mark.slow
def test_unit_06_runs_unchanged(monkeypatch):
    assert (
        world_checks.run_notebook(
            "06_ddp.ipynb", "mpi", monkeypatch, leaves_out=world_checks.LAUNCHES_OF_UNIT_06
        )
        > 10
    )


def test_an_mpiexec_that_fails_is_told_at_once(monkeypatch):
    monkeypatch.setattr(mpi_profile, "mpiexec", lambda: "/bin/false")
    begun = time.monotonic()
    with pytest.raises(RuntimeError, match="mpiexec has ended"):
        Cluster(nodes=1, ranks_per_node=2, framework=None, profile="mpi", name="no mpiexec")
    assert time.monotonic() - begun < 10 * SLOWER


def test_missing_programs_are_told(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("MANYHANDS_HOSTS", "somewhere")
    for profile, message in (
        ("slurm", "sbatch is not on the path. Slurm's commands are available on its login nodes"),
        ("ssh", "ssh is not on the path"),
    ):
        with pytest.raises(RuntimeError, match=message):
            Cluster(
                nodes=1, ranks_per_node=1, framework=None, profile=profile, name="no " + profile
            )


def test_a_wrong_profile_and_missing_hosts_are_told(monkeypatch):
    with pytest.raises(ValueError, match="use one of local, mpi, slurm, ssh"):
        make_profile("pbs")
    monkeypatch.delenv("MANYHANDS_HOSTS", raising=False)
    with pytest.raises(ValueError, match="MANYHANDS_HOSTS=node1,node2"):
        make_profile("ssh")
