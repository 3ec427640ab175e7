"""Observes what a rank's data loaders give out.

How long the script waits for them, which order a sampler draws, which rows of the data set they
read, how data sets are split, and whether every rank reads the same data set.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from manyhands.clinic.clinic_limits import RECORDED_INDICES

if TYPE_CHECKING:
    from torch.utils.data import DataLoader, Dataset, DistributedSampler

    from manyhands.clinic.records import Loader, Order, Split


def digest(value: Any) -> str:
    """A short name of a tensor's, or any value's, content."""
    import torch

    if isinstance(value, torch.Tensor):
        data = value.detach().cpu().contiguous()
        if data.is_floating_point() or data.is_complex():
            data = data.reshape(-1).view(torch.uint8) if data.numel() else data
        text = str(tuple(value.shape)).encode() + data.numpy().tobytes()
    elif isinstance(value, (list, tuple)):
        text = "".join(digest(entry) for entry in value).encode()
    elif isinstance(value, dict):
        text = "".join(f"{name}{digest(entry)}" for name, entry in value.items()).encode()
    elif hasattr(value, "tobytes"):
        text = value.tobytes()
    else:
        text = repr(value).encode()
    return hashlib.blake2b(text, digest_size=8).hexdigest()


class LoaderObserver:
    """Observers of torch's DataLoader, DistributedSampler and random_split.

    `waited(start, stop)` is called after each wait for a batch.
    """

    def __init__(self, waited: Callable[[float, float], object]) -> None:
        self.orders: list[Order] = []
        self.loaders: dict[int | None, DataLoader[Any]] = {}
        self.splits: list[dict[str, Any]] = []  # of each, the data set and what is a `Split`
        self.cut: int | None = None  # the data set whose epoch ends here
        self.last: int | None = None  # the data set whose loader has given the last batch
        self.drawn: list[list[Any]] = []
        # the batches of the last batch's epoch; of the first training step's
        self.first_epoch: list[list[Any]] = []
        self._order: Order | None = None  # the order that this batch is from
        # id of a data set -> the indices that were read
        self._indices: dict[int | None, list[Any]] = {}
        self._waited = waited
        self._samplers: dict[int, tuple[int, DistributedSampler[Any]]] = {}
        self._watch_loaders()
        self._watch_splits()

    def _watch_loaders(self) -> None:
        from torch.utils.data import DistributedSampler
        from torch.utils.data.dataloader import DataLoader, _BaseDataLoaderIter

        draw, make, give = (
            DistributedSampler.__iter__,
            DataLoader.__iter__,
            _BaseDataLoaderIter.__next__,
        )
        next_index = _BaseDataLoaderIter._next_index

        def __iter__(sampler: DistributedSampler[Any]) -> Iterator[Any]:
            order = list(draw(sampler))
            # kept: its id stays its own
            self._samplers.setdefault(id(sampler), (len(self._samplers), sampler))
            self.orders.append(
                {
                    "sampler": self._samplers[id(sampler)][0],
                    "epoch": sampler.epoch,
                    "shuffle": sampler.shuffle,
                    "rank": sampler.rank,
                    "replicas": sampler.num_replicas,
                    "seed": getattr(sampler, "seed", None),
                    "length": len(order),
                    "steps": 0,
                    "order": order[:RECORDED_INDICES],
                }
            )
            return iter(order)

        def iterate(loader: DataLoader[Any]) -> Iterator[Any]:
            self.loaders[id(loader.dataset)] = loader
            if self.cut == id(loader.dataset):
                self.cut = None  # the next epoch begins
            drawn = len(self.orders)
            iterator = make(loader)
            self._belongs(iterator, drawn)
            return iterator

        def __next__(iterator: Any) -> Any:
            if self.cut == id(iterator._dataset):
                raise StopIteration
            start, drawn = time.perf_counter(), len(self.orders)
            batch = give(iterator)
            self._belongs(iterator, drawn)
            self.last, self._order = id(iterator._dataset), vars(iterator).get("order_drawn")
            self.drawn = vars(iterator).get("batches_drawn", [])
            self._waited(start, time.perf_counter())
            return batch

        def index(iterator: Any) -> Any:
            indices = next_index(iterator)
            seen, batch = (
                self._indices.setdefault(id(iterator._dataset), []),
                (list(indices) if isinstance(indices, (list, tuple)) else [indices]),
            )
            if len(seen) < RECORDED_INDICES:
                seen.extend(batch)
                vars(iterator).setdefault("batches_drawn", []).append(batch)
            return indices

        # these four take the place of torch's
        DistributedSampler.__iter__ = __iter__  # type: ignore[method-assign]
        DataLoader.__iter__ = iterate  # type: ignore[method-assign,assignment]  # likewise
        # likewise
        _BaseDataLoaderIter.__next__ = __next__  # type: ignore[method-assign,assignment]
        _BaseDataLoaderIter._next_index = index  # type: ignore[method-assign]  # likewise

    def _belongs(self, iterator: Any, drawn: int) -> None:
        """An order that was drawn since there were `drawn` of them is this iterator's."""
        if len(self.orders) > drawn:
            iterator.order_drawn = self.orders[-1]

    def _watch_splits(self) -> None:
        from torch.utils import data

        split = data.random_split

        def random_split(dataset: Dataset[Any], *args: Any, **kwargs: Any) -> list[Any]:
            parts = split(dataset, *args, **kwargs)
            self.splits.append(
                {
                    "dataset": dataset,
                    "parts": [digest(str(list(part.indices))) for part in parts],
                    "lengths": [len(part) for part in parts],
                    "first": [int(i) for i in parts[0].indices[:RECORDED_INDICES]],
                    "others": [int(i) for part in parts[1:] for i in part.indices][
                        :RECORDED_INDICES
                    ],
                }
            )
            return parts

        data.random_split = data.dataset.random_split = random_split

    def note_step(self) -> None:
        """The optimiser has taken a step: the epoch of the last batch was trained on."""
        if self._order is not None:
            self._order["steps"] += 1

    def trained_twice(self) -> bool:
        """Whether a sampler that shuffles has drawn two orders that were trained on."""
        drawn = [order["sampler"] for order in self.orders if order["shuffle"] and order["steps"]]
        return len(drawn) > len(set(drawn))

    def facts(self) -> Loader | None:
        """Return the loader of the training data as plain values; None where there is none.

        Three of its rows are given by digest, drawn under one seed, so that ranks can be compared.
        """
        loader = self.loaders.get(self.training)
        if loader is None:
            return None
        length, rows = digest_rows(loader.dataset)
        batches = loader.batch_sampler
        # a loader that is given a batch sampler has a sampler that it does not use
        sampler = (
            getattr(batches, "sampler", loader.sampler)
            if loader.batch_size is None
            else loader.sampler
        )
        return {
            "random": rows is not None and rows != digest_rows(loader.dataset, seed=1)[1],
            "samplers": [type(sampler).__name__, type(batches).__name__],
            "batch_size": loader.batch_size or getattr(batches, "batch_size", None),
            "rows": rows,
            "length": length,
            "indices": _plain(self._indices.get(self.training, [])),
            "first_epoch": [_plain(batch) for batch in self.first_epoch],
        }

    def split_facts(self) -> list[Split]:
        """What random_split has made, as plain values."""
        facts: list[Any] = []
        for split in self.splits:
            length, rows = digest_rows(split["dataset"])
            facts.append(
                {
                    **{key: value for key, value in split.items() if key != "dataset"},
                    "rows": rows,
                    "length": length,
                }
            )
        return facts

    training: int | None = None  # the data set of the first training step


def _plain(indices: Sequence[Any]) -> list[int | str]:
    return [int(i) if hasattr(i, "__index__") else str(i) for i in indices[:RECORDED_INDICES]]


def digest_rows(dataset: Any, seed: int = 0) -> tuple[int | None, list[str] | None]:
    """Return (length, [digests of three rows, drawn under this seed]).

    None instead of each where the data set has no such thing.
    """
    import random

    import torch

    length, rows, state = None, None, random.getstate()
    numpys = sys.modules["numpy"].random if "numpy" in sys.modules else None
    numpys_state = numpys and numpys.get_state()
    try:
        length = len(dataset)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            random.seed(seed)
            if numpys:
                numpys.seed(seed)
            rows = [digest(dataset[place]) for place in sorted({0, length // 2, length - 1})]
    except Exception:  # noqa: BLE001 - a data set without length or places, or one that does not like to be asked
        pass
    finally:
        random.setstate(state)
        if numpys:
            numpys.set_state(numpys_state)
    return length, rows
