"""Log-in against the table of accounts.

It has an end and limited attempts, and every attempt is in the log.
"""

from __future__ import annotations

import asyncio
import time
import unicodedata
from collections import defaultdict, deque
from datetime import timezone
from typing import TYPE_CHECKING

from jupyterhub.auth import Authenticator
from tornado.web import HTTPError
from traitlets import Unicode

from manyhands.hub.accounts import account_log
from manyhands.hub.accounts.passwords import matches, new_key
from manyhands.hub.accounts.table import Accounts
from manyhands.hub.connections import place
from manyhands.machine import local_time

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Any

    from tornado.web import RequestHandler


WINDOW_S = 300
# a whole class may share one address
FAILURES = {"name in its browser": 5, "name and place": 5, "place": 100}
# the cookie of a browser in which a person has logged in: nobody else's mistakes count there
KNOWN, KNOWN_DAYS = "manyhands-known", 30
TOO_MANY = (
    "Too many wrong passwords. Wait {minutes} minutes, then try again, or ask your instructor for a"
    " new one."
)
ENDED = (
    "This account ended on {when}. Your files are kept. Ask your instructor to extend the account."
)
REVOKED = "This account was closed by your instructor. Your files are kept."


class Attempts:
    """Wrong passwords of the last minutes, by name and by place.

    None counts for a name everywhere: so many passwords are possible that trying from many places
    finds none, and anybody could lock anybody out.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.failures: dict[tuple[str, Hashable], deque[float]] = defaultdict(deque)

    def wait_s(self, name: str, place: str, known: bool = False) -> float:
        """How many seconds nobody may try this name there; 0 if they may now.

        known: in a browser in which this person has logged in.
        """
        waits = [0.0]
        for kind, key in self._keys(name, place, known).items():
            times = self._recent(kind, key)
            if len(times) >= FAILURES[kind]:
                waits.append(times[-FAILURES[kind]] + WINDOW_S - self.now())
        return max(waits)

    def failed(self, name: str, place: str, known: bool = False) -> None:
        """Count a wrong password against the name, the place or both, as `_keys` says."""
        for kind, key in self._keys(name, place, known).items():
            self._recent(kind, key).append(self.now())
        if len(self.failures) > 10_000:  # many made-up names: forget what is over
            for kind_key in list(self.failures):
                if not self._recent(*kind_key):
                    del self.failures[kind_key]

    def succeeded(self, name: str, place: str) -> None:
        """Forget the wrong passwords of a person who has logged in."""
        for kind, key in (("name in its browser", name), ("name and place", (name, place))):
            self.failures.pop((kind, key), None)

    @staticmethod
    def _keys(name: str, place: str, known: bool) -> dict[str, Hashable]:
        return (
            {"name in its browser": name}
            if known
            else {"name and place": (name, place), "place": place}
        )

    def _recent(self, kind: str, key: Hashable) -> deque[float]:
        times = self.failures[kind, key]
        while times and times[0] <= self.now() - WINDOW_S:
            times.popleft()
        return times


class TrialAuthenticator(Authenticator):
    """Accounts of `manyhands accounts`. JupyterHub's groups are their roles."""

    folder = Unicode(help="the hub's folder").tag(config=True)

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.accounts, self.attempts = Accounts(self.folder), Attempts()
        self.nobody = new_key("nobody")  # so that an unknown name takes as long as a wrong password

    def normalize_username(self, username: str) -> str:
        """Return the name as the table has it, however it was typed."""
        return unicodedata.normalize("NFKC", username).strip().lower()

    async def authenticate(self, handler: Any, data: dict[str, str]) -> dict[str, Any] | None:
        """The person and the role as a group, or None for a wrong name or password.

        An HTTPError tells the person anything else.
        """
        name, accounts = self.normalize_username(data["username"]), self.accounts.load()
        where, known = (
            place(handler.request.remote_ip, accounts),
            handler.get_signed_cookie(KNOWN) == name.encode(),
        )
        wait_s = self.attempts.wait_s(name, where, known)
        if wait_s > 0:
            self._note("log-in limited", name, where)
            raise HTTPError(429, TOO_MANY.format(minutes=int(wait_s // 60) + 1))
        account = accounts.get(name)
        salt, key = (account.salt, account.key) if account else self.nobody
        right = await asyncio.to_thread(matches, data["password"], salt, key)
        if not (account and right):
            self.attempts.failed(name, where, known)
            self._note("log-in failed", name, where)
            return None
        self.attempts.succeeded(name, where)
        handler.set_signed_cookie(
            KNOWN,
            name,
            KNOWN_DAYS,
            path=handler.hub.base_url,
            httponly=True,
            samesite="Lax",
            secure=handler.request.protocol == "https",
        )
        if account.state != "open":
            self._note(f"log-in {account.state}", name, where)
            raise HTTPError(
                403, REVOKED if account.revoked else ENDED.format(when=local_time(account.expires))
            )
        self._note("log-in", name, where)
        return {"name": name, "groups": [account.role]}

    def _note(self, action: str, name: str, where: str) -> None:
        account_log.write(self.folder, action, name[:64], address=where)

    async def refresh_user(self, user: Any, handler: RequestHandler | None = None) -> bool:
        """Whether the session may go on; False turns it out.

        That is so where the account has ended, is gone, or was opened anew after the session began.
        """
        account = self.accounts.load().get(user.name)
        return account is not None and account.admits(
            user.orm_user.created.replace(tzinfo=timezone.utc).timestamp()
        )
