"""What C++ libraries write to a rank's stderr.

It goes to a file, where it outlives an abort, and from there to the notebook.

The kernel's own way is a pipe that a thread of the same process empties: the words before an abort,
its reason, are lost with the process.
"""

from __future__ import annotations

import os
import sys
import threading


class NativeStderr:
    """File number 2 of this process, led into the file `path`.

    `publish()` sends what is new in it to the notebook.
    """

    def __init__(self, path: str) -> None:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        self._file = open(path, errors="replace")  # noqa: SIM115 - kept open
        self._notebook, self._lock = sys.stderr, threading.Lock()
        os.dup2(number, 2)
        os.close(number)

    def publish(self) -> None:
        """Send the notebook what was written since the last call."""
        with self._lock:
            text = self._file.read()
            if text:
                self._notebook.write(text)
