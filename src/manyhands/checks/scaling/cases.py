"""What the checks of unit 19 ask, drawn from the seed.

These are machines, steps, measured times, pipelines and tables. Each case has its right answer,
from the package or from events played one by one, and the answers that likely mistakes give.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence


Rows = list[tuple[int, float]]  # (ranks, images per second)


class Case:
    """One question, with its arguments, the right answer, and what mistakes give.

    The arguments are new objects each time. `wrong` is {mistake: the answer that it gives}.
    """

    def __init__(
        self, question: str, arguments: list[Any], right: Any, wrong: dict[str, Any], other: str
    ) -> None:
        self.question, self._arguments, self.right, self.wrong, self.other = (
            question,
            arguments,
            right,
            wrong,
            other,
        )

    def arguments(self) -> list[Any]:
        """Return the arguments as new objects, which a learner's function may change."""
        return [
            (
                np.array(argument)
                if isinstance(argument, np.ndarray)
                else list(argument)
                if isinstance(argument, list)
                else argument
            )
            for argument in self._arguments
        ]


def generator(seed: int, name: str) -> np.random.Generator:
    """Return the generator of this check, made from the seed and its name."""
    return np.random.default_rng([seed % 2**32, *name.encode()])


def link(draw: np.random.Generator) -> tuple[float, float]:
    """Draw (latency_s, bytes_per_s) of a network between nodes."""
    return float(10 ** draw.uniform(-5.3, -3.5)), float(10 ** draw.uniform(8.5, 10.5))


# -- collectives -----------------------------------------------------------------------------------


def worlds(seed: int) -> list[Case]:
    """Draw worlds and networks for recursive halving and doubling."""
    from manyhands import simulate

    draw, cases = generator(seed, "worlds"), []
    for p in (1, 2, 8, 2 ** int(draw.integers(4, 8)), 1024):
        latency_s, gbit = (
            float(10 ** draw.uniform(-5, -4)),
            float(draw.choice([10, 25, 50, 100, 400])),
        )
        n = float(round(10 ** draw.uniform(5, 8.5)))
        network, rounds = (latency_s, gbit / 8 * 1e9), p.bit_length() - 1
        wrong = {
            "bits": simulate.halving_doubling_s(p, n, latency_s, gbit * 1e9),
            "mega": simulate.halving_doubling_s(p, n, latency_s, gbit / 8 * 1e6),
            "ring": simulate.ring_s(p, n, *network),
            "tree": simulate.tree_s(p, n, *network),
            "scatter only": simulate.halving_doubling_s(p, n, *network) / 2,
            "p-th": 2 * rounds * (latency_s + n / p / network[1]),
            "half each": 2 * rounds * (latency_s + n / 2 / network[1]),
        }
        cases.append(
            Case(
                f"p = {p}, {n:.0f} bytes, {gbit:g} Gbit/s",
                [p, n, latency_s, gbit],
                float(simulate.halving_doubling_s(p, n, *network)),
                wrong,
                "rounds other",
            )
        )
    return cases


def clusters(seed: int) -> list[Case]:
    """Draw clusters of nodes for the hierarchical all-reduce."""
    from manyhands import simulate

    draw = generator(seed, "clusters")
    cases: list[Case] = []
    for nodes, g, links in (
        (1, 8, 8),
        (4, 1, 2),
        (2 ** int(draw.integers(2, 7)), 8, 2 ** int(draw.integers(1, 3))),
        (2 ** int(draw.integers(2, 7)), 4, 1),
        (2 ** int(draw.integers(2, 7)), 4, 4),
    ):
        inside, between = (
            (float(10 ** draw.uniform(-6, -5)), float(10 ** draw.uniform(10, 11.3))),
            link(draw),
        )
        n = float(round(10 ** draw.uniform(6, 8.5)))
        way, pattern = (
            (simulate.ring_s, "ring"),
            (simulate.halving_doubling_s, "halving and doubling"),
        )[len(cases) % 2]
        of_a_link = n / min(links, g)
        in_node, out = simulate.ring_s(g, n, *inside), way(nodes, of_a_link, *between)
        right = simulate.hierarchical_s(nodes, g, n, inside, between, links, pattern=pattern)
        wrong = {
            "no gather": in_node / 2 + out,
            "one link": in_node + way(nodes, n, *between),
            "own link": in_node + way(nodes, n / g, *between),
            "idle links": in_node + way(nodes, n / links, *between),
            "cut twice": in_node + way(nodes, n / g / links, *between),
            "all ranks": in_node + way(nodes * g, of_a_link, *between),
            "flat": way(nodes * g, n, *between),
            "one level": out,
            "not cut": 2 * (g - 1) * simulate.message_s(n, *inside) + out,
            "times nodes": nodes * in_node + out,
        }
        cases.append(
            Case(
                f"{nodes} nodes of {g} ranks, {links} link{'s' * (links > 1)} per node",
                [nodes, g, n, inside, between, links, way],
                float(right),
                wrong,
                "levels other",
            )
        )
    return cases


# -- a step on clocks ------------------------------------------------------------------------------


def _step_s(
    slow: np.ndarray,
    ready_s: Sequence[float],
    sizes: Sequence[int],
    bucket_bytes: float,
    all_reduce: Callable[..., np.ndarray],
    begin: Callable[..., float] = max,
    together: Callable[[np.ndarray], np.ndarray] = np.array,
    parallel: bool = False,
) -> float:
    """Return the seconds of a step.

    `begin` picks when a bucket is ready, and `together` changes the clocks before each all-reduce.
    """
    from manyhands import simulate

    free, ends = np.zeros(len(slow)), []
    for bucket in simulate.buckets(sizes, bucket_bytes):
        start = np.maximum(0 * free if parallel else free, slow * begin(ready_s[i] for i in bucket))
        free = all_reduce(together(start), sum(sizes[i] for i in bucket))
        ends.append(free.max())
    return float(max(ends))


def _step_case(
    draw: np.random.Generator, p: int, count: int, way: str, spread: float, pace: float = 1.0
) -> Case:
    """Draw a step.

    If `pace` is below 1, gradients are ready sooner and buckets wait for the network, so ranks that
    go on early arrive early again.
    """
    from manyhands.simulate import clocks

    network = link(draw)
    sizes = [
        int(size) for size in np.exp(draw.normal(0, 1, count)) * 1e5 * 10 ** draw.uniform(0, 1)
    ]
    all_reduce = partial(_all_reduce, getattr(clocks, way), network)
    whole_s = float(all_reduce(np.zeros(p), sum(sizes)).max())
    ready_s = (
        np.cumsum(draw.dirichlet(np.full(count, 2.0))) * whole_s * draw.uniform(0.7, 1.5) * pace
    ).tolist()
    slow = 1 + spread * draw.exponential(size=p)
    # the first bucket holds exactly this much, and is full
    limit = sum(sizes[: count // int(draw.integers(3, 7))])
    arguments: list[Any] = [slow, ready_s, sizes, limit, all_reduce]
    run: Callable[..., float] = partial(_step_s, *arguments)
    others: tuple[Any, Any, Any, Any] = (ready_s, sizes, limit, all_reduce)
    wrong = {
        "first ready": run(begin=min),
        "in parallel": run(parallel=True),
        "mean": run(together=lambda t: np.full(p, t.mean())),
        "one clock": _step_s(
            slow, ready_s, sizes, limit, lambda clocks, n: np.full(p, all_reduce(clocks, n).max())
        ),
        "mean rank": _step_s(np.full(p, slow.mean()), *others),
        "slowest rank": _step_s(np.full(p, slow.max()), *others),
        "more than full": _step_s(slow, ready_s, sizes, limit + 1, all_reduce),
        "no overlap": _step_s(slow, [ready_s[-1]] * count, *others[1:]),
        "one bucket": _step_s(slow, ready_s, sizes, float("inf"), all_reduce),
        "no buckets": _step_s(slow, ready_s, sizes, 0, all_reduce),
        "nobody slow": _step_s(np.ones(p), *others),
        "ranks added": float((slow * ready_s[-1]).sum()),
        "backward only": float(slow.max() * ready_s[-1]),
    }
    return Case(
        f"{p} ranks, {count} gradients, {way.replace('_', ' and ')}",
        arguments,
        run(),
        wrong,
        "step other",
    )


def _all_reduce(
    call: Callable[..., np.ndarray], one: tuple[float, float], clocks: np.ndarray, n_bytes: float
) -> np.ndarray:
    """Return the clocks of all ranks after an all-reduce of n_bytes."""
    return call(np.asarray(clocks, float), n_bytes, one)


def steps(seed: int) -> list[Case]:
    """Draw training steps of several sizes and kinds of communication."""
    draw = generator(seed, "steps")
    kinds: tuple[tuple[Any, ...], ...] = (
        (1, "ring", 0.1),
        (7, "ring", 0.3),
        (12, "tree", 0.3),
        (64, "halving_doubling", 0.05),
        (24, "parameter_server", 0.2, 0.2),
    )
    return [_step_case(draw, p, int(draw.integers(12, 30)), *how) for p, *how in kinds]


def large(seed: int) -> Case:
    """Draw a training step on 100,000 ranks."""
    return _step_case(generator(seed, "large"), 100_000, 40, "halving_doubling", 0.02, 0.5)


# -- the slowest, efficiency -----------------------------------------------------------------------


def jitters(seed: int) -> list[Case]:
    """Draw measured times of a step, for the slowest of several ranks."""
    from manyhands.simulate.survival import slowest

    draw, cases = generator(seed, "jitter"), []
    for p in (1, 2, 16, int(draw.integers(100, 200)), 1024):
        # a clock has ticks, so some times are equal
        late = np.round(0.1 * draw.exponential(size=int(draw.integers(20, 60))), 2)
        times = (0.1 * 10 ** draw.uniform(0, 1) * (1 + late)).tolist()
        once = sorted(set(times))
        wrong = {
            "each once": slowest(p, 0, once) * float(np.mean(once)),
            "not sorted": float(np.diff((np.arange(len(times) + 1) / len(times)) ** p) @ times),
            "mean of times": float(np.mean(times)),
            "largest measured": max(times),
            "normal": float(np.mean(times) + np.std(times) * np.sqrt(2 * np.log(p))),
            "in means": slowest(p, 0, times),
            "fastest": float(np.mean(times) * slowest(p, 0, [1 / t for t in times]) ** -1),
        }
        right = slowest(p, 0, times) * float(np.mean(times))
        cases.append(
            Case(f"p = {p}, {len(times)} times", [p, times], right, wrong, "slowest other")
        )
    return cases


def pairs(seed: int) -> list[Case]:
    """Draw pairs of (ranks, images per second), for the efficiency."""
    draw, cases = generator(seed, "pairs"), []
    for base in (1, 8, 4):
        many, base_images = base * 2 ** int(draw.integers(2, 7)), base * draw.uniform(50, 300)
        images = base_images * many / base * draw.uniform(0.5, 0.95)
        right = images / many / (base_images / base)
        wrong = {
            "speedup": images / base_images,
            "base of one": images / base_images / many,
            "upside down": 1 / right,
            "per cent": 100 * right,
        }
        cases.append(
            Case(
                f"{base} and {many} ranks",
                [(base, base_images), (many, images)],
                right,
                wrong,
                "efficiency other",
            )
        )
    return cases


# -- pipelines -------------------------------------------------------------------------------------


def _seconds_of(seconds: dict[str, list[float]], event: Any) -> float:
    return seconds[event.kind][event.stage]


def pipelines(seed: int) -> list[Case]:
    """Draw pipelines, as seconds of each stage and micro-batches."""
    from manyhands.simulate import pipeline

    draw, cases = generator(seed, "pipelines"), []
    for stages, micro_batches in (
        (1, 3),
        (4, 1),
        (4, 8),
        (int(draw.integers(3, 7)), int(draw.integers(3, 12))),
    ):
        forward, backward = (draw.uniform(0.01, 0.05, stages).tolist() for _ in "FB")
        # the slowest stage must differ between the two waves
        if np.argmax(forward) == np.argmax(backward):
            backward = np.roll(backward, 1).tolist()
        seconds = {"F": forward, "B": backward}
        spans = pipeline.play(
            pipeline.gpipe(stages, micro_batches),
            partial(_seconds_of, seconds),
        )
        both = [a + b for a, b in zip(forward, backward, strict=True)]
        turns = micro_batches + stages - 1
        wrong = {
            "no pipeline": micro_batches * sum(both),
            "all as the dearest": turns * (max(forward) + max(backward)),
            "all as the mean": turns * sum(both) / stages,
            "forward only": sum(forward) + (micro_batches - 1) * max(forward),
            "one too many": sum(both) + micro_batches * (max(forward) + max(backward)),
            "together": sum(both) + (micro_batches - 1) * max(both),
            "no bubble": micro_batches * max(both),
        }
        cases.append(
            Case(
                f"{stages} stages, {micro_batches} micro-batches",
                [forward, backward, micro_batches],
                pipeline.finish_s(spans),
                wrong,
                "pipeline other",
            )
        )
    return cases


# -- tables ----------------------------------------------------------------------------------------


def _table(
    draw: np.random.Generator, least: float = 0.3, most: float = 2.0
) -> tuple[Rows, int, Callable[[int], float], float, float]:
    """Draw (rows, batch, network_s).

    The images per second follow the model in the first two rows only, as real ones do.
    """
    from manyhands import simulate

    batch, base, network, n = (
        int(draw.choice([32, 64, 256])),
        int(draw.choice([1, 4, 8])),
        link(draw),
        1e8,
    )
    network_s = partial(_network_s, simulate.ring_s, n, network)
    compute_s, factor = 3 * network_s(64) * draw.uniform(1, 2), draw.uniform(least, most)
    rows = []
    for turn, ranks in enumerate(base * 2**k for k in (0, 1, 3, 5, 7)):
        off = 1 if turn < 2 else draw.uniform(0.9, 0.97)
        rows.append((ranks, ranks * batch / (compute_s + factor * network_s(ranks)) * off))
    return rows, batch, network_s, compute_s, factor


def _network_s(
    ring_s: Callable[..., Any], n_bytes: float, one: tuple[float, float], ranks: int
) -> float:
    """Return the seconds of the gradients' all-reduce on this many ranks.

    They follow from published numbers.
    """
    return float(ring_s(ranks, n_bytes, *one))


def _line(
    rows: Rows, batch: int, network_s: Callable[[int], float], per_rank: bool = True
) -> list[float]:
    t = [batch * (ranks if per_rank else 1) / images for ranks, images in rows]
    slope, start = np.polyfit([network_s(ranks) for ranks, _ in rows], t, 1)
    return [float(start), float(slope)]


def tables(seed: int) -> list[Case]:
    """Draw tables of measurements, from which two constants follow."""
    draw, cases = generator(seed, "tables"), []
    # noise of the rows may give a factor below 0
    for factors in ((0.3, 2.0), (0.3, 2.0), (-0.1, -0.03)):
        rows, batch, network_s, compute_s, factor = _table(draw, *factors)
        first = _line(rows[:2], batch, network_s)
        wrong = {
            "all rows": _line(rows, batch, network_s),
            "ends": _line([rows[0], rows[-1]], batch, network_s),
            "batch of all": _line(rows[:2], batch, network_s, per_rank=False),
            "turned": first[::-1],
            "cut off": [first[0], float(np.clip(first[1], 0, 1))],
            "below 0": [first[0], max(0.0, first[1])],
            "last rows": _line(rows[-2:], batch, network_s),
            "images": np.polyfit([network_s(p) for p, _ in rows[:2]], [x for _, x in rows[:2]], 1)[
                ::-1
            ].tolist(),
        }
        cases.append(
            Case(
                f"a table of {len(rows)} rows",
                [rows, batch, network_s],
                [compute_s, factor],
                wrong,
                "constants other",
            )
        )
    return cases


def calibrated(rows: Rows, batch: int, network_s: Callable[[int], float]) -> tuple[float, ...]:
    """Return (compute_s, factor) from the first two rows, which `predict_rest` is given."""
    return tuple(_line(rows[:2], batch, network_s))


def rests(seed: int) -> list[Case]:
    """Draw tables of measurements, whose other rows are to be predicted."""
    draw, cases = generator(seed, "rests"), []
    for _ in range(3):
        rows, batch, network_s, compute_s, factor = _table(draw)
        seconds = [compute_s + factor * network_s(ranks) for ranks, _ in rows]
        right = [ranks * batch / t for (ranks, _), t in zip(rows, seconds, strict=True)][2:]
        wrong = {
            "seconds": seconds[2:],
            "one rank": [batch / t for t in seconds[2:]],
            "table copied": [x for _, x in rows[2:]],
            "perfect": [ranks / rows[0][0] * rows[0][1] for ranks, _ in rows[2:]],
            "rounded": [float(round(images)) for images in right],
            "no factor": [ranks * batch / (compute_s + network_s(ranks)) for ranks, _ in rows[2:]],
        }
        cases.append(
            Case(
                f"a table of {len(rows)} rows",
                [rows, batch, network_s, calibrated],
                right,
                wrong,
                "rest other",
            )
        )
    return cases
