"""Where each file of a unit stands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands import unit_links
from manyhands.authoring import BuildError, UnknownNameError
from manyhands.units import is_number

if TYPE_CHECKING:
    from collections.abc import Iterable

UNIT_NAME = re.compile(r"\d\d_[a-z0-9_]+")


@dataclass(frozen=True)
class Piece:
    """One source and the notebook that it becomes. `kind` is "tutorial" or "labs"."""

    root: Path
    kind: str
    name: str

    @property
    def number(self) -> str:
        """The two digits of its unit."""
        return self.name[:2]

    @property
    def source(self) -> Path:
        """The path of the source that it is made from."""
        return self.root / "sources" / self.kind / f"{self.name}.py"

    @property
    def folder(self) -> Path:
        """The folder that the notebook stands in; its kernel starts there."""
        return (
            self.root / "notebooks"
            if self.kind == "tutorial"
            else self.root / "solutions" / self.name
        )

    @property
    def notebook(self) -> Path:
        """The path of the notebook that is made of it, with the answers in it if it is a lab."""
        return self.folder / f"{self.name}.ipynb"

    @property
    def lab(self) -> Path | None:
        """The lab that nbgrader makes from the solution (None for a tutorial)."""
        return (
            self.root / "labs" / self.name / f"{self.name}.ipynb" if self.kind == "labs" else None
        )

    @property
    def scripts(self) -> Path:
        """The folder beside the notebook that the unit's scripts are copied to."""
        return self.folder / "scripts" if self.kind == "tutorial" else self.folder

    @property
    def hosted(self) -> Path:
        """The copy that Colab and Kaggle open."""
        return self.root / unit_links.hosted_path(self.name, self.kind)

    def short(self, path: str | Path) -> str:
        """A path as messages show it: from the course's folder, wherever that is."""
        return Path(path).relative_to(self.root).as_posix()

    def moved_to(self, root: str | Path) -> Piece:
        """The same piece in another clone or folder of the course."""
        return Piece(Path(root), self.kind, self.name)


def pieces(root: str | Path, wanted: Iterable[str] = ()) -> list[Piece]:
    """The pieces asked for, or all of them if none is named.

    One is named by "06", "6", "06_ddp", or a path of its source or its notebook.
    """
    root = Path(root)
    existing = [
        Piece(root, kind, path.stem)
        for kind in ("tutorial", "labs")
        for path in sorted((root / "sources" / kind).glob("*.py"))
    ]
    for piece in existing:
        if not UNIT_NAME.fullmatch(piece.name):
            raise BuildError(
                f"{piece.short(piece.source)}: a unit is called NN_topic, two digits and lower-case"
                " letters"
            )
    if not wanted:
        return existing
    chosen: list[Piece] = []
    for word in wanted:
        matching = [piece for piece in existing if _matches(piece, word)]
        if not matching:
            known = ", ".join(sorted({piece.name for piece in existing})) or "none yet"
            raise UnknownNameError(f"there is no unit {word!r} in sources/; the units: {known}")
        chosen += [piece for piece in matching if piece not in chosen]
    return chosen


def _matches(piece: Piece, word: str) -> bool:
    if is_number(word, piece.number):
        return True
    if Path(word).suffix in (".py", ".ipynb"):
        return bool(
            {Path(word).resolve(), (piece.root / word).resolve()} & {piece.source, piece.notebook}
        )
    return piece.name == word


def scripts(piece: Piece) -> list[Path]:
    """The sources of the scripts that the unit launches.

    The batch files that start them on Slurm are among them.
    """
    folder = piece.root / "sources" / "scripts"
    return sorted(
        path
        for path in folder.glob(f"{piece.number}_*")
        if path.suffix in (".py", ".sbatch", ".sh")
    )
