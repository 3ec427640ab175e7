"""What computes for a rank.

It has the rank's data, and gives loss and gradient for weights that the rank sends.

The data never reach the entry, and no forward or backward is computed elsewhere, so that each
gradient is counted where it is made: one takes the challenge's `gradient_s` on the rank's clock,
whatever this machine does meanwhile.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import torch
from torch import nn

from manyhands.hackathon.judge.honesty import Reading
from manyhands.hackathon.judge.network import RefusedError

if TYPE_CHECKING:
    import numpy as np


class Accelerator:
    """An accelerator with a rank's data.

    `model` is the challenge's, for this accelerator alone; `x` and `y` are the rank's data; `draw`
    is a generator for the order of the batches; the rank gets `most_batches` batches of
    `batch_size`, then no more.
    """

    def __init__(
        self,
        model: nn.Sequential,
        x: torch.Tensor,
        y: torch.Tensor,
        batch_size: int,
        most_batches: int,
        draw: np.random.Generator,
    ) -> None:
        self.model, self.x, self.y, self.draw = model, x, y, draw
        self.batch_size, self.most_batches = batch_size, most_batches
        self.gradients, self.reading = 0, Reading()
        self.losses: list[float] = []
        self._batches: list[torch.Tensor] = []
        self._order = torch.empty(0, dtype=torch.int64)
        self._last: bytes | None = None

    def take(self) -> int | None:
        """The number of a new batch, or None: there are no more.

        Each sample comes once before any comes again.
        """
        if len(self._batches) == self.most_batches:
            return None
        if len(self._order) < self.batch_size:
            self._order = torch.cat(
                [self._order, torch.from_numpy(self.draw.permutation(len(self.x)))]
            )
        rows, self._order = self._order[: self.batch_size], self._order[self.batch_size :]
        self._batches.append(rows)
        return len(self._batches) - 1

    def gradient(self, number: object, weights: bytes | bytearray) -> tuple[float, bytes, bool]:
        """(loss, gradient, whether the weights have changed) of a batch, at these weights.

        The weights and the gradient are bytes of float32, as `flat` orders them. The loss is the
        mean over the batch. Weights have changed if they differ from the last ones.
        """
        if not isinstance(number, int) or not 0 <= number < len(self._batches):
            raise RefusedError("A gradient was requested for a batch that was not handed out.")
        load(self.model, weights)
        digest = hashlib.blake2b(weights).digest()
        self.gradients += 1
        new, self._last = digest != self._last, digest
        self.reading.look(self.model, self.x, self.y, self.batch_size)
        rows = self._batches[number]
        loss = torch.nn.functional.cross_entropy(self.model(self.x[rows]), self.y[rows])
        slopes = torch.autograd.grad(loss, list(self.model.parameters()))
        self.losses.append(loss.item())
        return loss.item(), torch.cat([slope.flatten() for slope in slopes]).numpy().tobytes(), new


def flat(model: nn.Module) -> bytes:
    """The weights as bytes of float32, one parameter after the other."""
    return (
        torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
        .numpy()
        .tobytes()
    )


def load(model: nn.Module, weights: bytes | bytearray) -> None:
    """Put bytes that `flat` has made into the model."""
    values = (
        torch.frombuffer(bytearray(weights), dtype=torch.float32)
        if len(weights) % 4 == 0
        else torch.empty(0)
    )
    if len(values) != sum(parameter.numel() for parameter in model.parameters()):
        raise RefusedError("The weights that were sent do not fit the challenge's model.")
    with torch.no_grad():
        torch.nn.utils.vector_to_parameters(values, model.parameters())


def accuracy(
    model: nn.Module, weights: bytes | bytearray, x: torch.Tensor, y: torch.Tensor
) -> float:
    """The part of the samples whose class the model says; weights that are no numbers say none."""
    load(model, weights)
    with torch.no_grad():
        logits = model(x)
    return (logits.argmax(1) == y).float().mean().item() if torch.isfinite(logits).all() else 0.0
