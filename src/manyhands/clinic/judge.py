"""What the evidence means: mistakes and remarks, each with what was measured."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Literal, TypeGuard, cast

from manyhands.clinic.data_rules import batch_ranks, find_data_mistakes
from manyhands.clinic.evidence import find_unequal_buffers, fit, relative_distance
from manyhands.clinic.part_rules import copies_of_sharded, own_parts, parts_held
from manyhands.clinic.rule import Finding, rule
from manyhands.clinic.tolerances import FACTOR_TOLERANCE

if TYPE_CHECKING:
    import torch

    from manyhands.clinic.evidence import Comparable, Evidence, Step
    from manyhands.clinic.records import Clip


def find_mistakes(evidence: Evidence) -> list[Finding]:
    """The likely mistakes, [Finding]; what only follows from another is left out."""
    if _silent(evidence):
        alone = Finding(
            "alone", {"wrapper": evidence.first["wrapper"], "remedy": _way_to_average(evidence)}
        )
        return [alone, *_numbers(evidence)]
    numbers = _numbers(evidence)
    findings = [*find_data_mistakes(evidence), *numbers]
    start = find_start_mistakes(evidence)
    gradient = (
        []
        if any(finding.key == "no gradient" for finding in numbers)
        else [finding for finding in _gradient(evidence) if finding.key != "own length"]
    )
    findings += [*start, *gradient]
    if not start and not gradient:
        findings += copies_of_sharded(evidence)
    if not any(finding.key == "own" for finding in gradient):
        rates = _rates(evidence)
        findings += rates or _metrics(evidence)
        if not start and not gradient and not rates:
            findings += _drift(evidence)
        findings += _buffers(evidence)
    return findings


def find_start_mistakes(evidence: Evidence) -> list[Finding]:
    """Ranks that begin with different weights."""
    names = evidence.find_different_starts()
    return [Finding("start", {"names": names, "of": len(evidence.first["start"])})] if names else []


def _silent(evidence: Evidence) -> bool:
    """Whether the ranks were timed and none of them has sent anything.

    Neither by torch.distributed nor otherwise.
    """
    other_ways = {"horovod", "mpi4py"} & set(evidence.first["frameworks"])
    return (
        evidence.ranks > 1
        and not other_ways
        and len(evidence.cost) == evidence.ranks
        and all(len(cost["bounds"]) > 1 and not cost["calls"] for cost in evidence.cost.values())
    )


# -- the gradient ----------------------------------------------------------------------------------


@rule
def _numbers(evidence: Evidence) -> list[Finding]:
    """Gradients or weights that are not finite, and gradients that are 0 in every step."""
    number = evidence.count
    if number < len(evidence.steps) and (broken := evidence.find_not_finite(number)):
        what, by_rank = broken
        key = "nan" if any(tensor.isnan().any() for tensor in by_rank.values()) else "infinite"
        return [Finding(key, {"step": number + 1, "place": what, "ranks": sorted(by_rank)})]
    if any(given is None or float(given.norm()) for step in evidence.steps for given in step.given):
        return []
    made = any(
        step.missing or any(float(local.norm()) for local in step.local) for step in evidence.steps
    )
    return [Finding("no gradient" if made else "zero", {"steps_n": evidence.count})]


def compared(evidence: Evidence) -> int:
    """How many steps there are whose gradient was held against the gradient of one process."""
    return sum(
        _can_compare(step) and not _changed_by_value(evidence, step)
        for step in evidence.steps[: evidence.count]
    )


def _can_compare(step: Step) -> TypeGuard[Comparable]:
    return step.finite and step.right is not None and float(step.right.norm()) > 0


def _changed_by_value(evidence: Evidence, step: Comparable) -> bool:
    """Whether clipping by value may be why the gradient points elsewhere."""
    return any(kind == "value" for clips in step.clips for kind, _ in clips) and any(
        fit(given, step.right)[1] > evidence.tolerance for given in step.given
    )


@rule
def _gradient(evidence: Evidence) -> list[Finding]:
    """Compare what the optimisers got with the gradient of one process.

    The first step that is wrong is described.
    """
    lengths = []
    for number, step in enumerate(evidence.steps[: evidence.count]):
        if not _can_compare(step) or _changed_by_value(evidence, step):
            continue
        fits = [fit(given, step.right) for given in step.given]
        if max(rest for _, rest in fits) > evidence.tolerance:
            finding = _other(evidence, number, step)
            if finding:
                return [finding]
            continue
        if evidence.first["scaled"]:
            continue
        factor = _factor(step, fits[0][0])
        # what adds up over several backward calls may be divided afterwards
        divided = step.undivided is not False and abs(factor * step.parts - 1) < FACTOR_TOLERANCE
        lengths.append((1.0 if divided else factor, step))
    return _length(evidence, lengths)


def _factor(step: Comparable, fitted: float) -> float:
    """How long the averaged gradient is, in parts of that of one process.

    Clipping after the average changes that; then it is the norm that clipping has found.
    """
    norms = [clips[-1][1] for clips in step.clips if clips]
    return norms[0] / float(step.right.norm()) if norms and 0 < norms[0] < float("inf") else fitted


def _length(evidence: Evidence, lengths: list[tuple[float, Comparable]]) -> list[Finding]:
    """Mistakes in the length of the gradient, [(factor, step)].

    The script may scale its loss, or the gradients, or one to undo the other: the product counts,
    where the loss's part is known. A factor that changes from step to step is no division: the
    script sets the length itself. So it may do where its loss is not known or has a weight (0.5 *
    loss), or where one step alone was compared: "own length", a remark.
    """
    n, wrong = len(batch_ranks(evidence)), []
    # with tensor parallelism there are fewer parts than ranks
    counts = {n, evidence.ranks, evidence.ranks // n} - {1}
    for factor, step in lengths:
        if abs(factor - 1) < FACTOR_TOLERANCE or (
            step.scales is None and (step.gathered or abs(factor / n - 1) < FACTOR_TOLERANCE)
        ):
            continue  # the latter: a sum of losses that may have been divided before; a remark
        wish = (
            step.scales[0]
            if step.scales
            and max(step.scales) - min(step.scales) < FACTOR_TOLERANCE * step.scales[0]
            else 1.0
        )
        key = next(
            (
                key
                for count in sorted(counts)
                for key, wanted in (("sum", count), ("divided twice", 1 / count))
                if abs(factor / wanted - 1) < FACTOR_TOLERANCE
            ),
            None,
        )
        key = (
            "own length"
            if key == "divided twice"
            and step.weighted
            and abs(factor / wish - 1) < FACTOR_TOLERANCE
            else key
        )
        if key or abs(factor / wish - 1) >= FACTOR_TOLERANCE:
            key = key or (None if step.scales and len(lengths) > 1 else "own length")
            wrong.append(("gathered" if step.gathered and key == "divided twice" else key, factor))
    if (
        not wrong
        or max(factor for _, factor in wrong) / min(factor for _, factor in wrong)
        > 1 + FACTOR_TOLERANCE
    ):
        return []
    key, factor = wrong[0]
    by_n = n > 1 and min(abs(factor / n - 1), abs(factor * n - 1)) < FACTOR_TOLERANCE
    values = {"factor": factor, "ranks": n, "n": n, "remedy": None if by_n else "one loss"}
    return [Finding(key, values)] if key else [Finding("factor", {"factor": factor})]


def _varies(evidence: Evidence) -> bool:
    """Whether the gradient has the right direction and a length that the script sets.

    It is a length that the mistakes of length do not explain.
    """
    fits = [
        fit(step.given[0], step.right)
        for step in evidence.steps[: evidence.count]
        if _can_compare(step) and not any(step.clips) and step.scales
    ]
    factors = [factor for factor, rest in fits if rest < evidence.tolerance]
    return (
        not evidence.first["scaled"]
        and bool(factors)
        and (max(factors) > (1 + FACTOR_TOLERANCE) * min(factors) and min(factors) > 0)
    )


def find_undivided_parts(evidence: Evidence) -> list[Finding]:
    """Find several backward calls that add up in a step, undivided or of an unknown loss."""
    for step in evidence.steps[: evidence.count]:
        if (
            step.undivided is not False
            and _can_compare(step)
            and not evidence.first["scaled"]
            and (abs(_factor(step, fit(step.given[0], step.right)[0]) - 1) < FACTOR_TOLERANCE)
        ):
            return [
                Finding(
                    "undivided parts" if step.undivided else "unknown parts", {"calls": step.parts}
                )
            ]
    return []


def find_unknown_loss(evidence: Evidence) -> Literal["summed", "uneven"] | None:
    """Say what may be right or wrong where the script's loss is not known.

    "summed" or "uneven"; None where neither applies.
    """
    keys = set()
    for step in evidence.steps[: evidence.count]:
        if step.right is None or step.scales or evidence.ranks == 1:
            continue
        for key, wanted in (("summed", step.right), ("uneven", step.plain)):
            given = step.given[0]
            factor, rest = (
                fit(given, wanted) if wanted is not None and given is not None else (0.0, 1.0)
            )
            if rest < evidence.tolerance and (
                key == "uneven" or abs(factor / evidence.ranks - 1) < FACTOR_TOLERANCE
            ):
                keys.add(key)
                break
    return "summed" if "summed" in keys else "uneven" if keys and _uneven(evidence) else None


def _uneven(evidence: Evidence) -> bool:
    return any(
        max(step.shares, default=0) - min(step.shares, default=0) > 1e-9 for step in evidence.steps
    )


def _other(evidence: Evidence, number: int, step: Comparable) -> Finding | None:
    """A gradient that is not along that of one process: which one is it?

    None where an unknown loss decides.
    """
    near, n = evidence.tolerance, evidence.ranks
    last = _before(evidence, number)
    if last is not None and _follows(evidence, last, number, step):
        return Finding("no zero_grad", {"step": number + 1})
    finding = parts_held(evidence, number, step)
    if finding:
        return finding
    if not step.local or step.plain is None or getattr(step, "gathered", "") == "parts":
        return None  # all ranks have the same; or what one process has is not known: a remark
    differ = max(relative_distance(local, step.plain) for local in step.local) > near
    if differ and all(
        _is_own(*of_rank, near) for of_rank in zip(step.given, step.local, step.clips, strict=True)
    ):
        return Finding("own", {"step": number + 1, "remedy": _way_to_average(evidence)})
    if max(fit(given, step.plain)[1] for given in step.given) < near:
        if not step.scales:
            return None  # a loss that is not known: a remark
        return Finding(
            "mean of means",
            {
                "shares": step.shares,
                "step": number + 1,
                "apart": relative_distance(step.plain, step.right),
            },
        )
    for rank in range(n):
        if all(relative_distance(given, step.local[rank]) < near for given in step.given):
            return Finding("one rank's", {"rank": rank})
    norms = [clips[-1][1] for clips in step.clips if clips]
    if len(norms) == n and all(
        abs(norm / max(float(local.norm()), 1e-30) - 1) < FACTOR_TOLERANCE
        for norm, local in zip(norms, step.local, strict=True)
    ):
        return Finding("clip first", {"norms": norms, "right": float(step.right.norm())})
    before = None if last is None else evidence.steps[last].right
    if before is not None and max(fit(given, before)[1] for given in step.given) < near:
        return Finding("late", {"step": number + 1})
    own = own_parts(step, step.plain, near)
    if own and len(own) == len(step.names):
        return Finding("own", {"step": number + 1, "remedy": _way_to_average(evidence)})
    if own:
        return Finding(
            "part own",
            {"names": own, "of": len(step.names), "remedy": _way_to_average(evidence, own)},
        )
    if all(relative_distance(given, step.given[0]) < near for given in step.given):
        return None  # never a mistake of distribution: a remark
    return Finding(
        "other",
        {
            "step": number + 1,
            "apart": max(relative_distance(given, step.right) for given in step.given),
        },
    )


def _is_own(given: torch.Tensor, local: torch.Tensor, clips: list[Clip], near: float) -> bool:
    """Whether a rank's optimiser got the rank's own gradient; clipping may have shortened it."""
    return relative_distance(given, local) < near or (bool(clips) and fit(given, local)[1] < near)


def _way_to_average(evidence: Evidence, names: Collection[str] = ()) -> str | None:
    """Choose the remedy that fits a script whose gradients are not averaged.

    It is a key of `clinic_messages.REMEDIES`, or None. With `names`, only the gradients of these
    parameters are not.
    """
    ddp = evidence.first.get("ddp") or {}
    if not ddp.get("made"):
        return None
    if names:
        return "unfrozen" if set(names) <= set(ddp["unfrozen"]) else "outside"
    synchronised = [
        flag for rank in evidence.seen for step in rank["steps"] for flag in step["wrapped"]
    ]
    return (
        "not through the wrapper"
        if not synchronised
        else None
        if any(synchronised)
        else "always in no_sync"
    )


def _before(evidence: Evidence, number: int) -> int | None:
    """Return the number of the last step before this one whose optimiser has the same parameters.

    None where there is no such step.
    """
    return next(
        (
            earlier
            for earlier in reversed(range(number))
            if evidence.steps[earlier].names == evidence.steps[number].names
            and evidence.steps[earlier].right is not None
        ),
        None,
    )


def _follows(evidence: Evidence, last: int, number: int, step: Comparable) -> bool:
    """Whether the gradient of that last step is still in it.

    Clipping may have shortened both together. Parameters whose gradient the script changed in the
    last step (a tied embedding) decide nothing.
    """
    import torch

    before = cast("Comparable", evidence.steps[last])  # as `_before` has found it
    fits: list[bool] = []
    for size, right, *given in zip(
        step.sizes,
        *(vector.split(step.sizes) for vector in (before.right, *before.given)),
        strict=True,
    ):
        fits += [all(fit(vector, right)[1] < evidence.tolerance for vector in given)] * size
    known = torch.tensor(fits) if any(fits) else slice(None)
    return all(
        min(
            min(
                fit((given - last)[known], own[known])[1], fit(given[known], (last + own)[known])[1]
            )
            for own in (step.right, *step.local[rank : rank + 1])
        )
        < evidence.tolerance
        for rank, (given, last) in enumerate(zip(step.given, before.given, strict=True))
    )


def find_shared_deviation(evidence: Evidence) -> list[Finding]:
    """Remark on a gradient that is the same on all ranks and merely is not that of one process."""
    if findings := _gradient(evidence):
        return [finding for finding in findings if finding.key == "own length"]
    for number, step in enumerate(evidence.steps[: evidence.count]):
        if (
            not _can_compare(step)
            or not float(step.given[0].norm())
            or any(kind == "value" for clips in step.clips for kind, _ in clips)
        ):
            continue
        rest = max(fit(given, step.right)[1] for given in step.given)
        if rest <= evidence.tolerance or _other(evidence, number, step):
            continue
        if getattr(step, "gathered", "") == "parts":
            return [Finding("gathers rows", {"step": number + 1})]
        if (
            step.local
            and step.plain is not None
            and not step.scales
            and (max(fit(given, step.plain)[1] for given in step.given) < evidence.tolerance)
        ):
            continue  # the remark "uneven"
        pairs = zip(step.given[0].split(step.sizes), step.right.split(step.sizes), strict=True)
        parts = [
            fit(given, right)
            for given, right in pairs
            if float(right.norm()) and float(given.norm())
        ]
        each = all(rest < evidence.tolerance and factor > 0 for factor, rest in parts)
        return [
            Finding(
                "scaled by parameter" if each else "same but other",
                {
                    "step": number + 1,
                    "apart": relative_distance(step.given[0], step.right),
                    "least": min(factor for factor, _ in parts),
                    "most": max(factor for factor, _ in parts),
                },
            )
        ]
    unknown = any(
        getattr(step, "gathered", "") == "parts"
        or (getattr(step, "gathered", "") and not step.scales)
        for step in evidence.steps
    )
    if unknown:
        return [Finding("gathers rows", {"step": 1})]
    return [Finding("length varies", {})] if _varies(evidence) else []


# -- what else keeps ranks apart -------------------------------------------------------------------


@rule
def _rates(evidence: Evidence) -> list[Finding]:
    """Find learning rates that differ between the ranks.

    They may differ in the steps that were recorded or only in those that were timed, because a
    warm-up may have the same rates on all ranks.
    """
    noted = [
        [[options.get("lr") for options, _ in groups] for groups in evidence.of(number, "groups")]
        for number in range(evidence.count)
    ]
    by_rank = [cost.get("rates", []) for cost in evidence.cost.values()]
    # of steps that all ranks have taken
    timed = [*zip(*by_rank, strict=False)][len(noted) :]
    for number, rates in enumerate(
        [*noted, *timed] if len(evidence.cost) == evidence.ranks else noted
    ):
        # as text, since NaN is unequal to itself
        if any(str(rate) != str(rates[0]) for rate in rates):
            place = next(
                i for i in range(len(rates[0])) if len({str(rate[i]) for rate in rates}) > 1
            )
            return [
                Finding(
                    "rate", {"rates": [float(rate[place]) for rate in rates], "step": number + 1}
                )
            ]
    return []


@rule
def _metrics(evidence: Evidence) -> list[Finding]:
    """Find schedulers that decide on each rank by that rank's own loss (ReduceLROnPlateau)."""
    # of calls that all ranks have made
    for values in zip(*(cost.get("metrics", ()) for cost in evidence.cost.values()), strict=False):
        if max(values) - min(values) > 1e-6 * abs(max(values)):
            return [Finding("metrics", {"values": list(values)})]
    return []


@rule
def _drift(evidence: Evidence) -> list[Finding]:
    for number in range(evidence.count):
        far = evidence.weight_distances(number)
        if max(far) > evidence.tolerance:
            ranks = [rank for rank, distance in enumerate(far) if distance > evidence.tolerance]
            return [Finding("drift", {"ranks": ranks, "step": number + 1, "apart": max(far)})]
    return []


@rule
def _buffers(evidence: Evidence) -> list[Finding]:
    """No broadcast was asked for, so the buffers differ."""
    names, step = find_unequal_buffers(evidence)
    wrong = names and not (evidence.first.get("ddp") or {}).get("sends buffers")
    return [Finding("buffers", {"names": names, "step": step})] if wrong else []
