"""Sphinx over the source of the site, and what it complains of in the words of the course."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from manyhands.authoring import BuildError
from manyhands.website.broken import cell_place

A_CELL = 10_000  # MyST-NB counts lines so: cell n, from 1, begins at line n * 10000
_COMPLAINT = re.compile(
    r"(?P<path>[^\n:]+?)(?::(?P<line>\d+))?: (?:WARNING|ERROR|CRITICAL|SEVERE): (?P<text>.*)"
)


def run(root: Path, source: Path, target: Path, address: str = "") -> None:
    """Write the pages of `source` into the folder `target`.

    They will be served at `address`. Raises BuildError with every complaint of Sphinx, if it has
    one.
    """
    complaints = source.parent / "complaints.txt"
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "--builder",
        "html",
        "--jobs",
        "auto",
        "--quiet",
        "--no-color",
        "--doctree-dir",
        source.parent / "doctrees",
        "--warning-file",
        complaints,
        "--define",
        f"html_baseurl={address}",
    ]
    environment = {**os.environ, "MANYHANDS_ROOT": str(root), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [*map(str, command), str(source), str(target)],
        capture_output=True,
        text=True,
        env=environment,
    )
    lines = complaints.read_text(encoding="utf-8") if complaints.is_file() else ""
    if sentences := [
        describe_complaint(line, source) for line in lines.splitlines() if line.strip()
    ]:
        raise BuildError("The site was not built:\n  " + "\n  ".join(sentences))
    if done.returncode:
        raise BuildError(
            "Sphinx ended with status "
            f"{done.returncode}:\n{(done.stderr or done.stdout).strip()[-3000:]}"
        )


def describe_complaint(line: str, source: Path) -> str:
    """A complaint with the file's path in the clone, and for a notebook with its cell."""
    match = _COMPLAINT.fullmatch(line)
    if not match:
        return line.replace(f"{source}{os.sep}", "")
    path, number = Path(match["path"]), int(match["line"] or 0)
    name = os.path.relpath(path, source) if path.is_absolute() else str(path)
    if path.suffix == ".ipynb" and number >= A_CELL:
        cell, number = divmod(number, A_CELL)
        notebook = json.loads(path.read_text(encoding="utf-8"))
        name = cell_place(name, notebook, cell - 1)
    return f"{name}{f', line {number}' if number else ''}: {match['text']}"
