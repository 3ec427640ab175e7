"""How the checks of unit 12 judge what the ranks have reported.

Every `..._problem` returns None or the details of a FAIL line, which are `rank`, `expected`, `got`
and the likely `mistake`, that is, the one that a wrong answer looks like.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from manyhands.checks.encoder_decoder.messages import MISTAKES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from manyhands.checks.encoder_decoder.answers import (
        HybridCase,
        LossAnswer,
        Named,
        Part,
        RaggedCase,
        Role,
        SplitCase,
        TrainingCase,
    )
    from manyhands.checks.report import Problem

ATOL = 1e-8  # everything is computed in float64, where one rounding more or less is 1e-15


def far(a: Any, b: Any) -> bool:
    """Return whether two lists of numbers differ, in length or by more than the tolerance."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    return a.shape != b.shape or not np.all(np.abs(a - b) <= ATOL + ATOL * np.abs(b))


def far_parts(got: Sequence[Part], right: Sequence[Part]) -> bool:
    """Do the same for lists of [shape, numbers]."""
    return len(got) != len(right) or any(
        part[0] != other[0] or far(part[1], other[1])
        for part, other in zip(got, right, strict=True)
    )


def far_named(got: Named, right: Named) -> bool:
    """Do the same for {name: numbers or None}."""
    return any(
        (got[name] is None) != (right[name] is None)
        or (got[name] is not None and far(got[name], right[name]))
        for name in right
    )


def looks_like(
    got: Any, variants: Mapping[str, Any], distance: Callable[[Any, Any], bool]
) -> str | None:
    """Return the name of the first variant that equals what was received, or None."""
    return next((name for name, variant in variants.items() if not distance(got, variant)), None)


# ------------------------------------------------------------------ run_ragged


def outputs_problem(case: RaggedCase) -> Problem | None:
    """Judge the outputs of sequences of different lengths."""
    got, right = case["outputs"], case["right outputs"]
    shapes, wanted = [output[0] for output in got], [output[0] for output in right]
    if shapes != wanted:
        mistake = (
            "ragged shapes"
            if len(shapes) == len(wanted) and sorted(shapes) != sorted(wanted)
            else "ragged count"
        )
        mistake = "ragged order" if sorted(shapes) == sorted(wanted) else mistake
        return {"expected": str(wanted), "got": str(shapes), "mistake": MISTAKES[mistake]}
    for output, other, unbegun in zip(got, right, case["without start"], strict=True):
        if far(output[1], other[1]):
            mistake = (
                "ragged outputs"
                if not case["begun"]
                else "other start"
                if far(output[1], unbegun)
                else "no start"
            )
            return {"expected": other[1], "got": output[1], "mistake": MISTAKES[mistake]}
    return None


def state_problem(case: RaggedCase) -> Problem | None:
    """Judge the state after sequences of different lengths."""
    got, right = case["state"], case["right state"]
    if not far_parts(got, right):
        return None
    name = looks_like(got, case["variants"], far_parts)
    if name is None:
        name = (
            "state shape"
            if [part[0] for part in got] != [part[0] for part in right]
            else "ragged state"
        )
    first = next(
        (
            i
            for i, (part, other) in enumerate(zip(got, right, strict=False))
            if part[0] != other[0] or far(part[1], other[1])
        ),
        0,
    )
    field = 0 if got[first][0] != right[first][0] else 1
    return {"expected": right[first][field], "got": got[first][field], "mistake": MISTAKES[name]}


# ------------------------------------------------------------------ loss_of


def mean_problem(answer: LossAnswer) -> Problem | None:
    """Judge the loss that is a mean over all tokens."""
    if not far(answer["got"], answer["right"]):
        return None
    name = looks_like(answer["got"], answer["variants"], far) or "other loss"
    return {
        "expected": answer["right"],
        "got": answer["got"],
        "mistake": MISTAKES[name].format(**answer),
    }


def divisor_problem(answer: LossAnswer) -> Problem | None:
    """Judge the loss that is divided by a number that is given."""
    if not far(answer["divided"], answer["right divided"]):
        return None
    name = "other sum" if far(answer["got"], answer["right"]) else "other divisor"
    name = name if far(answer["divided"], answer["got"]) else "divisor ignored"
    return {
        "expected": answer["right divided"],
        "got": answer["divided"],
        "mistake": MISTAKES[name].format(**answer),
    }


# ------------------------------------------------------------------ stops by the communicators or
# by the learner's code


def stopped(answers: Sequence[Any]) -> Problem | None:
    """Return the details of a FAIL line if a rank was stopped, and None otherwise.

    The learner's code has raised there, or a call has waited in vain. If several ranks were
    stopped, the rank with the best known mistake is reported, or else the rank that was stopped
    first.
    """
    stops = [
        (_known(answer["stopped"][0])[0], answer["stopped"][1], rank)
        for rank, answer in enumerate(answers)
        if isinstance(answer, dict) and "stopped" in answer
    ]
    if not stops:
        return None
    rank = min(stops)[2]
    text, _, by_communicator = answers[rank]["stopped"]
    head = MISTAKES["waited" if by_communicator else "raised"].format(role=answers[rank]["role"])
    return {"rank": rank, "mistake": "\n".join(filter(None, [_known(text)[1], head, text]))}


def _known(text: str) -> tuple[int, str | None]:
    """Return (place in the table of known mistakes, what to do about it).

    These are the last place and None for unknown mistakes.
    """
    known = MISTAKES["known"]
    return next(
        ((place, known[fragment]) for place, fragment in enumerate(known) if fragment in text),
        (len(known), None),
    )


def unclaimed_problem(cases: Sequence[tuple[int, SplitCase]]) -> Problem | None:
    """Judge whether the encoder has the gradient that came back from the decoder.

    Whether the decoder's rank notices depends on which rank is faster, so this mistake is reported
    in the same way in both cases.
    """
    back = {case["case"] for _, case in cases if case["role"] == "decoder" and case["sent"][1]}
    for rank, case in cases:
        if (
            case["role"] == "encoder"
            and case["case"] in back
            and not any(numbers and any(numbers) for numbers in case["got"].values())
        ):
            return {"rank": rank, "mistake": MISTAKES["unclaimed"]}
    return None


# ------------------------------------------------------------------ encoder_step, decoder_step


def loss_problem(rank: int, case: SplitCase) -> Problem | None:
    """Judge the loss of a step, which the decoder's rank has."""
    if case["role"] == "encoder":
        return None
    if not far(case["loss"], case["right"]["loss"]):
        return (
            None
            if case["number"]
            else {
                "rank": rank,
                "expected": case["right"]["loss"],
                "got": "a tensor",
                "mistake": MISTAKES["no number"],
            }
        )
    name = (
        looks_like(case["loss"], case["other loss"], far)
        or ratio(case["loss"], case["right"]["loss"])
        or "state"
    )
    return {
        "rank": rank,
        "expected": case["right"]["loss"],
        "got": case["loss"],
        "mistake": MISTAKES[name].format(case=MISTAKES["layout"][case["case"]]),
    }


def gradient_problem(rank: int, case: SplitCase, role: Role) -> Problem | None:
    """Judge the gradients of a step on the rank with this role."""
    right, got = case["right"]["gradients"], case["got"]
    if case["role"] != role or not far_named(got, right):
        return None
    parameter = next(name for name in right if got[name] is None or far(got[name], right[name]))
    details: Problem = {"rank": rank, "expected": right[parameter], "got": got[parameter]}
    if all(numbers is None or not np.any(numbers) for numbers in got.values()):
        name = "no gradient"
    elif case.get("before") and not far([x + case["before"] for x in all_of(got)], all_of(right)):
        name = "cleared"
    else:
        name = (
            (looks_like(got, case["other gradient"], far_named) if role == "encoder" else None)
            or ratio(all_of(got), all_of(right))
            or "other gradient"
        )
    return {
        **details,
        "mistake": MISTAKES[name].format(
            role=role, name=parameter, case=MISTAKES["layout"][case["case"]]
        ),
    }


def all_of(named: Named) -> list[float]:
    """Return all numbers of {name: numbers or None} in one list, without the missing ones."""
    return [x for numbers in named.values() if numbers is not None for x in numbers]


def ratio(got: Any, right: Any) -> str | None:
    """Return "twice", "half" or "negative" if the value is wrong by the factor 2, 0.5 or -1.

    Return None otherwise.
    """
    return next(
        (
            name
            for name, factor in (("twice", 2), ("half", 0.5), ("negative", -1))
            if not far(got, factor * np.asarray(right))
        ),
        None,
    )


def traffic_problem(rank: int, case: SplitCase) -> Problem | None:
    """Judge whether only the state crosses, in one message or in two.

    Its bytes must cross once in each direction.
    """
    messages, sent_bytes = case["sent"]
    if sent_bytes == case["state_bytes"] and 1 <= messages <= 2:
        return None
    if sent_bytes == 0:
        name = "nothing sent"
    elif sent_bytes < case["state_bytes"]:
        name = "too few bytes"
    else:
        name = "many messages" if sent_bytes == case["state_bytes"] else "too many bytes"
    expected = MISTAKES["traffic"].format(messages="1 or 2", bytes=case["state_bytes"])
    return {
        "rank": rank,
        "expected": expected,
        "got": MISTAKES["traffic"].format(messages=messages, bytes=sent_bytes),
        "mistake": MISTAKES[name],
    }


# ------------------------------------------------------------------ train_split


def weights_problem(rank: int, answer: TrainingCase, role: Role) -> Problem | None:
    """Judge the weights after training on the rank with this role."""
    if answer["role"] != role or not far_named(answer["got"], answer["right"]["weights"]):
        return None
    right = answer["right"]["weights"]
    parameter = next(name for name in right if far(answer["got"][name], right[name]))
    variants: list[Any] = [("unchanged", answer["before"]), *answer["variants"]]
    name = next(
        (name for name, variant in variants if not far_named(answer["got"], variant)),
        "other weights",
    )
    return {
        "rank": rank,
        "expected": right[parameter],
        "got": answer["got"][parameter],
        "mistake": MISTAKES[name].format(role=role, name=parameter),
    }


def losses_problem(rank: int, answer: TrainingCase) -> Problem | None:
    """Judge the losses during training, which the decoder's rank has."""
    if answer["role"] == "encoder" or not far(answer["losses"], answer["right"]["losses"]):
        return None
    name = (
        "no losses" if len(answer["losses"]) != len(answer["right"]["losses"]) else "other losses"
    )
    return {
        "rank": rank,
        "expected": answer["right"]["losses"],
        "got": answer["losses"],
        "mistake": MISTAKES[name],
    }


# ------------------------------------------------------------------ hybrid_step


def hybrid_problem(rank: int, case: HybridCase, role: Role) -> Problem | None:
    """Judge the gradients of a step of several pairs on a rank with this role."""
    right, got = case["right"]["gradients"], case["got"]
    if case["role"] != role or not far_named(got, right):
        return None
    parameter = next(name for name in right if got[name] is None or far(got[name], right[name]))
    if any(numbers is None for numbers in got.values()):
        name = "no gradient"
    elif case["pairs"] == 1:
        name = "one pair"
    else:
        much = ratio(all_of(got), all_of(right))
        name = (
            looks_like(
                got, {"mean of pairs": case["mean of pairs"], "alone": case["alone"]}, far_named
            )
            or (f"hybrid {much}" if much else None)
            or ("alone" if proportional(all_of(got), all_of(case["alone"])) else None)
            or ("other factor" if proportional(all_of(got), all_of(right)) else "other hybrid")
        )
    return {
        "rank": rank,
        "expected": right[parameter],
        "got": got[parameter],
        "mistake": MISTAKES[name].format(role=role, name=parameter),
    }


def proportional(a: Any, b: Any) -> bool:
    """Return whether one list is the other, times one number."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    return a.shape == b.shape and not far(a * (b @ b), b * (a @ b))
