"""What the notebook asks of a rank's variables: these functions are sent to the ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


def get_value(expression: str) -> Any:
    """The value of an expression of this rank's variables."""
    from IPython import get_ipython

    shell = get_ipython()
    assert shell is not None
    return eval(expression, shell.user_ns)


def set_variables(variables: dict[str, Any]) -> None:
    """Set variables on this rank."""
    from IPython import get_ipython

    shell = get_ipython()
    assert shell is not None
    shell.user_ns.update(variables)
