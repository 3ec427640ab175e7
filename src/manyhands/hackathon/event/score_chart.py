"""The score of each team over time, as SVG in a page: a step where a better entry came."""

from __future__ import annotations

import math
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from manyhands.hackathon.event.standings import Way

    Axis = Callable[[float], float]  # a place in the picture
    Points = list[tuple[float, float]]
    Names = list[tuple[float, str, str]]  # a place, a team, its class in the page's style


WIDTH, HEIGHT = 640, 260  # as on the page; the big screen has other places for it
LEFT, RIGHT, TOP, BOTTOM = 58, 150, 12, 26  # right of the curves the teams' names
# of the best teams, each with a colour of its own (in the page's style); the others are grey
NAMED = 8
COARSE, FINE = (1, 2, 3, 5), (1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)  # in each power of ten
FEW = 3  # marks on an axis: with fewer, nobody sees that it is logarithmic
NAME_PX, SHORT = 15, 18  # between two names; letters of a name


def svg(
    ways: Mapping[str, Way],
    teams: Sequence[str],
    unit: str,
    begins: float,
    until: float,
    baseline: float | None = None,
    size: tuple[int, int] = (WIDTH, HEIGHT),
    named: int = NAMED,
) -> str:
    """A picture of the teams' scores over time.

    `ways`: {team: [(time, score or None), ...]}; `teams` are their names, the best first;
    `baseline` is a line. Letters are as large in a picture of any `size`; `named` teams get a
    colour and their name.
    """
    scores = [score for way in ways.values() for _, score in way if score is not None]
    if not scores:
        return ""
    scores += [baseline] if baseline else []
    width, height = size
    right = width - RIGHT
    x, y = (
        _across(begins, max(until, begins + 60), right),
        _down(min(scores), max(scores), height - BOTTOM),
    )
    parts = []
    for tick in _with_room(ticks(min(scores), max(scores)), y):
        parts += [
            _text(LEFT - 6, y(tick) + 4, f"{tick:.3g}", "end"),
            _level(y(tick), right, "rule"),
        ]
    for hour in _hours(begins, until):
        parts.append(
            _text(x(hour), height - 6, datetime.fromtimestamp(hour).strftime("%H:%M"), "middle")
        )
    if baseline:
        parts.append(_level(y(baseline), right, "baseline"))
    ends: Names = []
    curves: list[str] = []
    for place, team in reversed(list(enumerate(teams))):  # the best on top
        kind = f"team t{place}" if place < named else "team"
        curves += [_path(part, kind) for part in _steps(ways[team], x, y, until)]
        last = ways[team][-1][1]
        if place < named and last is not None:
            ends.append((y(last), team, kind))
    named_at = _apart(ends, height - BOTTOM)
    names = [_text(right + 8, at + 4, _short(team), "start", kind) for at, team, kind in named_at]
    parts += [f'<g class="curves">{"".join(curves)}</g><g class="names">{"".join(names)}</g>']
    label = f"Score ({unit}) of each team over time; the table below shows what counts"
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )


def ticks(least: float, most: float) -> list[float]:
    """One, two, three and five of each power of ten between the two.

    There are more where these are few.
    """
    low, high = math.floor(math.log10(max(least, 1e-9))), math.ceil(math.log10(max(most, 1e-9)))
    for digits in (COARSE, FINE):
        all_of_them = [digit * 10.0**power for power in range(low, high + 1) for digit in digits]
        marks = [tick for tick in all_of_them if least <= tick <= most]
        if len(marks) >= FEW:
            break
    return marks or [least]


def _with_room(all_of_them: Iterable[float], y: Axis) -> list[float]:
    """The ticks without those that would lie on others; coarse ones first."""
    shown: list[float] = []
    for tick in sorted(
        all_of_them, key=lambda tick: f"{tick:e}"[0] not in "1235" or f"{tick:e}"[2] != "0"
    ):
        if all(abs(y(tick) - y(other)) >= NAME_PX for other in shown):
            shown.append(tick)
    return shown


def _across(begins: float, until: float, right: float) -> Axis:
    return lambda at: LEFT + (right - LEFT) * min(max((at - begins) / (until - begins), 0), 1)


def _down(least: float, most: float, bottom: float) -> Axis:
    """On a logarithmic axis: half the score is as far everywhere."""
    low, high = math.log(max(least, 1e-9) * 0.9), math.log(max(most, 1e-9) * 1.1)
    return lambda score: TOP + (bottom - TOP) * (high - math.log(max(score, 1e-9))) / (high - low)


def _hours(begins: float, until: float) -> range:
    every = next(
        (step for step in (900, 3600, 4 * 3600, 86400) if (until - begins) / step <= 8), 7 * 86400
    )
    first = math.ceil(begins / every) * every
    return range(int(first), int(until) + 1, every)


def _steps(way: Way, x: Axis, y: Axis, until: float) -> list[Points]:
    """The parts of a team's way in which it has a score, as lists of points."""
    parts: list[Points] = []
    for (at, score), (end, _) in zip(way, [*way[1:], (until, None)], strict=True):
        if score is None:
            parts.append([])
            continue
        if not parts:
            parts.append([])
        parts[-1] += [(x(at), y(score)), (x(max(end, at)), y(score))]
    return [part for part in parts if part]


def _apart(ends: Names, limit: float) -> Names:
    """Names that would lie on each other are moved down, and then up from the lower edge."""
    ends = sorted(ends)
    places: list[float] = []
    for at, *_ in ends:
        places.append(max(at, places[-1] + NAME_PX) if places else at)
    for number in reversed(range(len(places))):
        places[number] = min(places[number], limit)
        limit = places[number] - NAME_PX
    return [(place, team, kind) for place, (_, team, kind) in zip(places, ends, strict=True)]


def _level(y: float, right: float, kind: str) -> str:
    return _path([(LEFT, y), (right, y)], kind)


def _path(points: Points, kind: str) -> str:
    way = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path class="{kind}" d="{way}"/>'


def _text(x: float, y: float, text: str, anchor: str, kind: str = "tick") -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def _short(team: str) -> str:
    return team if len(team) <= SHORT else team[: SHORT - 1] + "…"
