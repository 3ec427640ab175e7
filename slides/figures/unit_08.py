"""The pictures of deck 08: pull and push, the busiest link, variables on servers, staleness."""

from sketch import GOLD, INK, NAVY, QUIET, RED, TEAL, Chart, Sketch, rank_colour


def cover():
    """Four workers that push gradients to a server and pull its weights."""
    sketch = Sketch(520, 540)
    sketch.box(
        150, 30, 220, 110, NAVY, words=["server", "the weights"], ink="#ffffff", size=30, bold=True
    )
    for worker in range(4):
        x = 70 + worker * 127
        sketch.arrow(x - 10, 380, 230 + worker * 20 - 10, 146, RED, 5, short=6)
        sketch.arrow(230 + worker * 20 + 14, 146, x + 14, 380, TEAL, 5, short=6)
        sketch.rank(x, 430, worker + 1, 44, 36)
    sketch.text(70, 250, "push", 28, RED, bold=True)
    sketch.text(450, 250, "pull", 28, "#1c6e62", bold=True)
    sketch.text(260, 510, "workers", 28, QUIET)
    return sketch


def links():
    """What the busiest link carries against the number of workers, for each way."""
    sketch = Sketch(1168, 450)
    chart = Chart(sketch, 90, 60, 800, 300, (2, 16), (0, 16))
    chart.axes(
        [(w, str(w)) for w in (2, 4, 8, 12, 16)],
        [(v, str(v)) for v in (0, 4, 8, 12, 16)],
        "workers",
        "busiest link; unit: all weights",
    )
    workers = range(2, 17)
    for colour, words, value in (
        (NAVY, "1 server", lambda w: w),
        (RED, "2 servers", lambda w: w / 2),
        (GOLD, "", lambda w: 1),
        (TEAL, "", lambda w: 2 * (w - 1) / w),
    ):
        chart.curve([(w, value(w)) for w in workers], colour, 7)
        for w in (2, 3, 4) if colour in (NAVY, RED) else (2, 3):  # measured
            chart.dot(w, value(w), colour, 10)
        chart.label(16, value(16), words, colour)
    chart.label(16, 1.875, "ring all-reduce", "#1c6e62", dy=-12)
    chart.label(16, 1, "w servers", "#7a5200", dy=12)
    sketch.text(930, 416, "dots: measured", 24, QUIET, "start")
    return sketch


def dealt():
    """How much the busiest of the servers carries, by how the variables are distributed."""
    sketch = Sketch(1168, 330)
    rows = (
        ("one server", 4.00),
        ("two, variables dealt in turn", 3.93),
        ("two, a layer for each", 3.45),
        ("two, the large one cut by rows", 2.00),
    )
    for i, (words, value) in enumerate(rows):
        y = 14 + i * 80
        sketch.text(450, y + 28, words, 29, INK, "end")
        sketch.box(470, y, value * 150, 56, NAVY if i < 3 else TEAL, round_=4)
        sketch.text(486 + value * 150, y + 28, f"{value:.2f}", 32, INK, "start", True)
    return sketch


def stale():
    """A gradient that comes to the server after four others."""
    sketch = Sketch(1168, 330)
    order = (5, 2, 3, 4, 5)
    sketch.text(20, 90, "the server", 28, INK, "start", True)
    sketch.arrow(170, 90, 1140, 90, NAVY, 8)
    for i, worker in enumerate(order):
        x = 280 + i * 190
        colour = rank_colour(worker - 1)
        if i == 0:
            sketch.arrow(x, 96, x, 210, colour, 6)
            sketch.text(x + 20, 160, "pull", 26, INK, "start")
        else:
            sketch.arrow(x, 210, x, 98, colour, 6)
            sketch.text(x + 20, 160, "push", 26, INK, "start")
        sketch.rank(x, 250, worker - 1, 38, 32, words=str(worker))
        if 0 < i < 4:
            sketch.text(x, 46, f"update {i}", 27, RED, bold=True)
    sketch.text(1040, 46, "staleness 3", 30, RED, bold=True)
    sketch.text(20, 250, "workers", 28, INK, "start", True)
    return sketch
