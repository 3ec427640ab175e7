"""The pictures of deck 04: a tree that grows, a ring that turns, the busiest rank's bytes."""

import math

from sketch import GOLD, INK, LINE, NAVY, QUIET, RED, TEAL, Chart, Sketch, rank_colour


def _around(count, x, y, radius):
    return [
        (
            x + radius * math.sin(2 * math.pi * k / count),
            y - radius * math.cos(2 * math.pi * k / count),
        )
        for k in range(count)
    ]


def cover():
    """Five ranks in a ring."""
    sketch = Sketch(520, 520)
    places = _around(5, 260, 260, 190)
    for rank, (x, y) in enumerate(places):
        sketch.arrow(x, y, *places[(rank + 1) % 5], rank_colour(rank), 7, short=54, bend=26)
    for rank, (x, y) in enumerate(places):
        sketch.rank(x, y, rank, 44, 38)
    sketch.text(260, 260, "a ring", 32, QUIET, italic=True)
    return sketch


def star():
    """A rank in the middle that sends to four others."""
    sketch = Sketch(540, 440)
    middle, others = (270, 220), [(x, y) for x, y in _around(4, 270, 220, 165)]
    for rank, (x, y) in enumerate(others, 1):
        sketch.arrow(*middle, x, y, INK, 5, short=46)
        sketch.rank(x, y, rank, 38, 34)
    sketch.rank(*middle, 0, 38, 34)
    return sketch


def tree():
    """A broadcast along a binomial tree to five ranks, round by round."""
    sketch = Sketch(1168, 440)
    x_of = {0: 240, 1: 560, 2: 820, 3: 1080, 4: 400}
    rows = {0: 60, 1: 180, 2: 290, 3: 400}
    have = {0: (0,), 1: (0, 1), 2: (0, 1, 2, 3), 3: (0, 1, 2, 3, 4)}
    sends = {1: ((0, 1),), 2: ((0, 2), (1, 3)), 3: ((0, 4),)}
    for round_ in range(4):
        y = rows[round_]

        def draw(round_=round_, y=y):
            sketch.text(20, y, "start" if not round_ else f"round {round_}", 28, INK, "start", True)
            for sender, receiver in sends.get(round_, ()):
                sketch.arrow(x_of[sender], rows[round_ - 1], x_of[receiver], y, INK, 5, short=38)
            for rank in have[round_]:
                sketch.rank(x_of[rank], y, rank, 32, 30)

        if round_:
            with sketch.step(round_):
                draw()
        else:
            draw()
    return sketch


def all_send():
    """Five ranks that all call send, each to the next one: none receives."""
    sketch = Sketch(540, 480)
    places = _around(5, 270, 240, 170)
    for rank, (x, y) in enumerate(places):
        with sketch.step(rank + 1):
            sketch.arrow(x, y, *places[(rank + 1) % 5], RED, 6, short=50)
    for rank, (x, y) in enumerate(places):
        sketch.rank(x, y, rank, 42, 36)
    sketch.text(270, 226, "send", 30, INK, mono=True)
    sketch.text(270, 266, "waits for recv", 26, QUIET)
    return sketch


def _sums(rounds, size=3):
    """held[rank][chunk]: the ranks in the sum after so many rounds of a ring all-reduce.

    It also returns what was sent in the last round: (from, chunk).
    """
    held, sent = [[{rank} for _ in range(size)] for rank in range(size)], []
    for number in range(rounds):
        gather, step = divmod(number, size - 1)
        sent = [(rank, (rank - step + gather) % size) for rank in range(size)]
        came = [set(held[rank][chunk]) for rank, chunk in sent]
        for (rank, chunk), ranks in zip(sent, came, strict=True):
            to = (rank + 1) % size
            held[to][chunk] = ranks if gather else held[to][chunk] | ranks
    return held, sent


def _ring(rounds):
    sketch = Sketch(1168, 430)
    held, sent = _sums(rounds)
    came = {((rank + 1) % 3, chunk) for rank, chunk in sent}
    for rank in range(3):
        left = 60 + rank * 400
        sketch.rank(left + 124, 40, rank, 36, 32)
        for chunk in range(3):
            top = 96 + chunk * 92
            done = len(held[rank][chunk]) == 3
            sketch.box(
                left,
                top,
                248,
                78,
                "#e8f4f1" if done else "#ffffff",
                RED if (rank, chunk) in came else TEAL if done else LINE,
                thick=7 if (rank, chunk) in came else 3,
            )
            for member in sorted(held[rank][chunk]):
                sketch.box(left + 14 + member * 76, top + 12, 68, 54, rank_colour(member), round_=5)
        if rank < 2 and rounds:
            sketch.arrow(left + 256, 230, left + 392, 230, RED, 8)
    for chunk in range(3):
        sketch.text(46, 135 + chunk * 92, str(chunk), 28, QUIET, "end", True)
    if rounds:
        sketch.line([(984, 386), (984, 414), (184, 414), (184, 400)], RED, 8)
        sketch.add("polygon", points="184,384 170,406 198,406", fill=RED)
    return sketch


def ring_0():
    """A ring all-reduce before its first round."""
    return _ring(0)


def ring_1():
    """A ring all-reduce after one round."""
    return _ring(1)


def ring_2():
    """A ring all-reduce after two rounds."""
    return _ring(2)


def ring_3():
    """A ring all-reduce after three rounds."""
    return _ring(3)


def ring_4():
    """A ring all-reduce after four rounds."""
    return _ring(4)


def halving():
    """The two rounds of recursive halving on four ranks."""
    sketch = Sketch(1168, 300)
    for half, (title, pairs) in enumerate(
        (
            ("round 1: half of x, two ranks away", ((0, 2), (1, 3))),
            ("round 2: a quarter, one rank away", ((0, 1), (2, 3))),
        )
    ):
        left = 40 + half * 590
        sketch.text(left + 260, 26, title, 28, INK, bold=True)
        for left_rank, right_rank in pairs:
            bend = 0 if half else -120 if left_rank else 120  # above the ranks between, or below
            sketch.arrow(
                left + 60 + left_rank * 140,
                160,
                left + 60 + right_rank * 140,
                160,
                RED,
                6,
                short=46,
                bend=bend,
            )
            sketch.arrow(
                left + 60 + right_rank * 140,
                160,
                left + 60 + left_rank * 140,
                160,
                RED,
                6,
                short=46,
                bend=-bend,
            )
        for rank in range(4):
            sketch.rank(left + 60 + rank * 140, 160, rank, 38, 34)
    return sketch


def busiest():
    """What the busiest rank sends against the number of ranks, for several ways."""
    sketch = Sketch(1168, 470)
    chart = Chart(sketch, 70, 60, 820, 320, (2, 16), (0, 8))
    chart.axes(
        [(p, str(p)) for p in (2, 4, 8, 12, 16)],
        [(v, str(v)) for v in (0, 2, 4, 6, 8)],
        "ranks",
        "tensors that the busiest rank sends",
    )
    ranks = range(2, 17)
    whole = {p: 2 ** int(math.log2(p)) for p in ranks}
    chart.curve([(p, p - 1) for p in range(2, 10)], NAVY, 6)
    chart.curve([(p, math.ceil(math.log2(p))) for p in ranks], RED, 6)
    chart.curve(
        [(p, 2 * (whole[p] - 1) / whole[p] + (p > whole[p])) for p in ranks], GOLD, 5, "12 8"
    )
    chart.curve([(p, 2 * (p - 1) / p) for p in ranks], TEAL, 8)
    # measured
    for p, star_, tree_, ring_, halving_ in (
        (2, 1, 1, 1, 1),
        (3, 2, 2, 1.333, 2),
        (4, 3, 2, 1.5, 1.5),
        (5, 4, 3, 1.6, 2.5),
    ):
        for value, colour in ((star_, NAVY), (tree_, RED), (halving_, GOLD), (ring_, TEAL)):
            chart.dot(p, value, colour, 9)
    chart.label(9, 8, "star, gather", NAVY, dy=4)
    chart.label(16, 4, "tree", RED)
    chart.label(16, 1.875, "ring: never 2", "#1c6e62", dy=-8)
    chart.label(15, 2.75, "halving", "#7a5200", dx=60, dy=-14)
    sketch.text(930, 430, "dots: measured", 24, QUIET, "start")
    return sketch
