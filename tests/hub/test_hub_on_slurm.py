"""A hub whose servers are jobs of a real Slurm.

The users of this machine are made for the test.
"""

import html
import os
import pwd
import stat
import subprocess
import time
from pathlib import Path

import psutil
import pytest

import needs
from dist.slurm_on_one_host import SlurmOnOneHost
from hub.running_hub import Hub, Visitor, small_course, wait_for
from manyhands.hub.servers import sandbox
from manyhands.hub.servers.slurm import ENDED, NO_USER, job_name, remove
from manyhands.isolation.bubblewrap import read_only_folders

pytestmark = pytest.mark.slurm
PROGRAMS = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "munged": "munge",
    "sbatch": "slurm-client",
    "useradd": "passwd",
    "runuser": "util-linux",
}
CLOSED = ("sources", "solutions")


class Nodes(SlurmOnOneHost):
    """On each node everybody can run our Python, wherever it lies.

    It may also lie in the home of root, which is closed.
    """

    def _daemons(self):
        *controller, first, second, third = super()._daemons()
        closed = [
            place
            for place in read_only_folders()
            if not all(
                parent.stat().st_mode & 0o001 for parent in (Path(place), *Path(place).parents)
            )
        ]
        if not closed:
            return [*controller, first, second, third]
        around = [
            needs.program("bwrap", package="bubblewrap"),
            "--die-with-parent",
            "--dev-bind",
            "/",
            "/",
        ]
        for top in sorted({f"/{Path(place).parts[1]}" for place in closed}):
            around += ["--perms", "0755", "--tmpfs", top]
        for place in closed:
            around += [*sandbox._way_to(place), "--ro-bind", place, place]
        around.append("--")
        return [*controller, *([*around, *node] for node in (first, second, third))]


@pytest.fixture(scope="module")
def slurm(folder):
    if os.geteuid() != 0:
        needs.lacking("the right to make users", "run these tests as root")
    for name, package in PROGRAMS.items():
        needs.program(name, package)
    old = os.umask(0o022)
    with Nodes(folder / "slurm") as slurm, pytest.MonkeyPatch.context() as patch:
        for name in ("SLURM_CONF", "PATH"):
            patch.setenv(name, slurm.env[name])
        yield slurm
    os.umask(old)


@pytest.fixture(scope="module")
def users(slurm):
    """The names of two users of this machine."""
    names = [f"mh{os.getpid()}{letter}" for letter in "ab"]
    try:
        for name in names:
            subprocess.run(["useradd", "--create-home", "--shell", "/bin/bash", name], check=True)
        yield names
    finally:
        slurm.run("scancel", "--state=RUNNING")
        slurm.wait_for_no_job()
        for name in names:
            subprocess.run(["userdel", "--remove", name], check=False, stderr=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def hub(slurm, users, folder):
    root = small_course(folder / "clone")
    for name in CLOSED:
        (root / name).chmod(0o700)
    running = Hub(root, folder / "hub", "--slurm", "--cpus", "1", "--memory", "900M")
    running.wait_until_open()
    yield running
    running.stop()


def jobs(slurm):
    """{job's user: its state}."""
    return dict(
        line.split() for line in slurm.run("squeue", "--noheader", "--format=%u %T").splitlines()
    )


def account(hub, name):
    """Somebody at a browser, logged in."""
    [(_, password)] = hub.accounts.create([{"name": name}], time.time() + 3600)
    visitor = Visitor(hub)
    assert visitor.log_in(name, password).status_code == 302
    return visitor


def servers(name):
    """Processes that are a server of this user."""
    number = pwd.getpwnam(name).pw_uid
    processes = [
        process
        for process in psutil.process_iter(["uids", "cmdline"])
        if process.info["uids"] and process.info["uids"].real == number
    ]
    return [
        process
        for process in processes
        if "manyhands.hub.servers.attendee_server" in (process.info["cmdline"] or ())
    ]


@pytest.fixture(scope="module")
def visitor(hub, users):
    """The first user, logged in."""
    return account(hub, users[0])


def test_a_server_is_a_job_of_the_user_in_the_users_home(hub, slurm, users, visitor):
    name = users[0]
    visitor.start_server(name)
    assert jobs(slurm) == {name: "RUNNING"}
    [server] = servers(name)
    environment = server.environ()
    assert environment["SLURM_JOB_NAME"] == job_name(hub.folder) and "SLURM_NODEID" in environment
    assert (
        not {"MANYHANDS_BOARD", "MANYHANDS_PLACES", "MANYHANDS_HUB_SOCKET"} & set(environment)
        and "The board" not in environment["MANYHANDS_NOTICE"]
    )
    assert environment["MANYHANDS_EXCHANGE"] == str(
        hub.folder.parent / "clone" / "classroom" / "exchange"
    )
    home = Path(pwd.getpwnam(name).pw_dir)
    course = {entry["name"] for entry in visitor.get(f"user/{name}/api/contents").json()["content"]}
    assert {"labs", "notebooks", "slides", "work"} <= course and not {
        "solutions",
        "sources",
    } & course
    assert {path.name for path in home.iterdir()} - {
        path.name for path in Path("/etc/skel").iterdir()
    } <= {"manyhands", ".cache"}
    assert stat.S_IMODE((home / "manyhands").stat().st_mode) == 0o700
    assert {path.lstat().st_uid for path in home.rglob("*")} == {pwd.getpwnam(name).pw_uid}
    assert not hub.accounts.home(name).exists()


def test_who_is_no_user_or_no_person_is_told(hub, slurm):
    for name in ("nobody-here", "daemon"):
        visitor = account(hub, name)
        assert NO_USER.format(name=name) in html.unescape(visitor.get("hub/spawn").text)
    assert not servers("daemon")


def test_a_stopped_server_is_no_job_any_more_and_starts_again(hub, slurm, users, visitor):
    name = users[0]
    stopped = visitor.session.delete(
        f"{hub.address}hub/api/users/{name}/server",
        headers={"X-XSRFToken": visitor._xsrf()},
        timeout=60,
    )
    assert stopped.status_code in (202, 204)
    slurm.wait_for_no_job()
    assert not servers(name)
    visitor.start_server(name)


@pytest.fixture(scope="module")
def second(hub, users):
    """The second user, logged in."""
    return account(hub, users[1])


def test_a_job_that_ends_at_once_is_told_with_its_log(users, hub, second):
    name = users[1]
    in_the_way = Path(pwd.getpwnam(name).pw_dir) / "manyhands"
    in_the_way.touch()
    second.get("hub/spawn")
    try:
        wait_for(
            lambda: (
                ENDED.format(log=in_the_way / "server.log")
                in html.unescape(second.get(f"hub/spawn-pending/{name}").text)
            ),
            hub.told,
        )
    finally:
        in_the_way.unlink()


def test_a_revoked_account_loses_its_job_and_keeps_its_home(hub, slurm, users, second):
    name = users[1]
    second.start_server(name)
    mine = Path(pwd.getpwnam(name).pw_dir) / "manyhands" / "work" / "Start_Here.md"
    assert mine.is_file() and jobs(slurm)[name] == "RUNNING"
    hub.command("revoke", name)
    wait_for(lambda: name not in jobs(slurm), hub.told, timeout_s=60)
    wait_for(lambda: "turned out" in hub.logged(name), hub.told, timeout_s=60)
    assert not servers(name) and "/hub/login" in second.get("hub/home").url
    hub.command("purge", name)
    assert name not in hub.accounts.load() and mine.is_file()
    assert [action for action in hub.logged(name) if action != "log-in"] == [
        "create",
        "server started",
        "revoke",
        "server stopped",
        "turned out",
        "purge",
    ]
    assert list((hub.folder / "archive").iterdir()) == []


def test_a_new_hub_ends_what_a_killed_one_has_left(hub, slurm, users):
    ours, other = job_name("/a/killed/hub"), job_name("/another/hub")
    for job in (ours, other):
        slurm.run(
            "runuser",
            "-u",
            users[1],
            "--",
            "sbatch",
            f"--job-name={job}",
            "--chdir=/",
            "--output=/dev/null",
            "--wrap=exec sleep 100",
        )
    remove("/a/killed/hub")
    wait_for(
        lambda: (
            slurm.run("squeue", "--noheader", f"--user={users[1]}", "--format=%j").split()
            == [other]
        ),
        "not that job alone",
        timeout_s=20,
    )
    remove("/another/hub")
    wait_for(lambda: users[1] not in jobs(slurm), "the other job goes on", timeout_s=20)


def test_a_stopped_hub_leaves_no_job(hub, slurm, users):
    """The last test: it stops the hub."""
    assert jobs(slurm) == {users[0]: "RUNNING"}
    assert hub.stop() == 0, hub.told()
    slurm.wait_for_no_job()
    assert not servers(users[0])
