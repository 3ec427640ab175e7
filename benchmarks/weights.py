"""How far each system's weights end from those of one process.

`python -m benchmarks.weights` finds it as the tutorials of the track do.

The notebooks themselves say "yes" where the difference is rounding, because its digits differ from
machine to machine. Here they are.
"""

import json
import tempfile
from pathlib import Path

import nbformat

from manyhands import track
from manyhands.authoring import layout
from manyhands.authoring.execute import execute

from . import few

ROOT = Path(__file__).parents[1]
NOTE = """
import json
from manyhands import track

def noted(unit, measured, *rest, table=track.table):
    with open({path!r}, "a") as file:
        print(json.dumps({{system: float(far) for system, far in measured.items()}}), file=file)
    return table(unit, measured, *rest)

track.table = noted
"""


def measured(piece):
    """{system: largest difference of a weight}, from a run of the tutorial."""
    notebook = nbformat.read(piece.notebook, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "found.jsonl")
        notebook.cells.insert(0, nbformat.v4.new_code_cell(NOTE.format(path=str(path))))
        execute(notebook, piece.notebook.parent, piece.notebook.name)
        return {
            system: far
            for line in path.read_text().splitlines()
            for system, far in json.loads(line).items()
        }


def main():
    """Run the tutorials of the track, and print the table."""
    print("| unit | system | largest difference of a weight |\n|---|---|---|")
    numbers = list(dict.fromkeys(unit for unit, *_ in track.SYSTEMS))
    for number in numbers[: few(len(numbers))]:
        tutorial = next(
            piece
            for piece in layout.pieces(ROOT, [number])
            if piece.notebook.parent.name == "notebooks"
        )
        for system, far in measured(tutorial).items():
            print(f"| {number} | {system} | {far:.0e} |", flush=True)


if __name__ == "__main__":
    main()
