"""A training run that loses ranks and gains some at hidden attempts.

It counts what the learner's loop does about it.
"""

from __future__ import annotations

import copy
import random
from typing import TYPE_CHECKING, Any

from manyhands.checks.in_kernel import call

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from manyhands.checks.elastic_training.answers import CountedJob, LoopRecord

    Plan = Mapping[int, tuple[str, int]]  # {attempt: (what happens in it, ranks after it)}

STUBBORN, ATTEMPTS = 3, 400
BUG = "mat1 and mat2 shapes cannot be multiplied (an error that the check has put into the program)"


class BrokenGroup(RuntimeError):  # noqa: N818 - learners see this name
    """The loop goes on although no new group was formed."""


class Endless(BaseException):
    """The loop does not end. No `except Exception` of a learner catches this exception."""


def lossy_job(seed: int, plan: Plan) -> CountedJob:
    """A `Job` whose attempts to step may fail, with `commit`, `rollback` and `regroup`.

    `plan`: {attempt: ("lost" or "joined", number of ranks after it)}. At the attempt of a "bug" and
    at all later ones, a step raises an error that does not mean a lost rank. A lost rank leaves
    half-changed weights, a moved position and used random numbers behind. `record`: the number of
    whole steps before each commit, and in all; for each event that a whole step has followed,
    [kind, rollbacks, steps tried without a new group, ranks]; and how often the bug was raised.
    """
    import torch

    from manyhands.elastic.job import Job, RankLost, RanksJoined
    from manyhands.elastic.mortal import kill_me

    class LossyJob(Job):
        def __init__(self) -> None:
            super().__init__(seed)
            self.attempts, self.steps, self.useless = 0, 0, 0
            self.waiting: int | None = None
            self.kept: Any = None
            self.record: LoopRecord = {"commits": [], "steps": 0, "events": [], "bugs": 0}
            self.event: Any = None

        def train_step(self) -> float:
            if self.waiting:
                self.event[2] += 1
                self.useless += 1
                if self.useless >= STUBBORN:
                    raise BrokenGroup("the group is broken, because job.regroup() is not called")
                raise RankLost("the group is broken, so regroup")
            self.attempts += 1
            if self.attempts > ATTEMPTS:
                raise Endless(f"{ATTEMPTS} steps were tried, but the end was not reached")
            kind, world = plan.get(self.attempts, ("", 0))
            if kind == "bug" or self.record["bugs"]:
                self.record["bugs"] += 1
                if self.record["bugs"] > 2 * STUBBORN:
                    kill_me()  # even Endless is caught
                if self.record["bugs"] > STUBBORN:
                    raise Endless("the same error is raised again and again")
                raise RuntimeError(BUG)
            if kind == "joined":
                self.waiting, self.event = world, [kind, 0, 0]
                raise RanksJoined(f"there are now {world} ranks")
            if kind == "lost":
                self.waiting, self.event = world, [kind, 0, 0]
                with torch.no_grad():
                    for weight in self.model.parameters():
                        weight.add_(0.01 * torch.randn_like(weight))
                self.seen += 8
                self.noise.normal()
                random.random()
                raise RankLost(f"{world} ranks are left")
            loss = super().train_step()
            self.steps = self.record["steps"] = self.steps + 1
            if self.event:
                self.record["events"].append([*self.event, self.world])
                self.event = None
            return loss

        def commit(self) -> None:
            self.record["commits"].append(self.steps)
            self.kept = copy.deepcopy(
                (
                    self.model.state_dict(),
                    self.optimizer.state_dict(),
                    self.scheduler.state_dict(),
                    self.seen,
                    self.noise.bit_generator.state,
                    torch.get_rng_state(),
                    random.getstate(),
                )
            )

        def rollback(self) -> None:
            if self.kept is None:
                raise RuntimeError("there is no commit to roll back to")
            if self.event:
                self.event[1] += 1
            model, optimizer, scheduler, self.seen, noise, mine, own = copy.deepcopy(self.kept)
            self.model.load_state_dict(model)
            self.optimizer.load_state_dict(optimizer)
            self.scheduler.load_state_dict(scheduler)
            self.noise.bit_generator.state = noise
            torch.set_rng_state(mine)
            random.setstate(own)

        def regroup(self) -> int:
            if self.waiting:
                self.world, self.waiting, self.useless = self.waiting, None, 0
            return self.world

    return LossyJob()


def try_out(
    train: Callable[..., Any], seed: int, plan: Plan, until: int, every: int
) -> tuple[str | None, LoopRecord, list[float]]:
    """Run the learner's loop; to be called in a separate process.

    Return (error, what the loop did, [images seen, ranks, sums of the weights]).
    """
    job = lossy_job(seed, plan)
    try:
        _, error = call(train, job, until, every)
    except Endless as end:
        error = str(end)
    return (
        error,
        job.record,
        [job.seen, job.world, *(weight.sum().item() for weight in job.model.parameters())],
    )


def right_loop(job: CountedJob, until: int, every: int) -> None:
    """The loop that the exercise asks for, as the reference."""
    from manyhands.elastic.job import RankLost, RanksJoined

    job.commit()
    since = 0
    while job.seen < until:
        try:
            job.train_step()
            since += 1
        except RankLost:
            job.rollback()
            job.regroup()
            since = 0
        except RanksJoined:
            job.regroup()
        if since == every:
            job.commit()
            since = 0
