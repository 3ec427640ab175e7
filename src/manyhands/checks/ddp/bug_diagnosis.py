"""How the check of unit 06's loop with a bug judges what the ranks have reported.

See `diagnosis`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from manyhands.checks.ddp.diagnosis import far
from manyhands.checks.ddp.messages import MISTAKES

if TYPE_CHECKING:
    from manyhands.checks.ddp.answers import TrainingAnswer
    from manyhands.checks.report import Problem


def averaged_problem(rank: int, answer: TrainingAnswer) -> Problem | None:
    """Judge how many all-reduces a training run has sent."""
    if answer["sent"] == answer["steps"]:
        return None
    sent, steps = answer["sent"], answer["steps"]
    name = (
        "nothing averaged"
        if not sent
        else (
            "other steps"
            if sent == len(answer["rows"] or ())
            else "averaged again"
            if sent > steps
            else "not every step"
        )
    )
    return {
        "rank": rank,
        "expected": steps,
        "got": sent,
        "mistake": MISTAKES[name].format(sent=sent, steps=steps),
    }


def weights_problem(rank: int, answer: TrainingAnswer) -> Problem | None:
    """Judge the weights of a training run, and if they are right, the rows of its steps."""
    if not far(answer["got"], answer["serial"]):
        return rows_problem(rank, answer)
    names: tuple[Literal["local rank", "one epoch", "both", "not zeroed", "other rate"], ...] = (
        "local rank",
        "one epoch",
        "both",
        "not zeroed",
        "other rate",
    )
    mistake: str = next(
        (name for name in names if not far(answer["got"], answer[name])),
        "other weights",
    )
    mistake = "nothing averaged" if not answer["sent"] else mistake
    if mistake == "other weights" and rows_problem(rank, answer):
        return rows_problem(rank, answer)
    return {
        "rank": rank,
        "expected": answer["serial"],
        "got": answer["got"],
        "mistake": MISTAKES[mistake],
    }


def rows_problem(rank: int, answer: TrainingAnswer) -> Problem | None:
    """What is wrong with the rows of this rank's steps.

    The first step is shown whose rows are not the ones that the rank should have.
    """
    rows, dealt = answer["rows"], answer["dealt"]
    if rows == dealt:
        return None
    if rows is None or len(rows) != len(dealt):
        got = "something else" if rows is None else f"{len(rows)} steps"
        return {
            "rank": rank,
            "expected": f"the rows of {len(dealt)} steps",
            "got": got,
            "mistake": MISTAKES["no rows"],
        }
    step = next(i for i, (got, right) in enumerate(zip(rows, dealt, strict=True)) if got != right)
    mistake = MISTAKES["too many rows" if len(rows[step]) > len(dealt[step]) else "other rows"]
    return {
        "rank": rank,
        "expected": dealt[step],
        "got": rows[step],
        "mistake": mistake.format(step=step, epoch=step * answer["epochs"] // len(dealt)),
    }
