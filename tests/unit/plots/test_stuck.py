"""The picture of calls that are never done."""

import xml.etree.ElementTree as ET

from manyhands.plots.stuck import LAST, RED, stuck

DONE = [("all_reduce", [0, 1, 2], "collective"), ("isend", [0, 2], "message")]


def test_what_is_stuck_is_red_with_a_line_to_each_rank_that_is_awaited():
    # of an arrow, line and head are dashed
    text = stuck(DONE, {1: ("recv", [0, 2])}, [0, 1, 2]).text
    ET.fromstring(text)
    assert ">recv<" in text and text.count("stroke-dasharray") == 2 * 2 and RED in text
    assert RED not in stuck(DONE, {}, [0, 1, 2]).text


def test_only_the_last_calls_are_drawn_and_the_number_of_the_others_is_told():
    text = stuck(DONE * LAST, {0: ("recv", [1])}, [0, 1, 2]).text
    assert (
        f"({LAST} calls before these)" in text
        and "calls before" not in stuck(DONE, {}, [0, 1, 2]).text
    )


def test_a_rank_that_was_not_recorded_is_waited_for_without_a_line():
    assert "stroke-dasharray" not in stuck([], {0: ("recv", [7])}, [0, 1]).text
