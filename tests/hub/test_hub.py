"""A hub as a class uses it.

Log-in, the start page, roles, the wall between two attendees' servers, and the end of an account.
"""

import json
import os
import re
import socket
import stat
import tarfile
import time
from pathlib import Path

import psutil
import pytest
import requests

from hub.running_hub import Hub, Visitor, small_course, wait_for
from in_browser import ALL_RULES, shuts_out
from manyhands.hub.accounts import account_log, archive
from manyhands.hub.folder import sockets
from manyhands.hub.services import check_queue
from manyhands.units import minutes_text, units


@pytest.fixture(scope="module")
def hub(classroom, folder):
    """As the others', but a home may have 100 MB, and there is no time to tidy up."""
    running = Hub(
        small_course(folder / "clone"),
        folder / "hub",
        "--disk",
        "100M",
        "--tidy-up",
        "0",
        "--title",
        "Many <b>hands</b>, Tokyo",
    )
    running.wait_until_open()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def people(hub):
    """{role: (name, password)} of two attendees, an assistant and an instructor."""
    first, second = hub.create(2)
    [assistant] = hub.create(1, "1h", "--prefix", "helper", "--role", "assistant")
    [instructor] = hub.create(1, "1h", "--prefix", "teacher", "--role", "instructor")
    return {"first": first, "second": second, "assistant": assistant, "instructor": instructor}


@pytest.fixture(scope="module")
def first(hub, people):
    """The first attendee, logged in, with a server."""
    return working(hub, *people["first"])


@pytest.fixture(scope="module")
def second(hub, people):
    return working(hub, *people["second"])


def working(hub, name, password):
    visitor = Visitor(hub)
    assert visitor.log_in(name, password).status_code == 302
    visitor.start_server(name)
    return visitor


def excluded(page):
    """What keeps people out of a page of the hub, in the dark and in the light."""
    findings = []
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(
            "scheme => document.documentElement.dataset.bsTheme === scheme", arg=scheme
        )
        findings += shuts_out(
            page, [*ALL_RULES, "best-practice"], ("moderate", "serious", "critical")
        )
    return findings


def test_log_in_from_paper_lands_on_start_here(hub, people, page, screenshots):
    name, password = people["first"]
    page.goto(hub.address)
    assert "Many <b>hands</b>, Tokyo" in page.inner_text("body") and "Capitals" in page.inner_text(
        "body"
    )
    assert page.locator("#jupyterhub-logo img").evaluate(
        "logo => logo.naturalWidth > 0 && logo.complete"
    )
    page.fill("#username_input", f" {name.upper()} ")
    page.fill("#password_input", password.replace("-", " "))
    page.screenshot(path=screenshots / "hub_log_in.png")
    page.route("**/progress*", lambda route: route.abort())  # so that the page stays
    page.click("#login_submit")
    page.get_by_role("heading", name="Your server is starting").wait_for(timeout=60_000)
    assert excluded(page) == []
    page.unroute("**/progress*")
    page.reload()
    start = page.locator(".jp-MarkdownViewer")
    start.locator("h1").wait_for(timeout=240_000)
    page.wait_for_timeout(2000)
    page.screenshot(path=screenshots / "hub_start_here.png")
    assert "manyhands: distributed training" in start.inner_text()
    row = start.locator("tr").filter(has=page.locator("td:first-child:text-is('00')")).inner_text()
    assert minutes_text(units(Path(__file__).resolve().parents[2])[0]) in row, (
        "minutes, though there are no sources"
    )
    files = page.locator(".jp-DirListing-itemText").all_inner_texts()
    assert not {"solutions", "sources"} & set(files)
    assert page.locator(".jp-Dialog").count() == 0


@pytest.mark.parametrize("width", [1280, 390])
def test_the_log_in_page_has_the_courses_colours_one_logo_and_nothing_that_is_missing(
    hub, page, screenshots, width
):
    missing = []
    page.on("response", lambda answer: answer.status >= 400 and missing.append(answer.url))
    page.set_viewport_size({"width": width, "height": 844})
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.goto(f"{hub.address}hub/login")
        page.wait_for_load_state("networkidle")
        page.screenshot(path=screenshots / f"hub_log_in_{width}_{scheme}.png")
        assert shuts_out(page) == []
        colours = (
            "['.auth-form-header', '#login_submit'].map(one => "
            "getComputedStyle(document.querySelector(one)).backgroundColor)"
        )
        assert page.evaluate(colours) == ["rgb(18, 53, 91)"] * 2
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.emulate_media(color_scheme="light")
    assert missing == []
    logo = page.request.get(f"{hub.address}hub/logo").text()
    assert (
        logo
        == (
            Path(__file__).resolve().parents[2] / "src/manyhands/website/settings/static/hands.svg"
        ).read_text()
    )
    assert (
        page.locator("link[rel=icon]").get_attribute("href")
        == page.locator(".jpy-logo").get_attribute("src")
        == "/hub/logo"
    )


def test_no_page_of_the_hub_keeps_anyone_out(hub, people, page):
    page.goto(f"{hub.address}hub/login?next=/hub/home")
    for name, password in (("noone", "wrong"), people["second"]):
        page.fill("#username_input", name)
        page.fill("#password_input", password)
        page.click("#login_submit")
        page.locator(".login_error, #start").wait_for()
        assert excluded(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    for path, heading in (
        ("token", None),
        ("nothing", "This page does not exist"),
        ("admin", "You may not open this page"),
    ):
        page.goto(f"{hub.address}hub/{path}")
        assert excluded(page) == [] and page.evaluate("document.documentElement.scrollWidth") <= 390
        assert heading is None or (
            page.locator("h1").inner_text() == heading
            and "moons" not in page.inner_text("main")
            and "scopes" not in page.inner_text("main")
        )


def test_who_works_now_names_those_who_have_not_come_and_offers_only_what_the_role_may_do(
    hub, people, first, page, screenshots
):
    [(absent, _)] = hub.create(1)
    name = people["first"][0]
    for role, offered in (("assistant", ["Stop"]), ("instructor", ["Open", "Stop"])):
        page.context.clear_cookies()
        page.goto(f"{hub.address}hub/login?next=/hub/admin")
        page.fill("#username_input", people[role][0])
        page.fill("#password_input", people[role][1])
        page.click("#login_submit")
        row = page.locator("tr", has_text=name)
        row.locator(".works").wait_for(timeout=120_000)
        assert row.locator(".btn").all_inner_texts() == offered
        assert (
            absent in page.locator("#missing").inner_text()
            and name not in page.locator("#missing").inner_text()
        )
        gone = page.locator("tr", has_text=absent)
        assert gone.locator(".absent").count() == 1 and gone.locator(".btn").count() == 0
        assert set(page.locator("main button").all_inner_texts()) <= {
            "Start",
            "Stop",
        } and "Shutdown" not in page.inner_text("body")
        assert excluded(page) == []
    for width, scheme in ((1280, "dark"), (390, "light")):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 844})
        page.screenshot(path=screenshots / f"hub_who_works_{width}_{scheme}.png")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    visitor = Visitor(hub)
    visitor.log_in(*people["second"])
    assert visitor.get("hub/admin").status_code == 403
    page.goto(f"{hub.address}hub/home")
    assert page.locator("main .btn").first.inner_text() in ("Open my server", "Start my server")
    page.screenshot(path=screenshots / "hub_home.png")


def test_a_wrong_password_and_an_unknown_name_look_alike(hub, people):
    answers = [
        Visitor(hub).log_in(name, "bakori-nutefo-samihe")
        for name in (people["second"][0], "nobody")
    ]
    assert [answer.status_code for answer in answers] == [403, 403]
    assert all("Invalid username or password" in answer.text for answer in answers)
    assert "log-in failed" in hub.logged("nobody")


def test_attempts_are_limited(hub):
    [(name, password)] = hub.create(1)
    answers = [Visitor(hub).log_in(name, "wrong").status_code for _ in range(6)]
    assert answers == [403] * 5 + [429]
    assert Visitor(hub).log_in(name, password).status_code == 429, "the right one too, for now"
    assert hub.logged(name)[-2:] == ["log-in limited"] * 2


class From(requests.adapters.HTTPAdapter):
    """Connects from another address of this machine."""

    def __init__(self, address):
        self.address = address
        super().__init__()

    def init_poolmanager(self, *arguments, **options):
        super().init_poolmanager(*arguments, source_address=(self.address, 0), **options)


def test_nobody_locks_a_name_or_lies_to_the_log(hub, first):
    """With forged addresses: through the proxy, and through the socket that sandboxes see."""
    [(name, password)] = hub.create(1)
    mallory, owner = Visitor(hub), Visitor(hub)
    owner.session.mount("http://", From("127.0.0.2"))
    for number in range(32):
        mallory.session.headers.update(
            {"X-Real-IP": f"203.0.113.{number}", "X-Forwarded-For": f"198.51.100.{number}"}
        )
        mallory.log_in(name, "wrong")
    assert owner.log_in(name, password).status_code == 302
    lines = [
        line
        for line in account_log.read(hub.folder)
        if line["account"] == name and "log-in" in line["action"]
    ]
    assert [line["address"] for line in lines] == ["127.0.0.1"] * 32 + ["127.0.0.2"]
    assert [line["action"] for line in lines][4:6] == ["log-in failed", "log-in limited"]
    assert ask_through_socket(hub, name) == f"user number {os.getuid()}"


def ask_through_socket(hub, name):
    """What the log says of a log-in through the socket that sandboxes see.

    It comes from a process that says to be elsewhere.
    """

    def ask(method, headers, body=""):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(sockets(hub.folder) / "hub.sock"))
            headers = {
                "Host": "hub",
                "X-Forwarded-For": "203.0.113.7",
                "Content-Length": len(body),
                **headers,
            }
            text = f"{method} /hub/login HTTP/1.0\r\n" + "".join(
                f"{key}: {value}\r\n" for key, value in headers.items()
            )
            connection.sendall(f"{text}\r\n{body}".encode())
            return b"".join(iter(lambda: connection.recv(65536), b"")).decode()

    token = re.search("_xsrf=([^;]+)", ask("GET", {}))[1]
    answer = ask(
        "POST",
        {"Cookie": f"_xsrf={token}", "Content-Type": "application/x-www-form-urlencoded"},
        f"username={name}&password=wrong&_xsrf={token}",
    )
    assert "Invalid username or password" in answer
    return account_log.read(hub.folder)[-1]["address"]


def test_a_server_is_its_owners_alone(hub, people, first, second):
    mine, theirs = people["first"][0], people["second"][0]
    assert first.enter(mine) == 200 and second.enter(theirs) == 200
    assert first.enter(theirs) in (403, 404)
    for path in (
        f"user/{theirs}/lab",
        f"user/{theirs}/api/kernels",
        f"hub/api/users/{theirs}",
        "hub/api/users",
        "hub/api/proxy",
        "hub/admin",
    ):
        answer = first.get(path, allow_redirects=True)
        assert answer.status_code in (403, 404), f"{path}: {answer.status_code}"


def test_what_an_attendee_finds(hub, people, first):
    names = {
        entry["name"]
        for entry in first.get(f"user/{people['first'][0]}/api/contents").json()["content"]
    }
    assert {"labs", "notebooks", "slides", "work"} <= names and not {"solutions", "sources"} & names
    work = hub.accounts.home(people["first"][0]) / "work"
    assert (work / "Start_Here.md").is_file() and (
        work / "00_preflight" / "00_preflight.ipynb"
    ).is_file()
    assert {path.stat().st_uid for path in work.rglob("*")} == {
        hub.accounts.get(people["first"][0]).uid
    }


def test_its_checks_find_the_queue(hub, people, first):
    server = next(
        process
        for process in hub.processes_of(people["first"][0])
        if "manyhands.hub.servers.attendee_server" in process.cmdline()
    )
    name = Path(server.environ()["MANYHANDS_PLACES"]).name
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(sockets(hub.folder) / name))
        assert json.loads(connection.recv(1000)) == check_queue.SLOT


def test_roles(hub, people, first):
    name = people["first"][0]
    assistant, instructor = working_roles = [Visitor(hub) for _ in range(2)]
    for visitor, role in zip(working_roles, ("assistant", "instructor"), strict=True):
        visitor.log_in(*people[role])
        assert name in [user["name"] for user in visitor.get("hub/api/users").json()], role
        assert visitor.get("hub/admin").status_code == 200
    assert instructor.enter(name) == 200
    assert assistant.enter(name) in (403, 404)


def test_a_page_of_an_attendees_server_gets_nothing_of_the_instructors(hub, people, first, page):
    """It runs in the browser of an instructor who looks at that server.

    The instructor has formgrader and the board open, too.
    """
    attendee, (instructor, password) = people["first"][0], people["instructor"]
    page.goto(f"{hub.address}hub/login?next=/hub/home")
    page.fill("#username_input", instructor)
    page.fill("#password_input", password)
    page.click("#login_submit")
    for service in ("formgrader", "board"):
        page.goto(f"{hub.address}services/{service}/")
    page.goto(f"{hub.address}user/{attendee}/lab", wait_until="domcontentloaded")
    if "oauth2/authorize" in page.url:  # JupyterHub asks whether that server is meant
        page.locator("form [type=submit]").first.click()
    page.wait_for_url(f"**/user/{attendee}/lab*", wait_until="domcontentloaded", timeout=60_000)
    got = page.evaluate(
        (Path(__file__).parent / "origin_attack.js").read_text(), [hub.address, instructor]
    )
    seen = page.request.get(f"{hub.address}services/formgrader/formgrader/api/assignments")
    board = hub.folder / "board.jsonl"
    assert {what: content for what, content in got.items() if content} == {}
    assert seen.ok and "forged" not in seen.text(), (
        "an answer that a page cannot read is not one that was not given"
    )
    assert not board.exists() or "forged" not in board.read_text()


def test_an_account_ends(hub):
    """Turned out, the server stopped, the files archived; then restored."""
    [(name, password)] = hub.create(1)
    visitor = working(hub, name, password)
    home = hub.accounts.home(name)
    visitor.session.put(
        f"{hub.address}user/{name}/api/contents/work/mine.txt",
        json={"type": "file", "format": "text", "content": "kept"},
        headers={
            "X-XSRFToken": next(
                c.value for c in visitor.session.cookies if c.name == "_xsrf" and name in c.path
            )
        },
        timeout=60,
    )
    assert (home / "work" / "mine.txt").read_text() == "kept" and hub.processes_of(name)
    hub.accounts.extend([name], time.time() + 1)
    wait_for(lambda: hub.accounts.get(name).archived, hub.told, timeout_s=90)
    assert not hub.processes_of(name)
    assert "/hub/login" in visitor.get("hub/home").url, "the session is over"
    answer = Visitor(hub).log_in(name, password)
    assert answer.status_code == 403 and "This account ended on" in answer.text
    packed = archive.newest(hub.accounts, name)
    assert stat.S_IMODE(packed.stat().st_mode) == 0o600
    with tarfile.open(packed) as file:
        assert file.extractfile("./work/mine.txt").read() == b"kept"
    assert [action for action in hub.logged(name) if action != "extend"] == [
        "create",
        "log-in",
        "server started",
        "server stopped",
        "turned out",
        "archive",
        "log-in expired",
    ]
    hub.command("purge", name)
    assert not home.exists() and name not in hub.accounts.load() and packed.exists()


def test_the_server_of_a_home_that_is_too_large_is_stopped(hub, people, first):
    [(name, password)] = hub.create(1)
    working(hub, name, password)
    for number in range(2):
        path = hub.accounts.home(name) / f"large{number}"
        with open(path, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 60 * 2**20)
        os.chown(path, *[hub.accounts.get(name).uid] * 2)
    wait_for(lambda: "stopped: disk limit" in hub.logged(name), hub.told, timeout_s=120)
    wait_for(lambda: not hub.processes_of(name), hub.told, timeout_s=60)
    assert "disk limit passed" in hub.logged(name) and path.stat().st_size == 60 * 2**20, (
        "nothing of theirs is deleted"
    )
    assert hub.processes_of(people["first"][0]), "the others go on"


def test_a_restored_account_goes_on_where_it_was(hub):
    [(name, password)] = hub.create(1)
    archive.make_home(hub.accounts.get(name), hub.accounts.home(name))
    (hub.accounts.home(name) / "mine.txt").write_text("kept")
    os.chown(hub.accounts.home(name) / "mine.txt", *[hub.accounts.get(name).uid] * 2)
    hub.accounts.extend([name], time.time() - 1)
    wait_for(lambda: hub.accounts.get(name).archived, hub.told, timeout_s=90)
    (hub.accounts.home(name) / "mine.txt").unlink()
    hub.command("extend", name, "--expires", "1h")
    hub.command("restore", name)
    assert (hub.accounts.home(name) / "mine.txt").read_text() == "kept"
    assert Visitor(hub).log_in(name, password).status_code == 302


def test_a_new_password_ends_old_sessions(hub):
    [(name, password)] = hub.create(1)
    visitor = Visitor(hub)
    visitor.log_in(name, password)
    assert "/hub/login" not in visitor.get("hub/home").url
    hub.command("reset", name, "--out", hub.folder / "new_papers")
    wait_for(
        lambda: "/hub/login" in visitor.get("hub/home").url,
        "the old session goes on",
        timeout_s=30,
    )
    assert Visitor(hub).log_in(name, password).status_code == 403


def test_a_killed_hub_leaves_no_process(classroom, folder):
    killed = Hub(small_course(folder / "another"), folder / "killed")
    try:
        killed.wait_until_open()
        [(name, password)] = killed.create(1)
        working(killed, name, password)
        tree = psutil.Process(killed.process.pid).children(recursive=True)
        assert len(tree) >= 6 and killed.processes_of(name)
        killed.process.kill()
        next(process for process in tree if "jupyterhub" in process.cmdline()).kill()
    finally:
        killed.stop()
    psutil.wait_procs(tree, timeout=30)
    assert [process for process in tree if process.is_running()] == []


def test_a_stopped_hub_leaves_nothing(hub, people, second):
    """The last test: it stops the hub."""
    name = people["second"][0]
    assert hub.processes_of(name)
    assert hub.stop() == 0, hub.told()
    assert not hub.processes_of(name) and (hub.accounts.home(name) / "work").is_dir()
    assert "Stopped." in hub.printed()
