"""What a step of exercise 5 keeps in memory on the ranks.

It is counted by micro-batch and in bytes, wherever it is kept.
"""

from __future__ import annotations

import gc
import time
import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    Name = int | str  # of a micro-batch, whose number it is unless the input is wrong

LETTING_GO_S = 0.5  # how long gloo's threads, or the cluster's watch, may take to release a tensor


class Watched(nn.Module):
    """A stage that counts the micro-batches of which something still exists.

    These are either outputs with their graph or inputs that were received.

    `held` counts earlier micro-batches when a forward begins, since the last backward may have left
    its names. `held_back` counts all micro-batches when a backward begins, because no name needs to
    hold an earlier one then. A stage that is recomputed in backward sees the same micro-batch
    again. `right_inputs` are the inputs by which a micro-batch is recognised. If more than
    `may_hold` exist, they are counted once more, because a thread of gloo may need a moment to
    release a tensor. `memories`, if given, counts bytes, too.
    """

    def __init__(
        self,
        module: nn.Module,
        receives: bool,
        right_inputs: Sequence[torch.Tensor],
        may_hold: int,
        memories: Memories | None = None,
    ) -> None:
        super().__init__()
        self.module, self.receives, self.held, self.held_back = module, receives, 0, 0
        self._right_inputs, self._may_hold, self._memories = right_inputs, may_hold, memories
        self._made: dict[Name, int] = {}
        self._inputs: list[tuple[weakref.ref[torch.Tensor], Name]] = []
        self._outputs: list[tuple[weakref.ref[torch.Tensor], Name]] = []
        self._begun: set[Name] = set()
        self._waits = True

    @property
    def made(self) -> int:
        """How many numbers the outputs of all micro-batches have."""
        return sum(self._made.values())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run the stage, and count what exists before it."""
        which = self._which(x)
        self.held = max(self.held, self._count(besides={which}))
        self._inputs += [(weakref.ref(x), which)] if self.receives else []
        y = self.module(x)
        self._made[which] = y.numel()
        if y.requires_grad:
            self._outputs.append((weakref.ref(y), which))
            y.register_hook(lambda gradient: self._backward_begins(which))
        return y

    def _which(self, x: torch.Tensor) -> Name:
        """Return the number of the micro-batch, or a new name for an input that is wrong."""
        for m, right in enumerate(self._right_inputs):
            if x.shape == right.shape and torch.allclose(
                x.detach().to(right), right, rtol=1e-6, atol=1e-9
            ):
                return m
        return f"unknown {len(self._made)}"

    def _backward_begins(self, which: Name) -> None:
        self.held_back = max(self.held_back, self._count())
        if self._memories:
            self._memories.look(len(self._made.keys() - self._begun), self.module)
        self._begun.add(which)

    def _count(self, besides: AbstractSet[Name] = frozenset()) -> int:
        """Of how many micro-batches something is still there; waits once, if there are too many."""
        deadline = time.monotonic() + LETTING_GO_S
        while (count := len(self._there() - besides)) > self._may_hold and self._waits:
            gc.collect()
            time.sleep(0.01)
            self._waits = time.monotonic() < deadline
        return count

    def _there(self) -> set[Name]:
        kinds = [
            {which for reference, which in refs if reference() is not None}
            for refs in (self._inputs, self._outputs)
        ]
        return max(kinds, key=len)


class Memories(TorchDispatchMode):
    """Count the bytes of all tensors that were made within the block and still exist.

    Tensors that were passed to a message do not count, since the message may keep them, and neither
    do the gradients of the stage's parameters.

    `once` is the bytes of what one micro-batch needs from its forward to its backward, and `tensor`
    the bytes of the largest tensor among them.
    """

    def __init__(self, once: int, tensor: int) -> None:
        super().__init__()
        self._once, self._tensor, self._waits = once, tensor, True
        self._made: dict[int, tuple[StorageWeakRef, int]] = {}
        self._sent: dict[int, StorageWeakRef] = {}
        self.excess = self.needed = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = {
            _key(tensor): StorageWeakRef(tensor.untyped_storage()) for tensor in _tensors(args)
        }
        if function.name().startswith("c10d::send"):
            self._sent |= given
        answer = function(*args, **(kwargs or {}))
        for tensor in _tensors(answer):
            # otherwise it is a view, perhaps of what existed before
            if _key(tensor) not in given.keys() | self._made.keys():
                memory = tensor.untyped_storage()
                self._made[_key(tensor)] = StorageWeakRef(memory), memory.nbytes()
        return answer

    def look(self, micro_batches: int, module: nn.Module) -> None:
        """Compare when a backward begins and so many micro-batches still need theirs.

        A copy of each is allowed, and some tensors on the way.
        """
        parameters = sum(
            parameter.numel() * parameter.element_size() for parameter in module.parameters()
        )
        self._compare(2 * micro_batches * self._once + 4 * self._tensor + 2 * parameters, module)

    def end(self, module: nn.Module) -> None:
        """Compare what the step has left."""
        self._compare(2 * self._tensor, module)

    def _compare(self, allowed: int, module: nn.Module) -> None:
        deadline = time.monotonic() + LETTING_GO_S
        while (there := self._there(module)) > allowed and self._waits:
            gc.collect()
            time.sleep(0.01)
            self._waits = time.monotonic() < deadline
        if there - allowed > self.excess:
            self.excess, self.needed = there - allowed, allowed

    def _there(self, module: nn.Module) -> int:
        gradients = {
            _key(parameter.grad) for parameter in module.parameters() if parameter.grad is not None
        }
        self._made = {key: entry for key, entry in self._made.items() if not entry[0].expired()}
        return sum(
            nbytes
            for key, (_, nbytes) in self._made.items()
            if key not in self._sent and key not in gradients
        )


def _tensors(values: Any) -> list[torch.Tensor]:
    return [tensor for tensor in tree_leaves(values) if isinstance(tensor, torch.Tensor)]


def _key(tensor: torch.Tensor) -> int:
    """Return the key of a tensor's memory.

    No other memory has it while a weak reference to this memory exists.
    """
    return tensor.untyped_storage()._cdata
