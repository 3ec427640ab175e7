"""Who stands where."""

from small_event import event, record

from manyhands.hackathon.event import standings
from manyhands.hackathon.event.event import judge_all
from manyhands.hackathon.event.standings import Result


def came(team, score, at=0, size=10, number=0):
    return Result(
        team, "slow_links", number, at, score, "s", "" if score is not None else "crashed", size, ""
    )


def shown(rows):
    return [(row.team, row.score) for row in rows]


def test_the_best_or_the_last_of_a_team_counts_and_the_smallest_score_wins():
    results = [
        came("a", 3.0),
        came("b", 4.0, 1),
        came("a", 2.0, 2),
        came("a", 5.0, 3),
        came("c", None, 4),
    ]
    assert shown(standings.table(results, "best")) == [("a", 2.0), ("b", 4.0), ("c", None)]
    assert shown(standings.table(results, "last")) == [("b", 4.0), ("a", 5.0), ("c", None)]
    last = standings.table([*results, came("b", None, 5)], "last")
    assert shown(last) == [("a", 5.0), ("c", None), ("b", None)]


def test_equal_scores_share_a_place_and_the_first_stands_above():
    rows = standings.table(
        [came("late", 2.0, 9), came("early", 2.0, 1), came("third", 3.0), came("none", None)],
        "best",
    )
    assert [row.team for row in rows] == ["early", "late", "third", "none"] and standings.places(
        rows
    ) == [1, 1, 3, None]


def test_the_simplest_must_be_better_than_the_baseline():
    rows = [
        came("good", 2.0, size=20),
        came("simple", 3.0, size=9),
        came("baseline", 5.0, size=5),
        came("none", None, size=1),
    ]
    assert standings.simplest(rows, 5.0).team == "simple"
    assert standings.simplest([came("baseline", 5.0)], 5.0) is None
    assert (
        standings.simplest([came("slow", 3.0, size=9), came("fast", 2.0, size=9)], 5.0).team
        == "fast"
    )


def test_what_counted_over_time():
    results = [
        came("a", None, 0),
        came("a", 4.0, 1),
        came("a", 5.0, 2),
        came("a", 3.0, 3),
        came("b", None, 4),
    ]
    assert standings.steps(results, "best") == {"a": [(0, None), (1, 4.0), (3, 3.0)]}
    assert standings.steps(results, "last") == {"a": [(0, None), (1, 4.0), (2, 5.0), (3, 3.0)]}


def test_withdrawn_entries_and_those_after_the_freeze_are_not_shown(tmp_path):
    there = event(tmp_path, an_hour=100)
    for source in "abc":
        there.now.now_s += 1
        there.submit("team 0", "slow_links", source)
    judge_all(there, lambda submission: record(float(submission.number)))
    there.withdraw("team 0", 1)
    submissions = there.submissions()
    assert [result.score for result in standings.results(submissions.values())] == [2.0, 3.0]
    assert [
        result.score for result in standings.results(submissions.values(), submissions[2].at)
    ] == [2.0]
