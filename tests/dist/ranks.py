"""Ranks for tests: four processes that stay and run many functions.

So torch is imported once per session and not once per test.

A test asks for the fixture `pool` (it runs once on gloo and once on mpi), or `gloo_pool`, or
`mpi_pool`, all in conftest.py:

    def double(c, x):                       # a function of a test module, not a lambda, not a nested function
        return c.rank, c.allreduce_obj(x)

    def test_double(pool):
        assert pool.values(double, 3, 1) == [(0, 3), (1, 3), (2, 3)]        # every rank must succeed
        outcomes = pool.run(fails, 3, limit_s=20, timeout_s=1)              # ranks may fail: look at each
        assert outcomes[1].error.type == "CommunicationError" and "tag 3" in outcomes[1].error.text and outcomes[1].seconds < 5

* `function(c, *args)` runs on ranks 0 .. n-1 with a fresh communicator `c` of these n ranks, split
  from one over all four; `timeout_s` is that of `c`. Before each call torch's seed is set to 1000 +
  rank, so that ranks differ.
* Arguments and values are pickled; tensors may be among them. The function is imported on the ranks
  by its module's name.
* After `limit_s` seconds all ranks are killed, those that had not answered get an error of type
  "TimeLimit" whose text is their stacks, and the next call starts new ranks. A rank that dies gets
  "Died". No port is fixed, and no process outlives the pool or this process.
* `script(argv, ...)` runs a program to its end in a process group of its own and kills what is left
  of it.
"""

import atexit
import contextlib
import dataclasses
import os
import pickle
import queue
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from multiprocessing.connection import Connection, wait
from pathlib import Path

SIZE = 4
START_S = 120  # for torch's import in four processes on a busy machine


@dataclasses.dataclass
class Error:
    """What a rank raised.

    It has the name of the type, the names of its bases, the message, and the traceback.
    """

    type: str
    bases: tuple
    text: str
    trace: str = ""


@dataclasses.dataclass
class Outcome:
    """What one rank came to: its function's value, or an `Error`, and the seconds until then."""

    value: object = None
    error: Error | None = None
    seconds: float = 0.0


class Pool:
    """SIZE ranks on `backend` ("gloo" or "mpi"), started by the first call of `run`.

    By a `python` that starts warm, they exist at once.
    """

    def __init__(self, backend, python=sys.executable):
        self.backend, self.python = backend, python
        self.folder, self.processes, self.reservation = None, [], None
        self.connections, self.pids = [], []

    def values(self, function, n, *args, limit_s=60, timeout_s=20.0):
        """Like `run`, for functions that must succeed: the list of values.

        An error of a rank fails the test, with its traceback.
        """
        outcomes = self.run(function, n, *args, limit_s=limit_s, timeout_s=timeout_s)
        errors = [
            f"rank {rank}, after {o.seconds:.1f} s: {o.error.trace or o.error.text}"
            for rank, o in enumerate(outcomes)
            if o.error
        ]
        if errors:
            raise AssertionError(
                f"{function.__name__} on {n} ranks of {self.backend}:\n" + "\n".join(errors)
            )
        return [outcome.value for outcome in outcomes]

    def run(self, function, n, *args, limit_s=60, timeout_s=20.0):
        """Run `function(c, *args)` on the first n ranks; n `Outcome`s, by rank."""
        if not 1 <= n <= SIZE:
            raise ValueError(f"n={n}: 1 to {SIZE} ranks")
        if not self.connections:
            self._start()
        job = pickle.dumps((n, timeout_s, pickle.dumps((function, args))))
        begun = time.monotonic()
        with contextlib.suppress(OSError):  # a rank that has gone is seen below
            for connection in self.connections:
                connection.send_bytes(job)
        answers = self._collect(begun, limit_s)
        if any(
            answer is None or (answer.error and answer.error.type == "Died") for answer in answers
        ):
            answers = self._stacks(answers, limit_s)
            self.close(kill=True)
        return answers[:n]

    def _collect(self, begun, limit_s):
        """Each rank's answer, in order; None for who has not answered in time.

        A rank that dies ends the wait soon after.
        """
        answers, deadline = [None] * SIZE, begun + limit_s
        while None in answers:
            ready = wait(
                [c for c, a in zip(self.connections, answers, strict=True) if a is None],
                max(0.0, deadline - time.monotonic()),
            )
            for connection in ready:
                rank = self.connections.index(connection)
                try:
                    value, error, seconds = pickle.loads(connection.recv_bytes())
                    answers[rank] = Outcome(value, Error(*error) if error else None, seconds)
                except (EOFError, OSError):
                    text = (self.folder / f"{rank}.txt").read_text()[-3000:]
                    answers[rank] = Outcome(
                        error=Error("Died", (), f"the process of rank {rank} has ended. {text}"),
                        seconds=time.monotonic() - begun,
                    )
                    deadline = min(deadline, time.monotonic() + 20)
            if not ready:
                break
        return answers

    def _stacks(self, answers, limit_s):
        """Ask those who have not answered where they are."""
        for rank, answer in enumerate(answers):
            if answer is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pids[rank], signal.SIGUSR1)
        time.sleep(0.5)
        return [
            answer
            or Outcome(
                error=Error(
                    "TimeLimit",
                    (),
                    f"rank {rank} has not answered in {limit_s} s. "
                    f"{(self.folder / f'{rank}.txt').read_text()[-3000:]}",
                ),
                seconds=limit_s,
            )
            for rank, answer in enumerate(answers)
        ]

    def _start(self):
        self.folder = Path(tempfile.mkdtemp(prefix="ranks-"))
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(str(self.folder / "door"))
            door.listen(SIZE)
            door.settimeout(START_S)
            with open(self.folder / "log.txt", "w") as log:
                self._launch(log)
            try:
                met = [Connection(door.accept()[0].detach()) for _ in range(SIZE)]
            except TimeoutError:
                text = (self.folder / "log.txt").read_text()
                self.close(kill=True)
                raise RuntimeError(
                    f"the ranks on {self.backend} have not started in {START_S} s:\n{text}"
                ) from None
        order = sorted((*pickle.loads(connection.recv_bytes()), connection) for connection in met)
        self.pids, self.connections = (
            [pid for _, pid, _ in order],
            [connection for _, _, connection in order],
        )

    def _launch(self, log):
        """All processes are in one process group, which is killed at the end."""
        from manyhands.cluster.host.ports import reserve
        from manyhands.cluster.launch.command_lines import base_env, mpiexec

        env = base_env({"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)})
        argv = [self.python, "-m", "ranks", self.backend, str(self.folder)]
        if self.backend == "mpi":
            self._popen([mpiexec(), "-launcher", "fork", "-n", str(SIZE), *argv], env, log)
            return
        self.reservation = reserve(1)
        for rank in range(SIZE):
            self._popen(argv, env | torchrun_env(rank, SIZE, self.reservation.ports[0]), log)

    def _popen(self, argv, env, log):
        group = self.processes[0].pid if self.processes else 0
        self.processes.append(
            subprocess.Popen(
                argv, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=group
            )
        )

    def close(self, kill=False):
        """End the ranks, politely unless `kill`; what does not end within 60 s is killed."""
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.send_bytes(b"" if not kill else b"kill")
        deadline = time.monotonic() + (0 if kill else 60)
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0, deadline - time.monotonic()))
        for connection in self.connections:
            connection.close()  # hydra's ranks are outside our group: a closed connection ends them
        for pid in self.pids if kill else []:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if self.processes:
            with contextlib.suppress(OSError):
                os.killpg(self.processes[0].pid, signal.SIGKILL)
        statuses = [process.wait() for process in self.processes]
        log = (self.folder / "log.txt").read_text() if self.folder else ""
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
        if self.reservation:
            self.reservation.close()
        self.__init__(self.backend, self.python)
        return statuses, log


def torchrun_env(rank, n, port, nodes=1):
    """The environment that torchrun gives to a rank, n // nodes of them on each node."""
    local = n // nodes
    numbers = {
        "RANK": rank,
        "WORLD_SIZE": n,
        "LOCAL_RANK": rank % local,
        "LOCAL_WORLD_SIZE": local,
        "GROUP_RANK": rank // local,
        "MASTER_PORT": port,
    }
    return {name: str(number) for name, number in numbers.items()} | {"MASTER_ADDR": "127.0.0.1"}


def script(argv, limit_s=60, env=None, cwd=None):
    """Run a program to its end: (exit status, standard output, standard error).

    It and its children are killed after `limit_s`: status None.
    """
    from manyhands.cluster.launch.command_lines import base_env

    process = subprocess.Popen(
        argv,
        env=base_env(env),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    try:
        out, err = process.communicate(timeout=limit_s)
        return process.returncode, out, err
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        return None, out, err
    finally:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)


# --- the side of the ranks: python -m ranks BACKEND FOLDER


def _serve(backend, folder):
    """Answer jobs until the connection closes."""
    import faulthandler
    import gc

    import torch
    import torch._dynamo
    import torch.distributed

    from manyhands import comm, functions, ledger, links  # noqa: F401

    rank = int(os.environ.get("RANK", os.environ.get("PMI_RANK", 0)))
    stacks = open(Path(folder) / f"{rank}.txt", "w")  # noqa: SIM115 (open as long as the process lives)
    faulthandler.enable(stacks)
    faulthandler.register(signal.SIGUSR1, stacks)
    torch.set_num_threads(1)
    line = socket.socket(socket.AF_UNIX)
    line.connect(str(Path(folder) / "door"))
    connection = Connection(line.detach())
    jobs, world = queue.SimpleQueue(), comm.create_communicator(backend)
    gc.collect()
    # all modules are here and stay: a collection takes 1 ms in place of 70 and more, after each job
    # on each rank
    gc.freeze()
    atexit.register(gc.unfreeze)  # else Triton lists its objects at the end
    connection.send_bytes(pickle.dumps((rank, os.getpid())))
    threading.Thread(target=_listen, args=(connection, jobs), daemon=True).start()
    while job := jobs.get():
        n, timeout_s, call = pickle.loads(job)
        answer = _answer(world, n, timeout_s, call)
        connection.send_bytes(answer)
    world.close()


def _listen(connection, jobs):
    """Hand on jobs.

    The process ends when the test session has gone, even if a job never returns.
    """
    job = True
    while job:
        try:
            job = connection.recv_bytes()
        except (EOFError, OSError):
            job = b"kill"
        if job == b"kill":
            os._exit(1)
        jobs.put(job)


def _answer(world, n, timeout_s, call):
    """Run one job: the pickled (value, error, seconds)."""
    import gc

    import torch

    from manyhands import comm

    begun, value, error = time.monotonic(), None, None
    try:
        c = world.split(0 if world.rank < n else None)
        if c is not None:
            with c:
                c.timeout_s = timeout_s
                torch.manual_seed(1000 + c.rank)
                function, args = pickle.loads(call)
                value = function(c, *args)
                seconds = time.monotonic() - begun
        answer = pickle.dumps((value, None, time.monotonic() - begun if c is None else seconds))
    except BaseException as caught:  # noqa: BLE001 - handed to the test, which judges it
        bases = tuple(kind.__name__ for kind in type(caught).__mro__)
        error = (
            type(caught).__name__,
            bases,
            str(caught),
            "".join(traceback.format_exception(caught)),
        )
        answer = pickle.dumps((None, error, time.monotonic() - begun))
        traceback.clear_frames(caught.__traceback__)  # graphs that its frames keep
    comm.observers.clear()
    value = c = None
    gc.collect()
    return answer


if __name__ == "__main__":
    _serve(*sys.argv[1:])
