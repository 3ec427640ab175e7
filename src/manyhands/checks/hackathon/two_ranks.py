"""pack and unpack, each in a separate process, as on two ranks.

Nothing but the message goes from one to the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manyhands.checks.hackathon.messages import MISTAKES
from manyhands.checks.in_kernel import array, call

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np


def pack_apart(pack_of: Callable[..., Any], before: np.ndarray, count: int) -> tuple[Any, ...]:
    """Return (error, the message's dtype, shape and bytes, what is left)."""
    import torch

    left = torch.from_numpy(before.copy())
    message, error = call(pack_of, left, count)
    if error:
        return error, None, None, b"", None
    if not isinstance(message, torch.Tensor):
        return MISTAKES["not one"].format(got=type(message).__name__), None, None, b"", None
    content = message.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes()
    return (
        None,
        str(message.dtype).removeprefix("torch."),
        tuple(message.shape),
        content,
        left.numpy(),
    )


def unpack_apart(
    unpack: Callable[..., Any], dtype: str, shape: tuple[int, ...], content: bytes, size: int
) -> tuple[Any, ...]:
    """Return (error, the type of what unpack returns, its numbers)."""
    import torch

    message = torch.frombuffer(bytearray(content), dtype=getattr(torch, dtype)).view(shape)
    answer, error = call(unpack, message, size)
    return (
        (f"{error}. {MISTAKES['apart']}" if error else None),
        type(answer).__name__,
        array(answer),
    )
