"""Unit 09: runs that are drawn are what they must be, and wrong answers are named."""

from types import FunctionType

import numpy as np
import pytest

from manyhands.checks.record import tell_apart
from manyhands.checks.staleness import cases, diagnosis
from manyhands.checks.staleness.messages import CRITERIA, HINTS, MISTAKES
from manyhands.checks.staleness.ranks import Asked, _asked, to_workers
from manyhands.simulate.asynchrony import Barrier, play, stable_rate

SEEDS = [0, 1, 4711, 2**40 + 3]
# a learner's, as right as ours
Own = type(
    "Own",
    (),
    {
        name: FunctionType(method.__code__, method.__globals__)
        for name, method in vars(Barrier).items()
        if isinstance(method, FunctionType)
    },
)


@pytest.mark.parametrize("seed", SEEDS)
def test_logs_have_what_makes_them_hard(seed):
    for log in cases.logs(seed)[1:]:
        right = cases.pulled_versions(log)
        assert all(0 <= version <= t for t, version in enumerate(right)) and right != list(
            range(len(right))
        )
        assert all(wrong != right for wrong in diagnosis._wrong_versions(log).values())


def test_wrong_versions_and_staleness_are_named():
    log = [
        ("pull", 0),
        ("pull", 1),
        ("push", 1),
        ("pull", 1),
        ("push", 0),
        ("pull", 1),
        ("push", 1),
        ("pull", 0),
        ("push", 0),
    ]
    right = cases.pulled_versions(log)
    assert right == [0, 0, 2, 3]
    assert diagnosis.versions_problem(log, diagnosis.array(right)) is None
    for name, wrong in diagnosis._wrong_versions(log).items():
        if wrong != right:
            assert (
                diagnosis.versions_problem(log, diagnosis.array(wrong))["mistake"]
                in MISTAKES.values()
            ), name
    assert (
        "one number for each push"
        in diagnosis.versions_problem(log, diagnosis.array([0]))["mistake"]
    )
    assert diagnosis.staleness_problem(log, diagnosis.array([0, 1, 0, 0])) is None
    assert "sign" in diagnosis.staleness_problem(log, diagnosis.array([0, -1, 0, 0]))["mistake"]
    assert diagnosis.two_lists(None)[0].size == 0 and diagnosis.two_lists(([1], "no"))[1].size == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_wrong_replay_is_seen(seed):
    for run in cases.runs(seed, stale=True):
        right = cases.history(run)
        assert np.abs(right).max() < 2**53 and diagnosis.history_problem(run, right) is None
        for which in (lambda t, v: (t, t, t), lambda t, v: (v, v, t), lambda t, v: (t, v, v)):
            assert diagnosis.history_problem(run, diagnosis._replay(run, which))
        assert (
            "same array"
            in diagnosis.history_problem(run, np.array([right[-1]] * len(right)))["mistake"]
        )
        assert "Version 0" in diagnosis.history_problem(run, right[1:])["mistake"]
        late = diagnosis.history_problem(run, diagnosis._replay(run, lambda t, v: (t, 0, t)))
        # wherever the first difference is
        assert len(set(tell_apart(late["expected"], late["got"]))) == 2
    assert all(
        run.versions == list(range(len(run.versions))) for run in cases.runs(seed, stale=False)
    )


@pytest.mark.parametrize(
    "got, says",
    [
        (stable_rate(3) / 5, None),
        (2 / 5, "without delay"),
        (stable_rate(3) * 5, "divide it"),
        (np.pi / 7 / 5, "angle"),
        (stable_rate(4) / 5, "bound for delay 3 + 1"),
        (0.01, "too small"),
        (float("nan"), "positive number"),
    ],
)
def test_a_wrong_rate_is_named(got, says):
    problem = diagnosis.rate_problem([5.0], [3], got)
    assert problem is None if says is None else says in problem["mistake"]


@pytest.mark.parametrize(
    "got, says",
    [
        (stable_rate(9) / 8, None),
        (2 / 20, "right for the largest curvature, 20"),
        (stable_rate(15) / 0.2, "right for the longest delay"),
        (stable_rate(15) / 20, "no direction has both"),
        (stable_rate(3) / 2, "too large, because the weights grow with it at delay 9"),
        (stable_rate(5) / 20, "mean of the delays"),
    ],
)
def test_a_wrong_choice_of_the_direction_is_named(got, says):
    problem = diagnosis.rate_problem(
        [20.0, 8.0, 0.2], [0, 9, 6 if says == "mean of the delays" else 15], got
    )
    assert problem is None if says is None else says in problem["mistake"]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_direction_that_decides_is_the_steepest_the_latest_and_neither(seed):
    decided = []
    for curvatures, delays in cases.curvatures(seed, many=True):
        bounds = [
            stable_rate(delay) / curvature
            for curvature, delay in zip(curvatures, delays, strict=True)
        ]
        first = bounds.index(min(bounds))
        decided.append((curvatures[first] == max(curvatures), delays[first] == max(delays)))
    assert decided == [(True, False), (False, True), (False, False)]


@pytest.mark.parametrize("seed", SEEDS)
def test_teams_wait_and_die_as_they_should(seed):
    for criterion in ("lockstep", "bound", "leave"):
        for team in cases.teams(seed, criterion):
            steps, left = play(team.seconds, Barrier(len(team.seconds), team.bound), team.deaths)
            assert not left and bool(team.deaths) == (criterion == "leave")
            if criterion == "leave":
                # the others die while they wait
                assert [step.worker for step in steps if step.staleness is None] == [
                    len(team.seconds) - 1
                ]
            asked = _asked(Own, team, criterion == "leave")
            assert asked["first"] is None and asked["answers"]
            if criterion == "lockstep":
                assert [] in asked["answers"] and list(range(len(team.seconds))) in asked["answers"]


def test_the_barrier_of_a_learner_is_not_asked_after_a_leave_unless_that_is_tested():
    class Deaf(Own):
        def leave(self, worker):
            return []

    team = cases.Team(0, [[1, 1, 1], [2, 2], [2, 2, 2]], [])
    assert _asked(Deaf, team, leaving=False)["first"] is None
    problem = diagnosis.barrier_problem(_asked(Deaf, team, leaving=True))
    assert (
        "The clocks of workers that have left (1 so far) must no longer count" in problem["mistake"]
        and "{" not in problem["mistake"]
    )


@pytest.mark.parametrize(
    "got, says",
    [
        (None, "must return a list"),
        ([1, 1], "twice"),
        ([0], "one too many"),
        ([2], "is not waiting"),
        ([7], "has left"),
        ([], "look at *all*"),
        ([3], "may not begin"),
    ],
)
def test_a_wrong_answer_of_a_barrier_is_named(got, says):
    first = {
        "call": "done(4)",
        "bound": 1,
        "clocks": {0: 3, 1: 2, 2: 1, 3: 6, 4: 2},
        "waiting": [0, 1, 3],
        "left": 0,
        "expected": [1],
        "got": got,
    }
    assert says in diagnosis.barrier_problem({"first": first})["mistake"]


@pytest.mark.parametrize(
    "call, bound, expected, got, says",
    [
        ("done(0)", 1, [0], [], "not less than"),
        ("done(0)", 3, [0], [], "With which worker do you compare"),
        ("leave(2)", 1, [0], [], "must no longer count"),
        ("done(1)", 1, [0, 1], [1, 0], "ascending"),
    ],
)
def test_who_is_held_back_is_told_why(call, bound, expected, got, says):
    first = {
        "call": call,
        "bound": bound,
        "clocks": {0: 3, 1: 2},
        "waiting": [0, 1],
        "left": 0,
        "expected": expected,
        "got": got,
    }
    problem = diagnosis.barrier_problem({"first": first})
    assert says in problem["mistake"] and "{" not in problem["mistake"] and problem["rank"] == 0


def test_what_is_no_list_of_workers_is_none():
    assert to_workers((2, np.int64(3))) == [2, 3]
    assert to_workers(None) is None and to_workers(["x"]) is None
    assert Asked(Own, 2, 0, True).done(1) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_choices_have_a_best_one_in_the_middle(seed):
    for kind in ("fixed", "rented"):
        for case, costs in cases.choices(seed, kind):
            best = int(np.argmin(costs))
            assert 0 < best < case.size - 1
            assert diagnosis.choice_problem(kind, case, costs, float(best)) is None
            assert "No backup at all" in diagnosis.choice_problem(kind, case, costs, 0.0)["mistake"]
            assert diagnosis.choice_problem(kind, case, costs, case.size - 1.0)
            assert "whole number" in str(diagnosis.choice_problem(kind, case, costs, 1.5))
            assert (
                kind == "rented"
                or "gradients a second"
                in diagnosis.choice_problem(kind, case, costs, float(cases.fastest(case)))[
                    "mistake"
                ]
            )


@pytest.mark.parametrize("seed", SEEDS)
def test_wrong_waits_are_told(seed):
    n, b, times = cases.waits(seed)[0]
    right = cases.step_s(n, b, times)
    assert diagnosis.step_problem(n, b, times, right * 1.005) is None
    for wrong, says in (
        (np.mean(times), "wait for one worker"),
        (cases.step_s(n, 0, times), "without backups"),
        (cases.step_s(n + b, 0, times), "waits for all"),
        (float("nan"), "number of seconds"),
    ):
        assert says in diagnosis.step_problem(n, b, times, wrong)["mistake"]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["fixed", "rented"])
def test_no_backup_may_be_best_and_the_first_minimum_may_not(seed, kind):
    (even, costs), (often_late, others) = cases.edges(seed, kind)
    assert np.argmin(costs) == 0 and diagnosis.choice_problem(kind, even, costs, 0.0) is None
    assert "b = 0 is a choice too" in diagnosis.choice_problem(kind, even, costs, 1.0)["mistake"]
    for stopped in (0.0, 1.0):
        assert (
            "try every b" in diagnosis.choice_problem(kind, often_late, others, stopped)["mistake"]
        )
    assert diagnosis.choice_problem(kind, often_late, others, float(np.argmin(others))) is None


def test_no_number_passes_for_infinity():
    class Finite(Own):
        def __init__(self, workers, bound):
            super().__init__(workers, min(bound, 100))

    problems = [
        diagnosis.barrier_problem(_asked(Finite, team, leaving=False))
        for team in cases.teams(7, "bound")
    ]
    assert "no barrier at all" in problems[0]["mistake"] and problems[1:] == [None, None]


def test_every_check_has_a_hint():
    assert {name.split("-", 1)[1] for name in HINTS} == set(CRITERIA)
    assert all(MISTAKES.values()) and all(HINTS.values())


def test_what_the_package_has_is_closed_while_a_learner_is_asked():
    from manyhands.checks.by_hand import closed

    imported = stable_rate
    with closed(stable_rate), pytest.raises(PermissionError, match="write it yourself"):
        imported(3)
    assert imported(0) == 2
    with pytest.raises(PermissionError, match="package's own"):
        Asked(type("Mine", (Barrier,), {}), 2, 0, True)


@pytest.mark.parametrize(
    "off, says", [(0.008, None), (0.02, "10,000 are not"), (0.2, "not the expected")]
)
def test_few_draws_are_named(off, says):
    times_s = [1.0, 1.1, 1.3, 4.0] * 5
    problem = diagnosis.step_problem(4, 2, times_s, (1 + off) * cases.step_s(4, 2, times_s))
    assert problem is None if says is None else says in problem["mistake"]
