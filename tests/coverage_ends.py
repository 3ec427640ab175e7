"""Let what ranks and kernels have counted survive SIGKILL.

This is run at the start of each measured process (see coverage_run.py). A measured process saves
its data and ends when it gets a signal that nothing else uses. `os.kill` and `os.killpg` send that
signal first, wait for a moment, and then do what they were asked for. To whoever waits for the
process, it has ended by SIGKILL in both cases. A process that hangs in a library does not answer,
so its lines are not counted.
"""

import os
import signal
import sys
import time

SAVE = signal.SIGRTMAX - 1
PATIENCE_S = 1


def save_and_end(number, frame):
    from coverage import Coverage

    # what `save` does, but without a row for each file of which no line was run: that takes half a
    # second
    try:
        Coverage.current()._collector.flush_data()
    finally:
        KILL(os.getpid(), signal.SIGKILL)


def listens(pid):
    """Whether the process has a handler for the signal.

    Without a handler, the signal would end the process in a different way.
    """
    with open(f"/proc/{pid}/status") as file:
        caught = next(line for line in file if line.startswith("SigCgt:"))
    return int(caught.split()[1], 16) >> (SAVE - 1) & 1


def runs(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] not in "ZX"


def let_save(pid):
    try:
        if pid > 1 and pid != os.getpid() and listens(pid):
            KILL(pid, SAVE)
            deadline = time.monotonic() + PATIENCE_S
            while runs(pid) and time.monotonic() < deadline:
                time.sleep(0.005)
    except (OSError, StopIteration):
        pass  # it has ended, or is not ours


def after_saving(kill):
    def killing(pid, number):
        if number == signal.SIGKILL:
            let_save(pid)
        return kill(pid, number)

    return killing


if not hasattr(sys, "manyhands_coverage"):  # a .pth file may be read twice
    sys.manyhands_coverage = True
    KILL = os.kill
    os.kill, os.killpg = after_saving(os.kill), after_saving(os.killpg)
    signal.signal(SAVE, save_and_end)
