"""The replay of the day: what the big screen's script shows again when the event is over."""

import json

from manyhands.hackathon.event import score_chart, standings


def controls(board, most):
    """The buttons and the day's data, as HTML; "" before the end.

    Without the script, nothing of it is seen.
    """
    if board.ends is None or board.now < board.ends:
        return ""
    # so that no text can end the element
    data = json.dumps(day(board, most)).replace("<", "\\u003c")
    return (
        '<button id="play" hidden>Replay the day</button><span id="replaying" hidden><label>Time '
        '<input id="at" type="range" min="0" max="1000" value="0"></label> <button '
        'id="pause">Pause</button> <button id="close">Close</button></span><script '
        f'type="application/json" id="data">{data}</script>'
    )


def day(board, most):
    """For each section the score that counted for each team, and from when on; teams in the order
    of the end, which is the order of their colours. `most` is how many rows the screen has for a
    challenge.
    """
    return {
        "begins": board.begins,
        "until": board.until,
        "left": score_chart.LEFT,
        "right": score_chart.RIGHT,
        "most": most,
        "sections": [_section(one, board.counts) for one in board.active],
    }


def _section(section, counts):
    ways = standings.steps(section.results, counts)
    teams = [row.team for row in standings.table(section.results, counts) if row.team in ways]
    return {
        "name": section.name,
        "title": section.title,
        "unit": section.unit,
        "baseline": section.baseline,
        "teams": [[team, ways[team]] for team in teams],
    }
