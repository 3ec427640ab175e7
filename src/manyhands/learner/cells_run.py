"""Notes which cells of the learner's notebooks have run.

So Start_Here can say where they left off.

A start-up file of the course's own IPython profile calls `register`, so this holds in the kernels
of JupyterLab, on the hub too, but not where a notebook is built or graded. Only the ids of the
cells and the time of the last one are kept, and only in the learner's own progress file
(`manyhands.checks.progress`). The code itself is not kept.
"""

import os
from pathlib import Path
from typing import Any

from IPython import get_ipython

from manyhands.checks import progress
from manyhands.learner.copies import number_of
from manyhands.learner.fresh_kernel import NewKernel
from manyhands.units import NotACloneError, find_root, units

Place = tuple[Path, str, str]  # (the work folder, the unit's name, the path inside `work`)


def register() -> None:
    """Have this kernel note each cell that runs in its notebook.

    Nothing is noted unless the notebook is one of the learner's copies of a unit.
    """
    # the Jupyter server names the notebook when it starts a kernel
    path = Path(os.environ.get("JPY_SESSION_NAME", ""))
    if place := place_of(path):
        known = place

        def ran(result: Any) -> None:
            if path.is_file():
                note(known, result)

        get_ipython().events.register("post_run_cell", ran)


def place_of(path: Path) -> Place | None:
    """Return (the work folder, the unit's name, the path inside `work`) of a notebook.

    None if it is not one of a unit.
    """
    if path.suffix != ".ipynb" or not path.is_file():
        return None
    path = path.resolve()
    try:
        root = find_root(path.parent)
        name = path.relative_to(root / "work").as_posix()
        name.encode("utf-8")
    except (NotACloneError, ValueError):  # also a name that JupyterLab and the page cannot show
        return None
    folder, _, inside = name.partition("/")
    unit = next((unit.name for unit in units(root) if unit.number == number_of(name)), None)
    # a lab that a class has added
    unit = unit or (folder if inside and folder[:2].isdecimal() else None)
    return (root / "work", unit, name) if unit else None


def note(place: Place, result: Any) -> None:
    """Note the cell of an IPython `ExecutionResult`.

    It is left out if it could not begin because a cell above has not run.

    A cell that failed counts, because many cells of the course show an error on purpose.
    """
    cell = getattr(result.info, "cell_id", None)
    if (
        cell
        and not result.error_before_exec
        and not isinstance(result.error_in_exec, (NameError, NewKernel))
    ):
        progress.add_run(*place, cell)
