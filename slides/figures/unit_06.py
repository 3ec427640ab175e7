"""The pictures of deck 06: what travels during backward, buckets that leave, dealt samples."""

from sketch import INK, LINE, NAVY, PALE, QUIET, RED, TEAL, Sketch, ink_on, rank_colour

LAYERS = (("0.weight", 2048), ("0.bias", 32), ("2.weight", 320), ("2.bias", 10))
# of rank 0, in ms, as notebooks/06_ddp.ipynb printed it: backward's end, and each message
MEASURED = {
    "naive": (
        148.2,
        (
            (148.4, 152.3),
            (152.5, 163.3),
            (163.6, 171.9),
            (172.1, 173.7),
            (173.9, 181.6),
            (181.8, 192.2),
        ),
    ),
    "hooks": (
        151.9,
        ((30.0, 38.8), (54.5, 70.2), (81.3, 85.6), (105.1, 113.6), (129.9, 133.6), (136.3, 151.8)),
    ),
    "DDP": (148.8, ((37.8, 53.4), (92.7, 102.1), (125.8, 148.4))),
}


def cover():
    """Four ranks whose layers send their gradients during backward."""
    sketch = Sketch(520, 560)
    for rank in range(4):
        x, y = 80 + rank * 120, 80
        sketch.rank(x, y, rank, 42, 36)
        for layer in range(4):
            sketch.box(
                x - 42,
                150 + layer * 62,
                84,
                50,
                rank_colour(rank) if layer > 1 else "#ffffff",
                rank_colour(rank),
                thick=3,
            )
    sketch.box(20, 262, 480, 128, "none", INK, dash="10 8", thick=4, round_=14)
    sketch.text(260, 428, "a bucket leaves", 28, INK, bold=True)
    sketch.text(260, 466, "while backward goes on", 28, INK)
    return sketch


def distance():
    """Ranks that start apart move by the same steps, and stay apart."""
    sketch = Sketch(1168, 380)
    starts = ((160, 90), (420, 60), (330, 300), (770, 290))
    move = (330, 40)
    sketch.line([starts[0], starts[2]], QUIET, 3, "8 8")
    with sketch.step(1):
        sketch.line(
            [(x + move[0], y + move[1]) for x, y in (starts[0], starts[2])], QUIET, 3, "8 8"
        )
    for rank, (x, y) in enumerate(starts):
        sketch.arrow(x, y, x + move[0], y + move[1], rank_colour(rank), 6, short=44, late=40)
        sketch.rank(x, y, rank, 34, 30)
    with sketch.step(1):
        for rank, (x, y) in enumerate(starts):
            sketch.rank(x + move[0], y + move[1], rank, 34, 30)
    sketch.text(150, 210, "5.389", 28, QUIET, "end", bold=True)
    with sketch.step(1):
        sketch.text(1050, 130, ["20 steps later", "still 5.389"], 30, RED, bold=True)
    return sketch


def timeline():
    """Backward and the messages of each way, as measured in the notebook."""
    sketch = Sketch(1168, 440)
    left, unit = 120, 4.75
    for row, (name, (end, messages)) in enumerate(MEASURED.items()):
        y = 20 + row * 126
        sketch.text(left - 20, y + 42, name, 30, INK, "end", True)
        sketch.box(left, y, end * unit, 38, PALE, LINE, "backward", QUIET, 24, 4)
        for start, stop in messages:
            sketch.box(
                left + start * unit,
                y + 46,
                max((stop - start) * unit, 6),
                46,
                NAVY if name == "naive" else RED if name == "hooks" else TEAL,
                round_=3,
            )
        stop = max(end, messages[-1][1])
        sketch.text(left + stop * unit + 12, y + 68, f"{stop:.0f} ms", 26, INK, "start", True)
    y = 400
    sketch.line([(left, y - 6), (left + 200 * unit, y - 6)], QUIET, 2.5)
    for ms in range(0, 201, 50):
        sketch.text(left + ms * unit, y + 18, str(ms) if ms else "0 ms", 24, QUIET)
    return sketch


def buckets():
    """Layers whose gradients leave in buckets while backward goes on."""
    sketch = Sketch(1168, 400)
    left, widths = 170, (500, 110, 220, 120)
    places = []
    for _, width in zip(LAYERS, widths, strict=True):
        places.append((left, width))
        left += width + 12
    sketch.text(150, 65, "backward", 26, QUIET, "end")
    sketch.arrow(1155, 30, 170, 30, QUIET, 5)
    for (x, width), (name, _) in zip(places, LAYERS, strict=True):
        sketch.box(x, 60, width, 76, PALE, LINE, [name], INK, 26)
    with sketch.step(1):
        x, end = places[2][0], places[3][0] + places[3][1]
        sketch.box(
            x,
            176,
            end - x,
            70,
            NAVY,
            words="bucket 0: 330 numbers",
            ink="#ffffff",
            size=27,
            bold=True,
        )
        sketch.arrow((x + end) / 2, 252, (x + end) / 2, 330, NAVY, 7)
        sketch.text((x + end) / 2, 360, "leaves first", 28, NAVY, bold=True)
    with sketch.step(2):
        x, end = places[0][0], places[1][0] + places[1][1]
        sketch.box(
            x,
            176,
            end - x,
            70,
            RED,
            words="bucket 1: 2080 numbers",
            ink="#ffffff",
            size=27,
            bold=True,
        )
        sketch.arrow((x + end) / 2, 252, (x + end) / 2, 330, RED, 7)
        sketch.text((x + end) / 2, 360, "leaves when backward has ended", 28, RED, bold=True)
    return sketch


def cards():
    """Ten samples that the sampler deals to four ranks like cards, two of them twice."""
    sketch = Sketch(1168, 300)
    for place in range(12):
        rank, x = place % 4, 20 + place * 95 + place // 4 * 6
        sample = place % 10
        sketch.box(
            x,
            50,
            82,
            110,
            rank_colour(rank),
            words=str(sample),
            ink=ink_on(rank),
            size=42,
            bold=True,
        )
        if place >= 10:
            sketch.box(x - 5, 45, 92, 120, "none", INK, dash="9 7", thick=4, round_=12)
    sketch.text(1060, 20, "0 and 1, again", 26, RED, bold=True)
    for step in range(3):
        sketch.brace(20 + step * 386, 20 + step * 386 + 368, 176, f"step {step}", 26)
    for rank in range(4):
        sketch.rank(300 + rank * 160, 268, rank, 26, 26)
        sketch.text(336 + rank * 160, 268, f"rank {rank}", 26, INK, "start")
    return sketch


def variables():
    """The environment variables of eight ranks on two nodes."""
    sketch = Sketch(1168, 330)
    names = (
        ("RANK", range(8)),
        ("LOCAL_RANK", (0, 1, 2, 3) * 2),
        ("GROUP_RANK", (0,) * 4 + (1,) * 4),
        ("WORLD_SIZE", (8,) * 8),
    )
    for node in range(2):
        sketch.box(240 + node * 464, 6, 452, 318, PALE, LINE, round_=16)
        sketch.text(466 + node * 464, 32, f"node {node}", 27, INK, bold=True)
    for row, (name, values) in enumerate(names):
        y = 88 + row * 66
        sketch.text(220, y, name, 26, INK, "end", mono=True)
        for place, value in enumerate(values):
            x = 300 + place * 111 + (20 if place > 3 else 0)
            if row == 0:
                sketch.rank(x, y, place, 30, 28)
            else:
                sketch.text(x, y, str(value), 30, RED if row == 1 else INK, bold=row == 1)
    return sketch
