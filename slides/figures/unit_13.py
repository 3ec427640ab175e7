"""The pictures of deck 13: a table of filters cut in two ways, who reacts to whom, bytes, halos."""

from sketch import INK, LINE, NAVY, QUIET, RED, TEAL, Chart, Sketch, ink_on, rank_colour


def _table(sketch, left, top, owner, cell, size=8):
    """A table of small filters: a row for each output, a column for each input.

    A filter has the colour of the rank that has it.
    """
    for row in range(size):
        for column in range(size):
            rank = owner(row, column)
            sketch.box(
                left + column * cell,
                top + row * cell,
                cell - 4,
                cell - 4,
                "#ffffff" if rank is None else rank_colour(rank),
                LINE if rank is None else None,
                round_=3,
                thick=1.5,
            )


def cover():
    """A table of filters cut by rows."""
    sketch = Sketch(520, 520)
    _table(sketch, 60, 60, lambda row, column: row // 2, 52)
    sketch.text(268, 32, "inputs", 27, QUIET)
    sketch.text(28, 268, "outputs", 27, QUIET, turn=-90)
    return sketch


def cuts():
    """A table of filters cut by rows and by columns, and what each rank then makes."""
    sketch = Sketch(1168, 450)
    for i, (title, owner, words) in enumerate(
        (
            (
                "out split: blocks of rows",
                lambda row, column: row // 2,
                ["a rank needs the whole x,", "makes some outputs: join"],
            ),
            (
                "in split: blocks of columns",
                lambda row, column: column // 2,
                ["a rank needs some channels,", "makes a part of every output: sum"],
            ),
        )
    ):
        left = 30 + i * 590
        sketch.text(left, 20, title, 30, INK, "start", True)
        _table(sketch, left, 52, owner, 40)
        sketch.text(left, 408, words, 27, RED if i else "#1c6e62", "start", True)
    return sketch


def connectivity():
    """Which outputs react to which inputs, for the whole layer and for three splits."""
    sketch = Sketch(1168, 370)
    panels = (
        ("nn.Conv2d", lambda r, c: 0),
        ("out split", lambda r, c: r // 2),
        ("in split", lambda r, c: c // 2),
        ("published", lambda r, c: r // 2 if c % 4 == r // 2 else None),
    )
    for i, (title, owner) in enumerate(panels):
        left = 14 + i * 294
        _table(sketch, left, 50, owner, 33)
        sketch.text(left + 130, 22, title, 28, RED if i == 3 else INK, bold=True)
    for i, words in enumerate(("one process", "dense", "dense", "432 weights missing")):
        sketch.text(144 + i * 294, 346, words, 26, RED if i == 3 else QUIET, bold=i == 3)
    return sketch


def traffic():
    """Bytes sent in a step against the side of the image, for each way of cutting."""
    sketch = Sketch(1168, 440)
    chart = Chart(sketch, 120, 40, 780, 310, (2, 32), (2e4, 1e7), True, True)
    sides = (2, 4, 8, 16, 32)
    chart.axes(
        [(s, str(s)) for s in sides],
        [(1e5, "100 kB"), (1e6, "1 MB"), (1e7, "10 MB")],
        "side of the image",
        "",
    )
    for words, colour, value, dy in (
        ("out split", NAVY, lambda s: 4 * 3 * 4 * (32 + 2 * 64) * s**2, -10),
        ("in split", RED, lambda s: 4 * 3 * 4 * (2 * 32 + 64) * s**2, 26),
        ("data parallel", TEAL, lambda s: 4 * 3 * 2 * 32 * 64 * 9, 0),
    ):
        chart.curve([(s, value(s)) for s in sides], colour, 6, dots=9)
        chart.label(32, value(32), words, colour if colour != TEAL else "#1c6e62", dx=22, dy=dy)
    sketch.text(930, 420, "dots: measured, too", 24, QUIET, "start")
    return sketch


def operators():
    """The three pairs of operators: what each does forward and backward."""
    sketch = Sketch(1168, 230)
    for i, (name, forward, backward) in enumerate(
        (
            ("copy (f)", "x as it is", "sum of gradients"),
            ("join", "all channels", "its own channels"),
            ("sum (g)", "sum of all", "as it is"),
        )
    ):
        left = 20 + i * 390
        sketch.box(left, 10, 350, 62, rank_colour(i), words=name, ink=ink_on(i), size=30, bold=True)
        sketch.text(left, 114, "forward:", 27, INK, "start", True)
        sketch.text(left + 130, 114, forward, 27, INK, "start")
        sketch.text(left, 164, "backward:", 27, RED, "start", True)
        sketch.text(left + 142, 164, backward, 27, RED, "start")
        sketch.text(
            left,
            212,
            ("before the out split", "after the out split", "after the in split")[i],
            25,
            QUIET,
            "start",
        )
    return sketch


def halo():
    """An image cut into stripes, with the rows that neighbours need."""
    sketch = Sketch(540, 450)
    for rank in range(4):
        y = 16 + rank * 110
        sketch.box(
            30,
            y,
            360,
            88,
            rank_colour(rank),
            words=f"rows of rank {rank}",
            ink=ink_on(rank),
            size=28,
            bold=True,
            round_=4,
        )
        if rank < 3:
            sketch.box(30, y + 88, 360, 11, rank_colour(rank + 1), round_=0)
            sketch.box(30, y + 99, 360, 11, rank_colour(rank), round_=0)
            sketch.arrow(408, y + 72, 408, y + 132, INK, 5)
            sketch.arrow(432, y + 132, 432, y + 72, INK, 5)
    sketch.text(450, 120, "a halo", 28, INK, "start", True)
    return sketch


def pair():
    """Four ranks with two layers, of which the first is cut by outputs and the second by inputs."""
    sketch = Sketch(1168, 250)
    for rank in range(4):
        y = 34 + rank * 60
        sketch.box(
            200,
            y - 22,
            260,
            46,
            rank_colour(rank),
            words="rows of layer 1",
            ink=ink_on(rank),
            size=25,
        )
        sketch.arrow(466, y, 556, y, rank_colour(rank), 5)
        sketch.box(
            560,
            y - 22,
            280,
            46,
            rank_colour(rank),
            words="columns of layer 2",
            ink=ink_on(rank),
            size=25,
        )
        sketch.line([(140, 124), (194, y)], QUIET, 3)
        sketch.line([(846, y), (930, 124)], RED, 4)
    sketch.text(90, 124, "x", 36, INK, bold=True)
    sketch.add("circle", cx=965, cy=124, r=36, fill=RED)
    sketch.text(965, 121, "+", 46, "#ffffff", bold=True)
    sketch.text(1020, 124, "one sum", 30, RED, "start", True)
    return sketch
