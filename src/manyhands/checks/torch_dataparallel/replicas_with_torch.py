"""Experiments of unit 03's checks that need torch: replicas, and the whole forward pass.

There are no ranks here, because replicas are copies in the notebook's own kernel (see
`with_torch`).
"""

from __future__ import annotations

import copy
import random
import threading
import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from manyhands.checks.rank_tools import total
from manyhands.checks.torch_dataparallel.diagnosis import case
from manyhands.checks.torch_dataparallel.with_torch import (
    LESS,
    cut,
    join,
    numbers,
    tensors,
    to_plain,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from manyhands.checks.torch_dataparallel.answers import Case

ran_in: list[int] = []  # the threads in which networks ran
TIES = ((0, 0, 1), (0, 1, 0), (0, 1, 1))  # which of three layers share a weight


class Network(nn.Module):
    """A network of three layers, two of which share a weight, after a frozen one.

    It has a buffer, `seen`, that counts rows.
    """

    seen: torch.Tensor

    def __init__(self, inputs: int, hidden: int, ties: Sequence[int]) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, hidden)
        self.first.weight.requires_grad_(False)
        self.chain = nn.ModuleList(nn.Linear(hidden, hidden) for _ in ties)
        for layer, tie in zip(self.chain, ties, strict=True):
            layer.weight = self.chain[ties.index(tie)].weight
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def forward(
        self, x: torch.Tensor, more: dict[str, Any] | None = None, scale: float = 1.0
    ) -> dict[str, torch.Tensor]:
        """Compute scores and a size, and note the thread and the number of rows."""
        ran_in.append(threading.get_ident())
        self.seen.add_(len(x))
        h = torch.tanh(self.first(x))
        for layer in self.chain:
            h = torch.tanh(layer(h))
        h = h if more is None else h + more["shift"]
        return {"scores": scale * h, "size": h.square().sum()}


def network(draw: random.Random, ties: Sequence[int] | None = None) -> Network:
    """Draw a network; `ties` says which of its layers share a weight, unless that is drawn too."""
    torch.manual_seed(draw.randrange(2**31))
    return Network(
        draw.randint(3, 5), draw.randint(3, 6), draw.choice(TIES) if ties is None else ties
    ).double()


def trained(module: nn.Module) -> dict[str, nn.Parameter]:
    """Return {name: parameter} of the parameters that are not frozen."""
    return {
        name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad
    }


def gradients(module: nn.Module) -> list[list[Any]]:
    """Return the gradients that backward has left in the module, as numbers or "None"."""
    return [
        [name, "None" if p.grad is None else p.grad.tolist()] for name, p in trained(module).items()
    ]


def loss_of(outputs: dict[str, torch.Tensor], i: int = 0) -> torch.Tensor:
    """Return a loss of the network's outputs; `i` weights the scores, so that replicas differ."""
    return ((i + 1) * outputs["scores"]).square().sum() + outputs["size"].sum()


def alone(
    module: Any, batches: Sequence[tuple[int, torch.Tensor]], untied: bool = False
) -> list[list[Any]]:
    """Return the gradients that a single process computes from all batches.

    With `untied`, a shared weight counts only where it is used first.
    """
    module = copy.deepcopy(module)
    module.zero_grad()
    if untied:
        for i, layer in enumerate(module.chain):
            if any(layer.weight is before.weight for before in module.chain[:i]):
                layer.weight = nn.Parameter(layer.weight.detach().clone())
    names = list(trained(copy.deepcopy(module) if not untied else module))
    for i, x in batches:
        loss_of(module(x), i).backward()
    return [[name, module.get_parameter(name).grad.tolist()] for name in names]


def kept_names(pairs: list[list[Any]], names: Collection[str]) -> list[list[Any]]:
    """Return the pairs [name, value] whose name is one of these."""
    return [pair for pair in pairs if pair[0] in names]


# ------------------------------------------------------------------ 3: replicate


def replicate_copies(function: Callable[..., Any], seed: int) -> list[Case]:
    """Compare what replicas compute with the original, and the devices of their tensors."""
    draw, cases = random.Random(seed + 10), []
    module, x = network(draw), numbers(draw, 3, 5)
    x, before = x[:, : module.first.in_features] / 9, dict(module.named_parameters())
    right = to_plain(module(x))
    replicas = list(function(module, ["cpu"] * 3))
    shared = [
        i
        for i, replica in enumerate(replicas)
        for other in [module, *replicas[:i]]
        if i and {*map(id, replica.modules())} & {*map(id, other.modules())}
    ]
    unchanged = all(
        dict(module.named_parameters()).get(name) is parameter for name, parameter in before.items()
    )
    answer = [to_plain(replica(x)) for replica in replicas]
    cases.append(
        case(
            [answer, not shared, unchanged],
            [[right] * 3, True, True],
            {
                "module changed": [answer, not shared, False],
                "same module": [[right] * 3, False, True],
                "too few": [[], True, True],
            },
        )
    )
    draw_devices = draw.choice((["cpu", "meta"], ["cpu", "meta", "meta"]))
    replicas = function(module, draw_devices)
    places = [sorted({p.device.type for p in [*_own(replica).values()]}) for replica in replicas]
    return [
        *cases,
        case(
            [places, x.tolist()],
            [[[device] for device in draw_devices], x.tolist()],
            {
                "not moved": [[["cpu"]] * len(draw_devices), x.tolist()],
                "buffers left": [
                    [["cpu"]] + [["cpu", "meta"]] * (len(draw_devices) - 1),
                    x.tolist(),
                ],
            },
        ),
    ]


def _own(replica: Any) -> dict[str, Any]:
    """Return the tensors that a replica of the network computes with, wherever it keeps them."""
    own = {
        "seen": replica.seen,
        "first.weight": replica.first.weight,
        "first.bias": replica.first.bias,
    }
    for i, layer in enumerate(replica.chain):
        own.update({f"chain.{i}.weight": layer.weight, f"chain.{i}.bias": layer.bias})
    return own


def replicate_gradients(function: Callable[..., Any], seed: int) -> list[Case]:
    """Compare the gradients that replicas leave in the original with those of a single process."""
    draw = random.Random(seed + 11)
    return [_gradients_of(function, draw, network(draw, ties)) for ties in TIES]


def _gradients_of(function: Callable[..., Any], draw: random.Random, module: Any) -> Case:
    batches = [
        (i, numbers(draw, rows, module.first.in_features) / 9) for i, rows in enumerate((3, 2, 4))
    ]
    replicas = function(module, ["cpu"] * 3)
    losses = [loss_of(replica(x), i) for replica, (i, x) in zip(replicas, batches, strict=True)]
    if any(loss.requires_grad for loss in losses):
        total(losses).backward()
    frozen = module.first.weight.grad is None and not any(
        network.first.weight.requires_grad for network in [module, *replicas]
    )
    right, names = alone(module, batches), list(trained(module))
    wrong = {
        "none": [[name, "None"] for name in names],
        "tied": kept_names(alone(module, batches, untied=True), names),
        "one replica": alone(module, batches[:1]),
        "others lost": alone(module, batches[1:]),
    }
    return case(
        [gradients(module), frozen],
        [right, True],
        {"frozen": [right, False], **{name: [gradient, True] for name, gradient in wrong.items()}},
    )


def replicate_buffers(function: Callable[..., Any], seed: int) -> list[Case]:
    """Count the rows that the original and its replicas have seen."""
    draw = random.Random(seed + 12)
    module, rows = network(draw), [draw.randint(2, 9), draw.randint(10, 20), draw.randint(30, 40)]
    start = draw.randint(1, 9)
    module.seen.fill_(start)
    replicas = function(module, ["cpu"] * 3)
    for replica, n in zip(replicas, rows, strict=False):  # a wrong answer has more or fewer
        replica(numbers(draw, n, module.first.in_features))
    got = [module.seen.item(), [replica.seen.item() for replica in replicas]]
    right = [start + rows[0], [start + n for n in rows]]
    wrong = {
        "lost": [start, right[1]],
        "shared": [start + sum(rows)] * 4,
        "one copy": [start + rows[0], [start + rows[0], *[start + sum(rows[1:])] * 2]],
    }
    return [case(got, right, wrong, expected=right, shown=got)]


def replicate_tied(function: Callable[..., Any], seed: int) -> list[Case]:
    """Look at which layers of the replicas share a weight."""
    draw = random.Random(seed + 13)
    return [_ties_of(function, draw, network(draw, ties)) for ties in TIES]


def _ties_of(function: Callable[..., Any], draw: random.Random, module: Any) -> Case:

    def partition(network: Any) -> list[list[bool]]:
        return [
            [other.weight is layer.weight for other in network.chain] for layer in network.chain
        ]

    replicas, mark = function(module, ["cpu"] * 3), numbers(draw, 2).tolist()
    got = [partition(replica) for replica in replicas]
    untied = [[i == j for j in range(3)] for i in range(3)]
    return case(
        [got, mark],
        [[partition(module)] * 3, mark],
        {"untied": [[untied] * 3, mark], "untied ": [[partition(module), untied, untied], mark]},
    )


# ------------------------------------------------------------------ 5: data_parallel


def forward_outputs(function: Callable[..., Any], seed: int) -> list[Case]:
    """Compare the outputs of the learner's data_parallel, and the threads and devices it uses."""
    draw, cases = random.Random(seed + 18), []
    for n, k in ((3 * draw.randint(3, 5) + 1, 3), draw.choice(LESS), (4, 4)):
        module, scale = network(draw), float(draw.randint(2, 5))
        x, more = (
            numbers(draw, n, module.first.in_features) / 9,
            {"shift": numbers(draw, n, 1), "name": "rows"},
        )
        copied = copy.deepcopy(module)
        parts = [copied(*args, **kwargs) for args, kwargs in cut(((x, more), {"scale": scale}), k)]
        ran_in.clear()
        got = function(module, (x, more), {"scale": scale}, ["cpu"] * k, "cpu")
        away, right = (
            any(thread != threading.get_ident() for thread in ran_in),
            to_plain(join(parts)),
        )
        cases.append(
            case(
                [to_plain(got), away],
                [right, True],
                {"in the caller": [right, False], "a list": [to_plain(parts), away]},
                n=n,
                k=k,
            )
        )
        # keywords hold rows too, and the result may belong elsewhere
        got = function(module, (x,), {"more": more, "scale": scale}, ["cpu"] * k, "meta")
        cases.append(
            case(
                _places(got),
                _places(join(parts), "meta"),
                {"not moved": _places(join(parts))},
                n=n,
                k=k,
            )
        )
        # all rows may come by name
        alone = [copied(*args, **kwargs) for args, kwargs in cut(((), {"x": x, "scale": scale}), k)]
        cases.append(
            case(
                to_plain(function(module, (), {"x": x, "scale": scale}, ["cpu"] * k, "cpu")),
                to_plain(join(alone)),
                {"a list": to_plain(alone)},
                n=n,
                k=k,
            )
        )
    return cases


def _places(outputs: Any, device: str | None = None) -> list[list[Any]]:
    """Return the devices of the outputs, and their shapes."""
    return [[device or tensor.device.type, list(tensor.shape)] for tensor in tensors(outputs)]


def forward_gradients(function: Callable[..., Any], seed: int) -> list[Case]:
    """Compare the gradients after two calls of the learner's data_parallel."""
    draw = random.Random(seed + 19)
    module = network(draw)
    x = numbers(draw, 3 * draw.randint(2, 4) + 2, module.first.in_features) / 9
    for _ in range(2):  # twice: gradients add up as in one process
        outputs = function(module, (x,), {}, ["cpu"] * 3, "cpu")
        if outputs["scores"].requires_grad:
            loss_of(outputs).backward()
    right, names = alone(module, [(0, x)] * 2), list(trained(module))
    wrong = {
        "none": [[name, "None"] for name in names],
        "tied": kept_names(alone(module, [(0, x)] * 2, untied=True), names),
        "one replica": alone(module, [(0, x.chunk(3)[0])] * 2),
    }
    return [case(gradients(module), right, wrong)]


def forward_statistics(function: Callable[..., Any], seed: int) -> list[Case]:
    """Compare a batch norm's running statistics, which the first replica must update."""
    draw = random.Random(seed + 20)
    norm, rows = nn.BatchNorm1d(2).double(), 3 * draw.randint(3, 5) + 1
    x, fresh = numbers(draw, rows, 2), copy.deepcopy(norm)
    outputs = function(norm, (x,), {}, ["cpu"] * 3, "cpu")

    def state(norm: Any) -> list[Any]:
        return [
            norm.running_mean.tolist(),
            norm.running_var.tolist(),
            norm.num_batches_tracked.item(),
        ]

    parts = [copy.deepcopy(fresh) for _ in range(3)]
    normed = torch.cat([part(rows) for part, rows in zip(parts, x.chunk(3), strict=True)])
    together, got = copy.deepcopy(fresh), [to_plain(outputs), *state(norm)]
    whole = together(x)
    wrong = {
        "lost": [to_plain(normed), *state(fresh)],
        "whole batch": [to_plain(whole), *state(together)],
        "last replica": [to_plain(normed), *state(parts[-1])],
    }
    judged = case(
        got, [to_plain(normed), *state(parts[0])], wrong, expected=state(parts[0])[0], shown=got[1]
    )
    if judged["looks"] == "other" and got[-1] == 3:
        judged["looks"] = "shared"
    return [judged]


def forward_gpus(
    function: Callable[..., Any],
    seed: int,
    devices: list[str] | None = None,
    wrap: Callable[..., Any] = nn.DataParallel,
) -> list[Case]:
    """Compare the learner's data_parallel with nn.DataParallel on all GPUs.

    Only tests use `devices` and `wrap`.
    """
    draw = random.Random(seed + 21)
    devices = devices or [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    module = network(draw).to(devices[0])
    other, results = copy.deepcopy(module), []
    x = (numbers(draw, len(devices) * draw.randint(2, 4) + 1, module.first.in_features) / 9).to(
        devices[0]
    )
    for trained_module, forward in (
        (module, lambda: function(module, (x,), {}, devices, devices[0])),
        (other, lambda: wrap(other)(x)),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nn.DataParallel warns that scalars become a vector
            outputs = forward()
        loss_of(outputs).backward()
        results.append(
            [
                to_plain(outputs),
                gradients(trained_module),
                trained_module.seen.item(),
                str(outputs["scores"].device),
            ]
        )
    return [case(*results)]
