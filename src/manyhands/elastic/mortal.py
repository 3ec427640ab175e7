"""A function in a process that may be killed; what it leaves behind is looked at from outside."""

import io
import os
import pickle
import resource
import select
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

LIMIT_S = 60
WAITING = (
    ". If the ranks wait for each other, check that all of them make the same calls in the same "
    "order. If this machine is very busy, run it again"
)
# gloo's words for a rank that has ended
LOST = ("closed by peer", "reset by peer", "Broken pipe", "closure")


@dataclass
class Outcome:
    """How a process ended.

    `value` is what the function returned, `killed_by` the signal's name or "", `error` what it
    raised, in words, or "".
    """

    value: Any = None
    killed_by: str = ""
    error: str = ""


def in_process(
    function: Callable[..., Any],
    *args: Any,
    file_bytes: int | None = None,
    dies: bool = False,
    limit_s: float = LIMIT_S,
) -> Outcome:
    """Call `function(*args)` in a fork of this process; returns an `Outcome`.

    This process is not touched.

    `file_bytes`: no file can grow beyond so many bytes. A longer write raises an `OSError`, as on a
    full disk; with `dies` the kernel kills the process at that byte. What the function returns must
    be picklable; what it prints is not shown. After `limit_s` seconds it is killed. Forks and GPUs
    do not go together: the function computes on the CPU, and where GPUs are, it may call `backward`
    only if this process has not done so before (autograd's threads are not in the fork).
    """
    return _collect([_start_fork(function, args, file_bytes, dies)], limit_s)[0]


def in_ranks(
    function: Callable[..., Any], *args: Any, ranks: int, limit_s: float = LIMIT_S
) -> list[Outcome]:
    """Call `function(*args)` on `ranks` ranks over gloo; returns the `Outcome` of each rank.

    Every rank is a fork of this process, as in `in_process`, so that a notebook without a cluster
    can try a few lines of distributed code. `torch.distributed` is initialised before the call and
    ends with the process.
    """
    with tempfile.TemporaryDirectory() as folder:
        calls = [(function, args, f"file://{folder}/store", rank, ranks) for rank in range(ranks)]
        return _collect([_start_fork(_on_rank, call) for call in calls], limit_s, WAITING)


def failure(outcomes: Iterable[Outcome]) -> str:
    """Why ranks have not returned, in words; "" if all have returned.

    A rank's own error comes before those of ranks that only lost the connection to it.
    """
    why = [
        outcome.error or f"A rank was killed by {outcome.killed_by}."
        for outcome in outcomes
        if outcome.error or outcome.killed_by
    ]
    return next(
        (text for text in why if not any(word in text for word in LOST)), why[0] if why else ""
    )


def with_rank(why: str, outcomes: Sequence[Outcome]) -> str:
    """The text of `failure` with its ranks.

    It is for a learner's function that raised or never returned.
    """
    words = why.removeprefix("RuntimeError: ")
    ranks = [rank for rank, outcome in enumerate(outcomes) if outcome.error == why]
    if not why or "is not written yet" in why or not ranks:
        return words
    return f"{'On all ranks' if len(ranks) == len(outcomes) else f'On rank {ranks[0]}'}: {words}"


def _on_rank(
    function: Callable[..., Any], args: Sequence[Any], store: str, rank: int, ranks: int
) -> Any:
    import torch.distributed as dist

    if sys.platform == "linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=ranks)
    answer = function(*args)
    dist.barrier()  # a rank that ends early closes the connections of the others
    return answer


def _start_fork(
    function: Callable[..., Any],
    args: Sequence[Any],
    file_bytes: int | None = None,
    dies: bool = False,
) -> tuple[int, int]:
    """(process number, the end of a pipe that its answer is read from) of a fork that calls it."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        # Python 3.12 warns of forks beside threads
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os.close(reader)
        _run(writer, function, args, file_bytes, dies)
    os.close(writer)
    return child, reader


def _collect(begun: list[tuple[int, int]], limit_s: float, why: str = "") -> list[Outcome]:
    """The `Outcome` of each fork that has begun.

    All that are not done within `limit_s` seconds are killed, and `why` is added to the text about
    these.
    """
    until = time.monotonic() + limit_s
    answers: list[tuple[bytes, bool]] = []
    try:
        for child, reader in begun:
            sent = _read(reader, until)
            while (late := _is_running(child)) and time.monotonic() < until:
                time.sleep(0.001)
            answers.append((sent, late))
    finally:
        statuses = [_reap(child, reader) for child, reader in begun]
    return [
        _outcome(*answer, status, f"{limit_s} s{why}")
        for answer, status in zip(answers, statuses, strict=True)
    ]


def _reap(child: int, reader: int) -> int:
    """The status of a fork, which is killed if it still runs."""
    os.close(reader)
    if _is_running(child):
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def _outcome(sent: bytes, late: bool, status: int, limit: str) -> Outcome:
    if late:
        return Outcome(error=f"not done after {limit}")
    if os.WIFSIGNALED(status):
        return Outcome(killed_by=signal.Signals(os.WTERMSIG(status)).name)
    return (
        Outcome(*pickle.loads(sent))
        if sent
        else Outcome(error=f"ended with status {os.WEXITSTATUS(status)}")
    )


def kill_me() -> None:
    """End this process at once, as a lost machine does: nothing is flushed, no handler runs."""
    os.kill(os.getpid(), signal.SIGKILL)


def _run(
    writer: int,
    function: Callable[..., Any],
    args: Sequence[Any],
    file_bytes: int | None,
    dies: bool,
) -> NoReturn:
    """In the fork: never returns."""
    sys.stdout = sys.stderr = io.StringIO()
    if "torch" in sys.modules:
        # OpenMP's threads are not in the fork, and would be waited for
        sys.modules["torch"].set_num_threads(1)
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if file_bytes is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL if dies else signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
        answer = function(*args), "", ""
    except BaseException as error:  # noqa: BLE001 - a learner's function may raise anything
        answer = None, "", f"{type(error).__name__}: {error}"
    try:
        with open(writer, "wb") as pipe:
            pipe.write(pickle.dumps(answer))
    finally:
        os._exit(0)


def _read(reader: int, until: float) -> bytes:
    """All that comes before the other end is closed, or before it is too late."""
    parts = []
    while select.select([reader], [], [], max(0, until - time.monotonic()))[0] and (
        part := os.read(reader, 1 << 16)
    ):
        parts.append(part)
    return b"".join(parts)


def _is_running(child: int) -> bool:
    """Whether it has not ended yet; it is not waited for."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
