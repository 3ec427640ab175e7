"""What a notebook says in a new kernel.

The next morning its outputs are still on the page, but its variables are gone.

`%%px` and a name of a set-up cell then fail with an error that does not help. Instead, the cell
shows a card with the remedy, and a button where JupyterLab has our extension
(`labextensions/manyhands-lab`). A start-up file of the course's own IPython profile calls
`register`, so this holds in the kernels of JupyterLab, but not where a notebook is graded.
"""

import sys
from html import escape
from types import TracebackType
from typing import Any

from IPython import get_ipython
from IPython.display import display

REMEDY = (
    "The outputs on this page are from an earlier run. To continue, select this cell and choose "
    "Run > Run All Above Selected Cell, and then run it again."
)
CARD = (
    '<div role="group" aria-label="new kernel" style="max-width: 60em; padding: .4em .8em; border: '
    "1px solid var(--jp-border-color2, #8a8a8a); border-left: 6px solid #8a5a00; border-radius: "
    '4px; line-height: 1.4"><div><b>{said}</b></div><div>{remedy}</div><button '
    'class="manyhands-run-above" type="button" style="display: none; margin-top: .4em">Run the '
    "cells above, then this one</button></div>"
)


class NewKernel(Exception):  # noqa: N818 - no error of the learner, whose notebook keeps the name
    """Ends a cell in a kernel in which the cells above have not run; shown as one line."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def register() -> None:
    """In a new kernel, `%%px` and unknown names say what to do, until a cell has run."""
    shell, ours = get_ipython(), _modules()
    ran: list[bool] = []

    def px(line: str, cell: str | None = None) -> None:
        """Stand in for the magic of `manyhands.cluster`.

        That one takes its place as soon as it is imported.
        """
        _show("This kernel has no cluster yet, because the cell that starts it has not run.")
        raise NewKernel("%%px needs a cluster.")

    def unknown(
        shell: Any,
        kind: type[BaseException],
        error: BaseException,
        traceback: TracebackType | None,
        tb_offset: int | None = None,
    ) -> None:
        name = getattr(error, "name", None)
        if ran or _modules() > ours or not name:
            shell.showtraceback((kind, error, traceback), tb_offset=tb_offset)
            return
        # a mark of ours on whatever was raised
        error.explained = True  # type: ignore[attr-defined]
        _show(f"The cells above have not run in this kernel yet, so {name} is not defined.")
        shell.showtraceback((NewKernel, NewKernel(f"NameError: {error}"), traceback))

    shell.register_magic_function(px, "line_cell", "px")
    shell.set_custom_exc((NameError,), unknown)
    shell.events.register(
        "post_run_cell", lambda result: ran.append(True) if result.success else None
    )


def _modules() -> set[str]:
    return {name for name in sys.modules if name.startswith("manyhands.")}


def _show(message: str) -> None:
    card = CARD.format(said=escape(message), remedy=escape(REMEDY))
    display({"text/plain": f"{message}\n{REMEDY}", "text/html": card}, raw=True)
