"""The grader's end of a kernel's sockets.

It is tried against ZeroMQ's own library and against what that would not send.
"""

import socket
import time

import pytest
import zmq

from manyhands.isolation import zmtp
from manyhands.isolation.json_weight import count_pieces

READY = zmtp.GREETING + b"\x04\x06\x05READY"


@pytest.fixture
def peer(tmp_path):
    """(a wire, the other end of its connection, which has said that it is ready)."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "k"))
        listener.listen()
        made = zmtp.Wire(tmp_path / "k", "SUB")
        other, _ = listener.accept()
    with other:
        other.sendall(READY)
        yield made, other
    made.close()


def message(made, tries=1000):
    """The next message, as soon as it is there."""
    for _ in range(tries):
        got = made.receive(0.01)
        if got is not None:
            return got
    raise AssertionError("no message")


@pytest.mark.parametrize("kind", [zmq.PUB, zmq.XPUB])
def test_it_hears_what_zeromq_publishes(tmp_path, kind):
    with zmq.Context() as context, context.socket(kind) as server:
        server.bind(f"ipc://{tmp_path}/k")
        made = zmtp.Wire(tmp_path / "k", "SUB")
        until = time.monotonic() + 60
        # what is published before the subscription is there goes nowhere
        while not (got := made.receive(0.01)):
            assert time.monotonic() < until
            server.send_multipart([b"topic", b"", b"x" * 70_000])
        assert got == [b"topic", b"", b"x" * 70_000]
        made.close()


def test_it_sends_to_zeromq_and_hears_the_answer(tmp_path):
    with zmq.Context() as context, context.socket(zmq.ROUTER) as server:
        server.bind(f"ipc://{tmp_path}/k")
        made = zmtp.Wire(tmp_path / "k", "DEALER")
        while not made.ready:
            made.receive(0.01)
        made.send([b"one", b"", b"y" * 300], time.monotonic() + 60)
        address, *parts = server.recv_multipart()
        assert parts == [b"one", b"", b"y" * 300]
        server.send_multipart([address, b"two"])
        assert message(made) == [b"two"]
        made.close()


def test_what_is_too_long_or_has_too_many_parts_is_passed_over_and_counted(peer):
    made, other = peer
    other.sendall(b"\x01\x01x" * 20_000 + b"\x00\x00")
    assert message(made) == [] and made.received > 60_000
    other.sendall(b"\x02" + (zmtp.MOST_BYTES + 1).to_bytes(8))
    for _ in range(zmtp.MOST_BYTES // 50_000):
        other.sendall(bytes(50_000))
        assert made.receive(1) is None and len(made._data) <= 50_000
    other.sendall(bytes(zmtp.MOST_BYTES % 50_000 + 1))
    assert message(made) == []
    other.sendall(b"\x01\x01a\x00\x01b")
    assert message(made) == [b"a", b"b"]


def test_a_length_that_no_memory_holds_costs_nothing(peer):
    made, other = peer
    other.sendall(b"\x02" + b"\xff" * 8 + bytes(1000))
    for _ in range(20):
        assert made.receive(0.01) is None
    assert len(made._data) < 2000


def test_an_end_is_told_and_so_is_a_kernel_that_does_not_listen(peer):
    made, other = peer
    with pytest.raises(TimeoutError):
        made.send([bytes(2**24)], time.monotonic())
    other.close()
    with pytest.raises(zmtp.ConnectionCutError):
        message(made)
    with pytest.raises(zmtp.ConnectionCutError):
        made.send([b"x"], time.monotonic() + 60)


def test_where_nobody_listens(tmp_path):
    with pytest.raises(zmtp.ConnectionCutError):
        zmtp.Wire(tmp_path / "k", "SUB")


@pytest.mark.parametrize(
    "text, count",
    [
        (b"", 0),
        (b"[]", 1),
        (b'{"a": [1, 2]}', 5),
        (b'"[[[,,,"', 1),
        (b'"\\"[["', 1),
        (b'"[[[', 1),
        (b"[[[[", 4),
    ],
)
def test_pieces_of_json_are_counted_outside_of_its_texts(text, count):
    assert count_pieces(text, 100) == count and count_pieces(text, 2) == min(2, count)
