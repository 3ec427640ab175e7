"""The half of unit 01's checks that runs on the ranks, with experiments that report plain numbers.

All ranks run an experiment at the same time. Since shapes and numbers are drawn from the seed, they
are the same on all ranks, so each rank also computes alone what a single process would get, and
what the likely mistakes would give (`looks` names the one that fits). Everything is float64.
"""

from __future__ import annotations

import copy
import functools
import math
import random
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

from manyhands.checks.by_hand import trace_call
from manyhands.checks.on_ranks import learners
from manyhands.checks.rank_tools import device, looks_like, make_groups, numbers, total
from manyhands.ledger import Ledger, taps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from manyhands.checks.data_parallel.answers import (
        Gradient,
        GradientCase,
        Gradients,
        RowsCase,
        Share,
        ShareCase,
        StepCase,
    )

    T = TypeVar("T")

Batch = tuple[torch.Tensor, torch.Tensor]
LATE_S = 0.05


class Network(nn.Module):
    """A network with a tied weight (a, b), a frozen one (first), and two last layers.

    The second of these, `spare`, may be unused.
    """

    def __init__(self, inputs: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.seen: list[torch.Tensor] = []  # the inputs of each forward
        self.first, self.a, self.b = (
            nn.Linear(inputs, hidden),
            nn.Linear(hidden, hidden),
            nn.Linear(hidden, hidden),
        )
        self.head, self.spare = nn.Linear(hidden, classes), nn.Linear(hidden, classes)
        self.b.weight = self.a.weight
        self.first.weight.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute the sum of both last layers, and note the inputs in `seen`."""
        self.seen.append(x.detach())
        h = torch.tanh(self.b(torch.tanh(self.a(torch.tanh(self.first(x))))))
        return self.head(h) + self.spare(h)


def build(seed: int) -> Network:
    """Make the network of a seed, which is the same on all ranks."""
    draw = random.Random(seed)
    inputs, hidden, classes = draw.randint(10, 14), draw.randint(6, 14), draw.randint(3, 6)
    torch.manual_seed(seed)
    return Network(inputs, hidden, classes).double().to(device())


def batch(seed: int, n: int, model: Network) -> Batch:
    """Draw n inputs and labels for the network, the same on all ranks."""
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(n, model.first.in_features, generator=draw, dtype=torch.float64)
    return x.to(device()), torch.randint(model.head.out_features, (n,), generator=draw).to(device())


def trainable(model: nn.Module) -> dict[str, torch.Tensor]:
    """Return {name: parameter} of what is trained; a tied parameter appears once."""
    return {
        name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad
    }


# ------------------------------------------------------------------ 1: rows


def sizes(draw: random.Random) -> list[tuple[int, int]]:
    """Draw [(rows, ranks)] for the cases of `rows`.

    There are rows left over, none left over, fewer rows than ranks, and a single rank.
    """
    return [
        (4 * draw.randint(5, 14) + draw.randint(1, 3), 4),
        (draw.randint(21, 60) * 3 + 2, 3),
        (12, 4),
        (3, 4),
        (draw.randint(5, 9), 1),
    ]


def rows(name: str, seed: int) -> list[RowsCase]:
    """Ask for the learner's rows for several sizes and worlds, without communication."""
    function, draw = learners(name), random.Random(seed)
    cases: list[RowsCase] = []
    for n, world_size in sizes(draw):
        answers, borrowed = zip(
            *(trace_call(function, n, rank, world_size) for rank in range(world_size)), strict=True
        )
        odd = next(
            (type(answer).__name__ for answer in answers if _indices(answer, n) is None), None
        )
        got = [
            [] if name else _indices(answer, n) or []
            for answer, name in zip(answers, borrowed, strict=True)
        ]
        cases.append(
            {
                "n": n,
                "world_size": world_size,
                "got": got,
                "odd": odd,
                "borrowed": next(filter(None, borrowed), None),
            }
        )
    return cases


def _indices(answer: Any, n: int) -> list[int] | None:
    """Return the rows that an answer names, or None if it names none.

    Examples of the latter are (start, stop) and a forgotten return.
    """
    if isinstance(answer, slice):
        return list(range(n))[answer]
    try:
        return None if isinstance(answer, tuple) else [int(i) for i in answer]
    except (TypeError, ValueError):
        return None


# ------------------------------------------------------------------ 2: sum_gradients


def gradients(name: str, seed: int) -> list[GradientCase]:
    """Pass made-up gradients through the learner's function on each group, and count what was sent.

    The last rank of the group is late, so that a rank that does not wait for the sum reads a
    different value.
    """
    function = learners(name)
    results: list[GradientCase] = []
    for members, group in make_groups():
        model = build(seed)
        local = _made_up(model, seed, members)
        for key, parameter in trainable(model).items():
            parameter.grad = local[dist.get_rank()][key].clone()
        if dist.get_rank() == members[-1]:
            time.sleep(LATE_S)
        with Ledger() as ledger, _followed():
            function(model, group)
        sums = _compare(model, local)  # immediately, because what is still under way would arrive
        size = sum(parameter.numel() for parameter in trainable(model).values())
        results.append(
            {
                "members": members,
                "sent": ledger.bytes_sent / 8,
                "size": size,
                "not waited": _not_waited(ledger),
                **sums,
            }
        )
    return results


@contextmanager
def _followed() -> Iterator[None]:
    """While the block runs, count a work as awaited also if the learner asked for its state.

    That is its future, or whether it has ended.
    """
    originals = {name: getattr(dist.Work, name) for name in ("get_future", "is_completed")}

    def following(original: Callable[[dist.Work], T]) -> Callable[[dist.Work], T]:
        @functools.wraps(original)
        def asked(work: dist.Work) -> T:
            # the ledger asks for futures itself
            if sys._getframe(1).f_globals.get("__name__") != taps.__name__:
                taps.mark_waited(work)
            return original(work)

        return asked

    try:
        for name, original in originals.items():
            setattr(dist.Work, name, following(original))
        yield
    finally:
        for name, original in originals.items():
            setattr(dist.Work, name, original)


def _not_waited(ledger: Ledger) -> int:
    """Return how many of the calls that were begun were never waited for."""
    waited = {id(item[1]) for item in ledger.log if item[0] == "wait"}
    return sum(
        item[0] == "start" and not item[1].native and id(item[1]) not in waited
        for item in ledger.log
    )


def missing(name: str, seed: int) -> list[GradientCase]:
    """Do the same with missing gradients.

    The group's last rank has none for the spare layer, and no rank has one for `a.bias`.
    """
    function = learners(name)
    results: list[GradientCase] = []
    for members, group in make_groups():
        model = build(seed)
        local = _made_up(model, seed + 1, members)
        for key, parameter in trainable(model).items():
            for rank in members:
                if key == "a.bias" or (key.startswith("spare") and rank == members[-1]):
                    local[rank][key] = torch.zeros_like(local[rank][key])
                elif rank == dist.get_rank():
                    parameter.grad = local[rank][key].clone()
        with Ledger() as ledger, _followed():
            function(model, group)
        results.append(
            {"members": members, **_compare(model, local), "not waited": _not_waited(ledger)}
        )
    return results


def _made_up(model: Network, seed: int, members: list[int]) -> dict[int, dict[str, torch.Tensor]]:
    """Return {rank: {name: gradient}}, which is the same on all ranks."""
    gradients = {}
    for rank in members:
        draw = torch.Generator().manual_seed(100 * seed + rank)
        gradients[rank] = {
            key: torch.randn(p.shape, generator=draw, dtype=torch.float64).to(p.device)
            for key, p in trainable(model).items()
        }
    return gradients


def _compare(model: Network, local: dict[int, dict[str, torch.Tensor]]) -> Gradients:
    p, mine = len(local), local[dist.get_rank()]
    answer: dict[str, Gradient] = {}
    for key, parameter in trainable(model).items():
        right = total(gradients[key] for gradients in local.values())
        got = parameter.grad
        if got is None and not right.any():
            got = right  # no rank has a gradient, so none is as good as zeros
        wrong = {
            "mean": right / p,
            "summed again": right * p,
            "own": mine[key],
            "own divided": mine[key] / p,
        }
        answer[key] = {
            "got": None if got is None else numbers(got),
            "right": numbers(right),
            "looks": "none" if got is None else _looks(got, right, wrong),
        }
    frozen = [
        key
        for key, parameter in model.named_parameters()
        if not parameter.requires_grad and parameter.grad is not None
    ]
    return {"gradients": answer, "frozen": frozen}


def _looks(
    got: torch.Tensor, right: torch.Tensor, wrong: Mapping[str, torch.Tensor], coarse: float = 0.005
) -> str | None:
    looks = looks_like(got, right, wrong)
    return "rounded" if looks == "other" and (got - right).norm() < coarse * right.norm() else looks


# ------------------------------------------------------------------ 3: share


def shares(name: str, seed: int) -> list[ShareCase]:
    """Compute all shares of some batches one after the other on this rank, and their sum.

    There is no communication.
    """
    function, draw = learners(name), random.Random(seed)
    cases: list[ShareCase] = []
    model = build(seed)
    for sizes in (
        [draw.randint(3, 6), draw.randint(7, 9), 1, 2],
        [draw.randint(2, 4)] * 3,
        [2, draw.randint(3, 5), 0],
    ):
        for decay in (0.0, draw.uniform(0.1, 0.9)):
            cases.append(
                {"sizes": sizes, "decay": decay, **_shares(function, model, sizes, decay, seed)}
            )
    return cases


def _shares(
    function: Callable[..., Any], model: Network, sizes: list[int], decay: float, seed: int
) -> Share:
    x, y = batch(seed + 7, sum(sizes), model)
    pieces, p, n = list(zip(x.split(sizes), y.split(sizes), strict=True)), len(sizes), sum(sizes)
    value = 0.0
    summed: Any = 0  # then a tensor
    for a, b in pieces:
        part = function(model, a, b, n, decay, p)
        if not isinstance(part, torch.Tensor) or part.dim() or not part.requires_grad:
            looks: str | None = "nothing" if part is None else "no tensor"
            return {
                "value": None,
                "gradient": None,
                "looks": looks,
                "serial": None,
                "serial gradient": None,
            }
        value, summed = value + part.item(), summed + _flat(part, model)
    losses, penalty = cross_entropy(model(x), y, reduction="sum"), _penalty(model)
    means = sum(cross_entropy(model(a), b) for a, b in pieces if len(b))
    twice = penalty + model.a.weight.square().sum() / 2
    frozen = penalty + model.first.weight.square().sum() / 2
    matrices = (
        sum(
            parameter.square().sum()
            for parameter in trainable(model).values()
            if parameter.dim() > 1
        )
        / 2
    )
    right = losses / n + decay * penalty
    wrong = {
        "mean of means": means / p + decay * penalty,
        "sum of means": means + decay * penalty,
        "not divided by n": losses + decay * penalty,
        "divided again": losses / n / p + decay * penalty,
        "empty without decay": losses / n + decay * penalty * sum(map(bool, sizes)) / p,
        "world of all": losses / n + decay * penalty * p / dist.get_world_size(),
        "weights only": losses / n + decay * matrices,
        "decay on each": losses / n + p * decay * penalty,
        "decay by n": losses / n + decay * penalty / n,
        "no half": losses / n + 2 * decay * penalty,
        "tied twice": losses / n + decay * twice,
        "frozen": losses / n + decay * frozen,
        "no decay": losses / n,
    }
    flatten = lambda term: torch.cat([term.detach().view(1), _flat(term, model)])  # noqa: E731
    looks = _looks(
        torch.cat([summed.new_tensor([value]), summed]),
        flatten(right),
        {key: flatten(term) for key, term in wrong.items()},
        1e-4,
    )
    return {
        "value": value,
        "gradient": numbers(summed),
        "looks": looks,
        "serial": right.item(),
        "serial gradient": numbers(_flat(right, model)),
    }


def _penalty(model: Network) -> torch.Tensor:
    return total(parameter.square().sum() for parameter in trainable(model).values()) / 2


def _flat(term: torch.Tensor, model: Network) -> torch.Tensor:
    gradients = torch.autograd.grad(
        term,
        list(trainable(model).values()),
        allow_unused=True,
        materialize_grads=True,
        retain_graph=True,
    )
    return torch.cat([gradient.flatten() for gradient in gradients])


# ------------------------------------------------------------------ 4: train_step


def steps(name: str, seed: int) -> list[StepCase]:
    """Take three steps on each group, and compare them with those of a single process.

    The batches have different sizes.
    """
    function = learners(name)
    results: list[StepCase] = []
    for members, group in make_groups():
        draw, p, model = random.Random(seed), len(members), build(seed)
        rate, decay = draw.uniform(0.3, 0.6), draw.uniform(0.1, 0.3)
        batches = [
            batch(seed + k, n, model)
            for k, n in enumerate((2 * p + draw.randint(1, p), p - 1, 3 * p + 1))
        ]
        frozen, plan = model.first.weight.clone(), (copy.deepcopy(model), batches, rate, decay)
        returned, beyond = [], []
        for x, y in batches:
            model.seen.clear()
            returned.append(function(model, x, y, rate, decay, group))
            beyond.append(max(0, _rows_seen(model, x) - math.ceil(len(x) / p)))
        right, objectives = _alone(*plan)
        wrong = {
            "accumulated": _alone(*plan, keep=p)[0],
            "decay on each": _alone(*plan, decays=p)[0],
            "decay twice": _alone(*plan, decays=2)[0],
            "no decay": _alone(*plan, decays=0)[0],
            "times p": _alone(*plan, times=p)[0],
            "divided": _alone(*plan, times=1 / p)[0],
            "uphill": _alone(*plan, times=-1)[0],
        }
        got, after = _state(model), _alone(*plan, after=True)[1]
        results.append(
            {
                "members": members,
                "got": numbers(got),
                "right": numbers(right),
                "looks": looks_like(got, right, wrong),
                "beyond": beyond,
                "frozen": bool(torch.equal(frozen, model.first.weight)),
                "reported": [_number(objective) for objective in returned],
                "objectives": objectives,
                "after": after,
            }
        )
    return results


def _rows_seen(model: Network, x: torch.Tensor) -> int:
    """Return how many different rows of x have gone through the model.

    The rows are random, so no two are equal.
    """
    return len(
        {
            i
            for inputs in model.seen
            for i in (inputs[:, None] == x).all(-1).nonzero()[:, 1].tolist()
        }
    )


def _state(model: Network) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in trainable(model).values()])


def _number(answer: Any) -> float | None:
    try:
        return float(answer)
    except (TypeError, ValueError):
        return None


def _alone(
    model: Network,
    batches: Sequence[Batch],
    rate: float,
    decay: float,
    keep: int = 0,
    decays: int = 1,
    times: float = 1,
    after: bool = False,
) -> tuple[torch.Tensor, list[float]]:
    """Return the weights of a single process at the end, and its objectives.

    The last four arguments make mistakes on purpose. `keep` multiplies the last gradient, which was
    left in `grad` and summed once more over the ranks; `after` gives the objectives after each
    update instead of before it.
    """
    model, objectives = copy.deepcopy(model), []
    for x, y in batches:
        loss = cross_entropy(model(x), y)
        objectives.append((loss + decay * _penalty(model)).item())
        for parameter in trainable(model).values():
            parameter.grad = parameter.grad * keep if keep and parameter.grad is not None else None
        (times * (loss + decays * decay * _penalty(model))).backward()
        with torch.no_grad():
            for parameter in trainable(model).values():
                parameter -= rate * cast("torch.Tensor", parameter.grad)  # of backward
            if after:
                objectives[-1] = (cross_entropy(model(x), y) + decay * _penalty(model)).item()
    return _state(model), objectives
