"""Ports reserved by different processes never meet, and come back when the process ends."""

import socket
import subprocess
import sys

import pytest

from manyhands.cluster.host import ports
from manyhands.cluster.host.ports import reserve

HOLD = """
import sys
from manyhands.cluster.host.ports import reserve
held = reserve(3)
print(*held.ports, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def few_ports(monkeypatch):
    """Only ten ports to choose from, so that a clash is likely."""
    chosen = reserve(10)
    chosen.close()
    monkeypatch.setattr(ports, "_candidates", lambda: list(chosen.ports))
    return chosen.ports


def test_ports_lie_outside_the_ephemeral_range_and_can_be_bound():
    with reserve(5) as held:
        assert len(set(held.ports)) == 5
        low, high = ports._ephemeral_range()
        for port in held.ports:
            assert ports.FIRST <= port <= ports.LAST
            assert not low <= port <= high
            with socket.create_server(("127.0.0.1", port)):
                pass


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="abstract sockets are Linux's")
def test_two_reservations_share_no_port(few_ports):
    with reserve(5) as first, reserve(5) as second:
        assert sorted(first.ports + second.ports) == sorted(few_ports)
        with pytest.raises(RuntimeError, match="1 ports were requested, but only 0"):
            reserve(1)
    with reserve(10) as again:
        assert sorted(again.ports) == sorted(few_ports)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="abstract sockets are Linux's")
def test_a_killed_process_lets_go(monkeypatch):
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        theirs = [int(word) for word in child.stdout.readline().split()]
        monkeypatch.setattr(ports, "_candidates", lambda: list(theirs))
        with pytest.raises(RuntimeError):
            reserve(1)
    finally:
        child.kill()
        child.communicate()
    with reserve(3) as held:
        assert sorted(held.ports) == sorted(theirs)


def test_a_port_in_use_is_not_chosen(few_ports):
    with socket.create_server(("127.0.0.1", few_ports[0])), reserve(9) as held:
        assert few_ports[0] not in held.ports


def test_a_foreign_host_is_refused():
    with pytest.raises(ValueError, match="not an address of this machine"):
        reserve(1, host="192.0.2.1")
