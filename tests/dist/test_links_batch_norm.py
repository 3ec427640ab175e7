"""MultiNodeBatchNorm against nn.BatchNorm on the concatenated batch of all ranks."""

import copy

import pytest
import torch
from torch import nn

from manyhands import links

CHANNELS = 3
REST = {2: (), 3: (5,), 4: (2, 3), 5: (2, 1, 3)}
KIND = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}


def batches(n, dim, sizes, dtype=torch.float64):
    torch.manual_seed(2)
    return [
        torch.randn(sizes[rank], CHANNELS, *REST[dim], dtype=dtype) * (rank + 1) + rank
        for rank in range(n)
    ]


def on_ranks(c, xs, state, settings):
    norm = links.MultiNodeBatchNorm(CHANNELS, c, **settings, dtype=xs[0].dtype)
    norm.load_state_dict(state)
    x = xs[c.rank].requires_grad_()
    for _ in range(2):
        norm.zero_grad()
        x.grad = None
        y = norm(x)
        (y * weights(y, c.rank)).sum().backward()
    return y.detach(), x.grad, [p.grad for p in norm.parameters()], list(norm.buffers())


def weights(y, rank):
    return torch.arange(y.numel(), dtype=y.dtype).view_as(y) % 7 - 3 + rank


def compare(pool, n, dim, sizes, **settings):
    xs = batches(n, dim, sizes)
    alone = KIND[dim](CHANNELS, **settings, dtype=torch.float64)
    for p in alone.parameters():
        nn.init.normal_(p, 1)
    state, leaves = copy.deepcopy(alone.state_dict()), [x.clone().requires_grad_() for x in xs]
    for _ in range(2):
        alone.zero_grad()
        ys = alone(torch.cat(leaves)).split(sizes[:n])
        of_xs = torch.autograd.grad(
            sum((y * weights(y.detach(), rank)).sum() for rank, y in enumerate(ys)),
            [*leaves, *alone.parameters()],
        )
    for rank, (y, of_x, of_parameters, buffers) in enumerate(
        pool.values(on_ranks, n, xs, state, settings)
    ):
        torch.testing.assert_close(y, ys[rank].detach())
        torch.testing.assert_close(of_x, of_xs[rank])
        # the mean over the ranks
        torch.testing.assert_close(of_parameters, [g / n for g in of_xs[n:]])
        torch.testing.assert_close(buffers, list(alone.buffers()))
        assert (
            all(
                torch.equal(value, other)
                for value, other in zip(
                    buffers, pool.values(same_buffers, n, xs, state, settings)[0], strict=True
                )
            )
            if rank == n - 1
            else True
        )


def same_buffers(c, xs, state, settings):
    return on_ranks(c, xs, state, settings)[3]


@pytest.mark.parametrize("dim", REST)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_values_and_gradients_are_those_of_the_whole_batch(pool, n, dim):
    compare(pool, n, dim, [4, 1, 3, 6])


@pytest.mark.parametrize(
    "settings",
    [
        {"affine": False},
        {"momentum": None},
        {"track_running_stats": False},
        {"eps": 0.1, "momentum": 0.7},
    ],
    ids=str,
)
def test_settings(pool, settings):
    compare(pool, 3, 4, [4, 1, 3], **settings)


@pytest.mark.parametrize("sizes", [[4, 0], [0, 0, 3], [0, 2, 0, 1]])
def test_ranks_without_examples(pool, sizes):
    compare(pool, len(sizes), 4, sizes)


def far_from_zero(c, x):
    norm = links.MultiNodeBatchNorm(1, c)
    return norm(x[c.rank :: c.size]).detach()


def test_digits_are_kept_where_the_mean_is_large(pool):
    # float32: E[x^2] - E[x]^2 would have no digit left
    x = 10000 + torch.randn(60, 1, generator=torch.Generator().manual_seed(0))
    exact = (
        (x.double() - x.double().mean()) / (x.double().var(correction=0) + 1e-5).sqrt()
    ).float()
    for rank, y in enumerate(pool.values(far_from_zero, 3, x)):
        torch.testing.assert_close(y, exact[rank::3], atol=2e-3, rtol=0)


def in_evaluation(c, x):
    """Rank 0 alone evaluates, and nobody waits; then all do it without running statistics."""
    norm = links.MultiNodeBatchNorm(CHANNELS, c).eval()
    norm.running_mean.fill_(2)
    alone = norm(x) if c.rank == 0 else None
    on_batch = links.MultiNodeBatchNorm(CHANNELS, c, track_running_stats=False).eval()
    return alone, on_batch(x + c.rank).detach()


def test_evaluation_communicates_only_without_running_statistics(pool):
    x = batches(1, 4, [5], torch.float32)[0]
    (alone, y0), (_, y1) = pool.values(in_evaluation, 2, x)
    torch.testing.assert_close(alone, (x - 2) / (1 + 1e-5) ** 0.5)
    torch.testing.assert_close(
        torch.cat([y0, y1]),
        nn.BatchNorm2d(CHANNELS, track_running_stats=False)(torch.cat([x, x + 1])).detach(),
    )


def low_precision(c, x):
    norm = links.MultiNodeBatchNorm(CHANNELS, c)
    x = x[c.rank].requires_grad_()
    y = norm(x)
    y.square().sum().backward()
    return y.detach(), x.grad, norm.weight.grad


def test_bfloat16(pool):
    xs = batches(2, 4, [3, 5], torch.bfloat16)
    exact = nn.BatchNorm2d(CHANNELS)(torch.cat(xs).float()).split([3, 5])
    for rank, (y, of_x, of_weight) in enumerate(pool.values(low_precision, 2, xs)):
        assert y.dtype == of_x.dtype == torch.bfloat16 and of_weight.dtype == torch.float32
        torch.testing.assert_close(y.float(), exact[rank].detach(), atol=0.02, rtol=0.01)


def frozen_on_one(c, x):
    """Rank 0 needs no gradient at all: the others' are not held up, and exact."""
    norm = links.MultiNodeBatchNorm(CHANNELS, c, affine=False, dtype=torch.float64)
    x = x[c.rank].requires_grad_(c.rank > 0)
    y = norm(x)
    if c.rank:
        (y * weights(y, c.rank)).sum().backward()
    return x.grad


def test_a_rank_that_needs_no_gradient_stops_nobody(pool):
    xs = batches(3, 4, [2, 3, 4])
    leaves = [x.clone().requires_grad_() for x in xs]
    ys = nn.BatchNorm2d(CHANNELS, affine=False, dtype=torch.float64)(torch.cat(leaves)).split(
        [2, 3, 4]
    )
    sum((y * weights(y.detach(), rank)).sum() for rank, y in enumerate(ys) if rank).backward()
    gradients = pool.values(frozen_on_one, 3, xs, timeout_s=5)
    torch.testing.assert_close(gradients[1:], [x.grad for x in leaves[1:]])


def mistakes(c, xs):
    try:
        links.MultiNodeBatchNorm(CHANNELS, c)(xs[c.rank])
    except ValueError as error:
        return str(error), c.allreduce_obj(1)
    return None


def test_mistakes_are_told(pool):
    row = torch.zeros(1, CHANNELS)
    for text, size in pool.values(mistakes, 2, [row, row[:0]]):
        assert "at least two values" in text and size == 2
    for text, _ in pool.values(mistakes, 2, [torch.zeros(2, CHANNELS + 1), torch.zeros(3)]):
        assert "takes x of shape (batch, 3)" in text


def one_stays_away(c):
    if c.rank == 0:
        links.MultiNodeBatchNorm(CHANNELS, c)(torch.zeros(4, CHANNELS))


def test_a_rank_that_stays_away_is_told_in_time(pool):
    outcomes = pool.run(one_stays_away, 2, timeout_s=1)
    assert outcomes[0].error.type == "CommunicationError" and outcomes[0].seconds < 10
