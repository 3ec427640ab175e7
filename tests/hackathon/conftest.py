"""What the tests of the judge share.

These are sandboxes, which take their time to open, and a challenge with short timeouts.
"""

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import needs
from manyhands.hackathon.challenges.challenge import SLOW_LINKS
from manyhands.hackathon.judge import open_judge  # noqa: F401 - made of `Sandboxes`, which tests replace
from manyhands.hackathon.judge import sandboxes as closed
from manyhands.hackathon.judge.one_run import one_run

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
QUICK = replace(SLOW_LINKS, memory_mib=256, processor_s=2, quiet_s=600)


@pytest.fixture(scope="session")
def sandboxes():
    why = closed.why_none()
    if why:
        needs.lacking("the judge's rooms", why)
    with closed.Sandboxes(QUICK.ranks) as opened:
        yield opened


@pytest.fixture
def run(sandboxes):
    """Run a text as an entry: (the `Run`, all lines that its ranks printed)."""

    def begin(source, seed=b"of a test", challenge=QUICK):
        result, printed = one_run(challenge, sandboxes, source, seed)
        return result, [line for lines in printed for line in lines]

    return begin


def verdict(source):
    """What a cheat's docstring says of the judge's answer."""
    return re.search(r"^verdict: (.*)$", source, re.M)[1]
