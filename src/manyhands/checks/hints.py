"""Hints: `hint("06-average")` prints a first step, and the next step when it is called again.

It also remembers that it was opened. Hints cost no points.

The texts are in a dict `HINTS` in the unit's package. A hint's name is the unit's number, a dash,
and the name of the report that it helps with. Each unit has one dict, `{"06-average": ("where to
look", "which property the right code has")}`, in which a hint of one step may be a string.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.checks import progress
from manyhands.units import units

if TYPE_CHECKING:
    from collections.abc import Sequence

Hints = dict[str, str | tuple[str, ...]]  # hint's name -> its only step, or its steps

NO_HINT = "There is no hint {name!r}. The existing hints are: {known}."
MORE = 'For more, run hint("{name}") again.'

PACKAGES = {"dataparallel": "torch_dataparallel"}  # where a unit's package has a different name

_steps_shown: dict[str, int] = {}  # hint's name -> how many of its steps this process has shown


def hints_of(number: str) -> Hints:
    """The hints of the unit with this number ("06"), by name.

    Only that unit's module is imported.
    """
    topic = next((unit.name[3:] for unit in units(Path()) if unit.number == number), None)
    package = f"manyhands.checks.{PACKAGES.get(topic, topic)}" if topic else ""
    try:
        return getattr(import_module(package), "HINTS", {}) if package else {}
    except ModuleNotFoundError as error:
        if error.name == package:
            return {}  # a unit that is only planned
        raise


def steps_of(text: str | Sequence[str]) -> tuple[str, ...]:
    """The steps of a hint, from where to look to a property of the right code.

    A string is one step.
    """
    return (text,) if isinstance(text, str) else tuple(text)


def hint_for(report_name: str) -> str | None:
    """The name of the hint that helps with a report, or None. Only imported units are searched."""
    modules = [
        module for name, module in list(sys.modules.items()) if name.startswith("manyhands.checks.")
    ]
    names = {name for module in modules for name in getattr(module, "HINTS", {})}
    return next((name for name in sorted(names) if name.split("-", 1)[-1] == report_name), None)


def hint(name: str) -> None:
    """Print the hint's next step, or the last one again if there are no more.

    Remember in `work/.manyhands/progress.json` that the hint was opened.
    """
    name = hint_for(name) or name  # "rows" for "01-rows", where the lab's checks are imported
    hints = hints_of(str(name).split("-")[0])
    if name not in hints:
        print(NO_HINT.format(name=name, known=", ".join(sorted(hints)) or "none for that unit"))
        return
    steps = steps_of(hints[name])
    shown = min(_steps_shown.get(name, 0), len(steps) - 1)
    _steps_shown[name] = shown + 1
    print(steps[shown].strip())
    if steps[shown + 1 :]:
        print(MORE.format(name=name))
    folder = progress.work_folder()
    if folder:
        unit = next(
            (
                path.name
                for path in folder.iterdir()
                if path.name.startswith(name.split("-")[0] + "_")
            ),
            None,
        )
        if unit:
            progress.add_hint(folder, unit, name)
