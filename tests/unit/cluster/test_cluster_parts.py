"""The parts of the cluster that need no process.

They are wait-for graphs, causes, records, and the assignment of GPUs.
"""

import json
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch.distributed  # noqa: F401  the recorder finds it among the loaded modules

from manyhands.cluster.faults import diagnose
from manyhands.cluster.faults.fault_messages import ranks_text
from manyhands.cluster.faults.kinds import Where
from manyhands.cluster.faults.mismatched_calls import find_mismatch
from manyhands.cluster.faults.picture import draw_cluster, draw_wait_for_graph
from manyhands.cluster.host.gpu_assignment import assign_devices
from manyhands.cluster.magic import _ranks
from manyhands.cluster.on_rank.recorder import HEADER, SLOT_BYTES, SLOTS, Recorder, read
from manyhands.cluster.on_rank.stack import is_user_file


def waits(rank, call="all_reduce", peer=None, sequence=0, **more):
    return Where(rank, "waits", call=call, peer=peer, sequence=sequence, **more)


def note(call, sequence=0, shape=(4,), dtype="float32", **more):
    return {
        "call": call,
        "group": "",
        "sequence": sequence,
        "shape": list(shape),
        "dtype": dtype,
        **more,
    }


def test_edges_of_a_collective_lead_to_those_who_are_not_there():
    where = {0: waits(0), 1: Where(1, "finished"), 2: waits(2)}
    assert diagnose.edges(where, 3) == [(0, 1), (2, 1)]


def test_edges_respect_the_group():
    where = {0: waits(0, group=[0, 1]), 1: Where(1, "finished"), 2: Where(2, "finished")}
    assert diagnose.edges(where, 3) == [(0, 1)]


def test_ranks_in_the_same_call_for_the_second_time_are_not_together():
    where = {0: waits(0, sequence=1), 1: waits(1, sequence=0)}
    assert diagnose.edges(where, 2) == [(0, 1), (1, 0)]


@pytest.mark.parametrize(
    "edges, circle",
    [
        ([(0, 1), (1, 2), (2, 0)], [0, 1, 2]),
        ([(0, 1), (1, 2)], []),
        ([(0, 3), (3, 1), (1, 3)], [1, 3]),
    ],
)
def test_cycle(edges, circle):
    assert diagnose.cycle(edges) == circle


def cause(where, notes):
    return diagnose.cause_of_hang(where, diagnose.edges(where, len(where)), notes)[0]


@pytest.mark.parametrize(
    "calls, kept, says",
    [
        (["isend"], False, "rank 0 began to send with isend"),
        (["isend"], True, "in a circle"),
        ([], False, "waits to receive before it sends"),
        (["isend", "isend"], False, "rank 0 began to send with isend"),
        (["other tag"], False, "sent with tag 9"),
    ],
)
def test_of_a_circle_of_receives_it_is_told_whose_isend_was_dropped(calls, kept, says):
    where = {0: waits(0, "Work.wait" if kept else "recv", 1, tag=7), 1: waits(1, "recv", 0, tag=7)}
    sent = [
        note("isend", peer=1, tag=9 if call == "other tag" else 7 + 2 * k)
        for k, call in enumerate(calls)
    ]
    notes = {0: [*sent, note("recv", peer=1, tag=7)], 1: [note("recv", peer=0, tag=7)]}
    assert says in cause(where, notes)


def test_a_circle_of_receiving_is_told_from_a_sending_that_was_dropped():
    where = {rank: waits(rank, "recv", peer=1 - rank, tag=0) for rank in (0, 1)}
    received = {rank: [note("recv", peer=1 - rank, tag=0)] for rank in (0, 1)}
    assert "waits to receive before it sends" in cause(where, received)
    begun = {rank: [note("isend", peer=1 - rank, tag=0), *received[rank]] for rank in (0, 1)}
    assert "rank 0 waits for a message that rank 1 began to send with isend" in cause(where, begun)
    assert "waits to receive" in cause(
        where, {rank: [note("isend", 7, peer=1 - rank, tag=0), *received[rank]] for rank in (0, 1)}
    )


def test_all_in_one_call_that_does_not_end_have_left_something_behind():
    where = {rank: waits(rank, "barrier") for rank in (0, 1)}
    assert cause(where, {0: [], 1: []}) == ""
    assert "isend and irecv return" in cause(where, {0: [note("irecv", peer=1, tag=0)], 1: []})


def test_mismatch_says_who_differs():
    notes = {0: [note("all_reduce")], 1: [note("all_reduce", shape=(5,))], 2: [note("all_reduce")]}
    odd = find_mismatch(notes)
    assert (
        odd.ranks == [1]
        and odd.kind == "different"
        and "float32 [5]) on rank 1" in odd.text
        and "ranks 0, 2" in odd.text
    )


def test_matching_calls_are_no_mismatch():
    assert (
        find_mismatch(
            {
                0: [note("all_reduce"), note("barrier", 1, (), "")],
                1: [note("all_reduce"), note("barrier", 1, (), "")],
            }
        )
        is None
    )


def test_calls_of_different_groups_are_not_compared():
    assert (
        find_mismatch(
            {
                0: [{**note("all_reduce"), "group": "a"}],
                1: [{**note("all_reduce", shape=(9,)), "group": "b"}],
            }
        )
        is None
    )


@pytest.mark.parametrize(
    "argument, usual, other, words",
    [
        (
            "op",
            "SUM",
            "MAX",
            (
                "all_reduce with SUM on ranks 0, 2, all_reduce with MAX on rank 1. The operation "
                "must be the same"
            ),
        ),
        (
            "root",
            0,
            1,
            (
                "all_reduce with root 0 on ranks 0, 2, all_reduce with root 1 on rank 1. The root "
                "(src or dst) must be the same"
            ),
        ),
        (
            "ranks",
            [0, 1, 2],
            [0, 1],
            (
                "in a group of ranks 0-2 on ranks 0, 2, all_reduce in a group of ranks 0, 1 on rank"
                " 1. Every rank must make the group"
            ),
        ),
    ],
)
def test_an_argument_that_differs_on_one_rank_is_told(argument, usual, other, words):
    notes = {
        rank: [note("all_reduce", **{argument: other if rank == 1 else usual})] for rank in range(3)
    }
    odd = find_mismatch(notes)
    assert odd.ranks == [1] and odd.kind != "different calls" and words in odd.text


def test_groups_without_a_common_member_are_not_compared_by_their_members():
    assert (
        find_mismatch(
            {
                rank: [note("all_reduce", ranks=[rank // 2 * 2, rank // 2 * 2 + 1])]
                for rank in range(4)
            }
        )
        is None
    )


def test_a_message_may_be_received_in_another_shape_of_the_same_size():
    sent, received = (
        note("send", shape=(2, 3), peer=1, tag=0),
        note("recv", shape=(6,), peer=0, tag=0),
    )
    assert find_mismatch({0: [sent], 1: [received]}) is None


@pytest.mark.parametrize(
    "ranks, text",
    [
        ([2], "rank 2"),
        ([0, 1, 3], "ranks 0, 1, 3"),
        ([3, 0, 1, 2], "ranks 0-3"),
        ([0, 2, 3, 4], "ranks 0, 2-4"),
    ],
)
def test_ranks_text(ranks, text):
    assert ranks_text(ranks) == text


@pytest.mark.parametrize("text, ranks", [("0,2", [0, 2]), ("0-2", [0, 1, 2]), ("1", [1])])
def test_the_ranks_option(text, ranks):
    assert _ranks(text) == ranks


def test_record_survives_its_writer_and_keeps_the_last_calls(tmp_path):
    path = str(tmp_path / "calls")
    recorder = Recorder(path, is_user_file)
    for i in range(SLOTS + 3):
        recorder._enter("barrier", {})
        if i < SLOTS + 2:
            recorder._leave()
    notes = read(path)
    assert len(notes) == SLOTS and notes[-1]["open"] and notes[-1]["sequence"] == SLOTS + 2
    assert notes[-1]["file"] == "test_cluster_parts.py" and not notes[-2].get("open")
    recorder.clear()
    assert read(path) == []


@pytest.mark.parametrize(
    "call, given, noted",
    [
        ("broadcast", {"src": np.int64(3)}, {"root": 3}),
        ("gather", {"dst": None}, {"root": 0}),
        ("reduce", {"dst": 1, "op": "RedOpType.MAX"}, {"root": 1, "op": "MAX"}),
        ("send", {"dst": np.int64(1), "tag": np.int64(7)}, {"peer": 1, "tag": 7}),
        ("new_group", {"ranks": [np.int64(0), 2]}, {"group": "new_group", "ranks": [0, 2]}),
    ],
)
def test_a_note_holds_operation_root_and_members(call, given, noted, tmp_path):
    recorder = Recorder(str(tmp_path / "calls"), is_user_file)
    recorder._enter(call, given)
    assert noted.items() <= read(recorder.path)[0].items()


def test_a_note_too_long_for_its_slot_is_cut_not_lost(tmp_path):
    recorder = Recorder(str(tmp_path / "calls"), is_user_file)
    recorder._write(
        {
            "call": "all_reduce",
            "shape": [1] * 200,
            "ranks": list(range(200)),
            "group": "",
            "sequence": 0,
        }
    )
    assert read(recorder.path)[0]["shape"] == [1] * 4
    assert len(json.dumps(read(recorder.path)[0])) < SLOT_BYTES


def test_reading_what_is_not_there(tmp_path):
    assert read(str(tmp_path / "none")) == []
    (tmp_path / "short").write_bytes(b"x" * (HEADER.size - 1))
    assert read(str(tmp_path / "short")) == []


def test_share_without_gpus():
    backend, environments = assign_devices(2, 2, gpus=[])
    assert backend == "gloo" and environments == [{"MANYHANDS_DEVICE": "cpu"}] * 4


def test_share_one_gpu_among_four_ranks():
    backend, environments = assign_devices(2, 2, gpus=["0"])
    assert (
        backend == "gloo"
        and {e["CUDA_VISIBLE_DEVICES"] for e in environments} == {"0"}
        and {e["MANYHANDS_DEVICE"] for e in environments} == {"cuda:0"}
    )


def test_share_a_gpu_for_each_rank():
    backend, environments = assign_devices(2, 2, gpus=["0", "1", "2", "3"])
    assert backend == "nccl"
    assert [e["CUDA_VISIBLE_DEVICES"] for e in environments] == ["0,1", "0,1", "2,3", "2,3"]
    assert [e["MANYHANDS_DEVICE"] for e in environments] == ["cuda:0", "cuda:1", "cuda:0", "cuda:1"]


def test_share_two_gpus_among_four_ranks_on_one_node():
    backend, environments = assign_devices(1, 4, gpus=["0", "1"])
    assert backend == "gloo" and [e["MANYHANDS_DEVICE"] for e in environments] == [
        "cuda:0",
        "cuda:1",
        "cuda:0",
        "cuda:1",
    ]


def test_share_three_gpus_between_two_nodes():
    backend, environments = assign_devices(2, 2, gpus=["0", "1", "2"])
    assert backend == "gloo" and [e["CUDA_VISIBLE_DEVICES"] for e in environments] == [
        "0",
        "0",
        "1",
        "1",
    ]


def test_the_gpu_of_a_rank_is_the_current_one(monkeypatch):
    import torch

    from manyhands.cluster.on_rank import agent

    chosen = []
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    agent._choose_gpu("cuda:3")  # a GPU, and PyTorch's CPU build
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    agent._choose_gpu("cpu")
    agent._choose_gpu("cuda:3")
    assert chosen == ["cuda:3"]
    # it raises a RuntimeError
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: torch.ones(2).view(3))
    agent._choose_gpu("cuda:3")


def test_barrier_says_nothing_of_the_current_gpu_once_it_is_the_ranks_own(monkeypatch):
    import torch
    import torch.distributed as dist
    from torch.distributed import distributed_c10d as c10d

    from manyhands.cluster.on_rank import agent

    # as a group of NCCL's without device_id
    own = SimpleNamespace(rank=lambda: 0, bound_device_id=None, barrier=lambda opts: None)
    monkeypatch.setattr(c10d, "_rank_not_in_group", lambda group: False)
    monkeypatch.setattr(c10d, "_get_object_coll_device", lambda group: "cuda")
    monkeypatch.setattr(c10d.torch._C, "_get_accelerator", lambda: torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dist.barrier(own)
        agent._choose_gpu("cuda:3")
        dist.barrier(own)
    assert ["device_id" in str(warning.message) for warning in caught] == [True]


def test_who_made_fewer_calls_than_the_others_is_not_told_to_have_made_none():
    where = {0: waits(0, sequence=2), 1: waits(1, sequence=2), 2: Where(2, "finished")}
    notes = {rank: [note("all_reduce", k) for k in range(3 if rank < 2 else 2)] for rank in where}
    assert cause(where, notes).startswith(
        "rank 2 called all_reduce less often than the ranks that wait. The number of calls is 2 "
        "instead of 3."
    )
    assert cause(where, {**notes, 2: []}).startswith("rank 2 never called all_reduce.")


def test_never_is_said_only_of_calls_that_are_counted():
    """The record does not hold every call.

    It holds no backward, no fit, nothing of Horovod's, and only the last calls of many.
    """
    gone = Where(1, "finished")
    for call in ("backward", "fit", "allreduce"):
        assert f"rank 1 called {call} less often than the ranks that wait, or not at all." in cause(
            {0: waits(0, call, sequence=None), 1: gone}, {0: [], 1: []}
        )
    assert "or not at all" in cause(
        {0: waits(0), 1: gone}, {0: [], 1: [note("broadcast", k) for k in range(SLOTS)]}
    )
    where = {0: waits(0, "backward", sequence=None), 1: gone}
    for made, says, less_often in (
        (6, "The number of calls is 6 instead of 7.", True),
        (
            7,
            (
                "did not join this backward. The number of calls is 7 on rank 1, and 7 on the ranks"
                " that wait."
            ),
            False,
        ),
        (0, "rank 1 never called backward.", False),
    ):
        hang_cause = diagnose.cause_of_hang(
            where, [(0, 1)], {}, {0: {"backward": 7}, 1: {"backward": made}}
        )
        assert says in hang_cause.text and (hang_cause.culprits, hang_cause.less_often) == (
            [1],
            less_often,
        )


# what stands where, each rank's calls, what is told to be open: (sequence, ranks that began it, the
# others)
OPEN = {
    "left behind": (
        {0: waits(0, "recv", 2), 1: Where(1, "finished"), 2: Where(2, "finished")},
        [["all_reduce"], ["all_reduce"], []],
        [(0, [0, 1], [2])],
    ),
    "the second": (
        {0: waits(0, "recv", 2), 1: Where(1, "finished"), 2: Where(2, "finished")},
        [["all_reduce"] * 4, ["all_reduce"] * 4, ["all_reduce"]],
        [(1, [0, 1], [2])],
    ),
    "waited for": (
        {0: waits(0), 1: Where(1, "finished"), 2: Where(2, "finished")},
        [["all_reduce"] * 2, ["all_reduce"] * 2, []],
        [],
    ),
    "by all": (
        {0: waits(0, "recv", 2), 1: Where(1, "finished"), 2: Where(2, "finished")},
        [["all_reduce"]] * 3,
        [],
    ),
    "ends on its root": (
        {0: waits(0, "recv", 2), 1: Where(1, "finished"), 2: Where(2, "finished")},
        [["broadcast"], [], []],
        [],
    ),
    "a record that has forgotten": (
        {0: waits(0, "recv", 2), 1: Where(1, "finished"), 2: Where(2, "finished")},
        [["all_reduce"], [], ["send"] * SLOTS],
        [],
    ),
    "a rank that is not known": (
        {0: waits(0, "recv", 1), 1: Where(1, "finished")},
        [["all_reduce"], ["all_reduce"]],
        [],
    ),
}


@pytest.mark.parametrize("name", OPEN)
def test_asynchronous_collectives_that_some_have_never_begun(name):
    where, calls, expected = OPEN[name]
    notes = {
        rank: [note(call, k) for k, call in enumerate(made)] for rank, made in enumerate(calls)
    }
    assert [
        (call_note["sequence"], *ranks) for call_note, *ranks in diagnose.left_open(where, notes, 3)
    ] == expected


def test_pictures_are_well_formed():
    from xml.etree import ElementTree

    where = {0: waits(0, place="line 3 of this cell"), 1: Where(1, "died", detail="<killed>")}
    for svg in (
        draw_wait_for_graph(where, [(0, 1)]),
        draw_cluster(
            [("node 0", [(0, "cpu")]), ("node <1>", [(1, "cpu")])], "local", "gloo", "torch"
        ),
    ):
        ElementTree.fromstring(svg)
