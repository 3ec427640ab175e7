"""What a check cell says below a NameError in a notebook.

It names the answer cell that has not been run, and says that the key M may have turned it into
text.
"""

import re
from typing import Any

CODE_AGAIN = (
    "If it is a text cell now, without [ ] on its left, click on it, press Esc and then Y, "
    "which makes it a code cell again."
)
NOT_RUN = (
    "`{missing}` is not defined, so its answer cell, `{name}` or an earlier one, has not been run "
    "in this kernel. Run that cell. "
)
NO_SET_UP = (
    "`{missing}` is not defined, because a set-up cell at the top of this notebook has not been run"
    " in this kernel. Run all cells from the top. "
)
_registered: list[Any] = []  # the shells that print it


def sentence(source: str | None, error: BaseException | None, cell_id: object = None) -> str | None:
    """The message for a cell that ended by this error, or None.

    There is none if it is not a check cell or not a NameError, or if the card of a new kernel has
    explained it.
    """
    called = re.search(r"^check\.(\w+)\(", source or "", re.MULTILINE)
    missing = getattr(error, "name", None)
    if (
        not called
        or not isinstance(error, NameError)
        or not missing
        or getattr(error, "explained", False)
    ):
        return None
    if missing in ("check", "cluster"):
        return NO_SET_UP.format(missing=missing) + CODE_AGAIN.replace(
            "it is a text", "one of them is a text", 1
        )
    known = (
        cell_id.removesuffix("-check")
        if isinstance(cell_id, str) and cell_id.endswith("-check")
        else None
    )
    return NOT_RUN.format(missing=missing, name=known or called[1].replace("_", "-")) + CODE_AGAIN


def register(shell: Any) -> None:
    """Let this shell print the message from now on, below Python's own."""
    if shell is None or shell in _registered:
        return
    shell.events.register("post_run_cell", _tell)
    _registered.append(shell)


def _tell(result: Any) -> None:
    info = result.info
    text = info and sentence(info.raw_cell, result.error_in_exec, getattr(info, "cell_id", None))
    if text:
        print(text)
