"""The report of a check cell, with one line for each criterion and a record for the grader.

with Report("average", CRITERIA) as report:
    gradients = ...                                     # of the learner's function
    report.judge("mean", [problem_of(gradients)], gradients, atol=1e-5)
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypedDict

from manyhands.checks import card, colour, progress
from manyhands.checks.card import SAME
from manyhands.checks.hints import hint_for, hints_of, steps_of
from manyhands.checks.record import (
    BLOCKED,
    FAIL,
    MIME,
    PASS,
    SCHEMA,
    flatten,
    shorten,
    shorten_lines,
    tell_apart,
)

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self, Unpack

    from manyhands.checks.by_rank import Picture
    from manyhands.checks.record import Criterion, Record, Scalar, Status
    from manyhands.cluster.faults.kinds import Fault


Criteria = dict[str, dict[str, tuple[float, str]]]  # {check: {criterion: (points, text)}}
Rank = int | str | None  # whose values a problem shows


class Tolerance(TypedDict, total=False):
    """How far the grader lets values be from the solution's."""

    atol: float
    rtol: float


class Details(TypedDict, total=False):
    """What was expected, what came, on which rank, and what the card draws."""

    rank: Rank
    expected: Any
    got: Any
    picture: Picture | None


class Problem(Details, total=False):
    """The details of a FAIL line, of which each may be absent."""

    mistake: str | None


class Stopped(Exception):  # noqa: N818 - it ends a check early and is no error
    """A check cannot go on.

    The criteria that are not judged yet fail with these details (`mistake`, `rank`, `expected`,
    `got`).
    """

    def __init__(self, mistake: str | None = None, **details: Unpack[Details]) -> None:
        super().__init__(mistake)
        self.details: Problem = {"mistake": mistake, **details}


class Report:
    """The result of one check cell, as a context manager.

    It is shown when its block ends. If the block ends by `Stopped`, the criteria that were not
    judged fail.

    `name` is the cell's grade_id without `-check`; `criteria[name]` are its criteria, {name:
    (points, what it asks for)}, in the order of the cell's lines.
    """

    def __init__(self, name: str, criteria: Criteria | None = None) -> None:
        self.name = name
        self.asked = {} if criteria is None else criteria[name]
        self.criteria: list[Criterion] = []
        self.pictures: dict[str, Picture] = {}  # criterion's name -> what its card draws
        self.reports: list[
            Fault
        ] = []  # the Faults of the cluster whose reports are shown after this one

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        stopped: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if kind is not None and not issubclass(kind, Stopped):
            self._show_reports()
            return False
        if isinstance(stopped, Stopped):
            self.fail(stopped)
        if missing := self.asked.keys() - self._judged():
            raise ValueError(f"the check {self.name!r} does not judge {sorted(missing)}")
        self.show()
        return True

    @contextmanager
    def part(self, *names: str) -> Iterator[None]:
        """The part of a check that these criteria need.

        If it ends by `Stopped`, only these criteria fail, and the check goes on.
        """
        try:
            yield
        except Stopped as stopped:
            self.fail(stopped, names)

    def judge(
        self,
        name: str,
        problems: Iterable[Problem | None],
        values: Any = (),
        **tolerance: Unpack[Tolerance],
    ) -> bool:
        """Add a criterion, and return whether it passed.

        `problems`: details of FAIL lines, or None. The first problem counts, and its `picture` is
        for the card. `values`, `atol`, `rtol`: as in `criterion`.
        """
        if isinstance(values, Iterator):
            raise TypeError(
                f"the values of criterion {name!r} are an iterator, which the record cannot hold, "
                "so give a list"
            )
        problem: Problem = next(filter(None, problems), Problem())
        points, text = self.asked[name]
        return self.criterion(
            name,
            points=points,
            text=text,
            passed=not problem,
            values=values,
            **tolerance,
            **problem,
        )

    def fail(self, stopped: Stopped, names: Iterable[str] | None = None) -> None:
        """Let the open criteria, of these or of all, fail for one reason.

        The first of them shows it.
        """
        open_ones = [name for name in names or self.asked if name not in self._judged()]
        for i, name in enumerate(open_ones):
            self.judge(
                name,
                [
                    (
                        stopped.details
                        if i == 0
                        else {"rank": stopped.details.get("rank"), "mistake": SAME}
                    )
                ],
            )

    def _judged(self) -> set[str]:
        return {criterion["name"] for criterion in self.criteria}

    def criterion(
        self,
        name: str,
        *,
        points: float,
        text: str,
        passed: bool,
        values: Any = (),
        atol: float = 0.0,
        rtol: float = 0.0,
        rank: Rank = None,
        expected: Any = None,
        got: Any = None,
        mistake: str | None = None,
        picture: Picture | None = None,
    ) -> bool:
        """Add one criterion, and return whether it passed.

        `values` is the evidence, namely numbers (nested lists, arrays and tensors will do) that
        depend on the seed and that the learner's code has produced, never the check's own
        expectation. The grader compares them with the solution's values to `atol` + `rtol` *
        |reference|. A criterion that passes without values is a mistake in the check and raises
        ValueError. `rank`, `expected`, `got` and `mistake` (the likely mistake and its remedy) are
        shown if it fails, and `picture` (see `manyhands.checks.by_rank`) only in the card.
        """
        passed, values = bool(passed), flatten(values)
        if passed and not values:
            raise ValueError(
                f"criterion {name!r} passes without values, so give the numbers that prove it"
            )
        detail = {"rank": rank, "expected": expected, "got": got, "mistake": mistake}
        detail = (
            {} if passed else {key: value for key, value in detail.items() if value is not None}
        )
        if {"expected", "got"} <= detail.keys():
            detail["expected"], detail["got"] = tell_apart(detail["expected"], detail["got"])
        detail = {
            key: shorten_lines(value) if key == "mistake" else shorten(value)
            for key, value in detail.items()
        }
        self._add(name, points, text, PASS if passed else FAIL, values, atol, rtol, detail)
        if picture and not passed:
            self.pictures[name] = picture
        return passed

    def blocked(self, name: str, *, points: float, text: str, why: str) -> None:
        """Add a criterion that this machine cannot check.

        It is neither failed nor passed, and not in the total.
        """
        self._add(name, points, text, BLOCKED, [], 0.0, 0.0, {"why": shorten(why)})

    def _add(
        self,
        name: str,
        points: float,
        text: str,
        status: Status,
        values: list[Scalar],
        atol: float,
        rtol: float,
        detail: dict[str, str],
    ) -> None:
        if any(criterion["name"] == name for criterion in self.criteria):
            raise ValueError(f"criterion {name!r} appears twice, so give each its own name")
        self.criteria.append(
            {
                "name": name,
                "text": text,
                "points": points,
                "status": status,
                "values": values,
                "atol": float(atol),
                "rtol": float(rtol),
                "detail": detail,
            }
        )

    @property
    def record(self) -> Record:
        """What the grader gets, as plain JSON (see `manyhands.checks.record`)."""
        return {"schema": SCHEMA, "name": self.name, "criteria": self.criteria}

    def lines(self) -> list[str]:
        """The report as the reader sees it, line by line."""
        lines: list[str] = []
        for criterion in self.criteria:
            lines += criterion_lines(criterion)
        name = hint_for(self.name)
        if name and any(criterion["status"] == FAIL for criterion in self.criteria):
            lines.append(f'For help, run: hint("{name}")')
        return lines

    def html(self) -> str:
        """The report as a card, for a notebook.

        The reports of the cluster are folded at its end.
        """
        name = hint_for(self.name)
        steps = steps_of(hints_of(name.split("-")[0])[name]) if name else ()
        return card.html(
            self.name, self.criteria, name, steps, self._distinct_reports(), self.pictures
        )

    def show(self) -> None:
        """Show the report, and then the reports of the cluster.

        It is a card in a learner's notebook, in colour on a terminal, and plain lines elsewhere.
        Builds, nbval and graders (`MANYHANDS_QUIET=1`) print the plain lines, which are what is
        stored. If a grader asks for it (`MANYHANDS_RECORD=1`), the record is published, too. It
        stays out of stored outputs, since its last digits differ between machines.
        """
        if in_notebook() and os.environ.get("MANYHANDS_QUIET") != "1":
            texts = [fault.text for fault in self._distinct_reports()]
            _publish({"text/plain": "\n".join([*self.lines(), *texts]), "text/html": self.html()})
            self._remember()
        else:
            print("\n".join(colour.colour_lines(self.lines(), sys.stdout)), flush=True)
            self._show_reports()
        if os.environ.get("MANYHANDS_RECORD") == "1":
            _publish({MIME: self.record})

    def _show_reports(self) -> None:
        from manyhands.cluster.show import show_fault

        for fault in self._distinct_reports():
            show_fault(fault)

    def _distinct_reports(self) -> list[Fault]:
        """The reports of the cluster; of those that say the same, the first."""
        return list({fault.text: fault for fault in reversed(self.reports)}.values())[::-1]

    def _remember(self) -> None:
        """In the learner's own lab, remember for the start page that this check was seen green."""
        statuses = {criterion["status"] for criterion in self.criteria}
        here = progress.unit_here()
        if here and PASS in statuses and FAIL not in statuses:
            progress.add_seen(*here, self.name)


def in_notebook() -> bool:
    """True in a kernel of Jupyter, false in a terminal, a script or a test."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None


def _publish(data: dict[str, Any]) -> None:
    from IPython.display import publish_display_data

    publish_display_data(data)


def criterion_lines(criterion: Criterion) -> list[str]:
    """`PASS 2/2  text` and, if the criterion did not pass, its details below."""
    status, points = criterion["status"], criterion["points"]
    if status == BLOCKED:
        head = "BLOCKED   "
    else:
        earned = points if status == PASS else 0
        head = f"{status.upper()} {earned}/{points}  ".ljust(10)
    indent = " " * len(head)
    lines = [head + criterion["text"]]
    for key, value in criterion["detail"].items():
        lines.append(f"{indent}{key + ':':<10}{value}".replace("\n", "\n" + indent + " " * 10))
    return lines
