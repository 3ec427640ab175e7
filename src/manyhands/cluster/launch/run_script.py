"""Run a learner's script under a real launcher, on emulated nodes, and show what each rank did."""

from __future__ import annotations

import html
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.cluster.check_arguments import check_positive
from manyhands.cluster.launch.collect import STOPPED, TIMED_OUT, Collector, split_dump, where_in
from manyhands.cluster.launch.command_lines import (
    GUARD,
    LAUNCHERS,
    SAFELY,
    LaunchError,
    base_env,
    gpus_by_node,
    make_job,
)
from manyhands.cluster.launch.script_copy import COPY
from manyhands.cluster.show import Progress, in_notebook, quiet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike
    from typing import Any

    from manyhands.cluster.launch.collect import Frame, RankState
    from manyhands.cluster.launch.command_lines import Job, Launcher

_RUNNING = "{launcher} runs {script} on {n} ranks"

__all__ = ["Launch", "LaunchError", "launch"]


@dataclass
class Launch:
    """What came of a launch, by rank."""

    script: str
    with_: str
    names: list[str]  # of the ranks: "rank 0", or "chief 0", "worker 1" under TF_CONFIG
    # by rank; -15 means killed by signal 15; 124 not finished in time; None never started
    returncodes: dict[int, int | None]
    output: dict[int, str]  # by rank: what it wrote to stdout and stderr, in that order
    returncode: int = 0  # 0 if every rank but the servers ended with 0
    # the rank whose failure came first: the others often fail only because of it
    first_failed: int | None = None
    timed_out: bool = False
    # of each unfinished rank: the line of the script at which it stood
    where: dict[int, str] = field(default_factory=dict)
    servers: list[int] = field(default_factory=list)  # ranks that serve until the others have ended
    launcher_output: str = ""  # what the launcher itself wrote

    def report(self) -> str:
        """The lines that tell how the ranks ended, when not all of them ended well."""
        lines = []
        if self.first_failed is not None:
            lines.append(
                f"{self.names[self.first_failed]} failed first: "
                f"{_meaning(self.returncodes[self.first_failed])}."
            )
            if (
                self.returncodes[self.first_failed] == -signal.SIGABRT
                and _LATE in self.output[self.first_failed]
            ):
                lines.append(
                    f'"{_LATE}" is not the cause: after the error above it, Python was ending while'
                    " a thread of a library was still running (of torch.distributed, say, just "
                    "after a collective)."
                )
        if self.timed_out:
            lines.append(
                f"Time-out: {len(self.where)} of {len(self.names)} ranks had not finished."
            )
        lines += [f"[{self.names[rank]}] {text}" for rank, text in self.where.items()]
        if self.returncode and not lines:
            lines.append(f"{self.with_} ended with exit code {self.returncode}.")
            lines += self.launcher_output.splitlines()[-30:]
        return "\n".join(lines)

    def __repr__(self) -> str:
        codes = [code for rank, code in self.returncodes.items() if rank not in self.servers]
        text = (
            f"{Path(self.script).name} under {self.with_}: {codes.count(0)} of {len(codes)} ranks "
            "ended with exit code 0"
        )
        text += f", {len(self.servers)} servers were stopped" if self.servers else ""
        return f"<{text}{', timed out' if self.timed_out else ''}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{name}</td><td>{html.escape(_meaning(self.returncodes[rank]))}</td>"
            f"<td>{html.escape(self.where.get(rank, ''))}</td></tr>"
            for rank, name in enumerate(self.names)
        )
        return (
            f"<p>{html.escape(repr(self)[1:-1])}</p><table><tr><th></th><th>end</th><th>was "
            f"at</th></tr>{rows}</table>"
        )


def launch(
    script: str | PathLike[str],
    *args: Any,
    with_: Launcher = "torchrun",
    nodes: int = 2,
    ranks_per_node: int = 2,
    tasks: dict[str, int] | None = None,
    env: Mapping[str, Any] | None = None,
    timeout_s: float = 120,
    python: str = sys.executable,
    echo: bool = True,
) -> Launch:
    """Run `script` with `args` under the launcher `with_` until all its processes have ended.

    Returns a `Launch`.

    with_      "torchrun": once per node, --nproc-per-node each; "mpirun": MPICH's mpiexec, which sees that many hosts;
               "horovodrun": Gloo, likewise; "tf_config": one process per task.
    tasks      for "tf_config": {"chief": 1, "worker": 2, "ps": 1}; without it, nodes x ranks_per_node workers.
    env        environment variables on top of this process's own.
    timeout_s  then everything is killed; the report says which ranks had not finished, and at which line they stood.
    echo       show each rank's output: in a terminal as it comes, elsewhere by rank when all have ended.

    All nodes are emulated on this machine, also when the cluster's ranks live elsewhere. A rank
    that fails is no exception here: see `.returncode`, `.returncodes`, `.report()`. Every process
    that the launch has started ends with it.
    """
    path, timeout_s = (
        _check(script, with_, nodes, ranks_per_node, tasks),
        check_positive("timeout_s", timeout_s),
    )
    live = echo and sys.stdout.isatty() and not quiet()
    # a socket's path has room for 107 bytes, on macOS for 103
    short = None if len(tempfile.gettempdir()) < 60 else "/tmp"
    with tempfile.TemporaryDirectory(prefix="manyhands-", dir=short) as folder:
        job = make_job(with_, folder, str(path), args, nodes, ranks_per_node, tasks, env, python)
        try:
            running = _RUNNING.format(launcher=with_, script=path.name, n=len(job.names))
            with nullcontext() if live else Progress(running, after_s=2):
                collector = _run(folder, job, nodes, timeout_s, path, live)
        finally:
            job.close()
    result = _result(str(script), path, with_, job, collector)
    if echo:
        _show(result, live)
    return result


def _check(
    script: str | PathLike[str],
    with_: str,
    nodes: int,
    ranks_per_node: int,
    tasks: dict[str, int] | None,
) -> Path:
    if with_ not in LAUNCHERS:
        raise ValueError(f"with_={with_!r} is not a launcher: use one of {', '.join(LAUNCHERS)}.")
    if tasks and with_ != "tf_config":
        raise ValueError(
            'tasks= is for with_="tf_config" only, because the other launchers have ranks and not '
            "tasks."
        )
    if not (
        isinstance(nodes, int)
        and isinstance(ranks_per_node, int)
        and nodes > 0
        and ranks_per_node > 0
    ):
        raise ValueError(
            f"nodes={nodes!r} and ranks_per_node={ranks_per_node!r} must be whole numbers from 1."
        )
    path = Path(script).absolute()
    if not path.is_file():
        others = sorted(p.name for p in path.parent.glob("*.py")) if path.parent.is_dir() else []
        there = f" There: {', '.join(others[:10])}." if others else ""
        raise FileNotFoundError(
            f"There is no script {str(script)!r} (looked in {path.parent}).{there}"
        )
    return path


def _run(folder: str, job: Job, nodes: int, timeout_s: float, path: Path, live: bool) -> Collector:
    """Start the guard, hand it the commands, and collect until all has ended."""
    gpus = gpus_by_node(
        nodes if job.ranks_per_node > 1 or len(job.names) == nodes else len(job.names)
    )
    description = {
        "rank_variable": job.rank_variable,
        "ranks_per_node": job.ranks_per_node,
        "gpus": gpus,
    }
    Path(folder, "job.json").write_text(json.dumps(description))
    guard = subprocess.Popen(
        [sys.executable, *SAFELY, GUARD, "guard", folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=base_env(None),
        start_new_session=True,  # Ctrl-C in a terminal reaches us, and we end the launch
    )
    show = _live_printer(job.names, path) if live else lambda rank, lines: None
    collector = Collector(folder, job, guard, timeout_s, show)
    assert guard.stdin is not None  # a pipe
    guard.stdin.write(json.dumps(job.commands).encode() + b"\n")
    guard.stdin.flush()
    collector.run()
    return collector


def _result(script: str, path: Path, with_: str, job: Job, collector: Collector) -> Launch:
    result = Launch(
        script,
        with_,
        job.names,
        {},
        {},
        first_failed=collector.first_failed,
        timed_out=collector.timed_out,
    )
    result.servers = sorted(job.servers)
    for rank, state in enumerate(collector.states):
        text, frames = split_dump(state.text.decode(errors="replace"))
        if state.dropped_bytes:
            text += f"\n... {state.dropped_bytes} more bytes were discarded\n"
        result.output[rank] = _shorten(text, path)
        result.returncodes[rank] = state.code if state.control else None
        if rank in collector.unfinished:
            result.returncodes[rank] = TIMED_OUT if collector.timed_out else STOPPED
            result.where[rank] = _where(state, path, frames)
    result.launcher_output = collector.launcher_text.decode(errors="replace")
    result.returncode = _total(result, collector)
    return result


def _where(state: RankState, path: Path, frames: list[Frame]) -> str:
    if not state.control:
        return "had not started yet"
    place = where_in(path, frames)
    return (
        f"was at {place}"
        if place
        else "was not in Python code: still at the start, or already at the end, of the process"
    )


def _total(result: Launch, collector: Collector) -> int:
    """One exit code for the launch.

    It is that of the rank that failed first, else the launcher's, if any rank ended badly.
    """
    first = None if collector.first_failed is None else result.returncodes[collector.first_failed]
    if first is not None:
        return first
    if collector.timed_out:
        return TIMED_OUT
    bad = any(code != 0 for rank, code in result.returncodes.items() if rank not in result.servers)
    return (collector.guard.returncode or 1) if bad else 0


_PLACE = re.compile(r'^((?:\[rank\d+\]: )?\s*File ")[^"\n]*/(?:site|dist)-packages/', re.MULTILINE)


def _shorten(text: str, path: Path) -> str:
    """Tracebacks without the folders that differ from machine to machine."""
    if copy := os.environ.get(COPY):
        text = re.sub(rf'File "{re.escape(copy)}/[^/"\n]+/', 'File "', text)
    return _PLACE.sub(r"\1", text).replace(f'File "{path.parent}/', 'File "')


def _meaning(code: int | None) -> str:
    if code is None:
        return "never started"
    if code == TIMED_OUT:
        return "not finished in time"
    if code == STOPPED:
        return "killed (SIGKILL)"
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


# C++ says so of a thread that Python ends after its own end
_LATE = "terminate called without an active exception"


# -- showing ---------------------------------------------------------------------------------------

_COLOURS = (36, 33, 35, 32, 34, 31)  # ANSI: cyan, yellow, magenta, green, blue, red


def _live_printer(names: list[str], path: Path) -> Callable[[int, bytes], None]:
    coloured = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    def show(rank: int, lines: bytes) -> None:
        _write(
            _labelled(_shorten(lines.decode(errors="replace"), path), names[rank], rank, coloured)
        )

    return show


def _labelled(text: str, name: str, rank: int, coloured: bool) -> list[str]:
    label = f"\x1b[{_COLOURS[rank % len(_COLOURS)]}m[{name}]\x1b[0m " if coloured else f"[{name}] "
    return [label + line for line in text.splitlines()]


def _write(lines: list[str]) -> None:
    """At one go: a notebook then stores one output."""
    if lines:
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()


def _show(result: Launch, live: bool) -> None:
    """By rank, when all have ended; in a terminal the output has been shown already."""
    lines = []
    if not live:
        coloured = in_notebook() and not quiet()
        for rank, text in result.output.items():
            lines += _labelled(text, result.names[rank], rank, coloured)
    _write(lines + result.report().splitlines())
