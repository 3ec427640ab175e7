"""One thread at a time uses a cluster."""

from __future__ import annotations

import threading

from manyhands.cluster.faults.fault_messages import SENTENCES


class Turn:
    """The right of one thread to use a cluster; a second thread gets a RuntimeError.

    No thread waits for its turn, so the stop button cannot leave one waiting.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: int | None = None

    def __enter__(self) -> None:
        if self._thread not in (None, threading.get_ident()):
            raise RuntimeError(SENTENCES["busy"].format(name=self._name))
        self._thread = threading.get_ident()

    def __exit__(self, *exc: object) -> None:
        self._thread = None
