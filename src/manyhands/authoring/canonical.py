"""The one form of a notebook in this repository: the same content gives the same bytes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import nbformat

from manyhands import unit_links
from manyhands.authoring import BuildError, hidden

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from nbformat import NotebookNode

METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"file_extension": ".py", "mimetype": "text/x-python", "name": "python"},
}
# what a check shows to the grader, who runs the solution anew
RECORD = "application/vnd.manyhands.record+json"
_NEVER_STORED = ("application/vnd.jupyter.widget-view+json", RECORD)
_KEPT_CELL_METADATA = {"tags", "nbgrader", "deletable", "editable", "jupyter"}
_OVERWRITTEN = re.compile(r"^.*\r(?=[^\n])", re.M)


def to_bytes(notebook: NotebookNode) -> bytes:
    """The bytes of a notebook: sorted keys, one space of indent, a newline at the end."""
    nbformat.validate(notebook)
    return (
        nbformat.writes(notebook, version=4, sort_keys=True, indent=1).rstrip("\n") + "\n"
    ).encode()


def from_bytes(data: bytes) -> NotebookNode:
    """Read a notebook from its bytes as version 4 of the format, without looking for mistakes."""
    return nbformat.reads(data.decode(), as_version=4)


def load(path: Path) -> NotebookNode:
    """The notebook in a file.

    Raises a BuildError if there is none in it, as after a merge that left its marks.
    """
    try:
        return from_bytes(path.read_bytes())
    except (ValueError, nbformat.validator.ValidationError) as error:
        marks = " A merge has left its marks in it." if b"\n<<<<<<< " in path.read_bytes() else ""
        raise BuildError(
            f"{path.name} is not a notebook.{marks} Take the version of one side, for example by "
            f"git checkout --theirs -- {path}, and build it again with --no-execute."
        ) from error


def fingerprint(text: str) -> str:
    """A short mark of a source's text: a notebook carries that of the source it was built from."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def pretty(part: Any) -> str:
    """Any part of a notebook as lines that can be compared."""
    return json.dumps(part, indent=1, sort_keys=True, ensure_ascii=False)


def notebook_of(
    source: NotebookNode, path: str, text: str, links: Mapping[str, str] | None = None
) -> NotebookNode:
    """The notebook, not yet run, that a parsed source stands for.

    It names the source and the text it was made from. `links` are the cells that
    `manyhands.unit_links` makes for it, one behind the title and one at the end.
    """
    notebook = nbformat.v4.new_notebook()
    notebook.nbformat_minor = 5
    notebook.metadata = nbformat.from_dict(
        {**METADATA, "manyhands": {"source": path, "sha256": fingerprint(text)}}
    )
    copies: dict[str, int] = {}
    for cell in source.cells:
        made = getattr(nbformat.v4, f"new_{cell.cell_type}_cell")(cell.source)
        made.metadata = nbformat.from_dict(_metadata(cell))
        digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:12]
        copies[digest] = copies.get(digest, 0) + 1
        made.id = cell.metadata.get("grade_id") or (
            digest if copies[digest] == 1 else f"{digest}-{copies[digest]}"
        )
        notebook.cells.append(made)
    for name, text in (links or {}).items():
        place = 1 if name == unit_links.HEAD else len(notebook.cells)
        notebook.cells.insert(place, nbformat.v4.new_markdown_cell(text, id=name))
    return notebook


def _metadata(cell: NotebookNode) -> dict[str, Any]:
    """Tags, whether its source is hidden, and nbgrader's entries for an answer or a check."""
    tags = list(cell.metadata.get("tags", []))
    metadata: dict[str, Any] = {"tags": tags} if tags else {}
    if cell.cell_type == "code" and hidden.call_of(cell.source):
        metadata["jupyter"] = hidden.METADATA
    if "grade_id" in cell.metadata:
        check = "check" in tags
        metadata["nbgrader"] = {
            "grade": check,
            "grade_id": cell.metadata["grade_id"],
            "locked": check,
            "schema_version": 3,
            "solution": not check,
            "task": False,
        }
        if check:
            metadata["nbgrader"]["points"] = cell.metadata["points"]
    return metadata


def clean(notebook: NotebookNode, root: str | Path | None = None) -> NotebookNode:
    """Bring an executed notebook to its canonical form, in place.

    That is: counts 1..n, tidy outputs, only the metadata we keep.
    """
    notebook.metadata = nbformat.from_dict({**METADATA, **_ours(notebook)})
    count = 0
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict(
            {k: v for k, v in cell.metadata.items() if k in _KEPT_CELL_METADATA}
        )
        if cell.cell_type != "code":
            continue
        if cell.execution_count is not None:
            count += 1
            cell.execution_count = count
        cell.outputs = [
            _tidy(output, cell.execution_count, root) for output in _merged(cell.outputs)
        ]
        cell.outputs = [output for output in cell.outputs if output.get("data", True)]
    return notebook


def _ours(notebook: NotebookNode) -> dict[str, Any]:
    return {"manyhands": notebook.metadata["manyhands"]} if "manyhands" in notebook.metadata else {}


def _merged(outputs: Iterable[NotebookNode]) -> list[NotebookNode]:
    """Streams between two other outputs as one text each, stdout first.

    Their pieces arrive in no fixed order.
    """
    merged: list[NotebookNode] = []
    run: dict[str, NotebookNode] = {}
    for output in outputs:
        if output.output_type == "stream":
            if output.name in run:
                run[output.name].text += output.text
            else:
                run[output.name] = output
        else:
            merged += [run[name] for name in sorted(run, reverse=True)] + [output]
            run = {}
    return merged + [run[name] for name in sorted(run, reverse=True)]


def _tidy(output: NotebookNode, count: int | None, root: str | Path | None) -> NotebookNode:
    if output.output_type == "stream":
        output.text = _OVERWRITTEN.sub("", output.text)
    elif output.output_type == "error":
        output.traceback = [_without_places(line, root) for line in output.traceback]
    else:
        output.data = {
            mime: data for mime, data in output.data.items() if mime not in _NEVER_STORED
        }
        if output.output_type == "execute_result":
            output.execution_count = count
    return output


def _without_places(text: str, root: str | Path | None) -> str:
    """A traceback without the folders of this machine.

    Paths start at the installed packages or at the course.
    """
    home = os.path.expanduser("~")
    for folder in (sys.prefix, sys.base_prefix, root):
        if folder:
            text = re.sub(
                rf"{re.escape(f'{folder}/')}(lib/python3\.\d+/)?(site-packages/)?", "", text
            )
            # as IPython shows what is in the home folder
            short = f"{folder}/".replace(f"{home}/", "~/", 1)
            text = re.sub(rf"{re.escape(short)}(lib/python3\.\d+/)?(site-packages/)?", "", text)
    return text


def refuse_places(notebook: NotebookNode, name: str, folders: Iterable[str | Path]) -> None:
    """Stop if an output or a traceback shows a folder of this machine.

    It would differ on every other machine.
    """
    places = [re.escape(str(folder)) + r"(?![\w.-])" for folder in folders] + [
        re.escape(tempfile.gettempdir()) + r"/\w+"
    ]
    for number, cell in enumerate(notebook.cells, 1):
        for output in cell.get("outputs", []):
            shown = str({key: value for key, value in output.items() if key != "metadata"})
            shown_folder = re.search("|".join(places), shown)
            if shown_folder:
                raise BuildError(
                    f"{name}, cell {number}: its output shows {shown_folder.group()}, a folder of this "
                    "machine"
                )
