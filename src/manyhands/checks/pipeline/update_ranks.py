"""The half of exercise 7's check that runs on the ranks.

It compares the learner's `update` with a single process that has the whole network. The network
begins with a matrix and ends with its transpose, like an embedding and a head that are tied. Each
rank computes the gradients of all stages and keeps the gradients of its own stage, so no pipeline
has to run, and the first and the last stage have only the gradient of their own use of the matrix.
"""

from __future__ import annotations

import copy
import math
import random
from typing import TYPE_CHECKING, Any, cast

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import mse_loss

from manyhands.checks.on_ranks import learners
from manyhands.checks.pipeline.messages import MISTAKES
from manyhands.checks.rank_tools import (
    GROUPS,
    add_to_errors,
    close,
    fresh_world,
    looks_like,
    make_groups,
    short_lived,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from manyhands.checks.pipeline.answers import UpdateCase

RATE, EPSILON = 0.5, 1e-6  # the second is in the denominator of PyTorch's clipping
TOLERANCE = 1e-5  # some answers divide by norm, others by norm + 1e-6
SHORT, LONG = 0.4, 3.0  # max_norm, as a part of the norm


@fresh_world()
def update(name: str, seed: int) -> list[UpdateCase]:
    """Return the result of each update in which this rank took part.

    The gradients are larger or smaller than the limit.
    """
    function, updates = learners(name), []
    ends = [short_lived(dist.new_group([members[0], members[-1]])) for members in GROUPS]
    for members, group in make_groups():
        for part in (SHORT, LONG):
            case = Case(f"{seed} {members} {part}", len(members), part)
            updates.append(_update(function, case, members, group, ends[GROUPS.index(members)]))
    return updates


class Case:
    """A network, a batch and a limit, drawn from the seed and the same on every rank."""

    def __init__(self, seed: str, stages: int, part: float) -> None:
        draw = random.Random(seed)
        torch.manual_seed(draw.randrange(2**31))
        width = draw.randint(3, 6)
        x, y, shared, *weights = (
            torch.randn(width, width, dtype=torch.float64) for _ in range(3 + stages)
        )
        self.stages = [nn.ParameterDict({"weight": nn.Parameter(weight)}) for weight in weights]
        for end in (self.stages[0], self.stages[-1]):
            end["shared"] = nn.Parameter(shared.clone())
        self._loss_of(x, y).backward()
        # the gradient of the one matrix
        self.both = self.stages[0]["shared"].grad + self.stages[-1]["shared"].grad
        self.norms = self._norms()
        self.max_norm = part * self.norms["right"]

    def _loss_of(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        h = x @ self.stages[0]["shared"]
        for stage in self.stages:
            h = torch.tanh(h @ stage["weight"])
        return mse_loss(h @ self.stages[-1]["shared"].T, y)

    def _norms(self) -> dict[str, float]:
        """Return the norm that a single process computes, and those that usual mistakes give."""
        each = [
            torch.stack(
                [cast("torch.Tensor", p.grad).square().sum() for p in stage.parameters()]
            ).sum()
            for stage in self.stages
        ]
        weights = [stage["weight"].grad.square().sum() for stage in self.stages]
        once, apart = self.both.square().sum(), sum(each)
        right = sum(weights) + once
        summed = [own + once if i in (0, len(each) - 1) else own for i, own in enumerate(weights)]
        wrong = {
            "twice": right + once,
            "too early": apart,
            "mean": right / len(each),
            "mean twice": (right + once) / len(each),
            "sum of norms": sum(square.sqrt() for square in summed).square(),
            "largest": max(summed),
            "square": right.square(),
            "halved": sum(weights) + once / 4,
        }
        # one copy is counted, before the two are added
        ends = [self.stages[i]["shared"].grad.square().sum() for i in (0, -1)]
        wrong |= {f"too early {i}": sum(weights) + end for i, end in enumerate(ends)}
        self.own = [
            {own.sqrt().item(), later.sqrt().item()}
            for own, later in zip(each, summed, strict=True)
        ]
        return {
            "right": right.sqrt().item(),
            **{name: value.sqrt().item() for name, value in wrong.items()},
        }

    def after(
        self, stage: int, factor: float | None = None, shared: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return the weights of a stage after the update, as one vector.

        The gradient of the shared matrix may be a wrong one.
        """
        factor = self.factor(self.norms["right"]) if factor is None else factor
        gradients = {name: p.grad for name, p in self.stages[stage].items()}
        if "shared" in gradients:
            gradients["shared"] = self.both if shared is None else shared
        return torch.cat(
            [
                (p.detach() - RATE * factor * gradients[name]).flatten()
                for name, p in self.stages[stage].items()
            ]
        )

    def factor(self, norm: float) -> float:
        """Return the factor by which gradients of this norm are clipped."""
        return min(1.0, self.max_norm / (norm + EPSILON))

    def wrong(self, stage: int, norm: float | None) -> dict[str, torch.Tensor]:
        """Return the weights of a stage after usual mistakes, as {mistake: weights}.

        `norm` is what the function returned, if it is wrong.
        """
        norms, own = self.norms, self.own[stage]
        # with 1, the weights do not show which norm was used
        weights = {
            f"by {name}": self.after(stage, self.factor(norm))
            for name, norm in norms.items()
            if name not in ("right", "largest") and self.factor(norm) < 1
        }
        alike = abs(max(own) - norms["largest"]) < TOLERANCE
        weights |= {
            "by own or largest" if alike else "by own": self.after(stage, self.factor(max(own)))
        }
        if norm is not None:
            weights["follow"] = self.after(stage, self.factor(norm))
        weights |= {
            "not clipped": self.after(stage, 1.0),
            "always": self.after(stage, self.max_norm / (norms["right"] + EPSILON)),
        }
        weights.setdefault("by largest", self.after(stage, self.factor(norms["largest"])))
        if "shared" in self.stages[stage]:
            alone = self.stages[stage]["shared"].grad
            factors = [
                self.factor(norm)
                for norm in (*own, norms["right"], norms["too early"], norms["halved"])
            ]
            weights |= {
                f"shared alone {i}": self.after(stage, factor, alone)
                for i, factor in enumerate(factors)
            }
            weights |= {
                f"shared mean {i}": self.after(stage, factor, self.both / 2)
                for i, factor in enumerate(factors)
            }
            weights |= {
                f"shared twice {i}": self.after(stage, factor, 2 * self.both)
                for i, factor in enumerate(factors)
            }
            # each clipped, then added
            ends = [self.stages[i]["shared"].grad * self.factor(min(self.own[i])) for i in (0, -1)]
            mine = self.factor(min(own))
            weights["clipped early"] = self.after(stage, mine, sum(ends) / mine)
        return weights


def _update(
    function: Callable[..., Any],
    case: Case,
    members: list[int],
    group: dist.ProcessGroup | None,
    ends: dist.ProcessGroup | int,  # a number on a rank that is no end
) -> UpdateCase:
    me = members.index(dist.get_rank())
    stage = copy.deepcopy(case.stages[me])
    for name, parameter in stage.items():
        parameter.grad = case.stages[me][name].grad.clone()
    optimiser = torch.optim.SGD(stage.parameters(), lr=RATE)
    at_an_end = "shared" in stage
    shared, own_ends = (stage["shared"], ends) if at_an_end else (None, None)
    with add_to_errors(MISTAKES["where update"].format(ranks=members)):
        norm = function(stage, optimiser, case.max_norm, shared, own_ends, group)
    norm = norm.item() if isinstance(norm, torch.Tensor) and norm.numel() == 1 else norm
    got = torch.cat([p.detach().flatten() for p in stage.parameters()])
    norm, norm_looks = norm if isinstance(norm, (int, float)) else None, _norm_looks(norm, case, me)
    looks = looks_like(
        got,
        case.after(me),
        case.wrong(
            me,
            norm if norm_looks and norm is not None and math.isfinite(norm) and norm > 0 else None,
        ),
        TOLERANCE,
    )
    return {
        "rank": dist.get_rank(),
        "members": members,
        "stages": len(members),
        "norm": norm,
        "right norm": case.norms["right"],
        "norm looks": norm_looks,
        "max_norm": case.max_norm,
        "looks": looks and looks.rstrip(" 0123456789"),
        "weights": [*got[:3].tolist(), got.sum().item()],
        "wanted": case.after(me)[:3].tolist(),
    }


def _norm_looks(norm: Any, case: Case, me: int) -> str | None:
    """Return None if the norm is right, and otherwise which mistake it looks like."""
    if not isinstance(norm, (int, float)):
        return "norm nothing" if norm is None else "norm no number"

    def same(value: float) -> bool:
        return close(torch.tensor(float(norm)), torch.tensor(float(value)), TOLERANCE)

    if same(case.norms["right"]):
        return None
    if any(map(same, case.own[me])):
        return "norm own or largest" if same(case.norms["largest"]) else "norm own"
    if same(min(case.max_norm, case.norms["right"])):
        return "norm clipped"
    return next(
        (f"norm {name}".rstrip(" 0123456789") for name, value in case.norms.items() if same(value)),
        "norm other",
    )
