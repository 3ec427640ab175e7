"""The half of unit 06's checks that runs on the ranks, with experiments that report plain numbers.

Each public function here is one experiment, or what experiments share. All ranks run an experiment
simultaneously. It draws its shapes from the seed, calls what the learner has defined (by name, in
the rank's own namespace) and returns lists and numbers. What they mean is judged in
`manyhands.checks.ddp`.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

from manyhands.checks.by_hand import closed
from manyhands.checks.ddp.diagnosis import cut
from manyhands.checks.on_ranks import learners
from manyhands.checks.rank_tools import device, make_groups, numbers

if TYPE_CHECKING:
    import torch
    from torch import nn

    from manyhands.checks.ddp.answers import Cut, Cuts, FlightCase, StateCase

GATE_S = 3.0  # how long a late rank gives an early one to come through without it


def shapes(seed: int) -> tuple[int, int, int]:
    """The two widths of a small network, and a bucket size that cuts it into several buckets.

    They are drawn from the seed and are the same on all ranks.
    """
    draw = random.Random(seed)
    inputs, hidden = draw.randint(5, 9), draw.randint(6, 12)
    return inputs, hidden, 4 * (hidden * hidden + draw.randint(1, hidden))


def build(seed: int, model_seed: int) -> nn.Sequential:
    """A network with everything that DDP must not stumble over.

    It has a tied weight, frozen parameters, and buffers of two types, one of which is not in the
    state_dict.
    """
    import torch
    from torch import nn

    inputs, hidden, _ = shapes(seed)
    torch.manual_seed(model_seed)
    model = nn.Sequential(
        nn.Linear(inputs, hidden),
        nn.Tanh(),
        nn.Linear(hidden, hidden),
        nn.BatchNorm1d(hidden).eval(),
        nn.Linear(hidden, hidden),
        nn.Tanh(),
        nn.Linear(hidden, 3),
    )
    model[4].weight = model[2].weight  # tied
    model[0].bias.requires_grad_(False)  # frozen
    norm: Any = model[3]  # whose buffers are there
    norm.running_mean.normal_()
    norm.num_batches_tracked += 1 + model_seed % 1000  # small: a float32 holds it exactly
    norm.register_buffer("unsaved", torch.randn(hidden), persistent=False)
    return model.to(device())


def batch(seed: int, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and targets, the same on every rank: each takes its own rows."""
    import torch

    inputs, _, _ = shapes(seed)
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(size, inputs, generator=draw).to(device()), torch.randn(
        size, 3, generator=draw
    ).to(device())


class Gate:
    """Lets one rank wait for another without any communication of theirs.

    It uses the store of the process group. `key` is used once.
    """

    def __init__(self, *key: object) -> None:
        from torch.distributed import distributed_c10d as c10d

        self.store, self.key = c10d._get_default_store(), f"manyhands-gate-{key}"

    def enter(self) -> None:
        """The early rank is about to go where it must not wait."""
        self.store.set(self.key + "-entered", "yes")

    def leave(self) -> None:
        """The early rank has come through."""
        self.store.set(self.key + "-left", "yes")

    def waited_in_vain(self) -> bool:
        """Called by the late rank: whether the early one stays inside until it comes itself."""
        return not (self._within(30, "-entered") and self._within(GATE_S, "-left"))

    def _within(self, seconds: float, state: str) -> bool:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.store.check([self.key + state]):
                return True
            time.sleep(0.005)
        return False


def broadcast(function_name: str, seed: int) -> list[StateCase]:
    """A model before and after the learner's broadcast, on each group."""
    import torch.distributed as dist

    function = learners(function_name)
    results: list[StateCase] = []
    for members, group in make_groups():
        model = build(seed, 1000 * seed + dist.get_rank())
        before = [numbers(tensor) for tensor in [*model.parameters(), *model.buffers()]]
        identities = [id(parameter) for parameter in model.parameters()]
        # held: nothing else may be put there
        memory = [tensor.detach() for tensor in [*model.parameters(), *model.buffers()]]
        frozen, training = _flags(model)
        function(model, group)
        results.append(
            {
                "members": members,
                "before": before,
                "after": [numbers(tensor) for tensor in [*model.parameters(), *model.buffers()]],
                "names": [name for name, _ in [*model.named_parameters(), *model.named_buffers()]],
                "parameters": len(identities),
                "saved": list(model.state_dict()),
                "same objects": identities == [id(parameter) for parameter in model.parameters()],
                # also if `function` has changed how many tensors the model has
                "same memory": [
                    old.data_ptr() == new.data_ptr()
                    for old, new in zip(
                        memory, [*model.parameters(), *model.buffers()], strict=False
                    )
                ],
                "frozen": frozen,
                "same flags": _flags(model) == (frozen, training),
            }
        )
    return results


def _flags(model: nn.Module) -> tuple[list[bool], list[bool]]:
    """Which parameters are frozen, and which modules are in training mode."""
    return [not parameter.requires_grad for parameter in model.parameters()], [
        module.training for module in model.modules()
    ]


def buckets(function_name: str, seed: int) -> list[Cuts]:
    """Cuts of the parameters of three models.

    These are the network in float32 and in float64, and many parameters of several types, some of
    them frozen.
    """
    return [
        _cuts(function_name, seed, model)
        for model in (build(seed, seed), build(seed, seed).double(), _mixed(seed))
    ]


def _mixed(seed: int) -> nn.Module:
    """Parameters of drawn sizes and of three types.

    Every third one or so is frozen, and so is the last one.
    """
    import torch

    draw, model = random.Random(f"{seed} mixed"), torch.nn.Module()
    for i in range(16):
        dtype = (torch.float32, torch.bfloat16, torch.float64)[
            i % 3 if i < 3 else draw.randrange(3)
        ]
        trained = i not in (4, 9, 15) and draw.random() < 0.8
        model.register_parameter(
            f"p{i}",
            torch.nn.Parameter(
                torch.zeros(draw.randint(3, 40), dtype=dtype), requires_grad=trained
            ),
        )
    return model


def _cuts(function_name: str, seed: int, model: nn.Module) -> Cuts:
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    bytes_of = {
        name: parameter.numel() * parameter.element_size()
        for name, parameter in model.named_parameters()
    }
    trainable = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    draw = random.Random(seed)
    cuts: list[Cut] = []
    # the first bucket is filled to the byte
    exactly = sum(bytes_of[name] for name in trainable[-draw.randint(2, 4) :])
    for bucket_bytes in (
        shapes(seed)[2],
        1,
        10**9,
        exactly,
        *(draw.randint(20, sum(bytes_of.values()) // 3) for _ in range(6)),
    ):
        with closed(cut):
            got = learners(function_name)(model.parameters(), bucket_bytes)
        cuts.append(
            {
                "bucket_bytes": bucket_bytes,
                "got": [[names.get(id(p), "?") for p in bucket] for bucket in got],
            }
        )
    return {
        "bytes": bytes_of,
        "trainable": trainable,
        "cuts": cuts,
        "numel": {name: parameter.numel() for name, parameter in model.named_parameters()},
    }


def flight(launch_name: str, land_name: str, seed: int, run: int) -> list[FlightCase]:
    """One bucket through `launch` and `land`, on each group.

    The last member comes late, and lacks one gradient.
    """
    import torch
    import torch.distributed as dist

    from manyhands.ledger import Ledger

    launch, land = learners(launch_name), learners(land_name)
    results: list[FlightCase] = []
    for members, group in make_groups():
        rank, (inputs, hidden, _) = dist.get_rank(), shapes(seed)
        bucket = [
            torch.nn.Parameter(torch.zeros(shape, device=device()))
            for shape in ((hidden, inputs), (hidden,), (1,))
        ]
        draw = torch.Generator().manual_seed(1000 * seed + rank)
        for parameter in bucket:
            parameter.grad = torch.randn(parameter.shape, generator=draw).to(device())
        if rank == members[-1]:
            bucket[1].grad = None
        local = [numbers(p.grad) if p.grad is not None else [0.0] * p.numel() for p in bucket]
        gate, blocked = Gate(run, members), False
        if group is None and rank == members[-1]:  # once is enough
            blocked = gate.waited_in_vain()
        with Ledger() as ledger:
            gate.enter()
            launched = launch(bucket, group)
            at_launch = len(ledger.entries)
            gate.leave()
            land(bucket, launched, group)
        results.append(
            {
                "members": members,
                "local": local,
                "blocked": blocked,
                "at launch": at_launch,
                "got": [None if p.grad is None else numbers(p.grad) for p in bucket],
                "shapes": [None if p.grad is None else list(p.grad.shape) for p in bucket],
                "sent": [[entry.call, entry.numel] for entry in ledger.entries],
            }
        )
    return results
