"""The picture of who sees which sample: its numbers, its letters, its squares."""

from manyhands.plots import rank_colour
from manyhands.plots.shards import steps_of, table, times, who_holds

SEEN = {"dealt": [[[0, 1], [4]], [[2, 3], [5]]], "own": [[[5, 1], [0]], [[1], []]]}


def test_steps_and_times_are_counted():
    assert steps_of([[3, 1], [], [3]]) == {3: [1, 3], 1: [1]}
    assert times(SEEN["dealt"], 6) == [1] * 6
    assert times(SEEN["own"], 6) == [1, 2, 0, 0, 0, 1]


def test_the_table_names_what_is_not_seen_once():
    lines = table({**SEEN, "all": [[[0, 1], [2, 3], [4, 5]]] * 2}, 6).splitlines()
    assert lines[0] == "dealt  worker 0: [0, 1] [4]" and lines[2].strip() == "each sample once"
    assert lines[5].strip() == "more than once: [1]; never: [2, 3, 4]"
    assert lines[8].strip() == "more than once: all"


def test_the_picture_has_a_square_for_each_sample_that_a_worker_sees():
    text = who_holds(
        SEEN, 6, words={"sample": "s", "worker": "w{rank}", "times": "t", "step": "u"}
    ).text
    for rank, squares in ((0, 3 + 3), (1, 3 + 1)):
        assert text.count(f"fill: {rank_colour(rank)}") >= squares
    assert ">w1<" in text and ">t<" in text and ">s (u)<" in text and ">dealt<" in text
