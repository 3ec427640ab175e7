"""The alpha-beta models against the messages they are made of, and against each other."""

import ast
import sys
from pathlib import Path

import numpy as np
import pytest

import manyhands.simulate as room
from manyhands.ledger import models
from manyhands.simulate import crossover_bytes, message_s, parameter_server_s, ring_s, tree_s

LINK = (1e-4, 1e8)  # 100 us, 100 MB/s


@pytest.mark.parametrize("p", [2, 3, 4, 5, 7, 8, 16])
@pytest.mark.parametrize("n_bytes", [0, 840, 8_400_000])
def test_a_ring_costs_what_its_messages_cost(p, n_bytes):
    n_bytes = n_bytes // p * p
    sent = [[step for step in models.steps("allreduce", p, rank, [n_bytes], [n_bytes]) if step.kind == "sent"] for rank in range(p)]
    by_round = [max(message_s(step.bytes, *LINK) for rank in sent for step in rank if step.step == k) for k in range(models.length("allreduce", p))]
    assert ring_s(p, n_bytes, *LINK) == pytest.approx(sum(by_round))


@pytest.mark.parametrize("p", [2, 3, 4, 5, 7, 8, 9, 1024])
def test_a_tree_is_a_reduce_and_a_broadcast(p):
    assert tree_s(p, 1000, *LINK) == pytest.approx((models.length("reduce", p) + models.length("broadcast", p)) * message_s(1000, *LINK))


def test_models_take_arrays_and_one_rank_is_free():
    sizes = np.array([0, 10, 1e6])
    for model in (ring_s, tree_s):
        assert np.allclose(model(4, sizes, *LINK), [model(4, n, *LINK) for n in sizes])
        assert model(1, 1e6, *LINK) == 0
    assert isinstance(float(ring_s(4, 100, *LINK)), float)


def test_a_servers_link_carries_everything():
    assert parameter_server_s(8, 1e6, *LINK) == pytest.approx(2 * (1e-4 + 8e6 / 1e8))
    assert parameter_server_s(8, 1e6, *LINK, servers=4) == pytest.approx(2 * (1e-4 + 2e6 / 1e8))
    assert parameter_server_s(2, 1e6, *LINK, servers=5) == pytest.approx(2 * (1e-4 + 1e6 / 1e8))  # a worker's own link
    assert parameter_server_s(1, 1e6, *LINK) == pytest.approx(tree_s(2, 1e6, *LINK))


@pytest.mark.parametrize("p", [4, 5, 6, 8, 9, 33, 1000, 1024])
def test_ring_and_tree_cross_where_they_should(p):
    n_bytes = crossover_bytes(p, *LINK)
    assert n_bytes > 0 and ring_s(p, n_bytes, *LINK) == pytest.approx(tree_s(p, n_bytes, *LINK))
    assert ring_s(p, n_bytes / 2, *LINK) > tree_s(p, n_bytes / 2, *LINK)
    assert ring_s(p, n_bytes * 2, *LINK) < tree_s(p, n_bytes * 2, *LINK)


@pytest.mark.parametrize("p", [2, 3])
def test_few_ranks_always_take_the_ring(p):
    assert crossover_bytes(p, *LINK) == 0
    assert ring_s(p, 1e-3, *LINK) < tree_s(p, 1e-3, *LINK) and ring_s(p, 0, *LINK) == pytest.approx(tree_s(p, 0, *LINK))


@pytest.mark.parametrize("call", [lambda: ring_s(0, 1, *LINK), lambda: tree_s(2.5, 1, *LINK), lambda: crossover_bytes(1, *LINK), lambda: parameter_server_s(0, 1, *LINK)])
def test_what_makes_no_sense_is_refused(call):
    with pytest.raises(ValueError):
        call()


def test_the_room_needs_numpy_only():
    for path in Path(room.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module] if isinstance(node, ast.ImportFrom) else []
            assert all(name.split(".")[0] in {"numpy", *sys.stdlib_module_names} or name.startswith("manyhands.simulate") for name in names), path.name
    assert set(room.__all__) <= set(dir(room))
