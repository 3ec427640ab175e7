"""Networks as lists of blocks, in forward order: their weights, multiplications, outputs.

What `step` takes is made of them by `layers`, with a batch and a speed.

    blocks = resnet(50)
    layers(blocks, samples=32, flops_per_s=5e12)       # [Layer, ...]: 32 images on a GPU that reaches 5 TFLOP/s

Convolutions are counted for images of 224 x 224, 1000 classes. A multiply-add is two operations.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from manyhands.simulate.checked_input import check_fields, check_real, check_whole
from manyhands.simulate.training_step import Layer


class Block(NamedTuple):
    """A block of a network's layers.

    `weights` says how many numbers it has, `multiply_adds` those of one sample's forward, and
    `outputs` how many numbers of one sample it hands on. `sums` are, of one sample, the sizes of
    what ranks that share the block all-reduce in forward and in backward (see `Layer`).
    """

    name: str
    weights: float
    multiply_adds: float
    outputs: float
    sums: tuple[tuple[float, ...], tuple[float, ...]] | None = None


def layers(
    blocks: Iterable[Block],
    samples: float,
    flops_per_s: float,
    itemsize: float = 4,
    backward: float = 2.0,
    recompute: bool = False,
    activation_itemsize: float | None = None,
) -> list[Layer]:
    """The `Layer`s of a micro-batch of `samples`, one for each block.

    They are for a device that reaches `flops_per_s`.

    `itemsize`: bytes of a gradient's number, as it travels; `activation_itemsize` of an
    activation's, the same where it is None. Backward takes `backward` times forward (two products
    for one), and once more with `recompute`, where the activations are computed again; ranks that
    share a block then repeat the all-reduces of its forward, too.
    """
    check_real("samples", samples, above=0)
    check_real("flops_per_s", flops_per_s, above=0, unit=" operations per second")
    check_real("backward", backward)
    wide = itemsize if activation_itemsize is None else activation_itemsize
    check_real("itemsize", itemsize, above=0, unit=" bytes")
    check_real("activation_itemsize", wide, above=0, unit=" bytes")
    blocks = list(blocks)
    if not blocks:
        raise ValueError("blocks is empty: a network has at least one block")
    made = []
    for number, block in enumerate(blocks):
        check_fields(f"Block {number}", block, Block)
        forward_s = 2 * block.multiply_adds * samples / flops_per_s
        usual: tuple[float, ...] = (block.outputs,) * 2
        ahead, back = block.sums or (usual, usual)
        sums = [
            [size * samples * wide for size in sizes] for sizes in (ahead, recompute * ahead + back)
        ]
        made.append(
            Layer(
                block.weights * itemsize,
                forward_s,
                (backward + recompute) * forward_s,
                block.outputs * samples * wide,
                sums if block.sums or recompute else None,
            )
        )
    return made


def flops(blocks: Iterable[Block], recompute: bool = False) -> float:
    """Operations of one sample in forward and backward."""
    return (8 if recompute else 6) * sum(block.multiply_adds for block in blocks)


def mfu(blocks: Iterable[Block], samples: float, seconds: float, flops_per_s: float) -> float:
    """The model FLOPs utilisation (MFU) of one GPU, from 0 to 1.

    It is the number of operations that its samples need, `flops(blocks)` for each, divided by those
    that it could compute in the `seconds` of a step at its peak, `flops_per_s`. What recomputation
    computes again is not counted. Chowdhery et al. 2022, PaLM, arXiv 2204.02311, appendix B.
    """
    check_real("seconds", seconds, above=0)
    check_real("flops_per_s", flops_per_s, above=0, unit=" operations per second")
    return flops(blocks) * samples / seconds / flops_per_s


def weights(blocks: Iterable[Block]) -> float:
    """How many numbers the network has."""
    return sum(block.weights for block in blocks)


def resnet(depth: int = 50) -> list[Block]:
    """ResNet-50, -101 or -152, block by block; strides are in the 3 x 3 convolutions.

    He et al. 2016, table 1.
    """
    counts = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}
    if check_whole("depth", depth) not in counts:
        raise ValueError(
            f"depth is {depth}: there are ResNets of {', '.join(map(str, counts))} layers here"
        )
    blocks = [Block("conv1", 64 * 3 * 49 + 128, 64 * 3 * 49 * 112**2, 64 * 56**2)]
    inputs, side = 64, 56
    for stage, (width, count) in enumerate(zip((64, 128, 256, 512), counts[depth], strict=True)):
        for number in range(count):
            before, side = side, side // 2 if stage and not number else side
            numbers: tuple[int, ...] = inputs * width, 9 * width * width, 4 * width * width
            done = numbers[0] * before**2 + (numbers[1] + numbers[2]) * side**2
            norms = 2 * (2 * width + 4 * width)
            if not number:  # the shortcut's own convolution
                shortcut = 4 * inputs * width
                numbers, done, norms = (
                    (*numbers, shortcut),
                    done + shortcut * side**2,
                    norms + 8 * width,
                )
            inputs = 4 * width
            blocks.append(
                Block(
                    f"stage {stage + 1}, block {number + 1}",
                    sum(numbers) + norms,
                    done,
                    inputs * side**2,
                )
            )
    return [*blocks, Block("classes", 2048 * 1000 + 1000, 2048 * 1000, 1000)]


def vgg16() -> list[Block]:
    """VGG-16: nine tenths of the weights are in three layers at its end.

    Simonyan and Zisserman 2015, table 1, D.
    """
    blocks: list[Block] = []
    inputs, side = 3, 224
    for width, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            blocks.append(_convolution(len(blocks) + 1, inputs, width, 3, side))
            inputs = width
        side //= 2
    return blocks + _dense(512 * 7 * 7, 4096, 4096, 1000)


def alexnet() -> list[Block]:
    """AlexNet on one GPU, as in torchvision. Krizhevsky 2014, One weird trick, arXiv 1404.5997."""
    plan = (
        (3, 64, 11, 55),
        (64, 192, 5, 27),
        (192, 384, 3, 13),
        (384, 256, 3, 13),
        (256, 256, 3, 13),
    )
    return [_convolution(number, *layer) for number, layer in enumerate(plan, 1)] + _dense(
        256 * 6 * 6, 4096, 4096, 1000
    )


def inception_v3() -> list[Block]:
    """Inception V3 in eleven equal blocks.

    23,834,568 weights and 5.71e9 multiply-adds for images of 299 x 299, as torchvision counts them.
    Where in the network they are is not modelled.
    """
    return [
        Block(f"mixed {number}", 23_834_568 / 11, 5.71e9 / 11, 2048 * 64) for number in range(1, 12)
    ]


def transformer(depth: int, width: int, length: int, words: int) -> list[Block]:
    """A GPT: `depth` blocks of `width` numbers, for sequences of `length` tokens.

    It has a vocabulary of `words`, and its embedding is tied to its last layer. Narayanan et al.
    2021, arXiv 2104.04473, equations 2 and 3, with layer norms and biases.

    Where ranks share the blocks, each has a part of the vocabulary: the embedding is summed once in
    forward, and the loss needs the maximum, the sum and the right word's logit of each token only,
    never the logits (Shoeybi et al. 2019, section 3).
    """
    for field, value in (("depth", depth), ("width", width), ("length", length), ("words", words)):
        check_whole(field, value)
    numbers = length * width
    block = Block(
        "block", 12 * width**2 + 13 * width, length * (12 * width**2 + 2 * length * width), numbers
    )
    first = Block("embedding", (words + length) * width, 0, numbers, ((numbers,), ()))
    last = Block(
        "words", 2 * width, length * width * words, length * words, ((length,) * 3, (numbers,))
    )
    return [first, *[block] * depth, last]


def _convolution(number: int, inputs: int, outputs: int, kernel: int, side: int) -> Block:
    taps = inputs * outputs * kernel**2
    return Block(f"conv{number}", taps + outputs, taps * side**2, outputs * side**2)


def _dense(*sizes: int) -> list[Block]:
    return [
        Block(f"dense{number}", a * b + b, a * b, b)
        for number, (a, b) in enumerate(pairwise(sizes), 1)
    ]
