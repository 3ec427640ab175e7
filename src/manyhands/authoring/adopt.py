"""The way back: an edited notebook becomes the source that it stands for. No text is ever lost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat

from manyhands import unit_links
from manyhands.authoring import BuildError, UnknownNameError, canonical, hidden, layout, text
from manyhands.authoring.make import write_if_changed

if TYPE_CHECKING:
    from nbformat import NotebookNode


def adopt(root: str | Path, path: str | Path) -> list[str]:
    """Write an edited notebook, or an untidily saved source, back to its source.

    Returns the lines to show the author.
    """
    piece = piece_of(root, path)
    path = Path(path).resolve()
    name = piece.short(path)
    source = (
        text.read(path.read_text(encoding="utf-8"), name)
        if path.suffix == ".py"
        else as_source(canonical.load(path), piece)
    )
    new = text.write(source)
    _refuse_loss(source, text.read(new, name), name)
    old = piece.source.read_text(encoding="utf-8") if piece.source.exists() else None
    if new == old:
        return [
            f"{piece.short(piece.source)} is already the same: nothing to do",
            *_edited_links(path, piece),
        ]
    lines = []
    if old is not None and path != piece.source and _source_is_newer(path, old):
        backup = _free_name(piece.source)
        write_if_changed(backup, old.encode())
        lines.append(
            f"{piece.short(piece.source)} was edited after this notebook was built, so its old text"
            f" is kept in {backup.name}"
        )
    write_if_changed(piece.source, new.encode())
    lines.append(f"{piece.short(piece.source)} written; now run: manyhands build {piece.number}")
    lines += _edited_links(path, piece)
    if "unit=" not in new.split("\n", 1)[0]:
        lines.append(
            'its first cell lacks unit={"minutes": ..., "ranks": ..., "framework": "...", "title": '
            '"..."}'
        )
    return lines


def piece_of(root: str | Path, path: str | Path) -> layout.Piece:
    """Which piece a file belongs to; UnknownNameError says why a file cannot be adopted."""
    root, path = Path(root).resolve(), Path(path).resolve()
    if not path.is_file():
        raise UnknownNameError(f"the file {path} does not exist")
    inside = path.is_relative_to(root)
    parts: tuple[str, ...] = path.relative_to(root).parts if inside else ()
    if parts[:1] == ("labs",):
        raise UnknownNameError(
            f"{'/'.join(parts)} is made from the solution, which a lab does not contain: adopting "
            f"it would lose the answers. Edit solutions/{path.stem}/{path.stem}.ipynb and adopt "
            f"that, or edit sources/labs/{path.stem}.py"
        )
    if parts[:1] == ("work",):
        raise UnknownNameError(
            f"{'/'.join(parts)} is a learner's own copy: nothing is made from it"
        )
    kind = {"notebooks": "tutorial", "solutions": "labs"}.get(parts[0] if parts else "")
    if parts[:1] == ("sources",) and len(parts) == 3 and parts[1] in ("tutorial", "labs"):
        kind = parts[1]
    piece = (
        layout.Piece(root, kind, path.stem)
        if kind and layout.UNIT_NAME.fullmatch(path.stem)
        else None
    )
    if piece is None or path not in (piece.source, piece.notebook):
        raise UnknownNameError(
            f"{path.name}: adopt takes notebooks/NN_topic.ipynb or "
            "solutions/NN_topic/NN_topic.ipynb"
        )
    return piece


def as_source(notebook: NotebookNode, piece: layout.Piece) -> NotebookNode:
    """The cells of a notebook, with the options that a source writes in their headers.

    The cells of links are left out, because the build makes them.
    """
    source = nbformat.v4.new_notebook()
    for number, cell in enumerate(notebook.cells, 1):
        if cell.get("id") in (unit_links.HEAD, unit_links.FOOT):
            continue
        if cell.get("attachments"):
            raise BuildError(
                f"{piece.short(piece.notebook)}, cell {number} holds a pasted picture, which a text"
                " cannot hold: save it as a file and refer to the file"
            )
        if not cell.source.strip():
            continue
        made = getattr(nbformat.v4, f"new_{cell.cell_type}_cell")(cell.source.strip("\n"))
        if cell.cell_type == "code":
            made.source = hidden.labelled(made.source)
        made.metadata = nbformat.from_dict(_options(cell))
        source.cells.append(made)
    header = _unit(piece)
    if header and source.cells:
        source.cells[0].metadata["unit"] = header
    return source


def _edited_links(path: Path, piece: layout.Piece) -> list[str]:
    """A line for each cell of links that somebody has changed: the build makes them anew."""
    ours = unit_links.cells(piece.root, piece.name, piece.kind)
    stored = canonical.load(path).cells if path.suffix == ".ipynb" else []
    return [
        f"the cell `{cell.id}` is made by the build from units.toml, so this edit is not kept: "
        f"{cell.source}"
        for cell in stored
        if cell.get("id") in ours and cell.source != ours[cell.id]
    ]


def _options(cell: NotebookNode) -> dict[str, Any]:
    tags = list(cell.metadata.get("tags", []))
    grading = cell.metadata.get("nbgrader", {})
    options: dict[str, Any] = {}
    if grading.get("solution") or grading.get("grade"):
        tag = "check" if grading.get("grade") else "solution"
        tags += [] if tag in tags else [tag]
        options["grade_id"] = grading["grade_id"]
        if tag == "check":
            options["points"] = int(grading.get("points", 0))
    return {"tags": tags, **options} if tags else options


def _unit(piece: layout.Piece) -> dict[str, Any] | None:
    """What the source says of its unit: it stands in the source alone, so it is carried over."""
    if not piece.source.exists():
        return None
    cells = text.read(piece.source.read_text(encoding="utf-8"), piece.short(piece.source)).cells
    return cells[0].metadata.get("unit") if cells else None


def _refuse_loss(edited: NotebookNode, survived: NotebookNode, name: str) -> None:
    if text.same_cells(edited, survived):
        return
    for number, (before, after) in enumerate(zip(edited.cells, survived.cells, strict=False), 1):
        if (before.cell_type, before.source) != (after.cell_type, after.source):
            raise BuildError(
                f"{name}, cell {number} would not survive as text; it would read:\n{after.source}"
            )
    raise BuildError(
        f"{name} would not survive as text: {len(edited.cells)} cells would become {len(survived.cells)}"
    )


def _source_is_newer(path: Path, old: str) -> bool:
    built_from = canonical.load(path).metadata.get("manyhands", {}).get("sha256")
    return built_from != canonical.fingerprint(text.write(text.read(old)))


def _free_name(path: Path) -> Path:
    number = 1
    while (
        path_of_copy := path.with_name(f"{path.name}.bak{'' if number == 1 else number}")
    ).exists():
        number += 1
    return path_of_copy
