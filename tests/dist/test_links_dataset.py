"""scatter_dataset: who gets which examples, what travels, and what kinds of data sets there are."""

import pickle

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from manyhands import comm, links


def shares(c, dataset, root, options):
    share = links.scatter_dataset(dataset if c.rank == root else None, c, root=root, **options)
    return [share[i] for i in range(len(share))], list(share.order)


@pytest.mark.parametrize("root", [0, 1])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("n, total", [(2, 11), (3, 10), (3, 9), (4, 2), (4, 13), (2, 0)])
def test_equal_shares_cover_everything(pool, n, total, shuffle, root):
    data = [100 + i for i in range(total)]
    parts = pool.values(shares, n, data, root, {"shuffle": shuffle, "seed": 3})
    order = np.random.RandomState(3).permutation(total).tolist() if shuffle else list(range(total))
    length = (total + n - 1) // n
    for rank, (items, indices) in enumerate(parts):
        assert len(items) == length and items == [100 + i for i in indices]
        # where ChainerMN's shares begin and end
        assert indices == order[total * rank // n : total * rank // n + length]
    assert {item for items, _ in parts for item in items} == set(data)


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("n, total", [(1, 5), (2, 11), (3, 10), (4, 2), (4, 13), (3, 0)])
def test_without_equal_lengths_each_example_is_there_once(pool, n, total, shuffle):
    parts = pool.values(
        shares,
        n,
        list(range(total)),
        0,
        {"shuffle": shuffle, "seed": 3, "force_equal_length": False},
    )
    assert sorted(item for items, _ in parts for item in items) == list(range(total))
    lengths = [len(items) for items, _ in parts]
    assert lengths == [total // n + (rank < total % n) for rank in range(n)]


def test_the_shares_are_those_of_chainermn(pool):
    """As the real ChainerMN 7.8.1 shared out ten examples with seed 3."""
    parts = pool.values(shares, 2, list(range(10)), 0, {"shuffle": True, "seed": 3})
    assert [items for items, _ in parts] == [[5, 4, 1, 2, 9], [6, 7, 0, 3, 8]]


class Lazy(Dataset):
    """An example is made by the rank that asks for it."""

    def __len__(self):
        return 7

    def __getitem__(self, i):
        import os

        return i, os.getpid()


def kinds(c, dataset):
    """This rank's examples, and the bytes that came from rank 0."""
    came = []
    comm.observers.append(
        lambda kind, peer, nbytes, *_: came.append(nbytes) if kind == "received" else None
    )
    share = links.scatter_dataset(
        dataset if c.rank == 0 else None, c, shuffle=True, seed=1, force_equal_length=False
    )
    comm.observers.clear()
    return (
        [share[i] for i in range(len(share))],
        list(share.order),
        sum(came),
        len(pickle.dumps(share.dataset)),
    )


X, T = torch.randn(7, 1000), torch.arange(7)
KINDS = {
    "tensor": (X, lambda i: X[i]),
    "array": (X.numpy(), lambda i: X[i].numpy()),
    "list": ([(X[i].clone(), i) for i in range(7)], lambda i: (X[i], i)),
    "tuple": (tuple(X[i].clone() for i in range(7)), lambda i: X[i]),
    "TensorDataset": (TensorDataset(X, T), lambda i: (X[i], T[i])),
    "Subset": (
        Subset(TensorDataset(torch.cat([X, X]), torch.cat([T, T])), range(7, 14)),
        lambda i: (X[i], T[i]),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_rank_is_sent_its_own_examples_only(pool, kind):
    dataset, example = KINDS[kind]
    whole = 7 * 4000
    for rank, (items, indices, came, _) in enumerate(pool.values(kinds, 3, dataset)):
        torch.testing.assert_close(items, [example(i) for i in indices])
        assert (came == 0) if rank == 0 else (came < whole / 2)


def lazy(c):
    import os

    share = links.scatter_dataset(Lazy() if c.rank == 0 else None, c)
    return [i for i, _ in share], {pid for _, pid in share} == {os.getpid()}


def test_other_data_sets_are_read_by_each_rank_itself(pool):
    assert pool.values(lazy, 2) == [([0, 1, 2, 3], True), ([3, 4, 5, 6], True)]


def in_a_loader(c):
    share = links.scatter_dataset(TensorDataset(torch.arange(10.0)) if c.rank == 0 else None, c)
    return (
        [batch.tolist() for (batch,) in DataLoader(share, batch_size=2)],
        [x.item() for (x,) in share[1:4]],
        share[-1][0].item(),
    )


def test_shares_work_in_a_loader_and_are_cut_by_slices(pool):
    assert pool.values(in_a_loader, 2) == [
        ([[0, 1], [2, 3], [4]], [1, 2, 3], 4),
        ([[5, 6], [7, 8], [9]], [6, 7, 8], 9),
    ]


def nothing_at_root(c, dataset, root):
    links.scatter_dataset(dataset, c, root=root)


@pytest.mark.parametrize("dataset", [None, 5])
def test_a_root_without_data_is_told_at_once_everywhere(pool, dataset):
    first, second = pool.run(nothing_at_root, 2, dataset, 0)
    assert first.error.type == "ValueError" and "at rank 0" in first.error.text
    assert (
        second.error.type == "CommunicationError"
        and "rank 0, the root" in second.error.text
        and second.seconds < 10
    )


def test_a_root_that_is_no_rank(pool):
    assert all(
        outcome.error.type == "ValueError" and "ranks 0 to 1" in outcome.error.text
        for outcome in pool.run(nothing_at_root, 2, [1], 2)
    )
