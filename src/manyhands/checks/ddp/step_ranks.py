"""The experiments of unit 06's checks that train on the ranks, against a single process.

The single process takes the whole batch.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from manyhands.checks.ddp.diagnosis import cut
from manyhands.checks.ddp.ranks import Gate, batch, build, shapes
from manyhands.checks.on_ranks import learners
from manyhands.checks.rank_tools import device, make_groups, numbers

if TYPE_CHECKING:
    from collections.abc import Iterable

    import torch
    from torch import nn

    from manyhands.checks.ddp.answers import (
        BackwardAnswer,
        Buckets,
        Event,
        Gradients,
        Step,
        StepsCase,
        TrainingAnswer,
        UnusedAnswer,
    )
    from manyhands.ledger.entry import Entry


class Log:
    """What happened during a backward pass, in order.

    The events are `["ready", name]`, `["sent", call, numel]` and `["end"]`.
    """

    def __init__(self, model: nn.Module) -> None:
        self.events: list[Event] = []
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(
                    lambda _, name=name: self.events.append(["ready", name])
                )

    def sent(self, entry: Entry) -> None:
        """Note a call that the ledger has seen."""
        self.events.append(["sent", entry.call, entry.numel])

    def end(self) -> None:
        """Note that backward has returned."""
        self.events.append(["end"])


def right_buckets(model: nn.Module, bucket_bytes: int) -> Buckets:
    """The buckets as exercise 2 asks for them, [[[name, numel], ...], ...].

    The learner's own may differ.
    """
    sizes: dict[str, list[Any]] = {
        name: [name, p.numel()] for name, p in model.named_parameters() if p.requires_grad
    }
    names = cut(list(sizes), {name: 4 * numel for name, (_, numel) in sizes.items()}, bucket_bytes)
    return [[sizes[name] for name in bucket] for bucket in names]


def other_start(model: nn.Module, serial: nn.Module) -> str | None:
    """The first tensor in which a rank's model differs from the right start, or None.

    The right start is the serial model's.
    """
    right = dict([*serial.named_parameters(), *serial.named_buffers()])
    return next(
        (
            name
            for name, tensor in [*model.named_parameters(), *model.named_buffers()]
            if not tensor.equal(right[name])
        ),
        None,
    )


def gradients(model: nn.Module) -> Gradients:
    """{name: numbers of its gradient, or None} for all parameters."""
    return {
        name: None if p.grad is None else numbers(p.grad) for name, p in model.named_parameters()
    }


def hooks(class_name: str, finish_name: str, seed: int, run: int) -> list[StepsCase]:
    """Two steps of training on each group, against the serial model on the whole batch.

    The ranks are seeded differently.
    """
    import torch
    import torch.distributed as dist
    from torch.nn.functional import mse_loss

    from manyhands.ledger import Ledger

    HandDDP, finish = learners(class_name), learners(finish_name)
    results: list[StepsCase] = []
    for members, group in make_groups():
        place, rows = members.index(dist.get_rank()), 6
        x, y = batch(seed, rows * len(members))
        mine = slice(rows * place, rows * (place + 1))
        serial = build(seed, 1000 * seed + members[0])
        model = build(seed, 1000 * seed + dist.get_rank())
        log = Log(model)
        ddp = HandDDP(model, shapes(seed)[2], group)
        start = other_start(model, serial)
        optimisers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (serial, model)]
        gate, blocked = Gate(run, members), False
        buckets = right_buckets(model, shapes(seed)[2])
        steps: list[Step] = []
        for step in range(2):
            mse_loss(serial(x), y).backward()
            alone = copy.deepcopy(model)
            mse_loss(alone(x[mine]), y[mine]).backward()
            loss = mse_loss(ddp(x[mine]), y[mine])
            if step == 0 and group is None and dist.get_rank() == members[-1]:  # once is enough
                blocked = gate.waited_in_vain()
            log.events.clear()
            with Ledger(on_entry=log.sent):
                gate.enter()
                loss.backward()
                gate.leave()
                log.end()
                finish(ddp)
            steps.append(
                {
                    "events": list(log.events),
                    "got": gradients(model),
                    "serial": gradients(serial),
                    "local": gradients(alone),
                }
            )
            for optimiser in optimisers:
                optimiser.step()
                optimiser.zero_grad()
        results.append(
            {
                "members": members,
                "start": start,
                "buckets": buckets,
                "steps": steps,
                "blocked": blocked,
            }
        )
    return results


def backwards(class_name: str, finish_name: str, seed: int) -> BackwardAnswer:
    """One step of a model whose last bucket is ready first.

    Its layers are used in a different order from the one in which they are registered.
    """
    import torch
    from torch import nn
    from torch.nn.functional import mse_loss

    from manyhands.ledger import Ledger

    inputs, hidden, _ = shapes(seed)

    class LastFirst(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(seed)
            self.third, self.second = (
                nn.Linear(hidden, 3, bias=False),
                nn.Linear(hidden, hidden, bias=False),
            )
            self.first = nn.Linear(inputs, hidden, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.third(torch.tanh(self.second(torch.tanh(self.first(x)))))

    x, y = batch(seed, 4)
    model = LastFirst().to(device())
    log, ddp = Log(model), learners(class_name)(model, 1, None)  # a bucket for each weight
    loss = mse_loss(ddp(x), y)
    with Ledger(on_entry=log.sent):
        loss.backward()
        log.end()
        learners(finish_name)(ddp)
    return {"events": log.events, "buckets": right_buckets(model, 1)}


def unused(class_name: str, finish_name: str, seed: int) -> UnusedAnswer:
    """One step of a model with two branches that are not always used.

    Only the even ranks use the branch in the first bucket, and no rank uses the other one.
    """
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.functional import mse_loss

    rank, world_size, (inputs, hidden, _) = dist.get_rank(), dist.get_world_size(), shapes(seed)

    class Branches(nn.Module):
        def __init__(self, model_seed: int) -> None:
            super().__init__()
            torch.manual_seed(model_seed)
            self.nobody, self.trunk = nn.Linear(2, 2), nn.Linear(inputs, hidden)
            self.head, self.sometimes = nn.Linear(hidden, 3), nn.Linear(hidden, 3)

        def forward(self, x: torch.Tensor, even: bool) -> torch.Tensor:
            seen = torch.tanh(self.trunk(x))
            return self.head(seen) + (self.sometimes(seen) if even else 0)

    x, y = batch(seed, 4 * world_size)
    serial, model = (Branches(1000 * seed + r).to(device()) for r in (0, rank))
    ddp = learners(class_name)(model, 1, None)  # a bucket for each parameter
    start = other_start(model, serial)
    for r in range(world_size):
        rows = slice(4 * r, 4 * r + 4)
        (mse_loss(serial(x[rows], r % 2 == 0), y[rows]) / world_size).backward()
    rows = slice(4 * rank, 4 * rank + 4)
    mse_loss(model(x[rows], rank % 2 == 0), y[rows]).backward()
    learners(finish_name)(ddp)
    return {"start": start, "got": gradients(model), "serial": gradients(serial)}


def training(name: str, seed: int) -> TrainingAnswer:
    """The learner's loop around PyTorch's DDP, next to a single process on the same batches.

    There is also what the likely mistakes would give. `rows` and `dealt`: of each step of this
    rank, in order.
    """
    import random

    import torch
    from torch.nn.parallel import DistributedDataParallel

    from manyhands.ledger import Ledger

    draw, (inputs, hidden, _) = random.Random(seed), shapes(seed)
    n, epochs, world_size = 32 * draw.randint(2, 5), draw.randint(2, 4), 4
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, inputs, generator=generator, dtype=torch.float64).to(device())
    y = torch.randint(0, 3, (n,), generator=generator).to(device())

    def model(model_seed: int) -> nn.Sequential:
        torch.manual_seed(model_seed)
        return (
            torch.nn.Sequential(
                torch.nn.Linear(inputs, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, 3)
            )
            .double()
            .to(device())
        )

    def batches(later: int = 1) -> list[torch.Tensor]:
        """The whole batch of each step, as cards in a row.

        `later` is what an epoch adds to its seed.
        """
        orders = [
            torch.randperm(n, generator=torch.Generator().manual_seed(later * epoch))
            for epoch in range(epochs)
        ]
        return [cards for order in orders for cards in order.split(8 * world_size)]

    def alone(
        places: Iterable[int] = range(world_size),
        later: int = 1,
        zeroed: bool = True,
        rate: float = 0.5,
    ) -> list[float]:
        """One process; `places` are those that the ranks take in the order."""
        serial = model(1000 * seed)
        optimiser = torch.optim.SGD(serial.parameters(), lr=rate)
        for cards in batches(later):
            rows = torch.cat([cards[place::world_size] for place in places])
            torch.nn.functional.cross_entropy(serial(x[rows]), y[rows]).backward()
            optimiser.step()
            if zeroed:
                optimiser.zero_grad()
        return numbers(torch.nn.utils.parameters_to_vector(serial.parameters()))

    ddp = DistributedDataParallel(model(1000 * seed + torch.distributed.get_rank()))
    with Ledger() as ledger:
        rows = _rows(learners(name)(ddp, x.clone(), y.clone(), epochs))
    return {
        "sent": ledger.count("allreduce"),
        "steps": epochs * n // (8 * world_size),
        "epochs": epochs,
        "serial": alone(),
        "rows": rows,
        "dealt": [
            sorted(cards[torch.distributed.get_rank() :: world_size].tolist())
            for cards in batches()
        ],
        "got": numbers(torch.nn.utils.parameters_to_vector(ddp.module.parameters())),
        "local rank": alone(places=(0, 1, 0, 1)),
        "one epoch": alone(later=0),
        "both": alone((0, 1, 0, 1), 0),
        "not zeroed": alone(zeroed=False),
        "other rate": alone(rate=0.5 / world_size),
    }


def _rows(steps: Any) -> list[list[int]] | None:
    """The rows of each step as lists of numbers, in ascending order.

    None if that is not what the loop returned.
    """
    try:
        return [sorted(int(row) for row in rows) for rows in steps]
    except (TypeError, ValueError):
        return None
