"""The figures of unit 13 draw what they are given, the same each time.

Their tables hold the same numbers.
"""

import re
import xml.etree.ElementTree as ET

from manyhands.plots.connectivity import connectivity, table, traffic, traffic_table

DENSE, GROUPED = [[0, 1], [0, 1], [0, 1]], [[0, -1], [0, -1], [-1, 1]]
SIDES, MEASURED, FORMULA = (
    [2, 4],
    {"out": [10, 40], "data": [7, 7]},
    {"out": lambda s: 2.5 * s * s, "data": lambda s: 7},
)


def test_a_square_for_each_pair_and_a_number_for_each_reaction():
    text = connectivity({"dense": DENSE, "grouped": GROUPED}).text
    assert text == connectivity({"dense": DENSE, "grouped": GROUPED}).text
    ET.fromstring(text)
    numbers = re.findall(r"font: 7px[^>]*>([01])</text>|>([01])</text>", text)
    assert len(numbers) >= 6 + 3
    for word in ("dense", "grouped", "input channel", "output channel"):
        assert word in text


def test_the_table_stands_side_by_side():
    assert table({"dense": DENSE, "grouped": GROUPED}).splitlines() == [
        "dense   grouped",
        "0 1     0 .",
        "0 1     0 .",
        "0 1     . 1",
    ]


def test_words_can_be_translated():
    assert "Eingabe" in connectivity({"dense": DENSE}, words={"x": "Eingabe", "y": "Ausgabe"}).text


def test_traffic_has_marks_and_a_table():
    text = traffic(SIDES, MEASURED, FORMULA).text
    assert text == traffic(SIDES, MEASURED, FORMULA).text and "side of the image (pixels)" in text
    assert traffic_table(SIDES, MEASURED, FORMULA).splitlines()[2].split() == [
        "4",
        "40",
        "/",
        "40",
        "7",
        "/",
        "7",
    ]
