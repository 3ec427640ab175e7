"""The older name of `manyhands.checks.large_batches.task`, by which tutorial and lab 17 import
their task.

It is kept for the copies of these notebooks that learners have, while new code imports the module
itself.
"""

import sys

from manyhands.checks.large_batches import task

sys.modules[__name__] = task
