"""Watches the ranks of a rehearsed script, and ends them where all wait for long.

They have to wait in communication, all that have not ended. The report says which rank waits for
which, as for the cell of a cluster.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

from manyhands.cluster.faults import explain, tf_tasks
from manyhands.cluster.faults.fault_messages import SENTENCES
from manyhands.cluster.faults.kinds import Outcome
from manyhands.cluster.faults.source_lines import Places
from manyhands.cluster.on_rank import tf_config
from manyhands.cluster.on_rank.signalled_stack import ScriptStacks
from manyhands.rehearsal.rehearsal_limits import PATIENCE_S, PERIOD_S, QUIET_S

if TYPE_CHECKING:
    from manyhands.cluster.faults.kinds import Fault
    from manyhands.cluster.payloads import Stand


class HangWatch:
    """Looks at the ranks, between `with` and its end.

    `hung`: it had to end them; `stands`, {rank: where it stood}, as `SignalledStack.look` has it.
    """

    def __init__(self, folder: str, ranks: int, patience_s: float = PATIENCE_S) -> None:
        self.folder, self.ranks, self.patience_s, self.hung = folder, ranks, patience_s, False
        self.stands: dict[int, Any] = {}
        self._outside, self._over = ScriptStacks(folder), threading.Event()
        # of each rank: where it stands, as `_look_at` says; since when
        self._since: dict[int, tuple[Any, float]] = {}
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> HangWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(PERIOD_S):
            now = time.monotonic()
            for rank in range(self.ranks):
                stands = self._look_at(rank)
                if rank not in self._since or self._since[rank][0] != stands:
                    self._since[rank] = stands, now
            running = [rank for rank, (stands, _) in self._since.items() if stands != "ended"]
            if (
                running
                and all(now - since >= self.patience_s for _, since in self._since.values())
                and all(_waits(self._since[rank][0]) for rank in running)
            ):
                self.hung, self.stands = True, {rank: self._since[rank][0] for rank in running}
                for rank in running:
                    self._outside.end(rank)
                return

    def _look_at(self, rank: int) -> Stand | Literal["ended"] | None:
        """ "ended", None where the rank is at work or has not begun, or where it stands."""
        if Path(self.folder, f"{rank}.end").exists():
            return "ended"
        try:
            quiet_s = time.time() - Path(self.folder, f"{rank}.trace").stat().st_mtime
        except OSError:
            return None
        return self._outside.look(rank) if quiet_s > QUIET_S else None

    def make_fault(self) -> Fault:
        """The `Hang` of the ranks that were ended."""
        outcome = Outcome(reason="hang", asked=list(range(self.ranks)))
        outcome.results = {rank: {} for rank in outcome.asked if rank not in self.stands}
        reports = {rank: {"cell": 0, **stands} for rank, stands in self.stands.items()}
        standing = SimpleNamespace(reports=SimpleNamespace(newest=reports))
        where = explain.locate_ranks(outcome, standing, "", Places(), None, self.ranks)
        fault = explain.make_fault(outcome, where, self.ranks, 0, tf_configs=self._tf_configs())
        assert fault is not None  # a hang is one
        fault.text = fault.text.replace("finished the cell", "ended").replace(
            "of the cell", "of the script"
        )
        return fault

    def cause_of(self, errors: Mapping[int, str]) -> str:
        """What TensorFlow's tasks have to do with errors, {rank: text}; or ""."""
        for text in errors.values():
            if cause := tf_tasks.cause_of_mismatch({"evalue": text}):
                return "\n".join(
                    (SENTENCES["title mismatch"], SENTENCES["cause"].format(cause=cause))
                )
            if tf_tasks.TAKEN in text:
                same = tf_tasks.cause_of_same_task(self._tf_configs())
                return SENTENCES["cause"].format(
                    cause=same.text if same else SENTENCES["address taken"]
                )
        return ""

    def _tf_configs(self) -> dict[int, Any]:
        return {
            rank: tf_config.read(str(Path(self.folder, f"tf-config-{rank}")))
            for rank in range(self.ranks)
        }


def _waits(stands: Any) -> bool:
    return bool(stands) and stands != "ended" and stands["blocked"]
