"""The pictures of deck 10: four edits, ranks that drift apart, what fusion saves."""

from sketch import GOLD, INK, LINE, NAVY, PALE, QUIET, RED, TEAL, Chart, Sketch, ink_on, rank_colour
from stored import curves


def cover():
    """The four edits that make a script distributed."""
    sketch = Sketch(520, 540)
    for i, words in enumerate(("one start", "summed gradients", "own rows", "one writer")):
        sketch.box(
            30,
            20 + i * 128,
            90,
            96,
            rank_colour(i),
            words=str(i + 1),
            ink=ink_on(i),
            size=46,
            bold=True,
        )
        sketch.text(146, 68 + i * 128, words, 38, INK, "start", True)
    return sketch


def drift():
    """The ways of the ranks through the space of weights, with and without two of the edits."""
    sketch = Sketch(1168, 440)
    titles = (
        ("all four edits", NAVY),
        ("without the broadcast", RED),
        ("without DistributedOptimizer", RED),
    )
    for panel, (lines, (title, colour)) in enumerate(
        zip(
            curves("10_horovod", "ways of the ranks through the space of weights"),
            titles,
            strict=True,
        )
    ):
        left = 20 + panel * 390
        sketch.box(left, 50, 350, 330, PALE, None, round_=10)
        chart = Chart(sketch, left + 20, 60, 310, 300, (-0.9, 7), (-0.9, 5.7))
        for rank, (_, points) in enumerate(lines):
            chart.curve(points, rank_colour(rank), 12 - 3 * rank if panel == 0 else 6)
        for rank, (_, points) in enumerate(lines):
            chart.dot(*points[0], rank_colour(rank), 9, hollow=True)
            chart.dot(*points[-1], rank_colour(rank), 10)
        sketch.text(left + 175, 24, title, 27, colour, bold=True)
    for rank in range(4):
        sketch.rank(70 + rank * 140, 416, rank, 22, 24)
        sketch.text(100 + rank * 140, 416, f"rank {rank}", 25, INK, "start")
    sketch.text(1148, 416, "ring: start, disc: after 60 steps", 25, QUIET, "end")
    return sketch


def leave_out():
    """How far ranks are apart if one of the edits is left out."""
    sketch = Sketch(1168, 320)
    rows = (
        ("nothing left out", 0, 0),
        ("no broadcast", 5.457, 4.040),
        ("no DistributedOptimizer", 0, 1.141),
        ("no shards", 0, 0),
    )
    sketch.text(760, 18, "ranks apart: start, and after 60 steps", 26, QUIET)
    for i, (words, start, end) in enumerate(rows):
        y = 66 + i * 70
        sketch.text(350, y, words, 29, INK, "end", True)
        for value, colour, dy in ((start, LINE, -15), (end, RED if end else NAVY, 13)):
            sketch.box(380, y + dy - 11, max(value * 92, 4), 22, colour, round_=2)
        sketch.text(
            396 + max(start, end) * 92,
            y,
            f"{start:g}, then {end:g}" if end or start else "0, then 0",
            27,
            INK,
            "start",
        )
    return sketch


def fusion():
    """The time of twelve tensors one by one and together."""
    sketch = Sketch(1168, 300)
    for row, (words, count, ms) in enumerate((("one by one", 12, 135.1), ("together", 1, 5.7))):
        y = 40 + row * 110
        sketch.text(160, y + 34, words, 29, INK, "end", True)
        width = ms * 6
        for part in range(count):
            sketch.box(
                184 + part * width / count,
                y,
                width / count - 4 if count > 1 else width,
                68,
                NAVY if row == 0 else TEAL,
                round_=3,
            )
        sketch.text(
            200 + width,
            y + 34,
            f"{ms:g} ms" if row == 0 else f"{ms:g} ms: 1 all-reduce",
            29,
            INK,
            "start",
            True,
        )
    sketch.text(590, 18, "12 all-reduces, each negotiated by itself", 26, QUIET)
    sketch.line([(184, 260), (1024, 260)], QUIET, 2.5)
    for ms in (0, 35, 70, 105, 140):
        sketch.text(184 + ms * 6, 282, str(ms) if ms else "0 ms", 24, QUIET)
    return sketch


def negotiation():
    """The steps of Horovod's negotiation before an all-reduce."""
    sketch = Sketch(1168, 250)
    names = (
        "a hook hands over a gradient",
        "do all have it? told to rank 0",
        "into one buffer",
        "all-reduce",
        "out, step()",
    )
    for i, words in enumerate(names):
        x = 10 + i * 234
        colour = (NAVY, RED, TEAL, GOLD, NAVY)[i]
        sketch.box(
            x,
            40,
            206,
            130,
            colour,
            words=_two(words),
            ink=INK if colour == GOLD else "#ffffff",
            size=26,
            bold=True,
        )
        if i < 4:
            sketch.arrow(x + 208, 105, x + 232, 105, QUIET, 4)
    sketch.text(347, 206, "next time: a bit in the response cache", 26, RED)
    return sketch


def _two(words):
    parts, lines = words.split(), [""]
    for part in parts:
        if len(lines[-1]) + len(part) > 13:
            lines.append("")
        lines[-1] = f"{lines[-1]} {part}".strip()
    return lines
