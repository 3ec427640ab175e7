"""Handing in on a hub: a server asks the board's service.

The service knows whose server it is, and has the event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from manyhands.hackathon.event.event import NotTakenError
from manyhands.shared import hub_client

if TYPE_CHECKING:
    from collections.abc import Sequence


TIMEOUT_S = 30


class Message(TypedDict):
    """What a server asks the hub: a key of `team_requests.REQUESTS`, and its values."""

    hack: str
    values: Sequence[object]


class Answer(TypedDict, total=False):
    """What the hub answers: one of the two."""

    said: str  # what the team is told
    error: str  # why it was not taken


def ask(what: str, *values: object) -> str:
    """What the hub tells; `NotTakenError` where it does not take it, or does not answer."""
    message: Message = {"hack": what, "values": values}
    answer = hub_client.ask_board(message, TIMEOUT_S)
    if "error" in answer:
        raise NotTakenError(answer["error"])
    if "said" not in answer:
        raise NotTakenError(
            "No hub answers here. Without a hub, name the event and the team: --event FOLDER --team"
            " NAME. On a hub, use `manyhands hack status` to see whether the entry was taken."
        )
    return answer["said"]
