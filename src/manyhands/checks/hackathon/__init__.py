"""Checks of unit 20, the hackathon.

Entries run on the judge's ranks and clock, in a process next to the kernel, whereas the rest runs
in the kernel.

The entry runs on links that the seed draws, and on data that no learner can know before, because
the judge draws them, as in the hackathon. Therefore, the rungs that these links give are compared
with the solution, and not a score.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import numpy as np

from manyhands.checks import Report, seed
from manyhands.checks.hackathon import cases, diagnosis, one_against_four, two_ranks
from manyhands.checks.hackathon import sparse as sparse_steps
from manyhands.checks.hackathon.cell_entry import (
    LIMITS,
    TARGET,
    judge,
    stopped,
    target,
    text_of,
    try_out,
)
from manyhands.checks.hackathon.messages import CRITERIA, HINTS, MISTAKES
from manyhands.checks.in_kernel import ask, number
from manyhands.checks.report import Stopped

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch


__all__ = ["HINTS", "entry", "mended", "pack", "price", "sparse", "try_out"]

check = partial(Report, criteria=CRITERIA)
RUNS = 3
# of the baseline's time
RUNGS = {"faster": 1 - 1e-6, "half": 1 / 2, "fifth": 1 / 5, "tenth": 1 / 10}
SETTING_UP = 60  # messages of a rank that may be sent once, as by DDP


def mended(function: Callable[..., Any]) -> None:
    """Check `function(model, batches, comm)` by its weights after all batches.

    They must equal what a single process computes.
    """
    with check("mended") as report:
        if _blocked(report):
            return
        draw, text = cases.generator(seed(), "mended"), text_of(function)
        # no number of steps fits both
        runs = [_trained(function, text, draw, *batches) for batches in ((5, 9), (9, 14))]
        problems = [diagnosis.batches_problem(run.gradients, run.steps) for run in runs]
        report.judge("together", problems, [run.gradients for run in runs])
        with report.part("equal"):
            if any(problems):
                raise Stopped(next(filter(None, problems))["mistake"])
            report.judge(
                "equal",
                [diagnosis.weights_problem(*run.weights) for run in runs],
                [run.weights.got[::331] for run in runs],
                atol=1e-4,
            )
        lean = [diagnosis.lean_problem(run) for run in runs]
        report.judge(
            "lean",
            lean,
            [
                [
                    max(*run.messages, run.most_messages),
                    max(*run.sent_bytes, run.most_bytes),
                    problem is None,
                ]
                for run, problem in zip(runs, lean, strict=True)
            ],
        )


class Weights(NamedTuple):
    """What the ranks ended with, what is right, what mistakes would give, and the beginning."""

    got: torch.Tensor
    right: torch.Tensor
    looks: Callable[[], dict[tuple[str, ...], torch.Tensor]]
    begun: torch.Tensor


class Trained(NamedTuple):
    """A training run, with what each rank has done and may do at most."""

    steps: int
    gradients: tuple[int, ...]
    weights: Weights
    messages: tuple[int, ...]
    most_messages: int
    sent_bytes: tuple[int, ...]
    most_bytes: int


class Packed(TypedDict):
    """Numbers before they were packed, what is left of them, and what arrives."""

    before: np.ndarray
    count: int
    left: np.ndarray
    dense: np.ndarray
    bytes: int


def _trained(
    function: Callable[..., Any], text: str, draw: np.random.Generator, least: int, most: int
) -> Trained:
    """Return the result of the learner's training run on four ranks, and what it may send.

    It has some number of batches from `least` to `most` - 1.
    """
    from dataclasses import replace

    import torch

    from manyhands.hackathon.challenges.challenge import SLOW_LINKS

    changed: dict[str, Any] = {
        "most_batches": int(draw.integers(least, most)),
        "batch_size": int(draw.integers(12, 33)),
        "target": 0.0,
    }
    steps, own, challenge = changed["most_batches"], draw.bytes(16), replace(SLOW_LINKS, **changed)
    run, trained = judge().weights(SLOW_LINKS, text, own, **changed, **LIMITS)
    if run.problem:
        raise stopped(run.problem, function)
    begun = one_against_four.start(challenge, own)
    weights = Weights(
        torch.frombuffer(bytearray(trained), dtype=torch.float32),
        one_against_four.one_process(challenge, own),
        partial(one_against_four.alike, challenge, own),
        begun,
    )
    messages, tensor_bytes = 6 * steps + SETTING_UP, begun.numel() * 4
    return Trained(
        steps,
        run.gradients,
        weights,
        run.messages,
        messages,
        run.sent_bytes,
        round(1.5 * tensor_bytes * (steps + 2)) + 64 * messages,
    )


def price(
    message_s: Callable[..., Any], entry_s: Callable[..., Any], gathered_s: Callable[..., Any]
) -> None:
    """Check the three functions that price messages and entries.

    They are `message_s(n_bytes, rate_mbit, delay_ms)`, `entry_s(steps, every, tensors, ranks,
    gradient_s, message_s)`, and `gathered_s(steps, n_bytes, ranks, gradient_s, message_s)`. The
    last two get a correct `message_s(n_bytes)`.
    """
    with check("price") as report:
        for name, function, asked in (
            ("message", message_s, cases.messages),
            ("entry", entry_s, cases.entries),
            ("gathered", gathered_s, cases.gathers),
        ):
            with report.part(name):
                questions = asked(seed())
                answers = [number(ask(function, *case.arguments)) for case in questions]
                report.judge(
                    name,
                    diagnosis.price_problems(questions, answers, f"{name} other"),
                    answers,
                    rtol=1e-6,
                )


def pack(pack_of: Callable[..., Any], unpack: Callable[..., Any]) -> None:
    """Check `pack_of(kept, count)` -> message, and `unpack(message, size)` -> dense.

    The former changes `kept`.
    """
    with check("pack") as report:
        packets = [_packed(pack_of, unpack, size) for size in (1000, 22_026)]
        report.judge(
            "largest",
            [
                diagnosis.dense_problem(packet["dense"], packet["before"], packet["count"])
                for packet in packets
            ],
            [_arrived(packet["dense"]) for packet in packets],
            rtol=1e-2,
        )
        problems = [
            diagnosis.kept_problem(packet["left"], packet["before"], packet["dense"])
            for packet in packets
        ]
        lost = [
            (
                0.0
                if problem is None
                else 1 + float(np.abs(packet["left"] + packet["dense"] - packet["before"]).max())
            )
            for packet, problem in zip(packets, problems, strict=True)
        ]
        report.judge(
            "kept",
            problems,
            [[(packet["left"] + packet["dense"])[::37] for packet in packets], lost],
            rtol=1e-2,
        )
        sizes = [(packet["bytes"], packet["count"]) for packet in packets]
        report.judge(
            "small",
            [
                diagnosis.say("large", got=got, count=count)
                for got, count in sizes
                if got > 4 * count + 8
            ],
            [max(got, 4 * count + 8) for got, count in sizes],
        )
        with report.part("places"):
            # a negative place is a different place here
            size = int(cases.generator(seed(), "size").integers(45_000, 60_000))
            packet = _packed(pack_of, unpack, size)
            report.judge(
                "places",
                [diagnosis.dense_problem(packet["dense"], packet["before"], packet["count"])],
                _arrived(packet["dense"]),
                rtol=1e-2,
            )


def sparse(function: Callable[..., Any]) -> None:
    """Check `function(weights, gradient, kept, count, rate)` on three ranks.

    They are forks of this kernel.
    """
    from manyhands.elastic import mortal

    with check("sparse") as report:
        draw = cases.generator(seed(), "sparse")
        asked, returned = (
            [
                sparse_steps.draw_case(draw, count)
                for count in (int(draw.integers(5, 12)), sparse_steps.SIZE)
            ],
            [],
        )
        for case in asked:
            outcomes = mortal.in_ranks(
                sparse_steps.train_on_rank, function, case, ranks=sparse_steps.RANKS
            )
            if why := mortal.failure(outcomes):
                raise Stopped(mortal.with_rank(why, outcomes))
            returned.append([outcome.value for outcome in outcomes])
        few, everything = returned
        report.judge(
            "weights",
            [sparse_steps.weights_problem(few, asked[0])],
            [[step[0] for step in rank] for rank in few],
            atol=1e-4,
        )
        problems = [
            sparse_steps.weights_problem(everything, asked[1]),
            *(sparse_steps.kept_problem(*pair) for pair in zip(returned, asked, strict=True)),
        ]
        report.judge(
            "all",
            problems,
            [
                [[step[0] for step in rank] for rank in everything],
                [[step[1] for step in rank] for rank in few],
            ],
            atol=1e-4,
        )


def _packed(pack_of: Callable[..., Any], unpack: Callable[..., Any], size: int) -> Packed:
    """Return what arrives of numbers that were packed in one process and unpacked in another.

    This is as on two ranks.
    """
    before, count = cases.kept(seed(), size)
    dtype, shape, content, left = _apart(two_ranks.pack_apart, pack_of, before, count)
    kind, dense = _apart(two_ranks.unpack_apart, unpack, dtype, shape, content, size)
    if dense.shape != (size,):
        raise Stopped(
            MISTAKES["not dense"].format(
                size=size, got=f"of shape {dense.shape}" if dense.size else f"a {kind}"
            )
        )
    return {
        "before": before,
        "count": count,
        "left": left,
        "dense": dense.astype(np.float32),
        "bytes": len(content),
    }


def _arrived(dense: np.ndarray, most: int = 200) -> list[Any]:
    """Return how many numbers are not 0, the places of the first of them, and these numbers."""
    places = np.flatnonzero(dense)
    return [len(places), places[:most], dense[places[:most]]]


def _apart(function: Callable[..., Any], *args: Any) -> list[Any]:
    from manyhands.elastic import mortal

    outcome = mortal.in_process(function, *args)
    if outcome.value is None:
        raise Stopped(outcome.error or f"The process was killed by {outcome.killed_by}.")
    error, *values = outcome.value
    if error:
        raise Stopped(error)
    return values


def entry(function: Callable[..., Any]) -> None:
    """Check `function(model, batches, comm)` in three runs on new data.

    The seed draws the links. The time is judged by rungs.
    """
    with check("entry") as report:
        if _blocked(report):
            return
        from manyhands.hackathon.challenges.challenge import SLOW_LINKS

        # the rungs hardly depend on it
        rate_mbit, delay_ms = cases.link(cases.generator(seed(), "links"), apart=0.005)
        text, runs = text_of(function), []
        for _ in range(RUNS):
            run, _ = judge().run(
                SLOW_LINKS, text, rate_mbit=rate_mbit, delay_ms=delay_ms, target=target(), **LIMITS
            )
            if run.problem:
                raise stopped(run.problem, function)
            runs.append(run)
        report.judge(
            "right",
            [],
            [rate_mbit, delay_ms, [min(run.accuracy, TARGET) for run in runs]],
            atol=1e-9,
        )
        baseline_s, score_s = (
            cases.baseline_s(rate_mbit, delay_ms),
            float(np.median([run.clock_s for run in runs])),
        )
        for name, part in RUNGS.items():
            rung_s = baseline_s * part
            report.judge(
                name,
                [diagnosis.rung_problem(score_s, rung_s, baseline_s)],
                [max(score_s, rung_s)],
                rtol=1e-9,
            )


def _blocked(report: Report) -> bool:
    """Return whether no judge can run here. If so, report all criteria of this check as blocked."""
    from manyhands.hackathon.judge.open_judge import why_not

    why = why_not()
    if why is None:
        return False
    for name, (points, text) in report.asked.items():
        report.blocked(name, points=points, text=text, why=why)
    return True
