"""The curves of a picture that a notebook keeps, in the units of its axes.

A slide draws them anew, large.
"""

import json
import re
from pathlib import Path

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
_POINT = re.compile(r"[ML] (-?[\d.]+) (-?[\d.]+)")


def curves(notebook, title):
    """For each axes of the picture with this title: its lines, each as (colour, [(x, y), ...]).

    Its axes are linear; where x has no numbers, points are counted.
    """
    return _each(notebook, title, _lines)


def dots(notebook, title):
    """For each axes of the picture: its series of marks, each a list of (x, y)."""
    return _each(notebook, title, _dots)


def bars(notebook, title):
    """The bars of each axes of the picture that has bars.

    Each bar is (its fill, start, stop, its row from the top), in x's units. The axes lie below one
    another, and the last one has the numbers.
    """
    panels = re.split(r'<g id="axes_\d+">', _svg(notebook, title))[1:]
    return [
        with_bars
        for with_bars in (_bars(axes, _scale(panels[-1], "x")) for axes in panels)
        if with_bars
    ]


def printed(notebook, words):
    """The lines of the output that has these words."""
    cells = json.loads((NOTEBOOKS / f"{notebook}.ipynb").read_text(encoding="utf-8"))["cells"]
    texts = [
        "".join(output.get("text", "")) for cell in cells for output in cell.get("outputs", ())
    ]
    (match,) = [text for text in texts if words in text]
    return match.splitlines()


def _each(notebook, title, taken):
    drawn, to_y = [], None
    for axes in re.split(r'<g id="axes_\d+">', _svg(notebook, title))[1:]:
        to_y = _scale(axes, "y") or to_y  # axes side by side may share their numbers
        drawn.append(taken(axes, _scale(axes, "x"), to_y))
    return drawn


def _svg(notebook, title):
    cells = json.loads((NOTEBOOKS / f"{notebook}.ipynb").read_text(encoding="utf-8"))["cells"]
    for cell in cells:
        for output in cell.get("outputs", ()):
            svg = "".join(output.get("data", {}).get("image/svg+xml", ""))
            if f"<title>{title}</title>" in svg:
                return svg
    raise KeyError(f"{notebook} has no picture called {title!r}")


def _lines(axes, to_x, to_y):
    lines = []
    for group in re.split(r'<g id="line2d_\d+">', axes)[1:]:
        path = re.search(r'<path d="([^"]*)" clip-path="[^"]*" style="[^"]*?stroke: (#\w+)', group)
        points = [(float(x), float(y)) for x, y in _POINT.findall(path.group(1))] if path else []
        if len(points) > 2:  # two make a line of the grid
            lines.append(
                (
                    path.group(2),
                    [(to_x(x) if to_x else i, to_y(y)) for i, (x, y) in enumerate(points)],
                )
            )
    return lines


def _bars(axes, to_x):
    corners = (
        r'<path d="M ([\d.]+) ([\d.]+) \nL ([\d.]+) [^"]*" clip-path="[^"]*" style="fill:'
        r" (#\w+|url[^;]+); stroke: #"
    )
    bars_of_axes = [
        (fill, to_x(float(start)), to_x(float(stop)), float(y))
        for start, y, stop, fill in re.findall(corners, axes)
    ]
    rows = sorted({y for *_, y in bars_of_axes})
    return [(fill, start, stop, rows.index(y)) for fill, start, stop, y in bars_of_axes]


def _dots(axes, to_x, to_y):
    series = []
    for group in re.split(r'<g id="(?:line2d|PathCollection)_\d+">', axes)[1:]:
        marks = re.findall(r'<use [^>]*x="([\d.]+)" y="([\d.]+)"', group)
        if len(marks) > 2:
            series.append([(to_x(float(x)), to_y(float(y))) for x, y in marks])
    return series


def _scale(axes, which):
    """The function from a position in the picture to a value.

    It is made from the first and last tick with a number; None where no tick has one.
    """
    ticks = []
    for group in re.split(rf'<g id="{which}tick_\d+">', axes)[1:]:
        own = re.split(
            r'<g id="(?:matplotlib\.axis|patch|LineCollection|PathCollection)_\d+">', group
        )[0]
        mark = re.search(rf'<use [^>]*\b{which}="([\d.]+)"', own)
        words = re.search(r"<text[^>]*>([^<]*\d)</text>", own)
        if mark and words:
            ticks.append((float(mark.group(1)), float(words.group(1).replace("\u2212", "-"))))
    if len(ticks) < 2:
        return None
    (a, low), (b, high) = ticks[0], ticks[-1]
    return lambda place: low + (place - a) / (b - a) * (high - low)
