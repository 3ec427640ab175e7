"""How the checks of unit 06 judge backward passes that must send nothing: see `diagnosis`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyhands.checks.ddp.diagnosis import average_mistake, far, schedule_problem
from manyhands.checks.ddp.messages import MISTAKES

if TYPE_CHECKING:
    from manyhands.checks.ddp.answers import AccumulationAnswer, SilentAnswer
    from manyhands.checks.report import Problem


def hooks_problem(rank: int, answer: SilentAnswer) -> Problem | None:
    """Of the hooks: a backward pass while `sync` is False, and the one after it."""
    if answer["sent"]:
        return {
            "rank": rank,
            "expected": 0,
            "got": answer["sent"],
            "mistake": MISTAKES["spoke while silent"],
        }
    problem = schedule_problem(rank, answer["events"], answer["buckets"])
    return problem and {**problem, "mistake": MISTAKES["noted while silent"]}


def silence_problem(rank: int, answer: AccumulationAnswer) -> Problem | None:
    """Judge what each of three micro-batches has sent, and the promises of `no_sync`."""
    expected = [0, 0, answer["buckets"]]
    if answer["sent"] != expected:
        mistake = (
            "spoke in no_sync"
            if answer["sent"][0]
            else "spoke in an inner no_sync"
            if answer["sent"][1]
            else "silent after no_sync"
        )
        mistake = (
            "noted before" if mistake == "silent after no_sync" and answer["noted"] else mistake
        )
        return {
            "rank": rank,
            "expected": expected,
            "got": answer["sent"],
            "mistake": MISTAKES[mistake],
        }
    name = next((name for name, holds in answer["promises"] if not holds), None)
    return {"rank": rank, "mistake": MISTAKES["no_sync", name]} if name else None


def sum_problem(rank: int, answer: AccumulationAnswer, world_size: int) -> Problem | None:
    """Judge the gradients that a rank has after three micro-batches."""
    for name, expected in answer["serial"].items():
        got = answer["got"][name]
        if (expected is None) != (got is None) or (expected is not None and far(got, expected)):
            mistake = (
                MISTAKES["lost accumulation"]
                if expected is None
                else average_mistake(got, expected, None, world_size)
            )
            mistake = MISTAKES["lost accumulation"] if mistake == MISTAKES["other"] else mistake
            mistake = MISTAKES["silent after no_sync"] if not answer["sent"][-1] else mistake
            mistake = MISTAKES["noted before"] if answer["noted"] else mistake
            return {"rank": rank, "expected": expected, "got": got, "mistake": mistake}
    return None
