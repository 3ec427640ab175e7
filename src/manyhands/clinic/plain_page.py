"""The conclusion as text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

from manyhands.clinic.clinic_messages import NOT_YET, QUESTIONS

if TYPE_CHECKING:
    from manyhands.clinic.conclude import Conclusion, Statement
    from manyhands.clinic.costs import Costs

WIDTH = 100
UNTIMED = "   Not determined, because no step was timed."


def as_text(done: Conclusion) -> str:
    """The whole page as lines."""
    lines = [headline(done), ""]
    if done.traceback:
        lines += ["The script failed:", "", textwrap.indent(done.traceback, "  "), ""]
    lines += [
        *_question(0, done.right),
        *_printed(done.printed),
        *_mistakes(done),
        *_remarks(done.remarks),
    ]
    lines += [f"   {what}: {value}" for what, value in done.measured]
    lines += [
        "",
        *_question(1, done.hangs),
        "",
        *_question(2, done.gpus),
        *_listed(done.gpu_findings),
    ]
    lines += [line for remark in done.gpu_remarks for line in _wrapped("* " + as_remark(remark))]
    lines += [*_wrapped(done.gpu_note.replace("*", "")), ""]
    lines += [
        *_question(3, ""),
        *(cost_lines(done.costs) if done.costs else [UNTIMED]),
        *_remarks(done.cost_remarks),
        "",
    ]
    lines += [
        *_question(4, NOT_YET["scale"]),
        "",
        *_question(5, "" if done.units else "No unit treats any of this."),
    ]
    lines += [f"   {number} {title}: {why}" for number, title, why in done.units]
    return "\n".join(lines)


def headline(done: Conclusion) -> str:
    """Return the title of the page: the command, the number of ranks and the launcher."""
    visit = done.visit
    return (
        f"{' '.join([visit.script, *visit.arguments])} on {visit.ranks} "
        + ("rank" if visit.ranks == 1 else "ranks")
        + f", {visit.launcher}"
    )


def _question(number: int, answer: str) -> list[str]:
    return [f"{number + 1}. {QUESTIONS[number]}", *_wrapped(answer)]


def _wrapped(text: str, indent: str = "   ") -> list[str]:
    return [
        line
        for part in text.splitlines()
        for line in textwrap.wrap(
            part,
            WIDTH,
            initial_indent=indent,
            subsequent_indent=indent + " " * _depth(part),
            drop_whitespace=True,
            replace_whitespace=False,
        )
        or [""]
    ]


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _mistakes(done: Conclusion) -> list[str]:
    return _listed([mistake for mistake in done.mistakes if mistake.key != "hang"])


def _listed(mistakes: Iterable[Statement]) -> list[str]:
    lines: list[str] = []
    for mistake in mistakes:
        lines += [
            f"   ! {mistake.title}",
            *_wrapped(mistake.text, "     "),
            *_wrapped("-> " + mistake.remedy, "     "),
        ]
    return lines


def as_remark(statement: Statement) -> str:
    """A remark that has a title and a remedy, in one line."""
    return f"{statement.title}: {statement.text} {statement.remedy}"


def _printed(printed: Iterable[tuple[str, str]]) -> list[str]:
    return [
        line
        for whose, text in printed
        for line in [*_wrapped(whose), *textwrap.indent(text, "     ").splitlines()]
    ]


def _remarks(remarks: Iterable[Statement]) -> list[str]:
    return [line for remark in remarks for line in _wrapped("* " + remark.text, "   ")]


def cost_lines(costs: Costs) -> list[str]:
    """The table of costs, a line for each rank."""
    kinds = ("input", "forward", "backward", "step")
    head = f"   {'rank':<5}{'step ms':>9}" + "".join(
        f"{name:>10}" for name in ("input", "forward", "backward", "optimiser")
    )
    head += f"{'runs':>8}{'no core':>9}{'asleep':>8}" if costs.runs else ""
    lines = [head + f"{'KB sent':>11}{'peak MiB':>10}"]
    for rank, step_ms in enumerate(costs.step_ms):
        line = f"   {rank:<5}{step_ms:>9.1f}" + "".join(
            f"{costs.kinds_ms[rank][kind]:>10.1f}" for kind in kinds
        )
        if costs.runs:
            line += f"{costs.runs[rank]:>8.0%}{costs.ready[rank]:>9.0%}{costs.asleep[rank]:>8.0%}"
        lines.append(line + f"{costs.sent_bytes[rank] / 1e3:>11.1f}{costs.peak_mib[rank]:>10.0f}")
    calls = f"   {costs.calls:.3g} collectives or messages in a step of rank 0"
    if costs.overlap is not None:
        calls += f"; {costs.overlap:.0%} of their time is in its backward"
    return [*lines, calls + "."]
