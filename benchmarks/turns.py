"""Jobs of several ranks that take turns.

A driver hands out blocks of steps, and a rank that has no block sleeps in a socket's read.

Only the standard library is imported here: the ranks of ChainerMN run in an environment of their
own.
"""

import contextlib
import os
import secrets
import statistics
import subprocess
import tempfile
import time
import traceback
from multiprocessing.connection import Client, Listener

RANKS = 2
TAIL = 3000  # characters of a job's output that an error quotes
TOO_LONG_S = 120  # no block takes that long


class Job:
    """Ranks started by one mpiexec; the driver's side of them."""

    def __init__(self, mpiexec, python, program, env):
        key = secrets.token_bytes(16)
        self.output = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by close
        with Listener(("127.0.0.1", 0), authkey=key) as listener:
            address = f"{listener.address[0]}:{listener.address[1]}"
            env = {
                **os.environ,
                "OMP_NUM_THREADS": "1",
                "GLOO_SOCKET_IFNAME": "lo",
                "TURNS": address,
                "TURNS_KEY": key.hex(),
                **env,
            }
            self.process = subprocess.Popen(
                [mpiexec, "-n", str(RANKS), python, str(program)],
                env=env,
                stdout=self.output,
                stderr=self.output,
            )
            # so that ranks that end before they call are noticed
            listener._listener._socket.settimeout(1)
            self.ranks = {}
            while len(self.ranks) < RANKS:
                self._accept(listener)

    def _accept(self, listener):
        try:
            connection = listener.accept()
        except TimeoutError:
            self._check_alive()
        else:
            self.ranks[connection.recv()] = connection

    def _check_alive(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"the ranks have ended:\n{self._tail()}")

    def _tail(self):
        self.output.seek(0)
        return self.output.read()[-TAIL:]

    def ask(self, *order):
        """Give all ranks the same order; their answers, by rank.

        An exception of a rank is raised here.
        """
        for connection in self.ranks.values():
            connection.send(order)
        answers = []
        for rank in range(RANKS):
            if not self.ranks[rank].poll(TOO_LONG_S):
                raise RuntimeError(f"rank {rank} does not answer to {order}:\n{self._tail()}")
            try:
                kind, answer = self.ranks[rank].recv()
            except EOFError:
                raise RuntimeError(f"rank {rank} has ended at {order}:\n{self._tail()}") from None
            if kind == "raised":
                raise RuntimeError(f"rank {rank} at {order}:\n{answer}")
            answers.append(answer)
        return answers

    def block(self, contestant, case, steps):
        """Seconds of one step: the median of a block of them, on the rank where it is longer."""
        return max(
            statistics.median(seconds) for seconds in self.ask("block", contestant, case, steps)
        )

    def close(self):
        """End the ranks, and wait for their process."""
        for connection in self.ranks.values():
            connection.send(("end",))
        self.process.wait(30)
        self.output.close()


def serve(rank, make, barrier):
    """A rank's side: until the driver says end, run the blocks that it orders.

    make(contestant, call, shape) gives (step, check, around): step is one forward and backward,
    check raises if its gradients are wrong, around() is a context manager in which a block runs, or
    None.
    """
    host, port = os.environ["TURNS"].split(":")
    driver = Client((host, int(port)), authkey=bytes.fromhex(os.environ["TURNS_KEY"]))
    driver.send(rank)
    made = {}
    while (order := driver.recv())[0] != "end":
        _, contestant, case, steps = order
        try:
            if made.get("of") != case:  # the tensors of one case only are kept
                made = {"of": case}
            if contestant not in made:
                step, check, around = make(contestant, *case)
                step()
                check()
                made[contestant] = step, around or contextlib.nullcontext
            step, around = made[contestant]
            with around():
                answer = "done", timed(step, steps, barrier)
        except Exception:  # noqa: BLE001 - the driver shows it
            answer = "raised", traceback.format_exc()
        driver.send(answer)


def timed(step, steps, barrier):
    """Seconds of each step. The first one is not counted, unless it is the only one."""
    barrier()
    if steps > 1:
        step()
    seconds = []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return seconds
