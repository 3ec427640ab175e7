"""What ranks report in the experiments of unit 12's checks (`ranks`), and `diagnosis` judges."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

Role = Literal["encoder", "decoder"]
Named = dict[str, list[float] | None]  # numbers by parameter
Part = list[Any]  # [shape, numbers] of a tensor

RaggedCase = TypedDict(
    "RaggedCase",
    {
        "lengths": list[int],
        "begun": bool,
        "shape": list[int],
        "outputs": list[Part],
        "right outputs": list[Part],
        "without start": list[list[float]],
        "state": list[Part],
        "right state": list[Part],
        "variants": dict[str, list[Part]],
    },
)
LossAnswer = TypedDict(
    "LossAnswer",
    {
        "tokens": int,
        "divisor": int,
        "right": float,
        "right divided": float,
        "got": float,
        "divided": float,
        "gradient": list[list[float]],
        "variants": dict[str, float],
    },
)


class SerialStep(TypedDict):
    """Loss and gradients of a single process."""

    loss: float
    encoder: Named
    decoder: Named


class SerialTraining(TypedDict):
    """Losses and weights of a single process."""

    losses: list[float]
    encoder: Named
    decoder: Named


class Stoppable(TypedDict, total=False):
    """`stopped`: the text of an exception, when it came, and whether a communicator raised it."""

    stopped: tuple[str, float, bool]


class _InRole(Stoppable):
    role: Role


class RightStep(TypedDict):
    """A step in one process."""

    loss: float
    gradients: Named


_Mistaken = TypedDict(
    "_Mistaken", {"other loss": dict[str, float], "other gradient": dict[str, Named]}
)


class SplitMistakes(_Mistaken):
    """The loss and the encoder's gradients that usual mistakes give."""


class SplitCase(_InRole, SplitMistakes, total=False):
    """One half of a step. `sent`: messages and bytes."""

    case: int
    right: RightStep
    number: bool
    loss: float
    got: Named
    before: float
    sent: list[int]
    state_bytes: int


class RightTraining(TypedDict):
    """A training in one process."""

    losses: list[float]
    weights: Named


class TrainingCase(_InRole, total=False):
    """One module after training. `variants`: [mistake, weights]."""

    before: Named
    right: RightTraining
    variants: list[list[Any]]
    losses: list[float]
    got: Named


class RightGradients(TypedDict):
    """The whole batch's gradients."""

    gradients: Named


_Pairs = TypedDict("_Pairs", {"mean of pairs": Named})


class HybridCase(_InRole, _Pairs, total=False):
    """One module of a pair. `alone`: the gradients of its pair alone."""

    case: int
    pairs: int
    right: RightGradients
    alone: Named
    got: Named
