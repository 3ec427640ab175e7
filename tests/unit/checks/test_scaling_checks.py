"""How unit 19's check counts loops over the ranks, also those that C code runs."""

import builtins
import functools
import itertools

import numpy as np
import pytest

from manyhands.checks.report import Stopped
from manyhands.checks.scaling import loops

MANY, MOST = 5000, 2000
LOOPS = {
    "map": lambda a: list(map(abs, a)),
    "filter": lambda a: list(filter(abs, a)),
    "starmap": lambda a: list(itertools.starmap(max, zip(a, a, strict=True))),
    "reduce": lambda a: functools.reduce(max, a),
    "vectorize": lambda a: np.vectorize(abs)(a),
    "frompyfunc": lambda a: np.frompyfunc(max, 2, 1)(a, a),
    "comprehension": lambda a: [abs(value) for value in a],
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_over_the_ranks_is_counted(name):
    with pytest.raises(Stopped, match="More than 2000 lines"):
        loops.within(MOST, LOOPS[name], np.ones(MANY))


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_over_a_few_gives_what_it_gives(name):
    few = np.array([3.0, -1.0, 2.0])
    assert np.array_equal(loops.within(MOST, LOOPS[name], few), LOOPS[name](few))


def test_the_names_are_what_they_were():
    before = [getattr(module, name) for module, name, _ in loops.PLACES], dict(globals())
    loops.within(MOST, LOOPS["map"], np.ones(3))
    assert ([getattr(module, name) for module, name, _ in loops.PLACES], dict(globals())) == before
    assert builtins.map is map and "map" not in globals()
