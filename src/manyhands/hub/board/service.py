"""The class board: `python -m manyhands.hub.board.service FOLDER`, a service of the hub.

Results come in through a socket that every room sees, `board.sock`: one line of JSON, one line
back. The kernel tells whose process has connected, so nobody can write another's row. People look
at it through the hub, at /services/board/, and their browser is sent what has changed (server-sent
events): instructors and assistants the room, an attendee the own row. Grades come from grading
only; nothing here is one.
"""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import resource
import sys
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from jupyterhub.services.auth import HubOAuthenticated
from tornado.httpserver import HTTPServer
from tornado.iostream import StreamClosedError
from tornado.web import (
    Application,
    HTTPError,
    RequestHandler,
    StaticFileHandler,
    authenticated,
)

from manyhands.hub.accounts.table import ATTENDEE
from manyhands.hub.board.door import Door
from manyhands.hub.board.files import Course, File, People
from manyhands.hub.board.hub_event import EventPage, HubEvent
from manyhands.hub.board.refresh_times import BEAT_S, REFRESH_S, STREAM_S
from manyhands.hub.board.state import Board, as_table
from manyhands.hub.folder import BOARD, sockets
from manyhands.hub.services import watchdog
from manyhands.hub.services.hub_auth import AsyncHubOAuth, Callback, ask_first
from manyhands.units import units

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Any, NoReturn

    from manyhands.hackathon.event import hub_line
    from manyhands.hub.accounts.table import Account
    from manyhands.hub.board.door import Answer
    from manyhands.hub.board.state import ClassView, Own, Row


PAGE = Path(__file__).parent / "page"
LONGEST_REQUEST_BYTES = 2**16  # of a browser
A_SECOND, AT_ONCE = 2, 10  # results that a person may send, for long and for a moment
STREAMS = 6  # pages that follow the board at the same time, of one person
SAFE = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
TOO_MANY = "too many results at the same time: wait a moment"
TOO_MANY_PAGES = "The board is open in too many pages. Close one."
TITLES = {unit.name: f"{unit.number} {unit.title}" for unit in units(Path())}
NO_QUESTION = "no tutorial asks for the prediction {name!r}"
NO_UNIT = "there is no unit {unit!r}, or its reference is not made yet"


class Service:
    """The board with its files; `version` changes with all that is shown."""

    def __init__(self, folder: str) -> None:
        self.board, self.people, self.course = Board(), People(folder), Course(folder)
        self.file, self.hackathon = File(folder, self.board), HubEvent(folder)
        self.version = 0
        # {uid: (how many results are left, since when)}
        self.allowances: dict[int, tuple[float, float]] = {}
        # what was worked out since the last change
        self.known: dict[Hashable, Any] = {}
        self.known_at: tuple[int, tuple[int, int] | None] | None = None

    def take(self, account: Account, line: bytes) -> Answer | hub_line.Answer:
        """A person's result, as it came: what to answer.

        The sender is told why a result was not taken.
        """
        if not self._allow(account.uid):
            return {"error": TOO_MANY}
        try:
            result = json.loads(line)
            if isinstance(result, dict) and "hack" in result:
                return self.hackathon.take(account, result)
            if isinstance(result, dict) and "prediction" in result:
                return self._take_prediction(account, result)
            unit: Any = result.get("unit") if isinstance(result, dict) else None
            criteria = self.course.criteria(unit)
            if not criteria:
                return {"error": NO_UNIT.format(unit=str(unit)[:64])}
            row = self.board.take(account.uid, unit, criteria, result)
        except (ValueError, RecursionError) as problem:  # no JSON, or a BadResultError
            return {"error": str(problem)[:200]}
        self._changed(row)
        return {"announcement": self.board.announcement["text"] if self.board.announcement else ""}

    def _take_prediction(self, account: Account, message: dict[str, Any]) -> Answer:
        """A person's prediction, or what their run gave."""
        name = message["prediction"]
        question = self.course.questions().get(name) if isinstance(name, str) else None
        if not question:
            return {"error": NO_QUESTION.format(name=str(name)[:64])}
        line = self.board.predictions.take(account.uid, question, message)
        self.version += 1
        self.file.add(line)
        return {"announcement": ""}

    def announce(self, account: Account, text: str) -> None:
        """Show a text of the staff on everybody's board."""
        self.board.announce(text, account.name)
        self._changed(None)

    def _changed(self, row: Row | None) -> None:
        self.version += 1
        self.file.add(vars(row) if row else {"announcement": self.board.announcement})

    def _allow(self, uid: int) -> bool:
        """Whether this person may send one more result now."""
        left, then = self.allowances.get(uid, (AT_ONCE, 0.0))
        left, now = min(AT_ONCE, left + (time.monotonic() - then) * A_SECOND), time.monotonic()
        allowed = left >= 1
        # what is refused costs nothing: one who tries again gets through
        self.allowances[uid] = left - allowed, now
        return allowed

    def view(self, account: Account, unit: str) -> str:
        """What the person's page shows, as JSON; `unit` is "" for the one that most are at."""
        self._look()
        whole, unit = account.role != ATTENDEE, unit if self.course.criteria(unit) else ""
        return self._once(
            ("view", unit, "" if whole else account.name),
            lambda: json.dumps(self._view(account, unit, whole)),
        )

    def _look(self) -> None:
        """Forget what was worked out before the last change."""
        self.people.look()
        if self.known_at != (self.version, self.people.read):
            self.known, self.known_at = {}, (self.version, self.people.read)

    def predictions(self, name: str, reveal: bool, names: bool) -> str:
        """What the page of predictions shows, as JSON.

        `name` is "" for the question that most are at.
        """
        self._look()
        return self._once(
            ("predictions", name, reveal, names),
            lambda: json.dumps(self._predictions(name, reveal, names)),
        )

    def _predictions(self, name: str | None, reveal: bool, names: bool) -> dict[str, Any]:
        people, asked, predictions = (
            self._once("people", self.attendees),
            self.course.questions(),
            self.board.predictions,
        )
        name = name if name in asked else predictions.current(people)
        counts = predictions.counts(people)
        listed = [
            [question.name, question.text, counts.get(question.name, 0)]
            for question in asked.values()
        ]
        shown = (
            predictions.histogram(asked[name], people, self.people.staff(), reveal, names)
            if name in asked
            else None
        )
        return {
            "questions": listed,
            "units": {name[:2]: title for name, title in TITLES.items()},
            "shown": shown,
        }

    def _once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Work something out once after each change."""
        if key not in self.known:
            self.known[key] = make()
        return self.known[key]

    def _view(self, account: Account, unit: str, whole: bool) -> dict[str, Any]:
        people = self._once("people", self.attendees)
        seen = people if whole else {account.uid: account}
        checked = self.board.units(seen)
        current = unit if unit in checked else self.board.current(seen.keys())
        unit = current or ""
        criteria = self.course.criteria(unit)
        shown: ClassView | Own
        if whole:
            shown = self.board.room(unit, criteria, people)
        else:
            shown = self.board.own(
                unit,
                criteria,
                account,
                self._once(("all", unit), lambda: self.board.of_all(unit, criteria, people)),
            )
        return {
            "unit": current,
            "units": [[name, TITLES.get(name, name)] for name in checked],
            **shown,
        }

    def attendees(self) -> dict[int, Account]:
        """{uid: Account} of those whose rows the board shows to the staff."""
        return self.people.attendees({uid for rows in self.board.rows.values() for uid in rows})

    def table(self, unit: str) -> str:
        """The room as CSV."""
        text = io.StringIO()
        csv.writer(text).writerows(
            as_table(unit, self.board.room(unit, self.course.criteria(unit), self.attendees()))
        )
        return text.getvalue()


class Handler(HubOAuthenticated, RequestHandler):
    """Pages for people whom the hub knows and whose account is open."""

    def initialize(self, service: Service, hub_auth: AsyncHubOAuth) -> None:
        """Keep what all handlers share; tornado calls it for each request."""
        self.service, self.hub_auth = service, hub_auth

    def set_default_headers(self) -> None:
        """Set the headers that keep a page from other sites."""
        for name, value in SAFE.items():
            self.set_header(name, value)

    async def prepare(self) -> None:
        """Ask the hub who sends the request, before anything is answered."""
        await ask_first(self)

    @property
    def account(self) -> Account:
        """The person's account; raises a 403."""
        account = self.service.people.of_name(self.current_user["name"])
        if not account:
            raise HTTPError(403, "This account is closed.")
        return account

    def staff(self) -> Account:
        """The same, for those who see the whole room only."""
        if self.account.role == ATTENDEE:
            raise HTTPError(403, "This page is only for instructors and assistants.")
        return self.account


class Page(Handler):
    """The class board."""

    @authenticated
    def get(self) -> None:
        """Send the page, as this person is to see it."""
        self.render(
            "board.html",
            staff=self.account.role != ATTENDEE,
            name=self.account.full_name or self.account.name,
            hackathon=self.service.hackathon.is_there(),
            hub=self.hub_auth.hub_prefix,
        )


class Events(Handler):
    """The stream of the board's changes to a page that is open."""

    streams: ClassVar[Counter[str]] = Counter()  # of all connections

    def get_login_url(self) -> NoReturn:
        """Refuse with a 403, because a stream cannot be sent to a log-in page."""
        raise HTTPError(403)  # a stream cannot be sent to a log-in page: the page is loaded again

    @authenticated
    async def get(self) -> None:
        """Send events until the person may not see them any more, or `STREAM_S` are over."""
        account, began = self.account, time.time()
        view = self.view_of(account)
        if self.streams[account.name] >= STREAMS:
            raise HTTPError(429, TOO_MANY_PAGES)
        self.streams[account.name] += 1
        self.set_header("Content-Type", "text/event-stream")
        try:
            with suppress(StreamClosedError):
                await self._send("clock", json.dumps(began))
                await self._follow(account, view, began)
        finally:
            self.streams[account.name] -= 1

    def view_of(self, account: Account) -> Callable[[], str]:
        """A function that gives what this person is to see now."""
        return partial(self.service.view, account, self.get_query_argument("unit", ""))

    async def _follow(self, account: Account, view_now: Callable[[], str], began: float) -> None:
        """Send what has changed, once in a while, as long as the person may see it."""
        sent, when = None, 0.0
        while time.time() < began + STREAM_S:
            now = self.service.people.of_name(account.name)
            if not now or now.role != account.role or not now.admits(began):
                break
            view = view_now()
            if view is not sent:
                await self._send("room", view)
                sent, when = view, time.monotonic()
            elif time.monotonic() > when + BEAT_S:
                await self._send("beat", "0")
                when = time.monotonic()
            await asyncio.sleep(REFRESH_S)

    async def _send(self, event: str, data: str) -> None:
        self.write(f"event: {event}\ndata: {data}\n\n")  # JSON has no line ends of its own
        await self.flush()


class PredictionsPage(Handler):
    """The page of predictions, for staff."""

    @authenticated
    def get(self) -> None:
        """Send the page, to staff only."""
        self.staff()
        self.render("predictions.html", hub=self.hub_auth.hub_prefix)


class PredictionsEvents(Events):
    """The stream of the predictions' changes to a page that is open."""

    def view_of(self, account: Account) -> Callable[[], str]:
        """Return a function that gives what the page of predictions is to show now."""
        self.staff()
        reveal, names = (self.get_query_argument(word, "") == "1" for word in ("reveal", "names"))
        return partial(
            self.service.predictions, self.get_query_argument("question", ""), reveal, names
        )


class HackathonPage(EventPage, Handler):
    """The hackathon's board."""


class Announcement(Handler):
    """A word of the staff to the whole class."""

    @authenticated
    def post(self) -> None:
        """Show the text of the form on everybody's board, if staff has sent it."""
        self.service.announce(self.staff(), self.get_body_argument("text", ""))
        self.redirect(self.hub_auth.base_url)


class Table(Handler):
    """A unit's results as a CSV file, for staff."""

    @authenticated
    def get(self) -> None:
        """Send the results of a unit as CSV, to staff only."""
        unit = self.get_query_argument("unit", "")
        self.staff()
        if not self.service.course.criteria(unit):
            raise HTTPError(404, "There is no such unit.")
        self.set_header("Content-Type", "text/csv; charset=utf-8")
        self.set_header("Content-Disposition", f'attachment; filename="board_{unit}.csv"')
        self.write("\ufeff" + self.service.table(unit))


def application(service: Service, hub_auth: AsyncHubOAuth) -> Application:
    """The pages, as tornado's application."""
    base, tools = hub_auth.base_url, {"service": service, "hub_auth": hub_auth}
    return Application(
        [
            (base, Page, tools),
            (base + "events", Events, tools),
            (base + "announcement", Announcement, tools),
            (base + "results.csv", Table, tools),
            (base + "predictions", PredictionsPage, tools),
            (base + "predictions/events", PredictionsEvents, tools),
            (base + r"hackathon/(board|screen)\.html", HackathonPage, tools),
            (base + "oauth_callback", Callback, {"hub_auth": hub_auth}),
            (base + r"((?:board|predictions)\.(?:css|js))", StaticFileHandler, {"path": PAGE}),
        ],
        cookie_secret=os.urandom(32),
        xsrf_cookies=True,
        template_path=PAGE,
    )


async def serve(folder: str) -> None:
    """Until this process is ended."""
    service = Service(folder)
    pages = application(service, AsyncHubOAuth.instance(cache_max_age=60))
    server = HTTPServer(
        pages,
        max_body_size=LONGEST_REQUEST_BYTES,
        max_header_size=LONGEST_REQUEST_BYTES,
        idle_connection_timeout=60,
    )
    port = urlsplit(os.environ["JUPYTERHUB_SERVICE_URL"]).port
    assert port is not None  # the settings name one (`jupyterhub_settings`)
    server.listen(port, "127.0.0.1")
    door = await Door(service).listen(sockets(folder) / BOARD)
    await asyncio.gather(door.serve_forever(), watchdog.watch())


if __name__ == "__main__":
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(serve(sys.argv[1]))
