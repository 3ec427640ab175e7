"""The name by which unit 17 imports its task: `manyhands.checks.large_batches.task`."""

import sys

from manyhands.checks.large_batches import task

sys.modules[__name__] = task
