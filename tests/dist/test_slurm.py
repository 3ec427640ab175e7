"""The slurm profile on a real Slurm of three nodes.

All of them live on this host (slurm_on_one_host.py).
"""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
import world_checks
from our_processes import SLOWER, our_processes, wait_for_none
from slurm_on_one_host import SlurmOnOneHost

import needs
from manyhands import Cluster
from manyhands.cluster.host.ports import reserve

pytestmark = pytest.mark.slurm
BESIDE_PYTHON = os.path.dirname(sys.executable)
PROGRAMS = {"slurmctld": "slurmctld", "slurmd": "slurmd", "munged": "munge", "srun": "slurm-client"}


@pytest.fixture(scope="module")
def slurm(tmp_path_factory, warm):  # warm: which is there before, and stays
    for name, package in PROGRAMS.items():
        needs.program(name, package)
    before, folder = our_processes(), tmp_path_factory.mktemp("slurm")
    with SlurmOnOneHost(folder / "daemons") as slurm, pytest.MonkeyPatch.context() as patch:
        for name in ("SLURM_CONF", "PATH"):
            patch.setenv(name, slurm.env[name])
        # on a very busy machine two minutes were not enough
        patch.setenv("MANYHANDS_START_S", "400")
        patch.setattr("manyhands.cluster.engines.profiles.START_TIMEOUT_S", 400)
        world_checks.ipython_in(folder, patch)
        yield slurm
        slurm.wait_for_no_job()
        # nor are the files of a cluster
        assert set(os.listdir(folder / "ipython")) <= {"profile_default"}
    assert not wait_for_none(before, 10)


@pytest.fixture(scope="class")
def slurm_cluster(slurm):
    with Cluster(
        nodes=2, ranks_per_node=2, framework="torch", profile="slurm", name="slurm"
    ) as cluster:
        yield cluster


class TestCluster:
    """One cluster for all of these; it takes two of the three nodes, and gives them back."""

    def test_ranks_know_their_places(self, slurm_cluster):
        assert world_checks.table(slurm_cluster) == world_checks.expected(2, 2)

    def test_nodes_are_slurms_nodes(self, slurm, slurm_cluster):
        slurm_cluster.px(
            "import os; told = [os.environ[name] for name in ('SLURMD_NODENAME', 'SLURM_PROCID', "
            "'SLURM_LOCALID')]"
        )
        places = slurm_cluster.pull("told")
        assert [place[1:] for place in places] == [["0", "0"], ["1", "1"], ["2", "0"], ["3", "1"]]
        nodes = [place[0] for place in places]
        assert nodes[0] == nodes[1] != nodes[2] == nodes[3] and set(nodes) <= set(slurm.nodes)

    def test_a_script_is_launched_beside_it(self, slurm_cluster, tmp_path):
        world_checks.check_a_launch(slurm_cluster, tmp_path)

    def test_faults_are_told_and_healed(self, slurm_cluster):
        world_checks.check_faults_and_healing(slurm_cluster)


def test_nothing_outlives_the_kernel(slurm):
    world_checks.check_that_nothing_outlives_the_kernel("slurm", seconds=10 * SLOWER)
    slurm.wait_for_no_job()


def two_neighbouring_ports():
    """Reserve ports and return the reservation and a port whose neighbour is in it too.

    All nodes are this host, and the batch file counts on from the first port.
    """
    while True:
        many = reserve(300)
        for port in many.ports:
            if port + 1 in many.ports:
                return many, port
        many.close()


def batch(
    slurm,
    tmp_path,
    name,
    *arguments,
    folder=world_checks.ROOT / "notebooks" / "scripts",
    programs=BESIDE_PYTHON,
    **variables,
):
    """Submit a batch file of the notebooks' scripts, as a learner would, and wait.

    Returns what the job said. `programs` comes first on its path.

    Its processes write to one file, a text and its line's end one after the other: the texts are
    whole, the lines may be mixed.
    """
    env = {**slurm.env, **variables, "PATH": f"{programs}:{slurm.env['PATH']}"}
    job = ["sbatch", "--wait", f"--output={tmp_path}/said.txt", name, *arguments]
    done = subprocess.run(job, cwd=folder, env=env, capture_output=True, text=True, timeout=300)
    output = Path(tmp_path, "said.txt").read_text()
    assert done.returncode == 0, output + done.stderr
    return output


def test_the_batch_file_of_unit_06_starts_torchrun_on_two_nodes(slurm, tmp_path):
    with reserve(1) as port:
        output = batch(slurm, tmp_path, "06_train.sbatch", PORT=str(port.ports[0]))
    places = [
        f"RANK {rank}  LOCAL_RANK {rank % 2}  GROUP_RANK {rank // 2}  WORLD_SIZE 4"
        for rank in range(4)
    ]
    assert (
        sorted(re.findall(r"RANK \d+  LOCAL_RANK \d+  GROUP_RANK \d+  WORLD_SIZE \d", output))
        == places
    ), output
    sums = re.findall(r"sum of \|weights\| (\d+\.\d\d)", output)
    assert len(sums) == 4 and len(set(sums)) == 1, output  # all end with the same weights


def test_the_batch_file_of_lab_06_trains_and_resumes(slurm, tmp_path, warm):
    """The solution of the exercise that the lab's check only runs with stand-ins.

    The torchrun on its path starts warm.
    """
    cells = nbformat.read(
        world_checks.ROOT / "solutions" / "06_ddp" / "06_ddp.ipynb", as_version=4
    ).cells
    answer = next(
        cell.source for cell in cells if cell.metadata.get("nbgrader", {}).get("grade_id") == "job"
    )
    filled = {}
    exec(answer, filled)
    (tmp_path / "job.sbatch").write_text(filled["JOB"])
    shutil.copy(world_checks.ROOT / "sources" / "scripts" / "06_train.py", tmp_path)
    torchrun = tmp_path / "bin" / "torchrun"
    torchrun.parent.mkdir()
    torchrun.write_text(f'#!/bin/sh\nexec {warm} -m torch.distributed.run "$@"\n')
    torchrun.chmod(0o700)
    for epoch in (0, 5):
        with reserve(1) as port:
            output = batch(
                slurm,
                tmp_path,
                "job.sbatch",
                folder=tmp_path,
                programs=torchrun.parent,
                PORT=str(port.ports[0]),
            )
        assert output.count(f"from epoch {epoch}: sum of |weights| 224.72") == 4, output


def test_the_batch_file_of_unit_07_trains_on_two_nodes(slurm, tmp_path):
    many, port = two_neighbouring_ports()
    with many:
        output = batch(slurm, tmp_path, "07_train.sbatch", str(tmp_path), PORT=str(port))
    assert [
        output.count(f"worker {which}: epochs 0 to 9, loss 0.7454;")
        for which in ("0 of 2, the chief", "1 of 2")
    ] == [1, 1], output
    assert output.count("same weights as one process, to 1e-12: True") == 2, output


def test_the_batch_file_of_unit_10_runs_horovod_under_mpirun(slurm, tmp_path):
    output = batch(slurm, tmp_path, "10_horovod.sbatch")
    same = "weights of one process, to 1e-12: True"
    assert [
        output.count(f"rank {rank} of 4, local {rank % 2} of 2: {same}") for rank in range(4)
    ] == [1] * 4, output


@pytest.mark.slow
def test_unit_06_runs_unchanged(slurm, monkeypatch):
    assert (
        world_checks.run_notebook(
            "06_ddp.ipynb", "slurm", monkeypatch, leaves_out=world_checks.LAUNCHES_OF_UNIT_06
        )
        > 10
    )


STOPS = """
import os, sys, time
from pathlib import Path

folder = Path(os.environ["CHECKPOINTS"])
saved, stop = folder / "step", folder / "stop"
step = int(saved.read_text()) if saved.exists() else 0
print("life", os.environ.get("SLURM_RESTART_COUNT", "0"), "from step", step, flush=True)
while not (folder / "enough").exists():
    step += 1
    time.sleep(0.05)
    if stop.exists():
        saved.write_text(str(step))
        stop.unlink()
        sys.exit(print("saved at", step, flush=True))
print("done", flush=True)
"""


def test_the_batch_file_of_unit_18_saves_at_a_signal_and_is_started_again(slurm, tmp_path):
    """As the tutorial has it, with a short program in place of torchrun's.

    The signal comes from scancel: nobody waits for the end of the time.
    """
    source = (world_checks.ROOT / "sources" / "tutorial" / "18_elastic_training.py").read_text()
    recipe = re.search(
        r'^#     #SBATCH --time.*?^#     wait "\$job"$', source, re.DOTALL | re.MULTILINE
    )[0]
    job = re.sub("^#     ", "", recipe, flags=re.MULTILINE).replace(
        "torchrun ... train.py", f"-n1 {sys.executable} train.py"
    )
    (tmp_path / "job.sbatch").write_text(f"#!/bin/bash\n{job}\n")
    (tmp_path / "train.py").write_text(STOPS)
    submitted = ["sbatch", "--parsable", "--output=said.txt", "job.sbatch"]
    number = subprocess.run(
        submitted,
        cwd=tmp_path,
        env={**slurm.env, "CHECKPOINTS": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()

    def said():
        return (tmp_path / "said.txt").read_text() if (tmp_path / "said.txt").exists() else ""

    def said_after_a_push():
        """Cut the two minutes short and return what the job has said.

        It takes several calls, because Slurm sets them anew when it has seen the end of the first
        life.
        """
        subprocess.run(
            ["scontrol", "update", f"JobId={number}", "StartTime=now"],
            env=slurm.env,
            capture_output=True,
        )
        return said()

    def wait_for(words, of=said):
        until = time.monotonic() + 20 * SLOWER
        while not re.search(words, text := of()):
            assert time.monotonic() < until, text
            time.sleep(0.1)
        return text

    wait_for("life 0 from step 0")
    slurm.run("scancel", "--batch", "--signal=USR1", number)
    step = re.search(r"saved at (\d+)", wait_for("saved at .*\n"))[1]
    # for two minutes
    wait_for("PENDING BeginTime", of=lambda: slurm.run("squeue", "-h", "-o", "%T %r"))
    wait_for(
        "^$",
        of=lambda: (
            subprocess.run(
                ["pgrep", "-f", rf"slurmstepd: \[{number}\."], capture_output=True, text=True
            ).stdout
        ),
    )
    # a node tells the lives of a job apart by whole seconds: one that begins in the second in which
    # the first was ended is not launched
    time.sleep(2)
    both = wait_for(f"life 1 from step {step}\n", of=said_after_a_push)
    (tmp_path / "enough").touch()
    assert "life 0" in both and "done" in wait_for("done")  # one file has both lives
