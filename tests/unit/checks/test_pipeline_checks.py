"""Unit 14's checks: what is asked for is what it claims to be, and verdicts name the mistake.

Whole answers are tried by the mutants.
"""

import random

import pytest

from manyhands.checks.pipeline import cases, diagnosis, in_time, plan_cases, plan_diagnosis
from manyhands.checks.pipeline.messages import CRITERIA, HINTS, MISTAKES
from manyhands.checks.report import Stopped
from manyhands.simulate.pipeline import Stuck

SEEDS = (0, 7, 4711)


@pytest.mark.parametrize("seed", SEEDS)
def test_odd_orders_can_be_done_and_broken_ones_cannot(seed):
    asked = cases.deadlocks(seed)
    assert sorted(possible for _, possible in asked) == [False, False, False, True, True]
    for orders, possible in asked:
        ones = [1.0] * len(orders)
        if possible:
            assert cases.play_orders(orders, ones, ones)
        else:
            with pytest.raises(Stuck):
                cases.play_orders(orders, ones, ones)
        assert diagnosis.stuck_problem(possible, None if possible else ValueError("no"), 3) is None
        assert diagnosis.stuck_problem(possible, ValueError("no") if possible else None, 3)


def test_odd_orders_in_turn_need_no_tags():
    orders = cases.odd(random.Random(3), 4, 6, in_turn=True)
    assert len({tuple(m for kind, m in order if kind == "B") for order in orders}) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_the_short_simulation_is_the_long_one(seed):
    for messages in (False, True):
        for orders, forward_s, backward_s, message_s in cases.timings(seed, messages):
            spans = cases.play_orders(orders, forward_s, backward_s, message_s)
            assert plan_cases._step_s(orders, forward_s, backward_s, message_s) == pytest.approx(
                max(s.stop_s for row in spans for s in row)
            )


@pytest.mark.parametrize("seed", SEEDS)
def test_each_job_has_one_best_plan_and_a_trap(seed):
    jobs = plan_cases.jobs(seed)
    for (job, plans), (kind, trap) in zip(jobs, plan_cases.TRAPS.items(), strict=True):
        fit = plan_cases.by_price(job, plans)
        assert fit[1][0] >= 1.03 * fit[0][0]
        stages, count, schedule = fit[0][1]
        dearer, right = ([plan] for plan in (fit[1][1], fit[0][1]))
        assert plan_diagnosis.problems([(job, plans)], right) == [
            dict.fromkeys(plan_diagnosis.NAMES)
        ]
        (dearer,) = plan_diagnosis.problems([(job, plans)], dearer)
        assert dearer["cheapest"] and not dearer["memory"] and not dearer["idle"]
        without_idle = min(
            (numbers.price, plan)
            for plan, numbers in plans.items()
            if numbers.memory <= job.memory_bytes
        )[1]
        assert {
            "memory": plans[stages, count, "gpipe"].memory > job.memory_bytes,
            "messages": schedule == "gpipe",
            "idle": without_idle != fit[0][1],
            "many": count < max(job.micro_batches),
            "exactly": plans[fit[0][1]].memory == job.memory_bytes,
        }.get(kind, True)
        assert trap is None or plan_cases.thought_of(job, trap) != fit[0][1]
    assert (
        len({tuple(job.forward_s) for job, _ in jobs})
        > 1
        < len({tuple(job.micro_batches) for job, _ in jobs})
    )


def test_a_short_way_of_thinking_is_named_where_it_explains_the_wrong_plans():
    jobs = plan_cases.jobs(0)
    for name in ("weights thrice", "starts of forwards"):
        answers = [
            plan_cases.thought_of(job, name) or plan_cases.by_price(job, plans)[0][1]
            for job, plans in jobs
        ]
        mistakes = [
            details["mistake"]
            for judgement in plan_diagnosis.problems(jobs, answers)
            for details in judgement.values()
            if details
        ]
        assert any(MISTAKES[name] in text for text in mistakes)
    with pytest.raises(Stopped, match="seems to have found no plan that fits"):
        plan_diagnosis.ask_plan(lambda job: min([]), jobs[0][0])


@pytest.mark.parametrize("seed", SEEDS)
def test_neither_equal_nor_full_stages_are_best(seed):
    for costs, stages in cases.networks(seed)[:4]:
        assert cases.smallest(costs, stages) < min(
            cases.dearest(costs, way(costs, stages)) for way in (cases.even_cut, cases.greedy_cut)
        )
        assert [
            layer for block in cases.greedy_cut(costs, stages) for layer in range(len(costs))[block]
        ] == list(range(len(costs)))
    for (costs, stages), measure in zip(
        cases.networks(seed), (cases.squares, cases.spread), strict=False
    ):
        evened = cases.least(measure, costs, stages)
        assert cases.smallest(costs, stages) < cases.dearest(costs, evened)
        problem = diagnosis.dearest_problem(
            (costs, stages), [(block.start, block.stop) for block in evened]
        )
        assert problem["mistake"] == MISTAKES["evened"]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_easily_forgotten_is_asked(seed):
    """The cases include what an answer may forget.

    These are fewer micro-batches than a warm-up, forwards out of turn, and a backward before its
    own forward on the rank where nothing else forbids it.
    """
    assert any(count < stages - 1 for stages, count in cases.pipelines(seed))
    orders = cases.odd(random.Random(seed), 3, 6)
    assert any(
        [m for kind, m in order if kind == "F"] != sorted(m for kind, m in order if kind == "F")
        for order in orders
    )
    last = [orders[-1] for orders, possible in cases.deadlocks(seed) if not possible]
    assert any(
        order.index(("B", m)) < order.index(("F", m))
        for order in last
        for m in {m for _, m in order}
    )


@pytest.mark.parametrize(
    "order, says",
    [
        ([("F", 0), ("F", 1), ("B", 0)], "('B', 1) is not in the order"),
        ([("F", 0)] * 2, "is in the order twice"),
        ([("F", 2)], "with m from 0 to 1"),
        ([("B", 0), ("F", 0), ("F", 1), ("B", 1)], "is before its forward"),
        (None, "not a list of pairs"),
    ],
)
def test_a_broken_order_is_named(order, says):
    assert says in diagnosis.broken_order(order, 1, 2, 2)["mistake"]


def test_orders_that_wait_for_each_other_are_told_who_waits():
    orders = [[("F", 0), ("B", 0), ("F", 1), ("B", 1)], [("F", 0), ("F", 1), ("B", 0), ("B", 1)]]
    mistake = diagnosis.order_problem("1f1b", (2, 2), orders)["mistake"]
    assert (
        "wait for each other forever" in mistake
        and "rank 0 waits, before backward of micro-batch 0" in mistake
    )
    assert diagnosis.order_problem("1f1b", (2, 2), cases.plain("1f1b", 2, 2)) is None
    assert (
        "GPipe does all forwards first"
        in diagnosis.order_problem("gpipe", (2, 2), cases.plain("1f1b", 2, 2))["mistake"]
    )


def test_the_evidence_is_the_same_for_all_that_may_be():
    (job, plans), *_ = plan_cases.jobs(0)
    fit = [
        plan_diagnosis.evidence(job, plans, plan)
        for plan, numbers in plans.items()
        if plan_cases.fits(job, numbers)
    ]
    assert (
        len({(evidence["memory"], evidence["idle"]) for evidence in fit})
        == 1
        < len({evidence["cheapest"] for evidence in fit})
    )
    (judgement,) = plan_diagnosis.problems(
        [(job, plans)], [plan_diagnosis.plan_of(job, (5, 1, "gpipe"))]
    )
    assert judgement["memory"]["mistake"] == MISTAKES["no plan"]
    assert (
        diagnosis.alive_evidence((4, 8), [("F", 0), ("B", 0)], 1) == 3
        and diagnosis.alive_evidence((4, 8), None, 1) == -1
    )


def test_what_is_no_answer():
    assert (
        diagnosis.pairs(3) is diagnosis.pairs([("F",)]) is None
        and diagnosis.pairs(["F1"]) is None
        and diagnosis.pairs([["F", 1]]) == [("F", 1)]
    )
    assert diagnosis.times_of(None, [[1]]) is diagnosis.times_of([[1, 2]], [[1]]) is None
    assert diagnosis.blocks_of([3], [1, 2]) is None and diagnosis.blocks_of(
        [slice(0, None)], [1, 2]
    ) == [(0, 2)]


def test_an_answer_without_an_end():
    def endless():
        while True:
            pass

    answer, error = in_time.answer_in(0.05, endless)
    assert answer is None and isinstance(error, TimeoutError)
    assert in_time.answer_in(1, lambda: 3) == (3, None)


def test_every_check_has_a_hint_and_every_text_a_check():
    assert {name.split("-", 1)[1] for name in HINTS} == set(CRITERIA)
    assert all(MISTAKES.values()) and all(HINTS.values())
    assert sum(points for check in CRITERIA.values() for points, _ in check.values()) == 21
