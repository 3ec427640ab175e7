"""Kill, stop, trace or throttle the room's first process, or write into its memory.

verdict: The target was not reached
"""

import ctypes
import os
import resource
import signal


def train(model, batches, comm):
    for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        os.kill(1, number)  # a namespace's first process hears nothing of its own namespace
    tries = {
        "memory": lambda: open("/proc/1/mem", "r+b"),
        "its order": lambda: open("/proc/1/environ", "rb"),
        "its files": lambda: os.readlink("/proc/1/fd/0"),
        "its limits": lambda: resource.prlimit(1, resource.RLIMIT_CPU, (1, 1)),
        "its turn": lambda: os.setpriority(os.PRIO_PROCESS, 1, 19),
        "its processors": lambda: os.sched_setaffinity(1, {0}),
        "my limits": lambda: resource.setrlimit(resource.RLIMIT_CPU, (1000, 1000)),
    }
    for name, make in tries.items():
        try:
            make()
            print("gained:", name)
        except (OSError, ValueError):
            pass
    if ctypes.CDLL(None).ptrace(16, 1, 0, 0) == 0:
        print("gained: a trace")
