"""The queue of one rank: it hands messages over, takes in what comes, and waits with a time-out.

While a rank waits for anything, it takes in whatever comes from anybody. So a rank that sends never
waits for a peer that is itself waiting to send, and a late answer has its own key and is never
mistaken for another one.
"""

from __future__ import annotations

import marshal
import math
import os
import threading
import time
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from manyhands.comm.control import Control
from manyhands.comm.inline_limits import fits_inline
from manyhands.comm.message import (
    Message,
    fetch_tensors,
    from_bytes,
    measure,
    nbytes,
    payloads,
    to_bytes,
)
from manyhands.comm.wire import Line
from manyhands.machine import processors

if TYPE_CHECKING:
    import torch

    from manyhands.comm.control import Wait
    from manyhands.comm.facts import Facts
    from manyhands.comm.message import Key, Spec
    from manyhands.comm.wire import Head, LeavingWire, Unfinished, Wire

WINDOW = 16  # heads under way to one peer that it has not yet confirmed
# for a message, in one turn of a wait; where ranks share processors, others are let compute sooner
LOOKS, SHARED_LOOKS = 200, 8
# a wait first spins, for as long as suits the wire, then sleeps shortly, and after this time longer
SLOW_S = 0.05
# the key of a head that says only how many heads have been taken; not counted itself
CONFIRM = ("control", "confirm")

# see `manyhands.comm`: of (kind, peer, nbytes, call, seconds, identity)
observers: list[Callable[[str, int, int, str, float, tuple[Any, ...]], object]] = []
_all: weakref.WeakSet[Exchange] = weakref.WeakSet()


def current_wait() -> Wait | None:
    """What this process waits for now, a `control.Wait`, or None.

    For a thread that watches over it.
    """
    return next((exchange.waits[-1] for exchange in _all if exchange.waits), None)


class Exchange:
    """The messages of one rank to and from all others, over one wire.

    Numbers of ranks are global ones here.
    """

    number: int  # of the communicator over all ranks that it was made for, in this process

    def __init__(self, wire: Wire) -> None:
        self.wire, self.rank, self.size = wire, wire.rank, wire.size
        self._looks = LOOKS if self.size <= processors() else SHARED_LOOKS
        self.lines = [Line() for _ in range(self.size)]
        # (key, peer) -> messages that nobody has asked for yet
        self.inbox: defaultdict[tuple[Key, int], deque[Message]] = defaultdict(deque)
        self.gone: dict[int, str] = {}  # peer -> why nothing more comes from it
        # peer -> (call, facts, specs) of the last message of a call that came
        self.last_from: dict[int, tuple[str, Facts, list[Spec | None]]] = {}
        # what the threads of this rank wait for now, one of each, the latest last
        self.waits: list[Wait] = []
        # left to be sent or called by whoever comes by: (peer, key, call, facts), or a function
        self.notices: deque[tuple[int, Key, str, Facts] | Callable[[], None]] = deque()
        self._lock = threading.Lock()
        self.closed = False
        self.control = Control(self)
        _all.add(self)

    # --- sending ----------------------------------------------------------------------------------

    def post(
        self,
        messages: Sequence[tuple[int, Sequence[torch.Tensor | None]]],
        key: Key,
        call: str,
        facts: Facts,
    ) -> list[Unfinished]:
        """Hand over messages, a list of (peer, tensors).

        Small ones are copied; for the others `finish` must wait: a list of them is returned.
        """
        unfinished = []
        with self._lock:
            for peer, tensors in messages:
                if open_send := self._send(peer, key, call, tensors, facts):
                    unfinished.append(open_send)
        if self.notices:
            self._send_notices()
        return unfinished

    def finish(self, unfinished: Sequence[Unfinished], wait: Wait) -> None:
        """Wait until the peers have taken in what `post` has not finished."""
        for peer, number, taken in unfinished:
            if not taken(peer, number):
                self._until(lambda: taken(peer, number) or peer in self.gone, wait, peer, looks=1)  # noqa: B023 - at once
                if not taken(peer, number):
                    raise self.control.peer_gone(wait, peer)

    def notify(self, peer: int, key: Key, call: str, **facts: Any) -> None:
        """Leave a message without tensors to be sent.

        Never waits, so that a finaliser may call it.
        """
        self.notices.append((peer, key, call, cast("Facts", facts)))
        self._send_notices()

    def call_later(self, function: Callable[[], None]) -> None:
        """Have a function called when nothing is being sent or taken in.

        For finalisers, which come at any moment.
        """
        self.notices.append(function)
        self._send_notices()

    def is_busy(self) -> bool:
        """Whether something is being sent or taken in at this moment; for finalisers."""
        return self._lock.locked()

    def _send_notices(self) -> None:
        # else: whoever holds the lock comes by here after it
        while self.notices and self._lock.acquire(blocking=False):
            try:
                while self.notices:
                    notice = self.notices.popleft()
                    if callable(notice):
                        notice()
                    else:
                        peer, key, call, facts = notice
                        self._send(peer, key, call, (), facts)
            finally:
                self._lock.release()

    def _send(
        self, peer: int, key: Key, call: str, tensors: Sequence[torch.Tensor | None], facts: Facts
    ) -> Unfinished | None:
        """Send, or put into the outbox.

        If the call must not return at once: (peer, number, a function of both: whether it may).
        """
        if peer in self.gone:
            return peer, math.inf, self._left
        now = time.perf_counter() if observers and key[0] != "control" else None
        line = self.lines[peer]
        head: Head
        large: Sequence[torch.Tensor] = ()
        unfinished: Unfinished | None
        specs, total = measure(tensors)
        inline = fits_inline(total, len(tensors))
        if inline:
            head = key, call, facts, specs, [to_bytes(tensor) for tensor in tensors]
        else:
            head, large = (key, call, facts, specs, None), payloads(tensors)
        if line.outbox or line.sent - line.seen >= WINDOW:
            line.outbox.append((head, large))
            number = line.sent + len(line.outbox)
            unfinished = (
                (peer, number - WINDOW, self._confirmed) if inline else (peer, number, self._left)
            )
        else:
            self._hand_over(peer, line, head, large)
            unfinished = None if inline else (peer, line.sent, self._left)
        if now is not None:
            # now it is under way, and this takes nobody's time
            _observe("sent", peer, total, call, now, _identity(self.rank, key, facts), facts)
        return unfinished

    def _confirmed(self, peer: int, number: float) -> bool:
        return self.lines[peer].seen >= number

    def _left(self, peer: int, number: float) -> bool:
        """Whether the peer has taken this message and its large tensors."""
        line = self.lines[peer]
        if self.wire.confirms:
            return line.seen >= number
        return line.sent >= number and cast("LeavingWire", self.wire).left(peer, number)

    def _hand_over(self, peer: int, line: Line, head: Head, large: Sequence[torch.Tensor]) -> None:
        ready = large and [self.wire.payload(tensor) for tensor in large]
        raw = marshal.dumps((*head, line.got), 2)  # version 2: without a table of what occurs twice
        line.sent += 1  # now: what raises above has sent nothing
        line.reported = line.got
        try:
            self.wire.send_head(peer, line.sent, raw)
            for index, payload in enumerate(ready):
                self.wire.send_payload(
                    peer, line.sent, index, payload, last=index + 1 == len(ready)
                )
        except RuntimeError:  # gloo: the connection is closed
            self._lost(peer)

    def _confirm(self, peer: int, line: Line) -> None:
        """Tell the peer how many of its heads have been taken."""
        line.reported = line.got
        try:
            self.wire.send_head(peer, line.sent, marshal.dumps((CONFIRM, "", {}, (), (), line.got)))
        except RuntimeError:
            self._lost(peer)

    # --- taking in --------------------------------------------------------------------------------

    def pump(self) -> None:
        """Take in all that has come."""
        while self.pump_one():
            pass

    def pump_one(self, looks: int = 2) -> bool:
        """Take in one message, if one has come. Returns whether."""
        with self._lock:
            came = self.wire.poll(looks)
            if came is not None:
                self._take_in(*came)
        if self.notices:
            self._send_notices()
        return came is not None

    def _take_in(self, peer: int, raw: bytes | bytearray) -> None:
        key, call, facts, specs, small, seen = marshal.loads(raw)
        line = self.lines[peer]
        if seen > line.seen:
            line.seen = seen
            self.wire.taken(peer, seen)
            while line.outbox and line.sent - seen < WINDOW and peer not in self.gone:
                self._hand_over(peer, line, *line.outbox.popleft())
        if key == CONFIRM:
            return
        line.got += 1
        if small is not None:
            tensors = [*map(from_bytes, specs, small)]
        else:
            try:
                tensors = fetch_tensors(
                    specs,
                    self.wire.buffer,
                    lambda index, tensor: self.wire.fetch(
                        peer, line.got, index, self.wire.payload(tensor)
                    ),
                )
            except ConnectionError:
                self._lost(peer)
                return
        if line.got - line.reported >= WINDOW // 2 or (small is None and self.wire.confirms):
            self._confirm(peer, line)
        message = Message(peer, key, call, facts, tensors, specs)
        if key[0] == "control":
            self.control.take_in(message)
            return
        # not the message: it would keep its tensors, and with them the graph that they are part of
        self.last_from[peer] = call, facts, specs
        if key[0] == "gradient" and key[1] not in self.control.live:
            self.control.unclaimed_gradient(message)
        else:
            self.inbox[key, peer].append(message)

    def _lost(self, peer: int) -> None:
        self.gone.setdefault(peer, "its process is gone")
        self.wire.abandon(peer)

    # --- waiting ----------------------------------------------------------------------------------

    def take(self, peer: int, key: Key, wait: Wait) -> Message:
        """The next message with this key from this peer.

        Raises CommunicationError when it does not come within the wait's time-out.
        """
        slot, message = (key, peer), None
        while message is None:
            if not self.inbox.get(slot):
                self._until(
                    lambda: self.inbox.get(slot) or peer in self.gone, wait, peer, self._looks
                )
            message = self._claimed(slot)
            if message is None and peer in self.gone:
                raise self.control.peer_gone(wait, peer)
        if self.inbox and wait.kind == "collective":
            # what this peer sent for an earlier call came before this message
            self.control.look_for_strays(wait)
        if observers:
            _observe(
                "received",
                peer,
                nbytes(message.tensors),
                message.call,
                time.perf_counter(),
                _identity(peer, key, message.facts),
                message.facts,
            )
        return message

    def _claimed(self, slot: tuple[Key, int]) -> Message | None:
        """The next message of a slot in the inbox, or None.

        Locked: meanwhile another thread may take in, or want the same message.
        """
        with self._lock:
            box = self.inbox.get(slot)
            message = box.popleft() if box else None
            if not box:
                self.inbox.pop(slot, None)
        return message

    def _until(self, ready: Callable[[], object], wait: Wait, peer: int, looks: int) -> None:
        """Take in what comes until `ready()`.

        `looks`: how often to look for a message in one turn.
        """
        self.waits.append(wait)
        wait.peer, start = peer, None
        try:
            while True:
                came = self.pump_one(looks)
                if ready():
                    return
                if came:
                    continue
                if start is None:
                    start = wait.begin(peer)
                if wait.error or self.control.spoiled:
                    self.control.stop(wait)
                now = time.perf_counter()
                if now > wait.deadline:
                    answers = self.control.ask(wait)
                    if ready():
                        return
                    # another rank may have come to its end while this one asked
                    self.control.stop(wait)
                    raise self.control.timed_out(wait, answers)
                if now - start < self.wire.spin_s:
                    os.sched_yield()
                else:
                    self.control.look_for_strays(wait)
                    time.sleep(5e-5 if now - start < SLOW_S else 1e-3)
        finally:
            self.waits.remove(wait)

    # --- the end ----------------------------------------------------------------------------------

    def close(self, limit_s: float = 10.0) -> None:
        """Hand over what is still here, say goodbye, and leave."""
        if self.closed:
            return
        deadline = time.perf_counter() + limit_s
        while (
            any(line.outbox and peer not in self.gone for peer, line in enumerate(self.lines))
            and time.perf_counter() < deadline
        ):
            self.pump()
            time.sleep(1e-4)
        for peer in range(self.size):
            if peer != self.rank:
                self.notify(peer, ("control", "goodbye"), "")
        self.closed = True
        self.wire.close()


def _observe(
    kind: str,
    peer: int,
    size: int,
    call: str,
    seconds: float,
    identity: tuple[Any, ...],
    facts: Facts,
) -> None:
    if "freed" not in facts:  # that is sent by a finaliser, at any moment: no part of the call
        for observer in observers:
            observer(kind, peer, size, call, seconds, identity)


def _identity(sender: int, key: Key, facts: Facts) -> tuple[Any, ...]:
    """A message's name, the same on both sides."""
    if key[0] == "collective":
        _, name, slot, step = key
        return sender, name, *slot, step
    return facts["op"] if key[0] == "p2p" else (sender, "gradient", *key[1])
