"""How many lines an entry has, for the prize of the simplest: one for each statement, wherever its author has broken
lines; comments, docstrings and empty lines are none. Who runs a text (`exec`, `eval`) has statements that nobody
counts, and no lines."""

import ast

RUN_TEXT = {"exec", "eval", "compile", "builtins", "__builtins__", "__import__"}


def count(source):
    """The lines; None for what Python cannot read here, and for what runs a text."""
    try:
        tree = ast.parse(source)
        if any(_name(node) in RUN_TEXT for node in ast.walk(tree)):
            return None
        for node in ast.walk(tree):
            if isinstance(body := getattr(node, "body", None), list):
                node.body = [one for one in body if not _is_text(one)] or body[:1]
        return sum(bool(line.strip()) for line in ast.unparse(tree).splitlines())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _name(node):
    """The name that is used here, or the module or the name that is imported."""
    return getattr(node, {ast.Name: "id", ast.alias: "name", ast.ImportFrom: "module"}.get(type(node), ""), None)


def _is_text(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
