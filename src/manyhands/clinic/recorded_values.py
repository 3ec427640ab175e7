"""What is kept of the values that a model is called with, and facts on modules and generators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from manyhands.clinic.loaders import digest

if TYPE_CHECKING:
    import torch
    from torch import nn

WRAPPERS = ("DistributedDataParallel", "DataParallel")


def is_wrapper(module: nn.Module) -> bool:
    """Whether this module only passes on what it gets.

    It passes it to one inner model, or, as Lightning's, to the script's method.
    """
    return type(module).__name__ in WRAPPERS or any(
        cls.__name__ == "LightningModule" for cls in type(module).__mro__
    )


def sample_numbers(tensor: torch.Tensor, stride: int) -> torch.Tensor:
    """A copy of every `stride`-th number of a tensor, in one row.

    The gradient of an Embedding may be sparse.
    """
    dense = tensor.detach().to_dense() if tensor.is_sparse else tensor.detach()
    return dense.reshape(-1)[::stride].cpu().clone()


def noise_state() -> list[torch.Tensor]:
    """The states of the generators that dropout and other noise are drawn from."""
    import torch

    # a stand-in has them, too
    on_gpu = [torch.cuda.get_rng_state()] if torch.cuda.default_generators else []
    return [torch.get_rng_state(), *on_gpu]


def has_trained_parameters(module: nn.Module) -> bool:
    """Whether any parameter of this module is trained."""
    return any(parameter.requires_grad for parameter in module.parameters())


def is_plain(value: object) -> bool:
    """Whether a value can be written down as it is, without tensors."""
    return isinstance(value, (int, float, bool, str, type(None))) or (
        isinstance(value, tuple) and all(isinstance(entry, (int, float)) for entry in value)
    )


def copy_values(tree: Any) -> Any:
    """The tree with copies of its tensors, on the CPU."""
    import torch
    from torch.utils._pytree import tree_map

    def copy_of(x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return x if is_plain(x) else None
        return (x.to_local() if hasattr(x, "to_local") else x).detach().cpu().clone()

    return tree_map(copy_of, tree)


def lists_of_samples(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Sequence[Any]]:
    """Return the arguments that are lists with one entry for each sample.

    A detector takes images of different sizes and their targets in this way. There are none where
    the rows are in tensors. A list of crops holds tensors that have all rows.
    """
    import torch

    given = [*args, *kwargs.values()]
    first = given[0] if given else None
    if not isinstance(first, (list, tuple)) or not first:
        return []
    lists: list[Sequence[Any]] = [
        argument
        for argument in given
        if isinstance(argument, (list, tuple)) and len(argument) == len(first)
    ]
    of_dicts = any(isinstance(entry, dict) for argument in lists for entry in argument)
    lengths = {len(entry) for entry in first if isinstance(entry, torch.Tensor) and entry.dim()}
    return lists if of_dicts or len(lengths) > 1 else []


def rows_of(
    args: tuple[Any, ...], kwargs: dict[str, Any], drawn: int = 0
) -> tuple[list[str], bool]:
    """Return (the digest of each row that goes into a model, whether rows are in dimension 0).

    A row is what all tensors that have as many rows as the first, or the lists that have an entry
    for each row, have of it. Rows are in the second dimension, as sequences of a Transformer may
    be, where that one has as many entries as the loader has `drawn` rows, and the first has not.
    """
    import torch
    from torch.utils._pytree import tree_flatten

    if lists := lists_of_samples(args, kwargs):
        return [digest(tree_flatten(entries)[0]) for entries in zip(*lists, strict=True)], True
    tensors = [
        value
        for value in tree_flatten((args, kwargs))[0]
        if isinstance(value, torch.Tensor) and value.dim()
    ]
    second = (
        drawn > 1
        and tensors
        and tensors[0].dim() > 1
        and len(tensors[0]) != drawn == tensors[0].shape[1]
    )
    if second:
        tensors = [
            tensor.transpose(0, 1)
            for tensor in tensors
            if tensor.dim() > 1 and tensor.shape[1] == drawn
        ]
    tensors = [tensor for tensor in tensors if len(tensor) == len(tensors[0])]
    rows = (
        [digest([tensor[i] for tensor in tensors]) for i in range(len(tensors[0]))]
        if tensors
        else []
    )
    return rows, not second
