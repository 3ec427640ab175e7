"""The peak of a block's memory: how far this process rises above its level at the beginning.

On a GPU it is torch's own count: `torch.cuda.max_memory_allocated` over the block, less what was
allocated when it began. On the CPU it is the Linux kernel's: the resident set of the process, whose
peak (`VmHWM` in /proc/self/status) begins anew when 5 is written to /proc/self/clear_refs
(proc(5)). Both see whatever frees or takes memory, on any thread: gloo's threads let go of a
collective's tensors, which torch's profiler does not see.

The kernel counts pages of 4 KiB that were written to. So that a freed tensor goes back to it at
once, malloc maps blocks of 64 KiB and more one by one from the first count of a process on
(mallopt(3), M_MMAP_THRESHOLD), and each count begins with malloc's free pages given back. What was
made before that first count and freed since may have left holes in malloc's heap: tensors that go
into one are not given back, and count to the end. So open a ledger with memory before you make
large tensors. n tensors of 1 MiB that are alive at the end are counted to 1 %. Of a peak that has
passed the kernel knows portions of 32 pages for each processor: it may be told 0.3 MiB too small on
two, so measure with tensors of some MiB.

What it is not: tensors alone. The first call of an operation brings in its library's code, some MiB
once: run it before. Memory that is never written to (`torch.empty`) costs nothing. What is freed in
the block and was there before it may make the number smaller, on the GPU too.
"""

from __future__ import annotations

import ctypes
import gc
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # mallopt's names for them, in malloc.h
_ONE_BY_ONE_BYTES = 64 * 1024
UNSUPPORTED = (
    "Ledger(memory=True) needs counters of the Linux kernel, which are not accessible on this "
    "machine ({why}). Open the ledger without memory=True, which changes none of its other "
    "numbers."
)
ALREADY_COUNTING = (
    "Ledger(memory=True) cannot count while another such ledger is open, because the peak of that "
    "one would be reset: close it first"
)

_is_counting = False


class Peak:
    """Counts from `start` to `stop`, which returns the peak in bytes.

    One at a time in a process.
    """

    def start(self) -> None:
        """Begin to count.

        ValueError while another count runs, or where the counters are missing.
        """
        global _is_counting
        if _is_counting:
            raise ValueError(ALREADY_COUNTING)
        self._counter: _OnGpu | _OnCpu = _OnGpu() if _gpu_in_use() else _OnCpu()
        _is_counting = True

    def stop(self) -> int:
        """The most bytes above those at `start`; the next count may then begin."""
        global _is_counting
        _is_counting = False
        return self._counter.peak_bytes()


def _gpu_in_use() -> bool:
    import torch

    return torch.cuda.is_available() and torch.cuda.is_initialized()


class _OnGpu:
    def __init__(self) -> None:
        import torch

        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        self._before = torch.cuda.memory_allocated()

    def peak_bytes(self) -> int:
        import torch

        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - self._before


class _OnCpu:
    def __init__(self) -> None:
        if not sys.platform.startswith("linux"):
            raise ValueError(UNSUPPORTED.format(why="it is not Linux"))
        gc.collect()
        _malloc_gives_back()
        try:
            with open("/proc/self/clear_refs", "w", encoding="ascii") as peak:
                peak.write("5")
        except OSError as error:
            raise ValueError(UNSUPPORTED.format(why=error)) from None
        self._before = _of_the_process("VmRSS")

    def peak_bytes(self) -> int:
        return _of_the_process("VmHWM") - self._before


def _malloc_gives_back() -> None:
    """Have malloc map large blocks one by one, and give them back when they are freed.

    What is free now goes back as well.

    Nothing where malloc is not glibc's.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt") and hasattr(library, "malloc_trim"):
        library.mallopt(_MMAP_THRESHOLD, _ONE_BY_ONE_BYTES)
        library.mallopt(_TRIM_THRESHOLD, 2 * _ONE_BY_ONE_BYTES)
        library.malloc_trim(0)


def _of_the_process(name: str) -> int:
    """Bytes of the resident set now ("VmRSS") or at its peak ("VmHWM")."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name + ":")) * 1024
