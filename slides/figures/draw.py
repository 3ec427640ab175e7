"""Draw the pictures of the decks.

`python slides/figures/draw.py` writes all, `... 04 06` those of two units; with `--check` it only
says which would change.

Each function of a module `unit_NN.py` is one picture: `ring_0` of unit_04.py is 04_ring_0.svg.
"""

import importlib
import inspect
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def pictures(wanted=()):
    """The name of each picture, and what it is now."""
    for path in sorted(HERE.glob("unit_*.py")):
        number = path.stem.removeprefix("unit_")
        if not wanted or number in wanted:
            module = importlib.import_module(path.stem)
            for name, draw in inspect.getmembers(module, inspect.isfunction):
                if not name.startswith("_") and draw.__module__ == path.stem:
                    yield f"{number}_{name}.svg", str(draw())


def main(arguments):
    """Write what has changed, or with `--check` name it.

    Returns the number of pictures that `--check` has named.
    """
    check = "--check" in arguments
    changed = 0
    for name, text in pictures([word for word in arguments if word != "--check"]):
        path = HERE / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        changed += 1
        if check:
            print(
                f"slides/figures/{name} is not what is drawn now: python slides/figures/draw.py "
                f"{name[:2]}"
            )
        else:
            path.write_text(text, encoding="utf-8")
    return changed if check else 0


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
