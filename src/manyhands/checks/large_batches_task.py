"""The older name of `manyhands.checks.large_batches.task`.

Tutorial and lab 17 import their task by it. It is kept for the copies of these notebooks that
learners have, while new code imports the module itself.
"""

import sys

from manyhands.checks.large_batches import task

sys.modules[__name__] = task
