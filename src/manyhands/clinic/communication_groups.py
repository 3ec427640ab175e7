"""Which ranks send what, and in which groups, in the steps that were written down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyhands.clinic.communication import sums_gradients
from manyhands.clinic.tolerances import MOST_PARAMETERS

if TYPE_CHECKING:
    from manyhands.clinic.records import Message
    from manyhands.clinic.visit import Visit


def parameter_sizes(visit: Visit, rank: int) -> dict[str, int]:
    """Return {name: how many numbers} of the parameters that a rank trains."""
    return {name: part.numel() for name, part in visit.seen[rank]["start"].items()}


def messages_of(visit: Visit, rank: int) -> list[Message]:
    """Return the messages of all recorded steps of a rank, in order."""
    return [message for step in visit.seen[rank]["steps"] for message in step["messages"]]


def groups_of_sums(visit: Visit, rank: int, most: float = MOST_PARAMETERS) -> list[tuple[int, ...]]:
    """The groups over which a rank sums most of its parameters' gradients, the largest first."""
    steps, sizes = visit.seen[rank]["steps"], set(parameter_sizes(visit, rank).values())
    total = sum(parameter_sizes(visit, rank).values())
    count: dict[tuple[int, ...], int] = {}
    for message in messages_of(visit, rank):
        # and no gradient of activations
        bucket = len(message["shape"] or ()) < 2 or message["numel"] in sizes
        if sums_gradients(message) and (bucket or message["native"] or message["of"]):
            count[message["ranks"]] = count.get(message["ranks"], 0) + message["numel"]
    groups = [group for group, numel in count.items() if numel >= most * total * len(steps)]
    return sorted(groups, key=len, reverse=True)


def groups_inside(visit: Visit, rank: int) -> dict[tuple[int, ...], set[str]]:
    """{group: calls} of what a rank's model sends in its forward."""
    calls_by_group: dict[tuple[int, ...], set[str]] = {}
    for message in messages_of(visit, rank):
        several = message["peer"] is None and len(message["ranks"]) > 1 and message["numel"] > 1
        if several and message["phase"] == "forward":
            calls_by_group.setdefault(message["ranks"], set()).add(message["call"])
    return {
        group: calls for group, calls in calls_by_group.items() if calls - {"broadcast", "barrier"}
    }


def first_inside(visit: Visit, rank: int, group: tuple[int, ...]) -> tuple[str, list[int] | None]:
    """Return (call, shape) of the first message of this group in forward.

    It is a sum of rows, or an exchange of rows before one.
    """
    return next(
        (
            (message["call"], message["shape"])
            for message in messages_of(visit, rank)
            if (message["ranks"], message["phase"]) == (group, "forward") and message["numel"] > 1
        ),
        ("", None),
    )


def stages(visit: Visit) -> list[list[int]]:
    """The groups of ranks that are stages of one pipeline: those that send each other messages."""
    groups: list[set[int]] = []
    for rank in range(visit.ranks):
        group = {
            rank,
            *(
                message["peer"]
                for message in messages_of(visit, rank)
                if message["peer"] is not None
            ),
        }
        joined = [other for other in groups if other & group]
        groups = [other for other in groups if other not in joined] + [group.union(*joined)]
    return [sorted(group) for group in groups]
