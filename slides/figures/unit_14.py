"""The pictures of deck 14: who works when, the bubble, a circle of sends, four schedules.

The schedules are those of a cut network, as measured in the notebook.
"""

import re

from sketch import INK, NAVY, QUIET, RED, Chart, Sketch, ink_on, rank_colour
from stored import bars, printed

from manyhands.simulate.pipeline import bubble, finish_s, gpipe, idle, one_f_one_b, play
from manyhands.simulate.pipeline import cut as best_cut

COSTS = (9, 9, 2, 2, 2, 3, 3, 6)  # ms of eight layers


def _pale(rank):
    """The rank's colour with three quarters of white."""
    return "#" + "".join(
        f"{round(0.25 * int(rank_colour(rank)[k : k + 2], 16) + 0.75 * 255):02x}" for k in (1, 3, 5)
    )


def _seconds(event):
    return {"F": 1, "B": 2, "I": 1, "W": 1}[event.kind]


def _gantt(sketch, spans, left, top, unit, high, numbers=25):
    """A row for each rank: dark is forward, pale is backward."""
    for rank, row in enumerate(spans):
        y = top + rank * high
        sketch.rank(left - 34, y + high / 2 - 2, rank, min(22, high / 2 - 3), min(26, high - 13))
        for kind, micro_batch, _, start, stop in row:
            dark = kind == "F"
            sketch.box(
                left + start * unit,
                y,
                (stop - start) * unit - 2,
                high - 5,
                rank_colour(rank) if dark else "#ffffff" if kind == "W" else _pale(rank),
                None if dark else rank_colour(rank),
                f"{kind if numbers > 25 else ''}{micro_batch}" if numbers else None,
                ink_on(rank) if dark else INK,
                numbers,
                3,
                1.5,
            )


def cover():
    """GPipe's schedule of three micro-batches on four ranks."""
    sketch = Sketch(520, 520)
    _gantt(sketch, play(gpipe(4, 3), _seconds), 70, 80, 25, 84)
    sketch.arrow(70, 448, 510, 448, QUIET, 4)
    sketch.text(290, 484, "time", 28, QUIET)
    sketch.text(290, 36, "dark: forward, pale: backward", 27, INK)
    return sketch


def waits():
    """The whole batch in one piece and in eight micro-batches, with what each takes."""
    sketch = Sketch(1168, 440)
    unit, left = 10.6, 80
    for top, words, spans in (
        (
            50,
            "the whole batch at once: 96 units",
            play(gpipe(4, 1), lambda event: 8 * _seconds(event)),
        ),
        (270, "8 micro-batches: 33 units", play(gpipe(4, 8), _seconds)),
    ):
        sketch.text(left, top - 26, words, 28, INK, "start", True)
        _gantt(sketch, spans, left, top, unit, 40, 0)
    sketch.text(
        left + 33 * unit + 40,
        344,
        ["one unit: a forward of one micro-batch", "on one stage; a backward takes two"],
        26,
        QUIET,
        "start",
    )
    return sketch


def cut():
    """Layers cut into four stages by their number and by their cost, and what a step then takes."""
    sketch = Sketch(1168, 280)
    unit = 18.5
    for row, (words, stages) in enumerate(
        (
            ("two layers each", [slice(2 * i, 2 * i + 2) for i in range(4)]),
            ("by cost", best_cut(COSTS, 4)),
        )
    ):
        x, y, stage_ms = 0, 50 + row * 140, [sum(COSTS[block]) for block in stages]
        step = play(
            gpipe(4, 8), lambda event, stage_ms=stage_ms: stage_ms[event.stage] * _seconds(event)
        )
        sketch.text(0, y - 28, words, 28, INK, "start", True)
        for rank, block in enumerate(stages):
            for cost in COSTS[block]:
                sketch.box(
                    x,
                    y,
                    cost * unit - 3,
                    70,
                    rank_colour(rank),
                    words=str(cost),
                    ink=ink_on(rank),
                    size=27,
                    bold=True,
                    round_=4,
                )
                x += cost * unit
            x += 16
        sketch.text(
            780, y + 35, f"dearest {max(stage_ms)} ms", 28, INK if row else RED, "start", not row
        )
        sketch.text(1150, y + 35, f"{finish_s(step):.0f} ms", 32, INK, "end", True)
    sketch.text(1150, 22, "a step", 26, QUIET, "end")
    return sketch


def all_forwards():
    """GPipe's schedule of eight micro-batches on four ranks."""
    sketch = Sketch(1168, 280)
    _gantt(sketch, play(gpipe(4, 8), _seconds), 80, 6, 32.5, 54)
    sketch.text(80 + 12.5 * 32.5, 31, "rank 0 waits", 27, QUIET)
    sketch.text(80 + 1.5 * 32.5, 6 + 3 * 54 + 24, "waits", 25, QUIET)
    sketch.text(580, 258, "dark: forward, pale: backward; the number: micro-batch", 26, QUIET)
    return sketch


def bubbles():
    """The bubble against the number of micro-batches."""
    sketch = Sketch(1168, 330)
    chart = Chart(sketch, 80, 44, 760, 206, (1, 32), (0, 0.8), log_x=True)
    counts = (1, 2, 4, 8, 16, 32)
    chart.axes(
        [(m, str(m)) for m in counts],
        [(0, "0"), (0.25, "1/4"), (0.5, "1/2"), (0.75, "3/4")],
        "micro-batches M, four ranks",
        "bubble",
    )
    for chunks, colour, words, at in (
        (1, RED, "one stage on each", (2, 0.68)),
        (2, NAVY, "two stages on each", (1, 0.2)),
    ):
        chart.curve(
            [(m, bubble(4, m, chunks)) for m in counts if chunks == 1 or m % 4 == 0], colour, 6
        )
        chart.label(*at, words, colour, dx=30)
    for m in counts:
        chart.dot(m, idle(play(gpipe(4, m), _seconds)), RED, 9)
    sketch.text(880, 120, ["dots: simulated,", "with no formula"], 27, QUIET, "start")
    return sketch


def one_forward_one_backward():
    """The 1F1B schedule of eight micro-batches, and what each rank keeps."""
    sketch = Sketch(1168, 300)
    _gantt(sketch, play(one_f_one_b(4, 8), _seconds), 80, 50, 27.6, 58)
    sketch.text(1080, 22, "keeps", 27, INK, bold=True)
    for rank in range(4):
        sketch.text(1080, 50 + rank * 58 + 27, str(4 - rank), 36, INK, bold=True)
    return sketch


def circle():
    """Four ranks whose sends and receives wait for each other."""
    sketch = Sketch(1168, 250)
    places = [(110 + rank * 310, 130) for rank in range(4)]
    for rank in range(3):
        with sketch.step(rank + 1):
            sketch.arrow(
                *places[rank],
                *places[rank + 1],
                RED if rank == 2 else INK,
                7,
                short=58,
                bend=34 if rank == 2 else 0,
            )
            sketch.text(
                places[rank][0] + 155,
                50 if rank == 2 else 96,
                f"activation {3 - rank}",
                27,
                RED if rank == 2 else INK,
            )
    with sketch.step(4):
        sketch.arrow(*places[3], *places[2], RED, 7, short=58, bend=34)
        sketch.text(places[2][0] + 155, 208, "gradient 0", 27, RED)
    for rank, (x, y) in enumerate(places):
        sketch.rank(x, y, rank, 50, 44)
    return sketch


def in_two():
    """A backward that is cut in two, so that the next rank begins earlier."""
    sketch = Sketch(1168, 330)
    whole = [[("B", 0, rank, 2 * (3 - rank), 2 * (4 - rank))] for rank in range(4)]
    parts = [
        [("I", 0, rank, 3 - rank, 4 - rank), ("W", 0, rank, 4 - rank, 5 - rank)]
        for rank in range(4)
    ]
    parts[0] = [("W", 0, 0, 3, 5)]  # the first stage's input needs no gradient
    for left, words, rows in ((80, "backward whole", whole), (690, "in two: I, then W", parts)):
        sketch.text(left, 22, words, 28, INK, "start", True)
        _gantt(sketch, rows, left, 56, 54, 58, 26)
    sketch.text(80 + 4 * 54, 310, "rank 0 begins after 6", 26, QUIET)
    sketch.text(690 + 4 * 54, 310, "rank 0 begins after 3", 26, QUIET)
    return sketch


def schedules():
    """Four schedules as measured, with their bubbles and what their ranks keep."""
    sketch = Sketch(1168, 480)
    rows = {
        line.split()[0]: line.split()[1:] for line in printed("14_pipeline", "most KiB kept")[1:]
    }
    simulated = {
        line.split()[0]: re.search(r"bubble ([\d.]+)", line).group(1)
        for line in printed("14_pipeline", "forwards kept, by rank")
    }
    drawn = bars("14_pipeline", "schedules of a pipeline, with the memory that they need")
    unit = 540 / max(stop for spans in drawn for _, _, stop, _ in spans)
    for place, ((name, (step_ms, measured, *kept)), spans) in enumerate(
        zip(rows.items(), drawn, strict=True)
    ):
        left, top = place % 2 * 604, place // 2 * 244
        sketch.text(left, top + 18, name, 28, INK, "start", True)
        sketch.text(left + 560, top + 18, f"{step_ms} ms", 28, INK, "end", True)
        for fill, start, stop, rank in spans:
            weights = fill.startswith("url")
            sketch.box(
                left + start * unit,
                top + 40 + rank * 29,
                (stop - start) * unit,
                26,
                "#ffffff" if weights else fill,
                rank_colour(rank) if weights or fill == _pale(rank) else "#ffffff",
                round_=2,
                thick=1.2,
            )
        sketch.text(
            left, top + 178, f"bubble {measured}, simulated {simulated[name]}", 25, INK, "start"
        )
        sketch.text(
            left,
            top + 209,
            f"KiB kept, by rank: {', '.join(f'{float(each):g}' for each in kept)}",
            25,
            INK,
            "start",
        )
    return sketch
