"""The network of a challenge: it carries what ranks send each other, and says when it has arrived.

No time passes here. Each rank has a clock of its own, which goes on when it computes and when it
waits; a message takes latency + bytes / rate (alpha and beta of unit 05), and each rank's link
carries one thing at a time, in the order in which the rank has started them: sends, receives where
they are waited for, and collectives, for which all members' links must be free. What comes out
depends on the entry alone: on a busy machine the same entry gets the same time.

A receive from anybody gets what arrives first by these clocks. So it waits, in the judge's own
time, until no rank can still send what arrives earlier (conservative simulation: Chandy and Misra
1979).

Updates are counted as time is, one after the other: who receives from a rank has that rank's
updates behind it, too, and after a collective all its members have as many as the one that had
most. So what ranks do in turn adds up.

A collective costs what its ring costs, an all-reduce of n bytes among p ranks 2 (p - 1) messages of
n / p bytes, a broadcast what a tree costs. Who knows a better way builds it from `send` and `recv`.
Each message has a head of 64 bytes, so that one without content is not free.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from manyhands.simulate.collective_costs import rounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    Message = tuple[float, int, torch.Tensor, int]  # when it has left, bytes, what, updates


HEAD_BYTES = 64
ANYBODY = -1  # the peer of a receive
# what the judge keeps for a rank: what is under way, or not yet fetched
MOST_KEPT_BYTES, OPERATION_BYTES = 2**26, 1000
DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.float32,
        torch.float64,
        torch.float16,
        torch.bfloat16,
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.bool,
    )
}
# call -> its pattern in `manyhands.simulate.collective_costs`
PATTERNS = {
    "all_reduce": "ring",
    "reduce_scatter": "reduce-scatter",
    "all_gather": "all-gather",
    "all_to_all": "all-to-all",
    "broadcast": "broadcast",
    "reduce": "reduce",
}
# in which the members of a collective must agree
SAME = ("call", "dtype", "count", "how", "root", "on_device")


class RefusedError(Exception):
    """The entry has done what cannot be; the message says what."""


@dataclass(eq=False)
class Operation:
    """A send, a receive or a collective that a rank has started."""

    rank: int
    call: str
    members: tuple[int, ...] = ()  # of a collective
    peer: int = -1  # of a send or a receive
    tag: int = 0
    dtype: str = "uint8"
    how: str = "sum"
    root: int = 0
    # whether it carries an array of a device's memory, which no host may see
    on_device: bool = False
    splits: tuple[int, ...] = ()  # of an all-to-all: elements for each member
    data: torch.Tensor | None = None
    at_s: float = 0.0  # the rank's clock when it was started
    # that the rank had behind it then; of what has been received, those that it brings
    updates: int = 0
    end_s: float = 0.0
    result: torch.Tensor | None = None
    done: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def given(self) -> torch.Tensor:
        """What the rank has given; it is let go when the operation is done."""
        assert self.data is not None
        return self.data

    @property
    def count(self) -> int | None:
        """How many numbers this rank gives; None where ranks may give different numbers."""
        return None if self.call == "all_to_all" else self.given.numel()

    @property
    def n_bytes(self) -> int:
        """How many bytes this rank gives."""
        return _size(self.given)

    def __str__(self) -> str:
        if self.call in ("send", "recv"):
            way = "to" if self.call == "send" else "from"
            peer = "anybody" if self.peer == ANYBODY else f"rank {self.peer}"
            return f"{self.call} {way} {peer} (tag {self.tag})"
        ranks = "" if len(self.members) == 1 else " of ranks " + ", ".join(map(str, self.members))
        return self.call + ranks


class Network:
    """Links of `rate_mbit` each way and `delay_ms` between `ranks` ranks, and their clocks."""

    def __init__(self, ranks: int, rate_mbit: float, delay_ms: float) -> None:
        self.bytes_per_s, self.delay_s = rate_mbit * 1e6 / 8, delay_ms / 1e3
        self.clock_s, self.updates = [0.0] * ranks, [0] * ranks
        self.sent_bytes, self.messages = [0] * ranks, [0] * ranks
        self.problem: str | None = None
        self._up_s, self._down_s = [0.0] * ranks, [0.0] * ranks  # from when on a link is free
        self._queues: list[deque[Operation]] = [deque() for _ in range(ranks)]
        self._waits: dict[int, Operation] = {}
        self._gone: set[int] = set()
        # (from, to, tag, on_device) -> sends that have left
        self._arrived: dict[tuple[int, int, int, bool], deque[Message]] = {}
        # of what a rank sent too early: (from when, until when, bytes)
        self.stored: list[list[tuple[float, float, int]]] = [[] for _ in range(ranks)]
        self._kept_bytes = [0] * ranks

    def compute(self, rank: int, seconds: float) -> None:
        """Let a rank's clock go on by the seconds that a computation takes."""
        self.clock_s[rank] += seconds
        self._advance()

    def start(self, operation: Operation) -> None:
        """An operation begins now, by the clock of its rank.

        A receive takes its place when it is waited for.
        """
        rank = operation.rank
        operation.at_s, operation.updates = self.clock_s[rank], self.updates[rank]
        if operation.call == "recv":
            self._keep(rank, OPERATION_BYTES)
            return
        self._keep(rank, operation.n_bytes + OPERATION_BYTES)
        self._queues[rank].append(operation)
        self._advance()

    async def wait(self, operation: Operation) -> torch.Tensor:
        """Until it is done; the rank's clock goes on to its end.

        Raises `RefusedError` if it never can be.
        """
        rank = operation.rank
        if operation.call == "recv" and not operation.done.is_set():
            operation.at_s = self.clock_s[rank]
            self._queues[rank].append(operation)
        self._waits[rank] = operation
        self._advance()
        await operation.done.wait()
        self._waits.pop(rank, None)
        if operation.result is None:
            raise RefusedError(self.problem)
        self.clock_s[rank] = max(self.clock_s[rank], operation.end_s)
        self.updates[rank] = max(self.updates[rank], operation.updates)
        self._keep(rank, -_size(operation.result) - OPERATION_BYTES)
        self._advance()  # who receives from anybody may have waited for this clock
        return operation.result

    def _keep(self, rank: int, more_bytes: int) -> None:
        self._kept_bytes[rank] += more_bytes
        if self._kept_bytes[rank] > MOST_KEPT_BYTES:
            raise RefusedError(
                f"Rank {rank} has more than {MOST_KEPT_BYTES >> 20} MiB under way that no rank "
                "receives."
            )

    def not_received(self, rank: int) -> int:
        """The bytes that a rank has sent from its device and that no rank has received."""
        return sum(
            message[1]
            for (sender, _, _, on_device), waiting in self._arrived.items()
            if sender == rank and on_device
            for message in waiting
        )

    def leave(self, rank: int) -> None:
        """The rank has returned: it takes part in nothing more."""
        self._gone.add(rank)
        self._advance()

    # ------------------------------------------------------------ what can go on goes on

    def _advance(self) -> None:
        while any([self._step(rank) for rank in range(len(self._queues))]):  # noqa: C419 - a step of each rank
            pass
        asleep = {rank for rank, operation in self._waits.items() if not operation.done.is_set()}
        if asleep and asleep | self._gone == set(range(len(self._queues))) and not self.problem:
            states = [f"Rank {rank} waits in {self._waits[rank]}." for rank in sorted(asleep)]
            states += [f"Rank {rank} has returned." for rank in sorted(self._gone)]
            self.stop("All ranks wait, and none of them can continue: " + " ".join(states))

    def stop(self, problem: str) -> None:
        """End all waiting."""
        self.problem = problem
        for operation in self._waits.values():
            operation.done.set()

    def _step(self, rank: int) -> bool:
        """Whether the first operation in the rank's queue could be done."""
        if not self._queues[rank]:
            return False
        first = self._queues[rank][0]
        if first.call == "send":
            self._send(first)
            return True
        if first.call == "recv":
            return self._receive(first)
        together = [
            self._queues[operation][0] for operation in first.members if self._queues[operation]
        ]
        if len(together) < len(first.members) or any(
            operation.members != first.members for operation in together
        ):
            return False
        for name in SAME:
            if len({getattr(operation, name) for operation in together}) > 1:
                calls = ", ".join(
                    f"rank {operation.rank}: {operation.call} of {operation.given.numel()} {operation.dtype}"
                    for operation in together
                )
                raise RefusedError(f"The members of a collective make different calls: {calls}.")
        self._collective(together)
        return True

    def _message_s(self, n_bytes: float) -> tuple[float, float]:
        """(time that the link is taken, time until it has arrived)."""
        taken_s = (n_bytes + HEAD_BYTES) / self.bytes_per_s
        return taken_s, taken_s + self.delay_s

    def _count(self, rank: int, messages: int, n_bytes: float) -> None:
        self.messages[rank] += messages
        self.sent_bytes[rank] += round(messages * (n_bytes + HEAD_BYTES))

    def _finish(self, operation: Operation, end_s: float, result: torch.Tensor) -> None:
        operation.end_s, operation.result, operation.data = end_s, result, None
        self._queues[operation.rank].popleft()
        operation.done.set()

    def _send(self, operation: Operation) -> None:
        rank = operation.rank
        taken_s, _ = self._message_s(operation.n_bytes)
        self._up_s[rank] = max(operation.at_s, self._up_s[rank]) + taken_s
        self._count(rank, 1, operation.n_bytes)
        message = self._up_s[rank], operation.n_bytes, operation.given, operation.updates
        self._arrived.setdefault(
            (rank, operation.peer, operation.tag, operation.on_device), deque()
        ).append(message)
        self._finish(operation, self._up_s[rank], torch.empty(0))

    def _receive(self, operation: Operation) -> bool:
        rank, earliest = operation.rank, self._earliest(operation)
        if earliest is None or (
            operation.peer == ANYBODY and not self._nothing_earlier(rank, earliest[0])
        ):
            return False
        end_s, operation.peer = earliest
        place = operation.peer, rank, operation.tag, operation.on_device
        left_s, n_bytes, data, operation.updates = self._arrived[place].popleft()
        if operation.on_device:
            self.stored[operation.peer].append((left_s + self.delay_s, operation.at_s, n_bytes))
        self._keep(operation.peer, -n_bytes)
        self._keep(rank, n_bytes)
        self._down_s[rank] = end_s - self.delay_s
        self._finish(operation, end_s, data)
        return True

    def _earliest(self, operation: Operation) -> tuple[float, int] | None:
        """(when it has arrived, from whom) of the message that a receive gets, or None.

        The message is one of those that are under way.
        """
        rank, peers = operation.rank, [operation.peer]
        if operation.peer == ANYBODY:
            peers = [peer for peer in range(len(self._queues)) if peer != rank]
        arrivals: list[tuple[float, int]] = []
        for peer in peers:
            if waiting := self._arrived.get((peer, rank, operation.tag, operation.on_device)):
                left_s, n_bytes, *_ = waiting[0]
                free_s = self._down_s[rank] + self._message_s(n_bytes)[0]
                arrivals.append((max(left_s, free_s) + self.delay_s, peer))
        return min(arrivals, default=None)

    def _nothing_earlier(self, rank: int, end_s: float) -> bool:
        """Whether no other rank can still send what arrives before this time.

        Each has returned, or its clock has gone that far, or it waits for something that no rank
        has sent yet.
        """
        for other in range(len(self._queues)):
            waits = self._waits.get(other)
            if other == rank or other in self._gone or self.clock_s[other] >= end_s:
                continue
            if waits is None or waits.done.is_set():
                return False  # it goes on
            if waits.peer == ANYBODY and waits.call == "recv" and self._queues[other][0] is waits:
                theirs = self._earliest(waits)
                if theirs and (theirs[0], other) < (end_s, rank):
                    return False  # it goes on first
        return True

    def _collective(self, together: Sequence[Operation]) -> None:
        first, p = together[0], len(together)
        n_bytes = (
            max(
                max(operation.splits or (0,)) * operation.given.element_size() * p
                for operation in together
            )
            if first.call == "all_to_all"
            else first.n_bytes
        )
        messages, each_bytes = messages_of(first.call, p, n_bytes)
        begin_s = max(
            max(operation.at_s, self._up_s[operation.rank], self._down_s[operation.rank])
            for operation in together
        )
        end_s, updates = (
            begin_s + messages * self._message_s(each_bytes)[1],
            max(operation.updates for operation in together),
        )
        for operation, result in zip(together, results(together), strict=True):
            self._up_s[operation.rank] = self._down_s[operation.rank] = end_s
            self._keep(operation.rank, _size(result) - operation.n_bytes)
            self._count(operation.rank, messages, each_bytes)
            operation.updates = updates
            self._finish(operation, end_s, result)


def messages_of(call: str, p: int, n_bytes: int) -> tuple[int, float]:
    """(messages one after the other, bytes in each) of a collective.

    It has p ranks, with a tensor of `n_bytes` on each.
    """
    whole_bytes = p * n_bytes if call == "all_gather" else n_bytes
    return rounds(PATTERNS[call], p, whole_bytes)[0] if p > 1 else (0, n_bytes)


def _size(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def results(together: Sequence[Operation]) -> list[torch.Tensor]:
    """What a collective gives each of its members, in their order."""
    call, how, p = together[0].call, together[0].how, len(together)
    inputs = [operation.given for operation in together]
    if call == "all_gather":
        return [torch.cat(inputs)] * p
    if call == "all_to_all":
        parts = [operation.given.split(list(operation.splits)) for operation in together]
        return [torch.cat([of[member] for of in parts]) for member in range(p)]
    if call == "broadcast":
        return [inputs[together[0].root]] * p
    total = _reduced(inputs, how)
    if call == "reduce_scatter":
        return list(total.chunk(p))
    return [
        total if call == "all_reduce" or place == together[0].root else tensor
        for place, tensor in enumerate(inputs)
    ]


def _reduced(inputs: Sequence[torch.Tensor], how: str) -> torch.Tensor:
    """In the order of the ranks, so that all get the same bits; in the tensors' own precision."""
    total = inputs[0].clone()
    for tensor in inputs[1:]:
        if how in ("sum", "avg"):
            total = total + tensor
        else:
            total = {"product": torch.mul, "max": torch.maximum, "min": torch.minimum}[how](
                total, tensor
            )
    total = total.to(inputs[0].dtype)  # a sum of bools is a number
    return total / len(inputs) if how == "avg" else total
