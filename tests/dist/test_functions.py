"""Values and gradients of every function against one process.

Gradients are also compared with numerical gradients of the sum of all ranks' objectives.
"""

import pytest
import torch
from one_process import (
    CALLS,
    expected_outputs,
    in_one_process,
    inputs,
    objective,
    on_a_rank,
    outputs,
)

from manyhands import functions


def rooted(call, n):
    return range(n) if call in ("bcast", "gather", "scatter") else (0,)


def all_roots(c, call, uneven):
    return [on_a_rank(c, call, root, uneven) for root in rooted(call, c.size)]


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("uneven", [False, True], ids=["even", "uneven"])
@pytest.mark.parametrize("call", CALLS)
def test_against_one_process(pool, call, uneven, n):
    results = pool.values(all_roots, n, call, uneven)
    for root in rooted(call, n):
        for rank, (ys, gradients) in enumerate(in_one_process(call, n, root, uneven)):
            got_ys, got_gradients = results[rank][root]
            assert len(got_ys) == len(ys) and all(
                torch.equal(a, b) if call != "allreduce" else torch.allclose(a, b)
                for a, b in zip(got_ys, ys, strict=True)
            )
            for got, gradient in zip(got_gradients, gradients, strict=True):
                torch.testing.assert_close(got, gradient, rtol=1e-13, atol=1e-13)


def test_the_reference_is_right():
    """By hand, for three ranks with the numbers 1, 2, 3: what each gets."""
    numbers = [[torch.tensor(float(r + 1))] for r in range(3)]
    outputs = {
        call: [[y.item() for y in ys] for ys in expected_outputs(call, numbers, 1)]
        for call in ("bcast", "gather", "allgather", "allreduce", "ring")
    }
    assert (
        outputs["bcast"] == [[2], [2], [2]]
        and outputs["gather"] == [[], [1, 2, 3], []]
        and outputs["allgather"] == [[1, 2, 3]] * 3
    )
    assert outputs["allreduce"] == [[6]] * 3 and outputs["ring"] == [[3], [1], [2]]
    squares = [[torch.tensor(10 * i + j) for j in range(3)] for i in range(3)]
    assert [[y.item() for y in ys] for ys in expected_outputs("alltoall", squares)] == [
        [0, 10, 20],
        [1, 11, 21],
        [2, 12, 22],
    ]
    assert [[y.item() for y in ys] for ys in expected_outputs("scatter", squares, 2)] == [
        [20],
        [21],
        [22],
    ]


class Whole(torch.autograd.Function):
    """All ranks' program as one function on rank 0.

    It leads from all ranks' tensors to the sum of the objectives.
    """

    @staticmethod
    def forward(ctx, c, call, root, counts, *leaves):
        total, gradients = evaluate(c, call, root, split(leaves, counts))
        ctx.save_for_backward(*(g for of_a_rank in gradients for g in of_a_rank))
        return total

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        return None, None, None, None, *(gradient * g for g in ctx.saved_tensors)


def split(leaves, counts):
    pieces = iter(leaves)
    return [[next(pieces) for _ in range(count)] for count in counts]


def evaluate(c, call, root, everyones):
    """Hand out the tensors from rank 0, and run the program on all ranks.

    Rank 0 gets the sum and all gradients. None for `everyones` ends the others.
    """
    mine = c.bcast_obj(everyones and [[x.detach() for x in xs] for xs in everyones])
    if mine is None:
        return None
    xs = [x.clone().requires_grad_() for x in mine[c.rank]]
    with torch.enable_grad():
        ys, delegate = outputs(c, call, xs, root)
        J = objective(ys, c.rank)
        (functions.pseudo_connect(delegate, J)[0] if delegate is not None else J).backward()
    gathered = c.gather_obj((J.item(), [x.grad for x in xs]))
    return (
        (
            torch.tensor(sum(J for J, _ in gathered), dtype=torch.float64),
            [gradients for _, gradients in gathered],
        )
        if c.rank == 0
        else True
    )


def gradcheck(c, call, root, dtype):
    if c.rank:
        while evaluate(c, call, root, None):
            pass
        return None
    everyones = [
        [x.detach()[:1, :2].to(dtype).requires_grad_() for x in inputs(call, c.size, rank, root)]
        for rank in range(c.size)
    ]
    leaves = [x for xs in everyones for x in xs]
    try:
        return torch.autograd.gradcheck(
            lambda *leaves: Whole.apply(c, call, root, [len(xs) for xs in everyones], *leaves),
            leaves,
        )
    finally:
        evaluate(c, call, root, None)


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("call", CALLS)
def test_gradcheck(pool, call, n):
    assert pool.values(gradcheck, n, call, n - 1, torch.float64)[0] is True


def deaf(c):
    """gradcheck must fail if one rank's gradient is wrong: rank 1 leaves a factor out."""
    global evaluate
    right = evaluate

    def wrong(c, call, root, everyones):
        result = right(c, call, root, everyones)
        return (
            result
            if not isinstance(result, tuple)
            else (
                result[0],
                [
                    [g * (1 + (rank == 1)) for g in gradients]
                    for rank, gradients in enumerate(result[1])
                ],
            )
        )

    evaluate = wrong
    try:
        return gradcheck(c, "allgather", 0, torch.float64)
    finally:
        evaluate = right


def test_gradcheck_sees_a_wrong_gradient(gloo_pool):
    outcomes = gloo_pool.run(deaf, 2)
    assert outcomes[0].error.type == "GradcheckError" and outcomes[1].error is None


def names(c):
    halves = c.split(c.rank % 2, key=-c.rank)
    ranks = [
        halves.rank,
        halves.size,
        halves.allreduce_obj([c.rank]),
        c.intra_rank,
        c.intra_size,
        c.inter_rank,
        c.inter_size,
    ]
    alone = c.split(c.rank)
    ranks += [alone.size, functions.allgather(alone, torch.tensor(c.rank))[0].item()]
    return ranks, c.split(None if c.rank else 7) is None, c.backend


def test_split_orders_by_key(pool):
    results = pool.values(names, 4)
    assert [parts[0][:3] for parts in results] == [
        [1, 2, [2, 0]],
        [1, 2, [3, 1]],
        [0, 2, [2, 0]],
        [0, 2, [3, 1]],
    ]
    assert [parts[0][3:] for parts in results] == [[r, 4, 0, 1, 1, r] for r in range(4)]
    assert [parts[1] for parts in results] == [False, True, True, True] and {
        parts[2] for parts in results
    } == {pool.backend}


def two_at_once(c):
    """The same ranks in three communicators.

    Messages of each meet only their own, whatever the order, and gradients too.
    """
    again, other = c.split(0), c.split(0, key=-c.rank)
    x = torch.tensor(float(c.rank + 1), requires_grad=True)
    peer = 1 - c.rank
    if c.rank == 0:
        sent = [
            functions.send(x * 1, c, peer),
            functions.send(x * 10, again, peer),
            functions.send(x * 100, other, 1 - other.rank),
        ]
        sum(sent).backward()
        return x.grad.item()
    third, second, first = (
        functions.recv(other, 1 - other.rank),
        functions.recv(again, peer),
        functions.recv(c, peer),
    )
    (first * 2 + second * 3 + third * 5).backward()
    return [first.item(), second.item(), third.item()]


def test_communicators_do_not_meet(pool):
    assert pool.values(two_at_once, 2) == [2 + 30 + 500, [1, 10, 100]]
