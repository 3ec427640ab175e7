"""Cells that ask for a prediction, or compare it with the run: `predict(...)` and `settle(...)`.

Their source holds the answer, or the choices that the form shows, so notebooks hide it
(`jupyter.source_hidden`). A reader can open it. JupyterLab shows the first line of a hidden cell,
so this line says what the cell does.
"""

import ast

LABELS = {
    "predict": "# Run this cell to make your prediction.",
    "settle": "# Run this cell to compare your prediction with the outcome.",
}
METADATA = {"source_hidden": True}  # of a cell, under "jupyter"
_NEEDED = (ast.FunctionDef, ast.Import, ast.ImportFrom, ast.Assign)


def call_of(source: str) -> str | None:
    """The function, "predict" or "settle", that a code cell calls first, or None.

    It is None unless the cell consists of such calls and of the imports, definitions and
    assignments that they need.
    """
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):  # a cell with a magic, or broken
        return None
    called = [_called(statement) for statement in body]
    if any(
        name is None and not isinstance(statement, _NEEDED)
        for name, statement in zip(called, body, strict=True)
    ):
        return None
    return next(filter(None, called), None)


def _called(statement: ast.stmt) -> str | None:
    call = statement.value if isinstance(statement, ast.Expr) else None
    name = call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else None
    return name if name in LABELS else None


def labelled(source: str) -> str:
    """The source of a code cell, as a notebook shows it.

    If notebooks hide it, a line in front says what it does.
    """
    call = call_of(source)
    label = LABELS[call] if call else None
    return f"{label}\n{source}" if label and source.split("\n", 1)[0] != label else source
