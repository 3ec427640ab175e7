"""What must hold on every profile.

That is who the ranks are, that they add up, that faults are reported and healed, and that a
notebook runs.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import nbclient
import nbformat
import pytest
from our_processes import SETUP, our_processes, wait_for_none

from manyhands.cluster import Hang, RankDied

ROOT = Path(__file__).parents[2]
PROFILE_OF_A_CLUSTER = re.compile(r"profile='\w+'")


# and the question about them
LAUNCHES_OF_UNIT_06 = ("subprocess.run(", "cluster.launch(", '"06-resume"')

TELL = """
import os, torch, torch.distributed as dist
if not dist.is_initialized():
    dist.init_process_group("gloo")
total = torch.tensor([dist.get_rank()])
dist.all_reduce(total)
names = ("RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
told = [int(os.environ[name]) for name in names] + [total.item()]
"""


def table(cluster):
    """What each rank knows about itself, and the sum of all ranks by torch."""
    cluster.px(TELL)
    return cluster.pull("told")


def expected(nodes, ranks_per_node):
    """What `table` must give."""
    n = nodes * ranks_per_node
    return [
        [rank, rank % ranks_per_node, rank // ranks_per_node, n, ranks_per_node, sum(range(n))]
        for rank in range(n)
    ]


def check_faults_and_healing(cluster):
    """Miss a barrier and kill a rank of 2 x 2.

    Both are reported, and the same cluster then works.
    """
    cluster.px("import os\n" + SETUP, setup=True)
    with pytest.raises(Hang) as hang:
        cluster.px("if rank != 1:\n    dist.barrier()", patience_s=2)
    assert hang.value.culprits == [1] and sorted(hang.value.edges) == [(0, 1), (2, 1), (3, 1)]
    assert table(cluster) == expected(2, 2)
    with pytest.raises(RankDied) as death:
        cluster.px("if rank == 2:\n    os.kill(os.getpid(), 9)\ndist.barrier()")
    # mpiexec may take the others down with it, before they have said anything
    assert 2 in death.value.culprits
    assert table(cluster) == expected(2, 2)


SCRIPT = """
import os
from mpi4py import MPI
world = MPI.COMM_WORLD
print(world.rank, "of", world.size, world.Split_type(MPI.COMM_TYPE_SHARED).size, "on a node, sum", world.allreduce(world.rank))
"""


def check_a_launch(cluster, folder):
    """Launch a script beside a cluster of 2 x 2 ranks.

    It runs on as many nodes and ranks as the cluster has.
    """
    (folder / "script.py").write_text(SCRIPT)
    result = cluster.launch(folder / "script.py", with_="mpirun", echo=False)
    assert result.output == {rank: f"{rank} of 4 2 on a node, sum 6\n" for rank in range(4)}, (
        result.launcher_output
    )


def run_notebook(name, profile, monkeypatch, leaves_out=(), timeout_s=180):
    """Run a built notebook, unchanged, with MANYHANDS_PROFILE.

    Its outputs are compared with those that are stored.

    Cells with a text of `leaves_out` are not run: those that start processes of their own, in which
    no profile has a part (test_notebooks.py runs them).
    """
    path = ROOT / "notebooks" / name
    stored = nbformat.read(path, as_version=4)
    for text in leaves_out:
        before = len(stored.cells)
        stored.cells = [
            cell for cell in stored.cells if cell.cell_type != "code" or text not in cell.source
        ]
        assert len(stored.cells) < before, f"no cell has {text}"
    monkeypatch.setenv("MANYHANDS_PROFILE", profile)
    monkeypatch.setenv("MANYHANDS_QUIET", "1")
    fresh = nbformat.from_dict(stored)
    for cell in fresh.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    client = nbclient.NotebookClient(
        fresh, timeout=timeout_s, resources={"metadata": {"path": str(path.parent)}}
    )
    client.create_kernel_manager()
    with tempfile.TemporaryDirectory(prefix="mh-") as sockets:
        # a TCP port may be taken by the time the kernel binds it
        client.km.transport, client.km.ip = "ipc", f"{sockets}/k"
        client.execute()
    compared = 0
    for number, (old, new) in enumerate(zip(stored.cells, fresh.cells, strict=True)):
        if old.cell_type == "code" and "measured" not in old.metadata.get("tags", []):
            assert texts(new, profile) == texts(old, profile), f"cell {number}:\n{old.source}"
            compared += bool(texts(old, profile))
    return compared


def texts(cell, profile):
    """The texts that a cell shows, by kind.

    This profile's name takes the place of the one that it was built with.
    """
    shown = {}
    for output in cell.outputs:
        if output.output_type == "stream":
            kind, text = output.name, output.text
        elif output.output_type == "error":
            kind, text = "error", f"{output.ename}: {output.evalue}"
        else:
            kind, text = "result", output.data.get("text/plain", "")
        shown[kind] = shown.get(kind, "") + text
    return {
        kind: PROFILE_OF_A_CLUSTER.sub(f"profile={profile!r}", text) for kind, text in shown.items()
    }


def ipython_in(folder, monkeypatch):
    """Keep ipyparallel's files of this test in `folder`."""
    monkeypatch.setenv("IPYTHONDIR", str(folder / "ipython"))
    os.makedirs(folder / "ipython", exist_ok=True)


KERNEL = """
import sys
import tempfile
from manyhands import Cluster
cluster = Cluster(nodes=2, ranks_per_node=1, framework=None, profile=sys.argv[1], name="killed")
print("ready", flush=True)
sys.stdin.read()
"""


def check_that_nothing_outlives_the_kernel(profile, seconds):
    """Kill a process that has a cluster; all that belonged to it must go."""
    before = our_processes()
    kernel = subprocess.Popen(
        [sys.executable, "-c", KERNEL, profile],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert kernel.stdout.readline() == "ready\n"
    finally:
        kernel.kill()
        kernel.communicate()
    assert not wait_for_none(before, seconds)
