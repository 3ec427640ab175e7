"""Services of a running hub answer everybody, whatever one person sends: refused requests in pairs; and the watchdog, which ends a service whose loop is held."""

import os
import signal
import time

import psutil
import pytest
import refused
import requests
from hub.running_hub import Hub, Visitor, small_course, wait_for

SOON_S = 15  # a page that takes longer is not answered; on an idle machine it takes 0.02 s
PATIENCE_S = 3
HELD = f"""
import signal, sys, time
if sys.argv[0] == "-m":
    signal.signal(signal.SIGUSR1, lambda *_: time.sleep(10**6))  # holds the event loop, as any synchronous query would
    import manyhands.hub.services.watchdog as watchdog
    watchdog.PATIENCE_S = {PATIENCE_S}
"""


@pytest.fixture(scope="module")
def hub(classroom, folder):
    """A running hub whose services hold their loop on a signal, and whose watchdog waits for a short time."""
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
    accounts = dict(zip(("ann", "ben"), hub.create(2))) | {"tea": hub.create(1, "1h", "--prefix", "teacher", "--role", "instructor")[0]}
    found = {}
    for who, (name, password) in accounts.items():
        found[who] = Visitor(hub)
        found[who].log_in(name, password)
        assert found[who].get("services/board/").status_code == 200
    assert found["tea"].get("services/formgrader/").status_code == 200
    return found


def cookies_at(visitor, path):
    """{name: value} of the cookies that this visitor's browser sends there."""
    return {cookie.name: cookie.value for cookie in visitor.session.cookies if path.startswith(cookie.path)}


def send(hub, service, request, own, foreign):
    """The status of an answer, 0 for none; the cookies that it sets go into `own`."""
    headers, body = refused.headers_and_body(request, own, foreign)
    try:
        with requests.request(request[0], f"{hub.address}services/{service}/{request[1]}", headers=headers, data=body, allow_redirects=False,
                              timeout=SOON_S, stream=True) as answer:
            own.update(answer.cookies)
            return answer.status_code
    except requests.RequestException:
        return 0


def send_pairs(hub, service, paths, attacker, others, count):
    """Send pairs, and after each one load pages as somebody else: what was answered too late, or with a fault of ours."""
    cookies, foreign = cookies_at(attacker, f"/services/{service}/"), cookies_at(others[0][0], others[0][1]).get("_xsrf", "")
    assert cookies
    wrong = []
    for pair in refused.pairs(paths, count):
        own = dict(cookies)
        codes = [send(hub, service, request, own, foreign) for request in pair]
        for other, path in others:
            began = time.monotonic()
            try:
                loaded = other.session.get(hub.address + path.removeprefix("/"), timeout=SOON_S).status_code
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


def service_of(hub, module):
    """The process of a service; None while there is none."""
    def is_it(process):
        try:
            return module in process.cmdline()
        except psutil.Error:
            return False

    return next(filter(is_it, psutil.Process(hub.process.pid).children(recursive=True)), None)


@pytest.mark.parametrize("module, path", [("manyhands.hub.board.service", "services/board/"), ("manyhands.hub.services.check_queue", "")])
def test_a_service_whose_loop_is_held_is_restarted_and_keeps_what_it_knew(hub, people, module, path):
    page = people["tea"].get("services/board/").text
    field = page.partition('name="_xsrf" value="')[2].partition('"')[0]
    people["tea"].session.post(f"{hub.address}services/board/announcement", data={"_xsrf": field, "text": "Lunch at 12"}, timeout=60)
    before = service_of(hub, module)
    os.kill(before.pid, signal.SIGUSR1)
    began = time.monotonic()
    psutil.wait_procs([before], timeout=60)
    assert time.monotonic() - began > PATIENCE_S / 2 and not before.is_running()
    after = wait_for(lambda: service_of(hub, module), hub.told, patience_s=60)
    assert after.pid != before.pid
    wait_for(lambda: people["ben"].get(path).status_code == 200, hub.told, patience_s=60)
    assert "Lunch at 12" in (hub.folder / "board.jsonl").read_text()
    assert "Timeout (0:00:03)!" in (hub.folder / "hub.log").read_text(), "the log shows where each thread was"
