"""In what the collectives differ that ranks wait in: their names, groups, tensors or numbers.

The likely cause follows from that, and "different orders" is said of different names only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from manyhands.cluster.faults.fault_messages import SENTENCES, ranks_text
from manyhands.cluster.on_rank.recorder import SLOTS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from manyhands.cluster.faults.kinds import Where
    from manyhands.cluster.payloads import Note


class Cause(NamedTuple):
    """The likely cause of a hang."""

    text: str
    culprits: list[int]
    # the culprits have ended, and made the call at least once, but less often than the others
    less_often: bool = False
    differs: str = ""  # in what the calls differ: see `Fault`


def members_text(ranks: Collection[int] | None) -> str:
    """The members of a group in words, or "all ranks" for the whole world."""
    return ranks_text(ranks) if ranks else SENTENCES["all ranks"]


def cause_of_finished(
    collectives: dict[int, Where],
    gone: list[int],
    notes: dict[int, list[Note]],
    counts: dict[int, dict[str, int]],
) -> Cause:
    """The `Cause` where ranks wait in collectives and others, `gone`, have finished the cell."""
    calls = sorted({here.call for here in collectives.values()})
    made = {
        rank: [note for note in notes.get(rank, []) if note["call"] in calls]
        for rank in (*gone, *collectives)
    }
    groups = {tuple(here.group or ()) for here in collectives.values()}
    elsewhere = {
        rank: last_call
        for rank in gone
        for last_call in made[rank][-1:]
        if all(tuple(note.get("ranks") or ()) not in groups for note in made[rank])
        and not _is_met(rank, last_call, made, collectives)
    }
    if elsewhere:
        standing = {
            **{rank: here.group for rank, here in collectives.items()},
            **{rank: note.get("ranks") for rank, note in elsewhere.items()},
        }
        return Cause(
            SENTENCES["other group"].format(groups=_by_group(standing), call=" / ".join(calls)),
            sorted(elsewhere),
            differs="groups",
        )
    times = {
        rank: _times(calls, collectives, made[rank], notes.get(rank), counts.get(rank, {}))
        for rank in made
    }
    key, less_often = _how_often(
        [times[rank] for rank in gone], [times[rank] for rank in collectives]
    )
    text = SENTENCES[key].format(
        culprits=ranks_text(gone),
        call=" / ".join(calls),
        made=_range(times, gone),
        others=_range(times, collectives),
    )
    if calls == ["backward"] and key != "never called":
        text += " " + SENTENCES["not synchronised" if key == "called as often" else "same batches"]
    return Cause(
        f"{text} {SENTENCES['must call' if key == 'never called' else 'must make']}",
        gone,
        less_often,
    )


def _times(
    calls: list[str],
    collectives: dict[int, Where],
    made: list[Note],
    notes: list[Note] | None,
    counts: dict[str, int],
) -> int | None:
    """How often a rank has made these calls; None where it was not counted.

    The record knows the calls of torch.distributed that Python makes, as many as it has room for;
    such a call has a number.
    """
    if all(call in counts for call in calls):
        return sum(counts[call] for call in calls)
    recorded = all(here.sequence is not None for here in collectives.values())
    return len(made) if recorded and notes is not None and len(notes) < SLOTS else None


def _how_often(gone: list[int | None], waiting: list[int | None]) -> tuple[str, bool]:
    """The key of the sentence about numbers of calls, and whether it says "less often".

    That is, whether ranks that have ended made the call, but less often than the others.
    """
    less, more = (
        [number for number in gone if number is not None],
        [number for number in waiting if number is not None],
    )
    if len(less) < len(gone):
        return "called less often, or never", False
    if not any(less):
        return "never called", False
    if len(more) < len(waiting):
        return "called less often, or never", False
    return ("called less often", True) if max(less) < min(more) else ("called as often", False)


def _range(times: dict[int, int | None], ranks: Iterable[int]) -> str:
    """`3`, or `2 to 4`."""
    numbers = [number for rank in ranks if (number := times[rank]) is not None]
    if len(set(numbers)) < 2:
        return "".join(map(str, numbers[:1]))
    return SENTENCES["from to"].format(least=min(numbers), most=max(numbers))


def _is_met(rank: int, last: Note, made: dict[int, list[Note]], waiting: dict[int, Where]) -> bool:
    """Whether nothing is missing in the group of this rank's last call.

    Either a member that waits now has made the call there as often, or some rank that waits has
    made more calls in all.
    """

    def there(member: int) -> int:
        return sum(
            (note["call"], note["group"]) == (last["call"], last["group"]) for note in made[member]
        )

    members = last.get("ranks") or waiting
    return any(
        len(made[member]) > len(made[rank]) or (member in members and there(member) >= there(rank))
        for member in waiting
    )


def cause_of_difference(collectives: dict[int, Where]) -> Cause | None:
    """The `Cause` where all these ranks wait in collectives that do not fit together.

    None where they do fit.
    """
    if len({here.call for here in collectives.values()}) > 1:
        groups = len({tuple(here.group or ()) for here in collectives.values()}) > 1
        calls = _listed(
            {rank: _in_group(here) if groups else here.call for rank, here in collectives.items()}
        )
        return Cause(
            SENTENCES["other order"].format(calls=calls), sorted(collectives), differs="calls"
        )
    call = next(iter(collectives.values())).call
    if (
        _cross(collectives)
        and len({(here.dtype, tuple(here.shape or ())) for here in collectives.values()}) > 1
    ):
        calls = _listed({rank: here.what() for rank, here in collectives.items()})
        return Cause(
            SENTENCES["other call"].format(calls=calls), sorted(collectives), differs="calls"
        )
    if _cross(collectives):
        standing = {rank: here.group for rank, here in collectives.items()}
        return Cause(
            SENTENCES["other group"].format(groups=_by_group(standing), call=call),
            sorted(collectives),
            differs="groups",
        )
    for group in {tuple(here.group or ()) for here in collectives.values()}:
        inside = {
            rank: here for rank, here in collectives.items() if tuple(here.group or ()) == group
        }
        if len({(here.dtype, tuple(here.shape or ())) for here in inside.values()}) > 1:
            tensors = _listed({rank: here.what() for rank, here in inside.items()})
            return Cause(
                SENTENCES["other tensors"].format(tensors=tensors, group=members_text(group)),
                sorted(inside),
                differs="tensors",
            )
        numbers = {
            rank: here.sequence for rank, here in inside.items() if here.sequence is not None
        }
        if len(set(numbers.values())) > 1 and len(numbers) == len(inside):
            fewest = [rank for rank, number in numbers.items() if number == min(numbers.values())]
            listed = _listed(
                {
                    rank: SENTENCES["number"].format(number=number + 1)
                    for rank, number in numbers.items()
                }
            )
            return Cause(
                SENTENCES["other number"].format(
                    numbers=listed, call=call, group=members_text(group)
                ),
                fewest,
                differs="numbers",
            )
    return None


def _cross(collectives: dict[int, Where]) -> bool:
    """Whether a rank waits in a group for a member that waits in a different one."""
    everyone = sorted(collectives)
    return any(
        other in collectives and (collectives[other].group or None) != (here.group or None)
        for here in collectives.values()
        for other in here.group or everyone
    )


def _in_group(here: Where) -> str:
    return SENTENCES["ranks of a group"].format(call=here.call, value=members_text(here.group))


def _by_group(standing: Mapping[int, list[int] | None]) -> str:
    return _listed(
        {
            rank: SENTENCES["a group of"].format(group=members_text(group))
            for rank, group in standing.items()
        }
    )


def _listed(kinds: Mapping[int, str]) -> str:
    """`{rank: text}` as "text on ranks 0, 1, other text on rank 2"."""
    grouped: dict[str, list[int]] = {}
    for rank, what in sorted(kinds.items()):
        grouped.setdefault(what, []).append(rank)
    return ", ".join(
        SENTENCES["is with"].format(what=what, ranks=ranks_text(ranks))
        for what, ranks in grouped.items()
    )
