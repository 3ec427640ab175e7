"""The part of unit 06's checks that runs the fine-tuning loop on the ranks.

It is next to what a single process computes from the labels of all of them. A *plan* is the data of
all ranks: `plan[rank][step][micro]` is `(x, y)`, and y is -100 in a row without a label. All ranks
draw the same plan.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from manyhands.checks.on_ranks import learners
from manyhands.checks.rank_tools import device, numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import torch
    from torch import nn

    from manyhands.checks.ddp.answers import Layers, TunedAnswer

    Plan = list[list[list[tuple[torch.Tensor, torch.Tensor]]]]
    Row = list[tuple[float, int]]  # of each micro-batch, the sum of losses and the labels

WORLD, STEPS, MICRO, ROWS, CLASSES = 4, 2, 3, 6, 3
RATE, FACTOR, THRESHOLD = 0.5, 0.5, 0.1
CLEAR = 2e-3  # within this relative distance from the threshold, a decision is too close to call
# what the sum of the losses of a micro-batch is divided by, before the ranks are averaged: rightly,
# and in likely mistakes
WAYS: dict[str, Callable[[int, int, int], float]] = {
    "right": lambda of_all, of_rank, of_micro: of_all / WORLD,
    "means": lambda of_all, of_rank, of_micro: of_micro * MICRO,
    "own labels": lambda of_all, of_rank, of_micro: of_rank,
    "not times world": lambda of_all, of_rank, of_micro: of_all,
    "padding counted": lambda of_all, of_rank, of_micro: ROWS * MICRO,
}


def fine_tuning(name: str, seed: int) -> TunedAnswer:
    """Run the learner's loop with data in which ranks disagree about the rates.

    Each rank's own loss asks for different rates than the loss of all ranks.
    """
    import torch.distributed as dist

    rank = dist.get_rank()
    attempt: list[Any] = [None]
    if rank == 0:
        attempt = [clear_attempt(seed)]
    dist.broadcast_object_list(attempt)
    sizes, plan, epochs = drawn(seed, attempt[0])
    model = network(sizes, 1000 * seed + rank)
    rates = learners(name)(
        model, [[(x.clone(), y.clone()) for x, y in step] for step in plan[rank]], epochs
    )
    expected = losses_of(seed, sizes, plan, epochs)[0]
    returned = as_rates(rates)
    # so that other rates do not hide what else is wrong
    used = returned if returned and len(returned) == epochs else expected

    def serial(way: str = "right", rates: int | Sequence[float] = used, **unusual: Any) -> Layers:
        return layers(alone(network(sizes, 1000 * seed), plan, rates, way, **unusual)[0])

    emptied = without_labels(plan, seed)
    second = network(sizes, 1000 * seed + rank)
    learners(name)(second, [[(x.clone(), y.clone()) for x, y in step] for step in emptied[rank]], 2)
    ways = {way: serial(way) for way in WAYS} | {
        "never unfrozen": serial(unfrozen_in=epochs),
        "never frozen": serial(unfrozen_in=0),
    }
    return {
        "got": layers(model),
        "rates": returned,
        "epochs": epochs,
        "own": [
            alone(network(sizes, 1000 * seed), plan, epochs, by=[other])[1]
            for other in range(WORLD)
        ],
        "ways": ways,
        "serial": serial(rates=expected),
        # the first loss never lowers the rate
        "emptied": layers(second),
        "serial emptied": layers(alone(network(sizes, 1000 * seed), emptied, [RATE, RATE])[0]),
    }


def layers(model: nn.Sequential) -> Layers:
    """The parameters of the first layer and of the head, as numbers."""
    import torch

    return [
        numbers(torch.nn.utils.parameters_to_vector(model[place].parameters())) for place in (0, 2)
    ]


def network(sizes: tuple[int, int], seed: int) -> nn.Sequential:
    """Make a network with these widths, whose weights depend on the seed only."""
    import torch
    from torch import nn

    torch.manual_seed(seed)
    return (
        nn.Sequential(nn.Linear(sizes[0], sizes[1]), nn.Tanh(), nn.Linear(sizes[1], CLASSES))
        .double()
        .to(device())
    )


def without_labels(plan: Plan, seed: int) -> Plan:
    """The plan, with one micro-batch of one rank in which no row has a label."""
    choose = random.Random(f"{seed} emptied")
    rank, step, micro = choose.randrange(WORLD), choose.randrange(STEPS), choose.randrange(MICRO)
    plan = [[list(micros) for micros in steps] for steps in plan]
    x, y = plan[rank][step][micro]
    plan[rank][step][micro] = x, y.new_full(y.shape, -100)
    return plan


def clear_attempt(seed: int) -> int:
    """The first drawn plan in which the loss of all labels decides unlike any other.

    It lowers the rate in other epochs than any rank's own loss, and than means of means do. Means
    over the labels of a step, added up, are as good as one mean.
    """
    for attempt in range(300):
        sizes, plan, epochs = drawn(seed, attempt)
        rates, own, of_all, means_of_means = losses_of(seed, sizes, plan, epochs)
        decisions = [decide(losses) for losses in own]
        agreed = all(decide(losses) == rates and not unclear(losses) for losses in of_all)
        others = [*decisions, *map(decide, means_of_means)]
        if (
            agreed
            and rates[-2] < RATE
            and rates not in others
            and len(set(map(tuple, decisions))) > 1
        ):
            return attempt
    raise RuntimeError(f"seed {seed}: no plan in which the ranks' own losses disagree")


def drawn(seed: int, attempt: int) -> tuple[tuple[int, int], Plan, int]:
    """(widths of the network, plan, number of epochs).

    Nothing in the rows of one rank tells their classes, so its own loss soon stops falling.
    """
    import torch

    choose = random.Random(f"{seed} {attempt}")
    sizes, epochs, blind = (
        (choose.randint(5, 8), choose.randint(5, 8)),
        choose.randint(7, 9),
        choose.randrange(1, WORLD),
    )
    generator = torch.Generator().manual_seed(choose.randrange(2**31))
    centres = 2 * torch.randn(CLASSES, sizes[0], generator=generator, dtype=torch.float64)
    plan: Plan = [[[] for _ in range(STEPS)] for _ in range(WORLD)]
    for rank in range(WORLD):
        for step in range(STEPS):
            for labels in choose.sample(range(1, ROWS + 1), MICRO):
                y = torch.randint(0, CLASSES, (ROWS,), generator=generator)
                x = (rank != blind) * centres[y] + 0.5 * torch.randn(
                    ROWS, sizes[0], generator=generator, dtype=torch.float64
                )
                y[torch.randperm(ROWS, generator=generator)[labels:]] = -100
                plan[rank][step].append((x.to(device()), y.to(device())))
    return sizes, plan, epochs


def alone(
    model: nn.Sequential,
    plan: Plan,
    rates: int | Sequence[float],
    way: str = "right",
    unfrozen_in: int = 1,
    by: Iterable[int] = range(WORLD),
) -> tuple[nn.Sequential, list[float], list[list[Row]]]:
    """Train in a single process, with the rate `rates[epoch]` after each epoch.

    If `rates` is a number of epochs, the rates are those that ReduceLROnPlateau makes of the mean
    loss of the labels of the ranks `by`. Returns the model, the rates, and of each epoch, step and
    micro-batch the sum of the losses and the number of labels.
    """
    import torch
    from torch.nn.functional import cross_entropy

    optimiser = torch.optim.SGD(model.parameters(), lr=RATE)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimiser, factor=FACTOR, patience=0, threshold=THRESHOLD
    )
    steps = [whole(plan, step, way) for step in range(STEPS)]
    used: list[float] = []
    record: list[list[Row]] = []
    for epoch in range(rates if isinstance(rates, int) else len(rates)):
        model[0].requires_grad_(epoch >= unfrozen_in)
        record.append([])
        for x, y, weights, labels in steps:
            losses = cross_entropy(model(x), y, reduction="none")
            (losses * weights).sum().backward()
            optimiser.step()
            optimiser.zero_grad()
            record[-1].append(
                [
                    (part.sum().item(), count)
                    for part, count in zip(losses.detach().split(ROWS), labels, strict=True)
                ]
            )
        if isinstance(rates, int):
            scheduler.step(
                mean([cell for row in record[-1] for rank in by for cell in of_rank(row, rank)])
            )
        else:
            optimiser.param_groups[0]["lr"] = rates[epoch]
        used.append(optimiser.param_groups[0]["lr"])
    return model, used, record


def whole(
    plan: Plan, step: int, way: str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, list[int]]:
    """All rows of a step, their labels, the weight of each row's loss, and the counts of labels.

    There is a count for each micro-batch.
    """
    import torch

    batches = [batch for rank in plan for batch in rank[step]]
    counts = [int((y != -100).sum()) for _, y in batches]
    of_ranks = [sum(counts[MICRO * rank : MICRO * rank + MICRO]) for rank in range(WORLD)]
    weights = [
        1 / WAYS[way](sum(counts), of_ranks[i // MICRO], count) / WORLD
        for i, count in enumerate(counts)
    ]
    x, y = (torch.cat(parts) for parts in zip(*batches, strict=True))
    return (
        x,
        y,
        torch.tensor(weights, dtype=x.dtype, device=x.device).repeat_interleave(ROWS),
        counts,
    )


def losses_of(
    seed: int, sizes: tuple[int, int], plan: Plan, epochs: int
) -> tuple[list[float], list[list[float]], list[list[float]], list[list[float]]]:
    """The rates of a single process, and the losses by which ranks could decide.

    These are the losses of each rank alone, two right ways to sum up the losses of all labels, and
    wrong ones.
    """
    _, rates, record = alone(network(sizes, 1000 * seed), plan, epochs)
    own = [
        [sum(mean(of_rank(row, rank)) for row in epoch) for epoch in record]
        for rank in range(WORLD)
    ]
    of_labels = [mean([cell for row in epoch for cell in row]) for epoch in record]
    of_steps = [sum(map(mean, epoch)) for epoch in record]
    of_ranks = [
        sum(mean([cell for row in epoch for cell in of_rank(row, rank)]) for rank in range(WORLD))
        for epoch in record
    ]
    of_micro_batches = [sum(mean([cell]) for row in epoch for cell in row) for epoch in record]
    return (
        rates,
        own,
        [of_labels, of_steps],
        [of_ranks, of_micro_batches, [sum(losses) for losses in zip(*own, strict=True)]],
    )


def of_rank(row: Row, rank: int) -> Row:
    """What a step has recorded of the micro-batches of a rank."""
    return row[MICRO * rank : MICRO * rank + MICRO]


def mean(cells: Row) -> float:
    """The mean loss of all labels, of (sum of losses, number of labels)."""
    return sum(loss for loss, _ in cells) / sum(count for _, count in cells)


def decide(losses: Sequence[float]) -> list[float]:
    """The rates after each epoch that ReduceLROnPlateau makes of these losses."""
    best, rate, rates = float("inf"), RATE, []
    for loss in losses:
        if loss < best * (1 - THRESHOLD):
            best = loss
        else:
            rate *= FACTOR
        rates.append(rate)
    return rates


def unclear(losses: Sequence[float]) -> bool:
    """Whether one of the decisions is too close to call."""
    best = float("inf")
    for loss in losses:
        if abs(loss / (best * (1 - THRESHOLD)) - 1) < CLEAR:
            return True
        best = loss if loss < best * (1 - THRESHOLD) else best
    return False


def as_rates(rates: Any) -> list[float] | None:
    """What the loop returned, as a list of numbers; None if it is none."""
    try:
        return [float(rate) for rate in rates]
    except (TypeError, ValueError):
        return None
