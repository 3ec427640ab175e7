"""The board's service without a hub.

It has a folder with accounts and one unit, and a stand-in for the hub that takes a name for its
owner's token.
"""

import asyncio
import json
import os
import time
from contextlib import asynccontextmanager
from dataclasses import asdict

from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port

from manyhands.checks.record import MIME
from manyhands.hub.accounts.table import Account
from manyhands.hub.board.service import application
from manyhands.hub.services.hub_auth import AsyncHubOAuth

UNIT = "06_ddp"
PAGES = "/services/board/"
SCOPE = "access:services!service=board"


class KnownPeople(AsyncHubOAuth):
    """In the place of the hub."""

    async def _check_hub_authorization(self, url, api_token, cache_key=None, use_cache=True):
        return {"name": api_token, "kind": "user", "groups": [], "scopes": [SCOPE]}


def write_accounts(folder, roles, **changes):
    """Open accounts {name: role}; the first has the number of the user that runs this.

    `changes` is {name: fields}, the fields of an account that differ from the usual ones.
    """
    accounts = [
        Account(
            name, role, 70_000 + number if number else os.geteuid(), "", "", 0.0, time.time() + 3600
        )
        for number, (name, role) in enumerate(roles.items())
    ]
    for account in accounts:
        vars(account).update(changes.get(account.name, {}))
    (folder / "new").write_text(
        json.dumps({"next_uid": 80_000, "accounts": [asdict(account) for account in accounts]})
    )
    os.replace(folder / "new", folder / "accounts.json")


def write_unit(folder, checks):
    """Write the unit's reference and released lab: {check: [(name, text, points)]}.

    A check that shows no record has no criteria.
    """
    shown, cells = {}, [{"metadata": {}}]
    for check, criteria in checks.items():
        listed = [
            {"name": name, "text": text, "points": points, "status": "pass"}
            for name, text, points in criteria
        ]
        shown[check] = (
            [{"output_type": "display_data", "data": {MIME: {"criteria": listed}}}]
            if listed
            else [{"output_type": "stream", "text": "1"}]
        )
        cells.append({"metadata": {"nbgrader": {"grade_id": check, "points": 2}}})
    for path, content in (
        (f"references/{UNIT}.json", {"key": "", "shown": shown}),
        (f"labs/{UNIT}/{UNIT}.ipynb", {"cells": cells}),
    ):
        (folder / "course" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "course" / path).write_text(json.dumps(content))


@asynccontextmanager
async def pages(service):
    """The address of the service's pages while they are open."""
    connection, port = bind_unused_port()
    server = HTTPServer(
        application(
            service,
            KnownPeople(
                base_url=PAGES, oauth_client_id="board", api_token="x", access_scopes={SCOPE}
            ),
        )
    )
    server.add_socket(connection)
    try:
        yield f"http://127.0.0.1:{port}{PAGES}"
    finally:
        server.stop()
        await asyncio.wait_for(server.close_all_connections(), 30)
