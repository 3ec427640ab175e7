"""How long a step of a script would take on many ranks of a different machine.

It is predicted from the steps here, by `manyhands.simulate`.

From a run of the clinic come what one rank computes in a step, how much its steps vary, and the
messages of a step: how many, how large, and whether they lie in the backward or after it. The rows
that a rank gets, with one rank and with several, say whether the global batch or the batch of a
rank stays the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import mean, median
from typing import TYPE_CHECKING

from manyhands.clinic import costs
from manyhands.clinic.clinic_limits import SIMULATED_STEPS
from manyhands.clinic.global_batch import FIXED, PER_RANK, multiply_rows
from manyhands.clinic.predict_messages import explain_untimed
from manyhands.clinic.tolerances import OVERLAPPING

if TYPE_CHECKING:
    from manyhands.clinic.records import SentCall, StepRecord
    from manyhands.clinic.visit import Visit
    from manyhands.simulate.training_step import Layer, Machine
    from manyhands.simulate.training_step import Step as SimulatedStep

# how the ledger's names of these calls begin, without their `_`
SUMS = ("allreduce", "reducescatter", "allgather")
ALL_REDUCES = {"ring": "ring", "tree": "double tree", "two-level": "hierarchical", "auto": "auto"}


@dataclass
class Measured:
    """A step of the script here: seconds of one rank's computing, and its messages."""

    forward_s: float  # and all else that is not backward: input, the optimiser
    backward_s: float
    sizes: list[float] = field(default_factory=list)  # bytes of each message of a step
    overlaps: bool = True
    factors: list[float] = field(default_factory=list)  # measured steps of one rank, in means
    update_s: float = 0.0  # the optimiser's part of forward_s, which fewer rows do not shorten
    # ranks of the run that says what one rank computes: more, where the script needs them
    alone: int = 1
    rows: int = 0  # of a step of each rank of that run; 0: not seen
    rows_each: int = 0  # of a step of each rank, with `ranks`
    ranks: int = 2

    @property
    def step_s(self) -> float:
        """Seconds of the whole step on one rank."""
        return self.forward_s + self.backward_s

    def batch(self) -> str | None:
        """Return what stays the same with more ranks, by the two numbers of rows.

        PER_RANK, FIXED or, where they fit neither, None.
        """
        if self.rows and self.rows == self.rows_each:
            return PER_RANK
        return FIXED if self.rows and self.rows_each == -(-self.rows // self.ranks) else None

    @property
    def rows_in_all(self) -> int:
        """The global batch of the run that says what one rank computes."""
        return self.rows * self.alone

    def with_rows(self, part: float) -> Measured:
        """Return this step with a part of its rows.

        Computing gets shorter with them, the optimiser does not.
        """
        return replace(
            self,
            forward_s=self.update_s + (self.forward_s - self.update_s) * part,
            backward_s=self.backward_s * part,
        )


@dataclass
class Forecast:
    """What is predicted for one number of ranks.

    The `Step`, the efficiency against one rank, and {what: seconds that it costs}.
    """

    ranks: int
    seconds: float
    step: SimulatedStep
    efficiency: float
    costs: dict[str, float]


class NothingMeasuredError(ValueError):
    """No steps, no messages or no trustworthy times came out of a run.

    `ranks`: of that run; `failed`: whether the script failed in it.
    """

    def __init__(self, text: str, ranks: int, failed: bool = False) -> None:
        super().__init__(text)
        self.ranks, self.failed = ranks, failed


def measured(alone: Visit, together: Visit) -> Measured:
    """Return what was `Measured`, from a visit of one rank and one of several.

    Raises `NothingMeasuredError` where one did not get so far.
    """
    alone_costs, together_costs = timed_steps(alone), timed_steps(together)
    facts = together.cost[0]
    sent = [
        n_bytes for call in facts["calls"] if (n_bytes := _all_reduce_bytes(call, together.ranks))
    ]
    steps = max(1, len(facts["bounds"]) - 1)
    per_step = round(len(sent) / steps)
    if not per_step:
        raise NothingMeasuredError(
            f"{together.script} sums nothing over its ranks in a step as far as the ledger sees, so"
            " there is nothing to predict. (Horovod's messages are not seen.)",
            together.ranks,
        )
    step_s, backward_s = alone_costs.step_ms[0] / 1e3, alone_costs.kinds_ms[0]["backward"] / 1e3
    bounds = alone.cost[0]["bounds"]
    each_s = [stop - start for start, stop in pairwise(bounds[1:])] or [step_s]
    overlaps = together_costs.overlap is not None and together_costs.overlap >= OVERLAPPING
    return Measured(
        step_s - backward_s,
        backward_s,
        sent[-per_step:],
        overlaps,
        [one_s / mean(each_s) for one_s in each_s],
        costs.update_s(alone.cost[0]),
        alone.ranks,
        _count_rows(alone),
        _count_rows(together),
        together.ranks,
    )


def timed_steps(visit: Visit) -> costs.Costs:
    """Return the `Costs` of a visit.

    Raises `NothingMeasuredError`, with the reason, where no step was timed on all ranks.
    """
    visit_costs = costs.add_up(visit.cost) if len(visit.cost) == visit.ranks else None
    if visit_costs is None:
        ranks = "one rank" if visit.ranks == 1 else f"{visit.ranks} ranks"
        why, failed = explain_untimed(visit)
        raise NothingMeasuredError(
            f"With {ranks}, no step of {visit.script} could be timed. {why}", visit.ranks, failed
        )
    return visit_costs


def _count_rows(visit: Visit) -> int:
    """Return the rows that go through a rank's first model in a step.

    It is the rank with the most; 0 where none were seen.
    """

    def of(step: StepRecord) -> int:
        return sum(len(call["rows"]) for call in step["calls"] if call["model"] == 0)

    each = [
        [rows for step in record["steps"] if (rows := of(step))] for record in visit.seen.values()
    ]
    return max((round(median(rows)) for rows in each if rows), default=0)


def _all_reduce_bytes(call: SentCall, ranks: int) -> float:
    """Return the bytes of the all-reduce that sends as much as this call of the ledger.

    It is over so many ranks; 0 for a call that is none of `SUMS`.
    """
    name = call["call"].replace("_", "")
    if not name.startswith(SUMS):
        return 0
    # it hands in a part; a gather is half of an all-reduce of the whole
    if name.startswith("allgather"):
        return call["bytes"] * ranks / 2
    return call["bytes"] / 2 if name.startswith("reducescatter") else call["bytes"]


def forecast(
    measured_step: Measured,
    machine: Machine,
    ranks: int,
    times_as_fast: float = 1.0,
    all_reduce: str = "auto",
    batch: int | str = PER_RANK,
) -> Forecast:
    """What so many ranks of this machine give: a `Forecast`.

    One rank there is `times_as_fast` as one here.

    `batch`: PER_RANK; FIXED: the rows of a step here, of all ranks of the run with the fewest,
    divided among the ranks; or a number of rows, which are divided in the same way.
    """
    in_all = multiply_rows(measured_step, batch, ranks)
    whole, measured_step = measured_step.with_rows(in_all), measured_step.with_rows(in_all / ranks)
    step = _mean_step(measured_step, machine, ranks, times_as_fast, all_reduce)
    seconds = step.seconds
    base_s = measured_step.step_s / times_as_fast
    without = {
        "latencies": machine._replace(
            inside=(0.0, machine.inside[1]), between=(0.0, machine.between[1])
        ),
        "bytes": machine._replace(
            inside=(machine.inside[0], 1e30), between=(machine.between[0], 1e30)
        ),
    }
    saved = {
        what: seconds - _mean_step(measured_step, other, ranks, times_as_fast, all_reduce).seconds
        for what, other in without.items()
    }
    alike = replace(measured_step, factors=[1.0])
    saved["late ranks"] = (
        seconds - _mean_step(alike, machine, ranks, times_as_fast, all_reduce).seconds
    )
    alone_s = base_s if batch == PER_RANK else whole.step_s / times_as_fast / ranks
    return Forecast(ranks, seconds, step, alone_s / seconds, {"computing": base_s, **saved})


def largest_costs(forecast: Forecast, count: int = 3) -> list[tuple[str, float]]:
    """[(what, seconds)] of the largest costs."""
    return sorted(forecast.costs.items(), key=lambda pair: -pair[1])[:count]


def _mean_step(
    measured_step: Measured, machine: Machine, ranks: int, times_as_fast: float, all_reduce: str
) -> SimulatedStep:
    from manyhands.simulate.stragglers import slowness
    from manyhands.simulate.training_step import Step, Way, step

    way = Way(ranks, bucket_bytes=0, all_reduce=all_reduce)
    drawn = [
        slowness(way, 0, measured_step.factors, seed)
        for seed in range(SIMULATED_STEPS if len(measured_step.factors) > 1 else 1)
    ]
    layers = _make_layers(measured_step, times_as_fast)
    steps = [step(machine, layers, way, slow) for slow in drawn]
    return Step(*(mean(numbers) for numbers in zip(*steps, strict=True)))


def _make_layers(measured_step: Measured, times_as_fast: float) -> list[Layer]:
    """Return one layer a message, the first that is sent last.

    Each has its part of the backward, or, where the messages do not overlap, the last has all
    computing, so that all messages are ready together.
    """
    from manyhands.simulate.training_step import Layer

    forward_s, backward_s = (
        measured_step.forward_s / times_as_fast,
        measured_step.backward_s / times_as_fast,
    )
    sizes, count = measured_step.sizes[::-1], len(measured_step.sizes)
    if measured_step.overlaps:
        return [Layer(size, forward_s / count, backward_s / count) for size in sizes]
    return [
        *(Layer(size, 0.0, 0.0) for size in sizes[:-1]),
        Layer(sizes[-1], forward_s, backward_s),
    ]


def table(forecasts: Iterable[Forecast]) -> str:
    """The forecasts in letters: a line for each number of ranks."""
    lines = [
        f"{'ranks':>8}{'ms a step':>12}{'efficiency':>12}{'computing':>11}{'waiting':>9}   the "
        "three largest costs"
    ]
    for prediction in forecasts:
        largest = ", ".join(
            f"{what} {seconds * 1e3:.3g} ms" for what, seconds in largest_costs(prediction)
        )
        lines.append(
            f"{prediction.ranks:>8,}{prediction.seconds * 1e3:>12.4g}{prediction.efficiency:>12.2f}{prediction.step.computing:>11.0%}{prediction.step.bubble + prediction.step.exposed:>9.0%}"
            f"   {largest}"
        )
    return "\n".join(lines)
