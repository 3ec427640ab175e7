"""Draw the pictures of the decks: `python slides/figures/draw.py` writes all, `... 04 06` those of two units.

Each function of a module `unit_NN.py` is one picture: `ring` of unit_04.py is 04_ring.svg. Pictures that no function stands
behind were taken from a notebook.
"""

import importlib
import inspect
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def pictures(wanted=()):
    """The name of each picture, and what it is now."""
    sys.path.insert(0, str(HERE))
    for path in sorted(HERE.glob("unit_*.py")):
        number = path.stem.removeprefix("unit_")
        if not wanted or number in wanted:
            module = importlib.import_module(path.stem)
            for name, draw in inspect.getmembers(module, inspect.isfunction):
                if not name.startswith("_") and draw.__module__ == path.stem:
                    yield f"{number}_{name}.svg", str(draw())


if __name__ == "__main__":
    for name, text in pictures(sys.argv[1:]):
        (HERE / name).write_text(text, encoding="utf-8")
