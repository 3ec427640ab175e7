"""Mistakes that it takes two ranks to see: messages and calls that do not fit together.

All ranks concerned are told, and none hangs.
"""

import time

import pytest
import torch
from mistakes import all_of, check, mistake

from manyhands import functions

X = torch.arange(3.0)
# does not travel with its head: the sender waits until the receiver takes it
LARGE = torch.zeros(100_000)
NEXT = "must make the same calls in the same order"


@mistake(
    {
        1: (
            "CommunicationError: Rank 1 waited 1.5 s in recv from rank 0, tag 2 "
            "(test_mistakes_messages.py, line ...It has sent send, tag 1 with float32 (3,), which "
            "no rank has asked for...Do the tags differ?"
        )
    },
    waits=True,
)
def tags_that_differ(c):
    if c.rank == 0:
        functions.send(X, c, 1, tag=1)
    else:
        functions.recv(c, 0, tag=2)


@mistake(
    {
        0: (
            "CommunicationError: Rank 1 waited 1.5 s in recv from rank 0, tag 2 ...It has sent "
            "send, tag 1 with float32 (3,)"
        ),
        1: (
            "CommunicationError: Rank 1 waited 1.5 s in recv from rank 0, tag 2 ...It has sent "
            "send, tag 1 with float32 (3,)"
        ),
    },
    waits=True,
)
def tags_that_differ_seen_in_backward(c):
    if c.rank == 0:
        delegate = functions.send(X.clone().requires_grad_(), c, 1, tag=1)
        time.sleep(1)  # so that rank 1's time is over first
        delegate.backward()
    else:
        functions.recv(c, 0, tag=2)


@mistake(
    {
        1: (
            "CommunicationError: ...recv from rank 0, tag 2 ...It has sent send, tag 1 with float32"
            " (100000,)"
        )
    },
    waits=True,
)
def tags_that_differ_with_a_large_tensor(c):
    if c.rank == 0:
        functions.send(LARGE, c, 1, tag=1)
    else:
        functions.recv(c, 0, tag=2)


@mistake(
    {
        1: (
            "CommunicationError: Rank 1 waited 1.5 s in recv from rank 0, tag 0 ...Rank 0 is in no "
            "call now...Nothing from it is waiting here."
        )
    },
    waits=True,
)
def recv_without_a_send(c):
    if c.rank == 1:
        functions.recv(c, 0)


@mistake(
    {
        0: (
            "CommunicationError: Rank 0 waited 1.5 s in send to rank 1, tag 0 ...Rank 1 is in no "
            "call now"
        )
    },
    waits=True,
)
def a_large_send_without_a_recv(c):
    if c.rank == 0:
        functions.send(LARGE, c, 1)


@mistake(
    {
        0: (
            "CommunicationError: ...send.backward from rank 1 ...Is that part of its loss, does it "
            "call backward()"
        )
    },
    waits=True,
)
def two_sends_and_one_recv(c):
    if c.rank == 0:
        x = X.clone().requires_grad_()
        first, second = functions.send(x, c, 1), functions.send(2 * x, c, 1)
        first.backward()
        second.backward()
    else:
        functions.recv(c, 0).sum().backward()


@mistake(
    {
        1: (
            "CommunicationError: Rank 1 called recv, but rank 0 sent send_obj, tag 0 with ...: send"
            " goes with recv."
        )
    }
)
def recv_of_an_object(c):
    if c.rank == 0:
        c.send_obj("word", 1)
    else:
        functions.recv(c, 0)


@mistake(
    {
        1: (
            "CommunicationError: Rank 1 called recv_obj, but rank 0 sent send, tag 0 with float32 "
            "(3,): send_obj goes with recv_obj."
        )
    }
)
def recv_obj_of_a_tensor(c):
    if c.rank == 0:
        functions.send(X, c, 1)
    else:
        c.recv_obj(0)


@mistake(
    dict.fromkeys(
        range(2),
        "CommunicationError: Rank ...waited 1.5 s in recv from rank ...waits in recv from rank",
    ),
    waits=True,
)
def two_ranks_receive_from_each_other(c):
    functions.recv(c, 1 - c.rank)


@mistake(
    {
        rank: (
            f"CommunicationError: Rank {rank} waited 1.5 s in recv from rank {(rank + 1) % 3}, tag "
            f"5 ...Rank {(rank + 1) % 3} wait...in recv from rank {(rank + 2) % 3}, tag 5"
        )
        for rank in range(3)
    },
    ranks=3,
    waits=True,
)
def a_ring_of_three_that_receive(c):
    functions.recv(c, (c.rank + 1) % 3, tag=5)


@mistake(
    {
        rank: (
            f"CommunicationError: ...Rank {rank} is in allgather: it has {mine}, rank {1 - rank} "
            f"sent {other} (3,). The dtypes must agree."
        )
        for rank, mine, other in ((0, "float32", "float64"), (1, "float64", "float32"))
    }
)
def allgather_of_two_dtypes(c):
    functions.allgather(c, X if c.rank == 0 else X.double())


@mistake(
    dict.fromkeys(range(2), "CommunicationError: ...alltoall: it has ...The dtypes must agree.")
)
def alltoall_of_two_dtypes(c):
    functions.alltoall(c, [X, X] if c.rank == 0 else [X.long(), X.long()])


@mistake(
    {
        0: (
            "CommunicationError: Rank 0 is in gather, root 0: it has float32, rank 1 sent bfloat16 "
            "(3,). The dtypes must agree."
        )
    }
)
def gather_of_two_dtypes(c):
    functions.gather(c, X if c.rank == 0 else X.bfloat16())


@mistake(
    dict.fromkeys(
        range(3),
        "CommunicationError: ...allreduce: its tensor is ..., that of rank ...They cannot be "
        "added.",
    ),
    ranks=3,
)
def allreduce_of_two_dtypes(c):
    functions.allreduce(c, X.double() if c.rank == 2 else X)


@mistake(
    {
        0: (
            "CommunicationError: ...allreduce: its tensor is float32 (3,), that of rank 1 is "
            "float32 (1, 3). They cannot be added."
        ),
        1: (
            "CommunicationError: ...allreduce: its tensor is float32 (1, 3), that of rank 0 is "
            "float32 (3,). They cannot be added."
        ),
    }
)
def allreduce_of_two_shapes(c):
    functions.allreduce(c, X.view(1, 3) if c.rank else X)


@mistake(dict.fromkeys(range(2), f"CommunicationError: ...{NEXT}"))
def collectives_in_another_order(c):
    if c.rank == 0:
        functions.allgather(c, X)
        functions.allreduce(c, X)
    else:
        functions.allreduce(c, X)
        functions.allgather(c, X)


@mistake(dict.fromkeys(range(2), f"CommunicationError: ...bcast...{NEXT}, with the same root"))
def bcast_from_two_roots(c):
    functions.bcast(c, X, root=c.rank)
    c.barrier()


@mistake(dict.fromkeys(range(2), f"CommunicationError: ...bcast...{NEXT}, with the same root"))
def bcast_from_two_roots_where_one_looks_late(c):
    """Rank 1 finds the barrier and its failure in one look.

    Step by step: it finds all that it needs for the barrier, and that rank 0 has failed in this
    very barrier.
    """
    bcast, barrier = c.next_call(), c.next_call()
    time.sleep(0.5)  # now neither has seen what the other sends
    c.bcast_tensors(bcast, "bcast", [X], root=c.rank)
    c.exchange(barrier, "barrier", {1 - c.rank: []}, [])
    time.sleep(0.5 * c.rank)
    c.exchange(barrier, "barrier", {}, [1 - c.rank])


@mistake(dict.fromkeys(range(2), f"CommunicationError: ...bcast...{NEXT}"))
def bcast_from_two_roots_seen_in_backward(c):
    functions.bcast(c, X.clone().requires_grad_(), root=c.rank).sum().backward()


@mistake(
    dict.fromkeys(
        range(2),
        "CommunicationError: Rank ...waited 1.5 s in bcast, root ...waits in bcast, root "
        f"...{NEXT}",
    ),
    waits=True,
)
def bcast_where_each_waits_for_the_other(c):
    functions.bcast(c, X, root=1 - c.rank)


@mistake(dict.fromkeys(range(2), f"CommunicationError: ...gather...{NEXT}"))
def gather_on_one_rank_and_allgather_on_the_other(c):
    if c.rank == 0:
        functions.gather(c, X)
    else:
        functions.allgather(c, X)


@mistake(dict.fromkeys(range(2), "CommunicationError: ...barrier"), waits=True)
def a_barrier_and_a_recv(c):
    if c.rank == 0:
        c.barrier()
    else:
        functions.recv(c, 0)


@mistake(
    dict.fromkeys(
        (0, 2),
        "CommunicationError: ...waited 1.5 s in allreduce (test_mistakes_messages.py, line ...Rank "
        f"1 is in no call now...{NEXT}",
    ),
    ranks=3,
    waits=True,
)
def a_collective_that_one_rank_leaves_out(c):
    if c.rank != 1:
        functions.allreduce(c, X)


@mistake(dict.fromkeys(range(3), f"CommunicationError: ...{NEXT}"), ranks=3)
def a_collective_that_one_rank_leaves_out_before_another(c):
    if c.rank != 1:
        functions.allreduce(c, X)
    c.barrier()


@mistake(
    {
        0: "CommunicationError: Rank 0 waited 1.5 s in allgather ...Rank 1 is in no call now",
        1: "ValueError: a mistake of its own",
    },
    waits=True,
)
def an_exception_of_one_rank(c):
    if c.rank == 1:
        raise ValueError("a mistake of its own")
    functions.allgather(c, X)


@mistake(
    dict.fromkeys(
        range(2), "CommunicationError: ...waited 1.5 s in allgather_obj ...Rank 2 is in no call now"
    ),
    ranks=3,
    waits=True,
)
def split_without_one_rank(c):
    if c.rank < 2:
        c.split(0)


@mistake(dict.fromkeys(range(2), "ValueError: Communicator ... is closed."))
def calls_on_a_part_that_is_closed(c):
    part = c.split(0)
    functions.allgather(part, X)
    c.barrier()
    part.close()
    functions.allgather(part, X)


@pytest.mark.parametrize("program", all_of(__name__), ids=lambda program: program.__name__)
def test_all_are_told(program, pool, tmp_path):
    check(pool, program, tmp_path)
