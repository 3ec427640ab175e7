"""Handing in on a hub: a server asks the board's service, which knows whose server it is, and has
the event.
"""

from manyhands.hackathon.event import event_words
from manyhands.hackathon.event.event import NotTaken
from manyhands.learner import board_line

PATIENCE_S = 30
DOES = {
    "submit": event_words.handed_in,
    "withdraw": event_words.withdrawn,
    "status": event_words.status,
}


def ask(what, *values):
    """What the hub tells; `NotTaken` where it does not take it, or does not answer."""
    answer = board_line.send({"hack": what, "values": values}, PATIENCE_S)
    if "error" in answer:
        raise NotTaken(answer["error"])
    if "said" not in answer:
        raise NotTaken(
            "No hub answers here. Without a hub, name the event and the team: --event FOLDER --team"
            " NAME. On a hub, use `manyhands hack status` to see whether the entry was taken."
        )
    return answer["said"]
