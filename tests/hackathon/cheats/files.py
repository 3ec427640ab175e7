"""Leave a file for another rank, and for the next run.

verdict: The target was not reached
"""

import os


def train(model, batches, comm):
    comm.barrier().wait()
    for place in (
        "/tmp",
        "/tmp/cache",
        "/dev/shm",
        "/var/tmp",
        "/run",
        "/home",
        ".",
        "/",
        "/dev",
        "/dev/mqueue",
        "/proc",
    ):
        name = f"{place}/left-by-a-rank"
        if os.path.exists(name):
            print("gained: a file", name)
        for make in (
            lambda: open(name, "x").close(),
            lambda: os.mkdir(name),
            lambda: os.symlink("x", name),
        ):
            try:
                make()
                print("gained: made", name)
            except OSError:
                pass
