"""A stage of a pipeline whose computing takes a set time without needing a core.

It notes what it did.

Sleeping ranks do not disturb each other: so a pipeline of many ranks shows its true time on a
machine of few cores.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks


class _Nap(torch.autograd.Function):
    """x as it is; its backward takes `seconds`, and is noted in the clock's log under `kind`."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, clock: StageClock, kind: str, seconds: float
    ) -> torch.Tensor:
        ctx.clock, ctx.kind, ctx.seconds = clock, kind, seconds
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        start_s = time.monotonic()
        time.sleep(ctx.seconds)
        ctx.clock.log.append((ctx.kind, start_s, time.monotonic()))
        return gradient, None, None, None


class _Kept:
    """A tensor that backward needs; the clock counts it for as long as autograd holds it."""

    def __init__(self, tensor: torch.Tensor, clock: StageClock) -> None:
        self.tensor, self._clock, self._key = (
            tensor.detach(),
            clock,
            tensor.untyped_storage().data_ptr(),
        )
        clock.note(self._key, tensor.untyped_storage().nbytes(), 1)

    def __del__(self) -> None:
        self._clock.note(self._key, self.tensor.untyped_storage().nbytes(), -1)


class StageClock(nn.Module):
    """`module` as a stage that takes longer, by sleeping.

    Forward takes `forward_s` more, and backward `backward_s`.

    x, y: one tensor each. Outputs and gradients are those of `module`. Half of backward's time
    belongs to the gradient of the input, half to those of the weights: so a schedule that cuts
    backward in two finds two halves.

    `kept_bytes`, `peak_kept_bytes`: of the tensors, parameters left out, that backward still needs;
    `memory`: each change of them, (seconds, bytes more or less). Seconds are those of one clock for
    all processes of a host.
    """

    def __init__(self, module: nn.Module, forward_s: float = 0.0, backward_s: float = 0.0) -> None:
        super().__init__()
        self.module, self.forward_s, self.backward_s = module, forward_s, backward_s
        dtype = next((parameter.dtype for parameter in module.parameters()), torch.float32)
        # two leaves: backward passes their naps also where x needs no gradient, or no weight does
        self.x_end, self.weight_end = (nn.Parameter(torch.zeros(1, dtype=dtype)) for _ in range(2))
        self._held: dict[int, tuple[int, int]] = {}  # storage -> (references, its bytes)
        self.reset()

    def reset(self) -> None:
        """Forget what was noted. What is still kept is the first change of `memory`."""
        self.log: list[tuple[str, float, float]] = []
        self.peak_kept_bytes = self.kept_bytes
        self.memory: list[tuple[float, int]] = (
            [(time.monotonic(), self.kept_bytes)] if self._held else []
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The module's output, after `forward_s` of sleep; noted in the log as "F"."""
        start_s = time.monotonic()
        weights = {parameter.untyped_storage().data_ptr() for parameter in self.parameters()}
        with saved_tensors_hooks(
            lambda t: t if t.untyped_storage().data_ptr() in weights else _Kept(t, self),
            lambda saved: getattr(saved, "tensor", saved),
        ):
            half_s = self.backward_s / 2
            if x.requires_grad:
                x = _Nap.apply(x, self, "I", half_s)
            else:  # the first stage: its backward takes as long as that of the others
                x = x + _Nap.apply(self.x_end, self, "I", half_s)
            y: torch.Tensor = self.module(x) + _Nap.apply(self.weight_end, self, "W", half_s)
        time.sleep(self.forward_s)
        self.log.append(("F", start_s, time.monotonic()))
        return y

    @property
    def kept_bytes(self) -> int:
        """The bytes of the tensors that backward still needs."""
        return sum(nbytes for _, nbytes in self._held.values())

    def note(self, key: int, nbytes: int, change: int) -> None:
        """One reference more, or less, to the storage at `key`."""
        count = self._held.pop(key, (0, 0))[0] + change
        if count:
            self._held[key] = (count, nbytes)
        if count == max(change, 0):  # the first reference, or the last
            self.memory.append((time.monotonic(), change * nbytes))
            self.peak_kept_bytes = max(self.peak_kept_bytes, self.kept_bytes)

    def spans(
        self, order: Iterable[tuple[str, int, int]]
    ) -> list[tuple[str, int, int, float, float]]:
        """The log, put together with the order in which this stage has worked.

        `order` is [(kind, micro-batch, stage), ...]. Returns a list of (kind, micro-batch, stage,
        start_s, stop_s).

        A "B" lasts from its first half to the end of its second. On the first stage "I" is empty,
        as there is no input to have a gradient; its "W" is the whole.
        """
        logs = {kind: iter([span[1:] for span in self.log if span[0] == kind]) for kind in "FIW"}
        spans = []
        for kind, micro_batch, stage in order:
            both = kind == "B" or (kind == "W" and stage == 0)
            if kind == "I" and stage == 0:
                continue
            parts = [next(logs[part]) for part in ("IW" if both else kind)]
            starts, stops = zip(*parts, strict=True)
            spans.append((kind, micro_batch, stage, min(starts), max(stops)))
        return spans
