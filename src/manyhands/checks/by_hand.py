"""What the package has, and an exercise asks for, is closed while the learner's answer is asked.

Who has imported it has written nothing.
"""

from contextlib import contextmanager


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
