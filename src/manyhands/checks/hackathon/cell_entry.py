"""An entry in a cell of a notebook: its text, as a file would have it, and a judge that runs it."""

from __future__ import annotations

import ast
import atexit
import linecache
from typing import TYPE_CHECKING, Any

from manyhands.checks import seed
from manyhands.checks.hackathon.messages import MISTAKES
from manyhands.checks.in_kernel import MESSAGES
from manyhands.checks.report import Stopped

if TYPE_CHECKING:
    from collections.abc import Callable

    from manyhands.hackathon.judge.open_judge import OpenJudge

# of a run in a lab, because a cell of the grader has 180 s
LIMITS: dict[str, Any] = {"processor_s": 20, "quiet_s": 100, "run_s": 150}
TARGET, OWN_TARGET = 0.8, 0.84  # of a grader, and of the learner's notebook
SPREAD = 0.013  # of an entry's accuracy from data to data: one standard deviation, 460 seeds
_judges: list[Any] = []


def text_of(function: Callable[..., Any]) -> str:
    """Return the cell in which the function was written, as the text of an entry.

    What only shows something is left out (calls at the top level). Lines keep their numbers.
    """
    code = getattr(function, "__code__", None)
    lines = linecache.getlines(code.co_filename) if code else []
    try:
        nodes = ast.parse("".join(lines)).body
    except SyntaxError:
        nodes = []
    if not any(getattr(node, "name", "") == function.__name__ for node in nodes):
        raise Stopped(MISTAKES["no cell"])
    for node in nodes:
        if isinstance(node, ast.Expr):
            last = node.end_lineno or node.lineno
            lines[node.lineno - 1 : last] = ["\n"] * (last - node.lineno + 1)
    return "".join(lines).rstrip() + f"\ntrain = {function.__name__}\n"


def target() -> float:
    """Return the target.

    Since an entry's accuracy differs from data to data (`SPREAD`), a learner's own check asks for
    three of these more than a grader, who draws different data, so that what passes here rarely
    fails there.
    """
    return TARGET if seed() else OWN_TARGET


def judge() -> OpenJudge:
    """Return the judge of this kernel, which the first call starts."""
    from manyhands.hackathon.judge.open_judge import OpenJudge

    if _judges and _judges[0].process.poll() is not None:
        _judges.pop()
    if not _judges:
        _judges.append(OpenJudge().__enter__())
        atexit.register(_judges[0].__exit__)
    return _judges[0]


def stopped(problem: str, function: Callable[..., Any]) -> Stopped:
    """Return what keeps an entry from a score, as the reason why a check cannot go on."""
    if "NotImplementedError" in problem:
        return Stopped(MESSAGES["unwritten"].format(name=function.__name__))
    remark = ""
    if "NameError" in problem:
        remark = f". {MISTAKES['one cell']}"
    elif "The target was not reached" in problem and target() > TARGET:
        remark = f" {MISTAKES['room']}"
    return Stopped(problem.replace("entry.py, line", "your cell, line") + remark)


def try_out(function: Callable[..., Any], runs: int = 1) -> None:
    """Run an entry on public seeds, and show what the judge sees of it and what its ranks print.

    Say so if it reaches the target with little margin.
    """
    from manyhands.hackathon.challenges.challenge import SLOW_LINKS
    from manyhands.hackathon.judge.judging import public_seeds
    from manyhands.hackathon.judge.one_run import told

    try:
        text = text_of(function)
    except Stopped as why:
        print(why)
        return
    for number, public_seed in enumerate(public_seeds(runs)):
        run, printed = judge().run(SLOW_LINKS, text, public_seed, target=target(), **LIMITS)
        for rank, lines in enumerate(printed):
            print(
                *(f"  [rank {rank}] {line}" for line in lines), sep="\n", end="\n" if lines else ""
            )
        print(f"run {number + 1}: {told(SLOW_LINKS, run)}")
        if not run.problem and run.accuracy < OWN_TARGET + 2 * SPREAD:
            print(MISTAKES["thin"].format(target=OWN_TARGET, accuracy=run.accuracy))
