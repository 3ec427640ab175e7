"""The ledger itself: a context manager that keeps this rank's account."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from manyhands.ledger import account, taps

if TYPE_CHECKING:
    from typing import Self

    from manyhands.comm.communicator import Communicator
    from manyhands.ledger.account import Account, Log, Merged, Row
    from manyhands.ledger.entry import Entry
    from manyhands.ledger.memory import Peak


class Ledger:
    """A context manager: counts what this rank sends and receives inside its block.

    Ledgers can be nested.

        with Ledger() as ledger:
            loss.backward()
        ledger.bytes_sent, ledger.rounds
        print(ledger.table())

    Each rank has its own; to open it is no communication, and other ranks need none. Numbers over
    all ranks: `gather`, or `merge` of the ranks' `account()`.

    * `messages_sent`, `messages_received`, `bytes_sent`, `bytes_received`: payload that left and
      that came. A collective of torch.distributed counts with the messages of a model
      (`manyhands.ledger.models`); all others are counted one by one.
    * `rounds`: how many steps this rank's messages needed one after the other, as far as one rank
      can tell; see `manyhands.ledger.account` for the definition.
    * `peak_bytes`: with `memory=True`, the most bytes of tensors that were alive at once of those
      that the block made; see `manyhands.ledger.memory`. Else None.
    * `entries`: this rank's calls of torch.distributed in the order in which they were made, DDP's
      own among them.

    `on_entry`, if given, is called with each new `Entry`. With gloo `stop_s` of an entry is the
    moment at which the work was done; with NCCL a work counts as done when it is queued on the GPU.
    An open ledger costs some microseconds a call; a closed one costs nothing.
    """

    def __init__(
        self, on_entry: Callable[[Entry], object] | None = None, memory: bool = False
    ) -> None:
        self.entries: list[Entry] = []
        self.log: Log = []
        self.peak_bytes: int | None = None
        self._on_entry, self._memory = on_entry, memory
        self._made: tuple[int, Merged] | None = None  # the account of a log of this length
        self._peak: Peak

    def __enter__(self) -> Self:
        if self._memory:
            from manyhands.ledger.memory import Peak

            self._peak = Peak()
            self._peak.start()
        taps.listen(self)
        return self

    def __exit__(self, *exception: object) -> None:
        taps.leave(self)
        if self._memory:
            self.peak_bytes = self._peak.stop()

    def add(self, entry: Entry, given: Sequence[Any] = ()) -> None:
        """A tap tells of a call, and of the arguments that it was given: these are not kept."""
        self.entries.append(entry)
        if self._on_entry:
            self._on_entry(entry)

    def count(self, call: str) -> int:
        """How many calls of torch.distributed there were by this name.

        It is the name of ProcessGroup's method.
        """
        return sum(entry.call == call for entry in self.entries)

    def bytes(self, call: str) -> int:
        """The bytes of the tensors that this rank handed to these calls.

        They do not depend on what is sent for them.
        """
        return sum(entry.bytes for entry in self.entries if entry.call == call)

    def account(self) -> Account:
        """This rank's account as plain numbers and text.

        It is what `merge` takes, and what a notebook can pull.
        """
        return {
            "rank": account.this_rank(self.log),
            "peak_bytes": self.peak_bytes,
            **account.plain_log(self.log),
        }

    def gather(self, communicator: Communicator | None = None) -> Merged:
        """The accounts of all ranks, merged: the same on each rank.

        Collective: all ranks of the communicator (of torch.distributed's world without one) call
        it, after their blocks.
        """
        if communicator is not None:
            return account.merge(communicator.allgather_obj(self.account()))
        import torch.distributed as dist

        accounts: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(accounts, self.account())
        return account.merge(accounts)

    def by_call(self) -> dict[str, Row]:
        """`{call: Row}` in the order of first use.

        A row has this rank's messages, bytes and rounds, and how they are known.
        """
        return self._merged().by_call(self._merged().ranks[0]["rank"])

    def table(self) -> str:
        """One line per call as text; nothing in it depends on time."""
        return self._merged().table(self._merged().ranks[0]["rank"])

    def _merged(self) -> Merged:
        if self._made is None or self._made[0] != len(self.log):
            self._made = len(self.log), account.merge([self.account()])
        return self._made[1]

    @property
    def messages_sent(self) -> int:
        """How many messages this rank has sent."""
        return self._merged().ranks[0]["messages_sent"]

    @property
    def messages_received(self) -> int:
        """How many messages this rank has received."""
        return self._merged().ranks[0]["messages_received"]

    @property
    def bytes_sent(self) -> int:
        """The bytes of the messages that this rank has sent."""
        return self._merged().ranks[0]["bytes_sent"]

    @property
    def bytes_received(self) -> int:
        """The bytes of the messages that this rank has received."""
        return self._merged().ranks[0]["bytes_received"]

    @property
    def rounds(self) -> int:
        """How many steps this rank's messages needed one after the other."""
        return self._merged().ranks[0]["rounds"]
