"""An entry is judged in five runs, under seeds that nobody knows before.

Each run must reach the target, and the median of the scores counts.

Each judging draws new seeds. So whatever an entry has found out about them, and got out, is worth
nothing the next time; and the record can name them, so that anybody can judge the entry again,
under the same ones.
"""

from __future__ import annotations

import json
import platform
import secrets
import statistics
import time
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.hackathon.entry import entry_size
from manyhands.hackathon.judge import honesty
from manyhands.hackathon.judge.network import RefusedError
from manyhands.hackathon.judge.one_run import one_run
from manyhands.isolation.container_init import course
from manyhands.machine import crowding, processors
from manyhands.shared import signing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from manyhands.hackathon.challenges.challenge import Challenge
    from manyhands.hackathon.entry.entry_file import Entry
    from manyhands.hackathon.judge.judging_record import Record
    from manyhands.hackathon.judge.referee import Run
    from manyhands.hackathon.judge.sandboxes import Sandbox


RUNS, SEED_BYTES = 5, 16
TOO_LONG = (
    "The judging did not finish within {limit} s of this machine's time, which is the limit for all"
    " {runs} runs together (judging_s). The entries of the ladders take 5 to 80 s. Make your entry "
    "compute less, and do not let it sleep."
)


class Spent:
    """The time that a judging has taken, as on a machine with nothing else to do.

    Where processes share the processors, a second counts as much less as work takes longer. A
    sleeping entry makes no machine busy.
    """

    def __init__(self) -> None:
        self._total, self._last = 0.0, time.monotonic()

    def seconds(self) -> float:
        """The seconds since this was made, as many less as the machine was crowded."""
        now = time.monotonic()
        self._total, self._last = self._total + (now - self._last) / crowding(), now
        return self._total


def hidden_seeds() -> list[bytes]:
    """Draw a seed for each run, which nobody can know before."""
    return [secrets.token_bytes(SEED_BYTES) for _ in range(RUNS)]


def public_seeds(count: int = RUNS) -> list[bytes]:
    """Those on which everybody can try an entry."""
    return [b"public %d" % number for number in range(count)]


def judge(
    entry: Entry,
    challenge: Challenge,
    sandboxes: Sequence[Sandbox],
    seeds: Sequence[bytes],
    tell: Callable[[int, Run, list[list[str]]], object],
    look: Callable[[float], object] = lambda lasted_s: None,
) -> Record:
    """The record of a judging: a mapping.

    `tell(number, run, printed)` hears of each run when it has ended. `look` is called meanwhile
    with the seconds that it has taken (`Spent`); `JudgingStoppedError`, which it may raise, ends it
    without a record.

    The first run that gives no score ends it, and so does the challenge's limit of this machine's
    time.
    """
    spent = Spent()
    runs: list[Run] = []

    def look_on() -> None:
        look(spent.seconds())
        if spent.seconds() > challenge.judging_s:
            raise RefusedError(TOO_LONG.format(limit=challenge.judging_s, runs=len(seeds)))

    for number, seed in enumerate(seeds):
        run, printed = one_run(challenge, sandboxes, entry.source, seed, look_on)
        runs.append(run)
        tell(number, run, printed)
        if run.problem:
            break
    problem = runs[-1].problem
    return {
        "entry": entry.name,
        "sha256": entry.sha256,
        "challenge": challenge.name,
        "problem": problem,
        "score": (
            None
            if problem
            else round(statistics.median(getattr(run, challenge.score) for run in runs), 4)
        ),
        "unit": challenge.unit,
        "size": None if problem else entry_size.count(entry.source),
        "seeds_of": None,
        "flags": honesty.flags(runs),
        "seeds": [seed.hex() for seed in seeds],
        "runs": [run.as_record() for run in runs],
        "judged": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "machine": {"system": platform.platform(), "processors": processors()},
        "versions": {
            "python": platform.python_version(),
            "torch": version("torch"),
            "manyhands": version("manyhands"),
            "judge": course(Path(__file__).parents[1]),
        },
    }


def signed(record: Record, key: Ed25519PrivateKey) -> bytes:
    """The bytes of a signed record: JSON, and a line with the signature."""
    return signing.signed(json.dumps(record, indent=1).encode() + b"\n", key)
