"""What is wrong with an answer to exercise 7, put into words.

Every function returns None, or the details of a FAIL line. `case`: what one rank reports of one update (see `update_ranks.update`).
"""

from manyhands.checks.pipeline.verdicts import problem
from manyhands.checks.pipeline.words import MISTAKES


def ambiguous(case):
    """Whether the stage with the largest norm has used its own: on other stages, two mistakes can be distinguished that look the same here."""
    return "own or largest" in f"{case['norm looks']} {case['looks']}"


def norm_problem(case):
    looks = case["norm looks"]
    return looks and problem(looks, f"{case['right norm']:.6g}", _number(case["norm"]), case["rank"], stages=case["stages"])


def weights_problem(case):
    looks = case["looks"]
    if looks is None:
        return None
    looks = f"weights {looks}" if f"weights {looks}" in MISTAKES else "weights other"
    where = "smaller" if case["max_norm"] > case["right norm"] else "larger"
    return problem(looks, case["wanted"], case["weights"][:3], case["rank"], stages=case["stages"], where=where)


def _number(value):
    return "no number" if value is None else f"{value:.6g}"
