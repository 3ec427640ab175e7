"""What a check cell calls: a report with one line for each criterion, and a record for the grader.

    report = Report("average")
    report.criterion("mean", points=2, text="gradients equal the serial ones", passed=close, values=gradients,
                     atol=1e-5, rank=2, expected=serial, got=gradients, mistake="You summed, but did not divide.")
    report.show()

The line is for the reader. The record is for `manyhands.grading`, which compares its values,
outside the kernel, with the solution's values under the same seed, because a result from inside the
kernel is never itself the evidence.
"""

import os
import sys

from manyhands.checks import older_names, unrun_answers
from manyhands.checks.hints import hint
from manyhands.checks.report import Report

__all__ = ["Report", "hint", "seed"]


def seed() -> int:
    """The seed that every check draws its inputs from.

    It is `MANYHANDS_SEED`, which is 0 for the learner and hidden for the grader.
    """
    return int(os.environ.get("MANYHANDS_SEED") or 0) % 2**31  # what every generator takes


older_names.register()
if "IPython" in sys.modules:
    unrun_answers.register(sys.modules["IPython"].get_ipython())
