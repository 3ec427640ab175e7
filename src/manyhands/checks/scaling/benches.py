"""What exercise 7 asks, which is benches with a virtual clock.

The right answer is the images per second of a long run on them, and the wrong ones are what likely
ways to measure give.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from manyhands.checks.scaling.cases import Case, generator
from manyhands.checks.scaling.messages import MISTAKES

if TYPE_CHECKING:
    from manyhands.simulate.virtual_device import Bench


class BenchCase(Case):
    """A `Case` with a new bench for each function that measures it. `bench` is the latest one."""

    def arguments(self) -> list[Any]:
        """Return the arguments, with a new bench."""
        from manyhands.simulate.virtual_device import Bench

        spec, *others = self._arguments
        self.bench = Bench(*spec)
        return [self.bench, *others]

    def steps_message(self) -> str:
        """Return a message if the latest bench has taken a wrong number of steps, or ""."""
        (_, steps, warmup, _), made = self._arguments, self.bench.made
        return (
            ""
            if made == warmup + steps
            else MISTAKES["bench other steps"].format(made=made, warmup=warmup, steps=steps)
        )


def _together(
    bench: Bench,
    steps: int,
    warmup: int,
    batch: int,
    before: bool = True,
    after: bool = True,
    world: bool = True,
) -> float:
    for _ in range(warmup):
        bench.step()
    if before:
        bench.synchronize()
    start_s = bench.now_s()
    for _ in range(steps):
        bench.step()
    if after:
        bench.synchronize()
    return (bench.world if world else 1) * batch * steps / (bench.now_s() - start_s)


def _each(
    bench: Bench,
    steps: int,
    warmup: int,
    batch: int,
    mean: Callable[[list[float]], Any] = np.median,
    before: bool = True,
    after: bool = True,
) -> float:
    for _ in range(warmup):
        bench.step()
    if before:
        bench.synchronize()
    times = []
    for _ in range(steps):
        start_s = bench.now_s()
        bench.step()
        if after:
            bench.synchronize()
        times.append(bench.now_s() - start_s)
    return bench.world * batch / mean(times)


WRONG: dict[str, Callable[..., float]] = {  # {mistake: how it measures}
    "bench each step": partial(_each, mean=np.mean),
    "bench each step, under way": partial(_each, mean=np.mean, before=False),
    "bench median": _each,
    "bench median, under way": partial(_each, before=False),
    "bench under way": partial(_together, before=False),
    "bench launched": partial(_together, after=False),
    "bench launched only": partial(_together, before=False, after=False),
    "bench launched median": partial(_each, after=False),
    "bench one rank": partial(_together, world=False),
    "bench warm-up": lambda bench, steps, warmup, batch: _together(bench, steps + warmup, 0, batch),
}


def asked(seed: int, name: str, uneven: bool) -> list[BenchCase]:
    """Return two cases in which all steps are alike, or one in every few of them is slow."""
    draw, cases = generator(seed, name), []
    for _ in range(2):
        slow_steps, world = int(draw.integers(3, 7)), int(2 ** draw.integers(1, 7))
        usual_s, often = draw.uniform(0.008, 0.03), int(draw.integers(5, 9))
        step_s = [usual_s * draw.uniform(5, 9) for _ in range(slow_steps)] + [usual_s] * often
        if uneven:
            step_s[-1] *= draw.uniform(2, 4)
        warmup, steps, batch = (
            slow_steps + int(draw.integers(0, 3)),
            often * int(draw.integers(2, 6)),
            int(draw.integers(16, 129)),
        )
        arguments = [(world, step_s, slow_steps), steps, warmup, batch]
        case = BenchCase(
            f"{world} ranks, {warmup} steps of warm-up, then {steps} steps",
            arguments,
            0.0,
            {},
            "bench other",
        )
        case.right = float(_together(*case.arguments()))
        case.wrong = {
            mistake: float(measured(*case.arguments())) for mistake, measured in WRONG.items()
        }
        cases.append(case)
    return cases
