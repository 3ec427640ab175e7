"""Ways of an all-reduce, and a broadcast, from messages between two ranks.

Exercise 5 counts them, and tutorial 05 times them.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist


def _received(like: torch.Tensor, peer: int, group: dist.ProcessGroup | None) -> torch.Tensor:
    came = torch.empty_like(like)
    dist.recv(came, group=group, group_src=peer)
    return came


def _pass_on(
    chunk: torch.Tensor, like: torch.Tensor, group: dist.ProcessGroup | None
) -> torch.Tensor:
    """Send to the next rank, and receive from the previous one."""
    me, p = dist.get_rank(group), dist.get_world_size(group)
    work: Any = dist.isend(chunk, group=group, group_dst=(me + 1) % p)
    came = _received(like, (me - 1) % p, group)
    work.wait()
    return came


def _star(x: torch.Tensor, group: dist.ProcessGroup | None) -> None:
    me, p = dist.get_rank(group), dist.get_world_size(group)
    if me:
        dist.send(x, group=group, group_dst=0)
        dist.recv(x, group=group, group_src=0)
        return
    for peer in range(1, p):
        x += _received(x, peer, group)
    for peer in range(1, p):
        dist.send(x, group=group, group_dst=peer)


def _tree(x: torch.Tensor, group: dist.ProcessGroup | None) -> None:
    me, p = dist.get_rank(group), dist.get_world_size(group)
    for reach in [2**k for k in reversed(range((p - 1).bit_length()))]:
        if reach <= me < 2 * reach:
            dist.send(x, group=group, group_dst=me - reach)
        elif me < reach and me + reach < p:
            x += _received(x, me + reach, group)
    _spread(x, group)


def _spread(x: torch.Tensor, group: dist.ProcessGroup | None) -> None:
    me, p = dist.get_rank(group), dist.get_world_size(group)
    for reach in [2**k for k in range((p - 1).bit_length())]:
        if me < reach and me + reach < p:
            dist.send(x, group=group, group_dst=me + reach)
        elif reach <= me < 2 * reach:
            dist.recv(x, group=group, group_src=me - reach)


def _ring(x: torch.Tensor, group: dist.ProcessGroup | None) -> None:
    me, p = dist.get_rank(group), dist.get_world_size(group)
    chunks = x.tensor_split(p)
    for s in range(p - 1):
        chunks[(me - s - 1) % p].add_(
            _pass_on(chunks[(me - s) % p], chunks[(me - s - 1) % p], group)
        )
    for s in range(p - 1):
        chunks[(me - s) % p].copy_(_pass_on(chunks[(me - s + 1) % p], chunks[(me - s) % p], group))


def _gather(x: torch.Tensor, group: dist.ProcessGroup | None) -> None:
    own = x.clone()
    me, p = dist.get_rank(group), dist.get_world_size(group)
    works: list[Any] = [
        dist.isend(own, group=group, group_dst=peer) for peer in range(p) if peer != me
    ]
    for peer in range(p):
        if peer != me:
            x += _received(x, peer, group)
    for work in works:
        work.wait()


WAYS = {"star": _star, "tree": _tree, "ring": _ring, "gather": _gather, "broadcast": _spread}
