"""An event through the command, with a real judge.

There are four teams, with entries that are good, bad, cheating and crashing.
"""

import json
from contextlib import nullcontext

import pytest

from manyhands.hackathon import hack_command
from manyhands.hackathon.challenges.challenge import CHALLENGES
from manyhands.hackathon.event import event_command
from manyhands.hackathon.event.event import Event
from manyhands.hackathon.judge import judging
from manyhands.hackathon.judge import sandboxes as closed
from manyhands.shared import signing

TEAMS = '[teams]\n"Ring & Tree" = ["ann"]\n"Late" = ["ben"]\n"Sly" = ["cho"]\n"Crash" = ["dee"]\n'
SLY = "import socket\ndef train(model, batches, comm):\n    socket.socket()\n"
CRASH = "def train(model, batches, comm):\n    1 / 0\n"


@pytest.fixture
def hack(tmp_path, monkeypatch, sandboxes, capsys):
    """Run a command in a folder with a key and an event: (exit code, what it said)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(closed, "Sandboxes", lambda ranks: nullcontext(sandboxes))
    seeds = judging.public_seeds(1)  # hidden ones may be bad luck for an entry
    monkeypatch.setattr(judging, "hidden_seeds", lambda: seeds)
    signing.new_key("judge.key")

    def run(*words):
        code = hack_command.main(list(words))
        output = capsys.readouterr()
        return code, output.out + output.err

    assert run("event", "autumn")[0] == 0
    path = tmp_path / "autumn" / "event.toml"
    text = path.read_text().split("[teams]")[0].replace("freeze_min = 60", "freeze_min = 0")
    text = "\n".join(
        "begins = 2020-01-01T09:00:00Z" if line.startswith("begins") else line
        for line in text.split("\n")
    )
    path.write_text(text + TEAMS)
    return run


def put(tmp_path, name, challenge, source):
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)
    (folder / "challenge.txt").write_text(challenge)
    (folder / "entry.py").write_text(source)
    return name


def test_an_event_in_small(hack, tmp_path):
    ladder = CHALLENGES["slow_links"].folder / "ladder"
    entries = {
        "Ring & Tree": (ladder / "diloco.py").read_text(),
        "Late": (ladder / "fp16.py").read_text(),
        "Sly": SLY,
        "Crash": CRASH,
    }
    for team, source in entries.items():
        code, printed = hack(
            "submit",
            put(tmp_path, "one", "slow_links", source),
            "--event",
            "autumn",
            "--team",
            team,
        )
        assert code == 0 and "No judge is running at the moment" in printed
    assert "with 3 entries before it" in printed
    code, printed = hack("submit", "one", "--event", "autumn", "--team", "Nobody")
    assert code == 2 and "There is no team 'Nobody'" in printed
    hack(
        "submit",
        put(tmp_path, "one", "slow_links", "import this"),
        "--event",
        "autumn",
        "--team",
        "Late",
    )
    assert hack("withdraw", "5", "--event", "autumn", "--team", "Late") == (
        0,
        "Entry 5 of Late is withdrawn.\n",
    )

    code, printed = hack("run", "autumn", "--key", "judge.key", "--once")
    assert (
        code == 0
        and "Entry 3 of Sly: Rank" in printed
        and "Operation not permitted" in printed
        and "ZeroDivisionError" in printed
    )
    code, printed = hack("status", "--event", "autumn", "--team", "Ring & Tree")
    assert printed.startswith("Entry 1, slow_links: 2.9") and printed.endswith(" s\n")

    page = (tmp_path / "autumn" / "board" / "board.html").read_text()
    rows = page[page.rindex("<tbody>") :]  # slow_links is the last
    assert (
        rows.index(">Ring &amp; Tree<") < rows.index(">Late<") < rows.index("ZeroDivisionError")
        and "Simplest" in rows
    )
    records = sorted((tmp_path / "autumn" / "records").iterdir())
    assert (
        len(records) == 4 and hack("verify", str(records[0]), "--public", "judge.key.pub")[0] == 0
    )
    record = json.loads(records[0].read_bytes().split(b"\n%")[0])
    assert (
        record["entry"] == "Ring & Tree 1" and record["size"] > 100 and record["seeds_of"] is None
    )

    assert hack("run", "autumn", "--key", "judge.key", "--once", "--again", "4")[0] == 0
    assert len(list((tmp_path / "autumn" / "records").iterdir())) >= 4

    # without the event, from the records alone
    assert hack("board", str(records[0].parent), "-o", "out")[0] == 0
    assert "Ring &amp; Tree 1" in (tmp_path / "out" / "board.html").read_text()
    signing.new_key("own.key")
    assert hack("board", str(records[0].parent), "-o", "out", "--public", "judge.key.pub")[0] == 0
    code, printed = hack("board", str(records[0].parent), "-o", "out", "--public", "own.key.pub")
    assert code == 1 and "a record in" in printed and "was signed with a different key" in printed
    (records[0].parent / "changed.record").write_bytes(
        records[0].read_bytes().replace(b'"size"', b'"sise"')
    )
    code, printed = hack("board", str(records[0].parent), "-o", "out")
    assert code == 1 and "changed.record was changed after it was signed" in printed
    # the others are shown
    assert "Ring &amp; Tree 1" in (tmp_path / "out" / "board.html").read_text()


def test_the_board_shows_what_comes_while_an_entry_is_judged(hack, tmp_path, monkeypatch):
    """A judging takes half a minute and more: till its end the board said that no entry waits."""
    monkeypatch.setattr(event_command, "RENEW_S", 0)
    board, seen, run, signed = (
        tmp_path / "autumn" / "board" / "board.html",
        [],
        judging.one_run,
        judging.signed,
    )

    def one_run(*arguments):
        seen.append(board.read_text())
        if len(seen) == 1:
            Event("autumn").submit("Sly", "slow_links", SLY)
        return run(*arguments)

    def sign(*arguments):
        seen.append(board.read_text())
        return signed(*arguments)

    monkeypatch.setattr(judging, "one_run", one_run), monkeypatch.setattr(judging, "signed", sign)
    hack(
        "submit", put(tmp_path, "one", "slow_links", CRASH), "--event", "autumn", "--team", "Crash"
    )
    assert hack("run", "autumn", "--key", "judge.key", "--once")[0] == 0
    assert "Waiting entries: 1" in seen[0] and "Waiting entries: 2" in seen[1]
