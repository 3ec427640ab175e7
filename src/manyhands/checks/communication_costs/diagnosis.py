"""How the checks of unit 05 judge answers, and which mistakes they recognise.

Every `..._problem` returns None or the details of a FAIL line, which are `rank`, `expected`, `got`
and the likely `mistake`.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from manyhands.checks.communication_costs import cases
from manyhands.checks.communication_costs.messages import MISTAKES
from manyhands.checks.in_kernel import NAN, number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike

    from manyhands.checks.communication_costs.answers import PingPongCase
    from manyhands.checks.communication_costs.cases import Backward
    from manyhands.checks.report import Problem
    from manyhands.simulate import Link

# measurements of one link, and in how many at least each of the two bands holds the truth; right
# bands fail once in 10,000 times
BANDS, HELD = 16, 7
WIDTH = (0.8, 1.3)  # of our own width
# the time with the chosen number of pieces may be longer than the best by this part, because a
# rounded number is 2 % off at most
PIECES = 0.03
BEST = 0.08  # the time of the chosen buckets may be longer than the best by this part


def say(
    mistake: str, expected: Any = None, got: Any = None, rank: int | None = None, **facts: Any
) -> Problem:
    """Return the details of a FAIL line, whose message is filled with these facts."""
    return {
        "rank": rank,
        "expected": expected,
        "got": got,
        "mistake": MISTAKES[mistake].format(**facts),
    }


def pair(answer: Any) -> tuple[float, float]:
    """Return a pair of numbers, which are NaN if the answer is no pair."""
    try:
        first, other = answer
    except (TypeError, ValueError):
        return NAN, NAN
    return number(first), number(other)


def two_pairs(answer: Any) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return two pairs of numbers, which are NaN if the answer is something else."""
    first, other = (
        answer
        if isinstance(answer, (tuple, list, np.ndarray)) and len(answer) == 2
        else (None, None)
    )
    return pair(first), pair(other)


def near(got: ArrayLike, expected: ArrayLike, rtol: float = 1e-6) -> bool:
    """Whether two numbers or arrays have the same shape and agree to `rtol`."""
    return (
        bool(np.allclose(got, expected, rtol=rtol, atol=0))
        if np.shape(got) == np.shape(expected)
        else False
    )


def _named(got: ArrayLike, wrong: Mapping[str, ArrayLike], rtol: float = 1e-6) -> str | None:
    """Return the first mistake of `wrong`, {mistake: value}, whose value this is, or None."""
    return next((name for name, value in wrong.items() if near(got, value, rtol)), None)


# ------------------------------------------------------------------ the ping-pong


def messages_problem(by_rank: Sequence[PingPongCase]) -> Problem | None:
    """Return the problem with one case, as all ranks report it.

    Rank 0 and its peer exchange whole messages, one each way in every round, and no other rank
    does.
    """
    case = by_rank[0]
    count, n_bytes, peer = case["warm_up"] + case["repeats"], case["n_bytes"], case["peer"]
    for rank, answer in enumerate(by_rank):
        if answer["others"]:
            return say("other calls", "send and recv", ", ".join(answer["others"]), rank)
        other = {0: peer, peer: 0}.get(rank)
        if other is None:
            if answer["messages"]:
                return say(
                    "not invited",
                    "no messages",
                    f"{len(answer['messages'])} messages",
                    rank,
                    peer=peer,
                )
            continue
        sent, came = (
            [message for message in answer["messages"] if message[0] == call]
            for call in ("send", "recv")
        )
        wrong = [message for message in answer["messages"] if message[1] != other]
        if wrong:
            return say(
                "wrong peer", f"with rank {other}", f"with rank {wrong[0][1]}", rank, peer=peer
            )
        size = next(
            (message[2] for message in answer["messages"] if message[2] != n_bytes), n_bytes
        )
        if size != n_bytes:
            return say(
                "four bytes" if size in (4 * n_bytes, n_bytes // 4 * 4) else "wrong size",
                f"{n_bytes} bytes",
                f"{size} bytes",
                rank,
            )
        if (len(sent), len(came)) != (count, count):
            name = (
                "no warm-up"
                if len(sent) == len(came) == case["repeats"]
                else "one way"
                if 0 in (len(sent), len(came))
                else "rounds"
            )
            return say(
                name,
                f"{count} sent, {count} received",
                f"{len(sent)} sent, {len(came)} received",
                rank,
                warm_up=case["warm_up"],
                repeats=case["repeats"],
            )
    return None


def times_problem(case: PingPongCase) -> Problem | None:
    """Return the problem if rank 0 does not return half of each round trip, without the warm-up."""
    got, rounds_s, warm_up = case["reported"], np.array(case["rounds_s"]), case["warm_up"]
    right = rounds_s[warm_up:] / 2
    if got is not None and near(got, right, 1e-9):
        return None
    numbers: dict[str, Any] = {"expected": right.tolist(), "got": got, "rank": 0}
    if got is None:
        return say("no list", **numbers)
    wrong: dict[str, ArrayLike] = {
        "round trip": 2 * right,
        "warm-up counts": rounds_s / 2,
        "warm-up counts ": rounds_s,
        "sending only": 0.6 * right,
        "sending only ": 0.3 * right,
        "warm-up counts  ": rounds_s[: len(right)] / 2,
        "mean": [right.mean()] * len(right),
        "running": np.array(list(accumulate(right))),
        "quarter": right / 2,
    }
    name = (_named(got, wrong) or "").strip()
    if not name:
        name = (
            "how many"
            if len(got) != len(right)
            else "stands still"
            if not np.any(got)
            else "other times"
        )
    return say(name, **numbers, repeats=case["repeats"])


# ------------------------------------------------------------------ the bands of a fit


def held(true: Link, got: np.ndarray) -> list[int]:
    """Return how often the latency's band and the bandwidth's band hold the truth.

    `got` is [measurements, 2, (low, high)].
    """
    return [int(np.sum((got[:, k, 0] <= true[k]) & (true[k] <= got[:, k, 1]))) for k in (0, 1)]


def covers_problem(true: Link, got: np.ndarray, level: float) -> Problem | None:
    """Return the problem if a band holds the truth too rarely."""
    if name := _mixed_up(got):
        return say(name)
    for k, what in enumerate(("latency", "bandwidth")):
        count = held(true, got)[k]
        if count < HELD:
            numbers: dict[str, Any] = {
                "expected": f"about {level * BANDS:.0f} of {BANDS}, at least {HELD}",
                "got": f"{count} of {BANDS}",
            }
            shape = (
                "no two pairs"
                if not np.all(np.isfinite(got))
                else "order"
                if np.all(got[:, k, 0] > got[:, k, 1])
                else "misses"
            )
            return say(shape, **numbers, what=what)
    return None


def _mixed_up(got: np.ndarray) -> str | None:
    """Return which numbers are exchanged.

    Either there is a pair (latency, bandwidth) for the low end and one for the high end, or the
    bandwidth's band is first.
    """
    small, large = got < 1, got > 1e5
    if np.all(small[:, :, 0]) and np.all(large[:, :, 1]):
        return "turned"
    return "bands exchanged" if np.all(large[:, 0]) and np.all(small[:, 1]) else None


def covers_evidence(true: Link, got: np.ndarray, level: float) -> list[Any]:
    """Return the same evidence for all counts that are large enough, to within the tolerance.

    It is a power of ten, so that one less is far off.
    """
    return [
        [10.0 ** min(count, HELD) for count in held(true, got)],
        _typical(np.abs(got.mean(2))),
        level,
    ]


def _typical(values: np.ndarray) -> list[float]:
    """Return the geometric mean of each column, where what is not a number counts as 0."""
    with np.errstate(divide="ignore"):
        return np.nan_to_num(np.exp(np.log(values).mean(0)), nan=0.0, posinf=0.0).tolist()


def widths(got: np.ndarray, right: np.ndarray) -> tuple[list[float], list[float]]:
    """Return typical widths of the learner's bands and of ours, by quantity."""
    return _typical(np.abs(got[:, :, 1] - got[:, :, 0])), _typical(right[:, :, 1] - right[:, :, 0])


def width_problem(
    got: np.ndarray, right: np.ndarray, level: float, wide: float | None = None
) -> Problem | None:
    """Return the problem with widths.

    `wide` is the level of bands that were as wide as they should be, if any, because bands of
    single times would not have been.
    """
    if not np.all(np.isfinite(got)):
        return say("no two pairs")
    for what, mine, ours in zip(("latency", "bandwidth"), *widths(got, right), strict=True):
        ratio = mine / ours
        if not WIDTH[0] <= ratio <= WIDTH[1]:
            one_side = 0.58 <= ratio < WIDTH[0]
            name = _mixed_up(got) or (
                "same width"
                if wide and ratio > 1
                else (
                    "single times"
                    if ratio > 3
                    else "too wide"
                    if ratio > 1
                    else "one side"
                    if one_side
                    else "too narrow"
                )
            )
            return say(
                name,
                f"{ours:.3g}",
                f"{mine:.3g}",
                what=what,
                level=level,
                rest=f"{(1 - level) / 2:.2g}",
                upper=f"{(1 + level) / 2:.3g}",
                whole=f"{1 - level:.2g}",
                wide=wide,
            )
    return None


def width_evidence(got: np.ndarray, right: np.ndarray) -> list[list[float]]:
    """Return the same evidence for all widths inside the limits, and different evidence outside."""
    return [
        [min(mine, WIDTH[0] * ours), max(mine, WIDTH[1] * ours)]
        for mine, ours in zip(*widths(got, right), strict=True)
    ]


# ------------------------------------------------------------------ predictions


def gather_problem(p: int, n_bytes: int, link: Link, got: float) -> Problem | None:
    """Return the problem with the predicted time of an all-gather along a ring."""
    from manyhands import simulate

    latency_s, bytes_per_s = link
    beta, right = n_bytes / bytes_per_s, float(simulate.pattern_s("all-gather", p, n_bytes, *link))
    wrong = {
        "gather twice": 2 * right,
        "gather p rounds": p * (latency_s + beta / p),
        "gather not cut": (p - 1) * (latency_s + beta),
        "latency once": latency_s + (p - 1) / p * beta,
        "multiplied": (p - 1) * (latency_s + n_bytes / p * bytes_per_s),
    }
    return _cost_problem("all-gather", p, n_bytes, right, got, wrong)


def chain_time_s(p: int, n_bytes: int, pieces: int, link: Link) -> float:
    """Return the seconds of a broadcast along a chain, with this number of pieces."""
    from manyhands import simulate

    return float(simulate.chain_s(p, n_bytes, pieces, *link))


def chain_problem(p: int, n_bytes: int, pieces: int, link: Link, got: float) -> Problem | None:
    """Return the problem with the predicted time of a broadcast along a chain."""
    right, part_s = (
        chain_time_s(p, n_bytes, pieces, link),
        link.latency_s + n_bytes / pieces / link.bytes_per_s,
    )
    wrong = {
        "chain in turn": (p - 1) * pieces * part_s,
        "chain in turn ": (p - 1) * (link.latency_s + n_bytes / link.bytes_per_s),
        "chain not cut": (p - 2 + pieces) * (link.latency_s + n_bytes / link.bytes_per_s),
        "chain one more": (p - 1 + pieces) * part_s,
        "chain one less": (p - 3 + pieces) * part_s,
        "latency once": link.latency_s + (p - 2 + pieces) * n_bytes / pieces / link.bytes_per_s,
        "multiplied": (p - 2 + pieces) * (link.latency_s + n_bytes / pieces * link.bytes_per_s),
    }
    return _cost_problem("chain", p, n_bytes, right, got, wrong, f" and {pieces} pieces")


def _cost_problem(
    what: str,
    p: int,
    n_bytes: int,
    right: float,
    got: float,
    wrong: Mapping[str, float],
    cut: str = "",
) -> Problem | None:
    if near(got, right) or got == right:
        return None
    return say(
        (_named(got, wrong) or "other cost").strip(),
        right,
        got,
        what=what,
        p=p,
        n_bytes=n_bytes,
        cut=cut,
    )


def best_pieces(p: int, n_bytes: int, link: Link) -> int:
    """Return the best whole number of pieces, over which the time is convex."""
    best = int(((p - 2) * n_bytes / cases.half(link)) ** 0.5)
    return min((max(1, best), best + 1), key=lambda pieces: chain_time_s(p, n_bytes, pieces, link))


def chain_with(p: int, n_bytes: int, link: Link, got: float) -> float:
    """Return the time with the number of pieces that the learner has chosen, as a float.

    It is NaN if the choice is not a number of pieces.
    """
    return chain_time_s(p, n_bytes, int(got), link) if got >= 1 and float(got).is_integer() else NAN


def pieces_problem(p: int, n_bytes: int, link: Link, got: float) -> Problem | None:
    """Return the problem if the chosen number of pieces takes longer than the best by PIECES."""
    if not (got >= 1 and got == int(got)):
        return say("pieces whole", got=got, p=p)
    right = best_pieces(p, n_bytes, link)
    longer = chain_with(p, n_bytes, link, got) / chain_time_s(p, n_bytes, right, link) - 1
    if longer <= PIECES:
        return None
    by_alpha = n_bytes / cases.half(link)
    name = (
        "pieces uncut"
        if got == 1
        else "pieces by alpha B"
        if abs(got - by_alpha) <= 1 and by_alpha > 3
        else "pieces other"
    )
    message = MISTAKES[name].format(
        p=p, n_bytes=n_bytes, got=f"{got:.0f}", more=f"{100 * longer:.0f}"
    )
    return {
        "rank": None,
        "expected": f"{right} pieces",
        "got": f"{got:.0f} pieces",
        "mistake": message,
    }


# ------------------------------------------------------------------ how many ranks


def not_slower(
    n_bytes: int, link: Link, limit: int, depth: Callable[..., Any] | None = None
) -> list[int]:
    """Return the numbers of ranks from 1 to the limit on which a ring takes no longer than a tree.

    `depth` gives the tree a different number of levels, as a mistake would.
    """
    from manyhands import simulate

    p = range(1, limit + 1)
    ring_s = np.array([simulate.ring_s(ranks, n_bytes, *link) for ranks in p])
    tree_s = (
        [simulate.tree_s(ranks, n_bytes, *link) for ranks in p]
        if depth is None
        else 2 * depth(p) * simulate.message_s(n_bytes, *link)
    )
    return np.array(p)[ring_s <= tree_s].tolist()


def ranks_problem(n_bytes: int, link: Link, limit: int, got: float) -> Problem | None:
    """Return the problem with the largest number of ranks on which the ring is not slower."""
    numbers = not_slower(n_bytes, link, limit)
    right = numbers[-1]
    if got == right:
        return None
    # below the first gap
    first = next(
        (p - 1 for p in range(1, limit + 1) if p > len(numbers) or numbers[p - 1] != p), limit
    )
    wrong = {
        "ranks first": first,
        "ranks powers": max(p for p in numbers if p & (p - 1) == 0),
        "ranks log2": not_slower(n_bytes, link, limit, np.log2)[-1],
    }
    if not (got >= 1 and got == int(got)):
        name = "ranks no number"
    elif got > limit:
        name = "ranks over"
    else:
        name = next(
            (name for name, value in wrong.items() if value == got),
            "ranks other" if got in numbers else "ranks slower",
        )
    return {
        "rank": None,
        "expected": right,
        "got": got,
        "mistake": MISTAKES[name].format(limit=limit, got=f"{got:.0f}"),
    }


# ------------------------------------------------------------------ fusion


def finish_problem(case: Backward, limit: int, got: float) -> Problem | None:
    """Return the problem with the time at which the last gradient has arrived."""
    from manyhands import simulate

    right = cases.time_s(case, limit)
    if near(got, right):
        return None
    groups = simulate.buckets(case.n_bytes, limit)
    sums = [sum(case.n_bytes[i] for i in group) for group in groups]
    costs = [cases.all_reduce_s(case, n_bytes) for n_bytes in sums]
    wrong = {
        "after the backward": case.ready_s[-1] + sum(costs),
        "network only": sum(costs),
        "first is ready": _finish(case, groups, costs, 0),
        "no queue": max(
            case.ready_s[group[-1]] + cost for group, cost in zip(groups, costs, strict=True)
        ),
        "last bucket only": case.ready_s[-1] + costs[-1],
        "under the limit": _under(case, limit),
        "over the limit": _over(case, limit),
        "rest forgotten": _finish(case, groups[:-1], costs[:-1], -1),
    }
    name = _named(got, wrong) or "other finish"
    return say(name, right, got, limit=limit, count=len(groups), bytes=sums[0])


def _finish(
    case: Backward, groups: Sequence[Sequence[int]], costs: Sequence[float], which: int
) -> float:
    """Return the finish if a bucket waits only for its tensor number `which`.

    The last one, -1, is right.
    """
    free_s = 0.0
    for group, cost in zip(groups, costs, strict=True):
        free_s = max(free_s, case.ready_s[group[which]]) + cost
    return free_s


def _costs(case: Backward, groups: Sequence[Sequence[int]]) -> list[float]:
    return [cases.all_reduce_s(case, sum(case.n_bytes[i] for i in group)) for group in groups]


def _under(case: Backward, limit: int) -> float:
    """Return the finish with buckets that never hold more than the limit.

    A single tensor may be larger.
    """
    groups: list[list[int]] = []
    for i, size in enumerate(case.n_bytes):
        if groups and sum(case.n_bytes[j] for j in groups[-1]) + size <= limit:
            groups[-1].append(i)
        else:
            groups.append([i])
    return _finish(case, groups, _costs(case, groups), -1)


def _over(case: Backward, limit: int) -> float:
    """Return the finish if a bucket that holds exactly the limit waits for one tensor more."""
    groups: list[list[int]] = [[]]
    for i, _ in enumerate(case.n_bytes):
        groups[-1].append(i)
        if sum(case.n_bytes[j] for j in groups[-1]) > limit and i + 1 < len(case.n_bytes):
            groups.append([])
    return _finish(case, groups, _costs(case, groups), -1)


def time_with(case: Backward, got: float) -> float:
    """Return the time with the size that the learner has chosen."""
    return cases.time_s(case, got) if got >= 0 else NAN


def best_problem(case: Backward, got: float) -> Problem | None:
    """Return the problem if the chosen size of buckets takes longer than the best by BEST."""
    from manyhands import simulate

    if not got >= 0:
        return say("no number", got=got)
    best, mine = cases.best_s(case), time_with(case, got)
    if mine <= (1 + BEST) * best:
        return None
    count = len(simulate.buckets(case.n_bytes, got))
    name = (
        "the time"
        if 0 < got < 1
        else (
            "one bucket"
            if count == 1
            else "no fusion"
            if count == len(case.n_bytes)
            else "other buckets"
        )
    )
    return say(
        name,
        f"{best:.4g} s",
        f"{mine:.4g} s, with {count} buckets for {len(case.n_bytes)} gradients",
        more=f"{100 * (mine / best - 1):.0f}",
    )
