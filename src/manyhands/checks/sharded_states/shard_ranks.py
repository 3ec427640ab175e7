"""Exercises 2 and 3 of unit 16 on the ranks, about shards and Adam on a rank's own shard.

Each experiment is a function of a name and the seed, which all ranks call in groups of 4, 3, 2
ranks and of 1. It returns {criterion: [finding]}.
"""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from manyhands.checks.on_ranks import learners
from manyhands.checks.rank_tools import total
from manyhands.checks.sharded_states.findings_with_torch import (
    BF16,
    F32,
    F64,
    all_reduced,
    at_most,
    compare,
    counts,
    draw,
    finding,
    flat,
    length,
    my_groups,
    piece,
)
from manyhands.checks.sharded_states.held_with_torch import held_bytes
from manyhands.checks.sharded_states.live_with_torch import Created, LettingGo
from manyhands.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from manyhands.checks.sharded_states.answers import Finding, Findings
    from manyhands.checks.sharded_states.findings_with_torch import Group

# with such a large eps, a sum differs from a mean, a difference that Adam hardly shows otherwise
STEPS, LR, EPS = 3, 0.01, 0.003


# --- 2: shards ------------------------------------------------------------------------------------


def _tensors(seed: int, what: str, ranks: int, rank: int = 0) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield (text, tensor) of sizes that are divisible and sizes that are not.

    Some have fewer numbers than ranks. They are in three types.
    """
    sizes = random.Random(f"sizes {seed} {what}")
    shapes = (
        (sizes.randint(5, 9), 3),
        (12, sizes.randint(2, 4)),
        (sizes.randint(13, 29),),
        (2,),
        (1,),
        (sizes.randint(2, 4), 5),
    )
    for i, (shape, dtype) in enumerate(zip(shapes, (F64, F64, F32, F64, BF16, BF16), strict=True)):
        key = f"{seed} {what} {ranks} {rank} {i}"
        yield (
            f"shape {shape} on {ranks} ranks",
            draw(key, *shape) if dtype == F64 else counts(key, *shape, ranks=ranks, dtype=dtype),
        )


def cut(name: str, seed: int) -> Findings:
    """Try the learner's `shard`, for every tensor and group."""
    function = learners(name)
    findings: list[Finding] = []
    for group in my_groups():
        for at, tensor in _tensors(seed, "cut", group.ranks):
            findings.append(_cut(function, at, tensor, group.rank, group.ranks))
    return {"cut": findings}


def _cut(
    function: Callable[..., Any], at: str, tensor: torch.Tensor, rank: int, ranks: int
) -> Finding:
    right, size = piece(tensor, rank, ranks), length(tensor.numel(), ranks)
    got = function(tensor, rank, ranks)
    if not isinstance(got, torch.Tensor) or got.dtype != right.dtype:
        return compare(at, got, right)
    if got.dim() != 1:
        return finding(at, "not flat", [])
    if len(got) != size:
        return finding(at, "short" if len(got) < size else "length", [], size, len(got))
    before, memory = got.clone(), got.untyped_storage().nbytes() // got.element_size()
    flat = tensor.flatten()
    strided = flat[rank::ranks]
    wrong = [
        (
            "padding in front",
            torch.cat([flat.new_zeros(size * ranks - len(flat)), flat])[
                rank * size : (rank + 1) * size
            ],
        ),
        ("every other", torch.cat([strided, flat.new_zeros(size - len(strided))])),
        *(("other shard", piece(tensor, other, ranks)) for other in range(ranks)),
    ]
    result = compare(at, before, right, wrong)
    real = max(0, min(size, len(flat) - rank * size))
    if result["looks"] == "other" and (before[:real] == right[:real]).all():
        result["looks"] = "padding"
    result["words"] = {"ranks": ranks}
    tensor += 1
    shares = not bool((got == before).all())
    result["values"] += [max(memory, size), float(shares)]
    if result["looks"] is None and memory > size:
        return {**result, "looks": "a view", "expected": size, "got": memory}
    return {**result, "looks": "shares"} if result["looks"] is None and shares else result


def whole(name: str, seed: int) -> Findings:
    """Try the learner's `unshard`, for every tensor and group."""
    function = learners(name)
    findings: list[Finding] = []
    for group in my_groups():
        for at, tensor in _tensors(seed, "whole", group.ranks):
            pieces = [piece(tensor, rank, group.ranks) for rank in group]
            with Ledger() as ledger:
                got = function(pieces[group.rank].clone(), tensor.shape, group.handle)
            turned = [
                torch.cat(pieces[turn:] + pieces[:turn])[: tensor.numel()].view(tensor.shape)
                for turn in group
            ]
            result = compare(
                at,
                got,
                tensor,
                [
                    ("order of ranks", order)
                    for order in [
                        *turned,
                        torch.cat(pieces[::-1])[: tensor.numel()].view(tensor.shape),
                    ]
                ],
            )
            enough = (group.ranks - 1) * pieces[0].numel() * tensor.element_size()
            sent = at_most(at, ledger.bytes_sent, enough, tensor.numel())
            findings.append(
                {
                    **(result if result["looks"] else sent),
                    "values": result["values"] + sent["values"],
                }
            )
    return {"whole": findings}


def mean(name: str, seed: int) -> Findings:
    """Try the learner's `reduce_shard`, for every tensor and group."""
    function = learners(name)
    findings: Findings = {"mean": [], "traffic": []}
    for group in my_groups():
        for each in zip(
            *(list(_tensors(seed, "mean", group.ranks, rank)) for rank in group), strict=True
        ):
            at, tensors = each[0][0], [tensor for _, tensor in each]
            with Ledger() as ledger:
                got = function(tensors[group.rank].clone(), group.handle)
            right, own = total(tensors) / group.ranks, tensors[group.rank]
            cut = partial(piece, rank=group.rank, ranks=group.ranks)
            wrong = [
                ("summed", cut(total(tensors))),
                ("own", cut(own)),
                ("own", cut(own / group.ranks)),
                ("divided twice", cut(right / group.ranks)),
                *(("other shard", piece(right, rank, group.ranks)) for rank in group),
            ]
            result = compare(at, got, cut(right), wrong)
            if result["looks"] == "shape" and got.dim() == 1:
                result |= {
                    "looks": "short" if len(got) < len(cut(right)) else "length",
                    "expected": len(cut(right)),
                    "got": len(got),
                }
            findings["mean"].append(result)
            enough = (group.ranks - 1) * len(cut(right)) * own.element_size()
            findings["traffic"].append(
                at_most(at, ledger.bytes_sent, enough, own.numel(), whole=all_reduced(ledger))
            )
    return findings


# --- 3: zero1 -------------------------------------------------------------------------------------


def zero1(name: str, seed: int) -> Findings:
    """Try the learner's steps of Adam on the rank's shard."""
    function, letting_go = learners(name), LettingGo()
    findings: Findings = {"weights": [], "states": [], "traffic": []}
    for group in my_groups():
        case = Steps(f"{seed} zero1 {group.ranks}", group)
        state: dict[Any, Any] = {}
        got: list[torch.Tensor] = []
        places, created = [p.data_ptr() for p in case.parameters], Created()
        with Ledger() as ledger:
            for step in range(STEPS):
                for parameter, gradient in zip(
                    case.parameters, case.gradients[step][group.rank], strict=True
                ):
                    parameter.grad = gradient.clone()
                with created:
                    function(list(case.parameters), state, LR, EPS, group.handle)
                got.append(torch.cat([p.detach().flatten() for p in case.parameters]))
        replaced = [p.data_ptr() for p in case.parameters] != places
        result = compare(
            group.text, torch.cat(got), case.right(), case.wrong(), other="not of one process"
        )
        result["values"].append(float(replaced))
        findings["weights"].append(
            {**result, "looks": "parameters replaced"}
            if result["looks"] is None and replaced
            else result
        )
        findings["states"].append(_states(group.text, case, state, created, letting_go))
        findings["traffic"].append(
            at_most(
                group.text,
                ledger.bytes_sent,
                STEPS * 3 * 8 * (group.ranks - 1) * case.shard_numel,
                case.numel,
            )
        )
    return findings


def _states(at: str, case: Steps, state: Any, created: Created, letting_go: LettingGo) -> Finding:
    """Judge whether the steps keep only what belongs to the shard, in `state` or elsewhere.

    This is two to three numbers per parameter, and counters.
    """
    least, most = 2 * length(case.numel, case.group.ranks), 3 * case.shard_numel
    enough = most + 2 * len(case.parameters)
    got, kept_numbers = (
        held_bytes(state, case.parameters) // 8,
        created.bytes_kept(letting_go, 8 * enough, state, case.parameters) // 8,
    )
    looks = (
        "states none"
        if got < least
        else "states whole"
        if got > enough
        else "kept beside state"
        if kept_numbers > enough
        else None
    )
    return finding(
        at,
        looks,
        [max(got, kept_numbers) if looks else most],
        most,
        kept_numbers if looks == "kept beside state" else got,
    )


class Steps:
    """Parameters, and for each step the gradients of all ranks."""

    def __init__(self, key: str, group: Group) -> None:
        sizes = random.Random(key)
        shapes = (
            (sizes.randint(5, 8), 9),
            (sizes.randint(17, 27),),
            (1,),
            (sizes.randint(5, 9), 3),
        )
        self.group = group
        self.weights = [draw(f"{key} weight {i}", *shape) for i, shape in enumerate(shapes)]
        self.gradients = [
            [
                [draw(f"{key} {step} {rank} {i}", *shape) for i, shape in enumerate(shapes)]
                for rank in group
            ]
            for step in range(STEPS)
        ]
        self.parameters = [nn.Parameter(weight.clone()) for weight in self.weights]
        self.numel, self.shard_numel = (
            sum(w.numel() for w in self.weights),
            sum(length(w.numel(), group.ranks) for w in self.weights),
        )

    def _of_all(
        self, how: Callable[[Sequence[torch.Tensor]], torch.Tensor]
    ) -> list[list[torch.Tensor]]:
        """Return the gradients of each parameter in each step, made of those of all ranks."""
        return [
            [how(list(of_ranks)) for of_ranks in zip(*step, strict=True)] for step in self.gradients
        ]

    def right(self) -> torch.Tensor:
        """Return the weights after each step, one after the other.

        They are what torch.optim.Adam computes.
        """
        weights, after = [nn.Parameter(weight.clone()) for weight in self.weights], []
        adam = torch.optim.Adam(weights, lr=LR, eps=EPS)
        for step in self._of_all(lambda of_ranks: total(of_ranks) / len(of_ranks)):
            for weight, gradient in zip(weights, step, strict=True):
                weight.grad = gradient
            adam.step()
            after += [weight.detach().flatten().clone() for weight in weights]
        return torch.cat(after)

    def wrong(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield (mistake, weights after each step)."""
        mean = self._of_all(lambda of_ranks: total(of_ranks) / len(of_ranks))
        right, before = by_hand(self.weights, mean), [flat(self.weights)]
        for cut in (self._cut_each, self._cut_flat):
            own = [cut([step[rank] for rank in self.group]) for step in self.gradients]
            yield "weights own", torch.cat(by_hand(self.weights, own))
            others = [self.weights] * self.group.ranks
            for step in (right,):
                here = [
                    cut(
                        [
                            self._of_flat(vector) if rank == self.group.rank else other
                            for rank, other in enumerate(others)
                        ]
                    )
                    for vector in step
                ]
                yield "shard only", torch.cat([flat(parameters) for parameters in here])
        yield (
            "weights own",
            torch.cat(by_hand(self.weights, [step[self.group.rank] for step in self.gradients])),
        )
        yield "weights summed", torch.cat(by_hand(self.weights, self._of_all(total)))
        yield "unmoved", torch.cat(before * STEPS)
        yield "stale", torch.cat([*before, *right[:-1]])
        yield "begun anew", torch.cat(by_hand(self.weights, mean, anew=True))
        yield (
            "counted parameters",
            torch.cat(
                by_hand(self.weights, mean, count=lambda step, i: step * len(self.weights) + i + 1)
            ),
        )
        yield "eps default", torch.cat(by_hand(self.weights, mean, eps=1e-8))

    def _of_flat(self, vector: torch.Tensor) -> list[torch.Tensor]:
        return [
            part.view(w.shape)
            for part, w in zip(
                vector.split([w.numel() for w in self.weights]), self.weights, strict=True
            )
        ]

    def _cut_each(self, versions: Sequence[Sequence[torch.Tensor]]) -> list[torch.Tensor]:
        """Return parameters in which rank r's shard is the shard of version r.

        Each parameter is cut separately.
        """
        return [
            torch.cat(
                [piece(version, rank, self.group.ranks) for rank, version in enumerate(of_ranks)]
            )[: of_ranks[0].numel()].view(of_ranks[0].shape)
            for of_ranks in zip(*versions, strict=True)
        ]

    def _cut_flat(self, versions: Sequence[Sequence[torch.Tensor]]) -> list[torch.Tensor]:
        """Return the same, where all parameters are one vector."""
        return self._of_flat(
            torch.cat(
                [
                    piece(flat(version), rank, self.group.ranks)
                    for rank, version in enumerate(versions)
                ]
            )[: self.numel]
        )


def by_hand(
    weights: Sequence[torch.Tensor],
    gradients: Sequence[Sequence[torch.Tensor]],
    anew: bool = False,
    count: Callable[[int, int], int] = lambda step, i: step + 1,
    eps: float = EPS,
) -> list[torch.Tensor]:
    """Return the weights after each step of Adam with a mistake, as vectors."""
    weights, after = [weight.clone() for weight in weights], []
    moments: list[tuple[Any, Any]] = [(0.0, 0.0)] * len(weights)
    for step, of_step in enumerate(gradients):
        for i, gradient in enumerate(of_step):
            m, v = (0.0, 0.0) if anew else moments[i]
            moments[i] = m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
            t = 1 if anew else count(step, i)
            weights[i] -= LR * (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)).sqrt() + eps)
        after.append(flat(weights))
    return after
