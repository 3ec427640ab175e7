"""Who waits for whom, and why: from what each rank was seen to do to the edges of the wait-for
graph and a likely cause.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from manyhands.cluster.faults.differ import (
    Cause,
    cause_of_difference,
    cause_of_finished,
    members_text,
)
from manyhands.cluster.faults.fault_messages import SENTENCES, ranks_text
from manyhands.cluster.on_rank.recorder import SLOTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from manyhands.cluster.faults.kinds import Where
    from manyhands.cluster.payloads import Note

# the collectives that end on no rank before all have come: where one is left behind, it was
# asynchronous
ALL_MEET = (
    "all_reduce",
    "all_gather",
    "all_gather_single",
    "reduce_scatter",
    "reduce_scatter_single",
    "barrier",
)


@dataclass
class Odd:
    """The first calls that do not fit together: what is said of them, the ranks to look at,
    and the kind of difference.
    """

    text: str
    ranks: list[int]
    # "different calls", "different" (shape or dtype), "different op", "different root", "different
    # group" or "different message"
    kind: str

    @property
    def differs(self) -> str:
        """In what the calls differ: see `Fault`."""
        return {
            "different": "tensors",
            "different message": "tensors",
            "different group": "groups",
            "different calls": "calls",
        }.get(self.kind, "")


def edges(where: dict[int, Where], world_size: int) -> list[tuple[int, int]]:
    """The wait-for graph, a sorted list of (waiting rank, rank waited for)."""
    found = set()
    for rank, here in where.items():
        if here.state == "waits":
            found |= {(rank, other) for other in _awaited(here, where, world_size) if other != rank}
    return sorted(found)


def _is_point_to_point(here: Where) -> bool:
    return here.peer is not None or here.call.lstrip("i") in ("send", "recv")


def _awaited(here: Where, where: dict[int, Where], world_size: int) -> list[int]:
    members = here.group or list(range(world_size))
    if _is_point_to_point(here):
        return [here.peer] if here.peer is not None else members
    behind = [
        rank for rank in members if rank in where and not _stands_in_the_same(where[rank], here)
    ]
    return behind


def _stands_in_the_same(other: Where, here: Where) -> bool:
    if (
        other.state != "waits"
        or other.call != here.call
        or (other.group or None) != (here.group or None)
    ):
        return False
    return other.sequence == here.sequence


def cycle(edge_list: list[tuple[int, int]]) -> list[int]:
    """The ranks of one circle in the graph, in order, or []."""
    after: dict[int, list[int]] = {}
    for a, b in edge_list:
        after.setdefault(a, []).append(b)

    def walk(rank: int, path: list[int]) -> list[int]:
        if rank in path:
            return path[path.index(rank) :]
        for other in after.get(rank, []):
            found = walk(other, [*path, rank])
            if found:
                return found
        return []

    for start in sorted(after):
        found = walk(start, [])
        if found:
            first = found.index(min(found))
            return found[first:] + found[:first]
    return []


def cause_of_hang(
    where: dict[int, Where],
    edge_list: list[tuple[int, int]],
    notes: dict[int, list[Note]],
    counts: dict[int, dict[str, int]] | None = None,
) -> Cause:
    """The `Cause` where ranks wait forever.

    `counts`: {rank: {call: how often}} of calls that `notes` do not hold.
    """
    waiting = {rank: here for rank, here in where.items() if here.state == "waits"}
    collectives = {
        r: h for r, h in waiting.items() if not _is_point_to_point(h) and h.call != "Work.wait"
    }
    messages = {r: h for r, h in waiting.items() if _is_point_to_point(h)}
    gone = sorted({b for _, b in edge_list if where.get(b) and where[b].state == "finished"})
    if collectives and gone and not messages:
        return cause_of_finished(collectives, gone, notes, counts or {})
    # Horovod's: torch.distributed has a list, ours is bcast_obj
    if {here.call for here in waiting.values()} == {"broadcast_object"}:
        return Cause(SENTENCES["object without a name"], [])
    if len(collectives) > 1 and (found := cause_of_difference(collectives)):
        return found
    text, culprits = _cause_of_messages(
        waiting, collectives, messages, edge_list, where, notes, gone
    )
    return Cause(text + _hint_on_ranks(messages) if text and messages else text, culprits)


def _hint_on_ranks(messages: dict[int, Where]) -> str:
    """Of messages in a group whose members are not 0, 1, 2, ...: in which numbers a rank is named
    there.
    """
    groups = [
        here.group
        for here in messages.values()
        if here.group and here.group != list(range(len(here.group)))
    ]
    return (
        " " + SENTENCES["numbers in a group"].format(group=ranks_text(groups[0])) if groups else ""
    )


def _cause_of_messages(
    waiting: dict[int, Where],
    collectives: dict[int, Where],
    messages: dict[int, Where],
    edge_list: list[tuple[int, int]],
    where: dict[int, Where],
    notes: dict[int, list[Note]],
    gone: list[int],
) -> tuple[str, list[int]]:
    for rank, here in sorted(messages.items()):
        if here.peer is not None and _dropped(rank, here, where, notes):
            return SENTENCES["dropped"].format(rank=rank, peer=here.peer), [here.peer]
    for rank, here in sorted(messages.items()):
        sent = _unanswered_tag(rank, here, notes)
        if sent is not None and here.peer is not None:
            return SENTENCES["wrong tag"].format(
                rank=rank, peer=here.peer, sent=sent, asked=here.tag
            ), [
                rank,
                here.peer,
            ]
    for rank, here in sorted(messages.items()):
        if here.peer is None:
            continue
        if here.peer in gone and here.call.endswith(".backward"):
            return SENTENCES["no gradient"].format(rank=rank, peer=here.peer), [here.peer]
        if here.peer in gone:
            return SENTENCES["nobody sends" if "recv" in here.call else "nobody receives"].format(
                rank=rank, peer=here.peer
            ), [here.peer]
    circle = cycle(edge_list)
    if circle:
        text = " -> ".join(map(str, circle + circle[:1]))
        all_receive = all(
            rank in messages and messages[rank].call in ("recv", "irecv") for rank in circle
        )
        backward = any(waiting[rank].call.endswith(".backward") for rank in circle)
        return (
            SENTENCES[
                "cycle of recv" if all_receive else "cycle of backward" if backward else "cycle"
            ].format(cycle=text),
            circle,
        )
    begun = any(note["call"] in ("isend", "irecv") for calls in notes.values() for note in calls)
    if collectives and not messages and not edge_list and begun:
        return (
            SENTENCES["not ended"].format(
                call=" / ".join(sorted({here.call for here in collectives.values()}))
            ),
            [],
        )
    return "", sorted({b for _, b in edge_list if b not in waiting})


def _dropped(rank: int, here: Where, where: dict[int, Where], notes: dict[int, list[Note]]) -> bool:
    """Whether the peer began to send what this rank waits for, and went on without a wait for it: a
    message whose work is kept arrives by itself where somebody receives it.
    """
    peer = None if here.peer is None else where.get(here.peer)
    if (
        "recv" not in here.call
        or here.peer is None
        or peer is None
        or peer.state not in ("finished", "waits")
    ):
        return False
    sent = {
        "call": "isend",
        "peer": rank,
        "tag": here.tag,
        "sequence": here.sequence,
        "ranks": here.group,
    }
    return peer.call not in ("isend", "Work.wait") and any(
        all(note.get(key) == value for key, value in sent.items())
        for note in notes.get(here.peer, [])
    )


def name_work(here: Where, notes: dict[int, list[Note]]) -> None:
    """Of a rank that waits for an asynchronous operation: which one it must be, by what the other
    side has not done.
    """
    mine = [note for note in notes.get(here.rank, []) if note["call"] in ("isend", "irecv")]
    for note in mine:
        other = "recv" if note["call"] == "isend" else "send"
        peer = note.get("peer")
        answers = [
            n
            for n in ([] if peer is None else notes.get(peer, []))
            if n["call"].lstrip("i") == other
            and n.get("peer") == here.rank
            and n["tag"] == note["tag"]
            and n["sequence"] == note["sequence"]
        ]
        if not answers:
            here.call, here.peer, here.tag = note["call"], peer, note["tag"]
            here.shape, here.dtype = note.get("shape"), note.get("dtype", "")
            return


def left_open(
    where: dict[int, Where], notes: dict[int, list[Note]], world_size: int
) -> list[tuple[Note, list[int], list[int]]]:
    """Of each group the first collective that was begun by some ranks with `async_op=True` and
    never by others, and that no rank is seen to wait for: [(note, ranks that began it, the
    others)].
    """
    begun: dict[tuple[str, int], dict[int, Note]] = {}
    found: dict[str, tuple[Note, list[int], list[int]] | None] = {}
    for rank, calls in notes.items():
        # a full record has forgotten its first calls
        for note in calls if len(calls) < SLOTS else ():
            if note["call"] in ALL_MEET:
                begun.setdefault((note["group"], note["sequence"]), {})[rank] = note
    for (group, sequence), by_rank in sorted(begun.items()):
        note = next(iter(by_rank.values()))
        others = [rank for rank in note.get("ranks") or range(world_size) if rank not in by_rank]
        seen = any(
            where[rank].state == "waits"
            and (where[rank].call, where[rank].sequence, where[rank].group)
            == (one["call"], sequence, one.get("ranks"))
            for rank, one in by_rank.items()
            if rank in where
        )
        known = all(rank in where and len(notes.get(rank, [])) < SLOTS for rank in others)
        if others and known:  # of the next ones nothing needs to be said
            found.setdefault(group, None if seen else (note, sorted(by_rank), others))
    return list(filter(None, found.values()))


def _unanswered_tag(rank: int, here: Where, notes: dict[int, list[Note]]) -> int | None:
    """The tag of a message that the peer sent to `rank` and that nobody asked for, if there is
    one.
    """
    if "recv" not in here.call or here.peer is None:
        return None
    asked = [
        n["tag"]
        for n in notes.get(rank, [])
        if n["call"].lstrip("i") == "recv" and n.get("peer") == here.peer
    ]
    for note in notes.get(here.peer, []):
        if (
            note["call"].lstrip("i") == "send"
            and note.get("peer") == rank
            and note["tag"] not in asked
        ):
            return note["tag"]
    return None


def mismatch(notes: dict[int, list[Note]], uneven_all_gather: bool = False) -> Odd | None:
    """The first calls that do not fit together (an Odd), or None. `notes` = {rank: its calls}."""
    return _mismatched_collective(notes, uneven_all_gather) or _mismatched_message(notes)


def _mismatched_collective(notes: dict[int, list[Note]], uneven_all_gather: bool) -> Odd | None:
    groups: dict[tuple[str, int], dict[int, Note]] = {}
    for rank, calls in notes.items():
        for note in calls:
            if "peer" not in note:  # os._exit has a peer of None: it is no collective
                groups.setdefault((note["group"], note["sequence"]), {})[rank] = note
    for (_, sequence), by_rank in sorted(groups.items(), key=lambda item: item[0][1]):
        if len({note["call"] for note in by_rank.values()}) > 1:
            return _differs("different calls", sequence, by_rank, lambda note: note["call"])
        if any(
            other in by_rank and note["ranks"] != by_rank[other].get("ranks")
            for note in by_rank.values()
            for other in note.get("ranks") or []
        ):
            return _differs(
                "different group",
                sequence,
                by_rank,
                _with("ranks of a group", "ranks", members_text),
            )
        if "all_to_all" in next(iter(by_rank.values()))["call"]:
            continue
        if uneven_all_gather and next(iter(by_rank.values()))["call"] == "all_gather":
            continue
        if len({_tensor(note) for note in by_rank.values()}) > 1:
            return _differs(
                "different", sequence, by_rank, lambda note: f"{note['call']}({_tensor(note)})"
            )
        for argument, sentence in (("op", "different op"), ("root", "different root")):
            if len({note.get(argument) for note in by_rank.values()}) > 1:
                return _differs(sentence, sequence, by_rank, _with(argument, argument))
    return None


def _with(sentence: str, argument: str, text: Callable[[Any], str] = str) -> Callable[[Note], str]:
    """How to say of a note what the call was given as `argument`."""
    return lambda note: SENTENCES[sentence].format(
        call=note["call"], value=text(note.get(argument))
    )


def _tensor(note: Note) -> str:
    return f"{note['dtype']} {note['shape']}" if note.get("dtype") else ""


def _differs(
    sentence: str, sequence: int, by_rank: dict[int, Note], describe: Callable[[Note], str]
) -> Odd:
    kinds: dict[str, list[int]] = {}
    for rank, note in sorted(by_rank.items()):
        kinds.setdefault(describe(note), []).append(rank)
    described = ", ".join(
        SENTENCES["is with"].format(what=what, ranks=ranks_text(ranks))
        for what, ranks in kinds.items()
    )
    fewest = min(kinds.values(), key=lambda ranks: (len(ranks), -ranks[0]))
    return Odd(
        SENTENCES[sentence].format(number=sequence + 1, described=described), fewest, sentence
    )


def _mismatched_message(notes: dict[int, list[Note]]) -> Odd | None:
    sent: dict[tuple[int, int | None, int, int], Note] = {}
    for rank, calls in notes.items():
        for note in calls:
            if note["call"].lstrip("i") == "send":
                sent[rank, note["peer"], note["tag"], note["sequence"]] = note
    for rank, calls in sorted(notes.items()):
        for note in calls:
            source = note.get("peer")
            if note["call"].lstrip("i") == "recv" and source is not None:
                other = sent.get((source, rank, note["tag"], note["sequence"]))
                if other and (other.get("dtype"), _numel(other)) != (
                    note.get("dtype"),
                    _numel(note),
                ):
                    text = SENTENCES["different message"].format(
                        source=source, target=rank, sent=_tensor(other), asked=_tensor(note)
                    )
                    return Odd(text, [source, rank], "different message")
    return None


def _numel(note: Note) -> int:
    product = 1
    for size in note.get("shape") or []:
        product *= size
    return product
