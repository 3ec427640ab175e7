"""`torch.cuda` and `torch.accelerator`: what asks for GPUs, chooses, waits for or measures one."""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from manyhands.gpu_stand_in.cuda_devices import OWN, REAL, index_of
from manyhands.gpu_stand_in.stand_in_gpu import CAPABILITY, MEMORY_BYTES, NAME, properties
from manyhands.gpu_stand_in.stand_in_state import INDEX, note, replace, replace_for_scripts
from manyhands.gpu_stand_in.substitution_messages import DEVICES, FOUND, GRAPHS, STREAMS

if TYPE_CHECKING:
    import torch


class Stream:
    """A queue of a GPU.

    The CPU has done everything before the next line, so there is nothing to wait for.
    """

    device_index, cuda_stream, stream_id, priority = 0, 0, 0, 0

    def __init__(self, *_: object, **__: object) -> None:
        note(STREAMS)

    device = property(lambda stream: REAL["device"]("cuda", INDEX["current"]))

    def wait_stream(self, other: object) -> None:
        """Return immediately, since the other stream has done everything."""

    def wait_event(self, event: object) -> None:
        """Return immediately, since the event has happened."""

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, a new one by default, and return it."""
        event = event or Event()
        event.record(self)
        return event

    def synchronize(self) -> None:
        """Return immediately, since the CPU has done everything."""

    def query(self) -> bool:
        """Whether all work is done, which it always is."""
        return True

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class Event:
    """A mark in such a queue, with the time at which the CPU came to it."""

    def __init__(self, *_: object, **__: object) -> None:
        note(STREAMS)
        self.at_s: float | None = None

    def record(self, stream: object = None) -> None:
        """Note the time at which the CPU is here."""
        self.at_s = time.perf_counter()

    def elapsed_time(self, other: Event) -> float:
        """Return the milliseconds from this event to the other; both must be recorded."""
        if other.at_s is None or self.at_s is None:
            raise RuntimeError(
                "both events must be recorded before the time between them is asked for"
            )
        return 1e3 * (other.at_s - self.at_s)

    def wait(self, stream: object = None) -> None:
        """Return immediately, since the event has happened."""

    def synchronize(self) -> None:
        """Return immediately, since the event has happened."""

    def query(self) -> bool:
        """Whether the event has happened, which it always has."""
        return True


class Device(contextlib.AbstractContextManager):
    """`torch.cuda.device(1)`: inside, that GPU is the current one."""

    def __init__(self, device: Any = None) -> None:
        self.index, self.before = index_of(device), INDEX["current"]

    def __enter__(self) -> None:
        self.before, INDEX["current"] = INDEX["current"], self.index

    def __exit__(self, *_: object) -> None:
        INDEX["current"] = self.before


class NoGraph:
    """Replaces `torch.cuda.CUDAGraph`, which cannot be imitated."""

    def __init__(self, *_: object, **__: object) -> None:
        raise NotImplementedError(GRAPHS)


def count() -> int:
    """Number of GPUs: those that CUDA_VISIBLE_DEVICES shows, where the script has set it."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return min(INDEX["gpus"], len(visible.split(","))) if visible else INDEX["gpus"]


def set_device(device: Any) -> None:
    """Make a GPU the current one."""
    note(DEVICES)
    INDEX["current"] = index_of(device)


def peak_bytes(device: object = None) -> int:
    """Return the largest memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def held_bytes(device: object = None) -> int:
    """Return the memory that this process has now; where that is not known, its peak."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return peak_bytes()


def install() -> None:
    """Replace the functions and classes of `torch.cuda` and `torch.accelerator`."""
    import torch

    cuda: Any = torch.cuda  # its attributes are replaced
    current = Stream.__new__(Stream)

    def available() -> bool:
        note(FOUND)
        return True

    for name, answer in {
        "is_available": available,
        "is_initialized": lambda: True,
        "device_count": count,
    }.items():
        replace_for_scripts(cuda, name, answer)
    for name, answer in _functions(torch, current).items():
        replace(cuda, name, answer)
        for module in (cuda.memory, cuda.random, cuda.streams):
            if hasattr(module, name):
                replace(module, name, answer)
    for owner in (cuda, cuda.streams):
        owner.Stream, owner.Event = Stream, Event
    cuda.ExternalStream, cuda.StreamContext = Stream, contextlib.nullcontext
    cuda.device = cuda.device_of = Device
    cuda.stream = lambda stream: contextlib.nullcontext()
    cuda.CUDAGraph, cuda.graph = NoGraph, NoGraph
    replace(cuda, "make_graphed_callables", lambda *_, **__: NoGraph())
    cuda.default_generators = (OWN["generator"],) * INDEX["gpus"]
    for name in (
        "Float",
        "Double",
        "Half",
        "BFloat16",
        "Long",
        "Int",
        "Short",
        "Byte",
        "Char",
        "Bool",
    ):
        setattr(cuda, f"{name}Tensor", getattr(torch, f"{name}Tensor"))
    for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
        replace(cuda.nvtx, name, lambda *_, **__: 0)
    cuda.nvtx.range = lambda *_, **__: contextlib.nullcontext()
    cuda.nccl.version = lambda: (2, 27, 5)
    torch.version.cuda = "12.8"
    _accelerator(torch, current)


def _functions(torch: Any, current: Stream) -> dict[str, Callable[..., Any]]:
    generator = OWN["generator"]

    def nothing(*_: object, **__: object) -> None:
        return None

    def seed(number: Any) -> None:
        generator.manual_seed(int(number))

    def set_state(state: torch.Tensor, device: object = None) -> None:
        generator.set_state(state)

    def set_states(states: Sequence[torch.Tensor]) -> None:
        generator.set_state(states[0])

    return {
        "init": nothing,
        "_lazy_init": nothing,
        "set_device": set_device,
        "synchronize": nothing,
        "current_device": lambda: INDEX["current"],
        "empty_cache": nothing,
        "ipc_collect": nothing,
        "current_stream": lambda device=None: current,
        "default_stream": lambda device=None: current,
        "set_stream": nothing,
        "is_current_stream_capturing": lambda: False,
        "current_blas_handle": lambda: 0,
        "get_device_name": lambda device=None: NAME,
        "get_device_capability": lambda device=None: CAPABILITY,
        "get_device_properties": properties,
        "get_arch_list": lambda: ["sm_80"],
        "get_gencode_flags": lambda: "",
        "can_device_access_peer": lambda device, peer: True,
        "get_sync_debug_mode": lambda: 0,
        "set_sync_debug_mode": nothing,
        "is_bf16_supported": lambda including_emulation=True: True,
        "is_tf32_supported": lambda: True,
        "utilization": lambda device=None: 0,
        "memory_usage": lambda device=None: 0,
        "temperature": lambda device=None: 0,
        "power_draw": lambda device=None: 0,
        "clock_rate": lambda device=None: 0,
        # memory: what the process has, since the CPU's memory is not the stand-in's
        "memory_allocated": held_bytes,
        "memory_reserved": held_bytes,
        "memory_cached": held_bytes,
        "max_memory_allocated": peak_bytes,
        "max_memory_reserved": peak_bytes,
        "max_memory_cached": peak_bytes,
        "mem_get_info": lambda device=None: (MEMORY_BYTES - held_bytes(), MEMORY_BYTES),
        "memory_stats": lambda device=None: defaultdict(int),
        "memory_snapshot": lambda *_: [],
        "memory_summary": lambda *_, **__: "There is no GPU here.",
        "list_gpu_processes": lambda device=None: "",
        "reset_peak_memory_stats": nothing,
        "reset_max_memory_allocated": nothing,
        "reset_max_memory_cached": nothing,
        "reset_accumulated_memory_stats": nothing,
        "set_per_process_memory_fraction": nothing,
        "_record_memory_history": nothing,
        "_dump_snapshot": nothing,
        "_snapshot": lambda *_, **__: {"segments": []},
        # the generator of the GPU
        "manual_seed": seed,
        "manual_seed_all": seed,
        "initial_seed": lambda: generator.initial_seed(),
        "seed": lambda: generator.seed(),
        "seed_all": lambda: generator.seed(),
        "get_rng_state": lambda device=None: generator.get_state(),
        "set_rng_state": set_state,
        "get_rng_state_all": lambda: [generator.get_state()] * count(),
        "set_rng_state_all": set_states,
    }


def _accelerator(torch: Any, current: Stream) -> None:
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is None:
        return

    def available() -> bool:
        note(FOUND)
        return True

    seen: dict[str, Callable[..., Any]] = {
        "is_available": available,
        "device_count": count,
        "current_accelerator": lambda check_available=False: REAL["device"]("cuda"),
    }
    for name, answer in seen.items():
        replace_for_scripts(accelerator, name, answer)
    answers: dict[str, Callable[..., Any]] = {
        "current_device_index": lambda: INDEX["current"],
        "current_device_idx": lambda: INDEX["current"],
        "set_device_index": set_device,
        "set_device_idx": set_device,
        "synchronize": lambda device=None: None,
        "current_stream": lambda device=None: current,
        "set_stream": lambda stream: None,
        "empty_cache": lambda: None,
        "memory_allocated": held_bytes,
        "max_memory_allocated": peak_bytes,
        "memory_reserved": held_bytes,
        "max_memory_reserved": peak_bytes,
        "memory_stats": lambda device=None: defaultdict(int),
        "reset_peak_memory_stats": lambda device=None: None,
        "get_memory_info": lambda device=None: (MEMORY_BYTES - held_bytes(), MEMORY_BYTES),
    }
    for name, answer in answers.items():
        if hasattr(accelerator, name):
            replace(accelerator, name, answer)
    if hasattr(accelerator, "device_index"):
        accelerator.device_index = Device
