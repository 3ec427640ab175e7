"""Every generated file follows from its source.

No notebook is run here: `tests/notebooks` compares the outputs.
"""

from pathlib import Path

import pytest

from manyhands.authoring import adopt, canonical, labs, layout, make, slides, text, up_to_date

ROOT = Path(__file__).resolve().parents[1]
PIECES = layout.pieces(ROOT)
LABS = [piece for piece in PIECES if piece.lab]


def name(piece):
    return piece.short(piece.source)


@pytest.mark.parametrize("piece", PIECES, ids=name)
def test_what_was_built_follows_from_its_source(piece):
    drifts = up_to_date.drifts_of(piece)
    assert not drifts, "\n".join(map(str, drifts))


@pytest.mark.parametrize("piece", PIECES, ids=name)
def test_the_way_back_gives_the_source(piece):
    notebook = make.expected_notebook(piece)
    assert text.write(adopt.as_source(notebook, piece)) == piece.source.read_text()


def test_nothing_is_built_from_nothing():
    assert up_to_date.orphans(ROOT) == []


def test_slides_follow_from_their_sources():
    drifts = slides.drifts(ROOT)
    assert not drifts, "\n".join(map(str, drifts))


@pytest.mark.parametrize("piece", LABS, ids=name)
def test_a_lab_shows_no_solution(piece):
    solution = [cell.source for cell in canonical.load(piece.notebook).cells]
    solution += [data.decode() for data in make.script_files(piece).values()]
    assert any("BEGIN SOLUTION" in source for source in solution)
    for path in sorted(piece.lab.parent.rglob("*")):
        if path.is_file():
            shown = (
                labs.lab_text(canonical.load(path)) if path.suffix == ".ipynb" else path.read_text()
            )
            assert labs.leaks(solution, shown) == [], path


@pytest.mark.parametrize("piece", LABS, ids=name)
def test_a_lab_keeps_the_checks_and_their_reference_outputs(piece):
    solution = {cell.id: cell for cell in canonical.load(piece.notebook).cells}
    lab = {cell.id: cell for cell in canonical.load(piece.lab).cells}
    checks = [cell.id for cell in solution.values() if "check" in cell.metadata.get("tags", [])]
    assert checks and list(lab) == list(solution)
    for cell_id in checks:
        assert lab[cell_id].source == solution[cell_id].source
        assert lab[cell_id].outputs == solution[cell_id].outputs != []
