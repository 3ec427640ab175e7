"""The replay: traces put through NCCL's queues.

It follows PyTorch's sources and NCCL's documentation, as far as these describe the queues.

On each rank Python hands work to the GPU and mostly goes on immediately. The GPU has streams; what is
on one stream is done in order. A collective goes on the stream `current`, with `async_op=True` on
the communicator's own; messages go on the communicator's own, and `send` and `recv` make `current`
wait for it. `work.wait()` makes `current` wait, not Python.

* The first use of a communicator, and the first message between two ranks, block Python until the
  other side comes (`nccl_first_send`).
* The operations of a communicator are done in the order in which they were handed in. A collective
  is done when all ranks have come to one; a message when its receiver has come to a receive from
  that sender. There are no tags. Whether the two sides agree says `nccl_mismatches`.
* `buffered`: a send ends alone, as a small one may; else (strict) it ends with its receive.

The replay goes on while anything can move. What is left then is stuck. It is linear in the length
of the traces: each queue is looked at from its head, and a rank only when something that it may
wait for has happened.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from manyhands.rehearsal import trace
from manyhands.rehearsal.nccl_first_send import FirstUses, describe_late, peer_of
from manyhands.rehearsal.nccl_mismatches import MOVES, compare_calls, compare_messages

if TYPE_CHECKING:
    from manyhands.rehearsal.nccl_first_send import Comm
    from manyhands.rehearsal.trace import Event, Part


Hold = tuple[str, Collection[int]]  # ("meets", the ranks that are late) or ("reads", ())


class Item:
    """An entry of a stream: an operation of the communicator `comm`, or a wait.

    A wait (no comm) is the stream's, for the item `after`.
    """

    __slots__ = ("after", "comm", "done", "event", "left", "parts", "rank")

    comm: Comm  # () of a wait

    def __init__(self, event: Event, rank: int, comm: Comm = (), after: Item | None = None) -> None:
        self.event, self.rank, self.comm, self.after, self.done = event, rank, comm, after, False
        self.parts: list[list[Any]] = [[part, False] for part in event.parts] if comm else []
        self.left = len(self.parts)


class Replay:
    """Replays `traces`, {global rank: [Event, ...]}; `stuck` and `mismatches` have the outcome.

    Raises `trace.BadTraceError`.
    """

    def __init__(self, traces: trace.Traces, eager: bool = False, buffered: bool = False) -> None:
        trace.check(traces)
        self.traces, self.eager, self.buffered = traces, eager, buffered
        # (item, other item, severity, in what they do not agree and what comes of it)
        self.mismatches: list[tuple[Item, Item, str, str]] = []
        # in order what was done: [(rank, event), ...] of a collective, or of a message's two ends
        self.done: list[list[tuple[int, Event]]] = []
        self.at = dict.fromkeys(traces, 0)  # Python's place
        self.hold: dict[int, Hold | None] = dict.fromkeys(traces)  # why it cannot go on
        self._streams: dict[int, dict[Comm | str, deque[Item]]] = {
            rank: defaultdict(deque) for rank in traces
        }
        # by (rank, communicator)
        self._fifos: dict[tuple[int, Comm], deque[Item]] = defaultdict(deque)
        self._running: dict[tuple[int, Comm], Item] = {}  # likewise
        self._items: dict[tuple[int, int | None], Item] = {}
        self._turns: dict[tuple[int, str], int] = defaultdict(int)
        self._first_uses = FirstUses(eager, self._wake)
        self._sent: dict[tuple[Comm, int, int], int] = defaultdict(int)
        self._todo, self._listed = deque(traces), set(traces)
        while self._todo:
            rank = self._todo.popleft()
            self._listed.discard(rank)
            self._advance(rank)

    def stuck(self) -> list[tuple[int, Event, str]]:
        """[(rank, event, why)] of the ranks that cannot go on, other than in CPU groups."""
        stuck_calls = []
        for rank, events in self.traces.items():
            heads = [queue[0] for queue in self._streams[rank].values() if queue]
            running = [
                item for item in heads if item.comm and self._running.get((rank, item.comm)) is item
            ]
            hold = self.hold[rank]
            if hold and hold[0] == "meets" and not events[self.at[rank]].on_cpu:
                stuck_calls.append((rank, events[self.at[rank]], describe_late(hold[1])))
            elif running or heads:
                event = (running or heads)[0].event
                stuck_calls.append(
                    (
                        rank,
                        event,
                        (
                            "runs on the GPU forever, because its other side is not reached or is "
                            "queued behind another operation"
                        ),
                    )
                )
        return stuck_calls

    # --- Python -----------------------------------------------------------------------------------

    def _advance(self, rank: int) -> None:
        events = self.traces[rank]
        while True:
            while self.at[rank] < len(events):
                self.hold[rank] = self._step(rank, self.at[rank], events[self.at[rank]])
                if self.hold[rank]:
                    break
                self.at[rank] += 1
            self._run_gpu(rank)
            hold = self.hold[rank]
            reads = hold and hold[0] == "reads" and not self._streams[rank]["current"]
            if not reads:
                return

    def _step(self, rank: int, number: int, event: Event) -> Hold | None:
        """What Python does with one event: None, or why it cannot go on."""
        if event.kind == "wait" and (rank, event.of) in self._items:
            known = self._items[rank, event.of]
            self._streams[rank]["current"].append(Item(known.event, rank, after=known))
        elif event.kind in ("collective", "message") and (rank, number) not in self._items:
            if any(part.peer is None for part in event.parts):
                return None  # NCCL refuses it: a rule says so
            late = self._late_ranks(rank, event)
            if late:
                return "meets", late
            if event.on_cpu:
                self._turns[rank, event.group] += event.kind == "collective"
            else:
                self._enqueue(rank, number, event)
        if event.waits_for_gpu and not event.on_cpu:
            self._run_gpu(rank)
            if self._streams[rank]["current"]:
                return "reads", ()
        return None

    def _late_ranks(self, rank: int, event: Event) -> Collection[int]:
        """The ranks that have yet to come to where Python meets them."""
        if event.on_cpu:  # gloo's own messages are not judged; no rank passes its collectives alone
            turn = (event.group, self._turns[rank, event.group])
            return (
                self._first_uses.meet(rank, {turn: event.ranks})
                if event.kind == "collective"
                else set()
            )
        return self._first_uses.late_ranks(rank, event)

    def _enqueue(self, rank: int, number: int, event: Event) -> None:
        streams, (comm, _) = self._streams[rank], self._first_uses.communicator(rank, event)
        current, own = streams["current"], bool(event.parts) or event.is_async
        item = self._items[rank, number] = Item(
            event, rank, comm, after=current[-1] if own and current else None
        )
        streams[comm if own else "current"].append(item)
        self._fifos[rank, comm].append(item)
        if event.parts and not event.is_async:
            current.append(Item(event, rank, after=item))

    # --- the GPU ----------------------------------------------------------------------------------

    def _run_gpu(self, rank: int) -> None:
        streams, moved = self._streams[rank], True
        while moved:
            moved = False
            for name in list(streams):
                queue = streams[name]
                while queue and self._try_to_end(queue[0]):
                    queue.popleft()
                    moved = True

    def _try_to_end(self, item: Item) -> bool:
        """Let the head of a stream run; whether it is done."""
        if item.done or (item.after and not item.after.done):
            return item.done
        if not item.comm:
            item.done = True
            return True
        fifo = self._fifos[item.rank, item.comm]
        while fifo and fifo[0].done:
            fifo.popleft()
        if fifo[0] is not item:
            return False
        self._running[item.rank, item.comm] = item
        self._try_messages(item) if item.parts else self._try_collective(item)
        return item.done

    def _running_item(self, rank: int, comm: Comm) -> Item | None:
        item = self._running.get((rank, comm))
        return item if item and not item.done else None

    def _try_collective(self, item: Item) -> None:
        members = [
            member
            for rank in item.event.ranks
            if (member := self._running_item(rank, item.comm)) and not member.parts
        ]
        if len(members) == len(item.event.ranks):
            self._compare(members)
            self.done.append([(member.rank, member.event) for member in members])
            for member in members:
                member.done = True
            self._wake(item.event.ranks)

    def _try_messages(self, item: Item) -> None:
        begun = set()  # (way, peer) that have a part still under way: later ones wait
        for entry in item.parts:
            part, done = entry
            if done or (part.way, part.peer) in begun:
                continue
            if not (
                self._end_alone(item, part) if self.buffered else self._end_with_answer(item, part)
            ):
                begun.add((part.way, part.peer))
                continue
            entry[1] = True
            item.left -= 1
        item.done = item.left == 0

    def _end_alone(self, item: Item, part: Part) -> bool:
        peer = peer_of(part)
        if part.way == "send":
            self._sent[item.comm, item.rank, peer] += 1
            self._wake([peer])
            return True
        ready = self._sent[item.comm, peer, item.rank] > 0
        self._sent[item.comm, peer, item.rank] -= ready
        return ready

    def _end_with_answer(self, item: Item, part: Part) -> bool:
        other = self._running_item(peer_of(part), item.comm)
        if other is None:
            return False
        for theirs in other.parts:
            answer, done = theirs
            if (
                not done
                and answer.peer == item.rank
                and answer.way != part.way
                and theirs[0] is not part
            ):
                self._pair(item, part, other, answer)
                ends = [(item.rank, item.event), (other.rank, other.event)]
                self.done.append(ends if part.way == "send" else ends[::-1])
                theirs[1] = True
                other.left -= 1
                other.done = other.left == 0
                self._wake([other.rank])
                return True
        return False

    def _wake(self, ranks: Iterable[int]) -> None:
        for rank in ranks:
            if rank in self.traces and rank not in self._listed:
                self._listed.add(rank)
                self._todo.append(rank)

    # --- do the two sides agree -------------------------------------------------------------------

    def _compare(self, items: Sequence[Item]) -> None:
        pairs = (
            combinations(items, 2)
            if items[0].event.call in MOVES
            else ((items[0], item) for item in items[1:])
        )
        for mine, other in pairs:
            if apart := compare_calls(mine.event, other.event, mine.rank, other.rank):
                self.mismatches.append((mine, other, *apart))

    def _pair(self, item: Item, part: Part, other: Item, answer: Part) -> None:
        if apart := compare_messages(part, answer):
            self.mismatches.append((item, other, *apart))
