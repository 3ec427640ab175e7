"""The pictures of deck 18: a renamed file, what is state, the loss through two kills, recoveries.

They also show pieces of a file, and how often to save.
"""

import itertools

from sketch import GOLD, INK, LINE, NAVY, PALE, QUIET, RED, TEAL, Chart, Sketch
from stored import curves

from manyhands.simulate.survival import job_s

NOTEBOOK, CURVE = (
    "18_elastic_training",
    "the loss through two kills, over that of the same training without",
)
MTBF_S = 54 * 24 * 3600 / 419  # Grattafiori et al. 2024, section 3.3.4


def _loss():
    """(the undisturbed losses, those of each life) as the notebook has drawn them.

    They are lists of (step, loss).
    """
    (lines,) = curves(NOTEBOOK, CURVE)
    return lines[0][1], [points for _, points in lines[1:]]


def cover():
    """The loss of a training that is killed twice."""
    sketch = Sketch(520, 480)
    undisturbed, lives = _loss()
    chart = Chart(sketch, 20, 40, 460, 360, (0, 59), (0, 2.7))
    chart.axes()
    chart.curve(undisturbed, LINE, 16)
    for points, colour in zip(lives, (NAVY, RED, TEAL), strict=True):
        chart.curve(points, colour, 5)
    for points in lives[:-1]:
        chart.dot(*points[-1], INK, 11)
    sketch.text(250, 440, "steps, and two deaths", 28, QUIET)
    return sketch


def beside():
    """What the two files contain while a checkpoint is written beside the old one."""
    sketch = Sketch(1168, 400)
    columns = (
        ("write beside", "part", None),
        ("fsync", "part, on the disk", None),
        ("rename", None, "new"),
        ("fsync the folder", None, "new"),
    )
    for i, (words, part, final) in enumerate(columns):
        x = 20 + i * 290
        sketch.text(x + 125, 30, words, 29, INK, bold=True)
        sketch.box(
            x,
            70,
            250,
            90,
            "#dfe7f1" if final is None else "#d8efe9",
            NAVY if final is None else TEAL,
            "checkpoint: old" if final is None else f"checkpoint: {final}",
            size=26,
        )
        if part:
            sketch.box(
                x, 190, 250, 90, "#fff6df", GOLD, part, size=26, dash="10 7" if i == 0 else None
            )
        if i < 3:
            sketch.arrow(x + 254, 115, x + 286, 115, QUIET, 5)
    sketch.text(290 * 3 + 145, 235, ["its name is", "on the disk"], 26, "#1c6e62")
    sketch.text(20, 340, ["killed here, or here:", "the old one is whole"], 28, NAVY, "start", True)
    sketch.text(
        600, 340, ["killed here, or here:", "the new one is whole"], 28, "#1c6e62", "start", True
    )
    return sketch


def state():
    """What belongs to the state of a training, and what happens without it."""
    sketch = Sketch(1168, 330)
    parts = (
        ("weights", "all know it"),
        ("momentum", "begins at zero"),
        ("schedule", "the rate jumps"),
        ("generators", "other dropout"),
        ("position", "rows twice"),
        ("loader, scaler, ...", "ask your code"),
    )
    for i, (words, lost) in enumerate(parts):
        x, y = 20 + (i % 3) * 385, 20 + (i // 3) * 160
        sketch.box(x, y, 355, 130, PALE, LINE)
        sketch.text(x + 178, y + 45, words, 29, INK, bold=True)
        sketch.text(x + 178, y + 90, lost, 26, RED if i else QUIET)
    return sketch


def through():
    """The loss through two kills, over the undisturbed one."""
    sketch = Sketch(1168, 450)
    undisturbed, lives = _loss()
    chart = Chart(sketch, 70, 40, 1040, 330, (0, 59), (0, 2.7))
    for before, after in itertools.pairwise(lives):
        left, right = chart.place(after[0][0], 0)[0], chart.place(before[-1][0], 0)[0]
        sketch.box(left, 40, right - left, 330, "#f6dfdd", round_=0)
    chart.axes(
        [(s, str(s)) for s in (0, 10, 20, 30, 40, 50)],
        [(v, str(v)) for v in (0, 1, 2)],
        "step",
        "loss",
    )
    chart.curve(undisturbed, LINE, 16)
    for points, colour in zip(lives, (NAVY, RED, TEAL), strict=True):
        chart.curve(points, colour, 5)
    for points in lives[:-1]:
        chart.dot(*points[-1], INK, 11)
        chart.label(*points[-1], "killed", INK, dx=10, dy=-44)
    for x, words, colour in (
        (8, "4 ranks", NAVY),
        (34, "2 ranks", RED),
        (52, "3 ranks", "#1c6e62"),
    ):
        chart.label(x, 2.4, words, colour, "middle", dx=0)
    return sketch


def pieces():
    """One vector in the pieces of 4, 2 and 3 ranks."""
    sketch = Sketch(1168, 400)
    numbers, left, width = 33, 150, 980
    for row, (world, size) in enumerate(((4, 9), (2, 17), (3, 11))):
        y = 30 + row * 125
        sketch.text(20, y + 40, f"{world} ranks", 28, INK, "start", True)
        for rank in range(world):
            start, stop = rank * size, min(numbers, (rank + 1) * size)
            sketch.box(
                left + start / numbers * width,
                y,
                (stop - start) / numbers * width,
                80,
                ("#dfe7f1", "#f6dfdd", "#d8efe9", "#fff6df")[rank],
                (NAVY, RED, TEAL, GOLD)[rank],
                f"{start} to {stop - 1}",
                size=26,
                round_=2,
            )
    return sketch


def two_ways():
    """Two recoveries, step by step: all start again, or the others go on."""
    sketch = Sketch(1168, 380)
    for panel, (head, steps, colour) in enumerate(
        (
            (
                "start all again: torchrun",
                (
                    "a worker dies",
                    "all are ended",
                    "all start: imports, NCCL",
                    "load the checkpoint",
                ),
                RED,
            ),
            (
                "keep the living: Horovod",
                ("a worker dies", "roll back, in memory", "a new group", "go on"),
                TEAL,
            ),
        )
    ):
        x = 20 + panel * 590
        sketch.text(x, 30, head, 29, INK, "start", True)
        for i, words in enumerate(steps):
            sketch.box(x, 64 + i * 78, 540, 60, "#ffffff", colour, words, size=27)
    return sketch


def young():
    """What failures and checkpoints cost, against the time between checkpoints."""
    sketch = Sketch(1168, 400)
    chart = Chart(sketch, 90, 50, 900, 260, (120, 14_400), (0, 60), True)
    chart.axes(
        [
            (s, words)
            for s, words in (
                (120, "2 min"),
                (600, "10 min"),
                (1200, "20 min"),
                (3600, "1 h"),
                (14_400, "4 h"),
            )
        ],
        [(v, f"{v} %") for v in (0, 20, 40, 60)],
        "",
        "longer",
    )
    for save, colour, words in ((60, NAVY, "save: 60 s"), (2, TEAL, "save: 2 s")):
        points = [
            (
                120 * 120 ** (k / 60),
                100 * (job_s(1e6, 120 * 120 ** (k / 60), save, 300, MTBF_S) / 1e6 - 1),
            )
            for k in range(61)
        ]
        chart.curve([point for point in points if point[1] <= 60], colour, 7)
        best = min(points, key=lambda point: point[1])
        chart.dot(*best, colour, 12)
        chart.label(*best, words, colour, "middle", dx=0, dy=-46)
    return sketch
