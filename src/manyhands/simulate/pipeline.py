"""One step of a pipeline, simulated.

It tells who works in which order, when each event ends, the bubble, and what is kept.

An `Event` is the work of one stage on one micro-batch: "F" forward, "B" backward; where backward is
cut in two, "I" (the gradient of the stage's input) and "W" (the gradients of its weights). An
*order* lists the events of one rank; several stages may lie on a rank.

    orders = one_f_one_b(stages=4, micro_batches=8)
    spans = play(orders, lambda event: {"F": 0.02, "B": 0.04}[event.kind])
    idle(spans)                                                       # 0.273: the bubble
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from manyhands.simulate.checked_input import check_whole


class Event(NamedTuple):
    """A forward ("F") or a part of a backward of one micro-batch on one stage."""

    kind: str
    micro_batch: int
    stage: int


class Span(NamedTuple):
    """An event of a schedule that was played, with its start and its end."""

    kind: str
    micro_batch: int
    stage: int
    start_s: float  # or an array, as `stop_s`: see `play`
    stop_s: float


Orders = list[list[Event]]  # of each rank
_Result = tuple[str, int, int]  # what an event gives: "F", "G" or "W", its micro-batch, its stage
_Part = tuple[str, Event, _Result, Iterable[_Result]]
_KIND_NAMES = {"F": "forward", "B": "backward", "I": "backward (input)", "W": "backward (weights)"}


class Stuck(ValueError):  # noqa: N818 - learners catch it by this name
    """These orders never come to an end: each rank waits for another one."""


def bubble(stages: int, micro_batches: int, chunks: int = 1) -> float:
    """The part of a step in which a rank waits.

    All stages cost the same, and messages cost nothing.

    `stages` ranks; `chunks` stages on each of them: with more than one, `micro_batches` is a
    multiple of `stages`. (Narayanan et al. 2021 divide by the busy time instead of the whole: their
    number for one chunk is (stages - 1) / micro_batches.)
    """
    _check(stages=stages, micro_batches=micro_batches, chunks=chunks)
    return (stages - 1) / (chunks * micro_batches + stages - 1)


def gpipe(stages: int, micro_batches: int) -> Orders:
    """All forwards, then all backwards: the orders of all ranks.

    Huang et al. 2019, GPipe, arXiv 1811.06965.
    """
    _check(stages=stages, micro_batches=micro_batches)
    return [
        [Event(kind, m, rank) for kind in "FB" for m in range(micro_batches)]
        for rank in range(stages)
    ]


def one_f_one_b(stages: int, micro_batches: int) -> Orders:
    """After a warm-up one forward and one backward in turn: the orders of all ranks.

    Narayanan et al. 2019, PipeDream, SOSP, whose weights are stale; flushed after every step, as
    here, it is PipeDream-Flush of Narayanan et al. 2021, arXiv 2006.09503.
    """
    _check(stages=stages, micro_batches=micro_batches)
    orders = []
    for rank in range(stages):
        ahead = min(micro_batches, stages - 1 - rank)
        order = [Event("F", m, rank) for m in range(ahead)]
        for m in range(micro_batches):
            order += [Event("F", m + ahead, rank)] if m + ahead < micro_batches else []
            order.append(Event("B", m, rank))
        orders.append(order)
    return orders


def interleaved(stages: int, micro_batches: int, chunks: int) -> Orders:
    """1F1B with `chunks` blocks of layers on each rank: the orders of all ranks.

    Stage s is on rank s modulo `stages`.

    The bubble is `chunks` times smaller, and so many times as many messages pass. `micro_batches`
    must be a multiple of `stages`: ValueError. Narayanan et al. 2021, arXiv 2006.09503, for the
    flush; 2104.04473, section 2.2, for this.
    """
    _check(stages=stages, micro_batches=micro_batches, chunks=chunks)
    if micro_batches % stages:
        raise ValueError(
            f"{micro_batches} micro-batches on {stages} ranks: interleaved needs a multiple"
        )
    total = micro_batches * chunks

    def event(kind: str, rank: int, k: int) -> Event:
        turn, chunk = k // (stages * chunks), k // stages % chunks
        chunk = chunk if kind == "F" else chunks - 1 - chunk
        return Event(kind, turn * stages + k % stages, chunk * stages + rank)

    orders = []
    for rank in range(stages):
        ahead = (
            total
            if chunks > 1 and micro_batches == stages
            else 2 * (stages - rank - 1) + (chunks - 1) * stages
        )
        ahead = min(total, ahead if chunks > 1 else stages - rank - 1)
        order = [event("F", rank, k) for k in range(ahead)]
        for k in range(total):
            order += [event("F", rank, k + ahead)] if k + ahead < total else []
            order.append(event("B", rank, k))
        orders.append(order)
    return orders


def _check(**counts: int) -> None:
    for field, count in counts.items():
        check_whole(field, count)


def read_orders(pipeline_order: Mapping[int, Iterable[object]]) -> Orders:
    """The orders that a schedule of torch.distributed.pipelining prints, as events.

    It prints {rank: ["4F0", None, ...]}.
    """
    action_format = re.compile(r"(\d+)([FBIW])(\d+)")
    return [
        [
            Event(kind, int(m), int(stage))
            for action in pipeline_order[rank]
            for stage, kind, m in action_format.findall(str(action))
        ]
        for rank in sorted(pipeline_order)
    ]


# --- when everything happens ----------------------------------------------------------------------


def play(
    orders: Sequence[Sequence[Event]],
    seconds: Callable[[Event], Any],
    message_s: float | Sequence[float] = 0.0,
    blocking: bool = False,
) -> list[list[Span]]:
    """When each event begins and ends: for each rank a list of `Span`, in its order.

    `seconds(event)` is how long it takes, a number, or an array: many pipelines of the same orders
    at once, one in each place of it. A message between ranks arrives `message_s` after the event
    that it comes from; this is one number, or a list with one for each border between two stages.
    With `blocking` a send ends when the other side has taken the message (a rendezvous); else a
    rank goes on at once. `Stuck` if ranks wait for each other, and who waits for what.
    """
    rank_of = {event.stage: rank for rank, order in enumerate(orders) for event in order}
    todo = [
        [step for event in order for step in _steps(event, rank_of, blocking)] for order in orders
    ]
    run, places, clocks = (
        _Run(seconds, message_s, blocking, len(orders)),
        [0] * len(orders),
        [0.0] * len(orders),
    )
    going = True
    while going:
        going = False
        for rank, steps in enumerate(todo):
            while places[rank] < len(steps):
                now_s = run.step(rank, *steps[places[rank]], clocks[rank])
                if now_s is None:
                    break
                clocks[rank], places[rank], going = now_s, places[rank] + 1, True
    waiting = {
        rank: steps[place]
        for rank, (steps, place) in enumerate(zip(todo, places, strict=True))
        if place < len(steps)
    }
    if waiting:
        raise Stuck(
            "\n".join(
                _describe_wait(rank, what, event, rank_of)
                for rank, (what, event, *_) in waiting.items()
            )
        )
    return run.spans


def _steps(event: Event, rank_of: Mapping[int, int], blocking: bool) -> list[_Part]:
    """An event as what its rank does, one after the other.

    Each step is (what, event, result, what this rank must have done).
    """
    kind, m, stage = event
    if kind == "W":
        return [("work", event, ("W", m, stage), {("G", m, stage)})]
    # an activation, or the gradient of a stage's input
    here, name = rank_of[stage], "F" if kind == "F" else "G"
    source, target = (stage - 1, stage + 1) if kind == "F" else (stage + 1, stage - 1)
    comes, goes = (rank_of.get(other, here) != here for other in (source, target))
    needs = set() if kind == "F" else {("F", m, stage)}
    if source in rank_of and not comes:
        needs.add((name, m, source))
    steps: list[_Part] = [("take", event, (name, m, source), ())] if comes else []
    steps.append(("work", event, (name, m, stage), needs))
    if goes:
        steps += [
            (what, event, (name, m, stage), ())
            for what in (("send", "answer") if blocking else ("send",))
        ]
    return steps


class _Run:
    """What has been computed, sent and taken, and when."""

    def __init__(
        self,
        seconds: Callable[[Event], Any],
        message_s: float | Sequence[float],
        blocking: bool,
        ranks: int,
    ) -> None:
        self._seconds, self._message_s, self._blocking = seconds, message_s, blocking
        # what has been sent, and when; what has been taken, and when
        self._sent: dict[_Result, Any] = {}
        self._taken: dict[_Result, Any] = {}
        self._done: set[_Result] = set()
        self.spans: list[list[Span]] = [[] for _ in range(ranks)]

    def _border_s(self, name: str, m: int, stage: int) -> float:
        """The time of a message that this stage sends.

        Forwards go over the border behind it, backwards over the one ahead.
        """
        message_s: Any = self._message_s
        border_s: float = (
            message_s if np.ndim(message_s) == 0 else message_s[stage if name == "F" else stage - 1]
        )
        return border_s

    def step(
        self,
        rank: int,
        what: str,
        event: Event,
        result: _Result,
        needs: Iterable[_Result],
        now_s: Any,
    ) -> Any:
        """The time after this step, or None where it must wait."""
        if what == "take":
            if result not in self._sent:
                return None
            sent_s = _maximum(self._sent[result], now_s if self._blocking else 0.0)
            self._taken[result] = _maximum(now_s, sent_s + self._border_s(*result))
            return self._taken[result]
        if what == "send":
            self._sent[result] = now_s
            return now_s
        if what == "answer":
            return None if result not in self._taken else _maximum(now_s, self._taken[result])
        if not self._done.issuperset(needs):
            return None
        stop_s = now_s + self._seconds(event)
        self._done.add(result)
        self.spans[rank].append(Span(*event, now_s, stop_s))
        return stop_s


def _maximum(a: Any, b: Any) -> Any:
    return np.maximum(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else max(a, b)


def _describe_wait(rank: int, what: str, event: Event, rank_of: Mapping[int, int]) -> str:
    kind, m, stage = event
    done = f"{_KIND_NAMES[kind]} of micro-batch {m} on stage {stage}"
    ahead, behind = (stage - 1, stage + 1) if kind == "F" else (stage + 1, stage - 1)
    if what == "take":
        return (
            f"rank {rank} waits, before {done}, for what stage {ahead} on rank {rank_of[ahead]} "
            "sends"
        )
    if what == "answer":
        return f"rank {rank} waits, after {done}, until rank {rank_of[behind]} takes what it sends"
    return f"rank {rank} cannot begin {done}: on its own rank another event must come first"


def finish_s(spans: Sequence[Sequence[Span]]) -> Any:
    """When the last rank is done."""
    return max(span.stop_s for row in spans for span in row)


def idle(spans: Sequence[Sequence[Span]]) -> Any:
    """The bubble: the part of all ranks' time in which they do nothing.

    The time is that from the first event to the last.
    """
    start_s = min(span.start_s for row in spans for span in row)
    busy_s = sum(span.stop_s - span.start_s for row in spans for span in row)
    return 1 - busy_s / len(spans) / (finish_s(spans) - start_s)


def alive(order: Iterable[Event]) -> int:
    """The largest number of forwards of one rank whose backward is not done.

    Its memory must hold what these need.
    """
    most = now = 0
    for event in order:
        now += {"F": 1, "I": 0}.get(event.kind, -1)
        most = max(most, now)
    return most


# --- where to cut ---------------------------------------------------------------------------------


def cut(costs: Sequence[float], stages: int) -> list[slice[int, int, None]]:
    """Cut layers into `stages` blocks of neighbours: a list of slices.

    The most expensive block is as cheap as can be.

    `costs`: of each layer. ValueError if there are fewer layers than stages.
    """
    if not 1 <= stages <= len(costs):
        raise ValueError(f"{len(costs)} layers in {stages} stages: each stage needs a layer")
    # layers used -> (cost of the dearest block, blocks)
    best: dict[int, tuple[float, list[slice[int, int, None]]]] = {0: (0.0, [])}
    for left in reversed(range(stages)):
        best = {
            stop: min(
                (
                    (max(worst, sum(costs[start:stop])), [*blocks, slice(start, stop)])
                    for start, (worst, blocks) in best.items()
                    if start < stop
                ),
                key=lambda pair: pair[0],
            )
            for stop in range(stages - left, len(costs) - left + 1)
        }
    return best[len(costs)][1]
