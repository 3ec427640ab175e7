"""The board's service without a hub.

The socket for results, who sees what, what is sent to a page, and what a restart keeps.
"""

import asyncio
import json
import re
import socket
import time
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest
from tornado.httpclient import AsyncHTTPClient

from board_alone import UNIT, pages, write_accounts, write_unit
from manyhands.grading.hub_client import class_board as sender
from manyhands.hub.board import door
from manyhands.hub.board import service as service_module
from manyhands.hub.board.files import NAME
from manyhands.hub.board.service import Door, Service
from manyhands.shared import hub_client

ROLES = {"ann": "attendee", "ben": "attendee", "tea": "instructor", "sid": "assistant"}
PASSED = [{"check": "mean-check", "name": "values", "status": "pass"}]
FAILED = [
    {
        "check": "mean-check",
        "name": "values",
        "status": "fail",
        "message": "<img src=x onerror=alert(1)>",
    }
]


@pytest.fixture
def folder(tmp_path):
    """A hub's folder with four accounts and a unit of two criteria, the second without a record."""
    write_accounts(tmp_path, ROLES)
    write_unit(
        tmp_path, {"mean-check": [("values", "gradients are means", 2)], "printed-check": []}
    )
    return tmp_path


def account(service, name):
    return service.people.of_name(name)


def line(criteria, unit=UNIT, **more):
    return json.dumps({"unit": unit, "criteria": criteria, **more})


def rows(service, name):
    return json.loads(service.view(account(service, name), ""))["rows"]


def test_roles_see_the_room_and_an_attendee_the_own_row(folder):
    service = Service(folder)
    for name in ("ann", "ben"):
        assert service.take(account(service, name), line(FAILED)) == {"announcement": ""}
    assert (
        [row["name"] for row in rows(service, "tea")]
        == [row["name"] for row in rows(service, "sid")]
        == ["ann", "ben"]
    )
    assert [row["name"] for row in rows(service, "ben")] == ["ben"] and rows(service, "ben")[0][
        "cells"
    ] == "f-"
    assert json.loads(service.view(account(service, "tea"), ""))["max"] == 4


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "no json",
        "[" * 60_000,
        '{"unit": "../../accounts", "criteria": []}',
        '{"unit": {"a": 1}, "criteria": []}',
        '{"unit": "99_none", "criteria": []}',
        '{"unit": "06_ddp"}',
        "1" * 5000,
    ],
    ids=lambda bad: bad[:20],
)
def test_what_is_no_result_is_answered_with_the_reason(folder, bad):
    service = Service(folder)
    assert service.take(account(service, "ann"), bad)["error"]
    assert not service.board.rows


def test_a_flood_is_limited_for_its_sender_only(folder):
    service = Service(folder)
    answers = [service.take(account(service, "ann"), line(FAILED)) for _ in range(1000)]
    taken = sum("error" not in answer for answer in answers)
    assert (
        service_module.AT_ONCE <= taken < 100 and {"error": service_module.TOO_MANY} in answers[-2:]
    )
    assert service.take(account(service, "ben"), line(PASSED)) == {"announcement": ""}


def test_one_who_tries_again_often_after_a_flood_soon_gets_through(folder, monkeypatch):
    now, service = [0.0], Service(folder)
    monkeypatch.setattr(service_module.time, "monotonic", lambda: now[0])
    for _ in range(100):
        service.take(account(service, "ann"), line(FAILED))
    answers = []
    for _ in range(20):
        now[0] += 0.25
        answers.append(service.take(account(service, "ann"), line(FAILED)))
    # two a second for five seconds
    assert 9 <= sum("error" not in answer for answer in answers) <= 11


def test_a_restart_loses_nothing_and_a_torn_line_does_not_matter(folder, capsys):
    service = Service(folder)
    service.take(account(service, "ann"), line(FAILED, hints=1))
    service.take(account(service, "ben"), line(PASSED))
    service.announce(account(service, "tea"), "lunch")
    with open(folder / NAME, "ab") as file:
        file.write(b'{"uid": 7')
    assert (folder / NAME).stat().st_mode & 0o077 == 0
    again = Service(folder)
    assert again.board.rows == service.board.rows and again.board.announcement["text"] == "lunch"
    assert "skipped a line of" in capsys.readouterr().err
    assert len((folder / NAME).read_text().splitlines()) == 3, "written anew"


def test_the_file_does_not_grow_for_ever(folder, monkeypatch):
    monkeypatch.setattr("manyhands.hub.board.files.LARGEST_BYTES", 4000)
    monkeypatch.setattr(service_module, "AT_ONCE", 10**6)
    service = Service(folder)
    for _ in range(500):
        service.take(account(service, "ann"), line(FAILED))
    assert (folder / NAME).stat().st_size < 8000
    assert Service(folder).board.rows == service.board.rows


def with_door(folder, use):
    """`use(path, service)` in a thread while the socket is open; its result."""

    async def run():
        service, path = Service(folder), folder / "board.sock"
        server = await Door(service).listen(path)
        async with server:
            return await asyncio.to_thread(use, path, service)

    return asyncio.run(run())


GRADE = SimpleNamespace(
    unit=UNIT,
    verdict="",
    criteria=[
        SimpleNamespace(
            check="mean-check",
            name="values",
            status="fail",
            detail={
                "rank": 2,
                "expected": "1",
                "got": "2",
                "mistake": "You summed,\nbut did not divide.",
            },
        )
    ],
)


def test_a_check_tells_the_board_and_learns_what_is_announced(folder, monkeypatch):
    def use(path, service):
        service.announce(account(service, "tea"), "lunch at 12")
        monkeypatch.setenv(hub_client.BOARD, str(path))
        monkeypatch.setattr(hub_client, "TIMEOUT_S", 60)
        return sender.report(GRADE, 3), rows(service, "tea")[0]

    announcement, row = with_door(folder, use)
    assert announcement == "lunch at 12"
    assert (row["name"], row["cells"], row["hints"], row["messages"]) == (
        "ann",
        "f-",
        3,
        {"0": "You summed, but did not divide."},
    )


def test_a_check_does_not_wait_for_a_board_that_is_deaf_or_gone(folder, monkeypatch):
    assert sender.report(GRADE, 0) == "", "outside a hub"
    monkeypatch.setenv(hub_client.BOARD, str(folder / "nothing.sock"))
    assert sender.report(GRADE, 0) == ""
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(folder / "deaf.sock"))
        deaf.listen()
        monkeypatch.setenv(hub_client.BOARD, str(folder / "deaf.sock"))
        began = time.monotonic()
        assert sender.report(GRADE, 0) == ""
        assert time.monotonic() - began < 60


def test_the_socket_ends_with_whom_it_does_not_know_and_what_is_too_long(folder, monkeypatch):
    def answer(path, sent):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(120)
            connection.connect(str(path))
            try:
                connection.sendall(sent)
                return connection.recv(1000)
            except (BrokenPipeError, ConnectionResetError):
                return b""

    def use(path, service):
        monkeypatch.setattr(door, "TIMEOUT_S", 0.2)
        answers = [answer(path, b'{"half')]
        monkeypatch.setattr(door, "TIMEOUT_S", 60)
        answers += [answer(path, b"x" * 200_000), answer(path, line(PASSED).encode() + b"\n")]
        crowd = [socket.socket(socket.AF_UNIX) for _ in range(door.CONNECTIONS)]
        for client in crowd:
            client.connect(str(path))
        answers.append(answer(path, line(PASSED).encode() + b"\n"))
        for client in crowd:
            client.close()
        write_accounts(folder, ROLES, ann={"revoked": True})
        return [*answers, answer(path, line(PASSED).encode() + b"\n")]

    assert with_door(folder, use) == [b"", b"", b'{"announcement": ""}\n', b"", b""]


def with_pages(folder, use):
    """`await use(get, service)` with the pages open.

    get(name, path, **options) answers tornado's response.
    """

    async def run():
        service = Service(folder)
        async with pages(service) as address:

            async def get(name, path, cookie="", **options):
                headers = {"Cookie": cookie} | ({"Authorization": f"token {name}"} if name else {})
                return await AsyncHTTPClient(force_instance=True).fetch(
                    address + path,
                    headers=headers,
                    raise_error=False,
                    follow_redirects=False,
                    request_timeout=120,
                    **options,
                )

            return await use(get, service)

    return asyncio.run(run())


def test_who_may_open_what(folder):
    async def announce(get, name):
        """As a browser does: with the cookie and the hidden field of the page."""
        page = await get(name, "")
        [field] = re.findall('name="_xsrf" value="([^"]+)"', page.body.decode())
        return await get(
            name,
            "announcement",
            page.headers["Set-Cookie"].split(";")[0],
            method="POST",
            body=urlencode({"_xsrf": field, "text": f"by {name}"}),
        )

    async def use(get, service):
        service.take(account(service, "ann"), line(FAILED))
        codes = {}
        for name in ("ann", "sid", "tea"):
            codes[name] = [
                answer.code
                for answer in (
                    await get(name, ""),
                    await get(name, f"results.csv?unit={UNIT}"),
                    await announce(get, name),
                )
            ]
        codes["nobody"] = [
            (await get(None, path)).code for path in ("", "events", f"results.csv?unit={UNIT}")
        ]
        page, table = await get("ann", ""), await get("tea", f"results.csv?unit={UNIT}")
        write_accounts(folder, ROLES, tea={"revoked": True})
        codes["revoked"] = [
            (await get("tea", path)).code for path in ("", f"results.csv?unit={UNIT}", "events")
        ]
        return codes, page, table, service.board.announcement

    codes, page, table, announcement = with_pages(folder, use)
    assert codes == {
        "ann": [200, 403, 403],
        "sid": [200, 200, 302],
        "tea": [200, 200, 302],
        "nobody": [302, 403, 302],
        "revoked": [403, 403, 403],
    }
    assert announcement["text"] == "by tea" and announcement["by"] == "tea"
    assert (
        "default-src 'self'" in page.headers["Content-Security-Policy"]
        and 'action="announcement"' not in page.body.decode()
    )
    assert "gradients are means" in table.body.decode("utf-8-sig").splitlines()[0]


def test_a_form_of_another_page_cannot_announce(folder):
    async def use(get, service):
        return (await get("tea", "announcement", method="POST", body="text=forged")).code

    assert with_pages(folder, use) == 403


def test_a_burst_of_results_is_one_event(folder, monkeypatch):
    monkeypatch.setattr(service_module, "REFRESH_S", 0.1)
    monkeypatch.setattr(service_module, "AT_ONCE", 10**6)

    async def use(get, service):
        received = []
        stream = asyncio.ensure_future(
            get("tea", "events", streaming_callback=lambda chunk: received.append(chunk.decode()))
        )

        async def until_rooms(count):
            while "".join(received).count("event: room") < count and not stream.done():
                await asyncio.sleep(0.02)

        await until_rooms(1)  # nobody has checked
        for _ in range(300):
            service.take(account(service, "ann"), line(FAILED))
        service.take(account(service, "ben"), line(PASSED))
        await until_rooms(2)
        await asyncio.sleep(0.5)
        write_accounts(folder, ROLES, tea={"revoked": True})
        await stream
        return "".join(received)

    events = [
        part.partition("\ndata: ")[::2] for part in with_pages(folder, use).strip().split("\n\n")
    ]
    assert [kind for kind, _ in events] == ["event: clock", "event: room", "event: room"]
    assert [row["cells"] for row in json.loads(events[-1][1])["rows"]] == ["f-", "p-"]


def test_a_stream_ends_with_the_account(folder, monkeypatch):
    monkeypatch.setattr(service_module, "REFRESH_S", 0.05)

    async def use(get, service):
        stream = asyncio.ensure_future(get("ann", "events"))
        while not service_module.Events.streams["ann"] and not stream.done():
            await asyncio.sleep(0.02)
        write_accounts(folder, ROLES, ann={"revoked": True})
        return (await asyncio.wait_for(stream, 60)).code, service_module.Events.streams["ann"]

    assert with_pages(folder, use) == (200, 0)
