"""The service `hub`: a class whose hub runs in a container.

Each attendee's server runs in another.
"""

import os
import re
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from engines import ROOT, wait_for

from hub.running_hub import Visitor
from manyhands.grading.store.grade_journal import Journal
from manyhands.hub.accounts.table import Accounts

pytestmark = pytest.mark.containers

# the label of servers' containers (dockerspawner, and so `manyhands.hub.servers.docker`, is in the
# hub's image only)
HUB = "manyhands.hub"

LOOK = """
import os, pathlib, socket
print(os.getuid(), os.getgid(), os.getgroups() in ([], [os.getgid()]), sorted(name for _, name in socket.if_nameindex()))
print([line.split()[1] for line in open("/proc/self/status") if line.startswith(("CapEff", "CapBnd", "NoNewPrivs"))])
for place in ("/opt/manyhands/x", "/course/x", "/usr/x", "/run/manyhands/x", "/etc/x"):
    try:
        pathlib.Path(place).write_text("x")
        print("written:", place)
    except OSError:
        pass
print(sorted(str(path) for place in ("/home", "/clone", "/course") for path in pathlib.Path(place).glob("*")))
"""


class InCompose:
    """The service, seen as tests of the hub see one."""

    def __init__(self, engine, project, folder):
        self.engine, self.project, self.folder, self.accounts = (
            engine,
            project,
            folder,
            Accounts(folder),
        )

    def up(self):
        """Start it; wait until it is open."""
        self.engine.compose(self.project, "--profile", "hub", "up", "--detach", "hub")
        wait_for(lambda: "The hub is open" in self.told(), 120)
        self.address = f"http://127.0.0.1:{os.environ['MANYHANDS_PORT']}/"

    def told(self):
        return self.engine.compose(self.project, "logs", "--no-color", "hub")

    def command(self, *words):
        return self.inside_hub("manyhands", "accounts", *words)

    def inside_hub(self, *command):
        return self.engine.compose(self.project, "exec", "-T", "hub", *map(str, command))

    def create(self, count, *words):
        """New accounts: [(name, password)]."""
        table = Path(
            re.search(
                r"\S+accounts\.csv", self.command("create", count, "--expires", "1h", *words)
            )[0]
        )
        return [
            (row[0], row[3])
            for row in (
                line.split(",") for line in table.read_text(encoding="utf-8-sig").splitlines()[1:]
            )
        ]

    def servers(self):
        """Whose servers have a container."""
        containers = self.engine.docker(
            "ps", "--all", "--filter", f"label={HUB}={self.folder}", "--format", "{{.Names}}"
        ).split()
        return sorted(name.removeprefix("jupyter-") for name in containers)

    def container(self, name):
        return self.engine.facts("container", f"jupyter-{name}")

    def inside(self, name, *command):
        return self.engine.docker("exec", self.container(name)["Id"], *command)


@pytest.fixture
def hub(engine, cpu, hub, project, monkeypatch):
    folder = Path(tempfile.mkdtemp(prefix="mh-class-"))
    folder.chmod(0o711)
    monkeypatch.setenv("MANYHANDS_HUB", str(folder))
    with socket.create_server(("", 0)) as first, socket.create_server(("", 0)) as second:
        for name, free in (("MANYHANDS_PORT", first), ("MANYHANDS_SERVERS_PORT", second)):
            monkeypatch.setenv(name, str(free.getsockname()[1]))
    if "DOCKER_HOST" in os.environ:
        monkeypatch.setenv("MANYHANDS_ENGINE", urlsplit(os.environ["DOCKER_HOST"]).path)
    running = InCompose(engine, project, folder)
    running.up()
    yield running
    engine.compose(project, "--profile", "hub", "down", "--volumes")
    assert running.servers() == []
    shutil.rmtree(folder)


def working(hub, name, password):
    visitor = Visitor(hub)
    assert visitor.log_in(name, password).status_code == 302
    visitor.start_server(name)
    return visitor


def test_a_class(hub):
    (first, first_password), (second, second_password) = hub.create(2)
    visitor = working(hub, first, first_password)
    working(hub, second, second_password)
    assert visitor.enter(second) == 403

    uids = {name: hub.accounts.get(name).uid for name in (first, second)}
    looked = hub.inside(first, "python", "-c", LOOK).splitlines()
    assert looked == [
        f"{uids[first]} {uids[first]} True ['lo']",
        str(["0" * 16, "0" * 16, "1"]),
        str(
            [
                *(
                    f"/course/{name}"
                    for name in ("facts.json", "labs", "notebooks", "references", "slides")
                ),
                f"/home/{first}",
                "/home/learner",
            ]
        ),
    ]
    facts = hub.container(first)["HostConfig"]
    assert (
        facts["Memory"] == facts["MemorySwap"] == 4 * 2**30
        and facts["PidsLimit"] == 1000
        and facts["ReadonlyRootfs"]
    ), facts
    assert facts["NetworkMode"] == "none" and facts["CpuQuota"] == 2 * facts["CpuPeriod"], facts
    assert os.stat(hub.folder / "homes" / first).st_uid == uids[first]

    hub.command("revoke", first)
    wait_for(lambda: hub.servers() == [second])
    wait_for(lambda: list((hub.folder / "archive").glob(f"{first}-*.tar.gz")))
    assert "/user/" not in visitor.get(f"user/{first}/lab").url.replace("next=", ""), (
        "still admitted"
    )
    assert "server stopped" in (hub.folder / "log.jsonl").read_text()


def test_a_hub_that_was_killed_leaves_no_server_of_its_own_to_the_next(engine, hub):
    [(name, password)] = hub.create(1)
    working(hub, name, password)
    before = hub.container(name)["Id"]
    engine.compose(hub.project, "kill", "hub")
    hub.engine.compose(hub.project, "--profile", "hub", "rm", "--force", "--stop", "hub")
    hub.up()
    wait_for(lambda: hub.servers() == [])
    visitor = working(hub, name, password)
    assert visitor.enter(name) == 200 and hub.container(name)["Id"] != before


def test_the_hub_grades_in_containers(hub):
    """The hub's own container has no frameworks and no bubblewrap.

    The gradebook is where the hub's formgrader looks.
    """
    for student, part in (("alice", "labs"), ("bob", "solutions")):
        folder = hub.folder / "classroom" / "submitted" / student / "00_preflight"
        shutil.copytree(ROOT / part / "00_preflight", folder)
        (folder / "timestamp.txt").write_text("2026-11-22 12:00:00 UTC")
    output = hub.inside_hub("manyhands", "grade", "00")
    assert (
        hub.inside_hub(
            "python",
            "-c",
            "from manyhands.isolation import choose; print(choose.contained())",
        ).strip()
        == "True"
    )
    journal = Journal(hub.folder / "classroom" / "grades" / "00_preflight")
    assert {
        student: journal.current(student)["grade"]["points"] for student in ("alice", "bob")
    } == {"alice": 0, "bob": 10}, output

    [(name, password)] = hub.create(1, "--role", "instructor")
    teacher, formgrader = Visitor(hub), "services/formgrader/formgrader/"
    teacher.log_in(name, password)
    assert teacher.get(formgrader + "manage_assignments").status_code == 200
    xsrf = next(
        cookie.value
        for cookie in teacher.session.cookies
        if cookie.name == "_xsrf" and "formgrader" in cookie.path
    )
    pressed = teacher.session.post(
        hub.address + formgrader + "api/submission/00_preflight/bob/autograde",
        headers={"X-XSRFToken": xsrf},
        timeout=600,
    )
    assert pressed.status_code == 200 and pressed.json()["success"], pressed.text
    assert len(journal.history("bob")) == 1, "the same grade again"


def test_a_check_is_compared_with_the_reference_that_the_service_makes(engine, hub):
    [(name, password)] = hub.create(1)
    working(hub, name, password)
    engine.compose(hub.project, "--profile", "hub", "up", "--detach", "references")
    wait_for((hub.folder / "course" / "references" / "00_preflight.json").is_file, 600)
    engine.compose(hub.project, "rm", "--force", "--stop", "references")
    checked = subprocess.run(
        ["docker", "exec", hub.container(name)["Id"], "manyhands", "check", "00"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert (
        "00_preflight: 0 of 10 points" in checked.stdout and "on your own server" in checked.stdout
    ), checked.stdout + checked.stderr
