"""Mistakes that show in backward.

They are graphs that are not connected, and gradients that do not arrive or that no rank wants.
"""

import pytest
import torch
from mistakes import all_of, check, mistake

from manyhands import functions


def leaf():
    return torch.arange(3.0, requires_grad=True)


@mistake(
    {
        0: (
            "CommunicationError: Rank 0 waited 1.5 s in send.backward from rank 1 "
            "(test_mistakes_backward.py, line ...does it call backward()"
        )
    },
    waits=True,
)
def backward_on_one_rank_only(c):
    if c.rank == 0:
        functions.send(leaf(), c, 1).backward()
        return None
    return functions.recv(c, 0)  # kept, and never used


@mistake({0: "CommunicationError: Rank 0 waited 1.5 s in bcast.backward from rank 1"}, waits=True)
def a_bcast_kept_and_not_used(c):
    y = functions.bcast(c, leaf())
    if c.rank == 0:
        y.sum().backward()
    return y


@mistake(
    {
        rank: f"CommunicationError: Rank {rank} waited 1.5 s in allgather.backward from rank 2"
        for rank in (0, 1)
    },
    ranks=3,
    waits=True,
)
def an_allgather_kept_and_not_used_on_one_rank(c):
    ys = functions.allgather(c, leaf())
    if c.rank < 2:
        sum(y.sum() for y in ys).backward()
    return ys


@mistake(
    {1: "CommunicationError: Rank 1 waited 1.5 s in alltoall.backward from rank 0"}, waits=True
)
def an_alltoall_kept_and_not_used_on_one_rank(c):
    ys = functions.alltoall(c, [leaf(), leaf()])
    if c.rank == 1:
        (ys[0] + ys[1]).sum().backward()
    return ys


@mistake({0: "CommunicationError: ...scatter.backward from rank 1"}, waits=True)
def a_scatter_kept_and_not_used_on_one_rank(c):
    y = functions.scatter(c, [leaf(), leaf()])
    if c.rank == 0:
        y.sum().backward()
    return y


@mistake({1: "CommunicationError: Rank 1 waited 1.5 s in gather.backward from rank 0"}, waits=True)
def a_gather_kept_and_not_used_at_the_root(c):
    y = functions.gather(c, leaf())
    if c.rank == 1:
        y.backward()
    return y


@mistake({0: "CommunicationError: Rank 0 waited 1.5 s in allreduce.backward"}, waits=True)
def an_allreduce_kept_and_not_used_on_one_rank(c):
    y = functions.allreduce(c, leaf())
    if c.rank == 0:
        y.sum().backward()
    return y


@mistake(
    {0: "CommunicationError: ...allreduce.backward: rank 1 reports: its result was dropped there"}
)
def an_allreduce_dropped_on_one_rank(c):
    y = functions.allreduce(c, leaf())
    if c.rank == 0:
        y.sum().backward()


@mistake(
    {
        0: (
            "CommunicationError: A gradient came from global rank 1 for a send of this rank whose "
            "result is not part of any graph here: it is lost. Give what send returned (the "
            "delegate) to recv as delegate_variable"
        )
    }
)
def a_graph_that_is_not_connected(c):
    if c.rank == 0:
        phi = functions.send(leaf(), c, 1)
        # without the delegate: backward does not pass through the send
        functions.recv(c, 1).sum().backward()
        c.barrier()
        del phi
        c.send_obj("the next call", 1)
    else:
        psi = functions.send(2 * functions.recv(c, 0), c, 0)
        psi.backward()
        c.barrier()


@mistake(
    {
        0: (
            "CommunicationError: A gradient came from global rank 1 for a send of this rank whose "
            "result is not part of any graph here"
        )
    }
)
def a_delegate_that_is_dropped_while_its_gradient_is_under_way(c):
    if c.rank == 0:
        functions.send(leaf(), c, 1)
    else:
        functions.recv(c, 0).sum().backward()  # what came says nothing yet of the drop
    c.barrier()


@mistake(
    {
        1: (
            "CommunicationError: Rank 0 does not wait for the gradient of its send any more: the "
            "result was dropped...give the delegate to recv as delegate_variable"
        )
    }
)
def a_delegate_that_is_dropped(c):
    if c.rank == 0:
        functions.send(leaf(), c, 1)
        c.barrier()
    else:
        y = functions.recv(c, 0)
        c.barrier()
        y.sum().backward()


@mistake(
    {
        0: (
            "CommunicationError: Rank 1 does not wait for the gradient of its gather any more: the "
            "result was dropped"
        )
    }
)
def a_delegate_of_gather_that_is_dropped(c):
    y = functions.gather(c, leaf())
    if c.rank == 1:
        del y
    c.barrier()
    if c.rank == 0:
        y[1].sum().backward()


@mistake({0: "RuntimeError: Trying to backward through the graph a second time"})
def backward_twice_where_it_was_sent(c):
    if c.rank == 0:
        phi = functions.send(leaf(), c, 1)
        phi.backward()
        phi.backward()
    else:
        functions.recv(c, 0).sum().backward()


@mistake({1: "RuntimeError: Trying to backward through the graph a second time"})
def backward_twice_where_it_was_received(c):
    if c.rank == 0:
        functions.send(leaf(), c, 1).backward()
    else:
        y = functions.recv(c, 0).sum()
        y.backward()
        y.backward()


@mistake(
    dict.fromkeys(range(2), "RuntimeError: Trying to backward through the graph a second time")
)
def backward_twice_through_a_collective(c):
    y = sum(functions.allgather(c, leaf())).sum()
    y.backward()
    y.backward()


@mistake(
    dict.fromkeys(
        range(2),
        "RuntimeError: trying to differentiate twice a function that was marked with "
        "@once_differentiable",
    )
)
def a_second_derivative(c):
    x = leaf()
    y = sum((y**2).sum() for y in functions.allgather(c, x**2))
    (gradient,) = torch.autograd.grad(y, x, create_graph=True)
    gradient.sum().backward()


@mistake(
    {
        0: "CommunicationError: Rank 0 waited 1.5 s in send.backward from rank 1 ...",
        1: "RuntimeError: a mistake of its own",
    },
    waits=True,
)
def an_exception_before_backward(c):
    if c.rank == 0:
        functions.send(leaf(), c, 1).backward()
        return None
    y = functions.recv(c, 0)
    c.kept = y  # as in a notebook, where a failed cell leaves its variables behind
    raise RuntimeError("a mistake of its own")


@mistake({})
def gradients_in_another_order_are_no_mistake(c):
    """Large and small messages under one tag; backward runs the other way round on one rank."""
    for size in (3, 100_000):
        if c.rank == 0:
            xs = [torch.ones(size, requires_grad=True) for _ in range(3)]
            for phi in [functions.send(x, c, 1) for x in xs]:
                phi.backward()
            assert [x.grad[0].item() for x in xs] == [1.0, 2.0, 3.0]
        else:
            ys = [functions.recv(c, 0) for _ in range(3)]
            for i in (2, 0, 1):
                ((i + 1) * ys[i]).sum().backward()


@mistake({})
def an_output_that_nobody_keeps_is_no_mistake(c):
    x = leaf()
    if c.rank == 0:
        functions.send(x, c, 1).backward()
        assert x.grad is None
        functions.bcast(c, x).sum().backward()
        assert x.grad.tolist() == [1.0] * 3
    else:
        functions.recv(c, 0)
        functions.bcast(c, None)


@pytest.mark.parametrize("program", all_of(__name__), ids=lambda program: program.__name__)
def test_backward_tells(program, pool, tmp_path):
    check(pool, program, tmp_path)
