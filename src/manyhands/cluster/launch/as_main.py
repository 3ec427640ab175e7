"""Run a script on a rank as the main program.

The script is a file, or with `MANYHANDS_MODULE` a module. It runs with the stand-in for GPUs where
that is asked for, and its own start of processes happens on the ranks that exist.

A script that calls `torch.multiprocessing.spawn(main, nprocs=N)` begins on each rank, and `main` is
called there with the rank's number: N ranks run, and each is looked at.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import os
import runpy
import shutil
import sys
import threading
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike
    from typing import Any

MODULE, STAND_IN, RANK_OPTION = "MANYHANDS_MODULE", "MANYHANDS_STAND_IN", "MANYHANDS_RANK_OPTION"
STARTS = (
    "This script starts {number} processes by itself, and {size} {ranks} asked for. "
    "Ask for as many: --ranks {number}."
)
RUNS = (
    "This script starts its training with a different command. Give that command to manyhands: "
    "{words}"
)
CHANGES = {
    "os.mkdir": 1,
    "os.remove": 1,
    "os.rmdir": 1,
    "os.truncate": 1,
    "os.rename": 2,
    "shutil.rmtree": 1,
}
STARTERS = (
    "torchrun",
    "torch.distributed.run",
    "torch.distributed.launch",
    "accelerate",
    "deepspeed",
    "horovodrun",
)


class NotHere(SystemExit):
    """The script starts its ranks in a way that cannot be followed here.

    The text of the exception says what to type.
    """


def local_rank_and_size() -> tuple[int, int]:
    """This process's number on its machine and how many there are, as its launcher says."""
    for rank, size in (
        ("HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE"),
        ("LOCAL_RANK", "LOCAL_WORLD_SIZE"),
        ("MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
        ("PMI_RANK", "PMI_SIZE"),
    ):
        if rank in os.environ:
            return int(os.environ[rank]), int(os.environ.get(size, 1))
    return 0, 1


def prepare(script: str, arguments: list[str], folder: str, rank: int) -> None:
    """Make `sys.argv` and `sys.path` those of the script.

    What stands in for GPUs and for its own start is put in place too, so call it before anything
    else imports torch's functions.
    """
    if os.environ.get(RANK_OPTION):
        arguments = [*arguments, f"{os.environ[RANK_OPTION]}={os.environ.get('LOCAL_RANK', 0)}"]
    sys.argv[:] = [script, *arguments]
    sys.path[0] = os.getcwd() if MODULE in os.environ else os.path.dirname(os.path.abspath(script))
    if os.environ.get(STAND_IN) and importlib.util.find_spec("torch"):
        from manyhands import gpu_stand_in

        gpu_stand_in.install(
            local_rank_and_size()[1], report=os.path.join(folder, f"stand-in-{rank}.json")
        )
    sys.addaudithook(_no_original_is_written)
    sys.addaudithook(_no_launcher_inside)
    if importlib.util.find_spec("torch"):
        _own_start()
        _saving()


def run(script: str) -> dict[str, Any]:
    """Run it; its names are returned: keep them until the process ends, as Python does.

    If they were freed immediately, a DistributedDataParallel with the last reference to a destroyed
    group would wait, with the GIL, for gloo's thread, and that one for the GIL.
    """
    if MODULE in os.environ:
        return runpy.run_module(os.environ[MODULE], run_name="__main__", alter_sys=True)
    return runpy.run_path(script, run_name="__main__")


def _no_original_is_written(event: str, facts: tuple[Any, ...]) -> None:
    """Before Python changes what is a link to an original, a copy takes the link's place."""
    if event == "open":
        path, mode, flags = facts
        writes = (mode and any(letter in mode for letter in "wa+x")) or (flags or 0) & (
            os.O_WRONLY | os.O_RDWR
        )
        if writes and isinstance(path, (str, bytes, os.PathLike)):
            _own(path)
    elif event in CHANGES:
        for path in facts[: CHANGES[event]]:
            if isinstance(path, (str, bytes, os.PathLike)):
                _own(path, itself=event in ("os.truncate", "shutil.rmtree"))


def _no_launcher_inside(event: str, facts: tuple[Any, ...]) -> None:
    """A script that starts a launcher starts ranks that cannot be looked at."""
    if event not in ("subprocess.Popen", "os.system"):
        return
    command = facts[1] if event == "subprocess.Popen" else facts[0]
    words = (
        map(os.fsdecode, command)
        if isinstance(command, (list, tuple))
        else os.fsdecode(command).split()
    )
    words = list(words)
    begins = [  # among the first four words
        word
        for word, before in zip(words[:4], ["", *words], strict=False)
        if before in ("", "-m") or "python" in before
    ]
    if any(os.path.basename(word) in STARTERS for word in begins):
        raise NotHere(RUNS.format(words=" ".join(words)))


def _own(path: str | bytes | PathLike[Any], itself: bool = True) -> None:
    """Let no link on the way to `path` lead out of the copy.

    The way is its folders and, with `itself`, what is there. A folder with links to its entries
    takes the place of a link, and in the end a copy of the file.
    """
    from manyhands.cluster.launch.process_guard import COPY, ORIGINALS
    from manyhands.cluster.launch.script_copy import shell_of

    folder, path = os.environ.get(COPY), os.path.abspath(os.fsdecode(path))
    if not folder or not path.startswith(folder + os.sep):
        return
    originals, at = os.path.join(folder, ORIGINALS) + os.sep, folder
    names = os.path.relpath(path, folder).split(os.sep)
    for name in names if itself else names[:-1]:
        at = os.path.join(at, name)
        if not os.path.islink(at) or not os.readlink(at).startswith(originals):
            continue
        aim, new = os.readlink(at), f"{at}.{os.getpid()}-{threading.get_ident()}"
        if os.path.isdir(aim):
            os.mkdir(new)
            shell_of(aim, new, aim)
            try:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(at)
                os.rename(new, at)
            except OSError:  # a different rank was here first
                shutil.rmtree(new)
        elif os.path.exists(aim):
            shutil.copy2(aim, new)
            os.replace(new, at)


def _saving() -> None:
    """`torch.save` opens its file in C++, where Python's hook does not see it."""
    import torch

    save = torch.save

    def save_in_copy(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(f, (str, os.PathLike)):
            _own(f)
        return save(obj, f, *args, **kwargs)

    save_in_copy.__wrapped__ = save  # type: ignore[attr-defined]  # as functools.wraps would
    torch.save = save_in_copy


def _own_start() -> None:
    """Do on this rank what the process would do that the script starts.

    That is `torch.multiprocessing.spawn`, and processes that the script starts to call
    `init_process_group` in them.
    """
    import torch.distributed as dist
    import torch.multiprocessing as mp

    if not dist.is_available():
        return
    started: list[Any] = []  # the processes of the script whose work is done here
    _at_the_ranks_address(started)

    def start(
        fn: Callable[..., Any],
        args: tuple[Any, ...] = (),
        nprocs: int = 1,
        join: bool = True,
        *_: Any,
        **__: Any,
    ) -> _Joined | None:
        _check(nprocs)
        started.append(fn)
        fn(int(os.environ.get("RANK", 0)), *args)
        return None if join else _Joined()

    mp.spawn = mp.start_processes = start
    begin = BaseProcess.start

    def start_process(process: BaseProcess) -> None:
        its_own = sys._getframe(1).f_globals.get("__name__") == "__main__" and (
            started or not dist.is_initialized()
        )
        if not its_own or not _makes_a_group(process):
            return begin(process)
        started.append(process)
        # there is nothing to wait for
        process.join = _Joined().join  # type: ignore[method-assign, assignment]
        process.is_alive = lambda: False  # type: ignore[method-assign]  # likewise
        if len(started) - 1 == int(os.environ.get("RANK", 0)):
            process.run()

    BaseProcess.start = start_process  # type: ignore[method-assign, assignment]  # what this is for


def _makes_a_group(process: BaseProcess) -> bool:
    """Whether the function that a process is to run calls init_process_group.

    It may do so by itself or in a function that it calls.
    """
    functions, seen = [getattr(process, "_target", None)], set()
    while functions:
        code = getattr(functions.pop(), "__code__", None)
        if code is None or code in seen:
            continue
        seen.add(code)
        if "init_process_group" in code.co_names:
            return True
        functions += [sys.modules["__main__"].__dict__.get(name) for name in code.co_names]
        functions += [cell for cell in (getattr(process, "_args", ()) or ()) if callable(cell)]
    return False


class _Joined:
    """What `spawn(join=False)` returns: all has ended already."""

    processes: tuple[BaseProcess, ...] = ()

    def join(self, *_: Any, **__: Any) -> bool:
        return True


def _check(number: int) -> None:
    """Refuse to go on where the script starts another number of processes than there are ranks."""
    size = int(os.environ.get("WORLD_SIZE", 1))
    if number != size:
        raise NotHere(
            STARTS.format(number=number, size=size, ranks="ranks were" if size > 1 else "rank was")
        )


def _at_the_ranks_address(started: Sequence[Any]) -> None:
    """Let these ranks meet at the launcher's address instead of the script's.

    The script chooses an address for processes that it starts. The function that sees to it is in
    place before the script imports `init_process_group` by name.
    """
    import torch.distributed as dist
    from torch.distributed import distributed_c10d as c10d

    ours = {name: os.environ[name] for name in ("MASTER_ADDR", "MASTER_PORT") if name in os.environ}
    init = c10d.init_process_group

    @functools.wraps(init)
    def init_process_group(
        backend: str | None = None, init_method: str | None = None, *args: Any, **kwargs: Any
    ) -> None:
        if started:
            if kwargs.get("world_size", -1) > 0:
                _check(kwargs["world_size"])
            os.environ.update(ours)
            init_method = None
        return init(backend, init_method, *args, **kwargs)

    c10d.init_process_group = dist.init_process_group = init_process_group


def substituted(folder: str, ranks: int) -> list[str]:
    """What the stand-in for GPUs replaced in a run that wrote into `folder`, as phrases."""
    phrases: dict[str, None] = {}
    for rank in range(ranks):
        try:
            with open(os.path.join(folder, f"stand-in-{rank}.json")) as file:
                phrases.update(dict.fromkeys(json.load(file)))
        except OSError:
            continue
    return list(phrases)
