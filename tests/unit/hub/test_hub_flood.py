"""One team that hands in and withdraws without end.

What it may do, and that nobody's request costs what it left in the log.
"""

import json
from pathlib import Path

import pytest

from hub_line import make_event
from manyhands.hackathon.event import event as events
from manyhands.hackathon.event.event import Event
from manyhands.hub.board import service as service_module
from manyhands.hub.board.files import NAME as BOARD_FILE
from manyhands.hub.board.hub_event import NAME

# a log of 19 MB; the 7,200 pairs of 138 MB would take the test's time only
PAIRS, SOURCE = 1000, "x" * 19_000


@pytest.fixture
def service(tmp_path, monkeypatch):
    monkeypatch.setattr(service_module, "AT_ONCE", 10**6)
    make_event(tmp_path, others=["cho"])
    return service_module.Service(tmp_path)


def ask(service, name, what, *values):
    return service.take(service.people.of_name(name), json.dumps({"hack": what, "values": values}))


def bytes_read():
    """By this process until now, as the kernel counts."""
    return int(Path("/proc/self/io").read_text().split("rchar: ")[1].split()[0])


def fill(folder, pairs, at):
    """The log of a team that has handed in and withdrawn so often, an hour ago."""
    lines = []
    for number in range(1, pairs + 1):
        lines.append(
            {
                "do": "submit",
                "number": number,
                "team": "Ring",
                "challenge": "slow_links",
                "sha256": "00",
                "source": SOURCE,
                "at": at,
                "round": number,
            }
        )
        lines.append({"do": "withdraw", "number": number, "at": at})
    (folder / NAME / "event.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_handing_in_and_withdrawing_without_end_comes_to_an_end(service):
    answers = []
    for number in range(100):
        answers += [
            ask(service, "ann", "submit", "slow_links", f"# {number}"),
            ask(service, "ann", "withdraw", number + 1),
        ]
    taken = sum("said" in answer for answer in answers[::2])
    assert taken == 6 + events.FREE_WITHDRAWALS, "an_hour, and those that are free to withdraw"
    assert "has withdrawn" in answers[-2]["error"] and "the next from" in answers[-2]["error"]
    assert "said" in ask(service, "cho", "submit", "slow_links", "# other"), (
        "each team has its own limit"
    )
    assert (service.hackathon.folder / "event.jsonl").stat().st_size < 10_000


def test_the_time_that_is_told_is_when_the_next_entry_is_taken(tmp_path):
    make_event(tmp_path)
    there, clock = Event(tmp_path / NAME), [2_000_000_000.0]
    there.now = lambda: clock[0]
    there.settings = type(there.settings)(**{**vars(there.settings), "ends": 3e9})
    for number in range(1, 6 + events.FREE_WITHDRAWALS + 1):
        there.submit("Ring", "slow_links", str(number))
        there.withdraw("Ring", number)
        clock[0] += 60

    def refused():
        try:
            there.submit("Ring", "slow_links", "one more")
        except events.NotTakenError as problem:
            return str(problem)

    first = refused()
    while first and refused():
        clock[0] += 1
    assert first and f"the next from {events._clock(clock[0])} on" in first


def test_no_request_reads_the_log_again(service):
    fill(service.people.accounts.folder, PAIRS, 0.0)
    before = bytes_read()
    assert "withdrawn" in ask(service, "ann", "status")["said"]
    assert bytes_read() - before > 19 * 10**6, "once it is read"
    before = bytes_read()
    for number in range(5):
        assert "said" in ask(service, "cho", "submit", "slow_links", f"# {number}")
        assert f"Entry {PAIRS + 2 * number + 1}" in ask(service, "cho", "status")["said"]
        assert "said" in ask(service, "cho", "withdraw", PAIRS + 2 * number + 1)
        ask(service, "ann", "submit", "slow_links", f"# {number}")
    assert bytes_read() - before < 10**6


def test_what_another_process_writes_is_seen_and_a_log_that_was_replaced_is_read_anew(service):
    ask(service, "ann", "submit", "slow_links", "# 1")
    path, other = service.hackathon.folder / "event.jsonl", Event(service.hackathon.folder)
    other.settle(
        other.take().number,
        json.dumps({"score": 2.5, "unit": "s", "problem": "", "challenge": "slow_links"})
        + "\n%none\n",
    )
    assert ask(service, "ann", "status")["said"] == "Entry 1, slow_links: 2.5 s"
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b"\n") + 30])  # cut off in the middle of a line
    assert (
        "Entry 1, slow_links: It is the first in the queue."
        in ask(service, "ann", "status")["said"]
    )
    ask(service, "ben", "submit", "slow_links", "# 2")
    assert ask(service, "ann", "status")["said"].count("Entry") == 2
    path.write_bytes(whole.replace(b"2.5", b"7.5"))  # in the same file, longer than what was read
    assert ask(service, "ann", "status")["said"] == "Entry 1, slow_links: 7.5 s"
    (path.parent / "new").write_bytes(whole)
    (path.parent / "new").replace(path)
    assert ask(service, "ann", "status")["said"] == "Entry 1, slow_links: 2.5 s"
    path.unlink()
    assert "nothing yet" in ask(service, "ann", "status")["said"]


def test_no_other_request_reads_a_file_that_grows_with_what_was_sent(service, tmp_path):
    """The board's files and the log of accounts are read at the start only.

    Later, results, predictions and log-ins are only written to them.
    """
    for name in (BOARD_FILE, "log.jsonl"):
        with open(tmp_path / name, "ab") as file:
            file.write(b'{"announcement": null}\n' * 200_000)
    service = service_module.Service(tmp_path)
    with open(tmp_path / BOARD_FILE, "ab") as file:
        file.write(b'{"announcement": null}\n' * 200_000)
    ann, tea = service.people.of_name("ann"), service.people.of_name("tea")
    before = bytes_read()
    for _ in range(10):
        for line in (
            '{"unit": "06_ddp", "criteria": []}',
            '{"prediction": "00-graph", "guess": 1}',
            '{"hack": "status", "values": []}',
        ):
            service.take(ann, line)
        (
            service.view(ann, ""),
            service.view(tea, ""),
            service.predictions("", True, True),
            service.announce(tea, "x"),
        )
    assert bytes_read() - before < 10**6
