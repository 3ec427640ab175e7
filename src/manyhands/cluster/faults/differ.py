"""In what the collectives differ that ranks wait in: their names, groups, tensors or numbers. The likely cause follows
from that, and "different orders" is said of different names only."""

from manyhands.cluster.faults.sentences import SENTENCES, ranks_text


def members_text(ranks):
    return ranks_text(ranks) if ranks else SENTENCES["all ranks"]


def cause_of_finished(collectives, gone, notes):
    """(sentence, culprits) where ranks wait in collectives and others, `gone`, have finished the cell."""
    calls = sorted({here.call for here in collectives.values()})
    made = {rank: [note for note in notes.get(rank, []) if note["call"] in calls] for rank in (*gone, *collectives)}
    groups = {tuple(here.group or ()) for here in collectives.values()}
    elsewhere = {rank: one for rank in gone for one in made[rank][-1:]
                 if all(tuple(note.get("ranks") or ()) not in groups for note in made[rank])
                 and not _is_met(rank, one, made, collectives)}
    if elsewhere:
        standing = {**{rank: here.group for rank, here in collectives.items()},
                    **{rank: note.get("ranks") for rank, note in elsewhere.items()}}
        return SENTENCES["other group"].format(groups=_by_group(standing), call=" / ".join(calls)), sorted(elsewhere)
    sentence = "called less often" if any(made[rank] for rank in gone) else "never called"
    if calls == ["backward"]:  # the record does not hold what C++ calls: how often, is not known
        sentence = "fewer backwards"
    return SENTENCES[sentence].format(culprits=ranks_text(gone), call=" / ".join(calls)), gone


def _is_met(rank, last, made, waiting):
    """Whether nothing is missing in the group of this rank's last call: a member that waits now has made the call there
    as often, or some rank that waits has made more calls in all."""
    def there(member):
        return sum((one["call"], one["group"]) == (last["call"], last["group"]) for one in made[member])

    members = last.get("ranks") or waiting
    return any(len(made[member]) > len(made[rank]) or member in members and there(member) >= there(rank)
               for member in waiting)


def cause_of_difference(collectives):
    """(sentence, culprits) where all these ranks wait in collectives that do not fit together; None where they do."""
    if len({here.call for here in collectives.values()}) > 1:
        groups = len({tuple(here.group or ()) for here in collectives.values()}) > 1
        calls = _listed({rank: _in_group(here) if groups else here.call for rank, here in collectives.items()})
        return SENTENCES["other order"].format(calls=calls), sorted(collectives)
    call = next(iter(collectives.values())).call
    if _cross(collectives):
        standing = {rank: here.group for rank, here in collectives.items()}
        return SENTENCES["other group"].format(groups=_by_group(standing), call=call), sorted(collectives)
    for group in {tuple(here.group or ()) for here in collectives.values()}:
        inside = {rank: here for rank, here in collectives.items() if tuple(here.group or ()) == group}
        if len({(here.dtype, tuple(here.shape or ())) for here in inside.values()}) > 1:
            tensors = _listed({rank: here.what() for rank, here in inside.items()})
            return SENTENCES["other tensors"].format(tensors=tensors, group=members_text(group)), sorted(inside)
        numbers = {here.sequence for here in inside.values()}
        if len(numbers) > 1 and None not in numbers:
            fewest = [rank for rank, here in inside.items() if here.sequence == min(numbers)]
            return SENTENCES["other number"].format(
                numbers=_listed({rank: SENTENCES["number"].format(number=here.sequence + 1)
                                 for rank, here in inside.items()}), call=call, group=members_text(group)), fewest
    return None


def _cross(collectives):
    """Whether a rank waits in a group for a member that waits in a different one."""
    everyone = sorted(collectives)
    return any(other in collectives and (collectives[other].group or None) != (here.group or None)
               for here in collectives.values() for other in here.group or everyone)


def _in_group(here):
    return SENTENCES["ranks of a group"].format(call=here.call, value=members_text(here.group))


def _by_group(standing):
    return _listed({rank: SENTENCES["a group of"].format(group=members_text(group))
                    for rank, group in standing.items()})


def _listed(kinds):
    """`{rank: text}` as "text on ranks 0, 1, other text on rank 2"."""
    grouped = {}
    for rank, what in sorted(kinds.items()):
        grouped.setdefault(what, []).append(rank)
    return ", ".join(SENTENCES["is with"].format(what=what, ranks=ranks_text(ranks)) for what, ranks in grouped.items())
