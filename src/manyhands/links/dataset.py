"""Give each rank its share of a data set that one rank has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.utils.data import Subset, TensorDataset

from manyhands.comm import CommunicationError

if TYPE_CHECKING:
    from manyhands.comm.communicator import Communicator


class ScatteredDataset(Subset[Any]):
    """A rank's share: a `torch.utils.data.Subset`, which also takes slices.

    `order[i]` is the index that example i had in the whole data set.
    """

    def __init__(self, dataset: Any, indices: Sequence[int], order: Sequence[int]) -> None:
        super().__init__(dataset, indices)
        self.order = order

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return super().__getitem__(index)  # type: ignore[no-untyped-call]  # torch's own

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return super().__getitems__(indices)


def scatter_dataset(
    dataset: Any,
    c: Communicator,
    root: int = 0,
    shuffle: bool = False,
    seed: int | None = None,
    force_equal_length: bool = True,
) -> ScatteredDataset:
    """Share out the data set of rank `root`: each rank returns its share, a `ScatteredDataset`.

        train = links.scatter_dataset(train if c.rank == 0 else None, c, shuffle=True, seed=0)

    dataset: counts at `root` only. Of a tensor, array, list, tuple, `TensorDataset`, or `Subset` of
    these, each rank is sent its own examples and no others. Any other data set is sent as it is, so
    that each rank reads and transforms its examples itself: it should be small, like a list of
    files. shuffle, seed: share out a permutation, `numpy.random.RandomState(seed).permutation(n)`,
    which is ChainerMN's: the shares are the same as there. force_equal_length: True: all shares
    have ceil(n / size) examples, and some examples may be in the shares of two ranks. False: each
    example is in one share, and sizes differ by at most one. Who calls: all ranks of `c`. Raises
    ValueError at `root` for a data set without length, and on all ranks for a `root` that is none;
    CommunicationError on the other ranks if `root` had no data set, or does not come. Source:
    ChainerMN 7.8.1, function of the same name.
    """
    if isinstance(root, bool) or not isinstance(root, int) or not 0 <= root < c.size:
        raise ValueError(
            f"root={root!r}: this communicator has the ranks 0 to {c.size - 1}. "
            "Give the rank that has the data set."
        )
    problem = _problem(dataset) if c.rank == root else None
    shares: list[Any] | None
    if c.rank != root:
        shares = None
    elif problem:
        shares = [problem] * c.size
    else:
        shares = _shares(dataset, c.size, root, shuffle, seed, force_equal_length)
    share = c.scatter_obj(shares, root)
    if problem:
        raise ValueError(
            f"{problem} Call scatter_dataset(dataset, c) with a data set that has a length at rank "
            f"{root}; it may be None on the others."
        )
    if isinstance(share, str):
        raise CommunicationError(
            f"scatter_dataset: rank {root}, the root, had no data to distribute. {share}"
        )
    part, order, is_whole = share
    if c.rank == root:
        part, is_whole = dataset, True  # what is here already is not copied
    return ScatteredDataset(part, list(order) if is_whole else range(len(order)), order)


def _problem(dataset: Any) -> str | None:
    """Why this data set cannot be shared out, or None."""
    if dataset is None:
        return "The data set is None."
    try:
        len(dataset)
    except (TypeError, NotImplementedError):
        return f"A {type(dataset).__name__} has no length."
    return None


def _shares(
    dataset: Any, size: int, root: int, shuffle: bool, seed: int | None, force_equal_length: bool
) -> list[tuple[Any, list[int], bool]]:
    """For each rank: (its examples or the whole, their indices, whether it is the whole)."""
    n = len(dataset)
    order = np.random.RandomState(seed).permutation(n).tolist() if shuffle else range(n)
    shares = []
    for rank, (begin, end) in enumerate(bounds(n, size, force_equal_length)):
        mine = list(order[begin:end])
        part = None if rank == root else cut(dataset, mine)
        shares.append(
            (dataset, mine, True) if part is None and rank != root else (part, mine, False)
        )
    return shares


def bounds(n: int, size: int, force_equal_length: bool) -> list[tuple[int, int]]:
    """(begin, end) of each rank's share of n examples."""
    if force_equal_length:
        length = -(-n // size)
        return [(n * rank // size, n * rank // size + length) for rank in range(size)]
    short, longer = divmod(n, size)
    return [
        (rank * short + min(rank, longer), (rank + 1) * short + min(rank + 1, longer))
        for rank in range(size)
    ]


def cut(dataset: Any, indices: Sequence[int]) -> Any:
    """The examples with these indices as a separate data set.

    None for a kind of data set that cannot be cut without reading its examples.
    """
    if isinstance(dataset, torch.Tensor):
        return dataset[torch.tensor(indices, dtype=torch.long, device=dataset.device)]
    if isinstance(dataset, np.ndarray):
        return dataset[np.array(indices, dtype=np.intp)]
    if type(dataset) in (list, tuple):
        return [dataset[i] for i in indices]
    if type(dataset) is TensorDataset:
        return TensorDataset(*(cut(tensor, indices) for tensor in dataset.tensors))
    if type(dataset) is Subset:
        return cut(dataset.dataset, [dataset.indices[i] for i in indices])
    return None
