"""Kinds of tensors.

That is dtypes, memory layouts, empty ones, numbers alone, long rows, and messages over 2 GiB.
"""

import enum
import time

import numpy as np
import pytest
import torch
from one_process import inputs

from manyhands import comm, functions
from manyhands.comm.message import describe

DIFFERENTIABLE = [
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.complex64,
    torch.complex128,
]
WHOLE = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]


def numbers(dtype, rank, size=12):
    return (
        (torch.arange(size) + rank)
        .remainder(2 if dtype == torch.bool else 100)
        .to(dtype)
        .reshape(3, -1)
    )


def everything(c, dtype, grad):
    """What each function brings this rank.

    With gradients: one after each; the upstream gradient is 1 everywhere.
    """
    x = numbers(dtype, c.rank).requires_grad_(grad)
    xs = [numbers(dtype, c.rank + 10 * i).requires_grad_(grad) for i in range(c.size)]
    delegate = functions.send((x, x), c, (c.rank + 1) % c.size)
    got = [
        list(functions.recv(c, (c.rank - 1) % c.size, delegate)),
        [functions.bcast(c, x, 1)],
        functions.allgather(c, x),
        functions.alltoall(c, xs),
        [functions.scatter(c, xs, 1)],
    ]
    gathered = functions.gather(c, x, 1)
    got += [gathered] if c.rank == 1 else []
    if grad:
        ends = [y for ys in got for y in ys] + ([gathered] if c.rank != 1 else [])
        torch.autograd.backward(ends, [torch.ones_like(y) for y in ends])
        assert x.grad.dtype == dtype and all(leaf.grad.dtype == dtype for leaf in xs)
    else:
        assert not any(y.requires_grad for ys in got for y in ys)
    return [[y.detach() for y in ys] for ys in got], x.grad, [leaf.grad for leaf in xs]


@pytest.mark.parametrize("dtype", DIFFERENTIABLE + WHOLE, ids=lambda dtype: str(dtype)[6:])
def test_dtypes(pool, dtype):
    n, grad = 3, dtype in DIFFERENTIABLE
    for rank, (got, of_x, of_xs) in enumerate(pool.values(everything, n, dtype, grad)):
        everyone = [numbers(dtype, r) for r in range(n)]
        expected = [
            [everyone[rank - 1]] * 2,
            [everyone[1]],
            everyone,
            [numbers(dtype, r + 10 * rank) for r in range(n)],
            [numbers(dtype, 1 + 10 * rank)],
        ]
        expected += [everyone] if rank == 1 else []
        for ys, theirs in zip(got, expected, strict=True):
            for y, other in zip(ys, theirs, strict=True):
                assert y.dtype == dtype and torch.equal(y, other)
        # two from the ring, n from allgather, one from gather, and n from bcast at its root
        if grad:
            assert torch.equal(of_x, torch.full_like(of_x, 2 + n + 1 + (n if rank == 1 else 0)))
            assert all(torch.equal(g, torch.full_like(g, 1 + (rank == 1))) for g in of_xs)


LAYOUTS = {
    "transposed": lambda x: x.t(),
    "every second": lambda x: x[::2, 1::2],
    "expanded": lambda x: x[:1].expand(5, -1),
    "flipped": lambda x: x.flip(0),
    "empty": lambda x: x[:0],
    "a number": lambda x: x[1, 1],
    "offset": lambda x: x[1:],
    "channels last": lambda x: x.reshape(1, 2, 2, -1).contiguous(memory_format=torch.channels_last),
}


def layouts(c, columns):
    """Through send and allgather and back: the names of the layouts that are wrong."""
    wrong = []
    for name, view in LAYOUTS.items():
        leaf = (torch.arange(4.0 * columns).reshape(4, columns) + c.rank).requires_grad_()
        y, theirs = view(leaf), view(torch.arange(4.0 * columns).reshape(4, columns) + 1 - c.rank)
        if c.rank == 0:
            delegate = functions.send(y, c, 1)
            ys = functions.allgather(c, y)
            same = torch.equal(ys[1], theirs)
            ((ys[1] * 5).sum() + delegate).backward()
        else:
            got = functions.recv(c, 0)
            ys = functions.allgather(c, y)
            same = (
                torch.equal(got, theirs)
                and got.shape == theirs.shape
                and torch.equal(ys[0], theirs)
            )
            ((got * 2).sum() + (ys[0] * 3).sum()).backward()
        (expected,) = torch.autograd.grad((view(leaf) * 5).sum(), leaf)
        wrong += [] if same and torch.equal(leaf.grad, expected) else [name]
    return wrong


@pytest.mark.parametrize("columns", [6, 10000], ids=["small", "large"])
def test_layouts(pool, columns):
    assert pool.values(layouts, 2, columns) == [[], []]


def counted(c):
    """A row of a million numbers, there and back: what the observers see."""
    seen = []
    c.barrier()
    comm.observers.append(
        lambda kind, peer, nbytes, call, seconds, identity: seen.append((kind, peer, nbytes, call))
    )
    x = torch.ones(1_000_000, requires_grad=True)
    if c.rank == 0:
        functions.send(x, c, 1).backward()
        assert torch.equal(x.grad, torch.full_like(x, 2))
    else:
        (functions.recv(c, 0) * 2).sum().backward()
    comm.observers.clear()
    return seen


def test_a_million_numbers_are_one_message(pool):
    first, second = pool.values(counted, 2)
    assert first == [("sent", 1, 4_000_000, "send"), ("received", 1, 4_000_000, "send.backward")]
    assert second == [("received", 0, 4_000_000, "send"), ("sent", 0, 4_000_000, "send.backward")]


def many_rows(c):
    x = torch.ones(5000, 2, requires_grad=True)
    if c.rank == 0:
        delegate = functions.send(list(x), c, 1)
        delegate.backward()
        return x.grad.sum().item()
    rows = functions.recv(c, 0)
    sum(row.sum() for row in rows[:10]).backward()
    return len(rows), tuple(rows[7].shape)


def test_thousands_of_tensors_in_one_message(pool):
    # once it took 20 s on a busy machine
    assert pool.values(many_rows, 2, limit_s=150, timeout_s=60.0) == [20, (5000, (2,))]


# of float32: up to 8 KB they travel together, between larger ones that do not
SIZES = [3, 0, 2047, 5000, 2048, 1, 2049, 0, 70000, 2]


def sizes_in_one_message(c):
    """There and back: each tensor in its place, and its gradient too."""
    xs = [torch.arange(n, dtype=torch.float32).requires_grad_() for n in SIZES]
    if c.rank == 0:
        functions.send(xs, c, 1).backward()
        return [torch.equal(x.grad, 2 * x) for x in xs]
    came = functions.recv(c, 0)
    right = [torch.equal(y, x) for y, x in zip(came, xs, strict=True)]
    sum((y * y).sum() for y in came).backward()
    return right


def test_small_and_large_tensors_in_one_message(pool):
    assert pool.values(sizes_in_one_message, 2) == [[True] * len(SIZES)] * 2


def sent_and_forgotten(c, numbers):
    """Who has sent them, or taken them in, calls nothing for longer than the other's time-out."""
    for _ in range(2):
        if c.rank == 0:
            functions.send([torch.tensor(i % 256, dtype=torch.uint8) for i in range(numbers)], c, 1)
        else:
            assert [number.item() for number in functions.recv(c, 0)] == [
                i % 256 for i in range(numbers)
            ]
        time.sleep(3.5)
        c.barrier()
    return True


@pytest.mark.parametrize("numbers", [8000, 12000], ids=["up_to_8_KB", "more"])
def test_thousands_of_tensors_arrive_though_the_other_side_then_calls_nothing(pool, numbers):
    assert pool.values(sent_and_forgotten, 2, numbers, timeout_s=3.0) == [True, True]


def test_an_error_names_the_first_tensors_only():
    assert describe([torch.ones(2)] * 4) == " and ".join(["float32 (2,)"] * 4)
    assert (
        describe([torch.ones(2), None] * 2500)
        == "float32 (2,) and nothing and float32 (2,) and nothing and 4996 more"
    )


def over_two_gib(c):
    size = 2**31 + 4099
    if c.rank == 0:
        x = torch.zeros(size, dtype=torch.uint8)
        x[-3:] = torch.tensor([1, 2, 3])
        x[2**31 - 1] = 9
        functions.send(x, c, 1)
        return True
    y = functions.recv(c, 0)
    return (
        y.numel() == size
        and y[-3:].tolist() == [1, 2, 3]
        and y[2**31 - 1].item() == 9
        and y.count_nonzero().item() == 4
    )


@pytest.mark.slow
def test_a_message_over_2_gib(pool):
    assert pool.values(over_two_gib, 2, limit_s=300, timeout_s=200) == [True, True]


def over_two_gib_and_back(c):
    """In float64, with the gradient on its way back: 2 GiB each way."""
    size = 2**28 + 5
    if c.rank == 0:
        x = torch.ones(size, dtype=torch.float64, requires_grad=True)
        functions.send(x, c, 1).backward()
        return x.grad[0].item(), x.grad[-1].item()
    y = functions.recv(c, 0)
    upstream = torch.full_like(y, 3)
    upstream[-1] = 4
    y.backward(upstream)
    return y.sum().item() == size


@pytest.mark.slow
def test_a_gradient_over_2_gib(pool):
    assert pool.values(over_two_gib_and_back, 2, limit_s=300, timeout_s=200) == [(3, 4), True]


def uneven_and_empty(c):
    xs = inputs("alltoall", c.size, c.rank, uneven=True)
    ys = functions.alltoall(c, xs)
    return [tuple(y.shape) for y in ys], [y.numel() for y in functions.allgather(c, xs[0])]


def test_shapes_come_with_the_message(pool):
    received = pool.values(uneven_and_empty, 3)
    for rank, (shapes, sizes) in enumerate(received):
        assert shapes == [
            tuple(inputs("alltoall", 3, r, uneven=True)[rank].shape) for r in range(3)
        ]
        assert sizes == [inputs("alltoall", 3, r, uneven=True)[0].numel() for r in range(3)]
    assert any(0 in shape for shape in received[0][0])  # one is empty


class Role(enum.IntEnum):
    SERVER = 1


def ranks_of_other_types(c):
    x = torch.full((2,), float(c.rank))
    if c.rank == 0:
        functions.send(x, c, np.int64(1), tag=Role.SERVER)
    else:
        functions.recv(c, np.int32(0), tag=np.int16(1))
    return [
        functions.bcast(c, x, Role.SERVER),
        c.bcast_obj(c.rank, np.int64(1)),
        functions.bcast(c, torch.zeros(100_000), Role.SERVER).numel(),
    ]


def test_ranks_and_tags_of_any_whole_type(pool):
    for got, rank, elements in pool.values(ranks_of_other_types, 2):
        assert torch.equal(got, torch.ones(2)) and rank == 1 and elements == 100_000


def a_message_of_nothing(c):
    if c.rank == 0:
        functions.send([], c, 1)
        return None
    return functions.recv(c, 0)


def test_a_message_of_nothing(pool):
    assert pool.values(a_message_of_nothing, 2)[1] == ()


def rows_of_a_table(c):
    """A row of a table, as part of an object.

    Returns the bytes of the memory that it has on the other side.
    """
    row = c.bcast_obj([torch.arange(10_000.0).view(100, 100)[3], 3])[0]
    return row.tolist() == list(range(300, 400)), row.untyped_storage().nbytes()


def test_a_part_of_a_tensor_travels_without_the_rest(pool):
    assert pool.values(rows_of_a_table, 2)[1] == (True, 400)
