"""The watch over a running cell: is it finished, hanging, failed, or still at work?

The ranks report where they stand a few times a second (on_rank/agent.py). A hang is: every
unfinished rank has stood in the same communication call for `hang_timeout_s`. A rank that computes,
however slowly, is never part of a hang.
"""

from __future__ import annotations

import secrets
import threading
import time
from typing import TYPE_CHECKING

import zmq

from manyhands.cluster.faults.kinds import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from manyhands.cluster.engines.engine_calls import Answer
    from manyhands.cluster.faults.kinds import Reason
    from manyhands.cluster.payloads import Exit, Note, Reply, Report, Stand

POLL_S = 0.005
# ranks that stand in the same call for so long after another has failed are taken to wait for it
AFTER_ERROR_S = 0.8
CONTROLLER_S = 0.1  # how often the watch looks whether the controller still runs
AFTER_DEATH_S = 0.5  # time for the survivors' own errors to arrive
# a rank that has not reported for so long is at work: something in it holds Python's lock
STALE_S = 1.0
# after so long the watch looks at it from outside, and so often from then on
OUTSIDE_AFTER_S, OUTSIDE_S = 2.0, 0.5


class Reports:
    """The newest report of each rank, received on a socket of this process.

    A token keeps strangers out.
    """

    def __init__(self, ip: str) -> None:
        self.token = secrets.token_hex(16)
        self._socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.PULL)
        self._socket.setsockopt(zmq.LINGER, 0)
        self.url = f"tcp://{ip}:{self._socket.bind_to_random_port(f'tcp://{ip}')}"
        self.clear()
        self._open = True
        self._thread = threading.Thread(target=self._receive, daemon=True, name="reports")
        self._thread.start()

    def clear(self) -> None:
        """Forget all reports, before a new cell."""
        self.newest: dict[int, Report] = {}
        self.since: dict[int, float] = {}
        self.heard: dict[int, float] = {}

    def _receive(self) -> None:
        while self._open:
            if not self._socket.poll(200):
                continue
            try:
                report: Any = self._socket.recv_json(zmq.NOBLOCK)
                if report.pop("token") == self.token:
                    self._note(report)
            except (zmq.ZMQError, ValueError, KeyError, AttributeError, TypeError):
                # of a stranger, it may be anything
                continue
        self._socket.close()

    def _note(self, report: Report) -> None:
        rank, stands = report["rank"], (report["cell"], report["key"], report["blocked"])
        before = self.newest.get(rank)
        if before is None or (before["cell"], before["key"], before["blocked"]) != stands:
            self.since[rank] = time.monotonic()
        elif "notes" in before and "seen" not in before:
            report = {"notes": before["notes"], "names": before["names"], **report}
        self.newest[rank], self.heard[rank] = report, time.monotonic()

    def is_silent(self, rank: int, cell: int, started: float) -> bool:
        """Whether a rank has not reported for long, in this cell, which began at `started`."""
        report = self.newest.get(rank)
        if report is None or report["cell"] != cell:
            return time.monotonic() - started > OUTSIDE_AFTER_S
        return "seen" in report or time.monotonic() - self.heard[rank] > OUTSIDE_AFTER_S

    def seen(self, rank: int, cell: int, stands: Stand) -> None:
        """Take in where a rank that does not report stands, as it was seen from outside."""
        self._note({"rank": rank, "cell": cell, "notes": [], "names": [], "seen": True, **stands})

    def notes(self, rank: int, cell: int) -> list[Note]:
        """The calls that a rank on a different host has reported, oldest first."""
        report = self.newest.get(rank)
        return report.get("notes", []) if report is not None and report.get("cell") == cell else []

    def names(self, rank: int, cell: int) -> list[str]:
        """The variables that a waiting rank has reported."""
        report = self.newest.get(rank)
        return report.get("names", []) if report is not None and report.get("cell") == cell else []

    def blocked_s(self, rank: int, cell: int) -> float:
        """For how many seconds the rank has been in its communication call; 0 if it computes.

        A wait counts from its first report, but only once a second one has confirmed it and brought
        the rank's notes.
        """
        report, now = self.newest.get(rank), time.monotonic()
        if (
            report is None
            or report["cell"] != cell
            or not report["blocked"]
            or "notes" not in report
            or now - self.heard[rank] > STALE_S
        ):
            return 0.0
        return now - self.since[rank]

    def close(self) -> None:
        """Stop the thread that receives the reports."""
        self._open = False
        self._thread.join(2)


class Watch:
    """Waits for the ranks of one cell.

    `pending` = {rank: Answer}; `controller_runs()`: no answer comes without it.
    """

    def __init__(
        self,
        pending: Mapping[int, Answer],
        cell: int,
        reports: Reports,
        exits: Callable[[], Mapping[int, Exit]],
        hang_timeout_s: float,
        limit_s: float,
        controller_runs: Callable[[], bool] = lambda: True,
        look_at: Callable[[int], Stand | None] = lambda rank: None,
    ) -> None:
        self.pending, self.cell, self.reports, self.exits = dict(pending), cell, reports, exits
        self.asked, self.started = sorted(pending), time.monotonic()
        self.hang_timeout_s, self.limit_s = hang_timeout_s, limit_s
        self.outcome = Outcome()
        self._controller_runs, self._looked_at = controller_runs, time.monotonic()
        self._look_at, self._seen_at = look_at, 0.0  # from outside: see `SignalledStack`
        self._failed_at: float | None = None
        # when a rank last finished: those that waited for it may be through, and have not said so
        # yet
        self._moved_at = 0.0

    def run(self) -> Outcome:
        """Until every rank has finished, or nothing more can be expected.

        Never raises for what the learner's code does.
        """
        try:
            while not self._collect():
                elapsed = time.monotonic() - self.started
                self._look_from_outside()
                reason = self._reason_to_end(elapsed)
                if reason:
                    self.outcome.reason = reason
                    break
                self._sleep()
        except KeyboardInterrupt:
            self.outcome.reason = "interrupted"
        return self.outcome

    @property
    def unfinished(self) -> list[int]:
        """The ranks that have not answered yet, in ascending order."""
        return sorted(self.pending)

    def _sleep(self) -> None:
        next(iter(self.pending.values())).wait(POLL_S)

    def _collect(self) -> bool:
        """Take in what has arrived; true when nothing is pending."""
        for rank, status in list(self.exits().items()):
            if rank in self.pending:
                del self.pending[rank]
                self.outcome.exits[rank] = status
                self._failed_at = time.monotonic()
        for rank, result in list(self.pending.items()):
            if not result.ready():
                continue
            del self.pending[rank]
            self._moved_at = time.monotonic()
            try:
                reply = result.get()
            except Exception as error:  # noqa: BLE001 - the engine is gone, or the reply could not be made (an unpicklable value)
                reply = None
                if (
                    rank in self.exits()
                    or "EngineError" in type(error).__name__
                    or "died" in str(error)
                ):
                    self.outcome.exits[rank] = self.exits().get(
                        rank, {"status": None, "memory": False}
                    )
                else:
                    self.outcome.errors[rank] = {
                        "ename": type(error).__name__,
                        "evalue": str(error),
                        "lines": [],
                        "traceback": str(error),
                        "memory": False,
                    }
                self._failed_at = self._failed_at or time.monotonic()
            if reply is not None:
                self._take(rank, reply)
        return not self.pending

    def _take(self, rank: int, reply: Reply) -> None:
        self.outcome.results[rank] = reply
        self.outcome.notes[rank] = reply.get("notes", [])
        if not reply["ok"] and (error := reply["error"]) is not None:
            self.outcome.errors[rank] = error
            self._failed_at = self._failed_at or time.monotonic()

    def _look_from_outside(self) -> None:
        if time.monotonic() - self._seen_at < OUTSIDE_S:
            return
        self._seen_at = time.monotonic()
        for rank in self.pending:
            stands = (
                self._look_at(rank)
                if self.reports.is_silent(rank, self.cell, self.started)
                else None
            )
            if stands:
                self.reports.seen(rank, self.cell, stands)

    def _reason_to_end(self, elapsed: float) -> Reason | None:
        """The reason to give up, or None."""
        if time.monotonic() - self._looked_at >= CONTROLLER_S:
            self._looked_at = time.monotonic()
            if not self._controller_runs():
                return "controller"
        blocked = [self.reports.blocked_s(rank, self.cell) for rank in self.pending]
        if (
            min(blocked) >= self.hang_timeout_s
            and time.monotonic() - self._moved_at >= self.hang_timeout_s
        ):
            return "hang"
        if self._failed_at is not None:
            waited = time.monotonic() - self._failed_at
            enough = AFTER_DEATH_S if self.outcome.exits else AFTER_ERROR_S
            if waited >= enough and min(blocked) >= min(enough, 0.5):
                return "hang"
            if (
                self.outcome.exits
                and waited >= 2 * AFTER_DEATH_S
                and not any(self._computes(rank) for rank in self.pending)
            ):
                return "hang"
        if elapsed > self.limit_s:
            return "limit"
        return None

    def _computes(self, rank: int) -> bool:
        report = self.reports.newest.get(rank)
        return report is not None and report["cell"] == self.cell and not report["blocked"]
