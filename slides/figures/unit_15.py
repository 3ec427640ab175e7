"""The pictures of deck 15: layers cut by columns and rows, f and g, a mesh, rings, boxes.

They show a block's messages, and the layouts of a mesh.
"""

import re

from sketch import INK, LINE, NAVY, PALE, QUIET, RED, Chart, Sketch, ink_on, rank_colour
from stored import printed

GREEN = "#1c6e62"
LAYOUTS = {
    "data parallel": {"batch": 0},
    "model parallel": {"hidden": 1},
    "both": {"batch": 0, "hidden": 1},
    "inputs cut": {"in": 1},
}


def _matrix(sketch, x, y, width, height, by=None, numbers=False, parts=4):
    """A matrix in one piece, or cut into a part for each rank: by "columns" or by "rows"."""
    if by is None:
        sketch.box(x, y, width, height, PALE, QUIET, round_=4)
        return
    for rank in range(parts):
        across, down = (width / parts, height) if by == "columns" else (width, height / parts)
        left, top = (x + rank * across, y) if by == "columns" else (x, y + rank * down)
        sketch.box(
            left,
            top,
            across - 3,
            down - 3,
            rank_colour(rank),
            words=str(rank) if numbers else None,
            ink=ink_on(rank),
            size=26,
            bold=True,
            round_=4,
        )


def cover():
    """A matrix cut by columns, then one cut by rows, and the sum at the end."""
    sketch = Sketch(520, 520)
    _matrix(sketch, 130, 60, 260, 150, "columns", True)
    _matrix(sketch, 185, 300, 150, 180, "rows", True)
    sketch.text(260, 30, "columns", 28, QUIET)
    sketch.arrow(260, 216, 260, 292, INK, 5)
    sketch.text(290, 254, "nothing sent", 27, GREEN, "start", True)
    sketch.text(260, 506, "rows, then a sum", 28, QUIET)
    return sketch


def two_layers():
    """Two layers, cut by columns and by rows, with nothing sent between them."""
    sketch = Sketch(1168, 330)
    middle = 150
    for x, width, height, by, name in (
        (20, 110, 130, None, "x"),
        (190, 220, 110, "columns", "A, columns"),
        (500, 220, 130, "columns", "h = gelu(xA)"),
        (790, 110, 210, "rows", "B, rows"),
        (1040, 110, 130, None, "y"),
    ):
        _matrix(sketch, x, middle - height / 2, width, height, by, by is not None)
        sketch.text(x + width / 2, 290, name, 28, INK, bold=True)
    sketch.text(158, middle, "·", 50, INK)
    sketch.arrow(420, middle, 490, middle, INK, 4)
    sketch.text(755, middle, "·", 50, INK)
    sketch.arrow(910, middle, 1030, middle, RED, 6)
    sketch.text(970, middle - 34, "sum", 30, RED, bold=True)
    sketch.text(455, 30, "nothing sent", 27, GREEN, bold=True)
    return sketch


def f_and_g():
    """What f and g do forward and backward."""
    sketch = Sketch(1168, 330)
    for top, words, first, second, colour in (
        (90, "forward", ("f", "copy"), ("g", "all-reduce"), INK),
        (240, "backward", ("f", "all-reduce"), ("g", "copy"), INK),
    ):
        forward = words == "forward"
        sketch.text(10, top, words, 28, INK, "start", True)
        sketch.text(220, top, "x" if forward else "dx", 32, INK, bold=True)
        sketch.text(1130, top, "y" if forward else "dy", 32, INK, bold=True)
        for x, (name, does) in ((310, first), (890, second)):
            busy = does == "all-reduce"
            sketch.box(
                x,
                top - 36,
                170,
                72,
                RED if busy else "#ffffff",
                RED if busy else QUIET,
                f"{name}: {does}" if not busy else does,
                "#ffffff" if busy else INK,
                27,
                bold=busy,
            )
        for rank in range(4):
            sketch.box(550, top - 54 + rank * 28, 270, 24, rank_colour(rank), round_=4)
        ends = [(240, 304), (486, 544), (826, 884), (1066, 1104)]
        for a, b in ends:
            sketch.arrow(*((a, top, b, top) if forward else (b, top, a, top)), colour, 4)
    sketch.text(685, 13, "columns, gelu, rows: a part on each rank", 26, QUIET)
    return sketch


def heads():
    """Attention cut by whole heads."""
    sketch = Sketch(1168, 340)
    for i, name in enumerate(("q", "k", "v")):
        _matrix(sketch, 30, 30 + i * 84, 220, 64, "columns")
        sketch.text(10, 62 + i * 84, name, 30, INK, bold=True)
    sketch.text(20, 300, "columns: whole heads", 26, QUIET, "start")
    for rank in range(4):
        sketch.box(
            370,
            22 + rank * 66,
            330,
            56,
            rank_colour(rank),
            words=f"attention of head {rank}",
            ink=ink_on(rank),
            size=26,
        )
    sketch.text(535, 300, "each for itself", 26, GREEN, bold=True)
    sketch.arrow(270, 150, 358, 150, INK, 4)
    sketch.arrow(712, 150, 800, 150, INK, 4)
    _matrix(sketch, 810, 50, 130, 200, "rows")
    sketch.text(875, 300, "out, by rows", 26, QUIET)
    sketch.arrow(952, 150, 1050, 150, RED, 6)
    sketch.text(1000, 116, "sum", 30, RED, bold=True)
    _matrix(sketch, 1060, 90, 90, 120)
    return sketch


def _strand(sketch, top, enter, leave, whole):
    """A block from left to right: norm, cut part, norm, cut part."""
    x = 10
    for part in ("attention", "MLP"):
        if whole:
            sketch.box(x, top, 120, 60, PALE, QUIET, "norm")
        else:
            _matrix(sketch, x, top, 122, 63, "rows")
        sketch.text(x + 166, top + 30, enter, 26, RED, bold=True)
        _matrix(sketch, x + 210, top, 190, 63, "columns")
        sketch.text(x + 305, top + 88, part, 25, QUIET)
        sketch.text(x + 452, top + 30, leave, 26, RED, bold=True)
        if whole:
            sketch.box(x + 505, top, 60, 60, PALE, QUIET, "+")
        else:
            _matrix(sketch, x + 505, top, 62, 63, "rows")
        x += 584


def block():
    """A block's messages with tensor parallelism and with sequence parallelism."""
    sketch = Sketch(1168, 420)
    for top, words, enter, leave, whole in (
        (56, "tensor parallel: norms and residuals whole on every rank", "f", "g", True),
        (276, "sequence parallel: there, a rank has its own places", "AG", "RS", False),
    ):
        sketch.text(10, top - 32, words, 28, INK, "start", True)
        _strand(sketch, top, enter, leave, whole)
    sketch.text(
        10,
        402,
        "AG: all-gather, backward reduce-scatter. RS: reduce-scatter, backward all-gather.",
        26,
        QUIET,
        "start",
    )
    return sketch


def _sizes():
    """The bill of each layout at the two batches, as the notebook printed it."""
    sizes = {}
    for line in printed("15_tensor_parallel", "batch 64:"):
        name, small, large = re.search(
            r"\] (.+?) +as one process: True; batch 8: +(\d+) .*batch 64: (\d+)", line
        ).groups()
        sizes[name] = {8: int(small), 64: int(large)}
    return sizes


def bills():
    """How many numbers a rank hands to all-reduces, against the batch."""
    sketch = Sketch(1168, 430)
    chart = Chart(sketch, 90, 44, 700, 300, (0, 64), (0, 300))
    chart.axes(
        [(b, str(b)) for b in (8, 16, 32, 48, 64)],
        [(n, str(n)) for n in (0, 100, 200, 300)],
        "batch",
        "numbers that a rank hands to all-reduces",
    )
    lines = {
        "data parallel": (lambda b: 1 + 128 + 64, NAVY, 12),
        "model parallel": (lambda b: 4 * b, RED, -12),
        "both": (lambda b: 2 * b + 1 + 64 + 32, GREEN, 0),
    }
    for name, (numbers, colour, dy) in lines.items():
        chart.curve([(b, numbers(b)) for b in range(0, 65, 8)], colour, 6)
        chart.label(64, numbers(64), name, colour, dx=24, dy=dy)
        for batch, counted in _sizes()[name].items():
            chart.dot(batch, counted, colour, 9)
    chart.curve([(b, 16 * b) for b in (0, 18)], QUIET, 6)
    chart.label(18, 280, "inputs cut", QUIET, dx=16)
    sketch.text(900, 400, "dots: counted", 25, QUIET, "start")
    return sketch


def layouts():
    """What each rank holds under four layouts of a mesh."""
    sketch = Sketch(1168, 476)
    sizes = {"x": ("batch", "in", 56), "h": ("batch", "hidden", 112), "y": ("batch", "out", 28)}
    sums = {"model parallel": "y", "both": "y", "inputs cut": "h"}
    for place, (name, layout) in enumerate(LAYOUTS.items()):
        left, top = place % 2 * 600, place // 2 * 236
        sketch.text(left, top + 18, name, 28, INK, "start", True)
        x = left
        for tensor, (rows, columns, width) in sizes.items():
            for rank in range(4):
                at = rank // 2, rank % 2
                a, b = x + at[1] * (width + 26), top + 44 + at[0] * 84
                sketch.box(a, b, width, 64, "#e9e9e9", round_=2)
                down, across = layout.get(rows), layout.get(columns)
                high, wide = 64 / (1 + (down is not None)), width / (1 + (across is not None))
                sketch.box(
                    a + (wide * at[across] if across is not None else 0),
                    b + (high * at[down] if down is not None else 0),
                    wide,
                    high,
                    rank_colour(rank),
                    round_=2,
                )
                if sums.get(name) == tensor and at[1]:
                    sketch.line([(a - 25, b + 32), (a - 1, b + 32)], RED, 7)
            sketch.text(
                x + width + 13,
                top + 222,
                tensor,
                26,
                RED if sums.get(name) == tensor else QUIET,
                bold=sums.get(name) == tensor,
            )
            x += 2 * width + 26 + 44
    return sketch


def two_axes():
    """One weight cut along both axes of a mesh."""
    sketch = Sketch(520, 480)
    sketch.text(260, 24, "one weight, by tp, then by dp", 27, QUIET)
    for tp in range(2):
        for dp in range(2):
            rank = 2 * dp + tp
            sketch.box(
                190,
                60 + tp * 196 + dp * 96,
                250,
                90,
                rank_colour(rank),
                words=f"rank {rank}",
                ink=ink_on(rank),
                size=28,
                bold=True,
                round_=4,
            )
        sketch.line(
            [
                (170, 62 + tp * 196),
                (158, 62 + tp * 196),
                (158, 244 + tp * 196),
                (170, 244 + tp * 196),
            ],
            QUIET,
            3,
        )
        sketch.text(140, 153 + tp * 196, f"tp {tp}", 28, INK, "end", True)
    return sketch


def ring():
    """Keys and values that go around a ring of four ranks, step by step."""
    sketch = Sketch(1168, 330)
    for step in range(4):
        left = 20 + step * 292
        sketch.text(left + 118, 20, f"step {step}", 28, INK, bold=True)
        for rank in range(4):
            y, whose = 50 + rank * 58, (rank - step) % 4
            sketch.box(
                left,
                y,
                96,
                48,
                rank_colour(rank),
                words=f"q{rank}",
                ink=ink_on(rank),
                size=26,
                round_=4,
            )
            sketch.box(
                left + 110,
                y,
                126,
                48,
                "#ffffff",
                rank_colour(whose),
                f"k{whose} v{whose}",
                INK,
                26,
                4,
                4,
            )
        if step < 3:
            sketch.arrow(left + 246, 166, left + 286, 166, RED, 5)
    sketch.text(
        584, 308, "a message from each rank to the next, while it computes: three in all", 26, QUIET
    )
    return sketch


def boxes():
    """Tokens that are put into the boxes of experts, until a box is full."""
    sketch = Sketch(1168, 330)
    sketch.text(130, 22, "tokens of rank 0", 27, INK, bold=True)
    wanted = (0, 2, 0, 1, 0, 3, 2, 0)
    filled = dict.fromkeys(range(4), 0)
    for i, expert in enumerate(wanted):
        fits = filled[expert] < 3
        y = 46 + i * 33
        sketch.box(
            60,
            y,
            120,
            27,
            rank_colour(expert) if fits else "#ffffff",
            None if fits else RED,
            round_=3,
        )
        if fits:
            row = 46 + expert * 68 + filled[expert] * 20
            sketch.line([(186, y + 13), (470, row + 8)], LINE, 2.5)
            filled[expert] += 1
        else:
            sketch.text(200, y + 13, "overflows", 25, RED, "start", True)
    sketch.text(560, 22, "boxes of 3 rows", 27, INK, bold=True)
    for expert in range(4):
        for row in range(3):
            sketch.box(
                480,
                46 + expert * 68 + row * 20,
                160,
                17,
                rank_colour(expert) if row < filled[expert] else "#ffffff",
                rank_colour(expert),
                round_=2,
                thick=2,
            )
        sketch.arrow(655, 75 + expert * 68, 800, 75 + expert * 68, INK, 4)
        sketch.box(
            820,
            50 + expert * 68,
            240,
            52,
            rank_colour(expert),
            words=f"expert {expert}",
            ink=ink_on(expert),
            size=27,
        )
    sketch.text(728, 310, "all-to-all", 27, RED, bold=True)
    return sketch
