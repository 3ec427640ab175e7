"""Exercise 8 of unit 16 on the ranks, a training loop around `fully_shard`.

A single process takes the same rows. It also plays the likely mistakes, so that the check can name
what is wrong with a loop.
"""

from __future__ import annotations

import itertools
import math
import random
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.nn.functional import cross_entropy

from manyhands.checks.on_ranks import learners
from manyhands.checks.rank_tools import (
    add_to_errors,
    close,
    device_of_any_call,
    numbers,
    short_lived,
)
from manyhands.checks.sharded_states.findings_with_torch import F64, draw, finding, flat
from manyhands.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from manyhands.checks.sharded_states.answers import Finding, Findings

    Make = Callable[[], nn.Module]
    Rows = tuple[torch.Tensor, torch.Tensor]  # (x, y)

STEPS, ROWS, MICRO_BATCHES, LR = 3, 32, 4, 0.5  # as in the text of the exercise
PAIRS = [0, 2], [1, 3]  # meshes of two ranks
_attempts = itertools.count()
ATOL = 1e-5  # clip_grad_norm_ divides by norm + 1e-6
WRONG: dict[str, dict[str, Any]] = {  # name of the mistake: how `_alone` makes it
    "first micro-batch only": {"scatter": "first"},
    "clipped own": {"clip": "own"},
    "sum of norms": {"clip": "sum"},
    "not clipped": {"clip": "none"},
    "stale and clipped own": {"scatter": "first", "clip": "own"},
    "not divided": {"factor": MICRO_BATCHES},
    "divided twice": {"factor": 1 / 4},
}


def training(name: str, seed: int) -> Findings:
    """Try the learner's training loop, on the mesh of all ranks and on pairs of ranks."""
    function, sizes = learners(name), random.Random(f"{seed} training")
    inputs, hidden, classes = sizes.randint(5, 9), sizes.randint(5, 9), 4
    make = partial(_network, inputs, hidden, classes)
    x = draw(f"{seed} rows", STEPS * ROWS, inputs)
    y = torch.tensor([sizes.randrange(classes) for _ in range(STEPS * ROWS)], device=x.device)
    mesh = init_device_mesh(device_of_any_call().type, (dist.get_world_size(),))
    findings: Findings = {"start": [], "steps": []}
    net_seed = sizes.randrange(1000)
    first = _whole(function(make, x.clone(), y.clone(), net_seed, 0, 1.0, mesh))
    starts = {
        None: _start(make, net_seed, mesh.size()),
        "four networks": _start(make, net_seed, mesh.size(), mixed=True),
    }
    looks = (
        "not sharded"
        if first is None
        else next(
            (looks for looks, start in starts.items() if _equal(first, flat(start))), "other start"
        )
    )
    findings["start"].append(
        finding("before the first step", looks, _all(first), *_apart(flat(starts[None]), first))
    )
    begun = looks == "four networks"
    for steps, max_norm in ((1, 0.05), (STEPS, 0.05), (STEPS, 100.0)):
        findings["steps"].append(
            _trained(function, make, (x, y), net_seed, steps, max_norm, mesh, begun)
        )
    right = all(step["looks"] is None for step in findings["steps"])
    findings["steps"].append(_in_pairs(function, make, (x, y), net_seed, begun, right))
    return findings


def _in_pairs(
    function: Callable[..., Any], make: Make, rows: Rows, net_seed: int, begun: bool, right: bool
) -> Finding:
    """The finding of one step on a mesh of two ranks.

    Each of the two meshes has its own rows, so that sums over the world are wrong. right: whether
    the steps on the mesh of all ranks were right.
    """
    groups = [short_lived(dist.new_group(pair)) for pair in PAIRS]
    mine = next(i for i, pair in enumerate(PAIRS) if dist.get_rank() in pair)
    # a new name each time, because DTensor reuses what it has cached for a mesh, the ended group
    # included, for every equal mesh
    mesh = DeviceMesh.from_group(
        cast("dist.ProcessGroup", groups[mine]),
        device_of_any_call().type,
        mesh_dim_names=(f"pair_{next(_attempts)}",),
    )
    (x, y), start = ([tensor, tensor.flip(0)] for tensor in rows), _start(make, net_seed, 2)
    with add_to_errors(f"on the mesh of the ranks {PAIRS[mine]}"):
        result = _trained(function, make, (x[mine], y[mine]), net_seed, 1, 0.05, mesh, begun)
    if result["looks"] == "other training" and right:
        step = flat(start) - _alone(make, x[1 - mine], y[1 - mine], 1, 0.05, 2, start, clip="none")
        got = torch.tensor(result["values"][:-1], dtype=F64)
        by_world = _alone(
            make, x[mine], y[mine], 1, 0.05, 2, start, more=(step.norm().item() / LR) ** 2
        )
        result["looks"] = "norm of the world" if _equal(got, by_world) else "mesh ignored"
    return {**result, "at": f"{result['at']}, on the mesh of the ranks {PAIRS[mine]}"}


def _trained(
    function: Callable[..., Any],
    make: Make,
    rows: Rows,
    net_seed: int,
    steps: int,
    max_norm: float,
    mesh: DeviceMesh,
    begun: bool,
) -> Finding:
    """The finding of one run on a mesh. begun: whether each rank has cut its own network."""
    x, y = rows
    with Ledger() as ledger:
        got = _whole(function(make, x.clone(), y.clone(), net_seed, steps, max_norm, mesh))
    scattered = sum(entry.numel for entry in ledger.entries if "reduce_scatter" in entry.call)
    enough = steps * sum(
        -(-len(p) // mesh.size()) * mesh.size() * p[0].numel() for p in make().parameters()
    )
    play, start = (
        partial(_alone, make, x, y, steps, max_norm, mesh.size()),
        _start(make, net_seed, mesh.size()),
    )
    right = play(start)
    looks = _looks(
        got, right, partial(play, _start(make, net_seed, mesh.size(), begun)), scattered, enough
    )
    at = f"after {steps} step{'s' * (steps > 1)} with max_norm = {max_norm:g}"
    shown = (
        (enough, scattered)
        if looks in ("scattered often", "scattered never")
        else _apart(right, got)
    )
    return finding(at, looks, [*_all(got), scattered], *shown)


def _network(inputs: int, hidden: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, classes)).to(
        device_of_any_call(), F64
    )


def _looks(
    got: torch.Tensor | None,
    right: torch.Tensor,
    play: Callable[..., torch.Tensor],
    scattered: int,
    enough: int,
) -> str | None:
    if got is None:
        return "not sharded"
    if _equal(got, right):
        return (
            None
            if scattered == enough
            else "scattered often"
            if scattered > enough
            else "scattered never"
        )
    if _equal(got, play()):
        return "four networks"
    return next((name for name, how in WRONG.items() if _equal(got, play(**how))), "other training")


def _whole(net: Any) -> torch.Tensor | None:
    """Return all weights of a network that is cut, as one vector.

    Return None if a parameter of it is not cut.
    """
    parameters: list[Any] = list(net.parameters()) if isinstance(net, nn.Module) else []
    if not parameters or any(
        not hasattr(p, "full_tensor") or not any(place.is_shard() for place in p.placements)
        for p in parameters
    ):
        return None
    return flat([p.detach().full_tensor() for p in parameters])


def _all(vector: torch.Tensor | None) -> list[float]:
    return [] if vector is None else numbers(vector)


def _apart(
    right: torch.Tensor, got: torch.Tensor | None, count: int = 4
) -> tuple[list[float], list[float]]:
    """A few numbers of both, from the first one that differs."""
    wanted, have = numbers(right), _all(got)
    first = next(
        (
            i
            for i, (a, b) in enumerate(zip(wanted, have, strict=False))
            if abs(a - b) > ATOL * (1 + abs(a))
        ),
        0,
    )
    return wanted[first : first + count], have[first : first + count]


def _equal(got: torch.Tensor, right: torch.Tensor) -> bool:
    return got.shape == right.shape and close(got.cpu(), right.cpu(), ATOL)


def _start(make: Make, seed: int, ranks: int, mixed: bool = False) -> list[torch.Tensor]:
    """Return the weights that the shards form.

    They are of one network or, if `mixed`, rank r's rows are from the network of seed + r.
    """
    nets = []
    for rank in range(ranks):
        torch.manual_seed(seed + rank * mixed)
        nets.append([p.detach() for p in make().parameters()])
    return [torch.cat(_pieces(versions, ranks)) for versions in zip(*nets, strict=True)]


def _pieces(versions: Sequence[torch.Tensor], ranks: int) -> list[torch.Tensor]:
    """Rank r's rows of version r, where the last ranks may have none."""
    return [
        version.chunk(ranks)[rank]
        for rank, version in enumerate(versions)
        if rank < len(version.chunk(ranks))
    ]


def _alone(
    make: Make,
    x: torch.Tensor,
    y: torch.Tensor,
    steps: int,
    max_norm: float,
    ranks: int,
    start: Sequence[torch.Tensor],
    scatter: str = "last",
    clip: str = "all",
    factor: float = 1.0,
    more: float = 0.0,
) -> torch.Tensor:
    """Return the weights of a single process that plays all ranks.

    `scatter`: the micro-batch whose backward a reduce-scatter follows. `more`: what is added to the
    square of the norm.
    """
    net = make()
    parameters = list(net.parameters())
    with torch.no_grad():
        for parameter, values in zip(parameters, start, strict=True):
            parameter.copy_(values)
    waiting = [torch.zeros_like(p) for p in parameters]
    for step in range(steps):
        now, later = ([torch.zeros_like(p) for p in parameters] for _ in range(2))
        for of_rank in torch.arange(step * ROWS, (step + 1) * ROWS, device=x.device).chunk(ranks):
            for i, rows in enumerate(of_rank.chunk(MICRO_BATCHES)):
                loss = cross_entropy(net(x[rows]), y[rows]) * factor / (MICRO_BATCHES * ranks)
                for total, gradient in zip(
                    later if i and scatter == "first" else now,
                    torch.autograd.grad(loss, parameters),
                    strict=True,
                ):
                    total += gradient
        gradients = [a + b for a, b in zip(now, waiting, strict=True)]
        waiting = later
        _clip(gradients, max_norm, ranks, clip, more)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.sub_(LR * gradient)
    return flat([p.detach() for p in parameters])


def _clip(
    gradients: Sequence[torch.Tensor], max_norm: float, ranks: int, clip: str, more: float = 0.0
) -> None:
    """Clip gradients in place.

    The norm is that of all gradients or the sum of the norms of the ranks' rows, or each rank's
    rows are clipped by the norm of these rows.
    """
    rows = [_pieces([gradient] * ranks, ranks) for gradient in gradients]
    shards = [[pieces[rank] for pieces in rows if rank < len(pieces)] for rank in range(ranks)]
    norms = [flat(shard).norm().item() if shard else 0.0 for shard in shards]
    if clip != "own":
        norms = [
            sum(norms) if clip == "sum" else math.sqrt(sum(norm**2 for norm in norms) + more)
        ] * ranks
    for shard, norm in zip(shards, norms, strict=True):
        for piece in shard if norm > max_norm and clip != "none" else ():
            piece *= max_norm / norm
