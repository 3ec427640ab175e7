"""The emulated profile: two nodes of two ranks, and links that are really as slow as they say."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress

import psutil
import pytest
import world_checks
from our_processes import SETUP, SLOWER, our_processes, wait_for_none

import needs
from manyhands import Cluster
from manyhands.cluster import Hang
from manyhands.cluster.engines import emulated

RATE_MBIT, DELAY_MS, SIZE_BYTES = 100, 5, 2_000_000

# the clock is the machine's: all ranks read the same one
MEASURE = """
import time
def measure(call, ranks):
    if rank not in ranks:
        return None
    dist.barrier(group=group)
    begun = time.monotonic()
    call()
    return begun, time.monotonic()
"""


@pytest.fixture(scope="module", autouse=True)
def namespaces():
    why = emulated.missing()
    if why:
        needs.lacking("the emulated network", why)


@pytest.fixture(scope="module")
def emulated_cluster(namespaces):
    before, devices = our_processes(), socket.if_nameindex()
    with Cluster(
        nodes=2,
        ranks_per_node=2,
        framework="torch",
        profile="emulated",
        rate_mbit=RATE_MBIT,
        delay_ms=DELAY_MS,
        name="emulated",
    ) as cluster:
        cluster.px(SETUP, setup=True)
        used = set(cluster.run(network_of_this_rank))
        assert len(used) == 2 and os.readlink("/proc/self/ns/net") not in used
        yield cluster
    assert not wait_for_none(before, 10)
    assert not used & networks_in_use() and socket.if_nameindex() == devices


def network_of_this_rank():
    import os

    return os.readlink("/proc/self/ns/net")


def networks_in_use():
    networks = set()
    for pid in psutil.pids():
        with suppress(OSError):  # it has ended meanwhile
            networks.add(os.readlink(f"/proc/{pid}/ns/net"))
    return networks


def measured(cluster, call, ranks):
    """What a call on the ranks sends, with a barrier before it.

    Returns (bytes that each node has sent, seconds from the first begin to the last end).
    """
    cluster.px(f"{MEASURE}\ngroup = dist.new_group({ranks})\ndist.barrier()")
    before = emulated.sent(cluster)
    cluster.px(f"result = measure({call}, {ranks})")
    sent = [
        after.payload_bytes - earlier.payload_bytes
        for after, earlier in zip(emulated.sent(cluster), before, strict=True)
    ]
    results = [result for result in cluster.pull("result") if result]
    return sent, max(ended for _, ended in results) - min(begun for begun, _ in results)


def test_ranks_know_their_places(emulated_cluster):
    assert world_checks.table(emulated_cluster) == world_checks.expected(2, 2)


def test_an_all_reduce_sends_its_bytes_over_the_links_and_takes_as_long_as_they_allow(
    emulated_cluster,
):
    sent, seconds = measured(
        emulated_cluster, f"lambda: dist.all_reduce(torch.ones({SIZE_BYTES // 4}))", [0, 1, 2, 3]
    )
    ring_bytes = 2 * 3 / 4 * SIZE_BYTES  # gloo's ring leaves each node once
    assert all(ring_bytes < bytes_ < 1.002 * ring_bytes for bytes_ in sent)
    assert seconds > ring_bytes * 8 / (RATE_MBIT * 1e6)


SEND_WHILE_THE_SWITCH_SLEEPS = """
import os, signal, time
def retransmitted():
    names, values = (line.split() for line in open("/proc/self/net/snmp") if line.startswith("Tcp:"))
    return int(dict(zip(names, values))["RetransSegs"])

before = retransmitted()
os.kill({switch}, signal.SIGSTOP)
try:
    there.sendall(bytes({size}))
    while retransmitted() == before:
        time.sleep(0.01)
finally:
    os.kill({switch}, signal.SIGCONT)
"""


def test_what_tcp_sends_again_because_the_machine_is_busy_is_no_payload(emulated_cluster):
    size, switch = 20_000, emulated_cluster._runtime._engines.network.group
    emulated_cluster.px(
        "import socket\nserver = socket.create_server(('', 0))\nport = server.getsockname()[1]"
    )
    emulated_cluster.px(
        f"there = socket.create_connection(('10.77.0.2', {emulated_cluster.pull('port')[2]}))",
        ranks=0,
    )
    emulated_cluster.px("here = server.accept()[0].makefile('rb')", ranks=2)
    before = emulated.sent(emulated_cluster)
    emulated_cluster.px(SEND_WHILE_THE_SWITCH_SLEEPS.format(switch=switch, size=size), ranks=0)
    emulated_cluster.px(f"assert len(here.read({size})) == {size}", ranks=2)
    after = emulated.sent(emulated_cluster)
    assert [after[node].payload_bytes - before[node].payload_bytes for node in (0, 1)] == [size, 0]
    assert after[0].repeated_bytes > before[0].repeated_bytes


def test_ranks_of_one_node_do_not_use_its_link(emulated_cluster):
    emulated_cluster.px(f"many = torch.ones({SIZE_BYTES // 4})")
    sent, _ = measured(
        emulated_cluster, "lambda: dist.send(many, 1) if rank == 0 else dist.recv(many, 0)", [0, 1]
    )
    assert max(sent) < SIZE_BYTES / 10


def test_there_and_back_takes_twice_the_delay(emulated_cluster):
    there_and_back = (
        "lambda: (dist.send(one, 2), dist.recv(one, 2)) if rank == 0 else (dist.recv(one, 0), "
        "dist.send(one, 0))"
    )
    emulated_cluster.px("one = torch.ones(1, dtype=torch.uint8)")
    for _ in range(3):
        _, seconds = measured(emulated_cluster, there_and_back, [0, 2])
        assert seconds > 2 * DELAY_MS / 1e3


def reach(address, port):
    import socket

    try:
        socket.create_connection((address, port), timeout=10).close()
    except OSError as error:
        return type(error).__name__
    return "reached"


def test_a_node_reaches_the_other_nodes_and_nothing_else(emulated_cluster):
    emulated_cluster.px(
        "import socket\nserver = socket.create_server(('', 0))\nhome = "
        "socket.create_server(('127.0.0.1', 0))\nports = [one.getsockname()[1] for one in (server, "
        "home)]"
    )
    server, home = emulated_cluster.pull("ports")[2]

    def from_rank(rank, *where):
        return emulated_cluster.run(reach, *where, ranks=rank)[0]

    assert [from_rank(rank, "10.77.0.2", server) for rank in (0, 3)] == ["reached"] * 2
    assert [from_rank(rank, "127.0.0.1", home) for rank in (0, 3)] == [
        "ConnectionRefusedError",
        "reached",
    ]
    with socket.create_server(("127.0.0.1", 0)) as ours:
        assert from_rank(0, "127.0.0.1", ours.getsockname()[1]) == "ConnectionRefusedError"
    assert from_rank(0, "192.0.2.1", 9) == "OSError"  # network is unreachable


def test_two_clusters_do_not_see_each_other(emulated_cluster):
    with Cluster(
        nodes=2, ranks_per_node=1, framework=None, profile="emulated", name="second"
    ) as second:
        second.px(
            "import socket\nserver = socket.create_server(('', 0))\nport = server.getsockname()[1]"
        )
        port = second.pull("port")[1]
        assert second.run(reach, "10.77.0.2", port, ranks=0) == ["reached"]
        assert emulated_cluster.run(reach, "10.77.0.2", port, ranks=0) == ["ConnectionRefusedError"]


def test_faults_are_told_and_healed(emulated_cluster):
    world_checks.check_faults_and_healing(emulated_cluster)


def test_a_dead_switch_is_a_hang_and_is_healed(emulated_cluster):
    os.kill(emulated_cluster._runtime._engines.network.group, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="switch of the emulated network has ended"):
        emulated.sent(emulated_cluster)
    with pytest.raises(Hang):
        emulated_cluster.px("dist.barrier()", patience_s=2)
    assert world_checks.table(emulated_cluster) == world_checks.expected(2, 2)


def test_nothing_outlives_the_kernel():
    world_checks.check_that_nothing_outlives_the_kernel("emulated", seconds=10 * SLOWER)


# ---------------------------------------------------------------- who may do it

# what a container's root is left with, and less
NO_RIGHTS = ["setpriv", "--bounding-set=-all,+setfcap", "--inh-caps=-all"]

PROGRAM = """
import sys, os
sys.path[:0] = {path!r}
import world_checks
from manyhands import Cluster
from manyhands.cluster import emulated
print(emulated.missing())
if emulated.missing() is None:
    with Cluster(nodes=2, ranks_per_node=1, profile="emulated", name="ordinary") as cluster:
        assert world_checks.table(cluster) == world_checks.expected(2, 1)
        cluster.heal()
        assert world_checks.table(cluster) == world_checks.expected(2, 1)
        print(set(cluster.run(os.getuid)) == {{os.getuid()}}, cluster.link)
"""


def run_program(before):
    needs.program("setpriv", "util-linux")
    others = our_processes()
    command = [*before, sys.executable, "-c", PROGRAM.format(path=sys.path)]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120 * SLOWER
    )
    assert done.returncode == 0, done.stderr
    assert not wait_for_none(others, 10)
    return done.stdout.splitlines()


def test_without_the_rights_of_root():
    missing, *_, last = run_program(NO_RIGHTS if os.geteuid() == 0 else [])
    assert (missing, last) == ("None", "True Link(rate_mbit=100.0, delay_ms=1.0)")


def test_where_namespaces_are_forbidden_it_is_told_what_to_do():
    shell = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    (sentence,) = run_program(
        [
            "unshare",
            "-Ur",
            "sh",
            "-c",
            shell,
            "sh",
            "setpriv",
            "--bounding-set=-all",
            "--inh-caps=-all",
        ]
    )
    assert (
        sentence.startswith("This machine does not allow this user to make network namespaces")
        and "user.max_user_namespaces" in sentence
    )


def test_without_tap_devices_it_is_told_what_to_do():
    (sentence,) = run_program(
        ["unshare", "-Urm", "sh", "-c", 'mount -t tmpfs tmpfs /dev/net && exec "$@"', "sh"]
    )
    assert sentence.startswith("This machine has no TAP devices") and "modprobe tun" in sentence


def test_a_cluster_that_cannot_be_says_why(monkeypatch):
    monkeypatch.setattr(emulated.namespaces, "__file__", "/nowhere.py")
    before = our_processes()
    with pytest.raises(RuntimeError, match="The switch of the emulated network did not start"):
        Cluster(nodes=2, ranks_per_node=1, framework=None, profile="emulated", name="no switch")
    assert not wait_for_none(before, 10)
