"""The peak of a block's tensor memory, as torch itself counts it; not the size of the process.

On a GPU: `torch.cuda.max_memory_allocated` over the block, less what was allocated when it began. On the CPU torch keeps no such number, but
its allocator tells a profiler of each allocation and each release; this module listens as one does (`torch.autograd.profiler_legacy` with
profile_memory=True, the same events without a trace) and adds them up. What was alive before the block is not in the number, and does not
make it smaller when it is freed inside.

Limits on the CPU: some microseconds for each operator; threads that torch does not start by itself are not seen, nor memory that does not
come from torch's allocator (oneDNN's scratch space, numpy's arrays); no other profiler can be at work on the same thread. On the GPU the
block resets torch's own peak.
"""

import os
import threading
from contextlib import contextmanager


class Peak:
    """Counts from `start` to `stop`, which returns the peak in bytes."""

    def start(self):
        import torch

        self._on_gpu = torch.cuda.is_available() and torch.cuda.is_initialized()
        if self._on_gpu:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            self._before = torch.cuda.memory_allocated()
            return
        from torch._C._autograd import _enable_profiler_legacy, _profiler_enabled
        from torch.autograd.profiler_legacy import profile

        if _profiler_enabled():
            raise ValueError("Ledger(memory=True) cannot count while another profiler or another such ledger is at work: leave that one first")
        self._quiet = _without_warnings()
        self._quiet.__enter__()
        _enable_profiler_legacy(profile(profile_memory=True).config())

    def stop(self):
        import torch

        if self._on_gpu:
            torch.cuda.synchronize()
            return torch.cuda.max_memory_allocated() - self._before
        from torch._C._autograd import _disable_profiler_legacy

        threads = _disable_profiler_legacy()
        self._quiet.__exit__(None, None, None)
        return _peak(threads)


def _peak(threads):
    """Add up all threads' allocations in the order of their times."""
    if not threads:
        return 0
    first = threads[0][0]
    changes = [(first.cpu_elapsed_us(event), event.cpu_memory_usage()) for events in threads for event in events
               if event.kind() == "memory_alloc"]
    if len(threads) > 1:
        changes.sort(key=lambda change: change[0])
    alive = peak = 0
    for _, nbytes in changes:
        alive += nbytes
        peak = max(peak, alive)
    return peak


@contextmanager
def _without_warnings():
    """Keep one line of torch's C++ side off stderr: that a block was freed which is older than the profiler. All other lines pass."""
    kept = os.dup(2)
    reads, writes = os.pipe()
    os.dup2(writes, 2)
    os.close(writes)

    def pass_on():
        with os.fdopen(reads, "rb") as lines:
            for line in lines:
                if b"Memory block of unknown size was allocated before the profiling started" not in line:
                    os.write(kept, line)

    thread = threading.Thread(target=pass_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        os.dup2(kept, 2)  # closes the last writing end: the thread comes to its end
        thread.join(timeout=5)
        os.close(kept)
