"""Build a piece: source -> executed, canonical notebook; for labs also the learner's lab."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands import unit_links
from manyhands.authoring import (
    BuildError,
    canonical,
    cell_ids,
    hosted_copies,
    labs,
    layout,
    points,
    text,
)
from manyhands.authoring.execute import execute
from manyhands.learner import outcomes

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from nbformat import NotebookNode

    from manyhands.authoring.layout import Piece
    from manyhands.learner.outcomes import Outcome

_PICTURES = ("image/png", "image/jpeg")


def build(
    piece: Piece,
    run: bool = True,
    remeasure: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> list[Path]:
    """Write the files that belong to a piece, and return the list of those that changed.

    The source is among them if it had to be tidied. `progress(number, of)` hears which cell begins.
    """
    tidied = write_all({piece.source: text.write(read_source(piece)).encode()})
    given: dict[str, Outcome] = {}
    notebook = make_notebook(piece, run=run, remeasure=remeasure, progress=progress, given=given)
    files = {piece.notebook: canonical.to_bytes(notebook), **script_files(piece)}
    changed = tidied + write_all(files)
    if piece.lab:
        changed += _remove(others(piece.folder, files))
        released = make_lab(piece)
        changed += write_all(released)
        changed += _remove(others(piece.lab.parent, released))
    elif run and (given or outcomes.of(outcomes.read(piece.root), piece.number)):
        outcomes_text = outcomes.text_with(piece.root, piece.number, given)
        changed += write_all({piece.root / outcomes.FILE: outcomes_text.encode()})
    return changed + write_all(hosted_copy(piece))


def read_source(piece: Piece) -> NotebookNode:
    """The cells of a source; a BuildError if its header or its tags are not right."""
    name = piece.short(piece.source)
    source = text.read(piece.source.read_text(encoding="utf-8"), name)
    header = source.cells[0].metadata.get("unit", {}) if source.cells else {}
    lacking = [key for key in ("minutes", "ranks", "framework", "title") if not header.get(key)]
    if lacking:
        raise BuildError(
            f'{name}: the first cell lacks unit={{"{lacking[0]}": ..., }} in its header'
        )
    if piece.kind == "tutorial" and any("grade_id" in cell.metadata for cell in source.cells):
        raise BuildError(f"{name}: answers and checks belong to a lab, in sources/labs/")
    if piece.lab:
        points.refuse_others(source, name)
    return source


def expected_notebook(piece: Piece) -> NotebookNode:
    """The notebook that the source stands for, not run.

    It has cells, ids, tags and metadata, and the cells of links. A cell whose text was edited keeps
    the id that it has in the stored notebook.
    """
    source = read_source(piece)
    links = unit_links.cells(piece.root, piece.name, piece.kind)
    notebook = canonical.notebook_of(source, piece.short(piece.source), text.write(source), links)
    if piece.notebook.exists():
        cell_ids.keep(notebook, canonical.load(piece.notebook))
    return notebook


def make_notebook(
    piece: Piece,
    run: bool = True,
    remeasure: bool = False,
    progress: Callable[[int, int], object] | None = None,
    given: dict[str, Outcome] | None = None,
) -> NotebookNode:
    """The canonical notebook of a piece.

    Without `run`, cells keep the outputs stored for the same text. With it, the dict `given`
    receives what the run gave for each question that the notebook asks.
    """
    notebook = expected_notebook(piece)
    stored = stored_cells(piece, notebook)
    name = piece.short(piece.notebook)
    if not run:
        for cell in notebook.cells:
            if cell.cell_type == "code" and cell.id in stored:
                cell.outputs, cell.execution_count = (
                    stored[cell.id].outputs,
                    stored[cell.id].execution_count,
                )
        return canonical.clean(notebook, piece.root)
    with tempfile.TemporaryDirectory(prefix="mh-") as stage:
        staged = piece.moved_to(Path(stage).resolve())
        for path, data in script_files(piece).items():
            write_if_changed(staged.root / path.relative_to(piece.root), data)
        staged.folder.mkdir(parents=True, exist_ok=True)
        notes = Path(stage) / "outcomes"
        execute(notebook, staged.folder, name, progress=progress, more={outcomes.NOTES: str(notes)})
        if given is not None:
            given |= outcomes.noted(notes)
        canonical.clean(notebook, piece.root)
        canonical.refuse_places(notebook, name, (piece.root, stage))
    for number, cell in enumerate(notebook.cells, 1):
        if "measured" in cell.metadata.get("tags", []):
            if cell.id in stored and not remeasure and stored[cell.id].execution_count:
                cell.outputs = stored[cell.id].outputs
        elif _picture_alone(cell):
            raise BuildError(
                f"{name}, cell {number} shows a picture and no text. A picture is never compared, "
                'so print the plotted numbers in the same cell, or tag it tags=["measured"]'
            )
    return canonical.clean(notebook, piece.root)


def stored_cells(piece: Piece, expected: NotebookNode) -> dict[str, NotebookNode]:
    """{id: cell} of the code cells in the committed notebook that can be kept.

    Their text is still the same in the `expected` one.
    """
    if not piece.notebook.exists():
        return {}
    sources = {cell.id: cell.source for cell in expected.cells}
    cells = canonical.load(piece.notebook).cells
    return {
        cell.id: cell
        for cell in cells
        if cell.cell_type == "code" and sources.get(cell.id) == cell.source
    }


def _picture_alone(cell: NotebookNode) -> bool:
    outputs = cell.get("outputs", [])
    return any(
        mime in output.get("data", {}) for output in outputs for mime in _PICTURES
    ) and not any(output.output_type == "stream" for output in outputs)


def script_files(piece: Piece) -> dict[Path, bytes]:
    """{path: bytes} of the unit's scripts.

    One with an answer in it belongs to the lab, not to the tutorial.
    """
    return {
        piece.scripts / path.name: path.read_bytes()
        for path in layout.scripts(piece)
        if piece.lab or b"BEGIN SOLUTION" not in path.read_bytes()
    }


def make_lab(piece: Piece) -> dict[Path, bytes]:
    """{path: bytes} of the lab that nbgrader makes from the solution as it is stored."""
    assert piece.lab is not None  # only the source of a lab comes here
    folder = piece.lab.parent
    files = labs.release(piece.folder, piece.name)
    sources = [cell.source for cell in canonical.load(piece.notebook).cells]
    sources += [data.decode() for data in script_files(piece).values()]
    for file_name, data in files.items():
        shown = (
            labs.lab_text(canonical.from_bytes(data))
            if file_name.endswith(".ipynb")
            else data.decode()
        )
        leaked = labs.leaks(sources, shown)
        if leaked:
            raise BuildError(
                f"labs/{piece.name}/{file_name} would show a part of the solution: {leaked[0]}"
            )
    return {folder / file_name: data for file_name, data in files.items()}


def hosted_copy(piece: Piece) -> dict[Path, bytes]:
    """{path: bytes} of the copy that Colab and Kaggle open.

    It is made from the lab or the tutorial as it is stored.
    """
    return hosted_copies.copy_of(piece, canonical.load(piece.lab or piece.notebook))


def write_if_changed(path: Path, data: bytes) -> bool:
    """Write whole or not at all; True if the file changed."""
    if path.exists() and path.read_bytes() == data:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    draft.write_bytes(data)
    if path.exists():
        shutil.copymode(path, draft)
    os.replace(draft, path)
    return True


def write_all(files: Mapping[Path, bytes]) -> list[Path]:
    """Write these files, and return the paths of those whose content has changed."""
    return [path for path, data in files.items() if write_if_changed(path, data)]


def _remove(paths: list[Path]) -> list[Path]:
    for path in paths:
        path.unlink()
    return paths


def others(folder: Path, known: Container[Path]) -> list[Path]:
    """What stands in a generated folder besides the files that are known."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path not in known and not _hidden(path, folder)
    ]


def _hidden(path: Path, folder: Path) -> bool:
    return any(
        part.startswith(".") or part == "__pycache__" for part in path.relative_to(folder).parts
    )
