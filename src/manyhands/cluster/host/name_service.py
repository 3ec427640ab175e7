"""Whether a name service answers on this machine.

Without one torch warns of each connection that it cannot name the other end, on the standard error
of each rank, though nothing is wrong.
"""

from __future__ import annotations

import functools
import os
import socket
import threading
from contextlib import suppress

LEVEL, ANSWER_TIMEOUT_S = "TORCH_CPP_LOG_LEVEL", 1.0
OWN = ("::ffff:127.0.0.1", 0)  # as a connection of this machine to itself looks to torch's store


def without_warnings() -> dict[str, str]:
    """The variables that keep torch from warning where no name service answers.

    They are for a process that will import it, and leave out the warnings of its C++. There are
    none if the environment says which warnings to show.
    """
    return {} if LEVEL in os.environ or _answers() else {LEVEL: "ERROR"}


@functools.cache
def _answers() -> bool:
    """ "There is no such name" is an answer; a name service that takes long is not waited for."""
    answered = []

    def ask() -> None:
        with suppress(socket.gaierror):
            answered.append(socket.getnameinfo(OWN, 0))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(ANSWER_TIMEOUT_S)
    return bool(answered)
