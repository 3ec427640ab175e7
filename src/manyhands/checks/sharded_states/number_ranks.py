"""Exercises 6 and 7 of unit 16 on the ranks.

They are about what rounding takes away and a norm that no rank can see alone. Each experiment is a
function of a name and the seed, which all ranks call in groups of 4, 3, 2 ranks and of 1. It
returns {criterion: [finding]}.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from manyhands.checks.in_kernel import number
from manyhands.checks.on_ranks import learners
from manyhands.checks.rank_tools import total
from manyhands.checks.sharded_states.diagnosis import ULP
from manyhands.checks.sharded_states.findings_with_torch import (
    BF16,
    at_most,
    compare,
    draw,
    finding,
    flat,
    length,
    my_groups,
    piece,
)
from manyhands.checks.sharded_states.held_with_torch import held_bytes, tensors_in
from manyhands.checks.sharded_states.live_with_torch import Created, LettingGo
from manyhands.checks.sharded_states.messages import MASTER_STEPS
from manyhands.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from manyhands.checks.sharded_states.answers import Finding, Findings
    from manyhands.checks.sharded_states.findings_with_torch import Group

# each step is less than half of the last bit of such weights, so in bfloat16 all of them vanish
STEPS, LR = MASTER_STEPS, 0.05
# float32 makes an error below 1e-5 in all steps, whereas a mean, a step or a rate that is rounded
# to bfloat16 makes more than 5e-5
MASTER_ERROR = 2e-5


# --- 6: masters -----------------------------------------------------------------------------------


def masters(name: str, seed: int) -> Findings:
    """Try the learner's step on parameters in bfloat16."""
    function, letting_go = learners(name), LettingGo()
    findings: Findings = {"moves": [], "states": [], "traffic": []}
    for group in my_groups():
        key = f"{seed} masters {group.ranks}"
        sizes = random.Random(key)
        shapes = ((sizes.randint(9, 13), 3), (sizes.randint(20, 30),))
        weights = [_two_to_four(f"{key} {i}", *shape) for i, shape in enumerate(shapes)]
        gradients = [
            _hard_to_add(f"{key} {i}", weight, group.ranks) for i, weight in enumerate(weights)
        ]
        parameters = [nn.Parameter(weight.clone()) for weight in weights]
        state: dict[Any, Any] = {}
        places, created = [parameter.data_ptr() for parameter in parameters], Created()
        with Ledger() as ledger:
            for _ in range(STEPS):
                if any(parameter.dtype != BF16 for parameter in parameters):
                    break  # such a parameter takes no gradient of bfloat16 any more
                for parameter, of_ranks in zip(parameters, gradients, strict=True):
                    parameter.grad = of_ranks[group.rank].clone()
                with created:
                    function(list(parameters), state, LR, group.handle)
        shard_numel, numel = (
            sum(length(w.numel(), group.ranks) for w in weights),
            sum(w.numel() for w in weights),
        )
        replaced = [parameter.data_ptr() for parameter in parameters] != places
        findings["moves"].append(
            _exact(
                _moves(group, parameters, weights, gradients, ledger),
                state,
                weights,
                gradients,
                group,
                replaced,
            )
        )
        findings["states"].append(
            _masters(
                group.text,
                state,
                parameters,
                (created, letting_go),
                length(numel, group.ranks),
                shard_numel,
            )
        )
        enough = STEPS * (group.ranks - 1) * shard_numel * (4 + 2)
        result = at_most(group.text, ledger.bytes_sent, enough, numel)
        wide = next(
            (entry for entry in ledger.entries if "gather" in entry.call and entry.itemsize > 2),
            None,
        )
        findings["traffic"].append(
            {**result, "looks": "gathered wide", "got": "float32"}
            if result["looks"] and wide
            else result
        )
    return findings


def _two_to_four(key: str, *shape: int) -> torch.Tensor:
    """Weights between 2.5 and 3.5, of both signs, in bfloat16."""
    numbers_ = draw(key, *shape)
    return (numbers_.sign() * (3 + numbers_.abs().remainder(1) - 0.5)).to(BF16)


def _hard_to_add(key: str, weight: torch.Tensor, ranks: int) -> list[torch.Tensor]:
    """Gradients of each rank in bfloat16.

    With three ranks or more, each number has 64 and -64 besides small ones, in a different order of
    the ranks. When they are added up in bfloat16, the small ones are lost in most orders.
    """
    small = [
        ((draw(f"{key} small {rank}", *weight.shape).abs().remainder(0.1) + 0.1) * 0.7).to(BF16)
        for rank in range(ranks)
    ]
    if ranks >= 3:
        orders = draw(f"{key} order", ranks, *weight.shape).argsort(0)
        for rank in range(ranks):
            small[rank] = torch.where(
                orders[rank] == 0, 64.0, torch.where(orders[rank] == 1, -64.0, small[rank])
            )
    return [gradient.to(BF16) for gradient in small]


def _moves(
    group: Group,
    parameters: Sequence[torch.Tensor],
    weights: Sequence[torch.Tensor],
    gradients: Sequence[Sequence[torch.Tensor]],
    ledger: Ledger,
) -> Finding:
    got, before = flat([p.detach() for p in parameters]), flat(weights)
    if got.dtype != BF16:
        return finding(group.text, "became", [], "bfloat16", str(got.dtype).removeprefix("torch."))
    sums = flat([total(tensor.double() for tensor in of_ranks) for of_ranks in gradients])

    def after(gradient: torch.Tensor) -> torch.Tensor:
        return before.double() - STEPS * LR * gradient

    own = flat([of_ranks[group.rank] for of_ranks in gradients]).double()
    wrong = [
        ("summed", after(sums)),
        ("own", after(own)),
        ("divided twice", after(sums / group.ranks**2)),
    ]
    # compare allows atol * (1 + |weight|)
    result = compare(
        group.text, got.double(), after(sums / group.ranks), wrong, atol=0.55 * ULP / 3.5
    )
    if result["looks"] is None:
        return result
    stuck = int((got == before).sum())
    if any("reduce" in entry.call and entry.itemsize == 2 for entry in ledger.entries):
        return {**result, "looks": "rounded sum"}
    return (
        {**result, "looks": "vanished", "words": {"stuck": stuck, "numel": len(got)}}
        if 2 * stuck > len(got)
        else result
    )


def _exact(
    result: Finding,
    state: Any,
    weights: Sequence[torch.Tensor],
    gradients: Sequence[Sequence[torch.Tensor]],
    group: Group,
    replaced: bool,
) -> Finding:
    """Return `result`, unless its rounded weights are right but something else is wrong.

    That is the master in `state`, or the parameters' memory.
    """
    held = [
        tensor.detach().double().flatten()
        for tensor in tensors_in(state)
        if tensor.dtype in (torch.float32, torch.float64)
    ]
    right = [
        w.double() - STEPS * LR * total(tensor.double() for tensor in of_ranks) / group.ranks
        for w, of_ranks in zip(weights, gradients, strict=True)
    ]
    error = (
        min(
            _farthest(own, held)
            for own in (
                [piece(master, group.rank, group.ranks) for master in right],
                [piece(flat(right), group.rank, group.ranks)],
            )
        )
        if held
        else 0.0
    )
    rounded = error > MASTER_ERROR
    result["values"] += [float(replaced), 1 + min(error / MASTER_ERROR, 100.0) if rounded else 0.0]
    if result["looks"] or not (rounded or replaced):
        return result
    return (
        {**result, "looks": "parameters replaced"}
        if replaced
        else {
            **result,
            "looks": "master rounded",
            "expected": f"at most {MASTER_ERROR}",
            "got": f"{error:.1g}",
        }
    )


def _farthest(wanted: Sequence[torch.Tensor], held: Sequence[torch.Tensor]) -> float:
    """The largest distance of a number of `wanted` from its nearest number in `held`.

    A master may be kept in any form, and the zeros are padding.
    """
    real = flat(wanted)
    return max((flat(held)[:, None] - real[real != 0]).abs().min(0).values.tolist(), default=0.0)


def _masters(
    at: str,
    state: Any,
    parameters: Sequence[torch.Tensor],
    watched: tuple[Created, LettingGo],
    least: int,
    most: int,
) -> Finding:
    enough, (created, letting_go) = 4 * most + 32, watched
    got, kept_bytes = (
        held_bytes(state, parameters),
        created.bytes_kept(letting_go, enough, state, parameters),
    )
    looks = (
        "no masters"
        if got < 4 * least
        else "masters more"
        if got > enough
        else "kept beside masters"
        if kept_bytes > enough
        else None
    )
    return finding(
        at,
        looks,
        [max(got, kept_bytes) if looks else 4 * most],
        4 * most,
        kept_bytes if looks == "kept beside masters" else got,
    )


# --- 7: clip --------------------------------------------------------------------------------------


def clip(name: str, seed: int) -> Findings:
    """Try the learner's clipping of shards by the norm of all numbers."""
    function = learners(name)
    findings: Findings = {"norm": [], "clipped": [], "traffic": []}
    for group in my_groups():
        sizes = random.Random(f"{seed} clip {group.ranks}")
        lengths = [sizes.randint(20, 40), sizes.randint(5, 19), 5, 2, 12, 1]
        for kind in ("large", "small", "zero"):
            vectors = [
                draw(f"{seed} clip {group.ranks} {kind} {i}", n) * (kind != "zero")
                for i, n in enumerate(lengths)
            ]
            max_norm = flat(vectors).norm().item() * (0.4 if kind == "large" else 1.7) + 0.01
            padding = math.nan if kind == "small" else 777.0  # the padding holds no gradient
            for criterion, result in _clip(
                function, f"{group.text}, {kind} norm", vectors, max_norm, padding, group
            ).items():
                findings[criterion].append(result)
    return findings


def _clip(
    function: Callable[..., Any],
    at: str,
    vectors: Sequence[torch.Tensor],
    max_norm: float,
    padding: float,
    group: Group,
) -> dict[str, Finding]:
    shards = [piece(vector, group.rank, group.ranks) for vector in vectors]
    sizes = [len(vector) for vector in vectors]
    real: list[int] = []
    for own, size in zip(shards, sizes, strict=True):
        real.append(max(0, min(len(own), size - group.rank * len(own))))
        own[real[-1] :] = padding
    padded = [torch.cat([piece(vector, rank, group.ranks) for rank in group]) for vector in vectors]
    given = flat([own[:n] for own, n in zip(shards, real, strict=True)]).clone()
    with Ledger() as ledger:
        answer = function(shards, list(sizes), max_norm, group.handle)
    norm, right, got = (
        number(answer),
        flat(vectors).norm().item(),
        # strict=False, because the learner's code may have changed the list
        flat([own[:n] for own, n in zip(shards, real, strict=False)]),
    )
    # the padding is zeros here
    here = [
        flat([piece(vector, rank, group.ranks) for vector in vectors]).norm().item()
        for rank in group
    ]
    places = sum(len(vector) for vector in padded) - sum(sizes)
    wrong = [
        ("norm of shard", here[group.rank]),
        (
            "norm of shard",
            math.hypot(here[group.rank], padding * math.sqrt(sum(map(len, shards)) - sum(real))),
        ),
        ("norm padded", math.hypot(right, padding * math.sqrt(places))),
        ("norm of norms", sum(here)),
        ("norm of norms", sum(vector.norm().item() for vector in vectors)),
        ("norm averaged", right / math.sqrt(group.ranks)),
        ("norm squared", right**2),
        ("norm after", min(right, max_norm)),
        ("norm world rank", _by_world_rank(vectors, group)),
        *(("norm one vector", vector.norm().item()) for vector in vectors),
    ]
    looks = (
        None
        if math.isclose(norm, right, rel_tol=1e-6, abs_tol=1e-9)
        else (
            ("norm times 0" if padding != padding else "no number")
            if norm != norm
            else next(
                (name for name, value in wrong if math.isclose(norm, value, rel_tol=1e-6)),
                "norm other",
            )
        )
    )
    clipped = _clipped(at, got, given, max_norm, right, here[group.rank])
    calls, numel = len(ledger.entries), sum(entry.numel for entry in ledger.entries)
    few = (
        "calls none"
        if group.ranks > 1 and not calls
        else "calls many"
        if calls > 1 or numel > 1
        else None
    )
    return {
        "norm": finding(
            at, looks, [norm], right, str(answer)[:40] if looks == "no number" else norm
        ),
        "clipped": clipped,
        "traffic": finding(
            at, few, [sum(sizes) * (1 + (max(calls, numel) if few else 1))], 1, numel, calls=calls
        ),
    }


def _by_world_rank(vectors: Sequence[torch.Tensor], group: Group) -> float:
    """The norm if the rank in the world decides how many numbers of a shard are real."""
    parts = []
    for rank, member in zip(group, group.members, strict=True):
        shards = [piece(vector, rank, group.ranks) for vector in vectors]
        parts += [
            own[: max(0, len(vector) - member * len(own))]
            for own, vector in zip(shards, vectors, strict=True)
        ]
    return flat(parts).norm().item()


def _clipped(
    at: str, got: torch.Tensor, given: torch.Tensor, max_norm: float, norm: float, own_norm: float
) -> Finding:
    def by(norm: float) -> torch.Tensor:
        return given * min(1.0, max_norm / norm) if norm else given

    wrong = [
        ("unclipped", given),
        ("grown", given * (max_norm / norm if norm else 1)),
        ("clipped own", by(own_norm)),
    ]
    if norm <= max_norm:
        wrong = wrong[1:]
    result = compare(at, got, by(norm), wrong, atol=1e-6, other="clipped other")
    return {**result, "values": [*result["values"], float(len(given))]}
