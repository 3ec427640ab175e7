"""What runs on a rank: it joins the world, runs cells and functions, and reports where it is.

Nothing here is called by learners. The notebook sends these functions to the ranks (see
cluster.py); a thread of each rank tells the notebook a few times a second where the main thread is.
It reads the stack, as a debugger does: user code is not changed.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import sys
import threading
import time
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING

from manyhands.cluster.host.namespaces import enter
from manyhands.cluster.on_rank import signalled_stack, tally, tf_config
from manyhands.cluster.on_rank.raised import describe
from manyhands.cluster.on_rank.recorder import Recorder, read
from manyhands.cluster.on_rank.stack import Stack, innermost_of, is_user_file
from manyhands.cluster.on_rank.stderr import NativeStderr

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from IPython.core.interactiveshell import InteractiveShell

    from manyhands.cluster.host.ports import Reservation
    from manyhands.cluster.payloads import (
        LeftFacts,
        Note,
        RankFacts,
        Reply,
        Report,
        Stand,
    )
    from manyhands.comm.control import Wait

PERIOD_S = 0.15
STOP_S = 0.3  # for what an interrupted cell still awaits at its end
RANK: Rank | None = None  # the one of this process


class Rank:
    """This process as a member of the world: its record of calls, and the thread that reports."""

    def __init__(self, rank: int, url: str, token: str, record_path: str, stderr_path: str) -> None:
        self.rank, self.token = rank, token
        self.recorder = Recorder(record_path, is_user_file)
        self.stderr = NativeStderr(stderr_path)
        self.stack = Stack(threading.main_thread().ident)
        self.cell: int | None = None
        self._busy = threading.Event()
        self._url = url
        threading.Thread(target=self._report, name="where-am-i", daemon=True).start()

    def begin(self, cell: int) -> None:
        """Note that a cell begins: from now on, reports with its number are sent."""
        self.recorder.clear(cell)
        self.cell = cell
        self._busy.set()

    def end(self) -> None:
        """Note that the cell has ended: no more reports are sent."""
        self._busy.clear()
        self.stderr.publish()

    def _report(self) -> None:
        import zmq
        from IPython.core.interactiveshell import InteractiveShell

        socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.PUSH)
        socket.linger = 0
        socket.connect(self._url)
        # the call whose notes have been sent: they are sent once, when the rank has stood there for
        # a second report
        reported = before = None
        while True:
            self._busy.wait()
            time.sleep(PERIOD_S)
            if self._busy.is_set():
                try:
                    self.stderr.publish()
                    here: Report = {**self.where()}
                    stands = (self.cell, here["key"])
                    if here["blocked"] and stands == before and stands != reported:
                        here["notes"], here["names"], reported = (
                            read(self.recorder.path),
                            _names(InteractiveShell.instance()),
                            stands,
                        )
                    before = stands
                    socket.send_json(
                        {"token": self.token, "rank": self.rank, "cell": self.cell, **here},
                        zmq.NOBLOCK,
                    )
                except zmq.Again:
                    pass
                except Exception as error:  # noqa: BLE001 - a report that cannot be made must not end the thread
                    print("manyhands: no report:", error, file=sys.__stderr__)

    def where(self) -> Stand:
        """Where the main thread is.

        That is in which communication call, if any, and at which line of the learner's code.
        """
        here = self.stack.look()
        if self.recorder.in_call and self.recorder.last:
            note = self.recorder.last.copy()
            here.update({"blocked": True, "key": f"call {self.recorder.entered}", "call": note})
        elif (wait := self._waited_work(here)) is not None:
            of_work, key = wait
            call: Note = of_work or here["call"] or {"call": "Work.wait"}
            here.update(
                {"blocked": True, "key": key, "call": {**call, **innermost_of(here["lines"])}}
            )
        elif (own := _own_wait()) is not None and here["lines"]:
            note, key = own
            here.update(
                {"blocked": True, "key": key, "call": {**note, **innermost_of(here["lines"])}}
            )
        return here

    def _waited_work(self, here: Stand) -> tuple[Note | None, str] | None:
        """The note of the asynchronous call that the main thread waits for, and a key of the wait.

        The note is None where it is not known; the whole is None where nothing is waited for.
        """
        if self.recorder.waits is not None:
            number, note = self.recorder.waits
            return note, f"work {number}"
        if here["call"] and here["call"]["call"] == "Work.wait":
            return self.recorder.note_of(self.stack.handle), here["key"]
        return None


def _own_wait() -> tuple[Note, str] | None:
    """What `manyhands.comm` waits for on this rank, and a key of the wait; or None.

    It is a note like the recorder's.
    """
    # None too while the module is being imported
    module = sys.modules.get("manyhands.comm.message_queue")
    current_wait: Callable[[], Wait | None] | None = getattr(module, "current_wait", None)
    wait = current_wait and current_wait()
    if not wait:
        return None
    note: Note = {
        "call": wait.call,
        "group": wait.communicator.name,
        "sequence": wait.slot[0] * 10**6 + wait.slot[1],
    }
    if wait.communicator.name != "world":
        note["ranks"] = wait.communicator.members
    if wait.kind != "collective":
        note.update({"peer": wait.peer, "tag": wait.facts.get("tag", 0)})
    return note, f"wait {wait.number}"


def join(
    rank: int, url: str, token: str, folder: str, environment: dict[str, str], path: list[str]
) -> RankFacts:
    """Make this process rank `rank`: set its environment, start its reports.

    Returns facts about it.

    `path` is the notebook's sys.path: a module that can be imported there can be imported here.
    """
    global RANK
    os.makedirs(folder, exist_ok=True)  # on another host it is not there yet
    sys.path += [entry for entry in path if entry not in sys.path]
    os.environ.update(environment)
    os.makedirs(environment["MANYHANDS_NODE_DIR"], exist_ok=True)
    record = os.path.join(folder, f"calls-{rank}")
    faulthandler.enable(open(os.path.join(folder, f"crash-{rank}.log"), "w"))  # noqa: SIM115 - kept open
    if RANK is None:
        RANK = Rank(rank, url, token, record, os.path.join(folder, f"stderr-{rank}.log"))
        RANK.recorder.watch_exit()
        signalled_stack.write_on_signal(os.path.join(folder, f"stacks-{rank}"))
        tf_config.keep(os.path.join(folder, f"tf-config-{rank}"))
        _stay_after_quit()
    for name in ("torch", "tensorflow"):
        if name in sys.modules:
            _limit_threads(name, int(environment["OMP_NUM_THREADS"]))
    if "torch" in sys.modules:
        RANK.recorder.install()
        _choose_gpu(environment.get("MANYHANDS_DEVICE", "cpu"))
    # the threads that talk to the notebook exist already, and stay outside
    if "MANYHANDS_NETWORK_NAMESPACE" in environment:
        enter(environment["MANYHANDS_NETWORK_NAMESPACE"])
    return {"pid": os.getpid(), "host": os.uname().nodename}


def _stay_after_quit() -> None:
    """Have `quit` and `exit` raise SystemExit, as they do in a script.

    IPython's would end this process a moment after the cell, without a report.
    """
    from IPython import get_ipython

    get_ipython().ask_exit = sys.exit
    warnings.filterwarnings("ignore", "To exit: use")  # IPython's word on a SystemExit in a cell


_port: Reservation | None = None


def choose_port() -> int:
    """On rank 0: a port of this host for the rendezvous, held for as long as this process lives."""
    global _port
    from manyhands.cluster.host.ports import reserve

    _port = reserve(1)
    return _port.ports[0]


def own_devices(local_rank: int, ranks_per_node: int) -> dict[str, str]:
    """On a real node: the environment that gives this rank its share of the node's GPUs."""
    from manyhands.cluster.host import gpu_assignment

    backend, environments = gpu_assignment.assign_devices(1, ranks_per_node)
    return {**environments[local_rank], "MANYHANDS_BACKEND": backend}


def _choose_gpu(device: str) -> None:
    """Make this rank's GPU the current one.

    `.cuda()`, objects, barriers and a DeviceMesh name none, and take the current one.
    """
    import torch

    if device.startswith("cuda") and torch.cuda.is_available():  # PyTorch may be its CPU build
        with suppress(
            RuntimeError
        ):  # a GPU that cannot be used: a program that uses it gets the error
            torch.cuda.set_device(device)
            # it is the right one
            warnings.filterwarnings(
                "ignore", r"barrier\(\): using the device under current context"
            )


def _limit_threads(name: str, threads: int) -> None:
    if name == "torch":
        import torch

        torch.set_num_threads(threads)
    else:
        import tensorflow as tf

        try:
            tf.config.threading.set_intra_op_parallelism_threads(threads)
            tf.config.threading.set_inter_op_parallelism_threads(max(2, threads))
        except RuntimeError:  # TensorFlow has already run here: it keeps the threads that it has
            pass


def _joined() -> Rank:
    """The Rank of this process: the notebook sends what follows only to ranks that have joined."""
    assert RANK is not None
    return RANK


def run_cell(code: str, cell: int) -> Reply:
    """Run the text of a cell in the rank's own namespace.

    Returns {"ok", "out", "error", "notes", "names"}.
    """
    from IPython import get_ipython
    from IPython.lib.pretty import pretty

    # of a cell inside the cell, such as `%%capture` runs, nothing else is left
    shell, shown_errors = get_ipython(), []
    shown, shell.showtraceback = (
        shell.showtraceback,
        lambda *args, **kwargs: shown_errors.append(sys.exc_info()[1]),
    )
    hook, sys.displayhook = sys.displayhook, lambda value: None
    syntax, shell.showsyntaxerror = shell.showsyntaxerror, lambda *args, **kwargs: None
    shell.loop_runner = _run_awaiting
    _joined().begin(cell)
    try:
        result = shell.run_cell(code, store_history=False)
    finally:
        _joined().end()
        shell.showtraceback, sys.displayhook, shell.showsyntaxerror = shown, hook, syntax
    raised = (result.error_before_exec, result.error_in_exec, *reversed(shown_errors))
    # an exception of the learner's may be false
    error = next((exception for exception in raised if exception is not None), None)
    if "torch" in sys.modules:
        _joined().recorder.install()  # the cell may just have imported it
    shell.user_ns["_"] = result.result
    out = None
    if result.result is not None and not code.rstrip().endswith(";"):
        try:
            out = pretty(result.result)
        except Exception as caught:  # noqa: BLE001 - a __repr__ of the learner's
            error = caught
    return {
        "ok": error is None,
        "out": out,
        "error": None if error is None else describe(error),
        "notes": _notes(),
        "names": _names(shell),
        "begun": _joined().recorder.tally.facts(),
    }


_loop: asyncio.AbstractEventLoop | None = None


def _run_awaiting(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a cell with `await` to its end, in a loop that is kept for the next one.

    The engine's own loop is running already, further out on this stack.
    """
    global _loop
    engines = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    _loop = _loop or asyncio.new_event_loop()
    task = _loop.create_task(coroutine)
    _joined().stack.awaited = coroutine
    try:
        return _loop.run_until_complete(task)
    finally:
        _joined().stack.awaited = None
        if not task.done():  # interrupted: it must not go on in the next cell
            task.cancel()
            _loop.run_until_complete(asyncio.wait([task], timeout=STOP_S))
        asyncio._set_running_loop(engines)


def call(function: Callable[..., Any], args: tuple[Any, ...], cell: int) -> Reply:
    """Run a function sent by the notebook. Returns {"ok", "value", "error", "notes", "names"}."""
    from IPython import get_ipython

    _joined().begin(cell)
    value = None
    error: BaseException | None = None
    try:
        value = function(*args)
    except BaseException as caught:  # noqa: BLE001 - what the function does must not end this process
        # KeyboardInterrupt and SystemExit too: what the function does must not end this process
        error = caught
    finally:
        _joined().end()
    if "torch" in sys.modules:
        _joined().recorder.install()
    return {
        "ok": error is None,
        "value": value,
        "error": None if error is None else describe(error),
        "notes": _notes(),
        "names": _names(get_ipython()),
        "begun": _joined().recorder.tally.facts(),
    }


def list_unfinished(stacks: bool = False) -> LeftFacts:
    """Between cells: what this rank has begun and not finished, see tally.py."""
    from IPython import get_ipython

    return _joined().recorder.tally.list_unfinished(get_ipython().user_ns, stacks)


def conditions_hold(conditions: list[list[tuple[str, bool]]]) -> list[bool]:
    """Whether the conditions under which a cell makes a call hold on this rank, for each call.

    It is called between cells.
    """
    from IPython import get_ipython

    return [tally.conditions_hold(condition, get_ipython().user_ns) for condition in conditions]


def renew_groups(groups: list[tuple[str, list[int]]]) -> None:
    """Between cells, on all ranks: give these process groups new connections."""
    _joined().recorder.tally.renew(groups)


def _notes() -> list[Note]:
    recorder = _joined().recorder
    return read(recorder.path) if recorder.entered else []


def _names(shell: InteractiveShell) -> list[str]:
    """The names of what the learner has made in this namespace.

    Modules, imported functions and imported classes are left out.
    """
    hidden = shell.user_ns_hidden
    return sorted(
        name
        for name, value in list(shell.user_ns.items())
        if not name.startswith("_") and name not in hidden and not _imported(value)
    )


def _imported(value: Any) -> bool:
    try:
        return isinstance(value, type(sys)) or (
            callable(value)
            and hasattr(value, "__name__")
            and getattr(value, "__module__", "__main__") != "__main__"
        )
    except Exception:  # noqa: BLE001 - an object of the learner's that answers no question
        return False
