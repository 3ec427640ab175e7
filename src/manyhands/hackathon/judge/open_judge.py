"""The judge without sandboxes: for one's own entry, on one's own machine, and in a lab.

Referee, network and clock are the judge's, and so are the scores. The ranks are plain processes:
they are forked before any data are drawn, may ask of the system only what `closed_calls` leaves,
and have the judge's limits of memory and time. But there are no walls around them: they see the
files and processes that their user sees. So a score from here counts for whoever has written the
entry, and in a lab, where the whole notebook has a sandbox of its own; it counts for nobody else. It
needs neither bubblewrap nor root.
"""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from manyhands.hackathon.challenges.challenge import CHALLENGES
from manyhands.hackathon.entry.entry_file import checked
from manyhands.hackathon.judge import closed_calls
from manyhands.hackathon.judge.judging import SEED_BYTES
from manyhands.hackathon.judge.one_run import played
from manyhands.hackathon.judge.referee import Run
from manyhands.hackathon.judge.sandboxes import ENVIRONMENT, NoSandboxesError, Sandbox, Sandboxes

if TYPE_CHECKING:
    from typing import Any

    from manyhands.hackathon.challenges.challenge import Challenge


PROGRAM = "from manyhands.hackathon.judge.open_judge import serve; serve()"
_PR_SET_DUMPABLE = 4


def why_not() -> str | None:
    """What this machine lacks for it, in a sentence; None if nothing."""
    if sys.platform == "linux" and closed_calls.known():
        return None
    return (
        "The judge needs Linux on x86_64 or aarch64, where it can restrict an entry's system calls."
    )


class OpenSandbox(Sandbox):
    """A rank's keeper, as a `Sandbox` has one, in a plain process."""

    def __init__(self) -> None:
        from manyhands.hackathon.judge import sandbox_keeper

        self.line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.said = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process
        self.keeper = os.fork()
        if self.keeper == 0:
            try:
                self.line.close()
                sandbox_keeper.main(theirs.detach())
            finally:
                os._exit(0)  # the judge has gone
        theirs.close()

    def close(self) -> None:
        """Let the keeper end, and wait for that."""
        self.line.close()  # the keeper reads its end, and goes
        os.waitpid(self.keeper, 0)


class OpenSandboxes(Sandboxes):
    """An `OpenSandbox` for each rank, forked from this process.

    The last is closed first: it holds the others' lines.
    """

    sandbox, why_none = OpenSandbox, staticmethod(why_not)


def serve() -> None:
    """In a process of its own: answers each line with an order by a line with what came of it."""
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # no rank looks into it
    with OpenSandboxes(max(challenge.ranks for challenge in CHALLENGES.values())) as sandboxes:
        for line in sys.stdin:
            order = json.loads(line)
            challenge = replace(CHALLENGES[order["challenge"]], **order["changed"])
            seed = (
                bytes.fromhex(order["seed"]) if order["seed"] else secrets.token_bytes(SEED_BYTES)
            )
            run, referee = played(challenge, sandboxes[: challenge.ranks], order["source"], seed)
            last = referee.weights[0]
            weights = last.hex() if last and order["weights"] and not run.problem else ""
            print(json.dumps([asdict(run), referee.said, weights]), flush=True)


class OpenJudge:
    """A judge in a process of its own, kept for the next run; a context manager.

    Raises `NoSandboxesError`.
    """

    def __enter__(self) -> OpenJudge:
        if why_not():
            raise NoSandboxesError(why_not())
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-c", PROGRAM],
            env=ENVIRONMENT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.stdout.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def run(
        self, challenge: Challenge, source: str, seed: bytes | None = None, **changed: Any
    ) -> tuple[Run, list[list[str]]]:
        """(the `Run` of an entry's text, what its ranks printed).

        Without a seed one is drawn that nobody knows. `changed`: numbers of the challenge that are
        to be others.
        """
        return self._asked(challenge, source, seed, changed, False)[:2]

    def weights(
        self, challenge: Challenge, source: str, seed: bytes, **changed: Any
    ) -> tuple[Run, bytes]:
        """(the `Run`, the weights at the end as bytes of float32).

        There are no weights where there is a problem.
        """
        run, _, weights = self._asked(challenge, source, seed, changed, True)
        return run, bytes.fromhex(weights)

    def _asked(
        self,
        challenge: Challenge,
        source: str,
        seed: bytes | None,
        changed: dict[str, Any],
        weights: bool,
    ) -> tuple[Run, list[list[str]], str]:
        order = {
            "challenge": challenge.name,
            "changed": changed,
            "source": checked(source),
            "seed": seed.hex() if seed else "",
            "weights": weights,
        }
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise NoSandboxesError("The judge's process has ended.")
        run, printed, given = json.loads(answer)
        return Run(**run), printed, given
