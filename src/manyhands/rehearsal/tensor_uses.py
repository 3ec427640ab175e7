"""What a program does with tensors and clocks while operations are under way.

It uses tensors before the wait, reads values in Python, and looks at clocks. A GPU would not have
come as far as the CPU has.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils import _python_dispatch as dispatch

from manyhands.cluster.on_rank.stack import is_user_file

if TYPE_CHECKING:
    import torch

    from manyhands.rehearsal.trace_recorder import Recorder

READING = (
    "item",
    "tolist",
    "numpy",
    "cpu",
    "__repr__",
    "__format__",
    "__float__",
    "__int__",
    "__bool__",
    "__index__",
)
CLOCKS = ("time", "perf_counter", "monotonic", "time_ns", "perf_counter_ns", "monotonic_ns")


Bytes = tuple[int, int]  # from which of a storage, to which


class TensorUses(dispatch.TorchDispatchMode):
    """Notes operations on tensors of an asynchronous call before its wait.

    It hears of each operation on tensors.

    A tensor that is being sent may be read; one that is being received or reduced may not even be
    read. To hear makes every operation some microseconds longer, so it begins with the first such
    call. A backward would forget what is begun in its midst: it is heard from its start if the
    program's own code runs in it.
    """

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        # storage -> [(its weak reference, its bytes that are under way, the event, whether it is
        # written), ...]
        self._recorder = recorder
        self._under_way_by_storage: dict[int, list[tuple[StorageWeakRef, Bytes, int, bool]]] = {}
        self._thread, self._hears = threading.get_ident(), False
        # while it does an operation, it is not in the stack, and comes back by itself
        self._aside = False

    def watch(self) -> list[Callable[[], object]]:
        """See to each backward from now on; returns how to undo it, and to hear no more."""
        import torch

        original, leaves = torch.autograd._engine_run_backward, torch.inference_mode.__exit__

        @functools.wraps(original)
        def run_backward(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            if self._hears or _runs_code_of_the_program(outputs):
                self._listen()
            try:
                return original(outputs, *args, **kwargs)
            finally:
                if self._hears:
                    self._listen()

        @functools.wraps(leaves)
        def leave(mode: torch.inference_mode, *error: Any) -> None:
            leaves(mode, *error)
            # what began in this mode is deaf after it: torch puts the dispatch keys of before back
            if self._hears:
                self._listen()

        # torch's own are replaced
        torch.autograd._engine_run_backward = run_backward  # type: ignore[assignment]
        torch.inference_mode.__exit__ = leave  # type: ignore[method-assign]  # likewise
        undo: list[Callable[[], object]] = [
            functools.partial(setattr, torch.autograd, "_engine_run_backward", original),
            functools.partial(setattr, torch.inference_mode, "__exit__", leaves),
            self._stop_listening,
        ]
        for owner, name in (
            (torch.Tensor, "register_hook"),
            (torch.nn.Module, "register_backward_hook"),
            # of what a thread begins, this one would not know
            (threading.Thread, "start"),
        ):
            _replace(owner, name, lambda _: self._listen(), undo)
        return [*undo, _compile_nothing()]

    def _listen(self) -> None:
        import torch

        self._hears = True
        if threading.get_ident() != self._thread or self._aside:
            return
        deaf = not torch._C._dispatch_tls_is_dispatch_key_included("Python")
        if deaf or dispatch._get_current_dispatch_mode_stack().count(self) != 1:
            self._put_below([self])

    def _put_below(self, lowest: Sequence[Any]) -> None:
        """Put these below the other modes, which end before.

        In the midst of a backward that lasts for a step of it.
        """
        others = [dispatch._pop_mode() for _ in dispatch._get_current_dispatch_mode_stack()]
        for mode in (*lowest, *(other for other in reversed(others) if other is not self)):
            dispatch._push_mode(mode)

    def _stop_listening(self) -> None:
        self._put_below([])

    def begin_operation(self, tensor: torch.Tensor, number: int, written: bool) -> None:
        """Watch a tensor of the asynchronous call with this number until its wait."""
        self._listen()
        storage = StorageWeakRef(tensor.untyped_storage())
        self._under_way_by_storage.setdefault(storage.cdata, []).append(
            (storage, _span(tensor), number, written)
        )

    def end_operation(self, number: int) -> None:
        """Watch the tensors of this call no more, because its wait has come."""
        left = {
            key: [operation for operation in operations if operation[2] != number]
            for key, operations in self._under_way_by_storage.items()
        }
        self._under_way_by_storage = {
            key: operations for key, operations in left.items() if operations
        }

    def __torch_dispatch__(
        self, operator: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if self._under_way_by_storage and operator.namespace == "aten":
            self._note_early_uses(operator._schema, args)
        self._aside = True
        try:
            return operator(*args, **(kwargs or {}))
        finally:
            self._aside = False

    def _note_early_uses(self, schema: Any, values: Sequence[Any]) -> None:
        views = any(
            returned.alias_info is not None and not returned.alias_info.is_write
            for returned in schema.returns
        )
        # only arguments that are given by position are looked at
        for argument, value in zip(schema.arguments, values, strict=False):
            writes = argument.alias_info is not None and argument.alias_info.is_write
            for tensor in value if isinstance(value, (list, tuple)) else [value]:
                number = None if views else self._under_way(tensor, writes)
                if number is not None:
                    name, does = schema.name.partition("::")[2], "writes to" if writes else "reads"
                    self._recorder.note(
                        "early",
                        of=number,
                        call=name,
                        text=f"{does} a tensor before the wait for its operation",
                    )

    def _under_way(self, tensor: Any, writes: bool) -> int | None:
        """The number of the event whose wait should come first, or None."""
        import torch

        if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout != torch.strided:
            return None
        operations = self._under_way_by_storage.get(tensor.untyped_storage()._cdata, ())
        return next(
            (
                number
                for storage, span, number, written in operations
                if (written or writes) and not storage.expired() and _overlap(span, _span(tensor))
            ),
            None,
        )


def _compile_nothing() -> Callable[[], object]:
    """Have torch.compile leave functions as they are: it would compile the recorder, too.

    Returns how to undo it.
    """
    import torch

    compiles = torch.compile
    stances: list[Any] = []

    def eagerly() -> None:
        if not stances:
            stances.append(torch.compiler.set_stance("force_eager"))

    @functools.wraps(compiles)
    def compile(*args: Any, **kwargs: Any) -> Any:
        eagerly()
        return compiles(*args, **kwargs)

    def undo() -> None:
        torch.compile = compiles
        for stance in stances:
            stance.__exit__(None, None, None)

    torch.compile = compile
    # else nothing is compiled yet, and to import it takes seconds
    if "torch._dynamo" in sys.modules:
        eagerly()
    return undo


def _runs_code_of_the_program(outputs: Iterable[Any]) -> bool:
    """Whether a backward from these runs code of the program.

    That is a Function in Python (DDP's, FSDP's and ours aside: others may call the program, as
    checkpoint's do), or a hook of a parameter or module.
    """
    seen: set[Any] = set()
    ahead: list[Any] = [
        getattr(output, "grad_fn", None) or getattr(output, "node", None) for output in outputs
    ]
    while ahead:
        node = ahead.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        function = getattr(node, "_forward_cls", None)
        if function is None:
            leaf = getattr(node, "variable", None)
            if leaf is not None and (leaf._backward_hooks or leaf._post_accumulate_grad_hooks):
                return True
        elif not function.__module__.startswith(
            ("torch.distributed.", "torch.nn.parallel.", "manyhands.")
        ):
            return True
        ahead += [following for following, _ in node.next_functions]
    return False


def _span(tensor: torch.Tensor) -> Bytes:
    """Return from which byte of its storage to which a tensor is.

    What is between its elements counts as its own.
    """
    first = int(tensor.storage_offset())
    last = first + sum(
        (size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )
    return (
        first * tensor.element_size(),
        (last + 1 if tensor.numel() else first) * tensor.element_size(),
    )


def _overlap(first: Bytes, second: Bytes) -> bool:
    return max(first[0], second[0]) < min(first[1], second[1])


class Reads:
    """Notes where the program itself asks for a tensor's value."""

    def __init__(self, recorder: Recorder) -> None:
        import torch

        self.undo: list[Callable[[], object]] = []
        for name in READING:
            _replace(torch.Tensor, name, functools.partial(_note, recorder, "read"), self.undo)


class Clocks:
    """Notes where the program itself reads a clock."""

    def __init__(self, recorder: Recorder) -> None:
        self.undo: list[Callable[[], object]] = []
        for name in CLOCKS:
            _replace(time, name, functools.partial(_note, recorder, "clock"), self.undo)


def _note(recorder: Recorder, kind: str, name: str) -> None:
    recorder.note(kind, call=name)


def _replace(
    owner: Any, name: str, hear: Callable[[str], object], undo: list[Callable[[], object]]
) -> None:
    """Have `hear(name)` called whenever the program itself calls this."""
    original = getattr(owner, name)
    own = name in vars(owner)

    @functools.wraps(original)
    def noted(*args: Any, **kwargs: Any) -> Any:
        if is_user_file(sys._getframe(1).f_code.co_filename):
            hear(name)
        return original(*args, **kwargs)

    setattr(owner, name, noted)
    undo.append((lambda: setattr(owner, name, original)) if own else (lambda: delattr(owner, name)))
