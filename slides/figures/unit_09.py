"""The pictures of deck 09: old gradients, weights that swing, a barrier with a bound, backups."""

import itertools
import math

from sketch import GOLD, INK, NAVY, PALE, QUIET, RED, TEAL, Chart, Sketch, rank_colour

# worker, staleness: as
LOG = (
    (1, 0),
    (0, 1),
    (1, 1),
    (0, 1),
    (2, 4),
    (1, 2),
    (0, 2),
    (1, 1),
    (0, 1),
    (1, 1),
    (0, 1),
    (2, 6),
    (1, 2),
    (0, 2),
    (1, 1),
    (0, 1),
)
# notebooks/09_staleness.ipynb printed it; and the time to the target in ms for 0, 1, ... backup
# workers
TO_TARGET_MS = (
    139.8,
    102.0,
    96.1,
    94.9,
    95.0,
    95.8,
    97.0,
    98.6,
    100.8,
    103.7,
    107.4,
    112.2,
    118.4,
    126.7,
    137.8,
)


def _descend(delay, rate, steps):
    weights = [1.0]
    for t in range(steps):
        weights.append(weights[-1] - rate * weights[max(t - delay, 0)])
    return weights


def cover():
    """A weight that spirals away from the minimum."""
    sketch = Sketch(520, 520)
    points = _descend(8, 0.2, 100)
    chart = Chart(sketch, 20, 20, 480, 480, (-2.35, 2.35), (-0.5, 0.5))
    chart.curve(
        list(zip(points[1:], (b - a for a, b in itertools.pairwise(points)), strict=True)), RED, 6
    )
    chart.dot(0, 0, NAVY, 16)
    sketch.text(260, 294, "the minimum", 27, NAVY)
    return sketch


def schedule():
    """Three workers' gradients in the order of their pushes, with their staleness."""
    sketch = Sketch(1168, 340)
    for worker in range(3):
        y = 50 + worker * 90
        sketch.rank(60, y, worker, 36, 32)
        sketch.line([(110, y), (1150, y)], "#c3ccd7", 3)
    for i, (worker, age) in enumerate(LOG):
        x, y = 160 + i * 63, 50 + worker * 90
        sketch.box(
            x - 26,
            y - 30,
            52,
            60,
            rank_colour(worker),
            words=str(age),
            ink="#ffffff",
            size=30,
            bold=True,
        )
    sketch.text(
        160,
        312,
        "the server's updates, in their order; the number: how old the gradient was",
        26,
        QUIET,
        "start",
    )
    return sketch


def swings():
    """A weight against the updates, with fresh gradients and with old ones."""
    sketch = Sketch(1168, 430)
    chart = Chart(sketch, 60, 30, 960, 350, (0, 12), (-4.6, 4.6))
    chart.axes(
        [(t, str(t)) for t in range(0, 13, 2)], [(v, str(v)) for v in (-4, -2, 0, 2, 4)], "", ""
    )
    for delay, colour in ((2, RED), (1, GOLD), (0, NAVY)):
        points = [(t, w) for t, w in enumerate(_descend(delay, 1.0, 12)) if abs(w) <= 4.6]
        if delay == 2:
            points = points[:10]
        chart.curve(points, colour, 7, dots=9)
    chart.label(9, 3, "2 old: it grows", RED, dx=24, dy=-10)
    chart.label(12, 1, "1 old: forever", "#7a5200", dx=-20, dy=-44, anchor="end")
    chart.label(12, 0, "fresh", NAVY, dx=16)
    sketch.text(1060, 404, "update", 25, QUIET, "start")
    return sketch


def bound():
    """The largest stable learning rate by the age of the gradients."""
    sketch = Sketch(1168, 420)
    rates = [(d, 2 * math.sin(math.pi / (2 * (2 * d + 1)))) for d in (0, 1, 2, 4, 8)]
    for i, (delay, rate) in enumerate(rates):
        x, height = 120 + i * 210, rate * 150
        sketch.box(x, 350 - height, 130, height, NAVY if i == 0 else RED, round_=4)
        sketch.text(x + 65, 324 - height, f"{rate:.3g}", 34, INK, bold=True)
        sketch.text(x + 65, 382, str(delay), 30, INK)
    sketch.text(90, 382, "delay", 27, QUIET, "end")
    return sketch


def spirals():
    """Three ways of a weight and its change, for gradients of three ages."""
    sketch = Sketch(1168, 440)
    for panel, (delay, words) in enumerate(
        ((0, "fresh: straight home"), (4, "4 old: round, and home"), (8, "8 old: out, forever"))
    ):
        left = 20 + panel * 390
        sketch.box(left, 50, 350, 330, PALE, None, round_=10)
        chart = Chart(sketch, left + 10, 60, 330, 310, (-2.35, 2.35), (-0.5, 0.5))
        weights = _descend(delay, 0.2, 100)
        colour = (NAVY, TEAL, RED)[panel]
        chart.curve(
            list(zip(weights[1:], (b - a for a, b in itertools.pairwise(weights)), strict=True)),
            colour,
            5,
        )
        chart.dot(0, 0, INK, 10)
        sketch.text(left + 175, 22, words, 28, colour if panel != 1 else "#1c6e62", bold=True)
    sketch.text(
        584,
        414,
        "to the right the weight, upwards its last change; rate 0.2, 100 updates; the disc: the "
        "minimum",
        25,
        QUIET,
    )
    return sketch


def clocks():
    """Four workers' clocks, and the bound that stops the fastest."""
    sketch = Sketch(540, 420)
    for worker, steps in enumerate((4, 6, 6, 5)):
        y = 50 + worker * 86
        sketch.rank(50, y, worker, 34, 30)
        for step in range(steps):
            sketch.box(104 + step * 60, y - 26, 52, 52, rank_colour(worker), round_=5)
    sketch.line([(104 + 6 * 60, 10), (104 + 6 * 60, 346)], RED, 6, "14 10")
    sketch.text(500, 376, "who may begin: slowest + 2", 28, RED, "end", True)
    return sketch


def backups():
    """The time to the target against the number of backup workers."""
    sketch = Sketch(1168, 430)
    chart = Chart(sketch, 110, 40, 820, 300, (0, 14), (80, 150))
    chart.axes(
        [(b, str(b)) for b in (0, 2, 4, 6, 8, 10, 12, 14)],
        [(v, f"{v} ms") for v in (80, 100, 120, 140)],
        "backup workers b, of 20 machines",
        "",
    )
    chart.curve(list(enumerate(TO_TARGET_MS)), NAVY, 6, dots=9)
    chart.dot(3, TO_TARGET_MS[3], RED, 14)
    chart.label(0, 139.8, "wait for the last", INK, dx=24)
    chart.label(3, 94.9, "best: 3", RED, dx=-10, dy=44)
    chart.label(14, 137.8, ["few gradients,", "many steps"], INK, dx=22)
    return sketch
