"""Healing: new processes for the ranks of a Cluster, and a true account of what that has lost."""

from __future__ import annotations

import symtable
import threading
import time
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

from manyhands.cluster.engines.reach import StartLimit
from manyhands.cluster.engines.runtime import Runtime
from manyhands.cluster.faults import explain
from manyhands.cluster.faults.fault_messages import SENTENCES
from manyhands.cluster.faults.kinds import Interrupted, Outcome
from manyhands.cluster.on_rank import agent
from manyhands.cluster.show import Progress, show_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from manyhands.cluster.check_arguments import Ranks
    from manyhands.cluster.faults.kinds import Fault, Reason
    from manyhands.cluster.faults.source_lines import Places
    from manyhands.cluster.faults.unfinished import Unfinished


class Setup(NamedTuple):
    """A cell marked --setup."""

    key: str
    code: str
    ranks: Ranks | None
    first_line: int


class Healing:
    """The part of a Cluster that heals.

    `_sound` is true while every rank is there and waits for work. It turns false before anything is
    sent to a rank or is ended, and true again only after all ranks have answered or all setup cells
    have run: whatever stops the notebook in between, the next use of the cluster begins by healing.
    `_lost` are the names of variables that went with their ranks, until a healing has come to its
    end and has told of them. `_unmade` are the setup cells whose names the ranks do not have,
    because the last healing came to nothing with them. `_held` is the list that takes the faults
    whose reports are not to be shown now.
    """

    _held: list[Fault] | None = None
    _sound: bool
    _lost: set[str]
    _unmade: list[Setup]

    if TYPE_CHECKING:  # what it uses of the Cluster
        names: list[str]
        fault: Fault | None
        limit_s: float
        _setups: list[Setup]
        _places: Places
        _runtime: Runtime | None
        _unfinished: Unfinished

        @property
        def world_size(self) -> int: ...
        def _check_running(self) -> Runtime: ...
        def _execute(
            self,
            function: Callable[..., Any],
            args: tuple[Any, ...],
            ranks: Ranks | None,
            patience_s: float | None,
            limit_s: float | None,
            cell_file: str,
        ) -> Outcome: ...
        def _fault(
            self, outcome: Outcome, cell_file: str, limit_s: float | None
        ) -> Fault | None: ...
        def _finish(self, outcome: Outcome, cell_file: str, limit_s: float | None) -> None: ...

    @contextmanager
    def holding(self, reports: list[Fault]) -> Iterator[None]:
        """In this block, the report of a Fault is not shown: the Fault is appended to the list
        `reports` instead.
        """
        before, self._held = self._held, reports
        try:
            yield
        finally:
            self._held = before

    def _show(self, fault: Fault) -> None:
        if self._held is None:
            show_fault(fault)
        else:
            self._held.append(fault)

    def _use(self) -> None:
        """Before each use: what was left unsound is healed,
        and a rank or a controller that has died since the last one is told of.
        """
        self._check_running()
        if not self._sound:
            print(SENTENCES["heal first"])
            self._mend()
        runtime = self._check_running()
        runtime.keep_guard()
        exits = dict(runtime.exits())
        reason: Reason = "finished" if runtime.controller_runs() else "controller"
        if exits or reason == "controller":
            outcome = Outcome(
                exits=exits,
                early=set(exits),
                reason=reason,
                asked=sorted(exits),
                started=time.monotonic(),
            )
            self._finish(outcome, "", self.limit_s)

    def _mend(self, fault: Fault | None = None) -> None:
        """Heal, and tell of it, in the text of `fault` too."""
        try:
            # else the report is there
            with nullcontext() if self._held is None else Progress(SENTENCES["healing"]):
                text = self._heal()
        except KeyboardInterrupt:
            self.fault = Interrupted(SENTENCES["title unhealed"])
            self._show(self.fault)
            raise self.fault from None
        if fault is None or self._held is None:
            print(text, flush=True)
        if fault is not None:
            fault.text += "\n" + text

    def _heal(self) -> str:
        """New ranks, then the setup cells; a text that says what came back and what did not."""
        self._check_running()
        self._sound = False
        self._lost |= set(self.names)
        self.names = []
        trouble: list[str] = []
        held_up: set[Setup] = set()
        # those that are left out
        self._unmade = [cell for cell in self._unmade if cell not in self._setups]
        self._renew()
        while not self._run_setups(trouble, held_up):
            self._renew()
        lines = [SENTENCES["healed"].format(n=self.world_size), *trouble]
        back, lost = sorted(self._lost & set(self.names)), sorted(self._lost - set(self.names))
        if back or (self._setups and not trouble):
            lines.append(
                SENTENCES["brought back" if back else "ran again"].format(names=", ".join(back))
            )
        lines.append(SENTENCES["lost" if lost else "nothing lost"].format(names=", ".join(lost)))
        self._sound, self._lost = True, set()
        return "\n".join(lines)

    def _renew(self) -> None:
        """New ranks in the same cluster; where that fails, because the controller has gone or does
        not answer, everything is started afresh.
        """
        limit = StartLimit()
        self._unfinished.forget()
        old = self._check_running()
        if old.can_renew():
            try:
                return old.renew(limit.half())
            except Exception as error:  # noqa: BLE001 - whatever fails, all ranks are then started anew
                print(SENTENCES["afresh"].format(error=error), flush=True)
        old.stop()
        self._check_running()  # another thread may have stopped it meanwhile
        self._runtime = Runtime(old.cluster, old.frameworks)
        self._runtime.start(limit)

    def _run_setups(self, trouble: list[str], held_up: set[Setup]) -> bool:
        """Run the setup cells in their order until one fails, which `trouble` then tells of.

        False if new ranks are needed once more. A cell that takes too long may be held up by a busy
        machine: it is tried twice, and is among `held_up` meanwhile.
        """
        for number, cell in enumerate(list(self._setups)):
            cell_file = self._places.add(cell.code, cell.first_line)
            outcome = self._execute(agent.run_cell, (cell.code,), cell.ranks, None, None, cell_file)
            if outcome.reason == "interrupted":
                raise KeyboardInterrupt
            fault = self._fault(outcome, cell_file, self.limit_s)
            if fault is None:
                continue
            if outcome.reason == "controller":
                return False
            if outcome.reason in ("hang", "limit") and cell not in held_up:
                held_up.add(cell)
                return False
            trouble.append(SENTENCES["again failed"].format(error=fault))
            if is_broken(outcome, fault):
                self._setups.remove(cell)  # it would do the same to the next ranks
                self._unmade.append(cell)
                trouble.append(SENTENCES["left out"])
                return False
            self._unmade += self._setups[number:]
            break
        return True

    def _unmade_head(self, name: str) -> str | None:
        """The first line of the setup cell that would have made this name, had it run to its end in
        the last healing; or None.
        """
        return next(
            (cell.code.strip().splitlines()[0] for cell in self._unmade if makes(cell.code, name)),
            None,
        )


def makes(code: str, name: str) -> bool:
    """Whether a cell gives a value to `name`, or imports it."""
    try:
        symbol = symtable.symtable(code, "cell", "exec").lookup(name)
    except (SyntaxError, KeyError):  # a cell with magics, or without the name
        return False
    return symbol.is_assigned() or symbol.is_imported()


class Turn:
    """One thread at a time uses a cluster.

    Nobody waits for a turn, so the stop button can leave nobody waiting.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: int | None = None

    def __enter__(self) -> None:
        if self._thread not in (None, threading.get_ident()):
            raise RuntimeError(SENTENCES["busy"].format(name=self._name))
        self._thread = threading.get_ident()

    def __exit__(self, *exc: object) -> None:
        self._thread = None


def is_broken(outcome: Outcome, fault: Fault) -> bool:
    """Whether the ranks cannot go on after this."""
    return bool(
        outcome.exits
        or outcome.reason in ("hang", "limit", "controller")
        or fault.kind == "mismatch"
        or explain.secondary(outcome)
        or (outcome.reason == "interrupted" and len(outcome.results) < len(outcome.asked))
    )
