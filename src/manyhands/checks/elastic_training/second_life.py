"""A training run on a few ranks that is stopped and started again.

It shows what the learner's `life` does, and what it should do.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manyhands.checks import by_rank
from manyhands.checks.elastic_training.messages import MISTAKES
from manyhands.checks.in_kernel import call

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch
    from numpy.typing import NDArray

    from manyhands.checks.elastic_training.answers import Lived
    from manyhands.checks.report import Problem
    from manyhands.elastic.mortal import Outcome

    Lives = Sequence[Sequence[Lived]]  # for each life, what the ranks returned (see `lived`)
    Batch = Callable[[int], tuple[torch.Tensor, torch.Tensor]]  # of a step

EVERY, ROWS, RATE, MOMENTUM = 5, 24, 0.2, 0.9  # as in the faulty training run
ATOL = 1e-9


def batch_of(seed: int) -> Batch:
    """Return a function of a step that returns (x, y), the whole batch of this step."""
    import torch

    def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
        draw = np.random.default_rng([seed % 2**32, step])
        return torch.from_numpy(draw.normal(size=(ROWS, 64))), torch.from_numpy(
            draw.integers(0, 10, ROWS)
        )

    return batch


def live(life: Callable[..., Any], folder: str, until: int, seed: int) -> Lived:
    """Run one life on a rank.

    Return (error, the steps whose batch was asked for, whether this rank has written into the
    folder, the weights at the end). An exception of the learner's function ends the rank, because
    the others would otherwise wait for it.
    """
    batch, written = batch_of(seed), _watched(folder)
    steps: list[int] = []

    def counted(step: int) -> tuple[torch.Tensor, torch.Tensor]:
        steps.append(int(step))
        return batch(int(step))

    net, error = call(life, folder, until, counted)
    if error:
        raise RuntimeError(error)
    try:
        weights = np.concatenate(
            [weight.detach().numpy().ravel() for weight in net.parameters()]
        ).tolist()
    except Exception:  # noqa: BLE001 - a learner's answer may be anything
        return MISTAKES["no network"], steps, bool(written), []
    return "", steps, bool(written), weights


def _watched(folder: str) -> list[str]:
    """Return a list that gets each path in the folder that is opened for writing from now on.

    Only this process is watched. It is a fork of the notebook's kernel, and ends after the check,
    so nothing is put back.
    """
    import torch

    save = torch.save
    written: list[str] = []

    def note(path: Any) -> None:
        if (
            isinstance(path, (str, os.PathLike))
            and Path(folder).resolve() in Path(path).resolve().parents
        ):
            written.append(str(path))

    # its writer opens the file in C++, which Python's audit events do not show
    def saved(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
        note(f)
        return save(obj, f, *args, **kwargs)

    def opened(event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and args[2] & (os.O_WRONLY | os.O_RDWR):
            note(args[0])

    torch.save = saved
    sys.addaudithook(opened)
    return written


def broken(outcomes: Sequence[Outcome], number: int) -> str:
    """Return in words why the ranks of this life have not returned, or "" if they all have."""
    from manyhands.elastic import mortal

    why = mortal.with_rank(mortal.failure(outcomes), outcomes)
    return why if not why or "is not written yet" in why else f"Life {number} failed. {why}"


def saved_before(until: int) -> int:
    """Return the number of steps in the newest checkpoint of an ended life.

    The life has ended before step `until`.
    """
    return until // EVERY * EVERY


def calm(
    stops: Sequence[int], seed: int, momentum: bool = True, shift: int = 0, late: int = 0
) -> NDArray[Any]:
    """Return the weights of a single process that has one life for each stop.

    Mistakes: a life begins without momenta, or `shift` steps off; a checkpoint is written `late`
    steps after the number that it contains.
    """
    import torch
    from torch.nn.functional import cross_entropy

    torch.manual_seed(0)
    net, batch = torch.nn.Linear(64, 10).double(), batch_of(seed)
    saved: tuple[list[torch.Tensor], list[torch.Tensor], int] | None = None
    first = [weight.detach().clone() for weight in net.parameters()]
    weight: torch.Tensor
    for until in stops:
        weights, moving, start = saved or (first, [torch.zeros_like(weight) for weight in first], 0)
        weights, moving = ([tensor.clone() for tensor in tensors] for tensors in (weights, moving))
        if saved and not momentum:
            moving = [torch.zeros_like(weight) for weight in first]
        for step in range(start + shift * bool(saved), until):
            for weight, value in zip(net.parameters(), weights, strict=True):
                weight.data.copy_(value)
            x, y = batch(step)
            slopes = torch.autograd.grad(cross_entropy(net(x), y), list(net.parameters()))
            for weight, moved, slope in zip(weights, moving, slopes, strict=True):
                moved.mul_(MOMENTUM).add_(slope)
                weight.sub_(RATE * moved)
            if (step + 1 - late) % EVERY == 0:
                saved = (
                    [weight.clone() for weight in weights],
                    [moved.clone() for moved in moving],
                    step + 1 - late,
                )
    return np.concatenate([weight.numpy().ravel() for weight in weights])


def others_wrote(lives: Lives) -> list[list[int]]:
    """Return the ranks other than 0 that have written into the folder, in each life."""
    return [
        [rank for rank, (_, _, written, _) in enumerate(ranks) if rank and written]
        for ranks in lives
    ]


def steps_problem(lives: Lives, stops: Sequence[int], seed: int) -> Problem | None:
    """Judge the steps. `lives`: for each life, what the ranks returned (see `lived`)."""
    for number, (ranks, until) in enumerate(zip(lives, stops, strict=True), 1):
        start = saved_before(stops[number - 2]) if number > 1 else 0
        for rank, (_, steps, _, weights) in enumerate(ranks):
            if steps != list(range(start, until)):
                kind = _kind_of_steps(
                    steps, start, until, right=_apart(weights, calm([until], seed)) <= ATOL
                )
                begins = steps[0] if steps else 0
                return _say(
                    kind,
                    f"steps {start} to {until - 1}",
                    _in_words(steps),
                    life=number,
                    rank=rank,
                    start=start,
                    begins=begins,
                )
    for number, writers in enumerate(others_wrote(lives), 1):
        if writers:
            return {"mistake": MISTAKES["life others write"].format(life=number, rank=writers[0])}
    return None


def _kind_of_steps(steps: list[int], start: int, until: int, right: bool) -> str:
    """Return the mistake.

    `right`: the weights at the end are right, so no step was skipped and none was taken twice.
    """
    if not steps or steps != list(range(steps[0], steps[-1] + 1)) or steps[-1] != until - 1:
        return "life other steps"
    if steps[0] == 0:
        return "life from nothing"
    if right or abs(steps[0] - start) > 1:
        return "life elsewhere"
    return "life twice" if steps[0] < start else "life skipped"


def _in_words(steps: list[int]) -> str:
    return (
        f"steps {steps[0]} to {steps[-1]}"
        if steps and steps == list(range(steps[0], steps[-1] + 1))
        else f"steps {steps}"
    )


def from_rank_0(lives: Lives) -> list[list[float]]:
    """Return how far each rank's weights are from rank 0's at the end of each life.

    This is -1 if they cannot be compared.
    """
    return [
        [
            _apart(weights, ranks[0][-1]) if len(weights) == len(ranks[0][-1]) != 0 else -1.0
            for *_, weights in ranks
        ]
        for ranks in lives
    ]


def ranks_problem(lives: Lives) -> Problem | None:
    """Judge whether all ranks have the same weights at the end of each life."""
    for number, ranks in enumerate(lives, 1):
        for rank, (*_, weights) in enumerate(ranks):
            if (apart := _apart(weights, ranks[0][-1])) > ATOL:
                problem = _say(
                    "life apart",
                    "largest difference from rank 0: 0",
                    f"{apart:.3g}",
                    life=number,
                    rank=rank,
                )
                return {
                    **problem,
                    "picture": by_rank.numbers(
                        "largest difference from rank 0", 0, from_rank_0(lives)[number - 1]
                    ),
                }
    return None


def weights_problem(lives: Lives, stops: Sequence[int], seed: int) -> Problem | None:
    """Judge rank 0's weights after each life."""
    for number, ranks in enumerate(lives, 1):
        until, got = stops[:number], ranks[0][-1]
        right = calm(until[-1:], seed)
        if _apart(got, right) <= ATOL:
            continue
        looks = {
            "life no momentum": calm(until, seed, momentum=False),
            "life off by one": calm(until, seed, shift=-1),
            "life skips one": calm(until, seed, shift=1),
            "life written late": calm(until, seed, late=1),
        }
        other = (
            "life other step"
            if number == 1
            else (
                "life other state"
                if ranks_problem(lives[:number]) is None
                else "life other weights"
            )
        )
        name = next(
            (
                name
                for name, weights in looks.items()
                if number > 1 and _apart(got, weights) <= ATOL
            ),
            other,
        )
        return _say(name, right[:3].tolist(), list(got[:3]), life=number, before=number - 1)
    return None


def _apart(got: Sequence[float], right: Any) -> float:
    return (
        float(np.abs(np.subtract(got, right)).max())
        if len(got) == len(right) and len(got)
        else float("inf")
    )


def _say(name: str, expected: Any, got: Any, **words: Any) -> Problem:
    return {"expected": expected, "got": got, "mistake": MISTAKES[name].format(**words)}
