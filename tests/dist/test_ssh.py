"""The ssh profile, on an sshd of our own: two addresses of this host are the two nodes."""

import json
import os
import shutil
import subprocess
import sys
import time

import psutil
import pytest
import world_checks
from our_processes import SETUP, our_processes, wait_for_none

import needs
from manyhands import Cluster
from manyhands.cluster import Hang
from manyhands.cluster.host.ports import reserve
from manyhands.cluster.launch.command_lines import GUARD

# ipyparallel's threads that wait for an engine lose their connection when our sshd ends
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
HOSTS = ("127.0.0.1", "127.0.0.2")

SSHD_CONFIG = """\
ListenAddress 0.0.0.0
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile none
StrictModes no
PermitRootLogin yes
PasswordAuthentication no
Subsystem sftp internal-sftp
"""

SSH_CONFIG = """\
IdentityFile {folder}/user_key
IdentitiesOnly yes
UserKnownHostsFile /dev/null
StrictHostKeyChecking no
LogLevel ERROR
"""

WRAPPER = '#!/bin/sh\nexec {program} -F {folder}/ssh_config "$@"\n'


def write_files(folder):
    """Write our own keys, the server's and the client's settings, and `ssh` and `scp` for them."""
    for key in ("host_key", "user_key"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True
        )
    (folder / "sshd_config").write_text(SSHD_CONFIG.format(folder=folder))
    (folder / "ssh_config").write_text(SSH_CONFIG.format(folder=folder))
    for name in ("ssh", "scp"):
        wrapper = folder / "bin" / name
        wrapper.parent.mkdir(exist_ok=True)
        wrapper.write_text(WRAPPER.format(program=shutil.which(name), folder=folder))
        wrapper.chmod(0o700)


def start_sshd(folder, port):
    """sshd below a guard, which ends it and all its sessions.

    Root's sshd wants a folder /run/sshd: it gets a /run of its own.
    """
    sshd = [
        needs.program("sshd", "openssh-server"),
        "-D",
        "-e",
        "-p",
        str(port),
        "-f",
        str(folder / "sshd_config"),
    ]
    if os.geteuid() == 0 and not os.path.isdir("/run/sshd"):
        sshd = [
            "unshare",
            "-m",
            "sh",
            "-c",
            'mount -t tmpfs tmpfs /run && mkdir /run/sshd && exec "$@"',
            "sh",
            *sshd,
        ]
    with open(folder / "sshd.log", "w") as log:
        guard = subprocess.Popen(
            [sys.executable, "-I", GUARD, "guard"], stdin=subprocess.PIPE, stdout=log, stderr=log
        )
    guard.stdin.write(json.dumps([{"argv": sshd, "env": dict(os.environ)}]).encode() + b"\n")
    guard.stdin.flush()
    return guard


def wait_until_answering(folder, port):
    command, deadline = (
        [folder / "bin" / "ssh", "-p", str(port), HOSTS[0], "true"],
        time.monotonic() + 20,
    )
    while (done := subprocess.run(command, capture_output=True, text=True, timeout=20)).returncode:
        if time.monotonic() > deadline:
            raise RuntimeError(
                f"sshd does not let us in: {done.stderr}\n{(folder / 'sshd.log').read_text()}"
            )
        time.sleep(0.1)


def remote_engines(folder):
    """The engines of clusters whose files lie in `folder`: they have none of our environment."""
    pids = []
    for process in psutil.process_iter():
        try:
            if (
                str(folder) in process.environ().get("IPP_PROFILE_DIR", "")
                and "ipyparallel.engine" in process.cmdline()
            ):
                pids.append(process.pid)
        except psutil.Error:
            pass
    return pids


@pytest.fixture(scope="module")
def ssh_cluster(tmp_path_factory):
    before, folder = our_processes(), tmp_path_factory.mktemp("ssh")
    needs.program("ssh", "openssh-client")
    write_files(folder)
    with reserve(1) as reservation, pytest.MonkeyPatch.context() as patch:
        port = reservation.ports[0]
        guard = start_sshd(folder, port)
        try:
            wait_until_answering(folder, port)
            patch.setenv("PATH", f"{folder}/bin:{os.environ['PATH']}")
            patch.setenv("MANYHANDS_HOSTS", ",".join(f"{host}:{port}" for host in HOSTS))
            patch.setenv("MANYHANDS_FOLDER", str(folder))
            with Cluster(
                nodes=2, ranks_per_node=1, framework="torch", profile="ssh", name="ssh"
            ) as cluster:
                yield cluster
            assert remote_engines(folder) == []
        finally:
            guard.stdin.close()
            guard.wait(20)
    assert not wait_for_none(before, 10)


def test_ranks_know_their_places(ssh_cluster):
    assert world_checks.table(ssh_cluster) == world_checks.expected(2, 1)


def test_nodes_are_the_hosts_in_their_order(ssh_cluster):
    ssh_cluster.px("import os; told = os.environ['SSH_CONNECTION'].split()[2]")
    assert ssh_cluster.pull("told") == list(HOSTS)


def test_a_hang_is_told_and_healed(ssh_cluster):
    ssh_cluster.px(SETUP, setup=True)
    with pytest.raises(Hang) as hang:
        ssh_cluster.px("if rank == 0:\n    dist.barrier()", patience_s=2)
    assert hang.value.culprits == [1]
    assert world_checks.table(ssh_cluster) == world_checks.expected(2, 1)
