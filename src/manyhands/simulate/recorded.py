"""Times that were measured once, by the functions of notebook 05.

They are for its text, and for machines that have no emulated network.

Four nodes of the profile `emulated`, 10 Mbit/s and 10 ms, on 2 busy cores (x86-64, Linux, PyTorch
2.13 with gloo), November 2026. A message's time is half of a round trip, five rounds after two that
do not count; an all-reduce's is the better of two means of three calls; "ready ahead" are the
rounds of a ring whose receives are all posted before, the best of three.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypedDict


class Measurement(NamedTuple):
    """What was measured on a machine.

    `what` is a name for the reader. `n_bytes` are the sizes of messages, `times_s` the times of the
    rounds for each, and `all_reduce_s` is {way: {bytes: seconds}}.
    """

    what: str
    n_bytes: list[int]
    times_s: list[list[float]]
    all_reduce_s: dict[str, dict[int, float]]


class Steps(TypedDict):
    """See `STEPS`."""

    all_reduce_s: dict[tuple[int, int], float]
    one_s: list[float]
    steps_s: dict[tuple[int, int], list[float]]


def _recording(
    what: str,
    messages_us: Mapping[int, Sequence[float]],
    all_reduce_us: Mapping[str, Mapping[int, float]],
) -> Measurement:
    times_s = [[1e-6 * microseconds for microseconds in times] for times in messages_us.values()]
    return Measurement(
        what,
        list(messages_us),
        times_s,
        {
            way: {n: 1e-6 * microseconds for n, microseconds in points.items()}
            for way, points in all_reduce_us.items()
        },
    )


# Two nodes of two ranks, links as above: torch.distributed's all-reduce over all four ranks, and
# one in two levels: seconds, the mean of three calls after one that does not count, and the bytes
# that a node sent to the other in a call, divided by those of the tensor.
TWO_NODES = {
    "flat": {16: (0.0743, 87.8), 65536: (0.2066, 1.534), 262144: (0.4124, 1.509)},
    "two levels": {16: (0.0337, 69.3), 65536: (0.0983, 1.026), 262144: (0.2640, 1.006)},
}

EMULATED = _recording(
    "recorded",
    {
        16: (15883.7, 17922.3, 14715.6, 11797, 15694.3),
        256: (15821.2, 15780.4, 13866.4, 14991.2, 16021.6),
        1024: (14792.6, 17001.4, 18065.9, 14777.2, 16497.9),
        4096: (20027.6, 15547.2, 18503.5, 21522.7, 16480.2),
        16384: (30704.7, 30414.2, 25581.5, 28907.3, 26984.7),
        65536: (71301.3, 71900.3, 67456.8, 71781.8, 67315.2),
    },
    {
        "ring": {16: 184352, 256: 180530, 1024: 196731, 4096: 195749, 16384: 206026, 65536: 321415},
        "tree": {16: 68659, 256: 72300, 1024: 70152, 4096: 94537, 16384: 128307, 65536: 320682},
        "ready ahead": {
            16: 86389,
            256: 82063,
            1024: 90102,
            4096: 94855,
            16384: 110417,
            65536: 180468,
        },
    },
)

# Steps of tutorial 19 on four nodes of one rank: rates 10 and 40 Mbit/s, 10 ms. `all_reduce_s`
# {(ranks, bytes): seconds}, the median of four calls at 10 Mbit/s; `one_s`: from the start of a
# step of one rank to the end of its backward; `steps_s` {(Mbit/s, ranks): seconds}, five steps
# after one that does not count, of each the slowest rank.
STEPS: Steps = {
    "all_reduce_s": {(2, 4096): 0.0539, (2, 131072): 0.1568, (4, 4096): 0.1571, (4, 131072): 0.349},
    "one_s": [0.275, 0.254, 0.248, 0.26, 0.257],
    "steps_s": {
        (10, 2): [0.628, 0.596, 0.62, 0.624, 0.582],
        (10, 3): [1.018, 0.977, 0.998, 0.973, 0.975],
        (10, 4): [1.245, 1.178, 1.118, 1.063, 1.136],
        (40, 2): [0.375, 0.369, 0.358, 0.363, 0.359],
        (40, 3): [0.576, 0.573, 0.554, 0.598, 0.573],
        (40, 4): [0.786, 0.792, 0.79, 0.788, 0.806],
    },
}
