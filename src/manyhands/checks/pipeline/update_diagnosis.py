"""What is wrong with an answer to exercise 7, in words.

Every `..._problem` returns None or the details of a FAIL line. `case` is what one rank reports of
one update (see `update_ranks.update`).
"""

from manyhands.checks.pipeline.diagnosis import problem
from manyhands.checks.pipeline.messages import MISTAKES


def ambiguous(case):
    """Return whether the stage with the largest norm has used its own norm.

    On other stages, two mistakes can be distinguished that look the same here.
    """
    return "own or largest" in f"{case['norm looks']} {case['looks']}"


def mark_small_groups(found):
    """If the answer is right with all ranks, attribute what is wrong without a known reason in a
    smaller group to the group.
    """
    most = max(case["stages"] for case in found)
    for key in ("norm looks", "looks"):
        if all(case[key] is None for case in found if case["stages"] == most):
            for case in found:
                case[key] = (
                    f"{case[key]} here" if case[key] in ("norm other", "other") else case[key]
                )


def norm_problem(case):
    looks = case["norm looks"]
    return looks and problem(
        looks,
        f"{case['right norm']:.6g}",
        _number(case["norm"]),
        case["rank"],
        ranks=case["members"],
    )


def weights_problem(case):
    looks = case["looks"]
    if looks is None:
        return None
    looks = f"weights {looks}" if f"weights {looks}" in MISTAKES else "weights other"
    where = "smaller" if case["max_norm"] > case["right norm"] else "larger"
    return problem(
        looks, case["wanted"], case["weights"][:3], case["rank"], ranks=case["members"], where=where
    )


def _number(value):
    return "not a number" if value is None else f"{value:.6g}"
