"""How large an entry is, for the prize of the simplest entry.

The size is the number of nodes of the entry's syntax tree, wherever its author breaks lines.

A constant counts as many nodes as it has characters (a text as many as it has bytes, an integer as
many as it has digits), so that a program hidden in a text, in bytes or in a number costs at least
what it would cost in the open. A name counts one for each eight bytes, and the name of a keyword
argument one for each byte, because names can be read as data, too. Comments and docstrings count
nothing; a rank does not have them (`without_docstrings`). An entry that runs a text by name, or
that reaches into the interpreter, where names and comments could be read, has no size.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator


Tree = TypeVar("Tree", bound=ast.AST)

RUN_TEXT = {"exec", "eval", "compile", "builtins", "__import__"}
REFLECT = {
    "vars",
    "locals",
    "globals",
    "dir",
    "inspect",
    "gc",
    "ctypes",
    "_getframe",
    "_current_frames",
    "currentframe",
    "f_back",
    "f_locals",
    "f_code",
    "tb_frame",
    "gi_frame",
    "co_names",
    "co_consts",
}
PLAIN_DUNDERS = {
    "__init__",
    "__call__",
    "__len__",
    "__iter__",
    "__next__",
    "__getitem__",
    "__setitem__",
    "__enter__",
    "__exit__",
}
NAME_BYTES = 8
DIGITS_A_BIT, MOST_BITS = 0.30103, 10_000  # Python writes no number of many digits


def count(source: str) -> int | None:
    """The size; None for what has none.

    That is what Python cannot read here, and what runs a text or reaches into the interpreter.
    """
    try:
        nodes = list(ast.walk(without_docstrings(ast.parse(source))))
        if any(_reaches_inside(node) for node in nodes):
            return None
        return sum(map(_size, nodes))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def without_docstrings(tree: Tree) -> Tree:
    """The same tree, changed, without texts that are statements.

    What would be empty then has a `pass`.
    """
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list) and any(map(_is_text, body)):
            statements = [statement for statement in body if not _is_text(statement)]
            statements = statements or [ast.copy_location(ast.Pass(), body[0])]
            node.body = statements  # type: ignore[attr-defined]  # getattr has found one
    return tree


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _size(node: ast.AST) -> int:
    if isinstance(node, (ast.Module, ast.expr_context)):
        return 0  # not in the text
    if isinstance(node, ast.Constant):
        return _length(node.value)
    lengths = [len(name.encode()) for name in _names(node)]
    return 1 + sum(
        lengths
        if isinstance(node, ast.keyword)
        else [(length - 1) // NAME_BYTES for length in lengths]
    )


def _length(value: Any) -> int:
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogatepass")
    if value is None or value is ... or isinstance(value, bool):
        return 1
    if isinstance(value, int):
        return (
            len(str(value))
            if value.bit_length() < MOST_BITS
            else int(value.bit_length() * DIGITS_A_BIT)
        )
    return max(1, len(value if isinstance(value, bytes) else repr(value)))


def _names(node: ast.AST) -> Iterator[str]:
    """All names that a node has: of variables, attributes, arguments, modules."""
    if isinstance(node, ast.Constant):
        return
    for _, value in ast.iter_fields(node):
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str):
                yield item


def _reaches_inside(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute) and node.attr == "compile":
        # torch.compile runs no text
        return not (isinstance(node.value, ast.Name) and node.value.id == "torch")
    return any(
        part in RUN_TEXT | REFLECT or (part.startswith("__") and part not in PLAIN_DUNDERS)
        for name in _names(node)
        for part in name.split(".")
    )
