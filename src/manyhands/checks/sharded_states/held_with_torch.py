"""How many bytes of tensors a learner keeps from step to step."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterable

_NOT_LOOKED_INTO = (
    str,
    bytes,
    int,
    float,
    complex,
    bool,
    type,
    types.ModuleType,
    types.BuiltinFunctionType,
)


def held_bytes(kept: Any, besides: Iterable[torch.Tensor] = ()) -> int:
    """Return the bytes of all tensors that can be reached from `kept`.

    Each memory counts once, and as a whole even if a tensor is a view of a part. The tensors
    `besides` and gradients do not count.
    """
    memories = {
        tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes()
        for tensor in tensors_in(kept)
    }
    for tensor in besides:
        memories.pop(tensor.untyped_storage().data_ptr(), None)
    return sum(memories.values())


def tensors_in(kept: Any) -> list[torch.Tensor]:
    """Return all tensors that can be reached from `kept`, without their gradients."""
    tensors: list[torch.Tensor] = []
    seen: set[int] = set()
    todo: list[Any] = [kept]
    while todo:
        value = todo.pop()
        if id(value) in seen or value is None or isinstance(value, _NOT_LOOKED_INTO):
            continue
        seen.add(id(value))
        if isinstance(value, torch.Tensor):
            tensors.append(value)
        elif isinstance(value, dict):
            todo += [*value.keys(), *value.values()]
        elif isinstance(value, (list, tuple, set, frozenset)):
            todo += value
        elif isinstance(value, types.FunctionType):
            todo += [cell.cell_contents for cell in value.__closure__ or ()]
        elif isinstance(value, torch.optim.Optimizer):
            todo += [value.state, value.param_groups]
        else:
            todo += getattr(value, "__dict__", {}).values()
    return tensors
