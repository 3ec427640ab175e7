"""Judge what the ranks have reported in unit 10's checks.

The right answers are computed here, and so is the mistake that a wrong answer looks like. Every
`..._problem` returns None, or the details of a FAIL line: `rank`, `expected`, `got` and the likely
`mistake`.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from manyhands.checks import by_rank
from manyhands.checks.horovod.messages import MISTAKES
from manyhands.checks.report import Stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from manyhands.checks.horovod.answers import (
        EpochCase,
        FinishedCase,
        FittedCase,
        JoinedCase,
        ResumedCase,
    )
    from manyhands.checks.report import Problem

ATOL = 1e-9
LOSS_ATOL = 1e-5  # a loss may go through float32
EDITS = ("nothing", "start", "gradients", "rows", "files")
# {a training run: its missing edit}
ANSWERS = {**{edit: edit for edit in EDITS}, "rounding": "nothing", "nobody": "files"}


def same(a: Any, b: Any, atol: float = ATOL) -> bool:
    """Return whether numbers or lists of numbers agree to rounding."""
    if isinstance(b, list):
        return (
            isinstance(a, list)
            and len(a) == len(b)
            and all(same(item, other, atol) for item, other in zip(a, b, strict=True))
        )
    return a is not None and abs(a - b) <= atol * (1 + abs(b))


# ------------------------------------------------------------------ 1: diagnose


def ask(function: Callable[..., Any], cases: Sequence[dict[str, float]]) -> list[str]:
    """Return the answer of the learner's function to each case, or raise `Stopped` if it raises."""
    returned = []
    for case in cases:
        try:
            returned.append(function(copy.deepcopy(case)))
        except NotImplementedError:
            raise Stopped(MISTAKES["unwritten"].format(name="diagnose")) from None
        except Exception as error:  # noqa: BLE001 - a learner's function may raise anything
            raise Stopped(
                MISTAKES["raised"].format(error=f"{type(error).__name__}: {error}"[:200], case=case)
            ) from None
    return [answer if isinstance(answer, str) else repr(answer)[:40] for answer in returned]


def diagnosis_problem(missing: str, symptoms: dict[str, float], returned: str) -> Problem | None:
    """Judge what the learner says about the symptoms of the edit `missing`."""
    if returned == ANSWERS[missing]:
        return None
    numbers = ", ".join(f"{key} {value:.3g}" for key, value in symptoms.items())
    text = (
        MISTAKES["diagnosis", missing]
        if returned in EDITS
        else MISTAKES["no edit"].format(edits=", ".join(EDITS))
    )
    return {"expected": ANSWERS[missing], "got": returned, "mistake": f"{numbers}.\n{text}"}


# ------------------------------------------------------------------ 2: resume


def _weights(rank: int, case: ResumedCase) -> Problem | None:
    if not case["looks"]:
        return None
    return {
        "rank": rank,
        "expected": case["right"],
        "got": case["state"],
        "mistake": MISTAKES["resume", case["looks"]],
    }


def _optimiser(rank: int, case: ResumedCase) -> Problem | None:
    if not same(case["momenta"], case["right momenta"]):
        mistake = "no momentum" if not any(case["momenta"]) else "other momentum"
        return {
            "rank": rank,
            "expected": case["right momenta"],
            "got": case["momenta"],
            "mistake": MISTAKES["resume", mistake],
        }
    if not same(case["settings"], [case["right settings"]]):
        rate = not same([group[0] for group in case["settings"]], case["right settings"][:1])
        return {
            "rank": rank,
            "expected": case["right settings"],
            "got": case["settings"],
            "mistake": MISTAKES["resume", "rate" if rate else "settings"],
        }
    return None


def _step(rank: int, case: ResumedCase) -> Problem | None:
    whole = isinstance(case["returned"], int)
    if whole and same(case["returned"], case["step"]):
        return None
    if not whole:
        return {
            "rank": rank,
            "expected": case["step"],
            "got": case["returned"],
            "mistake": MISTAKES["resume", "no whole number"],
        }
    return {
        "rank": rank,
        "expected": case["step"],
        "got": case["returned"],
        "mistake": MISTAKES["resume", "step"],
    }


RESUMED = {"weights": _weights, "optimiser": _optimiser, "step": _step}


# ------------------------------------------------------------------ 3: fit


def fit_problem(rank: int, case: FittedCase) -> Problem | None:
    """Judge what a rank has after the learner's training run."""
    if not case["looks"]:
        return None
    near = case["looks"] == "other" and same(case["got"], case["right"], 3e-4)
    text = MISTAKES["fit", "rounded" if near else case["looks"]].format(
        sizes=case["sizes"], p=len(case["sizes"]), n=sum(case["sizes"])
    )
    return {"rank": rank, "expected": case["right"], "got": case["got"], "mistake": text}


# ------------------------------------------------------------------ 4: epoch_of


def joined(answers: Sequence[EpochCase]) -> JoinedCase:
    """Join one case of all ranks.

    `orders[e][r]` are the steps of rank r in epoch e, and `rates` the rates of all ranks and
    epochs.
    """
    case = answers[0]
    orders = [
        [answer["orders"][epoch] for answer in answers] for epoch in range(len(case["orders"]))
    ]
    return {
        **case,
        "orders": orders,
        "rates": [answer["rates"] for answer in answers],
        "reseeded": [answer["reseeded"] for answer in answers],
    }


def _taken(ranks: Sequence[Sequence[Sequence[int]]]) -> list[int]:
    return [row for steps in ranks for step in steps for row in step]


def once_values(case: JoinedCase) -> list[Any]:
    """Return what the grader compares of the epochs' rows.

    For each epoch, it is the rows taken and how many of them are different, and then whether the
    second epoch has the first one's order, whether the first one's order is repeated, whether the
    rows are in the order that was asked for, and whether any rank has changed the generator that
    all else draws from.
    """
    counts = [[len(_taken(ranks)), len(set(_taken(ranks)))] for ranks in case["orders"]]
    first, second, again = case["orders"]
    return [
        counts,
        bool(_taken(first)) and first == second,
        first == again,
        _as_asked(case),
        any(case["reseeded"]),
    ]


def _as_asked(case: JoinedCase) -> bool:
    """Return whether each rank takes its rows in the order of the epoch, whichever rows it has."""
    places = [{row: place for place, row in enumerate(order)} for order in case["right orders"]]
    own = [
        [place.get(row, -1) for row in _taken([steps])]
        for place, ranks in zip(places, case["orders"], strict=True)
        for steps in ranks
    ]
    return all(taken == sorted(taken) for taken in own)


def _once(case: JoinedCase) -> Problem | None:
    counts, stuck, back, as_asked, reseeded = once_values(case)
    step = case["rows"] * case["p"]
    mistake: str | None = None
    whole = case["n"] // step * step
    if any(row not in range(case["n"]) for ranks in case["orders"] for row in _taken(ranks)):
        mistake = "no such row"
    elif any(taken != different for taken, different in counts):
        # rank 0 alone has most of them
        mistake = (
            "all rows" if len(_taken(case["orders"][0][:1])) > 2 * case["n"] / 3 else "rows twice"
        )
    elif any(taken != whole for taken, _ in counts):
        mistake = "not whole"
    elif stuck:
        mistake = "same order"
    elif not back:
        mistake = "not by the epoch"
    elif reseeded:
        mistake = "reseeded"
    elif not as_asked:
        mistake = "other order"
    if mistake is None:
        return None
    got = [[[int(row) for row in step] for step in steps] for steps in case["orders"][0]][:2]
    return {
        "got": got,
        "mistake": MISTAKES["epoch", mistake].format(n=case["n"], p=case["p"], whole=whole),
    }


def steps_values(case: JoinedCase) -> list[list[list[int]]]:
    """Return the number of rows in each step of each rank, for each epoch."""
    return [[[len(step) for step in steps] for steps in ranks] for ranks in case["orders"]]


def _steps(case: JoinedCase) -> Problem | None:
    right = [[[case["rows"]] * (case["n"] // (case["rows"] * case["p"]))] * case["p"]] * len(
        case["orders"]
    )
    got = steps_values(case)
    if got == right:
        return None
    numbers = [len(steps) for steps in got[0]]
    if len(set(numbers)) > 1:
        mistake = "different steps"
    elif not right[0][0] and all(sizes == [0] for sizes in got[0]):
        mistake = "an empty step"
    elif any(set(sizes) - {case["rows"]} for sizes in got[0]):
        mistake = "sizes"
    else:
        mistake = "too many steps" if numbers[0] > len(right[0][0]) else "too few steps"
    facts = {"n": case["n"], "p": case["p"], "rows": case["rows"]}
    return {
        "expected": right[0],
        "got": got[0],
        "mistake": MISTAKES["epoch", mistake].format(**facts),
    }


def _rate(case: JoinedCase) -> Problem | None:
    right = case["base"] * case["p"]
    if all(same(rate, right) for rates in case["rates"] for rate in rates):
        return None
    got = case["rates"][0][0]
    mistake = (
        "not scaled"
        if same(got, case["base"])
        else "by the root"
        if same(got, case["base"] * case["p"] ** 0.5)
        else "rate"
    )
    return {
        "expected": right,
        "got": got,
        "mistake": MISTAKES["epoch", mistake].format(p=case["p"]),
    }


EPOCH = {"once": _once, "steps": _steps, "rate": _rate}


# ------------------------------------------------------------------ 5: finish


def file_problem(answers: Sequence[FinishedCase]) -> Problem | None:
    """Find whether rank 0 wrote the only file, with the mean in it."""
    wrote, mean = (
        [rank for rank, case in enumerate(answers) if case["wrote"]],
        sum(answers[0]["losses"]) / len(answers),
    )
    if wrote != [0]:
        mistake = (
            "nobody"
            if not wrote
            else "local"
            if len(wrote) < len(answers) and 0 in wrote
            else "all write"
            if 0 in wrote
            else "not rank 0"
        )
        return {"expected": [0], "got": wrote, "mistake": MISTAKES["finish", mistake]}
    case = answers[0]
    if case["weights"] is None or not same(case["weights"], case["right weights"]):
        whole = case["weights"] is not None and len(case["weights"]) == len(case["right weights"])
        return {"rank": 0, "mistake": MISTAKES["finish", "other weights" if whole else "content"]}
    if not same(case["loss"], mean, LOSS_ATOL):
        mistake = "own in the file" if same(case["loss"], case["losses"][0], LOSS_ATOL) else "loss"
        return {
            "rank": 0,
            "expected": mean,
            "got": case["loss"],
            "mistake": MISTAKES["finish", mistake],
        }
    return None


def loss_problem(rank: int, case: FinishedCase, everyone: Sequence[FinishedCase]) -> Problem | None:
    """Judge one rank's loss.

    `everyone` are the cases of all ranks of this world, because a known mistake must explain all
    wrong answers among them.
    """
    losses, got = case["losses"], case["returned"]
    mean = sum(losses) / len(losses)
    if same(got, mean, LOSS_ATOL):
        return None
    looks = {
        "own": losses,
        "rank 0's": losses[:1] * len(losses),
        "sum": [sum(losses)] * len(losses),
    }
    wrong = [
        (number, rank_case["returned"])
        for number, rank_case in enumerate(everyone)
        if not same(rank_case["returned"], mean, LOSS_ATOL)
    ]
    known = (
        name
        for name, values in looks.items()
        if all(same(returned, values[number], LOSS_ATOL) for number, returned in wrong)
    )
    mistake = ("tensor" if case["tensor"] else "no number") if got is None else next(known, "loss")
    return {
        "rank": rank,
        "expected": mean,
        "got": got,
        "mistake": MISTAKES["finish", mistake],
        "picture": by_rank.numbers(
            "loss", mean, [rank_case["returned"] for rank_case in everyone], within=LOSS_ATOL
        ),
    }
