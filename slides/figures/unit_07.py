"""The pictures of deck 07: two workers, who sees which sample, a save that hangs."""

from sketch import INK, LINE, PALE, QUIET, RED, Sketch, rank_colour

# what each worker's steps held, as notebooks/07_multiworker.ipynb printed it
SEEN = {
    "data": ((0, 1, 4, 5, 8, 9), (2, 3, 6, 7, 10, 11)),
    "file": ((0, 1, 2, 3, 4, 7, 8, 9), (5, 6, 10, 11)),
    "off": (tuple(range(12)), tuple(range(12))),
    "own_order": ((0, 2, 9, 8, 1, 6), (3, 8, 7, 0, 11, 10)),
    "one_order": ((0, 2, 9, 8, 1, 6), (10, 5, 4, 7, 3, 11)),
}


def cover():
    """Two machines with one process each."""
    sketch = Sketch(520, 520)
    for worker in range(2):
        y = 40 + worker * 250
        sketch.box(20, y, 480, 190, PALE, LINE, round_=18)
        sketch.text(44, y + 32, f"machine {worker}", 26, QUIET, "start")
        sketch.rank(110, y + 112, worker, 46, 40)
        sketch.text(180, y + 96, "one process", 28, INK, "start", True)
        sketch.text(180, y + 136, "TF_CONFIG", 26, QUIET, "start", mono=True)
    for x in (200, 320):
        sketch.arrow(x, 230, x, 290, RED, 6)
        sketch.arrow(x, 290, x, 230, RED, 6)
    return sketch


def _rows(ways):
    sketch = Sketch(1168, 60 + 130 * len(ways))
    for sample in range(12):
        sketch.text(362 + sample * 68, 22, str(sample), 26, QUIET)
    for i, (way, words, verdict, good) in enumerate(ways):
        y = 50 + i * 130
        sketch.text(312, y + 46, words, 28, INK, "end", True)
        for worker, samples in enumerate(SEEN[way]):
            for sample in range(12):
                got = samples.count(sample)
                sketch.box(
                    331 + sample * 68,
                    y + worker * 48,
                    62,
                    42,
                    rank_colour(worker) if got else "#ffffff",
                    None if got else LINE,
                    round_=4,
                    thick=2,
                )
        for sample in range(12):
            total = sum(samples.count(sample) for samples in SEEN[way])
            if total == 0:
                sketch.box(329 + sample * 68, y - 3, 66, 96, "none", RED, dash="8 6", thick=4)
        sketch.text(312, y + 84, verdict, 25, "#1c6e62" if good else RED, "end", True)
    return sketch


def shards():
    """Which samples two workers see under each policy of sharding."""
    return _rows(
        [
            ("data", "DATA: each batch is cut", "each sample once", True),
            ("file", "FILE: files are dealt", "each sample once", True),
            ("off", "OFF: nothing is cut", "everything twice", False),
        ]
    )


def orders():
    """Which samples two workers see with orders of their own, and with one order."""
    return _rows(
        [
            ("own_order", "each mixes by itself", "4, 5 never; 0, 8 twice", False),
            ("one_order", "all mix alike", "each sample once", True),
        ]
    )


def config():
    """A chief and two workers, with the addresses in TF_CONFIG."""
    sketch = Sketch(1168, 190)
    for i, (words, address) in enumerate(
        (("chief", "node0:2222"), ("worker 0", "node1:2222"), ("worker 1", "node2:2222"))
    ):
        x = 40 + i * 380
        sketch.box(
            x, 20, 330, 140, "#ffffff" if i < 2 else "#e8f4f1", rank_colour(i), thick=6, round_=14
        )
        sketch.text(x + 165, 66, words, 32, INK, bold=True)
        sketch.text(x + 165, 116, address, 26, QUIET, mono=True)
    sketch.text(965, 180, "I am this one", 26, "#1c6e62", bold=True)
    return sketch


def save():
    """A chief that saves and waits in an all-reduce for its workers."""
    sketch = Sketch(540, 420)
    sketch.rank(110, 90, 0, 46, 32, "C")
    sketch.text(180, 76, "the chief saves:", 28, INK, "start", True)
    sketch.text(180, 112, "an all-reduce waits", 28, RED, "start")
    for worker in (1, 2):
        sketch.rank(110 + (worker - 1) * 260, 330, worker, 46, 36)
        sketch.arrow(110, 90, 110 + (worker - 1) * 260, 330, RED, 6, short=54)
    sketch.text(240, 396, "the workers do not call it", 28, QUIET)
    return sketch
