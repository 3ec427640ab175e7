"""The pictures of deck 11: a call and its transpose, a graph and its delegate, experts."""

from sketch import GOLD, INK, NAVY, QUIET, RED, Sketch, rank_colour


def _bundle(sketch, left, pairs, title, colour):
    sketch.text(left + 200, 26, title, 30, colour, bold=True)
    for sender, receiver in pairs:
        sketch.arrow(
            left + 40, 90 + sender * 100, left + 360, 90 + receiver * 100, colour, 6, short=44
        )
    for rank in range(4):
        for x in (left + 40, left + 360):
            sketch.rank(x, 90 + rank * 100, rank, 36, 32)


def transpose():
    """A broadcast, and its backward: a sum at the root."""
    sketch = Sketch(1168, 440)
    _bundle(sketch, 60, [(1, rank) for rank in range(4)], "forward: a broadcast", NAVY)
    with sketch.step(1):
        _bundle(sketch, 700, [(rank, 1) for rank in range(4)], "backward: a sum at rank 1", RED)
    sketch.arrow(500, 240, 660, 240, QUIET, 7)
    sketch.text(580, 200, "transpose", 27, QUIET)
    return sketch


def cover():
    """Activations go one way, gradients the other."""
    sketch = Sketch(520, 520)
    for k, (y, colour, words) in enumerate(((150, NAVY, "activations"), (370, RED, "gradients"))):
        x1, x2 = (90, 430) if k == 0 else (430, 90)
        sketch.arrow(x1, y, x2, y, colour, 9, short=60)
        sketch.text(260, y - 36, words, 32, colour, bold=True)
        sketch.rank(90, y, 0, 46, 40)
        sketch.rank(430, y, 1, 46, 40)
    sketch.text(260, 260, "send, and its backward", 28, QUIET)
    return sketch


def _graph(delegate):
    sketch = Sketch(1168, 430)
    boxes = {
        "w0": (20, 60),
        "mul": (210, 60),
        "send": (400, 60),
        "recv": (640, 60),
        "mul ": (830, 60),
        "y": (1020, 60),
        "recv ": (400, 300),
        " mul ": (580, 300),
        "send ": (760, 300),
    }
    reached = {"y", "mul ", "recv"} | ({"send", "mul", "w0"} if delegate else set())
    for name, (x, y) in boxes.items():
        rank1 = y == 300
        got = name in reached or rank1
        sketch.box(
            x,
            y,
            130,
            74,
            (rank_colour(1) if rank1 else NAVY) if got else "#ffffff",
            None if got else RED,
            name.strip(),
            "#ffffff" if got else RED,
            28,
            thick=4,
            dash=None if got else "9 7",
            bold=True,
        )
    for start_node, end_node in (("w0", "mul"), ("mul", "send"), ("recv", "mul "), ("mul ", "y")):
        sketch.arrow(boxes[start_node][0] + 130, 97, boxes[end_node][0], 97, INK, 5, short=4)
    for start_node, end_node in (("recv ", " mul "), (" mul ", "send ")):
        sketch.arrow(boxes[start_node][0] + 130, 337, boxes[end_node][0], 337, INK, 5, short=4)
    sketch.arrow(465, 136, 465, 298, QUIET, 6, dash="4 8")
    sketch.arrow(825, 298, 705, 138, QUIET, 6, dash="4 8")
    sketch.text(20, 26, "rank 0", 30, NAVY, "start", True)
    sketch.text(240, 337, "rank 1", 30, RED, "start", True)
    if delegate:
        sketch.arrow(530, 97, 640, 97, GOLD, 8, short=4)
        sketch.text(585, 34, "delegate: no data, only an edge", 28, "#7a5200", bold=True)
    else:
        sketch.text(585, 34, "backward ends at recv", 28, RED, bold=True)
        sketch.text(20, 170, ["never reached:", "w0 gets no gradient"], 27, RED, "start")
    sketch.text(1148, 400, "dotted: messages", 24, QUIET, "end")
    return sketch


def torn():
    """Two ranks' graphs without a delegate: backward does not reach the send."""
    return _graph(False)


def joined():
    """Two ranks' graphs with a delegate: backward reaches everything."""
    return _graph(True)


def experts():
    """Tokens on their way to experts and back, by two all-to-alls."""
    sketch = Sketch(1168, 270)
    columns = (60, 360, 700, 1100)
    for x, words in zip(
        ((60 + 360) / 2, (360 + 700) / 2, (700 + 1100) / 2),
        ("alltoall: tokens out", "each expert works", "alltoall: and home again"),
        strict=True,
    ):
        sketch.text(x, 16, words, 26, QUIET)
    for sender in range(4):
        for expert in range(4):
            sketch.line(
                [(columns[0], 62 + sender * 58), (columns[1], 62 + expert * 58)],
                rank_colour(sender),
                3,
            )
            sketch.line(
                [(columns[2], 62 + sender * 58), (columns[3], 62 + expert * 58)],
                rank_colour(expert),
                3,
            )
        sketch.arrow(columns[1], 62 + sender * 58, columns[2], 62 + sender * 58, INK, 5, short=34)
    for x in columns:
        for rank in range(4):
            sketch.rank(x, 62 + rank * 58, rank, 26, 26)
    return sketch
