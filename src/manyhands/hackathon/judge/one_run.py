"""One run of an entry.

Its ranks ask, and are answered until each has given its weights; then these are judged.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import torch

from manyhands.hackathon.judge.memory_referee import MemoryReferee
from manyhands.hackathon.judge.network import RefusedError
from manyhands.hackathon.judge.referee import Referee, Run

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from manyhands.hackathon.challenges.challenge import Challenge
    from manyhands.hackathon.judge.sandbox_keeper import OrderOfAll
    from manyhands.hackathon.judge.sandboxes import Sandbox


SIGNALS = {
    24: "used up its processor time",
    9: "was killed: it used up its processor time or the memory",
    11: "crashed (segmentation fault)",
    6: "crashed (abort)",
    31: "crashed (a forbidden system call)",
}


LOOK_S = 0.5  # between two questions whether a run must end


class JudgingStoppedError(Exception):
    """The judging does not go on, and there is no record of it; the message says why."""


def one_run(
    challenge: Challenge,
    sandboxes: Sequence[Sandbox],
    source: str,
    seed: bytes,
    look: Callable[[], object] = lambda: None,
) -> tuple[Run, list[list[str]]]:
    """(the `Run` of an entry's text under a seed, what its ranks printed).

    `look` is called while it runs; what it raises, `JudgingStoppedError` or `RefusedError`, ends the run.
    """
    run, referee = played(challenge, sandboxes, source, seed, look)
    return run, referee.said


def played(
    challenge: Challenge,
    sandboxes: Sequence[Sandbox],
    source: str,
    seed: bytes,
    look: Callable[[], object] = lambda: None,
) -> tuple[Run, Referee]:
    """(the `Run` of an entry's text under a seed, its referee, who has the weights)."""
    torch.set_num_threads(1)
    referee = (MemoryReferee if challenge.memory_bytes else Referee)(challenge, seed)
    order: OrderOfAll = {
        "ranks": challenge.ranks,
        "source": source,
        **referee.order(),
        "memory_mib": challenge.memory_mib,
        "cpu_s": challenge.processor_s,
    }
    sockets = [sandbox.begin({**order, "rank": rank}) for rank, sandbox in enumerate(sandboxes)]
    try:
        run = asyncio.run(_judged(referee, sockets, look))
    finally:
        ended = [sandbox.end() for sandbox in sandboxes]
    run.processor_s = tuple(ending["processor_s"] for ending in ended)
    for rank, ending in enumerate(ended):
        if ending["signal"] in SIGNALS and run.problem.startswith(f"Rank {rank} has ended"):
            run.problem = f"Rank {rank} {SIGNALS[ending['signal']]}."
    if not run.problem and run.accuracy < challenge.target:
        run.problem = (
            f"The target was not reached: the accuracy is {run.accuracy:.4f} instead of "
            f"{challenge.target} on the test's samples."
        )
    return run, referee


def told(challenge: Challenge, run: Run) -> str:
    """A run in a line."""
    if run.problem:
        return run.problem
    return (
        f"{getattr(run, challenge.score):.4g} {challenge.unit}, accuracy {run.accuracy:.3f}, "
        f"{max(run.gradients)} gradients, {sum(run.sent_bytes) / 1e6:.2f} MB in "
        f"{sum(run.messages)} messages"
    )


async def _judged(
    referee: Referee, sockets: Sequence[socket.socket], look: Callable[[], object]
) -> Run:
    referee.limit = asyncio.timeout(None)
    referee.until = asyncio.get_running_loop().time() + referee.challenge.run_s
    streams = [await asyncio.open_connection(sock=connection) for connection in sockets]
    ranks = [
        asyncio.create_task(referee.serve(rank, *stream)) for rank, stream in enumerate(streams)
    ]
    ended, looking = asyncio.gather(*ranks), asyncio.create_task(_look_on(look))
    try:
        async with referee.limit:
            referee.heard()
            await asyncio.wait((ended, looking), return_when=asyncio.FIRST_COMPLETED)
            await (ended if ended.done() else looking)
        return referee.result()
    except RefusedError as refused:
        return Run(str(refused))
    except TimeoutError:
        return Run(
            f"No rank has asked for anything in {referee.challenge.quiet_s} s of this machine's "
            f"time, or the run has not ended after {referee.challenge.run_s} s."
        )
    finally:
        for task in (*ranks, looking):
            task.cancel()
        await asyncio.gather(*ranks, looking, ended, return_exceptions=True)
        for _, writer in streams:
            writer.close()


async def _look_on(look: Callable[[], object]) -> NoReturn:
    while True:
        look()
        await asyncio.sleep(LOOK_S)
