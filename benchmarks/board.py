"""The class board under load, with 200 attendees and with readers of its pages.

Each attendee sends a result a second.

The service is the hub's own process; a stand-in answers for the hub who a reader is. Each result
goes through the socket that rooms see, from a connection with its attendee's user number, so this
needs root. There is no peer; the columns are the median and the 95th percentile.
"""

import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import psutil
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.web import Application, RequestHandler

from manyhands.hub.accounts.table import (
    ATTENDEE,
    FIRST_UID,
    INSTRUCTOR,
    LAST_UID,
    Account,
    Accounts,
)
from manyhands.hub.folder import BOARD, prepare, sockets

from . import few

ATTENDEES, CRITERIA, INSTRUCTORS = few(200, 5), 12, few(3)
PAGES = "/services/board/"
SECONDS, FIRST_S = few(20, 4), few(3)  # the first are not counted
TARGETS = {"answered": 0.2, "seen": 2.5, "cpu": 0.6}
NEEDS_ROOT = (
    "| 200 attendees on the board | run this as root: each sends under a user number of their own |"
    " | | | |"
)


class WhoAmI(RequestHandler):
    """In the place of the hub: a token is its owner's name."""

    def get(self):
        """Answer whose token it is, as the hub does."""
        name = self.request.headers["Authorization"].split()[1]
        self.write(
            {
                "name": name,
                "kind": "user",
                "groups": [],
                "scopes": ["access:services!service=board"],
            }
        )


class Load:
    """What was sent, answered and seen: times in seconds."""

    def __init__(self, folder, people):
        self.path, self.people = str(sockets(folder) / BOARD), people
        self.sent, self.answered, self.seen, self.refused, self.events = {}, [], [], 0, Counter()

    def _connected(self, uid):
        """A connection that has the attendee's user number, as the kernel tells the board."""
        connection = socket.socket(socket.AF_UNIX)
        os.seteuid(uid)
        try:
            connection.connect(self.path)
        finally:
            os.seteuid(0)
        return connection

    async def _send(self, uid, number, counts):
        criteria = [
            {
                "check": "c-check",
                "name": f"c{place}",
                "status": "pass" if place < number % CRITERIA else "fail",
                "message": f"{number}-{uid} " + "expected: [0.25, -1.5] got: [1.0, -6.0] " * 3,
            }
            for place in range(CRITERIA)
        ]
        line = json.dumps({"unit": "90_load", "criteria": criteria, "hints": 1}).encode() + b"\n"
        began = time.perf_counter()
        if counts:
            self.sent[f"{number}-{uid}"] = began
        try:
            reader, writer = await asyncio.open_unix_connection(sock=self._connected(uid))
            writer.write(line)
            taken = "announcement" in json.loads(await reader.readline())
            writer.close()
        except (OSError, ValueError):
            taken = False
        self.refused += not taken
        if counts and taken:
            self.answered.append(time.perf_counter() - began)

    async def attendee(self, uid, delay_s):
        """Send one attendee's results, one a second, from `delay_s` on."""
        start = time.perf_counter() + delay_s
        for number in range(SECONDS):
            await asyncio.sleep(start + number - time.perf_counter())
            await self._send(uid, number, number >= FIRST_S)

    async def reader(self, port, name):
        """Follow a page until the service ends; note when each result is seen on it."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
        # 1.0: without chunks
        writer.write(f"GET {PAGES}events HTTP/1.0\r\nAuthorization: token {name}\r\n\r\n".encode())
        while line := await reader.readline():
            if line.startswith(b"data: {"):
                self.events[name] += 1
                if name.startswith("teacher"):
                    self._look(json.loads(line[6:]))
        writer.close()

    def _look(self, room):
        now = time.perf_counter()
        for row in room["rows"]:
            if row["stuck"] and (began := self.sent.pop(row["stuck"]["message"].split()[0], None)):
                self.seen.append(now - began)


def make_folder(folder):
    """A hub's folder with the accounts and a unit."""
    prepare(folder)
    names = [(f"hand{number:03d}", ATTENDEE) for number in range(ATTENDEES)] + [
        (f"teacher{number}", INSTRUCTOR) for number in range(INSTRUCTORS)
    ]
    people = [
        Account(name, role, FIRST_UID + number, "", "", 0.0, time.time() + 3600)
        for number, (name, role) in enumerate(names)
    ]
    Accounts(folder).path.write_text(
        json.dumps({"next_uid": LAST_UID, "accounts": [asdict(person) for person in people]})
    )
    criteria = [
        {"name": f"c{number}", "text": f"criterion {number}", "points": 1, "status": "pass"}
        for number in range(CRITERIA)
    ]
    shown = {
        "c-check": [{"data": {"application/vnd.manyhands.record+json": {"criteria": criteria}}}]
    }
    for path, content in (
        ("references/90_load.json", {"shown": shown}),
        ("labs/90_load/90_load.ipynb", {"cells": []}),
    ):
        (folder / "course" / path).parent.mkdir(parents=True)
        (folder / "course" / path).write_text(json.dumps(content))
    return people[:ATTENDEES]


async def measure(folder):
    """(Load, the share of one core that the service used)."""
    load = Load(folder, make_folder(folder))
    hub_door, hub_port = bind_unused_port()
    HTTPServer(Application([("/hub/api/user", WhoAmI)])).add_socket(hub_door)
    closed, port = bind_unused_port()
    closed.close()
    environment = {
        **os.environ,
        "JUPYTERHUB_API_URL": f"http://127.0.0.1:{hub_port}/hub/api",
        "JUPYTERHUB_API_TOKEN": "x",
        "JUPYTERHUB_CLIENT_ID": "board",
        "JUPYTERHUB_SERVICE_NAME": "board",
        "JUPYTERHUB_SERVICE_PREFIX": PAGES,
        "JUPYTERHUB_SERVICE_URL": f"http://127.0.0.1:{port}",
    }
    with open(folder / "log", "wb") as log:
        service = subprocess.Popen(
            [sys.executable, "-m", "manyhands.hub.board.service", str(folder)],
            env=environment,
            stdout=log,
            stderr=log,
        )
    try:
        while not Path(load.path).exists():
            if service.poll() is not None:
                raise RuntimeError((folder / "log").read_text()[-3000:])
            await asyncio.sleep(0.1)
        names = [f"teacher{number}" for number in range(INSTRUCTORS)] + [
            person.name for person in load.people
        ]
        readers = [asyncio.ensure_future(load.reader(port, name)) for name in names]
        while not all(load.events[name] for name in names):
            await asyncio.sleep(0.1)
        used = _used(service)
        began = time.perf_counter()
        await asyncio.gather(
            *(
                load.attendee(person.uid, number / ATTENDEES)
                for number, person in enumerate(load.people)
            )
        )
        share = (_used(service) - used) / (time.perf_counter() - began)
        await asyncio.sleep(2)
    finally:
        service.terminate()
        service.wait()
    await asyncio.gather(*readers)
    return load, share


def _used(service):
    times = psutil.Process(service.pid).cpu_times()
    return times.user + times.system


def line(name, times, target):
    """A line of the table: the median and the 95th percentile of the times, and the target."""
    middle, late = statistics.median(times), statistics.quantiles(times, n=20)[-1]
    return (
        f"| {name} | {middle * 1000:.0f} ms | {late * 1000:.0f} ms (95th percentile) | | {target} s"
        f" | {'reached' if late <= target else 'MISSED'} |"
    )


def main():
    """Measure the board under load; needs root, for the user numbers of the attendees."""
    if os.geteuid():
        yield NEEDS_ROOT
        return
    with tempfile.TemporaryDirectory(prefix="mh-board-") as folder:
        os.chmod(folder, 0o711)
        load, share = asyncio.run(measure(Path(folder)))
    what = (
        f"the board, {ATTENDEES} attendees with a result a second each, all with their page open, "
        f"{INSTRUCTORS} instructors"
    )
    yield line(
        f"{what}: answered ({len(load.answered)} results)", load.answered, TARGETS["answered"]
    )
    yield line(
        f"seen on an instructor's page ({len(load.seen)} of them)", load.seen, TARGETS["seen"]
    )
    yield (
        f"| results that were not taken | {load.refused} | | | 0 | "
        f"{'reached' if not load.refused else 'MISSED'} |"
    )
    reached = "reached" if share <= TARGETS["cpu"] else "MISSED"
    yield f"| share of one core | {share:.2f} | | | {TARGETS['cpu']} | {reached} |"


if __name__ == "__main__":
    print("\n".join(main()))
