"""The hackathon of a hub: the folder `hackathon` in the hub's folder, made by `manyhands hack event`. Teams are lists
of accounts in its event.toml. Whose entry it is follows from the account that hands it in."""

from pathlib import Path

from tornado.web import HTTPError, authenticated

NAME = "hackathon"
MOST_TOLD = 3500  # of an answer: less than its reader takes
NONE = "There is no hackathon on this hub now."


class HubEvent:
    def __init__(self, folder):
        self.folder = Path(folder) / NAME

    def is_there(self):
        return (self.folder / "event.toml").exists()

    def take(self, account, message):
        """{"said": ...} or {"error": ...} for what an account asks."""
        from manyhands.hackathon.entry_file import BadEntry
        from manyhands.hackathon.event.event import Event, NotTaken
        from manyhands.hackathon.event.event_settings import BadEvent
        from manyhands.hackathon.event.hub_line import DOES

        if not self.is_there():
            return {"error": NONE}
        try:
            event = Event(self.folder)
            team = event.settings.team_of(account.name)
            if team is None:
                return {"error": f"{account.name} is in no team: ask the organisers."}
            if message["hack"] == "withdraw" and event.now() > event.settings.ends:
                return {"error": "The event is over: ask the organisers."}
            said = DOES[message["hack"]](event, team, *_values(message))
        except (NotTaken, BadEntry) as problem:
            return {"error": str(problem)[:MOST_TOLD]}
        except BadEvent:
            return {"error": "The event's settings are broken: tell the organisers."}
        except (KeyError, TypeError):
            return {"error": "This is nothing that can be asked of the hackathon."}
        return {"said": said if len(said) < MOST_TOLD else "... " + said[-MOST_TOLD:]}

    def page(self, name):
        """The board's page, or the big screen's, as the judge has written it; None where there is none."""
        try:
            return (self.folder / "board" / f"{name}.html").read_text(encoding="utf-8")
        except OSError:
            return None


class EventPage:
    """The pages of the hackathon's board, for everybody whose account is open; for a `Handler` of the service."""

    @authenticated
    def get(self, name):
        page = self.account and self.service.hackathon.page(name)
        if page is None:
            raise HTTPError(404, "There is no hackathon's board yet: the judge writes it.")
        allowed = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
        self.set_header("Content-Security-Policy", allowed)
        self.write(page)


def _values(message):
    """The values of a message, each of the kind that its call takes."""
    kinds = {"submit": (str, str), "withdraw": (int,), "status": ()}[message["hack"]]
    values = message["values"]
    if not isinstance(values, list) or [type(one) for one in values] != list(kinds):
        raise TypeError(values)
    return values
