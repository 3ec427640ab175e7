"""The pictures of deck 05: latency and bandwidth, ring against tree, two levels, buckets."""

from sketch import INK, LINE, NAVY, PALE, QUIET, RED, TEAL, Chart, Sketch

from manyhands.simulate import ring_s, tree_s

ALPHA_S, BYTES_PER_S = 30e-6, 2e9
# recorded: bytes; ring, tree and ready ahead: measured and predicted, in ms; as
# notebooks/05_communication_costs.ipynb printed it
CHECKED = (
    (256, (127, 63.4), (46.7, 42.9), (63, 63.4)),
    (4096, (131, 68.1), (59.1, 55.4), (63.7, 68.1)),
    (65536, (204, 143), (301, 255), (141, 143)),
)
FUSED = (
    (0, 476, 258),
    (1, 382, 183),
    (4, 277, 174),
    (10, 221, 170),
    (25, 197, 174),
    (50, 198, 193),
    (100, 287, 282),
)


def _line(width, height, letters):
    sketch = Sketch(width, height)
    left, bottom, right, top = 60, height - 70, width - 30, 40
    start, end = bottom - (bottom - top) * 0.3, top + 20
    sketch.arrow(left, bottom, right + 20, bottom, QUIET, 3)
    sketch.arrow(left, bottom, left, top - 30, QUIET, 3)
    sketch.line([(left, start), (right - 20, end)], NAVY, 8)
    sketch.line([(left - 14, start), (left - 14, bottom)], RED, 6)
    sketch.text(left + 26, (start + bottom) / 2, "latency", letters, RED, "start", True)
    middle = (left + right) / 2
    y = start + (end - start) * (middle - left) / (right - 20 - left)
    sketch.text(middle + 10, y + 62, "1 / bandwidth", letters, NAVY, "start", True)
    sketch.text(right, bottom + 34, "bytes", letters - 4, QUIET, "end")
    sketch.text(left + 22, top - 18, "time", letters - 4, QUIET, "start")
    return sketch


def cover():
    """The time of a message against its size, a line."""
    return _line(520, 520, 32)


def link():
    """The time of a message against its size, a line, on half a slide."""
    return _line(560, 440, 30)


def _ring_s(n, p=4):
    return float(ring_s(p, n, ALPHA_S, BYTES_PER_S))


def _tree_s(n, p=4):
    return float(tree_s(p, n, ALPHA_S, BYTES_PER_S))


def cross():
    """Predicted times of ring and tree against the size, and where they cross."""
    sketch = Sketch(1168, 400)
    chart = Chart(sketch, 110, 50, 740, 270, (100, 1e7), (5e-5, 3e-2), True, True)
    chart.axes(
        [(100, "100 B"), (1e4, "10 kB"), (1e6, "1 MB")],
        [(1e-4, "0.1 ms"), (1e-3, "1 ms"), (1e-2, "10 ms")],
        "bytes in the tensor",
        "",
    )
    sizes = [10 ** (2 + k / 8) for k in range(41)]
    chart.curve([(n, _tree_s(n)) for n in sizes], RED, 7)
    chart.curve([(n, _ring_s(n)) for n in sizes], TEAL, 7)
    chart.dot(48000, _ring_s(48000), INK, 13, hollow=True)
    chart.label(
        48000, _ring_s(48000), ["they cross at", "48,000 bytes"], INK, "end", dx=-14, dy=-58
    )
    chart.label(1e7, _tree_s(1e7), "tree", RED)
    chart.label(1e7, _ring_s(1e7), "ring", "#1c6e62")
    sketch.text(900, 260, ["4 ranks,", "30 us and 2 GB/s"], 25, QUIET, "start")
    return sketch


def check():
    """Predicted and measured times of ring and tree."""
    sketch = Sketch(1168, 440)
    chart = Chart(sketch, 120, 50, 700, 300, (200, 90000), (30, 400), True, True)
    chart.axes(
        [(256, "256 B"), (4096, "4 kB"), (65536, "64 kB")],
        [(50, "50 ms"), (100, "100 ms"), (200, "200 ms"), (400, "400 ms")],
        "bytes in the tensor",
        "",
    )
    for column, colour, words, dy in (
        (1, RED, "ring, as in unit 04", 6),
        (2, NAVY, "tree", -8),
        (3, TEAL, "ring, ready ahead", 14),
    ):
        chart.curve([(row[0], row[column][1]) for row in CHECKED], colour, 4, "14 9")
        for row in CHECKED:
            chart.dot(row[0], row[column][0], colour, 12)
        chart.label(
            65536,
            CHECKED[-1][column][0],
            words,
            colour if colour != TEAL else "#1c6e62",
            dx=24,
            dy=dy,
        )
    with sketch.step(1):
        x, low = chart.place(256, 63.4)
        high = chart.place(256, 127)[1]
        sketch.arrow(x + 30, low, x + 30, high, RED, 6, short=8)
        sketch.text(x + 50, (low + high) / 2, "twice its time", 28, RED, "start", True)
    sketch.text(880, 330, ["dots: measured", "lines: predicted"], 24, QUIET, "start")
    return sketch


def rendezvous():
    """A message whose receiver waits already, and one whose ranks arrive at the same moment."""
    sketch = Sketch(1168, 430)
    for column, (title, ready) in enumerate(
        (
            ("ping-pong, tree: the receiver waits already", True),
            ("ring: all arrive at the same moment", False),
        )
    ):
        left = 20 + column * 600
        sketch.text(left + 260, 22, title, 27, INK, bold=True)
        for x, words in ((left + 80, "sender"), (left + 440, "receiver")):
            sketch.text(x, 68, words, 26, QUIET)
            sketch.line([(x, 92), (x, 400)], LINE, 5)
        y = 120
        if ready:
            sketch.arrow(left + 86, y, left + 434, y + 90, NAVY, 7)
            sketch.text(left + 260, y + 10, "data", 28, NAVY, bold=True)
            sketch.text(left + 260, 380, "one latency", 30, NAVY, bold=True)
        else:
            with sketch.step(1):
                sketch.arrow(left + 434, y, left + 86, y + 90, RED, 7)
                sketch.text(left + 260, y + 10, "ready", 28, RED, bold=True)
            with sketch.step(2):
                sketch.arrow(left + 86, y + 100, left + 434, y + 190, NAVY, 7)
                sketch.text(left + 300, y + 112, "data", 28, NAVY, bold=True)
                sketch.text(left + 260, 380, "two latencies", 30, RED, bold=True)
    return sketch


def levels():
    """Four ranks on two nodes, with links inside a node and between the nodes."""
    sketch = Sketch(1168, 300)
    for node in range(2):
        left = 30 + node * 640
        sketch.box(left, 20, 470, 250, PALE, LINE, round_=18)
        sketch.text(left + 235, 50, f"node {node}", 26, QUIET)
        for local in range(2):
            sketch.rank(left + 100 + local * 270, 150, 2 * node + local, 44, 38)
        sketch.arrow(left + 100, 150, left + 370, 150, TEAL, 9, short=54)
        sketch.arrow(left + 370, 150, left + 100, 150, TEAL, 9, short=54)
        sketch.text(left + 235, 110, "fast", 28, "#1c6e62", bold=True)
    for y, x1, x2 in ((215, 130, 770), (240, 400, 1040)):
        sketch.line([(x1, 188), (x1, y), (x2, y), (x2, 188)], RED, 5)
    sketch.text(585, 180, "slow", 28, RED, bold=True)
    return sketch


def fusion():
    """When all gradients are summed, against the size of a bucket."""
    sketch = Sketch(1168, 440)
    chart = Chart(sketch, 110, 50, 760, 300, (0, 6), (100, 500))
    chart.axes(
        [(k, f"{row[0]}") for k, row in enumerate(FUSED)],
        [(v, f"{v} ms") for v in (100, 200, 300, 400, 500)],
        "MiB in a bucket (0: each gradient by itself)",
        "all gradients summed after",
    )
    chart.curve([(k, row[1]) for k, row in enumerate(FUSED)], NAVY, 6, dots=9)
    chart.curve([(k, row[2]) for k, row in enumerate(FUSED)], RED, 6, dots=9)
    chart.label(0, 476, "161 messages", INK, dx=24, dy=0)
    chart.label(1.2, 382, "ring or tree", NAVY, dx=14, dy=-4)
    chart.label(2, 174, "halving", RED, dy=40, dx=-40)
    chart.label(6, 285, ["one message:", "nothing overlaps"], INK, dx=24)
    chart.label(4, 197, "4 buckets", INK, dx=-30, dy=-34)
    return sketch
