"""What the package has, and an exercise asks for: closed while the learner is asked, or noticed when it is called.

Who has imported it has written nothing.
"""

import functools
import sys
from contextlib import contextmanager
from operator import attrgetter


def _closed(*args, **kwargs):
    raise PermissionError("this is the package's own answer, which is closed here: write it yourself")


@contextmanager
def closed(*functions):
    """While the block runs, each of these functions raises PermissionError, by whatever name it is called.

    They are functions of Python without free variables.
    """
    kept = [(function, function.__code__) for function in functions]
    try:
        for function in functions:
            function.__code__ = _closed.__code__
        yield
    finally:
        for function, code in kept:
            function.__code__ = code


def shut_from(function, *own):
    """The learner's function, for which these functions of the package are closed while it runs."""

    @functools.wraps(function)
    def asked(*args, **kwargs):
        with closed(*own):
            return function(*args, **kwargs)

    return asked


def loaded(*names):
    """The functions of these names, "module:function" or "module:Class.method", of modules that are imported already:
    what an exercise asks for is not imported only to be closed. Whoever imports it meets it closed in the next case."""
    found = []
    for name in names:
        module, _, path = name.partition(":")
        if module in sys.modules:
            try:
                function = attrgetter(path)(sys.modules[module])
            except AttributeError:  # another version does not have it
                continue
            function = getattr(function, "__func__", function)
            if getattr(function, "__code__", None) and not function.__code__.co_freevars:
                found.append(function)
    return found


def borrowing(function, *args):
    """What function(*args) returns, and the first function of this package that was called for it, by name, or None:
    where the learner is to write it."""
    called, before = [], sys.getprofile()

    def heard(frame, event, _):
        module = frame.f_globals.get("__name__") or ""
        if event == "call" and module.startswith("manyhands."):
            called.append(f"{module}.{frame.f_code.co_name}")

    sys.setprofile(heard)
    try:
        answer = function(*args)
    finally:
        sys.setprofile(before)
    return answer, next(iter(called), None)
