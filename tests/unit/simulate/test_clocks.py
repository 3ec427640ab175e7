"""All-reduces on vectors of clocks.

They are held against every message played one by one, and against the formulas.
"""

import messages
import numpy as np
import pytest

from manyhands.simulate import clocks, collective_costs

LINK = (2e-3, 1e6)


def random_case(seed):
    draw = np.random.default_rng(seed)
    p = int(draw.integers(1, 14))
    link = (draw.exponential(1e-2), 1e6 * draw.uniform(0.1, 2))
    return (
        p,
        draw.exponential(0.05, p) * draw.integers(0, 2),
        float(draw.integers(1, 200_000)),
        link,
    )


@pytest.mark.parametrize(
    "way", ["ring", "ring_half", "tree", "halving_doubling", "parameter_server"]
)
def test_as_played_message_by_message(way):
    """200 random groups: ranks, clocks, sizes and links."""
    for seed in range(200):
        p, start, n, link = random_case(seed)
        if way == "parameter_server":
            servers = 1 + seed % 4
            want = messages.parameter_server(start, n, link, servers)
            got = clocks.parameter_server(start, n, link, servers)
        else:
            rounds = 2 * (p - 1) if way == "ring" else p - 1
            programs = (
                messages.ring(p, n, rounds)
                if way.startswith("ring")
                else getattr(messages, way)(p, n)
            )
            want, got = messages.play(programs, start, link), getattr(clocks, way)(start, n, link)
        assert got == pytest.approx(want, rel=1e-9, abs=1e-12), (way, seed)


@pytest.mark.parametrize("p", [1, 2, 3, 5, 8, 100])
def test_together_they_take_what_the_formulas_say(p):
    start = np.full(p, 3.0)
    for way in ("ring", "tree", "halving_doubling"):
        cost_s = getattr(collective_costs, way + "_s")(p, 1e5, *LINK)
        assert getattr(clocks, way)(start, 1e5, LINK).max() == pytest.approx(3 + cost_s)
    cost_s = collective_costs.parameter_server_s(p, 1e5, *LINK, servers=2)
    assert clocks.parameter_server(start, 1e5, LINK, 2).max() == pytest.approx(3 + cost_s)
    played_s = messages.busy_server(p, 1e5, LINK, 1e-3)
    assert clocks.parameter_server(start, 1e5, LINK, overhead_s=1e-3).max() == pytest.approx(
        3 + played_s
    )


def test_two_levels_are_three_rings_one_after_the_other():
    draw = np.random.default_rng(3)
    inside, between, start = (1e-5, 1e9), (1e-3, 1e7), draw.exponential(0.01, 12)
    # reduce-scatter in each node
    nodes = clocks.ring_half(start.reshape(3, 4), 1e5, inside)
    # 4 rings at once share the node's link
    parts = clocks.ring(nodes.T, 1e5 / 4, (between[0], between[1] / 4)).T
    want = clocks.ring_half(parts, 1e5, inside).reshape(12)
    assert clocks.hierarchical(start, 1e5, inside, between, 4) == pytest.approx(want)
    with pytest.raises(ValueError, match="12 ranks, 5 on each node"):
        clocks.hierarchical(start, 1e5, inside, between, 5)


def test_many_groups_at_once_are_each_alone():
    start = np.random.default_rng(0).exponential(0.1, (3, 2, 5))
    for way in (clocks.ring, clocks.tree, clocks.halving_doubling, clocks.parameter_server):
        together = way(start, 1e4, LINK)
        assert together.shape == start.shape
        for i in np.ndindex(3, 2):
            assert together[i] == pytest.approx(way(start[i], 1e4, LINK))


def test_the_clocks_that_are_handed_in_stay_as_they_are():
    start = np.arange(6.0)
    for way in (
        clocks.ring,
        clocks.ring_half,
        clocks.tree,
        clocks.halving_doubling,
        clocks.parameter_server,
    ):
        way(start, 1e4, LINK)[:] = -1
        assert start.tolist() == [0, 1, 2, 3, 4, 5]


def test_a_rank_alone_goes_on_at_once():
    for way in (clocks.ring, clocks.tree, clocks.halving_doubling):
        start = np.array([2.5])
        gone_on = way(start, 1e4, LINK)
        assert gone_on.tolist() == [2.5] and gone_on is not start
