"""What the ranks answer in the experiments of unit 06's checks, and what a batch file has started.

The experiments are in `ranks` and the modules `..._ranks`. `diagnosis` and the modules
`..._diagnosis` judge the answers. The sampler's are in `sampler_criteria`.
"""

from __future__ import annotations

from typing import Any, TypedDict

# of a backward pass: ["ready", name], ["sent", call, numel] or ["end"]
Event = list[Any]
Buckets = list[list[list[Any]]]  # [name, numel] of each parameter of each bucket
Gradients = dict[str, list[float] | None]  # by parameter

_Kept = TypedDict("_Kept", {"same objects": bool, "same memory": list[bool], "same flags": bool})


class StateCase(_Kept):
    """A model's parameters, and then its buffers, before and after the broadcast."""

    members: list[int]
    before: list[list[float]]
    after: list[list[float]]
    names: list[str]
    parameters: int
    saved: list[str]  # names in the state_dict
    frozen: list[bool]


class Cut(TypedDict):
    """The learner's buckets, by names of parameters."""

    bucket_bytes: int
    got: list[list[str]]


class Cuts(TypedDict):
    """The learner's cuts of one model."""

    bytes: dict[str, int]
    trainable: list[str]
    cuts: list[Cut]
    numel: dict[str, int]


_Launched = TypedDict("_Launched", {"at launch": int})


class FlightCase(_Launched):
    """A bucket of three parameters, launched and landed. `sent`: [call, numel] of each call."""

    members: list[int]
    local: list[list[float]]
    blocked: bool
    got: list[list[float] | None]
    shapes: list[list[int] | None]
    sent: list[Event]


class Started(TypedDict):
    """`start`: the first tensor that differs from where training should start, or None."""

    start: str | None


class Step(TypedDict):
    """One step of training, beside that of one process, and of this rank's rows alone."""

    events: list[Event]
    got: Gradients
    serial: Gradients
    local: Gradients


class StepsCase(Started):
    """Two steps on one rank of a group."""

    members: list[int]
    buckets: Buckets
    steps: list[Step]
    blocked: bool


class BackwardAnswer(TypedDict):
    """What happened in a backward pass."""

    events: list[Event]
    buckets: Buckets


class SilentAnswer(BackwardAnswer):
    """The same, after one during which `sync` was False, which has sent so much."""

    sent: int


class UnusedAnswer(Started):
    """A step in which not every parameter is used."""

    got: Gradients
    serial: Gradients


class AccumulationAnswer(Started):
    """Three micro-batches. `promises`: [which promise of `no_sync`, whether it holds]."""

    sent: list[int]
    buckets: int
    got: Gradients
    serial: Gradients
    noted: bool
    promises: list[list[Any]]


_Mistaken = TypedDict(
    "_Mistaken",
    {
        "local rank": list[float],
        "one epoch": list[float],
        "both": list[float],
        "not zeroed": list[float],
        "other rate": list[float],
    },
)


class TrainingAnswer(_Mistaken):
    """The weights of the learner's loop, of one process, and of the likely mistakes."""

    sent: int
    steps: int
    epochs: int
    serial: list[float]
    rows: list[list[int]] | None
    dealt: list[list[int]]
    got: list[float]


Layers = list[list[float]]  # the parameters of the first layer, and of the head
_Emptied = TypedDict("_Emptied", {"serial emptied": Layers})


class TunedAnswer(_Emptied):
    """A fine-tuning. `own`: the rates that each rank's own loss would give."""

    got: Layers
    rates: list[float] | None
    epochs: int
    own: list[list[float]]
    ways: dict[str, Layers]
    serial: Layers
    emptied: Layers


class TorchrunCall(TypedDict):
    """One call of torchrun in a batch file."""

    node: int
    address: str
    port: str
    nnodes: str
    nproc: str
    node_rank: str
    c10d: bool
    script: list[str]
    late: bool


class BatchRun(TypedDict):
    """What a batch file has started, on how many nodes."""

    nodes: int
    wanted: int
    names: list[str]
    held: bool
    calls: list[TorchrunCall]
    output: str
    unwritten: bool
