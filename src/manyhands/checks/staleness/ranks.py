"""Run the part of unit 09's checks that needs rank 0, the server.

The learner's barrier gets the same calls as ours, in runs that are played.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch.distributed as dist

from manyhands.checks.by_hand import closed
from manyhands.checks.on_ranks import UnwrittenError, learners
from manyhands.checks.staleness.cases import teams
from manyhands.simulate.asynchrony import Barrier, play

if TYPE_CHECKING:
    from collections.abc import Callable

    from manyhands.checks.staleness.answers import BarrierRun, WrongAnswer
    from manyhands.checks.staleness.cases import Team

OURS = (Barrier.__init__, Barrier.done, Barrier.leave)


class Asked:
    """A pair of barriers, of which ours decides.

    The learner's gets the same calls, and its answers are kept for all calls, or until a worker
    leaves if `leaving` is False.

    While the learner's barrier is called, ours is closed, because it may be the same.
    """

    def __init__(
        self, theirs: Callable[..., Any], workers: int, bound: float, leaving: bool
    ) -> None:
        self.asks, self.leaving = True, leaving
        self.ours, self.bound, self.workers = Barrier(workers, bound), bound, workers
        with closed(*OURS):
            self.theirs = theirs(workers, bound)
        self.clocks: dict[int, int] = dict.fromkeys(range(workers), 0)
        self.waiting: set[int] = set()
        self.answers: list[list[int] | None] = []
        self.first: WrongAnswer | None = None

    def done(self, worker: int) -> list[int]:
        """Report a worker's finished step to both barriers, and return our answer."""
        self.clocks[worker] += 1
        self.waiting.add(worker)
        return self._ask("done", worker)

    def leave(self, worker: int) -> list[int]:
        """Report to both barriers that a worker leaves, and return our answer."""
        self.clocks.pop(worker)
        self.waiting.discard(worker)
        self.asks = self.asks and self.leaving
        return self._ask("leave", worker)

    def _ask(self, call: str, worker: int) -> list[int]:
        expected: list[int] = getattr(self.ours, call)(worker)
        if not self.asks:
            return expected
        with closed(*OURS):
            got = to_workers(getattr(self.theirs, call)(worker))
        self.answers.append(got)
        if got != expected and self.first is None:
            self.first = {
                "call": f"{call}({worker})",
                "bound": self.bound,
                "clocks": dict(self.clocks),
                "waiting": sorted(self.waiting),
                "left": self.workers - len(self.clocks),
                "expected": expected,
                "got": got,
            }
        self.waiting.difference_update(expected)
        return expected


def to_workers(answer: Any) -> list[int] | None:
    """Return a list of workers as plain numbers, or None if it is not a list.

    A set is none, since it has no order.
    """
    if isinstance(answer, (set, frozenset, dict)):
        return None
    try:
        return [int(worker) for worker in answer]
    except (TypeError, ValueError):
        return None


def barrier(name: str, seed: int) -> dict[str, list[BarrierRun]] | None:
    """Return for each criterion the answers in all of its runs, and the first wrong one.

    Return None on the other ranks.
    """
    theirs = learners(name)
    if dist.get_rank():
        return None
    try:
        return {
            criterion: [
                _asked(theirs, team, criterion == "leave") for team in teams(seed, criterion)
            ]
            for criterion in ("lockstep", "bound", "leave")
        }
    except NotImplementedError:
        raise UnwrittenError(name) from None


def _asked(theirs: Callable[..., Any], team: Team, leaving: bool) -> BarrierRun:
    asked = Asked(theirs, len(team.seconds), team.bound, leaving)
    play(team.seconds, asked, team.deaths)
    return {"answers": asked.answers, "first": asked.first}
