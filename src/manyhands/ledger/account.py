"""From the log of a ledger to an account.

It says which message belongs to which round, has the sums per call, and puts all ranks together.

**Rounds.** Each rank has a clock that starts at 0. A message gets a round when it is sent: the
sender's clock + 1. A clock moves on to the round of a message when the rank takes that message in,
or when it has waited for its own sending of it (`work.wait()`, `dist.send`). So messages of one
round may all be under way at once, a message of round r had to wait for one of round r - 1, and the
number of rounds is the length of the longest chain of messages each of which had to wait for the
one before: Lamport's clocks (1978), counted in messages. A ring all-reduce has 2(p - 1) rounds, a
binomial tree log2 p, direct sends from each rank to each other one 1.

A collective of torch.distributed starts on all its ranks in the round after the largest of their
clocks, and takes the rounds of its model; who waits for its work has the clock of its last round.
Calls that DDP's reducer makes in one backward pass do not wait for each other; the end of that pass
waits for all of them. So do other calls of one kind that C++ makes directly one after the other.

One rank alone does not know the rounds of what it receives. Its own account (`Ledger.rounds`) takes
a message that comes in to be of the same round as the last one that it sent: right where ranks go
in step (ring, recursive doubling, all-to-all), a guess elsewhere. `merge` knows the senders, and is
exact.

Lamport 1978: Time, clocks, and the ordering of events in a distributed system, Communications of
the ACM 21(7).
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from manyhands.ledger import models
from manyhands.ledger.entry import POINT_TO_POINT
from manyhands.ledger.rounds import replay
from manyhands.ledger.text_table import format_table

if TYPE_CHECKING:
    from manyhands.ledger.entry import Entry
    from manyhands.ledger.rounds import Clocks

# what a ledger has heard, in order: ("sent" or "received", peer, bytes, call, seconds, identity),
# ("start" or "wait", entry)
Log = list[tuple[Any, ...]]


class Collective(TypedDict):
    """A collective of torch.distributed in an account. `given`, `taken`: bytes of each tensor."""

    call: str
    rank: int
    ranks: list[int]
    given: list[int]
    taken: list[int]
    itemsize: int
    root: int
    start_s: float
    stop_s: float | None


class PlainLog(TypedDict):
    """A log as plain values; see `plain_log`."""

    events: list[list[Any]]
    collectives: dict[str, Collective]


class Account(PlainLog):
    """What `Ledger.account` returns: plain values, which travel between processes."""

    rank: int
    peak_bytes: int | None


class RankTotals(TypedDict):
    """One rank's sums, an item of `Merged.ranks`."""

    rank: int
    messages_sent: int
    messages_received: int
    bytes_sent: int
    bytes_received: int
    rounds: int
    peak_bytes: int | None


class Row(NamedTuple):
    """What one rank has sent and received, and over which way."""

    messages_sent: int
    messages_received: int
    bytes_sent: int
    bytes_received: int
    rounds: int
    how: str


class Event(NamedTuple):
    """One line of `Merged.events`.

    `kind` is "sent", "received", or "call" for a collective of torch.distributed, which has start
    and stop. `round` is that of a message, the first one of a collective. Seconds are of
    `time.perf_counter()`, and None in a model's messages.
    """

    kind: str
    peer: int | None
    bytes: int
    call: str
    round: int
    seconds: float | None
    stop_s: float | None
    key: str
    how: str


COUNTED = "counted"


def this_rank(log: Log) -> int:
    """This rank's global number.

    It is torch.distributed's, else that of the first message that it sent, else the launcher's.
    """
    try:
        import torch.distributed as dist

        if dist.is_available() and dist.is_initialized():
            return dist.get_rank()
    except ImportError:
        pass
    for item in log:
        if item[0] == "sent":
            rank: int = item[5][0]
            return rank
    return int(
        os.environ.get(
            "RANK", os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK", 0))
        )
    )


# --- one rank's log as plain events ---------------------------------------------------------------


def plain_log(log: Log) -> PlainLog:
    """The log as `{"events": [...], "collectives": {...}}` of plain values.

    Messages have names that are the same on both sides.

    Events: ["sent", key, peer, bytes, call, seconds], ["passed", key]: its sending was waited for,
    ["received", key, peer, bytes, call, seconds], ["enter", key] and ["leave", key] of a
    collective.
    """
    plain, rank = _Plain({id(item[1]) for item in log if item[0] == "wait"}), this_rank(log)
    for item in log:
        if item[0] == "start":
            plain.start(item[1])
        elif item[0] == "wait":
            plain.wait(item[1])
        else:
            plain.message(rank, *item)
    return plain.end()


class _Plain:
    """Turns entries into plain events."""

    def __init__(self, waited: set[int]) -> None:
        self.events: list[list[Any]] = []
        self.collectives: dict[str, Collective] = {}
        self.keys: dict[int, str] = {}
        self._waited = waited  # ids of the entries that somebody waits for
        self._numbers: defaultdict[str, int] = defaultdict(int)
        # calls that are waited for without our seeing it, and what they have in common
        self._held: list[str] = []
        self._of: tuple[str, Any] | None = None
        self._expected: list[Entry] = []  # receives that nobody has waited for yet

    def message(
        self,
        rank: int,
        kind: str,
        peer: int,
        nbytes: int,
        call: str,
        seconds: float,
        identity: tuple[Any, ...],
    ) -> None:
        """Note one of our own functions' messages.

        Several that go to different ranks may have one identity.
        """
        self.flush(None)
        name = ".".join(str(part) for part in identity)
        self.events.append(
            [
                kind,
                self._key(f"{name}>{peer if kind == 'sent' else rank} #"),
                peer,
                nbytes,
                call,
                seconds,
            ]
        )

    def start(self, entry: Entry) -> None:
        alike: tuple[str, Any] | None = None
        if entry.task != -1:
            alike = "backward", entry.task
        elif entry.native:
            alike = "native", entry.call
        self.flush(alike)
        if entry.call in POINT_TO_POINT:
            self._start_message(entry)
            return
        key = self._key(f"{entry.group} #")
        self.keys[id(entry)] = key
        self.collectives[key] = {
            "call": entry.call,
            "rank": entry.rank,
            "ranks": list(entry.ranks),
            "given": list(entry.given),
            "taken": list(entry.taken),
            "itemsize": entry.itemsize,
            "root": entry.root,
            "start_s": entry.start_s,
            "stop_s": entry.stop_s,
        }
        self.events.append(["enter", key])
        if alike and id(entry) not in self._waited:
            self._held.append(key)
            self._of = alike

    def _start_message(self, entry: Entry) -> None:
        if entry.call == "send":
            peer = entry.ranks[entry.peer]
            self.keys[id(entry)] = key = self._key(
                f"{entry.group} {entry.rank}>{peer} {entry.tag} #"
            )
            self.events.append(["sent", key, peer, entry.bytes, "dist.send", entry.start_s])
        else:
            if entry.peer >= 0:  # the order of posting decides which message it gets
                self.keys[id(entry)] = self._key(
                    f"{entry.group} {entry.ranks[entry.peer]}>{entry.rank} {entry.tag} #"
                )
            self._expected.append(entry)

    def wait(self, entry: Entry) -> None:
        self.flush(None)
        if entry.call == "send":
            self.events.append(["passed", self.keys[id(entry)]])
        elif entry in self._expected:
            self._expected.remove(entry)
            self._received(entry)
        elif entry.call not in POINT_TO_POINT:
            self.events.append(["leave", self.keys[id(entry)]])

    def _received(self, entry: Entry) -> None:
        key = self.keys.get(id(entry)) or self._key(
            f"{entry.group} {entry.ranks[entry.peer]}>{entry.rank} {entry.tag} #"
        )
        self.events.append(
            ["received", key, entry.ranks[entry.peer], entry.bytes, "dist.recv", entry.stop_s]
        )

    def flush(self, alike: tuple[str, Any] | None) -> None:
        """Something else begins: whatever C++ had under way has been waited for."""
        if self._held and alike != self._of:
            self.events += [["leave", key] for key in self._held]
            self._held = []

    def end(self) -> PlainLog:
        self.flush(None)
        for entry in self._expected:
            if entry.peer >= 0:
                self._received(entry)
        return {"events": self.events, "collectives": self.collectives}

    def _key(self, start: str) -> str:
        self._numbers[start] += 1
        return f"{start}{self._numbers[start]}"


# --- all ranks ------------------------------------------------------------------------------------


def merge(accounts: Sequence[Account]) -> Merged:
    """Put the accounts of several ranks together: a `Merged`.

    `accounts` is `[ledger.account() of rank 0, of rank 1, ...]`.
    """
    return Merged(accounts)


class Merged:
    """The account of all ranks.

    `ranks`: each rank's numbers as a dict; `rounds`: over all of them; `messages`, `bytes`: sums of
    what was sent; `events`: per rank a list of `Event`, what `manyhands.plots.spacetime` draws;
    `by_call`, `table`, `log`: the account as rows and as text.
    """

    def __init__(self, accounts: Sequence[Account]) -> None:
        clocks = replay(accounts)
        self._names = [account["rank"] for account in accounts]
        self.events = [
            [Event(*event) for event in _events(account, clocks)] for account in accounts
        ]
        self.ranks = [
            _rank_totals(account, events)
            for account, events in zip(accounts, self.events, strict=True)
        ]
        self.rounds = max([each["rounds"] for each in self.ranks], default=0)
        self.messages = sum(each["messages_sent"] for each in self.ranks)
        self.bytes = sum(each["bytes_sent"] for each in self.ranks)

    def by_call(self, rank: int | None = None) -> dict[str, Row]:
        """`{call: Row}` in the order of first use: of one rank, or summed over all.

        A call's rounds are those that it has a message in.
        """
        groups: defaultdict[str, list[Event]] = defaultdict(list)
        for name, events in zip(self._names, self.events, strict=True):
            for event in events:
                if event.kind != "call" and rank in (None, name):
                    groups[event.call].append(event)
        return {
            call: Row(*_sums(events), len({event.round for event in events}), events[0].how)
            for call, events in groups.items()
        }

    def table(self, rank: int | None = None) -> str:
        """One line per call and one of sums as text; nothing in it depends on time.

        Of one rank, or over all.
        """
        rows, seen = (
            self.by_call(rank),
            self.ranks if rank is None else [self.ranks[self._names.index(rank)]],
        )
        head = ("call", "messages out", "messages in", "bytes out", "bytes in", "rounds", "")
        lines = [
            (call, *row[:5], row.how if row.how == COUNTED else f"model: {row.how}")
            for call, row in rows.items()
        ]
        sums = [
            sum(each[name] for each in seen)
            for name in ("messages_sent", "messages_received", "bytes_sent", "bytes_received")
        ]
        return format_table(
            [head, *lines, ("all", *sums, max([each["rounds"] for each in seen], default=0), "")]
        )

    def log(self) -> str:
        """One line per message as text, by rounds: who sent what to whom, in which call.

        Nothing in it depends on time.
        """
        lines = [
            (event.round, event.call, rank, event.peer, event.bytes)
            for rank, events in zip(self._names, self.events, strict=True)
            for event in events
            if event.kind == "sent"
        ]
        lines.sort(key=lambda line: (line[0], line[2], line[3]))
        return format_table([("round", "call", "from", "to", "bytes"), *lines])


def _events(account: Account, clocks: Clocks) -> Iterator[tuple[Any, ...]]:
    """One rank's messages with their rounds, those of models among them, and its collectives."""
    for kind, key, *rest in account["events"]:
        if kind in ("sent", "received"):
            peer, nbytes, call, seconds = rest
            yield (
                kind,
                peer,
                nbytes,
                call,
                clocks.of_message(account, kind, key),
                seconds,
                None,
                key,
                COUNTED,
            )
        elif kind == "enter":
            about = account["collectives"][key]
            ranks, first, call = about["ranks"], clocks.start[key] + 1, "dist." + about["call"]
            how, given = models.name(about["call"]), sum(about["given"])
            yield "call", None, given, call, first, about["start_s"], about["stop_s"], key, how
            me = about["rank"]
            for step in models.steps(
                about["call"],
                len(ranks),
                ranks.index(me),
                about["given"],
                about["taken"],
                about["itemsize"],
                about["root"],
            ):
                peer = ranks[step.peer]
                ends = (me, peer) if step.kind == "sent" else (peer, me)
                yield (
                    step.kind,
                    peer,
                    step.bytes,
                    call,
                    first + step.step,
                    None,
                    None,
                    f"{key} {step.step} {ends[0]}>{ends[1]}",
                    how,
                )


def _sums(events: Iterable[Event]) -> tuple[int, int, int, int]:
    sent, received = (
        [event for event in events if event.kind == kind] for kind in ("sent", "received")
    )
    return (
        len(sent),
        len(received),
        sum(event.bytes for event in sent),
        sum(event.bytes for event in received),
    )


def _rank_totals(account: Account, events: Sequence[Event]) -> RankTotals:
    sent, received, bytes_sent, bytes_received = _sums(events)
    rounds = max([event.round for event in events if event.kind != "call"], default=0)
    return {
        "rank": account["rank"],
        "messages_sent": sent,
        "messages_received": received,
        "bytes_sent": bytes_sent,
        "bytes_received": bytes_received,
        "rounds": rounds,
        "peak_bytes": account["peak_bytes"],
    }
