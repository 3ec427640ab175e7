"""What the tests of the grading engine share."""

import pytest

import tiny
from sandboxed import own_cache, works_in_sandbox  # noqa: F401 (fixtures)


@pytest.fixture
def lab(tmp_path):
    """A tiny lab: `lab.solution` and what a learner may hand in."""
    return tiny.Lab(tmp_path)
