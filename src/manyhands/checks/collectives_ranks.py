"""The name by which tutorial 05 imports the ways of an all-reduce: `manyhands.checks.collectives.ranks`."""

import sys

from manyhands.checks.collectives import ranks

sys.modules[__name__] = ranks
