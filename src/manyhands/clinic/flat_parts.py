"""Optimisers that hold a flat part of the model's weights and not its parameters (ZeRO by hand).

Which numbers of which parameters these are is recognised by their values before the first step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch.optim import Optimizer

    from manyhands.clinic.records import Pieces


Slot = tuple[str, int, int, int]  # (name, begin in the parameter, count, begin in the part)


class FlatParts:
    """What the optimisers of one rank hold, and the gradients they got since the last `take`."""

    def __init__(self) -> None:
        self._slots: dict[int, list[Slot]] = {}
        # id of an optimiser's parameter -> its slots; {name: [(begin, numbers)]}
        self._pieces: Pieces = {}

    def holds(self, optimizer: Optimizer) -> bool:
        """Whether this optimiser holds parts of the model."""
        return any(self._slots.get(id(part)) for part in _of(optimizer))

    def note(self, optimizer: Optimizer, parameters: Mapping[str, torch.Tensor]) -> None:
        """Note the gradients that this optimiser gets, of parts of the model.

        `parameters` are the model's, {name: parameter}.
        """
        for part in _of(optimizer):
            if id(part) not in self._slots:
                self._slots[id(part)] = find_slots(part, parameters)
            if part.grad is not None:
                numbers = part.grad.detach().reshape(-1).float().cpu()
                for name, begin, count, at in self._slots[id(part)]:
                    self._pieces.setdefault(name, []).append(
                        (begin, numbers[at : at + count].clone())
                    )

    def take(self) -> Pieces:
        """Return the gradients noted since the last `take`, {name: [(begin, numbers), ...]}."""
        pieces, self._pieces = self._pieces, {}
        return pieces


def _of(optimizer: Optimizer) -> list[torch.Tensor]:
    return [part for group in optimizer.param_groups for part in group["params"]]


def find_slots(part: torch.Tensor, parameters: Mapping[str, torch.Tensor]) -> list[Slot]:
    """Find which numbers of the `parameters` this part holds.

    Returns [(name, begin in the parameter, count, begin in the part)]. A number that occurs once in
    the model shows where it comes from; parameters with no such number are left out.
    """
    import torch

    if any(hasattr(parameter, "to_local") for parameter in parameters.values()):
        return []
    flat = {name: parameter.detach().reshape(-1).float() for name, parameter in parameters.items()}
    whole, numbers = torch.cat(list(flat.values())), part.detach().reshape(-1).float()
    values, counts = whole.unique(return_counts=True)
    rare = torch.isin(numbers, values[counts == 1]).nonzero().flatten().tolist()
    begins: dict[str, int] = {}
    begin = 0
    for name, part_of in flat.items():
        begins[name], begin = begin, begin + part_of.numel()
    slots: list[Slot] = []
    at = 0
    for start in rare:
        if start < at:
            continue
        source = int((whole == numbers[start]).nonzero()[0])
        name = next(name for name in reversed(begins) if begins[name] <= source)
        first = max(at, start - (source - begins[name]))
        begin = source - begins[name] - (start - first)
        count = min(flat[name].numel() - begin, numbers.numel() - first)
        if not numbers[first : first + count].equal(flat[name][begin : begin + count]):
            return []
        slots.append((name, begin, count, first))
        at = first + count
    return slots


def assemble(
    pieces: Sequence[Pieces], sizes: Mapping[str, int]
) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Put gradients together from the pieces of all ranks.

    Returns ({name: gradient}, {name: for each of its numbers, the rank that holds it}). Those that
    the ranks do not hold whole are left out.
    """
    import torch

    whole: dict[str, torch.Tensor] = {}
    holders: dict[str, torch.Tensor] = {}
    for name, size in sizes.items():
        gradient, holder = torch.zeros(size), torch.full((size,), -1)
        for rank, of_rank in enumerate(pieces):
            for begin, numbers in of_rank.get(name, []):
                gradient[begin : begin + len(numbers)], holder[begin : begin + len(numbers)] = (
                    numbers,
                    rank,
                )
        if bool((holder >= 0).all()):
            whole[name], holders[name] = gradient, holder
    return whole, holders
