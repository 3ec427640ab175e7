"""The half of unit 05's checks that runs on the ranks.

It is the learner's ping-pong, with real messages and a clock that is drawn.

The clock moves with the messages of its rank, and not with the time that passes, so a right answer
is right to the last digit on any machine.
"""

from __future__ import annotations

import random
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import torch.distributed as dist

from manyhands.checks.on_ranks import learners
from manyhands.checks.rank_tools import fresh_world

if TYPE_CHECKING:
    from collections.abc import Sequence

    from manyhands.checks.communication_costs.answers import PingPong, PingPongCase
    from manyhands.ledger.entry import Entry

SENDING = 0.3  # the part of a round trip that the clock gives to the sending


def cases(seed: int) -> list[PingPong]:
    """Return three ping-pongs, whose first round trips are slow.

    Each has its bytes (an odd number, which only tensors of single bytes have), peer, number of
    rounds, and seconds of each round trip.
    """
    chance = random.Random(f"ping-pong {seed}")
    drawn: list[PingPong] = []
    for number, peer in enumerate((1, chance.choice((2, 3)), 3)):
        warm_up, repeats = (
            (0, 1, 3)[number] + (number > 0) * chance.randint(0, 2),
            chance.randint(3, 6),
        )
        rounds_s = [
            chance.uniform(1, 2) * 10 ** -chance.uniform(2, 5) * (40 if k < warm_up else 1)
            for k in range(warm_up + repeats)
        ]
        drawn.append(
            {
                "n_bytes": 2 * chance.randint(0, 9999) + 1,
                "peer": peer,
                "repeats": repeats,
                "warm_up": warm_up,
                "rounds_s": rounds_s,
            }
        )
    return drawn


class Clock:
    """A clock whose seconds depend on how many messages this rank has sent and received."""

    def __init__(self, entries: Sequence[Entry], rounds_s: Sequence[float]) -> None:
        parts = [
            part for round_s in rounds_s for part in (SENDING * round_s, (1 - SENDING) * round_s)
        ]
        self._entries, self._at = entries, [0.0, *accumulate(parts)]
        self.readings = 0

    def __call__(self) -> float:
        """Return the seconds after the messages that this rank has sent and received so far."""
        self.readings += 1
        done = sum(entry.call in ("send", "recv") for entry in self._entries)
        return self._at[min(done, len(self._at) - 1)]


@fresh_world()
def ping_pong(name: str, seed: int) -> list[PingPongCase]:
    """Return for each case what the learner's function returns on this rank, and the messages.

    The messages are those that this rank has sent and received.
    """
    from manyhands.ledger import Ledger

    function = learners(name)
    answers: list[PingPongCase] = []
    for case in cases(seed):
        with Ledger() as ledger:
            clock = Clock(ledger.entries, case["rounds_s"])
            times_s = function(
                case["n_bytes"], case["repeats"], case["warm_up"], case["peer"], clock
            )
        dist.barrier()
        messages = [
            (entry.call, entry.peer, entry.bytes)
            for entry in ledger.entries
            if entry.call in ("send", "recv")
        ]
        others = sorted({entry.call for entry in ledger.entries} - {"send", "recv"})
        answers.append(
            {
                **case,
                "reported": _numbers(times_s),
                "readings": clock.readings,
                "messages": messages,
                "others": others,
            }
        )
    return answers


def _numbers(answer: Any) -> list[float] | None:
    """Return a list of floats, or None if the answer is not one."""
    try:
        return [float(number) for number in answer]
    except (TypeError, ValueError):
        return None
