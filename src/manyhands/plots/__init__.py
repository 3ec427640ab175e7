"""Figures from plain numbers, with one look for the whole course.

The SVG is the same from build to build.

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

from manyhands.plots.colours import GREY, INK, PALE, RANK_COLOURS, ink_on, rank_colour

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "GREY",
    "INK",
    "PALE",
    "RANK_COLOURS",
    "STYLE",
    "Svg",
    "Words",
    "figure",
    "ink_on",
    "rank_colour",
    "styled",
    "svg",
]

P = ParamSpec("P")
T = TypeVar("T")
Words = Mapping[str, Any]  # the words inside a figure

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


def styled(draw: Callable[P, T]) -> Callable[P, T]:
    """Decorator: draw in the course's style.

    The reader's own matplotlib settings stay as they were.
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
        """Write the picture to an SVG file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.text)


def svg(fig: Figure, title: str) -> Svg:
    """Turn a figure into SVG. `title` says what it shows to those who cannot see it."""
    buffer = io.StringIO()
    fig.savefig(buffer, format="svg", metadata={"Title": title, "Date": None, "Creator": None})
    text = buffer.getvalue()
    return Svg(text[text.index("<svg") :].rstrip() + "\n", title)
