"""What the tests share: a cluster for each module, and ranks for the whole session."""

import multiprocessing.forkserver
import textwrap
from pathlib import Path

import pytest
from our_processes import SETUP, our_processes, wait_for_none
from ranks import Pool
from warm import Warm

from manyhands import Cluster

HERE = Path(__file__).resolve().parent


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


@pytest.fixture(scope="session")
def no_rank_left():
    """Look, once all pools are closed, whether a process of theirs is still there."""
    before = our_processes()
    yield
    assert not wait_for_none(before, 10)


@pytest.fixture(scope="session")
def warm():
    """The path of a Python that starts warm (see warm.py)."""
    program = Warm(
        "torch",
        "torch._dynamo",
        "torch.distributed.run",
        "manyhands.functions",
        "manyhands.ledger",
        "manyhands.links",
    )
    yield str(program.python)
    program.close()


@pytest.fixture(scope="module")
def forkserver():
    """A multiprocessing context for processes that are to be fresh.

    Each is forked from one that has imported torch and done nothing else.
    """
    multiprocessing.get_context("forkserver").set_forkserver_preload(
        ["torch", "torch._dynamo", "torch.distributed"]
    )
    yield
    multiprocessing.forkserver._forkserver._stop()  # else it ends with the last test of all


POOLS = {}  # {backend: Pool}, kept from file to file


def kept(backend, python):
    """A `Pool` for the session; what is still open at its end is closed."""
    yield POOLS.setdefault(backend, Pool(backend, python))
    close(backend)


def close(backend):
    """Close a pool, whose ranks must end by themselves.

    The next call of its `run` starts new ones.
    """
    statuses, log = POOLS[backend].close()
    assert not any(statuses), (statuses, log)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem):
    """End the kept ranks where this process leaves the folder.

    They would only take processor time from what comes, because gloo looks for messages a hundred
    times a second.
    """
    if nextitem is None or HERE not in nextitem.path.parents:
        for backend in POOLS:
            close(backend)


@pytest.fixture(scope="session")
def gloo_pool(no_rank_left, warm):
    """Four kept ranks on gloo (see ranks.py)."""
    yield from kept("gloo", warm)


@pytest.fixture(scope="session")
def mpi_pool(no_rank_left, warm):
    """Four kept ranks under one mpiexec."""
    yield from kept("mpi", warm)


@pytest.fixture(scope="session", params=["gloo", "mpi"])
def pool(request):
    """The kept ranks of each backend in turn."""
    return request.getfixturevalue(f"{request.param}_pool")
