"""One rank's post office: hands messages over, takes in what comes, and waits for one message with a time-out.

While a rank waits for anything, it takes in whatever comes from anybody. So a rank that sends never waits for a peer that is itself waiting
to send, and a late answer has its own key and is never mistaken for another one.
"""

import os
import threading
import time
import weakref
from collections import defaultdict, deque

from manyhands.comm.control import Control
from manyhands.comm.message import INLINE_BYTES, Message, measured, nbytes, pack, read_small, unpack

WINDOW = 16  # heads under way to one peer that it has not yet confirmed
SPIN_S, SLOW_S = 0.002, 0.05  # wait: first spin, then sleep shortly, then longer
CONFIRM = (("control", "confirm"), "", {}, (), True)  # says only how many heads have been taken; not counted itself

observers = []  # see `manyhands.comm`
_all = weakref.WeakSet()


def current_wait():
    """What this process waits for now, a `control.Wait`, or None; for whoever watches over it from another thread."""
    return next((exchange.waiting for exchange in _all if exchange.waiting is not None), None)


class Exchange:
    """The messages of one rank to and from all others, over one wire. Numbers of ranks are global ones here."""

    def __init__(self, wire):
        self.wire, self.rank, self.size = wire, wire.rank, wire.size
        self.inbox = defaultdict(deque)  # key -> messages that nobody has asked for yet
        self.gone = {}  # peer -> why nothing more comes from it
        self.last_from = {}  # peer -> (call, facts, specs) of the last message of a call that came
        self.waiting = None  # what this rank waits for: a control.Wait
        self.notices = deque()  # left to be sent or called by whoever comes by: (peer, key, call, facts), or a function
        self._outbox = defaultdict(deque)  # heads that the peer's window has no room for
        self._sent, self._seen = defaultdict(int), defaultdict(int)  # heads sent to a peer, and how many of them it has taken
        self._got, self._told = defaultdict(int), defaultdict(int)  # heads taken from a peer, and how many of them it knows of
        self._lock = threading.Lock()
        self.closed = False
        self.control = Control(self)
        _all.add(self)

    # --- sending ---------------------------------------------------------------------------------------------------------

    def post(self, peer, key, call, tensors, facts, wait):
        """Hand a message over. Small ones are copied; for larger ones it returns when the peer has taken them in."""
        self.post_all([(peer, key, call, tensors, facts)], wait)

    def post_all(self, messages, wait):
        """Hand over several messages (peer, key, call, tensors, facts) at once, then wait as `post` does."""
        for peer, *_ in messages:
            if peer in self.gone:
                raise self.control.peer_gone(wait, peer)
        with self._lock:
            pending = [one for one in [self._send(*message) for message in messages] if one]
        if self.notices:
            self._send_notices()
        for peer, number, taken in pending:
            if not taken(peer, number):
                self._until(lambda: taken(peer, number) or peer in self.gone, wait, peer)
                if not taken(peer, number):
                    raise self.control.peer_gone(wait, peer)

    def notify(self, peer, key, call, **facts):
        """Leave a message without tensors to be sent; never waits, so that a finaliser may call it."""
        self.notices.append((peer, key, call, facts))
        self._send_notices()

    def later(self, function):
        """Have a function called when nobody is at work here; for finalisers, which come at any moment."""
        self.notices.append(function)
        self._send_notices()

    def at_work(self):
        """Whether something is being sent or taken in at this moment; for finalisers."""
        return self._lock.locked()

    def _send_notices(self):
        while self.notices and self._lock.acquire(blocking=False):  # else: whoever holds the lock comes by here after it
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

    def _send(self, peer, key, call, tensors, facts):
        """Send, or put into the outbox. If the call must not return at once: (peer, number, a function of both: whether it may)."""
        if peer in self.gone:
            return None
        specs, total = measured(tensors)
        inline = total <= INLINE_BYTES
        full = [t for t in tensors if t is not None and t.numel()] if total else ()
        small, large = (full, ()) if inline else ((), full)
        now = time.perf_counter() if observers and key[0] != "control" else None
        head = (key, call, facts, specs, inline)
        if self._outbox[peer] or self._sent[peer] - self._seen[peer] >= WINDOW:
            self._outbox[peer].append((head, [t.clone() for t in small], large))
            number = self._sent[peer] + len(self._outbox[peer])
            after = (peer, number - WINDOW, self._confirmed) if inline else (peer, number, self._left)
        else:
            self._hand_over(peer, head, small, large)
            after = (peer, self._sent[peer], self._left) if large else None
        if now is not None:
            _observe("sent", peer, total, call, now, facts)  # now the message is under way, and this takes nobody's time
        return after

    def _confirmed(self, peer, number):
        return self._seen[peer] >= number

    def _left(self, peer, number):
        """Whether the peer has taken this message and its large tensors."""
        if self.wire.confirms:
            return self._seen[peer] >= number
        return self._sent[peer] >= number and self.wire.left(peer, number)

    def _hand_over(self, peer, head, small=(), large=()):
        if head is not CONFIRM:
            self._sent[peer] += 1
        self._told[peer] = self._got[peer]
        raw, payloads = pack((*head, self._got[peer]), small), [self.wire.payload(tensor) for tensor in large]
        try:
            self.wire.send_head(peer, self._sent[peer], raw)
            for place, payload in enumerate(payloads):
                self.wire.send_payload(peer, self._sent[peer], place, payload)
        except RuntimeError:  # gloo: the connection is closed
            self._lost(peer)

    # --- taking in -------------------------------------------------------------------------------------------------------

    def pump(self):
        """Take in all that has come."""
        with self._lock:
            for peer, raw in self.wire.poll():
                if raw is None:
                    self._lost(peer)
                    continue
                self._take_in(peer, raw)
            for peer, waiting in self._outbox.items():
                while waiting and self._sent[peer] - self._seen[peer] < WINDOW and peer not in self.gone:
                    self._hand_over(peer, *waiting.popleft())
        if self.notices:
            self._send_notices()

    def _take_in(self, peer, raw):
        (key, call, facts, specs, inline, seen), rest = unpack(raw)
        if seen > self._seen[peer]:
            self._seen[peer] = seen
            self.wire.taken(peer, seen)
        if key == CONFIRM[0]:
            return
        self._got[peer] += 1
        if inline:
            tensors = read_small(specs, rest)
        else:
            tensors = [one and self.wire.room(one) for one in specs]
            for place, tensor in enumerate(t for t in tensors if t is not None and t.numel()):
                self.wire.fetch(peer, self._got[peer], place, self.wire.payload(tensor))
        if self._got[peer] - self._told[peer] >= WINDOW // 2 or not inline and self.wire.confirms:
            self._hand_over(peer, CONFIRM)
        message = Message(peer, key, call, facts, tensors, specs)
        if key[0] == "control":
            self.control.take_in(message)
            return
        self.last_from[peer] = call, facts, specs  # not the message: it would keep its tensors, and with them the graph that they are part of
        if not self.control.dismiss(message):
            self.inbox[key, peer].append(message)

    def _lost(self, peer):
        self.gone.setdefault(peer, "its process is gone")
        self.wire.abandon(peer)

    # --- waiting ---------------------------------------------------------------------------------------------------------

    def take(self, peer, key, wait):
        """The next message with this key from this peer. Raises CommunicationError when it does not come within the wait's time-out."""
        box = self.inbox[key, peer]
        if not box:
            self._until(lambda: box or peer in self.gone, wait, peer)
            if not box:
                raise self.control.peer_gone(wait, peer)
        message = box.popleft()
        if not box:
            self.inbox.pop((key, peer), None)
        if self.inbox and wait.kind == "collective":
            self.control.look_for_strays(wait)  # what this peer sent for an earlier call came before this message
        if observers:
            _observe("received", peer, nbytes(message.tensors), message.call, time.perf_counter(), message.facts)
        return message

    def _until(self, ready, wait, peer):
        """Take in what comes until `ready()`."""
        before, self.waiting, wait.peer = self.waiting, wait, peer
        try:
            self.pump()
            if ready():
                return
            start = wait.begin(peer)
            while not ready():
                if wait.error or self.control.spoiled:
                    self.control.stop(wait)
                now = time.perf_counter()
                if now > wait.deadline:
                    answers = self.control.ask(wait)
                    if ready():
                        return
                    self.control.stop(wait)  # another rank may have come to its end while this one asked
                    raise self.control.timed_out(wait, answers)
                if now - start < SPIN_S:
                    os.sched_yield()
                else:
                    self.control.look_for_strays(wait)
                    time.sleep(5e-5 if now - start < SLOW_S else 1e-3)
                self.pump()
        finally:
            self.waiting = before

    # --- the end ---------------------------------------------------------------------------------------------------------

    def close(self, limit_s=10.0):
        """Hand over what is still here, say goodbye, and leave."""
        if self.closed:
            return
        deadline = time.perf_counter() + limit_s
        while any(self._outbox[peer] and peer not in self.gone for peer in range(self.size)) and time.perf_counter() < deadline:
            self.pump()
            time.sleep(1e-4)
        for peer in range(self.size):
            if peer != self.rank:
                self.notify(peer, ("control", "goodbye"), "")
        self.closed = True
        self.wire.close()


def _observe(kind, peer, size, call, seconds, facts):
    if "freed" not in facts:  # that is sent by a finaliser, at any moment: no part of the call
        for observer in observers:
            observer(kind, peer, size, call, seconds, facts["id"])
