"""Forty accounts hand in within a minute, each for its own team.

They use the board's socket of a running hub. Nothing is lost, and the waiting times that are told
are kept. The judge here takes JUDGING_S for each entry, and gives it a score without running it.
"""

import itertools
import json
import os
import re
import socket
import threading
import time

import pytest

from manyhands.hackathon.event import event_settings
from manyhands.hackathon.event.event import Event, judge_all
from manyhands.hub.board.hub_event import NAME
from manyhands.hub.folder import BOARD, sockets

TEAMS, JUDGING_S, WITHIN_S = 40, 0.3, 6
RECORD = (
    json.dumps(
        {
            "entry": "x",
            "challenge": "slow_links",
            "score": 3.0,
            "unit": "s",
            "problem": "",
            "lines": 10,
            "sha256": "00",
        }
    )
    + "\n%none\n"
)


@pytest.fixture
def event(hub):
    """(the event of the hub, the accounts' names): a team for each account."""
    names = [name for name, _ in hub.create(TEAMS)]
    path = event_settings.write_template(hub.folder / NAME)
    text = "\n".join(
        "begins = 2020-01-01T09:00:00Z" if line.startswith("begins") else line
        for line in path.read_text().split("\n")
    )
    path.write_text(
        text.split('"Example"')[0] + "\n".join(f'"Team of {name}" = ["{name}"]' for name in names)
    )
    yield Event(hub.folder / NAME), names
    path.unlink()


def hand_in(hub, name, text, go, after_s):
    """A process with the account's user number hands in a while after the file `go` is there.

    Gives what reads its answer, (when, what was said). It is begun before the judge's thread is: it
    would inherit the lock of the log from it.
    """
    ours, theirs = os.pipe()
    uid, path = hub.accounts.get(name).uid, str(sockets(hub.folder) / BOARD)
    if process := os.fork():
        os.close(theirs)

        def answer():
            reply = json.loads(os.fdopen(ours, "rb").read() or b"null")
            # this one: a zombie would be taken for a process that the account of this number has in
            # the next hub
            os.waitpid(process, 0)
            return reply

        return answer
    try:
        while not go.exists():
            time.sleep(0.01)
        time.sleep(after_s)
        os.setgid(uid), os.setuid(uid)
        at = time.time()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect(path)
            connection.sendall(
                json.dumps({"hack": "submit", "values": ["slow_links", text]}).encode() + b"\n"
            )
            answer = json.loads(connection.makefile("rb").readline())
        os.write(theirs, json.dumps([at, answer]).encode())
    finally:
        os._exit(0)


def seconds(said):
    number, unit = said.split()
    return float(number) * (60 if unit == "min" else 1)


def test_forty_accounts_hand_in_within_a_minute_and_the_times_that_they_are_told_are_kept(
    hub, event, tmp_path
):
    there, names = event
    ready, over = threading.Event(), threading.Event()

    def judge():
        with there.judge():
            while True:
                last = over.is_set()  # so that nothing that came before is left
                judge_all(there, lambda submission: time.sleep(JUDGING_S) or RECORD)
                ready.set()
                if last:
                    return
                time.sleep(0.02)

    answers = [
        hand_in(
            hub,
            name,
            f"# entry of {name}\n" + "x = 1\n" * 300,
            tmp_path / "go",
            WITHIN_S * place / TEAMS,
        )
        for place, name in enumerate(names)
    ]
    there.submit(f"Team of {names[0]}", "slow_links", "the first tells how long one takes")
    judging = threading.Thread(target=judge)
    judging.start()
    assert ready.wait(60)
    (tmp_path / "go").touch()
    answers = {name: answer() for name, answer in zip(names, answers, strict=True)}
    over.set()
    judging.join(120)
    assert all(answer and "said" in answer[1] for answer in answers.values()), answers
    submissions = there.submissions()
    mine = {submission.team: submission for number, submission in submissions.items() if number > 1}
    assert (
        sorted(mine) == sorted(f"Team of {name}" for name in names)
        and len(submissions) == TEAMS + 1
    )
    assert all(
        submission.record == RECORD
        and f"# entry of {submission.team.removeprefix('Team of ')}\n" in submission.source
        for submission in submissions.values()
        if submission.number > 1
    )
    assert sum(line["do"] == "judged" for line in there.log.read()) == TEAMS + 1

    times = [
        (mine[f"Team of {name}"], seconds(about), seconds(at_most))
        for name, (_, answer) in answers.items()
        for about, at_most in re.findall(
            r"is ready in about (\d+ s|\d+ min), or in (\d+ s|\d+ min) if all other teams hand"
            r" in now",
            answer["said"],
        )
    ]
    assert len(times) == TEAMS
    ends = sorted(submission.judged for submission in submissions.values())
    # on a busy machine not each judging takes what the last ones took
    slowest_s = max(after - before for before, after in itertools.pairwise(ends[1:]))
    for submission, about_s, at_most_s in times:
        waited_s = submission.judged - submission.at
        print(
            f"{submission.team}: told about {about_s:.0f} s and {at_most_s:.0f} s at most, waited "
            f"{waited_s:.1f} s"
        )
        # that team had its turn, so those who come later may pass it
        longest_s = at_most_s if submission.team == f"Team of {names[0]}" else about_s
        assert (
            about_s * JUDGING_S / slowest_s - 1
            <= waited_s
            <= 1 + slowest_s + longest_s * slowest_s / JUDGING_S
        )
        assert about_s <= at_most_s + 1
