"""A step whose gradients are summed in other ways than along a ring.

It is held against messages played one by one, and against counts by hand.
"""

import messages
import numpy as np
import pytest

from manyhands.simulate import collective_costs as costs
from manyhands.simulate import pipeline
from manyhands.simulate.fusion import buckets
from manyhands.simulate.training_step import Layer, Machine, Way, step


def played(machine, layers, way, slow):
    """One stage: each bucket's all-reduce message by message, beside the computing."""
    sizes = [layer.weights_bytes for layer in layers[::-1]]
    ready = sum(layer.forward_s for layer in layers) + np.cumsum(
        [layer.backward_s for layer in layers[::-1]]
    )
    free = [0.0] * way.data
    for bucket in buckets(sizes, way.bucket_bytes):
        start = [max(free[r], slow[r] * ready[bucket[-1]]) for r in range(way.data)]
        n = sum(sizes[i] for i in bucket)
        if way.all_reduce == "parameter servers":
            free = messages.parameter_server(start, n, machine.between, way.servers)
        else:
            make = getattr(messages, way.all_reduce.replace(" and ", "_"))
            free = messages.play(make(way.data, n), start, machine.between)
    return max(max(f, s * ready[-1]) for f, s in zip(free, slow, strict=True))


@pytest.mark.parametrize("all_reduce", ["tree", "halving and doubling", "parameter servers"])
def test_as_played_message_by_message(all_reduce):
    """200 random small cases: ranks, layers, buckets, late ranks, links."""
    for seed in range(200):
        draw = np.random.default_rng(seed)
        layers = [
            Layer(*draw.exponential((5e4, 0.02, 0.04))) for _ in range(int(draw.integers(1, 6)))
        ]
        way = Way(
            int(draw.integers(2, 7)),
            bucket_bytes=float(draw.choice([0, 6e4, 1e9])),
            all_reduce=all_reduce,
            servers=1 + seed % 3 if all_reduce == "parameter servers" else 0,
        )
        machine = Machine(
            1, (0.0, 1e30), (float(draw.exponential(1e-3)), float(draw.uniform(1e5, 1e7)))
        )
        slow = 1 + draw.exponential(0.3, way.data) * draw.integers(0, 2)
        got = step(machine, layers, way, slow.reshape(1, way.data, 1))
        assert got.seconds == pytest.approx(played(machine, layers, way, slow), rel=1e-9), seed


def gradients_s(machine, **way):
    """Of a step that computes next to nothing."""
    return step(machine, [Layer(8e5, 1e-12, 1e-12)], Way(**way)).seconds


MACHINE = Machine(4, (1e-4, 1e8), (1e-3, 1e6))


def test_in_two_levels():
    inside_s = costs.ring_s(4, 8e5, *MACHINE.inside)
    assert gradients_s(MACHINE, data=32, all_reduce="hierarchical") == pytest.approx(
        inside_s + costs.ring_s(8, 8e5, *MACHINE.between)
    )
    assert gradients_s(
        MACHINE, data=32, all_reduce="hierarchical, halving and doubling"
    ) == pytest.approx(inside_s + costs.halving_doubling_s(8, 8e5, *MACHINE.between))
    assert gradients_s(MACHINE, data=32, all_reduce="parameter servers") == pytest.approx(
        inside_s + 2 * (1e-3 + 7 / 8 * 8e5 / 1e6)
    )
    for all_reduce in ("hierarchical", "hierarchical, halving and doubling", "parameter servers"):
        assert gradients_s(MACHINE, data=4, all_reduce=all_reduce) == pytest.approx(inside_s)
        assert gradients_s(MACHINE, data=1, all_reduce=all_reduce) == pytest.approx(2e-12)


def test_servers_apart_serve_as_many_workers_as_there_are():
    one, two = (
        gradients_s(MACHINE, data=32, all_reduce="parameter servers", servers=servers)
        for servers in (1, 2)
    )
    assert one == pytest.approx(costs.parameter_server_s(32, 8e5, *MACHINE.between))
    assert two == pytest.approx(costs.parameter_server_s(32, 8e5, *MACHINE.between, servers=2))
    busy = gradients_s(MACHINE, data=32, all_reduce="parameter servers", servers=1, overhead_s=1e-4)
    assert busy == pytest.approx(messages.busy_server(32, 8e5, MACHINE.between, 1e-4))


@pytest.mark.parametrize(
    "stages, micro_batches, chunks", [(2, 2, 2), (4, 4, 2), (4, 8, 3), (3, 9, 2), (1, 3, 2)]
)
def test_the_bubble_of_an_interleaved_step_is_the_formulas(stages, micro_batches, chunks):
    machine = Machine(8, (0.0, 1e30), (0.0, 1e30))
    layers = [Layer(1.0, 0.01, 0.02)] * (stages * chunks)
    got = step(
        machine, layers, Way(1, stages, 1, micro_batches, schedule="interleaved", chunks=chunks)
    )
    assert got.bubble == pytest.approx(pipeline.bubble(stages, micro_batches, chunks))


def test_own_orders_are_played_also_with_backward_cut_in_two():
    """Zero bubble on two ranks: the weights' gradients fill the gap at the end."""
    event = pipeline.Event
    orders = [
        [
            event("F", 0, 0),
            event("F", 1, 0),
            event("I", 0, 0),
            event("W", 0, 0),
            event("I", 1, 0),
            event("W", 1, 0),
        ],
        [
            event("F", 0, 1),
            event("I", 0, 1),
            event("F", 1, 1),
            event("I", 1, 1),
            event("W", 0, 1),
            event("W", 1, 1),
        ],
    ]
    machine = Machine(8, (0.0, 1e30), (0.0, 1e30))
    layers = [Layer(1.0, 0.01, 0.02)] * 2
    got = step(machine, layers, Way(1, 2, 1, 2, schedule=orders)).seconds
    spans = pipeline.play(orders, lambda task: 0.01)
    assert got == pytest.approx(pipeline.finish_s(spans))
    assert got < step(machine, layers, Way(1, 2, 1, 2)).seconds
    plain = step(machine, layers, Way(1, 2, 1, 2, schedule=pipeline.one_f_one_b(2, 2)))
    assert plain == step(machine, layers, Way(1, 2, 1, 2))


def test_a_shared_bus_divides_the_rate_among_those_that_send():
    """Eight ranks behind a bus that four could fill.

    Each ring's link has a quarter, for two ranks a half.
    """
    bus = Machine(8, (0.0, 1e8), (1e-3, 1e6), inside_shared_by=4)
    assert gradients_s(bus, data=8) == pytest.approx(costs.ring_s(8, 8e5, 0.0, 1e8 / 4))
    assert gradients_s(bus, data=2) == pytest.approx(costs.ring_s(2, 8e5, 0.0, 1e8 / 2))


def test_auto_is_the_fastest_that_the_machine_can():
    named = {
        name: Machine(4, (1e-4, 1e8), (1e-3, 1e6), adds=adds, torus=torus)
        for name, adds, torus in (
            ("ring", "", 0),
            ("double tree", "", 0),
            ("in network", "inside", 0),
            ("torus", "", 3),
        )
    }
    for name, machine in named.items():
        for data in (4, 64):
            if name == "torus" and data > 4:
                continue
            auto = gradients_s(machine, data=data, all_reduce="auto")
            assert auto <= gradients_s(machine, data=data, all_reduce=name) * (1 + 1e-9)
            possible = (
                ["ring", "double tree"]
                + ["in network"] * bool(machine.adds)
                + ["torus"] * bool(machine.torus and data <= 4)
            )
            assert auto == pytest.approx(
                min(gradients_s(machine, data=data, all_reduce=way) for way in possible)
            )


def test_a_torus_has_all_its_links_and_half_a_sides_hops():
    """4 x 4 x 4 chips, by hand.

    There are 6 links each way of a chip, and 2 + 2 hops along each of three axes.
    """
    torus = Machine(64, (1e-3, 1e6), (1.0, 1e6), torus=3)
    assert gradients_s(torus, data=64, all_reduce="torus") == pytest.approx(
        12e-3 + 2 * 63 / 64 * 8e5 / 6e6, rel=1e-2
    )


@pytest.mark.parametrize(
    "machine, way, message",
    [
        (MACHINE, Way(8, all_reduce="in network"), "no switches that add"),
        (MACHINE, Way(8, all_reduce="torus"), "no torus"),
        (MACHINE._replace(inside_shared_by=0), Way(8), "inside_shared_by is 0"),
        (MACHINE._replace(adds="x"), Way(8), "adds is 'x'"),
        (MACHINE, Way(1, micro_batch_s=-1), "micro_batch_s is -1"),
    ],
)
def test_bad_machines_say_what_was_wrong(machine, way, message):
    with pytest.raises(ValueError, match=message):
        step(machine, [Layer(1.0, 1.0, 1.0)], way)


def test_a_micro_batch_costs_what_it_costs():
    plain, dearer = (
        step(MACHINE, [Layer(1.0, 0.1, 0.2)] * 4, Way(1, 2, 1, 4, micro_batch_s=s)).seconds
        for s in (0.0, 0.01)
    )
    # forward and backward, of four micro-batches and the bubble
    assert dearer - plain == pytest.approx(2 * (4 + 1) * 0.01)


@pytest.mark.parametrize(
    "way, message",
    [
        (Way(2, servers=1), "1 servers with ring"),
        (Way(1, 2, micro_batches=3, schedule="interleaved"), "needs a multiple"),
        (Way(1, 2, chunks=2), "2 chunks with 1f1b"),
        (Way(1, 2, schedule=[[]]), "1 orders for 2 stages"),
    ],
)
def test_bad_ways_say_what_was_wrong(way, message):
    with pytest.raises(ValueError, match=message):
        step(MACHINE, [Layer(1.0, 1.0, 1.0)] * 8, way)
