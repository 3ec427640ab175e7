"""`manyhands hack` as it runs on an attendee's server.

This brings the command, the board's socket, and an event with a team of the user who runs this.
"""

import asyncio
import json

from board_alone import write_accounts
from manyhands.hackathon import hack_command
from manyhands.hackathon.event import event_settings
from manyhands.hub.board.hub_event import NAME
from manyhands.hub.board.service import Door, Service
from manyhands.shared import hub_client

ROLES = {"ann": "attendee", "ben": "attendee", "eve": "attendee", "tea": "instructor"}


def make_event(folder, team="Ring", others=(), an_hour=6):
    """A hub's folder with accounts and an event that goes on now.

    ann is in the team, and each of `others` is alone in a different one.
    """
    write_accounts(folder, ROLES | dict.fromkeys(others, "attendee"))
    path = event_settings.write_template(folder / NAME)
    text = "\n".join(
        "begins = 2020-01-01T09:00:00Z" if line.startswith("begins") else line
        for line in path.read_text(encoding="utf-8").split("\n")
    )
    teams = "".join(f'"Team {name}" = ["{name}"]\n' for name in others)
    path.write_text(
        text.replace("an_hour = 6", f"an_hour = {an_hour}").replace(
            '"Example" = ["ann", "ben"]', f'"{team}" = ["ann", "ben"]\n{teams}'
        ),
        encoding="utf-8",
    )


def with_hub(folder, monkeypatch, use):
    """Call `use(hack, service)` while the board listens.

    hack(*words) runs the command and returns its exit code.
    """

    async def run():
        service, path = Service(folder), folder / "board.sock"
        server = await Door(service).listen(path)
        monkeypatch.setenv(hub_client.BOARD, str(path))
        async with server:
            return await asyncio.to_thread(
                use, lambda *words: hack_command.main([str(word) for word in words]), service
            )

    return asyncio.run(run())


def put_entry(folder, source, challenge="slow_links"):
    """The folder of an entry."""
    folder.mkdir(exist_ok=True)
    (folder / "challenge.txt").write_text(challenge)
    (folder / "entry.py").write_bytes(source if isinstance(source, bytes) else source.encode())
    return folder


def record(problem):
    return (
        json.dumps(
            {
                "entry": "x",
                "challenge": "slow_links",
                "score": None,
                "unit": "s",
                "problem": problem,
                "lines": None,
                "sha256": "00",
            }
        )
        + "\n%none\n"
    )
