"""The export is read by PyTorch's own torchfrtrace, which must say what the replay says."""

import logging

import pytest

from manyhands.rehearsal import Event, Layout, Part
from manyhands.rehearsal.flight_recorder import make_flight_record, write_flight_record

fr_trace = pytest.importorskip("torch.distributed.flight_recorder.fr_trace")
WORLD = (0, 1)


def collective(call, *shapes, **facts):
    return Event(
        "collective",
        call,
        ranks=WORLD,
        tensors=tuple(Layout(shape=shape) for shape in shapes),
        file="train.py",
        **facts,
    )


def message(rank, way, **facts):
    return Event(
        "message",
        way,
        ranks=WORLD,
        parts=(Part(way.removeprefix("i"), 1 - rank),),
        file="train.py",
        **facts,
    )


@pytest.fixture
def read(tmp_path, caplog):
    """What torchfrtrace says of the traces."""

    def read(traces, *options):
        write_flight_record(traces, tmp_path / "record")
        with caplog.at_level(logging.INFO):
            logger = logging.getLogger("Flight Recorder")
            logger.addHandler(caplog.handler)
            try:
                fr_trace.main([str(tmp_path / "record"), "--prefix", "rank_", *options])
            except SystemExit as end:
                assert not end.code
            finally:
                logger.removeHandler(caplog.handler)
        return caplog.text

    return read


def states(traces):
    return {
        rank: [(entry["profiling_name"], entry["state"]) for entry in dump["entries"]]
        for rank, dump in make_flight_record(traces).items()
    }


def test_what_ends_is_matched_without_a_word(read):
    calls = [
        collective("all_reduce", (3,)),
        collective("all_gather", (3,), (3,), (3,)),
        collective("reduce_scatter", (3,), (3,), (3,)),
        collective("broadcast", (2, 2), root=0),
        collective("barrier"),
        collective("all_gather_object"),
        collective("all_gather_single", (3,), (6,)),
        collective("all_to_all_single", (4,), (4,)),
    ]
    traces = dict.fromkeys(WORLD, calls)
    analysis = read(traces)
    assert "collective:" not in analysis and "error" not in analysis.lower(), analysis
    assert {state for of_rank in states(traces).values() for _, state in of_rank} == {"completed"}


def test_a_rank_that_does_not_come_is_named_with_the_line(read):
    both = [collective("all_reduce", (3,), line=7)]
    analysis = read({0: [*both, collective("all_reduce", (5,), line=9)], 1: both})
    assert (
        "Not all ranks joining collective" in analysis
        and "missing ranks: {1}" in analysis
        and "train.py:9" in analysis
    )


def test_another_size_is_a_mismatch(read):
    analysis = read({rank: [collective("all_reduce", (3 + rank,))] for rank in WORLD})
    assert "SIZE_OR_SYNTAX_MISMATCH" in analysis and "'[[3]]'" in analysis and "'[[4]]'" in analysis


def test_what_a_replay_leaves_waiting_is_not_done_and_what_python_has_not_come_to_is_not_there():
    traces = {
        rank: [
            collective("all_reduce", (3,)),
            message(rank, "send"),
            message(rank, "recv"),
            collective("barrier"),
        ]
        for rank in WORLD
    }
    assert states(traces) == {
        0: [("nccl:all_reduce", "completed"), ("nccl:send 0->1", "scheduled")],
        1: [("nccl:all_reduce", "completed"), ("nccl:send 1->0", "scheduled")],
    }


def test_a_batch_is_messages_and_their_end():
    pair = [
        Event(
            "message",
            "batch_isend_irecv",
            ranks=WORLD,
            is_async=True,
            parts=(Part("send", 1 - rank), Part("recv", 1 - rank)),
        )
        for rank in WORLD
    ]
    dumps = make_flight_record({rank: [pair[rank]] for rank in WORLD})
    assert [entry["profiling_name"] for entry in dumps[1]["entries"]] == [
        "nccl:send 1->0",
        "nccl:recv 1<-0",
        "nccl:coalesced",
    ]
    assert {
        (entry["state"], entry["p2p_seq_id"], entry["is_p2p"]) for entry in dumps[1]["entries"]
    } == {("completed", 1, True)}


def test_batches_and_messages_are_listed(read, capsys):
    analysis = read(
        {rank: [message(rank, "send" if rank == 0 else "recv")] for rank in WORLD}, "-j"
    )
    assert "send" in analysis + capsys.readouterr().out


def test_groups_keep_their_ranks_and_gloos_are_gloos():
    wires = Event(
        "collective",
        "broadcast",
        group="3",
        ranks=(1, 2),
        backend="gloo",
        tensors=(Layout(shape=(2,)),),
        root=0,
    )
    dumps = make_flight_record({0: [], 1: [wires], 2: [wires]})
    assert dumps[0]["pg_config"] == {} and dumps[2]["pg_config"] == {
        "3": {"name": "3", "desc": "undefined", "ranks": "[1, 2]"}
    }
    assert [entry["profiling_name"] for entry in dumps[2]["entries"]] == ["gloo:broadcast"]


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "mine").write_text("x")
    with pytest.raises(FileExistsError, match="name a different folder"):
        write_flight_record({0: []}, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
