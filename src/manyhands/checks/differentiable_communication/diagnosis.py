"""Judge what the ranks have reported in unit 11's checks.

The right answers are computed here, and so is the mistake that a wrong answer looks like. Every
`..._problem` returns None, or the details of a FAIL line: `rank`, `expected`, `got` and the likely
`mistake`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from manyhands.checks.differentiable_communication.messages import MISTAKES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from manyhands.checks.differentiable_communication.answers import (
        AllgatherCase,
        BroadcastCase,
        ConnectCase,
        InGroup,
        MessageCase,
        Moved,
        OrderCase,
        RingCase,
    )
    from manyhands.checks.report import Problem
    from manyhands.rehearsal.trace import Event

    G = TypeVar("G", bound=InGroup)

ATOL = 1e-9


def far(a: Any, b: ArrayLike) -> bool:
    """Return whether two lists of numbers differ, in length or by more than the tolerance."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    return a.shape != b.shape or not np.all(np.abs(a - b) <= ATOL * (1 + np.abs(b)))


def details(rank: int, expected: Any, got: Any, mistake: str, **facts: Any) -> Problem:
    """Return the details of a FAIL line, whose text names the facts."""
    return {
        "rank": rank,
        "expected": expected,
        "got": got,
        "mistake": MISTAKES[mistake].format(**facts),
    }


# ------------------------------------------------------------------ 1: messages


def message_problem(rank: int, case: MessageCase) -> Problem | None:
    """Judge the gradient that a rank has got through messages."""
    got, serial = case["got"], case["serial"]
    if got is not None and not far(got, serial):
        return None
    if got is None:
        mistake = "no gradient"
    elif not np.any(got):
        mistake = "zero gradient"
    elif not far(got, case["with the delegate's"]):
        mistake = "with the delegate's"
    elif any(not far(got, np.divide(serial, len(case["members"]) ** power)) for power in (1, 2)):
        mistake = "divided by ranks"
    elif len(case["parts"]) > 1 and any(not far(got, part) for part in case["parts"]):
        mistake = "one message only"
    else:
        mistake = "other gradient"
    return details(rank, serial, got, mistake)


def sent_problem(rank: int, case: MessageCase) -> Problem | None:
    """Judge how many numbers a rank has sent in backward."""
    if abs(case["sent"] - case["right"]) < 0.5:
        return None
    return details(
        rank,
        case["right"],
        case["sent"],
        "too much sent" if case["sent"] > case["right"] else "too little sent",
        right=case["right"],
        sent=case["sent"],
    )


def order_problem(rank: int, case: OrderCase) -> Problem | None:
    """Judge gradients that arrive in a different order from the messages."""
    got, serial = case["got"], case["serial"]
    if got is None:  # a rank that has received
        return (
            details(rank, serial, "something else", "gradient written into")
            if case["spoiled"]
            else None
        )
    if any(gradient is None for gradient in got):
        return details(rank, serial, got, "no gradient")
    if not any(far(*pair) for pair in zip(got, serial, strict=True)):
        return None
    looks: dict[str, Any] = {
        "swapped": serial[::-1],
        "with the delegate's": np.add(serial, 1),
        "divided by ranks": np.divide(serial, 4),
    }
    return details(
        rank,
        serial,
        got,
        next(
            (name for name, wrong in looks.items() if not any(map(far, got, wrong))),
            "other gradient",
        ),
    )


# ------------------------------------------------------------------ 2 and 3: broadcast and
# allgather


def grouped(cases: Sequence[tuple[int, G]]) -> list[list[tuple[int, G]]]:
    """Collect the cases of each group, root and kind, as lists of (rank, case)."""
    groups: dict[tuple[object, ...], list[tuple[int, G]]] = {}
    for rank, case in cases:
        groups.setdefault((*case["members"], case.get("root"), case.get("kind")), []).append(
            (rank, case)
        )
    return list(groups.values())


def total(group: Sequence[tuple[int, Moved]]) -> float:
    """Return how many numbers all ranks of a group have sent."""
    return sum(case["sent"] for _, case in group)


def total_problem(group: Sequence[tuple[int, Moved]], pieces: int, what: str) -> Problem | None:
    """Judge the numbers that a group has sent.

    `pieces` times the size of one gradient is right, over all ranks.
    """
    p, size = len(group), group[0][1]["size"]
    right, sent = pieces * size, total(group)
    if abs(sent - right) < 0.5:
        return None
    return {
        "expected": right,
        "got": sent,
        "mistake": MISTAKES[what + (" more" if sent > right else " less")].format(
            p=p, right=right, sent=round(sent)
        ),
    }


def broadcast_problem(rank: int, case: BroadcastCase) -> Problem | None:
    """Judge the gradient at the root of a broadcast."""
    own = np.asarray(case["own"])
    expected, got, facts = own.sum(axis=0), case["got"], {"p": len(own), "root": case["root"]}
    if got is not None and not far(got, expected):
        return details(rank, expected, got, "spoiled") if case["spoiled"] else None
    if case["spoiled"]:
        mistake = "spoiled and wrong"
    elif got is None:
        mistake = "no gradient at root"
    elif not far(got, own[case["me"]]):
        mistake = "own only"
    elif not far(got, expected / len(own)):
        mistake = "mean"
    elif any(not far(got, gradient) for gradient in own):
        mistake = "one of them"
    elif not np.any(got):
        mistake = "zero at root"
    elif np.allclose(got, expected, rtol=1e-5, atol=1e-6):
        mistake = "rounded"
    elif not far(got, case["by memory"]):
        mistake = "by memory"
    else:
        mistake = "other gradient"
    return details(rank, expected, got, mistake, **facts)


def elsewhere_problem(rank: int, case: BroadcastCase) -> Problem | None:
    """Judge the gradient of a broadcast on a rank that is not the root."""
    own, got = np.asarray(case["own"]), case["got"]
    if got is None or not np.any(got):
        return (
            details(rank, own[case["me"]], "something else", "spoiled elsewhere")
            if case["spoiled"]
            else None
        )
    if not far(got, own.sum(axis=0)):
        mistake = "sum everywhere" if case["me"] else "sum at 0"
    else:
        mistake = "own elsewhere" if not far(got, own[case["me"]]) else "not zero"
    return details(rank, [0.0] * case["size"], got, mistake, root=case["root"])


def allgather_problem(rank: int, case: AllgatherCase) -> Problem | None:
    """Judge the gradient of a rank's own piece."""
    # own[r][j]: the gradient that rank r has for the piece of rank j
    own, me, got = np.asarray(case["own"]), case["me"], case["got"]
    expected, facts = own[:, me].sum(axis=0), {"p": len(own), "me": me}
    if got is not None and not far(got, expected):
        return details(rank, expected, got, "spoiled") if case["spoiled"] else None
    if case["spoiled"]:
        mistake = "spoiled and wrong"
    elif got is None:
        mistake = "no gradient"
    elif not far(got, own[me, me]):
        mistake = "own slice"
    elif not far(got, expected / len(own)):
        mistake = "divided"
    elif not far(got, own[me].sum(axis=0)):
        mistake = "summed here"
    elif np.allclose(got, expected, rtol=1e-5, atol=1e-6):
        mistake = "rounded"
    elif not far(got, sum(own[r, r] for r in range(len(own)))):
        mistake = "own pieces gathered"
    elif any(not far(got, gradient) for gradient in own[:, me]):
        mistake = "one slice"
    elif any(not far(got, own[:, j].sum(axis=0)) for j in range(len(own))):
        mistake = "wrong piece"
    elif not far(got, case["by memory"]):
        mistake = "by memory"
    else:
        mistake = "other gradient"
    return details(rank, expected, got, mistake, **facts)


# ------------------------------------------------------------------ 4: connect


def connect_problem(rank: int, case: ConnectCase, cut: Sequence[int] = ()) -> Problem | None:
    """Judge one case.

    `cut` are the ranks of the case's group on which backward does not lead to the recv.
    """
    if "error" in case:
        delegate = any(
            text in case["error"]
            for text in ("whose result is not part of any graph", "the result was dropped")
        )
        return {
            "rank": rank,
            "got": case["error"],
            "mistake": MISTAKES["lost gradient" if delegate else "communication error"],
        }
    if case["serial value"] is not None and far(case["value"], case["serial value"]):
        return details(rank, case["serial value"], case["value"], "wrong value")
    for name, expected in case["serial"].items():
        got = case["got"][name]
        if got is None:
            if cut and case.get("leads"):
                from manyhands.cluster.faults.fault_messages import ranks_text

                return details(rank, expected, got, "cut", name=name, ranks=ranks_text(cut))
            return details(rank, expected, got, "not connected", name=name)
        if far(got, expected):
            return details(rank, expected, got, "other gradient")
    return None


def cut_on(cases: Sequence[tuple[int, ConnectCase]]) -> dict[tuple[int, ...], list[int]]:
    """Return {members: ranks, except the first, on which backward does not lead to the recv}."""
    cut: dict[tuple[int, ...], list[int]] = {}
    for rank, case in cases:
        if case["me"] and case.get("leads") is False:
            cut.setdefault(tuple(case["members"]), []).append(rank)
    return cut


def most_telling(problem: Problem) -> int:
    """Return a sorting key for the answers of the ranks.

    The unconnected graph comes first, and last come the errors that follow from a different rank's
    error.
    """
    return (problem["mistake"] != MISTAKES["lost gradient"]) + (
        problem["mistake"] == MISTAKES["communication error"]
    )


# ------------------------------------------------------------------ 5: a ring for GPUs


def shift_problem(rank: int, case: RingCase) -> Problem | None:
    """Judge the piece that has arrived on a rank."""
    got, pieces, me = case["got"], case["pieces"], case["me"]
    if case["overwritten"]:
        return details(rank, pieces[me - 1], got, "x overwritten")
    if got is None:
        return details(rank, pieces[me - 1], got, "nothing came")
    if not far(got, pieces[me - 1]):
        return None
    if not far(got, pieces[me]):
        mistake = "own piece"
    else:
        mistake = "from the next" if not far(got, pieces[(me + 1) % len(pieces)]) else "other piece"
    return details(rank, pieces[me - 1], got, mistake)


def _traces(group: Sequence[tuple[int, RingCase]]) -> dict[int, list[Event]]:
    from manyhands.rehearsal import load

    return {rank: load(case["trace"]) for rank, case in group}


def moved_by_nccl(group: Sequence[tuple[int, RingCase]]) -> list[int]:
    """Return the messages that NCCL would complete.

    They are [from, to, numbers, ...] in order of the senders.
    """
    from manyhands.rehearsal import Replay

    moved: list[list[int]] = []
    for ends in Replay(_traces(group)).done:
        if ends[0][1].kind == "message":
            (sender, event), (receiver, _) = ends
            part = next(
                part for part in event.parts if part.way == "send" and part.peer == receiver
            )
            moved.append([sender, receiver, part.tensor.numel])
    return sum(sorted(moved), [])


def found_for_nccl(group: Sequence[tuple[int, RingCase]]) -> int:
    """Return how many things a rehearsal finds."""
    from manyhands.rehearsal import judge

    return len(judge(_traces(group)))


def rehearsal_problem(group: Sequence[tuple[int, RingCase]]) -> Problem | None:
    """Judge the traces of a group's ranks, in which a rehearsal for GPUs finds nothing."""
    from manyhands.rehearsal import judge

    members, size = group[0][1]["members"], len(group[0][1]["pieces"][0])
    for finding in judge(_traces(group)):
        return {
            "rank": finding.ranks[0],
            "got": f"{finding.call} {finding.text}",
            "mistake": MISTAKES["rehearsed"].format(
                severity=finding.severity, remedy=finding.remedy
            ),
        }
    right = sum(
        (
            [rank, after, size]
            for rank, after in zip(members, [*members[1:], members[0]], strict=True)
        ),
        [],
    )
    moved = moved_by_nccl(group)
    backwards = sum(
        (
            [rank, before, size]
            for rank, before in zip(members, [members[-1], *members[:-1]], strict=True)
        ),
        [],
    )
    mistake = "ring backwards" if moved == backwards else "not a ring"
    return (
        None if moved == right else {"expected": right, "got": moved, "mistake": MISTAKES[mistake]}
    )
