"""A simulated step of a pipeline: against the formula, and against what orders must keep.

Orders that cannot be done are refused.
"""

from itertools import combinations

import pytest

from manyhands.simulate.pipeline import (
    Event,
    Stuck,
    alive,
    bubble,
    cut,
    finish_s,
    gpipe,
    idle,
    one_f_one_b,
    play,
    read_orders,
)


def seconds(event):
    return {"F": 1.0, "B": 2.0, "I": 1.0, "W": 1.0}[event.kind]


@pytest.mark.parametrize("make", [gpipe, one_f_one_b])
@pytest.mark.parametrize("stages, count", [(4, 8), (4, 2), (1, 5), (3, 3), (2, 7)])
def test_the_formula_is_what_is_simulated(make, stages, count):
    spans = play(make(stages, count), seconds)
    assert idle(spans) == pytest.approx(bubble(stages, count))
    assert finish_s(spans) == pytest.approx(3 * (count + stages - 1))


def test_what_each_rank_keeps():
    assert [alive(order) for order in gpipe(4, 8)] == [8, 8, 8, 8]
    assert [alive(order) for order in one_f_one_b(4, 8)] == [4, 3, 2, 1]
    assert [alive(order) for order in one_f_one_b(4, 2)] == [2, 2, 2, 1]
    assert alive([Event(kind, 0, 0) for kind in "FIW"] + [Event("F", 1, 0)]) == 1


def test_sends_that_wait_hang_under_1f1b_only():
    assert idle(play(gpipe(4, 8), seconds, blocking=True)) == pytest.approx(bubble(4, 8))
    with pytest.raises(
        Stuck, match="rank 3 waits, after backward of micro-batch 0 on stage 3, until rank 2 takes"
    ) as stuck:
        play(one_f_one_b(4, 8), seconds, blocking=True)
    assert len(str(stuck.value).splitlines()) == 4
    assert play(one_f_one_b(1, 3), seconds, blocking=True)


def test_messages_take_their_time_and_nobody_waits_for_sending():
    first, second = play(
        [[Event("F", 0, 0), Event("F", 1, 0)], [Event("F", 0, 1)]], seconds, message_s=5.0
    )
    assert [span.stop_s for span in first] == [1.0, 2.0] and second[0].start_s == 6.0


@pytest.mark.parametrize(
    "orders, says",
    [
        ([[Event("B", 0, 0), Event("F", 0, 0)]], "cannot begin backward of micro-batch 0"),
        (
            [
                [Event("F", 0, 0), Event("B", 0, 0), Event("F", 1, 0), Event("B", 1, 0)],
                gpipe(2, 2)[1],
            ],
            "rank 1 waits, before forward of micro-batch 1",
        ),
        (
            [[Event("F", 0, 0), Event("W", 0, 0), Event("I", 0, 0)]],
            "cannot begin backward .weights. of micro-batch 0 on stage 0: on its own rank",
        ),
    ],
)
def test_an_order_without_an_end_is_told(orders, says):
    with pytest.raises(Stuck, match=says):
        play(orders, seconds)


def test_two_stages_on_a_rank_wait_for_each_other_too():
    """Stage 1's forward needs stage 0's, also where no message is sent."""
    with pytest.raises(Stuck, match="on its own rank"):
        play([[Event("F", 0, 1), Event("F", 0, 0)]], seconds)


def test_printed_orders_are_read_overlaps_too():
    order = read_orders({0: ["0F0", None, "(0F1;7B0)OVERLAP_F_B", "0I1", "0W12", "0REDUCE_GRAD"]})
    assert order == [[("F", 0, 0), ("F", 1, 0), ("B", 0, 7), ("I", 1, 0), ("W", 12, 0)]]


@pytest.mark.parametrize(
    "costs, stages",
    [
        ([9, 9, 2, 2, 2, 3, 3, 6], 4),
        ([1, 2, 3], 3),
        ([5, 1, 1, 1, 4, 2], 2),
        ([3, 1], 1),
        ([7, 1, 8, 2, 8, 1, 8, 2, 8], 5),
    ],
)
def test_no_cut_is_better(costs, stages):
    blocks = cut(costs, stages)
    assert [layer for block in blocks for layer in range(len(costs))[block]] == list(
        range(len(costs))
    ) and len(blocks) == stages
    ways = combinations(range(1, len(costs)), stages - 1)
    assert max(sum(costs[block]) for block in blocks) == min(
        max(sum(costs[a:b]) for a, b in zip((0, *way), (*way, len(costs)), strict=True))
        for way in ways
    )


@pytest.mark.parametrize("stages", [0, 4])
def test_a_stage_needs_a_layer(stages):
    with pytest.raises(ValueError, match=f"3 layers in {stages} stages"):
        cut([1, 2, 3], stages)
