"""How the checks of unit 04 judge what the ranks have reported.

It says which mistake a wrong answer looks like and which messages are right. Every `..._problem`
returns None or the details of a FAIL line, which are `rank`, `expected`, `got` and the likely
`mistake`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from manyhands.checks import by_rank
from manyhands.checks.collectives.messages import MISTAKES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from manyhands.checks.collectives.answers import Case
    from manyhands.checks.report import Problem


def depth(p: int) -> int:
    """Return log2 p, rounded up, which is the number of rounds of a binomial tree."""
    return (p - 1).bit_length()


# ------------------------------------------------------------------ values


def value_problem(case: Case, topic: str) -> Problem | None:
    """Return the problem with what one rank has afterwards."""
    if case["right"]:
        return None
    text = MISTAKES.get((topic, _kind(case["looks"]))) or MISTAKES["any", "other"]
    facts = {
        "p": case["p"],
        "me": case["me"],
        "n": case["numel"],
        "rest": case["numel"] % case["p"],
        "dtype": case["dtype"],
        "root": case.get("root"),
        "number": case["looks"].split()[0],
        "last": case["looks"].split()[-1],
        "elsewhere": case.get("elsewhere"),
        "bad": case.get("bad"),
    }
    return {
        "rank": _rank(case),
        "expected": case["wanted"],
        "got": case["sample"],
        "mistake": text.format(**facts),
    }


def _kind(looks: str) -> str:
    """Return the kind of a look, without its number.

    For example, it is "some of them" for "3 of them", and "chunk" for "chunk 2".
    """
    words = looks.split()
    return (
        "some " + " ".join(words[1:])
        if words[0].isdigit()
        else " ".join(words[:-1])
        if words[-1].isdigit()
        else looks
    )


def _rank(case: Case) -> int:
    return case["members"][case["me"]]


# ------------------------------------------------------------------ messages


@dataclass
class Traffic:
    """What the ranks of one group have sent in one call, as the ledger counts it."""

    p: int
    numel: int
    itemsize: int
    way: str | None  # of exercise 5
    members: Sequence[int]
    messages: list[int]  # by rank of the group, as the others
    sent: list[int]  # bytes
    peers: list[list[int]]  # the ranks to which it has sent
    rounds: int
    library: list[str]  # names of collectives of torch.distributed that were called

    @property
    def size(self) -> int:
        """Bytes of the whole tensor."""
        return self.numel * self.itemsize


def traffic(answers: Sequence[Sequence[Case]]) -> list[Traffic]:
    """Return a `Traffic` for each call of each group, from the cases of all ranks."""
    from manyhands.ledger import merge

    calls: dict[tuple[object, ...], list[Case]] = {}
    for case in (case for answer in answers for case in answer):
        key = (
            tuple(case["members"]),
            case.get("root"),
            case.get("way"),
            case["dtype"],
            case["numel"],
        )
        calls.setdefault(key, []).append(case)
    traffics = []
    for cases in calls.values():
        cases.sort(key=lambda case: case["me"])
        merged, members, first = (
            merge([case["account"] for case in cases]),
            cases[0]["members"],
            cases[0],
        )
        peers = [
            sorted(
                {event.peer for event in events if event.kind == "sent" and event.peer is not None}
            )
            for events in merged.events
        ]
        traffics.append(
            Traffic(
                first["p"],
                first["numel"],
                first["itemsize"],
                first.get("way"),
                members,
                [account["messages_sent"] for account in merged.ranks],
                [account["bytes_sent"] for account in merged.ranks],
                peers,
                merged.rounds,
                sorted({name for case in cases for name in case["library"]}),
            )
        )
    return traffics


def _problem(
    t: Traffic,
    name: str,
    expected: Any,
    got: Any,
    rank: int | None = None,
    drawn: by_rank.Picture | None = None,
    **facts: Any,
) -> Problem:
    return {
        "rank": rank,
        "expected": expected,
        "got": got,
        "mistake": MISTAKES["messages", name].format(p=t.p, depth=depth(t.p), **facts),
        "picture": drawn,
    }


def _library(t: Traffic) -> Problem | None:
    return (
        _problem(t, "library", "send, recv, isend, irecv", ", ".join(t.library), call=t.library[0])
        if t.library
        else None
    )


def once_problem(t: Traffic) -> Problem | None:
    """Return the problem with a broadcast that does not send p - 1 messages in all.

    Each must have the whole tensor.
    """
    if t.library:
        return _library(t)
    got, right = sum(t.messages), t.p - 1
    if got == right and sum(t.sent) == right * t.size:
        return None
    name = "more" if got > right else "fewer" if got < right else "not whole"
    return _problem(
        t, name, f"{right} messages, {right * t.size} bytes", f"{got} messages, {sum(t.sent)} bytes"
    )


def once_evidence(t: Traffic) -> list[int]:
    """Return the messages and bytes of all ranks, and how many library collectives were called."""
    return [sum(t.messages), sum(t.sent), len(t.library)]


def tree_problem(t: Traffic) -> Problem | None:
    """Return the problem if a chain of messages is longer than log2 p.

    It is also one if a rank sends more often than that.
    """
    if t.library:
        return _library(t)
    limit, most, fewest = depth(t.p), max(t.messages), t.p - 1
    if sum(t.messages) < fewest:
        return _problem(t, "fewer", f"{fewest} messages", sum(t.messages))
    busiest = t.messages.index(most)
    if most > limit:
        name = "star" if most == t.p - 1 else "often"
        drawn = by_rank.numbers("messages sent", limit, t.messages, t.members, at_most=True)
        return _problem(
            t,
            name,
            f"at most {limit} messages from one rank",
            most,
            rank=t.members[busiest],
            drawn=drawn,
        )
    if t.rounds > limit:
        return _problem(
            t, "chain" if t.rounds == t.p - 1 else "rounds", f"at most {limit} rounds", t.rounds
        )
    return None


def tree_evidence(t: Traffic) -> list[int]:
    """Return the same evidence for all trees, and different evidence for anything else."""
    limit = depth(t.p)
    return [
        min(sum(t.messages), t.p - 1),
        max(t.rounds, limit),
        max(max(t.messages), limit),
        max(max(t.sent), limit * t.size),
        len(t.library),
    ]


def ring_problem(t: Traffic, halves: int) -> Problem | None:
    """Return the problem if a rank does not send one message a round, to the next rank only."""
    if t.library:
        return _library(t)
    for me, (messages, peers) in enumerate(zip(t.messages, t.peers, strict=True)):
        following, (low, high) = t.members[(me + 1) % t.p], _steps(t, halves)
        if set(peers) - {following}:
            return _problem(
                t, "not next", f"only to rank {following}", f"to {peers}", rank=t.members[me]
            )
        if not low <= messages <= high:
            name = "too many rounds" if messages > high else "too few rounds"
            drawn = by_rank.numbers("messages sent", high, t.messages, t.members, at_most=not low)
            return _problem(
                t,
                name,
                high,
                messages,
                rank=t.members[me],
                drawn=drawn,
                halves="2 (p - 1)" if halves == 2 else "p - 1",
            )
    if t.rounds > _most_rounds(t, halves):
        return _problem(t, "serial", halves * (t.p - 1), t.rounds)
    return None


def _most_rounds(t: Traffic, halves: int) -> int:
    """Return more rounds than halves (p - 1).

    A round takes three if some ranks send first and the others receive first.
    """
    return 3 * halves * (t.p - 1)


def _steps(t: Traffic, halves: int) -> tuple[int, int]:
    """Return the (lowest, highest) number of messages from each rank.

    They differ since empty chunks need not be sent.
    """
    right = halves * (t.p - 1)
    return (0 if t.numel < t.p else right), right


def ring_evidence(t: Traffic, halves: int) -> list[Any]:
    """Return which rank sends to which and how often, in a form that is the same for all rings."""
    low, high = _steps(t, halves)
    peers = (
        t.peers
        if low
        else [
            [peer for peer in peers if peer != t.members[(me + 1) % t.p]]
            for me, peers in enumerate(t.peers)
        ]
    )
    return [
        peers,
        [[min(sent, low), max(sent, high)] for sent in t.messages],
        max(t.rounds, _most_rounds(t, halves)),
        len(t.library),
    ]


def limits(t: Traffic, halves: int) -> tuple[int, int, int]:
    """Return the (lowest, highest) bytes of all ranks together, and the most of one rank.

    An answer that pads the last chunk sends a little more.
    """
    low = halves * (t.p - 1) * t.size
    return (
        low,
        low + halves * (t.p - 1) * t.p * t.itemsize,
        halves * (t.numel - t.numel // t.p + t.p) * t.itemsize,
    )


def bytes_problem(t: Traffic, halves: int) -> Problem | None:
    """Return the problem if a rank does not send halves (p - 1)/p of the tensor."""
    if t.library:
        return _library(t)
    low, high, most = limits(t, halves)
    total, largest = sum(t.sent), max(t.sent)
    if low <= total <= high and largest <= most:
        return None
    drawn = by_rank.numbers(
        "bytes sent", low // t.p, t.sent, t.members, within=most * t.p / max(low, 1) - 1
    )
    if total > high:
        name = (
            "gathers"
            if abs(total - t.p * (t.p - 1) * t.size) <= t.p * t.itemsize * t.p
            else "more bytes"
        )
    elif total < low:
        some = total > low / 4 and max(t.messages) < halves * (t.p - 1)
        name = "one half" if halves == 2 and some else "fewer bytes"
    else:
        name = "one place" if largest * t.p > 1.4 * low else "uneven"
        return _problem(
            t,
            name,
            f"about {low // t.p} bytes",
            f"{largest} bytes",
            rank=t.members[t.sent.index(largest)],
            drawn=drawn,
            ratio=f"{largest * t.p / low:.1f}",
        )
    return _problem(t, name, f"{low} bytes, all ranks together", f"{total} bytes", drawn=drawn)


def bytes_evidence(t: Traffic, halves: int) -> list[int]:
    """Return the same evidence for all numbers inside their limits, and other evidence outside."""
    low, high, most = limits(t, halves)
    return [min(sum(t.sent), low), max(sum(t.sent), high), max(max(t.sent), most), len(t.library)]


def halving_problem(t: Traffic) -> Problem | None:
    """Return the problem if a rank does not send 2 (p - 1)/p of the tensor.

    It is also one if there are not 2 log2 p rounds.
    """
    if t.library:
        return _library(t)
    rounds, right = 2 * depth(t.p), 2 * (t.p - 1) * t.size // t.p
    farthest = max(t.sent, key=lambda sent: abs(sent - right))
    rank = t.members[t.sent.index(farthest)]
    if farthest != right:
        name = (
            "half used"
            if 2 * farthest == 3 * right
            else (
                "half of it"
                if 2 * farthest == right
                else "more than a half"
                if farthest > right
                else "fewer bytes"
            )
        )
        return _problem(
            t,
            name,
            f"{right} bytes",
            f"{farthest} bytes",
            rank=rank,
            drawn=by_rank.numbers("bytes sent", right, t.sent, t.members),
            rounds=rounds,
        )
    if t.rounds != rounds:
        return _problem(t, "not halving", f"{rounds} rounds", f"{t.rounds} rounds", rounds=rounds)
    return None


def halving_evidence(t: Traffic) -> list[int]:
    """Return the bytes of each rank, the rounds, and how many library collectives were called."""
    return [*t.sent, t.rounds, len(t.library)]


# ------------------------------------------------------------------ cost


def most_bytes(way: str, p: int, nbytes: int) -> int:
    """Return the bytes that the busiest rank sends in an all-reduce."""
    from manyhands.simulate import sent_bytes

    if way == "star":  # rank 0 sends the sum to each other rank
        return (p - 1) * nbytes
    pattern, whole = {
        "tree": ("broadcast", nbytes),
        "ring": ("ring", nbytes),
        "gather": ("all-gather", p * nbytes),
    }[way]
    return int(sent_bytes(pattern, p, whole))


def rounds_of(way: str, p: int) -> int:
    """Return the rounds of an all-reduce, or of a broadcast, among p ranks."""
    from manyhands.simulate import rounds

    return sum(count for count, _ in rounds(way, p, 0))


def predicted_problem(
    what: Literal["bytes", "rounds"],
    way: str,
    p: int,
    nbytes: int,
    got: Any,
    seen: Traffic | None = None,
) -> Problem | None:
    """Return the problem with a prediction.

    `what` is "bytes" (of the busiest rank) or "rounds", and `seen` is what the ledger counted, or
    None for a world that is too large to run.
    """
    if what == "bytes":
        right, known = (
            max(seen.sent) if seen else most_bytes(way, p, nbytes),
            _wrong_bytes(way, p, nbytes),
        )
    else:
        right, known = seen.rounds if seen else rounds_of(way, p), _wrong_rounds(way, p)
    number = isinstance(got, (int, float))
    if number and abs(got - right) < (0.5 if what == "bytes" else 1e-9):
        return None
    looks = next(
        (name for name, value in known.items() if number and abs(got - value) < 0.5), "other"
    )
    if what == "rounds" and number and not float(got).is_integer():
        looks = "not whole"
    return {
        "expected": right,
        "got": got,
        "mistake": MISTAKES[what, looks].format(way=way, p=p, nbytes=nbytes),
    }


def _wrong_bytes(way: str, p: int, nbytes: int) -> dict[str, float]:
    right = most_bytes(way, p, nbytes)
    known = {
        "all ranks": (p if way == "gather" else 2) * (p - 1) * nbytes,
        "numbers": right / 4,
        "once too often": p * nbytes,
    }
    if way == "ring":
        known |= {"not cut": 2 * nbytes, "p chunks": 2 * nbytes + 2 * nbytes / p}
    if way == "tree":
        known |= {"not rounded up": (p.bit_length() - 1) * nbytes, "one message": nbytes}
        # first: on two ranks the same number has other names, too; but those show on five before
        if p & (p - 1) == 0:
            known = {"a round too many": p.bit_length() * nbytes, **known}
    return known | {"both ways": 2 * right, "one half": right / 2}


def _wrong_rounds(way: str, p: int) -> dict[str, float]:
    if way == "ring":
        return {"one half": p - 1, "p rounds": 2 * p}
    # on two ranks these are both halves, too; but that shows on five before
    more = {"a round too many": p.bit_length()} if p & (p - 1) == 0 else {}
    return {"down": p.bit_length() - 1, "chain": p - 1, **more, "both halves": 2 * depth(p)}
