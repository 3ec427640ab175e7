"""What sharded states cost: the memory of a rank and the bytes that it sends, by stage of ZeRO.

Stage 0 keeps everything on every rank; stage 1 shards the states of the optimizer over the ranks,
stage 2 the gradients too, stage 3 the weights too. Rajbhandari et al. 2020, ZeRO, arXiv 1910.02054,
figure 1 and section 7.

    states_bytes(7_500_000_000, ranks=64, stage=1).total       # 31.4e9 bytes, where stage 0 needs 120e9
"""

from __future__ import annotations

from typing import NamedTuple

from manyhands.simulate.checked_input import check_whole


class States(NamedTuple):
    """How many bytes of a model's states one rank holds."""

    weights: float
    gradients: float
    optimizer: float
    total: float


def shard_size(parameters: int, ranks: int) -> int:
    """How many numbers one rank holds of a flat vector of `parameters` numbers.

    The vector is padded to a multiple of `ranks`.

    With fewer parameters than ranks the last ranks hold padding only. `ValueError` for a size below
    0 or no rank.
    """
    parameters, ranks = check_whole("parameters", parameters, least=0), check_whole("ranks", ranks)
    return -(-parameters // ranks)


def states_bytes(
    parameters: int,
    ranks: int,
    stage: int,
    weight: float = 2,
    gradient: float = 2,
    optimizer: float = 12,
) -> States:
    """The bytes on one rank, as `States`.

    They are its weights, gradients, states of the optimizer, and their sum.

    `weight`, `gradient` and `optimizer` are bytes a parameter: as given, Adam in mixed precision,
    with a float32 copy of the weights and two moments (4 + 4 + 4); all in float32 it is 4, 4 and 8.
    Activations, and in stages 2 and 3 the layer at work, which is there whole, come on top.
    `ValueError` for a stage that is not 0, 1, 2 or 3.
    """
    _check(stage)
    shard = shard_size(parameters, ranks)
    held = [shard if stage >= first else parameters for first in (3, 2, 1)]
    weights, gradients, states = (
        count * size for count, size in zip(held, (weight, gradient, optimizer), strict=True)
    )
    return States(weights, gradients, states, weights + gradients + states)


def step_bytes(
    parameters: int, ranks: int, stage: int, weight: float = 2, gradient: float = 2
) -> float:
    """The bytes that one rank sends in a step, with ring collectives.

    Stage 0 all-reduces the gradients; 1 and 2 reduce-scatter them and all-gather the new weights; 3
    gathers the weights twice, for forward and for backward. A ring sends ranks - 1 shards for a
    gather or a reduce-scatter, twice that for an all-reduce. gloo of PyTorch 2.13 makes a
    reduce-scatter of a whole all-reduce: there the bytes of the reduce-scatter count twice
    (`manyhands.ledger.models`).
    """
    _check(stage)
    shard = shard_size(parameters, ranks)
    per_parameter = {
        0: 2 * gradient,
        1: gradient + weight,
        2: gradient + weight,
        3: gradient + 2 * weight,
    }[stage]
    return (ranks - 1) * shard * per_parameter


def _check(stage: int) -> None:
    if stage not in (0, 1, 2, 3):
        raise ValueError(f"stage is {stage!r}: ZeRO has the stages 0, 1, 2 and 3")
