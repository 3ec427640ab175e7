"""Networks as blocks: weights and multiplications as torchvision and the papers count them."""

import pytest

from manyhands.simulate import networks, resnet50_bytes


@pytest.mark.parametrize(
    "blocks, weights, multiply_adds",
    [
        (networks.resnet(50), 25_557_032, 4.089e9),
        (networks.resnet(101), 44_549_160, 7.801e9),
        (networks.resnet(152), 60_192_808, 11.514e9),
        (networks.vgg16(), 138_357_544, 15.470e9),
        (networks.alexnet(), 61_100_840, 0.7142e9),
        (networks.inception_v3(), 23_834_568, 5.71e9),
    ],
)
def test_as_torchvision_counts(blocks, weights, multiply_adds):
    assert networks.weights(blocks) == pytest.approx(weights, abs=0.5)
    assert networks.flops(blocks) / 6 == pytest.approx(multiply_adds, rel=1e-3)


def test_resnet_50_is_that_of_unit_05():
    assert 4 * networks.weights(networks.resnet(50)) == sum(resnet50_bytes())


def test_a_transformer_is_the_papers_equations():
    """Parameters and operations of a step with recomputation.

    Narayanan et al. 2021, equations 2 and 3.
    """
    depth, width, length, words = 40, 6144, 2048, 51_200
    blocks = networks.transformer(depth, width, length, words)
    want = 12 * depth * width**2 * (1 + 13 / (12 * width) + (words + length) / (12 * depth * width))
    assert networks.weights(blocks) == pytest.approx(want, rel=1e-6)
    of_blocks = 96 * length * depth * width**2 * (1 + length / (6 * width))
    assert networks.flops(blocks[:-1], recompute=True) == pytest.approx(of_blocks, rel=1e-9)


def test_layers_have_a_batch_and_a_speed():
    layer = networks.layers([networks.Block("a", 10, 3e6, 7)], 4, 1e9)[0]
    assert layer[:4] == pytest.approx((40, 0.024, 0.048, 4 * 7 * 4)) and layer.sums is None
    again = networks.layers([networks.Block("a", 10, 3e6, 7)], 4, 1e9, itemsize=2, recompute=True)[
        0
    ]
    assert again[:4] == pytest.approx((20, 0.024, 0.072, 4 * 7 * 2)) and list(
        map(len, again.sums)
    ) == [2, 4]


def test_bad_input_says_what_was_wrong():
    with pytest.raises(ValueError, match="depth is 18"):
        networks.resnet(18)
    with pytest.raises(ValueError, match="samples is 0"):
        networks.layers(networks.alexnet(), 0, 1e9)
