"""The ledger over our own functions, on gloo and mpi.

It has messages, bytes and rounds of each call, forward and backward, and counts nothing twice.
"""

import pytest

torch = pytest.importorskip("torch")

from manyhands import functions  # noqa: E402
from manyhands.ledger import Ledger, merge  # noqa: E402

BYTES = 4000  # of 1000 float32 numbers


def _forward_and_backward(c, name):
    x = torch.ones(1000, requires_grad=True)
    to, source = (c.rank + 1) % c.size, (c.rank - 1) % c.size
    c.barrier()
    with Ledger() as ledger:
        if name == "ring":
            phi = functions.send(x, c, to)
            functions.recv(c, source, phi).sum().backward()
        elif name == "allreduce":
            functions.allreduce(c, x).sum().backward()
        elif name == "allgather":
            sum(y.sum() for y in functions.allgather(c, x)).backward()
        elif name == "alltoall":
            sum(y.sum() for y in functions.alltoall(c, [x] * c.size)).backward()
        elif name == "bcast":
            functions.bcast(c, x if c.rank == 0 else None).sum().backward()
        elif name == "gather":
            ys = functions.gather(c, x)
            (sum(y.sum() for y in ys) if c.rank == 0 else ys).backward()
        elif name == "scatter":
            functions.scatter(c, [x] * c.size if c.rank == 0 else None).sum().backward()
    return (
        ledger.account(),
        {call: tuple(row) for call, row in ledger.by_call().items()},
        [e.call for e in ledger.entries],
        ledger.gather(c).rounds,
    )


# rounds of the forward pass alone, then messages and bytes of all ranks in each direction, of p
# ranks
def _expected(name, p):
    tree, part = (p - 1).bit_length(), 1000 // p * 4
    return {
        "ring": ("send", 1, p, BYTES),
        "allgather": ("allgather", 1, p * (p - 1), BYTES),
        "alltoall": ("alltoall", 1, p * (p - 1), BYTES),
        "allreduce": ("allreduce", 2, 2 * p * (p - 1), part),
        "bcast": ("bcast", tree, p - 1, BYTES),
        "gather": ("gather", 1, p - 1, BYTES),
        "scatter": ("scatter", 1, p - 1, BYTES),
    }[name]


@pytest.mark.parametrize(
    "name", ["ring", "allgather", "alltoall", "allreduce", "bcast", "gather", "scatter"]
)
@pytest.mark.parametrize("p", [2, 4])
def test_each_function(pool, p, name):
    ranks = pool.values(_forward_and_backward, p, name)
    merged = merge([account for account, *_ in ranks])
    assert all(not entries for _, _, entries, _ in ranks), (
        "what carries our messages is not counted beside them"
    )
    assert {rounds for *_, rounds in ranks} == {merged.rounds}
    call, _, messages, nbytes = _expected(name, p)
    rows = merged.by_call()
    for direction in (call, call + ".backward"):
        assert (rows[direction].messages_sent, rows[direction].bytes_sent, rows[direction].how) == (
            messages,
            messages * nbytes,
            "counted",
        ), rows
    assert merged.messages == 2 * messages and merged.bytes == 2 * messages * nbytes
    keys = [
        sorted(event.key for events in merged.events for event in events if event.kind == kind)
        for kind in ("sent", "received")
    ]
    assert keys[0] == keys[1], "each message has one key on both its sides"
    for rank, (account, *_) in enumerate(ranks):
        assert account["rank"] == rank


def _forward(c, name):
    x = torch.ones(1000)
    c.barrier()
    with Ledger() as ledger:
        if name == "bcast":
            functions.bcast(c, x if c.rank == 0 else None)
        elif name == "chain":
            if c.rank:
                x = functions.recv(c, c.rank - 1)
            if c.rank < c.size - 1:
                functions.send(x, c, c.rank + 1)
        else:
            getattr(functions, name)(c, [x] * c.size if name in ("alltoall", "scatter") else x)
    return ledger.account(), ledger.table()


@pytest.mark.parametrize(
    "name, rounds",
    [
        ("bcast", 2),
        ("allgather", 1),
        ("alltoall", 1),
        ("gather", 1),
        ("scatter", 1),
        ("allreduce", 2),
        ("chain", 3),
    ],
)
def test_rounds_of_four_ranks_twice_the_same(pool, name, rounds):
    first, second = (pool.values(_forward, 4, name) for _ in range(2))
    assert merge([account for account, _ in first]).rounds == rounds
    assert [table for _, table in first] == [table for _, table in second], (
        "no number depends on time"
    )
    assert (
        merge([account for account, _ in first]).log()
        == merge([account for account, _ in second]).log()
    )


def _parts(c):
    """Messages of the whole and of a part cannot be taken for each other."""
    part = c.split(c.rank % 2)
    x = torch.ones(1000)
    c.barrier()
    with Ledger() as ledger:
        for communicator in (c, part, c, part):
            if communicator.rank == 0:
                functions.send(x[: 10 * communicator.size], communicator, 1)
            elif communicator.rank == 1:
                functions.recv(communicator, 0)
    return ledger.account()


def test_a_part_of_a_split(pool):
    merged = merge(pool.values(_parts, 4))
    sent = {
        event.key: (rank, event.peer, event.bytes)
        for rank, events in enumerate(merged.events)
        for event in events
        if event.kind == "sent"
    }
    received = {
        event.key: (event.peer, rank, event.bytes)
        for rank, events in enumerate(merged.events)
        for event in events
        if event.kind == "received"
    }
    assert sent == received and len(sent) == 6
    assert sorted(sent.values()) == [
        (0, 1, 160),
        (0, 1, 160),
        (0, 2, 80),
        (0, 2, 80),
        (1, 3, 80),
        (1, 3, 80),
    ]
