"""Close the package's own answers while the learner's code runs, or notice that they are called.

A learner who has only imported what an exercise asks for has written nothing.
"""

from __future__ import annotations

import functools
import sys
from contextlib import contextmanager
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType


def _closed(*args: object, **kwargs: object) -> NoReturn:
    raise PermissionError(
        "this is the package's own answer, which is closed here, so write it yourself"
    )


@contextmanager
def closed(*functions: Callable[..., Any]) -> Iterator[None]:
    """While the block runs, let each of these functions raise PermissionError, whatever its name.

    They are functions of Python without free variables.
    """
    originals = [(function, function.__code__) for function in functions]
    try:
        for function in functions:
            function.__code__ = _closed.__code__
        yield
    finally:
        for function, code in originals:
            function.__code__ = code


def close_for(function: Callable[..., Any], *own: Callable[..., Any]) -> Callable[..., Any]:
    """The learner's function, for which these functions of the package are closed while it runs."""

    @functools.wraps(function)
    def asked(*args: Any, **kwargs: Any) -> Any:
        with closed(*own):
            return function(*args, **kwargs)

    return asked


def loaded(*names: str) -> list[Callable[..., Any]]:
    """The functions of these names in modules that are imported already.

    A name is "module:function" or "module:Class.method". What an exercise asks for is not imported
    only to be closed. If a learner imports it, the next case closes it.
    """
    functions = []
    for name in names:
        module, _, path = name.partition(":")
        if module in sys.modules:
            try:
                function = attrgetter(path)(sys.modules[module])
            except AttributeError:  # another version does not have it
                continue
            function = getattr(function, "__func__", function)
            if getattr(function, "__code__", None) and not function.__code__.co_freevars:
                functions.append(function)
    return functions


def trace_call(function: Callable[..., Any], *args: Any) -> tuple[Any, str | None]:
    """What function(*args) returns, and the first function of this package that was called for it.

    That is its name, or None. This is for answers that the learner must write without the package.
    """
    called: list[str] = []
    before = sys.getprofile()

    def heard(frame: FrameType, event: str, _: object) -> None:
        module = frame.f_globals.get("__name__") or ""
        if event == "call" and module.startswith("manyhands."):
            called.append(f"{module}.{frame.f_code.co_name}")

    sys.setprofile(heard)
    try:
        answer = function(*args)
    finally:
        sys.setprofile(before)
    return answer, next(iter(called), None)
