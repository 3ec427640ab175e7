"""Calls that are under way when a cell ends.

They are reported then, with their line; the next cell is not blamed, and no variable is lost.
"""

import textwrap

import pytest
from our_processes import SETUP
from test_faults import provoke

from manyhands import Cluster
from manyhands.cluster import Hang, Mismatch, RankDied, RankError

KEPT = "kept = object()"  # an object that only these processes have: healing would lose it
SUM = "y = torch.ones(4)\ndist.all_reduce(y)\nassert y.tolist() == [4.0] * 4"
MESSAGE = (
    "b = torch.zeros(2)\nif rank == 0:\n    dist.send(torch.ones(2), 1)\nif rank == 1:\n   "
    " dist.recv(b, 0)\n    assert b.tolist() == [1.0, 1.0]"
)
NOT_JOINED = "x = torch.ones(500)\nif rank != 3:\n    {work}dist.all_reduce(x, async_op=True)"


@pytest.fixture(scope="module")
def ranks():
    with Cluster(nodes=1, ranks_per_node=4, name="unfinished") as cluster:
        cluster.px(SETUP, setup=True)
        yield cluster


@pytest.fixture
def cluster(ranks, capsys):
    renewals = getattr(ranks, "_unfinished", None) and ranks._unfinished._renewals.values()
    if max(renewals or [0]) > 2:  # a group can be given new connections four times
        ranks.heal()
    ranks.px(KEPT)
    return ranks


def output_of(cluster, capsys, code, ranks=None):
    capsys.readouterr()
    cluster.px(textwrap.dedent(code), ranks=ranks, patience_s=3)
    return capsys.readouterr().out


def is_kept(cluster):
    return cluster.pull("kept is not None") == [True] * 4


@pytest.mark.parametrize(
    "code, line, said",
    [
        (
            NOT_JOINED.format(work=""),
            "all_reduce(float32 [500]) at line 3 of this cell: dist.all_reduce(x, async_op=True)",
            "ranks 0-2 started it, and rank 3 did not.",
        ),
        (
            NOT_JOINED.format(work="work = "),
            "all_reduce(float32 [500]) at line 3 of this cell: work =",
            "ranks 0-2 started it, and rank 3 did not.",
        ),
        (
            (
                "works = []\nfor n in range(3):\n    if rank % 2:\n       "
                " works.append(dist.all_gather(list(torch.ones(4, n + 1)), torch.ones(n + 1), "
                "async_op=True))"
            ),
            "all_gather(float32 [1]) at line 4 of this cell",
            "ranks 1, 3 started it, and ranks 0, 2 did not.",
        ),
        (
            (
                "group = dist.new_group([1, 2])\nif rank == 1:\n    work = "
                "dist.broadcast(torch.ones(3), 2, group=group, async_op=True)"
            ),
            "broadcast(float32 [3]) at line 3 of this cell",
            (
                "rank 1 started it, and rank 2 did not. It cannot end before every rank of the "
                "group has called it. The group consists of ranks 1, 2."
            ),
        ),
        (
            (
                "import torch.distributed._functional_collectives as functional\nif rank:\n    x = "
                "functional.all_reduce(torch.ones(3), 'sum', dist.group.WORLD)"
            ),
            "all_reduce(float32 [3]) at line 3 of this cell",
            "ranks 1-3 started it, and rank 0 did not.",
        ),
        (
            "if rank == 0:\n    dist.isend(torch.ones(2), 1)",
            "isend(float32 [2], to rank 1) at line 2 of this cell: dist.isend(torch.ones(2), 1)",
            (
                "rank 0 started it and dropped what it returned without calling wait(), and rank 1 "
                "has not done its part."
            ),
        ),
        (
            (
                "import time\nif rank == 1:\n    dist.irecv(torch.ones(2), 0)\ntime.sleep(0.3)\nif "
                "rank == 0:\n    dist.send(torch.ones(2), 1)"
            ),
            "irecv(float32 [2], from rank 0) at line 3",
            "so the message may be lost.",
        ),
        (
            "if rank == 0:\n    dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.ones(2), 1)])",
            "isend(float32 [2], to rank 1) at line 2 of this cell",
            "rank 1 has not done its part.",
        ),
        (
            (
                "if rank != 3:\n    with dist._coalescing_manager(async_ops=True) as joint:\n      "
                "  dist.all_reduce(torch.ones(3))\n        dist.all_reduce(torch.ones(3))"
            ),
            "at line 2 of this cell",
            "ranks 0-2 started it, and rank 3 did not.",
        ),
    ],
    ids=[
        "dropped",
        "kept",
        "several",
        "subgroup",
        "functional",
        "isend",
        "irecv",
        "batch",
        "coalesced",
    ],
)
def test_what_is_under_way_is_told_and_the_next_cells_are_right(cluster, capsys, code, line, said):
    report = output_of(cluster, capsys, code)
    assert (
        report.startswith("STILL UNDER WAY when this cell ended:")
        and line in report
        and said in report
    ), report
    after = output_of(cluster, capsys, SUM)
    assert (
        after.startswith("Given up before this cell: ")
        and "of the cell that begins with `" in after
    ), after
    assert (
        output_of(cluster, capsys, SUM)
        + output_of(cluster, capsys, MESSAGE)
        + output_of(
            cluster,
            capsys,
            "dist.barrier()\nif rank in (1, 2) and 'group' in globals():\n   "
            " dist.all_reduce(torch.ones(1), group=group)",
        )
        == ""
    )
    assert is_kept(cluster)


@pytest.mark.parametrize(
    "cells",
    [
        [
            ("x = torch.ones(4)\nwork = dist.all_reduce(x, async_op=True)", None),
            ("work.wait()\nassert x[0] == 4", None),
        ],
        [
            (
                "x = torch.ones(4)\nif rank != 3:\n    work = dist.all_reduce(x, async_op=True)",
                None,
            ),
            (
                (
                    "dist.all_reduce(x) if rank == 3 else work.wait()\nassert x[0] == "
                    "4\ndist.barrier()"
                ),
                None,
            ),
        ],
        [
            (
                "x = torch.ones(4)\nif rank != 3:\n    work = dist.all_reduce(x, async_op=True)",
                None,
            ),
            ("if dist.get_rank() == 3:\n    dist.all_reduce(x)", None),
            ("x[0].item()", None),
        ],
        [
            ("x = torch.ones(4)\nwork = dist.all_reduce(x, async_op=True)", [0]),
            ("x = torch.ones(4)\ndist.all_reduce(x)\nassert x[0] == 4", [1, 2, 3]),
            ("if rank == 0:\n    work.wait()", None),
        ],
        [
            ("x = torch.ones(2)\nif rank == 0:\n    work = dist.isend(x, 1)", None),
            ("if rank == 1:\n    dist.recv(x, 0)\nif rank == 0:\n    work.wait()", None),
        ],
        [
            ("x = torch.ones(5)\nif rank == 0:\n    work = dist.isend(x, 1)", None),
            (SUM, None),
            (
                (
                    "if rank == 1:\n    dist.recv(x, 0)\n    dist.recv(x[:2], 0)\nif rank == 0:\n  "
                    "  dist.send(x[:2], 1)\n    work.wait()"
                ),
                None,
            ),
        ],
        [
            (
                (
                    "def begin():\n    global handles\n    handles = "
                    "[dist.all_reduce(torch.ones(3), async_op=True)]\ndef finish():\n   "
                    " handles[0].wait()\nif rank:\n    begin()"
                ),
                None,
            ),
            ("if rank == 0:\n    begin()\nfinish()", None),
        ],
    ],
    ids=[
        "waited for later",
        "joined later",
        "joined alone",
        "joined by a cell on some ranks",
        "received later",
        "received with another",
        "by a function",
    ],
)
def test_what_a_later_cell_finishes_is_not_given_up(cluster, capsys, cells):
    for code, ranks in cells:
        assert "Given up" not in output_of(cluster, capsys, code, ranks)
    assert output_of(cluster, capsys, SUM) + output_of(cluster, capsys, MESSAGE) == ""
    assert is_kept(cluster)


@pytest.mark.parametrize(
    "code",
    [
        SUM,
        "x = torch.ones(3)\nwork = dist.all_reduce(x, async_op=True)\nwork.wait()",
        (
            "works = [dist.isend(torch.ones(1), (rank + 1) % 4)]\ndist.recv(torch.ones(1), (rank - "
            "1) % 4)"
        ),
        (
            "dist.isend(torch.ones(1), (rank + 1) % 4).wait() if rank % 2 else "
            "dist.recv(torch.ones(1), (rank - 1) % 4)"
        ),
        "dist.monitored_barrier()\ndist.barrier()",
        (
            "found = [None] * 4\ndist.all_gather_object(found, "
            "rank)\ndist.broadcast_object_list(found, 1)"
        ),
        (
            "dist.send_object_list([1], 1) if rank == 0 else dist.recv_object_list([0], 0) if rank "
            "== 1 else None"
        ),
        (
            "group = dist.new_group([0, 2])\nif rank in (0, 2):\n    dist.all_reduce(torch.ones(2),"
            " group=group)\n    dist.destroy_process_group(group)"
        ),
        (
            "net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, "
            "1))\nnet(torch.ones(1, 3)).sum().backward()"
        ),
        (
            "try:\n    dist.all_reduce('no tensor') if rank == 1 else None\nexcept Exception:\n   "
            " pass"
        ),
        (
            "import torch.distributed._functional_collectives as "
            "functional\ndist.all_reduce(torch.ones(3)) if rank else "
            "functional.all_reduce(torch.ones(3), 'sum', dist.group.WORLD).sum()"
        ),
    ],
    ids=[
        "sum",
        "async",
        "isend",
        "waited",
        "barriers",
        "objects",
        "object messages",
        "group",
        "DDP",
        "refused",
        "two ways",
    ],
)
def test_what_is_finished_is_not_told(ranks, capsys, code):
    assert output_of(ranks, capsys, code + "\nNone") + output_of(ranks, capsys, SUM) == ""


def test_a_message_that_has_arrived_and_that_nothing_waits_for_is_looked_at_once(
    cluster, capsys, monkeypatch
):
    asked, ask = [], cluster._unfinished._ask
    monkeypatch.setattr(cluster._unfinished, "_ask", lambda *args: asked.append(args) or ask(*args))
    assert (
        output_of(
            cluster,
            capsys,
            "if rank == 0:\n    work = dist.isend(torch.ones(2), 1)\nif rank == 1:\n   "
            " dist.recv(torch.ones(2), 0)",
        )
        == ""
    )
    assert [args[1:] for args in asked] == [()]  # without stacks
    assert (
        output_of(cluster, capsys, SUM) + output_of(cluster, capsys, "None") == ""
        and len(asked) == 1
    )
    assert "STILL UNDER WAY" in output_of(
        cluster, capsys, "if rank == 0:\n    other = dist.isend(torch.ones(2), 1)"
    )
    output_of(
        cluster,
        capsys,
        "if rank == 1:\n    dist.recv(torch.ones(2), 0)\nif rank == 0:\n    other.wait(), "
        "work.wait()",
    )


def test_the_world_by_its_name_is_the_world(cluster, capsys):
    assert (
        output_of(
            cluster,
            capsys,
            "dist.all_reduce(torch.ones(2), group=dist.group.WORLD if rank else None)",
        )
        == ""
    )
    fault = provoke(
        cluster,
        "dist.all_reduce(torch.ones(2 if rank else 3), group=dist.group.WORLD if rank else None)",
    )
    assert type(fault) is Mismatch and "all_reduce(float32 [3]) on rank 0" in fault.text, fault.text


def test_a_thread_that_goes_on_is_left_alone(cluster, capsys):
    assert (
        output_of(
            cluster,
            capsys,
            """\
        import threading, time
        def later():
            time.sleep(rank * 0.2)
            dist.all_reduce(z)
        z = torch.ones(2)
        thread = threading.Thread(target=later)
        thread.start()
        """,
        )
        == ""
    )
    assert (
        output_of(cluster, capsys, "thread.join()\nassert z.tolist() == [4.0, 4.0]")
        + output_of(cluster, capsys, SUM)
        == ""
    )


def test_a_cell_that_raised_on_one_rank_tells_what_the_others_have_begun(cluster, capsys):
    fault = provoke(
        cluster,
        "x = torch.ones(4)\nif rank == 3:\n    1 / 0\nwork = dist.all_reduce(x, async_op=True)",
    )
    assert (
        type(fault) is RankError
        and "STILL UNDER WAY" in fault.text
        and "ranks 0-2 started it, and rank 3 did not" in fault.text
    )
    assert "Given up before this cell: all_reduce" in output_of(cluster, capsys, SUM)
    assert is_kept(cluster)


def test_a_function_that_leaves_a_call_is_told_of_too(cluster, capsys):
    def begin():
        import torch
        import torch.distributed as dist

        if dist.get_rank():
            dist.all_reduce(torch.ones(7), async_op=True)

    cluster.run(begin)
    assert "all_reduce(float32 [7])" in capsys.readouterr().out
    cluster.pull("rank")  # communicates nothing, so nothing is given up for it
    assert capsys.readouterr().out == ""
    assert "Given up before this cell" in output_of(cluster, capsys, SUM)


def test_of_hundreds_a_few_are_told(cluster, capsys):
    report = output_of(
        cluster,
        capsys,
        "for tag in range(600):\n    if rank == 0:\n        dist.isend(torch.ones(1), 1, tag=tag)",
    )
    assert report.count("isend(float32 [1]") == 5 and "  and 495 more\n" in report, report
    assert (
        output_of(cluster, capsys, SUM).count("Given up") == 5
        and output_of(cluster, capsys, MESSAGE) == ""
    )


def test_a_model_and_a_group_go_on_with_new_connections(cluster, capsys):
    output_of(
        cluster,
        capsys,
        "net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))\npair = "
        "dist.new_group([0, 1])",
    )
    for _ in range(2):
        output_of(cluster, capsys, NOT_JOINED.format(work="work = "))
        output_of(
            cluster,
            capsys,
            "if rank == 0:\n    other = dist.all_reduce(torch.ones(1), group=pair, async_op=True)",
        )
        output_of(
            cluster,
            capsys,
            "net(torch.ones(1, 3)).sum().backward()\nif rank < 2:\n    z = torch.ones(1)\n   "
            " dist.all_reduce(z, group=pair)\n    assert z.item() == 2",
        )
    assert output_of(cluster, capsys, SUM) == "" and is_kept(cluster)


def test_a_group_that_cannot_be_given_up_again_is_healed_and_the_cell_named(cluster, capsys):
    after = ""
    for _ in range(5):
        if "starts new ranks" not in after:
            output_of(cluster, capsys, NOT_JOINED.format(work=""))
            after = output_of(cluster, capsys, SUM)
    assert (
        "The cluster starts new ranks, because an earlier cell left a call under way" in after
        and "all_reduce(float32 [500]) at line 3 of the cell that begins with" in after
    )
    assert "Lost on all ranks: kept" in after


def test_a_cell_that_joins_wrongly_is_told_what_it_has_met(cluster, capsys):
    output_of(cluster, capsys, NOT_JOINED.format(work="work = "))
    fault = provoke(
        cluster, "if rank == 3:\n    dist.all_reduce(torch.ones(9))\nelse:\n    work.wait()"
    )
    assert type(fault) in (RankDied, RankError, Hang)
    assert (
        "An earlier cell left this under way: all_reduce(float32 [500]) at line 3 of the cell that "
        "begins with `x = torch.ones(500)`" in fault.text
    ), fault.text


def test_a_call_that_all_have_joined_and_that_needs_longer(capsys):
    with Cluster(nodes=2, ranks_per_node=1, profile="emulated", rate_mbit=20, name="slow") as slow:
        slow.px(SETUP)
        report = output_of(
            slow, capsys, "x = torch.ones(2_000_000)\nwork = dist.all_reduce(x, async_op=True)"
        )
        assert (
            "ranks 0, 1 started it, and it was still running." in report
            and "Call wait() on what the call returned" in report
        ), report
        slow.px("work.wait()\nassert x[0] == 2", patience_s=60)
        assert capsys.readouterr().out == ""
