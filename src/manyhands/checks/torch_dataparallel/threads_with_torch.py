"""Experiments of unit 03's checks that need torch: replicas in threads.

There are no ranks here (see `with_torch`). Nothing is measured in seconds. Instead, replicas meet
at a barrier, which breaks after MEET_S if they reach it one after the other.
"""

from __future__ import annotations

import itertools
import random
import re
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from manyhands.checks.torch_dataparallel.diagnosis import case
from manyhands.checks.torch_dataparallel.with_torch import numbers, to_plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from manyhands.checks.torch_dataparallel.answers import Case

# long, for a crowded machine: only answers that are wrong wait so long
MEET_S, HANDS_IN_S, LATE_S = 10, 3, 0.3


@contextmanager
def silent_threads() -> Iterator[None]:
    """Print nothing about the exceptions that end threads, since the check judges them."""
    before, threading.excepthook = threading.excepthook, lambda args: None
    try:
        yield
    finally:
        threading.excepthook = before


class ScriptedReplica(nn.Module):
    """A replica that calls `act` when it has met the others at the barrier (if there is one)."""

    def __init__(self, act: Callable[..., Any], barrier: threading.Barrier | None = None) -> None:
        super().__init__()
        self.act, self.barrier = act, barrier

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Wait for the others, and return what `act` returns."""
        if self.barrier is not None:
            self.barrier.wait()
        return self.act(*args, **kwargs)


def _run(
    function: Callable[..., Any],
    acts: Sequence[Callable[..., Any]],
    inputs: Sequence[tuple[Any, ...]] | None = None,
    kwargs: Sequence[dict[str, Any]] | None = None,
    barrier: threading.Barrier | None = None,
) -> Any:
    k = len(acts)
    with silent_threads():
        return function(
            [ScriptedReplica(act, barrier) for act in acts],
            inputs or [(torch.zeros(1),)] * k,
            kwargs or [{}] * k,
            ["cpu"] * k,
        )


def apply_threads(function: Callable[..., Any], seed: int) -> list[Case]:
    """Let all replicas meet at a barrier, which they can only do in threads."""
    draw = random.Random(seed + 14)
    k = draw.randint(3, 4)
    barrier, met = threading.Barrier(k, timeout=MEET_S), []

    def act(x: Any) -> Any:
        met.append(float(x))
        return x

    given = numbers(draw, k)
    try:
        _run(function, [act] * k, [(number,) for number in given], barrier=barrier)
        broken = barrier.broken
    except NotImplementedError:
        raise
    except Exception:
        if not barrier.broken:
            raise
        broken = True
    got = [not broken, sorted(met)]
    return [
        case(
            got, [True, sorted(given.tolist())], {"one after the other": [False, sorted(met)]}, k=k
        )
    ]


def apply_results(function: Callable[..., Any], seed: int) -> list[Case]:
    """Let the last replica be ready first.

    Each one waits for the next, but not for long, so that answers without threads end, too.
    """
    draw, k = random.Random(seed + 15), 3
    done = [threading.Event() for _ in range(k + 1)]
    done[k].set()

    def make(i: int) -> Callable[..., Any]:
        def act(x: Any, y: Any, *, shift: float = 0.0, flag: bool) -> dict[str, Any]:
            done[i + 1].wait(HANDS_IN_S)
            time.sleep(0.02 * (i < k - 1))  # the other one has still to hand in what it has made
            done[i].set()
            return {"row": (i + 1) * x - y + shift, "flag": flag}

        return act

    inputs = [(numbers(draw, 2), numbers(draw, 2)) for _ in range(k)]
    kwargs = [
        {"flag": bool(i % 2)} if i else {"flag": True, "shift": float(draw.randint(1, 9))}
        for i in range(k)
    ]
    got = _run(function, [make(i) for i in range(k)], inputs, kwargs)
    right = [
        {"row": (i + 1) * x - y + more.get("shift", 0.0), "flag": more["flag"]}
        for i, ((x, y), more) in enumerate(zip(inputs, kwargs, strict=True))
    ]
    results = to_plain(list(got)) if isinstance(got, (list, tuple)) else to_plain(got)
    orders = [
        ("in order of completion", to_plain(list(order))) for order in itertools.permutations(right)
    ]
    return [
        case(
            results,
            to_plain(right),
            [*orders, ("nothing", to_plain([None] * k)), ("nothing", to_plain([]))],
        )
    ]


def apply_modes(function: Callable[..., Any], seed: int) -> list[Case]:
    """Compare autograd's and autocast's modes in the replicas with those of the caller."""
    draw, cases = random.Random(seed + 16), []
    modes: dict[str, Callable[[], Any]] = {
        "plain": nullcontext,
        "no_grad": torch.no_grad,
        "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
        "autocast, float16": lambda: torch.autocast("cpu", torch.float16),
    }

    def state(*_: object) -> list[Any]:
        return [
            torch.is_grad_enabled(),
            torch.is_autocast_enabled("cpu"),
            str(torch.get_autocast_dtype("cpu")).split(".")[1],
        ]

    for mode in draw.sample(list(modes), len(modes)):
        with modes[mode]():
            here, k = state(), draw.randint(2, 4)
            got = [
                list(modes_there)
                for modes_there in _run(function, [state] * k)
                if modes_there is not None
            ]
        fresh = [True, False, "bfloat16"]
        wrong = {
            name: [[fresh[j] if j in lost else part for j, part in enumerate(here)]] * k
            for name, lost in (
                ("grad mode", [0]),
                ("dtype", [2]),
                ("autocast", [1, 2]),
                ("autocast ", [1]),
                ("nothing", [0, 1, 2]),
            )
        }
        cases.append(
            case(
                got,
                [here] * k,
                wrong,
                mode=mode,
                expected=here,
                shown=next((modes_there for modes_there in got if modes_there != here), got[:1]),
            )
        )
    return cases


def apply_errors(function: Callable[..., Any], seed: int) -> list[Case]:
    """Let every replica after the first failing one be slow.

    It is noted whether the caller has waited for it.
    """
    draw, cases = random.Random(seed + 17), []
    for bad in ([draw.randint(1, 2)], sorted(draw.sample(range(4), 2))):
        word, caught = f"no such word: {draw.randint(100, 999)}", threading.Event()
        waited_for: list[bool] = []

        def act(
            i: int,
            bad: list[int] = bad,
            word: str = word,
            caught: threading.Event = caught,
            waited_for: list[bool] = waited_for,
        ) -> int:
            if i in bad:
                # letters, so that a number in the text can only be the replica's
                raise LookupError(f"{word}.{'abcd'[i]}")
            if i > bad[0]:
                waited_for.append(not caught.wait(LATE_S))
            return i

        got, right = (
            _caught(function, act, f"{word}.{'abcd'[bad[0]]}"),
            ["raised", bad[0], True, word],
        )
        caught.set()
        if got == right and waited_for != [True] * sum(i not in bad for i in range(bad[0], 4)):
            got = ["too early"]
        wrong = {
            "too early": ["too early"],
            "swallowed": ["no error", None, False, word],
            "no number": ["raised", None, True, word],
            "original lost": ["raised", bad[0], False, word],
            "original lost ": ["raised", None, False, word],
            "not the first": ["raised", bad[-1], False, word],
        }
        cases.append(case(got, right, wrong, bad=bad[0]))
    return cases


def _caught(function: Callable[..., Any], act: Callable[..., Any], original: str) -> list[Any]:
    """Return what the caller's exception says about the replica's.

    That is [raised or not, the number of the named replica, whether the original exception is kept,
    a word of it].
    """
    word = original.rpartition(".")[0]
    try:
        _run(function, [act] * 4, [(i,) for i in range(4)])
    except NotImplementedError:
        raise
    except Exception as error:  # noqa: BLE001 - a learner's function may raise anything
        named, there = re.search(r"replica\D{0,3}(\d+)", _text(error)), False
        chain: list[BaseException | None] = [error]
        while chain[-1] is not None and len(chain) < 6:
            there |= isinstance(chain[-1], LookupError) and original in _text(chain[-1])
            chain.append(chain[-1].__cause__ or chain[-1].__context__)
        return ["raised", int(named[1]) if named else None, there, word]
    return ["no error", None, False, word]


def _text(error: Any) -> str:
    return "\n".join([str(error), *getattr(error, "__notes__", [])])
