"""A thread of each rank that reports where the script is, and ends the process when asked to."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from manyhands.clinic.clinic_limits import REPORT_PERIOD_S
from manyhands.clinic.exit_codes import RANK_STOPPED
from manyhands.clinic.spans import main_thread_times
from manyhands.cluster.on_rank import signalled_stack, tf_config
from manyhands.cluster.on_rank.recorder import Recorder
from manyhands.cluster.on_rank.stack import Stack, innermost_of, is_user_file

if TYPE_CHECKING:
    from manyhands.cluster.payloads import Stand


def processor_s() -> float:
    """Return the processor time of this process.

    With Horovod it is that of the main thread, since its own thread never rests.
    """
    times = main_thread_times() if "horovod" in sys.modules else None
    return times[0] if times else time.process_time()


class Reporter:
    """A thread that writes down where the script is, as a rank of a cluster reports it."""

    def __init__(self, folder: str, rank: int) -> None:
        self.folder, self.rank, self.state = folder, rank, "runs"
        self.on_stop: Callable[[], object] = lambda: None
        self.backwards = 0  # how often the script has called backward; the observer counts
        self._writing = threading.Lock()
        self.recorder = Recorder(os.path.join(folder, f"calls-{rank}"), is_user_file)
        self.recorder.clear(0)
        self.recorder.install()
        signalled_stack.write_on_signal(os.path.join(folder, f"stacks-{rank}"))
        tf_config.keep(os.path.join(folder, f"tf-config-{rank}"))
        self._stack = Stack(threading.main_thread().ident, processor_s)
        threading.Thread(target=self._report, daemon=True, name="where").start()

    def _report(self) -> None:
        while True:
            self.write()
            if self.must_stop():
                self.on_stop()
                os._exit(RANK_STOPPED)
            time.sleep(REPORT_PERIOD_S)

    def must_stop(self) -> bool:
        """Whether the clinic has asked all ranks to end, by the file `stop`."""
        return os.path.exists(os.path.join(self.folder, "stop"))

    def write(self) -> None:
        """Write where this rank is to `where-R.json`; any thread may call it."""
        with self._writing:  # the last report to be written is also the last one that was made
            report = {
                "rank": self.rank,
                "cell": 0,
                "state": self.state,
                "time": time.monotonic(),
                "backwards": self.backwards,
                **self._where(),
            }
            write_json(os.path.join(self.folder, f"where-{self.rank}.json"), report)

    def _where(self) -> Stand:
        report, recorder = self._stack.look(), self.recorder
        if recorder.in_call and recorder.last:
            report |= {
                "blocked": True,
                "key": f"call {recorder.entered}",
                "call": recorder.last.copy(),
            }
        elif recorder.waits is not None:
            number, note = recorder.waits
            call: Any = {
                **(note or report["call"] or {"call": "Work.wait"}),
                **innermost_of(report["lines"]),
            }
            report |= {"blocked": True, "key": f"work {number}", "call": call}
        return report


def write_json(path: str, value: Any) -> None:
    """Write it in one step, so that a reader never sees half of it."""
    part = _part(path)
    with open(part, "w") as file:
        json.dump(value, file)
    os.replace(part, path)


def write_tensors(path: str, value: Any) -> None:
    """The same for what holds tensors.

    A rank that is ended while it writes leaves no file that cannot be read.
    """
    import torch

    part = _part(path)
    torch.save(value, part)
    os.replace(part, path)


def _part(path: str) -> str:
    """Return a name for an unfinished file, different in each thread.

    Two of them may write the same file.
    """
    return f"{path}.{threading.get_ident()}.part"
