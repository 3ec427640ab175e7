"""How exercise 6 of unit 14 is judged.

A plan must fit, and be the cheapest. If an incomplete calculation explains it, the calculation is
named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manyhands.checks.by_hand import closed
from manyhands.checks.in_kernel import call, likely
from manyhands.checks.pipeline import plan_cases as cases
from manyhands.checks.pipeline.diagnosis import problem
from manyhands.checks.pipeline.messages import MISTAKES
from manyhands.checks.report import Stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from manyhands.checks.pipeline.plan_cases import Numbers, Plan
    from manyhands.checks.report import Problem

NAMES = ("memory", "idle", "cheapest")
# parts of exceptions that mean that nothing was found
OF_NONE = ("NoneType", "empty", "index out of range", "not associated with a value")


def ask_plan(function: Callable[..., Any], job: Any) -> Plan | None:
    """Return the learner's answer as a plan that the job has, or None.

    Raises `Stopped` if the function raises or finds nothing.
    """
    with closed(cases.evaluate, cases.by_price):
        answer, error = call(function, job)
    if error and not any(text in error for text in OF_NONE):
        raise Stopped(error)
    if error or answer is None:
        found_none = [
            MISTAKES[name] for name in cases.THOUGHTS if cases.thought_of(job, name) is None
        ]
        raise Stopped(
            "\n".join([error or "plan returned None.", MISTAKES["none fits"], *found_none[:1]])
        )
    return plan_of(job, answer)


def plan_of(job: Any, answer: Any) -> Plan | None:
    """Return the learner's answer as one of the job's plans, or None if it is none of them."""
    try:
        stages, count, schedule = answer
        plan = int(stages), int(count), str(schedule)
    except Exception:  # noqa: BLE001 - a learner's object may do anything here
        return None
    return plan if plan in cases.every_plan(job) else None


def problems(
    jobs: Sequence[tuple[Any, dict[Plan, Numbers]]], answers: Sequence[Plan | None]
) -> list[dict[str, Problem | None]]:
    """Return [{criterion: problem}] of the plans.

    If an incomplete calculation explains at least half of the wrong plans, it is named.
    """
    judgements = [
        _problems(job, plans, plan) for (job, plans), plan in zip(jobs, answers, strict=True)
    ]
    if None in answers or not any(any(judgement.values()) for judgement in judgements):
        return judgements
    thoughts = [
        (
            cases.by_price(job, plans)[0][1],
            {name: cases.thought_of(job, name) for name in cases.THOUGHTS},
            plan,
        )
        for (job, plans), plan in zip(jobs, answers, strict=True)
    ]
    named = likely(thoughts)
    for judgement in judgements if named else ():
        for name, details in judgement.items():
            if details and details["mistake"] != MISTAKES["unfit"]:
                judgement[name] = {
                    **details,
                    "mistake": f"{details['mistake']}\n{MISTAKES[named[0]]}",
                }
    return judgements


def _problems(job: Any, plans: dict[Plan, Numbers], plan: Plan | None) -> dict[str, Problem | None]:
    """Return {criterion: problem} of one plan. `plans` has the numbers of all plans."""
    if plan is None:
        return dict.fromkeys(NAMES, problem("no plan"))
    got, judgement = plans[plan], dict.fromkeys(NAMES)
    if got.memory > job.memory_bytes:
        weights, activations = max(cases.needs(job, *plan), key=sum)
        looks = (
            "memory weights"
            if 4 * max(job.weight_bytes[plan[0]]) > job.memory_bytes
            else "memory kept"
        )
        judgement["memory"] = problem(
            looks,
            got=str(plan),
            need=got.memory,
            has=job.memory_bytes,
            weights=weights,
            kept=activations,
        )
    if got.idle > job.idle:
        judgement["idle"] = problem("too idle", got=str(plan), idle=got.idle, allowed=job.idle)
    best = cases.by_price(job, plans)[0]
    if judgement["memory"] or judgement["idle"]:
        judgement["cheapest"] = problem("unfit")
    elif got.price > 1.01 * best[0]:
        judgement["cheapest"] = problem("dearer", got=str(plan), cheapest=best[0], price=got.price)
    return judgement


def evidence(job: Any, plans: dict[Plan, Numbers], plan: Plan | None) -> dict[str, float]:
    """Return what the grader compares.

    It is the same for every plan that fits, and what the plan costs.
    """
    if plan is None:
        return dict.fromkeys(NAMES, -1.0)
    got = plans[plan]
    return {
        "memory": max(got.memory, job.memory_bytes),
        "idle": max(got.idle, job.idle),
        "cheapest": got.price,
    }
