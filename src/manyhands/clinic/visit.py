"""Run the script: in a copy of its folder, under a launcher, with observers on each rank and a watch beside it."""

import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from manyhands.clinic.hangs import Watcher, report
from manyhands.cluster.host.devices import PATIENCE_S, gpu_ids
from manyhands.cluster.launch.run_script import LaunchError, launch
from manyhands.own_environment import failed_import

IN_RANK = str(Path(__file__).with_name("in_rank.py"))
STEPS = 9  # of a rehearsal, as of the visit
COPIED_BYTES, COPIED_FILES = 500 * 2**20, 20_000
LEFT_OUT = {"__pycache__", ".git", ".venv", "venv", "node_modules", ".ipynb_checkpoints"}


@dataclass
class Visit:
    """What came of the run. `seen`, `cost`, `errors`: by rank, of the ranks that have written them."""

    script: str
    ranks: int
    launcher: str
    copied: bool
    arguments: list = field(default_factory=list)
    seen: dict = field(default_factory=dict)
    cost: dict = field(default_factory=dict)
    errors: dict = field(default_factory=dict)
    one: dict | None = None  # what the rows of all ranks gave in one process
    fault: object = None  # the Fault of ranks that wait for ever
    output: dict = field(default_factory=dict)
    codes: dict = field(default_factory=dict)
    timed_out: bool = False
    told: str = ""  # by the launcher, where no rank began
    left_out: list = field(default_factory=list)  # names of what lies in the script's folder and cannot be copied
    rehearsal: object = None  # of a second run: a `manyhands.rehearsal.rehearse_command.Rehearsal`


def visit(script, arguments=(), ranks=4, launcher="torchrun", to_end=False, patience_s=None, timeout_s=300):
    """Run it and gather what was seen: a `Visit`. Every process has ended then."""
    patience_s = patience_s or PATIENCE_S["nccl" if gpu_ids() else "gloo"]
    script = Path(script).resolve()
    with _notes() as notes, _place(script) as (place, copied, left_out):
        watcher = Watcher(notes, ranks, patience_s)
        options = {"MANYHANDS_CLINIC": json.dumps({"to_end": to_end}), "PYTHONDONTWRITEBYTECODE": "1"}
        with watcher:
            done = launch(IN_RANK, notes, str(place), *arguments, with_=launcher, nodes=1, ranks_per_node=ranks,
                          env=options, timeout_s=timeout_s, echo=False)
        if problem := failed_import(notes):
            raise LaunchError(problem)
        found = Visit(script.name, ranks, launcher, copied, list(arguments), left_out=left_out)
        _gather(found, notes, done, place.parent, script.parent)
        reason = watcher.hang or (done.timed_out and "limit")
        found.fault = report(notes, ranks, done, reason, timeout_s, watcher.reports)
    return found


def rehearsed(found, script, timeout_s=300):
    """Run it once more, from a new copy, as a rehearsal for GPUs: `found`, a `Visit`, gets what came of it.

    Only where the first run went well: a script that fails or hangs does so again; and only under torchrun.
    """
    from manyhands.rehearsal.rehearse_command import rehearse

    if found.launcher != "torchrun" or found.ranks == 1 or found.fault or found.timed_out or not _all_well(found):
        return
    script = Path(script).resolve()
    with _place(script) as (place, *_):
        found.rehearsal = rehearse(place, found.arguments, found.ranks, timeout_s, steps=STEPS)


def _all_well(found):
    return not (found.errors or found.told) and len(found.cost) == found.ranks


@contextmanager
def _notes():
    folder = tempfile.mkdtemp(prefix="manyhands-clinic-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _place(script):
    """(where the script is, whether that is a copy, what was left out of the copy): its folder may be too large to be
    copied. Inside, the current folder is the one that the script is to be started in."""
    if not _small(script.parent):
        yield script, False, []
        return
    here, folder = os.getcwd(), tempfile.mkdtemp(prefix="manyhands-clinic-")
    try:
        copy = Path(folder, script.parent.name or "script")
        left_out = _copied(script.parent, copy)
        os.chdir(_there(here, script, copy / script.name))
        yield copy / script.name, True, left_out
    finally:
        os.chdir(here)
        shutil.rmtree(folder, ignore_errors=True)


def _copied(folder, copy):
    """Copy a folder; returns the paths in it of what cannot be copied: pipes, sockets, devices, unreadable files."""
    left_out = []

    def special(place, names):
        paths = {name: Path(place, name) for name in names}
        odd = [path for name, path in paths.items() if name not in LEFT_OUT and not path.is_symlink()
               and not (path.is_file() or os.access(path, os.R_OK | os.X_OK) and path.is_dir())]
        left_out.extend(str(path.relative_to(folder)) for path in odd)
        return [name for name, path in paths.items() if name in LEFT_OUT or path in odd]

    def copy_file(source, target):
        try:
            shutil.copy2(source, target)
        except OSError:  # it may not be read, or has gone since
            left_out.append(str(Path(source).relative_to(folder)))

    shutil.copytree(folder, copy, symlinks=True, ignore=special, copy_function=copy_file)
    return sorted(left_out)


def _small(folder):
    total = files = 0
    for top, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        for name in names:
            files += 1
            try:
                total += os.lstat(os.path.join(top, name)).st_size
            except OSError:
                pass
        if total > COPIED_BYTES or files > COPIED_FILES:
            return False
    return True


def _there(here, script, place):
    """Where the script is started: the folder that we are in, or its copy, where it lies in the script's folder."""
    try:
        return place.parent / Path(here).resolve().relative_to(script.parent)
    except ValueError:
        return here


def _gather(found, notes, done, place, original):
    import torch

    for rank in range(found.ranks):
        for name, into in (("cost", found.cost), ("error", found.errors)):
            path = Path(notes, f"{name}-{rank}.json")
            if path.exists():
                into[rank] = json.loads(path.read_text().replace(f"{place}/", ""))
        path = Path(notes, f"seen-{rank}.pt")
        if path.exists():
            found.seen[rank] = torch.load(path, weights_only=False)
    if Path(notes, "one.pt").exists():
        found.one = torch.load(Path(notes, "one.pt"), weights_only=False)
    found.output = {rank: text.replace(f"{place}/", "") for rank, text in done.output.items()}
    found.codes, found.timed_out = done.returncodes, done.timed_out
    if not any(code is not None for code in done.returncodes.values()):
        found.told = "\n".join(done.launcher_output.splitlines()[-15:])
