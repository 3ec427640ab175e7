"""Places for checks.

The queue's rules, the service behind a socket, and the side of `manyhands check`.
"""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from manyhands.grading.hub_client import check_slot
from manyhands.hub.services import check_queue
from manyhands.shared import hub_client


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Person:
    """Visits of one person that remember what they are told."""

    def __init__(self, uid):
        self.uid = uid

    def come(self, queue):
        visit = check_queue.Visit(self.uid, lambda what: visit.heard.append(what))
        visit.heard = []
        assert queue.join(visit)
        return visit


@pytest.fixture
def queue():
    return check_queue.Queue(2, Clock())


def standing(visit):
    return visit.heard[-1].get("position", "has a place")


def test_first_come_first_served(queue):
    visits = [Person(uid).come(queue) for uid in range(5)]
    assert [standing(visit) for visit in visits] == ["has a place", "has a place", 1, 2, 3]
    queue.leave(visits[1])
    assert [standing(visit) for visit in visits[2:]] == ["has a place", 1, 2]
    queue.leave(visits[3])  # gave up
    assert standing(visits[4]) == 1
    queue.leave(visits[0])
    assert standing(visits[4]) == "has a place"


def test_a_person_has_one_place_and_comes_again_after_the_others(queue):
    ann, ben, cem = Person(1), Person(2), Person(3)
    first, second = ann.come(queue), ann.come(queue)
    assert standing(first) == "has a place" and standing(second) == 1, (
        "one of two places is free, but not for her"
    )
    assert standing(ben.come(queue)) == "has a place"
    third = cem.come(queue)
    assert (standing(third), standing(second)) == (1, 2)
    queue.leave(first)
    assert (standing(third), standing(second)) == ("has a place", 1)


def test_who_stands_there_twice_counts_once_for_those_behind(queue):
    ann, ben = Person(1), Person(2)
    holders = [Person(uid).come(queue) for uid in (8, 9)]
    visits = [ann.come(queue) for _ in range(check_queue.VISITS)]
    assert [standing(visit) for visit in visits] == [1] * check_queue.VISITS
    assert standing(ben.come(queue)) == 2
    assert not queue.join(check_queue.Visit(ann.uid, None)), "no more than that"
    assert len(holders) == 2


def test_the_time_is_told_as_soon_as_one_check_has_ended(queue):
    visits = [Person(uid).come(queue) for uid in range(6)]
    assert visits[5].heard[-1] == {"position": 4, "places": 2, "about_s": None}
    queue.now.now = 30.0
    queue.leave(visits[0])
    assert visits[5].heard[-1] == {"position": 3, "places": 2, "about_s": 45}


def test_the_same_is_told_once_but_again_as_a_sign_of_life(queue):
    visits = [Person(uid).come(queue) for uid in range(3)]
    Person(7).come(queue)
    assert len(visits[2].heard) == 1
    queue.remind()
    assert len(visits[2].heard) == 2 and len(visits[0].heard) == 1


SERVICE = (
    "import asyncio, sys; from manyhands.hub.services import check_queue; {more}; "
    "asyncio.run(check_queue.Service(1).serve(sys.argv[1]))"
)


@pytest.fixture
def service(tmp_path, monkeypatch):
    """`service(more)` starts one with a single place, after running `more`; its socket's path."""
    path, started = str(tmp_path / "s"), []
    monkeypatch.setenv(hub_client.CHECK_QUEUE, path)

    def start(more="pass"):
        started.append(subprocess.Popen([sys.executable, "-c", SERVICE.format(more=more), path]))
        until = time.monotonic() + 30
        while not answers(path):
            assert time.monotonic() < until and started[-1].poll() is None
            time.sleep(0.05)
        return path

    yield start
    for process in started:
        process.kill()
        process.wait()


def answers(path):
    try:
        with connect(path) as lines:
            return lines.readline()
    except OSError:
        return False


def connect(path):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(30)
        connection.connect(path)
        return connection.makefile("rwb")


def cut_off(lines):
    try:
        return lines.readline() == b""
    except ConnectionError:
        return True


# each connection is somebody else's
STRANGERS = (
    "from itertools import count; numbers = count(); check_queue.peer = lambda writer: "
    "next(numbers)"
)


class Lines(list):
    def __call__(self, line, stays=False):
        self.append(line)


def test_a_check_waits_and_goes_on_when_the_other_is_killed(service):
    path = service(STRANGERS)
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            (
                "import time\nfrom manyhands.grading.hub_client import check_slot\n"
                "with check_slot.hold(print): print('mine', flush=True); time.sleep(600)"
            ),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout.readline() == "mine\n"
    lines, entered = Lines(), threading.Event()

    def check():
        with check_slot.hold(lines):
            entered.set()

    waiting = threading.Thread(target=check)
    waiting.start()
    until = time.monotonic() + 30
    while not lines and time.monotonic() < until:
        time.sleep(0.05)
    assert (
        lines and lines[0].startswith("place 1 in the queue, 1 at a time") and not entered.is_set()
    )
    with connect(path) as behind:
        assert json.loads(behind.readline())["position"] == 2
        holder.kill()
        assert entered.wait(30)
    waiting.join(30)
    holder.communicate()


def test_ctrl_c_leaves_the_queue(service):
    path = service(STRANGERS)
    with connect(path) as holder:
        assert json.loads(holder.readline()) == check_queue.SLOT
        waiting = subprocess.Popen(
            [
                sys.executable,
                "-c",
                (
                    "from functools import partial\nfrom manyhands.grading.hub_client import "
                    "check_slot\nwith check_slot.hold(partial(print, flush=True)): pass"
                ),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert "place 1" in waiting.stdout.readline()
        with connect(path) as behind:
            assert json.loads(behind.readline())["position"] == 2
            waiting.send_signal(signal.SIGINT)
            assert "KeyboardInterrupt" in waiting.communicate(timeout=30)[1]
            assert json.loads(behind.readline())["position"] == 1


def test_no_place_is_kept_longer_than_the_limit(service):
    path = service(STRANGERS + "; check_queue.Service.__init__.__defaults__ = (0.5,)")
    with connect(path) as holder, connect(path) as next_one:
        assert json.loads(holder.readline()) == check_queue.SLOT
        while (answer := json.loads(next_one.readline())) != check_queue.SLOT:
            assert answer["position"] == 1
        assert cut_off(holder)


def test_who_talks_is_cut_off_and_who_has_too_many_is_refused(service):
    path = service()
    talker = connect(path)
    assert json.loads(talker.readline()) == check_queue.SLOT
    talker.write(b"give me more\n")
    talker.flush()
    assert cut_off(talker)
    mine = [connect(path) for _ in range(check_queue.VISITS)]
    assert [json.loads(lines.readline()) for lines in mine[:2]] == [
        check_queue.SLOT,
        {"position": 1, "places": 1, "about_s": 0},
    ]
    with pytest.raises(check_slot.RefusedError, match="of your checks"), check_slot.hold(Lines()):
        pytest.fail("it has no place")


def test_the_kernel_tells_who_has_connected(tmp_path):
    async def ask():
        future = asyncio.get_running_loop().create_future()

        async def handle(reader, writer):
            future.set_result(check_queue.peer(writer.get_extra_info("socket")))
            writer.close()

        server = await asyncio.start_unix_server(handle, str(tmp_path / "s"))
        _, writer = await asyncio.open_unix_connection(str(tmp_path / "s"))
        uid = await future
        writer.close()
        server.close()
        return uid

    assert asyncio.run(ask()) == os.getuid()


def test_without_an_answer_a_check_goes_on_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv(hub_client.CHECK_QUEUE, str(tmp_path / "nobody"))
    lines = Lines()
    with check_slot.hold(lines):
        pass
    monkeypatch.setattr(check_slot, "TIMEOUT_S", 0.2)
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(tmp_path / "nobody"))
        mute.listen()
        with check_slot.hold(lines):
            pass
    monkeypatch.delenv(hub_client.CHECK_QUEUE)
    with check_slot.hold(lines):
        pass
    assert lines == [check_slot.SILENT] * 2


@pytest.mark.parametrize(
    "seconds, text",
    [
        (None, ""),
        (3, ", about 10 s"),
        (84, ", about 80 s"),
        (90, ", about 2 min"),
        (600, ", about 10 min"),
    ],
)
def test_the_time_in_words(seconds, text):
    assert check_slot._about(seconds) == text
