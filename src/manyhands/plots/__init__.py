"""Figures from plain numbers: one look for the whole course, and SVG that is the same from build to
build.

A figure module decorates its function with `@styled`, takes its axes from `figure()` and returns
`svg(fig, "what it shows")`. Words inside a figure are arguments with an English default, so that a
translation can hand in its own.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# One colour per rank, then from the start again. Their lightness differs, so that they stay apart
# when printed in grey.
RANK_COLOURS = (
    "#0f2f52",
    "#a8322d",
    "#3a9a8c",
    "#f2b134",
    "#51318f",
    "#7d7a1e",
    "#e48fb0",
    "#bfe3f2",
)

P = ParamSpec("P")
T = TypeVar("T")
Words = Mapping[str, Any]  # the words inside a figure

INK, GREY, PALE = "#222222", "#8a8a8a", "#e9e9e9"

STYLE: Any = {
    "font.size": 9,
    "font.family": ["DejaVu Sans", "sans-serif"],
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "grid.color": PALE,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    # letters stay letters: small files, and a translation can change them
    "svg.fonttype": "none",
    "svg.hashsalt": "manyhands",  # the same numbers give the same bytes
}


def rank_colour(rank: int) -> str:
    return RANK_COLOURS[rank % len(RANK_COLOURS)]


def ink_on(rank: int) -> str:
    """White letters on the dark colours, dark ones on the light."""
    red, green, blue = (int(rank_colour(rank)[k : k + 2], 16) for k in (1, 3, 5))
    return "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 140 else INK


def styled(draw: Callable[P, T]) -> Callable[P, T]:
    """Decorator: draw in the course's style, and leave the reader's own matplotlib settings as they
    were.
    """

    @functools.wraps(draw)
    def inner(*args: P.args, **kwargs: P.kwargs) -> T:
        import matplotlib

        with matplotlib.rc_context(STYLE):
            return draw(*args, **kwargs)

    return inner


def figure(
    rows: int = 1, columns: int = 1, width: float = 7.2, height: float = 2.6, **subplots: Any
) -> tuple[Figure, Any]:
    """A figure of `width` x `height` inches and its axes.

    It belongs to no window and no global state.
    """
    from matplotlib.figure import Figure

    fig = Figure(figsize=(width, height), layout="constrained")
    return fig, fig.subplots(rows, columns, **subplots)


class Svg:
    """A picture that a notebook shows and that `save` writes to a file."""

    def __init__(self, text: str, title: str) -> None:
        self.text, self.title = text, title

    def _repr_svg_(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<figure: {self.title}>"

    def save(self, path: str | Path) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.text)


def svg(fig: Figure, title: str) -> Svg:
    """Turn a figure into SVG. `title` says what it shows to those who cannot see it."""
    buffer = io.StringIO()
    fig.savefig(buffer, format="svg", metadata={"Title": title, "Date": None, "Creator": None})
    text = buffer.getvalue()
    return Svg(text[text.index("<svg") :].rstrip() + "\n", title)
