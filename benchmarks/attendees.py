"""A class on one hub: `python -m benchmarks attendees [--people 40]`, as root.

Each person is a thread that does over HTTP what a browser does.

They open the page at times drawn evenly from one minute (seed 0), and go on without a pause: log in
with the printed password, wait for the server, load JupyterLab; then for lab 02 (TensorFlow) and
lab 06 (a cluster of PyTorch ranks): fetch it in the Assignment List, save what they have done
(every second person leaves the last answer out), `manyhands check` it in a terminal, submit it; log
out. Hub, course and labs are real: units 00, 02 and 06. The people run on the same machine; their
own time is small.

Any failure is told with its cause, and makes the exit status 1.
"""

import argparse
import json
import math
import os
import platform
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import closing, contextmanager, suppress
from datetime import date
from pathlib import Path

import nbformat
import psutil
import websocket

from . import few, from_tests

ROOT = Path(__file__).parents[1]
from_tests()

from hub.running_hub import Hub, Visitor, log_of, small_course, wait_for  # noqa: E402
from manyhands.hub.accounts.table import FIRST_UID, LAST_UID  # noqa: E402

LABS = few(("02_mirrored_strategy", "06_ddp"), ())
ARRIVE_WITHIN_S, TIMEOUT_S, LOOK_EVERY_S = few(60), 1800, few(10)
MIB = 2**20


def course(clone):
    """A clone with unit 00 and the labs."""
    small_course(clone)
    for unit in LABS:
        for folder, name in (
            ("notebooks", f"{unit}.ipynb"),
            ("labs", unit),
            ("solutions", unit),
            ("sources/tutorial", f"{unit}.py"),
            ("sources/labs", f"{unit}.py"),
        ):
            source, target = ROOT / folder / name, clone / folder / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    return clone


class Person(Visitor):
    """One attendee.

    What happened: `times`, {step: seconds}; `failure`, (step, cause) or None; `places`, where a
    check stood in the queue.
    """

    def __init__(self, hub, number, name, password, arrives_s):
        super().__init__(hub, address="")
        self.number, self.name, self.password, self.arrives_s = number, name, password, arrives_s
        self.times, self.places, self.failure, self.step = {}, [], None, "arrive"
        self.own = f"user/{name}/"

    @contextmanager
    def timed(self, step):
        """A block whose seconds are noted as those of this step."""
        self.step, begin = step, time.monotonic()
        yield
        self.times[step] = time.monotonic() - begin

    def live(self):
        """All of it; never raises."""
        try:
            time.sleep(self.arrives_s)
            self._arrive()
            for unit in LABS:
                self._work(unit)
            with self.timed("log out"):
                self._ask("GET", "hub/logout")
        except Exception as problem:  # noqa: BLE001 - any failure of an attendee is a figure
            self.failure = self.step, f"{type(problem).__name__}: {problem}"

    def _arrive(self):
        with self.timed("log in"):
            answer = self.log_in(self.name, self.password)
            assert answer.status_code == 302, f"{answer.status_code}: {in_words(answer.text)}"
        with self.timed("server"):
            self._wait_for_server(self._ask("GET", "hub/spawn"))
        with self.timed("JupyterLab"):
            page = self._ask("GET", self.own + "lab")
            for script in re.findall(r'<script[^>]* src="/([^"]+)"', page.text):
                self._ask("GET", script)
            for path in ("api/kernelspecs", "api/contents/work", "lab/api/settings", "courses"):
                self._ask("GET", self.own + path)

    def _wait_for_server(self, page):
        """Wait until the server is ready, as the page does that JupyterHub shows meanwhile.

        It listens to the progress.
        """
        match = re.search(r'new EventSource\("([^"]+)"\)', page.text)
        if not match:
            return
        path = json.loads(f'"{match[1]}"').removeprefix("/")
        with self._ask("GET", path, stream=True, headers={"Accept": "text/event-stream"}) as events:
            for line in events.iter_lines():
                progress = (
                    json.loads(line.removeprefix(b"data:")) if line.startswith(b"data:") else {}
                )
                assert not progress.get("failed"), (
                    f"{progress['message']} {log_of(self.hub, self.name)}"
                )
                if progress.get("ready"):
                    return
        raise AssertionError("the page's news ended before the server was ready")

    def _work(self, unit):
        number, path = unit[:2], f"{self.own}api/contents/work/{unit}/{unit}.ipynb"
        with self.timed(f"fetch {number}"):
            self._assignment("fetch", unit)
            notebook = self._ask("GET", path).json()["content"]
        with self.timed(f"save {number}"):
            complete = self.number % 2 == 0
            solve(notebook, unit, complete)
            self._ask("PUT", path, json={"type": "notebook", "format": "json", "content": notebook})
        with self.timed(f"check {number}"):
            printed = self._in_terminal(f"manyhands check {number}", number)
            status = int(re.search(r"status=(\d+)", printed)[1])
            assert status == (0 if complete else 1), f"status {status}: {printed[-1500:]}"
        with self.timed(f"submit {number}"):
            self._assignment("submit", unit)

    def _assignment(self, action, unit):
        """A button of the Assignment List."""
        self._ask("GET", self.own + "assignments", params={"course_id": "manyhands"})
        answer = self._ask(
            "POST",
            f"{self.own}assignments/{action}",
            data={"course_id": "manyhands", "assignment_id": unit},
        ).json()
        assert answer["success"], answer
        status = "submitted" if action == "submit" else "fetched"
        assert any(
            assignment["assignment_id"] == unit and assignment["status"] == status
            for assignment in answer["value"]
        ), answer

    def _in_terminal(self, command, number):
        """What a terminal shows of a command."""
        name = self._ask("POST", self.own + "api/terminals").json()["name"]
        cookies = "; ".join(
            f"{cookie.name}={cookie.value}"
            for cookie in self.session.cookies
            if f"/{self.own}".startswith(cookie.path)
        )
        address = (
            self.hub.servers.replace("http", "ws", 1) + f"{self.own}terminals/websocket/{name}"
        )
        shown, waits_since = "", None
        waited_s = 0.0
        with closing(
            websocket.create_connection(
                address, timeout=TIMEOUT_S, cookie=cookies, origin=self.hub.servers.rstrip("/")
            )
        ) as terminal:
            terminal.send(json.dumps(["stdin", f"{command}; echo status=$?\r"]))
            while not re.search(r"status=\d", shown):
                kind, *text = json.loads(terminal.recv())
                if kind != "stdout":
                    continue
                shown += text[0]
                if places := re.findall(r"place (\d+) in the queue", text[0]):
                    self.places += map(int, places)
                    waits_since = waits_since or time.monotonic()
                elif waits_since and "your notebook" in text[0] and not waited_s:
                    waited_s = time.monotonic() - waits_since
        self.times[f"of this in the queue {number}"] = waited_s
        return shown

    def _ask(self, method, path, **options):
        """A request that must succeed."""
        mine = (
            cookie.value
            for cookie in self.session.cookies
            if cookie.name == "_xsrf" and cookie.path == f"/{self.own}"
        )
        headers = {"X-XSRFToken": next(mine, ""), **options.pop("headers", {})}
        answer = self.session.request(
            method, self.hub.address + path, timeout=TIMEOUT_S, headers=headers, **options
        )
        assert answer.ok, (
            f"{method} {path}: {answer.status_code} "
            f"{'' if options.get('stream') else in_words(answer.text)}"
        )
        return answer


def in_words(page):
    """The end of a page without its scripts and marks."""
    return " ".join(re.sub(r"<(script|style).*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL).split())[
        -500:
    ]


def solve(notebook, unit, complete):
    """Put the solution's answers into the lab; all, or all but the last."""
    answers = {}
    for cell in nbformat.read(ROOT / "solutions" / unit / f"{unit}.ipynb", 4).cells:
        mark = cell.metadata.get("nbgrader") or {}
        if mark.get("solution") and cell.cell_type == "code":
            answers[mark["grade_id"]] = cell.source
    if not complete:
        answers.popitem()
    for cell in notebook["cells"]:
        mark = cell["metadata"].get("nbgrader") or {}
        cell["source"] = answers.get(mark.get("grade_id"), cell["source"])


class Memory(threading.Thread):
    """Memory by user number, in MiB.

    It has the most of each, of all together, and what the machine had least to spare.
    """

    def __init__(self):
        super().__init__(daemon=True)
        self.most, self.together, self.over = defaultdict(float), 0.0, threading.Event()
        self.before = self.spare = psutil.virtual_memory().available / MIB
        self.start()

    def run(self):
        """Look at all processes every `LOOK_EVERY_S` seconds, until `over` is set."""
        while not self.over.wait(LOOK_EVERY_S):
            self.spare = min(self.spare, psutil.virtual_memory().available / MIB)
            now = defaultdict(float)
            for process in psutil.process_iter(["uids"]):
                uid = process.info["uids"].real if process.info["uids"] else 0
                if FIRST_UID <= uid <= LAST_UID:
                    with suppress(psutil.Error):
                        now[uid] += process.memory_full_info().pss / MIB
            for uid, mib in now.items():
                self.most[uid] = max(self.most[uid], mib)
            self.together = max(self.together, sum(now.values()))


def middle_and_95th(values):
    """The median, and the smallest value that 95 of 100 do not exceed."""
    ordered = sorted(values)
    return statistics.median(ordered), ordered[math.ceil(0.95 * len(ordered)) - 1]


def table(people, memory, seconds):
    """The lines of the report: seconds and failures by step, and memory."""
    machine = (
        f"{os.cpu_count()} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB, "
        f"{platform.machine()}"
    )
    yield f"{date.today()}, {machine}: {len(people)} people, {seconds:.0f} s in all"
    yield "\n| step | median | 95th percentile | failures |\n|---|---|---|---|"
    steps = list(
        dict.fromkeys(
            step for person in people for step in [*person.times, *(person.failure or ())[:1]]
        )
    )
    for step in steps:
        times = [person.times[step] for person in people if step in person.times]
        failed = sum(bool(person.failure) and person.failure[0] == step for person in people)
        values = "{:.1f} s | {:.1f} s".format(*middle_and_95th(times)) if times else " | "
        yield f"| {step} | {values} | {failed} |"
    most = list(memory.most.values())
    yield "| memory of a person's processes at its peak | {:.0f} MiB | {:.0f} MiB | |".format(
        *middle_and_95th(most)
    )
    yield f"\nAll people's processes together: {memory.together:.0f} MiB at the peak."
    yield (
        f"The machine had {memory.before:.0f} MiB to spare before, and {memory.spare:.0f} MiB when "
        "it had least."
    )
    yield (
        "Last place seen in the queue: "
        f"{max([0, *(place for person in people for place in person.places)])}."
    )
    for person in people:
        if person.failure:
            yield f"FAILED: {person.name}, {': '.join(person.failure)}"


def main(arguments):
    """Print the table; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks attendees",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--people", type=int, default=40)
    count, draw = parser.parse_args(arguments).people, random.Random(0)
    if os.geteuid() != 0:
        parser.error("only root can open a room for each attendee")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the hub is ended
    folder = Path(tempfile.mkdtemp(prefix="mh-attendees-"))
    folder.chmod(0o711)
    hub = Hub(course(folder / "clone"), folder / "hub")
    try:
        hub.wait_until_open()
        if LABS:
            subprocess.run(
                [sys.executable, "-m", "manyhands", "release", *(unit[:2] for unit in LABS)],
                check=True,
                env=hub.environment,
                cwd=folder / "clone",
            )
        references = [folder / "hub" / "course" / "references" / f"{unit}.json" for unit in LABS]
        wait_for(
            lambda: all(path.is_file() for path in references),
            "the references are not made",
            TIMEOUT_S,
        )
        people = [
            Person(hub, number, *account, draw.uniform(0, ARRIVE_WITHIN_S))
            for number, account in enumerate(hub.create(count))
        ]
        memory, begin = Memory(), time.monotonic()
        threads = [threading.Thread(target=person.live, daemon=True) for person in people]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        memory.over.set()
        memory.join()
        for line in table(people, memory, time.monotonic() - begin):
            print(line, flush=True)
        return int(any(person.failure for person in people))
    finally:
        hub.stop()
        shutil.rmtree(folder)
