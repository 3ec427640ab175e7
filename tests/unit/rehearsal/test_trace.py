"""Traces as text."""

import pytest
from stories import story

from manyhands.rehearsal import Layout, dump, load
from manyhands.rehearsal.trace import BadTraceError


def tell(r):
    r.wait(
        r.batch(
            ("send", 1 - r.rank, 3, Layout("int8", (2, 3), contiguous=False)), ("recv", 1 - r.rank)
        )
    )
    r.collective(root=1)
    r.message("recv", None)
    r.add("clock")


def test_what_is_written_is_read():
    for events in story(2, tell).values():
        assert load(dump(events)) == events
        assert hash(load(dump(events))[0]) == hash(events[0])  # tuples again, not lists


def test_a_last_line_that_was_cut_off_is_left_out():
    events = story(2, tell)[0]
    assert load(dump(events)[:-5]) == events[:-1]


def test_a_spoilt_line_is_told():
    with pytest.raises(BadTraceError, match="line 1 of the trace is no event"):
        load('{"kind": "clock", "loud": 1}\n' + dump(story(1, tell)[0][:1]))


def test_the_size_of_a_tensor():
    assert (
        Layout(shape=(2, 3, 4)).numel == 24
        and Layout(shape=()).numel == 1
        and Layout(shape=(3, 0)).numel == 0
    )
