"""The pictures of deck 12: a model cut in two, what crosses, who waits, two pairs."""

from sketch import GOLD, INK, LINE, NAVY, PALE, QUIET, RED, TEAL, Chart, Sketch, rank_colour
from stored import curves

# ms, as
WORKS = {
    0: ((0.1, 5.0, "forward"), (31.6, 38.1, "backward")),
    1: ((6.8, 21.6, "forward and backward"),),
}
# notebooks/12_encoder_decoder.ipynb printed them
WAITS = {0: ((5.0, 31.6, "waits for the gradient"),), 1: ((0.0, 6.8, ""),)}


def _split(sketch, left, top, wide, high, letters):
    for rank, (words, x) in enumerate((("encoder", left), ("decoder", left + wide * 1.9))):
        sketch.box(
            x,
            top,
            wide,
            high,
            rank_colour(rank),
            words=words,
            ink="#ffffff",
            size=letters,
            bold=True,
            round_=14,
        )
        sketch.text(x + wide / 2, top + high + 32, f"rank {rank}", letters - 6, QUIET)
    x1, x2 = left + wide, left + wide * 1.9
    sketch.arrow(x1, top + high * 0.3, x2, top + high * 0.3, INK, 8, short=8)
    sketch.text((x1 + x2) / 2, top + high * 0.3 - 30, "h, cell", letters - 4, INK, bold=True)
    sketch.arrow(x2, top + high * 0.75, x1, top + high * 0.75, RED, 8, short=8)
    sketch.text((x1 + x2) / 2, top + high * 0.75 + 32, "gradients", letters - 6, RED, bold=True)


def cover():
    """An encoder on one rank and a decoder on another."""
    sketch = Sketch(520, 440)
    _split(sketch, 8, 120, 174, 190, 32)
    return sketch


def split():
    """A sequence that goes through an encoder and a decoder on two ranks."""
    sketch = Sketch(1168, 330)
    sketch.text(84, 120, "9 7 3 7 3", 26, INK, "middle", True, mono=True)
    sketch.arrow(164, 120, 216, 120, QUIET, 5)
    _split(sketch, 220, 40, 250, 170, 34)
    sketch.arrow(950, 120, 1006, 120, QUIET, 5)
    sketch.text(1090, 120, ["3 7 3 7 9", "end"], 26, INK, "middle", True, mono=True)
    sketch.text(584, 300, "64 strings x 64 numbers x 8 bytes, for h and for cell", 27, QUIET)
    return sketch


def attention():
    """How many bytes travel, with the state only and with attention."""
    sketch = Sketch(1168, 330)
    for i, (words, size, colour) in enumerate(
        (
            ("state only, any length", 65536, NAVY),
            ("attention, 5 digits", 229376, RED),
            ("attention, 50 digits", 1703936, RED),
            ("attention, 500 digits", 16449536, RED),
        )
    ):
        y = 16 + i * 80
        sketch.text(370, y + 28, words, 29, INK, "end")
        sketch.box(390, y, max(size / 16449536 * 500, 4), 56, colour, round_=3)
        sketch.text(406 + size / 16449536 * 500, y + 28, f"{size:,} bytes", 28, INK, "start", True)
    return sketch


def losses():
    """The loss of one process and of three splits, from the notebook."""
    one_process, *ways = curves("12_encoder_decoder", "loss of one process and of three splits")[0]
    sketch = Sketch(1168, 440)
    chart = Chart(sketch, 80, 40, 780, 310, (0, 100), (0, 2.5))
    chart.axes(
        [(s, str(s)) for s in range(0, 101, 20)], [(v, f"{v:g}") for v in (0, 1, 2)], "step", ""
    )
    chart.curve(one_process[1], LINE, 18)
    for (_, points), colour, thick in zip(ways, (NAVY, RED, GOLD), (11, 7, 3), strict=True):
        chart.curve(points, colour, thick)
    for i, (words, colour) in enumerate(
        (
            ("one process", "#55606e"),
            ("by hand", NAVY),
            ("n-step RNN", RED),
            ("chain list", "#7a5200"),
        )
    ):
        sketch.text(890, 120 + i * 52, words, 30, colour, "start", True)
    sketch.text(80, 20, "loss", 26, INK)
    return sketch


def waits():
    """When each of two ranks works and waits."""
    sketch = Sketch(1168, 360)
    left, unit = 150, 25
    for rank in range(2):
        y = 20 + rank * 140
        sketch.rank(70, y + 50, rank, 42, 36)
        for start, stop, words in WAITS[rank]:
            sketch.box(
                left + start * unit,
                y + 12,
                (stop - start) * unit,
                76,
                "#ffffff",
                QUIET,
                words or "waits",
                QUIET,
                28,
                4,
                dash="10 8",
            )
        for start, stop, words in WORKS[rank]:
            sketch.box(
                left + start * unit,
                y + 12,
                (stop - start) * unit,
                76,
                rank_colour(rank),
                words=words,
                ink="#ffffff",
                size=28,
                round_=4,
                bold=True,
            )
    sketch.line([(left, 292), (left + 40 * unit, 292)], QUIET, 2.5)
    for ms in (0, 10, 20, 30, 40):
        sketch.text(left + ms * unit, 320, str(ms) if ms else "0 ms", 25, QUIET)
    return sketch


def grid():
    """Two pairs of ranks: each pair has a model, and halves are averaged across pairs."""
    sketch = Sketch(1168, 400)
    for pair in range(2):
        y = 80 + pair * 210
        sketch.box(200, y - 66, 640, 132, PALE, LINE, round_=60)
        sketch.text(180, y, f"pair {pair}", 28, INK, "end", True)
        for half in range(2):
            sketch.rank(330 + half * 380, y, 2 * pair + half, 46, 40)
        sketch.arrow(330, y - 14, 710, y - 14, INK, 5, short=56)
        sketch.arrow(710, y + 14, 330, y + 14, RED, 5, short=56)
    for half, words in enumerate(("encoders", "decoders")):
        x = 330 + half * 380
        sketch.arrow(x, 80, x, 290, TEAL, 7, short=58)
        sketch.arrow(x, 290, x, 80, TEAL, 7, short=58)
        sketch.text(x, 386, f"copies: {words}", 27, "#1c6e62", bold=True)
    sketch.text(880, 80, ["a pair: activations there,", "gradients back"], 26, INK, "start")
    sketch.text(880, 200, ["copies: gradients", "are averaged"], 26, "#1c6e62", "start")
    return sketch
