"""The pictures of deck 16: what a rank holds by stage, a cut vector, whole layers, traffic.

They show when a layer is whole, and what travels against the batch.
"""

from sketch import GOLD, INK, LINE, NAVY, QUIET, RED, TEAL, Chart, Sketch, ink_on, rank_colour
from stored import printed

from manyhands.simulate.sharding import states_bytes, step_bytes

PARTS = (("weights", NAVY), ("gradients", TEAL), ("states of the optimiser", GOLD))


def cover():
    """Four ranks, each with a quarter of the weights, gradients and moments."""
    sketch = Sketch(520, 520)
    for rank in range(4):
        left = 56 + rank * 116
        sketch.rank(left + 50, 40, rank, 34, 30)
        for row, words in enumerate(("w", "g", "m", "v")):
            sketch.box(left, 96 + row * 100, 100, 84, "#ffffff", LINE, round_=6)
            sketch.box(left, 96 + row * 100 + rank * 21, 100, 21, rank_colour(rank), round_=2)
            if not rank:
                sketch.text(left - 16, 96 + row * 100 + 42, words, 30, QUIET, "end", italic=True)
    return sketch


def sixteen_bytes():
    """The sixteen bytes of a parameter in mixed precision."""
    sketch = Sketch(1168, 300)
    x, unit = 0, 73
    for size, words, colour, ink in (
        (2, "weight", NAVY, "#ffffff"),
        (2, "gradient", TEAL, INK),
        (4, "master weight", GOLD, INK),
        (4, "first moment", GOLD, INK),
        (4, "second moment", GOLD, INK),
    ):
        sketch.box(x, 90, size * unit - 4, 100, colour, None, f"{size}", ink, 36, 6, bold=True)
        sketch.text(x + size * unit / 2, 60, words, 26, INK)
        x += size * unit
    sketch.brace(0, 4 * unit - 4, 204, "bf16", 26)
    sketch.brace(4 * unit, 16 * unit - 4, 204, "float32: what the optimiser keeps", 26)
    return sketch


def paper():
    """What a rank holds by stage, for 7.5 billion parameters on 64 ranks."""
    sketch = Sketch(1168, 420)
    names = ("stage 0", "1: states", "2: gradients too", "3: weights too")
    for stage, name in enumerate(names):
        held, y, x = states_bytes(7_500_000_000, 64, stage), 20 + stage * 96, 250
        sketch.text(230, y + 32, name, 28, INK, "end", stage == 3)
        for (_, colour), part in zip(PARTS, held[:3], strict=True):
            width = part / 1e9 * 4.7
            sketch.box(x, y, width, 64, colour, round_=0)
            x += width
        sent = step_bytes(7_500_000_000, 64, stage) / 15e9
        sketch.text(x + 14, y + 32, f"{held.total / 1e9:.1f} GB", 30, INK, "start", True)
        sketch.text(1160, y + 32, f"{sent:.2f} ψ", 30, RED if stage == 3 else INK, "end", True)
    sketch.text(1160, 396, "sent a step", 24, QUIET, "end")
    for place, (words, colour) in enumerate(PARTS):
        sketch.box(250 + place * 190, 384, 22, 22, colour, round_=2)
        sketch.text(280 + place * 190, 396, words, 24, QUIET, "start")
    return sketch


def cut():
    """A vector of ten numbers on four ranks, padded to twelve."""
    sketch = Sketch(1168, 330)
    for number in range(12):
        x, rank, real = 120 + number * 82, number // 3, number < 10
        with sketch.step(1 if real else 2):
            sketch.box(
                x,
                40,
                76,
                76,
                rank_colour(rank) if real else "#ffffff",
                rank_colour(rank),
                str(number + 1 if real else 0),
                ink_on(rank) if real else QUIET,
                32,
                6,
                bold=real,
            )
    with sketch.step(2):
        sketch.text(120 + 11 * 82 - 3, 20, "padding", 24, QUIET)
    with sketch.step(3):
        for rank in range(4):
            sketch.rank(120 + rank * 246 + 120, 180, rank, 34, 30)
        sketch.text(
            584, 250, "reduce-scatter: whole vectors in, this rank's shard of the sum out", 28
        )
        sketch.text(584, 296, "all-gather: shards in, the whole vector out", 28)
    return sketch


def moments():
    """Which layers are whole while a step of stages 1, 2 and 3 goes through three layers.

    It shows their weights and gradients.
    """
    sketch = Sketch(1168, 400)
    order = ("F0", "F1", "F2", "B2", "B1", "B0", "step")
    for place, words in enumerate(order):
        sketch.text(330 + place * 124, 20, words, 28, INK, bold=True)
    for row, (name, gradient_until_step, whole_weights) in enumerate(
        (("stage 1", True, True), ("stage 2", False, True), ("stage 3", False, False))
    ):
        top = 50 + row * 118
        sketch.text(0, top + 48, name, 30, INK, "start", True)
        for layer in range(3):
            y, forward, backward = top + layer * 32, layer, 5 - layer
            sketch.text(250, y + 13, f"layer {layer}", 24, QUIET, "end")
            spans = (
                [(0, 7)] if whole_weights else [(forward, forward + 1), (backward, backward + 1)]
            )
            for start, stop in spans:
                sketch.box(270 + start * 124, y, (stop - start) * 124 - 4, 12, NAVY, round_=2)
            sketch.box(
                270 + backward * 124,
                y + 13,
                ((6 if gradient_until_step else backward) + 1 - backward) * 124 - 4,
                12,
                TEAL,
                round_=2,
            )
    return sketch


def held():
    """What a rank holds by stage, as measured, with the theory as outlines."""
    sketch = Sketch(1168, 420)
    chart = Chart(sketch, 60, 40, 700, 330, (0, 4), (0, 4.7))
    chart.axes([], [(value, str(value)) for value in range(5)], "", "held by a rank, in ψ")
    for stage, line in enumerate(
        printed("16_sharded_states", "gradients     states        all     theory")[1:5]
    ):
        name, values = line[:7], [float(word) for word in line[7:].split()]
        low, theory = 0, states_bytes(100, 4, stage, weight=1, gradient=1, optimizer=2)
        base = 0
        for value, part, (_, colour) in zip(values[:3], theory[:3], PARTS, strict=True):
            (x, top), (_, bottom) = (
                chart.place(stage + 0.5, low + value),
                chart.place(stage + 0.5, low),
            )
            sketch.box(x - 48, top, 96, bottom - top, colour, round_=0)
            (_, top), (_, bottom) = chart.place(0, base + part / 100), chart.place(0, base)
            sketch.box(x - 64, top, 128, bottom - top, "none", INK, round_=0, thick=2, dash="7 5")
            low, base = low + value, base + part / 100
        x, y = chart.place(stage + 0.5, max(low, base))
        sketch.text(x, y - 20, f"{values[3]:.2f}", 30, INK, bold=True)
        sketch.text(x, 396, name, 28, INK)
    for place, (words, colour) in enumerate(reversed(PARTS)):
        sketch.box(800, 90 + place * 52, 30, 30, colour, round_=2)
        sketch.text(844, 105 + place * 52, words, 27, INK, "start")
    sketch.box(800, 246, 30, 30, "none", INK, round_=0, thick=2, dash="7 5")
    sketch.text(844, 261, "theory", 27, INK, "start")
    return sketch


def travels():
    """GB that a rank sends in a step, against the tokens in it."""
    sketch = Sketch(1168, 380)
    chart = Chart(sketch, 90, 44, 640, 240, (4096, 65536), (0.05, 200), log_x=True, log_y=True)
    tokens = (4096, 8192, 16384, 32768, 65536)
    chart.axes(
        [(n, f"{n // 1024}k") for n in tokens],
        [(0.1, "0.1"), (1, "1"), (10, "10"), (100, "100")],
        "tokens in a step",
        "GB sent by a rank in a step",
    )
    width, count, p = 4096, 36, 8
    for words, colour, gb in (
        ("FSDP", NAVY, [step_bytes(12 * width**2 * count, p, 3) / 1e9] * 5),
        (
            "tensor parallel",
            RED,
            [4 * count * 2 * (p - 1) / p * n * width * 2 / 1e9 for n in tokens],
        ),
        ("a pipeline", TEAL, [2 * n * width * 2 / 1e9 for n in tokens]),
    ):
        chart.curve(list(zip(tokens, gb, strict=True)), colour, 6)
        chart.label(65536, gb[-1], f"{words}: {gb[1]:.3g} → {gb[-1]:.3g}", colour)
    sketch.text(800, 330, ["from 8k to 64k tokens"], 24, QUIET, "start")
    return sketch
