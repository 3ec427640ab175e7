"""How a cluster whose ranks are lost gets new ones, and an account of what that has lost."""

from __future__ import annotations

import symtable
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, NamedTuple

from manyhands.cluster.engines.reach import StartLimit
from manyhands.cluster.engines.runtime import Runtime
from manyhands.cluster.faults import explain
from manyhands.cluster.faults.fault_messages import SENTENCES
from manyhands.cluster.faults.kinds import Interrupted, Outcome
from manyhands.cluster.show import Progress

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from manyhands.cluster.check_arguments import Ranks
    from manyhands.cluster.faults.kinds import Fault
    from manyhands.cluster.payloads import Exit
    from manyhands.cluster.show import FaultDisplay

    class Restartable(Protocol):
        """What a Recovery reads and sets of its cluster."""

        names: list[str]  # of the variables on the ranks
        fault: Fault | None

        @property
        def world_size(self) -> int:
            """The number of ranks."""


class SetupCell(NamedTuple):
    """A cell marked --setup."""

    key: str
    code: str
    ranks: Ranks | None
    first_line: int


class Operations(NamedTuple):
    """What a Recovery has its cluster do."""

    running: Callable[[], Runtime]  # raises ClusterStopped where the cluster was stopped
    replace: Callable[[Runtime], None]  # from now on, this Runtime is the cluster's
    forget_calls: Callable[[], None]  # of what the old ranks had begun, nothing goes on
    run_setup: Callable[[SetupCell], tuple[Outcome, Fault | None]]


class Recovery:
    """Restarts the ranks of a cluster and runs its setup cells again.

    `sound` is true while every rank exists and waits for work. It turns false before anything is
    sent to a rank or is ended, and true again only after all ranks have answered or all setup cells
    have run: whatever stops the notebook in between, the next use of the cluster begins with a
    restart. `setups` are the setup cells in the order in which they run.

    `_lost` are the names of variables that went with their ranks, until a restart has come to its
    end and has reported them. `_unmade` are the setup cells whose names the ranks do not have,
    because they did not run to their end in the last restart.
    """

    def __init__(self, cluster: Restartable, operations: Operations, display: FaultDisplay) -> None:
        self.sound = True
        self.setups: list[SetupCell] = []
        self._cluster, self._operations, self._display = cluster, operations, display
        self._lost: set[str] = set()
        self._unmade: list[SetupCell] = []

    def add_setup(self, cell: SetupCell) -> None:
        """Run this cell after each restart, last, and instead of an earlier one with its key."""
        self.setups = [setup for setup in self.setups if setup.key != cell.key] + [cell]
        self._unmade = [setup for setup in self._unmade if setup.key != cell.key]

    def restart(self, fault: Fault | None = None) -> None:
        """Restart all ranks and print what that has lost, or add it to the text of `fault`.

        Raises Interrupted if the stop button ends it.
        """
        held = self._display.holds
        try:
            # otherwise the report is on the page already
            with Progress(SENTENCES["healing"]) if held else nullcontext():
                text = self._restart()
        except KeyboardInterrupt:
            interrupted = self._cluster.fault = Interrupted(SENTENCES["title unhealed"])
            self._display.show(interrupted)
            raise interrupted from None
        if fault is None or not held:
            print(text, flush=True)
        if fault is not None:
            fault.text += "\n" + text

    def _restart(self) -> str:
        """New ranks, then the setup cells; a text that says what came back and what did not."""
        cluster = self._cluster
        self._operations.running()
        self.sound = False
        self._lost |= set(cluster.names)
        cluster.names = []
        trouble: list[str] = []
        held_up: set[SetupCell] = set()
        # those that are left out
        self._unmade = [cell for cell in self._unmade if cell not in self.setups]
        self._renew()
        while not self._run_setups(trouble, held_up):
            self._renew()
        lines = [SENTENCES["healed"].format(n=cluster.world_size), *trouble]
        names = set(cluster.names)
        back, lost = sorted(self._lost & names), sorted(self._lost - names)
        if back or (self.setups and not trouble):
            lines.append(
                SENTENCES["brought back" if back else "ran again"].format(names=", ".join(back))
            )
        lines.append(SENTENCES["lost" if lost else "nothing lost"].format(names=", ".join(lost)))
        self.sound, self._lost = True, set()
        return "\n".join(lines)

    def _renew(self) -> None:
        """New ranks in the same cluster, or all processes anew where that fails.

        It fails where the controller was lost or does not answer.
        """
        limit = StartLimit()
        self._operations.forget_calls()
        old = self._operations.running()
        if old.can_renew():
            try:
                return old.renew(limit.half())
            except Exception as error:  # noqa: BLE001 - whatever fails, all ranks are then started anew
                print(SENTENCES["afresh"].format(error=error), flush=True)
        old.stop()
        self._operations.running()  # another thread may have stopped it meanwhile
        new = Runtime(old.cluster, old.frameworks)
        self._operations.replace(new)
        new.start(limit)

    def _run_setups(self, trouble: list[str], held_up: set[SetupCell]) -> bool:
        """Run the setup cells in their order until one fails, which `trouble` then reports.

        False if new ranks are needed once more. A cell that takes too long may be held up by a busy
        machine: it is tried twice, and is among `held_up` meanwhile.
        """
        for number, cell in enumerate(list(self.setups)):
            outcome, fault = self._operations.run_setup(cell)
            if fault is None:
                continue
            if outcome.reason == "controller":
                return False
            if outcome.reason in ("hang", "limit") and cell not in held_up:
                held_up.add(cell)
                return False
            trouble.append(SENTENCES["again failed"].format(error=fault))
            if needs_restart(outcome, fault):
                self.setups.remove(cell)  # it would do the same to the next ranks
                self._unmade.append(cell)
                trouble.append(SENTENCES["left out"])
                return False
            self._unmade += self.setups[number:]
            break
        return True

    def head_of_unmade(self, name: str) -> str | None:
        """The first line of the setup cell that should have made this name in the last restart.

        None where no setup cell makes it, or where that cell has run to its end.
        """
        return next(
            (
                cell.code.strip().splitlines()[0]
                for cell in self._unmade
                if assigns_name(cell.code, name)
            ),
            None,
        )


def assigns_name(code: str, name: str) -> bool:
    """Whether a cell gives a value to `name`, or imports it."""
    try:
        symbol = symtable.symtable(code, "cell", "exec").lookup(name)
    except (SyntaxError, KeyError):  # a cell with magics, or without the name
        return False
    return symbol.is_assigned() or symbol.is_imported()


def lost_before_a_cell(exits: dict[int, Exit], controller_runs: bool) -> Outcome | None:
    """The outcome of a cell that cannot begin, because ranks or the controller have ended before.

    None where all of them run.
    """
    if controller_runs and not exits:
        return None
    return Outcome(
        exits=exits,
        early=set(exits),
        reason="finished" if controller_runs else "controller",
        asked=sorted(exits),
        started=time.monotonic(),
    )


def needs_restart(outcome: Outcome, fault: Fault) -> bool:
    """Whether the ranks cannot go on after this."""
    return bool(
        outcome.exits
        or outcome.reason in ("hang", "limit", "controller")
        or fault.kind == "mismatch"
        or explain.secondary_errors(outcome)
        or (outcome.reason == "interrupted" and len(outcome.results) < len(outcome.asked))
    )
