"""A grade as text for a terminal, as HTML for a notebook, as plain data for other programs."""

from __future__ import annotations

import html
from dataclasses import asdict
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, cast

from manyhands.checks.card import COLOUR, SIGN
from manyhands.checks.record import BLOCKED, PASS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NotRequired

    from manyhands.checks.record import Status
    from manyhands.grading.engine import Grade

HEAD = "{unit}: {points} of {max} points"
HOW = "Graded with {seed}, {sandbox}, in {seconds:.0f} s."
BLOCKED_LINE = "not counted: this machine cannot check it"
HELP = 'For help, run in the notebook: hint("{name}")'
DONE = "Full marks."
STYLE = "padding:0 .5em;border-radius:3px;white-space:nowrap;color:#ffffff;background-color:"


class CriterionData(TypedDict):
    """A `Criterion` as plain data."""

    check: str
    name: str
    text: str
    points: float
    status: Status
    detail: dict[str, Any]


class GradeData(TypedDict):
    """A `Grade` as plain data: what is printed as JSON and kept in a journal."""

    unit: str
    criteria: list[CriterionData]
    notes: list[str]
    verdict: str
    sandbox: str
    no_sandbox: str
    seconds: float
    seed: NotRequired[str]  # the oldest grades that are kept do not say it
    points: float
    max: float
    full: bool
    hints: list[str]


class AnyCriterion(Protocol):
    """A `Criterion`, or what `from_data` makes of one."""

    check: str
    name: str
    text: str
    points: float
    status: Status
    detail: dict[str, Any]

    @property
    def earned(self) -> float:
        """The points that it brings."""


class AnyGrade(Protocol):
    """A `Grade`, or what `from_data` makes of one."""

    unit: str
    notes: list[str]
    verdict: str
    sandbox: str
    no_sandbox: str
    seconds: float
    seed: str

    @property
    def criteria(self) -> Sequence[AnyCriterion]:
        """What was checked, one by one."""

    @property
    def points(self) -> float:
        """The points that all criteria bring."""

    @property
    def max(self) -> float:
        """All points but those of blocked criteria."""

    @property
    def full(self) -> bool:
        """Whether nothing failed, and something could be checked."""

    @property
    def hints(self) -> list[str]:
        """The names of the hints that help with what failed."""


def number(points: float) -> str:
    """Points without a needless `.0`."""
    return f"{points:g}"


def head(grade: AnyGrade) -> str:
    """The first line of a report: the unit, its points, and how many there are."""
    return HEAD.format(unit=grade.unit, points=number(grade.points), max=number(grade.max))


def share(criterion: AnyCriterion) -> str:
    """`1/2`, or `-/2` where it is blocked."""
    earned = "-" if criterion.status == BLOCKED else number(criterion.earned)
    return f"{earned}/{number(criterion.points)}"


def details(criterion: AnyCriterion) -> list[tuple[str, str]]:
    """(word, text) pairs that say what is wrong."""
    rows = [("", BLOCKED_LINE)] if criterion.status == BLOCKED else []
    return rows + [(key, str(value)) for key, value in criterion.detail.items()]


def lines_of(criterion: AnyCriterion) -> list[str]:
    """A criterion in a few lines of text."""
    lines = [f"  {criterion.status.upper():<8}{share(criterion):>5}  {criterion.text}"]
    for key, value in details(criterion):
        indent = " " * 17
        label = f"{key + ':':<10}" if key else ""
        lines.append(f"{indent}{label}" + value.replace("\n", "\n" + indent + " " * len(label)))
    return lines


def as_text(grade: AnyGrade, verbose: bool = False) -> str:
    """The table of criteria, and what helps; `verbose`: also why there was no sandbox."""
    lines = [head(grade), ""]
    if grade.verdict:
        lines += [grade.verdict, ""]
    check = None
    for criterion in grade.criteria:
        if criterion.check != check:
            check = criterion.check
            lines.append(check.removesuffix("-check"))
        lines += lines_of(criterion)
    lines += ["", *grade.notes] if grade.notes else []
    lines += ["", *(HELP.format(name=name) for name in grade.hints)] if grade.hints else []
    if grade.full:
        lines += ["", DONE]
    if grade.sandbox:
        lines += ["", HOW.format(seed=grade.seed, sandbox=grade.sandbox, seconds=grade.seconds)]
        lines += [f"  {line}" for line in grade.no_sandbox.splitlines()] if verbose else []
    return "\n".join(lines)


def as_html(grade: AnyGrade) -> str:
    """The same as a table."""
    rows = []
    for criterion in grade.criteria:
        status = criterion.status
        extra = "".join(
            f"<br><small><b>{html.escape(key)}</b> {html.escape(value)}</small>".replace(
                "\n", "<br>"
            )
            for key, value in details(criterion)
        )
        cells = [
            html.escape(criterion.check.removesuffix("-check")),
            f'<b style="{STYLE}{COLOUR[status]}">{SIGN[status]} {status.upper()}</b>',
            share(criterion),
            html.escape(criterion.text) + extra,
        ]
        rows.append(
            "<tr>"
            + "".join(
                f'<td style="text-align:left;vertical-align:top">{cell}</td>' for cell in cells
            )
            + "</tr>"
        )
    after = [
        grade.verdict,
        *grade.notes,
        *(HELP.format(name=name) for name in grade.hints),
        DONE if grade.full else "",
    ]
    after.append(
        HOW.format(seed=grade.seed, sandbox=grade.sandbox, seconds=grade.seconds)
        if grade.sandbox
        else ""
    )
    below = "".join(f"<p>{html.escape(line)}</p>" for line in after if line)
    return f"<p><b>{html.escape(head(grade))}</b></p><table>{''.join(rows)}</table>{below}"


def as_data(grade: Grade) -> GradeData:
    """Plain data, for JSON."""
    data = {
        **asdict(grade),
        "points": grade.points,
        "max": grade.max,
        "full": grade.full,
        "hints": grade.hints,
    }
    return cast("GradeData", data)


def from_data(data: GradeData) -> AnyGrade:
    """What `as_data` made, as something that this module can show again."""
    criteria = [
        SimpleNamespace(
            **criterion, earned=criterion["points"] if criterion["status"] == PASS else 0
        )
        for criterion in data["criteria"]
    ]
    return SimpleNamespace(**{"seed": "a hidden seed", **data, "criteria": criteria})
