"""Reading the main thread's stack from another thread.

It says where that thread is, and whether it waits for communication.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import inspect
import os
import re
import sys
import sysconfig
import threading
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.cluster.on_rank.running_call import text_of_running_call

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Sequence
    from types import FrameType
    from typing import Any

    from manyhands.cluster.payloads import FileLine, Note, Spot, Stand

_LIBRARIES = tuple(
    sorted(
        {
            os.path.realpath(sysconfig.get_path(name)) + os.sep
            for name in ("stdlib", "platstdlib", "purelib", "platlib")
        }
        | {
            sysconfig.get_path(name) + os.sep
            for name in ("stdlib", "platstdlib", "purelib", "platlib")
        }
    )
)
# elsewhere: the packages of a site, a folder in PYTHONPATH
_INSTALLED = re.compile(r"/(site|dist)-packages/")
_HERE = str(Path(__file__).absolute().parents[2]) + os.sep  # the package
_LEDGER = _HERE + "ledger" + os.sep
_AGENT = str(Path(__file__).absolute().with_name("agent.py"))
# packages whose frames mean communication when the process does nothing else
_COMMUNICATION = tuple(
    os.sep + part.replace("/", os.sep)
    for part in (
        "torch/distributed/",
        "torch/autograd/",
        "torch/nn/parallel/",
        "horovod/",
        "mpi4py/",
        "torch/futures/",
        "tensorflow/",
        "manyhands/functions",
        "manyhands/comm",
    )
)
# frames around a framework's function, which say nothing of it
_WRAPPERS = {"error_handler", "wrapper", "inner", "decorated", "__call__", "__init__"}
_HOROVOD_INIT = os.path.join("horovod", "common", "basics.py")
_HOROVOD_WAIT = os.path.join("horovod", "torch", "mpi_ops.py")
TIMED = "<timed "  # what IPython names the code that `%%time` runs
IDLE_SHARE = 0.1  # of one core: below it, a process in such a frame is waiting


@functools.lru_cache(maxsize=4096)
def is_user_file(filename: str) -> bool:
    """Whether the learner wrote this file, as a cell or a script is.

    False for Python, installed packages and manyhands itself.
    """
    if filename.startswith("<") and not filename.startswith(("<ipython-input", TIMED)):
        return False
    path = os.path.abspath(filename)
    # TensorFlow's own rewriting, in the folder for temporary files
    if os.path.basename(path).startswith("__autograph_generated_file"):
        return False
    return (
        not path.startswith(_LIBRARIES)
        and not path.startswith(_HERE)
        and not _INSTALLED.search(path)
    )


class Stack:
    """The stack of one thread of this process, looked at again and again.

    `cpu_s()` returns the processor time; while it does not grow, the thread waits.
    """

    def __init__(
        self, thread_id: int | None, cpu_s: Callable[[], float] = time.process_time
    ) -> None:
        self._thread_id, self._cpu_s = thread_id, cpu_s
        self._before = (time.monotonic(), cpu_s())
        # Horovod's threads, by number: what they take is no work of the learner's
        self.never_rest: set[str] = set()
        # of a cell with `await`: while it is suspended, its lines are not on the stack
        self.awaited: Coroutine[Any, Any, Any] | None = None
        self._handle: weakref.ref[Any] | None = None

    @property
    def handle(self) -> Any:
        """The Work that was last seen to be waited for, while it lives; or None."""
        return self._handle and self._handle()

    def look(self) -> Stand:
        """Where the thread is: {"blocked", "key", "call", "lines"}.

        `key` stays the same as long as the thread stays in the same call.
        """
        with _no_collection():
            return self._look()

    def _look(self) -> Stand:
        clock, cpu = time.monotonic(), self._cpu_s() - sum(map(_thread_s, self.never_rest))
        idle = (cpu - self._before[1]) < IDLE_SHARE * max(1e-3, clock - self._before[0])
        self._before = (clock, cpu)
        frames: list[FrameType] = []
        frame = None if self._thread_id is None else sys._current_frames().get(self._thread_id)
        while frame is not None:
            frames.append(frame)
            frame = frame.f_back
        if not _users(frames) and (suspended := _suspended(self.awaited)):
            frames = suspended
        users = _users(frames)
        lines: list[Spot] = [
            {
                "file": os.path.basename(f.f_code.co_filename),
                "path": f.f_code.co_filename,
                "line": f.f_lineno,
                "function": f.f_code.co_name,
            }
            for _, f in reversed(users)
        ]
        depth, innermost = next(
            iter(users or [(i, f) for i, f in enumerate(frames) if f.f_code.co_filename == _AGENT]),
            (0, None),
        )
        if innermost is None:
            return {"blocked": False, "key": "", "call": None, "lines": []}
        inner = frames[:depth]
        name, work = _communication_call(inner, innermost, idle)
        self._handle = None if work is None else weakref.ref(work)
        key = " ".join(f"{id(f):x}:{f.f_lasti}" for f in frames[: depth + 1])
        if _polls(inner):
            key += f" {_local(inner[0], 'handle')}"  # the next wait has a different one
        call: Note | None = {"call": name, **innermost_of(lines)} if name else None
        return {"blocked": bool(name), "key": key, "call": call, "lines": lines}


def _thread_s(number: str) -> float:
    """The processor time of a thread of this process, on Linux."""
    try:
        with open(f"/proc/self/task/{number}/schedstat") as file:
            return int(file.read().split()[0]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def threads() -> set[str]:
    """The numbers of this process's threads, on Linux."""
    try:
        return set(os.listdir("/proc/self/task"))
    except OSError:
        return set()


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Without garbage collection, as reading another thread's frames needs it in Python 3.11.

    `f_back` and `f_locals` make objects there, which may start a collection in the middle of them.
    A finalizer (a tensor's, a graph's) that gives up the GIL then lets the other thread return from
    the very frame that is being read: a segmentation fault. (Since 3.12 a collection waits for the
    end of the bytecode.)
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def user_code_in_other_threads() -> bool:
    """Whether a thread other than this one runs what the learner wrote."""
    with _no_collection():
        for thread, innermost in sys._current_frames().items():
            frame: FrameType | None = innermost
            while thread != threading.get_ident() and frame is not None:
                if is_user_file(frame.f_code.co_filename):
                    return True
                frame = frame.f_back
    return False


def innermost_of(lines: Sequence[Spot]) -> FileLine:
    """File and line of the learner's innermost line, empty where there is none."""
    return {"file": lines[-1]["file"] if lines else "", "line": lines[-1]["line"] if lines else 0}


def _users(frames: list[FrameType]) -> list[tuple[int, FrameType]]:
    """The learner's frames as [(index, frame)], innermost first.

    Where there are none, those of functions that come from a text without a name.
    """
    return [(i, f) for i, f in enumerate(frames) if is_user_file(f.f_code.co_filename)] or [
        (i, f)
        for i, f in enumerate(frames)
        if f.f_code.co_filename in ("<string>", "<stdin>") and f.f_code.co_name != "<module>"
    ]


def _suspended(coroutine: Any) -> list[FrameType]:
    """The frames of a coroutine and of those that it awaits, innermost first."""
    frames: list[FrameType] = []
    while getattr(coroutine, "cr_frame", None) is not None:
        frames.insert(0, coroutine.cr_frame)
        coroutine = coroutine.cr_await
    return frames


def _communication_call(
    inner: list[FrameType], innermost: FrameType, idle: bool
) -> tuple[str | None, Any]:
    """The name of the call that the thread waits in, and the Work that it waits for.

    The name is None if it computes; the Work is None where it is not known.
    """
    owner, value = _owner_of_running_call(inner[0] if inner else innermost)
    if (
        inner
        and inner[0].f_code.co_name == "wait"
        and inner[0].f_code.co_filename.startswith(_LEDGER)
    ):
        # the ledger puts a wait of its own in the place of torch's
        owner, value = "torch.distributed.Work", _local(inner[0], "work")
    if owner and owner.startswith("mpi4py"):
        return owner, None
    names: list[str | None] = [
        f.f_code.co_name
        for f in reversed(inner)
        if any(part in f.f_code.co_filename for part in _COMMUNICATION)
    ]
    if owner and not names:
        return "Work.wait", value
    # with Horovod's init a rank does nothing but wait, however busy the server of its rendezvous is
    starts = (
        bool(inner)
        and inner[0].f_code.co_name == "init"
        and inner[0].f_code.co_filename.endswith(_HOROVOD_INIT)
    )
    if not (idle or owner or starts or _polls(inner)):
        return None, None
    if names and names[0] in _WRAPPERS:
        names = [
            _name_in_text(innermost),
            *(name for name in names if name not in _WRAPPERS),
            names[0],
        ]
    return next(filter(None, names), None), None


def _polls(inner: list[FrameType]) -> bool:
    """Whether the thread is in Horovod's wait.

    It asks a thousand times a second whether the message has arrived: on a busy machine this takes
    more of a core than a thread that is idle.
    """
    return (
        bool(inner)
        and inner[0].f_code.co_name == "synchronize"
        and (inner[0].f_code.co_filename.endswith(_HOROVOD_WAIT))
    )


def name_in_line(source: str) -> str:
    """The function that a line calls, as far as the line alone shows it.

    It is a class, if the line makes an object of one.
    """
    names = re.findall(r"(\w+)\s*\(", source)
    return next((name for name in names if name[:1].isupper()), names[0] if names else "")


def communication_name(inner: Sequence[tuple[str, str]]) -> str | None:
    """The name of the communication call among frames below the learner's.

    `inner` is [(path, function), ...], innermost first. The name is "" where only the learner's
    text can tell it, None where there is no such call.
    """
    # with torch's, the function has a frame
    names = [
        function
        for path, function in reversed(inner)
        if any(part in path for part in _COMMUNICATION)
        and not (function in _WRAPPERS and _COMMUNICATION[0] in path)
    ]
    return None if not names else "" if names[0] in _WRAPPERS else names[0]


def struck(path: str, deepest: int = 4) -> list[str]:
    """Where the thread was that a fatal signal struck, innermost frame first.

    It is read from `path`, where faulthandler wrote it, as ["function (file.py, line 3)", ...].
    """
    try:
        with open(path, errors="replace") as file:
            stack = file.read().partition("Current thread")[2].split("\n\n")[0]
    except OSError:  # on another host
        return []
    frames = re.findall(r'File "(.+?)", line (\d+) in (.+)', stack)
    return [
        f"{function} ({os.path.basename(file)}, line {line})"
        for file, line, function in frames[:deepest]
    ]


def _owner_of_running_call(frame: FrameType) -> tuple[str | None, Any]:
    """Of a C function that `frame` is inside of: the type that it belongs to, and the value.

    Such a function is `work.wait()`. The type is given where it is known.
    """
    code = frame.f_code
    names = code.co_names + code.co_varnames
    text = text_of_running_call(frame)
    if text is None or "\n" in text:
        return None, None
    target = text.split("(", 1)[0].strip()
    parts = target.split(".")
    if len(parts) < 2 or not all(part.isidentifier() for part in parts) or parts[0] not in names:
        return None, None
    value = _local(frame, parts[0])
    for part in parts[1:-1]:
        value = getattr(value, part, None)
    kind = type(value)
    if kind.__name__ == "Work" and "distributed" in kind.__module__:
        return "torch.distributed.Work", value
    if kind.__module__.startswith("mpi4py"):
        return f"{kind.__module__}.{kind.__name__}.{parts[-1]}", value
    return None, None


def _local(frame: FrameType, name: str) -> Any:
    """What a name means in a frame, or None; without a trace.

    Before Python 3.13 `f_locals` of a function is a dict that its frame keeps, so everything in it
    would live until the function returns: tensors that it has let go long before would be counted
    as memory that it needs. So the dict is emptied, unless somebody else has it too (`here =
    locals()`).
    """
    values = frame.f_locals
    value = values.get(name, frame.f_globals.get(name))
    of_function = frame.f_code.co_flags & inspect.CO_OPTIMIZED and isinstance(values, dict)
    if of_function and sys.getrefcount(values) <= 3:  # the frame's, `values`, and the argument
        values.clear()
    return value


def _name_in_text(frame: FrameType) -> str | None:
    """The name of the function that `frame` calls, as it is written there; or None.

    For example "fit" of `model.fit(x)`.
    """
    try:
        call = ast.parse(text_of_running_call(frame) or "", mode="eval").body
    except SyntaxError:  # no text
        return None
    if not isinstance(call, ast.Call):  # an operator, a loop
        return None
    return getattr(call.func, "attr", None) or getattr(call.func, "id", None)
