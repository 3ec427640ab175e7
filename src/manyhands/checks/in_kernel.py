"""Checks of functions that run in the notebook's own kernel.

They need a safe way to call what the learner wrote, and to read what it returns.
"""

from __future__ import annotations

import inspect
import operator
import re
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from manyhands.checks.report import Stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

NAN = float("nan")
MESSAGES = {
    "unwritten": "{name} is not written yet. Replace `raise NotImplementedError` with your code.",
    "raised": "{name} raised {error}",
    "changed": (
        "{name} has changed {what}, which belongs to its caller, who may still need it. Work on a "
        "copy."
    ),
}


def ask(function: Callable[..., Any], *args: Any) -> Any:
    """What the learner's function returns. `Stopped` if it raises."""
    answer, error = call(function, *args)
    if error:
        raise Stopped(error)
    return answer


def ask_kept(function: Callable[..., Any], *args: Any) -> Any:
    """As `ask`, with a copy of each list or array that is given.

    `Stopped` also if the function has changed one.
    """
    answer, spoiled = ask_noting_changes(function, *args)
    if spoiled:
        raise Stopped(spoiled)
    return answer


def ask_noting_changes(function: Callable[..., Any], *args: Any) -> tuple[Any, str | None]:
    """(the answer, the message that the function has changed an argument of its caller, or None).

    Only lists and arrays count as arguments that can be changed.
    """
    lent = [deepcopy(given) if isinstance(given, (list, np.ndarray)) else given for given in args]
    answer = ask(function, *lent)
    for place, (given, copy) in enumerate(zip(args, lent, strict=True)):
        if copy is not given and not (
            np.array_equal if isinstance(given, np.ndarray) else operator.eq
        )(given, copy):
            return answer, describe_change(function, place)
    return answer, None


def describe_change(function: Callable[..., Any], place: int) -> str:
    """The message that the function has changed the argument at this place."""
    try:
        what = f"`{list(inspect.signature(function).parameters)[place]}`"
    except (TypeError, ValueError, IndexError):
        what = "what it was given"
    return MESSAGES["changed"].format(
        name=getattr(function, "__name__", "your function"), what=what
    )


def call(function: Callable[..., Any], *args: Any) -> tuple[Any, str | None]:
    """(what the learner's function returns, None), or (None, the message about what went wrong)."""
    name = getattr(function, "__name__", "your function")
    try:
        return function(*args), None
    except NotImplementedError:
        return None, MESSAGES["unwritten"].format(name=name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a learner's function may raise anything
        return None, MESSAGES["raised"].format(name=name, error=_in_a_line(error)[:300])


def _in_a_line(error: BaseException) -> str:
    """`ValueError: why`, without the source lines that tf.function puts before it.

    If Keras has wrapped an error of a layer, the layer's error is given. Variables appear without
    their numbers.
    """
    text = re.sub(r",\s*numpy=\s*(array\(.*?\)|\S+?)>", ">", str(error), flags=re.DOTALL)
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    causes = [line for line in lines if re.match(r"\w+(Error|Exception): ", line)]
    return causes[-1] if causes else f"{type(error).__name__}: {lines[0]}"


def likely(
    asked: Sequence[tuple[Any, Mapping[str, Any], Any]],
    same: Callable[[Any, Any], Any] = operator.eq,
) -> list[str]:
    """Names of the mistakes that explain at least half of the wrong answers.

    The mistake that explains most answers is first, because two mistakes may give the same in a
    single case, for example on two ranks. `asked`: [(the right answer, {mistake: what it gives},
    what was given)].
    """
    missed = [(wrong, got) for right, wrong, got in asked if not same(got, right)]
    names = [
        name
        for name in asked[0][1]
        if 2 * sum(same(got, wrong[name]) for wrong, got in missed) >= len(missed)
    ]
    return sorted(names, key=lambda name: -sum(same(got, wrong[name]) for _, wrong, got in asked))


def number(value: Any) -> float:
    """What the learner has returned as a float, or NaN if it is not a number."""
    try:
        return float(value)
    except Exception:  # noqa: BLE001 - a learner's object may do anything here
        return NAN


def array(value: Any) -> NDArray[np.float64]:
    """A tensor, variable or array as a NumPy array of floats, or an empty array if it is none."""
    if value is None:
        return np.empty(0)
    try:
        return np.asarray(value.numpy() if hasattr(value, "numpy") else value, dtype=float)
    except Exception:  # noqa: BLE001 - a learner's object may do anything here
        return np.empty(0)
