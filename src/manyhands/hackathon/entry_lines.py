"""How many lines an entry has, for the prize of the simplest: one for each statement, wherever its author has broken
lines; comments, docstrings and empty lines are none."""

import ast


def count(source):
    """The lines; None for what Python cannot read here."""
    try:
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if isinstance(body := getattr(node, "body", None), list):
                node.body = [one for one in body if not _is_text(one)] or body[:1]
        return sum(bool(line.strip()) for line in ast.unparse(tree).splitlines())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _is_text(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
