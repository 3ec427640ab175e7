"""Checks of functions that run in the notebook's own kernel: their report, and a safe way to call what the learner wrote."""

import numpy as np

from manyhands.checks import Report

NAN = float("nan")
WORDS = {
    "unwritten": "{name} is not written yet: put your code in the place of `raise NotImplementedError`",
    "raised": "{name} raised {error}",
}


class KernelReport(Report):
    """`points` are those of its criteria, by name; `texts[report, criterion]` says what each asks for."""

    def __init__(self, name, texts, **points):
        super().__init__(name)
        self.points, self._texts = points, texts

    def judge(self, name, problems, values, **tolerance):
        """Add a criterion; `problems` are details of FAIL lines, or None: the first one is shown."""
        problem = next((one for one in problems if one), None)
        self.criterion(name, points=self.points[name], text=self._texts[self.name, name], passed=problem is None, values=values,
                       **tolerance, **(problem or {}))

    def fail_all(self, mistake):
        """Every criterion fails for one reason."""
        for name in self.points:
            self.judge(name, [{"mistake": mistake}], [])
        self.show()


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
