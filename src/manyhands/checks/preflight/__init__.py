"""Checks of unit 00, preflight, which ask the ranks from the kernel and judge the answers.

Each check cell calls one of the public functions. Some hangs are provoked here on purpose, with a
short time-out, while a hang that the learner's code causes becomes a FAIL line. In both cases the
cluster heals and re-runs the cells marked --setup.
"""

from __future__ import annotations

import random
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from manyhands.checks import seed
from manyhands.checks.preflight import plans
from manyhands.checks.preflight.learner_calls import Check, call, describe_error, summarise_fault
from manyhands.checks.preflight.messages import HINTS, MISTAKES
from manyhands.checks.report import Stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from manyhands.checks.preflight.answers import RingAnswer
    from manyhands.checks.report import Problem
    from manyhands.cluster import Cluster

__all__ = ["HINTS", "diagnose", "exchange", "place", "recover"]

PROVOKED_S = 0.7  # patience with a hang that the check itself makes
RECOVER_S = 60  # for recover, which talks to the ranks


def _draw(salt: str) -> random.Random:
    return random.Random(f"{salt} {seed()}")


# ------------------------------------------------------------------ 1: where_am_i


def place(cluster: Cluster, function: str = "where_am_i") -> None:
    """Check `function()` on the ranks: (rank, node, local rank), read from the environment."""
    draw = _draw("place")
    per_node = draw.sample(range(3, 8), 3)
    worlds = [[draw.randrange(3 * n, 6 * n), n] for n in per_node]
    with Check("place", cluster, function) as report:
        answers, failed = report.ask("places", function, worlds)
        if failed:
            raise Stopped(**failed)
        order = draw.sample(cluster.ranks, cluster.world_size)
        here = [
            _place_problem(rank, answers[rank][0], rank, cluster.ranks_per_node, None)
            for rank in cluster.ranks
        ]
        report.judge("here", here, [answers[rank][0] for rank in order])
        there = [
            _place_problem(rank, got, world_rank, n, answers[rank][0])
            for rank in cluster.ranks
            for got, (world_rank, n) in zip(answers[rank][1:], worlds, strict=True)
        ]
        report.judge("elsewhere", there, [answers[rank][1:] for rank in order])


def _place_problem(rank: int, got: Any, world_rank: int, per_node: int, own: Any) -> Problem | None:
    """Return None, or the details to show for a wrong answer."""
    node, local = divmod(world_rank, per_node)
    wanted = [world_rank, node, local]
    if got == wanted:
        return None
    if isinstance(got, str):
        why = "group rank" if "GROUP_RANK" in got else "text" if "'" in got else "three ints"
    elif own is not None and got == own:
        why = "not read"
    elif got == [world_rank, local, node]:
        why = "swapped"
    elif got[1] == world_rank // 2 != node:
        why = "two per node"
    else:
        why = "other place"
    return {"rank": rank, "expected": wanted, "got": got, "mistake": MISTAKES[why]}


# ------------------------------------------------------------------ 2: diagnose


def diagnose(cluster: Cluster, function: Callable[..., Any]) -> None:
    """Check `function(waiting, edges)` on imagined hangs of four to eight ranks, and on a real one.

    A hang does not depend on the learner's function, so a real one is made only once, on the
    cluster, and is remembered for the next time.
    """
    draw = _draw("diagnose")
    with Check("diagnose", cluster, "diagnose") as report:
        for name in report.asked:
            answers: list[list[Any] | None] = []
            problem: Problem | None = None
            nothing: tuple[None, Problem] = (None, {"mistake": MISTAKES["no hang"]})
            cases: list[plans.Case | str] = [
                *(plans.imagine(name, draw, world_size) for world_size in range(4, 9)),
                "real",
            ]
            case: plans.Case | str | None
            for case in cases:
                if isinstance(case, str):
                    case = plans.provoke(name, seed(), cluster, PROVOKED_S)
                answer, problem = _answer(function, case) if case else nothing
                answers.append(answer)
                if problem:
                    break
            report.judge(name, [problem], answers)


def _answer(
    function: Callable[..., Any], case: plans.Case
) -> tuple[list[Any] | None, Problem | None]:
    """Return the learner's answer as plain data, and None or what is wrong with it."""
    got, error = call(function, dict(case.waiting), list(case.edges))
    if error:
        return None, describe_error("diagnose", error)
    shown = MISTAKES["arrows"].format(answer=case.answer, edges=plans.write_arrows(case.edges))
    try:
        kind, ranks = got
        answer: list[Any] = [str(kind), *sorted(int(rank) for rank in ranks)]
    except (TypeError, ValueError):
        return None, {"expected": shown, "got": got, "mistake": MISTAKES["pair"]}
    if answer == [case.answer[0], *case.answer[1]]:
        return answer, None
    return answer, {"expected": shown, "got": got, "mistake": plans.find_mistake(case, answer)}


# ------------------------------------------------------------------ 3: exchange


def exchange(cluster: Cluster, function: str = "exchange") -> None:
    """Check `function(value, members)` on the ranks, in rings of four, three and two.

    One rank of each ring is late.
    """
    draw = _draw("exchange")
    answers: list[list[RingAnswer]] = [[], [], []]
    problems: list[Problem | None] = [None, None, None]
    with Check("exchange", cluster, function) as report:
        for i, (members, given, late) in enumerate([_draw_ring(size, draw) for size in (4, 3, 2)]):
            got, problem = report.ask("ring", function, members, given, late)
            if got:
                answers[i] = [got[rank] for rank in members]
                problem = next(
                    filter(
                        None, (_ring_problem(rank, members, given, got[rank]) for rank in members)
                    ),
                    None,
                )
                if problem:
                    plans.call_quietly(cluster.heal)  # a message may be left under way
            if problem:  # the next ring would show the same, only later
                later: Problem = problem if report.is_absent else {"mistake": MISTAKES["not run"]}
                problems[i:] = [problem] + [later] * (2 - i)
                break
        values = [[[answer["got"], answer["changed"]] for answer in ring] for ring in answers]
        report.judge("four", problems[:1], values[:1])
        report.judge("smaller", problems[1:], values[1:])
        counts = [
            [answer["sends"], answer["receives"], answer["others"], answer["bytes"]]
            for ring in answers
            for answer in ring
        ]
        # else nothing was counted
        report.judge("messages", [_count_problem(answers)], counts if all(answers) else [])


def _draw_ring(size: int, draw: random.Random) -> tuple[list[int], list[list[int]], int]:
    """Return the members in the order of the ring, the values that they give, and the late one."""
    # of two: no rank 0, both odd
    ring = {4: [0, 1, 2, 3], 3: sorted(draw.sample(range(4), 3), reverse=True), 2: [3, 1]}[size]
    turn = draw.randrange(size) if size < 4 else 0
    members = ring[turn:] + ring[:turn]
    length = draw.randint(2, 5)
    return (
        members,
        [[draw.randint(1, 99) for _ in range(length)] for _ in members],
        draw.choice(members),
    )


def _ring_problem(
    rank: int, members: list[int], given: list[list[int]], answer: RingAnswer
) -> Problem | None:
    place, got = members.index(rank), answer["got"]
    wanted = given[place - 1]
    if got == wanted:
        return {"rank": rank, "mistake": MISTAKES["changed"]} if answer["changed"] else None
    if isinstance(got, str):
        why = "not a tensor"
    elif got == given[place]:
        why = "own"
    elif len(members) > 2 and got == given[(place + 1) % len(members)]:
        why = "following"
    elif got in given:
        why = "in the world"
    else:
        why = "too early"
    return {"rank": rank, "expected": wanted, "got": got, "mistake": MISTAKES[why]}


def _count_problem(answers: Sequence[Sequence[RingAnswer]]) -> Problem | None:
    if not all(answers):
        return {"mistake": MISTAKES["not all rings"]}
    for ring in answers:
        for answer in ring:
            if (answer["sends"], answer["receives"], answer["others"]) != (1, 1, 0):
                return {
                    "expected": MISTAKES["counts"].format(sends=1, receives=1, others=0),
                    "got": MISTAKES["counts"].format(**answer),
                    "mistake": MISTAKES["too many"],
                }
    return None


# ------------------------------------------------------------------ 4: recover


def recover(cluster: Cluster, function: Callable[..., Any]) -> None:
    """Check `function(cluster, saved)` before any fault, after a drawn one, and without a group.

    In the last case, the ranks have no process group.
    """
    draw = _draw("recover")
    sums: list[list[int] | None] = []
    shards: list[Any] = []
    problems: dict[str, Problem | None] = {"world": None, "shards": None}
    with Check("recover", cluster, "recover") as report:
        for case in ("no fault", "fault", "no group"):
            length = draw.randint(2, 5)
            saved = [[draw.randint(1, 99) for _ in range(length)] for _ in range(4)]
            numbers, culprit, end = (
                [draw.randint(1, 99) for _ in range(4)],
                draw.randrange(4),
                draw.choice(plans.ENDS),
            )
            failed = _break(report, case, culprit, end) or _recover(report, function, saved)
            world_sum, failed = (None, failed) if failed else _world_problem(report, numbers)
            sums.append(world_sum)
            if failed:
                problems = {"world": failed, "shards": problems["shards"] or failed}
                break
            if not problems["shards"]:
                own, problems["shards"] = _shards_problem(report, saved)
                shards.append(own)
        if any(problems.values()):
            _leave_healed(cluster)
        report.judge("world", [problems["world"]], sums)
        report.judge("shards", [problems["shards"]], shards)


def _break(report: Check, case: str, culprit: int, end: str) -> Problem | None:
    """Cause the fault as quietly as possible, and return None or what prevented it."""
    from manyhands.cluster import Fault

    try:
        if case == "no group":
            return report.ask("forget")[1]
        if case == "fault":
            plans.call_quietly(
                report.cluster.px,
                plans.BREAK.format(culprit=culprit, end=end),
                patience_s=PROVOKED_S,
            )
            return {"mistake": MISTAKES["no hang"]}
    except Fault:
        return None
    except RuntimeError:
        return {"mistake": MISTAKES["stopped"]}
    return None


def _leave_healed(cluster: Cluster) -> None:
    """Heal the cluster, so that the other checks find what --setup makes."""
    with suppress(RuntimeError):  # the learner has stopped it
        plans.call_quietly(cluster.heal)


def _recover(report: Check, function: Callable[..., Any], saved: list[list[int]]) -> Problem | None:
    from manyhands.cluster import Fault

    with report.cluster.holding(report.reports):
        _, error = call(
            function, report.cluster, [list(numbers) for numbers in saved], seconds=RECOVER_S
        )
    if isinstance(error, Fault):
        twice = any(
            "initialize the default process group twice" in text
            for text in error.traceback.values()
        )
        return {
            "rank": min(error.culprits, default=None),
            "mistake": MISTAKES["twice"] if twice else summarise_fault(error),
        }
    return describe_error("recover", error, RECOVER_S) if error else None


def _world_problem(report: Check, numbers: list[int]) -> tuple[list[int] | None, Problem | None]:
    """Return (the sum on each rank, None), or (None, what is wrong)."""
    groups, failed = report.ask("has_group")
    if failed:
        return None, failed
    if not all(groups):
        return None, {"rank": groups.index(False), "mistake": MISTAKES["no group"]}
    got, failed = report.ask("world_sum", numbers)
    if failed:
        return None, failed
    wrong = [rank for rank, total in enumerate(got) if total != sum(numbers)]
    return got, (
        {
            "rank": wrong[0],
            "expected": sum(numbers),
            "got": got[wrong[0]],
            "mistake": MISTAKES["wrong sum"],
        }
        if wrong
        else None
    )


def _shards_problem(report: Check, saved: list[list[int]]) -> tuple[Any, Problem | None]:
    """Return (the shards and their sums on all ranks, None), or (the shards, what is wrong)."""
    got, failed = report.ask("shard")
    if failed:
        return None, failed
    for rank, numbers in enumerate(got):
        if numbers == saved[rank]:
            continue
        if isinstance(numbers, str):
            if numbers in MISTAKES:
                return got, {"rank": rank, "mistake": MISTAKES[numbers]}
            return got, {
                "rank": rank,
                "expected": f"torch.int64, shape [{len(saved[rank])}]",
                "got": numbers,
                "mistake": MISTAKES["other tensor"],
            }
        why = (
            MISTAKES["another's shard"].format(owner=saved.index(numbers))
            if numbers in saved
            else MISTAKES["other shard"]
        )
        return got, {"rank": rank, "expected": saved[rank], "got": numbers, "mistake": why}
    sums, failed = report.ask("shard_sum")
    return (got, failed) if failed else ([got, sums], None)
