"""How an observer ends: what it waits for after the steps, what it writes down, and the end of the process."""

import os
import sys
import threading
import time

from manyhands import gpu_stand_in
from manyhands.clinic.messages import sums_gradients
from manyhands.clinic.replay_rows import one_process
from manyhands.clinic.reporter import write_json, write_tensors

RECORD, MEASURE = 4, 5  # steps; of those measured the first is not counted
NEXT_EPOCH_S, OTHERS_S = 10, 30  # how long the next epoch, and the other ranks, are waited for
AWAIT_S = 5  # how long an average of the weights is waited for
ENDING = threading.Lock()


class End:
    """The part of an `Observer` that follows its steps."""

    @property
    def _silent(self):
        """Whether no gradient and no activation was sent in the steps that were written down, as far as is seen."""
        return self.size > 1 and not {"horovod", "mpi4py"} & set(sys.modules) and not any(
            sums_gradients(one) or one["phase"] == "forward" or one["peer"] is not None
            for step in self.steps for one in step["messages"])

    def _steps_are_over(self):
        self.spans.close()
        if self.options["to_end"]:
            return
        shuffles = any(order["shuffle"] for order in self.loaders.orders)
        if not self._silent and (not shuffles or self.loaders.trained_twice()):
            self.end()
        self._write()
        self.ends[self.done] = self._weights_digest()
        self.going_on, self.loaders.cut = True, self.loaders.training
        timer = threading.Timer(AWAIT_S if self._silent else NEXT_EPOCH_S, self.end)
        timer.daemon = True
        timer.start()

    def _save(self):
        if self._saved:
            return
        self._saved = True
        self.messages.close()
        write_tensors(os.path.join(self.folder, f"seen-{self.rank}.pt"), {
            "rank": self.rank, "size": self.size, "missed": self.missed, "start": self.start, "steps": self.steps,
            "seed": self.seed, "models": len(self.models), "sharded": self.sharded, "stride": self.stride,
            "wrapper": self.wrapper, "scaled": self.losses.scaled, "flat": self.flat, "low": self.low,
            "loader": self.loaders.facts(), "splits": self.loaders.split_facts(),
            "ddp": {"made": bool(self.in_ddp), "broadcasts": self.broadcasts, "unfrozen": [
                name for number, name in self.names.items() if self.in_ddp.get(number) is False]},
            "frameworks": [name for name in ("horovod", "mpi4py") if name in sys.modules]})

    def _write(self):
        self._save()
        self.spans.close()
        write_json(os.path.join(self.folder, f"cost-{self.rank}.json"),
                   {**self.spans.facts(), "steps": RECORD + MEASURE if self.going_on else self.done,
                    "orders": list(self.loaders.orders), "begins": dict(self.begins), "ends": dict(self.ends)})

    def end(self, code=0):
        """Write down what is left and end this process, when the other ranks have come so far too. The first thread
        that comes here does so; the process ends under any other one."""
        if not ENDING.acquire(blocking=False):
            threading.Event().wait()
        self.reporter.state = "finished" if not code else "failed"
        self._write()
        write_json(os.path.join(self.folder, f"done-{self.rank}.json"), code)
        self.reporter.write()
        sys.stdout.flush()
        sys.stderr.flush()
        if not code:
            self._wait_for_others()
            if self.rank == 0 and self.copy is not None:
                gpu_stand_in.alone()
                one_process(self.copy, self.folder, self.size, self.stride)
        os._exit(code)

    def _wait_for_others(self):
        deadline = time.monotonic() + OTHERS_S
        while time.monotonic() < deadline:
            if all(os.path.exists(os.path.join(self.folder, f"done-{rank}.json")) for rank in range(self.size)):
                break
            time.sleep(0.05)
