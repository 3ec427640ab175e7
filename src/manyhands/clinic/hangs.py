"""Watches the ranks of a script, and stops them if all that have not ended wait for too long.

Then a report says which rank waits for which, as for the cell of a cluster.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

from manyhands.clinic.clinic_limits import (
    LAST_LINES,
    OUTSIDE_AFTER_S,
    OUTSIDE_S,
    REPORT_PERIOD_S,
    STALE_S,
)
from manyhands.cluster.faults import explain
from manyhands.cluster.faults.kinds import Outcome
from manyhands.cluster.faults.source_lines import Places
from manyhands.cluster.on_rank import tf_config
from manyhands.cluster.on_rank.recorder import read
from manyhands.cluster.on_rank.signalled_stack import ScriptStacks

if TYPE_CHECKING:
    from manyhands.cluster.faults.kinds import Fault
    from manyhands.cluster.launch.run_script import Launch
    from manyhands.cluster.payloads import Exit

Report = dict[str, Any]  # where a rank is, as `reporter.Reporter` writes it


class HangWatcher:
    """Looks at the ranks' reports in a thread, between `with` and its end.

    `hang` is "hang" if it had to stop them; `reports` are those of that moment: a rank that is
    stopped later reports once more, out of the call that it was in; without a hang they are the
    last ones.
    """

    def __init__(self, notes: str, ranks: int, patience_s: float) -> None:
        self.notes, self.ranks, self.patience_s = notes, ranks, patience_s
        self.hang: Literal["hang"] | None = None
        self.reports: dict[int, Report] | None = None
        self._since: dict[int, tuple[tuple[Any, ...], float]] = {}
        self._over = threading.Event()
        self._outside = ScriptStacks(notes)
        # {rank: its last report, and what was seen of it since}
        self._seen: dict[int, tuple[Report, Report]] = {}
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> HangWatcher:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if not self.hang:
            self.reports = {
                rank: seen if report == own else report
                for rank, report in read_reports(self.notes, self.ranks).items()
                for own, seen in [self._seen.get(rank, ({}, {}))]
            }

    def _look(self) -> None:
        while not self._over.wait(REPORT_PERIOD_S):
            reports = {
                rank: self._also_from_outside(rank, report)
                for rank, report in read_reports(self.notes, self.ranks).items()
            }
            if len(reports) == self.ranks and self._all_wait(reports):
                self.hang, self.reports = "hang", reports
                Path(self.notes, "stop").touch()
                for rank in self._seen:
                    self._outside.end(rank)
                return

    def _also_from_outside(self, rank: int, report: Report) -> Report:
        """The report of a rank, or what is seen of it where it has not reported for long."""
        now = time.monotonic()
        if report["state"] != "runs" or now - report["time"] < OUTSIDE_AFTER_S:
            self._seen.pop(rank, None)
            return report
        before, seen = self._seen.get(rank, ({}, {}))
        if before != report or now - seen["time"] >= OUTSIDE_S:
            stands = self._outside.look(rank)
            if stands is None:
                return report
            seen = {**report, **stands, "time": now}
            self._seen[rank] = report, seen
        return seen

    def _all_wait(self, reports: Mapping[int, Report]) -> bool:
        now = time.monotonic()
        for rank, report in reports.items():
            stands = (report["state"], report["key"], report["blocked"])
            if self._since.get(rank, (None,))[0] != stands:
                self._since[rank] = (stands, now)
        open_ = [rank for rank, report in reports.items() if report["state"] == "runs"]
        return (
            bool(open_)
            and all(
                reports[rank]["blocked"]
                and now - self._since[rank][1] >= self.patience_s
                and now - reports[rank]["time"] < STALE_S
                for rank in open_
            )
            and all(now - since >= self.patience_s for _, since in self._since.values())
        )


def read_reports(notes: str, ranks: int) -> dict[int, Report]:
    """Read the last report of each rank that has written a whole one."""
    reports = {}
    for rank in range(ranks):
        try:
            reports[rank] = json.loads(Path(notes, f"where-{rank}.json").read_text())
        except (OSError, ValueError):
            continue
    return reports


def make_fault(
    notes: str,
    ranks: int,
    done: Launch,
    reason: Literal["hang", "limit"] | None,
    limit_s: float,
    reports: Mapping[int, Report] | None = None,
) -> Fault | None:
    """Make the `Fault` of a run, `done`; None if all is well.

    The run was stopped for `reason`, "hang" or "limit", or a rank raised or was killed in it.
    `reports`: where the ranks stood; by default their last ones.
    """
    reports = reports or read_reports(notes, ranks)
    errors = {
        rank: json.loads(Path(notes, f"error-{rank}.json").read_text())
        for rank in range(ranks)
        if os.path.exists(os.path.join(notes, f"error-{rank}.json"))
    }
    # but not by SIGTERM, which a launcher sends to all when one has failed, nor by the SIGKILL for
    # those that are deaf
    own = any(
        not any(text in error["evalue"] for text in explain.LOST_CONNECTION)
        for error in errors.values()
    )
    by_launcher = {-signal.SIGTERM, -signal.SIGKILL} if own else {-signal.SIGTERM}
    killed: dict[int, Exit] = {
        rank: {"status": -code}
        for rank, code in done.returncodes.items()
        if not reason
        and rank not in errors
        and code is not None
        and code < 0
        and code not in by_launcher
    }
    if not reason and not errors and not killed:
        return None
    outcome = Outcome(
        reason=reason or "finished", asked=sorted({*reports, *errors, *killed}), errors=errors
    )
    outcome.exits = killed
    outcome.results = {
        rank: {} for rank, at in reports.items() if at["state"] == "finished" and rank not in errors
    }
    outcome.counts = {
        rank: {"backward": at["backwards"]} for rank, at in reports.items() if "backwards" in at
    }
    outcome.notes = {rank: read(os.path.join(notes, f"calls-{rank}")) for rank in outcome.asked}
    standing = SimpleNamespace(
        reports=SimpleNamespace(newest=reports),
        struck=lambda rank: [],
        log_tail=lambda rank: done.output.get(rank, "").splitlines()[-LAST_LINES:],
    )
    where = explain.locate_ranks(outcome, standing, "", Places(), None, ranks)
    configs = {
        rank: tf_config.read(os.path.join(notes, f"tf-config-{rank}")) for rank in range(ranks)
    }
    fault = explain.make_fault(outcome, where, ranks, limit_s, tf_configs=configs)
    if fault:
        fault.text = fault.text.replace(
            "finished the cell", "reached the end of what the clinic runs"
        )
        for whose in ("The cell has", "the cell has", "of the cell"):
            fault.text = fault.text.replace(whose, whose.replace("cell", "script"))
    return fault
