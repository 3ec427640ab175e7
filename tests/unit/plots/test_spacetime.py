"""The space-time diagram: every message and every number.

It has the same bytes twice, and is readable without colours.
"""

import re
import xml.etree.ElementTree as ET

import pytest

from manyhands.ledger import merge
from manyhands.plots.spacetime import COLOURS, STYLES, spacetime, table


def account(rank, events, collectives=()):
    return {"rank": rank, "peak_bytes": None, "events": events, "collectives": dict(collectives)}


def reduce_of(rank):
    return {
        "g #1": {
            "call": "allreduce",
            "rank": rank,
            "ranks": [0, 1],
            "given": [8],
            "taken": [],
            "itemsize": 4,
            "root": 0,
            "start_s": 5.004,
            "stop_s": 5.009 + rank,
        }
    }


@pytest.fixture
def events():
    """Rank 0 sends to 1, which answers; then both make an all-reduce.

    Rank 1 also sends to 2, whose ledger says nothing.
    """
    first = account(
        0,
        [
            ["sent", "a", 1, 40, "send", 5.0],
            ["received", "b", 1, 44, "send.backward", 5.003],
            ["enter", "g #1"],
            ["leave", "g #1"],
        ],
        reduce_of(0),
    )
    second = account(
        1,
        [
            ["received", "a", 0, 40, "recv", 5.001],
            ["sent", "b", 0, 44, "send.backward", 5.002],
            ["sent", "c", 2, 7, "send", 5.0025],
            ["enter", "g #1"],
            ["leave", "g #1"],
        ],
        reduce_of(1),
    )
    return merge([first, second, account(2, [])]).events


def test_the_table_in_rounds(events):
    assert (
        table(events) == "round  call               from   to      bytes\n"
        "    1  send                  0    1         40\n"
        "    2  send.backward         1    0         44\n"
        "    2  send                  1    2          7\n"
        "    3  dist.allreduce        0    1          4\n"
        "    3  dist.allreduce        1    0          4\n"
        "    4  dist.allreduce        0    1          4\n"
        "    4  dist.allreduce        1    0          4"
    )


def test_the_table_in_ms(events):
    assert (
        table(events, "ms") == "  sent ms  received ms  call               from   to      bytes\n"
        "    0.000        1.000  send                  0    1         40\n"
        "    2.000        3.000  send.backward         1    0         44\n"
        "    2.500            -  send                  1    2          7\n"
        "  from ms        to ms  call               rank\n"
        "    4.000        9.000  dist.allreduce        0\n"
        "    4.000     1009.000  dist.allreduce        1"
    )


@pytest.mark.parametrize("clock", ["rounds", "ms"])
def test_the_picture_has_its_words_and_the_same_bytes_twice(events, clock):
    first, second = spacetime(events, clock=clock), spacetime(dict(enumerate(events)), clock=clock)
    assert first.text == second.text
    ET.fromstring(first.text)
    for word in (
        "rank 0",
        "rank 1",
        "rank 2",
        "send",
        "send.backward",
        "dist.allreduce (model: ring, twice)",
        "time (ms)" if clock == "ms" else "round",
    ):
        assert f">{word}" in first.text, word


def test_rounds_do_not_depend_on_times(events):
    later = [
        [
            event._replace(seconds=None if event.seconds is None else event.seconds * 3)
            for event in rank
        ]
        for rank in events
    ]
    assert spacetime(later).text == spacetime(events).text and table(later) == table(events)
    assert spacetime(later, clock="ms").text != spacetime(events, clock="ms").text


def test_an_arrow_for_each_message(events):
    without = [[event for event in rank if event.key != "b"] for rank in events]

    def heads(picture):
        return len(re.findall(r'<g id="patch_', picture.text))

    assert heads(spacetime(events)) > heads(spacetime(without))


def test_calls_differ_without_colours():
    assert len(set(map(str, STYLES))) == len(STYLES) and len(STYLES) > len(COLOURS), (
        "a colour that comes again has another line"
    )


def test_nothing_to_draw():
    assert "rank 0" in spacetime([[], []], clock="ms").text and len(table([[]]).splitlines()) == 1
    with pytest.raises(ValueError, match="clock is 'rounds' or 'ms', not 'seconds'"):
        spacetime([], clock="seconds")
