"""What a step costs this rank: its time by what was done, its messages, its memory, by kernel and clock."""

import glob
import os
import resource
import time


class Spans:
    """Notes spans of time always, and keeps those between `open` and `close`, with the ledger of that time."""

    def __init__(self):
        self.spans, self.bounds, self._kernel, self._threads = [], [], [], []
        self.ledger, self.account, self.calls = None, None, []
        self._open, self._begun = False, None

    def note(self, kind, start, stop):
        if self._open:
            self.spans.append((kind, start, stop))

    def input(self, start, stop):
        self.note("input", start, stop)

    def step_begins(self):
        if self._begun is None:
            self._begun = time.perf_counter()

    def step_ends(self):
        now = time.perf_counter()
        if self._begun is not None:
            self.note("step", self._begun, now)
        self._begun = None
        if self._open:
            self.bounds.append(now)
            self._kernel.append(of_main_thread())
            self._threads.append(waits_of_threads())

    def open(self):
        from manyhands.ledger import Ledger

        self.ledger = Ledger()
        self.ledger.__enter__()
        self._open = True
        self.bounds, self._kernel, self._threads = [time.perf_counter()], [of_main_thread()], [waits_of_threads()]

    def close(self):
        if not self._open:
            return
        self._open = False
        self.ledger.__exit__(None, None, None)
        self.account = self.ledger.account()
        self.calls = [{"call": e.call, "bytes": e.bytes, "start": e.start_s, "stop": e.stop_s}
                      for e in self.ledger.entries]

    def facts(self):
        """All as plain values; times are those of one clock for all processes of this machine."""
        return {"spans": self.spans, "bounds": self.bounds, "kernel": self._kernel, "threads": self._threads,
                "calls": self.calls, "account": self.account, "gpu_peak_bytes": _gpu_peak(),
                "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}


def of_main_thread():
    """Seconds that the main thread has run, and has been ready and waited for a core; None where it is no Linux."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/schedstat") as file:
            ran, ready, _ = file.read().split()
        return int(ran) / 1e9, int(ready) / 1e9
    except OSError:
        return None


def waits_of_threads():
    """{thread: seconds for which it has been ready to run and waited for a core}; empty where it is no Linux."""
    waits = {}
    for path in glob.glob("/proc/self/task/*/schedstat"):
        try:
            with open(path) as file:
                waits[path.split("/")[4]] = int(file.read().split()[1]) / 1e9
        except (OSError, IndexError):  # it has just ended
            continue
    return waits


def _gpu_peak():
    import torch

    return torch.cuda.max_memory_allocated() if torch.cuda.is_available() and torch.cuda.is_initialized() else None
