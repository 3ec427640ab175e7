"""Notebooks that cannot be shown: which, in which cell, and why."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbformat.validator import iter_validate

HEAD = 60  # characters of a cell that are quoted


def problems(path: str | Path, name: str | Path) -> list[str]:
    """Return sentences on what is wrong with the notebook at `path`, or none if it is sound.

    The reader knows the notebook as `name`.
    """
    try:
        notebook = nbformat.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))
    except json.JSONDecodeError as error:
        return [f"{name}, line {error.lineno}: this is not JSON: {error.msg}"]
    except UnicodeDecodeError as error:
        return [f"{name}: this is not UTF-8 text: {error.reason} at byte {error.start}"]
    if not isinstance(notebook, dict) or "cells" not in notebook:
        return [f"{name}: this is not a notebook: it has no cells"]
    # one sentence a cell: the schema's later ones follow from the first
    complaints: dict[int | None, str] = {}
    for complaint in iter_validate(notebook, relax_add_props=True):
        where = list(complaint.absolute_path)
        number = where[1] if where[:1] == ["cells"] and len(where) > 1 else None
        complaints.setdefault(number, f"{cell_place(name, notebook, number)}: {_why(complaint)}")
    if complaints:
        return list(complaints.values())
    return [
        f"{cell_place(name, notebook, number)}: it is stored with an error, {output['ename']}: "
        f"{_line(output['evalue'])}"
        for number, cell in enumerate(notebook["cells"])
        if cell["cell_type"] == "code"
        and "raises-exception" not in cell["metadata"].get("tags", ())
        for output in cell["outputs"]
        if output["output_type"] == "error"
    ]


def cell_place(name: str | Path, notebook: Mapping[str, Any], number: int | None) -> str:
    """Write `notebooks/06_ddp.ipynb, cell 8 of 31 ("run = ...")`.

    Cells count from 1, as a reader counts.
    """
    if number is None:
        return str(name)
    source = (
        notebook["cells"][number].get("source", "")
        if isinstance(notebook["cells"][number], dict)
        else ""
    )
    line = _line("".join(source))
    return f"{name}, cell {number + 1} of {len(notebook['cells'])}" + (
        f' ("{line}")' if line else ""
    )


def _why(error: Any) -> str:
    """The innermost reason of a schema's complaint."""
    while error.context:
        error = min(
            error.context, key=lambda cause: (cause.validator == "enum", -len(cause.absolute_path))
        )
    return error.message[:200]


def _line(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= HEAD else line[:HEAD] + "..."
