"""The name by which lab 03 imports its checks: `manyhands.checks.torch_dataparallel`."""

import sys

from manyhands.checks import torch_dataparallel

sys.modules[__name__] = torch_dataparallel
