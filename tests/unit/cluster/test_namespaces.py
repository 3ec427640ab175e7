"""The links of the emulated network: when a frame arrives, and what is counted.

No namespace is needed for it.
"""

import itertools
import random
import socket
import struct
import threading
import types

import pytest

from manyhands.cluster.engines import emulated
from manyhands.cluster.host.namespaces import SYN, TCP, Count, Links, address, mtu
from manyhands.cluster.turn import Turn

SIZE = 1_000_000  # bytes: 80 ms at 100 Mbit/s


def links():
    return Links(nodes=3, rate_mbit=100, delay_ms=5)


def test_alone_a_frame_takes_its_size_by_the_rate_and_the_delay():
    assert links().arrival(0, 1, SIZE, now=10.0) == pytest.approx(10.085)


def test_a_sender_sends_one_frame_after_the_other():
    net = links()
    assert [net.arrival(0, 1, SIZE, 0.0), net.arrival(0, 2, SIZE, 0.0)] == pytest.approx(
        [0.085, 0.165]
    )


def test_a_receiver_receives_one_frame_after_the_other():
    net = links()
    assert [net.arrival(0, 2, SIZE, 0.0), net.arrival(1, 2, SIZE, 0.0)] == pytest.approx(
        [0.085, 0.165]
    )


def test_a_ring_uses_all_links_at_once():
    net = links()
    assert [net.arrival(node, (node + 1) % 3, SIZE, 0.0) for node in range(3)] == pytest.approx(
        [0.085] * 3
    )


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


@pytest.mark.parametrize(
    ("profile", "nodes", "given", "message"),
    [
        ("local", 2, {"rate_mbit": 100}, "profile='local' uses the network as it is"),
        ("mpi", 2, {"delay_ms": 0}, 'are for profile="emulated"'),
        ("emulated", 2, {"rate_mbit": 0}, "rate_mbit must be above 0"),
        ("emulated", 2, {"rate_mbit": float("inf")}, "rate_mbit must be above 0"),
        ("emulated", 2, {"delay_ms": -1}, "delay_ms 0 or more"),
        ("emulated", 251, {}, "addresses for 250 nodes, not 251"),
    ],
)
def test_wrong_links_are_told(profile, nodes, given, message):
    with pytest.raises(ValueError, match=message):
        emulated.link(profile, nodes, **given)


def test_only_the_emulated_profile_counts_what_nodes_send():
    with pytest.raises(ValueError, match="profile='local' uses the network as it is"):
        emulated.sent(types.SimpleNamespace(link=None, profile="local"))


def test_what_nodes_send_is_not_asked_while_another_thread_uses_the_cluster():
    turn, asked = Turn("cluster"), []
    cluster = types.SimpleNamespace(
        link=emulated.link("emulated", 2),
        _turn=turn,
        _use=lambda: asked.append("healed under its cell"),
    )
    other = threading.Thread(target=turn.__enter__)
    other.start()
    other.join()
    with pytest.raises(RuntimeError, match="busy with another thread"):
        emulated.sent(cluster)
    assert asked == []


# ---------------------------------------------------------------- what is counted

FIRST = 2**32 - 1500  # the numbers of a connection's bytes begin anew soon after
ETHERNET = b"\x02many\x02" + b"\x02many\x01"
UDP = 17


def tcp(number, size, flags=0, ports=(4000, 5000), options=b""):
    head = struct.pack(
        "!HHIIBBHHH", *ports, number % 2**32, 0, 5 + len(options) // 4 << 4, flags, 0, 0, 0
    )
    return head + options + bytes(size)


def ip4(inside, protocol=TCP, options=b"", part=0, target=1):
    return (
        ETHERNET
        + struct.pack(
            "!HBxHHHBBH4s4s",
            0x0800,
            0x45 + len(options) // 4,
            20 + len(options) + len(inside),
            0,
            part,
            64,
            protocol,
            0,
            socket.inet_aton(address(0)),
            socket.inet_aton(address(target)),
        )
        + options
        + inside
    )


def ip6(inside, protocol=TCP):
    return (
        ETHERNET
        + struct.pack(
            "!HIHBB16s16s",
            0x86DD,
            6 << 28,
            len(inside),
            protocol,
            64,
            bytes(15) + b"\1",
            bytes(15) + b"\2",
        )
        + inside
    )


def counted(*frames):
    """(payload_bytes, repeated_bytes) of frames that a node sends one after the other."""
    count = Count()
    for frame in frames:
        count.add(frame)
    assert count.sent.frame_bytes == sum(map(len, frames))
    return count.sent[:2]


def segments(*pieces, **options):
    """Frames of a connection that begins at FIRST: its opening, then the pieces (begin, end)."""
    return [
        ip4(tcp(FIRST, 0, SYN, **options)),
        *(ip4(tcp(FIRST + 1 + begin, end - begin, **options)) for begin, end in pieces),
    ]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([(0, 1000), (1000, 2000), (2000, 3000)], (3000, 0)),
        ([(0, 1000), (0, 1000)], (1000, 1000)),
        ([(0, 1000), (1000, 2000), (0, 2000), (2000, 2500)], (2500, 2000)),
        ([(0, 1000), (500, 1500)], (1500, 500)),
        ([(2000, 3000), (0, 1000), (1000, 2000)], (3000, 0)),
        ([(1000, 2000), (3000, 4000), (1000, 2000), (0, 5000)], (5000, 3000)),
        ([(1000, 2000), (1500, 2500), (500, 1200), (0, 3000)], (3000, 2700)),
        ([(0, 1000), (999, 1000), (1000, 1000)], (1000, 1)),
        ([(-1, 0), (0, 0), (0, 10)], (10, 1)),
    ],
    ids=[
        "in order",
        "again",
        "again in larger pieces",
        "overlapping",
        "out of order",
        "gaps that close",
        "overlapping behind a gap",
        "is the other side alive?",
        "the same before the first byte",
    ],
)
def test_each_byte_of_a_connection_is_payload_once(pieces, expected):
    assert counted(*segments(*pieces)) == expected


def test_bytes_in_any_order_and_any_pieces_are_payload_once():
    chance = random.Random(0)
    for _ in range(100):
        pieces = [sorted(chance.choices(range(5000), k=2)) for _ in range(30)]
        seen = set(itertools.chain.from_iterable(range(*piece) for piece in pieces))
        assert counted(*segments(*pieces)) == (
            len(seen),
            sum(end - begin for begin, end in pieces) - len(seen),
        )


def test_a_connection_that_sends_more_than_its_numbers():
    count = Count()
    for frame in segments():
        count.add(frame)
    for begin in range(0, 2**32 + 2**31, 2**28):
        for _ in range(2):
            assert count._flows[next(iter(count._flows))].new(
                (FIRST + 1 + begin) % 2**32, 2**28
            ) == (0 if _ else 2**28)


def test_connections_are_told_apart():
    opened, sent = segments((0, 1000))
    again = ip4(tcp(77, 0, SYN)), ip4(tcp(78, 1000))
    assert counted(opened, opened, sent, opened) == (
        1000,
        0,
    ), "an opening that comes again opens nothing anew"
    assert counted(
        opened,
        sent,
        *segments((0, 1000), ports=(4001, 5000)),
        *segments((0, 1000), ports=(4000, 5001)),
    ) == (3000, 0)
    assert counted(opened, sent, ip4(tcp(FIRST + 1, 1000), target=2), sent) == (2000, 1000)
    assert counted(opened, sent, *again, again[1]) == (
        2000,
        1000,
    ), "the ports of a connection that has ended"
    assert counted(ip4(tcp(FIRST, 100, SYN)), ip4(tcp(FIRST + 1, 200))) == (
        200,
        100,
    ), "bytes that come with the opening"


def test_headers_are_not_payload():
    stamps, route = bytes(12), bytes(8)
    assert counted(
        ip4(tcp(5, 100, options=stamps)),
        ip4(tcp(105, 100, options=stamps), options=route),
        ip4(tcp(105, 100)),
    ) == (200, 100)
    assert counted(ip4(tcp(5, 100)) + bytes(30), ip4(tcp(105, 10))) == (
        110,
        0,
    ), "what a device appends"
    assert counted(ip6(tcp(5, 100)), ip6(tcp(105, 10)), ip6(tcp(5, 110))) == (110, 110)


def test_what_is_not_tcp_is_payload_whole():
    datagram, asked = (
        struct.pack("!HHHH", 1, 2, 108, 0) + bytes(100),
        ETHERNET + b"\x08\x06" + bytes(28),
    )
    assert counted(ip4(datagram, UDP), ip6(datagram, UDP), ip4(datagram, UDP)) == (3 * 108, 0)
    assert counted(ip4(tcp(5, 100), part=0x2000), ip4(bytes(50), part=15)) == (
        150,
        0,
    ), "a packet in two parts"
    assert counted(asked) == (0, 0)


def test_broken_frames_are_not_payload():
    whole = ip4(tcp(FIRST, 0, SYN))
    assert counted(*(whole[:size] for size in range(14, len(whole)))) == (0, 0)
    assert counted(*(ip6(tcp(5, 0))[:size] for size in range(14, 70))) == (0, 0)
    assert counted(ip4(tcp(5, 3)[:12] + b"\xff" + bytes(10))) == (
        0,
        0,
    ), "a header longer than the packet"
