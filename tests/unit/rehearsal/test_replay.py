"""NCCL's queues over traces written by hand."""

import time

import pytest
from stories import story

from manyhands.rehearsal import Replay
from manyhands.rehearsal.trace import BadTraceError, Event


def stuck(size, tell, **ways):
    return [rank for rank, _, _ in Replay(story(size, tell), **ways).stuck()]


WAYS = [
    {"eager": eager, "buffered": buffered} for eager in (False, True) for buffered in (False, True)
]


@pytest.mark.parametrize("ways", WAYS)
def test_collectives_end_when_all_have_come(ways):
    assert stuck(4, lambda r: r.collective(), **ways) == []
    assert stuck(4, lambda r: r.rank != 2 and r.collective(), **ways) == [0, 1, 3]


def test_the_first_use_of_a_connection_is_a_rendezvous_whatever_the_size():
    def both_send(r):
        work = r.message("isend", 1 - r.rank)
        r.message("recv", 1 - r.rank)
        r.wait(work)

    assert stuck(2, both_send) == stuck(2, both_send, buffered=True) == [0, 1]


def test_a_small_send_gets_through_where_the_connections_are_there():
    def tell(r):
        r.batch(("send", 1 - r.rank), ("recv", 1 - r.rank))
        r.message("isend", 1 - r.rank)
        r.message("recv", 1 - r.rank)

    assert stuck(2, tell, eager=True) == [0, 1]
    assert stuck(2, tell, eager=True, buffered=True) == []


def test_messages_to_itself_in_one_batch():
    assert stuck(1, lambda r: r.batch(("send", 0), ("recv", 0))) == []
    assert stuck(1, lambda r: r.batch(("send", 0))) == [0]


def test_a_read_waits_for_the_gpu_and_closes_a_cycle():
    def tell(r, reads):
        a, b = ("a", r.all), ("b", r.all)
        r.collective(group=a), r.collective(group=b)  # both communicators are there
        first, second = (a, b) if r.rank == 0 else (b, a)
        work = r.collective(group=first, later=True)
        if reads:
            r.wait(work), r.add("read")
        r.collective(group=second, later=True)

    assert stuck(2, lambda r: tell(r, reads=True)) == [0, 1]
    # both may run at once; a rule says that they may not
    assert stuck(2, lambda r: tell(r, reads=False)) == []


def test_cpu_groups_hold_python_but_are_not_told_of():
    def tell(r):
        if r.rank == 0:
            r.collective("barrier", group=("cpu", r.all), backend="gloo")
        r.collective()

    assert stuck(2, tell) == [1]


def test_ten_thousand_events_of_four_ranks_take_seconds():
    def tell(r):
        right, left = (r.rank + 1) % 4, (r.rank - 1) % 4
        for _ in range(2500):
            r.wait(r.batch(("send", right), ("recv", left)))
            r.wait(r.collective(later=True))

    traces = story(4, tell)
    assert [len(events) for events in traces.values()] == [10_000] * 4
    started = time.process_time()
    replay = Replay(traces)
    assert replay.stuck() == [] and replay.at == dict.fromkeys(range(4), 10_000)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "event, says",
    [
        (Event("sing"), "kind 'sing'"),
        (Event("collective", call="reduce", ranks=(1, 2)), "none of them"),
        (Event("message", call="send", ranks=(0,)), "no message"),
        (Event("wait", of=0), "earlier one"),
    ],
)
def test_traces_that_cannot_be(event, says):
    with pytest.raises(BadTraceError, match=says):
        Replay({0: [event]})
