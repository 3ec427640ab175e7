"""Which rank is slow.

It is a different one in each stretch, every rank once in a round, in an order that only the seed
knows.
"""

import pytest

from manyhands.hackathon.challenges.challenge import LAME_RANK
from manyhands.hackathon.challenges.tasks import Pace

STRETCHES = 40


def slow_ranks(seed, ranks=LAME_RANK.ranks, asked=range(STRETCHES)):
    """{stretch: the ranks whose gradient takes longer, if it begins in the middle of it}."""
    pace = Pace(seed, 0.01, ranks, 10, 0.25)
    return {
        stretch: [
            rank for rank in range(ranks) if pace.gradient_s(rank, (stretch + 0.5) * 0.25) > 0.05
        ]
        for stretch in asked
    }


@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_every_rank_has_its_turn_once_in_a_round(ranks):
    turns = slow_ranks(b"a seed", ranks)
    assert all(len(slow) == 1 for slow in turns.values())
    order = [rank for slow in turns.values() for rank in slow]
    rounds = [order[begin : begin + ranks] for begin in range(0, STRETCHES - ranks + 1, ranks)]
    assert all(sorted(round_order) == list(range(ranks)) for round_order in rounds)
    assert ranks == 1 or len({tuple(round_order) for round_order in rounds}) > 1, (
        "each round has an order of its own"
    )


def test_the_order_is_the_seeds_and_no_question_changes_it():
    assert slow_ranks(b"a seed") != slow_ranks(b"another")
    assert slow_ranks(b"a seed") == slow_ranks(b"a seed", asked=reversed(range(STRETCHES)))


def test_where_no_rank_is_slow_all_take_the_same_time():
    pace = Pace(b"a seed", 0.01, 4, 1, 1)
    assert {pace.gradient_s(rank, at_s) for rank in range(4) for at_s in (0, 0.3, 7)} == {0.01}


def test_what_begins_in_a_turn_is_slow_to_its_end():
    pace, last = Pace(b"a seed", 0.01, 4, 10, 0.25), 0.2499
    [slow] = [rank for rank in range(4) if pace.gradient_s(rank, 0) > 0.05]
    assert [round(pace.gradient_s(rank, last), 9) for rank in range(4)] == [
        0.1 if rank == slow else 0.01 for rank in range(4)
    ]
