"""Do the committed files still follow from the sources?

The first difference of each, and the command that mends it.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyhands.authoring import BuildError, canonical, hosted_copies, layout, make, text
from manyhands.learner import outcomes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbformat import NotebookNode

    from manyhands.authoring.layout import Piece


@dataclass(frozen=True)
class Drift:
    """A built file that differs from what its source gives, and what to do about it."""

    path: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}\n    to repair: {self.remedy}"


def drifts(root: str | Path, wanted: Sequence[str] = (), run: bool = False) -> list[Drift]:
    """All that differs.

    Without `run` outputs are taken as stored (nbval compares them); with it they are made anew.
    """
    root = Path(root).resolve()
    differences = []
    for piece in layout.pieces(root, wanted):
        differences += drifts_of(piece, run)
    return differences + ([] if wanted else orphans(root))


def drifts_of(piece: Piece, run: bool = False) -> list[Drift]:
    """How what is stored of this piece differs from what its source makes.

    With `run`, its outputs are made anew.
    """
    source, notebook = piece.short(piece.source), piece.short(piece.notebook)
    build = f"manyhands build {piece.number}"
    try:
        untidy = _untidy(piece)
        if untidy:
            return [Drift(source, untidy, f"{build} --no-execute")]
        if not piece.notebook.exists():
            return [Drift(notebook, "was never built", build)]
        stored = canonical.load(piece.notebook)
        what = first_difference(make.make_notebook(piece, run=run), stored)
        if what:
            return [Drift(notebook, what, _remedy(piece, stored, build))]
        if canonical.to_bytes(stored) != piece.notebook.read_bytes():
            return [Drift(notebook, "is not in canonical form", f"{build} --no-execute")]
        return _outcomes(piece, build) or _other_files(piece, f"{build} --no-execute")
    except BuildError as error:
        return [Drift(source, str(error), f"repair this, then run: {build}")]


def _untidy(piece: Piece) -> str | None:
    old = piece.source.read_text(encoding="utf-8")
    new = text.write(text.read(old, piece.short(piece.source)))
    for number, (have, want) in enumerate(zip(old.split("\n"), new.split("\n"), strict=False), 1):
        if have != want:
            return f"line {number} is not in canonical form:\n    - {have}\n    + {want}"
    return None if old == new else "ends differently in canonical form"


def first_difference(expected: NotebookNode, stored: NotebookNode) -> str | None:
    """Name the first cell that is not as it should be, or None."""
    for number, (want, have) in enumerate(zip(expected.cells, stored.cells, strict=False), 1):
        for part in ("cell_type", "source", "metadata", "id"):
            if want.get(part) != have.get(part):
                return (
                    f"cell {number} has another {part}:\n{_lines(want.get(part), have.get(part))}"
                )
        if want.cell_type == "code":
            if have.execution_count is None:
                return f"cell {number} was never executed"
            if want.outputs != have.outputs:
                return f"cell {number} has other outputs:\n{_lines(want.outputs, have.outputs)}"
            if want.execution_count != have.execution_count:
                return (
                    f"cell {number} has execution count {have.execution_count}, not "
                    f"{want.execution_count}"
                )
    if len(expected.cells) != len(stored.cells):
        return f"has {len(stored.cells)} cells, not {len(expected.cells)}"
    if expected.metadata.manyhands != stored.metadata.get("manyhands"):
        return "was built from a different version of its source"
    if expected.metadata != stored.metadata:
        return f"has different metadata:\n{_lines(expected.metadata, stored.metadata)}"
    return None


def _lines(want: Any, have: Any, shown: int = 12) -> str:
    """The first lines that differ: - as it should be, + as it is."""
    if not isinstance(want, str) or not isinstance(have, str):
        want, have = (canonical.pretty(value) for value in (want, have))
    lines = list(
        difflib.unified_diff(
            want.split("\n"), have.split("\n"), "expected", "stored", lineterm="", n=1
        )
    )[2:]
    return "\n".join("    " + line[:200] for line in lines[:shown] + ["..."] * (len(lines) > shown))


def _remedy(piece: Piece, stored: NotebookNode, build: str) -> str:
    """What to do about a notebook that differs from its source.

    Build again if the source is newer; if the notebook was edited, its author chooses what to keep.
    """
    if stored.metadata.get("manyhands") != make.expected_notebook(piece).metadata.manyhands:
        return build
    return (
        f"{build}, or, to keep an edit of the notebook: manyhands adopt "
        f"{piece.short(piece.notebook)}"
    )


def _outcomes(piece: Piece, build: str) -> list[Drift]:
    """Each question of a tutorial has what its run gave.

    The web site settles predictions with it.
    """
    try:
        wanting = [] if piece.lab else outcomes.wanting(piece.root, piece.number)
    except ValueError as error:
        return [Drift(outcomes.FILE, str(error), f"delete it, then run: {build}")]
    what = f"has no outcome that answers {', '.join(wanting)}"
    return [Drift(outcomes.FILE, what, build)] if wanting else []


def _other_files(piece: Piece, build: str) -> list[Drift]:
    """Scripts and the lab, which follow from the source and the solution."""
    expected = make.script_files(piece)
    differences = []
    if piece.lab:
        expected.update(make.make_lab(piece))
    if not piece.lab or piece.lab.exists():
        expected.update(make.hosted_copy(piece))
    for path, data in expected.items():
        if not path.exists():
            differences.append(Drift(piece.short(path), "was never built", build))
        elif path.read_bytes() != data:
            differences.append(Drift(piece.short(path), _difference_of_files(path, data), build))
    if piece.lab:
        for folder, known in (
            (piece.lab.parent, expected),
            (piece.folder, {*expected, piece.notebook}),
        ):
            differences += [
                Drift(piece.short(path), "has no source", build)
                for path in make.others(folder, known)
            ]
    return differences


def _difference_of_files(path: Path, data: bytes) -> str:
    if path.suffix != ".ipynb":
        return f"differs:\n{_lines(data.decode(), path.read_text(encoding='utf-8'))}"
    expected, stored = canonical.from_bytes(data), canonical.load(path)
    for number, (want, have) in enumerate(zip(expected.cells, stored.cells, strict=False), 1):
        if want != have:
            return f"cell {number} differs from what the solution gives:\n{_lines(want, have)}"
    return "differs from what the solution gives"


def orphans(root: Path) -> list[Drift]:
    """Generated files that no source stands behind."""
    pieces = layout.pieces(root)
    known = {
        path for piece in pieces for path in (piece.notebook, piece.lab, *make.script_files(piece))
    }
    known |= {piece.hosted for piece in pieces if hosted_copies.is_copied(piece)}
    patterns = (
        "notebooks/*.ipynb",
        "notebooks/scripts/*.*",
        "solutions/*/*.ipynb",
        "labs/*/*.ipynb",
        "hosted/*.ipynb",
    )
    made = [path for pattern in patterns for path in root.glob(pattern)]
    return [
        Drift(
            path.relative_to(root).as_posix(),
            "it has no source in sources/",
            "delete it, or adopt it",
        )
        for path in sorted(made)
        if path not in known
    ]
