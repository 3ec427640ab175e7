"""The copies in `hosted/`, which the badges open in Colab and Kaggle.

These places open one notebook and nothing else of the repository. So each copy begins with a cell
that fetches the course and prepares the place (`manyhands.learner.hosted`). It is hidden, and does
nothing elsewhere. The cell that imports the course says that this one comes first, because nothing
of ours is there to say so if it was left out. All links of the copy lead to the repository. A
tutorial has no outputs, so that a prediction can be made before the answer is seen, and what
JupyterLab hides of its sources is hidden in these places, too.

The cell is in a copy, because in the notebooks themselves it would stand above every learner's
work, and would be run, graded and compared with them.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import nbformat

from manyhands import repository, unit_links
from manyhands.authoring import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from nbformat import NotebookNode

    from manyhands.authoring.layout import Piece

PREPARE = "hosted-prepare"  # the id of the first cell
# [words](path)
_RELATIVE = re.compile(r"(?<!!)(\[(?:[^\[\]]|\[[^\[\]]*\])*\])\((?![a-z]+:|#)([^()\s]+)\)")
# How Colab, Kaggle and JupyterLab know that a cell's source is to be hidden.
_HIDDEN = {
    "cellView": "form",
    "_kg_hide-input": True,
    "jupyter": {"source_hidden": True},
    "tags": ["hide-input"],
}
_BEFORE = (
    "# In Colab or Kaggle, run the first cell of this notebook before this one, also after a "
    "restart."
)
_IMPORT = re.compile(r"^(?:from|import) manyhands\b", re.MULTILINE)
_FIRST = """\
#@title Prepare this place: run this cell first {{ display-mode: "form" }}
# In Colab and Kaggle, it fetches the course and installs what is missing beside the PyTorch that
# is there already, which takes about a minute, once in a session. Elsewhere, it does nothing.
import os
import subprocess
import sys
import tempfile

REPOSITORY = "{address}"
NOTEBOOK = "{path}"
PLACES = {{"KAGGLE_KERNEL_RUN_TYPE": "/kaggle/working", "COLAB_RELEASE_TAG": "/content"}}
place = next((folder for name, folder in PLACES.items() if name in os.environ), None)
if place:
    if not os.path.exists(f"{{place}}/manyhands"):
        new = tempfile.mkdtemp(dir=place, prefix=".new-")  # a fetch may be stopped
        if subprocess.run(["git", "clone", "--quiet", "--depth=1", REPOSITORY, new]).returncode:
            raise SystemExit(f"The course could not be fetched from {{REPOSITORY}}. Is there a "
                             "network? In Kaggle, switch it on: Settings > Turn on internet.")
        os.rename(new, f"{{place}}/manyhands")
    sys.path.insert(0, f"{{place}}/manyhands/src")
    from manyhands.learner import hosted

    hosted.prepare(NOTEBOOK)"""


def is_copied(piece: Piece) -> bool:
    """Whether the piece has a copy.

    It has one only if the course names a repository that Colab and Kaggle can read.
    """
    return bool(repository.opens_in_colab(repository.address(piece.root), piece.name))


def copy_of(piece: Piece, notebook: NotebookNode) -> dict[Path, bytes]:
    """{path: bytes} of the copy of a tutorial or a lab, which is `notebook`; {} if it has none."""
    if not is_copied(piece):
        return {}
    address, path = repository.address(piece.root), piece.short(piece.hosted)
    links = unit_links.cells(piece.root, piece.name, piece.kind, hosted=True)
    folder = "notebooks" if piece.kind == unit_links.TUTORIAL else f"labs/{piece.name}"
    first = nbformat.v4.new_code_cell(
        _FIRST.format(address=address, path=path), id=PREPARE, metadata=_HIDDEN
    )
    cells = [first] + [
        _cell(cell, links, folder, address, piece)
        for cell in notebook.cells
        if cell.id in links or cell.id not in (unit_links.HEAD, unit_links.FOOT)
    ]
    importing = next(
        (cell for cell in cells if cell.cell_type == "code" and _IMPORT.search(cell.source)), None
    )
    if importing:  # right above the import, where a traceback shows it, too
        importing.source = _IMPORT.sub(
            lambda match: f"{_BEFORE}\n{match[0]}", importing.source, count=1
        )
    made = nbformat.v4.new_notebook(metadata=dict(canonical.METADATA), cells=cells)
    return {piece.hosted: canonical.to_bytes(made)}


def _cell(
    cell: NotebookNode, links: Mapping[str, str], folder: str, address: str, piece: Piece
) -> NotebookNode:
    """A cell of the notebook as the copy has it."""
    made = nbformat.from_dict(cell)
    if made.cell_type == "markdown":
        made.source = links.get(made.id) or on_the_web(made.source, folder, address)
    elif made.cell_type == "code" and not piece.lab:
        made.outputs, made.execution_count = [], None
    if made.metadata.get("jupyter", {}).get("source_hidden"):  # Colab shows the title instead
        made.source = re.sub(
            r"^# (.*)", r'#@title \1 { display-mode: "form" }', made.source, count=1
        )
        made.metadata.update({name: _HIDDEN[name] for name in ("cellView", "_kg_hide-input")})
    return made


def on_the_web(text: str, folder: str, address: str) -> str:
    """The text of a notebook with links that work on the web.

    Each relative link of `text`, which is seen from the clone's `folder`, leads to the file in the
    repository.
    """

    def link(match: re.Match[str]) -> str:
        path, _, anchor = match[2].partition("#")
        page = repository.file_page(address, os.path.normpath(f"{folder}/{path}"), anchor)
        return f"{match[1]}({page})"

    return _RELATIVE.sub(link, text)
