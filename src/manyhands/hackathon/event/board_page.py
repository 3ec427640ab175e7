"""The board of the hackathon: one page that needs no network and no script, and a table for a spreadsheet.

The page loads itself anew once in a while. What comes from teams, their names and the problems of their entries, is
escaped.
"""

import csv
import io
import re
from dataclasses import dataclass
from datetime import datetime
from html import escape
from pathlib import Path

from manyhands.hackathon.event import score_chart, standings

RENEW_S = 15
STYLE = Path(__file__).with_name("scores.css")
SCREEN = {1: (8, (960, 200)), 2: (8, (640, 260)), 3: (6, (440, 380)), 4: (3, (640, 150))}
# how many challenges: (rows of each on the big screen, the size of its picture, in the units of its letters)
# a cell that begins so is computed by a spreadsheet, also behind a semicolon, which separates cells in some countries
FORMULA = re.compile(r"(^|;)(?=\s*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20])")


@dataclass(frozen=True)
class Section:
    """A challenge on the board: its results in the order in which they were handed in."""

    title: str
    unit: str
    baseline: float
    results: list
    name: str


@dataclass(frozen=True)
class Board:
    """What the page shows. `waiting`: (team, challenge's title, about how many seconds or None) of each entry that
    waits; None where nothing is told of that. `note` is a sentence above all, or "". Times are seconds since 1970."""

    title: str
    sections: list
    counts: str
    begins: float
    until: float
    note: str = ""
    waiting: tuple = ()
    now: float = 0.0


def page(board, screen=False):
    """The page as HTML; with `screen` for a big screen: larger, the best only, no queue."""
    layout = SCREEN[min(len(board.sections), max(SCREEN))] if screen else None
    sections = "".join(_section(one, board, layout) for one in board.sections)
    kind = f' class="screen of{len(board.sections)}"' if screen else ""
    note = f'<p class="note">{escape(board.note)}</p>' if board.note else ""
    queue = "" if screen or board.waiting is None else _queue(board.waiting)
    when = datetime.fromtimestamp(board.now).strftime("%Y-%m-%d %H:%M:%S")
    return (f'<!DOCTYPE html>\n<html lang="en"{kind}><head><meta charset="utf-8">'
            f'<meta http-equiv="refresh" content="{RENEW_S}">'
            '<meta name="viewport" content="width=device-width"><meta http-equiv="Content-Security-Policy" '
            'content="default-src \'none\'; style-src \'unsafe-inline\'">'
            f"<title>{escape(board.title)}</title><style>{STYLE.read_text(encoding='utf-8')}</style></head><body>"
            f"<header><h1>{escape(board.title)}</h1><p>as of {when}</p></header>{note}<main>{sections}</main>{queue}"
            "</body></html>\n")


def _section(section, board, layout):
    """A challenge, with all rows, or on a big screen with the first of those that have a score."""
    rows = standings.table(section.results, board.counts)
    ways = standings.steps(section.results, board.counts)
    teams = [row.team for row in rows if row.team in ways]
    most, size = layout or (score_chart.NAMED, (score_chart.WIDTH, score_chart.HEIGHT))
    chart = score_chart.svg(ways, teams, section.unit, board.begins, board.until, section.baseline, size, most)
    shown = [row for row in rows if row.score is not None][:most] if layout else rows
    lines = "".join(_row(row, place, teams, layout) for row, place in zip(shown, standings.places(rows), strict=False))
    none = "no entry has a score yet" if rows else "no entry has been judged yet"
    lines = lines or f'<tr><td colspan="5">{none}</td></tr>'
    first = standings.simplest(rows, section.baseline)
    prize = _prize(first, layout) if first else ""
    return (f"<section><h2>{escape(section.title)}</h2><p>Lower is better. Baseline (dashed): {section.baseline:g} "
            f"{escape(section.unit)}.</p>{chart}<table><thead><tr><th class=number><th>team<th class=number>score, "
            f"{escape(section.unit)}<th class=number>size<th class=when>handed "
            f"in</thead><tbody>{lines}</tbody></table>{prize}</section>")


def _prize(first, short):
    """Short for the big screen, where a column may be narrow, and what does not fit is cut off."""
    team = f"<b>{escape(first.team)}</b>"
    return f"<p>Simplest, {first.size} nodes: {team}</p>" if short else \
        f"<p>Simplest: {team}, {first.size} nodes, of those better than the baseline.</p>"


def _row(row, place, teams, short):
    at = teams.index(row.team) if row.team in teams else score_chart.NAMED
    colour = f" t{at}" if at < score_chart.NAMED else ""
    remarks = ["judged with the seeds of an earlier record"] if row.seeds_of else []
    remarks += [f"looked at by {row.looked}"] if row.looked and not short else []
    said = f" <small>({escape('; '.join(remarks))})</small>" if remarks else ""
    team = f'<td class="team{colour}">{escape(row.team)}{said}'
    if row.score is None:
        return f'<tr><td class=number>{team}<td class=problem colspan="3">{escape(row.problem)}</tr>'
    return (f"<tr><td class=number>{place}{team}<td class=number>{row.score:.4g}<td class=number>"
            f"{'' if row.size is None else row.size}<td class=when>{_when(row.at, short)}</tr>")


def _queue(waiting):
    if not waiting:
        return "<h3>No entry is waiting.</h3>"
    rows = "".join(f"<tr><td class=number>{number}<td class=team>{escape(team)}<td>{escape(title)}<td class=number>"
                   f"{duration(about_s)}</tr>" for number, (team, title, about_s) in enumerate(waiting, 1))
    return (f"<h3>Waiting entries: {len(waiting)}</h3><table><thead><tr><th class=number><th>team<th>challenge<th "
            f"class=number>result in about</thead><tbody>{rows}</tbody></table>")


def duration(seconds):
    """A time to wait, in words."""
    if seconds is None:
        return "not known yet"
    if seconds <= 0:
        return "any moment"  # it takes longer than others have
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def as_csv(board):
    """All results, also of entries that do not count, and the place of those that do."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["challenge", "place", "team", "score", "unit", "size", "entry", "handed in", "problem", "sha256",
                     "seeds of", "looked at by"])
    for section in board.sections:
        rows = standings.table(section.results, board.counts)
        places = dict(zip(rows, standings.places(rows), strict=True))
        for one in section.results:
            score = "" if one.score is None else one.score
            cells = [section.name, places.get(one) or "", one.team, score, one.unit, one.size or "", one.number or "",
                     datetime.fromtimestamp(one.at).astimezone().isoformat(timespec="seconds"), one.problem, one.sha256,
                     one.seeds_of, one.looked]
            writer.writerow([FORMULA.sub(r"\1'", cell) if isinstance(cell, str) else cell for cell in cells])
    return text.getvalue()


def _when(at, short):
    """The time of day; the seconds, which tell equal scores apart, where there is room for them."""
    when = datetime.fromtimestamp(at)
    return f"{when:%H:%M}" if short else f"{when:%H:%M}<small>:{when:%S}</small>"
