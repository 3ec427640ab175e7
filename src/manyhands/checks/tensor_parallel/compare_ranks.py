"""How unit 15's experiments try an answer.

They compare forward and backward with a single process, and count what each of them sends.
Everything is float64, so that every difference is a mistake and not rounding.
"""

from __future__ import annotations

import time
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import torch
import torch.distributed as dist

from manyhands.checks.by_hand import closed, loaded
from manyhands.checks.on_ranks import UnwrittenError
from manyhands.checks.rank_tools import add_to_errors, device_of_any_call, short_lived, total
from manyhands.ledger import Ledger, models
from manyhands.links import conjugate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from manyhands.checks.tensor_parallel.answers import Compared, Tried

    Wrong = Mapping[str, torch.Tensor]  # {mistake: what it gives}

GROUPS = ([0, 1, 2, 3], [0, 2, 3], [1, 3], [2])  # the last two begin with a rank that is not rank 0
TOLERANCE = 1e-11
LATE_S = 0.05
LOOKS = 6  # at a wrong output, because a rank can arrive late on a busy machine
FRAMEWORKS = (
    "torch.distributed.tensor:DTensor.from_local",
    "torch.distributed.tensor:distribute_tensor",
    # PyTorch's tensor parallelism
    "torch.distributed.tensor.parallel:parallelize_module",
)


def in_groups() -> Iterator[tuple[list[int], dist.ProcessGroup | None]]:
    """Yield, for each group in turn, its members and the group on its ranks.

    The world is `None`. The other ranks wait until the group is done.
    """
    groups = [
        None if len(members) == dist.get_world_size() else short_lived(dist.new_group(members))
        for members in GROUPS
    ]
    for members, group in zip(GROUPS, groups, strict=True):
        if dist.get_rank() in members:
            yield members, cast("dist.ProcessGroup | None", group)
        dist.barrier()


@contextmanager
def learners_own() -> Iterator[None]:
    """Close the package's f and g while the learner's code runs.

    A stub within the block is reported by its name.
    """
    try:
        ours = (
            conjugate.copy_to_ranks,
            conjugate.sum_over_ranks,
            conjugate._Copy.forward,
            conjugate._Sum.forward,
        )
        with closed(*ours, *loaded(*FRAMEWORKS)):
            yield
    except NotImplementedError as error:
        *_, (frame, _) = traceback.walk_tb(error.__traceback__)
        raise UnwrittenError(frame.f_code.co_qualname) from error


def make_draw(seed: int) -> Callable[..., torch.Tensor]:
    """Return a function that draws a tensor of a shape, the same one on every rank."""
    chance = torch.Generator().manual_seed(seed)
    return lambda *shape: torch.randn(*shape, generator=chance, dtype=torch.float64).to(
        device_of_any_call()
    )


def leaf(tensor: torch.Tensor) -> torch.Tensor:
    """Return a contiguous copy of the tensor that requires a gradient."""
    return tensor.detach().clone(memory_format=torch.contiguous_format).requires_grad_()


def try_out(
    call: Callable[..., Any],
    given: Mapping[str, torch.Tensor],
    right: Sequence[torch.Tensor],
    slope: torch.Tensor,
    group: dist.ProcessGroup | None,
    wrong: Wrong | None = None,
    wrong_gradients: Mapping[str, Wrong] | None = None,
    between: Callable[[], Any] | None = None,
    late: bool | None = None,
) -> Tried:
    """Return the outcome of `call(*given.values())` and its backward from `slope` as plain data.

    right: (output, gradient of each of `given`). wrong, wrong_gradients[name]: {mistake: what it
    gives}. `between` runs after forward, before backward. A rank that is `late` (True) arrives
    later than the others (False), so what they do not wait for is not available.
    """
    before, slope_before = [tensor.detach().clone() for tensor in given.values()], slope.clone()
    members = dist.get_process_group_ranks(group or dist.group.WORLD)
    with learners_own(), add_to_errors(f"in the group of the ranks {members}"):
        time.sleep(LATE_S * bool(late))
        with Ledger() as forward:
            output = call(*given.values())
        value = (compare if late is None else _compare_twice)("output", output, right[0], wrong)
        detached = isinstance(output, torch.Tensor) and not output.requires_grad
        touched = [
            name
            for (name, tensor), old in zip(given.items(), before, strict=True)
            if not same(tensor.detach(), old)
        ]
        if between:
            between()
        time.sleep(LATE_S * bool(late))
        with Ledger() as backward:
            if value["shape"] == value["wanted shape"] and not detached:
                output.backward(slope)
    if not same(slope, slope_before):
        touched.append("gradient")
    gradients = [
        compare(name, tensor.grad, wanted, (wrong_gradients or {}).get(name))
        for (name, tensor), wanted in zip(given.items(), right[1:], strict=True)
    ]
    return {
        "rank": dist.get_rank(),
        "size": len(members),
        "members": members,
        "value": value,
        "detached": detached,
        "touched": touched,
        "gradients": gradients,
        "forward": sent(forward),
        "backward": sent(backward),
    }


def sum_of_memory(tensors: Sequence[torch.Tensor], like: torch.Tensor) -> torch.Tensor:
    """Return what an all-reduce of gloo returns for tensors with different strides.

    It adds up memory. The result is laid out like `like`, which is one of them.
    """
    memory = total(tensor.as_strided((tensor.numel(),), (1,)) for tensor in tensors)
    return memory.as_strided(like.shape, like.stride())


def sent(ledger: Ledger) -> list[int]:
    """[collective calls of more than one rank, bytes that this rank sent]."""
    return [sum(entry.group_size > 1 for entry in ledger.entries), ledger.bytes_sent]


def one_sum(tensor: torch.Tensor, group: dist.ProcessGroup | None) -> list[int]:
    """What `sent` returns for one all-reduce of a tensor of this size."""
    size, nbytes = dist.get_world_size(group), tensor.numel() * tensor.element_size()
    steps = models.steps(
        "allreduce", size, dist.get_rank(group), (nbytes,), (), tensor.element_size()
    )
    return [int(size > 1), sum(step.bytes for step in steps if step.kind == "sent")]


def same(a: torch.Tensor, b: torch.Tensor, tolerance: float = TOLERANCE) -> bool:
    """Return whether two tensors have the same shape and nearly the same numbers."""
    return a.shape == b.shape and torch.allclose(a, b, rtol=tolerance, atol=tolerance)


def compare(name: str, got: Any, right: torch.Tensor, wrong: Wrong | None = None) -> Compared:
    """Return one comparison as plain data.

    It has whether the value is right, some of its numbers as evidence, and which of the `wrong`
    tensors it looks like.
    """
    compared: Compared = {
        "name": name,
        "right": False,
        "looks": "",
        "sample": [],
        "wanted": sample(right),
        "shape": None,
        "wanted shape": list(right.shape),
    }
    if not isinstance(got, torch.Tensor):
        return {**compared, "looks": "nothing" if got is None else "no tensor"}
    got = got.detach()
    compared |= {"sample": sample(got), "shape": list(got.shape)}
    if got.dtype != right.dtype:
        return {
            **compared,
            "looks": "dtype",
            "sample": [str(got.dtype)],
            "wanted": [str(right.dtype)],
        }
    if got.shape != right.shape:
        known = next((key for key, value in (wrong or {}).items() if same(got, value)), "shape")
        return {**compared, "looks": known}
    looks = (
        "not finite"
        if not got.isfinite().all()
        else "rounded"
        if same(got, right, 1e-4)
        else "other"
    )
    looks = next((key for key, value in (wrong or {}).items() if same(got, value)), looks)
    return {**compared, "right": same(got, right), "looks": looks}


def _compare_twice(
    name: str, got: Any, right: torch.Tensor, wrong: Wrong | None = None
) -> Compared:
    """Return the same for an output.

    An output that is wrong at first and right a little later looks "late". A gradient is copied
    when the backward pass gathers it, so it does not change later.
    """
    compared, looks = compare(name, got, right, wrong), 0
    while not compared["right"] and looks < LOOKS:
        looks += 1
        time.sleep(LATE_S)
        if compare(name, got, right)["right"]:
            return {**compared, "looks": "late"}
    return compared


def sample(tensor: torch.Tensor) -> list[float]:
    """Return a few numbers by which a tensor can be recognised.

    They differ from those of a tensor with the same values in a different order.
    """
    flat = tensor.detach().double().flatten().cpu()
    weights = torch.arange(1, 1 + flat.numel()).double().sin()
    return [*flat[:3].tolist(), flat.sum().item(), (flat * weights).sum().item()]
