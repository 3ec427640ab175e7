"""The pictures of deck 01: rows, sums of gradients, and what a mean of means does."""

from sketch import INK, LINE, NAVY, QUIET, RED, TEAL, Chart, Sketch, ink_on, rank_colour
from stored import curves

GRADIENTS = ((12, -12, 40), (-2, -32, 70), (34, -34, 82), (-10, -34, 32))


def cover():
    """A batch cut into four shares, whose gradients become one sum."""
    sketch = Sketch(520, 560)
    sketch.text(90, 30, "the batch", 26, QUIET)
    for rank in range(4):
        y = 60 + rank * 120
        sketch.box(40, y, 100, 104, rank_colour(rank))
        sketch.arrow(146, y + 52, 236, y + 52, QUIET, 5)
        sketch.rank(280, y + 52, rank, 40, 34)
        sketch.arrow(324, y + 52, 440, 300, QUIET, 5, late=52)
    sketch.add("circle", cx=450, cy=300, r=46, fill="#ffffff", stroke=NAVY, stroke_width=5)
    sketch.text(450, 297, "+", 56, NAVY, bold=True)
    return sketch


def sums():
    """Ten rows on four ranks, each rank's summed gradient, and one process's sum."""
    sketch = Sketch(1168, 430)
    rows = (3, 3, 2, 2)
    sketch.text(110, 24, "ten rows", 26, QUIET)
    at = 50
    for rank, count in enumerate(rows):
        top, height = at, count * 34
        for _ in range(count):
            sketch.box(20, at, 180, 28, rank_colour(rank), round_=4)
            at += 34
        middle = 88 + rank * 90
        sketch.arrow(206, top + height / 2, 286, middle, QUIET, 4)
        sketch.rank(326, middle, rank, 34, 30)
        sketch.arrow(366, middle, 430, middle, QUIET, 4)
        for i, number in enumerate(GRADIENTS[rank]):
            sketch.text(500 + i * 80, middle, str(number), 28, INK, "end", mono=True)
        at += 0
    sketch.text(570, 24, "its gradient, summed", 26, QUIET)
    with sketch.step(1):
        for rank in range(4):
            sketch.arrow(690, 88 + rank * 90, 800, 222, NAVY, 5, late=56)
        sketch.add("circle", cx=810, cy=222, r=50, fill=NAVY)
        sketch.text(810, 220, "+", 56, "#ffffff", bold=True)
        sketch.arrow(864, 222, 930, 222, NAVY, 6)
        sketch.text(1050, 170, "all-reduce", 26, QUIET)
        sketch.text(1050, 222, "34 -112 224", 30, NAVY, bold=True, mono=True)
    with sketch.step(2):
        sketch.text(1050, 300, "one process", 26, QUIET)
        sketch.text(1050, 346, "34 -112 224", 30, RED, bold=True, mono=True)
    return sketch


def weights():
    """What each rank's mean weighs if the ranks have 200, 30, 10 and 10 rows."""
    sketch = Sketch(1168, 360)
    left = 40
    for rank, rows in enumerate((200, 30, 10, 10)):
        width = rows * 3.9
        sketch.box(left, 60, width, 96, rank_colour(rank), round_=4)
        if rows > 20:
            sketch.text(
                left + width / 2,
                108,
                f"{rows} rows" if rows > 100 else str(rows),
                30,
                ink_on(rank),
                bold=True,
            )
        sketch.text(left + width / 2, 34, f"rank {rank}" if rows > 20 else str(rank), 26, INK)
        left += width + 8
    left = 40
    sketch.text(40, 204, "what one row counts in the mean of the means", 26, INK, "start")
    for rank, weight in enumerate((1, 6.67, 20, 20)):
        sketch.rank(80 + rank * 290, 288, rank, 32, 28)
        sketch.text(
            124 + rank * 290,
            288,
            f"{weight:.3g} times" if rank else "once",
            34,
            RED if rank > 1 else INK,
            "start",
            True,
        )
    return sketch


def objective():
    """The objective of one process and of three ways to share its rows, from the notebook."""
    one_process, *ways = curves(
        "01_data_parallel", "objective of one process and of three ways to share its rows"
    )[0]
    sketch = Sketch(1168, 450)
    chart = Chart(sketch, 80, 50, 760, 320, (0, 60), (0, 2.5))
    chart.axes(
        [(s, str(s)) for s in range(0, 61, 20)],
        [(v, f"{v:g}") for v in (0, 1, 2)],
        "step",
        "objective",
    )
    shown = [(one_process, LINE, 16), (ways[0], NAVY, 7), (ways[1], TEAL, 3), (ways[2], RED, 6)]
    for (_, points), colour, thick in shown:
        chart.curve([(x + 1, y) for x, y in points], colour, thick)
    end, wrong = one_process[1][-1][1], ways[2][1][-1][1]
    chart.label(60, wrong, ["uneven shards,", "mean of means"], RED, dy=-40, size=25)
    chart.label(
        60, end, ["one process, even shards,", "uneven shards with sums"], NAVY, dy=38, size=25
    )
    return sketch
