"""The board of a running hub.

A check in an attendee's sandbox comes to the attendee's own row; who sees what; the pages in a
browser.
"""

import json
import subprocess
import sys

import nbformat
import pytest

import tiny
from hub.running_hub import Visitor, wait_for
from manyhands.grading.store import public_references
from manyhands.learner.questions import questions

HOSTILE = "raise ValueError('<img src=x onerror=window.hacked=1> <script>window.hacked=1</script>')"


@pytest.fixture(scope="module")
def people(hub):
    """{who: (name, password)}."""
    ann, ben = hub.create(2)
    [tea] = hub.create(1, "1h", "--prefix", "teacher", "--role", "instructor")
    return {"ann": ann, "ben": ben, "tea": tea}


@pytest.fixture(scope="module")
def ann(hub, people, tmp_path_factory):
    """An attendee with a server, and a tiny lab in the course that she has not solved."""
    lab = tiny.Lab(tmp_path_factory.mktemp("tiny"))
    course = hub.folder / "course"
    (course / "labs" / "90_tiny").mkdir()
    nbformat.write(
        lab.handed_in(square="pass", total="pass"), course / "labs" / "90_tiny" / "90_tiny.ipynb"
    )
    (course / "references").mkdir(exist_ok=True)
    public_references.renew(lab.solution, course / "references" / "90_tiny.json")
    name, password = people["ann"]
    visitor = Visitor(hub)
    visitor.log_in(name, password)
    visitor.start_server(name)
    visitor.own = hub.accounts.home(name) / "work" / "90_tiny" / "90_tiny.ipynb"
    visitor.own.parent.mkdir(exist_ok=True)
    nbformat.write(lab.handed_in(square=HOSTILE), visitor.own)
    for path in (visitor.own.parent, visitor.own):
        path.chmod(0o777)
    return visitor


def in_sandbox(hub, name, *command):
    """What a command prints to the attendee.

    It runs in the sandbox of the server that runs, with its user number and environment.
    """
    server = next(
        process
        for process in hub.processes_of(name)
        if "manyhands.hub.servers.attendee_server" in process.cmdline()
    )
    uid = str(hub.accounts.get(name).uid)
    return subprocess.run(
        [
            "nsenter",
            f"--target={server.pid}",
            "--mount",
            "--net",
            "--pid",
            "--ipc",
            "setpriv",
            f"--reuid={uid}",
            f"--regid={uid}",
            "--clear-groups",
            "sh",
            "-c",
            'cd && exec "$@"',
            "sh",
            *command,
        ],
        env=server.environ(),
        capture_output=True,
        text=True,
        timeout=240,
    )


def room_of(visitor):
    """What the visitor's page shows."""
    # logs in to the board, through the hub
    assert visitor.get("services/board/").status_code == 200
    with visitor.get("services/board/events", stream=True) as answer:
        assert answer.status_code == 200
        lines = answer.iter_lines(decode_unicode=True)
        assert next(line for line in lines if line == "event: room")
        return json.loads(next(lines).removeprefix("data: "))


def test_a_check_comes_to_the_own_row(hub, people, ann):
    teacher, ben = Visitor(hub), Visitor(hub)
    teacher.log_in(*people["tea"])
    ben.log_in(*people["ben"])
    name = people["ann"][0]
    checked = in_sandbox(
        hub, name, sys.executable, "-m", "manyhands", "check", "work/90_tiny/90_tiny.ipynb"
    )
    assert "90_tiny: 2 of 4 points" in checked.stdout, checked.stdout + checked.stderr
    room = wait_for(lambda: (room := room_of(teacher))["unit"] and room, hub.told)
    assert room["unit"] == "90_tiny" and [row["name"] for row in room["rows"]] == sorted(
        [name, people["ben"][0]]
    )
    row = next(row for row in room["rows"] if row["name"] == name)
    assert row["cells"] == "fp" and "ValueError" in row["stuck"]["message"]
    assert room_of(ann)["rows"] == [row]
    assert room_of(ben)["unit"] is None and name not in json.dumps(room_of(ben))
    assert [
        visitor.get("services/board/results.csv?unit=90_tiny").status_code
        for visitor in (ann, ben, teacher)
    ] == [403, 403, 200]


def test_a_room_cannot_write_a_neighbours_row(hub, people, ann):
    """Whatever a process in a room says of who it is: the kernel says it."""
    program = """
import json, os, socket
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(os.environ["MANYHANDS_BOARD"])
    connection.sendall(json.dumps({"unit": "90_tiny", "uid": 70001, "name": "%s", "criteria": []}).encode() + b"\\n")
    print(connection.recv(1000).decode())
""" % people["ben"][0]  # noqa: UP031 - the braces are those of JSON
    completed = in_sandbox(hub, people["ann"][0], sys.executable, "-c", program)
    assert "announcement" in completed.stdout, completed.stderr
    rows = [json.loads(line) for line in (hub.folder / "board.jsonl").read_text().splitlines()]
    assert {row["uid"] for row in rows if "uid" in row} == {hub.accounts.get(people["ann"][0]).uid}


def test_a_prediction_in_a_room_comes_to_the_page_of_the_staff(hub, people, ann):
    """A prediction is locked in the sandbox, settled there, and kept with its owner's progress.

    The page shows it after the reveal only, and no name.
    """
    name, question = people["ann"][0], questions(hub.folder / "course" / "notebooks")["00-graph"]
    ask = (
        f"from manyhands import predict, settle; predict({question.name!r}, {question.text!r}, "
        f"{question.choices!r}, guess=1)"
    )
    completed = in_sandbox(
        hub,
        name,
        "sh",
        "-c",
        f'cd work && exec "{sys.executable}" -c "$0"',
        f"{ask}; settle('00-graph', {question.choices[1]!r})",
    )
    assert completed.stdout.splitlines()[-1].startswith(
        f"You predicted: {question.choices[0]}. The run: {question.choices[1]}."
    ), completed.stdout + completed.stderr
    assert (
        "00-graph"
        in (hub.accounts.home(name) / "work" / ".manyhands" / "progress.json").read_text()
    )
    teacher = Visitor(hub)
    teacher.log_in(*people["tea"])

    def shown(reveal):
        assert teacher.get("services/board/predictions").status_code == 200
        with teacher.get(
            f"services/board/predictions/events?question=00-graph&reveal={reveal}", stream=True
        ) as answer:
            lines = answer.iter_lines(decode_unicode=True)
            assert next(line for line in lines if line == "event: room")
            return json.loads(next(lines).removeprefix("data: "))["shown"]

    before, after = shown(0), shown(1)
    assert (
        [bar["count"] for bar in before["bars"]] == [1, 0, 0, 0]
        and before["came"] is None
        and after["came"] == question.choices[1]
    )
    assert (
        name not in json.dumps(after) and ann.get("services/board/predictions").status_code == 403
    )


def log_in(page, hub, name, password, path):
    page.goto(hub.address + path)
    page.fill("#username_input", name)
    page.fill("#password_input", password)
    page.click("#login_submit")


def test_the_pages_in_a_browser(hub, people, ann, page, screenshots):
    """The instructor announces, and what an attendee has sent stays text.

    The attendee's page shows the own row and the announcement, live.
    """
    log_in(page, hub, *people["tea"], "services/board/")
    message = page.locator("#stuck .message")
    message.wait_for(timeout=60_000)
    assert "<script>window.hacked=1</script>" in message.inner_text()
    page.locator("#people tbody tr").first.click()
    assert "onerror" in page.locator("#person").inner_text()
    page.keyboard.press("Escape")
    page.screenshot(path=screenshots / "board_instructor.png")
    assert page.evaluate("window.hacked === undefined")
    page.fill("[name=text]", "Lunch <b>at</b> 12:30")
    page.click("text=Announce")
    shown = page.locator("#announcement", has_text="Lunch <b>at</b> 12:30")
    shown.wait_for(timeout=60_000)
    page.context.clear_cookies()
    log_in(page, hub, *people["ann"], "services/board/")
    shown.wait_for(timeout=60_000)
    assert page.locator("#own li").count() == 2 and page.locator("form").count() == 0
    page.screenshot(path=screenshots / "board_attendee.png")
    teacher = Visitor(hub)
    teacher.log_in(*people["tea"])
    teacher.get("services/board/")
    field = (
        teacher.get("services/board/").text.partition('name="_xsrf" value="')[2].partition('"')[0]
    )
    answer = teacher.session.post(
        f"{hub.address}services/board/announcement",
        data={"_xsrf": field, "text": "Back at 13:30"},
        timeout=60,
    )
    assert answer.status_code == 200
    page.locator("#announcement", has_text="Back at 13:30").wait_for(timeout=60_000)
