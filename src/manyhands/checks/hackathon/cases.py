"""What the checks of unit 20 ask, drawn from the seed.

These are entries to price, numbers to pack and links, with likely mistakes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HEAD_BYTES, RANKS = 64, 4


@dataclass
class Case:
    """One question, with its arguments, the right answer, and what mistakes give.

    `wrong` is {mistake: the answer that it gives}.
    """

    question: str
    arguments: list[Any]
    right: float
    wrong: dict[str, float] = field(default_factory=dict)


def generator(seed: int, name: str) -> np.random.Generator:
    """Return the generator of this check, made from the seed and its name."""
    return np.random.default_rng([seed % 2**32, *name.encode()])


def link(draw: np.random.Generator, apart: float = 0.2) -> tuple[float, ...]:
    """Draw (rate_mbit, delay_ms).

    They differ from the challenge's by at most the fraction `apart`.
    """
    return tuple(
        round(draw.uniform(usual * (1 - apart), usual * (1 + apart)), 2) for usual in (10, 5)
    )


def message_s(n_bytes: float, rate_mbit: float, delay_ms: float) -> float:
    """Return the seconds of a message as the judge's network counts them."""
    return (n_bytes + HEAD_BYTES) / (rate_mbit * 1e6 / 8) + delay_ms / 1e3


def all_reduce_s(n_bytes: float, ranks: int, one: Callable[[float], float]) -> float:
    """Return the seconds of the ring that the judge counts.

    `one` returns the seconds of a message.
    """
    return in_rounds_s("ring", ranks, n_bytes, one)


def in_rounds_s(pattern: str, ranks: int, n_bytes: float, one: Callable[[float], float]) -> float:
    """Return the seconds of a collective that runs in rounds.

    `one` returns the seconds of a message.
    """
    from manyhands.simulate import rounds

    return sum(count * one(size) for count, size in rounds(pattern, ranks, n_bytes))


def baseline_s(
    rate_mbit: float,
    delay_ms: float,
    gradient_s: float = 0.01,
    steps: int = 150,
    sizes: Sequence[int] = (65536, 2048, 20480, 40),
) -> float:
    """Return the seconds of the challenge's baseline, which makes four all-reduces per step."""
    one_message_s = on(rate_mbit, delay_ms)
    return steps * (gradient_s + sum(all_reduce_s(n, RANKS, one_message_s) for n in sizes))


def on(rate_mbit: float, delay_ms: float) -> Callable[[float], float]:
    """Return the function that gives the seconds of a message on this link."""
    return lambda n_bytes: message_s(n_bytes, rate_mbit, delay_ms)


def messages(seed: int) -> list[Case]:
    """Draw messages to price."""
    draw, cases = generator(seed, "messages"), []
    for n in (0, int(draw.integers(100, 1000)), int(draw.integers(10**4, 10**6))):
        rate, delay = link(draw)
        right = message_s(n, rate, delay)
        wrong = {
            "bits": (n + 64) / (rate * 1e6) + delay / 1e3,
            "delay": (n + 64) / (rate * 1e6 / 8) + delay,
            "no head": message_s(n - 64, rate, delay),
            "no delay": message_s(n, rate, 0),
        }
        cases.append(Case(f"{n} bytes, {rate} Mbit/s, {delay} ms", [n, rate, delay], right, wrong))
    return cases


def entries(seed: int) -> list[Case]:
    """Draw entries to price, which synchronise once in several steps."""
    draw = generator(seed, "entries")
    cases: list[Case] = []
    for ranks, every in (
        (4, 1),
        (4, int(draw.integers(3, 20))),
        (int(draw.integers(5, 9)), int(draw.integers(2, 5))),
    ):
        # gradients after the last all-reduce
        rest = int(draw.integers(1, every)) if every > 1 else 0
        steps = every * int(draw.integers(9, 30)) + rest
        tensors = [int(n) * 4 for n in draw.integers(500, 10**4, 1 + len(cases))]
        rate, delay = link(draw)
        gradient_s, one_message_s = round(draw.uniform(0.005, 0.05), 3), on(rate, delay)
        computing, times = steps * gradient_s, steps // every
        rounds = 2 * (ranks - 1)
        sent = sum(all_reduce_s(n, ranks, one_message_s) for n in tensors)
        fluid = sum(
            rounds * (one_message_s(n / ranks) - one_message_s(0)) + one_message_s(0)
            for n in tensors
        )
        wrong = {
            "each step": steps * (gradient_s + sent),
            "no gradients": times * sent,
            "not cut": computing + times * sum(rounds * one_message_s(n) for n in tensors),
            "half the ring": computing + times * sent / 2,
            "one tensor": computing + times * all_reduce_s(sum(tensors), ranks, one_message_s),
            "p messages": computing
            + times * sum(2 * ranks * one_message_s(n / ranks) for n in tensors),
            "part of a time": computing + steps / every * sent,
            "four ranks": computing
            + times * sum(all_reduce_s(n, RANKS, one_message_s) for n in tensors),
            "head once": computing + times * fluid,
        }
        cases.append(
            Case(
                f"{steps} steps, every {every}, {len(tensors)} tensors, {ranks} ranks",
                [steps, every, tensors, ranks, gradient_s, one_message_s],
                computing + times * sent,
                wrong,
            )
        )
    return cases


def gathers(seed: int) -> list[Case]:
    """Draw entries to price, whose ranks gather a message of each rank in every step."""
    draw, cases = generator(seed, "gathers"), []
    for ranks in (4, int(draw.integers(5, 9))):
        steps, n, gradient_s = (
            int(draw.integers(50, 200)),
            int(draw.integers(200, 5000)) * 4,
            round(draw.uniform(0.005, 0.05), 3),
        )
        one_message_s = on(*link(draw))
        right = steps * (gradient_s + in_rounds_s("all-gather", ranks, ranks * n, one_message_s))
        wrong = {
            "all-reduce": steps * (gradient_s + all_reduce_s(n, ranks, one_message_s)),
            "p messages": steps * (gradient_s + ranks * one_message_s(n)),
            "cut": steps * (gradient_s + (ranks - 1) * one_message_s(n / ranks)),
            "no gradients": right - steps * gradient_s,
            "four ranks": steps * (gradient_s + (RANKS - 1) * one_message_s(n)),
            "head once": steps
            * (gradient_s + (ranks - 1) * (one_message_s(n) - one_message_s(0)) + one_message_s(0)),
        }
        cases.append(
            Case(
                f"{steps} steps, {n} bytes, {ranks} ranks",
                [steps, n, ranks, gradient_s, one_message_s],
                right,
                wrong,
            )
        )
    return cases


def kept(seed: int, size: int) -> tuple[np.ndarray, int]:
    """Draw (numbers of which most are small, how many to send).

    No two have the same magnitude, and the largest have either sign.
    """
    draw = generator(seed, f"kept {size}")
    numbers = np.sort(np.exp(draw.normal(0, 1.5, size)))[::-1] * np.linspace(1.2, 1.0, size)
    return draw.permutation(numbers * draw.choice([-1, 1], size)).astype(np.float32), int(
        draw.integers(40, 80)
    )
