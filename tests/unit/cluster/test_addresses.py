"""All ranks tell each other where they can be reached."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from manyhands.cluster.addresses import meet
from manyhands.cluster.host.ports import reserve


@pytest.fixture
def meeting():
    with reserve(1) as reservation:
        yield "127.0.0.1", reservation.ports[0]


def all_of(ranks, world_size, meeting, timeout_s):
    with ThreadPoolExecutor(len(ranks)) as pool:
        return [
            pool.submit(meet, rank, world_size, meeting, f"host{rank}:1", timeout_s)
            for rank in ranks
        ]


@pytest.mark.parametrize("world_size", [1, 2, 5])
def test_every_rank_gets_the_list_in_the_order_of_the_ranks(meeting, world_size):
    for _ in range(2):  # the same port serves again
        answers = all_of(range(world_size)[::-1], world_size, meeting, 20)
        assert [answer.result() for answer in answers] == [
            [f"host{rank}:1" for rank in range(world_size)]
        ] * world_size


@pytest.mark.parametrize("there", [[0, 2], [1, 2]])
def test_a_rank_that_does_not_come_is_waited_for_only_so_long(meeting, there):
    for answer in all_of(there, 3, meeting, 0.3):
        with pytest.raises(TimeoutError, match="Not all 3 ranks"):
            answer.result()
