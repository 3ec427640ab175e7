"""The source folder of the site: what is committed, side by side.

There is a page in front of each kind.

`notebooks/`, `labs/` and `docs/` are arranged as they do in the clone, so that the links between
them hold.
"""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.authoring import BuildError
from manyhands.units import units
from manyhands.website import lists
from manyhands.website.links import PAGES, Links

if TYPE_CHECKING:
    from manyhands.units import Unit

SETTINGS = Path(__file__).with_name("settings")
MATHJAX = "tex-svg.js"  # one file, letters included
OWN_ENTRY = ("docs/GLOSSARY", "docs/CHEAT_SHEET")


def lay_out(root: str | Path, folder: str | Path) -> list[Path]:
    """Write the source of the site into the empty `folder`; returns the paths of its notebooks."""
    root, folder = Path(root), Path(folder)
    shutil.copytree(
        SETTINGS, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
    )
    there = [unit for unit in units(root) if not unit.planned]
    todo = [
        "README.md",
        "CONTRIBUTING.md",
        *_paths(root, "docs/*.md"),
        *(path for unit in there for path in (unit.tutorial, unit.lab) if path),
    ]
    done = set()
    while todo:
        path = todo.pop()
        if path not in done:
            done.add(path)
            todo += _put(root, path, folder)
    for unit in there:
        _offer_lab(root, unit, folder)
        for kind in ("html", "pdf"):
            _copy(root, f"slides/built/{unit.name}.{kind}", folder / "extra")
    _write_lists(root, folder, there, done)
    _mathjax(folder / "static" / "mathjax")
    return [folder / path for unit in there for path in (unit.tutorial, unit.lab) if path]


def _paths(root: Path, pattern: str) -> list[str]:
    return [str(path.relative_to(root)) for path in sorted(root.glob(pattern))]


def _copy(root: Path, path: str, folder: Path) -> None:
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(root / path, target)


def _put(root: Path, path: str, folder: Path) -> list[str]:
    """Put one file into the source, its links mended; returns the files that it links to."""
    if not path.endswith(PAGES):
        _copy(root, path, folder)
        return []
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    text, links = (root / path).read_text(encoding="utf-8"), Links(path, root)
    target.write_text(
        links.mended(text) if path.endswith(".md") else _mended_cells(text, links), encoding="utf-8"
    )
    if lacking := sorted(link for link in links.asked if not (root / link).is_file()):
        raise BuildError(
            f"{path} links to {', '.join(lacking)}, which does not exist. Repair the link in its "
            "source."
        )
    return sorted(links.asked)


def _mended_cells(text: str, links: Links) -> str:
    """Mend the links in the text cells of a notebook.

    A notebook that cannot be read stays as it is, and is told of later.
    """
    try:
        notebook = json.loads(text)
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown":
                cell["source"] = links.mended("".join(cell["source"]))
    except (ValueError, KeyError, TypeError):
        return text
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def _offer_lab(root: Path, unit: Unit, folder: Path) -> None:
    """A lab with its scripts as one file to download, the same bytes from the same files."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted((root / (unit.lab or "")).parent.iterdir()):
            if path.is_file():
                archive.writestr(
                    zipfile.ZipInfo(f"{unit.name}/{path.name}"),
                    path.read_bytes(),
                    zipfile.ZIP_DEFLATED,
                )
    target = folder / "extra" / "downloads" / f"{unit.name}.zip"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data.getvalue())


def _write_lists(root: Path, folder: Path, there: list[Unit], pages: Iterable[str]) -> None:
    """Write the pages in front: the first page, tutorials, labs, slides, manuals.

    What the header leads to is written, too.
    """
    texts = [page.removesuffix(".md") for page in sorted(pages) if page.endswith(".md")]
    manuals = [name for name in texts if name not in OWN_ENTRY]
    names = [unit.name for unit in there]
    _write(folder / "notebooks/index.md", ["# Tutorials\n", *lists.tutorials(root, there)], names)
    _write(
        folder / "labs/index.md",
        ["# Labs\n", *lists.labs(root, there)],
        [f"{name}/{name}" for name in names],
    )
    _write(folder / "slides/index.md", ["# Slides\n", *lists.slides(root, there)], [])
    _write(
        folder / "docs/index.md",
        ["# Manuals\n", *lists.manuals(manuals)],
        [f"/{name}" for name in manuals],
    )
    _write(
        folder / "index.md",
        [lists.first_page(root, there)],
        [
            "notebooks/index",
            "labs/index",
            "slides/index",
            *(name for name in OWN_ENTRY if name in texts),
            "docs/index",
        ],
    )
    for name, text in lists.covers(root, there).items():
        _write(folder / "static" / "covers" / name, [text], [])


def _write(path: Path, lines: Iterable[str], entries: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = "\n\n```{toctree}\n:hidden:\n" + "\n".join(entries) + "\n```\n" if entries else ""
    path.write_text("\n".join(lines) + hidden, encoding="utf-8")


def _mathjax(folder: Path) -> None:
    """MathJax's one file, out of the package that carries it."""
    files = metadata.files("sphinx-mathjax-offline") or []
    [source] = [file for file in files if file.name == MATHJAX]
    folder.mkdir(parents=True)
    shutil.copyfile(source.locate(), folder / MATHJAX)
