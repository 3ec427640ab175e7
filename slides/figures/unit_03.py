"""The pictures of deck 03: four functions in a step, threads in a line, a full first device."""

from sketch import GOLD, INK, LINE, NAVY, PALE, QUIET, RED, TEAL, Chart, Sketch, ink_on, rank_colour

# ms of a step as notebooks/03_dataparallel.ipynb printed it: replicas, then forward on the threads
# and backward
MANY_SMALL = ((1, 18.35, 22.48), (2, 30.80, 28.80), (4, 98.73, 73.69))
FEW_LARGE = ((1, 53.58, 58.51), (2, 29.56, 58.92), (4, 29.76, 68.39))


def cover():
    """One process with four threads, one for each device."""
    sketch = Sketch(520, 540)
    sketch.box(30, 30, 460, 480, PALE, LINE, round_=20)
    sketch.text(260, 66, "one process", 28, INK, bold=True)
    for device in range(4):
        x = 92 + device * 112
        sketch.line(
            [(x + (k % 2) * 14 - 7, 120 + k * 22) for k in range(13)], rank_colour(device), 8
        )
        sketch.box(
            x - 44,
            400,
            88,
            80,
            rank_colour(device),
            words=str(device),
            ink=ink_on(device),
            size=34,
            bold=True,
        )
    sketch.text(260, 100, "a thread for each device", 26, QUIET)
    return sketch


def four():
    """The four functions of `nn.DataParallel`, in order."""
    sketch = Sketch(1168, 270)
    names = ("scatter", "replicate", "parallel_apply", "gather")
    words = (
        ("pieces of", "the batch"),
        ("copies of", "the model"),
        ("a thread", "for each"),
        ("outputs on", "device 0"),
    )
    for i, (name, lines) in enumerate(zip(names, words, strict=True)):
        x = 20 + i * 292
        sketch.box(x, 20, 250, 84, rank_colour(i), words=name, ink=ink_on(i), size=28, bold=True)
        sketch.text(x + 125, 146, list(lines), 27, INK)
        if i < 3:
            sketch.arrow(x + 252, 62, x + 290, 62, QUIET, 5)
    sketch.arrow(1148, 246, 20, 246, RED, 6)
    sketch.text(
        584, 216, "backward: the same way back, a gradient that is a sum", 26, RED, bold=True
    )
    return sketch


def phases():
    """The time of the phases against the number of devices, for small and large operations."""
    sketch = Sketch(1168, 430)
    for panel, (title, rows) in enumerate(
        (("many small operations", MANY_SMALL), ("few large operations", FEW_LARGE))
    ):
        left = 90 + panel * 580
        chart = Chart(sketch, left, 60, 420, 270, (0, 3), (0, 180))
        chart.axes([], [(v, f"{v}") for v in (0, 60, 120, 180)], "", "")
        sketch.text(left, 24, title + ", ms", 28, INK, "start", True)
        for i, (replicas, forward, backward) in enumerate(rows):
            (x, low), (_, middle), (_, high) = (
                chart.place(i + 0.2, 0),
                chart.place(0, forward),
                chart.place(0, forward + backward),
            )
            sketch.box(x, middle, 88, low - middle, NAVY, round_=0)
            sketch.box(x, high, 88, middle - high, TEAL, round_=0)
            sketch.text(x + 44, low + 26, str(replicas), 28, INK)
        sketch.text(left + 210, 392, "replicas", 26, INK)
    sketch.box(470, 396, 26, 26, NAVY, round_=3)
    sketch.text(506, 409, "forward", 26, INK, "start")
    sketch.box(616, 396, 26, 26, TEAL, round_=3)
    sketch.text(652, 409, "backward", 26, INK, "start")
    return sketch


def memory():
    """What the first device holds, with the loss there and with the loss on each device."""
    sketch = Sketch(1168, 330)
    for row, (name, parts) in enumerate(
        (
            (
                "loss on device 0",
                (
                    ("outputs", 20.0, NAVY),
                    ("for the loss", 20.0, RED),
                    ("gradients", 2.6, TEAL),
                    ("Adam", 5.2, GOLD),
                ),
            ),
            ("loss in the replicas", (("", 2.6, TEAL), ("", 5.2, GOLD))),
        )
    ):
        y = 60 + row * 140
        sketch.text(
            20, y - 34, f"device 0, {name}: {55.7 if row == 0 else 15.6} MB", 28, INK, "start", True
        )
        sketch.box(
            20,
            y - 8,
            7.8 * 19.5,
            66,
            "#e3e8ee",
            LINE,
            "7.8" if row else "as others",
            size=24,
            round_=3,
        )
        left = 20 + 7.8 * 19.5
        for words, size, colour in parts:
            sketch.box(
                left,
                y - 8,
                size * 19.5 - 2,
                66,
                colour,
                words=words if size > 10 else None,
                ink="#ffffff",
                size=26,
                round_=3,
            )
            left += size * 19.5
    for i, (words, colour) in enumerate((("gradients 2.6", TEAL), ("Adam 5.2", GOLD))):
        sketch.box(500 + i * 240, 226, 26, 26, colour, round_=3)
        sketch.text(536 + i * 240, 239, words, 26, INK, "start")
    sketch.text(20, 310, "every other device: 7.8 MB, in both cases", 28, QUIET, "start")
    return sketch


def _dealt(shards, words):
    sketch = Sketch(1168, 210)
    left, number = 20, 0
    for replica, count in enumerate(shards):
        sketch.text(left + count * 50, 180, words(replica), 28, INK)
        for _ in range(count):
            sketch.box(
                left,
                20,
                92,
                110,
                rank_colour(replica),
                words=str(number),
                ink=ink_on(replica),
                size=40,
                bold=True,
            )
            left, number = left + 100, number + 1
        left += 30
    return sketch


def chunks():
    """Ten rows cut as `torch.chunk` cuts them for four devices."""
    return _dealt((3, 3, 3, 1), "device {}".format)


def norm():
    """Eight rows on four replicas, each of which normalises its own two."""
    return _dealt((2, 2, 2, 2), "replica {}".format)
