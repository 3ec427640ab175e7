"""The pictures of deck 20: the judge, a gradient, what a score is paid with, the day, a trace.

They show the judge between its rooms, a gradient against that of one process, and the trace of a
step on a GPU as PyTorch and HTA describe it.
"""

import itertools

from sketch import GOLD, INK, LINE, NAVY, PALE, QUIET, RED, SAND, TEAL, Sketch

from manyhands.hackathon.challenges.challenge import CHALLENGES, SLOW_LINKS
from manyhands.hackathon.judge.network import HEAD_BYTES, messages_of

TENSORS = [
    n * m * 4
    for wide, narrow in itertools.pairwise(SLOW_LINKS.layers)
    for n, m in ((wide, narrow), (1, narrow))
]
STEPS = 150


def _paid(tensors):
    """{what: seconds} of an entry of 150 steps with these all-reduces, on the challenge's clock."""
    rounds, sent = 0, 0.0
    for n in tensors:
        messages, n_bytes = messages_of("all_reduce", SLOW_LINKS.ranks, n)
        rounds, sent = rounds + messages, sent + messages * (n_bytes + HEAD_BYTES)
    return {
        "gradients": STEPS * SLOW_LINKS.gradient_s,
        "delays": STEPS * rounds * SLOW_LINKS.delay_ms / 1e3,
        "bytes": STEPS * sent / (SLOW_LINKS.rate_mbit * 1e6 / 8),
    }


def cover():
    """Four ranks in their rooms, with the judge between them."""
    sketch = Sketch(520, 520)
    for rank, (x, y) in enumerate(((90, 90), (430, 90), (90, 430), (430, 430))):
        sketch.box(x - 75, y - 75, 150, 150, PALE, LINE, dash="8 8")
        sketch.rank(x, y, rank, 46, 40)
        sketch.arrow(
            x + (60 if x < 260 else -60), y + (60 if y < 260 else -60), 260, 260, QUIET, 4, late=80
        )
    sketch.box(180, 200, 160, 120, NAVY, words="judge", ink="#ffffff", size=36, bold=True)
    return sketch


def gradient():
    """Two ranks' gradients as the optimizer gets them, against the gradient of one process."""
    sketch = Sketch(1168, 400)
    for rank in range(2):
        y = 40 + rank * 120
        sketch.rank(70, y + 40, rank, 36, 32)
        sketch.box(130, y, 230, 80, PALE, LINE, words="its rows, 16", size=28)
        sketch.arrow(370, y + 40, 470, y + 40, INK)
        sketch.box(480, y, 190, 80, "#ffffff", NAVY, words="gradient h", size=28)
    sketch.arrow(680, 80, 790, 140, INK)
    sketch.arrow(680, 200, 790, 140, INK)
    sketch.box(800, 100, 330, 80, "#ffffff", RED, words="G: what the optimiser got", size=26)
    sketch.box(130, 300, 230, 80, SAND, GOLD, words="all 32 rows", size=28)
    sketch.text(70, 340, "1", 34, INK, bold=True)
    sketch.arrow(370, 340, 790, 340, INK)
    sketch.text(580, 312, "one process", 26, QUIET)
    sketch.box(800, 300, 330, 80, "#ffffff", TEAL, words="R: what it should get", size=26)
    sketch.text(965, 240, "the same?", 34, RED, bold=True)
    return sketch


def rooms():
    """What the judge keeps to itself, and what the ranks do in their rooms."""
    sketch = Sketch(1168, 420)
    sketch.box(390, 30, 390, 350, "#ffffff", NAVY)
    sketch.text(585, 70, "the judge", 34, NAVY, bold=True)
    for place, words in enumerate(
        (
            "data and seeds",
            "gradients: 10 ms each",
            "messages: (n + 64) / rate + delay",
            "clocks, and the test",
        )
    ):
        sketch.box(410, 110 + place * 66, 350, 52, PALE, words=words, size=22)
    for rank in range(4):
        x, y = 20 if rank < 2 else 858, 40 + 190 * (rank % 2)
        sketch.box(x, y, 290, 140, PALE, QUIET, dash="8 8")
        sketch.rank(x + 50, y + 70, rank, 32, 28)
        sketch.text(x + 185, y + 70, ["train(model,", "batches, comm)"], 21, INK, mono=True)
        left = x < 500
        sketch.arrow(
            x + (290 if left else 0), y + 70, 390 if left else 780, y + 70, INK, 4, short=8
        )
    return sketch


def paid():
    """What a step's messages are paid with, for four tensors and for one."""
    sketch = Sketch(1168, 330)
    for place, (name, tensors) in enumerate(
        (("four tensors", TENSORS), ("one tensor", [sum(TENSORS)]))
    ):
        x, y, scale = 250, 30 + place * 100, 22
        sketch.text(230, y + 32, name, 28, INK, "end")
        parts = _paid(tensors)
        for seconds, colour in zip(parts.values(), (TEAL, RED, NAVY), strict=True):
            sketch.box(x, y, seconds * scale, 64, colour, round_=0)
            x += seconds * scale
        sketch.text(x + 16, y + 32, f"{sum(parts.values()):.1f} s", 30, INK, "start", True)
    for x, words, colour in ((250, "gradients", TEAL), (480, "delays", RED), (670, "bytes", NAVY)):
        sketch.box(x, 262, 28, 28, colour, round_=2)
        sketch.text(x + 40, 276, words, 26, INK, "start")
    return sketch


def trace():
    """The rows of a step's trace on a GPU.

    It is a drawing of what the sources describe, not a measurement.
    """
    sketch = Sketch(1168, 400)
    for y, words in ((20, "CPU"), (110, "kernels"), (200, "NCCL")):
        sketch.text(150, y + 32, words, 28, INK, "end", True)
        sketch.box(170, y, 978, 64, PALE, LINE, round_=2)
    for x, width, words in (
        (174, 190, "forward"),
        (368, 190, "backward"),
        (562, 100, "step"),
        (1000, 146, "forward"),
    ):
        sketch.box(x, 24, width, 56, NAVY, words=words, ink="#ffffff", size=24, round_=2)
    sketch.box(666, 24, 330, 56, SAND, GOLD, words="cudaStreamSynchronize", size=24, round_=2)
    for x, width in ((190, 40), (258, 40), (326, 40), (1034, 40), (1102, 40)):
        sketch.box(x, 114, width, 56, TEAL, round_=2)
    sketch.box(400, 114, 340, 56, TEAL, words="backward", ink=INK, size=24, round_=2)
    sketch.box(908, 114, 88, 56, TEAL, words="step", ink=INK, size=24, round_=2)
    sketch.box(540, 204, 160, 56, QUIET, words="all-reduce", ink="#ffffff", size=24, round_=2)
    sketch.box(744, 204, 160, 56, RED, words="all-reduce", ink="#ffffff", size=24, round_=2)
    for x, y, number in ((312, 142, 1), (1015, 142, 2), (620, 276, 3), (824, 276, 4)):
        sketch.add("circle", cx=x, cy=y, r=15, fill="#ffffff", stroke=INK, stroke_width=2)
        sketch.text(x, y, str(number), 20, INK, bold=True)
    for place, words in enumerate(
        (
            "1  gaps: the CPU launches too slowly",
            "2  .item(): the CPU has only waited",
            "3  hidden below backward's kernels",
            "4  exposed: nothing computes meanwhile",
        )
    ):
        sketch.text(170 + 500 * (place // 2), 320 + 44 * (place % 2), words, 24, INK, "start")
    return sketch


def challenges():
    """The four challenges and the question that each asks."""
    sketch = Sketch(1168, 400)
    questions = {
        "slow_links": "10 Mbit/s, 5 ms: what need not be sent?",
        "lame_rank": "one is always late, each quarter second another",
        "does_not_fit": "a GPT, 640 KiB on each device",
        "big_batch": "the fewest updates of the weights",
    }
    for place, (challenge, colour) in enumerate(
        zip(CHALLENGES.values(), (NAVY, RED, TEAL, GOLD), strict=True)
    ):
        y = 14 + place * 97
        sketch.box(20, y, 12, 76, colour, round_=2)
        sketch.text(52, y + 22, challenge.title, 32, INK, "start", True)
        sketch.text(52, y + 60, questions[challenge.name], 25, QUIET, "start")
        sketch.text(780, y + 38, f"{challenge.target:.0%}", 34, INK, bold=True)
        sketch.text(
            1140, y + 38, f"baseline {challenge.baseline:g} {challenge.unit}", 28, INK, "end"
        )
    return sketch


def day():
    """The parts of a hackathon's day."""
    sketch = Sketch(1168, 250)
    parts = (
        ("rules, and", "a first entry", 2, NAVY),
        ("slow links", "", 3, TEAL),
        ("lunch", "", 1, LINE),
        ("another", "challenge", 3, TEAL),
        ("board", "frozen", 1, RED),
        ("judged again,", "prizes", 2, GOLD),
    )
    x, unit = 20, 1128 / sum(width for *_, width, _ in parts)
    for first, second, width, colour in parts:
        sketch.box(x, 60, width * unit - 8, 110, colour, round_=4)
        ink = "#ffffff" if colour in (NAVY, RED) else INK
        sketch.text(
            x + (width * unit - 8) / 2,
            115,
            [first, second] if second else first,
            25 if width > 1 else 22,
            ink,
            bold=True,
        )
        x += width * unit
    sketch.arrow(20, 205, 1148, 205, QUIET, 3)
    sketch.text(584, 232, "hints: one each hour", 24, QUIET)
    return sketch
