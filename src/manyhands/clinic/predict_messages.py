"""The messages of `manyhands predict`: what was measured, and why nothing could be predicted."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from manyhands.clinic.clinic_limits import RECORDED_STEPS
from manyhands.clinic.tolerances import WAITED_MUCH, WAITED_SOME

if TYPE_CHECKING:
    from manyhands.clinic.costs import Costs
    from manyhands.clinic.scale import Measured
    from manyhands.clinic.visit import Visit

NEEDS_RANKS = (
    "{why} Therefore the computing of one rank was measured on {ranks} ranks, and includes their "
    "waiting for each other. "
)
SUMS = {
    "ring": "sums by rings",
    "tree": "sums by a double tree",
    "two-level": "sums in two levels",
    "auto": "each sum by the fastest of rings, trees and switches that add",
}


def explain_untimed(visit: Visit) -> tuple[str, bool]:
    """Return (why a visit has no times, as far as it is known; whether the script failed)."""
    if visit.errors:
        rank = min(visit.errors)
        return (
            (
                f"Rank {rank} failed: "
                f"{visit.errors[rank]['traceback'].strip().splitlines()[-1].strip()}"
            ),
            True,
        )
    if visit.launcher_message:
        return (
            (
                f"{visit.launcher} ended before a rank began: "
                f"{visit.launcher_message.strip().splitlines()[-1].strip()}"
            ),
            True,
        )
    if visit.timed_out:
        return f"The time limit was reached first (--timeout sets it).{_printed_last(visit)}", False
    if visit.fault:
        return visit.fault.text.strip().splitlines()[0], True
    dead = [f"rank {rank} with {code}" for rank, code in visit.codes.items() if code]
    if dead:
        return f"These ranks ended with an exit code other than 0: {', '.join(dead)}.", True
    done = min((cost["steps"] for cost in visit.cost.values()), default=0)
    return (
        (
            f"It ended after {done} steps of an optimiser; {RECORDED_STEPS + 1} are "
            f"needed.{_printed_last(visit)}"
        ),
        False,
    )


def _printed_last(visit: Visit) -> str:
    lines = visit.output.get(0, "").strip().splitlines()
    return f" The last line that rank 0 printed: {lines[-1].strip()}" if lines else ""


def judge_core_time(costs: Costs) -> tuple[bool, str]:
    """Judge by how long it waited for a core whether the `Costs` of one rank can be used.

    Returns (whether they can, what is said of it).
    """
    if not costs.waited:
        return (
            True,
            (
                "It is not known whether the rank had a core all the time, because this system does"
                " not count it."
            ),
        )
    waited, step_ms = costs.waited[0], costs.step_ms[0]
    if waited <= WAITED_SOME:
        return True, ""
    sentence = (
        f"The rank was ready to run but had to wait for a core for {waited:.0%} of the measured "
        f"time: {waited * step_ms:.4g} ms of {step_ms:.4g} ms a step. "
    )
    if waited <= WAITED_MUCH:
        return (
            True,
            (
                f"Warning: {sentence}The prediction is more accurate when no other program needs this "
                "machine's cores."
            ),
        )
    return (
        False,
        (
            f"{sentence}Nothing is predicted from that. Run the command again when other programs leave"
            " a core free."
        ),
    )


def describe_step(step: Measured) -> str:
    """Describe in a line what was measured."""
    total, count = sum(step.sizes), len(step.sizes)
    apart = max(step.factors) / median(step.factors) - 1
    return (
        f"One rank here: {1e3 * step.step_s:.4g} ms a step, {1e3 * step.backward_s:.4g} ms of it "
        f"in the backward pass; its slowest step takes {apart:.0%} longer than the middle one. "
        f"Sums in a step: {count}, {total / 1e6:.4g} MB, {'during' if step.overlaps else 'after'} "
        "the backward pass."
    )
