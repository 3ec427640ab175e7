"""Handing in on a hub: a server asks the board's service, which knows whose server it is, and has
the event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from manyhands.hackathon.event import event_messages
from manyhands.hackathon.event.event import NotTaken
from manyhands.shared import hub_client

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


TIMEOUT_S = 30
DOES: dict[str, Callable[..., str]] = {
    "submit": event_messages.handed_in,
    "withdraw": event_messages.withdrawn,
    "status": event_messages.status,
}


class Message(TypedDict):
    """What a server asks the hub: a key of `DOES`, and its values."""

    hack: str
    values: Sequence[object]


class Answer(TypedDict, total=False):
    """What the hub answers: one of the two."""

    said: str  # what the team is told
    error: str  # why it was not taken


def ask(what: str, *values: object) -> str:
    """What the hub tells; `NotTaken` where it does not take it, or does not answer."""
    message: Message = {"hack": what, "values": values}
    answer = hub_client.ask_board(message, TIMEOUT_S)
    if "error" in answer:
        raise NotTaken(answer["error"])
    if "said" not in answer:
        raise NotTaken(
            "No hub answers here. Without a hub, name the event and the team: --event FOLDER --team"
            " NAME. On a hub, use `manyhands hack status` to see whether the entry was taken."
        )
    return answer["said"]
