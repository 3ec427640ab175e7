"""A command under the guard: nothing that it starts outlives it.

That includes processes in another session, such as the workers of torchrun.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from manyhands.cluster.launch.command_lines import GUARD, base_env

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


# two ranks that die and start again took 192 s on a very busy machine
def guarded(*argv: Any, env: Mapping[str, Any] | None = None, timeout_s: float = 400) -> str:
    """Run `argv` and return what it printed, stderr included.

    `env` comes on top of this process's environment.

    When it ends, or after `timeout_s` seconds, every process that came of it is killed; after the
    time-out the last line says so. `python` as the first word is the Python of this kernel.
    """
    command = [sys.executable if argv[0] == "python" else argv[0], *map(str, argv[1:])]
    guard = subprocess.Popen(
        [sys.executable, "-I", GUARD, "guard"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env=base_env(None),
    )
    assert guard.stdin is not None and guard.stdout is not None  # pipes
    try:
        guard.stdin.write(json.dumps([{"argv": command, "env": base_env(env)}]) + "\n")
        guard.stdin.flush()
        # stdin stays open: its end would tell the guard that this process has gone
        lines, late = _read(guard, timeout_s)
    finally:
        guard.stdin.close()
        guard.stdout.close()
        guard.wait()
    return "".join(lines) + (f"not done after {timeout_s} s\n" if late else "")


def _read(guard: subprocess.Popen[str], timeout_s: float) -> tuple[list[str], bool]:
    """(the lines until the guard's end, whether the time was over before)."""
    import threading

    assert guard.stdin is not None and guard.stdout is not None  # pipes
    stdin, late = guard.stdin, threading.Event()

    def end() -> None:
        late.set()
        stdin.close()

    timer = threading.Timer(timeout_s, end)
    timer.daemon = True
    timer.start()
    try:
        return list(guard.stdout), late.is_set()
    finally:
        timer.cancel()
