"""What the experiments of unit 16 on the ranks share, namely groups, drawn tensors and findings.

A finding names the mistake that an answer looks like, or None, and has the numbers that prove it.
Tensors are drawn by a key, so that each rank knows the tensors of all others without communication.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, cast

import torch
import torch.distributed as dist

from manyhands.checks import rank_tools
from manyhands.checks.rank_tools import device_of_any_call, numbers, short_lived

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from manyhands.checks.sharded_states.answers import Finding
    from manyhands.ledger import Ledger

    Wrong = Iterable[tuple[str, torch.Tensor]]  # (mistake, what it gives)

GROUPS = (*rank_tools.GROUPS, [2])
ATOL = 1e-12
F64, F32, BF16 = torch.float64, torch.float32, torch.bfloat16


class Group:
    """One of this rank's groups, whose `handle` is what the learner gets."""

    def __init__(self, members: list[int], handle: dist.ProcessGroup | None) -> None:
        self.handle, self.members, self.ranks, self.rank = (
            handle,
            members,
            len(members),
            members.index(dist.get_rank()),
        )
        self.text = (
            "ranks " + ", ".join(map(str, members))
            if len(members) > 1
            else f"rank {members[0]} alone"
        )

    def __iter__(self) -> Iterator[int]:
        """Yield all ranks of the group, counted inside it."""
        return iter(range(self.ranks))


def my_groups() -> list[Group]:
    """Return this rank's groups. This is a collective, because every rank makes all groups."""
    handles = [
        None if len(members) == dist.get_world_size() else short_lived(dist.new_group(members))
        for members in GROUPS
    ]
    return [
        Group(members, cast("dist.ProcessGroup | None", handle))
        for members, handle in zip(GROUPS, handles, strict=True)
        if dist.get_rank() in members
    ]


def draw(key: str, *shape: int, dtype: torch.dtype = F64) -> torch.Tensor:
    """Return random numbers, which are the same on all ranks for the same key."""
    generator = torch.Generator().manual_seed(random.Random(key).randrange(2**31))
    return torch.randn(shape, generator=generator, dtype=F64).to(device_of_any_call(), dtype)


def counts(key: str, *shape: int, ranks: int, dtype: torch.dtype) -> torch.Tensor:
    """Return random multiples of the number of ranks.

    They are so small that any type holds them, their sum over the ranks and their mean exactly.
    """
    return (draw(key, *shape) * 2).round().clamp(-4, 4).mul(ranks).to(dtype)


def length(numel: int, ranks: int) -> int:
    """Return how many numbers a shard has, with padding."""
    return -(-numel // ranks)


def piece(tensor: torch.Tensor, rank: int, ranks: int) -> torch.Tensor:
    """Return the right shard."""
    flat, size = tensor.detach().flatten(), length(tensor.numel(), ranks)
    return torch.cat([flat, flat.new_zeros(size * ranks - len(flat))])[
        rank * size : (rank + 1) * size
    ].clone()


def finding(
    at: str,
    looks: str | None,
    values: list[Any],
    expected: Any = None,
    got: Any = None,
    **words: Any,
) -> Finding:
    """Make a finding.

    `expected` and `got` are shown next to each other, and the words of the mistake may name them
    and what is in `words`.
    """
    return {
        "rank": dist.get_rank(),
        "at": at,
        "looks": looks,
        "values": values,
        "expected": expected,
        "got": got,
        "words": words,
    }


def compare(
    at: str,
    got: Any,
    right: torch.Tensor,
    wrong: Wrong = (),
    atol: float = ATOL,
    other: str = "other",
) -> Finding:
    """Compare a tensor with the right one and with the tensors of usual mistakes.

    The latter are pairs of (name, tensor). `other`: the name if it matches none.
    """
    if not isinstance(got, torch.Tensor):
        return finding(at, "no tensor", [], got=str(got)[:80])
    if got.dtype != right.dtype:
        return finding(at, "type", [], str(right.dtype), str(got.dtype))
    if got.shape != right.shape:
        return finding(at, "shape", [], str(tuple(right.shape)), str(tuple(got.shape)))
    got, right = got.detach().cpu(), right.cpu()
    looks = _looks_like(got, right, wrong, atol, other)
    apart = ~torch.isclose(got.double(), right.double(), rtol=atol, atol=atol).flatten()
    first = next(iter(apart.nonzero().flatten().tolist()), 0)  # the first numbers that differ
    few = [numbers(tensor)[first : first + 4] for tensor in (right, got)]
    return finding(at, looks, numbers(got), *few)


def _looks_like(
    got: torch.Tensor, right: torch.Tensor, wrong: Wrong, atol: float, other: str = "other"
) -> str | None:
    got, right = got.detach().cpu().double(), right.cpu().double()
    if rank_tools.close(got, right, atol):
        return None
    if not got.isfinite().all():
        return "not finite"
    nearly = "rounded" if other == "other" and rank_tools.close(got, right, 1e-6) else other
    return next(
        (name for name, tensor in wrong if rank_tools.close(got, tensor.cpu().double(), atol)),
        nearly,
    )


def at_most(at: str, sent: int, enough: int, numel: int, whole: bool = False) -> Finding:
    """Compare the bytes that were sent with the bytes that are enough.

    `numel` ties the evidence to this seed. `whole`: sent by an all-reduce.
    """
    looks = None if sent <= enough else "sent whole" if whole else "sent"
    return finding(at, looks, [max(sent, enough), numel], enough, sent)


def all_reduced(ledger: Ledger) -> bool:
    """Return whether a call of this ledger gives the sum to every rank."""
    return any("reduce" in entry.call and "scatter" not in entry.call for entry in ledger.entries)


def flat(tensors: Iterable[torch.Tensor]) -> torch.Tensor:
    """Return the tensors as one vector."""
    return torch.cat([tensor.flatten() for tensor in tensors])
