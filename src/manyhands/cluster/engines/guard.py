"""A small process that outlives the notebook's kernel just long enough to clean up after it.

It is started with the kernel's end of a pipe as its standard input. Lines on it are what must be
ended, as JSON: a process group ({"group": 123}), a folder to remove ({"folder": path}) or an
ipyparallel cluster file ({"cluster_file": path}). When the pipe closes without the line "done", the
kernel has died, and the guard ends all of it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.cluster.payloads import Duty

END_TIMEOUT_S = 3


def _signal(group: int, number: int) -> bool:
    """Send a signal to a process group; false if there is none."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def end_all(duties: list[Duty]) -> None:
    """End and remove all that these duties name, whatever fails on the way."""
    for duty in duties:
        if "cluster_file" in duty:
            try:
                import ipyparallel as ipp

                ipp.Cluster.from_file(duty["cluster_file"]).stop_cluster_sync()
            except Exception as error:  # noqa: BLE001 - the rest must be ended all the same
                print("manyhands guard:", error, file=sys.stderr)
    groups = {duty["group"] for duty in duties if "group" in duty}
    living, deadline = (
        {group for group in groups if _signal(group, signal.SIGTERM)},
        time.monotonic() + END_TIMEOUT_S,
    )
    # the process that forks the ranks ends what they had started
    while living and time.monotonic() < deadline:
        time.sleep(0.05)
        living = {group for group in living if _signal(group, 0)}
    for group in groups:
        _signal(group, signal.SIGKILL)
    for duty in duties:
        if "folder" in duty:
            shutil.rmtree(duty["folder"], ignore_errors=True)


def main() -> None:
    """Collect duties until the kernel has gone, and then carry them out."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    duties: list[Duty] = []
    for line in sys.stdin:
        if line.strip() == "done":
            return
        duties.append(json.loads(line))
    end_all(duties)


if __name__ == "__main__":
    main()
