"""The observers of one rank: the first steps of training are written down, the next ones are timed.

    steps 1 to RECORDED_STEPS
                          rows that go in, gradients before and after they are averaged, weights after the step
    the next MEASURED_STEPS
                          no tensor is looked at: times, messages, memory (`spans`)
    then                  the training loader is cut, so that the next epoch begins, where a sampler is to draw anew;
                          where no gradient was sent, an average of the weights is waited for;
                          or, with `to_end`, the script runs on as it is

Then the process ends, in the middle of the script. Nothing here sends a message.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from manyhands.clinic.average_observer import AverageObserver
from manyhands.clinic.clinic_limits import RECORDED_NUMBERS, RECORDED_STEPS, STEPS
from manyhands.clinic.communication import CommunicationObserver
from manyhands.clinic.dtensor_parts import (
    computes_in_short_type,
    data_parallel_meshes,
    placements_of,
    shard_of,
    watch_placing,
)
from manyhands.clinic.flat_parts import FlatParts
from manyhands.clinic.loaders import LoaderObserver, digest
from manyhands.clinic.losses import LossObserver
from manyhands.clinic.observer_end import ObserverEnd, Options
from manyhands.clinic.one_process_run import active_autocast, copy_model, watch_attributes
from manyhands.clinic.recorded_values import (
    copy_values,
    has_trained_parameters,
    is_wrapper,
    noise_state,
    rows_of,
    sample_numbers,
)
from manyhands.clinic.spans import Spans

if TYPE_CHECKING:
    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel
    from torch.optim import Optimizer

    from manyhands.clinic.records import BeforeCall, Call
    from manyhands.clinic.reporter import Reporter


class Observer(ObserverEnd):
    """Everything that is written down of one rank."""

    def __init__(
        self, folder: str, rank: int, size: int, reporter: Reporter, options: Options
    ) -> None:
        from torch.optim.optimizer import (
            register_optimizer_step_post_hook,
            register_optimizer_step_pre_hook,
        )

        self.folder, self.rank, self.size, self.reporter, self.options = (
            folder,
            rank,
            size,
            reporter,
            options,
        )
        # the steps are over; what the script does now is only looked at for its next epoch
        self.going_on = False
        self.done, self.steps, self.models, self.names, self.stride = 0, [], [], {}, 1
        self.start, self.sharded, self.copy, self.seed, self.wrapper = {}, {}, None, None, ""
        self.missed = ""  # the first exception of what could not be noted
        self.ddp_sends = False  # whether a DistributedDataParallel is to broadcast buffers
        # id of a parameter -> whether it was to be trained when a DistributedDataParallel was made
        self.in_ddp = {}
        self.parameters, self.low, self.local, self.flat, self.rates = {}, False, {}, False, []
        # the weights as this step began; digests by number of the step
        self.begin, self.begins, self.ends = {}, {}, {}
        self._fresh()
        self._inside, self._depth, self._in_step, self._saved, self._stage = (
            False,
            0,
            0,
            False,
            "apart",
        )
        self._placed, self._owned, self._backward_depth, self._averaged = None, set(), 0, False
        self.average, self.spans, self.flat_parts = AverageObserver(), Spans(), FlatParts()
        self.loaders = LoaderObserver(self.spans.note_input)
        self.losses = LossObserver()
        self.messages = CommunicationObserver(lambda: self.phase, lambda: self.parameters.values())
        self._watch_calls()
        self._watch_wrapping()
        watch_placing(self._note_placing)
        watch_attributes()
        self._watch_backward()
        reporter.on_stop = self._write
        register_optimizer_step_pre_hook(self._before_step)
        register_optimizer_step_post_hook(self._after_step)

    def _fresh(self) -> None:
        self.calls, self.backwards, self.buffers, self._out, self._cuts = [], [], {}, {}, {}
        # of each call of a DistributedDataParallel, whether it was to average gradients
        self.wrapped = []

    @property
    def recording(self) -> bool:
        """Whether the step that is under way is written down."""
        return self.done < RECORDED_STEPS and not self.going_on

    @property
    def phase(self) -> str:
        """Say where in a step the script is.

        "forward", "between" that and "backward", "after" it, "step" or "apart".
        """
        return (
            "backward"
            if self._backward_depth
            else "forward"
            if self._inside
            else "step"
            if self._in_step
            else self._stage
        )

    # -- the model is called -----------------------------------------------------------------------

    def _note_placing(self, placed: Literal["whole", "shard"]) -> None:
        if self._inside:
            self._placed = self._placed or placed

    def _watch_calls(self) -> None:
        import torch
        from torch import nn

        call = nn.Module.__call__

        def observed(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if (
                self._inside
                or self._backward_depth
                or not (
                    torch.is_grad_enabled() and module.training and has_trained_parameters(module)
                )
            ):
                # by the model itself
                self.low = self.low or (self._inside and self.recording and bool(active_autocast()))
                # in backward: a checkpointed block that runs again
                return call(module, *args, **kwargs)
            start, self._depth = time.perf_counter(), self._depth + 1
            try:
                if is_wrapper(module):
                    self.wrapper = self.wrapper or type(module).__name__
                    # it is False inside no_sync
                    if self.recording and hasattr(module, "require_backward_grad_sync"):
                        self.wrapped.append(bool(module.require_backward_grad_sync))
                    return call(module, *args, **kwargs)
                self._inside = True
                self._try(self._look_at_weights)
                return (
                    self._noted(call, module, args, kwargs)
                    if self.recording
                    else call(module, *args, **kwargs)
                )
            finally:
                self._depth -= 1
                if not is_wrapper(module):
                    self._inside, self._stage = False, "between"
                if not self._depth:
                    self.spans.note("forward", start, time.perf_counter())

        nn.Module.__call__ = observed  # type: ignore[method-assign]  # torch's own is replaced

    def _watch_wrapping(self) -> None:
        from torch.nn.parallel import DistributedDataParallel

        make = DistributedDataParallel.__init__

        @functools.wraps(make)
        def observed(
            wrapper: DistributedDataParallel, module: nn.Module, *args: Any, **kwargs: Any
        ) -> None:
            make(wrapper, module, *args, **kwargs)
            self.ddp_sends = wrapper.broadcast_buffers
            self.in_ddp.update(
                (id(parameter), parameter.requires_grad) for parameter in module.parameters()
            )

        # torch's own is replaced
        DistributedDataParallel.__init__ = observed  # type: ignore[method-assign,assignment]

    def _noted(
        self,
        call: Callable[..., Any],
        module: nn.Module,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        before = self._try(self._before_call, module, args, kwargs)
        out = call(module, *args, **kwargs)
        if before:
            self._try(self._after_call, before, out)
        return out

    def _try(self, note: Callable[..., Any], *args: Any) -> Any:
        """Note something.

        What cannot be noted must not end the script: what is known of this rank has gaps then.
        """
        try:
            return note(*args)
        except Exception as error:  # noqa: BLE001 - what cannot be noted must not end the script
            self.missed = self.missed or f"{type(error).__name__}: {error}"[:300]
            return None

    def _before_call(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> BeforeCall:
        import torch
        from torch.utils._pytree import tree_flatten

        if torch._C._functorch.peek_interpreter_stack() is not None:
            raise ValueError("the model is called inside torch.func, where tensors have no values")
        number = self._model(getattr(module, "_orig_mod", module))  # of torch.compile
        given, _ = tree_flatten((args, kwargs))
        drawn = len(self.loaders.drawn[-1]) if self.loaders.drawn else 0
        inputs, rows, noise = (
            copy_values((args, kwargs)),
            rows_of(args, kwargs, drawn),
            noise_state(),
        )
        self._placed = None
        return number, given, inputs, rows, noise

    def _after_call(self, before: BeforeCall, out: Any) -> None:
        import torch
        from torch.utils._pytree import tree_flatten

        number, given, inputs, rows, noise = before
        flat, _ = tree_flatten(out)
        record: Call = {
            "model": number,
            "inputs": inputs,
            "out": copy_values(flat),
            "slopes": [None] * len(flat),
            "random": digest(noise) != digest(noise_state()),
            "noise": digest(noise),
            "autocast": active_autocast(),
            "rows": rows[0],
            "rows_first": rows[1],
            "placed": self._placed,
            "cut": any(hasattr(x, "to_local") for x in (*given, *flat)),
            "follows": any(isinstance(x, torch.Tensor) and x.requires_grad for x in given),
        }
        for place, value in enumerate(flat):
            if isinstance(value, torch.Tensor) and value.requires_grad:
                value.register_hook(
                    lambda slope, place=place: record["slopes"].__setitem__(
                        place, copy_values(slope)
                    )
                )
        self.calls.append(record)

    def _model(self, module: nn.Module) -> int:
        """Return the number of a model.

        At its first call its weights are noted, and its parameters get hooks.
        """
        from torch.distributed.tensor import DTensor

        for number, known in enumerate(self.models):
            if known is module:
                self._note_buffers(module)
                return number
        import torch

        self.models.append(module)
        number = len(self.models) - 1
        if number == 0:
            self.seed = torch.initial_seed()
            self.loaders.training, self.loaders.first_epoch = self.loaders.last, self.loaders.drawn
            self.stride = max(
                1, -(-sum(p.numel() for p in module.parameters()) // RECORDED_NUMBERS)
            )
            if self.rank == 0:
                self.copy = copy_model(module)
        self.low = self.low or computes_in_short_type(module)
        self.flat = self.flat or any(
            type(part).__name__ == "FullyShardedDataParallel" for part in module.modules()
        )
        if self.flat:
            return number
        meshes = data_parallel_meshes(module)
        for name, parameter in module.named_parameters():
            name = f"{number}:{name}" if number else name
            if parameter.requires_grad and id(parameter) not in self.names:
                self.names[id(parameter)], self.parameters[name] = name, parameter
                if isinstance(parameter, DTensor):
                    self.sharded[name] = shard_of(parameter, meshes.get(id(parameter)))
                else:
                    parameter.register_hook(
                        lambda slope, name=name: self._local_gradient(name, slope)
                    )
                self.start[name] = self._part(parameter)
        self._note_buffers(module)
        return number

    def _note_buffers(self, module: nn.Module) -> None:
        """Digests of the buffers as forward begins, after any broadcast by DDP; once a step."""
        if not self.buffers:
            self.buffers = {name: digest(buffer) for name, buffer in module.named_buffers()}

    def _local_gradient(self, name: str, slope: torch.Tensor) -> None:
        """Sum what backward has given for a parameter since its optimiser's last step.

        Or since it was set back: the losses of several models reach parameters whose gradients are
        thrown away.
        """
        if self.recording:
            part, gradient, (before, steps) = (
                self._part(slope),
                self.parameters[name].grad,
                self.local.get(name, (None, 0)),
            )
            gradient = (
                gradient.to_dense() if gradient is not None and gradient.is_sparse else gradient
            )
            thrown_away = steps < len(self.steps) and (gradient is None or not gradient.any())
            self.local[name] = (
                part if before is None or thrown_away else before + part,
                len(self.steps),
            )

    def _look_at_weights(self) -> None:
        """Note the weights as a step begins, at its first call of a model.

        Something may have written into them since the step before. In the steps that are timed only
        the first is looked at.
        """
        timed = RECORDED_STEPS < self.done < STEPS and not self.going_on
        if not self.done or self.done in self.begins or timed:
            return
        self.begins[self.done] = self._weights_digest()
        if self.recording:
            self.begin = self._weights()
        if self._alone and self.begins[self.done] != self.ends.get(self.done):
            self.average.note_change(self.done, self._weights())
        self._averaged = self.going_on and self.average.facts is not None

    def _part(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return what is recorded of a tensor: its numbers, in one row.

        Of a large model it is every n-th, of a shard all.
        """
        import torch

        with torch.no_grad():
            if hasattr(tensor, "to_local"):
                return tensor.to_local().detach().cpu().clone()
            return sample_numbers(tensor, self.stride)

    # -- backward ----------------------------------------------------------------------------------

    def _watch_backward(self) -> None:
        import torch

        backward = torch.autograd.backward

        def observed(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            # reentrant checkpointing: a part of the backward that is under way
            if self._backward_depth:
                return backward(tensors, *args, **kwargs)
            start = time.perf_counter()
            self.reporter.backwards += 1
            self._backward_depth += 1
            try:
                return backward(tensors, *args, **kwargs)
            finally:
                self._backward_depth, self._stage = 0, "after"
                self.spans.note("backward", start, time.perf_counter())
                if self.recording:
                    losses, scalar = (
                        self.losses.take(),
                        tensors if isinstance(tensors, torch.Tensor) else None,
                    )
                    value = (
                        float(scalar.detach())
                        if scalar is not None and scalar.numel() == 1
                        else None
                    )
                    weighted = type(getattr(scalar, "grad_fn", None)).__name__ == "MulBackward0"
                    self.backwards.append({"losses": losses, "value": value, "weighted": weighted})

        torch.autograd.backward = observed

    # -- the optimiser -----------------------------------------------------------------------------

    def _before_step(
        self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Note that a step begins; the innermost counts, where the gradients are averaged.

        Horovod's and others' optimisers call their base's step inside theirs. A closure (Lightning)
        is called inside step: then the gradients exist after it.
        """
        self._in_step += 1
        self.spans.begin_step()
        if self._in_step == 1 and self._alone:
            self.average.note_outer_step(
                optimizer, self.done, dict(self._own(optimizer)), self._part
            )
        if not self.recording:
            return None
        closure = next((a for a in (*args[1:], *kwargs.values()) if callable(a)), None)
        if closure is None:
            self._gradients(optimizer)
            return None

        def observed(*inner: Any, **named: Any) -> Any:
            result = closure(*inner, **named)
            self._gradients(optimizer)
            return result

        def swap(value: Any) -> Any:
            return observed if value is closure else value

        return tuple(map(swap, args)), {name: swap(value) for name, value in kwargs.items()}

    def _own(self, optimizer: Optimizer) -> list[tuple[str, torch.Tensor]]:
        if self.flat:  # what is seen of a flattened parameter is not what it is trained as
            return [
                (f"flat {place}", p) for place, p in enumerate(optimizer.param_groups[0]["params"])
            ]
        return [
            (self.names[id(p)], p)
            for group in optimizer.param_groups
            for p in group["params"]
            if id(p) in self.names
        ]

    def _gradients(self, optimizer: Optimizer) -> None:
        """What an optimiser gets.

        One inside it may have a part of its parameters only (ZeroRedundancyOptimizer).
        """
        own = self._own(optimizer)
        self._out.update({name: None if p.grad is None else self._part(p.grad) for name, p in own})
        self._cuts.update(
            {name: placements_of(p.grad) for name, p in own if hasattr(p.grad, "to_local")}
        )
        if not own and self.parameters and self.stride == 1:
            self._try(self.flat_parts.note, optimizer, self.parameters)

    def _after_step(
        self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self._in_step -= 1
        if self._in_step or not self._trains_the_model(optimizer):
            return
        self.spans.end_step()
        self._stage = "apart"
        self._note_step(optimizer)
        if self.recording:
            self._record_step(optimizer)
        self.done += 1
        if self.done <= RECORDED_STEPS or self.going_on:
            self.ends[self.done] = self._weights_digest()
        if self._alone or self.done == STEPS:
            self.average.note_step(optimizer, self._weights())
        if self.going_on:
            if self._averaged or (not self._silent and self.loaders.trained_twice()):
                self.end()
        elif self.done == RECORDED_STEPS:
            self._save()
            self.spans.open()
        elif self.done == STEPS:
            self._steps_are_over()
