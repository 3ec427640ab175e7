"""What a cluster and its learners have started ends with it, whoever is killed first.

A machine on which it cannot run is reported at the start.
"""

import os
import signal
import subprocess
import sys
import time

import pytest
from our_processes import our_processes, wait_for_none

from manyhands import Cluster

DAEMONS = """import subprocess
kept = subprocess.Popen(["sleep", "600"], start_new_session=True)
subprocess.run(["sh", "-c", "setsid sleep 600 &"]);"""
KERNEL = f"""import time
from manyhands import Cluster
c = Cluster(nodes=1, ranks_per_node=2, framework=None)
c.px({DAEMONS!r})
print(c._runtime._guard.pid, c._runtime.folder, flush=True)
time.sleep(600)"""


def sleepers():
    return [pid for pid, line in our_processes().items() if line == "sleep 600"]


def wait_for_sleepers(n):
    """The daemons of n / 2 ranks, once all have become what they shall be."""
    deadline = time.monotonic() + 20
    while len(sleepers()) != n and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(sleepers()) == n
    return sleepers()


@pytest.fixture(autouse=True)
def none_stays():
    """What a failed test would leave."""
    yield
    for pid in sleepers():
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    "guard_first", [False, True], ids=["the kernel", "the guard, then the kernel"]
)
def test_killed(guard_first):
    before = our_processes()
    kernel = subprocess.Popen([sys.executable, "-c", KERNEL], stdout=subprocess.PIPE, text=True)
    try:
        guard, folder = kernel.stdout.readline().split()
        wait_for_sleepers(4)
        if guard_first:
            os.kill(int(guard), signal.SIGKILL)
    finally:
        kernel.kill()
        kernel.wait(10)
        kernel.stdout.close()
    assert not wait_for_none(before, 30)
    assert not os.path.exists(folder)


def test_what_ranks_have_started_ends_with_them():
    with Cluster(nodes=1, ranks_per_node=2, framework=None, name="daemons") as cluster:
        cluster.px(DAEMONS)
        wait_for_sleepers(4)
        cluster.heal()
        assert not sleepers()
        cluster.px(DAEMONS)
        wait_for_sleepers(4)
    assert not sleepers()


def test_a_guard_that_was_killed_is_replaced():
    with Cluster(nodes=1, ranks_per_node=1, framework=None, name="guarded") as cluster:
        guard = cluster._runtime._guard
        guard.kill()
        guard.wait(10)
        cluster.px("x = 1")
        assert cluster._runtime._guard.poll() is None and cluster._runtime._guard.pid != guard.pid


@pytest.mark.parametrize(
    "shell, why",
    [
        (
            'ulimit -n 64; exec "$@"',
            (
                "A process may have only 64 files open here, and a cluster of 4 ranks needs up to "
                "144. Run `ulimit -n 144`"
            ),
        ),
        (
            'PYTHONOPTIMIZE=2 exec "$@"',
            "Python runs without docstrings here (PYTHONOPTIMIZE=2, or python -OO)",
        ),
    ],
    ids=["64 open files", "PYTHONOPTIMIZE=2"],
)
def test_a_machine_that_cannot_is_told_in_a_sentence(shell, why):
    before = our_processes()
    run = [
        "sh",
        "-c",
        shell,
        "sh",
        sys.executable,
        "-c",
        "from manyhands import Cluster\nCluster(nodes=2, ranks_per_node=2)",
    ]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and why in done.stderr.splitlines()[-1]
    assert not wait_for_none(before, 1)
