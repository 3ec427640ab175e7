"""Each wrong solution is rejected with its own message, and each alternative right one accepted."""

import os

import pytest

import mutants
from manyhands.grading.compare import FAIL
from manyhands.isolation.kernel import KernelEndedError

WANTED = os.environ.get("MUTANT", "")
MUTANTS = [
    mutant for unit in mutants.units() for mutant in mutants.of_unit(unit) if WANTED in mutant.name
]


@pytest.fixture(scope="module")
def warm():
    """Gives the warm kernel of a unit; one at a time."""
    kernels = {}

    def get(unit):
        if unit not in kernels:
            close()
            kernels[unit] = mutants.Warm(unit).__enter__()
        return kernels[unit]

    def close():
        while kernels:
            kernels.popitem()[1].__exit__()

    get.close = close
    yield get
    close()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant(mutant, warm):
    try:
        got = warm(mutant.unit).try_out(mutant)
    except KernelEndedError:
        warm.close()
        raise
    if mutant.right:
        assert got.fails == set(), got.text
        return
    assert got.fails == mutant.fails, got.text
    for fragment in mutant.facts["shows"]:
        assert " ".join(fragment.split()) in got.text
    assert got.points == float(mutant.facts["points"][0])
    believed = [
        criterion.name
        for criterion, forged in zip(got.criteria, got.forged, strict=False)
        if criterion.status == FAIL and forged.status != FAIL
    ]
    assert believed == [], (
        "these would pass if the kernel's verdicts were believed: their values do not show the "
        "mistake"
    )
    if "leaves" in mutant.facts:
        after = warm(mutant.unit).again(mutant)
        assert after.fails == set(), (
            f"what the wrong attempt has left spoils the right one after it: {after.text}"
        )


@pytest.mark.parametrize("unit", mutants.units())
def test_every_criterion_depends_on_the_seed(unit, warm):
    values, other_values = warm(unit).other_seed()
    assert set(values) == set(other_values)
    assert [name for name in values if values[name] == other_values[name]] == []


@pytest.mark.parametrize("unit", mutants.units())
def test_enough_of_them(unit):
    unit_mutants = mutants.of_unit(unit)
    assert sum(not mutant.right for mutant in unit_mutants) >= 6
    assert sum(mutant.right for mutant in unit_mutants) >= 2
