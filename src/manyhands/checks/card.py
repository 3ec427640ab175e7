"""The report of a check cell as a card, which a notebook shows instead of the plain lines.

It is plain HTML with inline styles, without a script or a style sheet. JupyterLab removes some
styles from a notebook that it does not trust, which leaves the same words and signs in the same
order. Text has the page's own colour, so that a dark page needs nothing. Colours are used only
behind white text, with a contrast of 4.5 or more.
"""

from __future__ import annotations

import re
from base64 import b64encode
from html import escape
from typing import TYPE_CHECKING, Final, Literal

from manyhands.checks.record import BLOCKED, FAIL, PASS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from manyhands.checks.by_rank import Picture
    from manyhands.checks.record import Criterion
    from manyhands.cluster.faults.kinds import Fault

NOT_BEGUN: Final = "not begun"
State = Literal["pass", "fail", "blocked", "not begun"]
SIGN: dict[State, str] = {PASS: "✓", FAIL: "✗", NOT_BEGUN: "○", BLOCKED: "–"}
COLOUR: dict[State, str] = {
    PASS: "#1a7f37",
    FAIL: "#b42318",
    NOT_BEGUN: "#5f6670",
    BLOCKED: "#5f6670",
}
LABELS: dict[State, str] = {
    PASS: "passed",
    FAIL: "failed",
    NOT_BEGUN: "not begun",
    BLOCKED: "not checked here",
}
UNWRITTEN, SAME = "is not written yet", "The same as above."
LINE = "var(--jp-border-color2, #8a8a8a)"
BOX = "flex: 1 1 14em; min-width: 0"
VALUE = (
    "margin: 0; padding: 0; background: none; color: inherit; white-space: pre-wrap; word-break: "
    "normal; overflow-wrap: anywhere; font-family: var(--jp-code-font-family, monospace); "
    "font-size: .92em; line-height: 1.4"
)


def states(criteria: Sequence[Criterion]) -> list[State]:
    """The state of each criterion, which is its status or `NOT_BEGUN`.

    It is `NOT_BEGUN` instead of a failure if the learner has not written what it asks for, or if
    nothing was measured because of that.
    """
    of_criteria: list[State] = []
    for criterion in criteria:
        mistake = criterion["detail"].get("mistake", "")
        unwritten = UNWRITTEN in mistake or (mistake == SAME and of_criteria[-1:] == [NOT_BEGUN])
        of_criteria.append(
            NOT_BEGUN if criterion["status"] == FAIL and unwritten else criterion["status"]
        )
    if NOT_BEGUN in of_criteria:
        of_criteria = [
            NOT_BEGUN if state == FAIL and not criterion["values"] else state
            for state, criterion in zip(of_criteria, criteria, strict=True)
        ]
    return of_criteria


def html(
    name: str,
    criteria: Sequence[Criterion],
    hint_name: str | None = None,
    hint_steps: Sequence[str] = (),
    faults: Iterable[Fault] = (),
    pictures: Mapping[str, Picture] | None = None,
) -> str:
    """The card of one report, with `criteria` as in its record.

    The reports of `faults`, which the ranks' cluster found during the check, are folded, and the
    hint's steps are folded inside each other. `pictures`: {criterion's name: the `by_rank.Picture`
    that helps with its failure}.
    """
    judged = list(zip(criteria, states(criteria), strict=True))
    order: tuple[State, ...] = (FAIL, NOT_BEGUN, PASS)
    worst: State = next(
        (state for state in order if state in (state for _, state in judged)),
        BLOCKED,
    )
    rows = "".join(
        _row(criterion, state, (pictures or {}).get(criterion["name"]))
        for criterion, state in judged
    )
    rows += "".join(map(_fault, faults))
    hint = _hint(hint_name, hint_steps) if worst in (FAIL, NOT_BEGUN) else ""
    return (
        f'<div role="group" aria-label="check: {escape(name)}" style="max-width: 60em; padding: '
        f".3em .8em .6em; border: 1px solid {LINE}; border-left: 6px solid {COLOUR[worst]}; "
        f'border-radius: 4px; line-height: 1.4">{_head(name, judged)}{rows}{hint}</div>'
    )


def _head(name: str, judged: Sequence[tuple[Criterion, State]]) -> str:
    """`average: 2 of 3 points · ✓ 1 passed · ○ 1 not begun`."""
    counted = [(criterion, state) for criterion, state in judged if state != BLOCKED]
    earned = sum(criterion["points"] for criterion, state in counted if state == PASS)
    parts = [f"{earned:g} of {sum(criterion['points'] for criterion, _ in counted):g} points"]
    for state, word in LABELS.items():
        number = sum(other == state for _, other in judged)
        parts += [f"{SIGN[state]} {number} {word}"] if number else []
    return f'<div style="margin-bottom: .3em"><b>{escape(name)}</b>: {" · ".join(parts)}</div>'


def _row(criterion: Criterion, state: State, picture: Picture | None = None) -> str:
    badge = (
        '<span style="flex: none; align-self: flex-start; padding: 0 .5em; border-radius: 3px; '
        f'color: #ffffff; background-color: {COLOUR[state]}; white-space: nowrap">{SIGN[state]} '
        f"{_badge(criterion, state)}</span>"
    )
    text = (
        f'<div style="{BOX}; flex-basis: 20em"> '
        f"{_lines(criterion['text'])}{_details(criterion['detail'], state)}"
        f"{picture.html() if picture and state == FAIL else ''}</div>"
    )
    return (
        '<div style="display: flex; flex-wrap: wrap; gap: .2em .7em; padding: .35em 0; border-top: '
        f'1px solid {LINE}">{badge}{text}</div>'
    )


def _badge(criterion: Criterion, state: State) -> str:
    points = f"{criterion['points'] if state == PASS else 0:g}/{criterion['points']:g}"
    return {
        PASS: f"PASS {points}",
        FAIL: f"FAIL {points}",
        NOT_BEGUN: f"not begun {points}",
        BLOCKED: "not checked here",
    }[state]


def _details(detail: Mapping[str, str], state: State) -> str:
    """Expected and got next to each other if there is room, and then the other details."""
    pair = [_value(key, detail[key]) for key in ("expected", "got") if key in detail]
    both = (
        '<div style="display: flex; flex-wrap: wrap; gap: .3em 1em; margin: .3em '
        f'0">{"".join(pair)}</div>'
    )
    rest = {key: text for key, text in detail.items() if key not in ("expected", "got")}
    if state == NOT_BEGUN:
        lines = [f"<div>{_lines(text)}</div>" for text in rest.values() if text != SAME]
    else:
        lines = [f"<div><small>{key}:</small> {_lines(text)}</div>" for key, text in rest.items()]
    return (both if pair else "") + "".join(lines)


def _value(key: str, text: str) -> str:
    return (
        f'<div style="{BOX}; padding: .1em .6em .3em; border: 1px solid {LINE}; border-radius: '
        f'3px"><small>{key}:</small><pre style="{VALUE}">{escape(text)}</pre></div>'
    )


def _lines(text: str) -> str:
    return _code(text).replace("\n", "<br>")


def _code(text: str) -> str:
    """Mark names between backticks as code. The plain lines keep the backticks."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(text))


def _fault(fault: Fault) -> str:
    """The report of a fault on the ranks in a fold, with its picture as an image.

    Parts of the pictures on a page have the same names, and a browser would look for one of this
    page's in a closed fold.
    """
    first, _, rest = fault.text.partition("\n")
    picture = ""
    if fault.svg:
        data = b64encode(fault.svg.encode()).decode()
        picture = (
            f'<div><img style="max-width: 100%" alt="{escape(fault.graph_text)}" '
            f'src="data:image/svg+xml;base64,{data}"></div>'
        )
    return _fold(
        f"Report from the ranks: {escape(first)}",
        f'<pre style="{VALUE}">{escape(rest)}</pre>{picture}',
    )


def _hint(name: str | None, steps: Sequence[str]) -> str:
    """The first step in a fold, which contains the next step in a second fold."""
    folded = ""
    for number in range(len(steps), 0, -1):
        label = f"Hint {escape(name or '')}" if number == 1 else f"Step {number} of {len(steps)}"
        folded = _fold(
            label,
            f'<div style="white-space: pre-wrap">{_code(steps[number - 1].strip())}</div>{folded}',
        )
    return folded


def _fold(label: str, content: str) -> str:
    return (
        f'<details style="margin-top: .4em"><summary style="cursor: pointer">{label}</summary>'
        f'<div style="padding: .2em 0 0 1.2em">{content}</div></details>'
    )
