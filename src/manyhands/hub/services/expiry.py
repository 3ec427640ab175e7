"""The hub's service that ends what has ended, started by the hub.

It is `python -m manyhands.hub.services.expiry`.

Every two seconds: who has an ended account, or none, is turned out, with the server and all tokens.
Beside that, so that no home however large keeps it from that: the home of who was turned out is
archived once no process of the person runs; homes that have outgrown the disk limit are told, then
their servers stopped.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest

from manyhands.hub.accounts import account_log, archive
from manyhands.hub.accounts.account_error import AccountError
from manyhands.hub.accounts.table import Accounts
from manyhands.hub.servers import limits
from manyhands.hub.services import watchdog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any, NoReturn

    from manyhands.hub.accounts.table import Account


EVERY_S, ASK_EVERY_S, DISK_EVERY_S = 2, 60, 30
LONGEST_PAUSE_S = 3600  # before a home that could not be archived is tried again


class Hub:
    """The few calls of the hub's REST interface that the keeper needs."""

    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url, token

    async def call(self, method: str, path: str, **options: Any) -> Any:
        """The parsed answer; raises HTTPClientError, and OSError where the hub does not answer."""
        request = HTTPRequest(
            f"{self.url}/{path}",
            method,
            headers={"Authorization": f"token {self.token}"},
            request_timeout=120,
            **options,
        )
        answer = await AsyncHTTPClient().fetch(request)
        return json.loads(answer.body) if answer.body else None

    async def people(self) -> dict[str, float]:
        """{name: when the hub first knew the person, in seconds}."""
        users = await self.call("GET", "users")
        return {
            user["name"]: datetime.fromisoformat(user["created"].replace("Z", "+00:00")).timestamp()
            for user in users
            if user["kind"] == "user"
        }

    async def turn_out(self, name: str) -> None:
        """Stop the person's server and forget sessions and tokens."""
        await self.call("DELETE", f"users/{name}")

    async def stop(self, name: str) -> None:
        """Ask the hub to stop a person's server."""
        await self.call("DELETE", f"users/{name}/server")


class Keeper:
    """Ends accounts and servers, and archives homes.

    `await look()` turns out once who is to be turned out, `archive_ended` and `look_at_disks` do
    what their names say.
    """

    def __init__(self, accounts: Accounts, hub: Hub, disk_bytes: int, grace_s: float) -> None:
        self.accounts, self.hub, self.disk_bytes, self.grace_s = accounts, hub, disk_bytes, grace_s
        self.too_full: dict[str, float] = {}  # name: since when
        # name: (when to try again, the pause before that)
        self.failed: dict[str, tuple[float, float]] = {}
        self.settled: set[tuple[str, float]] | None = None
        self.ask_at = 0.0
        self.out: set[str] = set()  # the names of ended accounts that the hub no longer knows

    async def look(self) -> None:
        """Turn out. The hub is asked only when who may stay has changed, and now and then."""
        table = self.accounts.load()
        admitted = {
            (account.name, account.since) for account in table.values() if account.state == "open"
        }
        if admitted != self.settled or time.monotonic() > self.ask_at:
            self.settled = admitted if await self._turn_out(table) else None
            self.ask_at = time.monotonic() + ASK_EVERY_S

    async def archive_ended(self) -> None:
        """Archive the homes of accounts that have ended."""
        for account in self.accounts.load().values():
            if (
                account.state != "open"
                and account.name in self.out
                and not account.archived
                and self.accounts.home(account.name).is_dir()
            ):
                await self._archive(account)

    async def _turn_out(self, table: dict[str, Account]) -> bool:
        """Turn out whom no account admits; returns whether there was nobody."""
        to_leave = {
            name
            for name, began in (await self.hub.people()).items()
            if not (name in table and table[name].admits(began))
        }
        self.out = {
            account.name for account in table.values() if account.state != "open"
        } - to_leave
        for name in sorted(to_leave):
            with suppress(HTTPClientError):  # still stopping: the next look will find it
                await self.hub.turn_out(name)
                account_log.write(self.accounts.folder, "turned out", name)
                self.out.add(name)
        return not to_leave

    async def _archive(self, account: Account) -> None:
        again_at, pause_s = self.failed.get(account.name, (0.0, EVERY_S))
        if time.monotonic() < again_at:
            return
        with suppress(AccountError):  # a process still ends: the next look
            archive.wait_until_quiet(account, timeout_s=0)
            try:
                await asyncio.to_thread(archive.archive, self.accounts, account.name)
                self.failed.pop(account.name, None)
            except AccountError as problem:
                if account.name not in self.failed:
                    account_log.write(
                        self.accounts.folder, "archive failed", account.name, why=str(problem)
                    )
                self.failed[account.name] = (
                    time.monotonic() + pause_s,
                    min(2 * pause_s, LONGEST_PAUSE_S),
                )

    async def look_at_disks(self) -> None:
        """Tell homes that are too large; stop their servers when the time to tidy up is over."""
        for account in self.accounts.load().values():
            home = self.accounts.home(account.name)
            used = (
                await asyncio.to_thread(limits.disk_used, home)
                if account.state == "open" and home.is_dir()
                else 0
            )
            if used <= self.disk_bytes:
                self.too_full.pop(account.name, None)
            elif account.name not in self.too_full:
                self.too_full[account.name] = time.monotonic()
                account_log.write(
                    self.accounts.folder, "disk limit passed", account.name, bytes=used
                )
            elif time.monotonic() - self.too_full[account.name] > self.grace_s:
                del self.too_full[account.name]
                with suppress(HTTPClientError):
                    await self.hub.stop(account.name)
                    account_log.write(
                        self.accounts.folder, "stopped: disk limit", account.name, bytes=used
                    )


async def again(do: Callable[[], Awaitable[object]], every_s: float) -> NoReturn:
    """Do it for ever."""
    while True:
        try:
            await do()
        except (OSError, HTTPClientError) as problem:  # the hub is starting or ending
            print(f"keeper: {problem}", file=sys.stderr, flush=True)
        await asyncio.sleep(every_s)


async def serve(keeper: Keeper) -> None:
    """Look at accounts, archives and disks again and again."""
    await asyncio.gather(
        again(keeper.look, EVERY_S),
        again(keeper.archive_ended, EVERY_S),
        again(keeper.look_at_disks, DISK_EVERY_S),
    )


async def main(keeper: Keeper) -> None:
    """Run the keeper, and watch over its event loop."""
    await asyncio.gather(serve(keeper), watchdog.watch())


if __name__ == "__main__":
    hub_folder, disk_limit, grace = sys.argv[1:]
    hub = Hub(os.environ["JUPYTERHUB_API_URL"], os.environ["JUPYTERHUB_API_TOKEN"])
    asyncio.run(main(Keeper(Accounts(Path(hub_folder)), hub, int(disk_limit), float(grace))))
