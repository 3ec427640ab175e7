"""Exercises 4 and 5 of unit 16 on the ranks.

Gradients and weights are cut, gathered and freed while backward runs. Each experiment is a function
of a name and the seed, which all ranks call in groups of 4, 3, 2 ranks and of 1. It returns
{criterion: [finding]}.
"""

from __future__ import annotations

import gc
import random
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef

from manyhands.checks.on_ranks import learners
from manyhands.checks.rank_tools import device_of_any_call, total
from manyhands.checks.sharded_states.findings_with_torch import (
    F64,
    all_reduced,
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
from manyhands.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from manyhands.checks.sharded_states.answers import Finding, Findings
    from manyhands.checks.sharded_states.findings_with_torch import Group

    Seen = dict[str, int]  # what was in memory and what was sent during one call

CALLS = 2
LAYERS, NUMBER_BYTES = 6, F64.itemsize
AT_ONCE = 2  # whole gradients that may be alive


# --- 4: zero2 -------------------------------------------------------------------------------------


def zero2(name: str, seed: int) -> Findings:
    """Try the learner's backward pass, which leaves shards of the gradients."""
    function = learners(name)
    all_findings: Findings = {"shards": [], "freed": [], "alive": []}
    alive = Alive()
    for group in my_groups():
        for criterion, findings in _zero2(
            function, f"{seed} zero2 {group.ranks}", group, alive
        ).items():
            all_findings[criterion] += findings
    return all_findings


class Alive:
    """Counts what is in memory whenever a gradient arrives.

    These are whole gradients, no matter what keeps them, and all numbers created meanwhile.
    """

    def __init__(self) -> None:
        self._letting_go = LettingGo()

    def begin(
        self, parameters: Iterable[torch.Tensor], group: Group, created: Created, enough: int
    ) -> None:
        """Begin to count, for the backward pass of these parameters.

        `enough`: with this many numbers, besides the shards of the gradients that have arrived,
        there is no need to wait.
        """
        self.most = self.arrived = 0
        self._memories: list[StorageWeakRef] = []
        self._snapshots: list[dict[int, int]] = []
        self._group, self._created, self._enough = group, created, enough
        self._hooks = [p.register_post_accumulate_grad_hook(self._arrived) for p in parameters]

    def _arrived(self, parameter: torch.Tensor) -> None:
        self.arrived += 1
        if parameter.grad is not None:  # else a hook of an earlier call has been here
            self._memories.append(StorageWeakRef(parameter.grad.untyped_storage()))
        self._letting_go.until(lambda: self._count() <= AT_ONCE and self._numbers() <= self._enough)
        self.most = max(self.most, self._count())
        self._snapshots.append(self._created.live())
        self._enough += length(parameter.numel(), self._group.ranks)

    def _count(self) -> int:
        return sum(not memory.expired() for memory in self._memories)

    def _numbers(self, besides: Iterable[torch.Tensor] = ()) -> int:
        return self._created.bytes_live(besides) // NUMBER_BYTES

    def end(self, shards: Sequence[torch.Tensor], enough: int) -> tuple[int, int, int]:
        """Stop counting, and return the three counts.

        They are (whole gradients in memory now, numbers besides the shards now, the most such
        numbers that were in memory at the same time).
        """
        for hook in self._hooks:
            hook.remove()
        gc.collect()
        self._letting_go.until(lambda: self._count() == 0 and self._numbers(shards) <= enough)
        own = {shard.untyped_storage()._cdata for shard in shards}
        most = max(
            (
                sum(size for address, size in snapshot.items() if address not in own)
                for snapshot in self._snapshots
            ),
            default=0,
        )
        return self._count(), self._numbers(shards), most // NUMBER_BYTES


def _network(key: str) -> nn.Sequential:
    """Return layers of about the same size.

    Two whole gradients are then few compared with all of them.
    """
    sizes = random.Random(key)
    widths = [sizes.randint(8, 9) for _ in range(LAYERS + 1)]
    layers = [layer for a, b in pairwise(widths) for layer in (nn.Linear(a, b), nn.Tanh())]
    network = nn.Sequential(*layers[:-1]).to(device_of_any_call(), F64)
    with torch.no_grad():
        for i, parameter in enumerate(network.parameters()):
            parameter.copy_(
                draw(f"{key} weight {i}", *parameter.shape) / (3 if parameter.dim() == 2 else 1)
            )
    return network


class _Limits:
    """How many numbers may be in memory, or travel, for these parameters."""

    def __init__(self, parameters: Sequence[torch.Tensor], group: Group) -> None:
        sizes = [length(p.numel(), group.ranks) for p in parameters]
        self.own, self.numel, largest = (
            sum(sizes),
            sum(p.numel() for p in parameters),
            group.ranks * max(sizes),
        )
        # afterwards, besides the shards: less than any weight's gradient
        self.kept = min(p.numel() for p in parameters if p.dim() == 2) - 1
        # also the shards a second time, and backward's own small tensors
        self.at_once = AT_ONCE * largest + self.own + self.kept
        self.bytes_sent = NUMBER_BYTES * (group.ranks - 1) * self.own


def _zero2(function: Callable[..., Any], key: str, group: Group, alive: Alive) -> Findings:
    network = _network(key)
    in_network = list(network.parameters())
    # not in the order of backward, nor in its reverse
    parameters = in_network[1::2] + in_network[::2]
    limits = _Limits(parameters, group)
    results: list[Finding] = []
    calls: list[Seen] = []

    def loss_of(call: int, rank: int) -> torch.Tensor:
        rows = draw(f"{key} {call} {rank} rows", 1, in_network[0].shape[1])
        return network(rows).square().mean()

    for call in range(CALLS):
        of_ranks = [torch.autograd.grad(loss_of(call, rank), parameters) for rank in group]
        got, seen = _watched(function, loss_of(call, group.rank), parameters, group, limits, alive)
        network.zero_grad()
        calls.append(seen)
        result = _compare_shards(group.text, got, of_ranks, group)
        results.append(
            {**result, "looks": "second call"}
            if result["looks"] and call and results[0]["looks"] is None
            else result
        )
    left = max(record["left"] for record in calls)
    hooks = sum(
        len(p._post_accumulate_grad_hooks or ()) + len(p._backward_hooks or ()) for p in parameters
    )
    sent = [
        at_most(
            group.text,
            record["sent"],
            limits.bytes_sent,
            limits.numel,
            whole=bool(record["all-reduced"]),
        )
        for record in calls
    ]
    return {
        "shards": results,
        "freed": [
            finding(
                group.text,
                "left" if left else "hooks left" if hooks else None,
                [(1 + left) * limits.numel, (1 + hooks) * limits.numel],
                0,
                left or hooks,
            )
        ],
        "alive": [_in_memory(group, calls, limits, len(parameters)), *sent],
    }


def _watched(
    function: Callable[..., Any],
    loss: torch.Tensor,
    parameters: Sequence[torch.Tensor],
    group: Group,
    limits: _Limits,
    alive: Alive,
) -> tuple[Any, Seen]:
    """Call the learner's function under observation.

    Return (what it returns, what was in memory and what was sent while it ran).
    """
    created = Created()
    # on a single rank, the shard may well be the gradient
    alive.begin(parameters if group.ranks > 1 else [], group, created, limits.at_once)
    with Ledger() as ledger, created:
        got = function(loss, list(parameters), group.handle)
    left = sum(p.grad is not None for p in parameters)
    for parameter in parameters:
        parameter.grad = None
    whole_after, after, at_once = alive.end(tensors_in(got), limits.kept)
    return got, {
        "left": left,
        "whole at once": alive.most,
        "whole after": whole_after,
        "at once": at_once,
        "after": after,
        "arrived": alive.arrived,
        "held": held_bytes(got) // NUMBER_BYTES,
        "sent": ledger.bytes_sent,
        "all-reduced": all_reduced(ledger),
    }


def _in_memory(group: Group, calls: Sequence[Seen], limits: _Limits, parameters: int) -> Finding:
    if group.ranks == 1:
        return finding(group.text, None, [limits.numel])
    most = {name: max(call[name] for call in calls) for name in calls[0]}
    arrived = min(call["arrived"] for call in calls)
    limit = {
        "whole at once": AT_ONCE,
        "whole after": 0,
        "held": limits.own,
        "at once": limits.at_once,
        "after": limits.kept,
    }
    looks = {
        "whole at once": "piled up",
        "whole after": "views",
        "held": "views of copies",
        "at once": "piled up copies",
        "after": "copies kept",
    }
    over = next((name for name in limit if most[name] > limit[name]), None)
    values = [(1 + max(0, most[name] - limit[name])) * limits.numel for name in limit] + [
        arrived * limits.numel
    ]
    if over is None and arrived < parameters:
        return finding(group.text, "no backward", values, parameters, arrived)
    if over is None:
        return finding(group.text, None, values, None, None)
    return finding(group.text, looks.get(over), values, limit[over], most[over])


def _compare_shards(
    at: str, got: Any, of_ranks: Sequence[Sequence[torch.Tensor]], group: Group
) -> Finding:
    right = [
        piece(total(each) / group.ranks, group.rank, group.ranks)
        for each in zip(*of_ranks, strict=True)
    ]
    if not isinstance(got, (list, tuple)) or len(got) != len(right):
        return finding(at, "no list", [], len(right), str(type(got).__name__))
    there = [isinstance(tensor, torch.Tensor) for tensor in got]
    if not all(there):
        return finding(
            at,
            "last parameter" if there == [False] * (len(right) - 1) + [True] else "no list",
            [],
            len(right),
            f"{sum(there)} tensors",
        )
    if sorted(len(tensor.flatten()) for tensor in got) == sorted(map(len, right)) and [
        len(tensor.flatten()) for tensor in got
    ] != [len(wanted) for wanted in right]:
        return finding(at, "order of parameters", [])
    for tensor, wanted in zip(got, right, strict=True):
        if tensor.shape != wanted.shape:
            return compare(at, tensor, wanted)
    summed, own = (
        [piece(tensor, group.rank, group.ranks) for tensor in version]
        for version in (list(map(total, zip(*of_ranks, strict=True))), of_ranks[group.rank])
    )
    wrong = [
        ("summed", flat(summed)),
        ("own", flat(own)),
        ("divided twice", flat(right) / group.ranks),
    ]
    in_network = [
        shard
        for pair in zip(right[len(right) // 2 :], right[: len(right) // 2], strict=True)
        for shard in pair
    ]
    wrong += [("order of parameters", flat(order)) for order in (in_network, in_network[::-1])]
    return compare(at, flat(got), flat(right), wrong)


# --- 5: gather ------------------------------------------------------------------------------------


def gather(name: str, seed: int) -> Findings:
    """Try the learner's layer, which gathers its weight from shards."""
    layer, letting_go = learners(name), LettingGo()
    all_findings: Findings = {"values": [], "gradients": [], "traffic": [], "freed": []}
    for group in my_groups():
        for criterion, findings in _gather(
            layer, f"{seed} gather {group.ranks}", group, letting_go
        ).items():
            all_findings[criterion] += findings
    return all_findings


def _gather(layer: Any, key: str, group: Group, letting_go: LettingGo) -> Findings:
    sizes = random.Random(key)
    a, b, c = (sizes.randint(7, 10) for _ in range(3))
    weights = [draw(f"{key} {i}", *shape) for i, shape in enumerate(((b, a), (c, b)))]
    rows = [draw(f"{key} {rank} rows", sizes.randint(1, 2), a) for rank in group]
    serial = [_through(lambda h, weight: h @ weight.T, x, weights) for x in rows]
    owns, smallest = (
        [nn.Parameter(piece(weight, group.rank, group.ranks)) for weight in weights],
        min(map(torch.numel, weights)),
    )
    enough = 8 * (group.ranks - 1) * sum(map(len, owns))
    kept_numbers: list[int] = []

    def multiply(h: torch.Tensor, i: int) -> Any:
        with Created() as created:
            y = layer.apply(h, owns[i], weights[i].shape, group.handle)
        kept_numbers.append(
            created.bytes_kept(letting_go, weights[i].nbytes - 1, besides=tensors_in(y))
            // NUMBER_BYTES
        )
        return y

    with Ledger() as forward:
        y, leaves = _forward(multiply, rows[group.rank], owns)
    result = compare(group.text, y, serial[group.rank][0])
    sent = finding(
        group.text,
        None if forward.bytes_sent == enough else "forward sent",
        [forward.bytes_sent, enough],
        enough,
        forward.bytes_sent,
    )
    whole_ones = [
        (held, weight.numel())
        for held, weight in zip(kept_numbers, weights, strict=True)
        if held >= weight.numel() and group.ranks > 1
    ]
    held, numel = next(iter(whole_ones), (0, weights[0].numel()))
    freed = finding(
        group.text,
        "kept" if whole_ones else None,
        [weights[0].numel() + sum(held for held, _ in whole_ones)],
        f"fewer than {numel}",
        held,
    )
    if result["looks"]:
        return {
            "values": [result],
            "gradients": [finding(group.text, "no gradient", [])],
            "traffic": [sent],
            "freed": [freed],
        }
    with Ledger() as backward, Created() as created:
        y.square().mean().backward()
    after = (
        created.bytes_kept(letting_go, NUMBER_BYTES * smallest - 1, besides=leaves) // NUMBER_BYTES
    )
    looks = (
        None
        if backward.bytes_sent == 2 * enough
        else "backward less"
        if backward.bytes_sent < 2 * enough
        else "backward more"
    )
    back = finding(
        group.text, looks, [backward.bytes_sent, 2 * enough], 2 * enough, backward.bytes_sent
    )
    stays = group.ranks > 1 and after >= smallest
    freed_after = finding(
        group.text,
        "kept after" if stays else None,
        [max(after, smallest) + smallest * stays],
        f"fewer than {smallest}",
        after,
    )
    return {
        "values": [result],
        "gradients": list(_gradients(group, leaves, [run[1] for run in serial])),
        "traffic": [sent, back],
        "freed": [freed, freed_after],
    }


def _forward(
    multiply: Callable[[torch.Tensor, int], torch.Tensor],
    x: torch.Tensor,
    leaves: Sequence[torch.Tensor],
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Return (the output of two layers, [x, the shards]), where x has a gradient too."""
    x = x.clone().requires_grad_()
    return multiply(torch.tanh(multiply(x, 0)), 1), [x, *leaves]


def _through(
    multiply: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    x: torch.Tensor,
    weights: Sequence[torch.Tensor],
) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
    """Return (the output, the gradients of x and of the weights), with whole weights."""
    whole = [nn.Parameter(weight.clone()) for weight in weights]
    y, leaves = _forward(lambda h, i: multiply(h, whole[i]), x, whole)
    return y.detach(), torch.autograd.grad(y.square().mean(), leaves)


def _gradients(
    group: Group, leaves: Sequence[torch.Tensor], serial: Sequence[Sequence[torch.Tensor]]
) -> Iterator[Finding]:
    """Compare the gradients of x and of both shards with the right ones."""
    of_x, *of_weights = [list(each) for each in zip(*serial, strict=True)]
    right = [
        of_x[group.rank],
        *(piece(total(each) / group.ranks, group.rank, group.ranks) for each in of_weights),
    ]
    alike = all(gradient.shape == of_x[0].shape for gradient in of_x)
    wrong = [
        [("x averaged", of_x[group.rank] / group.ranks**layers) for layers in (1, 2)]
        + ([("x averaged", total(of_x) / group.ranks), ("x summed", total(of_x))] if alike else [])
    ]
    for each in of_weights:
        wrong.append(
            [
                (name, piece(gradient, group.rank, group.ranks))
                for name, gradient in (
                    ("summed", total(each)),
                    ("own", each[group.rank]),
                    ("divided twice", total(each) / group.ranks**2),
                )
            ]
        )
    for leaf, wanted, mistakes in zip(leaves, right, wrong, strict=True):
        yield (
            finding(group.text, "no gradient", [])
            if leaf.grad is None
            else compare(group.text, leaf.grad, wanted, mistakes)
        )
