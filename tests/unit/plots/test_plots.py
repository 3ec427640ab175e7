"""plots: readable in grey, and the same bytes every time.

The reader's own matplotlib shows no trace of them.
"""

import itertools
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from manyhands.plots import RANK_COLOURS, rank_colour, svg
from manyhands.plots.timeline import Span, rows_of, table, timeline

TRACKS = {
    "naive": {
        "compute": [Span(0, 10, "backward")],
        "network": [Span(10, 14, "bucket 0"), Span(14, 18, "bucket 1")],
    },
    "overlapped": {
        "compute": [Span(0, 11, "backward")],
        "network": [Span(4, 8, "bucket 0"), Span(8, 13, "bucket 1")],
    },
}


def lightness(colour):
    """CIE L* of a colour: what is left of it in grey, from 0 (black) to 100 (white)."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    y = 0.2126 * r + 0.7152 * g + 0.0722 * b
    return 116 * y ** (1 / 3) - 16


@pytest.mark.parametrize("ranks, apart", [(4, 15), (8, 7)])
def test_ranks_stay_apart_in_grey(ranks, apart):
    grey = sorted(map(lightness, RANK_COLOURS[:ranks]))
    assert min(b - a for a, b in itertools.pairwise(grey)) >= apart, grey


def test_a_ninth_rank_gets_a_colour_too():
    assert rank_colour(8) == rank_colour(0)


def test_timeline_is_the_same_bytes_twice_and_well_formed():
    first, second = timeline(TRACKS), timeline(TRACKS)
    assert first.text == second.text
    ET.fromstring(first.text)
    for word in ("naive", "overlapped", "backward", "bucket 1", "time (ms)"):
        assert word in first.text, (
            f"{word!r} is missing, or was drawn as an outline that no translation can change"
        )


def test_words_can_be_translated():
    drawn = timeline(
        TRACKS, words={"compute": "keisan", "network": "tsushin", "time": "jikan"}
    ).text
    assert "keisan" in drawn and "tsushin" in drawn and "jikan" in drawn and "compute" not in drawn


def test_a_figure_has_a_text_and_a_file(tmp_path):
    drawn = timeline(TRACKS, title="two steps")
    assert repr(drawn) == "<figure: two steps>"
    drawn.save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text() == drawn._repr_svg_()


def test_the_table_has_every_number_of_the_picture():
    lines = table(TRACKS).splitlines()
    assert len(lines) == 1 + 6
    assert lines[-1].split() == ["overlapped", "network", "bucket", "1", "8.0", "13.0"]


def test_the_readers_settings_are_left_alone():
    import matplotlib

    before = dict(matplotlib.rcParams)
    timeline(TRACKS)
    assert dict(matplotlib.rcParams) == before


def test_importing_plots_is_cheap():
    code = (
        "import sys, manyhands.plots, manyhands.plots.timeline; print([m for m in ('matplotlib', "
        "'torch', 'IPython') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_svg_carries_no_date():
    from manyhands.plots import figure

    fig, ax = figure()
    ax.plot([0, 1], [1, 0])
    text = svg(fig, "a line").text
    assert "<dc:date>" not in text and "Matplotlib v" not in text and "a line" in text


def test_bars_that_overlap_stand_below_each_other():
    assert rows_of([Span(0, 4, ""), Span(1, 3, ""), Span(3, 5, ""), Span(6, 7, "")]) == [0, 1, 1, 0]
