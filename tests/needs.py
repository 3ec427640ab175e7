"""Tests that need a system package: skipped with the command that mends it, or failed where skips are forbidden."""

import os
import shutil

import pytest


def lacking(what, remedy):
    """Skip the test, saying what is missing and what to do; with MANYHANDS_NO_SKIPS=1, fail it."""
    message = f"{what} is missing: {remedy}"
    if os.environ.get("MANYHANDS_NO_SKIPS") == "1":
        pytest.fail(message + " (MANYHANDS_NO_SKIPS=1 forbids skipping)", pytrace=False)
    pytest.skip(message)


def program(name, package):
    """The path of a program that a Debian package brings."""
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    return found or lacking(name, f"apt-get install {package}")
