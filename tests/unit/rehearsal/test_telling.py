"""What a rehearsal says: findings with their place, what was looked at, and a picture where something hangs."""

import xml.etree.ElementTree as ET

from stories import story

from manyhands.rehearsal import judge, rehearse_command
from manyhands.rehearsal.telling import lines, picture


def ring(r):
    r.collective()
    work = r.message("isend", (r.rank + 1) % len(r.all))
    r.message("recv", (r.rank - 1) % len(r.all)), r.wait(work)


def told(size, tell, **options):
    traces = story(size, tell)
    return lines(judge(traces), traces, **options)


def test_nothing_found_says_what_was_looked_at_and_what_cannot_be_seen():
    first, last = told(3, lambda r: r.collective())
    assert first == "No findings in 3 calls of collectives and 0 messages of 3 ranks in 1 group, their waits, reads and clocks."
    assert last.startswith("It cannot see: branches")


def test_a_finding_has_its_place_its_ranks_and_a_remedy():
    said = told(2, ring, place=lambda file, line: f"line {line} of this cell")
    assert said[0] == "HANGS: line 2 of this cell, rank 0" and said[1].startswith("    isend waits in Python for rank 1")
    assert said[2].startswith("    What to do: ") and said[-2].startswith("2 findings in 2 calls of collectives and 2 messages of 2 ranks")
    assert told(2, lambda r: r.collective(op="BOR"))[0] == "FAILS: no line of yours, ranks 0, 1"


def test_the_picture_shows_who_waits_for_whom_in_red():
    traces = story(4, ring)
    drawn = picture(judge(traces), traces)
    ET.fromstring(drawn.text)
    assert drawn.text == picture(judge(traces), traces).text
    assert drawn.text.count(">isend<") == 4 and "#c81e1e" in drawn.text


def test_no_picture_where_nothing_hangs():
    for tell in (lambda r: r.collective(), lambda r: r.collective(op="BOR")):
        traces = story(2, tell)
        assert picture(judge(traces), traces) is None


def test_a_script_that_calls_nothing_is_not_taken_for_a_clean_one():
    first, second, _ = rehearse_command.told(rehearse_command.Rehearsal("train.py", {0: [], 1: []}, [], {}))
    assert first == "train.py has called nothing of torch.distributed: is it the script that torchrun starts?"
    assert second.startswith("No findings in 0 calls")
