"""`Cluster`: many ranks, one notebook.

Starts them, runs cells on them under a watch, heals them, stops them.
"""

from __future__ import annotations

import atexit
import itertools
import os
import sys
import time
from typing import TYPE_CHECKING, TypeVar

from manyhands.cluster import check_arguments
from manyhands.cluster.check_arguments import FRAMEWORKS
from manyhands.cluster.engines import emulated
from manyhands.cluster.engines.runtime import Runtime
from manyhands.cluster.faults import explain, live_line
from manyhands.cluster.faults.fault_messages import SENTENCES, SENTENCES_CORE
from manyhands.cluster.faults.kinds import ClusterStopped
from manyhands.cluster.faults.picture import draw_cluster
from manyhands.cluster.faults.restart_lost_ranks import (
    Operations,
    Recovery,
    SetupCell,
    lost_before_a_cell,
    needs_restart,
)
from manyhands.cluster.faults.source_lines import Places
from manyhands.cluster.faults.under_way import WITHOUT_CALLS, UnderWay
from manyhands.cluster.faults.unfinished import Unfinished
from manyhands.cluster.faults.watch import Watch
from manyhands.cluster.host import machine_requirements
from manyhands.cluster.on_rank import agent
from manyhands.cluster.on_rank.variables import get_value, set_variables
from manyhands.cluster.show import FaultDisplay, Progress, show_outputs
from manyhands.cluster.turn import Turn

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Any

    from manyhands.cluster.check_arguments import Framework, Profile, Ranks
    from manyhands.cluster.faults.kinds import Fault, Outcome
    from manyhands.cluster.launch.command_lines import Launcher
    from manyhands.cluster.launch.run_script import Launch
    from manyhands.rehearsal.cells import CellRehearsal

T = TypeVar("T")
# when a cell's line may first be shown: of ranks that wait, and of others
LINE_AFTER_S, RUNNING_AFTER_S = 2.0, 3.0
_running: dict[str, Cluster] = {}  # by name, of this process
_PID = os.getpid()


class Cluster(UnderWay):
    """`nodes` x `ranks_per_node` processes that run the cells marked `%%px`.

    An engine of ipyparallel is a rank. On one machine the nodes are emulated: each has its own
    share of the devices, its own LOCAL_RANK numbering and its own folder. Returns when all ranks
    are ready and have imported `framework`.

    nodes, ranks_per_node : the shape of the world.
    framework : "torch", "tensorflow", "both" or None.
    profile : "local", "emulated", "mpi", "slurm", "ssh" or "containers"; by default the environment variable
        MANYHANDS_PROFILE, else "local".
    rate_mbit, delay_ms : emulated profile: Mbit/s of each node's link, each way (default 100), and the one-way delay
    between nodes (1).
    patience_s : a hang is reported when every unfinished rank has waited in one communication call for so long; by
    default 10 with gloo, 30 with NCCL.
    limit_s : the hard limit of one cell.
    threads_per_rank : compute threads of each rank on the CPU.
    memory_mib : a rank that grows over it is killed, as in a container (local and emulated profile).
    name : a kernel has one cluster for each name; a second one of the same name takes the place of the first.

    Raises ValueError for a shape that this machine cannot hold, and ClusterNotStarted with the end
    of the log if controller or ranks do not start.
    """

    def __init__(
        self,
        nodes: int = 1,
        ranks_per_node: int = 4,
        framework: Framework | None = "torch",
        *,
        profile: Profile | None = None,
        patience_s: float | None = None,
        limit_s: float = 120.0,
        threads_per_rank: int = 1,
        memory_mib: int | None = None,
        name: str = "cluster",
        rate_mbit: float | None = None,
        delay_ms: float | None = None,
    ) -> None:
        from manyhands.cluster import magic

        magic.register()  # if the start fails, `%%px` says that there is no cluster
        self.profile = profile or os.environ.get("MANYHANDS_PROFILE", "local")
        self.nodes, self.ranks_per_node, self.framework = nodes, ranks_per_node, framework
        self._hang_timeout_s = check_arguments.hang_timeouts(patience_s)
        self.limit_s = check_arguments.check_positive("limit_s", limit_s)
        self.threads_per_rank, self.memory_mib, self.name = threads_per_rank, memory_mib, name
        self.fault: Fault | None = None
        self.names: list[str] = []
        self._cells, self._places = itertools.count(1), Places()
        self._last_cell, self._unfinished = "", Unfinished(self._ask)
        self._display, self._turn = FaultDisplay(), Turn(name)
        self._recovery = Recovery(
            self,
            Operations(
                self._check_running, self._replace, self._unfinished.forget, self._run_setup
            ),
            self._display,
        )
        check_arguments.check_shape(
            nodes, ranks_per_node, framework, self.profile, threads_per_rank, memory_mib
        )
        check_arguments.check_python(self.world_size)
        if self.profile in ("local", "emulated"):
            machine_requirements.check_loopback()
        self.link = emulated.link(self.profile, nodes, rate_mbit, delay_ms)
        if name in _running:
            print(SENTENCES_CORE["replaced"].format(n=_running[name].world_size, name=name))
            _running[name].stop()
        self._runtime: Runtime | None = Runtime(self, FRAMEWORKS[framework])
        try:
            with Progress(SENTENCES_CORE["starting"].format(n=self.world_size)):
                self._runtime.start()
        except BaseException:
            self._runtime.stop()
            raise
        _running[name] = self
        if machine_requirements.without_errors():
            print(machine_requirements.SENTENCES["warnings"])
        magic.register(self)

    # ---------------------------------------------------------------- facts

    @property
    def world_size(self) -> int:
        """The number of ranks."""
        return self.nodes * self.ranks_per_node

    @property
    def ranks(self) -> list[int]:
        """The numbers of all ranks, in ascending order."""
        return list(range(self.world_size))

    @property
    def backend(self) -> str:
        """The backend of the process group that suits the devices.

        It is "nccl" where each rank has a GPU of its own, else "gloo".
        """
        if self._runtime is None:  # `getattr(cluster, "backend", None)` asks for it too
            raise AttributeError(SENTENCES_CORE["stopped"].format(name=self.name))
        return self._runtime.backend

    @property
    def patience_s(self) -> float:
        """How long all ranks may wait before that is a hang.

        Which backend real nodes have is known when they run.
        """
        return self._hang_timeout_s[self.backend]

    def __repr__(self) -> str:
        state = "" if self._runtime else ", stopped"
        return (
            f"Cluster(nodes={self.nodes}, ranks_per_node={self.ranks_per_node}, "
            f"framework={self.framework!r}, profile={self.profile!r}{state})"
        )

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        text = {"text/plain": repr(self)}
        if self._runtime is None or not self._runtime.can_renew():
            return text
        where = (
            self.profile
            if self.link is None
            else f"{self.profile}: {self.link.rate_mbit:g} Mbit/s, {self.link.delay_ms:g} ms"
        )
        svg = draw_cluster(self._runtime.layout(), where, self.backend, str(self.framework))
        return {**text, "image/svg+xml": svg}

    # ---------------------------------------------------------------- running

    def px(
        self,
        code: str,
        ranks: Ranks | None = None,
        setup: bool = False,
        patience_s: float | None = None,
        limit_s: float | None = None,
        first_line: int = 1,
        key: str | None = None,
    ) -> None:
        """Run the text `code` on all ranks, or on `ranks`, as a `%%px` cell does.

        Shows what they print, in rank order.

        setup=True: run it again after each healing; a later text with the same `key` takes its
        place. Raises a Fault (see faults/kinds.py) if the cell does not end well on every rank.
        """
        with self._turn:
            self._use()
            self._give_up(code, ranks)
            cell_file = self._last_cell = self._places.add(code, first_line)
            outcome = self._execute(agent.run_cell, (code,), ranks, patience_s, limit_s, cell_file)
            self._finish(outcome, cell_file, limit_s)
        if setup:  # only what has worked is run again, and what was run last comes last
            self._recovery.add_setup(SetupCell(key or code, code, ranks, first_line))

    def run(
        self,
        function: Callable[..., T],
        *args: Any,
        ranks: Ranks | None = None,
        patience_s: float | None = None,
        limit_s: float | None = None,
    ) -> list[T]:
        """Call `function(*args)` on all ranks, or on `ranks`; the results are in rank order.

        The function is sent by value; what it needs it must import itself. Raises a Fault as `px`
        does.
        """
        with self._turn:
            self._use()
            module = getattr(function, "__module__", None) or ""
            communicates, report_calls = (
                not module.startswith(WITHOUT_CALLS),
                not module.startswith("manyhands."),
            )
            if communicates:
                self._give_up(None, ranks, report_calls)
            outcome = self._execute(agent.call, (function, args), ranks, patience_s, limit_s, "")
            self._finish(outcome, "", limit_s, report_calls, communicates)
        return [outcome.results[rank]["value"] for rank in sorted(outcome.results)]

    def pull(self, name: str) -> list[Any]:
        """The values of a variable, or of an expression, on every rank, in rank order.

        An expression is evaluated with the rank's variables.
        """
        return self.run(get_value, name)

    def push(self, variables: dict[str, Any]) -> None:
        """Set variables on every rank: `cluster.push({"x": 3})`."""
        self.run(set_variables, variables)

    def launch(
        self,
        script: str | os.PathLike[str],
        *args: Any,
        with_: Launcher = "torchrun",
        nodes: int | None = None,
        ranks_per_node: int | None = None,
        **options: Any,
    ) -> Launch:
        """Run a script under a real launcher, on as many nodes and ranks as this cluster has.

        See manyhands.cluster.launch.run_script.
        """
        from manyhands.cluster.launch.run_script import launch

        return launch(
            script,
            *args,
            with_=with_,
            nodes=nodes or self.nodes,
            ranks_per_node=ranks_per_node or self.ranks_per_node,
            **options,
        )

    def rehearse(self) -> CellRehearsal:
        """Rehearse cells of torch for GPUs: `with cluster.rehearse():` around them.

        When the block ends, it reports what NCCL on GPUs would do with what the ranks have
        asked of torch.distributed in it; see manyhands.rehearsal. `%%px --rehearse` does one cell.
        """
        from manyhands.rehearsal.cells import CellRehearsal

        return CellRehearsal(self)

    def place(self, file: str, line: int) -> str:
        """A line of the learner's in words, such as "line 3 of this cell".

        Here, the cell that ran last is this one.
        """
        return self._places.named(file, line, self._last_cell)

    # ---------------------------------------------------------------- healing

    def heal(self) -> None:
        """Start new processes for all ranks, in the same cluster, and run the --setup cells again.

        All variables on the ranks are lost: a process group cannot go on with a part of its
        members.
        """
        with self._turn:
            self._check_running()
            self._recovery.restart()

    def holding(self, reports: list[Fault]) -> AbstractContextManager[None]:
        """In this block, a Fault is appended to the list `reports` instead of being shown."""
        return self._display.hold(reports)

    def stop(self) -> None:
        """End all processes of this cluster. Safe to call twice."""
        if self._runtime is not None:
            self._runtime.stop()
            self._runtime = None
        if _running.get(self.name) is self:
            del _running[self.name]

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    # ---------------------------------------------------------------- inside

    def _check_running(self) -> Runtime:
        if self._runtime is None:
            raise ClusterStopped(SENTENCES_CORE["stopped"].format(name=self.name))
        return self._runtime

    def _replace(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def _use(self) -> None:
        """Before each use: restart ranks that the last use left in an unknown state.

        Raises a Fault if a rank or the controller has died since.
        """
        self._check_running()
        if not self._recovery.sound:
            print(SENTENCES["heal first"])
            self._recovery.restart()
        runtime = self._check_running()
        runtime.keep_guard()
        lost = lost_before_a_cell(dict(runtime.exits()), runtime.controller_runs())
        if lost is not None:
            self._finish(lost, "", self.limit_s)

    def _run_setup(self, cell: SetupCell) -> tuple[Outcome, Fault | None]:
        """Run a setup cell on new ranks, without its outputs."""
        cell_file = self._places.add(cell.code, cell.first_line)
        outcome = self._execute(agent.run_cell, (cell.code,), cell.ranks, None, None, cell_file)
        if outcome.reason == "interrupted":
            raise KeyboardInterrupt
        return outcome, self._fault(outcome, cell_file, self.limit_s)

    def _execute(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        ranks: Ranks | None,
        patience_s: float | None,
        limit_s: float | None,
        cell_file: str,
    ) -> Outcome:
        targets = (
            self.ranks if ranks is None else check_arguments.check_ranks(ranks, self.world_size)
        )
        patience_s, limit_s = (
            check_arguments.check_seconds("patience_s", patience_s),
            check_arguments.check_seconds("limit_s", limit_s),
        )
        cell, started = next(self._cells), time.monotonic()
        runtime = self._check_running()
        runtime.reports.clear()
        self._recovery.sound = False
        try:
            pending = runtime.submit(targets, function, (*args, cell))
        except Exception:  # what cannot be sent has not been sent to any rank
            self._recovery.sound = True
            raise
        watch = Watch(
            pending,
            cell,
            runtime.reports,
            runtime.exits,
            patience_s or self.patience_s,
            limit_s or self.limit_s,
            controller_runs=runtime.controller_runs,
            look_at=runtime.look_at,
        )
        with Progress(lambda seconds: self._progress(watch, seconds, cell_file), LINE_AFTER_S):
            outcome = watch.run()
            if outcome.reason == "interrupted":
                runtime.interrupt(watch)
        outcome.cell, outcome.pending, outcome.asked, outcome.started = (
            cell,
            pending,
            targets,
            started,
        )
        self._unfinished.note(outcome.results)
        runtime.add_notes(outcome)
        outcome.notes = self._unfinished.shifted(outcome.notes)
        made = [reply["names"] for reply in outcome.results.values()] + [
            runtime.reports.names(rank, cell) for rank in targets
        ]
        self.names = sorted(set(self.names).union(*made))
        return outcome

    def _progress(self, watch: Watch, seconds: float, cell_file: str) -> str:
        """The line of a cell that has run for so long: what its ranks wait in, or that they run."""
        waiting = live_line.describe_waiting(watch, self._places, cell_file)
        running = SENTENCES_CORE["running"].format(n=len(watch.asked), seconds=f"{seconds:.0f}")
        return waiting or (running if seconds >= RUNNING_AFTER_S else "")

    def _fault(self, outcome: Outcome, cell_file: str, limit_s: float | None) -> Fault | None:
        runtime = self._check_running()  # another thread may have stopped it meanwhile
        where = explain.locate_ranks(
            outcome, runtime, cell_file, self._places, self.memory_mib, self.world_size
        )
        return explain.make_fault(
            outcome,
            where,
            self.world_size,
            limit_s or self.limit_s,
            self._recovery.head_of_unmade,
            {rank: runtime.tf_config(rank) for rank in self.ranks},
        )

    def _finish(
        self,
        outcome: Outcome,
        cell_file: str,
        limit_s: float | None,
        report_calls: bool = True,
        communicates: bool = True,
    ) -> None:
        fault = self._fault(outcome, cell_file, limit_s)
        self._recovery.sound = fault is None or not needs_restart(outcome, fault)
        show_outputs(outcome)
        unfinished = (
            self._say_unfinished(cell_file, report_calls)
            if communicates and outcome.pending
            else ""
        )
        overwritten = (
            explain.describe_overwritten(outcome.notes, cell_file, self._places)
            if report_calls
            else ""
        )
        remarks = "\n".join(filter(None, (overwritten, unfinished)))
        if fault is None:
            if remarks:
                print(remarks, flush=True)
            return
        fault.text += remarks and "\n" + remarks
        if not outcome.pending:
            fault.text += "\n" + SENTENCES["not run"]
        fault.reported_s = time.monotonic() - outcome.started
        self.fault = fault
        self._display.show(fault)  # first what happened, then the restart
        if not self._recovery.sound:
            before = time.monotonic()
            self._recovery.restart(fault)
            fault.healed_s = time.monotonic() - before
        raise fault


@atexit.register
def _stop_all() -> None:
    # a fork of the notebook's process, by a learner's hand: the cluster is not its own
    if os.getpid() != _PID:
        return
    for cluster in list(_running.values()):
        try:
            cluster.stop()
        except Exception as error:  # noqa: BLE001 - at exit: the guard ends what is left
            print("manyhands:", error, file=sys.stderr)
