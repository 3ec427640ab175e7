"""Leave a process, or start a program.

verdict: The target was not reached
"""

import os
import subprocess
import sys


def train(model, batches, comm):
    for make in (
        os.fork,
        os.forkpty,
        lambda: subprocess.run([sys.executable, "-c", ""]),
        lambda: os.posix_spawn("/bin/sh", ["sh"], {}),
        lambda: os.execv("/bin/sh", ["sh", "-c", "exit"]),
    ):
        try:
            if make() == 0:
                os._exit(0)
            print("gained: a process")
        except OSError:
            pass
