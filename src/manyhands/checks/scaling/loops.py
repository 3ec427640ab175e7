"""How many lines of Python a call runs.

This reveals a loop over 100,000 ranks on a machine of any speed.
"""

from __future__ import annotations

import builtins
import functools
import itertools
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from manyhands.checks.in_kernel import ask
from manyhands.checks.report import Stopped
from manyhands.checks.scaling.messages import MISTAKES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType


class _TooMany(BaseException):
    """More lines have run than are allowed.

    No answer's `except Exception` catches this exception.
    """


def within(most: int, function: Callable[..., Any], *args: Any) -> Any:
    """Return what function(*args) returns.

    Raise `Stopped` if it raises, or if it runs more than `most` lines and calls of Python. A loop
    that C code runs, as `map` does, counts like a loop in Python.
    """
    ran, before = 0, sys.gettrace()

    def heard(frame: FrameType, event: str, _: object) -> Callable[..., Any]:
        nonlocal ran
        ran += 1
        if ran > most:
            raise _TooMany
        return heard

    with _loops_in_python(getattr(function, "__globals__", {})):
        sys.settrace(heard)
        try:
            return ask(function, *args)
        except _TooMany:
            raise Stopped(MISTAKES["loop"].format(most=most)) from None
        finally:
            sys.settrace(before)


def _map(function: Callable[..., Any], *many: Iterable[Any]) -> Iterator[Any]:
    for each in zip(*many, strict=False):
        yield function(*each)


def _filter(function: Callable[..., Any] | None, many: Iterable[Any]) -> Iterator[Any]:
    for item in many:
        if item if function is None else function(item):
            yield item


def _starmap(function: Callable[..., Any], many: Iterable[Any]) -> Iterator[Any]:
    for each in many:
        yield function(*each)


def _reduce(function: Callable[..., Any], many: Iterable[Any], *start: Any) -> Any:
    many = iter(many)
    result = start[0] if start else next(many)
    for item in many:
        result = function(result, item)
    return result


def _frompyfunc(
    function: Callable[..., Any], *_: object, **__: object
) -> Callable[..., np.ndarray]:
    def all_numbers(*arrays: Any) -> np.ndarray:
        together = np.broadcast_arrays(*arrays)
        return np.array(
            [function(*each) for each in zip(*(array.ravel() for array in together), strict=True)]
        ).reshape(together[0].shape)

    return all_numbers


def _vectorize(
    function: Callable[..., Any] | None = None, *_: object, **__: object
) -> Callable[..., Any]:
    # without a function, it is a decorator with options
    return _frompyfunc(function) if function else _vectorize


PLACES = (
    (builtins, "map", _map),
    (builtins, "filter", _filter),
    (itertools, "starmap", _starmap),
    (functools, "reduce", _reduce),
    (np, "frompyfunc", _frompyfunc),
    (np, "vectorize", _vectorize),
)


@contextmanager
def _loops_in_python(names: dict[str, Any]) -> Iterator[None]:
    """Replace whatever calls a function once for each item by Python code, while the block runs.

    Its lines are then counted. It is replaced both in its module and under the names that the
    learner's cells use. Of the builtins, only these names change, because all threads share that
    module.
    """
    originals = []
    try:
        for module, name, replacement in PLACES:
            real = getattr(module, name)
            places = [(names, key) for key, value in names.items() if value is real]
            places += [(names, name)] if module is builtins else [(vars(module), name)]
            for where, key in places:
                originals.append((where, key, where.get(key, _ABSENT)))
                where[key] = replacement
        yield
    finally:
        for where, key, value in reversed(originals):
            if value is _ABSENT:
                where.pop(key, None)
            else:
                where[key] = value


_ABSENT = object()
