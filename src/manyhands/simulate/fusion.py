"""Message fusion: gradients that wait for each other and travel together.

Meanwhile the backward pass goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from manyhands.simulate.checked_input import check_real

# ResNet-50: width of the 3 x 3 convolutions, number of blocks
_STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))


def buckets(n_bytes: Iterable[float], bucket_bytes: float) -> list[list[int]]:
    """Put tensors together, in order: a bucket is full as soon as it holds `bucket_bytes` or more.

    Returns lists of indices.

    So does DistributedDataParallel (there the limit of the first bucket is a smaller one). A tensor
    is never cut. 0 gives each tensor a bucket of its own.
    """
    check_real("bucket_bytes", bucket_bytes, finite=False)
    filled_buckets: list[list[int]] = []
    filled = bucket_bytes
    for i, size in enumerate(n_bytes):
        if not filled_buckets or filled >= bucket_bytes:
            filled_buckets.append([])
            filled = 0
        filled_buckets[-1].append(i)
        filled += size
    return filled_buckets


def finish_s(
    ready_s: Sequence[float],
    n_bytes: Sequence[float],
    bucket_bytes: float,
    all_reduce_s: Callable[[float], float],
) -> float:
    """When the last gradient has been summed, counted from the start of the backward pass.

    ready_s : when each tensor's gradient is computed, in the order in which that happens. all_reduce_s : seconds of an
        all-reduce of so many bytes. A
    bucket is sent when all in it are ready and the bucket before it has arrived: one network, one message at a time,
    beside the computing.
    """
    if len(ready_s) != len(n_bytes):
        raise ValueError(
            f"ready_s has {len(ready_s)} entries and n_bytes {len(n_bytes)}: each gradient needs "
            "both"
        )
    free_s = 0.0
    for bucket in buckets(n_bytes, bucket_bytes):
        free_s = max(free_s, max(ready_s[i] for i in bucket)) + all_reduce_s(
            sum(n_bytes[i] for i in bucket)
        )
    return free_s


def resnet50_bytes(itemsize: int = 4) -> list[int]:
    """The sizes of ResNet-50's 161 gradients, in the order of the backward pass.

    The last layer's come first.

    25,557,032 numbers. He et al. 2016, Deep residual learning for image recognition, CVPR, table 1;
    1000 classes, batch norm, the stride in the 3 x 3 convolution.
    """
    numbers, inputs = [3 * 64 * 49, 64, 64], 64
    for width, blocks in _STAGES:
        for block in range(blocks):
            for weights, outputs in (
                (inputs * width, width),
                (9 * width * width, width),
                (4 * width * width, 4 * width),
            ):
                numbers += [weights, outputs, outputs]  # a convolution and its batch norm
            if block == 0:  # the shortcut's own convolution
                numbers += [4 * inputs * width, 4 * width, 4 * width]
            inputs = 4 * width
    numbers += [inputs * 1000, 1000]
    return [itemsize * count for count in reversed(numbers)]
