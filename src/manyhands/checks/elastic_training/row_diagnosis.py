"""How unit 18's check of rows judges.

It looks at which rank has which rows of a batch, how often each row was used, and how the epochs
are shuffled. Every `..._problem` returns None or the details of a FAIL line.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from manyhands.checks import by_rank
from manyhands.checks.elastic_training.diagnosis import say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from manyhands.checks.elastic_training.answers import Rows
    from manyhands.checks.report import Problem

    Orders = Mapping[tuple[int, int], Sequence[int]]  # {(seed, epoch): its rows in order}


def rows_of(answer: Any, images: int) -> Rows:
    """Return the learner's rows as whole numbers, or None if they are not whole numbers."""
    try:
        rows = [int(row) for row in answer]
        whole = all(row == value for row, value in zip(rows, answer, strict=False))
    except Exception:  # noqa: BLE001 - a learner's answer may be anything
        return None
    return rows if whole and all(0 <= row < images for row in rows) else None


def shares_problem(shares: Sequence[Rows], batch: int, images: int) -> Problem | None:
    """Judge whether the shares of all ranks have each row of the batch once."""
    given = [share for share in shares if share is not None]
    if len(given) < len(shares):
        return say("no rows", last=images - 1)
    owners: dict[int, int] = {}
    lengths = [len(share) for share in given]
    for rank, share in enumerate(given):
        for row in share:
            if row in owners:
                return say("double", a=owners[row], b=rank)
            owners[row] = rank
    return lengths_problem(lengths, batch)


def lengths_problem(lengths: Sequence[int], batch: int) -> Problem | None:
    """Judge a batch that may be in several epochs.

    A row may occur twice in it, but the shares must be as equal as in any other batch.
    """
    if sum(lengths) != batch:
        return say("too few", found=sum(lengths), wanted=batch)
    if max(lengths) - min(lengths) <= 1:
        return None
    right = [batch // len(lengths) + (rank < batch % len(lengths)) for rank in range(len(lengths))]
    return {
        **say("uneven", most=max(lengths), least=min(lengths)),
        "picture": by_rank.numbers("rows of the batch", right, lengths),
    }


def world_problem(
    alone: Sequence[int], together: Sequence[int], again: Sequence[int], world: int
) -> Problem | None:
    """Judge whether the rows of a batch depend on the number of ranks."""
    if sorted(alone) != sorted(again):
        return say("not again")
    return None if sorted(together) == sorted(alone) else say("by the world", world=world)


def counts_of(batches: Sequence[Sequence[int]], images: int) -> list[NDArray[Any]]:
    """Return how often each row has been used, after each batch."""
    return list(np.cumsum([np.bincount(batch, minlength=images) for batch in batches], axis=0))


def epochs_problem(counts: Sequence[NDArray[Any]], images: int) -> Problem | None:
    """Judge the `counts` of the rows after each batch, up to the end of an epoch."""
    for count in counts:
        # whole epochs: every row was used that often, and some rows once more
        passed = int(count.sum()) // images
        if count.min() < passed or count.max() > passed + 1:
            crossed = int(count.sum()) > images
            return say(
                "border" if crossed else "row twice",
                images=images,
                double=int((count > passed + 1).sum()),
                missing=int((count < passed).sum()),
            )
    return say("border") if (counts[-1] != counts[-1].min()).any() else None


def orders_problem(found: Orders, images: int) -> Problem | None:
    """Judge `found`: {(seed, epoch): its rows in order}, of several seeds and epochs."""
    for order in found.values():
        if sorted(order) != list(range(images)):
            return None  # this is not an order, which is reported from what the batches hold
    wrong = [name for name, right in orders(found, images).items() if not right]
    return say(wrong[0]) if wrong else None


def orders(found: Orders, images: int) -> dict[str, bool]:
    """Return {mistake: whether it was not made}.

    Two orders are alike if one is the other, rotated or reversed.
    """
    place = {key: np.argsort(order) for key, order in found.items()}
    alike = [
        (key, other)
        for key, other in combinations(place, 2)
        if _regular(place[key], place[other], images)
    ]
    return {
        "no shuffle": not any(
            _regular(np.arange(images), order, images) for order in found.values()
        ),
        "same order": not any(key[0] == other[0] for key, other in alike),
        "seed unused": not any(key[0] != other[0] and key[1] == other[1] for key, other in alike),
        "seed and epoch added": not any(
            key[0] != other[0] and key[1] != other[1] for key, other in alike
        ),
    }


def _regular(one: ArrayLike, other: ArrayLike, images: int) -> bool:
    """Return whether a rule as simple as a rotation leads from one order to the other.

    Many neighbours then stay as far apart. In a shuffled order, hardly five of them do.
    """
    other = np.asarray(other)[np.argsort(one)]
    _, counts = np.unique(np.diff(other) % images, return_counts=True)
    return int(counts.max()) >= images // 4
