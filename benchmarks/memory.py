"""The memory that a unit takes at its peak: `python -m benchmarks memory [06 07 ...]`.

Runs the tutorials, then the solved labs, each in a kernel of its own, and adds up, five times a
second, what the kernel, its cluster and all their processes hold; a page that several share is
counted once among them (PSS). The tutorial's, rounded up to a tenth of a GiB, is `memory_gib` in
`src/manyhands/units.toml`, and the README's table shows it. The browser and JupyterLab itself are
not in it.
"""

import sys
import threading
from contextlib import suppress

import nbformat
import psutil

from manyhands.authoring.execute import execute
from manyhands.units import find_root, units

EVERY_S = 0.2


def main(numbers):
    """Print the most memory that each notebook of these units takes, or of all units."""
    chosen = [
        unit for unit in units() if not unit.planned and (not numbers or unit.number in numbers)
    ]
    unknown = set(numbers) - {unit.number for unit in chosen}
    if unknown:
        sys.exit(f"There is no unit {', '.join(sorted(unknown))} to measure.")
    print("| unit | notebook | GiB |\n|---|---|---|")
    for part, path in (("tutorial", "notebooks/{0}.ipynb"), ("lab", "solutions/{0}/{0}.ipynb")):
        for unit in chosen:
            peak = peak_gib(find_root() / path.format(unit.name))
            print(f"| {unit.number} | {part} | {peak:.2f} |", flush=True)


def peak_gib(path):
    """The largest sum of the memory of this process's children while the notebook runs, in GiB."""
    notebook = nbformat.read(path, as_version=4)
    peak, done = [0], threading.Event()

    def look():
        while not done.wait(EVERY_S):
            peak[0] = max(peak[0], held())

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        execute(notebook, path.parent, path.stem, cell_timeout_s=600)
    finally:
        done.set()
        watcher.join()
    return peak[0] / 2**30


def held():
    """Bytes that this process's children and theirs hold now (PSS)."""
    total = 0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has ended meanwhile
            total += process.memory_full_info().pss
    return total
