"""Reading the main thread's stack from another thread: where does it stand, and is it waiting for communication?"""

import functools
import os
import re
import sys
import sysconfig
import time

_LIBRARIES = tuple(sorted({os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")}
                          | {sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")}))
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LEDGER = _HERE + "ledger" + os.sep
# packages whose frames mean communication when the process does nothing else
_COMMUNICATION = tuple(os.sep + part.replace("/", os.sep) for part in (
    "torch/distributed/", "torch/autograd/", "torch/nn/parallel/", "horovod/", "mpi4py/", "tensorflow/", "manyhands/functions", "manyhands/comm"))
IDLE_SHARE = 0.1  # of one core: below it, a process that stands in such a frame is waiting


@functools.lru_cache(maxsize=4096)
def is_user_file(filename):
    """True for what the learner wrote: a cell, a script; false for Python, installed packages and manyhands itself."""
    if filename.startswith("<") and not filename.startswith("<ipython-input"):
        return False
    path = os.path.abspath(filename)
    return not path.startswith(_LIBRARIES) and not path.startswith(_HERE)


class Stack:
    """The stack of one thread of this process, looked at again and again."""

    def __init__(self, thread_id):
        self._thread_id = thread_id
        self._before = (time.monotonic(), time.process_time())

    def look(self):
        """{"blocked", "key", "call", "lines"}: `key` stays the same as long as the thread stays in the same call."""
        clock, cpu = time.monotonic(), time.process_time()
        idle = (cpu - self._before[1]) < IDLE_SHARE * max(1e-3, clock - self._before[0])
        self._before = (clock, cpu)
        frames, frame = [], sys._current_frames().get(self._thread_id)
        while frame is not None:
            frames.append(frame)
            frame = frame.f_back
        users = [(i, f) for i, f in enumerate(frames) if is_user_file(f.f_code.co_filename)]
        lines = [{"file": os.path.basename(f.f_code.co_filename), "path": f.f_code.co_filename, "line": f.f_lineno, "function": f.f_code.co_name}
                 for _, f in reversed(users)]
        if not users:
            return {"blocked": False, "key": "", "call": None, "lines": []}
        depth, innermost = users[0]
        inner = frames[:depth]
        name = _communication_call(inner, innermost, idle)
        key = " ".join(f"{id(f):x}:{f.f_lasti}" for f in frames[: depth + 1])
        call = name and {"call": name, "file": lines[-1]["file"], "line": lines[-1]["line"]}
        return {"blocked": bool(name), "key": key, "call": call, "lines": lines}


def _communication_call(inner, innermost, idle):
    """The name of the call that the thread waits in, or None if it computes."""
    owner = _owner_of_running_call(inner[0] if inner else innermost)
    if owner == "torch.distributed.Work" or inner and inner[0].f_code.co_name == "wait" and inner[0].f_code.co_filename.startswith(_LEDGER):
        return "Work.wait"  # the ledger puts a wait of its own in the place of torch's
    if owner and owner.startswith("mpi4py"):
        return owner
    for frame in reversed(inner):
        if idle and any(part in frame.f_code.co_filename for part in _COMMUNICATION):
            return frame.f_code.co_name
    return None


def struck(path, deepest=4):
    """Where the thread stood that a fatal signal struck, as faulthandler wrote it to `path`: ["function (file.py, line 3)", ...], innermost first."""
    try:
        with open(path, errors="replace") as file:
            stack = file.read().partition("Current thread")[2].split("\n\n")[0]
    except OSError:  # on another host
        return []
    found = re.findall(r'File "(.+?)", line (\d+) in (.+)', stack)
    return [f"{function} ({os.path.basename(file)}, line {line})" for file, line, function in found[:deepest]]


def _owner_of_running_call(frame):
    """Of a C function that `frame` is inside of, such as `work.wait()`: the type that it belongs to, where it is known."""
    code = frame.f_code
    names = code.co_names + code.co_varnames
    try:
        positions = list(code.co_positions())[frame.f_lasti // 2]
    except (AttributeError, IndexError):
        return None
    import linecache

    line, end_line, start, end = positions
    if line is None or start is None or line != end_line:
        return None
    text = linecache.getline(code.co_filename, line).encode()[start:end].decode(errors="replace")
    target = text.split("(", 1)[0].strip()
    parts = target.split(".")
    if len(parts) < 2 or not all(part.isidentifier() for part in parts) or parts[0] not in names:
        return None
    value = frame.f_locals.get(parts[0], frame.f_globals.get(parts[0]))
    for part in parts[1:-1]:
        value = getattr(value, part, None)
    kind = type(value)
    if kind.__name__ == "Work" and "distributed" in kind.__module__:
        return "torch.distributed.Work"
    if kind.__module__.startswith("mpi4py"):
        return f"{kind.__module__}.{kind.__name__}.{parts[-1]}"
    return None
