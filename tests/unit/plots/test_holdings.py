"""The picture of who holds what draws each rank's piece once.

It joins the ranks that sum, and is the same each time.
"""

import re
import xml.etree.ElementTree as ET

from manyhands.plots import rank_colour
from manyhands.plots.holdings import Held, extent, table, who_holds_what

HALVES = [(0, 2, 0, 3), (0, 2, 3, 6), (2, 4, 0, 3), (2, 4, 3, 6)]
WHOLE = [(0, 4, 0, 2)] * 4
LAYOUTS = {
    "both": [Held("h", (4, 6), HALVES, []), Held("y", (4, 2), WHOLE, [((0, 1), 8), ((2, 3), 8)])]
}


def test_a_piece_is_found_from_the_places_of_its_numbers():
    assert extent([[15, 16, 17], [21, 22, 23]], columns=6) == (2, 4, 3, 6)
    assert extent([[0, 1], [2, 3]], columns=2) == (0, 2, 0, 2)


def test_the_table_says_what_a_rank_holds_and_what_is_summed():
    assert [line.split() for line in table(LAYOUTS).splitlines()] == [
        "both h 2 x 3 of 4 x 6 on a rank nothing sent".split(),
        "both y 4 x 2 of 4 x 2 on a rank sum: 8".split(),
    ]


def test_each_rank_has_its_piece_in_each_panel_and_sums_are_joined():
    text = who_holds_what(LAYOUTS, (2, 2)).text
    assert text == who_holds_what(LAYOUTS, (2, 2)).text
    ET.fromstring(text)
    for rank in range(4):
        assert len(re.findall(f"fill: {rank_colour(rank)}", text)) == 2
    alone = who_holds_what(
        {"both": LAYOUTS["both"][:1]},
        (2, 2),
        words={"sum": "Summe: {numbers}", "nothing": "nichts"},
    ).text
    assert "nichts" in alone and "sum: 8" in text and "nothing sent" in text
    without = who_holds_what(
        {"both": [LAYOUTS["both"][0], LAYOUTS["both"][1]._replace(sums=[])]}, (2, 2)
    ).text
    assert text.count("<path") > without.count("<path")
