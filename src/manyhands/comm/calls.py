"""What every call of a communicator is made of.

These are messages under a tag, and numbered steps that all ranks take together.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import torch

from manyhands.comm.control import BACKWARD, CommunicationError, Wait
from manyhands.comm.message import DTYPES, NUMBER, describe

if TYPE_CHECKING:
    from typing import Unpack

    from manyhands.comm.facts import Facts, FactsWithoutRoot, Op, Slot
    from manyhands.comm.message import Message
    from manyhands.comm.message_queue import Exchange

T = TypeVar("T")
SENT_BY = {"recv": "send", "recv_obj": "send_obj"}


class Calls:
    """The part of a communicator that `manyhands.functions` is built on.

    A call raises where two ranks do not agree, and numbers go on.
    """

    name: str
    rank: int
    size: int
    members: list[int]
    others: list[int]
    timeout_s: float
    epoch: int
    spoiled: set[Slot]
    stopped: tuple[int, int, str | None] | None
    last_call: Wait | None
    _exchange: Exchange
    _operations: Iterator[int]
    _calls: int
    _closed: bool

    def next_operation(self) -> Op:
        """A name for a message of this rank, unlike any other."""
        return self._exchange.rank, self.name, next(self._operations)

    def post(
        self,
        rank: int,
        tag: int,
        call: str,
        tensors: Sequence[torch.Tensor | None],
        op: Op,
        wants: bool = False,
    ) -> None:
        """Send tensors to `rank` of this communicator under a tag.

        `op` is the operation's name, `wants` says whether a gradient is awaited.
        """
        peer, tag = self.peer(rank, call), check_tag(tag)
        self.enter()
        facts: Facts = {"tag": tag, "op": op, "wants": wants}
        unfinished = self._exchange.post([(peer, tensors)], ("p2p", self.name, tag), call, facts)
        if unfinished:
            self._exchange.finish(unfinished, Wait("p2p", self, call, facts))

    def take(self, rank: int, tag: int, call: str) -> Message:
        """The next message from `rank` of this communicator under a tag."""
        peer, tag = self.peer(rank, call), check_tag(tag)
        self.enter()
        message = self._exchange.take(
            peer, ("p2p", self.name, tag), Wait("p2p", self, call, {"tag": tag})
        )
        sent_by = SENT_BY[call]
        if message.call != sent_by:
            text = (
                f"Rank {self.rank} called {call}, but rank {rank} sent {message}: {sent_by} goes "
                f"with {call}."
            )
            self._exchange.control.report(
                peer, "refused", {"op": message.facts["op"], "text": text}
            )
            raise CommunicationError(text)
        return message

    def peer(self, rank: int, call: str) -> int:
        """The global rank of `rank`. ValueError if it is out of range, or this rank itself."""
        if type(rank) is not int or not 0 <= rank < self.size:
            rank = self.check_rank(rank, call)
        if rank == self.rank:
            raise ValueError(
                f"{call}: rank {rank} is this rank itself; a rank keeps what it has in a variable."
            )
        return self.members[rank]

    def name_of(self, member: int) -> int:
        """The rank in this communicator of a global rank."""
        return self.members.index(member)

    def check_rank(self, rank: int, call: str, word: str = "rank") -> int:
        """The rank, of any type that counts, as an int.

        ValueError unless it is one of this communicator.
        """
        number = _whole(rank)
        if number is None:
            raise ValueError(
                f"{call}: {word} {rank!r} is not a whole number. The ranks of communicator "
                f"{self.name!r} are 0 to {self.size - 1}."
            )
        if not 0 <= number < self.size:
            raise ValueError(
                f"{call}: {word} {number} is not in communicator {self.name!r}, "
                f"whose ranks are 0 to {self.size - 1}."
            )
        return number

    def enter(self) -> None:
        """What every call does first."""
        control = self._exchange.control
        if self._closed or self._exchange.closed:
            raise ValueError(f"Communicator {self.name!r} is closed.")
        if control.pending is not None:
            error, control.pending = control.pending, None
            raise error

    def next_call(self) -> Slot:
        """The slot of the next collective call: (epoch, number).

        The same on all ranks that make the same calls.
        """
        self.enter()
        exchange = self._exchange
        exchange.pump()  # an error elsewhere may have begun a new epoch
        self._calls += 1
        if self.stopped and self.stopped[0] <= self._calls:
            _, epoch, text = self.stopped
            self.begin_epoch(epoch)
            if text:
                raise CommunicationError(
                    f"Rank {self.rank} is stopped in its next call of all ranks: {text}"
                )
            # late: the others have given this call up, it is the first one of the new epoch
            self._calls = 1
        if exchange.inbox:
            exchange.control.look_for_strays(Wait("collective", self, ""))
        return self.epoch, self._calls

    def begin_epoch(self, epoch: int) -> None:
        """Count calls anew and forget what was sent in the old epoch.

        This is for ranks that did not agree on a collective call.
        """
        self.epoch, self._calls, self.stopped = epoch, 0, None
        self.spoiled.clear()
        inbox = self._exchange.inbox
        for key, source in [
            k
            for k in inbox
            if k[0][:2] == ("collective", self.name) and k[0][2][0] < epoch and k[0][3] < BACKWARD
        ]:
            del inbox[key, source]

    def exchange(
        self,
        slot: Slot,
        call: str,
        outgoing: Mapping[int, Sequence[torch.Tensor | None]],
        sources: Iterable[int],
        step: int = 0,
        check: Callable[[Message], str | None] | None = None,
        **facts: Unpack[Facts],
    ) -> dict[int, Message]:
        """Take one step of a collective call: send to some ranks, then receive from others.

        It sends `outgoing`, {rank: tensors}, and then returns {rank: message} from `sources`, in
        their order.

        `check(message)`, if given, returns what is wrong with a message, or None. The facts travel
        with what is sent; all ranks must give the same `root`.
        """
        exchange, members, key = (
            self._exchange,
            self.members,
            ("collective", self.name, slot, step),
        )
        wait = Wait("collective", self, call, facts, slot, step)
        if step < BACKWARD:
            self.last_call = wait
        if outgoing and (
            unfinished := exchange.post(
                [(members[rank], tensors) for rank, tensors in outgoing.items()], key, call, facts
            )
        ):
            exchange.finish(unfinished, wait)
        came: dict[int, Message] = {}
        for rank in sources:
            message = exchange.take(members[rank], key, wait)
            wrong = self._conflict(message, call, facts.get("root"), rank) or (
                check and check(message)
            )
            if wrong:
                wait.peer = members[rank]
                raise exchange.control.fail(
                    wait, f"Rank {self.rank} is in {wait}: {wrong}", slot=slot
                )
            if wait.error:
                # with this message came that another rank has failed in this very call
                exchange.control.stop(wait)
            came[rank] = message
        return came

    def _conflict(self, message: Message, call: str, root: int | None, rank: int) -> str | None:
        if message.call != call:
            return (
                f"rank {rank} called {message.call} in its place, with {describe(message.tensors)}."
                " All ranks must make the same calls in the same order."
            )
        if message.facts.get("root") != root:
            return f"rank {rank} has root {message.facts.get('root')}, this rank has root {root}."
        return None

    def run_checked(self, slot: Slot, call: str, work: Callable[[], T]) -> T:
        """`work()`. If it raises, the other ranks hear of it in the same call."""
        try:
            return work()
        except Exception as error:
            self.spoil(slot, call, error)
            raise

    def spoil(self, slot: Slot, call: str, error: object, step: int = 0) -> None:
        """This rank cannot do its part: who waits in this call, or will, is told why.

        Numbers go on.
        """
        if step < BACKWARD:
            self.spoiled.add(slot)
        facts = {
            "communicator": self.name,
            "slot": slot,
            "step": step,
            "text": f"rank {self.rank} reports: {error}",
        }
        for member in self.members:
            if member != self._exchange.rank:
                self._exchange.notify(member, ("control", "spoiled"), "", **facts)

    # --- gradients, on their way back: an operation is named as by `next_operation`, or by the
    # slot of its call

    def expect(self, op: Op) -> None:
        """From now on a gradient may come for this operation."""
        self._exchange.control.live.add(op)

    def owe(self, op: Op) -> None:
        """Note that other ranks wait for a gradient of what came with this operation.

        It is part of a graph of this rank.
        """
        self._exchange.control.receipts.add(op)

    def give(
        self, op: Op, call: str, gradients: Mapping[int, Sequence[torch.Tensor | None]]
    ) -> None:
        """Send `gradients`, {rank: list of tensors}.

        CommunicationError if they are no longer wanted.
        """
        exchange = self._exchange
        facts: Facts = {"op": op}
        if op in exchange.control.freed:
            raise CommunicationError(exchange.control.freed.pop(op))
        unfinished = exchange.post(
            [(self.members[rank], tensors) for rank, tensors in gradients.items()],
            ("gradient", op),
            call,
            facts,
        )
        if unfinished:
            exchange.finish(unfinished, Wait("gradient", self, call, facts))

    def take_gradient(self, op: Op, call: str, rank: int) -> list[torch.Tensor | None]:
        """The gradients from `rank`, a list. CommunicationError if none will come."""
        exchange = self._exchange
        facts: Facts = {"op": op}
        if op in exchange.control.refused:
            raise CommunicationError(exchange.control.refused.pop(op))
        return exchange.take(
            self.members[rank], ("gradient", op), Wait("gradient", self, call, facts)
        ).tensors

    def give_none(self, op: Op, call: str, rank: int) -> None:
        """`rank` waits in vain: the node that would have sent its gradient is gone.

        Never waits, so that a finaliser may call it.
        """
        self._exchange.notify(self.members[rank], ("gradient", op), call, freed=True, op=op)

    def want_none(self, op: Op, rank: int, text: str) -> None:
        """Tell `rank` that it may drop what came with this operation, for the reason in the text.

        Never waits, so that a finaliser may call it.
        """
        self._exchange.notify(self.members[rank], ("control", "freed"), "", op=op, text=text)

    def forget(self, op: Op) -> None:
        """The operation's node is gone; a gradient that has come for it is told of.

        For finalisers.
        """
        exchange, control = self._exchange, self._exchange.control
        if op in control.live:
            if exchange.inbox or exchange.is_busy():
                exchange.call_later(lambda: _give_up(exchange, op))
            control.live.discard(op)
            control.refused.pop(op, None)
        control.receipts.discard(op)
        control.freed.pop(op, None)

    def forget_step(self, slot: Slot, step: int) -> None:
        """Nobody is going to take this step of a collective call any more. For finalisers."""
        self._exchange.control.spoiled.pop((self.name, slot, step), None)

    @property
    def ended(self) -> bool:
        """Whether the communicator over all ranks has been closed."""
        return self._exchange.closed

    # --- tensors to and from all ranks ------------------------------------------------------------

    def bcast_tensors(
        self,
        slot: Slot,
        call: str,
        tensors: Sequence[torch.Tensor | None] | None,
        root: int = 0,
        **facts: Unpack[FactsWithoutRoot],
    ) -> tuple[Sequence[torch.Tensor], FactsWithoutRoot]:
        """The root's tensors on all ranks, along a binomial tree: ceil(log2 size) steps.

        Returns the message's tensors and facts.
        """
        parent, children = _tree(self.rank, self.size, root)
        if parent is not None:
            message = self.exchange(slot, call, {}, (parent,), root=root)[parent]
            tensors, facts = message.tensors, message.facts
        # only a rank that has a parent may give None
        whole = cast("Sequence[torch.Tensor]", tensors)
        if children:
            all_facts: Facts = {**facts, "root": root}
            self.exchange(slot, call, dict.fromkeys(children, whole), (), **all_facts)
        return whole, facts

    def sum_tensors(
        self, slot: Slot, call: str, tensor: torch.Tensor, step: int = 0
    ) -> torch.Tensor:
        """The sum of all ranks' tensors on all ranks: a reduce-scatter, then an all-gather.

        2 (size - 1) / size of the tensor's bytes leave each rank.
        """
        if self.size == 1:
            return tensor.detach().clone()
        chunks = list(tensor.detach().reshape(-1).tensor_split(self.size))
        like = (NUMBER[tensor.dtype], tuple(tensor.shape))

        def check(message: Message) -> str | None:
            if message.facts["like"] == like:
                return None
            there = torch.empty(
                message.facts["like"][1], dtype=DTYPES[message.facts["like"][0]], device="meta"
            )
            return (
                f"its tensor is {describe([tensor])}, that of rank {self.name_of(message.source)} "
                f"is {describe([there])}. They cannot be added."
            )

        came = self.exchange(
            slot,
            call,
            {rank: [chunks[rank]] for rank in self.others},
            self.others,
            step,
            check=check,
            like=like,
        )
        parts = [
            chunks[rank] if rank == self.rank else came[rank].tensors[0].to(tensor.device)
            for rank in range(self.size)
        ]
        total = sum(parts[1:], parts[0])
        came = self.exchange(
            slot, call, {rank: [total] for rank in self.others}, self.others, step + 1
        )
        return torch.cat(
            [
                total if rank == self.rank else came[rank].tensors[0].to(tensor.device)
                for rank in range(self.size)
            ]
        ).view(tensor.shape)


def _give_up(exchange: Exchange, op: Op) -> None:
    """Gradients that have come for a node that is gone."""
    for key, source in [k for k in exchange.inbox if k[0] == ("gradient", op)]:
        for message in exchange.inbox.pop((key, source)):
            exchange.control.unclaimed_gradient(message)


@functools.cache
def _tree(rank: int, size: int, root: int) -> tuple[int | None, list[int]]:
    """The parent (None for the root) and the children of a rank in a binomial tree."""
    virtual, reach = (rank - root) % size, 1
    parent: int | None = None
    children: list[int] = []
    while reach < size:
        if virtual < reach and virtual + reach < size:
            children.append((virtual + reach + root) % size)
        elif reach <= virtual < 2 * reach:
            parent = (virtual - reach + root) % size
        reach *= 2
    return parent, children


def check_tag(tag: int) -> int:
    """The tag as an int; ValueError unless it is a whole number from 0 on."""
    number = tag if type(tag) is int else _whole(tag)
    if number is None or number < 0:
        raise ValueError(f"A tag is a whole number from 0 on, not {tag!r}.")
    return number


def _whole(number: Any) -> int | None:
    """As an int, or None if it is no whole number."""
    try:
        return None if isinstance(number, bool) else operator.index(number)
    except TypeError:
        return None
