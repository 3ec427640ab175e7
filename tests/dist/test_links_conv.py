"""ParallelConv2d against nn.Conv2d.

There are both splits, both meanings of the loss, uneven channels, several layers, and 1 to 4 ranks.
"""

import copy

import pytest
import torch
from torch import nn

from manyhands import functions, links

SETTINGS = {
    "plain": {"kernel_size": 3},
    "padded": {"kernel_size": (3, 2), "padding": (1, 0), "stride": 2},
    "dilated, circular, no bias": {
        "kernel_size": 3,
        "padding": 2,
        "dilation": 2,
        "padding_mode": "circular",
        "bias": False,
    },
    "same": {"kernel_size": 3, "padding": "same"},
}


def layer(settings, channels=(5, 7)):
    torch.manual_seed(4)
    return nn.Conv2d(*channels, **settings, dtype=torch.float64)


def image(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(6))


def loss_of(y):
    return (y * (torch.arange(y.numel(), dtype=y.dtype).view_as(y) % 5 - 2)).sum()


def on_ranks(c, conv, x, split, loss):
    made = links.ParallelConv2d.from_conv2d(
        conv if c.rank == 0 else None, c, split=split, loss=loss
    )
    x.requires_grad_()
    y = made(functions.bcast(c, x) if loss == "summed" else x)
    loss_of(y).backward()
    made.to_conv2d()
    return y.detach(), x.grad, [p.grad for p in made.parameters()], made.full_weight()


def shard_of(tensor, conv_parts, rank, dim):
    return tensor.split(conv_parts, dim)[rank]


def compare(pool, conv, x, n, split, loss):
    reference, leaf = copy.deepcopy(conv), x.clone().requires_grad_()
    expected = reference(leaf)
    loss_of(expected).backward()
    factor = n if loss == "summed" else 1
    sizes = links.parallel_conv.share_sizes(
        conv.out_channels if split == "out" else conv.in_channels, n
    )
    assert (
        sum(sizes) == (conv.out_channels if split == "out" else conv.in_channels)
        and max(sizes) - min(sizes) <= 1
    )
    for rank, (y, of_x, of_parameters, whole) in enumerate(
        pool.values(on_ranks, n, conv, x, split, loss)
    ):
        torch.testing.assert_close(y, expected.detach())
        if loss == "replicated" or rank == 0:
            torch.testing.assert_close(of_x, factor * leaf.grad)
        wanted = [factor * reference.weight.grad.split(sizes, 0 if split == "out" else 1)[rank]]
        if conv.bias is not None and (split == "out" or rank == 0):
            wanted.append(
                factor
                * (
                    reference.bias.grad.split(sizes)[rank]
                    if split == "out"
                    else reference.bias.grad
                )
            )
        torch.testing.assert_close(of_parameters, wanted)
        torch.testing.assert_close(
            whole,
            (conv.weight.detach(), None if conv.bias is None else conv.bias.detach()),
            atol=0,
            rtol=0,
        )


@pytest.mark.parametrize("loss", ["replicated", "summed"])
@pytest.mark.parametrize("split", ["in", "out"])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_values_and_gradients_are_those_of_one_process(pool, n, split, loss):
    compare(pool, layer(SETTINGS["plain"]), image(2, 5, 6, 5), n, split, loss)


@pytest.mark.parametrize("split", ["in", "out"])
@pytest.mark.parametrize("settings", list(SETTINGS)[1:])
def test_settings(pool, settings, split):
    compare(pool, layer(SETTINGS[settings]), image(2, 5, 7, 6), 3, split, "replicated")


def test_an_image_without_batch_and_a_batch_without_images(pool):
    for shape in ((5, 6, 5), (0, 5, 6, 5)):
        for split in ("in", "out"):
            compare(pool, layer(SETTINGS["plain"]), image(*shape), 2, split, "replicated")


def two_layers(c, state, x, splits):
    """A network of two layers, trained for three steps: every rank computes the same loss."""
    first, second = (
        nn.Conv2d(3, 6, 3, padding=1, dtype=torch.float64),
        nn.Conv2d(6, 4, 3, dtype=torch.float64),
    )
    model = nn.Sequential(first, nn.ReLU(), second)
    model.load_state_dict(state)
    if c.size > 1:
        model[0], model[2] = (
            links.ParallelConv2d.from_conv2d(conv, c, split=split)
            for conv, split in zip((first, second), splits, strict=True)
        )
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.02), []
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    weights = [
        model[i].full_weight() if c.size > 1 else (model[i].weight.detach(), model[i].bias.detach())
        for i in (0, 2)
    ]
    return losses, weights


@pytest.mark.parametrize("splits", [("out", "in"), ("in", "out"), ("out", "out")], ids="-".join)
def test_training_several_layers_is_that_of_one_process(pool, splits):
    torch.manual_seed(8)
    state = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Conv2d(6, 4, 3)).double().state_dict()
    x = image(2, 3, 6, 6)
    expected = pool.values(two_layers, 1, state, x, splits)[0]
    assert expected[0][2] < expected[0][0]
    for result in pool.values(two_layers, 3, state, x, splits):
        torch.testing.assert_close(result, expected)


def same_seed(c, seed, split):
    torch.manual_seed(seed)
    made = links.ParallelConv2d(c, 4, 5, 3, split=split)
    drawn = torch.rand(1)
    whole = made.to_conv2d()
    return (
        whole.weight.detach(),
        whole.bias.detach(),
        drawn,
        sum(p.numel() for p in made.parameters()),
    )


@pytest.mark.parametrize("split", ["in", "out"])
def test_the_same_seed_gives_the_weights_of_conv2d(pool, split):
    torch.manual_seed(11)
    conv = nn.Conv2d(4, 5, 3)
    expected = conv.weight.detach(), conv.bias.detach(), torch.rand(1)
    shards = pool.values(same_seed, 3, 11, split)
    for weight, bias, drawn, _ in shards:
        torch.testing.assert_close((weight, bias, drawn), expected, atol=0, rtol=0)
    # each number lies on one rank
    assert sum(count for *_, count in shards) == sum(p.numel() for p in conv.parameters())


def different_seeds(c, x):
    """Ranks of other seeds still make one dense layer: the one that full_weight tells."""
    made = links.ParallelConv2d(c, 5, 7, 3, dtype=torch.float64)
    again = copy.deepcopy(made)
    assert again.c is c and again.weight is not made.weight and "rank" in repr(made)
    return made(x).detach(), made.to_conv2d()(x).detach()


def test_ranks_seeded_differently(pool):
    outputs = pool.values(different_seeds, 3, image(2, 5, 6, 5))
    for y, expected in outputs:
        torch.testing.assert_close(y, expected)
        torch.testing.assert_close(y, outputs[0][0], atol=0, rtol=0)


def mistakes(c):
    messages = []

    def tell(call):
        try:
            call()
            messages.append("nothing")
        except ValueError as error:
            messages.append(str(error))

    tell(lambda: links.ParallelConv2d(c, 4, 4, 3, split="both"))
    tell(lambda: links.ParallelConv2d(c, 4, 4, 3, loss="mean"))
    tell(lambda: links.ParallelConv2d(c, 1, 4, 3, split="in"))
    tell(lambda: links.ParallelConv2d(c, 4, 1, 3))
    tell(lambda: links.ParallelConv2d(c, 4, 4, 3)(torch.zeros(1, 2, 5, 5)))
    tell(lambda: links.ParallelConv2d.from_conv2d(nn.Conv2d(4, 4, 3, groups=2), c))
    return messages, c.allreduce_obj(1)


def test_mistakes_are_told(pool):
    remedies = [
        '"in" for the input channels',
        '"summed" if the objective',
        "Take fewer ranks",
        "Take fewer ranks",
        "with all its input channels",
        "groups=1",
    ]
    for messages, size in pool.values(mistakes, 2):
        assert size == 2
        for text, remedy in zip(messages, remedies, strict=True):
            assert remedy in text, (text, remedy)


def one_goes_no_way_back(c):
    y = links.ParallelConv2d(c, 4, 4, 3)(torch.ones(1, 4, 5, 5, requires_grad=True))
    if c.rank == 0:
        y.sum().backward()


def test_a_rank_that_does_not_go_backward_is_told_in_time(pool):
    outcomes = pool.run(one_goes_no_way_back, 2, timeout_s=1)
    assert outcomes[0].error.type == "CommunicationError" and outcomes[0].seconds < 10


def frozen(c, split):
    """What is left of a frozen layer in eval mode, cut and put together again."""
    conv = nn.Conv2d(4, 4, 3).requires_grad_(False).eval()
    made = links.ParallelConv2d.from_conv2d(conv, c, split=split)
    whole = made.to_conv2d()
    return (
        made.shard.training,
        whole.training,
        [p.requires_grad for layer in (made, whole) for p in layer.parameters()],
    )


@pytest.mark.parametrize("split", ["in", "out"])
def test_a_frozen_layer_stays_frozen(pool, split):
    for shard_trains, whole_trains, wanted in pool.values(frozen, 2, split):
        assert not (shard_trains or whole_trains or any(wanted))
