"""Handing in on a hub: whose entry it is, what is answered, and who sees the board."""

import asyncio
import json

import pytest
from tornado.httpclient import AsyncHTTPClient

from board_alone import pages, write_accounts
from manyhands.hackathon.event import board_page, event_settings, hub_line
from manyhands.hackathon.event.event import Event, NotTakenError
from manyhands.hub.board.hub_event import NAME, NONE
from manyhands.hub.board.service import Service
from manyhands.shared import hub_client

ROLES = {"ann": "attendee", "ben": "attendee", "eve": "attendee", "tea": "instructor"}


@pytest.fixture
def service(tmp_path):
    """A hub's folder with an event, a team of two, and one who is in no team."""
    write_accounts(tmp_path, ROLES)
    path = event_settings.write_template(tmp_path / NAME)
    text = "\n".join(
        "begins = 2020-01-01T09:00:00Z" if line.startswith("begins") else line
        for line in path.read_text().split("\n")
    )
    path.write_text(text.replace("Example", "Ring"))
    return Service(tmp_path)


def ask(service, name, what, *values):
    return service.take(service.people.of_name(name), json.dumps({"hack": what, "values": values}))


def test_members_of_a_team_hand_in_for_it_and_nobody_else(service):
    assert ask(service, "ann", "submit", "slow_links", "pass\n")["said"].startswith(
        "Entry 1 of Ring: slow_links. "
    )
    assert "Entry 1, slow_links" in ask(service, "ben", "status")["said"]
    assert ask(service, "eve", "submit", "slow_links", "") == {
        "error": "eve is not in a team. Ask the organisers."
    }
    assert ask(service, "ben", "withdraw", 1) == {"said": "Entry 1 of Ring is withdrawn."}
    assert "no entry 7" in ask(service, "ann", "withdraw", 7)["error"]
    path = service.hackathon.folder / "event.toml"
    path.write_text(
        "\n".join(
            "ends = 2020-01-01T10:00:00Z" if line.startswith("ends") else line
            for line in path.read_text().split("\n")
        )
    )
    assert "is over" in ask(service, "ann", "submit", "slow_links", "")["error"]
    assert ask(service, "ann", "withdraw", 1) == {"error": "The event is over. Ask the organisers."}
    (submission,) = Event(service.hackathon.folder).submissions().values()
    assert (submission.team, submission.source, submission.withdrawn) == ("Ring", "pass\n", True)


@pytest.mark.parametrize(
    "message",
    [
        {"hack": "take", "values": []},
        {"hack": ["submit"], "values": []},
        {"hack": "submit", "values": ["slow_links"]},
        {"hack": "submit", "values": "ab"},
        {"hack": "withdraw", "values": [True]},
        {"hack": "status"},
        {"hack": "submit", "values": [1, 2]},
    ],
)
def test_what_cannot_be_asked_is_told(service, message):
    assert (
        "not a request that the hackathon knows"
        in service.take(service.people.of_name("ann"), json.dumps(message))["error"]
    )


def test_where_there_is_no_event_or_a_broken_one_it_is_told(service):
    path = service.hackathon.folder / "event.toml"
    path.write_text("title = ")
    assert "Tell the organisers" in ask(service, "ann", "status")["error"]
    path.unlink()
    assert ask(service, "ann", "status") == {"error": NONE}


def test_the_command_asks_the_hub_and_tells_what_it_says(monkeypatch):
    sent = []
    answers = iter([{"said": "Entry 1"}, {"error": "no"}, {}])
    monkeypatch.setattr(
        hub_client, "ask_board", lambda message, timeout_s: sent.append(message) or next(answers)
    )
    assert hub_line.ask("submit", "slow_links", "text") == "Entry 1" and sent[0]["hack"] == "submit"
    for error in ("no", "No hub answers here"):
        with pytest.raises(NotTakenError, match=error):
            hub_line.ask("status")


def test_everybody_sees_the_board_that_the_judge_has_written(service):
    async def look():
        async with pages(service) as address:

            async def get(name, path):
                headers = {"Authorization": f"token {name}"} if name else {}
                return await AsyncHTTPClient(force_instance=True).fetch(
                    address + path,
                    headers=headers,
                    raise_error=False,
                    follow_redirects=False,
                    request_timeout=120,
                )

            first = await get("eve", ""), await get("eve", "hackathon/board.html")
            folder = service.hackathon.folder / "board"
            folder.mkdir()
            (folder / "board.html").write_text("<p>first</p>")
            return (
                *first,
                await get("eve", "hackathon/board.html"),
                await get(None, "hackathon/board.html"),
                await get("eve", "hackathon/event.toml"),
            )

    page, none_yet, shown, nobody, other = asyncio.run(look())
    assert 'href="hackathon/board.html"' in page.body.decode() and none_yet.code == 404
    assert (
        shown.body == b"<p>first</p>"
        and shown.headers["Content-Security-Policy"]
        == f"{board_page.policy()}; frame-ancestors 'none'"
    )
    assert nobody.code == 302 and other.code == 404
