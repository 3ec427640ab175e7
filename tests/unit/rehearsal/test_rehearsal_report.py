"""What a rehearsal reports: findings with their lines, what was looked at, and a picture.

The picture is drawn where something hangs.
"""

import xml.etree.ElementTree as ET
from dataclasses import replace
from types import SimpleNamespace

from stories import story

from manyhands.rehearsal import Finding, dump, judge, rehearse_command
from manyhands.rehearsal.hang_watch import HangWatch
from manyhands.rehearsal.rehearsal_report import describe_findings, describe_rehearsal, draw_hang


def ring(r):
    r.collective()
    work = r.message("isend", (r.rank + 1) % len(r.all))
    r.message("recv", (r.rank - 1) % len(r.all)), r.wait(work)


def told(size, tell, **options):
    traces = story(size, tell)
    return describe_findings(judge(traces), traces, **options)


def test_nothing_found_says_what_was_looked_at_and_what_cannot_be_seen():
    first, last = told(3, lambda r: r.collective())
    assert (
        first
        == "No findings in 3 calls of collectives and 0 messages of 3 ranks in 1 group, their "
        "waits, reads and clocks."
    )
    assert last.startswith("It cannot see branches")


def test_a_finding_has_its_place_its_ranks_and_a_remedy():
    lines = told(2, ring, place=lambda file, line: f"line {line} of this cell")
    assert lines[0] == "HANGS: line 2 of this cell, ranks 0, 1" and lines[1].startswith(
        "    On rank 0: isend waits in Python for rank 1"
    )
    assert lines[1].endswith(". The same holds on the other ranks.") and lines[2].startswith(
        "    What to do: "
    )
    assert lines[3].startswith("1 finding in 2 calls of collectives and 2 messages of 2 ranks")
    assert told(2, lambda r: r.collective(op="BOR"))[0] == "FAILS: outside your code, ranks 0, 1"


def test_findings_that_differ_in_more_than_numbers_are_told_apart():
    finding = Finding("hangs", (0,), "", 3, "isend", "waits for rank 1", "wait")
    others = [
        replace(finding, ranks=(1,), text="waits for rank 2"),
        replace(finding, line=4),
        replace(finding, text="waits for ever"),
        replace(finding, remedy="do not"),
        replace(finding, call="irecv"),
        replace(finding, severity="may hang"),
    ]
    assert [line for line in describe_findings([finding, *others], {}) if line[0] != " "][:-2] == [
        "HANGS: outside your code, ranks 0, 1",
        *["HANGS: outside your code, rank 0"] * 4,
        "MAY HANG: outside your code, rank 0",
    ]


def test_the_picture_shows_who_waits_for_whom_in_red():
    traces = story(4, ring)
    drawn = draw_hang(judge(traces), traces)
    ET.fromstring(drawn.text)
    assert drawn.text == draw_hang(judge(traces), traces).text
    assert drawn.text.count(">isend<") == 4 and "#c81e1e" in drawn.text


def test_no_picture_where_nothing_hangs():
    for tell in (lambda r: r.collective(), lambda r: r.collective(op="BOR")):
        traces = story(2, tell)
        assert draw_hang(judge(traces), traces) is None


LOST = (
    "RuntimeError: [third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer "
    "[127.0.0.1]:42387."
)


def left_behind(folder, ends):
    """Judge a script whose ranks 0 and 1 reduce once more than rank 2, with these ends of ranks."""
    traces = story(3, lambda r: [r.collective() for _ in range(1 if r.rank == 2 else 2)])
    for rank, end in enumerate(ends):
        (folder / f"{rank}.trace").write_text(dump(traces[rank]))
        (folder / f"{rank}.end").write_text(end)
    (folder / "train.py").touch()
    return rehearse_command._judge_run(
        folder / "train.py",
        folder,
        3,
        SimpleNamespace(timed_out=False, returncode=1, first_failed=None),
        HangWatch(folder, 3),
    )


def test_a_rank_that_leaves_early_is_judged_though_gloo_raises_on_the_others(tmp_path):
    made = left_behind(tmp_path, [LOST, LOST, ""])
    assert (made.errors, made.code, made.left) == ({}, rehearse_command.FOUND, True)
    assert [(finding.severity, finding.ranks) for finding in made.findings] == [("hangs", (0, 1))]
    assert (
        describe_rehearsal(made)[0]
        == "With gloo, too, a rank had ended while others waited for it."
    )


def test_of_several_errors_the_cause_is_told_and_not_what_came_of_it(tmp_path):
    made = left_behind(tmp_path, [LOST, "KeyError: 'mine'", ""])
    assert made.code == rehearse_command.FAILED and not made.findings
    assert describe_rehearsal(made) == [
        "rank 1 of train.py failed by itself, so nothing was judged:",
        "KeyError: 'mine'",
    ]
    # nobody has ended by itself
    assert left_behind(tmp_path, [LOST, LOST, LOST]).code == rehearse_command.FAILED


def test_a_script_that_calls_nothing_is_not_taken_for_a_clean_one():
    made = rehearse_command.Rehearsal("train.py", {0: [], 1: []}, [], {})
    assert describe_rehearsal(made) == [
        "Not determined, because train.py did not call torch.distributed. Is it the script that "
        "torchrun starts?"
    ]
    assert made.code == rehearse_command.UNKNOWN
