"""The bytes of the tensors that a block of code has made and that still exist, whatever holds them.

`StageClock` counts what autograd saves. Selective recomputation keeps tensors elsewhere, in a cache
of `torch.utils.checkpoint`, so this counts the memory itself.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class KeptBytes(TorchDispatchMode):
    """A context manager that counts how much of the memory allocated in its block is still in use.

    `nbytes` has the number.

    Several tensors that share their memory count once. Memory that an operation was given does not
    count, so parameters and inputs are left out.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own
        self._made: dict[int, tuple[StorageWeakRef, int]] = {}

    def __torch_dispatch__(
        self,
        function: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        given = {_key(tensor) for tensor in _tensors((args, kwargs))}
        answer = function(*args, **(kwargs or {}))
        for tensor in _tensors(answer):
            if _key(tensor) not in given:
                memory = tensor.untyped_storage()
                self._made.setdefault(_key(tensor), (StorageWeakRef(memory), memory.nbytes()))
        return answer

    @property
    def nbytes(self) -> int:
        """The bytes that were allocated in the block and are still in use."""
        self._made = {key: made for key, made in self._made.items() if not made[0].expired()}
        return sum(nbytes for _, nbytes in self._made.values())


def _tensors(values: Any) -> list[Tensor]:
    return [value for value in tree_leaves(values) if isinstance(value, Tensor)]


def _key(tensor: Tensor) -> int:
    """The memory's address in PyTorch. A weak reference keeps it from being used again."""
    address: int = tensor.untyped_storage()._cdata
    return address
