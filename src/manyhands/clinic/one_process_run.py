"""Runs a copy of the model, as it was at the start, in one process on the rows of all ranks.

Rank 0 does so at the end.
"""

from __future__ import annotations

import copy
import os
import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from manyhands.clinic.dtensor_parts import cut_groups, join_parts
from manyhands.clinic.recorded_values import lists_of_samples, sample_numbers
from manyhands.clinic.reporter import write_tensors
from manyhands.clinic.tolerances import ROUNDED_SLOPE

if TYPE_CHECKING:
    import torch
    from torch import nn
    from torch.distributed.tensor import DTensor

    from manyhands.clinic.records import Call, OneProcess, RankRecord

READ = "seen-{}.pt"
# module -> {name: a whole number that was replaced by one of its divisors}
BEFORE: weakref.WeakKeyDictionary[nn.Module, dict[str, int]] = weakref.WeakKeyDictionary()
# an output, and the slope that backward begins with there
Slope = tuple["torch.Tensor", "torch.Tensor"]


def watch_attributes() -> None:
    """Note the whole numbers that modules are given first.

    A script for tensor parallelism divides the number of heads of a cut layer by the number of
    ranks.
    """
    from torch import nn

    original = nn.Module.__setattr__

    def noted(module: nn.Module, name: str, value: Any) -> None:
        before = module.__dict__.get(name)
        if (
            type(value) is int
            and type(before) is int
            and 0 < value < before
            and before % value == 0
        ):
            BEFORE.setdefault(module, {}).setdefault(name, before)
        original(module, name, value)

    # torch's own is replaced
    nn.Module.__setattr__ = noted  # type: ignore[method-assign,assignment]


def copy_model(module: nn.Module) -> nn.Module | None:
    """Copy the model without its wrappers and their hooks.

    None where it cannot be copied.
    """
    try:
        if any(hasattr(parameter, "to_local") for parameter in module.parameters()):
            sizes = {
                size
                for parameter in module.parameters()
                if hasattr(parameter, "to_local")
                for size in cast("DTensor", parameter).device_mesh.mesh.shape
            }
            return _without_shards(module, {}, sizes)
        return copy.deepcopy(module).cpu()
    except Exception:  # noqa: BLE001 - a module that holds what cannot be copied: a file, a lock
        return None


def _without_shards(module: nn.Module, made: dict[int, Any], sizes: set[int]) -> nn.Module:
    """The same tree of modules of their own classes.

    Parameters are places of the full shape, filled later; a parameter that several modules share
    (tied weights) is one parameter here, too. Whole numbers that were divided by one of `sizes` are
    what they were before.
    """
    import torch

    if id(module) in made:
        return made[id(module)]
    kind = type(module)
    kind = (
        kind.__bases__[1] if kind.__name__.startswith("FSDP") and len(kind.__bases__) == 2 else kind
    )
    new = made[id(module)] = kind.__new__(kind)
    new.__dict__ = {
        name: {} if name.endswith("_hooks") or "_hooks_" in name else value
        for name, value in module.__dict__.items()
        if not name.startswith("_fsdp")
    }
    new.__dict__.update(
        {
            name: before
            for name, before in BEFORE.get(module, {}).items()
            if before / module.__dict__[name] in sizes
        }
    )
    empty = type(module.__dict__["_forward_hooks"])
    for name, value in module.__dict__.items():
        if isinstance(value, empty) and "hooks" in name:
            new.__dict__[name] = empty()
    for p in module._parameters.values():
        if p is not None and id(p) not in made:
            made[id(p)] = torch.nn.Parameter(torch.zeros(p.shape, dtype=p.dtype), p.requires_grad)
    new._parameters = {
        name: p if p is None else made[id(p)] for name, p in module._parameters.items()
    }
    new._buffers = {
        name: None if b is None else b.detach().clone() for name, b in module._buffers.items()
    }
    new._modules = {
        name: child and _without_shards(child, made, sizes)
        for name, child in module._modules.items()
    }
    return new


def run_in_one_process(model: nn.Module, folder: str, size: int, stride: int) -> None:
    """Run it, and write the outcome to `one.pt`; a key says why it could not be run."""
    import torch

    try:
        seen = [
            torch.load(os.path.join(folder, READ.format(rank)), weights_only=False)
            for rank in range(size)
        ]
        outcome = _run_steps(model, seen, stride)
    except Exception as error:  # noqa: BLE001 - a user's model may raise anything
        outcome = {"not": "fails", "error": f"{type(error).__name__}: {error}"[:300]}
    write_tensors(os.path.join(folder, "one.pt"), outcome)


def active_autocast() -> list[tuple[str, torch.dtype]]:
    """[(kind of device, type)] of the autocast that is active."""
    import torch

    return [
        (kind, torch.get_autocast_dtype(kind))
        for kind in ("cpu", "cuda")
        if torch.is_autocast_enabled(kind)
    ]


def data_parallel_ranks(seen: Sequence[RankRecord]) -> list[int]:
    """Return the numbers of the ranks whose rows are parts of the batch.

    Of ranks among which parameters are cut (tensor parallelism), which all have the same rows, it
    is the first.
    """
    groups = [
        group for rank in seen for shard in rank["sharded"].values() for group in cut_groups(shard)
    ]
    followers = {rank for group in groups for rank in group if rank != min(group)}
    return [number for number in range(len(seen)) if number not in followers]


def _run_steps(model: nn.Module, seen: list[RankRecord], stride: int) -> OneProcess:
    """Run the first step; of a sharded model, each step.

    No process sees the gradients of a sharded model before they are averaged.
    """
    sharded = bool(seen[0]["sharded"])
    batch_ranks = [seen[number] for number in data_parallel_ranks(seen)]
    steps = min(len(rank["steps"]) for rank in seen)
    calls = [
        [rank["steps"][number]["calls"] for rank in batch_ranks]
        for number in range(steps if sharded else steps and 1)
    ]
    word = _find_obstacle(calls) or _find_sending(seen, sharded)
    if word:
        return {"not": word}
    model.train()
    outcome: OneProcess = {
        "far": 0.0,
        "unfaithful": 0.0,
        "gradients": [],
        "mixers": _find_mixers(model),
        "rows": sum(len(of_rank[0]["rows"]) for of_rank in calls[0]),
    }
    for number, of_step in enumerate(calls):
        if sharded:
            _fill_weights(model, seen, number)
        model.zero_grad()
        for together in zip(*of_step, strict=True):
            _one_call(model, together, outcome)
        outcome["gradients"].append(
            {
                name: sample_numbers(p.grad, 1 if sharded else stride)
                for name, p in model.named_parameters()
                if p.grad is not None
            }
        )
    return outcome


def _find_obstacle(calls: list[list[list[Call]]]) -> str | None:
    """Return the key of the reason why it cannot be run; or None."""
    if not calls or not all(calls[0]):
        return "no step"
    each = [call for of_step in calls for of_rank in of_step for call in of_rank]
    if any(len(set(map(len, of_step))) > 1 for of_step in calls) or any(
        call["model"] for call in each
    ):
        return "several models"
    if any(call["random"] for call in each):
        return "random"
    if any(call["cut"] for call in each):
        return "cut"
    if any(call["follows"] or not call["rows"] or not call["rows_first"] for call in each):
        return "inputs"
    return (
        None
        if all(
            _fit_together(together) for of_step in calls for together in zip(*of_step, strict=True)
        )
        else "shapes"
    )


def _fit_together(together: Sequence[Call]) -> bool:
    """Whether the inputs of the ranks' calls can be put one behind the other.

    They cannot where each rank pads its rows to a different length.
    """
    import torch
    from torch.utils._pytree import tree_flatten

    rows = [len(call["rows"]) for call in together]
    flat = [tree_flatten(call["inputs"])[0] for call in together]
    # inputs that some ranks lack do not decide; `_join_inputs` takes them as rank 0 has them
    return all(
        len({value.shape[1:] for value in values}) == 1
        for values in zip(*flat, strict=False)
        if _of_rows(values, rows, torch)
    )


def _of_rows(values: Sequence[Any], rows: Sequence[int], torch: ModuleType) -> bool:
    """Whether these inputs, one of each rank, have an entry for each of its rows."""
    return all(
        isinstance(value, torch.Tensor) and value.dim() and len(value) == count
        for value, count in zip(values, rows, strict=True)
    )


def _find_sending(seen: list[RankRecord], sharded: bool) -> str | None:
    """Return the key for a model that sends messages in its forward, or None.

    The other ranks no longer exist to answer. The messages of FSDP2 and DTensor are not in the
    copy.
    """
    messages = [message for rank in seen for step in rank["steps"] for message in step["messages"]]
    return (
        "sends"
        if not sharded and any(message["phase"] == "forward" for message in messages)
        else None
    )


def _one_call(model: nn.Module, together: Sequence[Call], outcome: OneProcess) -> None:
    """Run forward on each rank's rows alone and on all together, and backward.

    Backward begins with the slopes that the ranks' losses had.
    """
    import torch

    rows = [len(call["rows"]) for call in together]
    parts_of = [count / sum(rows) for count in rows]
    with _autocast(together[0]["autocast"]):
        alone = [_run_forward(model, call["inputs"]) for call in together]
        joint = _run_forward(model, _join_inputs([call["inputs"] for call in together], rows))
    for outputs, call in zip(alone, together, strict=True):
        # a rank's model may have given more or fewer outputs than its copy
        for a, b in zip(outputs, call["out"], strict=False):
            outcome["unfaithful"] = max(
                outcome["unfaithful"], _distance(a, b) if isinstance(a, torch.Tensor) else 0.0
            )
    slopes: list[Slope] = []  # [(output, slope)], each output once
    for place, out in enumerate(joint):
        if not isinstance(out, torch.Tensor):
            continue
        parts, own = (
            [outputs[place] for outputs in alone],
            [call["slopes"][place] for call in together],
        )
        if out.dim() and len(out) == sum(rows):
            whole = torch.cat(parts)
            slope = (
                None
                if any(slope_of_rank is None for slope_of_rank in own)
                else torch.cat(
                    [
                        slope_of_rank.cpu() * part
                        for slope_of_rank, part in zip(own, parts_of, strict=True)
                    ]
                )
            )
        else:
            # a loss that the model gives, a mean over the rows; or what has nothing to do with rows
            whole = sum(part * share for part, share in zip(parts, parts_of, strict=True))
            slope = (
                None
                if any(slope_of_rank is None for slope_of_rank in own)
                else sum(
                    slope_of_rank.cpu() * part
                    for slope_of_rank, part in zip(own, parts_of, strict=True)
                )
            )
        outcome["far"] = max(outcome["far"], _distance(out, whole))
        if slope is not None and out.requires_grad and not any(out is other for other, _ in slopes):
            slopes.append((out, slope.to(out.device, out.dtype).reshape(out.shape)))
    roots = _find_roots(slopes)
    if roots:
        torch.autograd.backward([out for out, _ in roots], [slope for _, slope in roots])


def _autocast(kinds: list[tuple[str, torch.dtype]]) -> ExitStack:
    """The context in which the ranks' model was called; this copy is on the CPU."""
    import torch

    stack = ExitStack()
    for _, dtype in kinds[:1]:
        stack.enter_context(torch.autocast("cpu", dtype=dtype))
    return stack


def _find_roots(slopes: list[Slope]) -> list[Slope]:
    """The outputs from which backward begins, with the slopes that come from outside the model.

    A slope that was seen at an output is a sum of what came from outside, and of what came through
    outputs that depend on it, for example through a loss to logits.
    """
    import torch

    if len(slopes) < 2:
        return slopes
    below = {id(out): _find_nodes(out) for out, _ in slopes}
    waiting = list(slopes)
    roots: list[Slope] = []
    while waiting:
        # next: an output that no other of those that are left depends on
        out, slope = next(
            (
                candidate
                for candidate in waiting
                if not any(
                    other is not candidate[0] and candidate[0].grad_fn in below[id(other)]
                    for other, _ in waiting
                )
            ),
            waiting[0],
        )
        waiting = [candidate for candidate in waiting if candidate[0] is not out]
        users = [(other, its) for other, its in roots if out.grad_fn in below[id(other)]]
        if users:
            through = torch.autograd.grad(
                [output for output, _ in users],
                out,
                [its_slope for _, its_slope in users],
                retain_graph=True,
                allow_unused=True,
            )[0]
            rest = slope if through is None else slope - through
            if float(rest.norm()) <= ROUNDED_SLOPE * float(slope.norm()):
                continue
            slope = rest
        roots.append((out, slope))
    return roots


def _find_nodes(out: torch.Tensor) -> set[Any]:
    """All nodes of the graph that this output depends on, its own among them."""
    nodes: set[Any] = set()
    waiting: list[Any] = [out.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in nodes:
            nodes.add(node)
            waiting += [before for before, _ in node.next_functions]
    return nodes


def _fill_weights(model: nn.Module, seen: list[RankRecord], number: int) -> None:
    """The weights as they were before the step of this number, from the shards of all ranks."""
    import torch

    held = [{**rank["start"], **rank["steps"][number]["begin"]} for rank in seen]
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name in held[0]:
                parts = {rank: part[name] for rank, part in enumerate(held) if name in part}
                # all ranks' parts are there
                whole = cast("torch.Tensor", join_parts(parts, seen[0]["sharded"].get(name)))
                parameter.copy_(whole.reshape(parameter.shape))


def _run_forward(model: nn.Module, inputs: tuple[Any, dict[str, Any]]) -> list[Any]:
    from torch.utils._pytree import tree_flatten

    args, kwargs = inputs
    return tree_flatten(model(*args, **kwargs))[0]


def _join_inputs(inputs: Sequence[tuple[Any, dict[str, Any]]], rows: Sequence[int]) -> Any:
    """Join the inputs of all ranks.

    Tensors of a rank's rows, or lists of its samples, are put one behind the other; anything else
    is as rank 0 has it.
    """
    import torch
    from torch.utils._pytree import tree_flatten, tree_unflatten

    lists = {id(samples) for args, kwargs in inputs for samples in lists_of_samples(args, kwargs)}

    def is_list(value: object) -> bool:
        return id(value) in lists

    def whole(values: Sequence[Any]) -> Any:
        if all(map(is_list, values)):
            return [entry for value in values for entry in value]
        return torch.cat(list(values)) if _of_rows(values, rows, torch) else values[0]

    flat, shape = zip(*(tree_flatten(given, is_leaf=is_list) for given in inputs), strict=True)
    # ranks may have different numbers of inputs: what does not fit rank 0's raises an exception
    return tree_unflatten([whole(values) for values in zip(*flat, strict=False)], shape[0])


def _distance(a: torch.Tensor, b: torch.Tensor) -> float:
    """The largest difference, in parts of the largest number.

    What is not finite (a mask of -inf) is the same where both have it at the same places.
    """
    if getattr(a, "shape", None) != getattr(b, "shape", None) or not a.numel():
        return 0.0
    a, b = a.detach().double(), b.detach().double()
    both = a.isfinite() & b.isfinite()
    if not both.all():
        return _distance(a[both], b[both]) if a.isfinite().equal(b.isfinite()) else float("inf")
    return float((a - b).abs().max() / b.abs().max().clamp(min=1e-30))


def _find_mixers(model: nn.Module) -> list[str]:
    """The modules of torch that look at several rows simultaneously."""
    return [name for name, part in model.named_modules() if "BatchNorm" in type(part).__name__]
