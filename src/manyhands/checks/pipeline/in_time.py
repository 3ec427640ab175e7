"""Calls of a learner's function that may never end.

They take a few seconds at most, in the notebook's kernel.
"""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


def answer_in(
    seconds: float, function: Callable[..., Any], *args: Any
) -> tuple[Any, BaseException | None]:
    """Return (what the function returns, None) or (None, the exception that it raised).

    The exception is TimeoutError if it took longer. Only Python's main thread can be interrupted,
    which runs a notebook's cells. In other threads there is no limit.
    """

    def end(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"no answer within {seconds} seconds")

    here = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGALRM, end) if here else None
    try:
        if here:
            signal.setitimer(signal.ITIMER_REAL, seconds)
        return function(*args), None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a learner's function may raise anything
        return None, error
    finally:
        if here:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
