"""What a script would take on many ranks of another machine: from its steps here, by `manyhands.simulate`.

From a run of the clinic come what one rank computes in a step, how much its steps vary, and the messages of a step:
how many, how large, and whether they lie in the backward or after it.
"""

from dataclasses import dataclass, field
from statistics import mean, median

from manyhands.clinic import costs

SUMS = ("allreduce", "reducescatter", "allgather")  # how the ledger's names of these calls begin, without their `_`
AFTER = 0.05  # less of the messages' time than this inside backward: they do not overlap
DRAWS = 5  # steps that are simulated, with other late ranks in each


@dataclass
class Measured:
    """A step of the script here: seconds of one rank's computing, and its messages."""

    forward_s: float  # and all else that is not backward: input, the optimiser
    backward_s: float
    sizes: list = field(default_factory=list)  # bytes of each message of a step
    overlaps: bool = True
    factors: list = field(default_factory=list)  # measured steps of one rank, in means


@dataclass
class Forecast:
    """Of one number of ranks: the `Step`, the efficiency against one rank, and {what: seconds that it costs}."""

    ranks: int
    seconds: float
    step: object
    efficiency: float
    costs: dict


class NothingMeasured(ValueError):
    """The script gave no steps, or no messages, to calculate with."""


def measured(alone, together):
    """`Measured`, from a visit of one rank and one of several; `NothingMeasured` where one did not get so far."""
    one, many = (costs.add_up(visit.cost) if len(visit.cost) == visit.ranks else None for visit in (alone, together))
    for visit, found in ((alone, one), (together, many)):
        if found is None:
            raise NothingMeasured(f"With {visit.ranks} rank(s) {visit.script} had no step that could be timed; "
                                  f"manyhands clinic {visit.script} --ranks {visit.ranks} says why.")
    facts = together.cost[0]
    sent = [n_bytes for call in facts["calls"] if (n_bytes := _as_sum(call, together.ranks))]
    steps = max(1, len(facts["bounds"]) - 1)
    per_step = round(len(sent) / steps)
    if not per_step:
        raise NothingMeasured(f"{together.script} sums nothing over its ranks in a step that the ledger sees: there "
                              "is nothing to predict. (Horovod's messages are not seen.)")
    step_s, backward_s = one.step_ms[0] / 1e3, one.kinds_ms[0]["backward"] / 1e3
    bounds = alone.cost[0]["bounds"]
    each_s = [stop - start for start, stop in zip(bounds[1:], bounds[2:])] or [step_s]
    overlaps = many.overlap is not None and many.overlap >= AFTER
    return Measured(step_s - backward_s, backward_s, sent[-per_step:], overlaps,
                    [one_s / mean(each_s) for one_s in each_s])


def _as_sum(call, ranks):
    """Bytes of the all-reduce over so many ranks that sends as much as this call of the ledger; 0: none of `SUMS`."""
    name = call["call"].replace("_", "")
    if not name.startswith(SUMS):
        return 0
    if name.startswith("allgather"):  # it hands in a part; a gather is half of an all-reduce of the whole
        return call["bytes"] * ranks / 2
    return call["bytes"] / 2 if name.startswith("reducescatter") else call["bytes"]


def forecast(found, machine, ranks, times_as_fast=1.0, all_reduce="hierarchical"):
    """What so many ranks of this machine give: a `Forecast`. One rank there is `times_as_fast` as one here."""
    step = _mean_step(found, machine, ranks, times_as_fast, all_reduce)
    seconds = step.seconds
    base_s = (found.forward_s + found.backward_s) / times_as_fast
    without = {
        "latencies": machine._replace(inside=(0.0, machine.inside[1]), between=(0.0, machine.between[1])),
        "bytes": machine._replace(inside=(machine.inside[0], 1e30), between=(machine.between[0], 1e30))}
    saved = {what: seconds - _mean_step(found, other, ranks, times_as_fast, all_reduce).seconds
             for what, other in without.items()}
    alike = Measured(found.forward_s, found.backward_s, found.sizes, found.overlaps, [1.0])
    saved["late ranks"] = seconds - _mean_step(alike, machine, ranks, times_as_fast, all_reduce).seconds
    return Forecast(ranks, seconds, step, base_s / seconds, {"computing": base_s, **saved})


def largest(one, count=3):
    """[(what, seconds)] of the largest costs."""
    return sorted(one.costs.items(), key=lambda pair: -pair[1])[:count]


def _mean_step(found, machine, ranks, times_as_fast, all_reduce):
    from manyhands.simulate.stragglers import slowness
    from manyhands.simulate.training_step import Step, Way, step

    way = Way(ranks, bucket_bytes=0, all_reduce=all_reduce)
    drawn = [slowness(way, 0, found.factors, seed) for seed in range(DRAWS if len(found.factors) > 1 else 1)]
    layers = _layers(found, times_as_fast)
    steps = [step(machine, layers, way, slow) for slow in drawn]
    return Step(*(mean(numbers) for numbers in zip(*steps)))


def _layers(found, times_as_fast):
    """One layer a message, the first that is sent last: each with its part of the backward, or, where the messages do
    not overlap, all computing in the last, so that all messages are ready together."""
    from manyhands.simulate.training_step import Layer

    forward_s, backward_s = found.forward_s / times_as_fast, found.backward_s / times_as_fast
    sizes, count = found.sizes[::-1], len(found.sizes)
    if found.overlaps:
        return [Layer(size, forward_s / count, backward_s / count) for size in sizes]
    return [*(Layer(size, 0.0, 0.0) for size in sizes[:-1]), Layer(sizes[-1], forward_s, backward_s)]


def table(forecasts):
    """The forecasts in letters: a line for each number of ranks."""
    lines = [f"{'ranks':>8}{'ms a step':>12}{'efficiency':>12}{'computing':>11}{'waiting':>9}   the three "
             "largest costs"]
    for one in forecasts:
        told = ", ".join(f"{what} {seconds * 1e3:.3g} ms" for what, seconds in largest(one))
        lines.append(f"{one.ranks:>8,}{one.seconds * 1e3:>12.4g}{one.efficiency:>12.2f}{one.step.computing:>11.0%}"
                     f"{one.step.bubble + one.step.exposed:>9.0%}   {told}")
    return "\n".join(lines)


def told(found):
    """What was measured, in a line."""
    total, count = sum(found.sizes), len(found.sizes)
    apart = max(found.factors) / median(found.factors) - 1
    return (f"One rank here: {1e3 * (found.forward_s + found.backward_s):.4g} ms a step, "
            f"{1e3 * found.backward_s:.4g} ms of it backward; its slowest step takes {apart:.0%} longer "
            f"than the middle one. Sums in a step: {count}, {total / 1e6:.4g} MB, "
            f"{'beside' if found.overlaps else 'after'} the backward.")
