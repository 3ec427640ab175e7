"""Runs the script in a copy of its repository, under a launcher, observed and watched.

The observers are on each rank, the watch is in this process.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyhands.clinic.clinic_limits import STEPS, TIMEOUT_S
from manyhands.clinic.hangs import HangWatcher, make_fault
from manyhands.cluster.host.gpu_assignment import gpu_ids
from manyhands.cluster.launch.as_main import STAND_IN, substituted
from manyhands.cluster.launch.run_script import LaunchError, launch
from manyhands.cluster.launch.script_copy import copied
from manyhands.gpu_stand_in.kernels import explain_gpu_error
from manyhands.own_environment import failed_import
from manyhands.shared.default_timeouts import HANG_TIMEOUT_S

if TYPE_CHECKING:
    from manyhands.clinic.records import AverageRecord, Cost, OneProcess, RankRecord
    from manyhands.cluster.faults.kinds import Fault
    from manyhands.cluster.launch.command_lines import Launcher
    from manyhands.cluster.launch.run_script import Launch
    from manyhands.cluster.launch.script_copy import Place
    from manyhands.rehearsal.rehearse_command import Rehearsal

RANK_PROGRAM = str(Path(__file__).with_name("rank_program.py"))


@dataclass
class Visit:
    """What came of the run.

    `seen`, `cost`, `errors`: by rank, of the ranks that have written them.
    """

    script: str
    ranks: int
    launcher: str
    arguments: list[str] = field(default_factory=list)
    seen: dict[int, RankRecord] = field(default_factory=dict)
    cost: dict[int, Cost] = field(default_factory=dict)
    errors: dict[int, dict[str, Any]] = field(default_factory=dict)
    # by rank: how ranks that train alone put together what they learn
    averages: dict[int, AverageRecord] = field(default_factory=dict)
    one_process: OneProcess | None = None  # what the rows of all ranks gave in one process
    fault: Fault | None = None  # the Fault of ranks that wait forever
    output: dict[int, str] = field(default_factory=dict)
    codes: dict[int, int | None] = field(default_factory=dict)
    timed_out: bool = False
    launcher_message: str = ""  # of the launcher, where no rank began
    # paths of what the copy of the script's repository lacks
    left_out: list[str] = field(default_factory=list)
    # paths of what is too large for the copy: links to the originals
    linked: list[str] = field(default_factory=list)
    # phrases: what the stand-in for GPUs replaced
    substituted: list[str] = field(default_factory=list)
    # sentences for a script that has failed: why, and where it ran
    reasons: list[str] = field(default_factory=list)
    nodes: int = 1
    # for the ranks, of the launcher that was asked for
    env: dict[str, str] = field(default_factory=dict)
    # of a second run: a `manyhands.rehearsal.rehearse_command.Rehearsal`
    rehearsal: Rehearsal | None = None
    not_rehearsed: str = ""  # why the second run could not be started or judged


def visit(
    script: str | Path,
    arguments: Sequence[str] = (),
    ranks: int = 4,
    launcher: Launcher = "torchrun",
    to_end: bool = False,
    patience_s: float | None = None,
    timeout_s: float = TIMEOUT_S,
    stand_in: bool = True,
    nodes: int = 1,
    env: Mapping[str, str] | None = None,
) -> Visit:
    """Run it and gather what was seen: a `Visit`.

    Every process has ended then. `stand_in`: where there are no GPUs, one takes their place; `env`
    is for the ranks.
    """
    patience_s = patience_s or HANG_TIMEOUT_S["nccl" if gpu_ids() else "gloo"]
    with _notes_folder() as notes, copied(script) as place:
        watcher = HangWatcher(notes, ranks, patience_s)
        options = {
            "MANYHANDS_CLINIC": json.dumps({"to_end": to_end}),
            "PYTHONDONTWRITEBYTECODE": "1",
            **(env or {}),
        }
        if stand_in:
            options[STAND_IN] = "1"
        with watcher:
            done = launch(
                RANK_PROGRAM,
                notes,
                str(place.script),
                *arguments,
                with_=launcher,
                nodes=nodes,
                ranks_per_node=ranks // nodes,
                env=place.environment(options),
                timeout_s=timeout_s,
                echo=False,
            )
        if problem := failed_import(notes):
            raise LaunchError(problem)
        outcome = Visit(
            place.script.name,
            ranks,
            launcher,
            list(arguments),
            left_out=sorted(place.left_out),
            linked=place.linked,
            nodes=nodes,
            env=dict(env or {}),
        )
        _gather(outcome, notes, done, place)
        reason = watcher.hang or ("limit" if done.timed_out else None)
        outcome.fault = make_fault(notes, ranks, done, reason, timeout_s, watcher.reports)
        _explain(outcome, notes, place, stand_in)
    return outcome


def _explain(outcome: Visit, notes: str, place: Place, stand_in: bool) -> None:
    """Add what the stand-in and the copy say, about a failure, too."""
    errors = [outcome.errors[rank]["traceback"] for rank in sorted(outcome.errors)] + [
        outcome.output[rank]
        for rank in sorted(outcome.output)
        if outcome.codes.get(rank) and rank not in outcome.errors
    ]
    outcome.substituted = substituted(notes, outcome.ranks)
    sentences = [*filter(None, (explain_gpu_error(error, stand_in) for error in errors))]
    outcome.reasons = [*sentences[:1], place.facts()]


def rehearsed(
    outcome: Visit, script: str | Path, timeout_s: float = TIMEOUT_S, stand_in: bool = True
) -> None:
    """Run it once more, from a new copy, as a rehearsal for GPUs.

    `outcome`, a `Visit`, gets what came of it.

    Only where the first run went well: a script that fails or hangs does so again; and only under
    torchrun.
    """
    from manyhands.rehearsal.rehearse_command import rehearse

    if not may_rehearse(outcome):
        return
    try:
        outcome.rehearsal = rehearse(
            script,
            outcome.arguments,
            outcome.ranks,
            timeout_s,
            steps=STEPS,
            stand_in=stand_in,
            nodes=outcome.nodes,
            env=outcome.env,
        )
    except Exception as error:  # noqa: BLE001 - the first run is reported all the same
        outcome.not_rehearsed = f"{type(error).__name__}: {error}"[:300]


def may_rehearse(outcome: Visit) -> bool:
    """Whether a second run, as a rehearsal, can add anything."""
    stopped = outcome.fault or outcome.timed_out
    return (
        outcome.launcher == "torchrun" and outcome.ranks > 1 and not stopped and _went_well(outcome)
    )


def _went_well(outcome: Visit) -> bool:
    return not (outcome.errors or outcome.launcher_message) and len(outcome.cost) == outcome.ranks


@contextmanager
def _notes_folder() -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="manyhands-clinic-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _gather(outcome: Visit, notes: str, done: Launch, place: Place) -> None:
    import torch

    for rank in range(outcome.ranks):
        into: dict[int, Any]
        for name, into in (("cost", outcome.cost), ("error", outcome.errors)):
            path = Path(notes, f"{name}-{rank}.json")
            if path.exists():
                into[rank] = json.loads(place.shown(path.read_text()))
        for name, into in (("seen", outcome.seen), ("average", outcome.averages)):
            path = Path(notes, f"{name}-{rank}.pt")
            if path.exists():
                into[rank] = torch.load(path, weights_only=False)
    if Path(notes, "one.pt").exists():
        outcome.one_process = torch.load(Path(notes, "one.pt"), weights_only=False)
    outcome.output = {rank: place.shown(text) for rank, text in done.output.items()}
    outcome.codes, outcome.timed_out = done.returncodes, done.timed_out
    if not any(code is not None for code in done.returncodes.values()):
        outcome.launcher_message = "\n".join(done.launcher_output.splitlines()[-15:])
