"""Run each program with the real ChainerMN and carried over, and print how far their figures
differ: `python tests/carried_over/compare.py`.

It needs what `benchmarks/communication.py` makes: ChainerMN 7.8.1 in an environment of its own.
"""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))
from changes import PROGRAMS  # noqa: E402

from benchmarks import chainermn_venv  # noqa: E402

LIMIT_S = 60


def run(python, path):
    """What the program prints, or None if it does not end."""
    argv = [
        str(Path(python).parent / "mpiexec"),
        "-launcher",
        "fork",
        "-n",
        "3" if path.stem == "mlp" else "2",
        str(python),
        "-W",
        "ignore",
        str(path),
    ]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        return json.loads(process.communicate(timeout=LIMIT_S)[0])
    except subprocess.TimeoutExpired:
        process.terminate()  # mpiexec ends its ranks
        process.communicate()
        return None


def figures(value):
    """All numbers in it, in one order."""
    if isinstance(value, dict):
        return [number for name in sorted(value) for number in figures(value[name])]
    return (
        [number for one in value for number in figures(one)] if isinstance(value, list) else [value]
    )


if __name__ == "__main__":
    for name in PROGRAMS:
        original, ours = (
            run(python, folder / f"{name}.py")
            for python, folder in (
                (chainermn_venv.python(), HERE / "originals"),
                (sys.executable, HERE),
            )
        )
        if original is None:
            print(
                f"{name}: ChainerMN has not ended after {LIMIT_S} s; ours has: {ours is not None}"
            )
        else:
            pairs = list(zip(figures(original), figures(ours), strict=True))
            print(
                f"{name}: {len(pairs)} figures, greatest difference "
                f"{max(abs(a - b) for a, b in pairs):.1e}"
            )
