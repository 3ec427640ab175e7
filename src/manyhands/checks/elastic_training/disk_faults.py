"""What the check of checkpoints does to the learner's `save` and `latest`.

Each call runs in a separate process, which a full disk or a kill may end.
"""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyhands.checks.in_kernel import call
from manyhands.checks.report import Stopped

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Read:
    """What `latest` returned.

    `step` is -1 for None, -2 if it is not a pair, and -3 if `latest` raised or hung; `error` is the
    error in words.
    """

    step: int
    total: float = 0.0
    error: str = ""

    @property
    def numbers(self) -> list[float]:
        """What the grader compares."""
        return [self.step, self.total]


@dataclass
class Saved:
    """How a call of `save` ended, with its `events` in order.

    An event is ("sync", inode, size), with -1 as the size of a folder, ("sync all",), or ("rename",
    [(inode, size), ...] of the file or of all files of the folder, the inode of the folder that it
    was renamed into, and whether it was moved in from outside the checkpoints' folder).
    """

    killed_by: str
    error: str
    events: list[tuple[Any, ...]] = field(default_factory=list)


def save_in_process(
    save: Callable[..., Any],
    state: Any,
    folder: Path,
    step: int,
    watch: str | None = None,
    **limits: Any,
) -> Saved:
    """Call the learner's `save` in a separate process.

    `watch`: "record" what is synced and renamed, or "kill" the process when it is about to rename.
    """
    from manyhands.elastic.mortal import in_process

    outcome = in_process(_save, save, state, folder, step, watch, **limits)
    if outcome.value is None:
        return Saved(outcome.killed_by, outcome.error)
    error, events = outcome.value
    return Saved("", error or "", events)


def read_in_process(latest: Callable[..., Any], folder: Path) -> Read:
    """Call the learner's `latest` in a separate process."""
    from manyhands.elastic.mortal import in_process

    outcome = in_process(_read, latest, folder)
    return outcome.value or Read(-3, error=outcome.error or f"killed by {outcome.killed_by}")


def files(folder: Path) -> dict[Path, tuple[int, int, int]]:
    """Return {path: (inode, size, time of the last change)} of all files below the folder."""
    stats = {path: path.stat() for path in sorted(Path(folder).rglob("*")) if path.is_file()}
    return {
        path: (status.st_ino, status.st_size, status.st_mtime_ns) for path, status in stats.items()
    }


def largest(folder: Path) -> int:
    """Return the size of the largest file, or raise `Stopped` if there is none."""
    sizes = [size for _, size, _ in files(folder).values()]
    if not sizes or max(sizes) < 100:
        raise Stopped("save has left no file with the state in the folder.")
    return max(sizes)


def _save(
    save: Callable[..., Any], state: Any, folder: Path, step: int, watch: str | None
) -> tuple[str | None, list[tuple[Any, ...]]]:
    events: list[tuple[Any, ...]] = []
    if watch:
        _watch(save, Path(folder), events, kill=watch == "kill")
    _, error = call(save, state, folder, step)
    return error, events


def _watch(
    function: Callable[..., Any], folder: Path, events: list[tuple[Any, ...]], kill: bool
) -> None:
    """Observe renames, and which files are synced.

    Renames and files that are opened with O_SYNC are seen through Python's audit events, and syncs
    by replacing os.fsync and its relatives. Use this only in a process that ends soon, because
    nothing is undone.
    """
    from manyhands.elastic.mortal import kill_me

    folder = folder.resolve()
    synced: set[Path] = set()

    def hear(event: str, args: tuple[Any, ...]) -> None:
        if (
            event == "open"
            and isinstance(args[2], int)
            and args[2] & os.O_DSYNC
            and isinstance(args[0], (str, bytes, os.PathLike))
        ):
            synced.add(Path(os.fsdecode(args[0])).resolve())
        if event in ("os.rename", "os.link") and (
            target := _place(args[1], args[3])
        ).is_relative_to(folder):
            if kill:
                kill_me()
            source = _place(args[0], args[2])
            moved = {
                path: path.stat() for path in ([source] if source.is_file() else source.rglob("*"))
            }
            events.extend(
                ("sync", status.st_ino, status.st_size)
                for path, status in moved.items()
                if path in synced
            )
            events.append(
                (
                    "rename",
                    [(status.st_ino, status.st_size) for status in moved.values()],
                    target.parent.stat().st_ino,
                    not source.is_relative_to(folder),
                )
            )

    def one_file(real: Callable[..., None]) -> Callable[..., None]:
        def sync(file: Any) -> None:
            real(file)
            status = os.fstat(file if isinstance(file, int) else file.fileno())
            events.append(
                ("sync", status.st_ino, -1 if stat.S_ISDIR(status.st_mode) else status.st_size)
            )

        return sync

    def all_files(real: Callable[..., None]) -> Callable[..., None]:
        def sync() -> None:
            real()
            events.append(("sync all",))

        return sync

    for name, replacement in (("fsync", one_file), ("fdatasync", one_file), ("sync", all_files)):
        real = getattr(os, name)
        # also where a cell has imported the name
        for place in (vars(os), getattr(function, "__globals__", {})):
            for key in [key for key, value in place.items() if value is real]:
                place[key] = replacement(real)
    sys.addaudithook(hear)


def _place(path: Any, folder: int) -> Path:
    """Return the whole path. `folder` is the descriptor that it starts from, or -1."""
    start = "" if folder < 0 else os.readlink(f"/proc/self/fd/{folder}")
    return Path(start, os.fsdecode(path)).resolve()


def _read(latest: Callable[..., Any], folder: Path) -> Read:
    answer, error = call(latest, folder)
    if error:
        return Read(-3, error=error)
    if answer is None:
        return Read(-1)
    try:
        step, state = answer
        return Read(int(step), float(state["weights"].sum()) + state["seen"])
    except Exception:  # noqa: BLE001 - a learner's answer may be anything
        return Read(-2)
