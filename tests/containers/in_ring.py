"""Runs in the ring's notebook container, beside tests/dist.

`python in_ring.py notebook`, or `python in_ring.py node`.
"""

import json
import sys
from pathlib import Path

import pytest
import world_checks
from our_processes import SETUP

from manyhands import Cluster
from manyhands.cluster import RankDied

WORK = "import time\nfor _ in range(1200):\n    time.sleep(0.1)\n    dist.barrier()"


def tell(**facts):
    print("\n" + json.dumps(facts), flush=True)


def notebook():
    """Unit 06's notebook, unchanged, against its stored outputs."""
    world_checks.ROOT = Path.home()
    tell(
        compared=world_checks.run_notebook(
            "06_ddp.ipynb", "containers", pytest.MonkeyPatch(), timeout_s=600
        )
    )


def node():
    """Three nodes of one rank; the test kills the container of rank 1 in the middle of a cell."""
    with Cluster(nodes=3, ranks_per_node=1) as cluster:
        cluster.px("import os\n" + SETUP, setup=True)
        assert world_checks.table(cluster) == world_checks.expected(3, 1)
        cluster.px(
            "from manyhands.cluster.engines.profiles import address\nhere = address(), "
            "os.uname().nodename, os.environ['MASTER_ADDR']"
        )
        tell(places=cluster.pull("here"), limits=cluster.run(limits))
        try:
            cluster.px(WORK)
        except RankDied as death:
            tell(
                culprits=death.culprits,
                text=death.text,
                reported_s=death.reported_s,
                healed_s=death.healed_s,
            )
        assert world_checks.table(cluster) == world_checks.expected(3, 1)
        cluster.px("from manyhands.cluster.engines.profiles import address\nhere = address()")
        tell(places=cluster.pull("here"))


def limits():
    """The memory limit of a rank's container, from the control groups of either version."""
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(name) as file:
                return int(file.read())
        except OSError:
            continue


if __name__ == "__main__":
    {"notebook": notebook, "node": node}[sys.argv[1]]()
