"""How the checks of unit 14 judge an answer, and which mistake a wrong answer looks like.

Every `..._problem` returns None or the details of a FAIL line, which are `rank`, `expected`, `got`
and the likely `mistake`.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

from manyhands.checks.in_kernel import number
from manyhands.checks.pipeline import cases
from manyhands.checks.pipeline.messages import MISTAKES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from manyhands.checks.pipeline.answers import RunCase
    from manyhands.checks.report import Problem, Rank

    Order = list[tuple[str, int]]  # [(kind, micro-batch)] of one rank
    Block = tuple[int, int]  # (start, stop) of a stage's layers
    # (orders, forward_s, backward_s, message_s)
    Timing = tuple[list[list[Any]], list[float], list[float], float]

FORWARD_S, BACKWARD_S = 1.0, 2.25  # what orders are judged with, although any values would do


def close(a: float, b: float, tolerance: float = 1e-9) -> bool:
    """Return whether two numbers differ by no more than `tolerance` * (1 + |b|)."""
    return abs(a - b) <= tolerance * (1 + abs(b))


def problem(
    key: str, expected: Any = None, got: Any = None, rank: Rank = None, **words: Any
) -> Problem:
    """Return the details of a FAIL line, whose text may name `got` and `rank`, too."""
    return {
        "rank": rank,
        "expected": expected,
        "got": got,
        "mistake": MISTAKES[key].format(got=got, rank=rank, **words),
    }


# --- 1: bubble ------------------------------------------------------------------------------------


def bubble_problem(case: tuple[int, int, int], got: float) -> Problem | None:
    """Judge the idle part of a step of (stages, micro-batches, chunks)."""
    stages, count, chunks = case
    right = (stages - 1) / (chunks * count + stages - 1)
    if close(got, right):
        return None
    if math.isnan(got):
        return problem("no number", right)
    wrong = {
        "per cent": 100 * right,
        "busy part": 1 - right,
        "of busy": (stages - 1) / (chunks * count),
        "one stage too many": stages / (chunks * count + stages),
        "chunks ignored": (stages - 1) / (count + stages - 1),
        "chunks multiply stages": (chunks * stages - 1) / (chunks * count + chunks * stages - 1),
    }
    looks = next((key for key, value in wrong.items() if close(got, value)), "bubble other")
    return problem(looks, [f"S = {stages}", f"M = {count}", f"chunks = {chunks}", right], got)


# --- 2: orders ------------------------------------------------------------------------------------


def pairs(answer: Any) -> Order | None:
    """Return the learner's answer as a list of (kind, micro-batch), or None if it is no such list.

    The text "F0" has two characters, but it is not a pair.
    """
    try:
        events = list(answer)
        if not all(
            isinstance(event, (tuple, list)) and isinstance(event[0], str) for event in events
        ):
            return None
        return [(str(kind), operator.index(m)) for kind, m in events]
    except Exception:  # noqa: BLE001 - a learner's object may do anything here
        return None


def broken_order(order: Order | None, rank: int, stages: int, count: int) -> Problem | None:
    """Return what is wrong with one rank's order in itself.

    Something is missing, twice, or backward before forward.
    """
    at = {"rank": rank, "stages": stages, "micro_batches": count}  # the words that say where it is
    if order is None:
        return problem("no order", rank=rank)
    if any(kind not in ("F", "B") or not 0 <= m < count for kind, m in order):
        return problem("kinds", got=str(order), rank=rank, last=count - 1)
    for m in range(count):
        for kind in "FB":
            if order.count((kind, m)) != 1:
                return problem(
                    "twice" if (kind, m) in order else "missing",
                    got=str(order),
                    what=f"({kind!r}, {m})",
                    **at,
                )
        if order.index(("F", m)) > order.index(("B", m)):
            return problem("backward first", got=str(order), m=m, **at)
    return None


def order_problem(
    name: str, case: tuple[int, int], orders: Sequence[Order | None]
) -> Problem | None:
    """Return the problem of the orders of all ranks.

    They may be broken, of a different schedule, stuck, or slow.
    """
    stages, count = case
    for rank, order in enumerate(orders):
        broken = broken_order(order, rank, stages, count)
        if order is None or broken:
            return broken
        if name == "gpipe" and [kind for kind, _ in order] != ["F"] * count + ["B"] * count:
            return problem(
                "not gpipe", got=str(order), rank=rank, stages=stages, micro_batches=count
            )
    whole_s, why = step_s(orders)
    right_s = (count + stages - 1) * (FORWARD_S + BACKWARD_S)
    if why:
        return problem("stuck", stages=stages, micro_batches=count, why=why)
    return (
        None
        if close(whole_s, right_s)
        else problem("slow", right_s, whole_s, stages=stages, micro_batches=count)
    )


def step_s(orders: Sequence[Any]) -> tuple[float, str | None]:
    """Return (seconds of the step, None), or (-1, why it cannot be completed)."""
    try:
        spans = cases.play_orders(orders, [FORWARD_S] * len(orders), [BACKWARD_S] * len(orders))
        return max(span.stop_s for row in spans for span in row), None
    except (ValueError, TypeError) as error:
        return -1.0, str(error).splitlines()[0]


def most_alive(order: Order | None) -> int:
    """Return the most micro-batches that a rank holds at the same time, or -1 without an order."""
    if order is None:
        return -1
    now = most = 0
    for kind, _ in order:
        now += 1 if kind == "F" else -1
        most = max(most, now)
    return most


def alive_evidence(case: tuple[int, int], order: Order | None, rank: int) -> int:
    """Return what the grader compares.

    It is the same for all answers that hold no more than they may.
    """
    stages, count = case
    return max(most_alive(order), min(count, stages - rank)) if order is not None else -1


def alive_problem(case: tuple[int, int], orders: Sequence[Order | None]) -> Problem | None:
    """Return the problem of the first rank that holds too many micro-batches at a time."""
    stages, count = case
    for rank, order in enumerate(orders):
        if broken := broken_order(order, rank, stages, count):
            return broken
        got, allowed = most_alive(order), min(count, stages - rank)
        if got > allowed:
            key = "keeps all" if got == count > allowed + 1 else "keeps"
            return problem(key, allowed, got, rank, stages=stages, micro_batches=count)
    return None


# --- 3: finish_times ------------------------------------------------------------------------------


def times_of(answer: Any, orders: Sequence[Sequence[Any]]) -> list[list[float]] | None:
    """Return the learner's times as lists of floats.

    Return None if they do not have the shape of the orders.
    """
    try:
        times = [[number(end) for end in row] for row in answer]
    except TypeError:
        return None
    return times if [len(row) for row in times] == [len(order) for order in orders] else None


def finish_problem(case: Timing, answer: Any) -> Problem | None:
    """Judge the times at which all events end."""
    orders, forward_s, backward_s, message_s = case
    got = times_of(answer, orders)
    if got is None:
        return problem("no times")
    spans = cases.play_orders(*case)
    right = [[span.stop_s for span in row] for row in spans]
    if same(got, right):
        return None
    stages = len(orders)
    wrong = {
        "starts": [[span.start_s for span in row] for row in spans],
        "neighbour ignored": _alone(orders, forward_s, backward_s),
        "first stage's seconds": _ends(
            orders, [forward_s[0]] * stages, [backward_s[0]] * stages, message_s
        ),
        "message ignored": _ends(orders, forward_s, backward_s, 0.0),
    }
    looks = next(
        (key for key, times in wrong.items() if same(got, times)),
        "messages other" if message_s else "times other",
    )
    rank, i = next(
        (rank, i)
        for rank, row in enumerate(right)
        for i, end in enumerate(row)
        if not close(got[rank][i], end, 1e-6)
    )
    return problem(
        looks, f"{orders[rank][i]} ends at {right[rank][i]:.6g}", f"{got[rank][i]:.6g}", rank
    )


def same(a: Sequence[Sequence[float]], b: Sequence[Sequence[float]]) -> bool:
    """Return whether two tables of times are equal, except for rounding."""
    return all(
        close(end, other, 1e-6)
        for row, others in zip(a, b, strict=True)
        for end, other in zip(row, others, strict=True)
    )


def _ends(*case: Any) -> list[list[float]]:
    return [[span.stop_s for span in row] for row in cases.play_orders(*case)]


def _alone(
    orders: Sequence[Sequence[Any]], forward_s: Sequence[float], backward_s: Sequence[float]
) -> list[list[float]]:
    """Return the times as if no rank waited for another rank."""
    rows = []
    for rank, order in enumerate(orders):
        now = 0.0
        row: list[float] = []
        for kind, _ in order:
            now += {"F": forward_s, "B": backward_s}[kind][rank]
            row.append(now)
        rows.append(row)
    return rows


def stuck_problem(possible: bool, error: BaseException | None, seconds: float) -> Problem | None:
    """Return the problem of one answer to possible or impossible orders.

    `error` is what the learner's function raised, or None.
    """
    if isinstance(error, TimeoutError):
        return problem("endless", seconds=seconds)
    raised = error and f"{type(error).__name__}: {error}"
    if possible:
        return problem("refused", got=raised) if error else None
    return None if isinstance(error, ValueError) else problem("not refused", "ValueError", raised)


def stuck_evidence(
    orders: Sequence[Sequence[Any]], answer: Any, error: BaseException | None
) -> int:
    """Return how many times there are, or that the orders were refused, for the grader."""
    if isinstance(error, ValueError):
        return -1
    times = times_of(answer, orders)
    return -2 if times is None else sum(map(len, times))


# --- 4: cut ---------------------------------------------------------------------------------------


def blocks_of(answer: Any, costs: Sequence[int]) -> list[Block] | None:
    """Return [(start, stop)] of the learner's slices, or None if they are not slices."""
    try:
        return [block.indices(len(costs))[:2] for block in answer]
    except (TypeError, AttributeError):
        return None


def blocks_problem(case: tuple[list[int], int], blocks: Sequence[Block] | None) -> Problem | None:
    """Judge whether the blocks hold each layer once and in order."""
    costs, stages = case
    if blocks is None:
        return problem("no slices")
    if len(blocks) != stages:
        return problem("how many", stages, len(blocks), costs=costs, stages=stages)
    if any(stop <= start for start, stop in blocks):
        return problem("empty", got=str(blocks), costs=costs, stages=stages)
    if [layer for start, stop in blocks for layer in range(start, stop)] != list(range(len(costs))):
        return problem("gap", got=str(blocks), costs=costs, stages=stages)
    return None


def dearest_of(costs: Sequence[int], blocks: Sequence[Block] | None) -> int:
    """Return the cost of the most expensive of the learner's blocks, or -1 if there is none."""
    return max((sum(costs[start:stop]) for start, stop in blocks or ()), default=-1)


def dearest_problem(case: tuple[list[int], int], blocks: Sequence[Block] | None) -> Problem | None:
    """Judge whether the most expensive block is as cheap as in the best cut."""
    costs, stages = case
    got, best = dearest_of(costs, blocks), cases.smallest(costs, stages)
    wrong = blocks_problem(case, blocks)
    if blocks is None or wrong:
        return wrong
    if got == best:
        return None
    ways = [
        ("even", cases.even_cut(costs, stages)),
        ("greedy", cases.greedy_cut(costs, stages)),
        *(
            ("evened", cases.least(measure, costs, stages))
            for measure in (cases.squares, cases.spread)
        ),
    ]
    looks = next((key for key, way in ways if [slice(*block) for block in blocks] == way), "dear")
    return problem(looks, best, got)


# --- 5: run_stage ---------------------------------------------------------------------------------


def loss_problem(case: RunCase) -> Problem | None:
    """Return the problem of the loss.

    `case` is what one rank reports of one run (see `ranks.run`).
    """
    if case["loss has a graph"]:
        return problem("loss graph", rank=case["rank"])
    if case["right loss"] is None:
        return (
            None
            if case["loss"] is None
            else problem("loss elsewhere", None, case["loss"], case["rank"])
        )
    got = number(case["loss"])
    if math.isfinite(got) and close(got, case["right loss"], 1e-7):
        return None
    if case["loss"] is None:
        return problem("loss nothing", rank=case["rank"])
    looks = next(
        (key for key, value in case["wrong losses"].items() if close(got, value, 1e-7)),
        "loss rounded" if close(got, case["right loss"], 1e-4) else "loss other",
    )
    return problem(looks, case["right loss"], case["loss"], case["rank"])


def gradients_problem(case: RunCase) -> Problem | None:
    """Judge the gradients of a rank's stage, and whether the batch was left alone."""
    if case["changed"]:
        return problem("changed", rank=case["rank"], what=case["changed"][0])
    for gradient in case["gradients"]:
        if not gradient["right"]:
            return problem(
                f"gradient {gradient['looks']}",
                gradient["wanted"],
                gradient["sample"],
                case["rank"],
                name=gradient["name"],
                stage=case["stage"],
            )
    return None


def messages_problem(case: RunCase) -> Problem | None:
    """Judge how many messages and bytes a rank has sent."""
    (count, nbytes), (right, right_bytes) = case["sent"], case["right sent"]
    if count != right:
        return problem(
            "messages many" if count > right else "messages few", right, count, case["rank"]
        )
    looks = "messages half" if 2 * nbytes == right_bytes else "messages bytes"
    return None if nbytes == right_bytes else problem(looks, right_bytes, nbytes, case["rank"])


def holds_problem(case: RunCase) -> Problem | None:
    """Judge how many micro-batches and bytes a rank holds during a run."""
    for held, mistake in ((case["held"], "holds"), (case["held back"], "holds back")):
        if held > case["may hold"]:
            return problem(
                mistake, f"at most {case['may hold']}", held, case["rank"], stage=case["stage"]
            )
    excess, needed = case["bytes"]
    if excess:
        return problem(
            "holds bytes",
            f"at most {needed} bytes",
            f"{needed + excess} bytes",
            case["rank"],
            stage=case["stage"],
            needed=needed,
        )
    return problem("asked", rank=case["rank"], what=case["asked"][0]) if case["asked"] else None


def holds_evidence(case: RunCase) -> list[Any]:
    """Return what the grader compares.

    It is the same for all answers that hold no more than they may.
    """
    return [
        max(case["held"], case["may hold"]),
        max(case["held back"], case["may hold"]),
        case["made"],
        case["bytes"][0] > 0,
        case["asked"],
    ]
