"""The pictures of deck 02: a step on replicas, too large gradients, an uneven last batch."""

from sketch import INK, NAVY, QUIET, RED, TEAL, Chart, Sketch, ink_on, rank_colour
from stored import dots


def _step(shards, letters=28, width=1168):
    sketch = Sketch(width, 450)
    left = 20
    sketch.text(20, 20, "global batch", 26, QUIET, "start")
    total = sum(shards)
    for replica, count in enumerate(shards):
        wide = (width - 40) * count / total
        sketch.box(
            left,
            44,
            wide - 8,
            56,
            rank_colour(replica),
            words=f"{count} rows" if count > 1 else "1",
            ink=ink_on(replica),
            size=letters,
            bold=True,
        )
        left += wide
    for replica in range(4):
        x = 20 + (width - 40) * (replica + 0.5) / 4
        sketch.arrow(x, 106, x, 152, QUIET, 5)
        sketch.box(
            x - 120,
            158,
            240,
            96,
            "#ffffff",
            rank_colour(replica),
            [f"replica {replica}", "same weights"],
            size=26,
            thick=5,
        )
        sketch.arrow(x, 260, x, 306, rank_colour(replica), 6)
    sketch.box(
        20,
        312,
        width - 40,
        56,
        NAVY,
        words="sum of the gradients: all-reduce",
        ink="#ffffff",
        size=28,
        bold=True,
    )
    for replica in range(4):
        x = 20 + (width - 40) * (replica + 0.5) / 4
        sketch.arrow(x, 374, x, 410, NAVY, 6)
        sketch.text(x, 432, "same update", 26, INK)
    return sketch


def step():
    """A step on four replicas with two rows each."""
    return _step([2, 2, 2, 2])


def cover():
    """One process with four replicas of a model."""
    sketch = Sketch(520, 540)
    sketch.box(120, 20, 280, 90, NAVY, words="one process", ink="#ffffff", size=30, bold=True)
    for replica in range(4):
        x = 70 + replica * 127
        sketch.arrow(260, 116, x, 206, QUIET, 5, late=6)
        sketch.box(x - 54, 214, 108, 150, "#ffffff", rank_colour(replica), thick=6)
        for layer in range(3):
            sketch.box(x - 36, 232 + layer * 40, 72, 28, rank_colour(replica), round_=4)
    sketch.text(260, 408, "one copy of the model on each device", 27, QUIET)
    return sketch


def cut():
    """A model cut into layers: activations go one way, gradients the other."""
    sketch = Sketch(1168, 170)
    for layer in range(4):
        x = 150 + layer * 290
        sketch.box(
            x - 100,
            40,
            200,
            90,
            rank_colour(layer),
            words=f"layer {layer}",
            ink=ink_on(layer),
            size=30,
            bold=True,
        )
        if layer < 3:
            sketch.arrow(x + 106, 66, x + 184, 66, INK, 5)
            sketch.arrow(x + 184, 108, x + 106, 108, RED, 5)
    sketch.text(585, 20, "activations", 26, INK)
    sketch.text(585, 154, "gradients", 26, RED)
    return sketch


def scaling():
    """Gradients against one device's, divided by the replica's own rows and by the global batch."""
    sketch = Sketch(1168, 430)
    for panel, (title, series) in enumerate(
        zip(
            ("divided by the replica's own rows", "divided by the global batch"),
            dots("02_mirrored_strategy", "gradients against one device's"),
            strict=True,
        )
    ):
        chart = Chart(sketch, 90 + panel * 600, 60, 380, 290, (-0.13, 0.13), (-0.48, 0.56))
        chart.axes(
            [(v, f"{v:g}") for v in (-0.1, 0, 0.1)],
            [(v, f"{v:g}") for v in (-0.4, -0.2, 0, 0.2, 0.4)],
            "gradient on one device",
            "",
        )
        sketch.text(
            90 + panel * 600, 24, title, 28, RED if panel == 0 else "#1c6e62", "start", True
        )
        for points, colour, slope in zip(series, (NAVY, RED, TEAL), (1, 2, 4), strict=True):
            for x, y in points:
                chart.dot(x, y, colour, 7)
            if panel == 0:
                chart.label(
                    0.13,
                    0.125 * slope,
                    {1: "1 replica", 2: "2", 4: "4"}[slope],
                    colour if slope != 4 else "#1c6e62",
                    size=25,
                    dx=4,
                )
    return sketch


def uneven():
    """Ten rows on four replicas: three, three, three and one."""
    sketch = Sketch(1168, 330)
    left, number = 20, 0
    for replica, count in enumerate((3, 3, 3, 1)):
        for _ in range(count):
            sketch.box(
                left,
                20,
                92,
                80,
                rank_colour(replica),
                words=str(number),
                ink=ink_on(replica),
                size=38,
                bold=True,
            )
            left, number = left + 100, number + 1
        middle = left - count * 50
        sketch.arrow(middle, 108, middle, 158, rank_colour(replica), 6)
        mean = {3: (number - 2)}.get(count, number - 1)
        sketch.text(middle, 184, f"mean {mean}", 30, INK, bold=True)
        left += 36
    sketch.text(20, 256, "mean of the means: (1 + 4 + 7 + 9) / 4 = 5.25", 32, RED, "start", True)
    sketch.text(20, 306, "mean of all rows: 45 / 10 = 4.5", 32, "#1c6e62", "start", True)
    return sketch
