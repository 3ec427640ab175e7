"""MultiNodeChainList against one process.

Values and gradients of parts on several ranks are compared, in many arrangements.
"""

import copy
from collections import defaultdict, deque

import pytest
import torch
from torch import nn

from manyhands import links

BOTH = [0, 1]
# arrangement -> for each rank its parts, as (rank_in, rank_out)
ARRANGEMENTS = {
    "alone": [[(None, None)]],
    "alone, two parts": [[(None, 0), (0, None)]],
    "alone, first in first out": [[(None, [0, 0]), (0, 0), ([0, 0], None)]],
    "pipeline of 2": [[(None, 1)], [(0, None)]],
    "pipeline of 3": [[(None, 1)], [(0, 2)], [(1, None)]],
    "pipeline of 4": [[(None, 1)], [(0, 2)], [(1, 3)], [(2, None)]],
    "there and back": [[(None, 1), (1, None)], [(0, 0)]],
    "there and back twice": [[(None, 1), (1, 1), (1, None)], [(0, 0), (0, 0)]],
    "cycle": [[(None, 1), (2, None)], [(0, 2)], [(1, 0)]],
    "crossing": [[(None, 1), (1, None)], [(None, 0), (0, None)]],
    "output first": [[(1, None), (None, 1)], [(None, 0), (0, None)]],
    "output in the middle": [[(None, 1), (1, None), (None, 1)], [(0, 0), (0, None)]],
    "branch": [[(None, [1, 2]), ([1, 2], None)], [(0, 0)], [(0, 0)]],
    "branch, other order": [[(None, [2, 1]), ([2, 1], None)], [(0, 0)], [(0, 0)]],
    "branch and stay": [[(None, [0, 1]), ([0, 1], None)], [(0, 0)]],
    "diamond": [[(None, [1, 2, 3])], [(0, 3)], [(0, 3)], [([0, 1, 2], None)]],
    "twist": [[(None, [1, 2]), (2, 1), (1, None)], [(0, 2), ([2, 0], 0)], [([1, 0], [0, 1])]],
    "two outputs": [[(None, [1, 2])], [(0, None)], [(0, None)]],
    "same value twice": [[(None, [1, 1])], [([0, 0], None)]],
}


class Part(nn.Module):
    """Put any number of inputs side by side, in their order, and make `width` columns of them."""

    def __init__(self, width):
        super().__init__()
        self.layer = nn.LazyLinear(width, dtype=torch.float64)

    def forward(self, *xs):
        return torch.tanh(self.layer(torch.cat([x.flatten(1) for x in xs], 1)))


def one_process(arrangement, x):
    """Run all ranks' parts in one process.

    Returns (parts, inputs and outputs of each rank); the parts' weights and all gradients are then
    there.
    """
    torch.manual_seed(0)
    parts = [
        [Part(3 + rank + 2 * i) for i in range(len(rows))] for rank, rows in enumerate(arrangement)
    ]
    xs = [x.clone().requires_grad_() for _ in arrangement]
    outputs, queues, turn = [None] * len(parts), defaultdict(deque), [0] * len(parts)
    while any(turn[rank] < len(parts[rank]) for rank in range(len(parts))):
        for rank, rows in enumerate(arrangement):
            if turn[rank] == len(rows):
                continue
            come, out = rows[turn[rank]]
            come = [come] if isinstance(come, int) else come
            if any(len(queues[source, rank]) < come.count(source) for source in come or ()):
                continue
            value = parts[rank][turn[rank]](
                *(
                    [xs[rank]]
                    if come is None
                    else [queues[source, rank].popleft() for source in come]
                )
            )
            for target in [] if out is None else [out] if isinstance(out, int) else out:
                queues[rank, target].append(value)
            outputs[rank] = value if out is None else outputs[rank]
            turn[rank] += 1
    sum(objective(y, rank) for rank, y in enumerate(outputs) if y is not None).backward()
    return parts, xs, outputs


def objective(y, rank):
    return (y * (torch.arange(y.numel(), dtype=y.dtype).view_as(y) % 5 + rank)).sum()


def gradients(module):
    return [p.grad for p in module.parameters()]


def on_ranks(c, arrangement, parts, x):
    model = links.MultiNodeChainList(c)
    for part, (come, out) in zip(parts[c.rank], arrangement[c.rank], strict=True):
        model.add_link(part, rank_in=come, rank_out=out)
    x.requires_grad_()
    result = model(x)
    y = None
    if any(out is None for _, out in arrangement[c.rank]):
        y = result.detach()
        result = objective(result, c.rank)
    result.backward()
    return y, x.grad, gradients(model)


@pytest.mark.parametrize("name", ARRANGEMENTS)
def test_values_and_gradients_are_those_of_one_process(pool, name):
    arrangement = ARRANGEMENTS[name]
    x = torch.randn(4, 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    parts, xs, outputs = one_process(arrangement, x)
    expected = [[g for part in row for g in gradients(part)] for row in parts]
    bare = copy.deepcopy(parts)
    for row in bare:
        for part in row:
            part.zero_grad()
    for rank, (y, of_x, of_parts) in enumerate(
        pool.values(on_ranks, len(arrangement), arrangement, bare, x)
    ):
        torch.testing.assert_close(y, None if outputs[rank] is None else outputs[rank].detach())
        torch.testing.assert_close(of_x, xs[rank].grad)
        torch.testing.assert_close(of_parts, expected[rank])


class Halves(nn.Module):
    """Returns a tuple: tensors of two shapes, and whole numbers."""

    def forward(self, x):
        return x[:, :1] * 2, x[:, 1:] * 3, torch.arange(len(x))


class Whole(nn.Module):
    def forward(self, halves):
        left, right, numbers = halves
        return torch.cat([left, right], 1) * numbers[:, None]


def send_a_tuple(c):
    model = links.MultiNodeChainList(c)
    if c.rank == 0:
        model.add_link(Halves(), rank_out=1).add_link(Whole(), rank_in=1)
    else:
        model.add_link(Halves2(), rank_in=0, rank_out=0)
    x = torch.arange(6.0).view(2, 3).requires_grad_() if c.rank == 0 else None
    y = model(x)
    y.sum().backward()
    return (y.detach(), x.grad) if c.rank == 0 else None


class Halves2(nn.Module):
    """A tuple comes as one argument, and a tuple goes out.

    The whole numbers are first, so that the first tensor has no gradient.
    """

    def forward(self, halves):
        left, right, numbers = halves
        return left + 1, right + 1, numbers + 1


def test_a_tuple_travels_as_one_argument(pool):
    (y, of_x), _ = pool.values(send_a_tuple, 2)
    x = torch.arange(6.0).view(2, 3)
    factor = torch.tensor([[2.0, 3, 3]]) * torch.tensor([[1.0], [2]])
    torch.testing.assert_close(y, (x * torch.tensor([2.0, 3, 3]) + 1) * torch.tensor([[1.0], [2]]))
    torch.testing.assert_close(of_x, factor)


class Tokens(nn.Module):
    def forward(self, x):
        return (x * 0 + 2).long().detach()


class Scale(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(start))

    def forward(self, x):
        return x * self.weight


def whole_numbers_between(c):
    """Rank 0 sends a value, then whole numbers.

    The first value's gradient must come back all the same.
    """
    model, x = links.MultiNodeChainList(c), torch.ones(3)
    if c.rank == 0:
        model.add_link(Scale(2.0), rank_out=1).add_link(Tokens(), rank_out=1)
    else:
        model.add_link(Scale(3.0), rank_in=0, rank_out=1).add_link(
            Tokens(), rank_in=0, rank_out=1
        ).add_link(Product(), rank_in=[1, 1])
    y = model(x)
    y.sum().backward()
    return [p.grad for p in model.parameters()]


class Product(nn.Module):
    def forward(self, a, b):
        return a * b


def test_whole_numbers_do_not_cut_the_graph(pool):
    # y = w0 * w1 * 2, summed over three entries
    assert pool.values(whole_numbers_between, 2) == [[torch.tensor(18.0)], [torch.tensor(12.0)]]


def unused(c):
    """The last rank ignores what it is told: the others' backward must end, without gradients."""
    model = links.MultiNodeChainList(c)
    if c.rank == 0:
        model.add_link(Scale(2.0), rank_out=1)
    else:
        model.add_link(Deaf(), rank_in=0)
    y = model(torch.ones(3))
    y.sum().backward()
    return [p.grad for p in model.parameters()]


class Deaf(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))

    def forward(self, x):
        return self.weight * 2


def test_an_unused_value_stops_nobody(pool):
    (of_scale,), (of_deaf,) = pool.values(unused, 2, timeout_s=5)
    assert (of_scale is None or of_scale == 0) and of_deaf.tolist() == [2, 2]


def without_gradients(c):
    model = links.MultiNodeChainList(c)
    model.add_link(
        Scale(2.0 + c.rank),
        rank_in=None if c.rank == 0 else c.rank - 1,
        rank_out=None if c.rank == c.size - 1 else c.rank + 1,
    )
    with torch.no_grad():
        y = model(torch.ones(2))
    again = copy.deepcopy(model)
    assert again.c is c and again.parts[0].weight is not model.parts[0].weight
    return y.tolist() if c.rank == c.size - 1 else None


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_without_gradients(pool, n):
    assert (
        pool.values(without_gradients, n)[-1]
        == [[2.0] * 2, [6.0] * 2, [24.0] * 2, [120.0] * 2][n - 1]
    )


def mistakes(c):
    """Each mistake that a rank sees by itself, and what it is told."""
    messages = []

    def tell(call):
        try:
            call()
            messages.append(None)
        except ValueError as error:
            messages.append(str(error))

    model = links.MultiNodeChainList(c)
    tell(lambda: model(1))
    tell(lambda: model.add_link(torch.relu))
    tell(lambda: model.add_link(Deaf(), rank_out=7))
    tell(lambda: model.add_link(Deaf(), rank_in="0"))
    tell(lambda: model.add_link(Deaf(), rank_out=[]))
    tell(lambda: model.add_link(Deaf(), rank_in=c.rank))
    tell(lambda: model.add_link(Deaf()))
    tell(lambda: model.add_link(Deaf()))
    model.add_link(Deaf(), rank_out=c.rank)
    tell(lambda: model(torch.ones(1)))
    return messages


def test_mistakes_are_told(pool):
    messages = pool.values(mistakes, 2)[1]
    for text, remedy in zip(
        messages,
        [
            "Add one with add_link",
            "Wrap a plain function in a module",
            "ranks 0 to 1",
            "whole number from 0 to 1",
            "empty list",
            "Add the part with rank_out=1 first",
            None,
            "Give this part a rank_out",
            "Add a part with rank_in=1",
        ],
        strict=True,
    ):
        assert remedy in text if remedy else text is None, (text, remedy)


def nobody_sends(c):
    model = links.MultiNodeChainList(c)
    if c.rank == 0:
        model.add_link(Scale(1.0), rank_in=1)
        model(torch.ones(1))


def test_a_value_that_never_comes_is_told_in_time(pool):
    outcomes = pool.run(nobody_sends, 2, timeout_s=1)
    assert (
        outcomes[0].error.type == "CommunicationError"
        and "rank 1" in outcomes[0].error.text.lower()
        and outcomes[0].seconds < 10
    )
    assert outcomes[1].error is None
