"""The chart of schedules draws each pass and each curve, the same each time.

Its table has the same numbers.
"""

import xml.etree.ElementTree as ET

import pytest

from manyhands.plots.gantt import WORDS, bubble_of, gantt, quickest, table

SPANS = [
    [("F", 0, 0, 0.0, 10.0), ("W", 0, 0, 30.0, 40.0)],
    [("F", 0, 1, 10.0, 20.0), ("B", 0, 1, 20.0, 30.0)],
]
MEMORY = [[(0.0, 0.0), (5.0, 2.5), (40.0, 0.0)], [(0.0, 1.0)]]


def test_a_box_for_each_pass_and_a_curve_for_each_rank():
    text = gantt({"one": (SPANS, MEMORY), "two": (SPANS, None)}).text
    assert text == gantt({"one": (SPANS, MEMORY), "two": (SPANS, None)}).text
    ET.fromstring(text)
    for word in (
        "one: bubble 0.50, 40 ms",
        "two: bubble 0.50, 40 ms",
        "rank 1",
        "time (ms)",
        "hatched",
    ):
        assert word in text
    assert len(gantt({"one": (SPANS, MEMORY)}).text) > len(gantt({"one": (SPANS, None)}).text)
    assert "Zeit" in gantt({"one": (SPANS, None)}, words={**WORDS, "time": "Zeit (ms)"}).text


def test_the_table_has_the_numbers():
    assert bubble_of(SPANS) == pytest.approx(0.5)
    assert table({"one": (SPANS, MEMORY)}, unit="KiB").splitlines()[1].split() == [
        "one",
        "40",
        "0.500",
        "2.5",
        "1.0",
    ]


def test_the_quickest_step_from_its_first_span_on():
    slow = [([("F", 0, r, 5.0, 9.0)], []) for r in range(2)]
    fast = [
        ([("F", 0, r, 20.0 + r, 21.0 + r)], [(20.5 + r, 2048), (21.0 + r, -2048)]) for r in range(2)
    ]
    run = quickest([[slow[r], fast[r]] for r in range(2)], unit=1024)
    assert run.spans == [[("F", 0, 0, 0.0, 1000.0)], [("F", 0, 1, 1000.0, 2000.0)]]
    assert run.memory[1] == [(0.0, 0.0), (1500.0, 2.0), (2000.0, 0.0)]
