"""A command under the guard: nothing that it starts outlives it, not even what lives in a session of its own, as the
workers of torchrun do."""

import json
import subprocess
import sys

from manyhands.cluster.launch.command_lines import GUARD, base_env


def guarded(*argv, env=None, timeout_s=400):  # two ranks that die and start again took 192 s on a very busy machine
    """Run `argv`, with `env` on top of this process's environment, and return what it printed, stderr too.

    When it ends, or after `timeout_s` seconds, every process that came of it is killed; after the time-out the last
    line says so. `python` as the first word is the Python of this kernel.
    """
    argv = [sys.executable if argv[0] == "python" else argv[0], *map(str, argv[1:])]
    guard = subprocess.Popen([sys.executable, "-I", GUARD, "guard"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, start_new_session=True, env=base_env(None))
    try:
        guard.stdin.write(json.dumps([{"argv": argv, "env": base_env(env)}]) + "\n")
        guard.stdin.flush()
        # stdin stays open: its end would tell the guard that this process has gone
        lines, late = _read(guard, timeout_s)
    finally:
        guard.stdin.close()
        guard.stdout.close()
        guard.wait()
    return "".join(lines) + (f"not done after {timeout_s} s\n" if late else "")


def _read(guard, timeout_s):
    """(the lines until the guard's end, whether the time was over before)."""
    import threading

    late = threading.Event()

    def end():
        late.set()
        guard.stdin.close()

    timer = threading.Timer(timeout_s, end)
    timer.daemon = True
    timer.start()
    try:
        return list(guard.stdout), late.is_set()
    finally:
        timer.cancel()
