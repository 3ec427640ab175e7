"""Autocast, GradScaler and compiled code: the CPU computes in the same types as a GPU."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from manyhands.gpu_stand_in.stand_in_state import note, replace
from manyhands.gpu_stand_in.substitution_messages import AUTOCAST, COMPILE, SCALER

if TYPE_CHECKING:
    import torch

DEFAULT: dict[str, torch.dtype] = {}  # "cuda": the type that autocast takes on a GPU


def install() -> None:
    """Replace autocast, GradScaler and `torch.compile`."""
    import torch
    from torch.amp import autocast_mode, grad_scaler

    DEFAULT["cuda"] = torch.float16
    begin, signature = (
        autocast_mode.autocast.__init__,
        inspect.signature(autocast_mode.autocast.__init__),
    )

    def autocast(self: Any, *args: Any, **kwargs: Any) -> None:
        given = signature.bind(self, *args, **kwargs).arguments
        if given["device_type"] == "cuda":
            note(AUTOCAST)
            given["device_type"], given["dtype"] = "cpu", given.get("dtype") or DEFAULT["cuda"]
        begin(**given)

    # torch's own is replaced
    autocast_mode.autocast.__init__ = autocast  # type: ignore[method-assign]
    scale = grad_scaler.GradScaler.__init__

    def scaler(self: Any, device: str = "cuda", *args: Any, **kwargs: Any) -> None:
        scale(self, "cpu" if device == "cuda" else device, *args, **kwargs)
        if device == "cuda" and self.is_enabled():
            note(SCALER)

    # torch's own is replaced
    grad_scaler.GradScaler.__init__ = scaler  # type: ignore[method-assign]
    _replace_autocast_state(torch)
    _replace_decorators(torch)
    _replace_compile(torch)
    # of a GPU's matrix units
    replace(torch, "set_float32_matmul_precision", lambda precision: None)
    import torch.nn.attention as attention

    for owner, name in ((attention, "sdpa_kernel"), (torch.backends.cuda, "sdp_kernel")):
        replace(owner, name, lambda *_, **__: contextlib.nullcontext())


def _replace_autocast_state(torch: Any) -> None:
    enabled, switch, dtype_of = (
        torch.is_autocast_enabled,
        torch.set_autocast_enabled,
        torch.get_autocast_dtype,
    )
    set_dtype = torch.set_autocast_dtype

    def known(device: str) -> str:
        return "cpu" if device == "cuda" else device

    def is_enabled(device: str = "cuda") -> bool:
        return enabled(known(device))

    def set_enabled(*args: Any) -> None:
        device, value = args if len(args) == 2 else ("cuda", *args)
        switch(known(device), value)

    def get_dtype(device: str = "cuda") -> Any:
        return (
            dtype_of("cpu")
            if device == "cuda" and enabled("cpu")
            else DEFAULT.get(device) or dtype_of(device)
        )

    def choose_dtype(device: str, dtype: Any) -> None:
        if device == "cuda":
            DEFAULT["cuda"] = dtype
        else:
            set_dtype(device, dtype)

    for name, new in (
        ("is_autocast_enabled", is_enabled),
        ("set_autocast_enabled", set_enabled),
        ("get_autocast_dtype", get_dtype),
        ("set_autocast_dtype", choose_dtype),
        ("get_autocast_gpu_dtype", get_dtype),
        ("set_autocast_gpu_dtype", lambda dtype: choose_dtype("cuda", dtype)),
    ):
        replace(torch, name, new)


def _replace_decorators(torch: Any) -> None:
    """`custom_fwd` and `custom_bwd` of an autograd.Function."""
    from torch.amp import autocast_mode

    for name in ("custom_fwd", "custom_bwd"):
        original = getattr(torch.amp, name)

        def custom(
            function: Any = None,
            *,
            device_type: str = "cuda",
            _original: Callable[..., Any] = original,
            **options: Any,
        ) -> Any:
            return _original(
                function, device_type="cpu" if device_type == "cuda" else device_type, **options
            )

        for owner in (torch.amp, autocast_mode, torch.cuda.amp, torch.cuda.amp.autocast_mode):
            setattr(owner, name, custom)


def _replace_compile(torch: Any) -> None:
    """Let `torch.compile` leave the function as it is.

    What it makes for a GPU cannot run here, and the function itself gives the same numbers.
    """
    compiled = torch.compile

    def uncompiled(*args: Any, **kwargs: Any) -> Any:
        note(COMPILE)
        torch.compiler.set_stance("force_eager")
        return compiled(*args, **{**kwargs, "backend": "eager", "mode": None, "options": None})

    replace(torch, "compile", uncompiled)
