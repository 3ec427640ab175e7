"""Observes the first time that ranks which step alone put together what they learned."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch.optim import Optimizer

    from manyhands.clinic.records import AverageRecord, Parts


class AverageObserver:
    """Observes how the weights of ranks that train alone are averaged.

    `facts`, once it was seen: the "step" it followed, the rank's weights "before" it, and the
    weights "after" it. If an outer optimiser takes the step (DiLoCo): the weights that it starts
    "from", and the gradient "given" to it.
    """

    facts: AverageRecord | None
    _weights: Parts
    _optimizer: Optimizer | None

    def __init__(self) -> None:
        self.facts, self._weights, self._optimizer = None, {}, None

    def note_step(self, optimizer: Optimizer, weights: Parts) -> None:
        """An optimiser has left these weights, {name: numbers}."""
        self._weights, self._optimizer = weights, optimizer

    def note_change(self, step: int, weights: Parts) -> None:
        """Since the last step, something has written these weights."""
        if self.facts is None and self._weights:
            self.facts = {"step": step, "before": self._weights, "after": weights}

    def note_outer_step(
        self,
        optimizer: Optimizer,
        step: int,
        parameters: dict[str, torch.Tensor],
        part: Callable[[torch.Tensor], torch.Tensor],
    ) -> None:
        """Note that an optimiser is about to take a step on these parameters.

        `part` gives what is recorded of a tensor.
        """
        if (
            self.facts is None
            and optimizer is not self._optimizer
            and set(parameters) == set(self._weights)
        ):
            self.facts = {
                "step": step,
                "before": self._weights,
                "from": {name: part(parameter) for name, parameter in parameters.items()},
                "given": {
                    name: part(parameter.grad)
                    for name, parameter in parameters.items()
                    if parameter.grad is not None
                },
            }
