"""The learner's own copies of the files of `labs/` and `notebooks/`.

Each file is copied to `work/` once, and nothing there is overwritten.

    labs/06_ddp/06_ddp.ipynb  -> work/06_ddp/06_ddp.ipynb      the lab, and the scripts beside it
    notebooks/06_ddp.ipynb    -> work/06_ddp_tutorial.ipynb    the tutorial, without its outputs:
                                                               a prediction is made before the answer is seen
    notebooks/scripts/06_a.py -> work/scripts/06_a.py

Depths are kept, so that relative links hold; the cells of links (`manyhands.unit_links`)
lead to the other copies. `work/.manyhands/copies.json` remembers which version a copy was made
from, so that a newer one is noticed.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from manyhands import unit_links
from manyhands.learner import outcomes

# the last one has the predictions' answers
SKIPPED = {".ipynb_checkpoints", "__pycache__", Path(outcomes.FILE).name}


@dataclass
class Copied:
    """What `copy_course` did: paths inside `work/`."""

    made: list[str] = field(default_factory=list)  # copied now
    # the course has a newer version than the learner's copy came from
    newer: list[str] = field(default_factory=list)
    beside: list[str] = field(default_factory=list)  # new versions put beside the learner's


def tutorial_copy(unit_name: str) -> str:
    """Return the path inside `work/` of the learner's copy of a tutorial."""
    return f"{unit_name}_tutorial.ipynb"


def lab_copy(unit_name: str) -> str:
    """Return the path inside `work/` of the learner's copy of a lab."""
    return f"{unit_name}/{unit_name}.ipynb"


def number_of(name: str) -> str:
    """Return the number of the unit that a path inside `work/` belongs to.

    It is `06` for `06_ddp/train.py` and `scripts/06_train.py`.
    """
    return next((part[:2] for part in name.split("/") if part[:2].isdecimal()), "")


def copy_course(
    root: str | Path, beside: Collection[str] = (), fetched: Collection[str] = ()
) -> Copied:
    """Copy what is not yet in `work/`.

    Clean copies of the units numbered in `beside` are put next to the learner's, where those are no
    longer as the course has them.

    fetched: names of labs that the learner gets in another way, from the class's exchange.
    """
    work = Path(root) / "work"
    work.mkdir(exist_ok=True)
    known, done = _load(work), Copied()
    left_out = {name for name in fetched if not (work / name).exists()}
    for source, name in _sources(Path(root)):
        if name.split("/")[0] in left_out:
            continue
        content = source.read_bytes()
        version = hashlib.sha256(content).hexdigest()
        if name in (tutorial_copy(source.stem), lab_copy(source.stem)):
            content = _learners(
                content, Path(root), source.stem, tutorial=name == tutorial_copy(source.stem)
            )
        if _put(work / name, content):
            known[name] = version
            done.made.append(name)
        elif number_of(name) in beside and (work / name).read_bytes() != content:
            done.beside.append(_put_beside(work, name, content))
            known[name] = version
        elif known.setdefault(name, version) != version:
            # not in the list, but there: taken for a copy of this version
            done.newer.append(name)
    _save(work, known)
    return done


def _sources(root: Path) -> Iterator[tuple[Path, str]]:
    """Every file of the course that the learner gets, with its path inside `work/`."""
    for path in _files(root / "notebooks"):
        name = path.relative_to(root / "notebooks")
        yield (
            path,
            (
                tutorial_copy(path.stem)
                if name.parent == Path() and path.suffix == ".ipynb"
                else name.as_posix()
            ),
        )
    for path in _files(root / "labs"):
        yield path, path.relative_to(root / "labs").as_posix()


def _learners(content: bytes, root: Path, unit: str, tutorial: bool) -> bytes:
    """Return a notebook as the learner gets it, with links to the other copies.

    A tutorial is as if it had never been run. What is no notebook stays as it is.
    """
    links = unit_links.cells(
        root, unit, unit_links.TUTORIAL if tutorial else unit_links.LAB, own=True
    )
    try:
        notebook = json.loads(content)
        # only the course's own notebook has these
        theirs = {unit_links.HEAD, unit_links.FOOT} - links.keys()
        notebook["cells"] = [cell for cell in notebook["cells"] if cell.get("id") not in theirs]
        for cell in notebook["cells"]:
            if cell.get("id") in links:
                cell["source"] = links[cell["id"]]
            if tutorial and cell["cell_type"] == "code":
                cell["outputs"], cell["execution_count"] = [], None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return content
    return (json.dumps(notebook, indent=1, ensure_ascii=False) + "\n").encode()


def _files(folder: Path) -> list[Path]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in files if not SKIPPED.intersection(path.parts))


def _put(path: Path, content: bytes) -> bool:
    """Write a whole new file in one step; False where there is one already."""
    if path.exists():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)
        return _rename_if_free(temporary, path)
    finally:
        os.unlink(temporary)


def _rename_if_free(temporary: str, path: Path) -> bool:
    """A hard link fails, unlike a renaming, where somebody else has just made the file."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links
        os.rename(temporary, path)
        Path(temporary).touch()
    return True


def _put_beside(work: Path, name: str, content: bytes) -> str:
    """Write `06_ddp.new.ipynb` next to `06_ddp.ipynb`.

    The name is `.new2`, `.new3` ... where the first is taken by something else.
    """
    path = work / name
    number = 1
    while True:
        candidate = path.with_suffix(f".new{number if number > 1 else ''}{path.suffix}")
        if _put(candidate, content) or (candidate.is_file() and candidate.read_bytes() == content):
            return candidate.relative_to(work).as_posix()
        number += 1


def _record(work: Path) -> Path:
    return work / ".manyhands" / "copies.json"


def _load(work: Path) -> dict[str, str]:
    try:
        versions = json.loads(_record(work).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return versions if isinstance(versions, dict) else {}


def _save(work: Path, known: dict[str, str]) -> None:
    path = _record(work)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(known, indent=1, sort_keys=True), encoding="utf-8")
    temporary.replace(path)
