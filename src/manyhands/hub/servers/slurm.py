"""An attendee's server as a job of a Slurm cluster, with batchspawner.

The names of the accounts are those of the cluster's users.

The job runs as that user, on the node that Slurm gives, in the user's own home; nothing but UNIX
and Slurm keeps people apart. The hub's folder, the clone and its Python are on the file system that
the nodes share.
"""

from __future__ import annotations

import asyncio
import math
import os
import pwd
import shlex
import subprocess
import sys
import time
import zlib
from typing import TYPE_CHECKING

from batchspawner import SlurmSpawner
from batchspawner.api import BatchSpawnerAPIHandler
from jupyterhub.apihandlers import default_handlers
from jupyterhub.spawner import SpawnException

from manyhands.hub.accounts import account_log
from manyhands.hub.servers.spawner import KEPT, SERVER, STARTING, InTurn

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from manyhands.hub.accounts.table import Account


LONGEST_S = 12 * 3600  # of a job, unless SBATCH_TIMELIMIT says otherwise
FIRST_PERSON = 1000  # lower user numbers are root's and the system's
FOLDER = "manyhands"  # in the person's home: the course's links, work/, the server's log
# of the clone, whose Python everybody must be able to run
HIDDEN = ("sources", "solutions", "tests", ".git")
NO_USER = (
    "{name} is not the name of a user of this cluster, under whose names servers run. Ask your "
    "instructor for an account with your user name."
)
QUEUED = "Your server is waiting in the cluster's queue."
REFUSED = "Slurm refuses the job of your server: {problem}"
ENDED = "The job of your server ended while it was starting. Its output is in {log}."
OPEN = "The cluster's users could read solutions in this clone. Protect them: chmod go-rwx {paths}"
SILENT = "Slurm does not answer here (`sinfo`): {problem}"
SCRIPT = """\
#!/bin/bash
#SBATCH --time={runtime}
#SBATCH --cpus-per-task={nprocs}
#SBATCH --mem={memory}
#SBATCH --chdir=/
#SBATCH --output=/dev/null
#SBATCH --no-requeue
umask 077
mkdir -p "$MANYHANDS_ROOT" && cd "$MANYHANDS_ROOT" && exec {cmd} > server.log 2>&1
"""


class NotStartedError(SpawnException):
    """No server for this person now; the message is shown to them, on whichever page they wait."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="not started")
        self.jupyterhub_message = message


class SlurmJobSpawner(InTurn, SlurmSpawner):
    """A job for each person.

    Turns are Slurm's: its queue is where a server waits. The board and the queue for checks are out
    of its reach.
    """

    walls = near = False
    exec_prefix, batch_submit_cmd, batch_script = (
        "runuser -u {username} --",
        "sbatch --parsable --job-name={options}",
        SCRIPT,
    )

    async def start(self) -> tuple[str, int]:
        """Submit the job, and wait until its server has told its port.

        Returns the node's address and that port.
        """
        account = self.open_account()
        user_of(account.name)
        left_s = min(account.expires - time.time(), LONGEST_S)
        self.req_options, self.req_runtime = job_name(self.folder), str(math.ceil(left_s / 60))
        self.req_nprocs, self.req_memory = (
            str(math.ceil(self.limits.cpus)),
            f"{self.limits.memory_bytes >> 20}M",
        )
        self.ip, self.port = "0.0.0.0", 0
        try:
            await self.submit_batch_script()
        except RuntimeError as problem:
            raise NotStartedError(REFUSED.format(problem=problem)) from None
        while await self.poll() is None:
            if self.port and self.state_isrunning():
                self.ip = await self._address(self.state_gethost())
                account_log.write(self.folder, "server started", account.name, job=self.job_id)
                return self.ip, self.port
            await asyncio.sleep(self.startup_poll_interval)
        raise NotStartedError(ENDED.format(log=self.log_of(account)))

    async def _address(self, node: str) -> str:
        """Where Slurm itself reaches the node."""
        return (
            await self.run_command(
                shlex.join(["sinfo", "--noheader", f"--nodes={node}", "--format=%o"])
            )
        ).split()[0]

    def log_of(self, account: Account) -> str:
        """Return the path of the server's log, which is in the person's own home."""
        return f"{user_of(account.name).pw_dir}/{FOLDER}/server.log"

    def situation(self) -> str:
        """Return what the page says to who waits: the job is queued, or it starts."""
        return QUEUED if self.state_ispending() else STARTING

    def user_env(self, env: dict[str, str]) -> dict[str, str]:
        """Name the person's home and the course's folder in it."""
        home = user_of(self.user.name).pw_dir
        return super().user_env(env) | {"HOME": home, "MANYHANDS_ROOT": f"{home}/{FOLDER}"}

    def cmd_formatted_for_batch(self) -> str:
        """Return the command of the job as a line for the shell."""
        return shlex.join([sys.executable, *SERVER, *self.get_args()])


class OnlyItsPort(BatchSpawnerAPIHandler):
    """Lets a server tell its port, and nothing else.

    batchspawner's own handler lets a person set all of the spawner: the commands, too, that root
    runs for it.
    """

    def get_json_body(self) -> dict[str, int]:
        """Return the port alone, as a number."""
        return {"port": int(super().get_json_body()["port"])}


default_handlers.remove((r"/api/batchspawner", BatchSpawnerAPIHandler))
default_handlers.append((r"/api/batchspawner", OnlyItsPort))


def user_of(name: str) -> pwd.struct_passwd:
    """The cluster's user of this name.

    Raises NotStartedError where there is none, or none that is a person's.
    """
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        user = None
    if user is None or user.pw_uid < FIRST_PERSON:
        raise NotStartedError(NO_USER.format(name=name))
    return user


def kept(environ: Iterable[str]) -> list[str]:
    """What of the hub's environment `sbatch` gets.

    That is what finds Slurm, and its own variables (SBATCH_PARTITION, SBATCH_GRES, ...).
    """
    return [
        *KEPT,
        "PATH",
        "SLURM_CONF",
        *sorted(name for name in environ if name.startswith("SBATCH_")),
    ]


def job_name(folder: str) -> str:
    """Of all jobs of the hub in this folder."""
    return f"manyhands-{zlib.crc32(os.fsencode(folder)):08x}"


def why_none(root: str | Path) -> str | None:
    """Why no server can be a job here, or None."""
    open_ = [
        path
        for path in (os.path.join(root, name) for name in HIDDEN)
        if os.path.exists(path) and os.stat(path).st_mode & 0o077
    ]
    if open_:
        return OPEN.format(paths=shlex.join(open_))
    try:
        subprocess.run(
            ["sinfo", "--noheader"], check=True, capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError) as problem:
        return SILENT.format(problem=getattr(problem, "stderr", None) or problem)
    return None


def remove(folder: str) -> None:
    """End the jobs that a hub in this folder has left."""
    subprocess.run(["scancel", f"--name={job_name(folder)}"], check=False, timeout=60)
