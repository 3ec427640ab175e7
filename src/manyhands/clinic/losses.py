"""Observes losses, clipping, scaling and ReduceLROnPlateau by wrapping torch's functions.

So it is known how many terms a rank's mean loss has, what clips or scales the gradients, and by
which loss a scheduler decides.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch.optim.lr_scheduler import ReduceLROnPlateau

    from manyhands.clinic.records import Clip, Loss

LOSSES = (
    "cross_entropy",
    "nll_loss",
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "kl_div",
)


class LossObserver:
    """What has been called since it was last taken."""

    def __init__(self) -> None:
        self.noted: list[Loss] = []
        self.clips: list[Clip] = []
        self.scaled, self._inside = False, False
        self.scaler: torch.amp.GradScaler | None = None  # the one that has scaled a loss last
        self.metrics: list[float] = []  # what ReduceLROnPlateau was given
        self._watch_losses()
        self._watch_clipping()
        self._watch_plateaus()

    def take(self) -> list[Loss]:
        """Return the losses noted since the last `take`."""
        noted, self.noted = self.noted, []
        return noted

    def take_clips(self) -> list[Clip]:
        """Return the clippings noted since the last `take_clips`."""
        clips, self.clips = self.clips, []
        return clips

    def _watch_losses(self) -> None:
        import torch
        import torch.nn.functional as F

        def wrapped(
            name: str, original: Callable[..., torch.Tensor]
        ) -> Callable[..., torch.Tensor]:
            @functools.wraps(original)
            def loss(
                given: torch.Tensor, target: torch.Tensor, *args: Any, **kwargs: Any
            ) -> torch.Tensor:
                if self._inside:  # cross_entropy calls nll_loss
                    return original(given, target, *args, **kwargs)
                self._inside = True
                try:
                    value = original(given, target, *args, **kwargs)
                finally:
                    self._inside = False
                if torch.is_grad_enabled() and value.requires_grad:
                    self.noted.append(_note(name, value, target, kwargs))
                return value

            return loss

        for name in LOSSES:
            setattr(F, name, wrapped(name, getattr(F, name)))

    def _watch_clipping(self) -> None:
        import torch
        from torch import nn

        by_norm, by_value = nn.utils.clip_grad_norm_, nn.utils.clip_grad_value_

        @functools.wraps(by_norm)
        def clip_grad_norm_(*args: Any, **kwargs: Any) -> torch.Tensor:
            norm = by_norm(*args, **kwargs)
            kind = "scaled norm" if _scales_now(self.scaler) else "norm"
            self.clips.append(
                (kind, float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm))
            )
            return norm

        @functools.wraps(by_value)
        def clip_grad_value_(*args: Any, **kwargs: Any) -> None:
            self.clips.append(("value", None))
            return by_value(*args, **kwargs)

        nn.utils.clip_grad_norm_, nn.utils.clip_grad_value_ = clip_grad_norm_, clip_grad_value_
        scale = torch.amp.GradScaler.scale

        def scaled(scaler: torch.amp.GradScaler, outputs: Any) -> Any:
            self.scaled, self.scaler = self.scaled or scaler.is_enabled(), scaler
            return scale(scaler, outputs)

        # torch's own is replaced
        torch.amp.GradScaler.scale = scaled  # type: ignore[method-assign,assignment]

    def _watch_plateaus(self) -> None:
        from torch.optim.lr_scheduler import ReduceLROnPlateau

        step = ReduceLROnPlateau.step

        @functools.wraps(step)
        def noted(scheduler: ReduceLROnPlateau, metrics: Any, *args: Any, **kwargs: Any) -> None:
            self.metrics.append(float(metrics))
            return step(scheduler, metrics, *args, **kwargs)

        # torch's own is replaced
        ReduceLROnPlateau.step = noted  # type: ignore[method-assign,assignment]


def _scales_now(scaler: torch.amp.GradScaler | None) -> bool:
    """Whether the gradients of its backward calls are still multiplied.

    It has unscaled those of no optimiser yet.
    """
    from torch.amp.grad_scaler import OptState

    states = getattr(scaler, "_per_optimizer_states", {})
    return (
        scaler is not None
        and scaler.is_enabled()
        and scaler.get_scale() > 1
        and not any(state["stage"] is OptState.UNSCALED for state in states.values())
    )


def _note(name: str, value: torch.Tensor, target: torch.Tensor, options: dict[str, Any]) -> Loss:
    unknown: Loss = {"name": name, "value": None, "reduction": "none", "terms": None}
    if value.dim():
        return unknown
    try:
        return {
            "name": name,
            "value": float(value.detach()),
            "reduction": options.get("reduction", "mean"),
            "terms": _terms(name, target, options),
        }
    except Exception:  # noqa: BLE001 - a value that cannot be read here: inside torch.func, or while a graph is captured
        return unknown


def _terms(name: str, target: torch.Tensor, options: dict[str, Any]) -> int:
    """Count the terms of a mean loss.

    A loss over classes has those targets that are not to be ignored.
    """
    if name in ("cross_entropy", "nll_loss") and not target.is_floating_point():
        return int((target != options.get("ignore_index", -100)).sum())
    return target.numel()
