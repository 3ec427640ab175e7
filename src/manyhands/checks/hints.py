"""Hints: `hint("06-average")` prints one and remembers that it was opened. Hints cost nothing.

The texts stand in a dict `HINTS` in the unit's module of this package; a hint's name is the unit's number, a dash, and the
name of the report that it helps with. One dict per unit, `{"06-average": "..."}`.
"""

import pkgutil
from importlib import import_module

from manyhands.checks import progress


def all_hints():
    """Every unit's hints, by name."""
    found = {}
    package = import_module("manyhands.checks")
    for module in pkgutil.iter_modules(package.__path__):
        found.update(getattr(import_module(f"manyhands.checks.{module.name}"), "HINTS", {}))
    return found


def hint_for(report_name):
    """The name of the hint that helps with a report, or None."""
    return next((name for name in sorted(all_hints()) if name.split("-", 1)[-1] == report_name), None)


def hint(name):
    """Print a hint and remember, in `work/.manyhands/progress.json`, that it was opened."""
    hints = all_hints()
    if name not in hints:
        print(f"There is no hint {name!r}. There are: {', '.join(sorted(hints)) or 'none yet'}.")
        return
    print(hints[name].strip())
    folder = progress.work_folder()
    if folder:
        unit = next((path.name for path in folder.iterdir() if path.name.startswith(name.split("-")[0] + "_")), None)
        if unit:
            progress.add_hint(folder, unit, name)
