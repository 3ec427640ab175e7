"""What unit 18 says of `torchrun --nnodes 1:2`.

It is one training run with three agents on this machine, of which two are killed.
"""

import os
import signal
import socket
import subprocess
import sys
import time

import psutil
import pytest
import torch
from our_processes import SLOWER, our_processes, wait_for_none

from manyhands.cluster.host.ports import reserve

# A step adds to the weight what all ranks add up to, which is the same for any number of them.
WORKER = """
import os, sys, time
from pathlib import Path
import torch, torch.distributed as dist

folder, name = Path(sys.argv[1]), sys.argv[2]
Path(folder, f"{name}.pid").write_text(str(os.getpid()))
Path(folder, f"{name}.restarts").write_text(os.environ["TORCHELASTIC_RESTART_COUNT"])  # each agent counts its own
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
saved = Path(folder, "saved.pt")
step, weight = torch.load(saved) if saved.exists() else (0, torch.zeros(1, dtype=torch.float64))
while True:
    part = torch.full((1,), 1 / (step + 1) / world, dtype=torch.float64)
    dist.all_reduce(part)
    weight += part
    step += 1
    if rank == 0:
        torch.save((step, weight), folder / "part")
        os.replace(folder / "part", saved)
        with open(folder / "steps", "a") as log:
            print(world, step, weight.item().hex(), file=log)
    time.sleep(0.05)
"""
QUICK = "last_call_timeout=1,join_timeout=60,keep_alive_interval=1,keep_alive_max_attempt=10"


class Job:
    """Agents of one job, by name, and what their workers have logged."""

    def __init__(self, folder, port):
        self.folder, self.port, self.agents = folder, port, {}
        (folder / "worker.py").write_text(WORKER)

    def start(self, name):
        argv = [
            "-m",
            "torch.distributed.run",
            "--nnodes",
            "1:2",
            "--nproc-per-node",
            "1",
            "--max-restarts",
            "1",
            "--monitor-interval",
            "0.1",
            "--rdzv-backend",
            "c10d",
            "--rdzv-endpoint",
            f"127.0.0.1:{self.port}",
            "--rdzv-id",
            "job",
            "--rdzv-conf",
            QUICK,
            str(self.folder / "worker.py"),
            str(self.folder),
            name,
        ]
        with open(self.folder / f"{name}.log", "w") as log:
            self.agents[name] = subprocess.Popen(
                [sys.executable, *argv],
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={
                    **os.environ,
                    "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
                    "OMP_NUM_THREADS": "1",
                },
            )

    def wait_for_store(self):
        until = time.monotonic() + 30 * SLOWER
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self.port), 1).close()
            except ConnectionRefusedError:
                assert time.monotonic() < until
                time.sleep(0.05)

    def worker(self, name):
        return psutil.Process(int((self.folder / f"{name}.pid").read_text()))

    def restarts(self, name):
        """How many restarts the agent of this name has used up."""
        return int((self.folder / f"{name}.restarts").read_text())

    def steps(self):
        """[(world, step, weight)] so far."""
        path = self.folder / "steps"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return [
            (int(world), int(step), float.fromhex(weight))
            for world, step, weight in map(str.split, lines)
        ]

    def wait_for(self, world, more=5):
        """Return the lines, when `more` steps have been made on so many ranks since this call."""
        before, until = len(self.steps()), time.monotonic() + 60 * SLOWER
        while len(new := [line for line in self.steps()[before:] if line[0] == world]) < more:
            assert time.monotonic() < until, [
                self.steps()[-3:],
                *(path.read_text()[-2000:] for path in self.folder.glob("*.log")),
            ]
            time.sleep(0.05)
        return new

    def kill_all(self):
        for process in our_processes():
            try:
                if str(self.folder) in " ".join(psutil.Process(process).cmdline()):
                    os.kill(process, signal.SIGKILL)
            except (psutil.Error, ProcessLookupError):
                pass
        for agent in self.agents.values():
            agent.wait(30)


@pytest.fixture
def job(tmp_path):
    before = our_processes()
    with reserve(1) as ports:
        job = Job(tmp_path, ports.ports[0])
        try:
            yield job
        finally:
            job.kill_all()
    assert not wait_for_none(before, 10)


def test_a_node_is_lost_another_comes_and_the_end_of_the_store_ends_the_job(job):
    job.start("a")
    job.wait_for_store()  # on one machine the first agent that comes makes it
    job.start("b")
    job.wait_for(world=2)
    assert job.restarts("a") == 0

    # the agent only: its worker lives in a session of its own, and trains on
    job.agents["b"].kill()
    job.agents["b"].wait()
    time.sleep(11)  # longer than the keep-alives of the rendezvous are waited for
    orphan = job.worker("b")
    assert orphan.is_running() and os.getsid(orphan.pid) == orphan.pid
    job.wait_for(world=2)
    assert job.restarts("a") == 0

    orphan.kill()  # now the node is lost: the other one goes on alone, from the checkpoint
    job.wait_for(world=1)
    assert job.restarts("a") == 1, "this used up the one restart that there is"

    job.start("c")
    job.wait_for(world=2)
    assert job.restarts("a") == 1, "a node that comes uses up none"
    weight = torch.zeros((), dtype=torch.float64)
    lines = job.steps()
    right = {step: (weight := weight + 1 / step).item() for step in range(1, lines[-1][1] + 1)}
    assert all(abs(weight - right[step]) < 1e-9 for _, step, weight in lines), (
        "as if nothing had happened"
    )

    job.agents["a"].kill()  # it has the store
    job.worker("a").kill()
    assert job.agents["c"].wait(30 * SLOWER) != 0, "without the store the job is over"
