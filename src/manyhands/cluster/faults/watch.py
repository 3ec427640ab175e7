"""The watch over a running cell: is it finished, hanging, failed, or still at work?

The ranks report where they stand a few times a second (on_rank/agent.py). A hang is: every unfinished rank has stood in
the same communication call for `patience_s`. A rank that computes, however slowly, is never part of a hang.
"""

import secrets
import threading
import time

import zmq

from manyhands.cluster.faults.kinds import Outcome

POLL_S = 0.005
AFTER_ERROR_S = 0.8  # ranks that stand in the same call for so long after another has failed are taken to wait for it
CONTROLLER_S = 0.1  # how often the watch looks whether the controller still runs
AFTER_DEATH_S = 0.5  # time for the survivors' own errors to arrive
STALE_S = 1.0  # a rank that has not reported for so long is at work: something in it holds Python's lock
OUTSIDE_AFTER_S, OUTSIDE_S = 2.0, 0.5  # after so long the watch looks at it from outside, and so often from then on


class Reports:
    """The newest report of each rank, received on a socket of this process. A token keeps strangers out."""

    def __init__(self, ip):
        self.token = secrets.token_hex(16)
        self._socket = zmq.Context.instance().socket(zmq.PULL)
        self._socket.linger = 0
        self.url = f"tcp://{ip}:{self._socket.bind_to_random_port(f'tcp://{ip}')}"
        self.clear()
        self._open = True
        self._thread = threading.Thread(target=self._receive, daemon=True, name="reports")
        self._thread.start()

    def clear(self):
        self.newest, self.since, self.heard = {}, {}, {}

    def _receive(self):
        while self._open:
            if not self._socket.poll(200):
                continue
            try:
                report = self._socket.recv_json(zmq.NOBLOCK)
                if report.pop("token") == self.token:
                    self._note(report)
            except (zmq.ZMQError, ValueError, KeyError, AttributeError):
                continue
        self._socket.close()

    def _note(self, report):
        rank, stands = report["rank"], (report["cell"], report["key"], report["blocked"])
        before = self.newest.get(rank)
        if before is None or (before["cell"], before["key"], before["blocked"]) != stands:
            self.since[rank] = time.monotonic()
        elif "notes" in before and "seen" not in before:
            report = {"notes": before["notes"], "names": before["names"], **report}
        self.newest[rank], self.heard[rank] = report, time.monotonic()

    def is_silent(self, rank, cell, started):
        """Whether a rank has not reported for long, in this cell, which began at `started`."""
        report = self.newest.get(rank)
        here = report is not None and report["cell"] == cell
        return here and "seen" in report or time.monotonic() - (self.heard[rank] if here else started) > OUTSIDE_AFTER_S

    def seen(self, rank, cell, stands):
        """Take in where a rank that does not report stands, as it was seen from outside."""
        self._note({"rank": rank, "cell": cell, "notes": [], "names": [], "seen": True, **stands})

    def notes(self, rank, cell):
        """The calls that a rank on another host has told of, oldest first."""
        report = self.newest.get(rank) or {}
        return report.get("notes", []) if report.get("cell") == cell else []

    def names(self, rank, cell):
        """The variables that a waiting rank has told of."""
        report = self.newest.get(rank) or {}
        return report.get("names", []) if report.get("cell") == cell else []

    def blocked_s(self, rank, cell):
        """For how long the rank has stood in the communication call that it stands in; 0 if it computes.

        A wait counts from its first report, but only once a second one has confirmed it and brought the rank's notes.
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

    def close(self):
        self._open = False
        self._thread.join(2)


class Watch:
    """Waits for the ranks of one cell. `pending` = {rank: Answer};
    `controller_runs()`: no answer comes without it."""

    def __init__(self, pending, cell, reports, exits, patience_s, limit_s, controller_runs=lambda: True,
                 look_at=lambda rank: None):
        self.pending, self.cell, self.reports, self.exits = dict(pending), cell, reports, exits
        self.asked, self.started = sorted(pending), time.monotonic()
        self.patience_s, self.limit_s = patience_s, limit_s
        self.outcome = Outcome()
        self._controller_runs, self._looked_at = controller_runs, time.monotonic()
        self._look_at, self._seen_at = look_at, 0.0  # from outside: see `SignalledStack`
        self._failed_at = None
        # when a rank last finished: those that waited for it may be through, and have not said so yet
        self._moved_at = 0.0

    def run(self):
        """Until every rank has finished, or nothing more can be expected.
        Never raises for what the learner's code does."""
        try:
            while not self._collect():
                elapsed = time.monotonic() - self.started
                self._look_from_outside()
                reason = self._verdict(elapsed)
                if reason:
                    self.outcome.reason = reason
                    break
                self._sleep()
        except KeyboardInterrupt:
            self.outcome.reason = "interrupted"
        return self.outcome

    @property
    def unfinished(self):
        return sorted(self.pending)

    def _sleep(self):
        next(iter(self.pending.values())).wait(POLL_S)

    def _collect(self):
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
                if rank in self.exits() or "EngineError" in type(error).__name__ or "died" in str(error):
                    self.outcome.exits[rank] = self.exits().get(rank, {"status": None, "memory": False})
                else:
                    self.outcome.errors[rank] = {"ename": type(error).__name__, "evalue": str(error), "lines": [],
                                                 "traceback": str(error), "memory": False}
                self._failed_at = self._failed_at or time.monotonic()
            if reply is not None:
                self._take(rank, reply)
        return not self.pending

    def _take(self, rank, reply):
        self.outcome.results[rank] = reply
        self.outcome.notes[rank] = reply.get("notes", [])
        if not reply["ok"]:
            self.outcome.errors[rank] = reply["error"]
            self._failed_at = self._failed_at or time.monotonic()

    def _look_from_outside(self):
        if time.monotonic() - self._seen_at < OUTSIDE_S:
            return
        self._seen_at = time.monotonic()
        for rank in self.pending:
            stands = self._look_at(rank) if self.reports.is_silent(rank, self.cell, self.started) else None
            if stands:
                self.reports.seen(rank, self.cell, stands)

    def _verdict(self, elapsed):
        """The reason to give up, or None."""
        if time.monotonic() - self._looked_at >= CONTROLLER_S:
            self._looked_at = time.monotonic()
            if not self._controller_runs():
                return "controller"
        blocked = [self.reports.blocked_s(rank, self.cell) for rank in self.pending]
        if min(blocked) >= self.patience_s and time.monotonic() - self._moved_at >= self.patience_s:
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

    def _computes(self, rank):
        report = self.reports.newest.get(rank)
        return report is not None and report["cell"] == self.cell and not report["blocked"]
