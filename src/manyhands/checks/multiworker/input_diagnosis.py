"""How the checks of unit 07 judge input pipelines and checkpoints.

The form is that of `diagnosis`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manyhands.checks import by_rank
from manyhands.checks.multiworker.diagnosis import say
from manyhands.checks.record import shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from manyhands.checks.multiworker.answers import InputCase, Judged, SaveAnswer
    from manyhands.checks.report import Problem

# ------------------------------------------------------------------ 5: dataset


def together(case: InputCase) -> tuple[list[int], list[int]]:
    """Return (samples that are seen more than once, samples that no worker sees) in epoch 0."""
    every = [sample for own in case["epochs"][0] for batch in own for sample in batch]
    return sorted({s for s in every if every.count(s) > 1}), sorted(
        set(range(case["n"])) - set(every)
    )


def once_problem(case: InputCase) -> Problem | None:
    """Return the problem if not every sample is seen once in an epoch, with its own label."""
    if case["error"]:
        return say(case["error"])
    twice, never = together(case)
    p, r = case["pipelines"], case["replicas"]
    facts: dict[str, Any] = {
        "twice": len(twice),
        "never": len(never),
        "lost": never[:4],
        "p": p,
        "r": r,
    }
    if not twice and not never:
        return say("labels") if not case["labels"] else None
    sizes = [sum(len(batch) for batch in own) for own in case["epochs"][0]]
    if sizes == [case["n"]] * p:
        mistake = "not sharded"
    elif max(sizes) > case["n"]:
        mistake = "without end"
    elif not twice and r > p and sum(sizes) == sum(-(-(case["n"] - i) // r) for i in range(p)):
        mistake = "sharded by replicas"
    elif twice and never:
        mistake = "own order"
    else:
        mistake = "twice" if twice else "lost"
    got = (
        f"{' + '.join(map(str, sizes))} samples, with {shorten(twice)} more than once and "
        f"{shorten(never)} never"
    )
    taken = [[sample for batch in own for sample in batch] for own in case["epochs"][0]]
    return {
        **say(mistake, expected=f"each of {case['n']} samples once", got=got, **facts),
        "picture": by_rank.samples(case["n"], taken, "pipeline"),
    }


def batch_problem(case: InputCase) -> Problem | None:
    """Return the problem with the sizes of a pipeline's batches."""
    if case["error"]:
        return say(case["error"])
    right = case["batch"] // case["replicas"]
    for own in case["epochs"][0]:
        sizes = [len(batch) for batch in own]
        if all(size == right for size in sizes[:-1]) and sizes and sizes[-1] <= right:
            continue
        got = sizes[0] if sizes else 0
        mistake = (
            {case["batch"]: "global batch", case["batch"] // case["pipelines"]: "per pipeline"}.get(
                got, "batch"
            )
            if got != right
            else "batch"
        )
        return say(
            mistake,
            expected=right,
            got=sizes,
            size=got,
            r=case["replicas"],
            batch=case["batch"],
            right=right,
        )
    return None


def _far_from_home(places: Sequence[int], n: int) -> bool:
    """Return whether samples have moved from one half of the data to the other.

    This is so if one of a worker's first samples was stored in the second half, or one of its last
    ones in the first half.
    """
    few = max(1, len(places) // 4)
    return any(place >= n / 2 for place in places[:few]) or any(
        place < n / 2 for place in places[-few:]
    )


def order_problem(case: InputCase) -> Problem | None:
    """Return the problem with the order.

    `case["stored"]` are the samples in their stored order, and the third run is epoch 0 again, with
    a different seed.
    """
    if case["error"]:
        return say(case["error"])
    first, second, reseeded = (
        [[sample for batch in own for sample in batch] for own in epoch] for epoch in case["epochs"]
    )
    runs = [
        [[case["stored"].index(sample) for sample in own] for own in run]
        for run in (first, second, reseeded)
    ]
    stored = [all(own == sorted(own) for own in run) for run in runs]
    if not all(stored) and not any(_far_from_home(own, case["n"]) for run in runs for own in run):
        return say("small buffer", got=first[0])
    if any(stored[:2]):
        return say("stored order", got=first[0])
    # in a circle they ascend, except at one place
    if all(
        sum(a > b for a, b in zip(own, [*own[1:], own[0]], strict=True)) <= 1
        for run in runs
        for own in run
        if own
    ):
        return say("turned round", got=first[0])
    if first == second:
        return say("same epochs", got=first[0])
    if first == reseeded:
        return say("same seeds", got=first[0])
    if case["pipelines"] > 1 and all(
        sorted(a) == sorted(b) for a, b in zip(first, second, strict=True)
    ):
        return say("same share", got=[sorted(first[0]), sorted(second[0])])
    return None


# ------------------------------------------------------------------ 6: save


def file_problem(answers: Sequence[SaveAnswer], saved: Judged) -> Problem | None:
    """Return the problem with the chief's file.

    `answers` has {"chief", "wrote", "to the chief's", "left"} by rank, and `saved` is what was
    found at the path.
    """
    chief = next(rank for rank, answer in enumerate(answers) if answer["chief"])
    for rank, answer in enumerate(answers):
        if not answer["wrote"]:
            return say("nothing written", rank=rank)
    for rank, answer in enumerate(answers):
        if answer["to the chief's"] and rank != chief:
            return say(
                "same file" if answers[chief]["to the chief's"] else "wrong chief",
                rank=rank,
                right=chief,
            )
    if saved["got"] is None:
        return say("numbered" if answers[chief]["saved"] else "no file", rank=chief)
    if len(saved["got"]) != len(saved["right"]) or any(
        abs(a - b) > 1e-9 for a, b in zip(saved["got"], saved["right"], strict=True)
    ):
        return say(
            "other values",
            rank=chief,
            expected=saved["right"],
            got=saved["got"],
            what="weight and total",
        )
    return None


def clean_problem(answers: Sequence[SaveAnswer], others: Sequence[str]) -> Problem | None:
    """Return the problem with what is left.

    `others` are the names of files in the folder that do not belong to the checkpoint.
    """
    for rank, answer in enumerate(answers):
        if not answer["chief"] and answer["left"]:
            return say("left behind", rank=rank, got=answer["left"], name=answer["left"][0])
    if others:
        return say("left beside", got=others, name=others[0])
    return None
