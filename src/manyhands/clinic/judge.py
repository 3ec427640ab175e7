"""What the evidence means: mistakes and remarks, each with what was measured."""

import functools
from collections import namedtuple

from manyhands.clinic.evidence import apart, finite, fit

Finding = namedtuple("Finding", "key values")
NOT_JUDGED = "not judged"  # the key of what could not be decided, because a rule has raised an exception

NEAR = 0.02  # a factor counts as N, 1 or 1 / N up to so much
HALF = 0.5  # of a rank's rows, which another rank has in the same step, in every step


def rule(judge):
    """A rule that raises an exception has decided nothing, and the others still count."""
    @functools.wraps(judge)
    def guarded(evidence):
        try:
            return judge(evidence)
        except Exception as error:
            return [not_judged(judge.__name__, error)]
    return guarded


def not_judged(what, error):
    return Finding(NOT_JUDGED, {"what": what.strip("_"), "error": f"{type(error).__name__}: {error}"[:300]})


def mistakes(evidence):
    """The likely mistakes, [Finding]; what only follows from another is left out."""
    if _silent(evidence):
        alone = Finding("alone", {"wrapper": evidence.first["wrapper"], "remedy": _way_to_average(evidence)})
        return [alone, *_numbers(evidence)]
    numbers = _numbers(evidence)
    found = [*_rows(evidence), *_sampler(evidence), *numbers]
    start = evidence.start_differs()
    gradient = [] if any(one.key == "no gradient" for one in numbers) else _gradient(evidence)
    if start:
        found.append(Finding("start", {"names": start, "of": len(evidence.first["start"])}))
    found += gradient
    if not any(one.key == "own" for one in gradient):
        rates = _rates(evidence)
        found += rates
        if not start and not gradient and not rates:
            found += _drift(evidence)
        found += _buffers(evidence)
    return found


def _silent(evidence):
    """Whether the ranks were timed, and none of them has sent anything, by torch.distributed or otherwise."""
    other_ways = {"horovod", "mpi4py"} & set(evidence.first["frameworks"])
    return evidence.ranks > 1 and not other_ways and all(
        len(cost["bounds"]) > 1 and not cost["calls"] for cost in evidence.cost.values())


# -- the data ----------------------------------------------------------------------------------------------------------


@rule
def _rows(evidence):
    """Ranks that get the same rows in the same step; or that all draw from the whole data set."""
    same = {frozenset(pair) for pair in _pairs(evidence.ranks) if _share(evidence, *pair) >= HALF}
    if same:
        ranks = sorted(set().union(*same))
        return [Finding("same rows", {"ranks": ranks, "share": max(_share(evidence, *sorted(pair)) for pair in same),
                                      "remedy": _way_to_share(evidence.first["loader"])})]
    loaders = [one["loader"] for one in evidence.seen]
    if evidence.ranks == 1 or any(not loader or not loader["rows"] for loader in loaders):
        return []
    own = all(loader["samplers"] in (["RandomSampler", "BatchSampler"], ["SequentialSampler", "BatchSampler"])
              for loader in loaders)
    whole = len({str(loader["rows"]) for loader in loaders}) == 1 and evidence.steps and all(
        len(evidence.first["steps"][0]["calls"][0]["rows"]) == loader["batch_size"] for loader in loaders)
    return [Finding("whole data", {"length": loaders[0]["length"]})] if own and whole else []


def _way_to_share(loader):
    """Which remedy fits the way in which the script gets its rows: a key of `clinic_words.REMEDIES`, or None."""
    if loader is None:
        return "rows by hand"
    return {"_InfiniteConstantSampler": "iterable", "DistributedSampler": "sampler"}.get(loader["samplers"][0])


def _pairs(ranks):
    return [(a, b) for a in range(ranks) for b in range(a + 1, ranks)]


def _share(evidence, a, b):
    """The smallest part of a's rows that b has too, over the steps. 0 where all rows of the run look alike."""
    if len({row for step in evidence.steps for row in step.rows[a]}) < 2:
        return 0.0
    return min((len(set(step.rows[a]) & set(step.rows[b])) / max(1, len(set(step.rows[a])))
                for step in evidence.steps), default=0.0)


@rule
def _sampler(evidence):
    found = []
    orders = [cost["orders"] for cost in evidence.cost.values()]
    again = [(first, second) for of_rank in orders for first, second in _in_turn(of_rank) if first["shuffle"]
             and first["length"] > 1 and first["order"] == second["order"]]
    if again:
        found.append(Finding("set_epoch", {"first": again[0][0]["order"][:4], "epoch": again[0][1]["epoch"]}))
    counts = {order["replicas"] for of_rank in orders for order in of_rank}
    if counts and counts != {evidence.ranks}:
        found.append(Finding("replicas", {"told": sorted(counts), "ranks": evidence.ranks}))
    return found


def _in_turn(orders):
    by_sampler = {}
    for order in orders:
        by_sampler.setdefault(order["sampler"], []).append(order)
    return [pair for drawn in by_sampler.values() for pair in zip(drawn, drawn[1:])]


# -- the gradient ------------------------------------------------------------------------------------------------------


@rule
def _numbers(evidence):
    """Gradients or weights that are not finite, and gradients that are 0 in every step."""
    number = evidence.count
    if number < len(evidence.steps):
        what, by_rank = evidence.not_finite(number)
        key = "nan" if any(tensor.isnan().any() for tensor in by_rank.values()) else "infinite"
        return [Finding(key, {"step": number + 1, "place": what, "ranks": sorted(by_rank)})]
    if any(float(given.norm()) for step in evidence.steps for given in step.given):
        return []
    made = any(float(local.norm()) for step in evidence.steps for local in step.local)
    return [Finding("no gradient" if made else "zero", {"steps_n": evidence.count})]


def compared(evidence):
    """How many steps there are whose gradient was held against the gradient of one process."""
    return sum(_can_compare(step) and not _changed_by_value(evidence, step) for step in evidence.steps[:evidence.count])


def _can_compare(step):
    return step.finite and step.right is not None and float(step.right.norm()) > 0


def _changed_by_value(evidence, step):
    """Whether clipping by value may be why the gradient points elsewhere."""
    return any(kind == "value" for clips in step.clips for kind, _ in clips) and any(
        fit(given, step.right)[1] > evidence.tolerance for given in step.given)


@rule
def _gradient(evidence):
    """What the optimisers got, against the gradient of one process: the first step that is wrong is described."""
    lengths = []
    for number, step in enumerate(evidence.steps[:evidence.count]):
        if not _can_compare(step) or _changed_by_value(evidence, step):
            continue
        fits = [fit(given, step.right) for given in step.given]
        if max(rest for _, rest in fits) > evidence.tolerance:
            found = _other(evidence, number, step)
            if found:
                return [found]
            continue
        if evidence.first["scaled"]:
            continue
        factor = _factor(step, fits[0][0])
        # what adds up over several backward calls may be divided afterwards
        divided = step.undivided is not False and abs(factor * step.parts - 1) < NEAR
        lengths.append((1.0 if divided else factor, step.scales))
    return _length(evidence, lengths)


def _factor(step, fitted):
    """How long the averaged gradient is, in parts of that of one process. Clipping after the average changes that: the
    norm that it has found tells it then."""
    norms = [clips[-1][1] for clips in step.clips if clips]
    return norms[0] / float(step.right.norm()) if norms and 0 < norms[0] < float("inf") else fitted


def _length(evidence, lengths):
    """Mistakes in the length of the gradient, [(factor, scales)]. The script may scale its loss, or the gradients, or
    one to undo the other: the product counts, where the loss's part is known."""
    n = evidence.ranks
    for factor, scales in lengths:
        if abs(factor - 1) < NEAR or scales is None and abs(factor / n - 1) < NEAR:
            continue  # the latter: a sum of losses that may have been divided before; a remark
        for key, wanted in (("sum", n), ("divided twice", 1 / n)):
            if n > 1 and abs(factor / wanted - 1) < NEAR:
                return [Finding(key, {"factor": factor, "ranks": n})]
        wish = scales[0] if scales and max(scales) - min(scales) < NEAR * scales[0] else 1.0
        if abs(factor / wish - 1) >= NEAR:
            return [Finding("factor", {"factor": factor})]
    return []


def _parts(evidence):
    """Several backward calls that add up in a step, undivided or of a loss that is not known: [Finding]."""
    for step in evidence.steps[:evidence.count]:
        if step.undivided is not False and _can_compare(step) and not evidence.first["scaled"] and (
                abs(_factor(step, fit(step.given[0], step.right)[0]) - 1) < NEAR):
            return [Finding("undivided parts" if step.undivided else "unknown parts", {"calls": step.parts})]
    return []


def untold(evidence):
    """Where the script's loss is not known: "summed" or "uneven", what may be right or wrong; or None."""
    found = set()
    for step in evidence.steps[:evidence.count]:
        if step.right is None or step.scales or evidence.ranks == 1:
            continue
        for key, wanted in (("summed", step.right), ("uneven", step.plain)):
            factor, rest = fit(step.given[0], wanted) if wanted is not None else (0.0, 1.0)
            if rest < evidence.tolerance and (key == "uneven" or abs(factor / evidence.ranks - 1) < NEAR):
                found.add(key)
                break
    return "summed" if "summed" in found else "uneven" if found and _uneven(evidence) else None


def _uneven(evidence):
    return any(max(step.shares, default=0) - min(step.shares, default=0) > 1e-9 for step in evidence.steps)


def _other(evidence, number, step):
    """A gradient that is not along that of one process: which one is it? None where an unknown loss decides."""
    near, n = evidence.tolerance, evidence.ranks
    if number and _follows(evidence, number, step):
        return Finding("no zero_grad", {"step": number + 1})
    if not step.local:
        return Finding("other", {"step": number + 1, "apart": max(apart(g, step.right) for g in step.given)})
    differ = max(apart(local, step.plain) for local in step.local) > near
    if differ and all(apart(given, local) < near for given, local in zip(step.given, step.local)):
        return Finding("own", {"step": number + 1, "remedy": _way_to_average(evidence)})
    if max(fit(given, step.plain)[1] for given in step.given) < near:
        if not step.scales:
            return None  # a loss that is not known: a remark
        return Finding("mean of means", {"shares": step.shares, "step": number + 1,
                                         "apart": apart(step.plain, step.right)})
    for rank in range(n):
        if all(apart(given, step.local[rank]) < near for given in step.given):
            return Finding("one rank's", {"rank": rank})
    norms = [clips[-1][1] for clips in step.clips if clips]
    if len(norms) == n and all(abs(norm / max(float(local.norm()), 1e-30) - 1) < NEAR
                               for norm, local in zip(norms, step.local)):
        return Finding("clip first", {"norms": norms, "right": float(step.right.norm())})
    if number and max(fit(given, evidence.steps[number - 1].right)[1] for given in step.given) < near:
        return Finding("late", {"step": number + 1})
    own = _own_parts(step, near)
    if own:
        return Finding("part own", {"names": own, "of": len(step.names), "remedy": _way_to_average(evidence, own)})
    return Finding("other", {"step": number + 1, "apart": max(apart(given, step.right) for given in step.given)})


def _way_to_average(evidence, names=()):
    """Which remedy fits a script whose gradients (of the parameters `names` only) are not averaged: a key of
    `clinic_words.REMEDIES`, or None."""
    ddp = evidence.first.get("ddp") or {}
    if not ddp.get("made"):
        return None
    if names:
        return "unfrozen" if set(names) <= set(ddp["unfrozen"]) else "outside"
    synchronised = [flag for rank in evidence.seen for step in rank["steps"] for flag in step["wrapped"]]
    return "not through the wrapper" if not synchronised else None if any(synchronised) else "always in no_sync"


def _follows(evidence, number, step):
    """Whether the gradient of the step before is still in it; clipping may have shortened both together."""
    before = evidence.steps[number - 1]
    if before.names != step.names:
        return False
    return all(min(min(fit(given - last, one)[1], fit(given, last + one)[1])
                   for one in (step.right, *step.local[rank:rank + 1])) < evidence.tolerance
               for rank, (given, last) in enumerate(zip(step.given, before.given)))


def _own_parts(step, near):
    """The names of parameters whose gradient is each rank's own."""
    by_rank = [list(zip(given.split(step.sizes), local.split(step.sizes)))
               for given, local in zip(step.given, step.local)]
    means, found = step.plain.split(step.sizes), []
    for place, name in enumerate(step.names):
        pairs = [of_rank[place] for of_rank in by_rank]
        if all(apart(given, local) < near for given, local in pairs) and any(
                apart(local, means[place]) > near for _, local in pairs):
            found.append(name)
    return found


# -- what else keeps ranks apart ---------------------------------------------------------------------------------------


@rule
def _rates(evidence):
    for number in range(evidence.count):
        rates = [[options.get("lr") for options, _ in groups] for groups in evidence.of(number, "groups")]
        if any(str(rate) != str(rates[0]) for rate in rates):  # as text, since NaN is unequal to itself
            place = next(i for i in range(len(rates[0])) if len({str(rate[i]) for rate in rates}) > 1)
            return [Finding("rate", {"rates": [float(rate[place]) for rate in rates], "step": number + 1})]
    return []


@rule
def _drift(evidence):
    for number in range(evidence.count):
        far = evidence.weights_apart(number)
        if max(far) > evidence.tolerance:
            ranks = [rank for rank, one in enumerate(far) if one > evidence.tolerance]
            return [Finding("drift", {"ranks": ranks, "step": number + 1, "apart": max(far)})]
    return []


@rule
def _buffers(evidence):
    """Buffers that differ as forward begins, after a step: no broadcast has made them the same."""
    for number in range(1, evidence.count):
        buffers = evidence.of(number, "buffers")
        names = [name for name in buffers[0] if len({str(of_rank.get(name)) for of_rank in buffers}) > 1]
        if names:
            return [Finding("buffers", {"names": names, "step": number + 1})]
    return []


# -- remarks -----------------------------------------------------------------------------------------------------------


def remarks(evidence):
    """What is no mistake, and what one should know: [Finding]."""
    found, one = [], evidence.one or {}
    calls = [call for rank in evidence.seen for step in rank["steps"] for call in step["calls"]]
    if any(call["random"] for call in calls):
        same = len({rank["steps"][0]["calls"][0]["noise"] for rank in evidence.seen if rank["steps"][0]["calls"]}) == 1
        key = "same noise" if same and evidence.ranks > 1 else "noise"
        found.append(Finding(key, {"seed": evidence.first["seed"]}))
    if "not" in one and one["not"] != "random":
        found.append(Finding("not tried: " + one["not"], {"error": one.get("error", "")}))
    elif one.get("unfaithful", 0) > evidence.tolerance:
        found.append(Finding("not tried: other output", {"apart": one["unfaithful"]}))
    elif one.get("far", 0) > evidence.tolerance:
        found.append(Finding("batch norm" if one["mixers"] else "mixes rows",
                             {"names": one["mixers"], "apart": one["far"], "rows": one["rows"],
                              "each": one["rows"] / evidence.ranks}))
    elif not one and not any(call["random"] for call in calls):
        found.append(Finding("not tried: no copy", {}))
    found += _parts(evidence)
    if untold(evidence):
        found.append(Finding(untold(evidence), {"factor": float(evidence.ranks)}))
    if evidence.first["scaled"]:
        found.append(Finding("scaled", {}))
    if any(kind == "value" for step in evidence.steps for clips in step.clips for kind, _ in clips):
        found.append(Finding("clipped by value", {}))
    if evidence.first["stride"] > 1:
        found.append(Finding("sampled", {"stride": evidence.first["stride"]}))
    return found


def tried(evidence):
    """How far the first gradient is from that of the run in one process, in parts of its length; or None."""
    gradient = evidence.tried_gradient()
    if gradient is None or not evidence.count:
        return None
    import torch

    step = evidence.steps[0]
    if any(name not in gradient for name in step.names):
        return None
    whole = torch.cat([gradient[name].double() for name in step.names])
    return apart(whole, step.raw) if finite(whole) and finite(step.raw) else None
