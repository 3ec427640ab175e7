"""What is written in a program's text where a frame is."""

from __future__ import annotations

import ast
import dis
import functools
import itertools
import linecache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType


def text_of_running_call(frame: FrameType) -> str | None:
    """What is written where `frame` is; None where that is not known.

    It is known as far as Python's positions and the file's text are. Python 3.10 has no positions,
    so there it is a call or None.
    """
    if not hasattr(frame.f_code, "co_positions"):
        return _by_its_place_in_the_line(frame)
    line, end_line, start, end = next(
        itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None,) * 4
    )
    if line is None or end_line is None or start is None or end is None:
        return None
    lines = [
        linecache.getline(frame.f_code.co_filename, number).encode()
        for number in range(line, end_line + 1)
    ]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    return b"".join(lines).decode(errors="replace")


def _by_its_place_in_the_line(frame: FrameType) -> str | None:
    """The text of the call by its place in the line.

    It is the only call of its line, or the one with as many before it in the text as in the
    bytecode, which may hold a line several times, as of a `finally`.
    """
    written = _calls(frame.f_code.co_filename).get(frame.f_lineno, [])
    lines, line, places = dict(dis.findlinestarts(frame.f_code)), None, []
    for instruction in dis.get_instructions(frame.f_code):
        line = lines.get(instruction.offset, line)
        if instruction.opname.startswith("CALL") and line == frame.f_lineno:
            places.append(instruction.offset)
    if (
        frame.f_lasti not in places
        or not written
        or (len(written) > 1 and len(places) % len(written))
    ):
        return None
    return written[places.index(frame.f_lasti) % len(written)]


@functools.lru_cache(maxsize=64)
def _calls(file: str) -> dict[int | None, list[str | None]]:
    """The calls of a file by line, in the order in which they are made.

    The result is {line that Python names for a call: [its text, ...]}.
    """
    text = "".join(linecache.getlines(file))
    texts: dict[int | None, list[str | None]] = {}
    try:
        nodes = _in_order(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError):
        return texts
    for node in nodes:
        starred = any(isinstance(argument, ast.Starred) for argument in node.args)
        method = isinstance(node.func, ast.Attribute) and not node.keywords and not starred
        line = node.func.end_lineno if method else node.lineno
        texts.setdefault(line, []).append(ast.get_source_segment(text, node))
    return texts


def _in_order(node: ast.AST) -> list[ast.Call]:
    """The calls in a tree, in the order in which they are made.

    Arguments come before their call, a condition before what it chooses, a value before its target.
    """
    parts = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Assign):
        parts = [node.value, *node.targets]
    calls = [call for part in parts for call in _in_order(part)]
    return [*calls, node] if isinstance(node, ast.Call) else calls
