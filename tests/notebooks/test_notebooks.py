"""nbval runs every notebook of the tutorial and every solution, two side by side, and compares every output."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from manyhands.build import layout
from manyhands.build.validate import JOBS, validate

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = {piece.short(piece.notebook): piece.notebook for piece in layout.pieces(ROOT)}


@pytest.fixture(scope="session")
def verdicts(request):
    """{notebook: the verdict to come} of those that this session tests; all are on their way when the first is asked for."""
    wanted = [item.callspec.params["name"] for item in request.session.items if item.path == Path(__file__) and hasattr(item, "callspec")]
    with ThreadPoolExecutor(JOBS) as pool:
        yield {name: pool.submit(validate, NOTEBOOKS[name]) for name in wanted}
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_output_is_as_stored(name, verdicts):
    verdict = verdicts[name].result()
    assert verdict.passed, verdict.text
