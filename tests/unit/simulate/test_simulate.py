"""The alpha-beta models against the messages they are made of, and against each other."""

import ast
import sys
from pathlib import Path

import numpy as np
import pytest

import manyhands.simulate as room
from manyhands.ledger import models
from manyhands.simulate import buckets, crossover_bytes, finish_s, halving_doubling_s, hierarchical_s, message_s, parameter_server_s, resnet50_bytes, ring_s, tree_s

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


@pytest.mark.parametrize("p", [2, 4, 8, 64, 1024])
def test_halving_and_doubling_has_the_rounds_of_a_tree_and_the_bytes_of_a_ring(p):
    n_bytes, rounds = 1024 * 1000, p.bit_length() - 1
    assert halving_doubling_s(p, n_bytes, *LINK) == pytest.approx(2 * sum(message_s(n_bytes / 2**k, *LINK) for k in range(1, rounds + 1)))
    assert halving_doubling_s(p, n_bytes, 0, 1e8) == pytest.approx(ring_s(p, n_bytes, 0, 1e8))
    assert halving_doubling_s(p, 0, *LINK) == pytest.approx(tree_s(p, 0, *LINK))


@pytest.mark.parametrize("p, whole", [(3, 2), (5, 4), (7, 4), (1000, 512)])
def test_ranks_beyond_a_power_of_two_cost_two_whole_messages(p, whole):
    assert halving_doubling_s(p, 8e5, *LINK) == pytest.approx(halving_doubling_s(whole, 8e5, *LINK) + 2 * message_s(8e5, *LINK))


def test_two_levels():
    inside, between, n = (1e-5, 1e10), (1e-3, 1e8), 8_000_000
    assert hierarchical_s(2, 4, n, inside, between) == pytest.approx(6 * (1e-5 + n / 4 / 1e10) + 2 * (1e-3 + 4 * n / 8 / 1e8))  # four rings on one link
    assert hierarchical_s(2, 4, n, inside, between, links_per_node=4) == pytest.approx(6 * (1e-5 + n / 4 / 1e10) + 2 * (1e-3 + n / 8 / 1e8))
    assert hierarchical_s(2, 4, n, inside, between, links_per_node=9) == hierarchical_s(2, 4, n, inside, between, links_per_node=4)
    assert hierarchical_s(1, 4, n, inside, between) == ring_s(4, n, *inside) and hierarchical_s(4, 1, n, inside, between) == ring_s(4, n, *between)
    assert hierarchical_s(2, 2, np.array([0.0, n]), inside, between)[1] == hierarchical_s(2, 2, n, inside, between)
    assert hierarchical_s(16, 8, n, inside, between) < ring_s(128, n, *between)


def test_the_bucket_curve_of_unit_05_needs_the_third_way():
    gradients, link = resnet50_bytes(), (50e-6, 1.25e9)
    ready_s = np.linspace(0, 0.120, len(gradients) + 1)[1:]

    def curve_ms(*models):
        def fastest(n_bytes):
            return min(model(64, n_bytes, *link) for model in models)

        return [round(1e3 * finish_s(ready_s, gradients, mib * 2**20, fastest)) for mib in (0, 1, 4, 10, 25, 50)]

    assert curve_ms(ring_s, tree_s) == [476, 382, 277, 221, 197, 198]
    assert curve_ms(ring_s, tree_s, halving_doubling_s) == [258, 183, 174, 170, 174, 193]
    assert len(buckets(gradients, 10 * 2**20)) == 9


def test_models_take_arrays_and_one_rank_is_free():
    sizes = np.array([0, 10, 1e6])
    for model in (ring_s, tree_s, halving_doubling_s):
        assert np.allclose(model(4, sizes, *LINK), [model(4, n, *LINK) for n in sizes])
        assert model(1, 1e6, *LINK) == 0
    assert isinstance(float(ring_s(4, 100, *LINK)), float)


def test_a_servers_link_carries_everything():
    assert parameter_server_s(8, 1e6, *LINK) == pytest.approx(2 * (1e-4 + 8e6 / 1e8))
    assert parameter_server_s(8, 1e6, *LINK, servers=4) == pytest.approx(2 * (1e-4 + 2e6 / 1e8))
    assert parameter_server_s(2, 1e6, *LINK, servers=5) == pytest.approx(2 * (1e-4 + 1e6 / 1e8))  # a worker's own link
    assert parameter_server_s(1, 1e6, *LINK) == pytest.approx(tree_s(2, 1e6, *LINK))
    free_s = 0
    for _ in range(1024):  # empty messages arrive together, and the last microsecond of a latency is the server's work
        free_s = max(free_s, LINK[0] - 1e-6) + 1e-6
    assert parameter_server_s(1024, 0, *LINK, overhead_s=1e-6) == pytest.approx(2 * free_s)


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


@pytest.mark.parametrize("call", [lambda: ring_s(0, 1, *LINK), lambda: tree_s(2.5, 1, *LINK), lambda: halving_doubling_s(0, 1, *LINK), lambda: hierarchical_s(2, 0, 1, LINK, LINK),
                                  lambda: hierarchical_s(2, 2, 1, LINK, LINK, links_per_node=0), lambda: crossover_bytes(1, *LINK), lambda: parameter_server_s(0, 1, *LINK)])
def test_what_makes_no_sense_is_refused(call):
    with pytest.raises(ValueError):
        call()


def test_the_room_needs_numpy_only():
    for path in Path(room.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module] if isinstance(node, ast.ImportFrom) else []
            assert all(name.split(".")[0] in {"numpy", *sys.stdlib_module_names} or name.startswith(("manyhands.simulate", "manyhands.toml")) for name in names), path.name
    assert set(room.__all__) <= set(dir(room))
