"""The pictures of deck 00: ranks on nodes, who waits for whom, healing."""

from sketch import GOLD, INK, LINE, NAVY, PALE, QUIET, RED, TEAL, Sketch

ROUND = {0: (270, 80), 1: (440, 250), 2: (270, 420), 3: (100, 250)}  # the places of four ranks


def _graph(arrows, words, steps=False, absent=()):
    """Who waits for whom, on four ranks.

    `arrows` are pairs of ranks, `words` what each does; with `steps`, the arrows appear one after
    the other.
    """
    sketch = Sketch(540, 500)
    for number, (waiting, awaited) in enumerate(arrows, 1):
        both = (awaited, waiting) in arrows
        if steps:
            with sketch.step(number):
                sketch.arrow(*ROUND[waiting], *ROUND[awaited], short=48, thick=5)
        else:
            sketch.arrow(
                *ROUND[waiting], *ROUND[awaited], short=48, thick=5, bend=28 if both else 0
            )
    for rank, (x, y) in ROUND.items():
        sketch.rank(x, y, rank, 42, 36, fill="#e3e8ee" if rank in absent else None)
        side = {
            0: (x + 58, y - 10, "start"),
            1: (x, y + 66, "middle"),
            2: (x + 58, y + 14, "start"),
            3: (x, y + 66, "middle"),
        }[rank]
        sketch.text(
            side[0],
            side[1],
            words[rank],
            25,
            QUIET if rank not in absent else RED,
            side[2],
            rank in absent,
        )
    return sketch


def absent():
    """Three ranks in a barrier wait for one that did not arrive."""
    return _graph(
        [(0, 2), (1, 2), (3, 2)],
        {0: "barrier", 1: "barrier", 2: "did not arrive", 3: "barrier"},
        absent=(2,),
    )


def circle():
    """Four ranks that wait for each other in a circle, arrow by arrow."""
    return _graph([(0, 3), (3, 2), (2, 1), (1, 0)], dict.fromkeys(ROUND, "recv"), steps=True)


def chain():
    """Three ranks that wait, directly or not, for one that has finished."""
    return _graph([(0, 1), (2, 1), (1, 3)], {0: "recv", 1: "recv", 2: "recv", 3: "finished"})


def tail():
    """Two ranks that wait for each other, and two more that wait for them."""
    return _graph([(0, 2), (2, 0), (1, 0), (3, 1)], dict.fromkeys(ROUND, "recv"))


def world():
    """Four ranks on two nodes, with the numbers that each of them has."""
    sketch = Sketch(1168, 330)
    for node in range(2):
        left = 20 + node * 574
        sketch.box(left, 10, 554, 250, PALE, LINE, round_=18)
        sketch.text(left + 24, 42, f"node {node}", 27, INK, "start", True)
        sketch.text(left + 530, 42, f"GROUP_RANK={node}", 22, QUIET, "end", mono=True)
        for local in range(2):
            rank, x = 2 * node + local, left + 138 + local * 278
            sketch.rank(x, 122, rank, 46, 40)
            sketch.text(x, 196, f"RANK={rank}", 24, INK, mono=True)
            sketch.text(x, 230, f"LOCAL_RANK={local}", 22, QUIET, mono=True)
    sketch.brace(20, 1148, 274, "the world: WORLD_SIZE=4", 26, INK)
    return sketch


def who_runs():
    """The kernel and its variable, and four ranks, each with its own."""
    sketch = Sketch(560, 470)
    sketch.box(20, 180, 190, 110, "#ffffff", NAVY, ["this kernel", "x = 100"], size=25, thick=4)
    for rank in range(4):
        y = 60 + rank * 116
        sketch.arrow(210, 235, 400, y, QUIET, 4, short=8, late=52)
        sketch.rank(420, y, rank, 38, 32)
        sketch.text(474, y, f"x = {rank**2}", 26, INK, "start", mono=True)
    sketch.text(262, 110, "%%px", 28, RED, mono=True, bold=True)
    return sketch


def healing():
    """How a cluster is healed: the old ranks end, and new ones take their places."""
    sketch = Sketch(1168, 440)
    for rank in range(4):
        x = 70 + rank * 110
        sketch.add(
            "circle",
            cx=x,
            cy=110,
            r=40,
            fill="#e3e8ee",
            stroke=QUIET,
            stroke_width=3,
            stroke_dasharray="8 6",
        )
        sketch.text(x, 110, str(rank), 32, QUIET, bold=True)
        sketch.text(x, 176, "keepsake", 22, RED)
    sketch.text(235, 36, "before the hang", 27, INK, bold=True)
    sketch.text(235, 222, ["what only the ranks had", "is lost with them"], 25, RED)
    with sketch.step(1):
        sketch.arrow(480, 110, 680, 110, NAVY, 7)
        sketch.text(580, 70, "four new", 25, NAVY)
        sketch.text(580, 152, "processes", 25, NAVY)
        sketch.text(920, 36, "healed", 27, INK, bold=True)
        for rank in range(4):
            sketch.rank(755 + rank * 110, 110, rank, 40, 32)
    with sketch.step(2):
        sketch.arrow(920, 300, 920, 172, TEAL, 6)
        sketch.text(
            906, 222, ["cells marked %%px --setup", "run again, in their order"], 25, INK, "end"
        )
    sketch.box(
        20,
        306,
        1128,
        110,
        "#ffffff",
        NAVY,
        [
            "this kernel: never restarted",
            "its variables, and what was pulled from the ranks, are still there",
        ],
        size=27,
        thick=4,
    )
    return sketch


def kinds():
    """What a rank can do that others wait for, and what the cluster does about it."""
    sketch = Sketch(1168, 400)
    rows = [
        ("waits", "hang: reported after the patience", NAVY, True),
        ("fails", "reported at once, the exception first", RED, False),
        ("dies", "reported immediately", GOLD, False),
        ("loops forever", "works, so no hang: press \u25a0", TEAL, False),
    ]
    for i, (what, words, colour, _) in enumerate(rows):
        y = 50 + i * 100
        sketch.box(
            0,
            y - 36,
            300,
            72,
            colour,
            words="a rank " + what,
            ink=INK if colour == GOLD else "#ffffff",
            size=27,
            bold=True,
        )
        sketch.arrow(310, y, 400, y, QUIET, 5)
        sketch.text(420, y, words, 30, INK, "start")
    return sketch


def cover():
    """Four ranks that wait for each other forever."""
    sketch = _graph([(0, 3), (3, 2), (2, 1), (1, 0)], dict.fromkeys(ROUND, ""))
    sketch.text(270, 250, ["four ranks", "wait forever"], 30, QUIET, italic=True)
    return sketch
