"""How the checks of unit 13 judge what the ranks have reported.

This includes how many bytes are right. Every `..._problem` returns None or the details of a FAIL
line, which are `rank`, `expected`, `got` and the likely `mistake`, that is, the one that a wrong
answer looks like.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeVar

from manyhands.checks.channel_parallel.messages import MISTAKES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from manyhands.checks.channel_parallel.answers import (
        Both,
        LayerCase,
        MovedCase,
        OperatorCase,
        PairCase,
        PartCase,
        Result,
        Side,
    )
    from manyhands.checks.report import Details, Problem

    B = TypeVar("B", bound=Both)
    Limits = tuple[int, int]  # bytes and messages

ATOL = 1e-7
MAX_SIZES = 500  # bytes of a message, or of several, that says how many channels there are
# bytes, since the experiments run in float64 and predictions are about float32
DOUBLE, SINGLE = 8, 4


def value_problem(
    rank: int, result: Result, topic: str, kind: str = "any", **more: Any
) -> Problem | None:
    """Return the problem with one comparison, in the words of its topic or of its kind.

    A `topic` is "part out weight", "in x" and so on. If it has no text, the text of its `kind`
    counts.
    """
    if result["right"]:
        return None
    looks = result["looks"]
    text = MISTAKES.get((topic, looks)) or MISTAKES.get((kind, looks)) or MISTAKES[kind, "other"]
    return {"rank": rank, **shown(result), "mistake": text.format(name=result["name"], **more)}


def shown(result: Result) -> Details:
    """Return what a FAIL line shows of a wrong comparison.

    This is shapes, dtypes, or the numbers from the first wrong one on.
    """
    if result.get("shape") != result.get("wanted shape"):
        return {"expected": result["wanted shape"], "got": result["shape"]}
    if result["looks"] == "dtype":
        return {"expected": result["wanted"][0], "got": result["sample"][0]}
    differ = result.get("differ")
    if not differ:
        return {}
    place, got, right = differ
    texts = [", ".join(f"{number:.6g}" for number in numbers) for numbers in (right, got)]
    if texts[0] == texts[1]:
        texts = [", ".join(f"{number:.12g}" for number in numbers) for numbers in (right, got)]
    expected, shown_got = (f"from {place} on: {text}" for text in texts)
    return {"expected": expected, "got": shown_got}


def part_problem(case: PartCase) -> Problem | None:
    """Return the first wrong part of exercise 1."""
    for result in case["results"]:
        topic = f"part {case['split']} {result['name']}"
        problem = value_problem(case["rank"], result, topic, size=case["size"], split=case["split"])
        if problem:
            return problem
    return None


def held_problem(case: PartCase) -> Problem | None:
    """Judge how a rank holds its weight and its bias."""
    for trained, parameter, shared, more_bytes in case["held"]:
        if not trained:
            return {"rank": case["rank"], "mistake": MISTAKES["not a leaf"]}
        if not parameter:
            return {
                "rank": case["rank"],
                "expected": "nn.Parameter",
                "got": "torch.Tensor",
                "mistake": MISTAKES["no parameter"],
            }
        if shared or more_bytes:
            return {"rank": case["rank"], "mistake": MISTAKES["a view" if more_bytes else "shared"]}
    return None


def output_problem(case: OperatorCase | LayerCase, topic: str) -> Problem | None:
    """Return the first thing that is wrong with a forward pass.

    Either its values are wrong, or backward cannot start from it.
    """
    problem = value_problem(case["rank"], case["results"][0], topic, size=case["size"])
    if problem is None and case["detached"]:
        return {"rank": case["rank"], "mistake": MISTAKES["detached"]}
    return problem


def gradients_problem(case: OperatorCase | LayerCase, topic: str) -> Problem | None:
    """Return the first wrong gradient. `case["gradients"]` is empty if backward could not start."""
    for result in case["gradients"]:
        problem = value_problem(
            case["rank"], result, f"{topic} {result['name']}", "gradient", size=case["size"]
        )
        if problem:
            return problem
    return None if case["gradients"] else {"rank": case["rank"], **no_backward(case)}


def detached_first(cases: Sequence[B]) -> list[B]:
    """Sort the cases in which backward cannot begin to the front.

    They are the reason why other gradients are wrong.
    """
    return sorted(cases, key=lambda case: not case["detached"])


def no_backward(case: Any) -> Problem:
    """Return why backward was not run. What is wrong has already been reported with the output."""
    return {"mistake": MISTAKES["backward cannot begin" if case["detached"] else "no backward"]}


# ------------------------------------------------------------------ bytes


def sum_bytes(numel: int, size: int, itemsize: int = DOUBLE) -> int:
    """Return the bytes that all ranks together send for a sum on every rank.

    It is made by reduce-scatter and all-gather, or by reduce and broadcast.
    """
    return 2 * (size - 1) * numel * itemsize


def join_bytes(numel: int, size: int, itemsize: int = DOUBLE) -> int:
    """Return the bytes if every rank gets the parts of all ranks.

    `numel` counts all parts together.
    """
    return (size - 1) * numel * itemsize


NOTHING = (0, 0)  # bytes and messages, as in all limits


def summed(numel: int, size: int) -> Limits:
    """Return the limits of a sum on every rank.

    These are the bytes, and the largest number of messages, that all ranks together send.
    """
    return sum_bytes(numel, size), 2 * size * (size - 1)


def joined(numel: int, size: int) -> Limits:
    """Return the limits if every rank gets the parts of all ranks.

    `numel` counts all parts together.
    """
    return join_bytes(numel, size), size * (size - 1)


def totals(cases: Sequence[Any]) -> list[tuple[Any, list[int] | None, list[int] | None]]:
    """Add up what the ranks of each experiment have sent.

    Return [(case of the first rank, [bytes, messages] sent forward or None, the same backward)].
    """
    groups: dict[Any, list[Any]] = {}
    for case in cases:
        groups.setdefault(
            (tuple(case["members"]), case.get("which"), case.get("number")), []
        ).append(case)
    experiments = []
    for group in groups.values():
        backward = (
            None
            if any(case["backward"] is None for case in group)
            else [sum(counts) for counts in zip(*(case["backward"] for case in group), strict=True)]
        )
        # the bytes of an output of a wrong size mean nothing
        shapes = any(case["results"][0]["looks"] == "shape" for case in group)
        experiments.append(
            (
                group[0],
                (
                    None
                    if shapes
                    else [
                        sum(counts)
                        for counts in zip(*(case["forward"] for case in group), strict=True)
                    ]
                ),
                backward,
            )
        )
    return experiments


def bytes_problem(
    total: list[int] | None, limits: Limits, topic: str, direction: str, detached: bool = False
) -> Problem | None:
    """Return the problem if a number of bytes is outside its limits.

    `topic` is "out", "in", "pair", "copy", "sum" or "join".
    """
    if total is None:
        return no_backward({"detached": detached})
    (sent, messages), (right, most) = total, limits
    if sent == right and messages <= most:
        return None
    how = "much" if sent > right else "little" if sent < right else "messages"
    how = "few more" if how == "much" and 0 < sent - right < MAX_SIZES and right else how
    text = MISTAKES.get((f"bytes {topic} {direction}", how)) or MISTAKES["bytes", how]
    expected, got = f"{right} bytes, all ranks together", f"{sent} bytes"
    if how == "messages":
        expected, got = f"at most {most} messages, all ranks together", f"{messages} messages"
    return {
        "expected": expected,
        "got": got,
        "mistake": text.format(direction=direction, topic=topic),
    }


def evidence(total: list[int] | None, limits: Limits) -> list[int]:
    """Return what the grader compares.

    It is the same for every total inside the limits and different for each total outside.
    """
    return [-1, -1] if total is None else [total[0], max(total[1], limits[1])]


def operator_limits(case: OperatorCase) -> tuple[Limits, Limits]:
    """Return the limits (forward, backward) of an operator."""
    numel, size = case["numel"], case["size"]
    total, whole = summed(numel, size), joined(numel, size)
    return {"copy": (NOTHING, total), "sum": (total, NOTHING), "join": (whole, NOTHING)}[
        case["which"]
    ]


def layer_limits(case: LayerCase, split: str) -> tuple[Limits, Limits]:
    """Return (forward, backward).

    In backward of the out split only x's gradient travels, since each rank already has its slice of
    dL/dy.
    """
    numel, size = case["numel"], case["size"]
    if split == "in":
        return summed(numel["y"], size), NOTHING
    return joined(numel["y"], size), summed(numel["x"], size)


def pair_limits(case: PairCase) -> tuple[Limits, Limits]:
    """Return the limits (forward, backward) of two layers with one sum in each direction."""
    numel, size = case["numel"], case["size"]
    return summed(numel["y"], size), summed(numel["x"], size)


# ------------------------------------------------------------------ predicted bytes


def moved_problem(case: MovedCase, sent: int) -> Problem | None:
    """Return the problem of a prediction.

    `sent` is what the ledger has measured on all ranks together.
    """
    got, size, way = case["predicted"], case["size"], case["way"]
    number = isinstance(got, (int, float))
    if number and got == sent:
        return None
    join = {
        "x": join_bytes(math.prod(case["x"]), size, SINGLE),
        "weight": join_bytes(math.prod(case["weight"]), size, SINGLE),
        "y": join_bytes(math.prod(case["y"]), size, SINGLE),
    }
    known = {
        "elements": sent / SINGLE,
        "sent to itself": sent * size / (size - 1),
        "one rank": sent / size,
        "direct": sent * size / 2,
        "double": sent * 2,
        "half": sent / 2,
    }
    if way == "out":
        known |= {
            "forward only": join["y"],
            "backward only": 2 * join["x"],
            "joined, not summed": join["x"] + join["y"],
            "summed, not joined": 2 * (join["x"] + join["y"]),
            "direct": join["y"] + size * join["x"],
        }
    if way == "pair":
        known["forward only"] = 2 * join["y"]
    looks = next(
        (name for name, value in known.items() if number and abs(got - value) < 0.5), "other"
    )
    # it may be numbers, or one rank of four, which cannot be distinguished
    if looks == "elements" and size == SINGLE:
        looks = "quarter"
    return {
        "expected": sent,
        "got": got if number else repr(got),
        "mistake": MISTAKES["moved", looks].format(way=way, size=size),
    }


def largest_side(batch: int, c_in: int, kernel: int) -> int:
    """Return the largest side whose output is not larger than the weight.

    Per output channel, this is batch * side^2 <= c_in * kernel^2.
    """
    return math.isqrt(c_in * kernel * kernel // batch)


def tutorials_side(batch: int, c_in: int, c_out: int, kernel: int) -> float:
    """Return the largest side in the tutorial, whose in split has the whole x on every rank.

    This is B (2 c_out + c_in) s^2 <= 2 c_out c_in k^2.
    """
    return (2 * c_out * c_in * kernel * kernel / (batch * (2 * c_out + c_in))) ** 0.5


def side_problems(sides: Sequence[Side]) -> list[Problem | None]:
    """Return the problem of each side.

    If all sides follow the tutorial's formula, this is named.
    """
    problems = [side_problem(case) for case in sides]
    tutorials = [tutorials_side(*case["asked"]) for case in sides]
    if any(problems) and all(
        case["got"] in (int(side), round(side), side)
        for case, side in zip(sides, tutorials, strict=True)
    ):
        return [
            problem and {**problem, "mistake": MISTAKES["side", "tutorial"]} for problem in problems
        ]
    return problems


def side_problem(side: Side) -> Problem | None:
    """Judge one side that the learner's function returned."""
    batch, c_in, c_out, kernel = side["asked"]
    right = largest_side(batch, c_in, kernel)
    if side["got"] == right and isinstance(side["got"], int):
        return None
    known: dict[float, str] = {
        right + 1: "one too many",
        right - 1: "one too few",
        math.isqrt(c_in * kernel * kernel): "batch forgotten",
        math.isqrt(c_in // batch): "kernel forgotten",
        c_in * kernel * kernel // batch: "area",
        math.isqrt(c_out * kernel * kernel // batch): "output channels",
    }
    looks = known.get(side["got"], "other") if isinstance(side["got"], (int, float)) else "other"
    if looks == "other" and isinstance(side["got"], float):
        looks = "not whole"
    return {
        "expected": right,
        "got": side["got"],
        "mistake": MISTAKES["side", looks].format(
            batch=batch, c_in=c_in, c_out=c_out, kernel=kernel
        ),
    }
