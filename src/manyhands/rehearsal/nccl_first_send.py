"""NCCL's rule of the first send: the first message between two ranks blocks until both have come.

* A communicator is made at its first use, and all its ranks meet there: Python itself waits. An
  unbatched message has a communicator of its own pair of ranks; a batch has the group's. With
  `device_id` given to init_process_group (`eager`) each group has its communicator from the start,
  and all its messages go through it; its ranks still meet at its first collective, which connects
  them.
* The first message from one rank to another sets up their connection: both meet there too.

Both are taken from the sources of PyTorch and the documentation of NCCL, as all of `replay` is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from manyhands.rehearsal.trace import Event, Part

Comm = tuple[Any, ...]  # (group,), or (group, pair of ranks) of a message outside a batch


class FirstUses:
    """Records which ranks have come to the first use of which communicator and connection.

    `eager`: `device_id` was given to init_process_group. `wake(ranks)` is called with the ranks
    that may go on because one more has come.
    """

    def __init__(self, eager: bool, wake: Callable[[Iterable[int]], None]) -> None:
        self.eager, self._wake = eager, wake
        self._joined: dict[Comm, set[int]] = defaultdict(set)

    def late_ranks(self, rank: int, event: Event) -> set[int]:
        """Let `rank` come to its `event`; returns the ranks that it has to wait for in Python."""
        comm, members = self.communicator(rank, event)
        late = set() if self.eager and event.parts else self.meet(rank, {comm: members})
        connections = {
            (comm, *((rank, part.peer) if part.way == "send" else (part.peer, rank))): (
                rank,
                part.peer,
            )
            for part in event.parts
            if part.peer is not None
        }
        return late or self.meet(rank, connections)

    def communicator(self, rank: int, event: Event) -> tuple[Comm, Sequence[int]]:
        """(The communicator that `event` of `rank` goes through, its ranks)."""
        if event.kind == "collective" or event.is_batch or self.eager:
            return (event.group,), event.ranks
        pair = tuple(sorted({rank, peer_of(event.parts[0])}))
        return (event.group, pair), pair

    def meet(self, rank: int, meetings: Mapping[Comm, Sequence[int]]) -> set[int]:
        """Let `rank` join these meetings, {key: its ranks}; returns the ranks that have yet to."""
        late: set[int] = set()
        for key, members in meetings.items():
            joined = self._joined[key]
            if rank not in joined:
                joined.add(rank)
                self._wake(members)
            if len(joined) < len(set(members)):
                late.update(set(members) - joined)
        return late


def peer_of(part: Part) -> int:
    """The other side; of a receive from any rank, which no replay gets so far as, there is none."""
    return cast(int, part.peer)


def describe_late(late: Collection[int]) -> str:
    """What a rank does that waits for these ranks at a first use, as a part of a sentence."""
    ranks = ", ".join(map(str, sorted(late)))
    return (
        f"waits in Python for rank {ranks}, because the first use of a communicator or connection "
        "is a rendezvous"
    )
