"""What a program does with tensors and clocks while operations are under way: uses before the wait, values that Python
reads, clocks that it looks at. A GPU would not have come as far as the CPU has."""

import functools
import sys
import time

from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from manyhands.cluster.on_rank.stack import is_user_file

READING = ("item", "tolist", "numpy", "cpu", "__repr__", "__format__", "__float__", "__int__", "__bool__", "__index__")
CLOCKS = ("time", "perf_counter", "monotonic", "time_ns", "perf_counter_ns", "monotonic_ns")


class Uses(TorchDispatchMode):
    """Hears of each operation on tensors, and notes those on tensors of an asynchronous call before its wait.

    A tensor that is being sent may be read; one that is being received or reduced may not even be read.
    """

    def __init__(self, recorder):
        super().__init__()
        # storage -> [(its weak reference, its bytes that are under way, the event, whether it is written), ...]
        self._recorder, self._flying = recorder, {}

    def fly(self, tensor, number, written):
        storage = StorageWeakRef(tensor.untyped_storage())
        self._flying.setdefault(storage.cdata, []).append((storage, _span(tensor), number, written))

    def land(self, number):
        left = {key: [one for one in flying if one[2] != number] for key, flying in self._flying.items()}
        self._flying = {key: flying for key, flying in left.items() if flying}

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        if self._flying and operator.namespace == "aten":
            self._look(operator._schema, args)
        return operator(*args, **(kwargs or {}))

    def _look(self, schema, values):
        views = any(one.alias_info is not None and not one.alias_info.is_write for one in schema.returns)
        for argument, value in zip(schema.arguments, values):
            writes = argument.alias_info is not None and argument.alias_info.is_write
            for tensor in value if isinstance(value, (list, tuple)) else [value]:
                number = None if views else self._under_way(tensor, writes)
                if number is not None:
                    name, does = schema.name.partition("::")[2], "writes to" if writes else "reads"
                    self._recorder.note("early", of=number, call=name,
                                        text=f"{does} a tensor before the wait for its operation")

    def _under_way(self, tensor, writes):
        """The number of the event whose wait should come first, or None."""
        import torch

        if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout != torch.strided:
            return None
        flying = self._flying.get(tensor.untyped_storage()._cdata, ())
        return next((number for storage, span, number, written in flying if (written or writes)
                     and not storage.expired() and _overlap(span, _span(tensor))), None)


def _span(tensor):
    """From which byte of its storage to which a tensor lies; what is between its elements counts as its own."""
    first = tensor.storage_offset()
    last = first + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return first * tensor.element_size(), (last + 1 if tensor.numel() else first) * tensor.element_size()


def _overlap(one, other):
    return max(one[0], other[0]) < min(one[1], other[1])


class Reads:
    """Notes where the program itself asks for a tensor's value."""

    def __init__(self, recorder):
        import torch

        self.undo = []
        for name in READING:
            _replace(torch.Tensor, name, "read", recorder, self.undo)


class Clocks:
    """Notes where the program itself reads a clock."""

    def __init__(self, recorder):
        self.undo = []
        for name in CLOCKS:
            _replace(time, name, "clock", recorder, self.undo)


def _replace(owner, name, kind, recorder, undo):
    original = getattr(owner, name)
    own = name in vars(owner)

    @functools.wraps(original)
    def noted(*args, **kwargs):
        if is_user_file(sys._getframe(1).f_code.co_filename):
            recorder.note(kind, call=name)
        return original(*args, **kwargs)

    setattr(owner, name, noted)
    undo.append((lambda: setattr(owner, name, original)) if own else (lambda: delattr(owner, name)))
