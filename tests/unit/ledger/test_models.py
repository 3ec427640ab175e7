"""The models of collectives, played out.

Each message that is sent is received, and what is sent is there to be sent.
"""

import pytest

from manyhands.ledger import models

SIZES = (1, 2, 3, 4, 5, 7, 8, 9)


def played(call, p, given=(), taken=(), itemsize=4, root=0):
    """Each rank's steps; a rank's sizes are `given[rank]`, `taken[rank]` if they are lists."""

    def of(sizes, rank):
        return sizes[rank] if isinstance(sizes, list) else sizes

    ranks = [
        models.steps(call, p, rank, of(given, rank), of(taken, rank), itemsize, root)
        for rank in range(p)
    ]
    sent = sorted(
        (s.step, rank, s.peer, s.bytes)
        for rank, steps in enumerate(ranks)
        for s in steps
        if s.kind == "sent"
    )
    received = sorted(
        (s.step, s.peer, rank, s.bytes)
        for rank, steps in enumerate(ranks)
        for s in steps
        if s.kind == "received"
    )
    assert sent == received, "what one rank sends another one receives, in the same step"
    assert max([s[0] + 1 for s in sent], default=0) == models.length(call, p)
    return sent


def bytes_of(sent, rank):
    return sum(nbytes for _, source, _, nbytes in sent if source == rank)


@pytest.mark.parametrize("p", SIZES)
def test_ring_all_reduce(p):
    sent = played("allreduce", p, given=(4 * 5 * p,))
    for rank in range(p):
        assert bytes_of(sent, rank) == 2 * (p - 1) * 20  # 2 (p - 1)/p of 20 p bytes
    assert len(sent) == 2 * p * (p - 1) and models.length("allreduce", p) == 2 * (p - 1)


@pytest.mark.parametrize("p", (2, 3, 4, 5, 8))
def test_the_ring_moves_the_parts_that_make_the_sum(p):
    """Parts of different sizes show which one travels.

    It is played with sets of ranks in place of numbers.
    """
    total = 4 * (p * (p - 1) // 2 + 3 * p)
    sizes = models.split_evenly(total, p, 4)
    assert sum(sizes) == total and max(sizes) - min(sizes) <= 4
    marked = [100 + i for i in range(p)]  # as if the parts had these sizes
    have = [{part: {rank} for part in range(p)} for rank in range(p)]
    for phase, first in ((0, 0), (1, 1)):
        for step in range(p - 1):
            moves = []
            for rank in range(p):
                (s,) = [
                    s
                    for s in models._around(p, rank, marked, first)
                    if s.step == step and s.kind == "sent"
                ]
                moves.append((s.peer, s.bytes - 100, set(have[rank][s.bytes - 100])))
            for peer, part, whose in moves:
                have[peer][part] = whose if phase else have[peer][part] | whose
    assert all(whose == set(range(p)) for mine in have for whose in mine.values())


@pytest.mark.parametrize("p", SIZES)
def test_ring_all_gather_and_reduce_scatter(p):
    blocks = [4 * (rank + 1) for rank in range(p)]  # ragged, so that a wrong block shows
    for rank in range(p):
        assert bytes_of(played("allgather", p, taken=tuple(blocks)), rank) == sum(blocks) - blocks[
            (rank + 1) % p
        ] * (p > 1) - blocks[0] * (p == 1)
        assert bytes_of(played("reduce_scatter", p, given=tuple(blocks)), rank) == (
            sum(blocks) - blocks[rank] if p > 1 else 0
        )
    assert models.length("allgather", p) == models.length("reduce_scatter", p) == p - 1


@pytest.mark.parametrize("p", SIZES)
def test_trees(p):
    for root in range(p):
        sent = played("broadcast", p, given=(64,), root=root)
        has = {root}
        for step in range(models.length("broadcast", p)):
            now = [(source, dest) for s, source, dest, _ in sent if s == step]
            assert all(source in has for source, _ in now), "only who has it can send it"
            assert not has & {dest for _, dest in now}, "nobody gets it twice"
            has |= {dest for _, dest in now}
        assert has == set(range(p)) and len(sent) == p - 1
        assert models.length("broadcast", p) == (p - 1).bit_length()
        up = played("reduce", p, given=(64,), root=root)
        sums = {rank: {rank} for rank in range(p)}
        for step in range(models.length("reduce", p)):
            for s, source, dest, _ in up:
                if s == step:
                    sums[dest] |= sums.pop(source)
        assert sums == {root: set(range(p))}


@pytest.mark.parametrize("p", SIZES)
def test_direct_ones(p):
    for root in range(p):
        taken = [tuple([8] * p) if rank == root else () for rank in range(p)]
        assert len(played("gather", p, given=(8,), taken=taken, root=root)) == p - 1
        assert len(played("scatter", p, given=taken, taken=(8,), root=root)) == p - 1
    tables = [tuple(4 * (10 * rank + peer) for peer in range(p)) for rank in range(p)]
    sent = played(
        "alltoall",
        p,
        given=tables,
        taken=[tuple(tables[peer][rank] for peer in range(p)) for rank in range(p)],
    )
    assert len(sent) == p * (p - 1) and all(
        nbytes == tables[source][dest] for _, source, dest, nbytes in sent
    )
    assert len(played("monitored_barrier", p)) == 2 * (p - 1)


@pytest.mark.parametrize("p", SIZES)
def test_after_a_barrier_everybody_has_heard_of_everybody(p):
    heard = [{rank} for rank in range(p)]
    sent = played("barrier", p)
    for step in range(models.length("barrier", p)):
        before = [set(ranks) for ranks in heard]
        for s, source, dest, _ in sent:
            if s == step:
                heard[dest] |= before[source]
    assert all(ranks == set(range(p)) for ranks in heard)


def test_every_collective_that_is_noted_has_a_model():
    from manyhands.ledger.entry import CALLS

    assert set(CALLS) - set(models.NAMES) == {"send", "recv", "recv_anysource"}
