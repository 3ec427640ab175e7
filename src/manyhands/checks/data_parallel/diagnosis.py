"""How the checks of unit 01 judge what the ranks report, and which mistakes they recognise.

Every `..._problem` returns None, or the details of a FAIL line: `rank`, `expected`, `got` and the
likely `mistake`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeVar

from manyhands.checks import by_rank
from manyhands.checks.data_parallel.messages import MISTAKES

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from manyhands.checks.data_parallel.answers import GradientCase, RowsCase, ShareCase, StepCase
    from manyhands.checks.report import Problem

    C = TypeVar("C", GradientCase, StepCase)

ATOL = 1e-9
SLACK = 1.2  # a few small messages in addition to the gradients do no harm


def far(a: float | None, b: float) -> bool:
    """Whether a number differs from the right one by more than ATOL, or is None or NaN."""
    return a is None or abs(a - b) > ATOL * (1 + abs(b)) or a != a


# ------------------------------------------------------------------ 1: rows


def cover_problem(case: RowsCase) -> Problem | None:
    """Every row belongs to one rank, and each rank's rows are neighbours, in the order of ranks."""
    n, got = case["n"], case["got"]
    together = sum(got, [])
    if case["odd"] or case["borrowed"]:
        return _no_rows(case)
    if together == list(range(n)):
        return None
    if sorted(together) == list(range(n)):
        mistake = "dealt"
    elif len(set(together)) < len(together):
        mistake = "rows twice"
    else:
        mistake = "rows dropped"
    return {
        "expected": f"each of {n} rows once",
        "got": [len(rows) for rows in got],
        "mistake": MISTAKES[mistake].format(n=n, p=case["world_size"]),
        "picture": by_rank.rows(n, _neighbours(n, case["world_size"]), got),
    }


def _neighbours(n: int, p: int) -> list[list[int]]:
    """Return the rows of each of p ranks.

    Their numbers differ by at most one, and the larger shards come first.
    """
    bounds = [rank * (n // p) + min(rank, n % p) for rank in range(p + 1)]
    return [list(range(*pair)) for pair in pairwise(bounds)]


def _no_rows(case: RowsCase) -> Problem:
    mistake = (
        "borrowed" if case["borrowed"] else "nothing" if case["odd"] == "NoneType" else "no slice"
    )
    return {"mistake": MISTAKES[mistake].format(name=case["borrowed"], got=case["odd"])}


def even_problem(case: RowsCase) -> Problem | None:
    """No rank has two rows more than another, and the larger shards come first."""
    n, p, sizes = case["n"], case["world_size"], [len(rows) for rows in case["got"]]
    right = [n // p + (rank < n % p) for rank in range(p)]
    if sizes == right:
        return None
    if case["odd"] or case["borrowed"]:
        return _no_rows(case)
    if sorted(sizes, reverse=True) == right:
        mistake = "larger last"
    elif sum(sizes) != n:
        mistake = "not all"
    else:
        mistake = "not even" if max(sizes) > max(right) else "rounded up"
    return {
        "expected": right,
        "got": sizes,
        "mistake": MISTAKES[mistake].format(n=n, p=p),
        "picture": by_rank.numbers("rows", right, sizes),
    }


# ------------------------------------------------------------------ 2: sum_gradients


def gradient_problem(rank: int, case: GradientCase) -> Problem | None:
    """Judge one rank's sums of gradients, and whether it has waited for them."""
    if case["frozen"]:
        return {
            "rank": rank,
            "got": case["frozen"],
            "mistake": MISTAKES["frozen has a gradient"].format(name=case["frozen"][0]),
        }
    # the tied one first: it tells most
    for name, gradient in sorted(case["gradients"].items(), key=lambda item: item[0] != "a.weight"):
        if gradient["looks"]:
            mistake = (
                "tied summed twice"
                if name == "a.weight" and gradient["looks"] == "summed again"
                else gradient["looks"]
            )
            if case.get("not waited") and mistake in ("own", "other"):
                mistake = "not waited"
            facts = {
                "name": name,
                "p": len(case["members"]),
                "works": case.get("not waited"),
                "there": case.get("complete", {}).get(name),
            }
            if mistake in ("own", "other") and facts["there"]:
                mistake = "not everywhere"
            return {
                "rank": rank,
                "expected": gradient["right"],
                "got": gradient["got"],
                "mistake": MISTAKES["gradient", mistake].format(**facts),
            }
    if case.get("not waited"):
        return {
            "rank": rank,
            "mistake": MISTAKES["gradient", "never awaited"].format(works=case["not waited"]),
        }
    return None


def note_complete(answers: list[list[GradientCase]]) -> None:
    """Note in each case which ranks of its group have the right sums, since reduce serves only one.

    `complete` is {name: ranks}.
    """
    for members, cases in by_group(answers).items():
        for name in cases[0]["gradients"]:
            there = [
                rank
                for rank, case in zip(members, cases, strict=True)
                if not case["gradients"][name]["looks"]
            ]
            for case in cases:
                case.setdefault("complete", {})[name] = there


def missing_problem(rank: int, case: GradientCase) -> Problem | None:
    """Judge sums to which not every rank has a gradient to contribute."""
    problem = gradient_problem(rank, case)
    wrong = {
        name.split(".")[0] for name, gradient in case["gradients"].items() if gradient["looks"]
    }
    if problem and wrong == {"spare"}:  # and nothing else
        problem["mistake"] = MISTAKES["missing"] + "\n" + problem["mistake"]
    return problem


def by_group(answers: list[list[C]]) -> dict[tuple[int, ...], list[C]]:
    """Return {the ranks of a group: their cases}."""
    groups: dict[tuple[int, ...], list[C]] = {}
    for cases in answers:
        for case in cases:
            groups.setdefault(tuple(case["members"]), []).append(case)
    return groups


def sent_by_group(answers: list[list[GradientCase]]) -> list[tuple[GradientCase, float]]:
    """Return [(first case, numbers sent by all ranks)], with one entry for each group."""
    return [(group[0], sum(case["sent"] for case in group)) for group in by_group(answers).values()]


def limits(case: GradientCase) -> tuple[int, float]:
    """Return how much an all-reduce of all gradients moves over all ranks, and the most allowed."""
    right = 2 * (len(case["members"]) - 1) * case["size"]
    return right, SLACK * right


def bytes_problem(case: GradientCase, sent: float) -> Problem | None:
    """Judge how many numbers the ranks of a group have sent together."""
    right, most = limits(case)
    if right / SLACK <= sent <= most:
        return None
    text = MISTAKES["too much sent" if sent > most else "too little sent"]
    return {
        "expected": right,
        "got": round(sent),
        "mistake": text.format(sent=round(sent), right=right, p=len(case["members"])),
    }


def bytes_evidence(case: GradientCase, sent: float) -> float:
    """Return one number for everything that is allowed, and a different one for anything else."""
    return sent if bytes_problem(case, sent) else limits(case)[0]


# ------------------------------------------------------------------ 3: share


def share_problem(answers: Sequence[ShareCase]) -> Problem | None:
    """Judge one case; `answers` is what each rank reports of it, namely the shares of all ranks."""
    case = next((answer for answer in answers if answer["looks"]), None)
    if case is None:
        return None
    if case["looks"] != "not finite" and any(
        far(answer["value"], case["value"])
        for answer in answers
        if answer["value"] is not None and case["value"] is not None
    ):
        return {
            "expected": case["serial"],
            "got": [answer["value"] for answer in answers],
            "mistake": MISTAKES["share", "asks"],
        }
    if (
        case["looks"] == "other"
        and case["serial"] is not None
        and not far(case["value"], case["serial"])
    ):
        return {
            "expected": case["serial gradient"],
            "got": case["gradient"],
            "mistake": MISTAKES["share", "gradient"],
        }
    text = MISTAKES["share", case["looks"] or "other"].format(
        p=len(case["sizes"]), n=sum(case["sizes"]), sizes=case["sizes"]
    )
    return {"expected": case["serial"], "got": case["value"], "mistake": text}


# ------------------------------------------------------------------ 4: train_step


def groups_apart(answers: list[list[StepCase]]) -> set[tuple[int, ...]]:
    """Return the groups, as tuples of ranks, whose ranks end with different weights."""
    # a learner may also have changed how many numbers are trained
    return {
        members
        for members, (first, *others) in by_group(answers).items()
        if any(
            far(*pair) for other in others for pair in zip(other["got"], first["got"], strict=False)
        )
    }


def weights_problem(
    rank: int,
    case: StepCase,
    apart: Container[tuple[int, ...]] = (),
    group: Sequence[StepCase] = (),
) -> Problem | None:
    """Judge one rank's weights. `group`: the cases of all ranks of its group, for the picture."""
    facts = {"p": len(case["members"]), "members": case["members"]}
    if not case["frozen"]:
        return {"rank": rank, "mistake": MISTAKES["step", "frozen moved"]}
    if any(case["beyond"]):
        return {
            "rank": rank,
            "mistake": MISTAKES["step", "whole batch"].format(beyond=case["beyond"], **facts),
        }
    looks = case["looks"]
    if looks:
        if looks == "other" and tuple(case["members"]) in apart:
            looks = "apart"
        return {
            "rank": rank,
            "expected": case["right"],
            "got": case["got"],
            "mistake": MISTAKES["step", looks].format(**facts),
            "picture": _weight_by_rank(case, group),
        }
    return None


def _weight_by_rank(case: StepCase, group: Sequence[StepCase]) -> by_rank.Picture | None:
    """Return a picture of the first weight that is wrong, as each rank of the group has it."""
    place = next(
        (
            place
            # as above, these may be more or fewer
            for place, pair in enumerate(zip(case["got"], case["right"], strict=False))
            if far(*pair)
        ),
        0,
    )
    keys: tuple[Literal["right", "got"], ...] = ("right", "got")
    right, got = (
        [member[key][place] if place < len(member[key]) else None for member in group]
        for key in keys
    )
    return by_rank.numbers(f"weight {place}", right, got, case["members"], within=ATOL)


def _all_near(got: Sequence[float | None], right: Sequence[float]) -> bool:
    return len(got) == len(right) and not any(far(*pair) for pair in zip(got, right, strict=True))


def objective_problem(rank: int, case: StepCase) -> Problem | None:
    """Judge the objectives that the learner's function has returned on one rank."""
    if not any(far(*pair) for pair in zip(case["reported"], case["objectives"], strict=True)):
        return None
    mistake = "objective"
    if None in case["reported"]:
        mistake = "no number"
    elif case.get("looks") and not far(case["reported"][0], case["objectives"][0]):
        mistake = "objective follows"
    elif _all_near(case["reported"], case.get("after", [])):
        mistake = "objective after"
    elif _all_near(
        case["reported"],
        [objective / max(len(case.get("members", [])), 1) for objective in case["objectives"]],
    ):
        mistake = "objective divided"
    text = MISTAKES[mistake].format(p=len(case.get("members", [])))
    return {"rank": rank, "expected": case["objectives"], "got": case["reported"], "mistake": text}
