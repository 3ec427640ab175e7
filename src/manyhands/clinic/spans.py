"""Records what a step costs this rank: its time by kind of work, its messages, its memory."""

from __future__ import annotations

import glob
import os
import resource
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.clinic.records import SentCall, Span, SpansRecord
    from manyhands.ledger import Ledger
    from manyhands.ledger.account import Account


class Spans:
    """Notes spans of time between `open` and `close`, with the ledger of that time.

    Before and after, what is noted is dropped.
    """

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.bounds: list[float] = []
        self._kernel: list[tuple[float, float] | None] = []
        self._threads: list[dict[str, float]] = []
        self.ledger: Ledger | None = None
        self.account: Account | None = None
        self.calls: list[SentCall] = []
        self._begun: float | None = None
        self._open = False

    def note(self, kind: str, start: float, stop: float) -> None:
        """Note a span of time, in seconds of `time.perf_counter`, if this is open."""
        if self._open:
            self.spans.append((kind, start, stop))

    def note_input(self, start: float, stop: float) -> None:
        """Note a span in which the script waited for a batch."""
        self.note("input", start, stop)

    def begin_step(self) -> None:
        """Note that an optimiser's step begins; the outermost of nested ones counts."""
        if self._begun is None:
            self._begun = time.perf_counter()

    def end_step(self) -> None:
        """Note that the optimiser's step ended, with the counts of the kernel at this time."""
        now = time.perf_counter()
        if self._begun is not None:
            self.note("step", self._begun, now)
        self._begun = None
        if self._open:
            self.bounds.append(now)
            self._kernel.append(main_thread_times())
            self._threads.append(thread_waits())

    def open(self) -> None:
        """Begin to keep spans, and begin a ledger."""
        from manyhands.ledger import Ledger

        self.ledger = Ledger()
        self.ledger.__enter__()
        self._open = True
        self.bounds, self._kernel, self._threads = (
            [time.perf_counter()],
            [main_thread_times()],
            [thread_waits()],
        )

    def close(self) -> None:
        """End the ledger and keep no more spans; a second call does nothing."""
        if not self._open or self.ledger is None:
            return
        self._open = False
        self.ledger.__exit__(None, None, None)
        self.account = self.ledger.account()
        self.calls = [
            {"call": e.call, "bytes": e.bytes, "start": e.start_s, "stop": e.stop_s}
            for e in self.ledger.entries
        ]

    def facts(self) -> SpansRecord:
        """All as plain values; times are those of one clock for all processes of this machine."""
        return {
            "spans": self.spans,
            "bounds": self.bounds,
            "kernel": self._kernel,
            "threads": self._threads,
            "calls": self.calls,
            "account": self.account,
            "gpu_peak_bytes": _gpu_peak(),
            "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }


def main_thread_times() -> tuple[float, float] | None:
    """Return the seconds that the main thread has run, and has waited for a core.

    While it waited it was ready to run. None where the system is not Linux.
    """
    try:
        with open(f"/proc/self/task/{os.getpid()}/schedstat") as file:
            ran, ready, _ = file.read().split()
        return int(ran) / 1e9, int(ready) / 1e9
    except OSError:
        return None


def thread_waits() -> dict[str, float]:
    """Return {thread: seconds for which it has been ready to run and waited for a core}.

    Empty where the system is not Linux.
    """
    waits: dict[str, float] = {}
    for path in glob.glob("/proc/self/task/*/schedstat"):
        try:
            with open(path) as file:
                waits[path.split("/")[4]] = int(file.read().split()[1]) / 1e9
        except (OSError, IndexError):  # it has just ended
            continue
    return waits


def _gpu_peak() -> int | None:
    import torch

    return (
        torch.cuda.max_memory_allocated()
        if torch.cuda.is_available() and torch.cuda.is_initialized()
        else None
    )
