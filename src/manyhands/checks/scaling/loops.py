"""How many lines of Python a call runs: a loop over 100,000 ranks shows, on a machine of any speed."""

import sys

from manyhands.checks.in_kernel import ask
from manyhands.checks.report import Stopped
from manyhands.checks.scaling.words import MISTAKES


class _TooMany(BaseException):
    """More lines have run than are allowed; no answer's `except Exception` catches it."""


def within(most, function, *args):
    """What function(*args) returns; `Stopped` if it raises, or runs more than `most` lines and calls of Python."""
    ran, before = 0, sys.gettrace()

    def heard(frame, event, _):
        nonlocal ran
        ran += 1
        if ran > most:
            raise _TooMany
        return heard

    sys.settrace(heard)
    try:
        return ask(function, *args)
    except _TooMany:
        raise Stopped(MISTAKES["loop"].format(most=most)) from None
    finally:
        sys.settrace(before)
