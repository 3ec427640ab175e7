"""Which tensors a learner's code has brought into memory.

It does not matter what keeps them (a list, a class, a global or an autograd graph).
"""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from manyhands.checks.sharded_states.held_with_torch import tensors_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

# how often to look whether a thread of gloo has released a tensor; looks are counted because they
# take longer on a busy machine
LOOKS, BETWEEN_S = 200, 0.005


class LettingGo:
    """Waits for gloo's threads, which may release a tensor a little late.

    If there is too much, `until` waits, unless it has once waited in vain.
    """

    def __init__(self) -> None:
        self._waits = True

    def until(self, fits: Callable[[], bool]) -> None:
        """Wait until `fits()` is true, unless an earlier wait was in vain."""
        looks = 0
        while self._waits and not fits():
            time.sleep(BETWEEN_S)
            looks += 1
            self._waits = looks < LOOKS


class Created(TorchDispatchMode):
    """Notes the memory of each tensor that PyTorch creates while this context manager is open.

    It sees this thread and backward. Memory that existed before, such as a parameter's, does not
    count. Weak references keep nothing alive.
    """

    def __init__(self) -> None:
        super().__init__()
        # {the storage's address: a weak reference}, which prevents the address from being reused
        self._created: dict[int, StorageWeakRef] = {}
        self._given: dict[int, StorageWeakRef] = {}

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if "lift_fresh" not in str(function):  # torch.tensor([...]) passes what it has just created
            self._note(self._given, (args, kwargs))
        answer = function(*args, **(kwargs or {}))
        self._note(self._created, answer)
        return answer

    def _note(self, where: dict[int, StorageWeakRef], values: Any) -> None:
        for value in tree_leaves(values):
            if isinstance(value, torch.Tensor):
                storage = value.untyped_storage()
                if storage._cdata not in self._created and storage._cdata not in self._given:
                    where[storage._cdata] = StorageWeakRef(storage)

    def live(self, besides: Iterable[torch.Tensor] = ()) -> dict[int, int]:
        """Return {address: bytes} of what was created and still exists.

        The memory of the tensors `besides` is left out.
        """
        left_out = {tensor.untyped_storage()._cdata for tensor in besides}
        sizes = {}
        for address, reference in self._created.items():
            storage = torch.UntypedStorage._new_with_weak_ptr(reference.cdata)
            if storage is not None and address not in left_out:
                sizes[address] = storage.nbytes()
        return sizes

    def bytes_live(self, besides: Iterable[torch.Tensor] = ()) -> int:
        """Return the bytes of what was created and still exists, without the tensors `besides`."""
        return sum(self.live(besides).values())

    def bytes_kept(
        self,
        letting_go: LettingGo,
        enough: int,
        state: Any = (),
        besides: Sequence[torch.Tensor] = (),
    ) -> int:
        """Return the bytes of what was created and still exists, in `state` or anywhere else.

        Gradients and the tensors `besides` do not count. If there are at most `enough` bytes, there
        is no need to wait.
        """
        gc.collect()
        left_out = [
            *besides,
            *(
                tensor.grad
                for tensor in [*tensors_in(state), *besides]
                if tensor.is_leaf and tensor.grad is not None
            ),
        ]
        letting_go.until(lambda: self.bytes_live(left_out) <= enough)
        return self.bytes_live(left_out)
