"""The pictures of deck 19: one late rank, efficiency, where a step goes, the slowest of p.

The last one is a published table.
"""

from sketch import GOLD, INK, LINE, NAVY, QUIET, RED, TEAL, Chart, Sketch

from manyhands.simulate import networks, published, survival
from manyhands.simulate.machines import named
from manyhands.simulate.training_step import Way, step

RANKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
REACHED = {
    "p2-8xlarge": 1.3e12,
    "big-basin-p100": 5.4e12,
    "dgx-a100": 0.2 * 312e12,
    "dgx-h100": 0.2 * 989e12,
    "gb200-nvl72": 0.2 * 2500e12,
}


# labels that would touch each other
APART = {"dgx-h100": -9, "gb200-nvl72": 9, "p2-8xlarge": -4, "big-basin-p100": 4}


SHORT = {"p2-8xlarge": "K80", "gb200-nvl72": "GB200"}


def _on(name, ranks, batch=32, itemsize=4, **way):
    """As tutorial 19: ResNet-50, 32 images a GPU."""
    model = networks.layers(networks.resnet(50), batch, REACHED[name], itemsize)
    return step(named(name).machine, model, Way(ranks, **way))


def _curves(sketch, chart, names):
    for name, colour in names:
        points = [(p, _on(name, 1).seconds / _on(name, p).seconds) for p in RANKS]
        chart.curve(points, colour, 7)
        chart.label(
            1024,
            points[-1][1],
            f"{SHORT.get(name) or name.split('-')[-1].upper()}: {points[-1][1]:.2f}",
            INK if colour == GOLD else colour,
            dy=APART.get(name, 0),
        )


def cover():
    """Efficiency against the number of ranks, measured for few and predicted for many."""
    sketch = Sketch(520, 520)
    chart = Chart(sketch, 70, 60, 300, 340, (1, 1024), (0, 1.05), log_x=True)
    chart.axes([(1, "1"), (1024, "1024")], [(0, "0"), (1, "1")], "ranks", "efficiency")
    points = [
        (p, _on("big-basin-p100", 1).seconds / _on("big-basin-p100", p).seconds) for p in RANKS
    ]
    chart.curve(points, NAVY, 8)
    for p, e in points[:4]:
        chart.dot(p, e, RED, 11)
    sketch.text(110, 340, "measured", 26, RED, "start", True)
    sketch.text(110, 380, "predicted", 26, NAVY, "start", True)
    return sketch


def late():
    """Five ranks of which one is late, so that all go on late."""
    sketch = Sketch(1168, 400)
    for rank in range(5):
        y, start = 40 + rank * 66, 470 if rank == 2 else 300
        sketch.text(150, y + 22, f"rank {rank}", 28, INK)
        sketch.box(230, y, start - 230, 44, NAVY, round_=2)
        if rank != 2:
            sketch.box(300, y, 170, 44, LINE, round_=2)
        sketch.box(470, y, 330, 44, TEAL, round_=2)
    for y, words, colour in (
        (70, "computes", NAVY),
        (136, "waits", QUIET),
        (202, "all-reduce", "#1c6e62"),
    ):
        sketch.text(850, y, words, 30, colour, "start", True)
    sketch.text(850, 290, ["clocks.max()", "+ 2 (p - 1) hops"], 27, INK, "start", mono=True)
    return sketch


def machines():
    """Efficiency against the number of GPUs on several machines."""
    sketch = Sketch(1168, 430)
    chart = Chart(sketch, 110, 40, 760, 300, (1, 1024), (0, 1.05), log_x=True)
    chart.axes(
        [(1, "1"), (8, "8"), (64, "64"), (1024, "1024")],
        [(0, "0"), (0.5, "0.5"), (0.8, "0.8"), (1, "1")],
        "GPUs",
        "efficiency",
    )
    chart.curve([(1, 0.8), (1024, 0.8)], QUIET, 3, dash="6 8")
    _curves(
        sketch,
        chart,
        (
            ("p2-8xlarge", NAVY),
            ("big-basin-p100", RED),
            ("dgx-a100", TEAL),
            ("dgx-h100", GOLD),
            ("gb200-nvl72", QUIET),
        ),
    )
    return sketch


def mended():
    """What a step takes with one change of its messages after the other."""
    sketch = Sketch(1168, 420)
    ways = (
        ("ring", {}),
        ("ring, 16 bit", {"itemsize": 2}),
        ("ring, one bucket", {"bucket_bytes": 1e15}),
        ("two levels", {"all_reduce": "hierarchical"}),
        ("double tree", {"all_reduce": "double tree"}),
        ("... 256 images", {"all_reduce": "double tree", "batch": 256}),
    )
    for place, (name, way) in enumerate(ways):
        step, y = _on("dgx-h100", 1024, **way), 20 + place * 56
        sketch.text(360, y + 20, name, 27, INK, "end")
        sketch.box(380, y, 560 * step.computing, 40, NAVY, round_=0)
        sketch.box(380 + 560 * step.computing, y, 560 * step.exposed, 40, RED, round_=0)
        sketch.text(960, y + 20, f"{step.seconds * 1e3:.1f} ms", 27, INK, "start", True)
    for x, words, colour in (
        (380, "computing", NAVY),
        (580, "waiting for messages or slower ranks", RED),
    ):
        sketch.box(x, 374, 28, 28, colour, round_=2)
        sketch.text(x + 40, 388, words, 26, INK, "start")
    return sketch


def slowest():
    """How much longer a step takes because of its slowest rank."""
    sketch = Sketch(1168, 400)
    chart = Chart(sketch, 120, 40, 640, 270, (1, 1024), (1, 1.36), log_x=True)
    chart.axes(
        [(1, "1"), (32, "32"), (1024, "1024")],
        [(1, "1"), (1.1, "1.1"), (1.2, "1.2"), (1.3, "1.3")],
        "ranks",
        "step / mean of a rank",
    )
    for words, law, colour in (
        ("normal", "normal", NAVY),
        ("exponential tail", "exponential", RED),
    ):
        points = [(p, survival.slowest(p, 0.05, law)) for p in RANKS]
        chart.curve(points, colour, 7)
        chart.label(1024, points[-1][1], f"{words}: {points[-1][1]:.2f}", colour)
    sketch.text(860, 330, "ranks vary by 5 %", 26, QUIET, "start")
    return sketch


def table():
    """A published table beside the predictions of the simulator."""
    sketch = Sketch(1168, 380)
    k80 = next(table for table in published.tables() if table.name.startswith("Inception V3, K80"))
    for x, words in ((250, "GPUs"), (500, "published"), (750, "predicted"), (1000, "error")):
        sketch.text(x, 30, words, 28, QUIET, "middle", True)
    for place, row in enumerate(published.predicted(k80)[1]):
        y = 92 + place * 60
        sketch.text(250, y, str(row.x), 32, INK)
        sketch.text(500, y, f"{row.published:g}", 32, INK)
        sketch.text(750, y, f"{row.predicted:.4g}", 32, NAVY, bold=True)
        error = "fitted" if row.fitted else f"{row.predicted / row.published - 1:+.1%}"
        sketch.text(1000, y, error, 30, QUIET if row.fitted else RED, bold=not row.fitted)
    return sketch
