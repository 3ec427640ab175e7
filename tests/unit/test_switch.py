"""The links of the emulated network: when a frame arrives. No namespace is needed for it."""

import pytest

from manyhands.cluster import emulated
from manyhands.cluster.switch import Links, address, mtu

SIZE = 1_000_000  # bytes: 80 ms at 100 Mbit/s


def links():
    return Links(nodes=3, rate_mbit=100, delay_ms=5)


def test_alone_a_frame_takes_its_size_by_the_rate_and_the_delay():
    assert links().arrival(0, 1, SIZE, now=10.0) == pytest.approx(10.085)


def test_a_sender_sends_one_frame_after_the_other():
    net = links()
    assert [net.arrival(0, 1, SIZE, 0.0), net.arrival(0, 2, SIZE, 0.0)] == pytest.approx([0.085, 0.165])


def test_a_receiver_receives_one_frame_after_the_other():
    net = links()
    assert [net.arrival(0, 2, SIZE, 0.0), net.arrival(1, 2, SIZE, 0.0)] == pytest.approx([0.085, 0.165])


def test_a_ring_uses_all_links_at_once():
    net = links()
    assert [net.arrival(node, (node + 1) % 3, SIZE, 0.0) for node in range(3)] == pytest.approx([0.085] * 3)


def test_a_link_that_has_rested_owes_nothing():
    net = links()
    net.arrival(0, 1, SIZE, 0.0)
    assert net.arrival(0, 1, SIZE, 1.0) == pytest.approx(1.085)


def test_a_frame_is_half_a_millisecond_of_the_link_within_limits():
    assert [mtu(rate) for rate in (1, 100, 500, 1000, 10_000)] == [9000, 9000, 31250, 62500, 65000]


def test_each_node_has_its_address():
    assert [address(0), address(249)] == ["10.77.0.1", "10.77.0.250"]


def test_a_link_has_defaults_and_only_the_emulated_profile_has_one():
    assert emulated.link("local", 4) is None
    assert emulated.link("emulated", 4) == (100.0, 1.0)
    assert emulated.link("emulated", 4, rate_mbit=1000, delay_ms=0) == (1000, 0)


@pytest.mark.parametrize(("profile", "nodes", "given", "message"), [
    ("local", 2, {"rate_mbit": 100}, "profile='local' takes the network as it is"),
    ("mpi", 2, {"delay_ms": 0}, "are for profile=\"emulated\""),
    ("emulated", 2, {"rate_mbit": 0}, "rate_mbit must be above 0"),
    ("emulated", 2, {"rate_mbit": float("inf")}, "rate_mbit must be above 0"),
    ("emulated", 2, {"delay_ms": -1}, "delay_ms 0 or more"),
    ("emulated", 251, {}, "addresses for 250 nodes, not 251"),
])
def test_wrong_links_are_told(profile, nodes, given, message):
    with pytest.raises(ValueError, match=message):
        emulated.link(profile, nodes, **given)
