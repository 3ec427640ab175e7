"""The traceback of a script that failed, short enough for a page.

It has the script's own calls, and the last of a library.
"""

from __future__ import annotations

import re
import traceback
from typing import TYPE_CHECKING

from manyhands.cluster.faults.fault_messages import ranks_text
from manyhands.cluster.on_rank.stack import is_user_file

if TYPE_CHECKING:
    from manyhands.clinic.visit import Visit

FILE = re.compile(r'  File "(.+?)", line \d+')
# calls of a stack that are shown: the first and last of the script, the last of a library
OWN, OF_LIBRARY = 12, 2
MESSAGE_LINES = 12  # of an exception's message
LEFT_OUT = "  ... ({number} {what} of {whose} left out)\n"


def shorten_traceback(error: BaseException) -> str:
    """The traceback as text.

    Each exception of a chain keeps the calls of the script and the last calls of the library that
    raised it; calls of libraries between them are left out.
    """
    parts: list[str] = []
    stack: list[tuple[str, bool]] = []
    for part in traceback.TracebackException.from_exception(error).format():
        if place := FILE.match(part):
            stack.append((part, is_user_file(place[1])))
        elif stack and part.startswith("  [Previous line repeated"):
            stack[-1] = (stack[-1][0] + part, stack[-1][1])
        else:
            parts += [*_shorten_stack(stack), _shorten_message(part)]
            stack = []
    return "".join([*parts, *_shorten_stack(stack)])


def _shorten_stack(stack: list[tuple[str, bool]]) -> list[str]:
    """The calls that are shown of [(text, whether it is the script's own)], outermost first."""
    own = [place for place, (_, is_own) in enumerate(stack) if is_own]
    shown = {
        *own[:OWN],
        *own[-OWN:],
        *range(max(own[-1] + 1 if own else 0, len(stack) - OF_LIBRARY), len(stack)),
    }
    parts: list[str] = []
    skipped: list[bool] = []
    for place, (text, is_own) in enumerate(stack):
        if place not in shown:
            skipped.append(is_own)
            continue
        parts += [*_note_left_out(skipped), text]
        skipped = []
    return parts


def _note_left_out(skipped: list[bool]) -> list[str]:
    if not skipped:
        return []
    what, whose = (
        "call" if len(skipped) == 1 else "calls",
        "the script" if any(skipped) else "libraries",
    )
    return [LEFT_OUT.format(number=len(skipped), what=what, whose=whose)]


def _shorten_message(text: str) -> str:
    lines = text.splitlines(keepends=True)
    return text if len(lines) <= MESSAGE_LINES else "".join([*lines[:MESSAGE_LINES], "  ...\n"])


def crashed_ranks(visit: Visit) -> list[int]:
    """Return the ranks that ended badly without an exception.

    They had not yet written anything down.
    """
    return [
        rank
        for rank, code in visit.codes.items()
        if code not in (0, None) and rank not in visit.cost
    ]


def describe_failure(visit: Visit) -> str:
    """Return the shortened traceback of the rank that failed first.

    Where no rank got so far, it is what the launcher said.
    """
    if visit.fault is not None and visit.fault.kind in ("died", "mismatch"):
        ends = [
            visit.output[rank][-2000:] for rank in visit.fault.culprits if rank not in visit.errors
        ]
        return "\n".join([visit.fault.text, *ends])
    if not visit.errors:
        ends = [
            f"rank {rank} ended with exit code {visit.codes[rank]}\n{visit.output[rank][-2000:]}"
            for rank in crashed_ranks(visit)
        ]
        return visit.launcher_message or "\n".join(ends)
    fault = visit.fault
    rank = next(
        (rank for rank in getattr(fault, "culprits", []) if rank in visit.errors), min(visit.errors)
    )
    lines = visit.errors[rank]["traceback"].rstrip().splitlines()
    others = sorted(set(visit.errors) - {rank})
    words = ranks_text(others)
    also = [f"({words[:1].upper()}{words[1:]} failed too.)"] if others else []
    return "\n".join([f"rank {rank}:", *lines, *also])
