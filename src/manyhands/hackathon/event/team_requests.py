"""What a team may ask of an event, by name.

An attendee's command and the hub's service both answer with this table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from manyhands.hackathon.event import event_messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from manyhands.hackathon.event.event import Event


class Request(NamedTuple):
    """What answers a request, and the types of the values that come with it."""

    answer: Callable[..., str]  # takes the event, the team and the values
    types: tuple[type, ...] = ()


REQUESTS = {
    "submit": Request(event_messages.handed_in, (str, str)),  # the challenge, the entry's text
    "withdraw": Request(event_messages.withdrawn, (int,)),  # the entry's number
    "status": Request(event_messages.status),
}


def do(event: Event, team: str, name: str, values: object) -> str:
    """Do what a team asks; returns what the team is told.

    Raises KeyError for a name that is not in `REQUESTS`, TypeError for values of other types, and
    what the event raises where it does not accept the request.
    """
    request = REQUESTS[name]
    if not isinstance(values, list) or [type(value) for value in values] != [*request.types]:
        raise TypeError(values)
    return request.answer(event, team, *values)
