"""A training run that is killed and goes on in another process.

It shows what the learner's `state_of` keeps, and what `restore` restores.
"""

from __future__ import annotations

import io
import random
import re
from typing import TYPE_CHECKING, Any, TypeVar

from manyhands.checks.in_kernel import call
from manyhands.checks.report import Stopped

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from manyhands.checks.elastic_training.answers import Fingerprint
    from manyhands.elastic.job import Job

V = TypeVar("V")

PARTS = ("weights", "momentum", "rate", "seen", "torch", "noise", "python")
REFUSED = "torch.load(..., weights_only=True) refuses it"


def train_undisturbed(
    seed: int, steps: int, at: int
) -> tuple[Fingerprint, list[float], Fingerprint]:
    """Train without being killed.

    Return (fingerprint after `at` steps, losses of the later steps, fingerprint at the end).
    """
    job = _trained(seed, at)
    then = fingerprint(job)
    return then, [job.train_step() for _ in range(steps - at)], fingerprint(job)


def train_and_die(
    state_of: Callable[..., Any], seed: int, at: int, more: int, file: Path
) -> str | None:
    """Train `at` steps, take the state and write it, train `more` steps, write it again, and die.

    The later steps must not change the state, which is written to a second file then.
    """
    import torch

    from manyhands.elastic.mortal import kill_me

    job = _trained(seed, at)
    state, error = call(state_of, job)
    if error:
        return error
    for path, steps in ((file, more), (later(file), 0)):
        content = io.BytesIO()
        torch.save(state, content)
        path.write_bytes(content.getvalue())
        for _ in range(steps):
            job.train_step()
    kill_me()
    return None


def later(file: Path) -> Path:
    """Return the path where the state is written again."""
    return file.with_suffix(".later")


def revive(
    restore: Callable[..., Any], seed: int, steps: int, file: Path
) -> tuple[str, Fingerprint | None, list[float], Fingerprint | None, Fingerprint | None]:
    """Restore the state in a new process, which began with a different seed, and go on.

    Return (error, fingerprint after `restore`, losses after it, fingerprint at the end, fingerprint
    after a second `restore` from the same state).
    """
    import torch

    from manyhands.elastic.job import Job

    job = Job(seed + 1)
    try:
        state = torch.load(file, weights_only=True)
    except Exception as error:  # noqa: BLE001 - of pickle, of zip files, of torch
        what = re.search(r"GLOBAL (\S+)", str(error))
        return (
            REFUSED
            + (
                f", because it contains {what[1]}"
                if what
                else f": {str(error).strip().splitlines()[0]}"
            ),
            None,
            [],
            None,
            None,
        )
    _, failed = call(restore, job, state)
    if failed:
        return failed, None, [], None, None
    then, losses, end = fingerprint(job), [job.train_step() for _ in range(steps)], fingerprint(job)
    second = Job(seed + 1)  # the same beginning, so that what `restore` leaves alone is equal
    _, failed = call(restore, second, state)
    return failed or "", then, losses, end, fingerprint(second)


def fingerprint(job: Job) -> Fingerprint:
    """Return {part of the state: numbers that tell it from other states}.

    The job is not changed.
    """
    import torch

    moving = [
        job.optimizer.state.get(weight, {}).get("momentum_buffer")
        for weight in job.model.parameters()
    ]
    mine, own, noise = torch.get_rng_state(), random.getstate(), job.noise.bit_generator.state
    parts = {
        "weights": [weight.sum().item() for weight in job.model.parameters()],
        "momentum": [
            0.0 if momentum is None else momentum.abs().sum().item() for momentum in moving
        ],
        "rate": [job.optimizer.param_groups[0]["lr"], job.scheduler.last_epoch],
        "seen": [job.seen],
        "torch": torch.rand(3, dtype=torch.float64).tolist(),
        "noise": job.noise.normal(size=3).tolist(),
        "python": [random.random() for _ in range(3)],
    }
    torch.set_rng_state(mine)
    random.setstate(own)
    job.noise.bit_generator.state = noise
    return parts


def in_process(function: Callable[..., V], *args: Any) -> V:
    """Return what the function returns in a separate process.

    Raise `Stopped` if it does not return.
    """
    from manyhands.elastic import mortal

    outcome = mortal.in_process(function, *args)
    if outcome.error or outcome.killed_by:
        raise Stopped(outcome.error or f"The process was killed by {outcome.killed_by}.")
    return outcome.value


def _trained(seed: int, steps: int) -> Job:
    from manyhands.elastic.job import Job

    job = Job(seed)
    for _ in range(steps):
        job.train_step()
    return job
