"""Checks of functions that run in the notebook's own kernel:
a safe way to call what the learner wrote, and to read what it returns."""

import numpy as np

from manyhands.checks.report import Stopped

NAN = float("nan")
WORDS = {
    "unwritten": "{name} is not written yet: put your code in the place of `raise NotImplementedError`",
    "raised": "{name} raised {error}",
}


def ask(function, *args):
    """What the learner's function returns; `Stopped` if it raises."""
    answer, error = call(function, *args)
    if error:
        raise Stopped(error)
    return answer


def call(function, *args):
    """(what the learner's function returns, None), or (None, what went wrong in words)."""
    name = getattr(function, "__name__", "your function")
    try:
        return function(*args), None
    except NotImplementedError:
        return None, WORDS["unwritten"].format(name=name)
    except (Exception, SystemExit) as error:
        return None, WORDS["raised"].format(name=name, error=_in_a_line(error)[:300])


def _in_a_line(error):
    """`ValueError: why`; where tf.function has put the learner's source lines before it, without them."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    own = type(error).__name__ + ":"
    return next((line for line in lines if line.startswith(own)), f"{own} {lines[0]}")


def number(value):
    """What the learner has returned as a float; not a number where it is none."""
    try:
        return float(value)
    except Exception:  # a learner's object may do anything here
        return NAN


def array(value):
    """A tensor, variable or array as float NumPy; an empty array where it is nothing of the kind."""
    if value is None:
        return np.empty(0)
    try:
        return np.asarray(value.numpy() if hasattr(value, "numpy") else value, dtype=float)
    except Exception:  # a learner's object may do anything here
        return np.empty(0)
