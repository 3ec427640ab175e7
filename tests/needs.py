"""Skip tests that lack a system package, and show the command that installs it.

Where skips are forbidden, such a test fails instead.
"""

import importlib.util
import os
import shutil

import pytest


def lacking(what, remedy):
    """Skip the test, saying what is missing and what to do; with MANYHANDS_NO_SKIPS=1, fail it."""
    message = f"{what} is missing: {remedy}"
    if os.environ.get("MANYHANDS_NO_SKIPS") == "1":
        pytest.fail(message + " (MANYHANDS_NO_SKIPS=1 forbids skipping)", pytrace=False)
    pytest.skip(message)


def search(name, *folders):
    """The path of a program, or None where it is not found.

    It is looked for in PATH, in the administrator's folders, and in `folders`.
    """
    return shutil.which(
        name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin", *folders])
    )


def program(name, package):
    """The path of a program that a Debian package brings."""
    return search(name) or lacking(name, f"apt-get install {package}")


def package(name, remedy):
    """A Python package that only some commands of `make` install."""
    if importlib.util.find_spec(name) is None:
        lacking(f"the package {name}", remedy)
