"""Calls of the learner's code by unit 00's checks, on the ranks and in this kernel.

No mistake in that code ends the check.
"""

from __future__ import annotations

import re
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from manyhands.checks import Report
from manyhands.checks.preflight.messages import CRITERIA, MISTAKES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from manyhands.checks.report import Problem
    from manyhands.cluster import Cluster, Fault

PATIENCE_S = 1.5  # with the learner's code on the ranks
ANSWER_S = 3  # for a function that runs in this kernel


def on_rank(function: str, *args: Any) -> dict[str, Any]:
    """Run an experiment on a rank.

    A stub is reported as such, any other exception by the cluster.
    """
    from manyhands.checks.preflight import ranks
    from manyhands.checks.rank_tools import end_groups

    end_groups()
    try:
        return {"value": getattr(ranks, function)(*args)}
    except ranks.UnwrittenError as why:
        return {"absent": str(why)}
    except NotImplementedError:
        return {"absent": "unwritten"}


class Check(Report):
    """A report about one of the learner's functions; `ask` runs an experiment on all ranks."""

    def __init__(self, name: str, cluster: Cluster, function_name: str) -> None:
        super().__init__(name, CRITERIA)
        self.cluster, self.function_name = cluster, function_name
        self.is_absent = False

    def ask(self, experiment: str, *args: Any) -> tuple[Any, Problem | None]:
        """Return (the values by rank, None), or (None, the details of the failure)."""
        from manyhands.cluster import Fault

        try:
            with self.cluster.holding(self.reports):
                answers = self.cluster.run(on_rank, experiment, *args, patience_s=PATIENCE_S)
        except Fault as fault:
            return None, {
                "rank": min(fault.culprits, default=None),
                "mistake": summarise_fault(fault),
            }
        except RuntimeError:
            return None, {"mistake": MISTAKES["stopped"]}
        absent = next((answer["absent"] for answer in answers if "absent" in answer), None)
        if absent:
            self.is_absent = True
            return None, {"mistake": MISTAKES[absent].format(name=self.function_name)}
        return [answer["value"] for answer in answers], None


def summarise_fault(fault: Fault) -> str:
    """Return what a fault's report says about what happened and why, without what was healed."""
    lines = [line.strip() for line in fault.text.splitlines() if line.strip()]
    raised = [
        line
        for line in lines
        if re.match(r"ranks? [\d, -]+ +raised", line) and "connection" not in line
    ]
    known = [line for line in lines if line.startswith(("Who waits", "Likely cause"))]
    return "\n".join([lines[0], *raised[:1], *known])


def call(
    function: Callable[..., Any], *args: Any, seconds: float = ANSWER_S
) -> tuple[Any, Exception | None]:
    """Return (what the function returned, None) or (None, its exception).

    A function that does not return within `seconds` counts as one that raised.
    """
    try:
        with limit_time(seconds):
            return function(*args), None
    except Exception as error:  # noqa: BLE001 - a learner's function may raise anything
        return None, error


def describe_error(name: str, error: Exception, seconds: float = ANSWER_S) -> Problem:
    """Return the details to show for a function that raised."""
    if isinstance(error, NotImplementedError):
        return {"mistake": MISTAKES["unwritten"].format(name=name)}
    if isinstance(error, TooLongError):
        return {"mistake": MISTAKES["endless"].format(name=name, seconds=seconds)}
    return {
        "mistake": MISTAKES["raised"].format(
            name=name, error=f"{type(error).__name__}: {error}".strip(": ")
        )
    }


class TooLongError(Exception):
    """The learner's function did not end in time."""


@contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """Raise TooLongError in the block after this many seconds.

    This works only in the main thread, which is where a kernel runs its cells.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
