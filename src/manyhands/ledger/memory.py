"""The peak of a block's tensor memory, as torch itself counts it; not the size of the process.

On a GPU: `torch.cuda.max_memory_allocated` over the block, less what was allocated when it began. On the CPU torch
keeps no such number, but its allocator tells `torch.profiler` of each block of memory that it takes and gives back,
with its address; this module adds them up. What was alive before the block is not in the number, and does not make it
smaller when it is freed inside.

Limits on the CPU: some ten microseconds for each block of memory, most of them when the ledger closes; threads that
torch does not start by itself are not seen, nor memory that does not come from torch's allocator (oneDNN's scratch
space, numpy's arrays); no other profiler can be at work on the same thread. On the GPU the block resets torch's own
peak.
"""

import os
import threading
from contextlib import contextmanager

_MESSAGES = (b"Memory block of unknown size was allocated before the profiling started", b"SyncActivityProfilerHandler",
             b"ActivityProfilerController", b"reassociate")


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
        if torch.autograd._profiler_enabled():
            raise ValueError("Ledger(memory=True) cannot count while another profiler or another such ledger is at "
                             "work: leave that one first")
        self._quiet = _without_profiler_messages()
        self._quiet.__enter__()
        # An activity that nothing here has: allocations only. With operators it is slow, and a receive of gloo that was
        # begun
        # before the block and ends after it writes into the freed record of an operator (torch 2.13).
        config, activities = (
            torch.autograd.profiler.profile(profile_memory=True, use_kineto=True).config(),
            {torch.profiler.ProfilerActivity.MTIA},
        )
        torch.autograd._prepare_profiler(config, activities)
        torch.autograd._enable_profiler(config, activities)

    def stop(self):
        import torch

        if self._on_gpu:
            torch.cuda.synchronize()
            return torch.cuda.max_memory_allocated() - self._before
        result = torch.autograd._disable_profiler()
        self._quiet.__exit__(None, None, None)
        return _peak(result.experimental_event_tree())


def _peak(events):
    """The most that was alive at one time of what the events, each with its children, say was allocated."""
    from torch._C._profiler import _EventType

    changes = []
    while events:
        changes += [(event.start_time_ns, event.extra_fields) for event in events if event.tag == _EventType.Allocation]
        events = [child for event in events for child in event.children]
    sizes, alive, peak = {}, 0, 0
    for _, change in sorted(changes, key=lambda change: change[0]):
        if change.alloc_size > 0:
            sizes[change.ptr] = change.alloc_size
            alive += change.alloc_size
            peak = max(peak, alive)
        else:
            # 0: it is older than the block; the profiler may know it from another block
            alive -= sizes.pop(change.ptr, 0)
    return peak


@contextmanager
def _without_profiler_messages():
    """Keep what the profiler's C++ side says of itself off stderr:
    that it begins and ends, and that something older was freed. All other lines pass."""
    kept = os.dup(2)
    reads, writes = os.pipe()
    os.dup2(writes, 2)
    os.close(writes)

    def pass_on():
        with os.fdopen(reads, "rb") as lines:
            for line in lines:
                if not any(words in line for words in _MESSAGES):
                    os.write(kept, line)

    thread = threading.Thread(target=pass_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        os.dup2(kept, 2)  # closes the last writing end: the thread comes to its end
        thread.join(timeout=5)
        os.close(kept)
