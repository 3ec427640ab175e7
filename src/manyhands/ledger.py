"""Counts what a rank asks of its process groups: which collective, how large, when it started and when it ended.

    with Ledger() as ledger:
        loss.backward()
    ledger.count("allreduce"), ledger.bytes("allreduce")

The ledger stands below `torch.distributed`'s functions, at the methods of `ProcessGroup`, so it sees a call by whatever name
it was imported. It does not see what C++ code sends by itself, DistributedDataParallel's own reducer above all: give that one a
communication hook in Python (`ddp.register_comm_hook(None, allreduce_hook)`), and the ledger sees each bucket.
"""

import functools
import time
from dataclasses import dataclass

# method of ProcessGroup -> the position of the argument that holds what this rank hands in
CALLS = {"allreduce": 0, "allreduce_coalesced": 0, "broadcast": 0, "reduce": 0, "send": 0, "recv": 0, "barrier": None,
         "allgather": 1, "_allgather_base": 1, "all_gather_single": 1, "allgather_coalesced": 1, "gather": 1, "scatter": 1,
         "reduce_scatter": 1, "_reduce_scatter_base": 1, "reduce_scatter_single": 1, "alltoall": 1, "alltoall_base": 1,
         "all_to_all_single": 1}


@dataclass
class Entry:
    """One call. Times are `time.perf_counter()` seconds; `stop_s` is None until the work has ended."""

    call: str
    numel: int
    bytes: int
    group_size: int
    start_s: float
    stop_s: float | None = None


class Ledger:
    """A context manager; `entries` lists this rank's calls in the order in which they were made. Ledgers can be nested.

    With gloo `stop_s` is the moment at which the work was done. With NCCL a work counts as done when it is queued on the GPU.
    `on_entry`, if given, is called with each new `Entry`.
    """

    def __init__(self, on_entry=None):
        self.entries, self._on_entry, self._originals = [], on_entry, {}

    def count(self, call):
        return sum(entry.call == call for entry in self.entries)

    def bytes(self, call):
        return sum(entry.bytes for entry in self.entries if entry.call == call)

    def __enter__(self):
        from torch.distributed import ProcessGroup

        for call in CALLS:
            if call in vars(ProcessGroup):  # not getattr: that unbinds the method, and it could not be put back
                self._originals[call] = vars(ProcessGroup)[call]
                setattr(ProcessGroup, call, self._noting(call, getattr(ProcessGroup, call)))
        return self

    def __exit__(self, *exception):
        from torch.distributed import ProcessGroup

        for call, original in self._originals.items():
            setattr(ProcessGroup, call, original)
        self._originals.clear()

    def _noting(self, call, original):
        @functools.wraps(original)
        def noted(group, *args, **kwargs):
            entry = _entry(call, group, args)
            self.entries.append(entry)
            if self._on_entry:
                self._on_entry(entry)
            entry.start_s = time.perf_counter()
            work = original(group, *args, **kwargs)
            _note_end(work, entry)
            return work

        return noted


def _entry(call, group, args):
    place = CALLS[call]
    given = [] if place is None else [tensor for tensor in _flat(args[place:place + 1]) if hasattr(tensor, "element_size")]
    return Entry(call, sum(t.numel() for t in given), sum(t.numel() * t.element_size() for t in given), group.size(), 0.0)


def _flat(values):
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _flat(value)
        else:
            yield value


def _note_end(work, entry):
    def ended(future):
        entry.stop_s = time.perf_counter()

    try:
        work.get_future().add_done_callback(ended)
    except (RuntimeError, AttributeError):  # send, recv and barrier have no future
        pass


def median_steps(ways, warm_up=3, repeats=9):
    """Time a step of training in several ways, in turn; of each way return the step of median length as plain numbers.

    `ways` maps a name to `(loss, finish)`: two functions without arguments, the forward pass and what stands between backward and
    the optimiser. All ranks of the world call it. Returns `{name: {"compute": [(start_ms, stop_ms, label)], "network": [...]}}` in ms
    from the start of backward. A message is under way from the call that starts it until its work is done; its label is its number.
    """
    steps = {name: [] for name in ways}
    for _ in range(warm_up + repeats):
        for name, (loss, finish) in ways.items():
            steps[name].append(_step(loss, finish))
    return {name: sorted(taken[warm_up:], key=_end)[repeats // 2] for name, taken in steps.items()}


def _step(loss, finish):
    import torch.distributed as dist

    value = loss()
    dist.barrier()
    with Ledger() as ledger:
        start_s = time.perf_counter()
        value.backward()
        backward_s = time.perf_counter()
        finish()
    deadline = time.perf_counter() + 5
    while any(entry.stop_s is None for entry in ledger.entries) and time.perf_counter() < deadline:
        time.sleep(0.001)  # the thread that notes the end of a work may be a moment late
    messages = [((entry.start_s - start_s) * 1e3, (entry.stop_s - start_s) * 1e3, str(i)) for i, entry in enumerate(ledger.entries)]
    return {"compute": [(0.0, (backward_s - start_s) * 1e3, "backward")], "network": messages}


def _end(step):
    return max(stop_ms for lane in step.values() for _, stop_ms, _ in lane)
