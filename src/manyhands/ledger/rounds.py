"""The clocks: which round each message belongs to.

The definition stands in `manyhands.ledger.account`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from manyhands.ledger import models

if TYPE_CHECKING:
    from manyhands.ledger.account import Account


def replay(accounts: Sequence[Account]) -> Clocks:
    """Go through the events of all ranks, and return the `Clocks`.

    Each rank's events are taken in its own order, none before what it had to wait for.
    """
    clocks = Clocks(accounts)
    while True:
        moved = [clocks.advance(rank) for rank in range(len(accounts))]
        if not any(moved) and not clocks.guess_one():
            return clocks


class Clocks:
    """`start`: collective -> the clock at which it starts; `of_message`: the round of a message."""

    def __init__(self, accounts: Sequence[Account]) -> None:
        self._accounts, n = accounts, len(accounts)
        self.rounds: dict[str, int] = {}  # of messages that were sent
        self.start: dict[str, int] = {}  # of collectives
        # (rank, message) whose sending no account tells of
        self._guessed: dict[tuple[int, str], int] = {}
        self._clock, self._last_sent, self._position = [0] * n, [0] * n, [0] * n
        events = [event[:2] for account in accounts for event in account["events"]]
        self._sent = {key for kind, key in events if kind == "sent"}
        # collective -> how many of the accounts have yet to enter it
        self._missing: dict[str, int] = {}
        for kind, key in events:
            if kind == "enter":
                self._missing[key] = self._missing.get(key, 0) + 1

    def of_message(self, account: Account, kind: str, key: str) -> int:
        """The round of a message in the account of its sender or receiver."""
        return self._guessed.get((account["rank"], key)) or self.rounds[key]

    def advance(self, rank: int) -> bool:
        """Take this rank's events as far as possible; whether there was one."""
        events, begun = self._accounts[rank]["events"], self._position[rank]
        while self._position[rank] < len(events) and self._step(
            rank, *events[self._position[rank]][:2]
        ):
            self._position[rank] += 1
        return self._position[rank] > begun

    def guess_one(self) -> bool:
        """No rank can go on: logs that do not belong together.

        Let the first one that stands still guess; whether there was one.
        """
        for rank, account in enumerate(self._accounts):
            if self._position[rank] < len(account["events"]):
                kind, key = account["events"][self._position[rank]][:2]
                if kind == "received":
                    self._guess(rank, key)
                else:
                    self._missing[key] = 0
                    return True
                self._position[rank] += 1
                return True
        return False

    def _step(self, rank: int, kind: str, key: str) -> bool:
        """Take one event, unless it has to wait for another rank."""
        if kind == "sent":
            self.rounds[key] = self._last_sent[rank] = self._clock[rank] + 1
        elif kind == "passed":
            self._reach(rank, self.rounds[key])
        elif kind == "received":
            if key in self.rounds:
                self._reach(rank, self.rounds[key])
            elif key in self._sent:
                return False
            else:
                self._guess(rank, key)
        elif kind == "enter":
            self.start[key] = max(self.start.get(key, 0), self._clock[rank])
            self._missing[key] -= 1
        elif self._missing[key] > 0:
            return False
        else:
            about = self._accounts[rank]["collectives"][key]
            self._reach(rank, self.start[key] + models.length(about["call"], len(about["ranks"])))
            self._last_sent[rank] = max(self._last_sent[rank], self._clock[rank])
        return True

    def _guess(self, rank: int, key: str) -> None:
        """The sender's account is not here: as late as what this rank sent last."""
        self._guessed[self._accounts[rank]["rank"], key] = guess = max(1, self._last_sent[rank])
        self._reach(rank, guess)

    def _reach(self, rank: int, round_number: int) -> None:
        self._clock[rank] = max(self._clock[rank], round_number)
