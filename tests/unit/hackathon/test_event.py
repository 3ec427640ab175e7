"""Handing in, withdrawing, taking, judging; and that nothing is lost, whoever is killed when."""

import os
import random
import signal
import time
from collections import Counter

import pytest
from small_event import BEGINS, ENDS, Clock, event, record, refusal

from manyhands.hackathon.entry.entry_file import MOST_BYTES, BadEntryError
from manyhands.hackathon.event import event as events
from manyhands.hackathon.event import event_messages
from manyhands.hackathon.event.event import GIVEN_UP, judge_all


def test_an_entry_is_handed_in_judged_and_kept(tmp_path):
    there = event(tmp_path)
    number = there.submit("team 0", "slow_links", "pass\n")
    submission = there.take()
    assert (submission.number, submission.source, submission.team) == (
        number,
        "pass\n",
        "team 0",
    ) and there.submissions()[number].waits
    assert there.settle(number, record(3.0)) and not there.settle(number, record(1.0))
    assert (
        there.submissions()[number].record == record(3.0)
        and there.take() is None
        and there.waiting(number) is None
    )


def test_what_the_event_does_not_take_is_told(tmp_path):
    there = event(tmp_path, an_hour=2)
    assert "no team 'x'" in refusal(there.submit, "x", "slow_links", "")
    assert "no challenge 'x'. Its challenges are slow_links, big_batch" in refusal(
        there.submit, "team 0", "x", ""
    )
    with pytest.raises(BadEntryError, match="longer than"):
        there.submit("team 0", "slow_links", "é" * (MOST_BYTES // 2 + 1))
    there.now.now_s = BEGINS - 1
    assert "has not begun" in refusal(there.submit, "team 0", "slow_links", "")
    there.now.now_s = ENDS + 1
    assert "is over" in refusal(there.submit, "team 0", "slow_links", "")
    assert there.submissions() == {}


def test_a_team_has_a_limit_in_each_hour_and_is_told_when_it_may_again(tmp_path):
    there = event(tmp_path, an_hour=2)
    first = there.submit("team 0", "slow_links", "1")
    assert "is already waiting as number 1" in refusal(there.submit, "team 0", "slow_links", "1")
    there.now.now_s += 600
    there.submit("team 0", "big_batch", "1")
    at = time.strftime("%H:%M", time.localtime(BEGINS + 3600))
    assert f"the next from {at} on" in refusal(there.submit, "team 0", "slow_links", "2")
    there.submit("team 1", "slow_links", "2")
    there.withdraw("team 0", first)  # it waited: the place is free again
    there.submit("team 0", "slow_links", "2")
    there.settle(there.take().number, record(1.0))  # of the other team
    assert there.take().number == 2
    there.withdraw("team 0", 2)  # a judge had begun with it: it is not
    assert "2 entries in the last hour" in refusal(there.submit, "team 0", "slow_links", "3")
    there.now.now_s = BEGINS + 600 + 3600
    there.submit("team 0", "slow_links", "3")


def test_an_entry_is_withdrawn_by_its_team_only_and_then_not_judged(tmp_path):
    there = event(tmp_path)
    number = there.submit("team 0", "slow_links", "")
    assert "no entry 1" in refusal(there.withdraw, "team 1", number) and "no entry 9" in refusal(
        there.withdraw, "team 0", 9
    )
    there.withdraw("team 0", number)
    assert "already been withdrawn" in refusal(there.withdraw, "team 0", number)
    assert there.take() is None and there.waiting(number) is None


def test_the_organisers_have_an_entry_judged_again_and_its_record_counts_until_then(tmp_path):
    there = event(tmp_path)
    number = there.submit("team 0", "slow_links", "")
    assert "no judged entry" in refusal(there.again, number)
    judge_all(there, lambda submission: record(1.0))
    there.again(number)
    assert there.submissions()[number].record == record(1.0) and there.waiting(number).before == 0
    judge_all(there, lambda submission: record(2.0))
    assert there.submissions()[number].record == record(2.0) and there.take() is None


def test_what_ends_the_judge_itself_does_not_do_so_for_ever(tmp_path):
    there = event(tmp_path)
    bad, good = (
        there.submit("team 0", "slow_links", "kills"),
        there.submit("team 1", "slow_links", ""),
    )
    taken = [there.take().number for _ in range(events.MOST_TIMES + 1)]
    assert taken == [bad] * events.MOST_TIMES + [good]
    assert there.submissions()[bad].record == GIVEN_UP


def test_only_one_process_judges(tmp_path):
    there = event(tmp_path)
    assert not there.is_judged()
    with there.judge():
        assert there.is_judged() and "judges" in refusal(lambda: there.judge().__enter__())
    assert not there.is_judged()


def test_a_log_that_was_cut_anywhere_tells_what_came_before_and_goes_on(tmp_path):
    there = event(tmp_path)
    for team in range(3):
        there.submit(f"team {team}", "slow_links", f'say = "}}\\n{{" # {team}\n')
    whole = there.log.path.read_bytes()
    ends = [place for place, byte in enumerate(whole) if byte == ord("\n")]
    for length in range(len(whole)):
        there.log.path.write_bytes(whole[:length])
        left = there.submissions()
        # a line is whole without its end of line, too
        assert len(left) == sum(end <= length for end in ends)
    there.submit("team 2", "big_batch", "")
    assert [submission.challenge for submission in there.submissions().values()] == [
        "slow_links"
    ] * 3 + ["big_batch"]
    there.log.path.write_bytes(whole[:-5])
    assert there.submit("team 2", "big_batch", "") == 3 and len(there.submissions()) == 3


def forked(work):
    """A process that does it and ends."""
    child = os.fork()
    if not child:
        try:
            work()
        finally:
            os._exit(0)
    return child


def test_a_judge_killed_at_twenty_random_moments_loses_nothing_and_judges_nothing_twice(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(events, "MOST_TIMES", 100)
    # no machine is cut off here, and it takes its time
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    there, handed_in, ends, moments = event(tmp_path, an_hour=1000), 0, [], Counter()
    begun, at_work = os.pipe()

    def judge():
        with there.judge():
            os.write(at_work, b"x")
            judge_all(
                there, lambda submission: time.sleep(0.004) or record(float(submission.number))
            )

    for _ in range(20):
        for _ in range(6):
            there.submit(f"team {handed_in % 3}", "slow_links", str(handed_in))
            handed_in += 1
        child = forked(judge)
        os.read(begun, 1)  # a machine that is busy may not have let it begin
        time.sleep(random.uniform(0, 0.025))
        os.kill(child, signal.SIGKILL)
        ends.append(os.waitpid(child, 0)[1])
        moments[there.log.read()[-1]["do"]] += 1
    assert ends.count(signal.SIGKILL) >= 15, ends  # the others had ended before
    # killed while they had an entry; and elsewhere, as it comes
    assert moments["take"] >= 3, moments
    judge()
    submissions = there.submissions()
    assert sorted(submissions) == list(range(1, handed_in + 1))
    assert [submission.record for submission in submissions.values()] == [
        record(float(number)) for number in submissions
    ]
    assert set(
        Counter(line["number"] for line in there.log.read() if line["do"] == "judged").values()
    ) == {1}
    # some were begun by a judge that was killed
    assert max(len(submission.taken) for submission in submissions.values()) > 1


def test_forty_teams_hand_in_at_once_and_nothing_is_lost(tmp_path):
    there = event(tmp_path, teams=40)
    children = [
        forked(
            lambda mine=mine: [
                there.submit(f"team {team}", "slow_links", "x" * 2000) for team in mine
            ]
        )
        for mine in (range(start, 40, 8) for start in range(8))
    ]
    for child in children:
        os.waitpid(child, 0)
    submissions = there.submissions()
    assert sorted(submissions) == list(range(1, 41)) and {
        submission.team for submission in submissions.values()
    } == set(there.settings.teams)


def test_forty_entries_within_a_minute_are_told_waiting_times_and_these_are_kept(tmp_path):
    clock, waits, teams = Clock(), {}, random.sample(range(40), 40)
    there = event(tmp_path, teams=40, clock=clock)
    there.submit("team 0", "slow_links", "the first tells how long one takes")
    judge_all(there, lambda submission: setattr(clock, "now_s", clock.now_s + 30) or record(1.0))
    there.submit("team 1", "slow_links", "and this is judged meanwhile")

    def judge_one(one):
        for _ in range(30):
            clock.now_s += 1
            for _ in range(min(len(teams), 1 if clock.now_s % 3 else 2)):
                number = there.submit(f"team {teams.pop()}", "slow_links", "x")
                waits[number] = clock.now_s, there.waiting(number)
        return record(1.0)

    judge_all(there, judge_one)
    submissions = there.submissions()
    assert (
        len(waits) == 40
        and max(at for at, _ in waits.values()) - min(at for at, _ in waits.values()) < 60
    )
    for number, (at, wait) in waits.items():
        waited_s = submissions[number].judged - at
        assert wait.about_s <= waited_s <= wait.at_most_s
        # they had their turn before
        assert waited_s == wait.about_s or submissions[number].team in ("team 0", "team 1")


def test_what_a_team_is_told(tmp_path):
    there = event(tmp_path)
    first = event_messages.handed_in(there, "team 0", "slow_links", "1")
    assert (
        first
        == "Entry 1 of team 0: slow_links. It is the first in the queue. No judge is running at the"
        " moment. Nothing is lost, but the time is not known."
    )
    with there.judge():
        assert "No entry has a score yet" in event_messages.status(there, "team 0")
        there.take()
        there.now.now_s += 30
        there.settle(1, record(3.0))
        event_messages.handed_in(there, "team 1", "slow_links", "1")
        event_messages.handed_in(there, "team 0", "slow_links", "2")
        third = event_messages.status(there, "team 0")
        there.take()
        there.now.now_s += 31
        assert (
            "The judge has been working on it since 08:00. Its result may arrive at any moment."
            in event_messages.status(there, "team 1")
        )
    assert (
        third
        == "Entry 1, slow_links: 3 s\nEntry 3, slow_links: It is waiting, with 1 entry before it. "
        "Its result is ready in about 60 s, or in 90 s if all other teams hand in now. An entry "
        "whose judging keeps others waiting for more than 120 s is put behind them."
    )
    assert event_messages.withdrawn(there, "team 0", 3) == "Entry 3 of team 0 is withdrawn."
    assert event_messages.status(there, "team 0").endswith("Entry 3, slow_links: withdrawn")
    assert event_messages.status(there, "team 2") == "team 2 has handed in nothing yet."
    assert "no team 'x'" in refusal(event_messages.status, there, "x")
