"""Horovod in the ranks of a cluster.

It starts, ends, starts again in a smaller world, and a rank that waits in it is reported.
"""

import pytest

import needs
from manyhands import Cluster
from manyhands.cluster.faults.kinds import Hang


@pytest.fixture(scope="module")
def horovod_cluster():
    try:
        import horovod  # noqa: F401
    except ImportError:
        needs.lacking("Horovod", "make lab (builds it once; needs g++)")
    with Cluster(nodes=2, ranks_per_node=2, framework="torch", name="horovod") as cluster:
        yield cluster


def start(size=None):
    import os

    from manyhands.cluster.horovod import rendezvous

    rendezvous(size)
    import horovod.torch as hvd

    if size is None or int(os.environ["RANK"]) < size:
        hvd.init()


def end():
    import horovod.torch as hvd

    hvd.shutdown()


def places():
    import horovod.torch as hvd
    import torch

    if not hvd.is_initialized():
        return None
    total = hvd.allreduce(torch.tensor(hvd.rank()), op=hvd.Sum).item()
    return [
        hvd.rank(),
        hvd.size(),
        hvd.local_rank(),
        hvd.local_size(),
        hvd.cross_rank(),
        hvd.cross_size(),
        total,
    ]


def test_worlds_of_all_ranks_and_of_some_follow_each_other(horovod_cluster):
    for size, expected in [
        (None, [[r, 4, r % 2, 2, r // 2, 2, 6] for r in range(4)]),
        (3, [[r, 3, r, 3, 0, 1, 3] for r in range(3)] + [None]),
        (2, [[r, 2, r, 2, 0, 1, 1] for r in range(2)] + [None] * 2),
        (None, [[r, 4, r % 2, 2, r // 2, 2, 6] for r in range(4)]),
    ]:
        horovod_cluster.run(end)
        horovod_cluster.run(start, size)
        assert horovod_cluster.run(places) == expected


def connections():
    """This process's connections that both ends have on this host's loopback.

    Returns (own end, other end) of each.
    """
    import os

    import psutil

    pairs = [
        (connection.laddr, connection.raddr)
        for connection in psutil.Process().net_connections("tcp4")
        if connection.raddr and connection.raddr.ip.startswith("127.")
    ]
    return os.getpid(), [((own.ip, own.port), (other.ip, other.port)) for own, other in pairs]


def test_no_stranger_on_the_loopback_is_taken_for_a_rank(horovod_cluster):
    """Horovod's Gloo takes any process that connects for the awaited rank.

    Strangers knock at the ports of 127.0.0.1 all the time, so the ranks meet elsewhere.
    """
    horovod_cluster.run(end)
    horovod_cluster.run(start)
    by_rank = horovod_cluster.run(connections)
    listening_at = {
        f"127.{64 + (pid >> 16 & 63)}.{pid >> 8 & 255}.{pid & 255}" for pid, _ in by_rank
    }
    owner = {own: pid for pid, pairs in by_rank for own, _ in pairs}
    among_ranks = {
        frozenset((own, other))
        for pid, pairs in by_rank
        for own, other in pairs
        if owner.get(other, pid) != pid
    }
    met_at = [{ip for ip, _ in pair} & listening_at for pair in among_ranks]
    assert len(met_at) >= 12 and all(met_at), among_ranks


def alone():
    import horovod.torch as hvd
    import torch

    if hvd.rank() == 1:
        hvd.allreduce(torch.ones(1), name="alone")


def test_a_rank_that_waits_for_the_others_is_told_and_healed(horovod_cluster):
    horovod_cluster.run(end)
    horovod_cluster.run(start)
    with pytest.raises(Hang) as hang:
        horovod_cluster.run(alone, patience_s=2)
    assert "rank 1 waits in allreduce" in " ".join(hang.value.text.split())
    horovod_cluster.run(start)  # new processes, and a new meeting place
    assert [place[-1] for place in horovod_cluster.run(places)] == [6] * 4
