"""The time line of a training step: what a rank computes, and when its messages are under way."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from manyhands.ledger.core import Ledger

if TYPE_CHECKING:
    import torch

    from manyhands.ledger.entry import Entry

# "compute", "network" -> (start_ms, stop_ms, label)
Lanes = dict[str, list[tuple[float, float, str]]]
if TYPE_CHECKING:
    Way = tuple[Callable[[], torch.Tensor], Callable[[], object]]  # loss, finish


def median_steps(ways: Mapping[str, Way], warm_up: int = 3, repeats: int = 9) -> dict[str, Lanes]:
    """Time a step of training in several ways, in turn.

    Of each way it returns the step of median length as plain numbers.

    `ways` maps a name to `(loss, finish)`: two functions without arguments, the forward pass and
    what stands between backward and the optimiser. All ranks of the world call it. Returns `{name:
    {"compute": [(start_ms, stop_ms, label)], "network": [...]}}` in ms from the start of backward.
    A message is under way from the call that starts it until its work is done; its label is its
    number.
    """
    steps: dict[str, list[Lanes]] = {name: [] for name in ways}
    for _ in range(warm_up + repeats):
        for name, (loss, finish) in ways.items():
            steps[name].append(_step(loss, finish))
    return {name: sorted(taken[warm_up:], key=_end)[repeats // 2] for name, taken in steps.items()}


def _step(loss: Callable[[], torch.Tensor], finish: Callable[[], object]) -> Lanes:
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
    messages = [_message(entry, start_s, i) for i, entry in enumerate(ledger.entries)]
    return {"compute": [(0.0, (backward_s - start_s) * 1e3, "backward")], "network": messages}


def _message(entry: Entry, start_s: float, number: int) -> tuple[float, float, str]:
    if entry.stop_s is None:
        raise TimeoutError(
            f"message {number} of this step ({entry.call}) has not ended within 5 s: have all ranks"
            " called it?"
        )
    return (entry.start_s - start_s) * 1e3, (entry.stop_s - start_s) * 1e3, str(number)


def _end(step: Lanes) -> float:
    return max(stop_ms for lane in step.values() for _, stop_ms, _ in lane)
