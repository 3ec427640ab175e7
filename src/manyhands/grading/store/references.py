"""What the solution shows under a seed: run once, then kept, for this user alone.

It runs outside the sandbox; but in a container, apart from all submissions, where theirs are run in
containers: what it shows depends on the environment.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.shared.atomic import write_file

if TYPE_CHECKING:
    from nbformat import NotebookNode

    from manyhands.grading.compare import Shown

FRAMEWORKS = (
    "numpy",
    "torch",
    "tensorflow",
    "tensorflow-cpu",
    "tf_keras",
    "ipyparallel",
    "horovod",
    "nbval",
)


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/manyhands/references`, made if needed, closed to other users."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "manyhands" / "references"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
    return folder


def key(solution_path: str | Path, solution: NotebookNode, seed: int, image: str = "") -> str:
    """A name that changes with all that the reference depends on.

    That is the solution's cells and scripts, the package, the environment (or the image in whose
    containers it runs).
    """
    digest = hashlib.sha256()
    facts = [
        seed,
        sys.version,
        [_version(name) for name in FRAMEWORKS],
        [str(device) for device in Path("/dev").glob("nvidia[0-9]*")],
    ]
    facts.append(os.environ.get("MANYHANDS_PATIENCE_S"))
    facts += [image] if image else []
    facts.append([(cell.cell_type, cell.source, cell.metadata) for cell in solution.cells])
    digest.update(json.dumps(facts, sort_keys=True).encode())
    package = Path(__file__).resolve().parents[2]
    beside = (path for path in Path(solution_path).parent.rglob("*") if path.suffix != ".ipynb")
    for path in sorted([*package.rglob("*.py"), *beside]):
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith("."):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:32]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def is_kept(name: str) -> bool:
    """Whether there is a reference of this name."""
    return (cache_folder() / f"{name}.json").is_file()


def load(name: str) -> Shown | None:
    """{grade_id: outputs} of a kept reference, or None."""
    try:
        return json.loads((cache_folder() / f"{name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def save(name: str, outputs: Shown) -> None:
    """Keep a reference; only the newest hundred stay."""
    folder = cache_folder()
    write_file(folder / f"{name}.json", json.dumps(outputs))
    stored = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in stored[100:]:
        if path.name != "seeds.json":
            path.unlink(missing_ok=True)
