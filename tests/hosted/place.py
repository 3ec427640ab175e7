"""Emulate Colab or Kaggle on this machine, and run notebooks of `hosted/` there.

    python tests/hosted/place.py PYTHON [--kaggle] [--folder FOLDER] [--replace OLD=NEW] [NOTEBOOK
    ...]

PYTHON belongs to the place alone: it is no virtual environment, and has the packages of
`place.txt`, or some of them. This program installs nothing into it; the notebooks' first cell does.
A notebook runs as root, in its own mount namespace, where /content (or /kaggle/working) is empty at
the beginning and /dev/shm has 64 MB. The kernel is the place's own ipykernel, and the first cell
fetches the course from a bare clone of this one, as it is committed.

It prints lines for each notebook: the cells that raised an error; how many outputs of a tutorial
are as stored, less those that are measured, and how many predictions have the outcome that is
stored (of one that is a number: any), or how many checks of a lab the solution's answers pass; and
what the first cell said.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient

from manyhands.learner import outcomes
from manyhands.learner.questions import questions

ROOT = Path(__file__).resolve().parents[2]
SHM_BYTES = 64 << 20
VARIABLES = {
    "/content": {"COLAB_RELEASE_TAG": "emulated"},
    "/kaggle/working": {"KAGGLE_KERNEL_RUN_TYPE": "Interactive"},
}
CPUS = 2
SCRIPTS = """import glob, shutil
for _path in glob.glob("../../solutions/{name}/*"):
    _path.endswith(".ipynb") or shutil.copy(_path, ".")"""
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
WAITS = "<IPython.core.display.HTML object>"  # how long a cell has waited, which is cleared


class Place:
    """One session of the place: what its notebooks write stays for the next one."""

    def __init__(self, python, folder, top="/content"):
        self.python, self.folder, self.top = Path(python).absolute(), Path(folder).absolute(), top
        for name in ("home", "top", "kernels/place"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.repository = self.folder / "repository.git"

    def begin(self):
        """Begin a new session.

        It has an empty folder, and the bare clone that the first cell fetches, of what is committed
        here.
        """
        for path in (self.repository, self.folder / "top"):
            shutil.rmtree(path, ignore_errors=True)
        (self.folder / "top").mkdir()
        subprocess.run(["git", "clone", "--quiet", "--bare", ROOT, self.repository], check=True)

    def environ(self):
        variables = {
            name: value
            for name, value in os.environ.items()
            if name.startswith(("PIP_", "SSL_", "REQUESTS_")) or name == "LANG"
        }
        return variables | {
            "PATH": f"{self.python.parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.folder / "home"),
            **VARIABLES[self.top],
        }

    def command(self, *words):
        """Return what runs a command in the place.

        It is a root of mounts, in which only /dev/shm and the place's folder differ.
        """
        mounts = [
            word
            for path in sorted(os.listdir("/"))
            if path != "dev" and not os.path.islink(f"/{path}")
            for word in ("--bind", f"/{path}", f"/{path}")
        ]
        links = [
            word
            for path in sorted(os.listdir("/"))
            if os.path.islink(f"/{path}")
            for word in ("--symlink", os.readlink(f"/{path}"), f"/{path}")
        ]
        cpus = sorted(os.sched_getaffinity(0))[:CPUS]
        return [
            "bwrap",
            *mounts,
            *links,
            "--dev-bind",
            "/dev",
            "/dev",
            "--size",
            str(SHM_BYTES),
            "--tmpfs",
            "/dev/shm",
            "--bind",
            str(self.folder / "top"),
            self.top,
            "--chdir",
            self.top,
            "--die-with-parent",
            "--clearenv",
            *(word for pair in self.environ().items() for word in ("--setenv", *pair)),
            "taskset",
            "--cpu-list",
            ",".join(map(str, cpus)),
            *map(str, words),
        ]

    def run(self, notebook, timeout_s=600, allow_errors=True):
        """Run a notebook in the place; its cells have their outputs afterwards."""
        spec = {
            "argv": self.command(
                self.python, "-m", "ipykernel_launcher", "-f", "{connection_file}"
            ),
            "display_name": "place",
            "language": "python",
        }
        (self.folder / "kernels/place/kernel.json").write_text(json.dumps(spec))
        client = NotebookClient(
            notebook, timeout=timeout_s, kernel_name="place", allow_errors=allow_errors
        )
        client.create_kernel_manager().kernel_spec_manager = KernelSpecManager(
            kernel_dirs=[str(self.folder / "kernels")]
        )
        with open(self.folder / "kernel.log", "ab") as log:
            client.execute(stderr=log)
        return notebook


def hosted(path, address, replaced=()):
    """A notebook of `hosted/`, whose first cell fetches from `address` instead of the repository.

    In its other code cells, and in the answers of a lab, which are the solution's, each pair of
    `replaced` is (what is replaced, by what).
    """
    notebook = nbformat.read(path, as_version=4)
    first = notebook.cells[0]
    first.source = re.sub(
        r'"https://[^"]+"', json.dumps(f"file://{address}"), first.source, count=1
    )
    assert str(address) in first.source
    if path.stem.endswith("_lab"):
        solve(notebook, path.stem.removesuffix("_lab"))
    for cell in notebook.cells[1:]:
        for old, new in replaced if cell.cell_type == "code" else ():
            cell.source = cell.source.replace(old, new)
    return notebook


def solve(notebook, name):
    """Put the answers of the solution into a lab, and its scripts beside it."""
    solution = {
        cell.id: cell.source
        for cell in nbformat.read(ROOT / f"solutions/{name}/{name}.ipynb", as_version=4).cells
    }
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = solution[cell.id]
    notebook.cells.insert(1, nbformat.v4.new_code_cell(SCRIPTS.format(name=name), id="scripts"))


def text_of(cell):
    """What a cell shows, as text."""
    shown = [
        output.get("text")
        or output.get("data", {}).get("text/plain", "")
        or output.get("evalue", "")
        for output in cell.get("outputs", ())
    ]
    return COLOURS.sub("", "".join(shown).replace(WAITS, ""))


def stored(path):
    """{cell id: cell} of the notebook from which a copy in `hosted/` was made."""
    name, _, kind = path.stem.rpartition("_")
    made_from = ROOT / (
        f"notebooks/{name}.ipynb" if kind == "tutorial" else f"labs/{name}/{name}.ipynb"
    )
    return {
        cell.id: cell
        for cell in nbformat.read(made_from, as_version=4).cells
        if cell.cell_type == "code"
    }


def compare(path, notebook):
    """Return (cells that raised or differ, checks that are not passed, how many were compared).

    A cell counts if it raised though no error was expected, or if its text differs from the
    stored one.
    """
    raised, differ, number, expected = [], [], 0, stored(path)
    for place, cell in enumerate(notebook.cells):
        if cell.cell_type != "code" or cell.id not in expected:
            continue
        tags, want = cell.metadata.get("tags", []), expected[cell.id]
        if (
            any(output.output_type == "error" for output in cell.outputs)
            and "raises-exception" not in tags
        ):
            raised.append(place)
        elif "check" in tags:
            number += 1
            if re.search(r"\b(FAIL|BLOCKED|not begun)\b", text_of(cell)) or "PASS" not in text_of(
                cell
            ):
                differ.append(place)
        elif (
            path.stem.endswith("_tutorial")
            and "measured" not in tags
            and not re.search(r"\b(predict|settle)\(", cell.source)
        ):
            number += 1
            if text_of(cell).split() != text_of(want).split():
                differ.append(place)
    return raised, differ, number


def settled(notebook):
    """Return (the predictions of a tutorial that did not come out as in the stored run, all)."""
    asked, came = questions(ROOT / "notebooks"), outcomes.read(ROOT)
    names = {
        name: text_of(cell)
        for cell in notebook.cells
        if cell.cell_type == "code"
        for name in re.findall(r'^settle\("([^"]+)"', cell.source, re.MULTILINE)
    }
    return [
        name
        for name, text in names.items()
        if not re.search(
            "The run: "
            + (re.escape(asked[name].words(came[name])) if asked[name].choices else r"-?\d"),
            text,
        )
    ], names


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("python")
    parser.add_argument("notebooks", nargs="*", type=Path)
    parser.add_argument("--kaggle", action="store_true")
    parser.add_argument(
        "--folder",
        default="build/place",
        help="where the place's files and the notebooks that ran are kept",
    )
    parser.add_argument(
        "--replace",
        action="append",
        default=[],
        metavar="OLD=NEW",
        type=lambda text: text.split("=", 1),
        help="what the place calls differently, such as a function of an older PyTorch",
    )
    # the options may stand between PYTHON and the notebooks
    options = parser.parse_intermixed_args()
    place = Place(
        options.python, options.folder, "/kaggle/working" if options.kaggle else "/content"
    )
    place.begin()
    for path in options.notebooks or sorted((ROOT / "hosted").glob("*.ipynb")):
        began, notebook = time.monotonic(), hosted(path, place.repository, options.replace)
        try:
            place.run(notebook)
        except Exception as error:  # noqa: BLE001 - the other notebooks are run
            print(f"{path.name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
            continue
        finally:
            (place.folder / "ran").mkdir(exist_ok=True)
            nbformat.write(notebook, place.folder / "ran" / path.name)
        raised, differ, number = compare(path, notebook)
        wrong, asked = settled(notebook)
        print(
            f"{path.name}: {time.monotonic() - began:.0f} s, raised: {raised or 'none'}, as "
            f"expected: {number - len(differ)} of {number}"
            f"{f', differ: {differ}' if differ else ''}"
            f"{f', predictions: {len(asked) - len(wrong)} of {len(asked)} {wrong or str()}' if asked else ''}",
            flush=True,
        )
        print("    " + text_of(notebook.cells[0]).strip().replace("\n", "\n    "), flush=True)


if __name__ == "__main__":
    sys.exit(main())
