"""The services of `ring`: a notebook whose ranks are on three hosts, one of which is killed."""

import json
import os
import signal
import subprocess

import pytest
from engines import ROOT

pytestmark = pytest.mark.containers

NODES, MEMORY_BYTES = 3, 1500 * 2**20


@pytest.fixture
def ring(engine, cpu, project):
    """Start the project with its notebook and nodes.

    The tests' own files are in the notebook's container.
    """
    engine.compose(project, "--profile", "ring", "up", "--detach")
    notebook = engine.compose(project, "ps", "--quiet", "ring").strip()
    engine.docker("cp", ROOT / "tests" / "dist", f"{notebook}:/tmp/tests")
    engine.docker("cp", ROOT / "tests" / "containers" / "in_ring.py", f"{notebook}:/tmp/tests")
    return project


def in_ring(engine, ring, what):
    """What `in_ring.py` tells, line by line, while it runs there."""
    command = engine.command(
        ring,
        "exec",
        "-T",
        "-e",
        "PYTHONPATH=/tmp/tests",
        "ring",
        "timeout",
        "1500",
        "python",
        "/tmp/tests/in_ring.py",
        what,
    )
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("{"):
            yield json.loads(line)
    assert process.wait() == 0, "".join(lines)


def node_at(engine, ring, address):
    """The container with this address."""
    for name in engine.compose(ring, "ps", "--quiet", "node").split():
        facts = engine.facts("container", name)
        if address in [
            network["IPAddress"] for network in facts["NetworkSettings"]["Networks"].values()
        ]:
            return facts
    raise AssertionError(f"no node has the address {address}")


def test_unit_06_runs_unchanged(engine, ring):
    assert next(told["compared"] for told in in_ring(engine, ring, "notebook")) > 10


def test_ranks_are_on_hosts_of_their_own_and_a_killed_node_is_named_and_healed(engine, ring):
    telling = in_ring(engine, ring, "node")
    first = next(telling)
    addresses, hosts, meeting = zip(*first["places"], strict=True)
    assert len(set(addresses)) == len(set(hosts)) == NODES and set(meeting) == {addresses[0]}
    assert set(first["limits"]) == {MEMORY_BYTES}

    killed = node_at(engine, ring, addresses[1])
    assert killed["State"]["Pid"] > 1
    # as the kernel does it; the engine sees that the container has died, and starts it anew
    os.kill(killed["State"]["Pid"], signal.SIGKILL)
    fault = next(telling)
    assert fault["culprits"] == [1] and f"node 1 ({addresses[1]}) has gone" in fault["text"], fault
    assert fault["reported_s"] < 30 and "The cluster is healed: 3 new ranks." in fault["text"], (
        fault
    )
    assert len(set(next(telling)["places"])) == NODES
    assert list(telling) == []
    assert engine.facts("container", killed["Id"])["RestartCount"] >= 1
