"""What experiments on ranks share: devices, the groups that are tried, and how tensors compare."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import torch
    import torch.distributed as dist

    G = TypeVar("G")  # a group, or what a rank has that is no member

# worlds of 4, 3 and 2. The last one does not begin with rank 0
GROUPS = ([0, 1, 2, 3], [0, 2, 3], [1, 3])
ATOL = 1e-9  # and as much relative to the right value


def device() -> torch.device:
    """Where this rank's tensors live."""
    import torch

    return torch.device(os.environ.get("MANYHANDS_DEVICE", "cpu"))


def device_of_any_call() -> torch.device:
    """`device()` if every call of the default group accepts it, else the CPU.

    gloo's messages and reduce-scatters end a process that gives them a GPU tensor.
    """
    import torch
    import torch.distributed as dist

    return (
        device() if dist.is_initialized() and dist.get_backend() == "nccl" else torch.device("cpu")
    )


def numbers(tensor: torch.Tensor) -> list[float]:
    """A tensor as a flat list of floats, in double precision."""
    return tensor.detach().double().flatten().tolist()


def total(tensors: Iterable[torch.Tensor]) -> torch.Tensor:
    """The sum of tensors, of which there is at least one."""
    return cast("torch.Tensor", sum(tensors))


def make_groups() -> list[tuple[list[int], dist.ProcessGroup | None]]:
    """The groups of GROUPS that contain this rank, as (members, group).

    The world itself is `None`, which is the learner's default. Collective.
    """
    import torch.distributed as dist

    groups = []
    for members in GROUPS:
        group = (
            None if len(members) == dist.get_world_size() else short_lived(dist.new_group(members))
        )
        if dist.get_rank() in members:
            groups.append((members, cast("dist.ProcessGroup | None", group)))
    return groups


def short_lived(group: G) -> G:
    """The group, which ends when the next experiment begins if it is gloo's.

    Its thread looks for messages a hundred times a second, and a rank that keeps a few hundred
    groups has no time for anything else.
    """
    import torch.distributed as dist

    # else this rank is not a member
    if isinstance(group, dist.ProcessGroup) and dist.get_backend(group) == "gloo":
        _short_lived.append(group)
    return group


_short_lived: list[dist.ProcessGroup] = []


def end_groups() -> None:
    """End the groups of the previous experiment.

    It has ended on all ranks, so none of them uses these groups.
    """
    while _short_lived:
        _end(_short_lived.pop())


def _end(group: dist.ProcessGroup) -> None:
    import torch.distributed as dist

    with suppress(ValueError):  # it ended with the whole world
        dist.destroy_process_group(group)


@contextmanager
def fresh_world() -> Iterator[None]:
    """Make a new group of all ranks the world, for the learner's `group=None`, too.

    It can also decorate an experiment. Collective.

    gloo forgets no message, so a send or a receive that one attempt has begun but not waited for
    meets the next messages of its group. Therefore, each attempt with messages gets a group without
    earlier ones. NCCL's world stays as it is, because its operations end without a wait.
    """
    import torch.distributed as dist

    if not dist.is_initialized() or dist.get_backend() != "gloo":
        yield
        return
    before, world = dist.group.WORLD, short_lived(cast("dist.ProcessGroup", dist.new_group()))
    dist.group.WORLD = world
    try:
        yield
    finally:
        if dist.group.WORLD is world:  # and the experiment has not ended it
            dist.group.WORLD = before


@contextmanager
def add_to_errors(text: str) -> Iterator[None]:
    """Let an exception of the block say in its first line where it was raised, such as a group."""
    try:
        yield
    except NotImplementedError:  # a stub, which is reported by its name
        raise
    except Exception as error:
        if error.args and isinstance(error.args[0], (str, int)):
            first, *more = str(error.args[0]).split("\n")
            error.args = ("\n".join([f"{first} ({text})", *more]), *error.args[1:])
        raise


def close(a: torch.Tensor, b: torch.Tensor, atol: float = ATOL) -> bool:
    """Whether two tensors have the same shape and differ by no more than `atol` * (1 + |b|)."""
    return a.shape == b.shape and bool(((a - b).abs() <= atol * (1 + b.abs())).all())


def looks_like(
    got: torch.Tensor, right: torch.Tensor, wrong: Mapping[str, torch.Tensor], atol: float = ATOL
) -> str | None:
    """None if `got` is right, else the name of the `wrong` tensor that it equals.

    `wrong` is {name: tensor}. The name is "not finite" or "other" if it equals none of them.
    """
    if close(got, right, atol):
        return None
    if not got.isfinite().all():
        return "not finite"
    return next((name for name, tensor in wrong.items() if close(got, tensor, atol)), "other")
