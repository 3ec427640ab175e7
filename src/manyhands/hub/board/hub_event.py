"""The hackathon of a hub: the folder `hackathon` in the hub's folder.

`manyhands hack event` makes it. Teams are lists of accounts in its event.toml. Whose entry it is
follows from the account that hands it in.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tornado.web import HTTPError, authenticated

if TYPE_CHECKING:
    from typing import Any

    from manyhands.hackathon.event.event import Event
    from manyhands.hackathon.event.hub_line import Answer
    from manyhands.hub.accounts.table import Account


NAME, SETTINGS = "hackathon", "event.toml"
LETTER_BYTES = 12  # at most, in JSON: two escapes of six each
SHORTENED = "(older lines that are left out: {count})"
NOT_KEPT = (
    "The hub could not record this: {why}. Tell the organisers. `manyhands hack status` shows what "
    "was taken."
)
NONE = "There is no hackathon on this hub at the moment."


class HubEvent:
    """The hackathon's event in the hub's folder, if there is one."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder) / NAME
        self.seen: tuple[int, int, int] | None = None
        self.known: Event | None = None

    def event(self) -> Event:
        """The `Event`, which follows its log; a new one when the settings have changed.

        Raises BadEventError.
        """
        from manyhands.hackathon.event.event import Event

        facts = os.stat(self.folder / SETTINGS)
        seen = facts.st_mtime_ns, facts.st_ino, facts.st_size
        if seen != self.seen or self.known is None:
            self.known, self.seen = Event(self.folder), seen
        return self.known

    def is_there(self) -> bool:
        """Whether the hub's folder has an event."""
        return (self.folder / SETTINGS).exists()

    def take(self, account: Account, message: dict[str, Any]) -> Answer:
        """{"said": ...} or {"error": ...} for what an account asks."""
        from manyhands.hackathon.entry.entry_file import BadEntryError
        from manyhands.hackathon.event import team_requests
        from manyhands.hackathon.event.event import NotTakenError
        from manyhands.hackathon.event.event_settings import BadEventError

        if not self.is_there():
            return {"error": NONE}
        try:
            event = self.event()
            team = event.settings.team_of(account.name)
            if team is None:
                return {"error": f"{account.name} is not in a team. Ask the organisers."}
            if message["hack"] == "withdraw" and event.now() > event.settings.ends:
                return {"error": "The event is over. Ask the organisers."}
            reply = team_requests.do(event, team, message["hack"], message["values"])
        except (NotTakenError, BadEntryError) as problem:
            return {"error": str(problem)[: _most_letters()]}
        except (BadEventError, FileNotFoundError):
            return {"error": "The event's settings are invalid. Tell the organisers."}
        except (KeyError, TypeError):
            return {"error": "This is not a request that the hackathon knows."}
        except OSError as problem:  # as where the disk is full
            return {"error": NOT_KEPT.format(why=problem.strerror)}
        return {"said": shortened(reply, _most_letters())}

    def page(self, name: str) -> str | None:
        """The board's page, or the big screen's, as the judge has written it.

        None where there is none.
        """
        try:
            return (self.folder / "board" / f"{name}.html").read_text(encoding="utf-8")
        except OSError:
            return None


if TYPE_CHECKING:
    from manyhands.hub.board.service import Handler as _Handler
else:
    _Handler = object


class EventPage(_Handler):
    """The pages of the hackathon's board, for everybody whose account is open.

    It completes a `Handler` of the service.
    """

    @authenticated
    def get(self, name: str) -> None:
        """Send the board's page, or the big screen's."""
        page = self.service.hackathon.page(name) if self.account else None
        if page is None:
            raise HTTPError(
                404, "The hackathon does not have a board yet, because the judge writes it."
            )
        from manyhands.hackathon.event.board_page import policy

        self.set_header("Content-Security-Policy", f"{policy()}; frame-ancestors 'none'")
        self.write(page)


def shortened(text: str, most: int) -> str:
    """The last lines of a text, `most` letters at most together.

    Where there are more, a first line says how many lines are left out.
    """
    if len(text) <= most:
        return text
    lines, left = text.split("\n"), most - len(SHORTENED) - 10
    count = len(lines)
    while count and left > len(lines[count - 1]):
        count -= 1
        left -= len(lines[count]) + 1
    return (
        "\n".join([SHORTENED.format(count=count), *lines[count:]])
        if count < len(lines)
        else text[-most:]
    )


def _most_letters() -> int:
    """Of an answer, so that its reader takes it whole, whatever the letters are."""
    from manyhands.shared import hub_client

    return hub_client.LONGEST_ANSWER_BYTES // LETTER_BYTES - LETTER_BYTES
