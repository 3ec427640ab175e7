"""What people decide about an event: `event.toml` in its folder."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from manyhands.hackathon.entry.entry_file import challenge_names

NAME = "event.toml"
COUNTS = ("best", "last")
MOST_LETTERS = 40  # of a team's name
MOST_NAMED = 5  # teams that a message names
MOST, YEARS = 1_000_000, range(2000, 2100)  # of numbers; of dates
TEMPLATE = """\
title = "Hackathon"
begins = {begins}
ends = {ends}
freeze_min = 60        # the board is frozen for this long before the end; `manyhands hack board --reveal` ends that
challenges = {challenges}
an_hour = 6            # entries that a team may hand in, in any hour, for all challenges together
counts = "best"        # of a team's entries for a challenge: "best", or "last"

[teams]                # on a hub the names are those of accounts
"Example" = ["ann", "ben"]
"""


class BadEventError(ValueError):
    """The event's folder or its settings are not as they must be; the message says what to do."""


@dataclass(frozen=True)
class Settings:
    """`begins` and `ends` are seconds since 1970; `teams` are {name: its members}."""

    title: str
    begins: float
    ends: float
    freeze_min: int
    challenges: tuple[str, ...]
    an_hour: int
    counts: str
    teams: dict[str, list[str]]

    @property
    def frozen_from(self) -> float:
        """From when on the board shows nothing new."""
        return self.ends - 60 * self.freeze_min

    def team_of(self, member: str) -> str | None:
        """The team of a member, or None."""
        return next((team for team, members in self.teams.items() if member in members), None)

    def team_problem(self, team: str) -> str | None:
        """Why there is no team of this name; None if there is one.

        The text names the teams that exist, the most similar names first.
        """
        if team in self.teams:
            return None
        if not self.teams:
            return (
                f"There is no team {team!r}. The organisers have not entered a team in {NAME} yet."
            )
        names = sorted(self.teams, key=lambda name: -_likeness(team, name))
        listed = ", ".join(map(repr, names[:MOST_NAMED])) + (
            ", ..." if len(names) > MOST_NAMED else ""
        )
        return (
            f"There is no team {team!r}. The teams are {listed}. The organisers enter teams in "
            f"{NAME}."
        )


def _likeness(asked: str, name: str) -> float:
    asked, name = asked[:MOST_LETTERS].casefold(), name.casefold()
    return SequenceMatcher(None, asked, name).ratio() + (asked in name)


def write_template(folder: str | Path, now: datetime | None = None) -> Path:
    """Make the folder of an event, which begins in the next full hour and takes six hours.

    A folder that exists is never overwritten.
    """
    if not str(folder).strip():
        raise BadEventError("Name a new folder for the event.")
    begins = (now or datetime.now().astimezone()).replace(
        minute=0, second=0, microsecond=0
    ) + timedelta(hours=1)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    text = TEMPLATE.format(
        begins=begins.isoformat(),
        ends=(begins + timedelta(hours=6)).isoformat(),
        challenges=str(challenge_names()).replace("'", '"'),
    )
    with open(folder / NAME, "x", encoding="utf-8") as file:
        file.write(text)
    return folder / NAME


def read(folder: str | Path) -> Settings:
    """The `Settings` of an event's folder; `BadEventError`."""
    path = Path(folder) / NAME
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadEventError(
            f"{path} is missing. `manyhands hack event {folder}` makes one."
        ) from None
    except (OSError, ValueError) as error:  # also of TOML
        raise BadEventError(f"{path} cannot be read: {error}") from None
    problem = _problem(settings)
    if problem:
        raise BadEventError(f"{path}: {problem}")
    return Settings(
        **{
            **settings,
            "begins": settings["begins"].timestamp(),
            "ends": settings["ends"].timestamp(),
            "challenges": tuple(settings["challenges"]),
        }
    )


def _problem(settings: dict[str, Any]) -> str | None:
    wanted = set(Settings.__dataclass_fields__)
    if set(settings) != wanted:
        missing, unknown = sorted(wanted - set(settings)), sorted(set(settings) - wanted)
        return f"missing: {missing}; not known: {unknown}."
    if not isinstance(settings["title"], str) or not settings["title"].isprintable():
        return "title must be text in quotes that can be printed."
    for name in ("begins", "ends"):
        if not isinstance(settings[name], datetime) or settings[name].year not in YEARS:
            return f"{name} must be a date with a time, as 2026-12-01T09:00:00+09:00."
    if settings["begins"].timestamp() >= settings["ends"].timestamp():
        return "ends must be later than begins."
    if settings["counts"] not in COUNTS:
        return f"counts must be one of: {', '.join(COUNTS)}."
    for name, least in (("an_hour", 1), ("freeze_min", 0)):
        if type(settings[name]) is not int or not least <= settings[name] <= MOST:
            return f"{name} must be a whole number of {least} or more, and {MOST} at most."
    there, chosen = challenge_names(), settings["challenges"]
    if not isinstance(chosen, list) or not chosen or set(map(str, chosen)) - set(there):
        return f"challenges must be a list of some of: {', '.join(there)}."
    return _teams_problem(settings["teams"])


def _teams_problem(teams: Any) -> str | None:
    if not isinstance(teams, dict) or not all(
        isinstance(members, list) for members in teams.values()
    ):
        return 'each team must be written as "Name" = ["member", "member"].'
    for team in teams:
        if not team.strip() or not team.isprintable() or len(team) > MOST_LETTERS:
            return f"{team!r}: a team's name has 1 to {MOST_LETTERS} letters that can be printed."
    members = [member for listed in teams.values() for member in listed]
    for member in members:
        if not isinstance(member, str) or members.count(member) > 1:
            return f"{member!r} must be a name in quotes, and in one team only."
    return None
