"""nbval runs every notebook of the tutorial and every solution, some side by side, and compares every output."""

from pathlib import Path

import pytest

from manyhands.build import layout
from manyhands.build.validate import Validation

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = {piece.short(piece.notebook): piece.notebook for piece in layout.pieces(ROOT)}


@pytest.fixture(scope="session")
def verdicts(request):
    """The verdicts of the notebooks that this session tests; all are on their way when the first is asked for."""
    items = [item for item in request.session.items if item.path == Path(__file__) and hasattr(item, "callspec")]
    with Validation([NOTEBOOKS[item.callspec.params["name"]] for item in items]) as verdicts:
        yield verdicts


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_output_is_as_stored(name, verdicts):
    verdict = verdicts.of(NOTEBOOKS[name])
    assert verdict.passed, verdict.text
