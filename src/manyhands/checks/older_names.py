"""The names by which version 0.1 knew four modules of this package.

A learner's copy of lab 03 or 17, or of tutorial 05 or 17, still imports them. The next release no
longer has these names.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

OLDER_NAMES = {
    "manyhands.checks.collectives_ranks": "manyhands.checks.collectives.ranks",
    "manyhands.checks.communication_costs_cases": "manyhands.checks.communication_costs.cases",
    "manyhands.checks.dataparallel": "manyhands.checks.torch_dataparallel",
    "manyhands.checks.large_batches_task": "manyhands.checks.large_batches.task",
}


class _OlderNames(MetaPathFinder, Loader):
    """Imports the module of today for an older name, with a DeprecationWarning."""

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        """The spec of an older name, or None for any other."""
        return ModuleSpec(fullname, self) if fullname in OLDER_NAMES else None

    def exec_module(self, module: ModuleType) -> None:
        """Replace the new, empty module by the one of today."""
        older, newer = module.__name__, OLDER_NAMES[module.__name__]
        message = f"{older} is now called {newer}. The next release does not have the older name."
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        sys.modules[older] = import_module(newer)


def register() -> None:
    """Let `import` accept the older names from now on."""
    sys.meta_path.append(_OlderNames())
