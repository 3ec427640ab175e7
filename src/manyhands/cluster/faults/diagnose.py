"""Who waits for whom, and why.

What each rank was seen to do gives the edges of the wait-for graph and a likely cause.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from manyhands.cluster.faults.fault_messages import SENTENCES, ranks_text
from manyhands.cluster.faults.hang_causes import (
    Cause,
    cause_of_difference,
    cause_of_finished,
)
from manyhands.cluster.on_rank.recorder import SLOTS

if TYPE_CHECKING:
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


def edges(where: dict[int, Where], world_size: int) -> list[tuple[int, int]]:
    """The wait-for graph, a sorted list of (waiting rank, rank waited for)."""
    pairs = set()
    for rank, here in where.items():
        if here.state == "waits":
            pairs |= {(rank, other) for other in _awaited(here, where, world_size) if other != rank}
    return sorted(pairs)


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
            circle = walk(other, [*path, rank])
            if circle:
                return circle
        return []

    for start in sorted(after):
        circle = walk(start, [])
        if circle:
            first = circle.index(min(circle))
            return circle[first:] + circle[:first]
    return []


@dataclass
class Stuck:
    """A cell in which no rank can continue: what each rank was seen to do."""

    where: dict[int, Where]
    edges: list[tuple[int, int]]  # the wait-for graph
    notes: dict[int, list[Note]]
    counts: dict[int, dict[str, int]]

    @cached_property
    def waiting(self) -> dict[int, Where]:
        """The ranks that wait in communication."""
        return {rank: here for rank, here in self.where.items() if here.state == "waits"}

    @cached_property
    def collectives(self) -> dict[int, Where]:
        """The ranks that wait in a collective."""
        return {
            rank: here
            for rank, here in self.waiting.items()
            if not _is_point_to_point(here) and here.call != "Work.wait"
        }

    @cached_property
    def messages(self) -> dict[int, Where]:
        """The ranks that wait for a message."""
        return {rank: here for rank, here in self.waiting.items() if _is_point_to_point(here)}

    @cached_property
    def finished(self) -> list[int]:
        """The ranks that others wait for, although they have finished the cell."""
        awaited = {other for _, other in self.edges}
        return sorted(
            rank for rank in awaited if rank in self.where and self.where[rank].state == "finished"
        )

    @cached_property
    def cycle(self) -> list[int]:
        """The ranks of a circle in the wait-for graph, or []."""
        return cycle(self.edges)


class Evidence(NamedTuple):
    """What a rule has found: the ranks to look at, and what its sentence names."""

    culprits: list[int]
    fields: Mapping[str, object] = {}


Rule: TypeAlias = "Callable[[Stuck], Cause | None]"


def cause_of_hang(
    where: dict[int, Where],
    edge_list: list[tuple[int, int]],
    notes: dict[int, list[Note]],
    counts: dict[int, dict[str, int]] | None = None,
) -> Cause:
    """The `Cause` where ranks wait forever: what the first rule of `RULES` says that applies.

    `counts`: {rank: {call: how often}} of calls that `notes` do not hold. Without a rule, the
    culprits are the ranks that others wait for and that do not wait themselves.
    """
    stuck = Stuck(where, edge_list, notes, counts or {})
    for rule in RULES:
        cause = rule(stuck)
        if cause is not None:
            return cause
    return Cause("", sorted({other for _, other in edge_list if other not in stuck.waiting}))


# ---------------------------------------------------------------- what the rules look for


def _finished_without_it(stuck: Stuck) -> Cause | None:
    if stuck.collectives and stuck.finished and not stuck.messages:
        return cause_of_finished(stuck.collectives, stuck.finished, stuck.notes, stuck.counts)
    return None


def _collectives_differ(stuck: Stuck) -> Cause | None:
    return cause_of_difference(stuck.collectives) if len(stuck.collectives) > 1 else None


def _only_broadcast_object(stuck: Stuck) -> Evidence | None:
    # Horovod's: torch.distributed has a list, ours is bcast_obj
    calls = {here.call for here in stuck.waiting.values()}
    return Evidence([]) if calls == {"broadcast_object"} else None


def _send_without_a_wait(stuck: Stuck) -> Evidence | None:
    for rank, here in sorted(stuck.messages.items()):
        if here.peer is not None and _dropped(rank, here, stuck.where, stuck.notes):
            return Evidence([here.peer], {"rank": rank, "peer": here.peer})
    return None


def _other_tag(stuck: Stuck) -> Evidence | None:
    for rank, here in sorted(stuck.messages.items()):
        sent = _unanswered_tag(rank, here, stuck.notes)
        if sent is not None and here.peer is not None:
            fields = {"rank": rank, "peer": here.peer, "sent": sent, "asked": here.tag}
            return Evidence([rank, here.peer], fields)
    return None


def _peer_has_finished(stuck: Stuck, fits: Callable[[str], bool]) -> Evidence | None:
    """The first rank whose peer has finished the cell, if the call in which it waits `fits`."""
    for rank, here in sorted(stuck.messages.items()):
        if here.peer is not None and here.peer in stuck.finished:
            fields = {"rank": rank, "peer": here.peer}
            return Evidence([here.peer], fields) if fits(here.call) else None
    return None


def _no_gradient(stuck: Stuck) -> Evidence | None:
    return _peer_has_finished(stuck, lambda call: call.endswith(".backward"))


def _nothing_sent(stuck: Stuck) -> Evidence | None:
    return _peer_has_finished(stuck, lambda call: "recv" in call)


def _nothing_received(stuck: Stuck) -> Evidence | None:
    return _peer_has_finished(stuck, lambda call: "recv" not in call)


def _cycle(stuck: Stuck) -> Evidence | None:
    if not stuck.cycle:
        return None
    closed = [*stuck.cycle, stuck.cycle[0]]
    return Evidence(stuck.cycle, {"cycle": " -> ".join(map(str, closed))})


def _cycle_of_recv(stuck: Stuck) -> Evidence | None:
    calls = [stuck.messages[rank].call for rank in stuck.cycle if rank in stuck.messages]
    all_receive = len(calls) == len(stuck.cycle) and set(calls) <= {"recv", "irecv"}
    return _cycle(stuck) if all_receive else None


def _cycle_of_backward(stuck: Stuck) -> Evidence | None:
    in_backward = any(stuck.waiting[rank].call.endswith(".backward") for rank in stuck.cycle)
    return _cycle(stuck) if in_backward else None


def _earlier_call_not_ended(stuck: Stuck) -> Evidence | None:
    begun = any(
        note["call"] in ("isend", "irecv") for calls in stuck.notes.values() for note in calls
    )
    if not begun or not stuck.collectives or stuck.messages or stuck.edges:
        return None
    calls = sorted({here.call for here in stuck.collectives.values()})
    return Evidence([], {"call": " / ".join(calls)})


# ---------------------------------------------------------------- the rules


def _says(
    sentence: str, find: Callable[[Stuck], Evidence | None], of_messages: bool = True
) -> Rule:
    """The rule that says `sentence` where `find` finds something.

    of_messages : it also says how a group's ranks are named, where that may be the mistake.
    """

    def rule(stuck: Stuck) -> Cause | None:
        evidence = find(stuck)
        if evidence is None:
            return None
        text = SENTENCES[sentence].format(**evidence.fields)
        if of_messages:
            text += _hint_on_ranks(stuck.messages)
        return Cause(text, evidence.culprits)

    return rule


# The first rule that applies names the cause, so a rule that explains more comes first.
RULES: tuple[Rule, ...] = (
    _finished_without_it,
    _says("object without a name", _only_broadcast_object, of_messages=False),
    _collectives_differ,
    _says("dropped", _send_without_a_wait),
    _says("wrong tag", _other_tag),
    _says("no gradient", _no_gradient),
    _says("nobody sends", _nothing_sent),
    _says("nobody receives", _nothing_received),
    _says("cycle of recv", _cycle_of_recv),
    _says("cycle of backward", _cycle_of_backward),
    _says("cycle", _cycle),
    _says("not ended", _earlier_call_not_ended),
)


def _hint_on_ranks(messages: dict[int, Where]) -> str:
    """A sentence on how ranks are named in a group whose members are not 0, 1, 2, ...; or ""."""
    groups = [
        here.group
        for here in messages.values()
        if here.group and here.group != list(range(len(here.group)))
    ]
    return (
        " " + SENTENCES["numbers in a group"].format(group=ranks_text(groups[0])) if groups else ""
    )


def _dropped(rank: int, here: Where, where: dict[int, Where], notes: dict[int, list[Note]]) -> bool:
    """Whether the peer began to send what this rank waits for, and then did not wait for it.

    A message whose work is kept arrives by itself where a rank receives it.
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
    """Set which asynchronous operation a rank must be waiting for.

    It is one whose counterpart the other side has not called.
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
    """The asynchronous collectives that some ranks of a group began and others never did.

    Of each group it is the first such call with `async_op=True` that no rank is seen to wait for,
    as [(note, ranks that began it, the others)].
    """
    begun: dict[tuple[str, int], dict[int, Note]] = {}
    first_open: dict[str, tuple[Note, list[int], list[int]] | None] = {}
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
            == (begun_call["call"], sequence, begun_call.get("ranks"))
            for rank, begun_call in by_rank.items()
            if rank in where
        )
        known = all(rank in where and len(notes.get(rank, [])) < SLOTS for rank in others)
        if others and known:  # of the next ones nothing needs to be said
            first_open.setdefault(group, None if seen else (note, sorted(by_rank), others))
    return list(filter(None, first_open.values()))


def _unanswered_tag(rank: int, here: Where, notes: dict[int, list[Note]]) -> int | None:
    """The tag of a message that the peer sent to `rank` and that `rank` never asked for.

    None where there is no such message.
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
