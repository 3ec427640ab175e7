"""Drawings for slides: SVG as text, in pixels of a slide, in the colours of the course.

A figure for a whole slide is about 1168 x 470, one beside text 540 x 500: at that size a letter of
24 is 24 px for the room. `with sketch.step(1):` draws what appears with the next key.
"""

import html
import math
from contextlib import contextmanager

from manyhands.plots import INK, ink_on, rank_colour

NAVY, RED, TEAL, GOLD = (rank_colour(rank) for rank in range(4))
QUIET, LINE, PALE, SAND = "#55606e", "#c3ccd7", "#f3f6fa", "#fff6df"
FONT = "'Plex', 'IBM Plex Sans', Helvetica, Arial, 'DejaVu Sans', sans-serif"


class Sketch:
    """A drawing in SVG, in the colours and letters of the decks."""

    def __init__(self, width, height):
        self.width, self.height, self.parts, self.heads = width, height, [], []

    def __str__(self):
        heads = "".join(self.heads)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'font-family="{FONT}" font-size="26">\n'
            + (f"<defs>{heads}</defs>\n" if heads else "")
            + "\n".join(self.parts)
            + "\n</svg>\n"
        )

    @contextmanager
    def step(self, number):
        """A block whose parts appear together, with the key press of this number."""
        self.parts.append(f'<g data-marpit-fragment="{number}">')
        yield
        self.parts.append("</g>")

    def add(self, tag, content=None, **attributes):
        """Add an SVG element; `_` in the name of an attribute stands for `-`."""
        named = "".join(
            f' {name.rstrip("_").replace("_", "-")}="{_short(value)}"'
            for name, value in attributes.items()
            if value is not None
        )
        self.parts.append(
            f"<{tag}{named}/>" if content is None else f"<{tag}{named}>{content}</{tag}>"
        )

    def text(
        self,
        x,
        y,
        words,
        size=26,
        fill=INK,
        anchor="middle",
        bold=False,
        mono=False,
        turn=None,
        italic=False,
    ):
        """Words whose middle line is at y; a list is set in lines."""
        lines = [words] if isinstance(words, str) else words
        for i, line in enumerate(lines):
            at = y + (i - (len(lines) - 1) / 2) * size * 1.2 + size * 0.35
            self.add(
                "text",
                html.escape(line, quote=False),
                x=x,
                y=at,
                font_size=size,
                fill=fill,
                text_anchor=anchor,
                font_weight="600" if bold else None,
                font_style="italic" if italic else None,
                font_family="'Plex Mono', 'DejaVu Sans Mono', monospace" if mono else None,
                transform=f"rotate({turn} {_short(x)} {_short(y)})" if turn else None,
            )

    def box(
        self,
        x,
        y,
        width,
        height,
        fill="#ffffff",
        line=None,
        words=None,
        ink=INK,
        size=26,
        round_=8,
        thick=2.5,
        bold=False,
        mono=False,
        dash=None,
    ):
        """Add a box from its upper left corner, with words in its middle."""
        self.add(
            "rect",
            x=x,
            y=y,
            width=width,
            height=height,
            rx=round_,
            fill=fill,
            stroke=line,
            stroke_width=thick if line else None,
            stroke_dasharray=dash,
        )
        if words:
            self.text(
                x + width / 2, y + height / 2, words, size=size, fill=ink, bold=bold, mono=mono
            )

    def rank(self, x, y, number, radius=34, size=30, words=None, fill=None, ink=None):
        """A rank: a disc in its colour, with its number."""
        self.add("circle", cx=x, cy=y, r=radius, fill=fill or rank_colour(number))
        self.text(
            x,
            y,
            words or str(number),
            size=size,
            fill=ink or (ink_on(number) if fill is None else INK),
            bold=True,
        )

    def line(self, points, colour=INK, thick=4, dash=None, fill="none", opacity=None):
        """Add a line through the points, without arrow heads."""
        self.add(
            "path",
            d="M" + " L".join(f"{_short(x)} {_short(y)}" for x, y in points),
            fill=fill,
            stroke=colour,
            stroke_width=thick,
            stroke_dasharray=dash,
            stroke_linejoin="round",
            stroke_linecap="round",
            opacity=opacity,
        )

    def arrow(self, x1, y1, x2, y2, colour=INK, thick=4, short=0, dash=None, bend=0, late=None):
        """An arrow between two points, `bend` px to the left of the straight line.

        It begins `short` px away from the first point, and ends `late` px before the second, or
        `short`.
        """
        late = short if late is None else late
        length = math.hypot(x2 - x1, y2 - y1)
        dx, dy = (x2 - x1) / length, (y2 - y1) / length
        cx, cy = (x1 + x2) / 2 + bend * dy, (y1 + y2) / 2 - bend * dx
        start, end = _towards(x1, y1, cx, cy, short), _towards(x2, y2, cx, cy, late)
        base = _towards(*end, cx, cy, thick * 3)
        self.add(
            "path",
            d=f"M{_at(start)} Q{_short(cx)} {_short(cy)} {_at(base)}",
            fill="none",
            stroke=colour,
            stroke_width=thick,
            stroke_dasharray=dash,
        )
        ux, uy = (end[0] - base[0]) / (thick * 3), (end[1] - base[1]) / (thick * 3)
        tip = (
            end,
            (base[0] - uy * thick * 1.6, base[1] + ux * thick * 1.6),
            (base[0] + uy * thick * 1.6, base[1] - ux * thick * 1.6),
        )
        self.add("polygon", points=" ".join(_at(p).replace(" ", ",") for p in tip), fill=colour)

    def brace(self, x1, x2, y, words, size=24, colour=QUIET, down=True):
        """Add a bracket from x1 to x2 with words below it, or above it if not `down`."""
        d = 10 if down else -10
        self.line([(x1, y), (x1, y + d), (x2, y + d), (x2, y)], colour, 2.5)
        self.text((x1 + x2) / 2, y + (28 if down else -28), words, size=size, fill=colour)


def _towards(x, y, to_x, to_y, distance):
    length = math.hypot(to_x - x, to_y - y) or 1
    return x + (to_x - x) / length * distance, y + (to_y - y) / length * distance


def _at(point):
    return f"{_short(point[0])} {_short(point[1])}"


def _short(value):
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


class Chart:
    """Axes in a sketch: `place(x, y)` is where a point lies.

    Ticks are pairs of a value and its words.
    """

    def __init__(self, sketch, left, top, width, height, x, y, log_x=False, log_y=False):
        self.sketch, self.box, self.x, self.y, self.logs = (
            sketch,
            (left, top, width, height),
            x,
            y,
            (log_x, log_y),
        )

    def place(self, x, y):
        """Where the point of these values is on the slide: (x, y) in px."""
        left, top, width, height = self.box
        return left + width * _part(x, *self.x, self.logs[0]), top + height * (
            1 - _part(y, *self.y, self.logs[1])
        )

    def axes(self, x_ticks=(), y_ticks=(), x_words="", y_words="", size=24):
        """Draw the horizontal lines, the numbers along both axes, and their names."""
        left, top, width, height = self.box
        for value, words in y_ticks:
            y = self.place(self.x[0], value)[1]
            self.sketch.line([(left, y), (left + width, y)], "#e3e8ee", 2)
            self.sketch.text(left - 12, y, words, size, QUIET, "end")
        for value, words in x_ticks:
            self.sketch.text(self.place(value, self.y[0])[0], top + height + 24, words, size, QUIET)
        self.sketch.line([(left, top + height), (left + width, top + height)], QUIET, 2.5)
        if x_words:
            self.sketch.text(left + width / 2, top + height + 60, x_words, size, INK)
        if y_words:
            self.sketch.text(left, top - 26, y_words, size, INK, "start")

    def curve(self, points, colour, thick=5, dash=None, dots=0, opacity=None):
        """Draw a curve through points in the axes' units, with `dots` of this radius if not 0."""
        places = [self.place(x, y) for x, y in points]
        self.sketch.line(places, colour, thick, dash, opacity=opacity)
        for x, y in places if dots else ():
            self.sketch.add("circle", cx=x, cy=y, r=dots, fill=colour)

    def dot(self, x, y, colour, radius=8, hollow=False):
        """Draw one dot at a point in the axes' units."""
        cx, cy = self.place(x, y)
        self.sketch.add(
            "circle",
            cx=cx,
            cy=cy,
            r=radius,
            fill="#ffffff" if hollow else colour,
            stroke=colour if hollow else None,
            stroke_width=4 if hollow else None,
        )

    def label(self, x, y, words, colour=INK, anchor="start", size=26, dx=12, dy=0, bold=True):
        """Write words beside a point in the axes' units, `dx` and `dy` px away."""
        at_x, at_y = self.place(x, y)
        self.sketch.text(at_x + dx, at_y + dy, words, size, colour, anchor, bold)


def _part(value, low, high, log):
    return math.log(value / low) / math.log(high / low) if log else (value - low) / (high - low)
