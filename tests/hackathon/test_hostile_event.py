"""An event of three teams, one of which is honest.

The others bring a sleeper, a reader of samples, a forged record and a flood.
"""

import json
import threading
import time
from contextlib import nullcontext
from dataclasses import replace

import pytest

from conftest import HERE
from manyhands.hackathon import hack_command
from manyhands.hackathon.challenges.challenge import CHALLENGES
from manyhands.hackathon.event import event_messages, fair_queue
from manyhands.hackathon.event.event import Event, NotTakenError
from manyhands.hackathon.judge import judging
from manyhands.hackathon.judge import sandboxes as closed
from manyhands.shared import signing

TEAMS = '[teams]\n"Honest" = ["ann"]\n"Sleeper" = ["ben"]\n"Reader" = ["cho"]\n'
HONEST = (CHALLENGES["slow_links"].folder / "ladder" / "diloco.py").read_text()
READER = (HERE / "cheats" / "reads_samples.py").read_text()
SLEEPER = """
import time
def train(model, batches, comm):
    for _ in range(58):
        time.sleep(60)
        comm.clock_s()
"""


@pytest.fixture
def there(tmp_path, monkeypatch, sandboxes):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(closed, "Sandboxes", lambda ranks: nullcontext(sandboxes))
    monkeypatch.setattr(judging, "hidden_seeds", lambda: judging.public_seeds(1))
    monkeypatch.setattr(judging, "crowding", lambda: 1.0)
    signing.new_key("judge.key")
    hack_command.main(["event", "autumn"])
    path = tmp_path / "autumn" / "event.toml"
    lines = (
        path.read_text()
        .split("[teams]")[0]
        .replace("freeze_min = 60", "freeze_min = 0")
        .split("\n")
    )
    path.write_text(
        "\n".join(
            "begins = 2020-01-01T09:00:00Z" if line.startswith("begins") else line for line in lines
        )
        + TEAMS
    )
    return Event("autumn")


@pytest.fixture
def judge(there, capsys):
    """Run the judge until no entry waits.

    Call something as soon as the judge has begun with an entry.
    """

    def run(meanwhile=lambda: None):
        def wait():
            while not any(submission.taken for submission in there.submissions().values()):
                time.sleep(0.05)
            meanwhile()

        thread = threading.Thread(target=wait)
        thread.start()
        assert hack_command.main(["run", "autumn", "--key", "judge.key", "--once"]) == 0
        thread.join()
        return capsys.readouterr().out

    return run


def status(there, team):
    return event_messages.status(there, team)


def test_a_withdrawn_entry_ends_at_once(there, judge):
    there.submit("Sleeper", "slow_links", SLEEPER)
    there.submit("Honest", "slow_links", HONEST)
    observations = []

    def withdraw():
        observations.append(status(there, "Honest"))
        time.sleep(1)
        observations.append(event_messages.withdrawn(there, "Sleeper", 1))
        observations.append(time.monotonic())

    judge(withdraw)
    assert (
        "It is waiting, with 1 entry before it. The judge has been working on entry 1 of Sleeper "
        "since" in observations[0]
    )
    assert observations[1] == "Entry 1 of Sleeper is withdrawn. The judge stops judging it."
    assert time.monotonic() - observations[2] < 55  # the sleeper's first call is after 60 s
    assert status(there, "Honest").startswith("Entry 2, slow_links: 2.9")


def test_a_slow_entry_goes_behind_the_others_and_has_a_limit(there, judge, monkeypatch):
    monkeypatch.setattr(fair_queue, "SLOW_S", 1)
    monkeypatch.setitem(CHALLENGES, "slow_links", replace(CHALLENGES["slow_links"], judging_s=6))
    there.submit("Sleeper", "slow_links", SLEEPER)
    there.submit("Honest", "slow_links", "def train(model, batches, comm):\n    1 / 0\n")
    printed = judge()
    assert "Entry 1 of Sleeper: It is waiting, with 1 entry before it. It took more than" in printed
    assert printed.index("ZeroDivisionError") < printed.index(
        "The judging did not finish within 6 s"
    )
    assert [line["number"] for line in there.log.read() if line["do"] == "judged"] == [2, 1]


def test_who_reads_samples_is_held_until_a_person_has_looked(there, judge, capsys):
    there.submit("Reader", "slow_links", READER)
    there.submit("Honest", "slow_links", HONEST)
    with pytest.raises(NotTakenError):  # a flood
        for number in range(20):
            there.submit("Sleeper", "slow_links", f"# {number}\nimport nowhere\n")
    judge()
    assert (
        "does not count until a person has looked at it. A rank has asked for 47 gradients"
        in status(there, "Reader")
    )
    assert status(there, "Honest").startswith("Entry 2, slow_links: 2.9")
    board = (there.folder / "board" / "board.html").read_text()
    rows = board[board.index("<tbody>") :]
    assert (
        rows.index(">Honest<") < rows.index(">Reader<")
        and "This entry is flagged" in rows
        and "looked at by" not in board
    )

    (record,) = there.folder.glob("records/0001-*.record")
    assert hack_command.main(["verify", str(record)]) == 0
    printed = capsys.readouterr().out
    assert (
        "Flag: A rank has asked for 47 gradients" in printed
        and "No person has signed that they have looked at it." in printed
    )
    look = ["look", "autumn", "1", "--by", "Ann", "--key", "judge.key"]
    assert hack_command.main([*look, "--breaks-rules"]) == 0
    assert "Ann has looked at this entry, and it breaks the rules." in status(there, "Reader")
    assert hack_command.main([*look, "--counts"]) == 0
    assert status(there, "Reader").startswith("Entry 1, slow_links: 0.9")
    hack_command.main(["board", "autumn"])
    assert "looked at by Ann" in (there.folder / "board" / "board.html").read_text()
    hack_command.main(["verify", str(record)])
    assert "Ann has looked at it: it counts." in capsys.readouterr().out
    text = record.with_suffix(".look").read_text()
    record.with_suffix(".look").write_text(text.replace("Ann", "Ben"))
    hack_command.main(["verify", str(record)])
    assert "No person has signed" in capsys.readouterr().out

    forged = json.loads(record.read_text().split("\n%")[0])
    signing.new_key("own.key")
    forged.update(score=0.01, flags=[])
    path = record.with_name("forged.record")
    path.write_bytes(
        signing.signed(json.dumps(forged).encode() + b"\n", signing.load_key("own.key"))
    )
    assert hack_command.main(["verify", str(path), "--public", "judge.key.pub"]) == 1


@pytest.mark.parametrize(
    "words", [["9", "--by", "Ann"], ["1", "--by", " "], ["1", "--by", "\x1b[1m"]]
)
def test_a_look_needs_a_judged_entry_and_a_name(there, words, capsys):
    there.submit("Honest", "slow_links", HONEST)
    there.take()
    there.settle(
        1, json.dumps({"score": 1.0, "problem": "", "challenge": "slow_links"}) + "\n%none\n"
    )
    assert hack_command.main(["look", "autumn", *words, "--key", "judge.key", "--counts"]) == 2
    assert "hack:" in capsys.readouterr().err
