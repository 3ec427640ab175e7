"""The types of what the observers of a rank record, as the rules read it.

These are the dicts in `seen-R.pt`, `average-R.pt`, `one.pt` and `cost-R.json`, at run time plain
dicts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    import torch

    from manyhands.ledger.account import Account

Parts = dict[str, "torch.Tensor"]  # of each parameter by name: what is kept of it, in one row
Given = dict[str, "torch.Tensor | None"]  # also, of gradients: None where there is none
# ("shard", dimension, strided), ("whole",) or ("partial", the operation that completes it)
Placement = tuple[Any, ...]
Clip = tuple[str, Any]  # ("norm" | "scaled norm", the norm) or ("value", None)
# of parameters in flat optimisers: [(begin, numbers)]
Pieces = dict[str, "list[tuple[int, torch.Tensor]]"]
Span = tuple[str, float, float]  # (kind, start, stop)


class Shard(TypedDict):
    """How a parameter is cut: see `dtensor_parts.shard_of`."""

    placements: list[Placement]
    mesh: list[Any]  # ranks, as deep as the mesh has dimensions
    data: list[int]
    shape: tuple[int, ...]


class Loss(TypedDict, total=False):
    """One call of a loss function of torch."""

    name: str
    value: float | None
    reduction: str  # "none": nothing is known of it
    terms: int | None


class Backward(TypedDict):
    """One call of backward, and the losses since the call before."""

    losses: list[Loss]
    value: float | None
    weighted: bool


class Call(TypedDict):
    """One call of a model."""

    model: int
    inputs: tuple[Any, dict[str, Any]]
    out: list[Any]
    slopes: list[Any]
    random: bool
    noise: str
    autocast: list[tuple[str, torch.dtype]]
    rows: list[str]  # digests
    rows_first: bool
    placed: Literal["whole", "shard"] | None
    cut: bool
    follows: bool


class Message(TypedDict):
    """One message or collective."""

    phase: str
    call: str
    ranks: tuple[int, ...]
    peer: int | None
    numel: int
    shape: list[int] | None
    native: bool
    follows: bool
    of: Literal["", "gradients", "weights"]


class StepRecord(TypedDict):
    """One step of an optimiser."""

    calls: list[Call]
    local: Parts
    given: Given
    cuts: dict[str, list[Placement]]
    pieces: Pieces
    # of the optimiser: (options, names of the parameters)
    groups: list[tuple[dict[str, Any], list[str]]]
    backwards: list[Backward]
    buffers: dict[str, str]  # digests
    clips: list[Clip]
    wrapped: list[bool]
    begin: Parts
    messages: list[Message]
    optimizer: tuple[str, str]  # (module, class)
    weights: Parts


StepKey = Literal[
    "calls",
    "local",
    "given",
    "cuts",
    "pieces",
    "groups",
    "backwards",
    "buffers",
    "clips",
    "wrapped",
    "begin",
    "messages",
    "optimizer",
    "weights",
]


class Order(TypedDict):
    """An order that a sampler has drawn."""

    sampler: int
    epoch: int
    shuffle: bool
    rank: int
    replicas: int
    seed: int | None
    length: int
    steps: int
    order: list[int]


class Loader(TypedDict):
    """The loader of the training data."""

    random: bool
    samplers: list[str]
    batch_size: int | None
    rows: list[str] | None
    length: int | None
    indices: list[int | str]
    first_epoch: list[list[int | str]]


class Split(TypedDict):
    """What a call of random_split has made."""

    parts: list[str]
    lengths: list[int]
    first: list[int]
    others: list[int]
    rows: list[str] | None
    length: int | None


Ddp = TypedDict("Ddp", {"made": bool, "sends buffers": bool, "unfrozen": list[str]})


class RankRecord(TypedDict):
    """`seen-R.pt`: all that was written down of a rank's first steps."""

    rank: int
    size: int
    missed: str
    start: Parts
    steps: list[StepRecord]
    kinds: dict[str, str]
    seed: int | None
    models: int
    sharded: dict[str, Shard]
    stride: int
    wrapper: str
    scaled: bool
    flat: bool
    low: bool
    loader: Loader | None
    splits: list[Split]
    ddp: Ddp
    frameworks: list[str]


AverageRecord = TypedDict(
    "AverageRecord",
    {
        # see `average_observer`
        "step": int,
        "before": Parts,
        "after": Parts,
        "from": Parts,
        "given": Parts,
    },
    total=False,
)

# `one.pt`, see `one_process_run`: with "not" and perhaps "error" where it could not be tried, else
# with the rest
OneProcess = TypedDict(
    "OneProcess",
    {
        "not": str,
        "error": str,
        "far": float,
        "unfaithful": float,
        "gradients": list[Parts],
        "mixers": list[str],
        "rows": int,
    },
    total=False,
)


class SentCall(TypedDict):
    """A call of the ledger, with its times."""

    call: str
    bytes: int
    start: float
    stop: float | None


class SpansRecord(TypedDict):
    """What `spans` knows of the steps that were timed."""

    spans: list[Span]
    bounds: list[float]
    kernel: list[tuple[float, float] | None]
    threads: list[dict[str, float]]
    calls: list[SentCall]
    account: Account | None  # the ledger's
    gpu_peak_bytes: int | None
    peak_bytes: int


class Cost(SpansRecord):
    """`cost-R.json`: what a step costs a rank, and what was noted in all its steps.

    Keys of `begins` and `ends` are numbers of steps, as text.
    """

    steps: int
    orders: list[Order]
    rates: list[list[float | None]]
    metrics: list[float]
    begins: dict[str, str]
    ends: dict[str, str]


# before a call of a model: its number, what it is given, a copy of that, its rows, the states of
# generators
BeforeCall = tuple[int, list[Any], Any, "tuple[list[str], bool]", "list[torch.Tensor]"]
