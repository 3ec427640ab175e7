"""The mistakes in what the ranks read: their rows, samplers and splits."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from manyhands.clinic.rule import Finding, rule
from manyhands.clinic.tolerances import FEW_ROWS, SHARED_ROWS

if TYPE_CHECKING:
    from manyhands.clinic.evidence import Evidence, Step
    from manyhands.clinic.records import Loader, Order


def find_data_mistakes(evidence: Evidence) -> list[Finding]:
    """The mistakes in what the ranks read."""
    return [*_rows(evidence), *_sampler(evidence), *_splits(evidence)]


@rule
def _rows(evidence: Evidence) -> list[Finding]:
    """Find ranks that train on the same rows, or on rows that overlap.

    They get the same rows in the same step, or some steps later; they read the same places of one
    data set; or all of them draw from the whole of it.
    """
    shares = {pair: _share(evidence, *pair) for pair in _pairs(evidence)}
    same = [pair for pair, share in shares.items() if share >= SHARED_ROWS]
    if same:
        return [
            Finding(
                "same rows",
                {
                    "ranks": _ranks_of(same),
                    "share": max(shares[pair] for pair in same),
                    "remedy": _way_to_share(evidence.first["loader"]),
                },
            )
        ]
    shifts = {pair: shift for pair in _pairs(evidence) if (shift := _shift(evidence, *pair))}
    if shifts:
        ahead, count, of = next(iter(shifts.values()))
        return [
            Finding(
                "shifted rows" if ahead else "one seed",
                {
                    "ranks": _ranks_of(shifts),
                    "rows": ahead,
                    "count": count,
                    "of": of,
                    "remedy": _way_to_share(evidence.first["loader"]),
                },
            )
        ]
    return _same_places(evidence) or _whole_data(evidence) or _overlap(evidence)


def _ranks_of(pairs: Iterable[tuple[int, int]]) -> list[int]:
    return sorted({rank for pair in pairs for rank in pair})


def batch_ranks(evidence: Evidence) -> Sequence[int]:
    """The ranks whose rows are parts of the batch."""
    return getattr(evidence, "batch_ranks", range(evidence.ranks))


def _pairs(evidence: Evidence) -> list[tuple[int, int]]:
    return [(a, b) for a in batch_ranks(evidence) for b in batch_ranks(evidence) if a < b]


def _share(evidence: Evidence, a: int, b: int) -> float:
    """Return the smallest part of a's rows that b has too, over all calls of models in all steps.

    The smallest, because the noise that a GAN begins with may be the same. 0 where all rows of the
    run look alike.
    """
    if len({row for step in evidence.steps for row in step.rows[a]}) < 2:
        return 0.0
    return min(
        (
            len(set(of_a) & set(of_b)) / max(1, len(set(of_a)))
            for number, step in enumerate(evidence.steps)
            for of_a, of_b in _calls(evidence, number, step, a, b)
        ),
        default=0.0,
    )


def _calls(
    evidence: Evidence, number: int, step: Step, a: int, b: int
) -> list[tuple[list[str], list[str]]]:
    """Return [(rows of a, rows of b)], a pair for each call of a model.

    Where the ranks' calls differ, there is one pair for the whole step.
    """
    noted = evidence.seen[0]["steps"]
    calls = (
        [evidence.seen[rank]["steps"][number]["calls"] for rank in (a, b)] if noted else [[], []]
    )
    if not calls[0] or len(calls[0]) != len(calls[1]):
        return [(step.rows[a], step.rows[b])]
    return [(call["rows"], other["rows"]) for call, other in zip(*calls, strict=True)]


def _shift(evidence: Evidence, a: int, b: int) -> tuple[int, int, int] | None:
    """Return (rows, common, all) where one rank reads what the other has read so many rows before.

    They read them in the same order; None where that is less than half of what was seen. Where rows
    are drawn by hand for one model, a quarter is enough, or a whole batch: all ranks draw with one
    seed, and one has drawn more numbers in between, which may be many.
    """
    rows = [[row for step in evidence.steps for row in step.rows[rank]] for rank in (a, b)]
    count = len(rows[0])
    once = [
        {row: place for place, row in enumerate(of_rank) if of_rank.count(row) == 1}
        for of_rank in rows
    ]
    ahead = Counter(once[1][row] - place for row, place in once[0].items() if row in once[1])
    if len(rows[1]) != count or not ahead:
        return None
    ((shift, common),) = ahead.most_common(1)
    if evidence.first["loader"] is None and _one_model(evidence):
        calls = [
            call
            for number, step in enumerate(evidence.steps)
            for call in _calls(evidence, number, step, a, b)
        ]
        batch = any(of_a == of_b and len(set(of_a)) >= FEW_ROWS for of_a, of_b in calls)
        agree = batch or common >= max(FEW_ROWS, count / 4)
    else:
        agree = bool(shift) and common >= SHARED_ROWS * count
    return (abs(shift), common, count) if agree else None


def _one_model(evidence: Evidence) -> bool:
    return not any(
        call["model"]
        for record in evidence.seen
        for step in record["steps"]
        for call in step["calls"]
    )


def _loaders(evidence: Evidence) -> list[Loader] | None:
    """Return each rank's loader of the training data.

    None where not all have one, or where these read different data sets.
    """
    ranks = batch_ranks(evidence)
    loaders = [
        loader for rank in ranks if (loader := evidence.seen[rank]["loader"]) and loader["rows"]
    ]
    if len(loaders) < 2 or len(loaders) < len(ranks):
        return None
    return loaders if len({str(loader["rows"]) for loader in loaders}) == 1 else None


def _same_places(evidence: Evidence) -> list[Finding]:
    """Find ranks that read the same rows of one data set, although the rows' values differ.

    They differ because they are changed at random as they are read (augmented).
    """
    loaders = _loaders(evidence) or []
    indices = [loader.get("indices") or [] for loader in loaders]
    if not indices or len(set(indices[0])) < 2 or any(other != indices[0] for other in indices):
        return []
    if not all(loader.get("random") for loader in loaders) or not _whole_batches(evidence, loaders):
        return []  # each rank takes another part of the same batch
    orders = [cost["orders"] for cost in evidence.cost.values()]
    if all(orders) and len({order["rank"] for of_rank in orders for order in of_rank}) == 1:
        return []  # the sampler's own finding
    return [Finding("same places", {"first": indices[0][:4], "length": loaders[0]["length"]})]


def _whole_data(evidence: Evidence) -> list[Finding]:
    loaders = _loaders(evidence)
    if not loaders:
        return []
    own = all(loader["samplers"][0] in ("RandomSampler", "SequentialSampler") for loader in loaders)
    # others may deal the batches out
    known = all(loader["samplers"][1] == "BatchSampler" for loader in loaders)
    whole = own and _whole_batches(evidence, loaders) and (known or _read_twice(loaders))
    return [Finding("whole data", {"length": loaders[0]["length"]})] if whole else []


def _read_twice(loaders: list[Loader]) -> bool:
    """Whether two ranks have read the same rows in the first epoch.

    A sampler that deals the rows out gives some of them twice only at the end of an epoch, to fill
    the last batches.
    """
    first, second = (
        {row for batch in loader.get("first_epoch", ()) for row in batch} for loader in loaders[:2]
    )
    # known of each loader whose rows are known
    ended = len(loaders) * len(first) >= (loaders[0]["length"] or 0)
    return len(first & second) > (len(loaders) * (loaders[0]["batch_size"] or 0) if ended else 0)


def _overlap(evidence: Evidence) -> list[Finding]:
    """Parts of one data set that overlap, though each rank reads a row once in its epoch.

    A row that two ranks read in the same step does not count: a sampler may give each rank a copy,
    which is changed in a different way.
    """
    loaders = _loaders(evidence) or []
    if any(cost["orders"] for cost in evidence.cost.values()):
        return []  # the sampler's own finding
    steps = [
        {row: number for number, batch in enumerate(loader.get("first_epoch", ())) for row in batch}
        for loader in loaders
    ]
    if any(
        sum(map(len, loader.get("first_epoch", ()))) > len(step)
        or "Weighted" in loader["samplers"][0]
        for loader, step in zip(loaders, steps, strict=True)
    ):
        return []  # rows are drawn with replacement
    for first, second in itertools.combinations(range(len(loaders)), 2):
        common = [
            row for row, number in steps[first].items() if steps[second].get(row, number) != number
        ]
        # the last batches may be filled up with the first rows
        if len(common) > max(FEW_ROWS, evidence.ranks):
            ranks = [list(batch_ranks(evidence))[place] for place in (first, second)]
            return [
                Finding("overlap", {"ranks": ranks, "count": len(common), "of": len(steps[first])})
            ]
    return []


def _whole_batches(evidence: Evidence, loaders: list[Loader]) -> bool:
    """Whether a batch of the loader is what a model gets in a call."""
    calls = evidence.first["steps"][0]["calls"] if evidence.first["steps"] else []
    return bool(calls) and all(len(calls[0]["rows"]) == loader["batch_size"] for loader in loaders)


def _way_to_share(loader: Loader | None) -> str | None:
    """Choose the remedy that fits the way in which the script gets its rows.

    It is a key of `clinic_messages.REMEDIES`, or None.
    """
    if loader is None:
        return "rows by hand"
    return {"_InfiniteConstantSampler": "iterable", "DistributedSampler": "sampler"}.get(
        loader["samplers"][0]
    )


@rule
def _sampler(evidence: Evidence) -> list[Finding]:
    """What each rank's samplers have drawn, in the epochs that were trained on."""
    findings = []
    orders = [
        [order for order in cost["orders"] if order.get("steps", 1)]
        for cost in evidence.cost.values()
    ]
    again = [
        (first, second)
        for of_rank in orders
        for first, second in _in_turn(of_rank)
        if first["shuffle"] and first["length"] > 1 and first["order"] == second["order"]
    ]
    if again:
        findings.append(
            Finding("set_epoch", {"first": again[0][0]["order"][:4], "epoch": again[0][1]["epoch"]})
        )
    counts = {order["replicas"] for of_rank in orders for order in of_rank}
    if counts and counts != {len(batch_ranks(evidence))}:
        findings.append(
            Finding("replicas", {"reported": sorted(counts), "ranks": len(batch_ranks(evidence))})
        )
    return findings + _sampler_of_ranks(evidence, orders)


def _sampler_of_ranks(evidence: Evidence, orders: list[list[Order]]) -> list[Finding]:
    """The first order of each rank, against the others' (of real samplers, which have a seed)."""
    numbers = list(batch_ranks(evidence))
    firsts = [
        orders[rank][0]
        for rank in numbers
        if rank < len(orders) and orders[rank] and orders[rank][0].get("seed") is not None
    ]
    if (
        len(orders) < evidence.ranks
        or len(firsts) < 2
        or len(firsts) < len(numbers)
        or firsts[0]["replicas"] < 2
    ):
        return []
    same, times = Counter(first["rank"] for first in firsts).most_common(1)[0]
    if times > 1 and not _own_data(evidence):
        ranks = [rank for rank, first in zip(numbers, firsts, strict=True) if first["rank"] == same]
        if (
            len(
                {
                    str(firsts[place]["order"])
                    for place, first in enumerate(firsts)
                    if first["rank"] == same
                }
            )
            == 1
        ):
            return [
                Finding(
                    "sampler rank", {"ranks": ranks, "rank": same, "first": firsts[0]["order"][:4]}
                )
            ]
    seeds = [first["seed"] for first in firsts]
    if firsts[0]["shuffle"] and len(set(seeds)) > 1 and not _own_data(evidence):
        common = set(firsts[0]["order"]) & set(firsts[1]["order"])
        return [
            Finding(
                "sampler seed",
                {"seeds": seeds, "common": len(common), "of": len(firsts[0]["order"])},
            )
        ]
    return []


def _own_data(evidence: Evidence) -> bool:
    """Whether the ranks are known to read different data sets."""
    loaders = [record["loader"] for record in evidence.seen]
    rows = [loader["rows"] for loader in loaders if loader]
    return all(rows) and len(rows) == len(loaders) and len({str(of_rank) for of_rank in rows}) > 1


@rule
def _splits(evidence: Evidence) -> list[Finding]:
    """random_split of one data set that gives other parts on other ranks."""
    # a rank may split data sets that others do not
    for of_ranks in zip(*(rank.get("splits", []) for rank in evidence.seen), strict=False):
        alike = all(
            split["lengths"] == of_ranks[0]["lengths"] and split["rows"] == of_ranks[0]["rows"]
            for split in of_ranks
        )
        other = next(
            (rank for rank, split in enumerate(of_ranks) if split["parts"] != of_ranks[0]["parts"]),
            None,
        )
        if alike and other is not None and of_ranks[0]["rows"]:
            common = set(of_ranks[0]["first"]) & set(of_ranks[other]["others"])
            return [
                Finding(
                    "split",
                    {"lengths": of_ranks[0]["lengths"], "rank": other, "common": len(common)},
                )
            ]
    return []


def _in_turn(orders: Iterable[Order]) -> list[tuple[Order, Order]]:
    by_sampler: dict[int, list[Order]] = {}
    for order in orders:
        by_sampler.setdefault(order["sampler"], []).append(order)
    return [pair for drawn in by_sampler.values() for pair in pairwise(drawn)]
