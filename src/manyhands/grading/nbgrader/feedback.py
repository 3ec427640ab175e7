"""The page that an attendee gets back.

It has criteria, what was expected and what came, the instructor's marks and words. It stands alone
in one file, runs nothing, loads nothing, and shows what comes from the attendee as text. What was
expected and what came are those of a run under the public seed: the hidden seed's numbers stay
hidden.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, TypedDict

from manyhands.checks.hints import hints_of
from manyhands.checks.record import BLOCKED, FAIL, PASS
from manyhands.grading import grade_report, notebooks
from manyhands.grading.nbgrader.gradebook import by_check
from manyhands.grading.notebooks import NotGradedError
from manyhands.grading.store import submissions
from manyhands.machine import local_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nbgrader.api import Gradebook

    from manyhands.grading.grade_report import AnyCriterion, AnyGrade, GradeData

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --ink: #1f2328; --ground: #fff; --soft: #57606a; --rule: #d0d7de; --code: #f6f8fa;
  --said: #fff8c5; --pass: #1a7f37; --fail: #b42318; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #e6e6e6; --ground: #161616; --soft: #a8b0b8; --rule: #3a3a3a;
  --code: #242424; --said: #4a3d00; --pass: #5fce7e; --fail: #ff8a80; }} }}
body {{ font: 16px/1.5 sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; }}
html {{ color: var(--ink); background: var(--ground); overflow-wrap: anywhere; }}
h1 {{ font-size: 1.5em; }} h2 {{ font-size: 1.2em; margin-top: 2em; border-bottom: 1px solid var(--rule); }}
h2 {{ display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 1em; }} h2 span {{ font-weight: normal; }}
table {{ border-collapse: collapse; width: 100%; }} td {{ vertical-align: top; padding: .3em .8em .3em 0; }}
td.narrow {{ white-space: nowrap; width: 1%; }}
pre {{ background: var(--code); padding: .8em; overflow-x: auto; white-space: pre-wrap; }}
.pass {{ color: var(--pass); }} .fail {{ color: var(--fail); }} .blocked {{ color: var(--soft); }}
.said {{ background: var(--said); padding: .5em .8em; white-space: pre-wrap; }}
.detail {{ color: var(--soft); font-size: .9em; white-space: pre-wrap; }}
</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""
HIDDEN = (
    "It passes with the seed of your own notebook, but not with a different seed. Does the answer "
    "contain fixed numbers that should be computed?"
)
PUBLIC_SEED = (
    "The expected and actual values were computed with the seed that your notebook has on your own "
    "machine, whereas grades use a different seed."
)
UNANSWERED = "There is no answer."


class Mark(TypedDict, total=False):
    """What the gradebook says of a check."""

    score: float
    max: float
    by_hand: bool


class Marks(TypedDict):
    """What the gradebook says of a submission."""

    student: str
    checks: dict[str, Mark]
    submitted: str
    late_s: float
    penalty: float
    score: float
    max: float
    comments: dict[str, str]


def page(
    solution: submissions.Solution,
    submitted: Path,
    grade: GradeData,
    public: GradeData | None,
    marks: Marks,
) -> str:
    """The page as text.

    `grade` and `public` are grades (plain data; `public` may be None), `marks` is what `marks_of`
    gives.
    """
    given = grade_report.from_data(grade)
    parts = [
        (
            f"<h1>{_text(given.unit)}: {grade_report.number(marks['score'])} of "
            f"{grade_report.number(marks['max'])} points</h1>"
        ),
        _facts(marks),
    ]
    if given.verdict:
        parts.append(f'<p class="said">{_text(given.verdict)}</p>')
    answers = _answers(solution, submitted)
    seen = by_check(public) if public else {}
    for name, lines in by_check(grade).items():
        parts.append(
            _check(name, lines, {line.name: line for line in seen.get(name, [])}, marks, given)
        )
        answer = name.removesuffix("-check")
        if answer in answers:
            parts.append(_answer(answer, answers.pop(answer), marks))
    parts += [_answer(name, source, marks) for name, source in answers.items()]
    if public and any(line.detail for line in grade_report.from_data(public).criteria):
        parts.append(f'<p class="detail">{_text(PUBLIC_SEED)}</p>')
    parts += [f"<p>{_text(note)}</p>" for note in (public.get("notes", []) if public else [])]
    return PAGE.format(title=_text(given.unit), body="\n".join(parts))


def _facts(marks: Marks) -> str:
    rows = [("Name", marks["student"]), ("Handed in", marks["submitted"] or "not noted")]
    if marks["late_s"] > 0:
        rows.append(("Late", f"{marks['late_s'] / 3600:.1f} hours"))
    if marks["penalty"]:
        rows.append(("Deduction for being late", grade_report.number(marks["penalty"])))
    return (
        "<table>"
        + "".join(
            f'<tr><td class="narrow">{key}</td><td>{_text(value)}</td></tr>' for key, value in rows
        )
        + "</table>"
    )


def _check(
    name: str,
    lines: Sequence[AnyCriterion],
    seen: Mapping[str, AnyCriterion],
    marks: Marks,
    given: AnyGrade,
) -> str:
    mark = marks["checks"].get(name, {})
    score = (
        f"{grade_report.number(mark.get('score', 0))} of {grade_report.number(mark.get('max', 0))}"
    )
    if mark.get("by_hand"):
        score += ", marked by the instructor"
    rows = [_criterion(line, seen.get(line.name)) for line in lines]
    short = name.removesuffix("-check")
    failed = any(line.status == FAIL for line in lines)
    hints = [
        hint
        for hint in sorted(hints_of(given.unit[:2]))
        if failed and hint.split("-", 1)[-1] == short
    ]
    after = "".join(f"<p>{_text(grade_report.HELP.format(name=hint))}</p>" for hint in hints)
    return (
        f"<h2>{_text(short)} "
        f"<span>{_text(score)}</span></h2>\n<table>{''.join(rows)}</table>{after}"
    )


def _criterion(line: AnyCriterion, public: AnyCriterion | None) -> str:
    detail: list[tuple[str, str]] = []
    if line.status == BLOCKED:
        detail = grade_report.details(line)
    elif line.status == FAIL:
        detail = (
            grade_report.details(public) if public is not None and public.status == FAIL else []
        )
        if public is not None and public.status == PASS:
            detail = [("", HIDDEN)]
    shown = "".join(
        f'<div class="detail">{_text(key + ": " if key else "")}{_text(value)}</div>'
        for key, value in detail
    )
    return (
        f'<tr><td class="narrow {line.status}"><b>{line.status.upper()}</b></td><td '
        f'class="narrow">{grade_report.share(line)}</td>'
        f"<td>{_text(line.text)}{shown}</td></tr>"
    )


def _answers(solution: submissions.Solution, submitted: Path) -> dict[str, str]:
    """{name: source} of the answers as they were handed in, in the lab's order.

    There is nothing in it where there is no notebook.
    """
    try:
        theirs: dict[str | None, list[str]] = {}
        for cell in submissions.notebook_in(submitted, solution)[1].cells:
            theirs.setdefault(notebooks.grade_id(cell), []).append(cell.source)
    except NotGradedError:
        return {}
    marked = [
        name
        for cell in solution.notebook.cells
        if (cell.metadata.get("nbgrader") or {}).get("solution")
        and (name := notebooks.grade_id(cell)) is not None
    ]
    return {name: "\n\n".join(theirs.get(name, [UNANSWERED])) for name in marked}


def _answer(name: str, source: str, marks: Marks) -> str:
    written = marks["comments"].get(name)
    comment = f'<p class="said">{_text(written)}</p>' if written else ""
    return f"<p>Your answer <code>{_text(name)}</code>:</p><pre>{_text(source)}</pre>{comment}"


def _text(value: object) -> str:
    return html.escape(str(value))


def marks_of(book: Gradebook, unit: str, student: str) -> Marks:
    """What the gradebook says of a submission, marks and words of people included: plain data."""
    submission = book.find_submission(unit, student)
    notebook = book.find_submission_notebook(unit, unit, student)
    person = submission.student
    name = " ".join(part for part in (person.first_name, person.last_name) if part)
    checks: dict[str, Mark] = {
        row.name: {
            "score": row.score,
            "max": row.max_score,
            "by_hand": row.manual_score is not None or bool(row.extra_credit),
        }
        for row in notebook.grades
    }
    penalty = notebook.late_submission_penalty or 0
    return {
        "student": student if name in ("", student) else f"{name} ({student})",
        "checks": checks,
        "submitted": local_time(submission.timestamp, seconds=True) if submission.timestamp else "",
        "late_s": submission.total_seconds_late,
        "penalty": penalty,
        "score": max(0, notebook.score - penalty),
        "max": notebook.max_score,
        "comments": {
            row.name: row.manual_comment for row in notebook.comments if row.manual_comment
        },
    }
