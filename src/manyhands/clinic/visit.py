"""Run the script: in a copy of its repository, under a launcher, with observers on each rank and a
watch beside it.
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

from manyhands.clinic.hangs import Watcher, report
from manyhands.cluster.host.gpu_assignment import gpu_ids
from manyhands.cluster.launch.as_main import STAND_IN, substituted
from manyhands.cluster.launch.run_script import LaunchError, launch
from manyhands.cluster.launch.script_copy import copied
from manyhands.gpu_stand_in.kernels import sentence
from manyhands.own_environment import failed_import
from manyhands.shared.default_timeouts import HANG_TIMEOUT_S

if TYPE_CHECKING:
    from manyhands.clinic.noted import AverageNoted, Cost, OneProcess, Seen
    from manyhands.cluster.faults.kinds import Fault
    from manyhands.cluster.launch.command_lines import Launcher
    from manyhands.cluster.launch.run_script import Launch
    from manyhands.cluster.launch.script_copy import Place
    from manyhands.rehearsal.rehearse_command import Rehearsal

IN_RANK = str(Path(__file__).with_name("in_rank.py"))
STEPS = 9  # of a rehearsal, as of the visit


@dataclass
class Visit:
    """What came of the run.

    `seen`, `cost`, `errors`: by rank, of the ranks that have written them.
    """

    script: str
    ranks: int
    launcher: str
    arguments: list[str] = field(default_factory=list)
    seen: dict[int, Seen] = field(default_factory=dict)
    cost: dict[int, Cost] = field(default_factory=dict)
    errors: dict[int, dict[str, Any]] = field(default_factory=dict)
    # by rank: how ranks that train alone put together what they learn
    averages: dict[int, AverageNoted] = field(default_factory=dict)
    one: OneProcess | None = None  # what the rows of all ranks gave in one process
    fault: Fault | None = None  # the Fault of ranks that wait for ever
    output: dict[int, str] = field(default_factory=dict)
    codes: dict[int, int | None] = field(default_factory=dict)
    timed_out: bool = False
    told: str = ""  # by the launcher, where no rank began
    # paths of what the copy of the script's repository lacks
    left_out: list[str] = field(default_factory=list)
    # paths of what is too large for the copy: links to the originals
    linked: list[str] = field(default_factory=list)
    # phrases: what the stand-in for GPUs took the place of
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
    timeout_s: float = 300,
    stand_in: bool = True,
    nodes: int = 1,
    env: Mapping[str, str] | None = None,
) -> Visit:
    """Run it and gather what was seen: a `Visit`.

    Every process has ended then. `stand_in`: where there are no GPUs, one takes their place; `env`
    is for the ranks.
    """
    patience_s = patience_s or HANG_TIMEOUT_S["nccl" if gpu_ids() else "gloo"]
    with _notes() as notes, copied(script) as place:
        watcher = Watcher(notes, ranks, patience_s)
        options = {
            "MANYHANDS_CLINIC": json.dumps({"to_end": to_end}),
            "PYTHONDONTWRITEBYTECODE": "1",
            **(env or {}),
        }
        if stand_in:
            options[STAND_IN] = "1"
        with watcher:
            done = launch(
                IN_RANK,
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
        found = Visit(
            place.script.name,
            ranks,
            launcher,
            list(arguments),
            left_out=sorted(place.left_out),
            linked=place.linked,
            nodes=nodes,
            env=dict(env or {}),
        )
        _gather(found, notes, done, place)
        reason = watcher.hang or ("limit" if done.timed_out else None)
        found.fault = report(notes, ranks, done, reason, timeout_s, watcher.reports)
        _why(found, notes, place, stand_in)
    return found


def _why(found: Visit, notes: str, place: Place, stand_in: bool) -> None:
    """What the stand-in and the place have to say: of a failure, too."""
    errors = [found.errors[rank]["traceback"] for rank in sorted(found.errors)] + [
        found.output[rank]
        for rank in sorted(found.output)
        if found.codes.get(rank) and rank not in found.errors
    ]
    found.substituted = substituted(notes, found.ranks)
    told = [*filter(None, (sentence(error, stand_in) for error in errors))]
    found.reasons = [*told[:1], place.facts()]


def rehearsed(
    found: Visit, script: str | Path, timeout_s: float = 300, stand_in: bool = True
) -> None:
    """Run it once more, from a new copy, as a rehearsal for GPUs: `found`, a `Visit`, gets what
    came of it.

    Only where the first run went well: a script that fails or hangs does so again; and only under
    torchrun.
    """
    from manyhands.rehearsal.rehearse_command import rehearse

    if not may_rehearse(found):
        return
    try:
        found.rehearsal = rehearse(
            script,
            found.arguments,
            found.ranks,
            timeout_s,
            steps=STEPS,
            stand_in=stand_in,
            nodes=found.nodes,
            env=found.env,
        )
    except Exception as error:  # noqa: BLE001 - the first run is told of all the same
        found.not_rehearsed = f"{type(error).__name__}: {error}"[:300]


def may_rehearse(found: Visit) -> bool:
    """Whether a second run, as a rehearsal, has anything to tell."""
    stopped = found.fault or found.timed_out
    return found.launcher == "torchrun" and found.ranks > 1 and not stopped and _all_well(found)


def _all_well(found: Visit) -> bool:
    return not (found.errors or found.told) and len(found.cost) == found.ranks


@contextmanager
def _notes() -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="manyhands-clinic-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _gather(found: Visit, notes: str, done: Launch, place: Place) -> None:
    import torch

    for rank in range(found.ranks):
        into: dict[int, Any]
        for name, into in (("cost", found.cost), ("error", found.errors)):
            path = Path(notes, f"{name}-{rank}.json")
            if path.exists():
                into[rank] = json.loads(place.shown(path.read_text()))
        for name, into in (("seen", found.seen), ("average", found.averages)):
            path = Path(notes, f"{name}-{rank}.pt")
            if path.exists():
                into[rank] = torch.load(path, weights_only=False)
    if Path(notes, "one.pt").exists():
        found.one = torch.load(Path(notes, "one.pt"), weights_only=False)
    found.output = {rank: place.shown(text) for rank, text in done.output.items()}
    found.codes, found.timed_out = done.returncodes, done.timed_out
    if not any(code is not None for code in done.returncodes.values()):
        found.told = "\n".join(done.launcher_output.splitlines()[-15:])
