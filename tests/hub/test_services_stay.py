"""Services of a running hub answer everybody, whatever one person sends.

Here that is refused requests in pairs; and the watchdog, which ends a service whose loop is held.
"""

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psutil
import pytest
import requests

import refused
from hub.messages import SOON_S, ask, cookies_at, from_sandbox, send
from hub.running_hub import Hub, Visitor, small_course, wait_for
from manyhands.hackathon.event import event_settings

TIMEOUT_S, BEAT_S, FLOOD_S = 3, 1, 8
HELD = f"""
import signal, sys, time
if sys.argv[0] == "-m":
    import manyhands.hub.services.watchdog as watchdog
    signal.signal(signal.SIGUSR1, lambda *_: time.sleep(10**6))  # holds the event loop, as any synchronous query would
    signal.signal(signal.SIGUSR2, lambda *_: setattr(watchdog, "TIMEOUT_S", {TIMEOUT_S}))
"""


@pytest.fixture(scope="module")
def hub(classroom, folder):
    """A running hub whose services hold their loop on a signal.

    Their watchdog waits for a shorter time after a different signal.
    """
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(HELD)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder / "site"))
        running = Hub(small_course(folder / "clone"), folder / "hub")
        running.wait_until_open()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def people(hub):
    """{who: a logged-in visitor}."""
    accounts = dict(zip(("ann", "ben"), hub.create(2), strict=True)) | {
        "tea": hub.create(1, "1h", "--prefix", "teacher", "--role", "instructor")[0]
    }
    visitors = {}
    for who, (name, password) in accounts.items():
        visitors[who] = Visitor(hub)
        visitors[who].log_in(name, password)
        assert visitors[who].get("services/board/").status_code == 200
    assert visitors["tea"].get("services/formgrader/").status_code == 200
    return visitors


def send_pairs(hub, service, paths, attacker, others, count):
    """Send pairs, and after each one load pages as somebody else.

    Gives what was answered too late, or with a fault of ours.
    """
    cookies, foreign = (
        cookies_at(attacker, f"/services/{service}/"),
        cookies_at(others[0][0], others[0][1]).get("_xsrf", ""),
    )
    assert cookies
    wrong = []
    for pair in refused.pairs(paths, count):
        own = dict(cookies)
        codes = [send(hub, service, request, own, foreign) for request in pair]
        for other, path in others:
            began = time.monotonic()
            try:
                loaded = other.session.get(
                    hub.address + path.removeprefix("/"), timeout=SOON_S
                ).status_code
            except requests.RequestException:
                loaded = 0
            if loaded != 200:
                return [*wrong, (pair, codes, path, loaded, time.monotonic() - began)]
        if any(code == 0 or code >= 500 for code in codes):
            wrong.append((pair, codes))
    return wrong


def test_refused_requests_in_pairs_stop_no_page_of_others(hub, people):
    others = [(people["ben"], "/services/board/")]
    assert send_pairs(hub, "board", refused.BOARD, people["ann"], others, 200) == []
    assert "forged" not in (hub.folder / "board.jsonl").read_text()


def test_refused_requests_in_pairs_stop_no_page_of_formgrader(hub, people):
    teacher = [(people["tea"], "/services/formgrader/formgrader/api/assignments")]
    assert send_pairs(hub, "formgrader", refused.FORMGRADER, people["tea"], teacher, 40) == []
    assert "forged" not in people["tea"].get("services/formgrader/formgrader/api/assignments").text


@pytest.mark.parametrize(
    "path", ["hub/login", "services/board/announcement", "services/formgrader/oauth_callback"]
)
def test_a_cookie_of_backslashes_from_anybody_costs_nothing(hub, people, path):
    """Python 3.11.7 takes three seconds for each; eight of them held the hub for half a minute."""
    bomb = {
        "Cookie": '_xsrf="' + "\\" * 14_000 + '"',
        "Content-Type": "application/x-www-form-urlencoded",
    }
    with ThreadPoolExecutor(8) as pool:
        sent = [
            pool.submit(
                requests.post,
                hub.address + path,
                headers=bomb,
                data="_xsrf=1",
                allow_redirects=False,
                timeout=120,
            )
            for _ in range(8)
        ]
        time.sleep(0.5)
        began = time.monotonic()
        assert (
            people["ben"].get("hub/home").status_code
            == people["ben"].get("services/board/").status_code
            == 200
        )
        took_s = time.monotonic() - began
        assert {answer.result().status_code for answer in sent} <= {403, 405}
    assert took_s < SOON_S


@pytest.mark.parametrize("path", ["hub/login", "services/board/announcement"])
def test_a_large_body_is_refused(hub, people, path):
    began = time.monotonic()
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    with suppress(requests.ConnectionError):  # it is cut off
        answer = requests.post(
            hub.address + path,
            data="username=" + "%EF%B7%BA" * 1_000_000,
            headers=form,
            allow_redirects=False,
            timeout=120,
        )
        assert answer.status_code >= 400
    assert people["ben"].get("hub/home").status_code == 200 and time.monotonic() - began < SOON_S


def test_a_flood_of_one_team_and_of_refused_requests_keeps_nobody_else_from_the_board(hub, people):
    """Others are served while one team floods the hub.

    For some seconds it hands in and withdraws, and a browser sends refused requests, as fast as
    they can.
    """
    (bad, _), (good, _) = hub.create(2)
    path = event_settings.write_template(hub.folder / "hackathon")
    text = "\n".join(
        "begins = 2020-01-01T09:00:00Z" if line.startswith("begins") else line
        for line in path.read_text().split("\n")
    )
    path.write_text(
        text.split('"Example"')[0] + f'"Flood" = ["{bad}"]\n"行列の分散" = ["{good}"]\n'
    )
    until = time.monotonic() + FLOOD_S

    def flood():
        count = 0
        while time.monotonic() < until:
            count += bool(
                ask(hub, "submit", "slow_links", "# " + "x" * 19_000 + str(count), timeout_s=5)
            )
            ask(hub, "withdraw", count, timeout_s=5)
        return count

    floods = [from_sandbox(hub, bad, flood) for _ in range(4)]
    cookies = cookies_at(people["ann"], "/services/board/")
    with ThreadPoolExecutor(4) as pool:
        sent = [
            pool.submit(
                lambda part=part: [
                    send(hub, "board", request, dict(cookies), "")
                    for pair in refused.pairs(refused.BOARD, 400)[part::4]
                    for request in pair
                    if time.monotonic() < until
                ]
            )
            for part in range(4)
        ]
        waits = []
        while time.monotonic() < until:
            began = time.monotonic()
            assert people["ben"].get("services/board/").status_code == 200
            answer = from_sandbox(
                hub, good, lambda: ask(hub, "submit", "slow_links", f"# {len(waits)}")
            )()
            assert (
                "Entry" in str(answer)
                or "entries in the last hour" in str(answer)
                or "too many" in str(answer)
            ), answer
            waits.append(time.monotonic() - began)
            time.sleep(0.2)
        codes = [code for future in sent for code in future.result()]
    asked = sum(flood() for flood in floods)
    print(
        f"{asked} messages of the flood were answered, {len(codes)} requests refused; others waited"
        f" {max(waits):.2f} s at most, {len(waits)} times"
    )
    assert asked > 20 and len(codes) > 20 and 0 not in codes
    assert max(waits) < SOON_S and len(waits) > 1
    lines = [
        json.loads(line)
        for line in (hub.folder / "hackathon" / "event.jsonl").read_text().splitlines()
    ]
    assert sum(line["do"] == "submit" and line["team"] == "行列の分散" for line in lines) > 0
    assert sum(line["do"] == "submit" and line["team"] == "Flood" for line in lines) <= 6 + 3


def service_of(hub, module):
    """The process of a service; None while there is none."""

    def is_it(process):
        try:
            return module in process.cmdline()
        except psutil.Error:
            return False

    return next(filter(is_it, psutil.Process(hub.process.pid).children(recursive=True)), None)


@pytest.mark.parametrize(
    "module, path",
    [
        ("manyhands.hub.board.service", "services/board/"),
        ("manyhands.hub.services.check_queue", ""),
    ],
)
def test_a_service_whose_loop_is_held_is_restarted_and_keeps_what_it_knew(
    hub, people, module, path
):
    page = people["tea"].get("services/board/").text
    field = page.partition('name="_xsrf" value="')[2].partition('"')[0]
    people["tea"].session.post(
        f"{hub.address}services/board/announcement",
        data={"_xsrf": field, "text": "Lunch at 12"},
        timeout=60,
    )
    before = service_of(hub, module)
    os.kill(before.pid, signal.SIGUSR2)
    time.sleep(2 * BEAT_S)
    os.kill(before.pid, signal.SIGUSR1)
    wait_for(
        lambda: not before.is_running() or before.status() == psutil.STATUS_ZOMBIE,
        hub.told,
        timeout_s=120,
    )
    after = wait_for(lambda: service_of(hub, module), hub.told, timeout_s=60)
    assert after.pid != before.pid
    wait_for(lambda: people["ben"].get(path).status_code == 200, hub.told, timeout_s=60)
    assert "Lunch at 12" in (hub.folder / "board.jsonl").read_text()
    assert "Timeout (0:00:03)!" in (hub.folder / "hub.log").read_text(), (
        "the log shows where each thread was"
    )
