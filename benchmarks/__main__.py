"""The table of docs/BENCHMARKS.md, measured on this machine.

`python -m benchmarks [start] [heal] [cell] [validation] [communication] [grading] [hostile]
[board]`

With tables of their own: `python -m benchmarks attendees [--people 40]`, for root, a class on a
hub, a quarter of an hour; `python -m benchmarks memory [06 07 ...]`, what each unit takes at its
peak; `python -m benchmarks clinic`, which planted mistakes the clinic finds in training scripts;
`python -m benchmarks predicted`, what `manyhands predict` says of scripts on emulated nodes, and
what they take there; `python -m benchmarks rehearsal`, what a rehearsal costs.
"""

import importlib
import os
import platform
import sys

from . import SMOKE
from .pairs import HEAD

NAMES = ("start", "heal", "cell", "validation", "communication", "grading", "hostile", "board")


def main(names):
    """Run the benchmarks of these names, or all, and print their lines of the table."""
    if SMOKE:
        print(
            "MANYHANDS_SMOKE=1: this only shows that the benchmark starts. Its figures mean "
            "nothing.",
            flush=True,
        )
    if names[:1] in (["attendees"], ["memory"], ["clinic"], ["predicted"], ["rehearsal"]):
        return importlib.import_module(f"benchmarks.{names[0]}").main(names[1:])
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        sys.exit(f"There is no benchmark {unknown[0]!r}; there are: {', '.join(NAMES)}")
    print(
        f"{os.cpu_count()} cores, {platform.machine()}, Python "
        f"{platform.python_version()}\n\n{HEAD}",
        flush=True,
    )
    missed = False
    for name in names or NAMES:
        for line in importlib.import_module(f"benchmarks.{name}").main():
            print(line, flush=True)
            missed |= "MISSED" in line
    return int(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
