"""How an observer ends: what it waits for after the steps, what it writes, the process's end."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypedDict

from manyhands import gpu_stand_in
from manyhands.clinic.clinic_limits import AVERAGE_S, NEXT_EPOCH_S, OTHERS_S, RECORDED_STEPS, STEPS
from manyhands.clinic.communication import sums_gradients
from manyhands.clinic.loaders import digest
from manyhands.clinic.one_process_run import run_in_one_process
from manyhands.clinic.recorded_values import is_plain
from manyhands.clinic.reporter import write_json, write_tensors

if TYPE_CHECKING:
    import torch
    from torch import nn
    from torch.optim import Optimizer

    from manyhands.clinic.average_observer import AverageObserver
    from manyhands.clinic.communication import CommunicationObserver
    from manyhands.clinic.flat_parts import FlatParts
    from manyhands.clinic.loaders import LoaderObserver
    from manyhands.clinic.losses import LossObserver
    from manyhands.clinic.records import Backward, Call, Given, Parts, Placement, Shard, StepRecord
    from manyhands.clinic.reporter import Reporter
    from manyhands.clinic.spans import Spans

ENDING = threading.Lock()


class Options(TypedDict):
    """What the clinic asks of an observer: the variable MANYHANDS_CLINIC."""

    to_end: bool


class ObserverEnd:
    """The part of an `Observer` that follows its steps."""

    folder: str
    rank: int
    size: int
    reporter: Reporter
    options: Options
    going_on: bool
    done: int
    steps: list[StepRecord]
    models: list[nn.Module]
    names: dict[int, str]
    stride: int
    start: Parts
    sharded: dict[str, Shard]
    copy: nn.Module | None
    seed: int | None
    wrapper: str
    missed: str
    ddp_sends: bool
    in_ddp: dict[int, bool]
    parameters: dict[str, torch.Tensor]
    low: bool
    local: dict[str, tuple[torch.Tensor, int]]
    flat: bool
    rates: list[list[float | None]]
    begin: Parts
    begins: dict[int, str]
    ends: dict[int, str]
    calls: list[Call]
    backwards: list[Backward]
    buffers: dict[str, str]
    wrapped: list[bool]
    average: AverageObserver
    spans: Spans
    flat_parts: FlatParts
    loaders: LoaderObserver
    losses: LossObserver
    messages: CommunicationObserver
    _out: Given
    _cuts: dict[str, list[Placement]]
    _owned: set[str]
    _placed: Literal["whole", "shard"] | None
    _saved: bool
    strangers = 0  # steps of an optimiser that holds none of the model's parameters

    if TYPE_CHECKING:  # an Observer has these

        @property
        def recording(self) -> bool:
            """Whether the step that is under way is written down."""

        def _fresh(self) -> None: ...

        def _own(self, optimizer: Optimizer) -> list[tuple[str, torch.Tensor]]: ...

        def _part(self, tensor: torch.Tensor) -> torch.Tensor: ...

    @property
    def _silent(self) -> bool:
        """Whether no gradient and no activation is seen to be sent in the recorded steps."""
        return (
            self.size > 1
            and not {"horovod", "mpi4py"} & set(sys.modules)
            and not any(
                sums_gradients(message)
                or message["phase"] == "forward"
                or message["peer"] is not None
                for step in self.steps
                for message in step["messages"]
            )
        )

    def _trains_the_model(self, optimizer: Optimizer) -> bool:
        """Whether this optimiser, which took a step, holds parameters of the model.

        If its parameters have no gradient, the model's have one, and no other optimiser takes a
        step, its steps are noted as the script's.
        """
        if self._own(optimizer) or self.flat_parts.holds(optimizer):
            if not self.done:
                self.steps.clear()
            return True
        theirs = any(
            p.grad is not None for group in optimizer.param_groups for p in group["params"]
        )
        if (
            not self.done
            and not theirs
            and any(p.grad is not None for p in self.parameters.values())
        ):
            self._note_step_of_other(optimizer)
        return False

    def _note_step_of_other(self, optimizer: Optimizer) -> None:
        if len(self.steps) < RECORDED_STEPS:
            self._out = dict.fromkeys(self.parameters)
            self._record_step(optimizer)
        self.strangers += 1
        if self.strangers == STEPS:
            self.done = self.strangers
            self.end()

    @property
    def _alone(self) -> bool:
        """Whether the ranks seem to take their steps alone, and these are looked at."""
        return (self.recording or self.going_on) and self._silent

    def _weights(self) -> Parts:
        return {name: self._part(parameter) for name, parameter in self.parameters.items()}

    def _weights_digest(self) -> str:
        return digest(list(self._weights().values()))

    def _note_step(self, optimizer: Optimizer) -> None:
        """An optimiser has taken a step: the learning rates of its groups."""
        self.loaders.note_step()
        rates = [group.get("lr") for group in optimizer.param_groups]
        self.rates.append([rate if isinstance(rate, (int, float)) else None for rate in rates])

    def _record_step(self, optimizer: Optimizer) -> None:
        groups = [
            (
                {key: value for key, value in group.items() if key != "params" and is_plain(value)},
                [self.names[id(p)] for p in group["params"] if id(p) in self.names],
            )
            for group in optimizer.param_groups
        ]
        own = dict(self._own(optimizer))
        self._owned |= set(own)
        # with those that no optimiser of this rank has: another rank's may (an optimiser whose
        # state is sharded)
        local = {
            name: self.local.pop(name)[0]
            for name in list(self.local)
            if name in own or name not in self._owned
        }
        if not self.backwards and self.steps and not set(own) & set(self.steps[-1]["weights"]):
            last = self.steps[-1]
            self.calls, self.backwards, self.buffers = (
                last["calls"],
                last["backwards"],
                last["buffers"],
            )
        self.steps.append(
            {
                "calls": self.calls,
                "local": local,
                "given": self._out,
                "cuts": self._cuts,
                "pieces": self.flat_parts.take(),
                "groups": groups,
                "backwards": self.backwards,
                "buffers": self.buffers,
                "clips": self.losses.take_clips(),
                "wrapped": self.wrapped,
                "begin": self.begin,
                "messages": self.messages.take(),
                "optimizer": (type(optimizer).__module__, type(optimizer).__name__),
                "weights": {name: self._part(p) for name, p in own.items()},
            }
        )
        self._fresh()

    def _steps_are_over(self) -> None:
        self.spans.close()
        if self.options["to_end"]:
            return
        shuffles = any(order["shuffle"] for order in self.loaders.orders)
        if not self._silent and (not shuffles or self.loaders.trained_twice()):
            self.end()
        self._write()
        self.ends[self.done] = self._weights_digest()
        self.going_on = True
        if self._silent:  # the average may come in this epoch, or at its end
            _after(AVERAGE_S / 2, self._cut)
        else:
            self._cut()
        _after(AVERAGE_S if self._silent else NEXT_EPOCH_S, self.end)

    def _cut(self) -> None:
        """Let the epoch end here."""
        self.loaders.cut = self.loaders.training

    def _save(self) -> None:
        if self._saved:
            return
        self._saved = True
        self.messages.close()
        write_tensors(
            os.path.join(self.folder, f"seen-{self.rank}.pt"),
            {
                "rank": self.rank,
                "size": self.size,
                "missed": self.missed,
                "start": self.start,
                "steps": self.steps,
                "kinds": self._kinds(),
                "seed": self.seed,
                "models": len(self.models),
                "sharded": self.sharded,
                "stride": self.stride,
                "wrapper": self.wrapper,
                "scaled": self.losses.scaled,
                "flat": self.flat,
                "low": self.low,
                "loader": self.loaders.facts(),
                "splits": self.loaders.split_facts(),
                "ddp": {
                    "made": bool(self.in_ddp),
                    "sends buffers": self.ddp_sends,
                    "unfrozen": [
                        name
                        for number, name in self.names.items()
                        if self.in_ddp.get(number) is False
                    ],
                },
                "frameworks": [name for name in ("horovod", "mpi4py") if name in sys.modules],
            },
        )

    def _kinds(self) -> dict[str, str]:
        """{name of a parameter: the name of its module's class}."""
        return {
            self.names[id(parameter)]: type(part).__name__
            for model in self.models
            for part in model.modules()
            for parameter in part.parameters(recurse=False)
            if id(parameter) in self.names
        }

    def _write(self) -> None:
        self._save()
        if self.average.facts:
            write_tensors(os.path.join(self.folder, f"average-{self.rank}.pt"), self.average.facts)
        self.spans.close()
        write_json(
            os.path.join(self.folder, f"cost-{self.rank}.json"),
            {
                **self.spans.facts(),
                "steps": STEPS if self.going_on else self.done,
                "orders": list(self.loaders.orders),
                "rates": self.rates[:STEPS],
                "metrics": list(self.losses.metrics),
                "begins": dict(self.begins),
                "ends": dict(self.ends),
            },
        )

    def end(self, code: int = 0) -> None:
        """Write down what is left and end this process, when the other ranks have come so far too.

        The first thread that comes here does so; the process ends under any other one.
        """
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
                gpu_stand_in.work_alone()
                run_in_one_process(self.copy, self.folder, self.size, self.stride)
        os._exit(code)

    def _wait_for_others(self) -> None:
        deadline = time.monotonic() + OTHERS_S
        while time.monotonic() < deadline:
            if all(
                os.path.exists(os.path.join(self.folder, f"done-{rank}.json"))
                for rank in range(self.size)
            ):
                break
            time.sleep(0.05)


def _after(seconds: float, call: Callable[[], object]) -> None:
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()
