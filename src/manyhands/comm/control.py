"""What goes wrong between ranks: who is asked, what is said, and how the ranks meet again.

Nothing here runs as long as all goes well. When a time-out strikes, the rank asks the others where
they are; a rank that waits in a call answers, one that computes does not. Then the message that was
in the wrong place is dropped, and those whom it concerns are told.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from manyhands.comm.facts import Facts
from manyhands.comm.message import describe_message
from manyhands.comm.users_line import users_line

if TYPE_CHECKING:
    from manyhands.comm.calls import Calls
    from manyhands.comm.communicator import Communicator
    from manyhands.comm.facts import Answer, ControlFacts, Op, Slot
    from manyhands.comm.message import Message
    from manyhands.comm.message_queue import Exchange

ASK_S = 0.5  # how long an asked rank may take to answer
# steps of a collective call from this one on are of its backward, which may come much later
BACKWARD = 2
_numbers = itertools.count()


class CommunicationError(RuntimeError):
    """Ranks do not agree on what they do, one of them did not come in time, or it is gone.

    The communicator can be used again.
    """


@dataclass(eq=False)
class Wait:
    """What a rank waits for, as told to others: `kind` is "p2p", "collective" or "gradient"."""

    kind: str
    communicator: Calls
    call: str
    facts: Facts = field(default_factory=Facts)
    slot: Slot = (0, 0)  # of a collective call: its epoch and its number there
    step: int = 0
    peer: int | None = None  # global rank
    error: str | None = None  # set by another rank's message: stop waiting
    deadline: float = 0.0
    start: float = 0.0
    extended: bool = False
    number: int = -1

    def begin(self, peer: int) -> float:
        """Begin to wait for a global rank, and return the time.

        The deadline is `timeout_s` later.
        """
        self.peer, self.extended, self.number = peer, False, next(_numbers)
        self.start = time.perf_counter()
        self.deadline = self.start + self.communicator.timeout_s
        return self.start

    def __str__(self) -> str:
        """`recv from rank 1, tag 2`, in the ranks of the communicator."""
        text = self.call
        if self.kind == "p2p" or self.kind == "gradient":
            towards = "to" if self.call in ("send", "send_obj") else "from"
            text += f" {towards} rank {self.communicator.name_of(cast('int', self.peer))}"
        return text + "".join(
            f", {name} {self.facts[name]}" for name in ("tag", "root") if name in self.facts
        )


class Control:
    """The control messages of one exchange."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.communicators: dict[str, Communicator] = {}  # name -> communicator of this rank
        self.live: set[Op] = set()  # operations whose gradient this rank waits for
        self.receipts: set[Op] = set()  # operations whose received tensors are part of a graph here
        # operation -> why its gradient will not come / is not wanted
        self.refused: dict[Op, str] = {}
        self.freed: dict[Op, str] = {}
        # (communicator, slot, step) -> why a rank cannot do its part there
        self.spoiled: dict[tuple[str, Slot, int], str] = {}
        # peer -> (when, the wait in which it gave up)
        self.gave_up: dict[int, tuple[float, str]] = {}
        # an error that belongs to a call that has ended: raised by the next one
        self.pending: CommunicationError | None = None
        self._answers: dict[tuple[int, int], Answer] = {}

    # --- messages that come -----------------------------------------------------------------------

    def take_in(self, message: Message) -> None:
        """Do what a control message says; `message.key` names its kind."""
        getattr(self, f"_take_{message.key[1]}")(message.source, message.facts)

    def _take_goodbye(self, peer: int, facts: ControlFacts) -> None:
        self.exchange.gone.setdefault(peer, "it has ended")

    def _wait(self, concerned: Callable[[Wait], bool]) -> Wait | None:
        """This rank's latest wait, of any thread, for which `concerned(wait)`, or None."""
        return next((wait for wait in self.exchange.waits[::-1] if concerned(wait)), None)

    def _take_query(self, peer: int, facts: ControlFacts) -> None:
        wait = self._wait(
            lambda wait: wait.communicator.name == facts["communicator"]
        ) or self._wait(lambda _: True)
        if wait is not None and wait.kind != facts["kind"] and not wait.extended:
            # the asking rank will give up first
            wait.extended, wait.deadline = True, time.perf_counter() + wait.communicator.timeout_s
        answer: Answer = {"query": facts["query"], "text": None}
        if wait is not None:
            same = wait.communicator.name == facts["communicator"]
            text = (
                "waits in "
                f"{wait}{'' if same else f' on communicator {wait.communicator.name!r}'}{users_line()}"
            )
            answer.update(
                {"text": text, "kind": wait.kind, "number": wait.number, "on_me": wait.peer == peer}
            )
        self.report(peer, "answer", answer)

    def _take_answer(self, peer: int, facts: Answer) -> None:
        self._answers[peer, facts["query"]] = facts

    def _take_failed(self, peer: int, facts: ControlFacts) -> None:
        communicator = self.communicators.get(facts["communicator"])
        if communicator is None or facts["epoch"] <= communicator.epoch:
            return
        if facts["slot"]:
            self._refuse((communicator.name, *facts["slot"]), facts["text"])
        if communicator._calls < facts["number"]:  # this rank is not there yet
            communicator.stopped = communicator.stopped or (
                facts["number"],
                facts["epoch"],
                facts["text"],
            )
            return
        wait = self._wait(
            lambda wait: wait.communicator is communicator and wait.kind == "collective"
        )
        # an earlier call, which the failed rank has ended: this one ends it too
        if wait is not None and wait.slot[0] == facts["at"][0] and wait.slot < facts["at"]:
            communicator.stopped = communicator.stopped or (facts["at"][1], facts["epoch"], None)
            return
        communicator.begin_epoch(facts["epoch"])
        if wait is not None:
            wait.error = f"Rank {communicator.rank} was stopped in {wait}: {facts['text']}"

    def _take_gave_up(self, peer: int, facts: ControlFacts) -> None:
        self.gave_up[peer] = time.perf_counter(), facts["text"]

    def _take_spoiled(self, peer: int, facts: ControlFacts) -> None:
        name, slot, step = facts["communicator"], cast("Slot", facts["slot"]), facts["step"]
        if step < BACKWARD or (name, *slot) in self.live:
            self.spoiled[name, slot, step] = facts["text"]
        if step < BACKWARD and name in self.communicators:
            self.communicators[name].spoiled.add(slot)

    def _take_refused(self, peer: int, facts: ControlFacts) -> None:
        self._refuse(tuple(facts["op"]), facts["text"])

    def _take_withdrawn(self, peer: int, facts: ControlFacts) -> None:
        op = tuple(facts["op"])
        for (_, source), box in list(self.exchange.inbox.items()):
            for message in [m for m in box if source == peer and m.facts.get("op") == op]:
                box.remove(message)
        if op in self.receipts:
            self.freed[op] = facts["text"]

    def _take_freed(self, peer: int, facts: ControlFacts) -> None:
        op = tuple(facts["op"])
        if op in self.receipts or any(
            m.facts.get("op") == op for box in self.exchange.inbox.values() for m in box
        ):
            self.freed[op] = facts["text"]

    def _take_deadlock(self, peer: int, facts: ControlFacts) -> None:
        wait = self._wait(lambda wait: wait.number == facts["number"])
        if wait is not None:
            wait.error = facts["text"]

    def _refuse(self, op: Op, text: str) -> None:
        if op in self.live:
            self.refused[op] = text
            wait = self._wait(lambda wait: wait.kind == "gradient" and wait.facts.get("op") == op)
            if wait is not None:
                wait.error = text

    def report(self, peer: int, what: str, facts: ControlFacts | Answer) -> None:
        """Send a control message of the kind `what` to a global rank; never waits."""
        self.exchange.notify(peer, ("control", what), "", **facts)

    # --- gradients that nobody waits for ----------------------------------------------------------

    def unclaimed_gradient(self, message: Message) -> None:
        """A gradient has come for a node that is gone: the next call says so."""
        if message.facts.get("freed") or all(t is None for t in message.tensors):
            return
        forward = message.call.removesuffix(".backward")
        text = (
            f"A gradient came from global rank {message.source} for a {forward} of this rank whose "
            "result is not part of any graph here: it is lost. "
        )
        if forward == "send":
            self.pending = CommunicationError(
                text + "Give what send returned (the delegate) to recv as delegate_variable, "
                "join it to the loss by pseudo_connect, or call its backward(). "
                "If no gradient is wanted, send x.detach()."
            )
        else:
            warnings.warn(
                text + "Join the result to this rank's loss by pseudo_connect, "
                "so that backward passes through it.",
                RuntimeWarning,
                stacklevel=2,
            )

    # --- a wait that has ended badly --------------------------------------------------------------

    def ask(self, wait: Wait) -> dict[int, Answer | None]:
        """Ask those concerned where they are.

        Returns {global rank: answer}; who does not answer is not in a call.
        """
        query = next(_numbers)
        asked = (
            [m for m in wait.communicator.members if m != self.exchange.rank]
            if wait.kind == "collective"
            else [cast("int", wait.peer)]
        )
        for peer in asked:
            self.report(
                peer,
                "query",
                {"query": query, "kind": wait.kind, "communicator": wait.communicator.name},
            )
        deadline = time.perf_counter() + ASK_S
        while (
            time.perf_counter() < deadline
            and not wait.error
            and any(
                (peer, query) not in self._answers
                for peer in asked
                if peer not in self.exchange.gone
            )
        ):
            self.exchange.pump()
            time.sleep(1e-3)
        return {peer: self._answers.pop((peer, query), None) for peer in asked}

    def timed_out(self, wait: Wait, answers: dict[int, Answer | None]) -> CommunicationError:
        """The error of a wait whose time is over; puts the ranks in order again."""
        communicator, me = wait.communicator, wait.communicator.rank
        head = (
            f"Rank {me} waited {communicator.timeout_s:g} s in {wait}{users_line()}, "
            f"on communicator {communicator.name!r}."
        )
        lines = [
            head,
            *(
                f"  Rank {communicator.name_of(peer)} {self._where(wait, peer, answer)}."
                for peer, answer in sorted(answers.items())
            ),
        ]
        if wait.kind == "collective":
            lines.append(
                "  All ranks of a communicator must make the same calls in the same order."
            )
        elif wait.kind == "gradient":
            lines.append(self._gradient(wait))
        else:
            lines += self._tags(wait)
        return self.fail(wait, "\n".join(line for line in lines if line), answers)

    def stop(self, wait: Wait) -> None:
        """Raise if a message of another rank has ended this wait."""
        if wait.error is None and wait.kind == "collective":
            text = self.spoiled.pop((wait.communicator.name, wait.slot, wait.step), None)
            wait.error = text and f"Rank {wait.communicator.rank} is in {wait}: {text}"
        if wait.error:
            raise CommunicationError(wait.error)

    def look_for_strays(self, wait: Wait) -> None:
        """Raise if this rank has made a different call than a rank whose message has come.

        Such a message is of a collective call that this rank has made without taking it.
        """
        communicator = wait.communicator
        now = communicator.epoch, communicator._calls + (wait.kind != "collective")
        for (key, source), box in list(self.exchange.inbox.items()):
            if (
                box
                and key[0] == "collective"
                and key[1] == communicator.name
                and key[2] < now
                and key[3] < BACKWARD
            ):
                if key[2][0] < communicator.epoch or key[2] in communicator.spoiled:
                    del self.exchange.inbox[key, source]
                    continue
                mine: Wait | str | None = communicator.last_call
                mine = mine if isinstance(mine, Wait) and mine.slot == key[2] else "another call"
                if isinstance(mine, Wait) and (mine.call, mine.facts.get("root")) == (
                    box[0].call,
                    box[0].facts.get("root"),
                ):
                    del self.exchange.inbox[key, source]  # the same call: it has ended otherwise
                    continue
                text = (
                    f"Rank {communicator.rank} called {mine}, but rank "
                    f"{communicator.name_of(source)} called {box[0]} in its place. All ranks must "
                    "make the same calls in the same order, with the same root."
                )
                self._refuse((communicator.name, *key[2]), text)
                raise self.fail(
                    Wait("collective", communicator, box[0].call, peer=source), text, slot=key[2]
                )

    def fail(
        self,
        wait: Wait,
        text: str,
        answers: Mapping[int, Answer | None] | tuple[()] = (),
        slot: Slot | None = None,
    ) -> CommunicationError:
        """Tell the others that this rank has stopped waiting; returns the error to raise.

        `slot`: of the call in which ranks do not agree.
        """
        # the peer is None in collective calls only, which do not use it
        communicator, peer = wait.communicator, cast("int", wait.peer)
        if wait.kind == "collective":
            facts: ControlFacts = {
                "communicator": communicator.name,
                "epoch": communicator.epoch + 1,
                "text": text,
                "at": wait.slot,
                "slot": slot,
                "number": communicator._calls if slot else 0,
            }
            for member in communicator.members:
                if member != self.exchange.rank:
                    self.report(member, "failed", facts)
            communicator.begin_epoch(facts["epoch"])
        elif wait.kind == "gradient":
            self.report(peer, "withdrawn", {"op": wait.facts["op"], "text": text})
        elif wait.call.startswith("recv"):
            for message in self.unclaimed(wait)[:1]:
                self.exchange.inbox[message.key, peer].remove(message)
                if "op" in message.facts:
                    self.report(peer, "refused", {"op": message.facts["op"], "text": text})
        elif "op" in wait.facts:
            self.report(peer, "withdrawn", {"op": wait.facts["op"], "text": text})
        for member in communicator.members if wait.kind != "collective" else ():
            if member != self.exchange.rank:
                self.report(member, "gave_up", {"text": f"{wait}{users_line()}"})
        answer = answers and answers.get(peer)
        if answer and answer.get("on_me") and answer["kind"] == wait.kind == "p2p":
            self.report(peer, "deadlock", {"number": answer["number"], "text": text})
        return CommunicationError(text)

    def peer_gone(self, wait: Wait, peer: int) -> CommunicationError:
        """The error of a wait whose peer will never send, because it has ended.

        The other ranks hear of it.
        """
        wait.peer = peer
        text = (
            f"Rank {wait.communicator.rank} cannot go on in {wait}{users_line()}: rank "
            f"{wait.communicator.name_of(peer)} will not arrive, because "
            f"{self.exchange.gone[peer]}."
        )
        return self.fail(wait, text)

    def _where(self, wait: Wait, peer: int, answer: Answer | None) -> str:
        last = self.exchange.last_from.get(peer)
        if answer is not None and answer["text"]:
            there: str = answer["text"]
            return there
        if peer in self.exchange.gone:
            return f"will not arrive: {self.exchange.gone[peer]}"
        if self.gave_up.get(peer, (0.0,))[0] > wait.start:
            return f"waited in {self.gave_up[peer][1]} and has given up"
        return "is in no call now: it computes, waits for something else, or has ended" + (
            f" (the last message from it was {describe_message(*last)})" if last else ""
        )

    def _gradient(self, wait: Wait) -> str:
        return (
            "  The gradient comes when the other rank's backward passes through what it received. "
            "Is that part of its loss, does it call backward(), and is its graph connected "
            "(delegate_variable, pseudo_connect)?"
        )

    def unclaimed(self, wait: Wait) -> list[Message]:
        """Messages of the peer, on the same communicator, that nobody has asked for."""
        name = wait.communicator.name
        return sorted(
            (
                m
                for (key, source), box in self.exchange.inbox.items()
                if source == wait.peer and key[:2] == ("p2p", name)
                for m in box
            ),
            key=lambda m: m.facts["op"],
        )

    def _tags(self, wait: Wait) -> list[str]:
        if not wait.call.startswith("recv"):
            return [
                "  A large message is sent when the other rank receives it, whereas small messages "
                "are kept there until then, 16 of them at most."
            ]
        unclaimed = self.unclaimed(wait)
        lines = [
            f"  It has sent {message}, which no rank has asked for." for message in unclaimed[:4]
        ]
        return (
            [*lines, "  Do the tags differ? The first of these messages is dropped."]
            if lines
            else ["  Nothing from it is waiting here."]
        )
