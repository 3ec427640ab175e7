"""What the tests of the course's own labs share; and which of the mutants need not run again."""

import pytest

import unchanged
from sandboxed import own_cache, works_in_sandbox  # noqa: F401 (fixtures)

SKIPPED = ("test_mutant", "test_every_criterion_depends_on_the_seed")


def state_of(item):
    """What the outcome of a test depends on, for those that may be left out; else None."""
    if getattr(item, "originalname", None) not in SKIPPED:
        return None
    mutant = item.callspec.params.get("mutant")
    return (
        unchanged.digest(mutant.unit, mutant.path)
        if mutant
        else unchanged.digest(item.callspec.params["unit"])
    )


def pytest_runtest_setup(item):
    if unchanged.wanted() and (state := state_of(item)) and unchanged.known(item.name, state):
        pytest.skip(unchanged.REASON)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.when == "call" and report.passed and (state := state_of(item)):
        unchanged.remember(item.name, state)
    return report
