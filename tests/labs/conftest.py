"""What the tests of grading share."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import tiny  # noqa: E402
from sandboxed import own_cache, works_in_sandbox  # noqa: E402, F401 (fixtures)


@pytest.fixture
def lab(tmp_path):
    """A tiny lab: `lab.solution` and what a learner may hand in."""
    return tiny.Lab(tmp_path)
