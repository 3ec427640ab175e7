"""What the hostile submissions share.

There is a sandbox, there are things outside of it that must stay as they are, and each submission
is graded in the same way.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import target
from target import lab, outside  # noqa: F401 (fixtures)

from sandboxed import own_cache, works_in_sandbox  # noqa: F401 (fixtures)


@pytest.fixture(autouse=True)
def in_sandbox(works_in_sandbox):
    """None of these tests can do without."""


@pytest.fixture
def attack(lab, outside, monkeypatch):
    """Grade a hostile notebook in the sandbox: a `target.Graded`.

    Afterwards none of its processes is left.
    """
    seen = target.watch(monkeypatch)
    yield lambda notebook, **options: target.graded(lab, notebook, seen, **options)
    assert target.left(seen) == []
