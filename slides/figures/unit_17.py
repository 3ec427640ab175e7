"""The pictures of deck 17: the hockey stick, rates, warm-up, two clocks, steps against images."""

from sketch import GOLD, INK, LINE, NAVY, QUIET, RED, TEAL, Chart, Sketch

# % wrong and its standard deviation over eight runs, as notebooks/17_large_batches.ipynb printed
# them
WARM = {8: (16.7, 1.2), 128: (17.8, 0.5), 256: (18.1, 0.5), 512: (20.8, 0.5), 1024: (37.5, 5.5)}
LINEAR = {
    8: (16.7, 1.2),
    32: (16.8, 0.6),
    128: (17.3, 1.1),
    256: (17.6, 1.0),
    512: (20.5, 1.4),
    1024: (37.0, 6.7),
}
ROOT = {8: (16.7, 1.2), 128: (22.0, 0.6), 256: (24.2, 0.6)}
SAME = {8: (16.7, 1.2), 128: (29.6, 1.1), 256: (42.2, 2.6)}
GOYAL = {
    128: 23.49,
    256: 23.60,
    512: 23.48,
    1024: 23.53,
    2048: 23.49,
    4096: 23.56,
    8192: 23.74,
    16384: 24.79,
    32768: 27.55,
    65536: 33.96,
}
FALLS = (27.3, 22.8, 22.1, 21.3, 17.6, 17.4, 16.7, 16.7)  # after each epoch
GROWS = (27.3, 22.8, 22.1, 21.3, 17.6, 17.5, 16.9, 16.7)


def cover():
    """The error against the batch, by Goyal et al. 2017."""
    sketch = Sketch(520, 480)
    chart = Chart(sketch, 20, 40, 460, 360, (128, 65536), (20, 35), True)
    chart.axes([], [], "", "")
    chart.curve(list(GOYAL.items()), RED, 9)
    sketch.text(250, 440, "images in a batch", 28, QUIET)
    sketch.text(30, 60, "error", 28, QUIET, "start")
    return sketch


def rates():
    """The error with batches of 8 and 256, for three ways to choose the rate."""
    sketch = Sketch(1168, 330)
    for i, (words, value, spread, colour) in enumerate(
        (
            ("batch 8", 16.7, 1.2, NAVY),
            ("256, the same rate", 42.2, 2.6, RED),
            ("256, rate times root 32", 24.2, 0.6, GOLD),
            ("256, rate times 32", 17.6, 1.0, TEAL),
        )
    ):
        y = 14 + i * 80
        sketch.text(380, y + 28, words, 29, INK, "end")
        sketch.box(400, y, value * 11, 56, colour, round_=4)
        sketch.text(
            416 + value * 11, y + 28, f"{value} \u00b1 {spread} % wrong", 29, INK, "start", True
        )
    return sketch


def hockey():
    """The error against the batch, measured here and published."""
    sketch = Sketch(1168, 460)
    chart = Chart(sketch, 70, 60, 400, 310, (8, 1024), (10, 45), True)
    chart.axes(
        [(8, "8"), (32, "32"), (128, "128"), (1024, "1k")],
        [(v, str(v)) for v in (10, 20, 30, 40)],
        "images in a batch",
        "",
    )
    sketch.text(70, 22, "measured here, % wrong", 28, INK, "start", True)
    for points, colour in ((SAME, RED), (ROOT, GOLD), (LINEAR, TEAL), (WARM, NAVY)):
        chart.curve([(batch, value) for batch, (value, _) in points.items()], colour, 6, dots=8)
        for batch, (value, spread) in points.items():
            sketch.line(
                [chart.place(batch, value - spread), chart.place(batch, value + spread)], colour, 3
            )
    chart.label(256, 42.2, "same rate", RED, "end", dx=-20)
    chart.label(256, 24.2, "root", "#7a5200", "start", dx=14, dy=-8)
    chart.label(1024, 37, ["linear,", "warm-up"], NAVY, dx=10, dy=60, anchor="start")
    right = Chart(sketch, 690, 60, 440, 310, (128, 65536), (20, 36), True)
    right.axes(
        [(128, "128"), (1024, "1k"), (8192, "8k"), (65536, "64k")],
        [(v, str(v)) for v in (20, 25, 30, 35)],
        "images in a batch",
        "",
    )
    sketch.text(690, 22, "published: Goyal et al. 2017", 28, INK, "start", True)
    right.curve(list(GOYAL.items()), NAVY, 6, dots=8)
    right.dot(8192, 24.84, TEAL, 10)
    right.label(8192, 24.84, "linear, no warm-up", "#1c6e62", "end", dx=-6, dy=-34)
    return sketch


def warm_up():
    """The learning rate of a warm-up and of two drops."""
    sketch = Sketch(540, 400)
    chart = Chart(sketch, 60, 50, 420, 250, (0, 8), (0, 1.2))
    chart.axes([(e, str(e)) for e in (0, 4, 6, 8)], [], "epoch", "rate")
    chart.curve([(0, 1), (1, 1)], LINE, 6, "12 9")
    chart.curve(
        [(0, 1 / 32), (1, 1), (4, 1), (4, 1 / 4), (6, 1 / 4), (6, 1 / 16), (8, 1 / 16)], RED, 8
    )
    chart.label(0.5, 0.5, "warm-up", RED, dx=20)
    return sketch


def clocks():
    """One training against epochs and against steps, with drops and with growing batches."""
    sketch = Sketch(1168, 330)
    falls = [(512 * (i + 1), value) for i, value in enumerate(FALLS)]
    steps = (512, 1024, 1536, 2048, 2176, 2304, 2336, 2368)
    grows = list(zip(steps, GROWS, strict=True))
    for panel, (words, falling, growing, top) in enumerate(
        (
            ("against epochs", list(enumerate(FALLS, 1)), list(enumerate(GROWS, 1)), 8),
            ("against steps", falls, grows, 4096),
        )
    ):
        chart = Chart(sketch, 80 + panel * 580, 50, 440, 190, (0, top), (15, 29))
        chart.axes(
            [(v, f"{v}") for v in ((0, 2, 4, 6, 8) if panel == 0 else (0, 1024, 2048, 3072, 4096))],
            [(v, str(v)) for v in (15, 20, 25)],
            "",
            "",
        )
        sketch.text(80 + panel * 580, 22, "% wrong " + words, 27, INK, "start", True)
        chart.curve(falling, NAVY, 9)
        chart.curve(growing, RED, 5)
        if panel == 1:
            chart.label(2368, 16.7, "2368 steps", RED, "end", dx=-16, dy=-2)
            chart.label(4096, 16.7, "4096", NAVY, "middle", dx=-10, dy=-40)
    sketch.text(80, 304, "blue: the rate falls by 4", 27, NAVY, "start", True)
    sketch.text(660, 304, "red: the batch grows by 4", 27, RED, "start", True)
    return sketch


def critical():
    """How many images and steps a target takes, in multiples of the fewest, against the batch."""
    sketch = Sketch(1168, 400)
    chart = Chart(sketch, 90, 40, 760, 270, (8, 2048), (1, 40), True, True)
    chart.axes(
        [(8, "8"), (32, "32"), (128, "128"), (256, "256"), (1024, "1024")],
        [(1, "1"), (3, "3"), (10, "10"), (30, "30")],
        "images in a batch",
        "",
    )
    batches = [8 * 2 ** (k / 4) for k in range(33)]
    chart.curve([(b, 1 + 240 / b) for b in batches], NAVY, 7)
    chart.curve([(b, 1 + b / 240) for b in batches], RED, 7)
    chart.dot(240, 2, INK, 13, hollow=True)
    chart.label(240, 2, ["the noise scale, 240:", "twice of both"], INK, "middle", dx=0, dy=-130)
    chart.label(2048, 1 + 2048 / 240, ["times the", "fewest images"], RED, dx=20)
    chart.label(2048, 1 + 240 / 2048, ["times the", "fewest steps"], NAVY, dx=20, dy=-20)
    return sketch
