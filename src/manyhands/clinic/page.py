"""The conclusion as one page of HTML, without anything from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from manyhands.clinic.clinic_messages import NOT_YET, QUESTIONS
from manyhands.clinic.exit_codes import FOUND, NOT_DETERMINED, NOTHING_FOUND, SCRIPT_FAILED
from manyhands.clinic.plain_page import as_remark, headline

if TYPE_CHECKING:
    from manyhands.clinic.conclude import Conclusion, Statement

MARK = {
    NOTHING_FOUND: ("well", "nothing found"),
    FOUND: ("bad", "something found"),
    SCRIPT_FAILED: ("bad", "the script failed"),
    NOT_DETERMINED: ("open", "not determined"),
}
# by it the command knows a page that it may write over
MADE_BY = '<meta name="generator" content="manyhands clinic">'


def as_html(done: Conclusion) -> str:
    """The page as text."""
    style = (files("manyhands.clinic") / "clinic.css").read_text(encoding="utf-8")
    kind, mark = MARK[done.code]
    parts = [_made(part, done) for part in (_right, _hangs, _gpus, _costs, _scale, _units)]
    body = "".join(
        f"<section><h2>{number}. {question}</h2>{part}</section>"
        for number, (question, part) in enumerate(zip(QUESTIONS, parts, strict=True), 1)
    )
    failed = ""
    if done.traceback:
        failed = f"<section><h2>The script failed</h2><pre>{escape(done.traceback)}</pre></section>"
    title = escape(headline(done))
    return (
        '<!doctype html>\n<html lang="en"><head><meta '
        f'charset="utf-8">{MADE_BY}<title>{title}</title><meta name="viewport" '
        f'content="width=device-width"><style>{style}</style></head><body><main><header><h1>{title}</h1><span'
        f' class="mark {kind}">{mark}</span></header>{failed}{body}</main></body></html>\n'
    )


def _made(part: Callable[[Conclusion], str], done: Conclusion) -> str:
    """A part of the page. One that cannot be made leaves the others on it."""
    try:
        return part(done)
    except Exception as error:  # noqa: BLE001 - the other parts of the page are made
        return f"<p>This part could not be made: {escape(f'{type(error).__name__}: {error}')}</p>"


def _scale(_: Conclusion) -> str:
    return f"<p>{NOT_YET['scale']}</p>"


def _emphasis(text: str) -> str:
    """Text with *words* in italics."""
    parts = escape(text).split("*")
    return "".join(f"<em>{part}</em>" if place % 2 else part for place, part in enumerate(parts))


def _right(done: Conclusion) -> str:
    mistakes = _mistakes(mistake for mistake in done.mistakes if mistake.key != "hang")
    rows = "".join(
        f"<tr><td>{escape(what)}</td><td>{escape(value)}</td></tr>" for what, value in done.measured
    )
    printed = "".join(
        f"<p>{escape(whose)}</p>" + (f"<pre>{escape(text)}</pre>" if text else "")
        for whose, text in done.printed
    )
    return (
        f'<p class="verdict">{escape(done.right)}</p>{printed}{mistakes}'
        + (f"<h3>Remarks</h3>{_remarks(done.remarks)}" if done.remarks else "")
        + (
            f"<details open><summary>What was measured</summary><table>{rows}</table></details>"
            if rows
            else ""
        )
    )


def _mistakes(listed: Iterable[Statement]) -> str:
    return "".join(
        f'<div class="mistake"><h3>{escape(mistake.title)}</h3><p>{escape(mistake.text)}</p>'
        f'<p class="remedy">{escape(mistake.remedy)}</p></div>'
        for mistake in listed
    )


def _gpus(done: Conclusion) -> str:
    note = f"<p>{_emphasis(done.gpu_note)}</p>" if done.gpu_note else ""
    remarks = "".join(f"<li>{escape(as_remark(remark))}</li>" for remark in done.gpu_remarks)
    return (
        f'<p class="verdict">{_emphasis(done.gpus)}</p>{_mistakes(done.gpu_findings)}'
        f"{remarks and f'<ul>{remarks}</ul>'}{note}"
    )


def _remarks(remarks: Sequence[Statement]) -> str:
    return (
        "<ul>" + "".join(f"<li>{escape(remark.text)}</li>" for remark in remarks) + "</ul>"
        if remarks
        else ""
    )


def _hangs(done: Conclusion) -> str:
    first, *rest = done.hangs.splitlines()
    report = f"<pre>{escape(chr(10).join(rest))}</pre>" if rest else ""
    fault = done.visit.fault
    picture = f"<figure>{fault.svg}</figure>" if rest and fault is not None and fault.svg else ""
    return f'<p class="verdict">{escape(first)}</p>{report}{picture}'


def _costs(done: Conclusion) -> str:
    costs = done.costs
    if costs is None:
        return "<p>Not determined, because no step was timed.</p>"
    from manyhands.plots.step_lanes import step_lanes

    head = [
        "rank",
        *(f"{name}, ms" for name in ("step", "input", "forward", "backward", "optimiser")),
    ]
    head += ["runs", "waits for a core", "asleep"] if costs.runs else []
    rows = []
    for rank, step_ms in enumerate(costs.step_ms):
        kinds = costs.kinds_ms[rank]
        row = [
            str(rank),
            *(
                f"{ms:.1f}"
                for ms in (
                    step_ms,
                    kinds["input"],
                    kinds["forward"],
                    kinds["backward"],
                    kinds["step"],
                )
            ),
        ]
        if costs.runs:
            row += [f"{part[rank]:.0%}" for part in (costs.runs, costs.ready, costs.asleep)]
        rows.append([*row, f"{costs.sent_bytes[rank] / 1e3:.1f}", f"{costs.peak_mib[rank]:.0f}"])
    head += ["KB sent", "peak of memory, MiB"]
    overlap = (
        "" if costs.overlap is None else f"; {costs.overlap:.0%} of their time is in its backward"
    )
    picture = (
        f"<figure>{step_lanes(costs.lanes).text}</figure>" if any(costs.lanes.values()) else ""
    )
    ledger = (
        f"<details><summary>The ledger of {costs.steps + 1} steps, all ranks</summary>"
        f"<pre>{escape(costs.table)}</pre></details>"
        if costs.table
        else ""
    )
    return (
        f'<p>Times of a step, on average over {costs.steps} steps.</p><div class="wide"><table '
        'class="numbers">'
        + _row("th", head)
        + "".join(_row("td", row) for row in rows)
        + f"</table></div><p>{costs.calls:.3g} collectives or messages in a step of rank "
        f"0{overlap}. <em>Asleep</em> is the part of the time in which the process waits for "
        "others, or for files. The peak of memory is measured for the whole "
        f"process.</p>{_remarks(done.cost_remarks)}{picture}{ledger}"
    )


def _row(tag: str, cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _units(done: Conclusion) -> str:
    if not done.units:
        return "<p>No unit treats any of this.</p>"
    rows = "".join(
        f"<li>Unit {number}, {escape(title)}: {escape(why)}</li>"
        for number, title, why in done.units
    )
    return f"<ul>{rows}</ul>"
