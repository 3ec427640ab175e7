"""A real Slurm of several nodes on this one host.

Debian's daemons run as ordinary processes, with everything in one folder.

    with SlurmOnOneHost(folder) as slurm:
        subprocess.run(["srun", "-N3", "hostname"], env=slurm.env)

Each node is a slurmd with a name and a port of its own. Nothing in /etc is read or written, no port
is fixed. All daemons, and all that they start, are children of one guard process, which kills them
when it is told to or when we die.
"""

import getpass
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from manyhands.cluster.host.ports import reserve
from manyhands.cluster.launch.command_lines import GUARD

SYSTEM_PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
READY_TIMEOUT_S = 30

SLURM_CONF = """\
ClusterName=onehost
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdSpoolDir={folder}/%n
SlurmdPidFile={folder}/%n.pid
SlurmdLogFile={folder}/%n.log
SlurmdParameters=config_overrides
PlugStackConfig={folder}/plugstack.conf
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
SchedulerParameters=batch_sched_delay=0,sched_min_interval=100000
MpiDefault=none
ReturnToService=2
KillWait=2
{node_lines}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class SlurmOnOneHost:
    """`env` is the environment in which sbatch, srun and squeue talk to this Slurm."""

    def __init__(self, folder, nodes=3, cpus_per_node=4):
        self.folder = Path(folder)
        self.nodes = [f"node{i}" for i in range(1, nodes + 1)]
        self.cpus_per_node = cpus_per_node
        self.env = {
            **os.environ,
            "SLURM_CONF": str(self.folder / "slurm.conf"),
            "PATH": SYSTEM_PATH,
        }
        self._guard = self._ports = None

    def __enter__(self):
        self._ports = reserve(1 + len(self.nodes))
        self._write_files()
        with open(self.folder / "guard.log", "w") as log:
            guard = [sys.executable, "-I", GUARD, "guard"]
            self._guard = subprocess.Popen(
                guard, stdin=subprocess.PIPE, stderr=log, start_new_session=True
            )
        self._guard.stdin.write(
            json.dumps([{"argv": argv, "env": self.env} for argv in self._daemons()]).encode()
            + b"\n"
        )
        self._guard.stdin.flush()
        try:
            self._wait_until_idle()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc):
        self._guard.stdin.close()
        self._guard.wait(20)
        self._ports.close()

    def _write_files(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "state").mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        (self.folder / "plugstack.conf").write_text("")
        lines = [
            f"NodeName={name} NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 Port={port} "
            f"CPUs={self.cpus_per_node} RealMemory=1000"
            for name, port in zip(self.nodes, self._ports.ports[1:], strict=True)
        ]
        text = SLURM_CONF.format(
            host=socket.gethostname(),
            controller_port=self._ports.ports[0],
            user=getpass.getuser(),
            folder=self.folder,
            node_lines="\n".join(lines),
        )
        (self.folder / "slurm.conf").write_text(text)

    def _daemons(self):
        """The daemons in the order in which they start.

        munged must answer before the others ask: a shell starts each of them in turn, and then
        becomes it.
        """
        munge, socket_ = str(self.folder / "munge"), str(self.folder / "munge.socket")
        munged = [
            self._program("munged"),
            "--foreground",
            "--force",
            f"--key-file={munge}.key",
            f"--socket={socket_}",
        ]
        munged += [
            f"--pid-file={munge}.pid",
            f"--log-file={munge}.log",
            f"--seed-file={munge}.seed",
        ]
        wait = (
            f'while [ ! -S "{socket_}" ]; do sleep 0.05; done; exec "$@" '
            f'>"{self.folder}/daemons.log" 2>&1'
        )
        after = ["sh", "-c", wait, "sh"]
        slurmds = [[*after, self._program("slurmd"), "-D", "-N", name] for name in self.nodes]
        return [munged, [*after, self._program("slurmctld"), "-D"], *slurmds]

    def _program(self, name):
        return shutil.which(name, path=SYSTEM_PATH)

    def run(self, *command, timeout=30):
        """The output of a Slurm command."""
        return subprocess.run(
            command, env=self.env, capture_output=True, text=True, timeout=timeout, check=True
        ).stdout

    def wait_for_no_job(self, timeout_s=20):
        """Return when no job is left; a job that was ended is "completing" for a moment."""
        deadline = time.monotonic() + timeout_s
        while jobs := self.run("squeue", "-h"):
            if time.monotonic() > deadline:
                raise RuntimeError(f"Jobs are left: {jobs}")
            time.sleep(0.2)

    def _wait_until_idle(self):
        deadline, states = time.monotonic() + READY_TIMEOUT_S, ""
        while time.monotonic() < deadline:
            listed = subprocess.run(
                ["sinfo", "-h", "-N", "-o", "%N %T"],
                env=self.env,
                capture_output=True,
                text=True,
                timeout=30,
            )
            states = listed.stdout + listed.stderr
            if sorted(listed.stdout.split()) == sorted(
                word for name in self.nodes for word in (name, "idle")
            ):
                return
            time.sleep(0.1)
        logs = "\n".join(
            f"{path.name}: {path.read_text(errors='replace')[-800:]}"
            for path in self.folder.glob("*.log")
        )
        raise RuntimeError(
            f"Slurm's nodes are not idle after {READY_TIMEOUT_S} s: {states}\n{logs}"
        )
